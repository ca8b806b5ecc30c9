//! The way from a model to draws: a search for the posterior, an approximation fitted in the posterior's own units, draws from it
//! and their importance weights.

use super::approximation::Method;
use super::moves::{Moved, moves};
use super::search::{Found, Searched, Starts, WORSE, apart, search};
use super::smooth::{Tail, smooth};
use super::whitened::{Units, Whitened};
use crate::bound::{BoundSettings, Bounds};
use crate::error::{Error, Result};
use crate::fit::{Fit, FitSettings, Fitted, Observer, Progress, StartSettings, cluster, fit_from};
use crate::gradient::{GradientSettings, Pass};
use crate::likelihood::Likelihood;
use crate::model::{Model, Support};
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// How a posterior is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferSettings {
    /// Which approximation.
    pub method: Method,
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// How many draws of the posterior.
    pub draws: usize,
    /// Optimisation steps; what suits the method, where none is given.
    pub steps: Option<u64>,
    /// What is done to the draws of the approximation.
    pub correct: Correct,
    /// How often each draw moves; as often as the model's size allows, where nothing is said.
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
        Self { method: Method::Auto, seed: 1, draws: DRAWS, steps: None, correct: Correct::default(), rounds: None }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// Draws of the model's latents.
    pub z: Batch,
    /// What the moves did, where there were any.
    pub moved: Option<Moved>,
    /// What those weights say.
    pub tail: Tail,
    /// The bounds.
    pub bounds: Bounds,
    /// The method.
    pub method: Method,
    /// Its parts in words: likelihood, prior, r.
    pub parts: [String; 3],
    /// The fit.
    pub fitted: Fitted,
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
/// How many draws there are where nobody says.
const DRAWS: usize = 4000;
/// How often each draw moves at least and at most, and the work that all the moves together may take.
const ROUNDS: std::ops::RangeInclusive<usize> = 12..=200;
const WORK: f64 = 6e9;
/// The most Gaussians that a mixture gets by itself.
const MODES_MAX: usize = 8;
/// How often a Gaussian is fitted anew, and by how many nats its bound must be rising for that.
const RUNS: usize = 16;
const RISING: f64 = 0.5;
/// Runs that may end no higher than the one before, by this many nats, before that is the end.
const PATIENCE: usize = 2;
const HIGHER: f64 = 0.1;
/// Places at which a Gaussian is fitted for a while, and how many steps a run there has.
const SETTLED: usize = 4;
const SHORT: u64 = 200;
/// Models with at most so many latents get a mixture where one Gaussian is not enough.
const SMALL: usize = 32;
/// Draws that tell whether it is.
const WEIGHED: usize = 4000;
/// Draws that are weighed for each one that is kept.
const OVERSAMPLED: usize = 4;
/// Draws per block when the posterior is drawn.
const BLOCK: usize = 64;
/// Streams of draws are apart from all others.
const DRAW_STEP: u64 = u64::MAX - 5;

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
    let Searched { found, ends } = search(model, starts, settings.seed)?;
    if (0..latents.len()).any(|i| latents.support(i).is_discrete()) {
        let best = &found[0];
        let own = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).map(|i| best.z[i]).collect();
        return mixed(&Whitened::new(model, own, best.units.clone()), &ends, settings, observer);
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
    let best = settle(model, &gaussian, from, settings, 1000, observer)?;
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
    if settings.method == Method::Auto && method == Method::FullRank && is_small && !best.fitted.stopped {
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
    if method == Method::FullRank {
        return finish(&best.near, &gaussian, best.fitted, method, settings);
    }
    let q = method.variational(latents)?;
    let near = Whitened::new(model, best.place.z.clone(), best.place.units.clone());
    let (start, steps) = match method {
        Method::Mixture(components_len) => (among(&places, components_len, settings.seed), 2000),
        _ => (Start::at(vec![0.0; q.prior().lambda_len()], 1.0), 3000),
    };
    let fitted = from_start(&near, &q, &start, settings, steps, observer)?;
    finish(&near, &q, fitted, method, settings)
}

/// A Gaussian that no longer moves.
struct Settled<'a> {
    /// The units that it was last fitted in, and the fit.
    near: Whitened<'a, dyn Model + 'a>,
    fitted: Fitted,
    /// Where it is in the model's own units.
    place: Found,
}

/// Fits one Gaussian, and again in its own units for as long as it is still on its way: the units of the first guess may be too
/// small to get far in.
fn settle<'a>(
    model: &'a dyn Model,
    gaussian: &Variational,
    from: &Found,
    settings: &InferSettings,
    steps: u64,
    observer: &mut dyn Observer,
) -> Result<Settled<'a>> {
    let origin = Start::at(vec![0.0; from.z.len()], 1.0);
    let mut near = Whitened::new(model, from.z.clone(), from.units.clone());
    let (mut run, mut reached, mut idle) = (1, f64::NEG_INFINITY, 0);
    loop {
        let mut way = Way { inner: observer, elbo: Vec::new() };
        let fitted = from_start(&near, gaussian, &origin, settings, steps, &mut way)?;
        let (z, units) = near.compose(gaussian, &fitted.theta);
        // Steps that shrink make a bound rise by themselves; a run got somewhere only if it ended higher than those before it.
        idle = if way.last() > reached + HIGHER { 0 } else { idle + 1 };
        reached = reached.max(way.last());
        if fitted.stopped || run == RUNS || !way.is_on_its_way() || idle == PATIENCE {
            let place = Found { z, units, elbo: way.last() };
            return Ok(Settled { near, fitted, place });
        }
        near = Whitened::new(model, z, units);
        run += 1;
    }
}

/// Watches whether a bound is still rising.
struct Way<'a> {
    inner: &'a mut dyn Observer,
    elbo: Vec<f64>,
}

impl Way<'_> {
    /// The mean bound of one fifth of the way.
    fn fifth(&self, number: usize) -> f64 {
        let len = (self.elbo.len() / 5).max(1);
        let part = self.elbo.iter().skip(number * len).take(len);
        part.sum::<f64>() / len as f64
    }

    /// The bound at the end.
    fn last(&self) -> f64 {
        self.fifth(4)
    }

    /// Whether the bound of the last fifth is well above that of the second fifth.
    fn is_on_its_way(&self) -> bool {
        self.elbo.len() >= 5 && self.fifth(4) - self.fifth(1) > RISING
    }
}

impl Observer for Way<'_> {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.elbo.push(progress.estimate.elbo);
        self.inner.observe(progress)
    }
}

/// The places that were found, in the units of the best; where more components are wanted than there are places, the others
/// stand near them.
fn among(found: &[Found], components_len: usize, seed: u64) -> Start {
    let mut rng = stream(seed, DRAW_STEP, u64::MAX, 0);
    let best = &found[0];
    let (n, centre) = (best.z.len(), &best.z);
    let outer = |i: usize, j: usize| best.units.get(i, j);
    let solve = |mut x: Vec<f64>| {
        for i in 0..n {
            let taken: f64 = (0..i).map(|k| outer(i, k) * x[k]).sum();
            x[i] = (x[i] - taken) / outer(i, i);
        }
        x
    };
    let mut start = Start { locations: Vec::new(), scales: Vec::new(), covariances: Vec::new() };
    for k in 0..components_len {
        let one = &found[k % found.len()];
        let place = &one.z;
        if let (Units::Diagonal(outer), Units::Diagonal(inner)) = (&best.units, &one.units) {
            let away = |i: usize, rng: &mut Stream| -> f64 {
                let normal: f64 = StandardNormal.sample(rng);
                if k < found.len() { 0.0 } else { inner[i] * normal }
            };
            let location = (0..n).map(|i| (place[i] - centre[i] + away(i, &mut rng)) / outer[i]).collect();
            start.locations.push(location);
            start.scales.push((0..n).map(|i| inner[i] / outer[i]).collect());
            start.covariances.push(None);
            continue;
        }
        // L⁻¹ M column by column; its rows give the covariance.
        let columns: Vec<Vec<f64>> = (0..n).map(|j| solve((0..n).map(|i| one.units.get(i, j)).collect())).collect();
        let mut location = solve((0..n).map(|i| place[i] - centre[i]).collect());
        if k >= found.len() {
            for column in &columns {
                let away: f64 = StandardNormal.sample(&mut rng);
                location.iter_mut().zip(column).for_each(|(l, c)| *l += away * c);
            }
        }
        start.locations.push(location);
        let entry = |i: usize, j: usize| columns.iter().map(|c| c[i] * c[j]).sum::<f64>();
        start.scales.push((0..n).map(|i| entry(i, i).sqrt()).collect());
        start.covariances.push(Some((0..n * n).map(|e| entry(e / n, e % n)).collect()));
    }
    start
}

/// Fits an approximation from a start.
fn from_start(
    model: &dyn Model,
    q: &Variational,
    start: &Start,
    settings: &InferSettings,
    steps: u64,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let draws = if q.prior().components_len() > 1 { 16 } else { 32 };
    let settings = FitSettings {
        seed: settings.seed,
        steps: settings.steps.unwrap_or(steps),
        step_size: 0.03,
        gradient: GradientSettings { draws, replicates: 1, ..GradientSettings::default() },
        start: StartSettings::single(),
        ..FitSettings::default()
    };
    let mut fit = Fit::init(model, q, &settings, start)?;
    let stopped = fit.run(observer)?.is_break();
    Ok(fit.finish(stopped))
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
    let q = method.variational(near.latents())?;
    let mut chains = repeated(&near.whiten(ends), CHAINS);
    moves(near, &mut chains, CHAIN_ROUNDS, settings.seed)?;
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
        gradient: GradientSettings { draws, ..GradientSettings::default() },
        start: StartSettings { tries: starts.len(), steps: 200, ..StartSettings::default() },
        ..FitSettings::default()
    };
    let fitted = fit_from(near, &q, &fit_settings, &starts, observer)?;
    finish(near, &q, fitted, method, settings)
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

/// As many draws as wanted, the given ones over and over.
fn repeated(u: &Batch, len: usize) -> Batch {
    let mut out = Batch::zeros(u.columns_len(), len);
    for i in 0..u.columns_len() {
        for s in 0..len {
            out.set(i, s, u.get(i, s % u.draws_len()));
        }
    }
    out
}

fn finish(
    near: &Whitened<dyn Model + '_>,
    q: &Variational,
    fitted: Fitted,
    method: Method,
    settings: &InferSettings,
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
        moved = Some(moves(near, &mut u, rounds(near, settings), settings.seed)?);
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
    Ok(Inferred { z, moved, tail, bounds, method, parts, fitted })
}

/// How often draws are moved: more often where it costs little.
fn rounds(model: &dyn Model, settings: &InferSettings) -> usize {
    // A Hamiltonian move takes some four gradients, each about three evaluations' worth.
    let each = 12.0 * model.work() as f64 * settings.draws.max(DRAWS) as f64;
    settings.rounds.unwrap_or(((WORK / each) as usize).clamp(*ROUNDS.start(), *ROUNDS.end()))
}

/// Every so many-th draw.
fn thinned(u: &Batch, len: usize) -> Batch {
    let mut out = Batch::zeros(u.columns_len(), len);
    for i in 0..u.columns_len() {
        for to in 0..len {
            out.set(i, to, u.get(i, to * u.draws_len() / len));
        }
    }
    out
}

/// Systematic resampling with a fixed offset: each draw as often as its weight says, to within one.
fn resampled(u: &Batch, log_weights: &[f64], len: usize) -> Batch {
    let mut out = Batch::zeros(u.columns_len(), len);
    let (mut s, mut reached) = (0, log_weights[0].exp());
    for to in 0..len {
        let goal = (to as f64 + 0.5) / len as f64;
        while reached < goal && s + 1 < u.draws_len() {
            s += 1;
            reached += log_weights[s].exp();
        }
        for i in 0..u.columns_len() {
            out.set(i, to, u.get(i, s));
        }
    }
    out
}

/// Draws from q, and the logarithms of their importance weights. Components are drawn in proportion to their weights.
fn draw(model: &dyn Model, q: &Variational, fitted: &Fitted, len: usize, seed: u64) -> Result<(Batch, Vec<f64>)> {
    let components_len = q.prior().components_len();
    let mut log_pi = vec![0.0; components_len];
    q.prior().log_weights(&fitted.theta, &mut log_pi);
    let mut blocks = Vec::new();
    let (mut reached, mut taken) = (0.0, 0);
    for (k, log_pi) in log_pi.iter().enumerate() {
        reached += log_pi.exp() * len as f64;
        let until = if k + 1 == components_len { len } else { (reached.round() as usize).min(len) };
        while taken < until {
            let size = BLOCK.min(until - taken);
            blocks.push((k, taken, size));
            taken += size;
        }
    }
    let run = |&(k, first, size): &(usize, usize, usize)| -> Result<(Batch, Vec<f64>)> {
        let mut streams: Vec<Stream> =
            (0..size).map(|s| stream(seed, DRAW_STEP, k as u64, (first + s) as u64)).collect();
        let mut pass = Pass::default();
        pass.draw(q, &fitted.theta, k, &mut streams, 1, false);
        pass.forward(model, q, &fitted.theta, &fitted.phi)?;
        Ok((pass.draws.z, pass.integrand))
    };
    let results: Vec<(Batch, Vec<f64>)> = blocks.par_iter().map(run).collect::<Result<_>>()?;
    let mut z = Batch::zeros(model.latents().len(), len);
    let mut weights = Vec::with_capacity(len);
    for ((_, first, size), (own, log_weights)) in blocks.iter().zip(results) {
        for i in 0..own.columns_len() {
            z.column_mut(i)[*first..first + size].copy_from_slice(own.column(i));
        }
        weights.extend(log_weights);
    }
    Ok((z, weights))
}
