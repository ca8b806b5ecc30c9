//! The pipeline from a model to draws: a mode search, an approximation fitted in whitened coordinates, importance weights, and MCMC
//! moves.

use super::budget::{BudgetLedger, Length, Work, deadline};
use super::derived::Derived;
use super::improved::improved;
use super::integrated::{LITTLE, integrated, with_quadrature};
use super::long_chains::EVIDENCE_ERROR_MAX;
use super::method::Method;
use super::moved_draws::moved_draws;
use super::result::{CandidateSummary, Inferred, Restarts};
use super::settings::{Correction, InferSettings};
use super::stages::ascent::Starts;
use super::stages::bridge::bridge;
use super::stages::deciles::have_same_deciles;
use super::stages::gaussian::{FittedGaussian, fit_gaussian, mixture_start};
use super::stages::importance::{Source, Weighed, part_names, weigh};
use super::stages::improper::improper_latents;
use super::stages::label_swaps::exchangeable;
use super::stages::missed_modes::missed_mode;
use super::stages::missed_tail::missed_tail;
use super::stages::model_selection::{Candidate, MODES_MAX, grow, ladder};
use super::stages::pathfinder::{Mode, ModeSearch, WORSE, distinct, search};
use super::stages::resample::{StageStream, repeated};
use super::stages::resample_move::{MoveSchedule, mcmc_moves};
use super::stages::restarts::restart;
use super::stages::superchains::SuperchainRun;
use super::stages::table_start::share_tables;
use super::stages::whitened::WhitenedModel;
use super::stages::whitening::Whitening;
use crate::diagnostics::psis::VARIANCE_KHAT_MAX;
use crate::diagnostics::{Verdict, convergence};
use crate::error::{Error, Result};
use crate::fit::{Fitted, cluster};
use crate::model::{Model, Support};
use crate::objective::{self, Annealed, AnnealedSettings};
use crate::prior::Start;
use crate::session::Session;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use rand_distr::{Distribution, StandardNormal};

/// The number and length of the chains from which mixture components start.
const CHAINS: usize = 128;
const CHAIN_MOVES: usize = 30;
/// The initial spread of the parameters of discrete latents.
const SPREAD: f64 = 0.2;
/// The number of starts to compare.
const TRIES: u64 = 2;
/// The modes at which a Gaussian is fitted in a short run, and the steps of such a run.
const FITTED_MODES: usize = 4;
const SHORT: u64 = 200;
/// The maximum number of steps of a Gaussian, a mixture, a flow, and a fit with discrete latents. Windows of the stopping rule end
/// there.
const GAUSSIAN: u64 = 1600;
const MIXTURE: u64 = 3200;
const FLOW: u64 = 4800;
const MIXED: u64 = 1600;
/// How far restarts begin from the first start, in standard deviations.
const ELSEWHERE: f64 = 0.5;
/// Approximates a model's posterior and draws from it.
///
/// ```
/// use hyperprior::Quiet;
/// use hyperprior::infer::{InferSettings, Starts, infer};
/// use hyperprior::targets::Banana;
///
/// let inferred = infer(&Banana::new(), &Starts::default(), &InferSettings::default(), &mut Quiet)?;
/// assert!((inferred.bounds.log_evidence.value).abs() < 0.2); // the density is normalised
/// assert!(inferred.effective_sample_size() > 1000.0);
/// let mean = inferred.z.column(1).iter().sum::<f64>() / inferred.z.draws_len() as f64;
/// assert!(mean.abs() < 0.2);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyModel`], [`Error::BadSetting`], [`Error::BadLatent`] for a constrained continuous latent, and errors of the model,
/// the mode search and the fits.
pub fn infer<'s>(
    model: &dyn Model,
    starts: &Starts,
    settings: &InferSettings,
    session: impl Into<Session<'s>>,
) -> Result<Inferred> {
    let latents = model.latents();
    if latents.is_empty() {
        return Err(Error::EmptyModel);
    }
    if !(settings.accuracy > 0.0 && settings.accuracy.is_finite()) {
        let reason = "it must be a number of nats above 0";
        return Err(Error::BadSetting { field: "accuracy", value: settings.accuracy.to_string(), reason });
    }
    if let Some(i) =
        (0..latents.len()).find(|i| !latents.support(*i).is_discrete() && latents.support(*i) != Support::Real)
    {
        return Err(Error::BadLatent {
            name: latents.name(i),
            reason: "inference needs continuous latents on the real line; transform it and add the log of the derivative to the \
                     log density"
                .to_owned(),
        });
    }
    if settings.method == Method::Nuts && (0..latents.len()).all(|i| latents.support(i).is_discrete()) {
        let reason = "the No-U-Turn sampler needs a continuous latent";
        return Err(Error::BadSetting { field: "method", value: "nuts".to_owned(), reason });
    }
    if let Some(temperatures) = settings.annealed
        && (0..latents.len()).any(|i| !latents.support(i).is_discrete())
    {
        let reason = "its moves draw every latent from its conditional, so all latents that are fitted must be discrete; use the \
                      hierarchical or an importance-weighted bound";
        return Err(Error::BadSetting { field: "annealed", value: temperatures.to_string(), reason });
    }
    // A model with nothing but a log density gets the rest from it.
    let derived = Derived::new(model);
    let model: &dyn Model = if derived.is_needed() { &derived } else { model };
    let mut session = session.into().until(deadline(settings));
    let session = session.reborrow();
    let mut work = Work { settings, ledger: BudgetLedger::new(settings), session };
    work.session.enter("mode search");
    let found = search(model, starts, settings.seed, settings.method != Method::MeanField, &mut work.session)?;
    let ModeSearch { modes, ends, once } = found;
    if (0..latents.len()).any(|i| latents.support(i).is_discrete()) {
        let best = &modes[0];
        let own = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).map(|i| best.z[i]).collect();
        let whitening = settings.whitening(&best.whitening);
        return mixed(WhitenedModel::new(model, own, whitening), &ends, &mut work);
    }
    continuous(model, &modes, (&ends, once), &mut work)
}

/// Without discrete latents: one Gaussian first, then larger approximations if the method asks for one or the Gaussian falls short.
fn continuous(
    model: &dyn Model,
    modes: &[Mode],
    (ends, modes_once): (&Batch, usize),
    work: &mut Work,
) -> Result<Inferred> {
    let (settings, latents) = (work.settings, model.latents());
    work.session.enter("Gaussian");
    let gaussian = Method::FullRank.variational(latents)?;
    // The mode that is best by its curvature need not be the best once a Gaussian is fitted there.
    let mut fits = Vec::new();
    if !work.is_heavy(model) && modes.len() > 1 {
        for mode in modes.iter().take(FITTED_MODES) {
            fits.push(fit_gaussian(model, &gaussian, mode, Length::Fixed(SHORT), work)?);
        }
    }
    fits.sort_by(|a, b| b.mode.elbo.total_cmp(&a.mode.elbo));
    let from = fits.first().map_or(&modes[0], |fit| &fit.mode);
    let FittedGaussian { whitened, fitted, mode, has_converged } =
        fit_gaussian(model, &gaussian, from, Length::UntilConverged { most: GAUSSIAN, is_patient: false }, work)?;
    let all: Vec<usize> = (0..latents.len()).collect();
    let others = fits.into_iter().skip(1).map(|fit| fit.mode);
    let mut kept = distinct(std::iter::once(mode.clone()).chain(others), &all);
    let method = if settings.method == Method::Nuts { Method::Nuts } else { Method::FullRank };
    let mut best = Candidate { whitened, q: gaussian, fitted, has_converged, method };
    let is_gaussian = matches!(settings.method, Method::Auto | Method::Hvm | Method::FullRank | Method::Nuts);
    let is_free = settings.parts.prior.is_none();
    let mut candidates = Vec::new();
    work.session.enter("larger approximations");
    if settings.method == Method::Auto && is_free {
        // A sparse Gaussian leaves little to larger approximations of so many latents.
        let is_enough = work.is_heavy(model) || matches!(mode.whitening, Whitening::Sparse(_));
        let rising = ladder(latents.len(), kept.len(), is_enough);
        let modes_len = kept.len();
        // Any mode that the search found may be part of what one Gaussian misses.
        kept.extend(modes.iter().filter(|one| modes_len == 1 && one.elbo > mode.elbo - WORSE).cloned());
        kept.truncate(MODES_MAX);
        let fit = |best: &Candidate, q: &Variational, work: &mut Work| {
            let (start, length) = start(&best.whitened, q, &kept, settings.seed);
            work.fit(&best.whitened, q, &start, settings.seed, length)
        };
        (best, candidates) = grow(best, &rising, modes_len > 1, fit, work)?;
    } else if !(is_gaussian && is_free || best.fitted.stopped) {
        let method = if is_gaussian { Method::FullRank } else { settings.method };
        let q = method.variational_with(latents, &settings.parts)?;
        let whitened = WhitenedModel::new(model, mode.z.clone(), settings.whitening(&mode.whitening));
        let (start, length) = start(&whitened, &q, &kept, settings.seed);
        let fitted = work.fit(&whitened, &q, &start, settings.seed, length)?;
        let has_converged = convergence::has_converged(&fitted);
        best = Candidate { whitened, q, fitted, has_converged, method };
    }
    let again = |best: &Candidate, seed: u64, work: &mut Work| {
        let (mut start, length) = start(&best.whitened, &best.q, &kept, seed);
        let mut rng = StageStream::RestartStart.stream(seed, 0);
        for location in start.locations.iter_mut().flatten() {
            let away: f64 = StandardNormal.sample(&mut rng);
            *location += ELSEWHERE * away;
        }
        work.fit(&best.whitened, &best.q, &start, seed, length)
    };
    work.session.enter("restarts");
    // Superchains judge draws that are moved, wherever the fit ended. Newton's method ends where the ELBO is flat.
    let is_newton = matches!(best.whitened.place().1, Whitening::Sparse(_)) || settings.method == Method::Nuts;
    let is_judged = is_newton || settings.correct == Correction::ResampleMove;
    let restarts = if is_judged && settings.restarts.is_none() { None } else { restart(&mut best, again, work)? };
    let known: Vec<Mode> = kept.iter().chain(modes).cloned().collect();
    finish(best, (candidates, restarts), &known, (ends, modes_once), work)
}

/// Where the components of an approximation start, and when its fit ends.
fn start(whitened: &WhitenedModel<dyn Model + '_>, q: &Variational, modes: &[Mode], seed: u64) -> (Start, Length) {
    let length = |most| Length::UntilConverged { most, is_patient: true };
    let origin = || Start::at(vec![0.0; q.prior().lambda_len()], 1.0);
    match q.prior().components_len() {
        2.. => (mixture_start(whitened.place(), modes, q.prior().components_len(), seed), length(MIXTURE)),
        _ if q.prior().gaussians().is_some() => (origin(), length(GAUSSIAN)),
        _ => (origin(), length(FLOW)),
    }
}

/// With discrete latents: chains from the ends of the mode search determine where the components of the prior start.
fn mixed(whitened: WhitenedModel<dyn Model + '_>, ends: &Batch, work: &mut Work) -> Result<Inferred> {
    let settings = work.settings;
    let method = match settings.method {
        Method::Auto | Method::Nuts => Method::Hvm,
        other => other,
    };
    let q = method.variational_with(whitened.latents(), &settings.parts)?;
    work.session.enter("hierarchical model");
    let mut chains = repeated(&whitened.whiten(ends), CHAINS);
    mcmc_moves(&whitened, &mut chains, &MoveSchedule::fixed(CHAIN_MOVES), (settings.seed, 1), &mut work.session)?;
    let fit = |whitened: &WhitenedModel<dyn Model + '_>, q: &Variational, seed: u64, work: &mut Work| {
        let starts: Vec<Start> = (0..TRIES)
            .map(|t| {
                let mut rng = StageStream::ClusteredStart.stream(seed, t);
                let mut start = cluster(&chains, q, SPREAD, &mut rng);
                share_tables(&mut start, &chains, q.likelihood());
                start
            })
            .collect();
        let length = Length::UntilConverged { most: MIXED, is_patient: true };
        match work.fit_mixed(whitened, q, &starts, seed, length) {
            // Factors that know nothing of limits between the latents, such as "no more survivors than there were": the chains do, and
            // the approximation stays where they are.
            Err(Error::NotFinite { .. }) if settings.correct == Correction::ResampleMove => {
                work.fit_mixed(whitened, q, &starts, seed, Length::Fixed(1))
            }
            fitted => fitted,
        }
    };
    let fitted = fit(&whitened, &q, settings.seed, work)?;
    let has_converged = convergence::has_converged(&fitted);
    let components_len = q.prior().components_len();
    let mut best = Candidate { whitened, q, fitted, has_converged, method };
    let mut candidates = Vec::new();
    if method == Method::Hvm && settings.parts.prior.is_none() {
        let rising = match (components_len, settings.method) {
            _ if work.is_heavy(&best.whitened) => vec![],
            (1, _) => Method::larger(best.whitened.latents()),
            (_, Method::Auto) => vec![Method::Mixture(2 * components_len)],
            _ => vec![],
        };
        (best, candidates) =
            grow(best, &rising, false, |best, q, work| fit(&best.whitened, q, settings.seed, work), work)?;
    }
    work.session.enter("restarts");
    let restarts = restart(&mut best, |best, seed, work| fit(&best.whitened, &best.q, seed, work), work)?;
    finish(best, (candidates, restarts), &[], (ends, 0), work)
}

/// The annealed bound of an approximation, if the settings ask for one.
fn annealed_bound(
    model: &dyn Model,
    q: &Variational,
    fitted: &Fitted,
    settings: &InferSettings,
) -> Result<Option<Annealed>> {
    let Some(temperatures) = settings.annealed else { return Ok(None) };
    let annealing = AnnealedSettings::default().temperatures(temperatures).seed(settings.seed);
    objective::annealed(model, q, (&fitted.theta, &fitted.phi), &annealing).map(Some)
}

/// The draws of the chosen approximation, weighted, resampled and moved, with their diagnostics.
fn finish(
    best: Candidate,
    (candidates, restarts): (Vec<CandidateSummary>, Option<Restarts>),
    known: &[Mode],
    (ends, modes_once): (&Batch, usize),
    work: &mut Work,
) -> Result<Inferred> {
    let settings = work.settings;
    let Candidate { whitened, q, fitted, has_converged, method } = best;
    let (whitened, q) = (&whitened, &q);
    let ends = &whitened.whiten(ends);
    work.session.enter("importance weights");
    let mut weighed = weigh(whitened, q, &fitted, (known, work.may_replace()), settings)?;
    // Draws of other approximations do not depend on where the fit ended.
    let has_converged = if weighed.source == Source::Fitted { has_converged } else { Some(true) };
    let unmoved = matches!(whitened.place().1, Whitening::Sparse(_)).then(|| weighed.u.clone());
    let is_nuts = settings.method == Method::Nuts;
    let quadrature = integrated(whitened, (&weighed.u, None), (known, ends), LITTLE, work)?;
    let is_moved = !is_nuts && quadrature.is_none();
    let (moved, checked) = moved_draws(whitened, &mut weighed, ends, is_moved, work)?;
    let delivered = weighed.delivered(ends);
    let Weighed { ref u, psis, source, ref of_q, ref bounds, .. } = weighed;
    let bounds = bounds.clone();
    work.session.enter("missed modes and tails");
    let z = whitened.restored(u);
    let missed_mode = missed_mode(&z, bounds.log_evidence.value, known);
    let improper = improper_latents(whitened.model(), &z)?;
    let tail = |_: &SuperchainRun| missed_tail(whitened.model(), &z, bounds.log_evidence.value, settings.seed);
    let missed_tail = checked.as_ref().map(tail).transpose()?.flatten();
    let (location, whitening) = whitened.place();
    let parts = part_names(q, whitening, source);
    let (location, whitening, correct) = (location.to_vec(), whitening.clone(), settings.correct);
    let drifting = moved.map(|moved| whitened.latents().name(moved.drifting));
    let (steps, budget_record, is_stopped) = (work.ledger.used(), work.ledger.record(), work.ledger.is_stopped);
    // Of many latents the importance weights are always uneven. If the moves change no marginal, the approximation was good.
    let is_near = unmoved.is_some_and(|before| moved.is_some() && have_same_deciles(&before, u));
    let inferred = Inferred {
        z,
        moved,
        psis,
        learnt: source.components(),
        bounds,
        annealed: annealed_bound(whitened, q, &fitted, settings)?,
        method,
        parts,
        candidates,
        restarts,
        steps,
        budget_record,
        is_stopped,
        has_converged,
        fitted,
        correct,
        modes_once,
        missed_mode,
        improper,
        exchangeable: exchangeable(whitened, u, settings.seed)?,
        missed_tail,
        superchains: checked.as_ref().map(|run| run.found.clone()),
        nuts: None,
        smc: None,
        quadrature: None,
        bridge: None,
        drifting,
        location,
        whitening,
    };
    if let Some(found) = quadrature {
        return with_quadrature(inferred, whitened, found, known, settings.seed);
    }
    // Weights without a variance seldom show that an estimate of the evidence is too low; draws that chains confirm do.
    let is_uneven = inferred.psis.khat > VARIANCE_KHAT_MAX && inferred.psis.is_good();
    if checked.is_some() && (is_near || is_uneven) && inferred.verdict() == Verdict::Trust {
        let bridge = bridge(whitened, (q, &inferred.fitted), of_q, (u, inferred.effective_sample_size()))?;
        if is_near || bridge.is_some_and(|bridge| bridge.standard_error <= EVIDENCE_ERROR_MAX) {
            return Ok(Inferred { bridge, ..inferred });
        }
    }
    improved(inferred, (whitened, q, of_q), (checked.as_ref(), &delivered), known, work)
}
