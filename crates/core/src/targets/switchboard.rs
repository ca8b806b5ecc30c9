//! Five groups of spins, each nearly all up or all down: 2⁵ modes, one per setting of five switches.

use super::ising::{Coupling, Ising};
use crate::error::Result;
use crate::model::{Conditionals, Latents, Locals, Model};
use hyperprior_math::batch::Batch;

/// The field of each group; no two are equal.
const FIELDS: [f64; Switchboard::GROUPS_LEN] = [0.06, -0.04, 0.02, -0.07, 0.05];

/// The coupling of the last spin of a group to the first of the next; the last group is coupled to the first.
const BETWEEN: [f64; Switchboard::GROUPS_LEN] = [0.25, -0.2, 0.15, 0.25, -0.15];

/// The coupling of neighbouring spins in a group, a ring.
const WITHIN: f64 = 1.0;

/// Twenty spins in five groups of four: strongly coupled in a group, weakly between groups, with a weak field that differs
/// between groups.
///
/// In a typical state every group is all up or all down, and each of the 32 settings of the groups has a share of the
/// probability; the settings are not quite independent. A mixture prior needs a component per setting to separate them, a
/// factorial mixture a switch per group. With 2²⁰ states it can be enumerated.
///
/// ```
/// use hyperprior::targets::Switchboard;
/// let model = Switchboard::new();
/// hyperprior::check(&model, 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Switchboard {
    ising: Ising,
}

impl Default for Switchboard {
    fn default() -> Self {
        Self::new()
    }
}

impl Switchboard {
    /// How many groups there are.
    pub const GROUPS_LEN: usize = 5;

    /// How many spins are in a group; spin i is in group i / 4.
    pub const GROUP_LEN: usize = 4;

    /// The model.
    ///
    /// # Panics
    /// Never: its couplings join spins that exist.
    pub fn new() -> Self {
        let spins_len = Self::GROUPS_LEN * Self::GROUP_LEN;
        let mut couplings = Vec::new();
        for (group, strength) in BETWEEN.into_iter().enumerate() {
            let first = group * Self::GROUP_LEN;
            let within = (0..Self::GROUP_LEN).map(|i| (first + i, first + (i + 1) % Self::GROUP_LEN));
            couplings.extend(within.map(|spins| Coupling { spins, strength: WITHIN }));
            let next = (first + Self::GROUP_LEN) % spins_len;
            couplings.push(Coupling { spins: (first + Self::GROUP_LEN - 1, next), strength });
        }
        let fields = (0..spins_len).map(|i| FIELDS[i / Self::GROUP_LEN]).collect();
        Self { ising: Ising::with_fields(couplings, fields).expect("every coupling joins two of the twenty spins") }
    }

    /// The underlying Ising model.
    pub fn ising(&self) -> &Ising {
        &self.ising
    }
}

impl Model for Switchboard {
    fn latents(&self) -> &Latents {
        self.ising.latents()
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.ising.log_joint(z, out)
    }

    fn locals(&self) -> Option<&dyn Locals> {
        self.ising.locals()
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        self.ising.conditionals()
    }
}
