//! The weights of a deep exponential family and their approximate posterior.
//!
//! The words' weights W ≥ 0 have gamma priors. Given the allocation of the counts to the latents they are conjugate: every q has
//! the same two statistics, the counts A_vk of term v that latent k explains (plus the prior's shape) and the activity B_k of the
//! latent (plus the prior's rate). Both are averaged over minibatches (stochastic variational inference; Hoffman, Blei, Wang and
//! Paisley, 2013). Documents use exp E ln W inside the logarithm of a rate and E W inside a sum of rates, which bounds E ln p(x |
//! z, W) from below for any q(W).
//!
//! The weights between layers are Gaussian with prior N(0, 1), and are fitted by gradient ascent.

mod layers;
mod posterior;
mod terms;

pub use layers::LayerWeights;
pub use posterior::WeightPosterior;
pub use terms::{TermPrior, TermWeights};
