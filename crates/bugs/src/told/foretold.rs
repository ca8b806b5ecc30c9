//! What a fit foretells: data of its own beside the data, and each observation from all others.

use crate::names;
use hyperprior::Batch;
use hyperprior::bound::Estimate;
use hyperprior::model::graph::{GraphModel, Pointwise, Unit};
use hyperprior::posterior::{CheckedArray, Column, Draws, DrawsError, Loo, WAIC_LIMIT, check_predictive};
use serde::Serialize;

/// Below this a tail probability is worth a warning.
pub const TAIL_MIN: f64 = 0.01;
/// How many units with a large k̂ are named.
const WORST: usize = 5;

/// What was asked for, and nothing else.
#[derive(Debug, Default, Serialize)]
pub struct Foretold {
    /// The posterior predictive check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictive: Option<Vec<CheckedArray>>,
    /// Leave-one-out cross-validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loo: Option<LeftOut>,
    /// Why the data could not be replicated, where they could not.
    #[serde(skip)]
    pub failure: Option<String>,
}

/// `loo` of `summary.json`.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// The log predictive density of all observations, each foretold from the others.
    pub elpd_loo: f64,
    /// Its standard error over them.
    pub elpd_loo_standard_error: f64,
    /// The effective number of parameters.
    pub p_loo: f64,
    /// How many units there are; an observation each, where none are `joined`.
    pub units: usize,
    /// The k̂ up to which a unit's estimate is good.
    pub khat_limit: f64,
    /// How many units are above it.
    pub khat_above: usize,
    /// The worst of those.
    pub worst: Vec<Worst>,
    /// Absent where observations are not independent given a draw.
    pub waic: Option<WaicSummary>,
    /// Units of several observations, by the first.
    pub joined: Vec<String>,
    /// Discrete latents whose drawn values the likelihoods are given.
    pub given: Vec<String>,
    /// Observations that say nothing that could be foretold.
    pub set_aside: Vec<String>,
    /// `elpd_loo` with its error.
    #[serde(skip)]
    pub elpd: Estimate,
    /// Their log likelihoods, a column each.
    #[serde(skip)]
    pub log_likelihood: Draws,
}

/// A unit with a large k̂.
#[derive(Debug, Serialize)]
pub struct Worst {
    /// Its name.
    pub name: String,
    /// Its k̂.
    pub khat: f64,
    /// Its log predictive density.
    pub elpd: f64,
}

/// `waic` of `summary.json`.
#[derive(Debug, Serialize)]
pub struct WaicSummary {
    /// The log predictive density by WAIC.
    pub elpd_waic: f64,
    /// Its standard error.
    pub elpd_waic_standard_error: f64,
    /// The effective number of parameters.
    pub p_waic: f64,
    /// How many observations add too much to it for it to be believed.
    pub p_waic_above: usize,
}

impl Foretold {
    /// Calculates what is asked for from draws `z` of a model's latents: the check with `check`, and leave-one-out for
    /// `pointwise`, where there is one.
    ///
    /// # Errors
    /// What the model says of its draws.
    pub fn new(
        model: &GraphModel,
        z: &Batch,
        seed: u64,
        check: bool,
        pointwise: Option<&Pointwise>,
    ) -> Result<Self, hyperprior::Error> {
        // A fit is not lost because its data cannot be drawn.
        let (predictive, failure) = match check.then(|| check_predictive(model, z, seed)) {
            Some(Ok(checked)) => (Some(checked), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        Ok(Self { predictive, failure, loo: pointwise.map(|p| LeftOut::new(p, z)).transpose()? })
    }

    /// What a person has to know before the numbers are believed.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.failure.iter().map(|failure| format!("the data could not be drawn anew: {failure}")).collect();
        for array in self.predictive.iter().flatten() {
            for s in array.statistics.iter().filter(|s| s.tail < TAIL_MIN) {
                let side = if s.data > s.mean { "above" } else { "below" };
                warnings.push(format!(
                    "the {} of `{}` is {side} nearly all that the model gives (tail probability {:.4}): it lacks \
                     something that the data have",
                    s.statistic, array.array, s.tail
                ));
            }
        }
        warnings.extend(self.loo.iter().flat_map(LeftOut::warnings));
        warnings
    }
}

impl LeftOut {
    fn new(pointwise: &Pointwise, z: &Batch) -> Result<Self, hyperprior::Error> {
        let units = pointwise.units();
        let log_likelihood = pointwise.log_likelihood(z)?;
        let loo = Loo::new(&log_likelihood);
        let columns = units.iter().map(|unit| Column::continuous(&unit.name)).collect();
        let keep = |error: DrawsError| hyperprior::Error::Model(error.to_string());
        let log_likelihood = Draws::new(columns, log_likelihood).map_err(keep)?;
        let above = loo.above();
        let worst = above.iter().take(WORST).map(|u| {
            let unit = loo.units[*u];
            Worst { name: units[*u].name.clone(), khat: unit.khat, elpd: unit.elpd }
        });
        let is_joined = |unit: &&Unit| unit.observations_len > 1;
        let is_independent = units.iter().all(|unit| unit.is_independent);
        Ok(Self {
            elpd_loo: loo.elpd.value,
            elpd_loo_standard_error: loo.elpd.standard_error,
            p_loo: loo.p_loo,
            units: units.len(),
            khat_limit: loo.limit,
            khat_above: above.len(),
            worst: worst.collect(),
            waic: is_independent.then_some(WaicSummary {
                elpd_waic: loo.waic.elpd.value,
                elpd_waic_standard_error: loo.waic.elpd.standard_error,
                p_waic: loo.waic.p_waic,
                p_waic_above: loo.waic.above,
            }),
            joined: units
                .iter()
                .filter(is_joined)
                .map(|unit| format!("{} and {} more", unit.name, unit.observations_len - 1))
                .collect(),
            given: names::ranges(pointwise.given().iter().map(String::as_str)),
            set_aside: names::ranges(pointwise.set_aside().iter().map(String::as_str)),
            elpd: loo.elpd,
            log_likelihood,
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.khat_above > 0 {
            warnings.push(format!(
                "{} of {} observations have k̂ above {:.2}: the fit depends on them so much that draws with them say too \
                 little of a fit without them; fit again without those to be sure",
                self.khat_above, self.units, self.khat_limit
            ));
        }
        if let Some(waic) = self.waic.as_ref().filter(|waic| waic.p_waic_above > 0) {
            warnings.push(format!(
                "{} of {} observations add more than {WAIC_LIMIT} to p_waic: go by elpd_loo instead",
                waic.p_waic_above, self.units
            ));
        }
        if !self.joined.is_empty() {
            warnings.push(format!(
                "observations that share too many summed-out latents to be left out one by one are left out together: {}",
                self.joined.join(", ")
            ));
        }
        if !self.given.is_empty() {
            warnings.push(format!(
                "the likelihoods are given drawn values of {}: a value that an observation makes impossible is missing \
                 where the observation is left out; sum them out, where that can be done (--eliminate)",
                self.given.join(", ")
            ));
        }
        warnings
    }
}
