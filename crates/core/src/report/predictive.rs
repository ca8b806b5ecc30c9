//! Predictive checks of a fit: posterior predictive checks and leave-one-out cross-validation.

use super::schema::{LooSummary, WaicSummary, Worst};
use crate::diagnostics::{Diagnostic, Finding, Remedy, Severity};
use crate::objective::Estimate;
use crate::posterior::{Column, Draws, DrawsError, Loo, PpcArray, Unit, WAIC_LIMIT, ranges};
use hyperprior_math::batch::Batch;

/// Smaller tail probabilities get a warning.
pub const TAIL_MIN: f64 = 0.01;
/// The maximum number of units with a large k̂ to name.
const WORST: usize = 5;

/// The predictive checks of a fit.
///
/// ```
/// use hyperprior::report::Predictive;
/// let failed = Predictive::new(Some(Err(hyperprior::Error::Model("no data".to_owned()))), None);
/// assert_eq!(failed.diagnostics().len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Predictive {
    /// The posterior predictive checks, if requested.
    pub ppc: Option<Vec<PpcArray>>,
    /// Leave-one-out cross-validation, if requested.
    pub loo: Option<LooReport>,
    /// Why the data could not be replicated, if that failed.
    pub failure: Option<String>,
}

/// Leave-one-out cross-validation, with the log likelihoods.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::Unit;
/// use hyperprior::report::LooReport;
/// let unit = |name: &str| Unit { name: name.to_owned(), observations_len: 1, is_independent: true };
/// let log_likelihood = Batch::from_columns([vec![-1.0; 100], vec![-3.0; 100]].concat(), 100);
/// let loo = LooReport::new(&[unit("y[1]"), unit("y[2]")], log_likelihood, &[], &[])?;
/// assert!((loo.summary.elpd_loo + 4.0).abs() < 1e-12);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LooReport {
    /// The entry of `summary.json`.
    pub summary: LooSummary,
    /// `elpd_loo` with its standard error.
    pub elpd: Estimate,
    /// The log likelihoods, a column for each unit.
    pub log_likelihood: Draws,
}

impl Predictive {
    /// From the results of posterior predictive checks and leave-one-out cross-validation.
    pub fn new(ppc: Option<crate::Result<Vec<PpcArray>>>, loo: Option<LooReport>) -> Self {
        // The report of a fit does not fail if its data cannot be replicated.
        match ppc.transpose() {
            Ok(ppc) => Self { ppc, loo, failure: None },
            Err(error) => Self { ppc: None, loo, failure: Some(error.to_string()) },
        }
    }

    /// The diagnostics of the checks.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let note = |finding| Diagnostic::new(Severity::Note, finding, Vec::new());
        let failure = self.failure.iter().map(|reason| note(Finding::NotReplicated { reason: reason.clone() }));
        let mut found: Vec<Diagnostic> = failure.collect();
        for array in self.ppc.iter().flatten() {
            for s in array.statistics.iter().filter(|s| s.tail < TAIL_MIN) {
                found.push(note(Finding::ExtremeStatistic {
                    array: array.array.clone(),
                    statistic: s.statistic,
                    is_above: s.data > s.mean,
                    tail: s.tail,
                }));
            }
        }
        found.extend(self.loo.iter().flat_map(|loo| loo.summary.diagnostics()));
        found
    }
}

impl LooReport {
    /// From the log likelihoods of units (a column each) in draws of the posterior.
    ///
    /// # Errors
    /// [`DrawsError`] if the log likelihoods are not valid draws of the units.
    pub fn new(
        units: &[Unit],
        log_likelihood: Batch,
        conditioned_on: &[String],
        excluded: &[String],
    ) -> Result<Self, DrawsError> {
        let loo = Loo::new(&log_likelihood);
        let columns = units.iter().map(|unit| Column::continuous(&unit.name)).collect();
        let log_likelihood = Draws::new(columns, log_likelihood)?;
        let above = loo.above();
        let worst = above.iter().take(WORST).map(|u| {
            let unit = loo.units[*u];
            Worst { name: units[*u].name.clone(), khat: unit.khat, elpd: unit.elpd }
        });
        let is_grouped = |unit: &&Unit| unit.observations_len > 1;
        let is_independent = units.iter().all(|unit| unit.is_independent);
        let summary = LooSummary {
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
            grouped: units
                .iter()
                .filter(is_grouped)
                .map(|unit| format!("{} and {} more", unit.name, unit.observations_len - 1))
                .collect(),
            conditioned_on: ranges::ranges(conditioned_on.iter().map(String::as_str)),
            excluded: ranges::ranges(excluded.iter().map(String::as_str)),
        };
        Ok(Self { summary, elpd: loo.elpd, log_likelihood })
    }
}

impl LooSummary {
    fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut note = |finding, remedies| found.push(Diagnostic::new(Severity::Note, finding, remedies));
        let units = self.units;
        if self.khat_above > 0 {
            let finding = Finding::LooHighKhat { above: self.khat_above, units, limit: self.khat_limit };
            note(finding, vec![Remedy::RefitWithout]);
        }
        if let Some(waic) = self.waic.as_ref().filter(|waic| waic.p_waic_above > 0) {
            let finding = Finding::WaicUnreliable { above: waic.p_waic_above, units, limit: WAIC_LIMIT };
            note(finding, Vec::new());
        }
        if !self.grouped.is_empty() {
            note(Finding::LooGrouped { names: self.grouped.clone() }, Vec::new());
        }
        if !self.conditioned_on.is_empty() {
            let finding = Finding::LooConditional { names: self.conditioned_on.clone() };
            note(finding, vec![Remedy::Marginalise]);
        }
        found
    }
}
