//! What a fit foretells: data of its own beside the data, and each observation from all others.

use super::report::lines;
use crate::names;
use crate::render::{Digits, estimate};
use crate::table;
use hyperprior::Batch;
use hyperprior::bound::Estimate;
use hyperprior::model::graph::{GraphModel, Pointwise, Unit};
use hyperprior::posterior::{CheckedArray, Column, Draws, DrawsError, Loo, WAIC_LIMIT, check_predictive};
use serde::Serialize;
use std::fmt::Write as _;

/// Below this a tail probability is worth a warning.
const TAIL_MIN: f64 = 0.01;
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
    failure: Option<String>,
}

/// `loo` of `summary.json`.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    elpd_loo: f64,
    elpd_loo_standard_error: f64,
    p_loo: f64,
    /// How many units there are; an observation each, where none are `joined`.
    units: usize,
    khat_limit: f64,
    khat_above: usize,
    /// The worst of those.
    worst: Vec<Worst>,
    /// Absent where observations are not independent given a draw.
    waic: Option<WaicSummary>,
    /// Units of several observations, by the first.
    joined: Vec<String>,
    /// Discrete latents whose drawn values the likelihoods are given.
    given: Vec<String>,
    /// Observations that say nothing that could be foretold.
    set_aside: Vec<String>,
    #[serde(skip)]
    elpd: Estimate,
    /// Their log likelihoods, a column each.
    #[serde(skip)]
    pub log_likelihood: Draws,
}

#[derive(Debug, Serialize)]
struct Worst {
    name: String,
    khat: f64,
    elpd: f64,
}

#[derive(Debug, Serialize)]
struct WaicSummary {
    elpd_waic: f64,
    elpd_waic_standard_error: f64,
    p_waic: f64,
    p_waic_above: usize,
}

impl Foretold {
    /// Calculates what is asked for from draws `z` of a model's latents: the check with `check`, and leave-one-out for
    /// `pointwise`, where there is one.
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

    /// For people; empty where nothing was asked for.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(arrays) = &self.predictive {
            let _ = write!(out, "\nData that the model gives, beside the data:\n\n{}", predictive(arrays));
        }
        if let Some(loo) = &self.loo {
            let _ = write!(out, "\n{}", loo.text());
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            out.push('\n');
        }
        warnings.iter().for_each(|warning| out.push_str(&format!("Warning: {warning}.\n")));
        out
    }
}

fn predictive(arrays: &[CheckedArray]) -> String {
    let rows: Vec<Vec<String>> = arrays
        .iter()
        .flat_map(|array| array.statistics.iter().map(move |s| (array, s)))
        .map(|(array, s)| {
            let digits = Digits::new(s.mean, (s.q95 - s.q05) / 3.0);
            let cells = [s.data, s.mean, s.q05, s.q95].map(|x| digits.show(x));
            [array.array.clone(), s.statistic.to_string()].into_iter().chain(cells).chain([tail(s.tail)]).collect()
        })
        .collect();
    table::render(&["name", "statistic", "data", "model", "5%", "95%", "tail"], &rows)
}

fn tail(p: f64) -> String {
    if p < TAIL_MIN { format!("{p:.4}") } else { format!("{p:.2}") }
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

    fn text(&self) -> String {
        let plural = if self.units == 1 { "" } else { "s" };
        let what = if self.joined.is_empty() { "observation" } else { "unit" };
        let mut out = format!("Each of {} {what}{plural}, foretold from all others:\n\n", self.units);
        let khat = match self.khat_above {
            0 => format!("below its limit of {:.2} for all", self.khat_limit),
            above => {
                let worst: Vec<String> = self.worst.iter().map(|w| format!("{} ({:.2})", w.name, w.khat)).collect();
                let more = if above > worst.len() { ", …" } else { "" };
                format!("above its limit of {:.2} for {above}: {}{more}", self.khat_limit, worst.join(", "))
            }
        };
        let mut rows = vec![("elpd_loo", estimate(self.elpd)), ("p_loo", format!("{:.2}", self.p_loo)), ("k̂", khat)];
        match &self.waic {
            Some(waic) => {
                let elpd = Estimate { value: waic.elpd_waic, standard_error: waic.elpd_waic_standard_error };
                rows.push(("elpd_waic", estimate(elpd)));
                rows.push(("p_waic", format!("{:.2}", waic.p_waic)));
            }
            None => {
                let reason = "none: observations share latents that were summed out, and WAIC needs independent ones";
                rows.push(("elpd_waic", reason.to_owned()));
            }
        }
        if !self.set_aside.is_empty() {
            rows.push(("set aside", self.set_aside.join(", ")));
        }
        lines(&mut out, &rows);
        out
    }
}
