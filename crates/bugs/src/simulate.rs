//! Simulates data from a model: latents from their priors, then observations given them. Constants and covariates, which determine
//! the structure of the model, keep their given values.

use crate::data::Data;
use crate::diagnostic::Diagnostic;
use crate::lower::{Observation, Options, compile};
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::Marginalise;
use std::collections::HashMap;
use thiserror::Error;

/// Why data cannot be simulated.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// The program cannot be compiled with its data.
    #[error("the model cannot be compiled")]
    Program(Vec<Diagnostic>),
    /// Without its observations, the program cannot be compiled.
    #[error(
        "the model cannot be compiled without its observations: its structure depends on them. Give such values another name, as \
         constants"
    )]
    Structure(Vec<Diagnostic>),
    /// Nothing with a distribution is in the data.
    #[error(
        "nothing is observed: no node with a distribution is in the data, so there is nothing to simulate; add data"
    )]
    NothingObserved,
    /// Everything is observed.
    #[error("nothing in the model is unknown: every node with a distribution is in the data")]
    NothingUnknown,
    /// A node has a distribution that cannot be drawn from.
    #[error("`{name}` cannot be drawn: {reason}; give it a proper prior")]
    Undrawable {
        /// The node.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// An observed value is calculated in the program.
    #[error(
        "`{name}` is observed through a value that the program calculates, which cannot be simulated; put it in the data"
    )]
    Calculated {
        /// The element.
        name: String,
    },
    /// Inference failed.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
}

/// Simulated data sets, each with the true values.
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
    /// The column of each named quantity.
    columns: HashMap<String, usize>,
    values: Batch,
}

impl Simulated {
    /// Simulates `len` data sets.
    ///
    /// # Errors
    /// [`SimulateError`] if the program is wrong, if nothing or everything is observed, or if a distribution cannot be drawn from.
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
        let model = free.graph.model_with(&Marginalise::Nothing)?;
        if !model.latents().is_empty() {
            let name = model.latents().name(0);
            return Err(SimulateError::Undrawable { name, reason: "an observation still depends on it" });
        }
        let quantities = model.quantities();
        let values = model.complete(&Batch::zeros(0, len), &quantities, seed)?;
        let columns = quantities.into_iter().enumerate().map(|(k, q)| (q.name, k)).collect();
        Ok(Self { data: bare, observations: given.observations, columns, values })
    }

    /// The number of data sets.
    pub fn len(&self) -> usize {
        self.values.draws_len()
    }

    /// Whether there are no data sets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One data set; nothing if a simulated value is not finite, as with priors that are far too wide.
    pub fn data(&self, round: usize) -> Option<Data> {
        let mut data = self.data.clone();
        for observation in &self.observations {
            let value = self.truth(&observation.name, round).filter(|x| x.is_finite())?;
            data.arrays.get_mut(&observation.array)?.values[observation.place] = value;
        }
        Some(data)
    }

    /// The true value of a named quantity in a data set.
    pub fn truth(&self, name: &str, round: usize) -> Option<f64> {
        self.columns.get(name).map(|column| self.values.get(*column, round))
    }
}
