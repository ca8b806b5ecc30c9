//! What `summary.json` holds.

use super::{Foretold, Response};
use hyperprior::fit::Round;
use hyperprior::infer::{Restarts, Rung, Verdict};
use hyperprior::posterior::Parameters;
use serde::Serialize;
use std::collections::BTreeMap;

/// The layout's version; it changes when a field is renamed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// A run in one object. What is not known is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The model's file or name.
    pub model: String,
    /// The method, as it would be asked for.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Whether the bound had stopped rising.
    pub converged: bool,
    /// The steps that were taken.
    pub steps: u64,
    /// The time that they took.
    pub wall_seconds: f64,
    /// The bound.
    pub elbo: Elbo,
    /// The estimate of log p(x).
    pub evidence: Option<Evidence>,
    /// The shape of the importance weights' tail.
    pub khat: Option<f64>,
    /// The largest at which the weights can be trusted.
    pub khat_limit: Option<f64>,
    /// What may be believed.
    pub verdict: Option<Verdict>,
    /// Why that, and what to try.
    pub reason: Option<String>,
    /// What a person has to know before believing it.
    pub warnings: Vec<String>,
    /// What the approximation was put together from.
    pub plan: Plan,
    /// How the fits went; nothing where nothing was approximated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub course: Option<Course<'a>>,
    /// What the fit foretells: `predictive` and `loo`, each where it was asked for.
    #[serde(flatten)]
    pub foretold: &'a Foretold,
    /// Spreads and correlations by linear response, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_response: Option<&'a Response>,
    /// Every scalar that was monitored.
    pub parameters: Parameters<'a>,
}

/// The bound and its errors.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Elbo {
    /// The hierarchical ELBO.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// An upper bound on the exact ELBO of the same approximation.
    pub upper: Option<f64>,
}

/// The evidence and its error.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Evidence {
    /// log p(x).
    pub log: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// How the fits went.
#[derive(Clone, Debug, Serialize)]
pub struct Course<'a> {
    /// The accuracy that was asked for, in nats.
    pub accuracy: f64,
    /// Steps of all fits.
    pub steps: u64,
    /// Whether the budget ended them.
    pub budget_spent: bool,
    /// The approximations that were tried.
    pub tried: &'a [Rung],
    /// The rounds of the one that was kept, where it ended by itself.
    pub rounds: &'a [Round],
    /// The bounds of its short runs, where there were several starts.
    pub starts: &'a [f64],
    /// How far fits from different starts agree.
    pub restarts: Option<&'a Restarts>,
    /// The share of the fit's draws that were impossible.
    pub dropped: f64,
}

/// What the approximation was put together from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    /// The variables that were summed out exactly.
    pub eliminated: Vec<String>,
    /// The variables that no observation depends on, drawn from their laws.
    pub from_law: Vec<String>,
    /// q(z | λ).
    pub likelihood: String,
    /// q(λ; θ).
    pub prior: String,
    /// r(λ | z; φ).
    pub recursive: String,
    /// How gradients were estimated, with the variables of each kind.
    pub gradient: BTreeMap<String, Vec<String>>,
}
