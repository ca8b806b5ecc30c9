//! Which latents of a fit are reused for new data: the parameters, but not latents that belong to the rows of the data.

use crate::rows::rows;
use crate::syntax::Dialect;
use hyperprior::posterior::{ElementName, Monitor, MonitorError};
use hyperprior_graph::Graph;
use std::collections::{BTreeSet, HashMap, HashSet};
use thiserror::Error;

/// Why a latent cannot be reused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The model with the new data has no such latent.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The run has no such latent.
    #[error(
        "`{name}` cannot be reused: the run has {}; name the elements that both have, such as {array}[1:2]",
        if *.of_run == 0 { format!("no latent `{array}`") } else { format!("{of_run} of `{array}`, but not this one") }
    )]
    NotInRun {
        /// The latent.
        name: String,
        /// Its array.
        array: String,
        /// How many elements of it the run has.
        of_run: usize,
    },
}

/// How the latents of a model with new data get their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transfer {
    /// The latents that have the draws of the run.
    pub reused: Vec<String>,
    /// The latents that are drawn from their distributions.
    pub resimulated: Vec<String>,
    /// Arrays that are resimulated only because their elements differ from those of the run: with their lengths here and there.
    pub mismatched: Vec<(String, usize, usize)>,
}

/// The elements of each array, in the order of the arrays.
fn arrays(graph: &Graph) -> Vec<(&str, BTreeSet<&str>)> {
    let mut arrays: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    let mut known = HashMap::new();
    for name in graph.latent_names() {
        let array = ElementName::parse(name).array;
        let at = *known.entry(array).or_insert_with(|| {
            arrays.push((array, BTreeSet::new()));
            arrays.len() - 1
        });
        arrays[at].1.insert(name);
    }
    arrays
}

impl Transfer {
    /// An array is reused if it has the same elements in both and does not belong to the rows of the data: no element of it is
    /// observed, it has no distribution in a loop in which an observed array also has one, and observations of the run depend on
    /// it.
    pub fn by_rule(source: &str, dialect: Dialect, run: &Graph, new: &Graph) -> Self {
        let observed = run.observed_names().chain(new.observed_names());
        let responses: BTreeSet<&str> = observed.map(|name| ElementName::parse(name).array).collect();
        let of_rows = rows(source, dialect, &responses.iter().copied().collect::<Vec<_>>());
        let prior_only: HashSet<&str> = run.prior_only().into_iter().collect();
        let of_run: HashMap<&str, BTreeSet<&str>> = arrays(run).into_iter().collect();
        let mut transfer = Self::default();
        for (array, own) in arrays(new) {
            let there = of_run.get(array);
            let is_row = responses.contains(array) || of_rows.contains(array);
            let is_prior_only = there.is_some_and(|there| there.iter().all(|name| prior_only.contains(name)));
            match there {
                Some(there) if !is_row && !is_prior_only && *there != own => {
                    transfer.mismatched.push((array.to_owned(), own.len(), there.len()));
                }
                Some(_) if !is_row && !is_prior_only => {
                    transfer.reused.extend(own.iter().map(|name| (*name).to_owned()))
                }
                _ => {}
            }
        }
        transfer.rest(new)
    }

    /// Reuses the named latents, and no others.
    ///
    /// # Errors
    /// [`TransferError`] if one of the two does not have a latent.
    pub fn by_name(monitors: &[Monitor], run: &Graph, new: &Graph) -> Result<Self, TransferError> {
        let names: Vec<&str> = new.latent_names().collect();
        let of_run: HashSet<&str> = run.latent_names().collect();
        let mut transfer = Self::default();
        let mut seen = HashSet::new();
        for monitor in monitors {
            for name in monitor.places(&names)?.into_iter().map(|i| names[i]) {
                if !of_run.contains(name) {
                    let array = ElementName::parse(name).array;
                    let same = |other: &&&str| ElementName::parse(other).array == array;
                    let of_run = of_run.iter().filter(same).count();
                    return Err(TransferError::NotInRun { name: name.to_owned(), array: array.to_owned(), of_run });
                }
                if seen.insert(name) {
                    transfer.reused.push(name.to_owned());
                }
            }
        }
        Ok(transfer.rest(new))
    }

    fn rest(mut self, new: &Graph) -> Self {
        let reused: HashSet<&str> = self.reused.iter().map(String::as_str).collect();
        self.resimulated = new.latent_names().filter(|name| !reused.contains(name)).map(str::to_owned).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Format, read};
    use crate::{Options, compile};

    fn graph(source: &str, data: &str) -> Graph {
        compile(source, "model", &read(data, Format::Json).unwrap(), &Options::default()).unwrap().graph
    }

    const MODEL: &str = "model {
        for (i in 1:n) { z[i] ~ dbern(p) y[i] ~ dnorm(mu[z[i] + 1], tau) }
        for (k in 1:K) { mu[k] ~ dnorm(m, 0.1) }
        m ~ dnorm(0, 0.1) p ~ dbeta(1, 1) tau ~ dgamma(1, 1) again ~ dnorm(mu[1], tau)
    }";

    #[test]
    fn parameters_are_reused_and_rows_are_not() {
        let run = graph(MODEL, r#"{"n": 3, "K": 2, "y": [0.1, 2.0, 0.4]}"#);
        let same = graph(MODEL, r#"{"n": 3, "K": 2, "y": [null, 2.0, null]}"#);
        let transfer = Transfer::by_rule(MODEL, Dialect::Jags, &run, &same);
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        assert_eq!(sorted(&transfer.reused), ["m", "mu[1]", "mu[2]", "p", "tau"]);
        assert_eq!(sorted(&transfer.resimulated), ["again", "y[1]", "y[3]", "z[1]", "z[2]", "z[3]"]);
        assert_eq!(transfer.mismatched, []);
        let more = graph(MODEL, r#"{"n": 1, "K": 3}"#);
        let transfer = Transfer::by_rule(MODEL, Dialect::Jags, &run, &more);
        assert_eq!(sorted(&transfer.reused), ["m", "p", "tau"]);
        assert_eq!(transfer.mismatched, [("mu".to_owned(), 3, 2)]);
    }

    #[test]
    fn named_latents_are_reused_or_rejected() {
        let run = graph(MODEL, r#"{"n": 2, "K": 2, "y": [0.1, 2.0]}"#);
        let new = graph(MODEL, r#"{"n": 4, "K": 2}"#);
        let by_name = |text: &str| Transfer::by_name(&Monitor::parse_list(text).unwrap(), &run, &new);
        assert_eq!(by_name("tau,z[1:2],tau").unwrap().reused, ["tau", "z[1]", "z[2]"]);
        let said = |text: &str| by_name(text).unwrap_err().to_string();
        assert_eq!(
            said("z"),
            "`z[3]` cannot be reused: the run has 2 of `z`, but not this one; name the elements that both have, such as \
             z[1:2]"
        );
        assert!(said("y").contains("the run has no latent `y`"), "{}", said("y"));
        assert!(said("taw").contains("did you mean `tau`?"));
    }
}
