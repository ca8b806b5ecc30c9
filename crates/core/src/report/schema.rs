//! The types that write and read `summary.json`.
//!
//! Reading is lenient, since an earlier version may have written the file: missing fields take their defaults, and numbers that
//! JSON cannot represent are `null` there and NaN here.

use crate::diagnostics::{Diagnostic, Verdict};
use crate::fit::StepSizeStage;
use crate::infer::{
    CandidateSummary, IntegrationSummary, NutsSummary, QuadratureSummary, Restarts, SmcSummary, Superchains,
};
use crate::json::{nullable, nullables};
use crate::objective::Annealed;
use crate::posterior::{Parameters, PpcArray, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the schema; it changes when a field is renamed or changes its meaning.
pub const SCHEMA: u32 = 2;

/// The ELBO of a trusted fit is tight if the estimate of the log evidence is not higher by more than this.
const TIGHT: f64 = 0.1;

/// The content of `summary.json`.
///
/// ```
/// use hyperprior::report::FitSummary;
/// let summary: FitSummary = serde_json::from_str(r#"{"model": "coin", "method": "exact", "elbo": {"value": null}}"#)?;
/// assert!(summary.elbo.value.is_nan() && summary.parameters.0.is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FitSummary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The model's file or name.
    pub model: String,
    /// The method that was used.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// Whether the ELBO had converged.
    pub converged: bool,
    /// Optimisation steps of the fit.
    pub steps: u64,
    /// The duration of the run.
    #[serde(deserialize_with = "nullable")]
    pub wall_seconds: f64,
    /// The lower bound on log p(x).
    pub elbo: Elbo,
    /// The annealed bound on log p(x), if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annealed: Option<Annealed>,
    /// The estimate of log p(x).
    pub evidence: Option<Evidence>,
    /// k̂, the shape of the importance weights' tail.
    pub khat: Option<f64>,
    /// The largest k̂ at which the weights are reliable.
    pub khat_limit: Option<f64>,
    /// How far the fit can be trusted.
    pub verdict: Option<Verdict>,
    /// The reason, and remedies.
    pub reason: Option<String>,
    /// The diagnostics as text, worded by the front end.
    pub warnings: Vec<String>,
    /// The diagnostics as data: code, severity, evidence and remedies.
    pub diagnostics: Vec<Diagnostic>,
    /// The parts of the approximation.
    pub plan: Plan,
    /// The history of the fits; absent if nothing was approximated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit_history: Option<FitHistory>,
    /// How Gaussian latents were integrated out, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integration: Option<IntegrationSummary>,
    /// Posterior predictive checks, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictive: Option<Vec<PpcArray>>,
    /// Leave-one-out cross-validation, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loo: Option<LooSummary>,
    /// Standard deviations and correlations by linear response, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_response: Option<LinearResponseSummary>,
    /// The summaries of the monitored scalars.
    pub parameters: Parameters,
}

/// The ELBO and its standard error. See [`FitSummary`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Elbo {
    /// A lower bound on log p(x): the ELBO, or with an r the importance-weighted bound, which is tighter.
    #[serde(deserialize_with = "nullable")]
    pub value: f64,
    /// Its standard error.
    #[serde(deserialize_with = "nullable")]
    pub standard_error: f64,
    /// An upper bound on the exact ELBO of the same approximation.
    pub upper: Option<f64>,
}

impl Default for Elbo {
    fn default() -> Self {
        Self { value: f64::NAN, standard_error: f64::NAN, upper: None }
    }
}

/// The log evidence and its standard error. See [`FitSummary`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// log p(x).
    #[serde(deserialize_with = "nullable")]
    pub log: f64,
    /// Its standard error.
    #[serde(deserialize_with = "nullable")]
    pub standard_error: f64,
    /// The estimator.
    pub by: Estimator,
}

/// How the evidence was estimated. See [`Evidence`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The mean of importance weights.
    #[default]
    ImportanceSampling,
    /// Bridge sampling between the approximation and the draws.
    BridgeSampling,
    /// Adaptive quadrature.
    Quadrature,
    /// Tempered sequential Monte Carlo.
    TemperedSmc,
    /// An exact sum.
    Summation,
}

impl Evidence {
    /// Whether the estimate is reliable, and not just a lower bound, as it is if draws may miss a part of the posterior: a bridge by its
    /// standard error; the mean of importance weights by k̂, or because the ELBO, which is a lower bound, is nearly as high and the draws
    /// are trusted, so that nothing was missed.
    pub(super) fn is_good(self, elbo: f64, is_khat_good: bool, has_converged: bool, verdict: Option<Verdict>) -> bool {
        match self.by {
            Estimator::Summation => true,
            _ if verdict == Some(Verdict::Distrust) => false,
            Estimator::BridgeSampling | Estimator::Quadrature | Estimator::TemperedSmc => self.standard_error < TIGHT,
            Estimator::ImportanceSampling => {
                let is_tight = self.log - elbo < TIGHT;
                has_converged && (is_khat_good || (verdict == Some(Verdict::Trust) && is_tight))
            }
        }
    }
}

impl Default for Evidence {
    fn default() -> Self {
        Self { log: f64::NAN, standard_error: f64::NAN, by: Estimator::default() }
    }
}

/// The history of the fits. See [`FitSummary`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FitHistory {
    /// The requested accuracy, in nats.
    #[serde(deserialize_with = "nullable")]
    pub accuracy: f64,
    /// The total number of steps of all fits.
    pub steps: u64,
    /// Whether the time budget was spent.
    pub budget_spent: bool,
    /// The candidate approximations.
    pub candidates: Vec<CandidateSummary>,
    /// The stages of the chosen fit, if it had a stopping rule.
    pub stages: Vec<StepSizeStage>,
    /// The ELBOs of its short runs, if there were several starts.
    #[serde(deserialize_with = "nullables")]
    pub starts: Vec<f64>,
    /// How well fits from different starts agree.
    pub restarts: Option<Restarts>,
    /// Chains from overdispersed starts, compared with the draws.
    pub superchains: Option<Superchains>,
    /// The latents that were integrated out by adaptive quadrature, if the draws are from there.
    pub quadrature: Option<QuadratureSummary>,
    /// Chains of the No-U-Turn sampler, if they were needed.
    pub nuts: Option<NutsSummary>,
    /// Tempered sequential Monte Carlo, if it was needed.
    pub smc: Option<SmcSummary>,
    /// The share of the fit's draws that were invalid in the model.
    #[serde(deserialize_with = "nullable")]
    pub invalid_share: f64,
}

/// The parts of the approximation. See [`FitSummary`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The variables that were marginalised exactly.
    pub marginalised: Vec<String>,
    /// The variables that no observation depends on, drawn from their priors.
    pub prior_only: Vec<String>,
    /// The latents whose coordinates are relative to the location and scale of their distributions, by their degree of centring: 0 for
    /// standardised ones. All others are centred, with degree 1.
    pub centring: BTreeMap<String, Vec<String>>,
    /// q(z | λ).
    pub likelihood: String,
    /// q(λ; θ).
    pub prior: String,
    /// r(λ | z; φ).
    pub recursive: String,
    /// The gradient estimators, with the variables of each.
    pub gradient: BTreeMap<String, Vec<String>>,
}

/// `loo` of `summary.json`. See [`LooReport`](super::LooReport).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LooSummary {
    /// The log predictive density of all observations, each predicted from the others.
    #[serde(deserialize_with = "nullable")]
    pub elpd_loo: f64,
    /// Its standard error.
    #[serde(deserialize_with = "nullable")]
    pub elpd_loo_standard_error: f64,
    /// The effective number of parameters.
    #[serde(deserialize_with = "nullable")]
    pub p_loo: f64,
    /// The number of units; each is one observation unless it is listed in `grouped`.
    pub units: usize,
    /// The largest k̂ at which a unit's estimate is reliable.
    #[serde(deserialize_with = "nullable")]
    pub khat_limit: f64,
    /// The number of units with a larger k̂.
    pub khat_above: usize,
    /// The worst of these.
    pub worst: Vec<Worst>,
    /// WAIC; absent if observations are not independent given a draw.
    pub waic: Option<WaicSummary>,
    /// Units of several observations, named by the first.
    pub grouped: Vec<String>,
    /// Discrete latents on whose drawn values the likelihoods are conditional.
    pub conditioned_on: Vec<String>,
    /// Observations whose likelihood does not depend on the latents.
    pub excluded: Vec<String>,
}

/// A unit with a large k̂. See [`LooSummary`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Worst {
    /// Its name.
    pub name: String,
    /// Its k̂.
    #[serde(deserialize_with = "nullable")]
    pub khat: f64,
    /// Its log predictive density.
    #[serde(deserialize_with = "nullable")]
    pub elpd: f64,
}

/// `waic` of `summary.json`. See [`LooSummary`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WaicSummary {
    /// The expected log predictive density by WAIC.
    #[serde(deserialize_with = "nullable")]
    pub elpd_waic: f64,
    /// Its standard error.
    #[serde(deserialize_with = "nullable")]
    pub elpd_waic_standard_error: f64,
    /// The effective number of parameters.
    #[serde(deserialize_with = "nullable")]
    pub p_waic: f64,
    /// The number of observations whose contribution to p_waic is too large.
    pub p_waic_above: usize,
}

/// `linear_response` of `summary.json`: the corrected standard deviations, or why there are none.
///
/// ```
/// use hyperprior::report::LinearResponseSummary;
/// let found: LinearResponseSummary = serde_json::from_str(r#"{"sd": {"mu": 0.8}}"#)?;
/// assert_eq!(found.sds().and_then(|sd| sd["mu"]), Some(0.8));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LinearResponseSummary {
    /// The corrected standard deviations.
    Found {
        /// The standard deviation of each quantity that depends on fitted latents alone.
        sd: BTreeMap<String, Option<f64>>,
        /// The rows of the correlation matrix.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The correlations, if there are few quantities.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        correlation: Vec<Vec<Option<f64>>>,
    },
    /// There are none.
    Missing {
        /// The reason.
        reason: String,
    },
}

impl LinearResponseSummary {
    /// The corrected standard deviations by name.
    pub fn sds(&self) -> Option<&BTreeMap<String, Option<f64>>> {
        match self {
            Self::Found { sd, .. } => Some(sd),
            Self::Missing { .. } => None,
        }
    }
}

impl FitSummary {
    /// A parameter by name.
    pub fn parameter(&self, name: &str) -> Option<&Summary> {
        self.parameters.0.iter().find(|summary| summary.name == name)
    }

    /// Whether r leaves a gap to the exact ELBO.
    pub fn has_gap(&self) -> bool {
        let is_gap = |upper: f64| (upper - self.elbo.value).abs() > 1e-9 * upper.abs().max(1.0);
        self.elbo.upper.is_some_and(is_gap)
    }

    /// Whether the estimate of the evidence is reliable, and not just a lower bound.
    pub fn is_evidence_good(&self) -> bool {
        let is_khat_good = self.khat.zip(self.khat_limit).is_none_or(|(khat, limit)| khat <= limit);
        let evidence = self.evidence.unwrap_or_default();
        evidence.is_good(self.elbo.value, is_khat_good, self.converged, self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary of another version is read as far as possible, and numbers that JSON cannot represent are NaN.
    #[test]
    fn missing_fields_take_their_defaults() {
        let text = r#"{"model": "m", "method": "hvm", "khat": null, "verdict": "means-only", "novel": [1],
            "elbo": {"value": null, "standard_error": 0.1}, "evidence": {"log": -2.5, "standard_error": null},
            "parameters": {"b[10]": {"mean": 1.0}, "b[2]": {"mean": null, "pmf": {"-1": 0.5, "2": 0.5}}}}"#;
        let summary: FitSummary = serde_json::from_str(text).expect("a summary");
        let of = |name: &str| summary.parameter(name).expect("a parameter");
        assert!(summary.elbo.value.is_nan() && of("b[2]").mean.is_nan());
        assert_eq!(summary.evidence.map(|e| e.log), Some(-2.5));
        assert_eq!(summary.verdict, Some(Verdict::MeansOnly));
        assert_eq!(of("b[2]").pmf.as_ref().map(|pmf| pmf[&-1]), Some(0.5));
        // Writing and reading again changes nothing.
        let written = serde_json::to_string(&summary).expect("JSON");
        let again: FitSummary = serde_json::from_str(&written).expect("a summary");
        assert_eq!(serde_json::to_string(&again).expect("JSON"), written);
    }
}
