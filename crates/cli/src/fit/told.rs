//! A finished fit in the numbers and words that are told of it, on paper and as JSON.

use super::foretold::Foretold;
use super::response::Response;
use crate::names;
use crate::output::summary::{Course, Elbo, Evidence, Plan, RunSummary, SCHEMA};
use hyperprior::infer::{Doubt, InferSettings, Inferred, Verdict};
use hyperprior::model::graph::{Outline, Role};
use hyperprior::model::{CommonFault, Fault};
use hyperprior::posterior::{Kind, Parameters, Summary, label_switching};
use hyperprior_bugs::fit::{Posterior, Source, Task};
use std::collections::BTreeMap;

/// What there is to tell.
pub struct Told<'a> {
    /// The model's name.
    pub name: String,
    /// How many nodes were observed.
    pub observed: usize,
    /// What the front end warned of.
    pub warned: Vec<String>,
    /// The task.
    pub task: &'a Task,
    /// Its latents.
    pub outline: Vec<Outline>,
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
    /// Summarises a fit.
    pub fn new(
        (name, observed, warned): (String, usize, Vec<String>),
        task: &'a Task,
        settings: InferSettings,
        posterior: &'a Posterior,
        wall_seconds: f64,
    ) -> Self {
        let summaries = posterior.summaries();
        let outline = task.model().outline();
        Self {
            name,
            observed,
            warned,
            task,
            outline,
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
            let latents = hyperprior::Model::latents(self.task.model());
            for (i, plan) in inferred.fitted.plans.iter().enumerate() {
                gradients.entry(plan.to_string()).or_default().push(latents.name(i));
            }
        }
        gradients
    }

    /// Whether the fit was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.inferred().is_some_and(|inferred| inferred.fitted.stopped || self.moves_are_stopped())
    }

    /// Whether the moves of the draws were.
    fn moves_are_stopped(&self) -> bool {
        self.inferred().and_then(|inferred| inferred.moved).is_some_and(|moved| moved.stopped)
    }

    /// The number of steps at which the budget was spent, where it was.
    pub fn spent_at(&self) -> Option<u64> {
        self.inferred().filter(|inferred| inferred.is_spent).map(|inferred| inferred.steps)
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
                budget_spent: inferred.is_spent,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::report;
    use hyperprior::fit::Quiet;
    use hyperprior::model::graph::Eliminate;
    use hyperprior_bugs::{Array, Data, Options, compile};

    /// A bound that rises to the end vetoes trust, whatever k̂ says, and a large k̂ does in its own two steps.
    #[test]
    fn the_gravest_doubt_is_the_verdict() {
        let data = Data::default().with("y", Array::scalar(7.0));
        let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
        let compiled = compile(model, "coin", &data, &Options::default()).expect("a model");
        let task = Task::new(compiled.graph, &Eliminate::Auto, &[]).expect("a task");
        let settings = InferSettings { steps: Some(200), draws: 1000, ..InferSettings::default() };
        let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
        let said = |settled: bool, khat: Option<f64>, memory: f64| {
            let mut posterior = posterior.clone();
            if let Source::Approximate(inferred) = &mut posterior.source {
                inferred.has_settled = Some(settled);
                if let Some(khat) = khat {
                    inferred.tail.khat = khat;
                    inferred.tail.ess = 10.0;
                }
                inferred.moved.as_mut().expect("moves").memory = memory;
            }
            let told = Told::new(("coin".to_owned(), 1, vec![]), &task, settings.clone(), &posterior, 0.0);
            let ess = told.summaries[0].ess;
            (told.verdict(), report(&told, false).expect("a report"), ess)
        };
        let (verdict, text, _) = said(true, None, 0.0);
        assert_eq!(verdict, Verdict::Trust, "{text}");
        assert!(text.contains("\nVerdict: trust. The bound had settled"), "{text}");
        assert!(text.contains("log evidence  -2."), "{text}");
        let (verdict, text, _) = said(false, None, 0.0);
        assert_eq!(verdict, Verdict::Distrust, "{text}");
        let reason = "The reason: the bound was still rising; give it more steps (--steps 400).";
        assert!(text.find(reason).expect(&text) < text.find("\nname ").expect(&text), "{text}");
        assert!(text.contains("log evidence  at least -2."), "{text}");
        let (verdict, text, ess) = said(true, Some(0.8), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::MeansOnly, 10.0), "{text}");
        assert!(text.contains("Verdict: means only") && text.contains("log evidence  at least -2."), "{text}");
        // Few draws have all the weight, and moves do not part them; or they do.
        let (verdict, text, ess) = said(true, Some(0.5), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::MeansOnly, 10.0), "{text}");
        assert!(text.contains("The reason: the draws are worth no more than 10 independent ones"), "{text}");
        assert_eq!(said(true, Some(0.5), 0.1).0, Verdict::Trust);
        let (verdict, text, _) = said(false, Some(1.2), 0.0);
        assert_eq!(verdict, Verdict::Distrust);
        assert!(text.contains(reason) && text.contains("\nWarning: k̂ = 1.20 is above"), "{text}");
    }
}
