//! A finished fit in the numbers and words that are told of it, on paper and as JSON.

mod foretold;
mod response;
pub mod summary;

pub use foretold::{Foretold, LeftOut, TAIL_MIN, WaicSummary, Worst};
pub use response::Response;

use crate::fit::{Posterior, Source, Task};
use crate::names;
use hyperprior::infer::{Doubt, InferSettings, Inferred, Verdict};
use hyperprior::model::graph::{Outline, Quantity, Role};
use hyperprior::model::{CommonFault, Fault, Model};
use hyperprior::posterior::{Kind, Parameters, Summary, label_switching};
use std::collections::BTreeMap;
use summary::{Course, Elbo, Evidence, Plan, RunSummary, SCHEMA};

/// What there is to tell.
#[derive(Debug)]
pub struct Told<'a> {
    /// The model's name.
    pub name: String,
    /// How many nodes were observed.
    pub observed: usize,
    /// What the front end warned of.
    pub warned: Vec<String>,
    /// What was wanted of a graph; nothing where the model is none.
    pub quantities: &'a [Quantity],
    /// The latents of the graph.
    pub outline: Vec<Outline>,
    /// The names of the latents that are approximated.
    pub fitted: Vec<String>,
    /// The settings.
    pub settings: InferSettings,
    /// The draws.
    pub posterior: &'a Posterior,
    /// What they say.
    pub summaries: Vec<Summary>,
    /// The time that it took.
    pub wall_seconds: f64,
    /// What it foretells, as far as that was asked for.
    pub foretold: Foretold,
    /// The spreads by linear response, where they were asked for.
    pub response: Option<Response>,
}

impl<'a> Told<'a> {
    /// Summarises a fit of a graph.
    pub fn new(
        about: (String, usize, Vec<String>),
        task: &'a Task,
        settings: InferSettings,
        posterior: &'a Posterior,
        wall_seconds: f64,
    ) -> Self {
        let own = Self::of_model(about, task.model(), settings, posterior, wall_seconds);
        Self { quantities: task.quantities(), outline: task.model().outline(), ..own }
    }

    /// Summarises a fit of any model.
    pub fn of_model(
        (name, observed, warned): (String, usize, Vec<String>),
        model: &dyn Model,
        settings: InferSettings,
        posterior: &'a Posterior,
        wall_seconds: f64,
    ) -> Self {
        let summaries = posterior.summaries();
        let latents = model.latents();
        Self {
            name,
            observed,
            warned,
            quantities: &[],
            outline: Vec::new(),
            fitted: (0..latents.len()).map(|i| latents.name(i)).collect(),
            settings,
            posterior,
            summaries,
            wall_seconds,
            foretold: Foretold::default(),
            response: None,
        }
    }

    /// The approximation, where there is one.
    pub fn inferred(&self) -> Option<&Inferred> {
        match &self.posterior.source {
            Source::Approximate(inferred) => Some(inferred),
            _ => None,
        }
    }

    /// The names of the latents with that role.
    pub fn latents(&self, role: Role) -> impl Iterator<Item = &str> {
        self.outline.iter().filter(move |o| o.role == role).map(|o| o.name.as_str())
    }

    /// How gradients were estimated, with the latents of each kind.
    pub fn gradients(&self) -> BTreeMap<String, Vec<String>> {
        let mut gradients: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if let Some(inferred) = self.inferred() {
            for (i, plan) in inferred.fitted.plans.iter().enumerate() {
                gradients.entry(plan.to_string()).or_default().push(self.fitted[i].clone());
            }
        }
        gradients
    }

    /// Whether the fit was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.inferred().is_some_and(|inferred| inferred.is_stopped || self.moves_are_stopped())
    }

    /// Whether the moves of the draws were.
    fn moves_are_stopped(&self) -> bool {
        self.inferred().and_then(|inferred| inferred.moved).is_some_and(|moved| moved.stopped)
    }

    /// Whether the bound had settled.
    pub fn is_converged(&self) -> bool {
        !self.inferred().is_some_and(|inferred| inferred.fitted.stopped)
            && self.inferred().and_then(|inferred| inferred.has_settled) != Some(false)
    }

    /// What may be believed.
    pub fn verdict(&self) -> Verdict {
        self.inferred().map_or(Verdict::Trust, Inferred::verdict)
    }

    /// What stands against believing the numbers, the gravest first.
    pub fn doubts(&self) -> Vec<Doubt> {
        self.inferred().map_or_else(Vec::new, Inferred::doubts)
    }

    /// Why the verdict is what it is: the gravest doubt, with what to try.
    pub fn reason(&self) -> String {
        match (self.doubts().into_iter().next(), self.inferred()) {
            (Some(doubt), _) => doubt.reason,
            (None, Some(_)) => "the bound had settled, and k̂ is below its limit".to_owned(),
            (None, None) => "nothing was approximated".to_owned(),
        }
    }

    /// Whether the estimate of the evidence can be taken as it stands, and not as a lower bound alone.
    pub fn is_evidence_good(&self) -> bool {
        self.inferred().is_none_or(|inferred| inferred.tail.is_good() && self.is_converged())
    }

    /// What a person has to know before believing the numbers.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.doubts().into_iter().map(|doubt| doubt.reason).collect();
        if let Some(inferred) = self.inferred()
            && inferred.bounds.dropped > 0
        {
            let (dropped, drawn) = (inferred.bounds.dropped, inferred.bounds.drawn);
            let fault = match &inferred.bounds.fault {
                Some(CommonFault { fault, count, of }) if count == of => {
                    format!(". They fall to {}", fault.factor) + &said(fault)
                }
                Some(CommonFault { fault, count, of }) => {
                    format!(". Of {of} looked at, {count} fall to {}", fault.factor) + &said(fault)
                }
                None => String::new(),
            };
            warnings.push(format!(
                "{dropped} of {drawn} draws of the approximation are impossible in the model; the bound leaves them out{fault}"
            ));
        }
        if let Some(Response::Missing { reason }) = &self.response {
            warnings.push(format!("there is no linear response: {reason}"));
        }
        warnings.extend(label_switching(&self.posterior.draws).iter().map(ToString::to_string));
        warnings
    }

    /// The bound; where nothing was approximated, the evidence itself.
    pub fn elbo(&self) -> (Elbo, Evidence) {
        match &self.posterior.source {
            Source::Approximate(inferred) => {
                let bounds = &inferred.bounds;
                let elbo = Elbo {
                    value: bounds.elbo.value,
                    standard_error: bounds.elbo.standard_error,
                    upper: bounds.upper.map(|upper| upper.value),
                };
                let evidence = bounds.log_evidence;
                (elbo, Evidence { log: evidence.value, standard_error: evidence.standard_error })
            }
            Source::Exact { log_evidence: log } => exactly(*log),
            Source::Prior => exactly(0.0),
        }
    }

    /// `summary.json`.
    pub fn summary(&self) -> RunSummary<'_> {
        let (elbo, evidence) = self.elbo();
        let inferred = self.inferred();
        let part = |k: usize| inferred.map_or_else(String::new, |i| i.parts[k].clone());
        let mut warnings = self.warned.clone();
        warnings.extend(self.warnings());
        warnings.extend(self.foretold.warnings());
        let short = |names: Vec<String>| names::ranges(names.iter().map(String::as_str));
        RunSummary {
            schema: SCHEMA,
            model: self.name.clone(),
            method: self.method(),
            seed: self.settings.seed,
            converged: self.is_converged(),
            steps: inferred.map_or(0, |i| i.fitted.steps),
            wall_seconds: self.wall_seconds,
            elbo,
            evidence: Some(evidence),
            khat: inferred.map(|i| i.tail.khat),
            khat_limit: inferred.map(|i| i.tail.limit),
            verdict: Some(self.verdict()),
            reason: Some(self.reason()),
            warnings,
            plan: Plan {
                eliminated: names::ranges(self.latents(Role::SummedOut)),
                from_law: names::ranges(self.latents(Role::FromLaw)),
                likelihood: part(0),
                prior: part(1),
                recursive: part(2),
                gradient: self.gradients().into_iter().map(|(plan, names)| (plan, short(names))).collect(),
            },
            course: inferred.map(|inferred| Course {
                accuracy: self.settings.accuracy,
                steps: inferred.steps,
                budget_spent: inferred.within.is_some(),
                tried: &inferred.rungs,
                rounds: &inferred.fitted.rounds,
                starts: &inferred.fitted.starts,
                restarts: inferred.restarts.as_ref(),
                dropped: inferred.fitted.dropped,
            }),
            foretold: &self.foretold,
            linear_response: self.response.as_ref(),
            parameters: Parameters(&self.summaries),
        }
    }

    /// The method that was used.
    pub fn method(&self) -> String {
        match &self.posterior.source {
            Source::Approximate(inferred) => inferred.method.to_string(),
            Source::Exact { .. } => "exact".to_owned(),
            Source::Prior => "prior".to_owned(),
        }
    }

    /// Whether anything that was drawn is discrete.
    pub fn has_discrete(&self) -> bool {
        self.posterior.draws.columns().iter().any(|c| c.kind == Kind::Discrete)
    }
}

/// A fault as the end of a sentence.
fn said(fault: &Fault) -> String {
    format!(", such as {}", fault.reason)
}

fn exactly(log: f64) -> (Elbo, Evidence) {
    (Elbo { value: log, standard_error: 0.0, upper: Some(log) }, Evidence { log, standard_error: 0.0 })
}
