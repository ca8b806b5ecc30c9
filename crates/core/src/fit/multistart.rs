//! Algorithm 1 from several starts: a short run from each, of which the one with the best bound is continued.

use super::algorithm::Fit;
use super::result::Fitted;
use super::settings::FitSettings;
use super::start::{StartKind, StartSettings, tempered_starts};
use crate::error::{Error, Result};
use crate::gradient::GradientSettings;
use crate::model::Model;
use crate::objective::{self, BoundSettings};
use crate::observer::{Phase, Quiet};
use crate::prior::Start;
use crate::session::Session;
use crate::variational::Variational;
use std::ops::ControlFlow;

/// Fits a variational model to a model: short runs from several starts, of which the one with the best bound is continued.
///
/// ```
/// use hyperprior::fit::{FitSettings, Quiet, fit};
/// use hyperprior::likelihood::MeanField;
/// use hyperprior::model::{Latents, Model, Support};
/// use hyperprior::{Batch, Variational};
///
/// /// A count with a known posterior: z ~ Poisson(4).
/// struct Counts(Latents);
/// impl Model for Counts {
///     fn latents(&self) -> &Latents {
///         &self.0
///     }
///     fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
///         for (o, z) in out.iter_mut().zip(z.column(0)) {
///             *o = z * 4f64.ln() - 4.0 - hyperprior::math::special::ln_factorial(*z);
///         }
///         Ok(())
///     }
/// }
///
/// let model = Counts(Latents::new().scalar("z", Support::Counts)?);
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let fitted = fit(&model, &q, &FitSettings::default().steps(500), &mut Quiet)?;
/// assert!((fitted.theta[0].exp() - 4.0).abs() < 0.1);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the settings, the parts and the model; [`Error::NotFinite`] if no start is possible.
pub fn fit<'s>(
    model: &dyn Model,
    q: &Variational,
    settings: &FitSettings,
    session: impl Into<Session<'s>>,
) -> Result<Fitted> {
    settings.check()?;
    q.check(model)?;
    fit_from(model, q, settings, &starts(model, q, settings)?, session)
}

/// One start per try.
fn starts(model: &dyn Model, q: &Variational, settings: &FitSettings) -> Result<Vec<Start>> {
    if settings.start.kind == StartKind::Tempered || q.prior().noise_len() == 0 {
        return tempered_starts(model, q, settings.seed, &settings.start);
    }
    let point = q.to_mean_field();
    // A few draws are enough, as long as the replicates divide them.
    let draws = 16_usize.next_multiple_of(settings.gradient.replicates);
    let gradient = GradientSettings { draws, ..settings.gradient.clone() };
    let start = StartSettings { kind: StartKind::Tempered, ..settings.start.clone() };
    let settings = FitSettings { start, gradient, ..settings.clone() };
    let fitted = fit(model, &point, &settings, &mut Quiet)?;
    Ok(vec![Start::at(fitted.theta, settings.start.scale)])
}

/// As [`fit`], from given starts.
///
/// # Errors
/// As [`fit`].
pub fn fit_from<'s>(
    model: &dyn Model,
    q: &Variational,
    settings: &FitSettings,
    starts: &[Start],
    session: impl Into<Session<'s>>,
) -> Result<Fitted> {
    let session = &mut session.into();
    settings.check()?;
    q.check(model)?;
    let many = starts.len() > 1;
    let mut best: Option<(f64, Fit)> = None;
    let mut bounds = Vec::new();
    let mut failure = None;
    for (number, start) in starts.iter().enumerate() {
        match short_run(model, q, settings, start, (number, starts.len()), session) {
            Ok((bound, run, flow)) => {
                if many {
                    bounds.push(bound);
                }
                if best.as_ref().is_none_or(|(b, _)| bound > *b || b.is_nan()) {
                    best = Some((bound, run));
                }
                if flow.is_break() {
                    break;
                }
            }
            // An impossible start is skipped; an error of the model is returned.
            Err(error @ (Error::NotFinite { .. } | Error::GradientNotFinite { .. })) if many => {
                bounds.push(f64::NEG_INFINITY);
                failure = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let Some((_, mut run)) = best else {
        return Err(failure.unwrap_or(Error::EmptyModel));
    };
    let before = run.steps();
    let stopped = run.run(session)?.is_break();
    let fitted = run.finish(stopped);
    Ok(Fitted { steps: fitted.steps - before, starts: bounds, ..fitted })
}

/// A short run from one start, and the bound it reached.
fn short_run<'a>(
    model: &'a dyn Model,
    q: &'a Variational,
    settings: &'a FitSettings,
    start: &Start,
    (number, of): (usize, usize),
    session: &mut Session,
) -> Result<(f64, Fit<'a>, ControlFlow<()>)> {
    let mut run = Fit::init_numbered(model, q, settings, start, number as u64)?;
    let steps = if of > 1 { settings.start.steps } else { 0 };
    let flow = match steps {
        0 => ControlFlow::Continue(()),
        steps => run.phase(session, Phase::Start { number, of }, 0, steps)?,
    };
    let bound = if of > 1 {
        let samples = settings.gradient.importance;
        let bounds = BoundSettings { draws: settings.start.ranking_draws, samples, seed: settings.seed };
        objective::evaluate(model, q, (run.theta(), run.phi()), &bounds)?.importance_lower.value
    } else {
        f64::NAN
    };
    Ok((bound, run, flow))
}
