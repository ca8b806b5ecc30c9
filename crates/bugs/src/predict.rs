//! Predictions for new data from the draws of a fit: the parameters are reused, and the rest is resimulated.

use crate::syntax::Dialect;
use crate::transfer::{Transfer, TransferError};
use hyperprior::Batch;
use hyperprior::posterior::{Draws, ElementName, Monitor, MonitorError, elpd};
use hyperprior_graph::fit::{FitError, monitored, to_draws};
use hyperprior_graph::{Graph, Quantity};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Predicts a model with new data.
#[derive(Debug, Clone)]
pub struct Predictor<'a> {
    run: &'a Graph,
    new: &'a Graph,
    /// How its latents get their values.
    pub transfer: Transfer,
    /// The predicted quantities, in the order of the columns of the draws.
    pub quantities: Vec<Quantity>,
}

/// Predictions from the draws of a fit.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Draws of the predicted quantities.
    pub draws: Draws,
    /// The log predictive density of the new observations, without those that the fit has already used.
    pub elpd: Option<Elpd>,
    /// How many observations the fit has already used.
    pub seen: usize,
}

/// The log predictive density of observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Elpd {
    /// Its sum.
    pub value: f64,
    /// Its standard error over the observations.
    pub standard_error: f64,
    /// How many observations there are.
    pub observations: usize,
}

/// A latent that the prediction needs, but that the fit has no draws of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingDraws {
    /// Its name.
    pub name: String,
}

impl<'a> Predictor<'a> {
    /// Predicts the model `new` from a fit of `run`, which is the same program with other data. Without `reused`, the latents to
    /// reuse are chosen by [`Transfer::by_rule`].
    ///
    /// # Errors
    /// [`TransferError`] if one of the two does not have a latent.
    pub fn new(
        (source, dialect): (&str, Dialect),
        run: &'a Graph,
        new: &'a Graph,
        reused: Option<&[Monitor]>,
    ) -> Result<Self, TransferError> {
        let transfer = match reused {
            None => Transfer::by_rule(source, dialect, run, new),
            Some(names) => Transfer::by_name(names, run, new)?,
        };
        Ok(Self { run, new, transfer, quantities: Vec::new() })
    }

    /// Selects the quantities to predict; without monitors, everything that is not reused.
    ///
    /// # Errors
    /// [`MonitorError`] for a monitor that selects nothing.
    pub fn of(mut self, monitors: Option<&[Monitor]>) -> Result<Self, MonitorError> {
        let all = self.new.quantities();
        self.quantities = match monitors {
            Some(monitors) => monitored(all, monitors)?,
            None => {
                let reused: HashSet<&str> = self.transfer.reused.iter().map(String::as_str).collect();
                monitored(all.into_iter().filter(|q| !reused.contains(q.name.as_str())).collect(), &[])?
            }
        };
        Ok(self)
    }

    /// Predicts from draws of the reused latents, a column each.
    ///
    /// # Errors
    /// As [`Graph::predict`].
    pub fn predict(&self, draws: &Batch, seed: u64) -> Result<Prediction, FitError> {
        let names: Vec<&str> = self.transfer.reused.iter().map(String::as_str).collect();
        let predicted = self.new.predict(&names, draws, &self.quantities, seed)?;
        let seen = seen(self.run, self.new);
        let is_new = |i: &usize| !seen.contains(&predicted.observed[*i]);
        let unseen: Vec<usize> = (0..predicted.observed.len()).filter(is_new).collect();
        let columns = unseen.iter().flat_map(|i| predicted.log_likelihood.column(*i).iter().copied());
        let (sum, units) = elpd(&Batch::from_columns(columns.collect(), draws.draws_len()));
        let elpd = (!unseen.is_empty()).then_some(Elpd {
            value: sum.value,
            standard_error: sum.standard_error,
            observations: units.len(),
        });
        let seen = predicted.observed.len() - unseen.len();
        Ok(Prediction { draws: to_draws(&self.quantities, predicted.values)?, elpd, seen })
    }
}

/// Draws of these latents, a column each: `len` of the `have` draws of a fit, evenly spaced, or all of them repeatedly if there are
/// fewer. `column` finds the draws of a latent.
///
/// # Errors
/// [`MissingDraws`] if the fit has no draws of a latent.
pub fn spread<'d>(
    names: &[String],
    (have, len): (usize, usize),
    column: impl Fn(&str) -> Option<&'d [f64]>,
) -> Result<Batch, MissingDraws> {
    let mut out = Batch::zeros(names.len(), len);
    for (to, name) in names.iter().enumerate() {
        let column = column(name).ok_or_else(|| MissingDraws { name: name.clone() })?;
        let source = |s: usize| if len <= have { s * have / len } else { s % have };
        out.column_mut(to).iter_mut().enumerate().for_each(|(s, x)| *x = column[source(s)]);
    }
    Ok(out)
}

/// The observations that the run has already used: those of arrays that contain all that the run observed of them, with the same
/// values. Single values may agree by chance, as with coins.
fn seen(run: &Graph, new: &Graph) -> HashSet<String> {
    let mut values: HashMap<String, f64> = new.observations().into_iter().map(|o| (o.name, o.value)).collect();
    let of_run = run.observations();
    let differs = of_run.iter().filter(|o| values.get(&o.name) != Some(&o.value));
    let unlike: HashSet<&str> = differs.map(|o| ElementName::parse(&o.name).array).collect();
    let same = of_run.iter().filter(|o| !unlike.contains(ElementName::parse(&o.name).array));
    same.filter_map(|o| values.remove_entry(&o.name)).map(|(name, _)| name).collect()
}
