//! The variational model of one document: q(z | λ) with a factor for each latent, and the distribution of λ.
//!
//! With mean-field λ is a point. Otherwise the latents of a document depend on each other through λ, and r(λ | z) approximates the
//! distribution of λ given z. λ has a location for each latent, followed by a log scale for each continuous one.

mod flow;
mod low_rank;
mod method;
mod mixture;
mod noise;

pub use method::Method;
pub(crate) use method::StepKind;
pub(crate) use noise::Noise;
