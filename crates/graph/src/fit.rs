//! From a graph to draws of its posterior: selects the monitored quantities, fits the latents, and draws or calculates the
//! quantities from them.

use crate::centring::Degrees;
use crate::draw::Quantity;
use crate::elimination::{Marginalise, order, states};
use crate::model::GraphModel;
use crate::node::{AnyDistribution, Graph, Leaf};
use crate::outline::Outline;
use crate::running_sums::with_running_sums;
use hyperprior::infer::{
    Enumerated, InferSettings, Integrated, Posterior, STATES_MAX, Source, enumerated, infer, integrated, may_integrate,
};
use hyperprior::posterior::{Column, Draws, DrawsError, ElementName, Monitor, MonitorError};
use hyperprior::report::{About, FitReport, Latent, Monitored};
use hyperprior::{Batch, Model, Session};
use std::collections::HashMap;
use std::sync::OnceLock;
use thiserror::Error;

/// Why a fit failed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum FitError {
    /// Everything is observed.
    #[error(
        "nothing in the model is unknown: every node with a distribution has data; remove the data of what is to be \
         estimated"
    )]
    NothingUnknown,
    /// A monitor selects nothing.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// Inference failed.
    #[error(transparent)]
    Engine(#[from] hyperprior::Error),
    /// The draws cannot be stored.
    #[error(transparent)]
    Draws(#[from] DrawsError),
}

/// A model and its monitored quantities.
///
/// ```
/// use hyperprior::Quiet;
/// use hyperprior::infer::InferSettings;
/// use hyperprior_graph::fit::Task;
/// use hyperprior_graph::{Distribution, GraphBuilder, Marginalise};
///
/// // Seven heads in ten throws of a coin.
/// let mut g = GraphBuilder::new();
/// let (one, ten) = (g.constant(1.0), g.constant(10.0));
/// let bias = g.stochastic("bias", Distribution::Beta { a: one, b: one }, None, None)?;
/// g.stochastic("heads", Distribution::Binomial { p: bias, n: ten }, None, Some(7.0))?;
/// let task = Task::new(g.build()?, &Marginalise::Auto, &[])?;
/// let posterior = task.run(&InferSettings::default(), &mut Quiet)?;
/// assert!((posterior.summaries()[0].mean - 8.0 / 12.0).abs() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Task {
    model: GraphModel,
    /// The same with learnt degrees of centring, if that is needed after all.
    recentred: OnceLock<GraphModel>,
    marginalise: Marginalise,
    integration: Integration,
    quantities: Vec<Quantity>,
}

/// If the discrete latents in one term have more states than this, sums that leave Gaussian latents to an approximation are slow: every
/// such term is evaluated in all of them.
const WIDE: f64 = 512.0;

/// Whether latents that are Gaussian given the others may be integrated out, and from which model.
#[derive(Debug)]
enum Integration {
    /// They are not, or there are none.
    None,
    /// From the model itself.
    Own,
    /// From the same model with no latent marginalised.
    Of(Box<GraphModel>),
}

impl Integration {
    fn new(model: &GraphModel) -> Result<Self, FitError> {
        if model.order.is_empty() {
            return Ok(if may_integrate(model) { Self::Own } else { Self::None });
        }
        // Sums over many states are as good where they are over few at a time.
        if states(&model.unconstrained) > STATES_MAX as f64 {
            return Ok(Self::None);
        }
        let whole = model.unmarginalised()?;
        Ok(if may_integrate(&whole) { Self::Of(Box::new(whole)) } else { Self::None })
    }

    /// The model with nothing marginalised, if Gaussian latents may be integrated out, and single terms contain so many discrete ones that
    /// this is better than to sum over these first.
    fn of_wide(graph: &Graph) -> Result<Option<GraphModel>, FitError> {
        let is_discrete = |leaf: &Leaf| match &graph.random[leaf.random as usize].distribution {
            AnyDistribution::Scalar(distribution) => distribution.is_discrete(),
            _ => false,
        };
        if !graph.leaves.iter().any(is_discrete) {
            return Ok(None);
        }
        let graph = graph.clone().with_intervals().with_conjugates();
        let whole = GraphModel::new(graph, &Marginalise::Nothing, &Degrees::default())?;
        let widest = order(&whole.unconstrained, &Marginalise::Auto, &[]).widest;
        // Sums of discrete latents alone are built up one by one, and cost little.
        let is_wide = widest > WIDE && with_running_sums(whole.graph(), &whole.unconstrained).is_none();
        Ok((is_wide && may_integrate(&whole)).then_some(whole))
    }
}

impl Task {
    /// Prepares the model and selects the monitored quantities; without monitors, all that are named and not constant.
    ///
    /// # Errors
    /// [`FitError::NothingUnknown`], [`FitError::Monitor`], and as [`Graph::model_with`].
    pub fn new(graph: Graph, marginalise: &Marginalise, monitors: &[Monitor]) -> Result<Self, FitError> {
        if graph.latent_names().next().is_none() {
            return Err(FitError::NothingUnknown);
        }
        let wide = if *marginalise == Marginalise::Auto { Integration::of_wide(&graph)? } else { None };
        let (mut model, integration) = match wide {
            Some(model) => (model, Integration::Own),
            None => {
                let model = graph.model_with(marginalise)?;
                let integration = Integration::new(&model)?;
                (model, integration)
            }
        };
        let quantities = monitored(model.quantities(), monitors)?;
        if matches!(integration, Integration::None) {
            model = model.recentred(marginalise)?;
        }
        Ok(Self { model, recentred: OnceLock::new(), marginalise: marginalise.clone(), integration, quantities })
    }

    /// The model, as the draws of the last run are in its coordinates.
    pub fn model(&self) -> &GraphModel {
        self.recentred.get().unwrap_or(&self.model)
    }

    /// The model with learnt degrees of centring.
    fn recentred(&self) -> Result<&GraphModel, FitError> {
        if self.recentred.get().is_none() && !matches!(self.integration, Integration::None) {
            // The graph has been rewritten already.
            let graph = self.model.graph().clone();
            let model = GraphModel::new(graph, &self.marginalise, &Degrees::default())?.recentred(&self.marginalise)?;
            return Ok(self.recentred.get_or_init(|| model));
        }
        Ok(self.model())
    }

    /// Draws after exact marginalisation of Gaussian latents, and the same in the coordinates of the model.
    fn integrate(
        &self,
        settings: &InferSettings,
        session: &mut Session,
    ) -> Result<Option<(Draws, Integrated)>, FitError> {
        let whole = match &self.integration {
            Integration::Of(whole) if settings.may_integrate() => whole,
            Integration::Own if settings.may_integrate() => &self.model,
            _ => return Ok(None),
        };
        session.enter("integration");
        let starts = whole.starts(settings.seed)?;
        let Some(mut found) = integrated(whole, &starts, settings, session.reborrow())? else { return Ok(None) };
        session.enter("derived quantities");
        let draws = self.draws(whole, &found.z, settings.seed)?;
        let mut z = Batch::zeros(self.model.latents().len(), found.z.draws_len());
        for (to, from) in self.model.columns.iter().zip(&whole.columns) {
            if let (Some(to), Some(from)) = (to, from) {
                z.column_mut(*to as usize).copy_from_slice(found.z.column(*from as usize));
            }
        }
        found.z = z;
        Ok(Some((draws, found)))
    }

    /// The monitored quantities, in the order of the columns of the draws.
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// Fits the model and draws the monitored quantities.
    ///
    /// # Errors
    /// As [`infer`] and [`GraphModel::complete`].
    pub fn run<'s>(&self, settings: &InferSettings, session: impl Into<Session<'s>>) -> Result<Posterior, FitError> {
        let mut session = session.into();
        session.enter("enumeration");
        if let Some(Enumerated { z, log_evidence, .. }) = enumerated(&self.model, settings, session.reborrow())? {
            let draws = self.draws(&self.model, &z, settings.seed)?;
            return Ok(Posterior { draws, source: Source::Exact { log_evidence, z } });
        }
        if let Some((draws, found)) = self.integrate(settings, &mut session)? {
            return Ok(Posterior { draws, source: Source::Integrated(Box::new(found)) });
        }
        if !self.model.latents().is_empty() {
            session.enter("starts");
            let model = self.recentred()?;
            let starts = model.starts(settings.seed)?;
            let inferred = infer(model, &starts, settings, session.reborrow())?;
            session.enter("derived quantities");
            let draws = self.draws(model, &inferred.z, settings.seed)?;
            return Ok(Posterior { draws, source: Source::Approximate(Box::new(inferred)) });
        }
        let z = Batch::zeros(0, settings.draws);
        let draws = self.draws(&self.model, &z, settings.seed)?;
        if self.model.graph().observations_len() == 0 {
            return Ok(Posterior { draws, source: Source::Prior });
        }
        let mut log_evidence = [0.0];
        self.model.log_joint(&Batch::zeros(0, 1), &mut log_evidence)?;
        if !log_evidence[0].is_finite() {
            return Err(self.model.impossible().into());
        }
        Ok(Posterior { draws, source: Source::Exact { log_evidence: log_evidence[0], z } })
    }

    /// The report of a fit, with the model's name, its number of observations and the front end's warnings.
    pub fn report<'a>(
        &self,
        (name, observed, warnings): (String, usize, Vec<String>),
        settings: InferSettings,
        posterior: &'a Posterior,
        wall_seconds: f64,
    ) -> FitReport<'a> {
        let latent =
            |Outline { name, is_discrete, role, centring, .. }: Outline| Latent { name, is_discrete, role, centring };
        let monitored =
            |q: &Quantity| Monitored { name: q.name.clone(), is_latent: q.is_latent, is_discrete: q.is_discrete };
        let about = About {
            name,
            observed,
            warnings,
            latents: self.model().outline().into_iter().map(latent).collect(),
            monitored: self.quantities.iter().map(monitored).collect(),
        };
        FitReport::new(about, self.model(), settings, posterior, wall_seconds)
    }

    fn draws(&self, model: &GraphModel, z: &Batch, seed: u64) -> Result<Draws, FitError> {
        Ok(to_draws(&self.quantities, model.complete(z, &self.quantities, seed)?)?)
    }
}

/// The quantities that the monitors select, in their order; without monitors, all, grouped by array.
///
/// # Errors
/// [`MonitorError`] for a monitor that selects nothing.
pub fn monitored(quantities: Vec<Quantity>, monitors: &[Monitor]) -> Result<Vec<Quantity>, MonitorError> {
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

/// Values of quantities (a column each) as named draws.
///
/// # Errors
/// As [`Draws::new`].
pub fn to_draws(quantities: &[Quantity], values: Batch) -> Result<Draws, DrawsError> {
    let column = |q: &Quantity| match q.is_discrete {
        true => Column::discrete(&q.name),
        false => Column::continuous(&q.name),
    };
    Draws::new(quantities.iter().map(column).collect(), values)
}

/// Groups the elements of each array and sorts them; a graph has its quantities in topological order.
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
