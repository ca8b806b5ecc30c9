//! From a graph to draws of its posterior: what is wanted is chosen, the latents are fitted where any are left, and everything
//! that has a name is drawn or calculated with them.

use hyperprior::fit::Observer;
use hyperprior::infer::{InferSettings, Inferred, Starts, infer};
use hyperprior::model::graph::{Eliminate, Graph, GraphModel, Quantity};
use hyperprior::posterior::{Column, Draws, DrawsError, ElementName, Monitor, MonitorError, Summary, summarise};
use hyperprior::{Batch, Model};
use std::collections::HashMap;
use thiserror::Error;

/// Why there is no posterior.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// Everything is observed.
    #[error(
        "nothing in the model is unknown: every node with a distribution is in the data; leave out what is to be found"
    )]
    NothingUnknown,
    /// Something is monitored that there is not.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
    /// The draws cannot be kept.
    #[error(transparent)]
    Draws(#[from] DrawsError),
}

/// A model, and what of it is wanted.
///
/// ```
/// use hyperprior::fit::Quiet;
/// use hyperprior::infer::InferSettings;
/// use hyperprior::model::graph::Eliminate;
/// use hyperprior::posterior::summarise;
/// use hyperprior_bugs::fit::Task;
/// use hyperprior_bugs::{Array, Data, Options, compile};
///
/// let data = Data::default().with("y", Array::scalar(7.0));
/// let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
/// let compiled = compile(model, "coin", &data, &Options::default()).unwrap();
/// let task = Task::new(compiled.graph, &Eliminate::Auto, &[])?;
/// let posterior = task.run(&InferSettings::default(), &mut Quiet)?;
/// assert!((summarise(&posterior.draws)[0].mean - 8.0 / 12.0).abs() < 0.01);
/// # Ok::<(), hyperprior_bugs::fit::FitError>(())
/// ```
#[derive(Debug)]
pub struct Task {
    model: GraphModel,
    quantities: Vec<Quantity>,
}

/// Where draws come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// From the posterior itself: no latent was left to approximate.
    Exact {
        /// log p(x).
        log_evidence: f64,
    },
    /// From the prior: nothing was observed.
    Prior,
    /// From an approximation, corrected as its settings say.
    Approximate(Box<Inferred>),
}

/// Draws, and where they come from.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Draws of what was wanted.
    pub draws: Draws,
    /// Where they come from.
    pub source: Source,
}

impl Posterior {
    /// The draws of the model's latents on the line: none of them where nothing was approximated, but as many draws.
    pub fn latents(&self) -> Batch {
        match &self.source {
            Source::Approximate(inferred) => inferred.z.clone(),
            _ => Batch::zeros(0, self.draws.len()),
        }
    }

    /// What the draws say of each quantity.
    ///
    /// Draws of an approximation are worth less than their number where its importance weights leave an error that they still
    /// remember; the standard errors of the means follow what they are worth.
    pub fn summaries(&self) -> Vec<Summary> {
        let mut summaries = summarise(&self.draws);
        if let Source::Approximate(inferred) = &self.source {
            for summary in &mut summaries {
                summary.ess = summary.ess.min(inferred.worth());
                summary.mcse = summary.sd / summary.ess.sqrt();
            }
        }
        summaries
    }
}

impl Task {
    /// Lays the graph out, and finds what the monitors select: without any, all that has a name and is not a number already.
    ///
    /// # Errors
    /// [`FitError::NothingUnknown`], [`FitError::Monitor`], and what the graph says as a model.
    pub fn new(graph: Graph, eliminate: &Eliminate, monitors: &[Monitor]) -> Result<Self, FitError> {
        if graph.latent_names().next().is_none() {
            return Err(FitError::NothingUnknown);
        }
        let model = graph.model_with(eliminate)?;
        let quantities = wanted(model.quantities(), monitors)?;
        Ok(Self { model, quantities })
    }

    /// The model.
    pub fn model(&self) -> &GraphModel {
        &self.model
    }

    /// What is wanted, a column of the draws each.
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// Fits and draws.
    ///
    /// # Errors
    /// What the search, the fit and the draws say.
    pub fn run(&self, settings: &InferSettings, observer: &mut dyn Observer) -> Result<Posterior, FitError> {
        if !self.model.latents().is_empty() {
            let starts = Starts::of(&self.model, settings.seed)?;
            let inferred = infer(&self.model, &starts, settings, observer)?;
            let draws = self.draws(&inferred.z, settings.seed)?;
            return Ok(Posterior { draws, source: Source::Approximate(Box::new(inferred)) });
        }
        let draws = self.draws(&Batch::zeros(0, settings.draws), settings.seed)?;
        if self.model.graph().observations_len() == 0 {
            return Ok(Posterior { draws, source: Source::Prior });
        }
        let mut log_evidence = [0.0];
        self.model.log_joint(&Batch::zeros(0, 1), &mut log_evidence)?;
        Ok(Posterior { draws, source: Source::Exact { log_evidence: log_evidence[0] } })
    }

    fn draws(&self, z: &Batch, seed: u64) -> Result<Draws, FitError> {
        Ok(named(&self.quantities, self.model.complete(z, &self.quantities, seed)?)?)
    }
}

/// What the monitors select, in their order; without any, all, with the elements of each array together.
///
/// # Errors
/// [`MonitorError`] for a monitor that selects nothing.
pub fn wanted(quantities: Vec<Quantity>, monitors: &[Monitor]) -> Result<Vec<Quantity>, MonitorError> {
    let all = by_array(quantities);
    if monitors.is_empty() {
        return Ok(all);
    }
    let names: Vec<&str> = all.iter().map(|q| q.name.as_str()).collect();
    let (mut wanted, mut is_wanted) = (Vec::new(), vec![false; all.len()]);
    for monitor in monitors {
        for place in monitor.places(&names)? {
            if !std::mem::replace(&mut is_wanted[place], true) {
                wanted.push(all[place].clone());
            }
        }
    }
    Ok(wanted)
}

/// Draws of quantities, a column each.
///
/// # Errors
/// As [`Draws::new`].
pub fn named(quantities: &[Quantity], values: Batch) -> Result<Draws, DrawsError> {
    let column = |q: &Quantity| match q.is_discrete {
        true => Column::discrete(&q.name),
        false => Column::continuous(&q.name),
    };
    Draws::new(quantities.iter().map(column).collect(), values)
}

/// The same with the elements of each array together and in order: a graph has them in the order of their dependence.
fn by_array(mut quantities: Vec<Quantity>) -> Vec<Quantity> {
    let mut arrays: HashMap<String, usize> = HashMap::new();
    for quantity in &quantities {
        let len = arrays.len();
        arrays.entry(ElementName::parse(&quantity.name).array.to_owned()).or_insert(len);
    }
    quantities.sort_by_cached_key(|quantity| {
        let element = ElementName::parse(&quantity.name);
        (arrays[element.array], element.indices)
    });
    quantities
}
