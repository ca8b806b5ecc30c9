//! The way from a model to draws: a search for the posterior, an approximation fitted in the posterior's own units, draws from it
//! and their importance weights.

use super::approximation::{Method, covariance};
use super::candidate::{Candidate, Restarts, Rung, rhat, weigh};
use super::course::{Course, Length, Timed, Within, Work};
use super::drawn::{DRAW_STEP, draw, repeated, resampled, thinned};
use super::moves::{Moved, Until, moves};
use super::parts::Parts;
use super::search::{Found, Searched, Starts, WORSE, apart, distance, search};
use super::settle::{Settled, among, settle};
use super::smooth::{Tail, smooth};
use super::units::Units;
use super::verdict::LeftOut;
use super::way::has_settled as has_settled_of;
use super::whitened::Whitened;
use crate::bound::{BoundSettings, Bounds};
use crate::error::{Error, Result};
use crate::fit::{Fitted, Observer, cluster};
use crate::likelihood::Likelihood;
use crate::model::{Model, Support};
use crate::prior::{Covariance, Start};
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How a posterior is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferSettings {
    /// Which approximation. `Auto` tries larger ones for as long as the bound gains.
    pub method: Method,
    /// The nats of the bound that may be left: what a larger approximation has to gain to be kept, and, for a fifth of it, what more
    /// steps would have to gain.
    pub accuracy: f64,
    /// The seconds after which nothing is begun that could be left out, and fits end as they are; what the draws then cost comes on
    /// top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// What was done before the budget was spent, to end at the same step again. With it the clock is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// How often the approximation is fitted, from different starts; where nothing is said, twice, or once where that takes long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<usize>,
    /// Parts of it that are chosen one by one.
    pub parts: Parts,
    /// Draws of r that tighten the bound while it is climbed; none for the hierarchical bound.
    pub importance: usize,
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// How many draws of the posterior.
    pub draws: usize,
    /// Optimisation steps of a fit; where none is given, it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// What is done to the draws of the approximation.
    pub correct: Correct,
    /// The size of a step at the beginning, in the posterior's own units; what suits the method, where none is given.
    pub step_size: Option<f64>,
    /// How often each draw moves; until it has forgotten where it was, where nothing is said.
    pub rounds: Option<usize>,
}

/// What is done to draws of an approximation to bring them nearer to the posterior.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correct {
    /// Nothing: they are the approximation's own.
    Nothing,
    /// They are resampled by their smoothed importance weights.
    Weights,
    /// They are resampled, and then each makes moves that leave the posterior as it is.
    #[default]
    Moves,
}

impl Default for InferSettings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            accuracy: ACCURACY,
            budget: None,
            within: None,
            restarts: None,
            parts: Parts::default(),
            importance: 0,
            seed: 1,
            draws: DRAWS,
            steps: None,
            step_size: None,
            correct: Correct::default(),
            rounds: None,
        }
    }
}

impl InferSettings {
    /// The units to fit in. Where every latent is to be on its own, units that turn would bring the dependence back in.
    fn units(&self, found: &Units) -> Units {
        match self.method {
            Method::MeanField if self.parts.prior.is_none() => found.diagonal(),
            _ => found.clone(),
        }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// Draws of the model's latents.
    pub z: Batch,
    /// What the moves did, where there were any.
    pub moved: Option<Moved>,
    /// What the importance weights of the approximation's draws say.
    pub tail: Tail,
    /// The bounds.
    pub bounds: Bounds,
    /// The method.
    pub method: Method,
    /// Its parts in words: likelihood, prior, r.
    pub parts: [String; 3],
    /// The approximations that were tried, where there was a choice.
    pub rungs: Vec<Rung>,
    /// How far fits from different starts agree, where there were any.
    pub restarts: Option<Restarts>,
    /// Steps of all fits.
    pub steps: u64,
    /// What was done before the budget was spent, where it was.
    pub within: Option<Within>,
    /// Whether someone stopped what came after the fit: larger approximations, fits from other starts.
    pub is_stopped: bool,
    /// Whether the bound had settled at the end of the fit; nothing where there were too few steps to tell.
    pub has_settled: Option<bool>,
    /// The fit.
    pub fitted: Fitted,
    /// What was done to the draws.
    pub correct: Correct,
    /// The gravest of the places that the draws should have come to and did not.
    pub left_out: Option<LeftOut>,
    /// The latent whose tails the moves changed last.
    pub drifting: Option<String>,
    /// What the continuous latents were fitted in: z = location + units · u.
    pub location: Vec<f64>,
    /// Those units.
    pub units: Units,
}

impl Inferred {
    /// How many independent draws of the posterior these draws are worth: errors that the weights had are forgotten as the draws
    /// move.
    pub fn worth(&self) -> f64 {
        let memory = self.moved.map_or(1.0, |moved| moved.memory);
        1.0 / (1.0 / self.z.draws_len() as f64 + memory * memory / self.tail.ess.max(1.0))
    }

    /// Looks at the places that a search found: each has at least as much of the posterior as its Gaussian's bound says, and that
    /// many of the draws should be there.
    fn beside(mut self, places: &[Found]) -> Self {
        let top = self.bounds.log_evidence.value.max(places.iter().map(|p| p.elbo).fold(f64::NEG_INFINITY, f64::max));
        let all: Vec<usize> = (0..self.z.columns_len()).collect();
        let len = self.z.draws_len();
        let mut z = vec![0.0; all.len()];
        for place in places {
            let share = (place.elbo - top).exp();
            if share < SHARE_MIN {
                continue;
            }
            let mut there = 0;
            for s in 0..len {
                z.iter_mut().enumerate().for_each(|(i, z)| *z = self.z.get(i, s));
                there += usize::from(distance(place, &z, &all) <= THERE);
            }
            let drawn = there as f64 / len as f64;
            // Where no draw is there, the evidence is of the rest.
            let share = if drawn < FEW * share { 1.0 / (1.0 + (top - place.elbo).exp()) } else { share };
            let is_graver = self.left_out.as_ref().is_none_or(|graver| share - drawn > graver.share - graver.drawn);
            if drawn < FEW * share && is_graver {
                self.left_out = Some(LeftOut { share, drawn, z: place.z.clone() });
            }
        }
        self
    }
}

/// Chains that say where components start, and how long they run.
const CHAINS: usize = 128;
const CHAIN_ROUNDS: usize = 30;
/// How far the parameters of discrete latents are spread at the start, and those of tables.
const SPREAD: f64 = 0.2;
const NARROW: f64 = 0.05;
/// Starts that are tried.
const TRIES: u64 = 2;
/// Places with less of the posterior than this are not missed; draws within so many standard deviations per latent are there; and
/// fewer than this part of what a place should have are too few.
const SHARE_MIN: f64 = 0.02;
const THERE: f64 = 3.0;
const FEW: f64 = 0.2;
/// How many draws there are where nobody says.
const DRAWS: usize = 4000;
/// The work of moves that nobody notices, and of those that nobody waits for; and how few and how many moves each may mean.
const WORK: [f64; 2] = [5e8, 6e9];
const LEAST: RangeInclusive<usize> = 1..=20;
const MOST: RangeInclusive<usize> = 12..=1000;
/// The error, in standard deviations, that may be left of those that the weights have; what a latent may remember at most, that
/// draws which were resampled together part; and where the weights tell nothing.
const ERROR: f64 = 0.005;
const MEMORY: f64 = 0.3;
const FORGOTTEN: f64 = 0.1;
/// The most Gaussians that a mixture gets by itself.
const MODES_MAX: usize = 8;
/// Places at which a Gaussian is fitted for a while, and how many steps a run there has.
const SETTLED: usize = 4;
const SHORT: u64 = 200;
/// The most steps, at which whole windows end: of a Gaussian's run, of a mixture's, of a flow's, and of what is fitted to discrete latents.
const GAUSSIAN: u64 = 1600;
const MIXTURE: u64 = 3200;
const FLOW: u64 = 4800;
const MIXED: u64 = 1600;
/// Models with at most so many latents get a mixture where one Gaussian is not enough.
const SMALL: usize = 32;
/// How often an approximation is fitted, and how far from the first start the others are.
const RESTARTS: usize = 2;
const ELSEWHERE: f64 = 0.5;
/// The accuracy where nobody says: a gap of half a nat leaves weights that mend what the approximation lacks.
const ACCURACY: f64 = 0.5;
/// Draws that are weighed for each one that is kept.
pub const OVERSAMPLED: usize = 4;

/// Finds an approximation of a model's posterior and draws from it.
///
/// ```
/// use hyperprior::fit::Quiet;
/// use hyperprior::infer::{InferSettings, Starts, infer};
/// use hyperprior::model::graph::{GraphBuilder, Law};
///
/// // Seven heads in ten throws of a coin.
/// let mut g = GraphBuilder::new();
/// let (one, ten) = (g.constant(1.0), g.constant(10.0));
/// let bias = g.stochastic("bias", Law::Beta { a: one, b: one }, None, None)?;
/// g.stochastic("heads", Law::Binomial { p: bias, n: ten }, None, Some(7.0))?;
/// let model = g.build()?.model()?;
/// let found = infer(&model, &Starts::of(&model, 1)?, &InferSettings::default(), &mut Quiet)?;
/// let draws = model.complete(&found.z, &model.quantities(), 1)?;
/// let mean = draws.column(0).iter().sum::<f64>() / 4000.0;
/// assert!((mean - 8.0 / 12.0).abs() < 0.01);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// What the model, the search and the fit say.
pub fn infer(
    model: &dyn Model,
    starts: &Starts,
    settings: &InferSettings,
    observer: &mut dyn Observer,
) -> Result<Inferred> {
    let latents = model.latents();
    if latents.is_empty() {
        return Err(Error::EmptyModel);
    }
    if !(settings.accuracy > 0.0 && settings.accuracy.is_finite()) {
        let reason = "it is a number of nats above 0";
        return Err(Error::BadSetting { field: "accuracy", value: settings.accuracy.to_string(), reason });
    }
    let mut observer = Timed::new(observer, settings);
    let mut work = Work { settings, course: Course::new(settings), observer: &mut observer };
    let Searched { found, ends } = search(model, starts, settings.seed, work.observer)?;
    if (0..latents.len()).any(|i| latents.support(i).is_discrete()) {
        let best = &found[0];
        let own = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).map(|i| best.z[i]).collect();
        let units = settings.units(&best.units);
        return mixed(Whitened::new(model, own, units), &ends, &mut work);
    }
    continuous(model, &found, &mut work)
}

/// Without discrete latents: one Gaussian first, and what is larger where that is wanted or lacks something.
fn continuous(model: &dyn Model, found: &[Found], work: &mut Work) -> Result<Inferred> {
    let (settings, latents) = (work.settings, model.latents());
    let gaussian = Method::FullRank.variational(latents)?;
    // A place that looks best by its curvature may be the worse one once a Gaussian has settled there.
    let mut settled = Vec::new();
    if !work.is_heavy(model) && found.len() > 1 {
        for one in found.iter().take(SETTLED) {
            settled.push(settle(model, &gaussian, one, Length::Fixed(SHORT), work)?);
        }
    }
    settled.sort_by(|a, b| b.place.elbo.total_cmp(&a.place.elbo));
    let from = settled.first().map_or(&found[0], |one| &one.place);
    let Settled { near, fitted, place, has_settled } =
        settle(model, &gaussian, from, Length::ByItself { most: GAUSSIAN, is_patient: false }, work)?;
    let all: Vec<usize> = (0..latents.len()).collect();
    let settled = settled.into_iter().skip(1).map(|one| one.place);
    let mut places = apart(std::iter::once(place.clone()).chain(settled), &all);
    let mut best = Candidate { near, q: gaussian, fitted, has_settled, method: Method::FullRank };
    let is_gaussian = matches!(settings.method, Method::Auto | Method::Hvm | Method::FullRank);
    let is_free = settings.parts.prior.is_none();
    let mut rungs = Vec::new();
    if settings.method == Method::Auto && is_free {
        let rising = ladder(latents.len(), places.len(), work.is_heavy(model));
        let modes_len = places.len();
        // Whatever the search found may be a part of what one Gaussian lacks.
        places.extend(found.iter().filter(|one| modes_len == 1 && one.elbo > place.elbo - WORSE).cloned());
        places.truncate(MODES_MAX);
        let fit = |best: &Candidate, q: &Variational, work: &mut Work| {
            let (start, length) = start(&best.near, q, &places, settings.seed);
            work.fit(&best.near, q, &start, settings.seed, length)
        };
        (best, rungs) = grow(best, &rising, modes_len > 1, fit, work)?;
    } else if !(is_gaussian && is_free || best.fitted.stopped) {
        let method = if is_gaussian { Method::FullRank } else { settings.method };
        let q = method.variational_with(latents, &settings.parts)?;
        let near = Whitened::new(model, place.z.clone(), settings.units(&place.units));
        let (start, length) = start(&near, &q, &places, settings.seed);
        let fitted = work.fit(&near, &q, &start, settings.seed, length)?;
        let has_settled = has_settled_of(&fitted);
        best = Candidate { near, q, fitted, has_settled, method };
    }
    let again = |best: &Candidate, seed: u64, work: &mut Work| {
        let (mut start, length) = start(&best.near, &best.q, &places, seed);
        let mut rng = stream(seed, DRAW_STEP, u64::MAX - 3, 0);
        for location in start.locations.iter_mut().flatten() {
            let away: f64 = StandardNormal.sample(&mut rng);
            *location += ELSEWHERE * away;
        }
        work.fit(&best.near, &best.q, &start, seed, length)
    };
    let restarts = restart(&mut best, again, work)?;
    let known: Vec<Found> = places.iter().chain(found).cloned().collect();
    Ok(finish(best, rungs, restarts, work)?.beside(&known))
}

/// Where the components of an approximation start, and how long its fit is.
fn start(near: &Whitened<dyn Model + '_>, q: &Variational, places: &[Found], seed: u64) -> (Start, Length) {
    let length = |most| Length::ByItself { most, is_patient: true };
    let origin = || Start::at(vec![0.0; q.prior().lambda_len()], 1.0);
    match q.prior().components_len() {
        2.. => (among(near.place(), places, q.prior().components_len(), seed), length(MIXTURE)),
        _ if q.prior().gaussians().is_some() => (origin(), length(GAUSSIAN)),
        _ => (origin(), length(FLOW)),
    }
}

/// The approximations above one Gaussian that are worth a try, each larger than those before it.
fn ladder(latents_len: usize, modes_len: usize, is_heavy: bool) -> Vec<Method> {
    let mut rising = Vec::new();
    if modes_len > 1 {
        // More components than modes: what one Gaussian gets wrong about a mode, two get less wrong.
        rising.push(Method::Mixture((2 * modes_len).clamp(4, MODES_MAX)));
    }
    match latents_len {
        _ if is_heavy => {}
        0..=SMALL => {
            rising.extend([Method::Mixture(MODES_MAX), Method::Copula(4)]);
            rising.dedup();
        }
        _ if covariance(latents_len) == Covariance::Full => rising.push(Method::Copula(4)),
        _ => rising.push(Method::LowRank(8)),
    }
    rising
}

/// Tries larger approximations for as long as the bound has more to gain than the accuracy that was asked for, and keeps the best.
/// With `modes` the first is one that nothing but a look at all of them can judge.
fn grow<'a>(
    mut best: Candidate<'a>,
    rising: &[Method],
    modes: bool,
    fit: impl Fn(&Candidate, &Variational, &mut Work) -> Result<Fitted>,
    work: &mut Work,
) -> Result<(Candidate<'a>, Vec<Rung>)> {
    let (seed, accuracy) = (work.settings.seed, work.settings.accuracy);
    let mut weighed = best.weighed(seed)?;
    let mut rungs = vec![best.rung(&weighed)];
    for (rank, method) in rising.iter().enumerate() {
        let is_needed = weighed.headroom() > accuracy || modes && rank == 0;
        if !is_needed || best.fitted.stopped || work.is_over()? {
            break;
        }
        let q = method.variational_with(best.near.latents(), &work.settings.parts)?;
        let fitted = match fit(&best, &q, work) {
            Ok(fitted) => fitted,
            // What cannot be fitted is no better.
            Err(Error::NotFinite { .. } | Error::GradientNotFinite { .. }) => continue,
            Err(error) => return Err(error),
        };
        if fitted.stopped {
            break;
        }
        let next = weigh(&best.near, &q, &fitted, seed)?;
        rungs.push(Rung { method: *method, elbo: next.elbo, khat: next.tail.khat, steps: fitted.steps });
        let is_nearer = !weighed.tail.is_good() && next.tail.khat < weighed.tail.khat && next.elbo > weighed.elbo;
        let is_enough = next.headroom() <= accuracy && next.elbo > weighed.elbo;
        if next.elbo > weighed.elbo + accuracy || is_nearer || is_enough {
            let has_settled = has_settled_of(&fitted);
            best = Candidate { near: best.near, q, fitted, has_settled, method: *method };
            weighed = next;
        }
    }
    Ok((best, rungs))
}

/// Fits the same approximation again from other starts. The best is kept.
fn restart(
    best: &mut Candidate,
    again: impl Fn(&Candidate, u64, &mut Work) -> Result<Fitted>,
    work: &mut Work,
) -> Result<Option<Restarts>> {
    let (seed, accuracy) = (work.settings.seed, work.settings.accuracy);
    let usual = if work.is_heavy(&best.near) { 1 } else { RESTARTS };
    let wanted = work.settings.restarts.unwrap_or(usual);
    if wanted < 2 || work.course.is_stopped {
        return Ok(None);
    }
    let mut weighed = vec![best.weighed(seed)?];
    for number in 1..wanted {
        if work.is_over()? {
            break;
        }
        let fitted = match again(best, stream(seed, DRAW_STEP, u64::MAX - 2, number as u64).random(), work) {
            Ok(fitted) => fitted,
            Err(Error::NotFinite { .. } | Error::GradientNotFinite { .. }) => continue,
            Err(error) => return Err(error),
        };
        if fitted.stopped {
            break;
        }
        let next = weigh(&best.near, &best.q, &fitted, seed)?;
        if next.elbo > weighed[0].elbo {
            best.has_settled = has_settled_of(&fitted);
            best.fitted = fitted;
            weighed.insert(0, next);
        } else {
            weighed.push(next);
        }
    }
    if weighed.len() < 2 {
        return Ok(None);
    }
    let elbo: Vec<f64> = weighed.iter().map(|one| one.elbo).collect();
    // One that ended much lower says nothing of the posterior.
    let close: Vec<Batch> = weighed.into_iter().filter(|one| one.elbo > elbo[0] - accuracy).map(|one| one.u).collect();
    let (rhat, latent) = rhat(&close);
    let rhat = (close.len() > 1).then_some(rhat);
    Ok(Some(Restarts { elbo, rhat, latent: best.near.latents().name(latent) }))
}

/// With discrete latents left: chains from where the search ended say where the components of the prior are to start.
fn mixed(near: Whitened<dyn Model + '_>, ends: &Batch, work: &mut Work) -> Result<Inferred> {
    let settings = work.settings;
    let method = match settings.method {
        Method::Auto => Method::Hvm,
        other => other,
    };
    let q = method.variational_with(near.latents(), &settings.parts)?;
    let mut chains = repeated(&near.whiten(ends), CHAINS);
    moves(&near, &mut chains, &Until::rounds(CHAIN_ROUNDS), (settings.seed, 1), work.observer)?;
    let fit = |near: &Whitened<dyn Model + '_>, q: &Variational, seed: u64, work: &mut Work| {
        let starts: Vec<Start> = (0..TRIES)
            .map(|t| {
                let mut rng = stream(seed, DRAW_STEP, u64::MAX - 1, t);
                let mut start = cluster(&chains, q, SPREAD, &mut rng);
                share_tables(&mut start, &chains, q.likelihood());
                start
            })
            .collect();
        work.fit_mixed(near, q, &starts, seed, Length::ByItself { most: MIXED, is_patient: true })
    };
    let fitted = fit(&near, &q, settings.seed, work)?;
    let has_settled = has_settled_of(&fitted);
    let components_len = q.prior().components_len();
    let mut best = Candidate { near, q, fitted, has_settled, method };
    let mut rungs = Vec::new();
    if settings.method == Method::Auto && settings.parts.prior.is_none() {
        let rising = if work.is_heavy(&best.near) { vec![] } else { vec![Method::Mixture(2 * components_len)] };
        (best, rungs) = grow(best, &rising, false, |best, q, work| fit(&best.near, q, settings.seed, work), work)?;
    }
    let restarts = restart(&mut best, |best, seed, work| fit(&best.near, &best.q, seed, work), work)?;
    finish(best, rungs, restarts, work)
}

/// Latents with a table of their own start with the chains' frequencies, in every component: a chain that happens to be at one
/// value says little about where a component's table should be.
fn share_tables(start: &mut Start, chains: &Batch, likelihood: &dyn Likelihood) {
    for i in 0..likelihood.latents_len() {
        let range = likelihood.lambda_range(i);
        let Support::Integers { lower: 0.0, upper } = likelihood.support(i) else { continue };
        // A table's parameters are the logits of all values but the first.
        if range.len() < 2 || range.len() != upper as usize {
            continue;
        }
        let mut counts = vec![0.5_f64; range.len() + 1];
        for z in chains.column(i) {
            counts[*z as usize] += 1.0;
        }
        for (location, scale) in start.locations.iter_mut().zip(&mut start.scales) {
            for (v, at) in range.clone().enumerate() {
                location[at] = (counts[v + 1] / counts[0]).ln();
                scale[at] = NARROW;
            }
        }
        start.covariances.fill(None);
    }
}

fn finish(best: Candidate, rungs: Vec<Rung>, restarts: Option<Restarts>, work: &mut Work) -> Result<Inferred> {
    let settings = work.settings;
    let Candidate { near, q, fitted, has_settled, method } = best;
    let (near, q) = (&near, &q);
    let bounds = fitted.bounds(near, q, &BoundSettings { seed: settings.seed, ..BoundSettings::default() })?;
    // The shares of far-apart modes come from the weights alone, so that there are more draws to weigh than to keep.
    let (drawn, mut log_weights) = draw(near, q, &fitted, settings.draws * OVERSAMPLED, settings.seed)?;
    let tail = smooth(&mut log_weights);
    let mut u = match settings.correct {
        Correct::Nothing => thinned(&drawn, settings.draws),
        Correct::Weights | Correct::Moves => resampled(&drawn, &log_weights, settings.draws),
    };
    let mut moved = None;
    if settings.correct == Correct::Moves {
        let until = until(near, settings, &tail, work.course.is_spent());
        moved = Some(moves(near, &mut u, &until, (settings.seed, 0), work.observer)?);
    }
    let mut z = Batch::zeros(u.columns_len(), u.draws_len());
    near.restore(&u, &mut z);
    let mut factors: Vec<&str> = Vec::new();
    for i in 0..q.likelihood().latents_len() {
        let name = q.likelihood().factor_name(i);
        if !factors.contains(&name) {
            factors.push(name);
        }
    }
    let parts = [factors.join(" and "), q.prior().name(), q.recursive().name()];
    let (location, units) = near.place();
    let (location, units, correct) = (location.to_vec(), units.clone(), settings.correct);
    let left_out = None;
    let drifting = moved.map(|moved| near.latents().name(moved.drifting));
    let (steps, within, is_stopped) = (work.course.used(), work.course.within(), work.course.is_stopped);
    Ok(Inferred {
        z,
        moved,
        tail,
        bounds,
        method,
        parts,
        rungs,
        restarts,
        steps,
        within,
        is_stopped,
        has_settled,
        fitted,
        correct,
        left_out,
        drifting,
        location,
        units,
    })
}

/// How long draws are moved: until they have forgotten enough of where they were, and at most as often as the model's size allows.
fn until(model: &dyn Model, settings: &InferSettings, tail: &Tail, is_spent: bool) -> Until {
    if let Some(rounds) = settings.rounds {
        return Until::rounds(rounds);
    }
    // A Hamiltonian move takes some four gradients, each about three evaluations' worth.
    let each = 12.0 * model.work() as f64 * settings.draws.max(DRAWS) as f64;
    let rounds = [(WORK[0] / each, LEAST), (WORK[1] / each, MOST)];
    let rounds = rounds.map(|(x, range)| (x as usize).clamp(*range.start(), *range.end()));
    // Weights that are worth W draws leave errors of 1/√W standard deviations, of which the moves leave what is remembered.
    let rounds = if is_spent { [rounds[0]; 2] } else { rounds };
    let memory = if tail.is_good() { (ERROR * tail.ess.sqrt()).min(MEMORY) } else { FORGOTTEN };
    Until { rounds, memory }
}
