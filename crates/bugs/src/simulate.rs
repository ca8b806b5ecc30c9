//! Data as a model says they come about: latents from their laws, then what is observed from its laws given them. What decides the
//! model's structure, its constants and covariates, stays as it is given.

use crate::data::Data;
use crate::diagnostic::Diagnostic;
use crate::lower::{Observation, Options, compile};
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior::model::graph::Eliminate;
use std::collections::HashMap;
use thiserror::Error;

/// Why there are no simulated data.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The program cannot be compiled with its data.
    #[error("the model cannot be compiled")]
    Program(Vec<Diagnostic>),
    /// With what is observed taken away, the program cannot be compiled.
    #[error(
        "the model cannot be compiled once what is observed has no value: its structure depends on it. Put such values under \
         another name, as constants"
    )]
    Structure(Vec<Diagnostic>),
    /// Nothing with a distribution is in the data.
    #[error(
        "nothing is observed: no node with a distribution is in the data, so that there is nothing to simulate; give data"
    )]
    NothingObserved,
    /// Everything is observed.
    #[error("nothing in the model is unknown: every node with a distribution is in the data")]
    NothingUnknown,
    /// A node has no law that can be drawn from.
    #[error("`{name}` cannot be drawn: {reason}; give it a proper prior")]
    Undrawable {
        /// The node.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// An observed value is calculated in the program.
    #[error(
        "`{name}` is observed through a value that the program calculates, which cannot be simulated; put it into the data"
    )]
    Calculated {
        /// The element.
        name: String,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
}

/// Rounds of simulated data, each with the values that it was simulated from.
///
/// ```
/// use hyperprior_bugs::simulate::Simulated;
/// use hyperprior_bugs::{Array, Data, Options};
///
/// let data = Data::default().with("y", Array::scalar(7.0));
/// let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
/// let simulated = Simulated::new(model, &data, &Options::default(), 20, 1)?;
/// let theta = simulated.truth("theta", 3).unwrap();
/// assert!((0.0..1.0).contains(&theta));
/// assert!(simulated.data(3).unwrap().arrays["y"].values[0] <= 10.0);
/// # Ok::<(), hyperprior_bugs::simulate::SimulateError>(())
/// ```
#[derive(Debug)]
pub struct Simulated {
    data: Data,
    observations: Vec<Observation>,
    /// Everything that has a name, a column each.
    columns: HashMap<String, usize>,
    values: Batch,
}

impl Simulated {
    /// Simulates so many rounds.
    ///
    /// # Errors
    /// [`SimulateError`] where the program is wrong, where it observes nothing or everything, and where a law cannot be drawn from.
    pub fn new(source: &str, data: &Data, options: &Options, len: usize, seed: u64) -> Result<Self, SimulateError> {
        let given = compile(source, "given", data, options).map_err(SimulateError::Program)?;
        if given.observations.is_empty() {
            return Err(SimulateError::NothingObserved);
        }
        if given.latent == 0 {
            return Err(SimulateError::NothingUnknown);
        }
        let mut bare = data.clone();
        for observation in &given.observations {
            match bare.arrays.get_mut(&observation.array).map(|array| &mut array.values[observation.place]) {
                Some(value) if !value.is_nan() => *value = f64::NAN,
                _ => return Err(SimulateError::Calculated { name: observation.name.clone() }),
            }
        }
        let options = Options { init: None, ..options.clone() };
        let free = compile(source, "free", &bare, &options).map_err(SimulateError::Structure)?;
        if let Some((name, reason)) = free.graph.undrawable() {
            return Err(SimulateError::Undrawable { name: name.to_owned(), reason });
        }
        let model = free.graph.model_with(&Eliminate::Nothing)?;
        if !model.latents().is_empty() {
            let name = model.latents().name(0);
            return Err(SimulateError::Undrawable { name, reason: "an observation is left that depends on it" });
        }
        let quantities = model.quantities();
        let values = model.complete(&Batch::zeros(0, len), &quantities, seed)?;
        let columns = quantities.into_iter().enumerate().map(|(k, q)| (q.name, k)).collect();
        Ok(Self { data: bare, observations: given.observations, columns, values })
    }

    /// How many rounds there are.
    pub fn len(&self) -> usize {
        self.values.draws_len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data of a round; nothing where a simulated value is not a finite number, as priors far too wide make them.
    pub fn data(&self, round: usize) -> Option<Data> {
        let mut data = self.data.clone();
        for observation in &self.observations {
            let value = self.truth(&observation.name, round).filter(|x| x.is_finite())?;
            data.arrays.get_mut(&observation.array)?.values[observation.place] = value;
        }
        Some(data)
    }

    /// The value of something that has a name in a round.
    pub fn truth(&self, name: &str, round: usize) -> Option<f64> {
        self.columns.get(name).map(|column| self.values.get(*column, round))
    }
}
