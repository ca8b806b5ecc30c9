//! What exact marginalisation of Gaussian latents yields.

use crate::objective::Estimate;
use hyperprior_math::batch::Batch;
use serde::{Deserialize, Serialize};

/// How chains over the latents that were not integrated out went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CollapsedSummary {
    /// The number of chains.
    pub chains: usize,
    /// The sweeps of each that were kept.
    pub sweeps: usize,
    /// The largest rank-normalised split R̂.
    pub rhat: f64,
    /// The smallest bulk effective sample size.
    pub ess_bulk: f64,
    /// The smallest tail effective sample size.
    pub ess_tail: f64,
}

/// How latents were integrated out. See [`Integrated`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IntegrationSummary {
    /// The number of latents that are Gaussian given the others.
    pub gaussian: usize,
    /// The number of states of discrete latents, over which sums were taken: 1 without any; absent if they are too many, and chains moved
    /// them.
    pub states: Option<usize>,
    /// The other latents, which were drawn by importance sampling, quadrature or chains.
    pub conditioned: Vec<String>,
    /// The values of these that were weighted, the nodes of quadrature, or the values that chains tried.
    pub values: usize,
    /// k̂ of their importance weights; absent if there is one such latent, which is integrated out by quadrature, or none, or chains.
    pub khat: Option<f64>,
    /// How the chains went, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<CollapsedSummary>,
    /// The largest k̂ that is accepted: with this, the weights have a variance.
    pub khat_limit: f64,
    /// The effective sample size of the draws.
    pub ess: f64,
}

/// Draws of a posterior most of whose latents were integrated out. See [`integrated`](crate::infer::integrated).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Integrated {
    /// The draws: a column for each latent.
    pub z: Batch,
    /// log p(x); without an error if all latents were integrated out.
    pub log_evidence: Estimate,
    /// How.
    pub summary: IntegrationSummary,
}
