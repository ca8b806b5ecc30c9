//! Pairs of correlated counts: the paper's simulated study.

use crate::error::Result;
use crate::model::{Conditionals, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::special::{ln_factorial, ln_gamma, log_sum_exp};
use serde::{Deserialize, Serialize};

/// Which pair of counts. See [`CorrelatedCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountTarget {
    /// Four products of Poissons, the target in the paper's figure: rates (1, 1), (.1, 12), (8, .1) with weight .1 each and
    /// (10, 10) with weight .7.
    Figure,
    /// Three products of Poissons: rates (2, 14), (8, 7), (16, 2), weights .3, .4, .3.
    B,
    /// Three negative multinomials with 20 degrees of freedom and means (3, 15), (9, 8), (17, 2), weights .3, .4, .3:
    /// over-dispersed, correlated within and between.
    C,
    /// z_i ~ Poisson(6), and z_1 z_2 observed as 36 with standard deviation 6: under-dispersed, a negative control for
    /// mixtures of Poissons.
    E,
}

impl CountTarget {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Figure, Self::B, Self::C, Self::E];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Figure => "figure",
            Self::B => "b",
            Self::C => "c",
            Self::E => "e",
        }
    }

    /// log p of a pair of counts.
    pub fn log_density(self, z1: f64, z2: f64) -> f64 {
        let poisson = |rate: f64, z: f64| z * rate.ln() - rate - ln_factorial(z);
        let product = |weight: f64, r1: f64, r2: f64| weight.ln() + poisson(r1, z1) + poisson(r2, z2);
        let negative_multinomial = |weight: f64, m1: f64, m2: f64| {
            let a = 20.0_f64;
            let s = a + m1 + m2;
            weight.ln() + ln_gamma(a + z1 + z2) - ln_gamma(a) - ln_factorial(z1) - ln_factorial(z2)
                + a * (a / s).ln()
                + z1 * (m1 / s).ln()
                + z2 * (m2 / s).ln()
        };
        match self {
            Self::Figure => log_sum_exp(&[
                product(0.1, 1.0, 1.0),
                product(0.1, 0.1, 12.0),
                product(0.1, 8.0, 0.1),
                product(0.7, 10.0, 10.0),
            ]),
            Self::B => log_sum_exp(&[product(0.3, 2.0, 14.0), product(0.4, 8.0, 7.0), product(0.3, 16.0, 2.0)]),
            Self::C => log_sum_exp(&[
                negative_multinomial(0.3, 3.0, 15.0),
                negative_multinomial(0.4, 9.0, 8.0),
                negative_multinomial(0.3, 17.0, 2.0),
            ]),
            Self::E => {
                let miss = (36.0 - z1 * z2) / 6.0;
                let normal = -0.5 * miss * miss - 6.0_f64.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln();
                poisson(6.0, z1) + poisson(6.0, z2) + normal
            }
        }
    }
}

/// Counts up to this are tabulated; larger ones are computed.
const TABLE: usize = 256;

/// A pair of correlated counts as a model, with conditionals.
///
/// ```
/// use hyperprior::targets::{CorrelatedCounts, CountTarget};
/// let model = CorrelatedCounts::new(CountTarget::B);
/// hyperprior::check(&model, 1)?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CorrelatedCounts {
    target: CountTarget,
    latents: Latents,
    table: Vec<f64>,
}

impl CorrelatedCounts {
    /// The model of a target.
    ///
    /// # Panics
    /// Never: its latents are declared correctly.
    pub fn new(target: CountTarget) -> Self {
        let latents = Latents::new().vector("z", 2, Support::Counts).expect("two counts are a valid declaration");
        let table = (0..TABLE * TABLE).map(|e| target.log_density((e / TABLE) as f64, (e % TABLE) as f64)).collect();
        Self { target, latents, table }
    }

    fn log_density(&self, z1: f64, z2: f64) -> f64 {
        let inside = |z: f64| z >= 0.0 && z < TABLE as f64;
        match inside(z1) && inside(z2) {
            true => self.table[z1 as usize * TABLE + z2 as usize],
            false if z1.min(z2) < 0.0 => f64::NEG_INFINITY,
            false => self.target.log_density(z1, z2),
        }
    }
}

impl Model for CorrelatedCounts {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for ((o, z1), z2) in out.iter_mut().zip(z.column(0)).zip(z.column(1)) {
            *o = self.log_density(*z1, *z2);
        }
        Ok(())
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }
}

impl Conditionals for CorrelatedCounts {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let other = z.column(1 - i);
        for (v, value) in values.iter().enumerate() {
            for (o, other) in out.column_mut(v).iter_mut().zip(other) {
                *o = if i == 0 { self.log_density(*value, *other) } else { self.log_density(*other, *value) };
            }
        }
        Ok(())
    }
}
