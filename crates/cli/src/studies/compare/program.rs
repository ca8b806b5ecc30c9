//! Approximations of the posterior of a model in BUGS, each without correction, beside a fit with the defaults.

use crate::command::input::Input;
use crate::error::CliError;
use crate::progress::{Bar, StopFlag};
use hyperprior::Model;
use hyperprior::diagnostics::Verdict;
use hyperprior::infer::{Correction, InferSettings, Method, Posterior, Source};
use hyperprior::posterior::Summary;
use hyperprior_graph::fit::{FitError, Task};
use serde::Serialize;
use std::time::Instant;

/// The methods, unless some are named.
pub const METHODS: [Method; 7] = [
    Method::MeanField,
    Method::FullRank,
    Method::LowRank(4),
    Method::Mixture(4),
    Method::Flow(4),
    Method::Copula(4),
    Method::Hvm,
];

/// A quantity is right if its mean is within this many standard deviations of the reference, and its standard deviation within this share.
const NEAR: [f64; 2] = [0.1, 0.15];

/// The fit with the defaults.
#[derive(Clone, Debug, Serialize)]
pub struct Reference {
    /// How far to trust it.
    pub verdict: Verdict,
    /// log p(x), with its standard error.
    pub log_evidence: f64,
    pub log_evidence_standard_error: f64,
    /// The number of quantities that are compared: those that vary.
    pub quantities: usize,
    /// The running time.
    pub seconds: f64,
    #[serde(skip)]
    summaries: Vec<Summary>,
}

/// One approximation; `None` if unknown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgramRow {
    /// The method.
    pub method: String,
    /// Why it does not apply, if it does not.
    pub reason: Option<String>,
    /// q(λ; θ) and r(λ | z; φ).
    pub prior: Option<String>,
    pub recursive: Option<String>,
    /// A lower bound on log p(x), with its standard error, and an upper bound on the ELBO of q(z).
    pub elbo: Option<f64>,
    pub elbo_standard_error: Option<f64>,
    pub elbo_upper: Option<f64>,
    /// The shape of the tail of the importance weights.
    pub khat: Option<f64>,
    /// How many quantities are right, and the largest errors of a mean in standard deviations and of a standard deviation as a share.
    pub right: Option<usize>,
    pub worst_mean: Option<f64>,
    pub worst_sd: Option<f64>,
    /// The running time.
    pub seconds: Option<f64>,
}

/// A model in BUGS to compare methods on.
pub struct ProgramComparison {
    /// The model file and its data.
    pub input: Input,
    /// The methods, in the order of their rows.
    pub methods: Vec<Method>,
    /// The seed.
    pub seed: u64,
    /// Whether to show no progress and no messages.
    pub quiet: bool,
}

impl ProgramComparison {
    /// Fits with the defaults, passes the result to `begin`, then fits every method and passes each row to `each`.
    pub fn run(
        &self,
        stop: &StopFlag,
        mut begin: impl FnMut(Reference),
        mut each: impl FnMut(ProgramRow),
    ) -> Result<(), CliError> {
        let (compiled, _) = self.input.compile(self.quiet)?;
        let marginalise = self.input.marginalise(&compiled.graph)?;
        let task = Task::new(compiled.graph, &marginalise, &[])?;
        if task.model().latents().is_empty() {
            return Err(CliError::Usage(
                "every latent is marginalised exactly, so there is nothing to approximate; try --eliminate none"
                    .to_owned(),
            ));
        }
        let settings = InferSettings::default().seed(self.seed);
        let (posterior, seconds) = self.fit(&task, &settings, "the defaults", stop)?;
        let reference = reference(&task, settings.clone(), &posterior, seconds);
        begin(reference.clone());
        for method in &self.methods {
            let settings = settings.clone().method(*method).correct(Correction::None);
            each(match self.fit(&task, &settings, &method.to_string(), stop) {
                Ok((posterior, seconds)) => row(&task, settings, &posterior, (&reference, seconds)),
                Err(CliError::Stopped) => return Err(CliError::Stopped),
                Err(error) => {
                    ProgramRow { method: method.to_string(), reason: Some(error.to_string()), ..ProgramRow::default() }
                }
            });
        }
        Ok(())
    }

    fn fit(
        &self,
        task: &Task,
        settings: &InferSettings,
        what: &str,
        stop: &StopFlag,
    ) -> Result<(Posterior, f64), CliError> {
        let mut bar = Bar::new(&format!("{} · {what}", self.input.name()), self.quiet, stop);
        let began = Instant::now();
        let posterior = task.run(settings, &mut bar).map_err(|error: FitError| CliError::from(error));
        bar.finish();
        if stop.is_raised() {
            return Err(CliError::Stopped);
        }
        Ok((posterior?, began.elapsed().as_secs_f64()))
    }
}

fn reference(task: &Task, settings: InferSettings, posterior: &Posterior, seconds: f64) -> Reference {
    let report = task.report((String::new(), 0, Vec::new()), settings, posterior, seconds);
    let (_, evidence) = report.bounds();
    let summaries: Vec<Summary> = posterior.summaries().into_iter().filter(|summary| summary.sd > 0.0).collect();
    Reference {
        verdict: report.verdict(),
        log_evidence: evidence.log,
        log_evidence_standard_error: evidence.standard_error,
        quantities: summaries.len(),
        seconds,
        summaries,
    }
}

fn row(
    task: &Task,
    settings: InferSettings,
    posterior: &Posterior,
    (reference, seconds): (&Reference, f64),
) -> ProgramRow {
    let method = settings.method.to_string();
    let Source::Approximate(inferred) = &posterior.source else {
        let reason = "the posterior is exact without an approximation".to_owned();
        return ProgramRow { method, reason: Some(reason), ..ProgramRow::default() };
    };
    let report = task.report((String::new(), 0, Vec::new()), settings, posterior, seconds);
    let (elbo, _) = report.bounds();
    let (mut right, mut worst) = (0, [0.0_f64; 2]);
    let found = posterior.summaries();
    for other in &reference.summaries {
        let Some(own) = found.iter().find(|own| own.name == other.name) else { continue };
        let errors = [(own.mean - other.mean).abs() / other.sd, (own.sd / other.sd - 1.0).abs()];
        right += usize::from(errors.iter().zip(NEAR).all(|(error, near)| *error <= near));
        worst.iter_mut().zip(errors).for_each(|(worst, error)| *worst = worst.max(error));
    }
    let [_, prior, recursive] = inferred.parts.clone();
    let has_recursion = elbo.upper.is_some();
    ProgramRow {
        method,
        reason: None,
        prior: Some(prior),
        recursive: Some(if has_recursion { recursive } else { "none".to_owned() }),
        elbo: Some(elbo.value),
        elbo_standard_error: Some(elbo.standard_error),
        elbo_upper: elbo.upper,
        khat: Some(inferred.psis.khat),
        right: Some(right),
        worst_mean: Some(worst[0]),
        worst_sd: Some(worst[1]),
        seconds: Some(seconds),
    }
}
