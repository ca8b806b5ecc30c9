//! New data under the draws of a fit: its parameters are carried over, the rest is drawn anew, and what is observed is foretold.

use crate::carry::{Carry, CarryError};
use crate::fit::{FitError, named, wanted};
use crate::syntax::Dialect;
use hyperprior::Batch;
use hyperprior::model::graph::{Graph, Quantity};
use hyperprior::posterior::{Draws, ElementName, Monitor, MonitorError, elpd};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// What is to become of a model with new data.
#[derive(Debug, Clone)]
pub struct Outlook<'a> {
    run: &'a Graph,
    new: &'a Graph,
    /// What becomes of its latents.
    pub carry: Carry,
    /// What is foretold, a column of the draws each.
    pub quantities: Vec<Quantity>,
}

/// What the draws of a fit foretell.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Draws of what was to be foretold.
    pub draws: Draws,
    /// The log predictive density of the new data's observations, but for those that the fit has seen.
    pub elpd: Option<Elpd>,
    /// How many of them it has.
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

/// A latent that new data need, and that a fit kept no draws of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// Its name.
    pub name: String,
}

impl<'a> Outlook<'a> {
    /// Of the model `new` by a fit of `run`, which are one program with different data. Without `carried`, what is carried over goes by
    /// [`Carry::by_rule`].
    ///
    /// # Errors
    /// [`CarryError`] for what one of the two does not have.
    pub fn new(
        (source, dialect): (&str, Dialect),
        run: &'a Graph,
        new: &'a Graph,
        carried: Option<&[Monitor]>,
    ) -> Result<Self, CarryError> {
        let carry = match carried {
            None => Carry::by_rule(source, dialect, run, new),
            Some(names) => Carry::by_name(names, run, new)?,
        };
        Ok(Self { run, new, carry, quantities: Vec::new() })
    }

    /// The same for what the monitors select; without any, for everything that is not carried over.
    ///
    /// # Errors
    /// [`MonitorError`] for a monitor that selects nothing.
    pub fn of(mut self, monitors: Option<&[Monitor]>) -> Result<Self, MonitorError> {
        let all = self.new.quantities();
        self.quantities = match monitors {
            Some(monitors) => wanted(all, monitors)?,
            None => {
                let carried: HashSet<&str> = self.carry.carried.iter().map(String::as_str).collect();
                wanted(all.into_iter().filter(|q| !carried.contains(q.name.as_str())).collect(), &[])?
            }
        };
        Ok(self)
    }

    /// Foretells with draws of what is carried over, a column each.
    ///
    /// # Errors
    /// What the model says of its draws.
    pub fn foretell(&self, draws: &Batch, seed: u64) -> Result<Prediction, FitError> {
        let names: Vec<&str> = self.carry.carried.iter().map(String::as_str).collect();
        let foretold = self.new.foretell(&names, draws, &self.quantities, seed)?;
        let seen = seen(self.run, self.new);
        let is_new = |i: &usize| !seen.contains(&foretold.observed[*i]);
        let unseen: Vec<usize> = (0..foretold.observed.len()).filter(is_new).collect();
        let columns = unseen.iter().flat_map(|i| foretold.log_likelihood.column(*i).iter().copied());
        let (sum, units) = elpd(&Batch::from_columns(columns.collect(), draws.draws_len()));
        let elpd = (!unseen.is_empty()).then_some(Elpd {
            value: sum.value,
            standard_error: sum.standard_error,
            observations: units.len(),
        });
        let seen = foretold.observed.len() - unseen.len();
        Ok(Prediction { draws: named(&self.quantities, foretold.values)?, elpd, seen })
    }
}

/// So many draws of these latents, a column each: spread evenly over those of a fit, or all of them over and over. `column` finds the
/// fit's draws of a latent.
///
/// # Errors
/// [`Lacking`] for a latent that there are no draws of.
pub fn spread<'d>(
    names: &[String],
    (have, len): (usize, usize),
    column: impl Fn(&str) -> Option<&'d [f64]>,
) -> Result<Batch, Lacking> {
    let mut out = Batch::zeros(names.len(), len);
    for (to, name) in names.iter().enumerate() {
        let column = column(name).ok_or_else(|| Lacking { name: name.clone() })?;
        let source = |s: usize| if len <= have { s * have / len } else { s % have };
        out.column_mut(to).iter_mut().enumerate().for_each(|(s, x)| *x = column[source(s)]);
    }
    Ok(out)
}

/// The observed numbers that are those of the run: of arrays that hold all that the run observed of them, with the same values. A
/// few that agree do so by chance, as those of coins do.
fn seen(run: &Graph, new: &Graph) -> HashSet<String> {
    let mut values: HashMap<String, f64> = new.observations().into_iter().map(|o| (o.name, o.value)).collect();
    let of_run = run.observations();
    let differs = of_run.iter().filter(|o| values.get(&o.name) != Some(&o.value));
    let unlike: HashSet<&str> = differs.map(|o| ElementName::parse(&o.name).array).collect();
    let same = of_run.iter().filter(|o| !unlike.contains(ElementName::parse(&o.name).array));
    same.filter_map(|o| values.remove_entry(&o.name)).map(|(name, _)| name).collect()
}
