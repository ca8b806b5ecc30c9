//! The report of a finished fit: its numbers and diagnostics.

use super::heavy_tails::heavy_tails;
use super::predictive::Predictive;
use super::schema::{Elbo, Estimator, Evidence, FitHistory, FitSummary, LinearResponseSummary, Plan, SCHEMA};
use crate::diagnostics::{Diagnostic, Finding, Remedy, Severity, Verdict, label_switching};
use crate::infer::{InferSettings, Inferred, IntegrationSummary, Posterior, Source};
use crate::model::Model;
use crate::objective::Estimate;
use crate::posterior::{Kind, Parameters, Summary, ranges};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

/// What inference does with a latent. See [`About`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It is approximated.
    Fitted,
    /// It is marginalised, and drawn given the others.
    Marginalised,
    /// No observation depends on it: it is drawn from its prior.
    PriorOnly,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Fitted => "fitted",
            Self::Marginalised => "marginalised",
            Self::PriorOnly => "prior only",
        })
    }
}

/// A latent of the model. See [`About`].
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Its name, with indices from one.
    pub name: String,
    /// Whether its values are integers.
    pub is_discrete: bool,
    /// What inference does with it.
    pub role: Role,
    /// Its degree of centring, if its coordinate is relative to the location and scale of its distribution: 0 if standardised.
    pub centring: Option<f64>,
}

/// A monitored scalar. See [`About`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitored {
    /// Its name, with indices from one.
    pub name: String,
    /// Whether it is a latent and not computed from others.
    pub is_latent: bool,
    /// Whether its values are integers.
    pub is_discrete: bool,
}

/// The description of the model in a report.
///
/// ```
/// use hyperprior::report::{About, Latent, Role};
/// let bias = Latent { name: "bias".to_owned(), is_discrete: false, role: Role::Fitted, centring: None };
/// let about = About { name: "coin".to_owned(), observed: 10, latents: vec![bias], ..About::default() };
/// assert_eq!(about.latents[0].role.to_string(), "fitted");
/// ```
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The model's name.
    pub name: String,
    /// The number of observed nodes.
    pub observed: usize,
    /// Warnings of the front end.
    pub warnings: Vec<String>,
    /// The latents, if the model knows the role of each.
    pub latents: Vec<Latent>,
    /// The monitored scalars, if the model knows the kind of each.
    pub monitored: Vec<Monitored>,
}

/// The report of a finished fit.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::infer::{InferSettings, Posterior, Source};
/// use hyperprior::posterior::{Column, Draws};
/// use hyperprior::report::{About, FitReport};
/// use hyperprior::targets::Banana;
/// let draws = Draws::new(vec![Column::continuous("mu")], Batch::from_columns(vec![0.5, 1.5], 2))?;
/// let posterior = Posterior { draws, source: Source::Exact { log_evidence: -3.0, z: Batch::zeros(0, 2) } };
/// let about = About { name: "coin".to_owned(), ..About::default() };
/// let report = FitReport::new(about, &Banana::new(), InferSettings::default(), &posterior, 0.1);
/// let summary = report.summary(&|remedy| format!("{remedy:?}"));
/// assert_eq!((summary.method.as_str(), summary.parameters.0[0].mean), ("exact", 1.0));
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct FitReport<'a> {
    /// The model.
    pub about: About,
    /// The names of the latents that were approximated.
    pub fitted: Vec<String>,
    /// The settings.
    pub settings: InferSettings,
    /// The draws.
    pub posterior: &'a Posterior,
    /// Their summaries.
    pub summaries: Vec<Summary>,
    /// Quantities that may have no variance.
    heavy_tails: Option<Diagnostic>,
    /// The duration of the run.
    pub wall_seconds: f64,
    /// The predictive checks that were requested.
    pub predictive: Predictive,
    /// Linear response, if requested.
    pub linear_response: Option<LinearResponseSummary>,
}

impl<'a> FitReport<'a> {
    /// Summarises a fit of a model.
    pub fn new(
        about: About,
        model: &dyn Model,
        settings: InferSettings,
        posterior: &'a Posterior,
        wall_seconds: f64,
    ) -> Self {
        let latents = model.latents();
        let derived: HashSet<String> =
            about.monitored.iter().filter(|one| !one.is_latent).map(|one| one.name.clone()).collect();
        let is_hypercube = match &posterior.source {
            Source::Approximate(inferred) => inferred.quadrature.is_some_and(|found| found.is_exact),
            Source::Integrated(found) => found.summary.khat.is_none() && found.summary.chains.is_none(),
            _ => false,
        };
        // The latents that are coordinates themselves.
        let is_own = |latent: &&Latent| latent.role == Role::Fitted && latent.centring.is_none();
        let hypercube: HashSet<String> =
            about.latents.iter().filter(|_| is_hypercube).filter(is_own).map(|latent| latent.name.clone()).collect();
        Self {
            about,
            fitted: (0..latents.len()).map(|i| latents.name(i)).collect(),
            settings,
            posterior,
            summaries: posterior.summaries(),
            heavy_tails: heavy_tails(posterior, &derived, &hypercube),
            wall_seconds,
            predictive: Predictive::default(),
            linear_response: None,
        }
    }

    /// Adds predictive checks and linear response.
    #[must_use]
    pub fn with(self, predictive: Predictive, linear_response: Option<LinearResponseSummary>) -> Self {
        Self { predictive, linear_response, ..self }
    }

    /// How Gaussian latents were integrated out, if they were.
    pub fn integration(&self) -> Option<&IntegrationSummary> {
        match &self.posterior.source {
            Source::Integrated(found) => Some(&found.summary),
            _ => None,
        }
    }

    /// The approximation, if there is one.
    pub fn inferred(&self) -> Option<&Inferred> {
        match &self.posterior.source {
            Source::Approximate(inferred) => Some(inferred),
            _ => None,
        }
    }

    /// The names of the latents with that role.
    pub fn latents(&self, role: Role) -> impl Iterator<Item = &str> {
        self.about.latents.iter().filter(move |latent| latent.role == role).map(|latent| latent.name.as_str())
    }

    /// The names of the discrete latents.
    pub fn discrete_latents(&self) -> BTreeSet<&str> {
        self.about.latents.iter().filter(|latent| latent.is_discrete).map(|latent| latent.name.as_str()).collect()
    }

    /// The gradient estimators, with the latents of each.
    pub fn gradients(&self) -> BTreeMap<String, Vec<String>> {
        let mut gradients: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if let Some(inferred) = self.inferred() {
            for (i, plan) in inferred.fitted.plans.iter().enumerate() {
                gradients.entry(plan.to_string()).or_default().push(self.fitted[i].clone());
            }
        }
        gradients
    }

    /// Whether the run was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        let moves_are_stopped = |inferred: &Inferred| {
            inferred.moved.is_some_and(|moved| moved.stopped) || inferred.nuts.as_ref().is_some_and(|nuts| nuts.stopped)
        };
        self.inferred().is_some_and(|inferred| inferred.is_stopped || moves_are_stopped(inferred))
    }

    /// Whether the ELBO had converged.
    pub fn is_converged(&self) -> bool {
        self.inferred().is_none_or(|inferred| !inferred.fitted.stopped && inferred.has_converged != Some(false))
    }

    /// How far the fit can be trusted.
    pub fn verdict(&self) -> Verdict {
        self.bearing_on_the_verdict().first().map_or(Verdict::Trust, |found| found.severity.verdict())
    }

    /// Diagnostics of the approximation and of the tails of its draws, the most serious first.
    fn bearing_on_the_verdict(&self) -> Vec<Diagnostic> {
        let mut found = self.inferred().map_or_else(Vec::new, Inferred::diagnostics);
        found.extend(self.heavy_tails.clone());
        found.sort_by_key(|found| std::cmp::Reverse(found.severity));
        found
    }

    /// The reason for the verdict: the most serious diagnostic, with its remedies.
    pub fn reason(&self, remedy: &dyn Fn(&Remedy) -> String) -> String {
        let diagnostics = self.bearing_on_the_verdict();
        match (diagnostics.iter().find(|found| found.severity > Severity::Note), self.inferred()) {
            (Some(worst), _) => worst.worded(remedy),
            (None, Some(inferred)) => inferred.basis(),
            (None, None) => match self.integration() {
                Some(IntegrationSummary { chains: Some(chains), .. }) => format!(
                    "latents that are Gaussian given the others were integrated out, and chains of the others from {} starts agree (R̂ is {:.3})",
                    chains.chains, chains.rhat
                ),
                Some(IntegrationSummary { conditioned, khat: None, .. }) if !conditioned.is_empty() => {
                    "latents that are Gaussian given one other were integrated out, and that one by adaptive quadrature".to_owned()
                }
                Some(IntegrationSummary { khat: None, .. }) => "every latent was integrated out".to_owned(),
                Some(_) => {
                    "latents that are Gaussian given the others were integrated out, and the importance weights of the others have a \
                     variance (k̂ is at most 0.5)"
                        .to_owned()
                }
                None => "nothing was approximated".to_owned(),
            },
        }
    }

    /// Whether the estimate of the evidence is reliable, and not just a lower bound; see [`FitSummary::is_evidence_good`].
    pub fn is_evidence_good(&self) -> bool {
        let (elbo, evidence) = self.bounds();
        let is_khat_good = self.inferred().is_none_or(|inferred| inferred.psis.is_good());
        evidence.is_good(elbo.value, is_khat_good, self.is_converged(), Some(self.verdict()))
    }

    /// Diagnostics of the fit and its draws, those that affect the verdict first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = self.bearing_on_the_verdict();
        let mut note = |finding| found.push(Diagnostic::new(Severity::Note, finding, Vec::new()));
        if let Some(bounds) = self.inferred().map(|inferred| &inferred.bounds).filter(|bounds| bounds.dropped > 0) {
            let (invalid, drawn, fault) = (bounds.dropped, bounds.drawn, bounds.fault.clone());
            note(Finding::InvalidDraws { invalid, drawn, fault });
        }
        if let Some(LinearResponseSummary::Missing { reason }) = &self.linear_response {
            note(Finding::NoLinearResponse { reason: reason.clone() });
        }
        label_switching(&self.posterior.draws).into_iter().for_each(|found| note(Finding::LabelSwitching(found)));
        for found in self.inferred().iter().flat_map(|inferred| &inferred.exchangeable) {
            note(Finding::ExchangeableComponents(found.clone()));
        }
        found
    }

    /// The ELBO and the evidence; if nothing was approximated, both are the evidence.
    pub fn bounds(&self) -> (Elbo, Evidence) {
        let exactly = |log: f64| {
            let elbo = Elbo { value: log, standard_error: 0.0, upper: Some(log) };
            (elbo, Evidence { log, standard_error: 0.0, by: Estimator::Summation })
        };
        match &self.posterior.source {
            Source::Approximate(inferred) => {
                let bounds = &inferred.bounds;
                // The tighter of the two bounds; without a gap between them they are the same.
                let elbo = Elbo {
                    value: bounds.importance_lower.value,
                    standard_error: bounds.importance_lower.standard_error,
                    upper: bounds.upper.map(|upper| upper.value),
                };
                let evidence = inferred.log_evidence();
                let by = match (inferred.quadrature, inferred.bridge) {
                    _ if inferred.particles().is_some() => Estimator::TemperedSmc,
                    (Some(_), _) => Estimator::Quadrature,
                    (None, Some(_)) => Estimator::BridgeSampling,
                    (None, None) => Estimator::ImportanceSampling,
                };
                (elbo, Evidence { log: evidence.value, standard_error: evidence.standard_error, by })
            }
            Source::Exact { log_evidence, .. } => exactly(*log_evidence),
            Source::Integrated(found) => {
                let Estimate { value, standard_error } = found.log_evidence;
                let IntegrationSummary { khat, chains, conditioned, .. } = &found.summary;
                let by = match (khat, chains) {
                    (Some(_), _) => Estimator::ImportanceSampling,
                    (None, Some(_)) => Estimator::BridgeSampling,
                    (None, None) if conditioned.is_empty() => Estimator::Summation,
                    (None, None) => Estimator::Quadrature,
                };
                (Elbo { value, standard_error, upper: None }, Evidence { log: value, standard_error, by })
            }
            Source::Prior => exactly(0.0),
        }
    }

    /// `summary.json`, with remedies as a front end words them.
    pub fn summary(&self, remedy: &dyn Fn(&Remedy) -> String) -> FitSummary {
        let (elbo, evidence) = self.bounds();
        let inferred = self.inferred();
        let part = |k: usize| inferred.map_or_else(String::new, |i| i.parts[k].clone());
        let mut diagnostics = self.diagnostics();
        diagnostics.extend(self.predictive.diagnostics());
        let mut warnings = self.about.warnings.clone();
        warnings.extend(diagnostics.iter().map(|found| found.worded(remedy)));
        let short = |names: Vec<String>| ranges::ranges(names.iter().map(String::as_str));
        FitSummary {
            schema: SCHEMA,
            model: self.about.name.clone(),
            method: self.method(),
            seed: self.settings.seed,
            converged: self.is_converged(),
            steps: inferred.map_or(0, |i| i.fitted.steps),
            wall_seconds: self.wall_seconds,
            elbo,
            annealed: inferred.and_then(|i| i.annealed.clone()),
            evidence: Some(evidence),
            khat: inferred.map(|i| i.psis.khat).or(self.integration().and_then(|found| found.khat)),
            khat_limit: inferred
                .map(|i| i.psis.limit)
                .or(self.integration().and_then(|found| found.khat.map(|_| found.khat_limit))),
            verdict: Some(self.verdict()),
            reason: Some(self.reason(remedy)),
            warnings,
            diagnostics,
            plan: Plan {
                marginalised: ranges::ranges(self.latents(Role::Marginalised)),
                prior_only: ranges::ranges(self.latents(Role::PriorOnly)),
                centring: self.centring().into_iter().map(|(degree, names)| (degree, short(names))).collect(),
                likelihood: part(0),
                prior: part(1),
                recursive: part(2),
                gradient: self.gradients().into_iter().map(|(plan, names)| (plan, short(names))).collect(),
            },
            fit_history: inferred.map(|inferred| FitHistory {
                accuracy: self.settings.accuracy,
                steps: inferred.steps,
                budget_spent: inferred.budget_record.is_some(),
                candidates: inferred.candidates.clone(),
                stages: inferred.fitted.stages.clone(),
                starts: inferred.fitted.starts.clone(),
                restarts: inferred.restarts.clone(),
                superchains: inferred.superchains.clone(),
                quadrature: inferred.quadrature,
                nuts: inferred.nuts.clone(),
                smc: inferred.smc.clone(),
                invalid_share: inferred.fitted.dropped,
            }),
            integration: self.integration().cloned(),
            predictive: self.predictive.ppc.clone(),
            loo: self.predictive.loo.as_ref().map(|loo| loo.summary.clone()),
            linear_response: self.linear_response.clone(),
            parameters: Parameters(self.summaries.clone()),
        }
    }

    /// The latents that are not centred, by their degree of centring to one digit.
    pub fn centring(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for latent in &self.about.latents {
            if let Some(degree) = latent.centring {
                found.entry(format!("{degree:.1}")).or_default().push(latent.name.clone());
            }
        }
        found
    }

    /// The method that was used.
    pub fn method(&self) -> String {
        match &self.posterior.source {
            Source::Approximate(inferred) => inferred.method.to_string(),
            Source::Exact { .. } => "exact".to_owned(),
            Source::Integrated(_) => "integrated".to_owned(),
            Source::Prior => "prior".to_owned(),
        }
    }

    /// Whether any monitored scalar is discrete.
    pub fn has_discrete(&self) -> bool {
        self.posterior.draws.columns().iter().any(|c| c.kind == Kind::Discrete)
    }
}
