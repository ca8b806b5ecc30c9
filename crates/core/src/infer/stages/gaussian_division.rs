//! Which latents of a model are Gaussian given the others.

use crate::model::{Model, Support};

/// The most other latents that are continuous.
const THETA_MAX: usize = 6;
/// The most states of discrete latents that [`integrated`](crate::infer::integrated) sums over.
pub const STATES_MAX: usize = 4096;
/// The most values of one discrete latent.
const VALUES_MAX: f64 = 4096.0;

/// The latents that are Gaussian given the others, if the model says that there are some and the others are few.
pub(super) struct Division {
    pub(super) theta: Vec<usize>,
    pub(super) gaussian: Vec<usize>,
    pub(super) discrete: Vec<usize>,
    /// `None` if they are too many to sum over.
    pub(super) states: Option<usize>,
}

impl Division {
    pub(super) fn of(model: &dyn Model) -> Option<Self> {
        let latents = model.latents();
        let values: Vec<f64> = (0..latents.len()).map(|i| values_len(latents.support(i))).collect();
        if values.iter().any(|len| *len > VALUES_MAX) {
            return None;
        }
        let product: f64 = values.iter().product();
        let states = (product <= STATES_MAX as f64).then_some(product as usize);
        let gaussian = model.gaussian_given_others(THETA_MAX)?;
        let is_gaussian = |i: &usize| gaussian.binary_search(i).is_ok();
        let (discrete, continuous): (Vec<usize>, Vec<usize>) =
            (0..latents.len()).partition(|i| latents.support(*i).is_discrete());
        let theta: Vec<usize> = continuous.into_iter().filter(|i| !is_gaussian(i)).collect();
        // Without a proper prior there may be no integral, which other stages recognise.
        let is_proper = model.flat_priors().is_empty();
        let suits = !gaussian.is_empty() && theta.len() <= THETA_MAX && is_proper;
        suits.then_some(Self { theta, gaussian, discrete, states })
    }
}

/// The number of values of a discrete latent, 1 for a continuous one.
fn values_len(support: Support) -> f64 {
    match support {
        Support::Integers { lower, upper } => upper - lower + 1.0,
        Support::Counts => f64::INFINITY,
        _ => 1.0,
    }
}
