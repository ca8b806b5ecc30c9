//! What of a fit is carried over to new data: the parameters, and not what belongs to the rows of the data.

use crate::rows::rows;
use crate::syntax::Dialect;
use hyperprior::model::graph::Graph;
use hyperprior::posterior::{ElementName, Monitor, MonitorError};
use std::collections::{BTreeSet, HashMap, HashSet};
use thiserror::Error;

/// Why a latent cannot be carried over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CarryError {
    /// Something is named that the model does not have with the new data.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// Something is named that the run did not have.
    #[error(
        "`{name}` cannot be carried over: the run has {}; name the elements that both have, such as {array}[1:2]",
        if *.of_run == 0 { format!("no latent `{array}`") } else { format!("{of_run} of `{array}`, and not that one") }
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

/// What becomes of the latents of a model with new data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// The latents that have the run's draws.
    pub carried: Vec<String>,
    /// Those that are drawn from their laws.
    pub anew: Vec<String>,
    /// Arrays that are drawn anew only because their elements are not those of the run: each with how many it has here and there.
    pub unlike: Vec<(String, usize, usize)>,
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

impl Carry {
    /// An array is carried over where it has the same elements in both, and is no array of the data's rows: no element of it is
    /// observed, it has no distribution in a loop that an observed array has one in too, and observations of the run depend on it.
    pub fn by_rule(source: &str, dialect: Dialect, run: &Graph, new: &Graph) -> Self {
        let observed = run.observed_names().chain(new.observed_names());
        let responses: BTreeSet<&str> = observed.map(|name| ElementName::parse(name).array).collect();
        let of_rows = rows(source, dialect, &responses.iter().copied().collect::<Vec<_>>());
        let idle: HashSet<&str> = run.idle().into_iter().collect();
        let of_run: HashMap<&str, BTreeSet<&str>> = arrays(run).into_iter().collect();
        let mut carry = Self::default();
        for (array, own) in arrays(new) {
            let there = of_run.get(array);
            let is_row = responses.contains(array) || of_rows.contains(array);
            let is_idle = there.is_some_and(|there| there.iter().all(|name| idle.contains(name)));
            match there {
                Some(there) if !is_row && !is_idle && *there != own => {
                    carry.unlike.push((array.to_owned(), own.len(), there.len()));
                }
                Some(_) if !is_row && !is_idle => carry.carried.extend(own.iter().map(|name| (*name).to_owned())),
                _ => {}
            }
        }
        carry.rest(new)
    }

    /// What is named is carried over, and nothing else.
    ///
    /// # Errors
    /// [`CarryError`] for what one of the two does not have.
    pub fn by_name(monitors: &[Monitor], run: &Graph, new: &Graph) -> Result<Self, CarryError> {
        let names: Vec<&str> = new.latent_names().collect();
        let of_run: HashSet<&str> = run.latent_names().collect();
        let mut carry = Self::default();
        let mut seen = HashSet::new();
        for monitor in monitors {
            for name in monitor.places(&names)?.into_iter().map(|i| names[i]) {
                if !of_run.contains(name) {
                    let array = ElementName::parse(name).array;
                    let same = |other: &&&str| ElementName::parse(other).array == array;
                    let of_run = of_run.iter().filter(same).count();
                    return Err(CarryError::NotInRun { name: name.to_owned(), array: array.to_owned(), of_run });
                }
                if seen.insert(name) {
                    carry.carried.push(name.to_owned());
                }
            }
        }
        Ok(carry.rest(new))
    }

    fn rest(mut self, new: &Graph) -> Self {
        let carried: HashSet<&str> = self.carried.iter().map(String::as_str).collect();
        self.anew = new.latent_names().filter(|name| !carried.contains(name)).map(str::to_owned).collect();
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
    fn parameters_are_carried_and_rows_are_not() {
        let run = graph(MODEL, r#"{"n": 3, "K": 2, "y": [0.1, 2.0, 0.4]}"#);
        let same = graph(MODEL, r#"{"n": 3, "K": 2, "y": [null, 2.0, null]}"#);
        let carry = Carry::by_rule(MODEL, Dialect::Jags, &run, &same);
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        assert_eq!(sorted(&carry.carried), ["m", "mu[1]", "mu[2]", "p", "tau"]);
        assert_eq!(sorted(&carry.anew), ["again", "y[1]", "y[3]", "z[1]", "z[2]", "z[3]"]);
        assert_eq!(carry.unlike, []);
        let more = graph(MODEL, r#"{"n": 1, "K": 3}"#);
        let carry = Carry::by_rule(MODEL, Dialect::Jags, &run, &more);
        assert_eq!(sorted(&carry.carried), ["m", "p", "tau"]);
        assert_eq!(carry.unlike, [("mu".to_owned(), 3, 2)]);
    }

    #[test]
    fn what_is_named_is_carried_or_refused() {
        let run = graph(MODEL, r#"{"n": 2, "K": 2, "y": [0.1, 2.0]}"#);
        let new = graph(MODEL, r#"{"n": 4, "K": 2}"#);
        let by_name = |text: &str| Carry::by_name(&Monitor::parse_list(text).unwrap(), &run, &new);
        assert_eq!(by_name("tau,z[1:2],tau").unwrap().carried, ["tau", "z[1]", "z[2]"]);
        let said = |text: &str| by_name(text).unwrap_err().to_string();
        assert_eq!(
            said("z"),
            "`z[3]` cannot be carried over: the run has 2 of `z`, and not that one; name the elements that both have, such \
             as z[1:2]"
        );
        assert!(said("y").contains("the run has no latent `y`"), "{}", said("y"));
        assert!(said("taw").contains("did you mean `tau`?"));
    }
}
