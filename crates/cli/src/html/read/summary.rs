//! `summary.json` of a fit as a report reads it: leniently, since an earlier version may have written it.

use hyperprior::infer::Verdict;
use hyperprior::posterior::{ElementName, Monitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A number that JSON may not know.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// NaN, for a number that is not there at all.
fn unknown() -> f64 {
    f64::NAN
}

/// The whole of it.
#[derive(Debug, Deserialize)]
pub struct FitSummary {
    pub model: String,
    pub method: String,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub converged: bool,
    #[serde(default)]
    pub steps: u64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub wall_seconds: f64,
    #[serde(default)]
    pub elbo: Estimate,
    #[serde(default)]
    pub evidence: Option<Estimate>,
    #[serde(default)]
    pub khat: Option<f64>,
    #[serde(default)]
    pub khat_limit: Option<f64>,
    #[serde(default)]
    pub verdict: Option<Verdict>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default)]
    pub plan: Plan,
    #[serde(default)]
    pub course: Option<Course>,
    #[serde(default)]
    pub predictive: Option<Vec<Check>>,
    #[serde(default)]
    pub loo: Option<Loo>,
    #[serde(default)]
    pub linear_response: Option<LinearResponse>,
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
}

/// `elbo` and `evidence`.
#[derive(Debug, Deserialize)]
pub struct Estimate {
    #[serde(alias = "log", default = "unknown", deserialize_with = "known")]
    pub value: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub standard_error: f64,
    #[serde(default)]
    pub upper: Option<f64>,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { value: f64::NAN, standard_error: f64::NAN, upper: None }
    }
}

/// `plan`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub eliminated: Vec<String>,
    pub from_law: Vec<String>,
    pub likelihood: String,
    pub prior: String,
    pub recursive: String,
    pub gradient: BTreeMap<String, Vec<String>>,
}

impl Plan {
    /// What was fitted, summed out or drawn from its law: everything but what is calculated from it.
    pub fn latents(&self) -> Vec<Monitor> {
        let named = self.eliminated.iter().chain(&self.from_law).chain(self.gradient.values().flatten());
        named.filter_map(|name| Monitor::parse(name).ok()).collect()
    }
}

/// `course`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Course {
    pub steps: u64,
    pub budget_spent: bool,
    pub tried: Vec<Tried>,
    pub rounds: Vec<Round>,
    pub restarts: Option<Restarts>,
}

/// An approximation that was tried.
#[derive(Debug, Deserialize)]
pub struct Tried {
    pub method: String,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elbo: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub khat: f64,
    #[serde(default)]
    pub steps: u64,
}

/// Steps of one size.
#[derive(Debug, Deserialize)]
pub struct Round {
    #[serde(default = "unknown", deserialize_with = "known")]
    pub size: f64,
    #[serde(default)]
    pub steps: u64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub rhat: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elbo: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub to_gain: f64,
}

/// Fits from several starts.
#[derive(Debug, Deserialize)]
pub struct Restarts {
    #[serde(default)]
    pub elbo: Vec<Option<f64>>,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub rhat: f64,
    #[serde(default)]
    pub latent: String,
}

/// An array of `predictive`.
#[derive(Debug, Deserialize)]
pub struct Check {
    pub array: String,
    #[serde(default)]
    pub statistics: Vec<Statistic>,
}

/// A statistic of the data and of data that the model gives.
#[derive(Debug, Deserialize)]
pub struct Statistic {
    pub statistic: String,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub data: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub mean: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub q05: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub q95: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub tail: f64,
}

/// `loo`.
#[derive(Debug, Deserialize)]
pub struct Loo {
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elpd_loo: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elpd_loo_standard_error: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub p_loo: f64,
    #[serde(default)]
    pub units: u64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub khat_limit: f64,
    #[serde(default)]
    pub khat_above: u64,
    #[serde(default)]
    pub worst: Vec<Worst>,
    #[serde(default)]
    pub waic: Option<Waic>,
}

/// An observation that is hard to leave out.
#[derive(Debug, Deserialize)]
pub struct Worst {
    pub name: String,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub khat: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elpd: f64,
}

/// `waic`.
#[derive(Debug, Deserialize)]
pub struct Waic {
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elpd_waic: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub elpd_waic_standard_error: f64,
}

/// `linear_response`, of which the spreads are told.
#[derive(Debug, Deserialize)]
pub struct LinearResponse {
    #[serde(default)]
    pub sd: BTreeMap<String, Option<f64>>,
}

/// What the draws say of one scalar.
#[derive(Clone, Debug, Deserialize)]
pub struct Parameter {
    #[serde(default = "unknown", deserialize_with = "known")]
    pub mean: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub sd: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub q05: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub median: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub q95: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub mcse: f64,
    #[serde(default = "unknown", deserialize_with = "known")]
    pub ess: f64,
    #[serde(default)]
    pub pmf: Option<BTreeMap<i64, f64>>,
}

impl FitSummary {
    /// Its parameters as people count them: by array, then by index.
    pub fn in_order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
        names.sort_by_cached_key(|name| {
            let element = ElementName::parse(name);
            (element.array.to_owned(), element.indices)
        });
        names
    }

    /// Whether r leaves a gap to the exact bound.
    pub fn has_gap(&self) -> bool {
        let is_gap = |upper: f64| (upper - self.elbo.value).abs() > 1e-9 * upper.abs().max(1.0);
        self.elbo.upper.is_some_and(is_gap)
    }

    /// Whether the estimate of the evidence can be taken as it stands.
    pub fn is_evidence_good(&self) -> bool {
        match (self.khat, self.khat_limit) {
            (Some(khat), Some(limit)) => khat <= limit && self.converged,
            _ => self.converged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary of another version is read as far as it goes, and numbers that JSON has none for are not known.
    #[test]
    fn what_is_not_there_is_not_known() {
        let text = r#"{"model": "m", "method": "hvm", "khat": null, "verdict": "means-only", "novel": [1],
            "elbo": {"value": null, "standard_error": 0.1}, "evidence": {"log": -2.5, "standard_error": null},
            "parameters": {"b[10]": {"mean": 1.0}, "b[2]": {"mean": null, "pmf": {"-1": 0.5, "2": 0.5}}}}"#;
        let summary: FitSummary = serde_json::from_str(text).expect("a summary");
        assert!(summary.elbo.value.is_nan() && summary.parameters["b[2]"].mean.is_nan());
        assert_eq!(summary.evidence.as_ref().map(|e| e.value), Some(-2.5));
        assert_eq!(summary.verdict, Some(Verdict::MeansOnly));
        assert_eq!(summary.in_order(), ["b[2]", "b[10]"]);
        assert_eq!(summary.parameters["b[2]"].pmf.as_ref().map(|pmf| pmf[&-1]), Some(0.5));
    }
}
