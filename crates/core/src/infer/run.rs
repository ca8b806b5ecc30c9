//! The way from a model to draws: a search for the posterior, an approximation fitted in the posterior's own units, draws from it
//! and their importance weights.

use super::approximation::Method;
use super::drawn::{DRAW_STEP, draw, repeated, resampled, thinned};
use super::moves::{Moved, Until, moves};
use super::parts::Parts;
use super::search::{Found, Searched, Starts, WORSE, apart, distance, search};
use super::settle::{FLAT, among, from_start, settle};
use super::smooth::{Tail, smooth};
use super::units::Units;
use super::verdict::LeftOut;
use super::way::Way;
use super::whitened::Whitened;
use crate::bound::{BoundSettings, Bounds};
use crate::error::{Error, Result};
use crate::fit::{FitSettings, Fitted, Observer, StartSettings, cluster, fit_from};
use crate::gradient::GradientSettings;
use crate::likelihood::Likelihood;
use crate::model::{Model, Support};
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// How a posterior is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferSettings {
    /// Which approximation.
    pub method: Method,
    /// Parts of it that are chosen one by one.
    pub parts: Parts,
    /// Draws of r that tighten the bound while it is climbed; none for the hierarchical bound.
    pub importance: usize,
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// How many draws of the posterior.
    pub draws: usize,
    /// Optimisation steps; what suits the method, where none is given.
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
    /// Whether the bound had settled at the end of the fit; nothing where there were too few steps to tell.
    pub has_settled: Option<bool>,
    /// The fit.
    pub fitted: Fitted,
    /// What was done to the draws.
    pub correct: Correct,
    /// The gravest of the places that the draws should have come to and did not.
    pub left_out: Option<LeftOut>,
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
/// Models that cost more than this get fewer draws a step.
const HEAVY: usize = 50_000;
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
const MOST: RangeInclusive<usize> = 12..=200;
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
/// How many steps a Gaussian's run has otherwise.
const STEPS: u64 = 400;
/// Models with at most so many latents get a mixture where one Gaussian is not enough.
const SMALL: usize = 32;
/// Draws that tell whether it is.
const WEIGHED: usize = 4000;
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
    let Searched { found, ends } = search(model, starts, settings.seed, observer)?;
    if (0..latents.len()).any(|i| latents.support(i).is_discrete()) {
        let best = &found[0];
        let own = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).map(|i| best.z[i]).collect();
        let units = settings.units(&best.units);
        return mixed(&Whitened::new(model, own, units), &ends, settings, observer);
    }
    let gaussian = Method::FullRank.variational(latents)?;
    // A place that looks best by its curvature may be the worse one once a Gaussian has settled there.
    let mut settled = Vec::new();
    if model.work() <= HEAVY && found.len() > 1 {
        for one in found.iter().take(SETTLED) {
            settled.push(settle(model, &gaussian, one, settings, SHORT, observer)?);
        }
    }
    settled.sort_by(|a, b| b.place.elbo.total_cmp(&a.place.elbo));
    let from = settled.first().map_or(&found[0], |one| &one.place);
    let best = settle(model, &gaussian, from, settings, STEPS, observer)?;
    let all: Vec<usize> = (0..latents.len()).collect();
    let settled = settled.into_iter().skip(1).map(|one| one.place);
    let mut places = apart(std::iter::once(best.place.clone()).chain(settled), &all);
    let mut method = match settings.method {
        // More components than modes: what one Gaussian gets wrong about a mode, two get less wrong.
        Method::Auto if places.len() > 1 => Method::Mixture((2 * places.len()).clamp(4, MODES_MAX)),
        Method::Auto | Method::Hvm => Method::FullRank,
        other => other,
    };
    let is_small = latents.len() <= SMALL && model.work() <= HEAVY;
    let is_free = settings.parts.prior.is_none();
    if is_free && settings.method == Method::Auto && method == Method::FullRank && is_small && !best.fitted.stopped {
        let mut log_weights = draw(&best.near, &gaussian, &best.fitted, WEIGHED, settings.seed)?.1;
        let tail = smooth(&mut log_weights);
        if tail.khat > tail.limit {
            // One Gaussian is not enough. Whatever the search found may be a part of what it lacks.
            places.extend(found.iter().filter(|one| one.elbo > best.place.elbo - WORSE).cloned());
            places.truncate(MODES_MAX);
            method = Method::Mixture(MODES_MAX);
        }
    }
    if best.fitted.stopped {
        method = Method::FullRank;
    }
    let known: Vec<Found> = places.iter().chain(&found).cloned().collect();
    if method == Method::FullRank && is_free {
        let inferred = finish(&best.near, &gaussian, (best.fitted, best.has_settled), method, settings, observer)?;
        return Ok(inferred.beside(&known));
    }
    let q = method.variational_with(latents, &settings.parts)?;
    let near = Whitened::new(model, best.place.z.clone(), settings.units(&best.place.units));
    let (start, steps) = match q.prior().components_len() {
        2.. => (among(&places, q.prior().components_len(), settings.seed), 2000),
        _ => (Start::at(vec![0.0; q.prior().lambda_len()], 1.0), 3000),
    };
    let fitted = from_start(&near, &q, &start, settings, steps, observer)?;
    let has_settled = Way { elbo: &fitted.history, flat: FLAT }.has_settled();
    Ok(finish(&near, &q, (fitted, has_settled), method, settings, observer)?.beside(&known))
}

/// With discrete latents left: chains from where the search ended say where the components of the prior are to start.
fn mixed(
    near: &Whitened<dyn Model + '_>,
    ends: &Batch,
    settings: &InferSettings,
    observer: &mut dyn Observer,
) -> Result<Inferred> {
    let method = match settings.method {
        Method::Auto => Method::Hvm,
        other => other,
    };
    let q = method.variational_with(near.latents(), &settings.parts)?;
    let mut chains = repeated(&near.whiten(ends), CHAINS);
    moves(near, &mut chains, &Until::rounds(CHAIN_ROUNDS), (settings.seed, 1), observer)?;
    let starts: Vec<Start> = (0..TRIES)
        .map(|t| {
            let mut rng = stream(settings.seed, DRAW_STEP, u64::MAX - 1, t);
            let mut start = cluster(&chains, &q, SPREAD, &mut rng);
            share_tables(&mut start, &chains, q.likelihood());
            start
        })
        .collect();
    let draws = if near.work() > HEAVY { 8 } else { 16 };
    let fit_settings = FitSettings {
        seed: settings.seed,
        steps: settings.steps.unwrap_or(1500),
        step_size: settings.step_size.unwrap_or(FitSettings::default().step_size),
        flat: FLAT,
        gradient: GradientSettings { draws, importance: settings.importance, ..GradientSettings::default() },
        start: StartSettings { tries: starts.len(), steps: 200, ..StartSettings::default() },
        ..FitSettings::default()
    };
    let fitted = fit_from(near, &q, &fit_settings, &starts, observer)?;
    let has_settled = Way { elbo: &fitted.history, flat: FLAT }.has_settled();
    finish(near, &q, (fitted, has_settled), method, settings, observer)
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

fn finish(
    near: &Whitened<dyn Model + '_>,
    q: &Variational,
    (fitted, has_settled): (Fitted, Option<bool>),
    method: Method,
    settings: &InferSettings,
    observer: &mut dyn Observer,
) -> Result<Inferred> {
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
        moved = Some(moves(near, &mut u, &until(near, settings, &tail), (settings.seed, 0), observer)?);
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
    Ok(Inferred { z, moved, tail, bounds, method, parts, has_settled, fitted, correct, left_out, location, units })
}

/// How long draws are moved: until they have forgotten enough of where they were, and at most as often as the model's size allows.
fn until(model: &dyn Model, settings: &InferSettings, tail: &Tail) -> Until {
    if let Some(rounds) = settings.rounds {
        return Until::rounds(rounds);
    }
    // A Hamiltonian move takes some four gradients, each about three evaluations' worth.
    let each = 12.0 * model.work() as f64 * settings.draws.max(DRAWS) as f64;
    let rounds = [(WORK[0] / each, LEAST), (WORK[1] / each, MOST)];
    let rounds = rounds.map(|(x, range)| (x as usize).clamp(*range.start(), *range.end()));
    // Weights that are worth W draws leave errors of 1/√W standard deviations, of which the moves leave what is remembered.
    let memory = if tail.khat <= tail.limit { (ERROR * tail.ess.sqrt()).min(MEMORY) } else { FORGOTTEN };
    Until { rounds, memory }
}
