//! The mode search: several ascents at once, and Gaussians from the curvature at points along them.
//!
//! The end of an ascent is a poor place for an approximation to start if the density has no proper mode (as when a variance goes to
//! zero). So the Gaussians at several points of an ascent are compared by their ELBOs, and the best one is used, as in Pathfinder
//! (Zhang, Carpenter, Gelman and Vehtari, 2022).

use super::ascent::{ASCENTS, Ascent, STEPS, Starts, scatter};
use super::curvature::{LocalGaussian, LogDensity, climb};
use super::nested_laplace::marginal_centre;
use super::sparse_curvature::SparseCurvature;
use super::whitening::Whitening;
use crate::checkpoint::{Columns, Stage};
use crate::error::{Error, Result};
use crate::gibbs::sweep;
use crate::model::{Latents, Model, describe};
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The number of points along an ascent at which a Gaussian is considered.
const STOPS: usize = 8;
/// Only this many of the best ascents are considered along their whole path, the others at their end.
const BEST: usize = 3;
/// The maximum number of Gaussians.
const GAUSSIANS_MAX: usize = 40;
/// Gaussians whose ELBOs are this far below the best have a negligible share of the posterior.
pub(in crate::infer) const WORSE: f64 = 8.0;
/// A Gaussian within this many standard deviations of a better one is the same mode.
const NEAR: f64 = 2.0;
/// The most rounds of ascents, and the most latents with more than one.
const ROUNDS: usize = 8;
const LATENTS_MAX: usize = 32;
/// The rounds without a new mode after which the search ends.
const ROUNDS_WITHOUT: usize = 2;
/// Where Newton's method would not go further than this many standard deviations per latent, an ascent has reached a mode.
const AT_MODE: f64 = 0.1;
/// The number of steps between Gibbs sweeps over the discrete latents.
const SWEEP: usize = 10;

/// A Gaussian near a mode. See [`mode_search`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mode {
    /// The location: all latents, with the discrete ones at the values of the ascent.
    pub z: Vec<f64>,
    /// The scale of the continuous latents.
    pub whitening: Whitening,
    /// The ELBO of the Gaussian, given the discrete latents.
    pub elbo: f64,
}

/// The result of [`mode_search`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModeSearch {
    /// Distinct Gaussians, the best first.
    pub modes: Vec<Mode>,
    /// Where the ascents ended, apart from impossible ones.
    pub ends: Batch,
    /// How many of several modes one ascent alone ended at. If there are some, there are others at which none did (Good, 1953).
    pub once: usize,
}

impl ModeSearch {
    /// Checks that a stored result belongs to a model with these latents.
    fn checked(self, latents: &Latents) -> Result<Self> {
        let n = latents.len();
        let continuous_len = (0..n).filter(|i| !latents.support(*i).is_discrete()).count();
        let is_of = |one: &Mode| one.z.len() == n && one.whitening.is_for(continuous_len);
        if self.modes.is_empty() || !self.modes.iter().all(is_of) || self.ends.columns_len() != n {
            return Err(Error::Checkpoint { reason: "it belongs to another model".to_owned() });
        }
        Ok(self)
    }
}

/// Searches for the modes of a posterior, as starts for an approximation.
///
/// ```
/// use hyperprior::Quiet;
/// use hyperprior::infer::{Starts, mode_search};
/// use hyperprior::targets::GaussianMixture;
/// let search = mode_search(&GaussianMixture::new(), &Starts::default(), 1, &mut Quiet)?;
/// assert_eq!(search.modes.len(), 4);
/// assert!((search.modes[0].z[0] - 3.0).abs() < 0.5); // the heaviest component is at (3, 3)
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model, [`Error::NotFinite`] if no start has a finite density, and [`Error::Stopped`] if the observer stops it: an
/// unfinished search has no result.
pub fn mode_search<'s>(
    model: &dyn Model,
    starts: &Starts,
    seed: u64,
    session: impl Into<Session<'s>>,
) -> Result<ModeSearch> {
    search(model, starts, seed, true, &mut session.into())
}

/// As [`mode_search`]. Without `is_full`, the Gaussians are to start an approximation without dependence, so that modes at which the
/// curvature matters most, the ends of Newton's method, are left out.
pub(in crate::infer) fn search(
    model: &dyn Model,
    starts: &Starts,
    seed: u64,
    is_full: bool,
    session: &mut Session,
) -> Result<ModeSearch> {
    if let Stage::Finished((modes, ends, once)) = session.begin::<(Vec<Mode>, Columns, usize)>()? {
        return ModeSearch { modes, ends: ends.batch()?, once }.checked(model.latents());
    }
    let search = run(model, starts, seed, is_full, session)?;
    session.finish(|| (search.modes.clone(), Columns::of(&search.ends), search.once))?;
    Ok(search)
}

fn run(model: &dyn Model, starts: &Starts, seed: u64, is_full: bool, session: &mut Session) -> Result<ModeSearch> {
    let latents = model.latents();
    let (discrete, continuous): (Vec<usize>, Vec<usize>) =
        (0..latents.len()).partition(|i| latents.support(*i).is_discrete());
    let gradient = model.gradient();
    if gradient.is_none() && !continuous.is_empty() {
        return Err(Error::Model("a mode search needs the gradient along the continuous latents".to_owned()));
    }
    let Ascents { begun, z, log_p, stops } = ascents(model, starts, (&discrete, &continuous), (seed, 0), session)?;
    let mut order: Vec<usize> = (0..ASCENTS).collect();
    let value = |s: usize| if log_p[s].is_nan() { f64::NEG_INFINITY } else { log_p[s] };
    order.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
    let alive: Vec<usize> = (0..ASCENTS).filter(|s| log_p[*s].is_finite()).collect();
    let sparse = SparseCurvature::of_many(model, &continuous);
    let density =
        gradient.map(|gradient| LogDensity { model, gradient, continuous: &continuous, sparse: sparse.as_ref() });
    let (mut found, mut at_ends) = (given_modes(density, starts, seed)?, Vec::new());
    let mut by_newton: Vec<Mode> = Vec::new();
    let alive = alive.iter().map(|s| (0..latents.len()).map(|i| z.get(i, *s)).collect());
    let mut ends: Vec<Vec<f64>> = alive.chain(found.iter().map(|mode| mode.z.clone())).collect();
    let mut by_mass = None;
    if let Some(sparse) = sparse.as_ref().filter(|_| discrete.is_empty()) {
        let begun = (0..begun.draws_len()).map(|s| (0..latents.len()).map(|i| begun.get(i, s)).collect());
        let points: Vec<Vec<f64>> = begun.chain(ends.iter().cloned()).collect();
        if let Some(point) = marginal_centre(model, sparse, &Batch::from_draws(&points), seed)? {
            by_mass = gaussian(density, point, seed)?;
        }
    } else if let Some(centre) = &starts.centre {
        found.extend(gaussian(density, centre.clone(), seed)?);
    }
    for (rank, s) in order.into_iter().enumerate() {
        advance(STEPS, session)?;
        let at = |stop: &Batch| -> Vec<f64> { (0..latents.len()).map(|i| stop.get(i, s)).collect() };
        let end = at(&z);
        // Most ascents end where others did. Only Gaussians at ends are compared: those along a path may be wide enough to cover
        // another end.
        if rank >= BEST && at_ends.iter().any(|other| distance(other, &end, &continuous) <= NEAR) {
            continue;
        }
        let along = if rank < BEST { 0 } else { stops.len() - 1 };
        for (number, stop) in stops.iter().enumerate().skip(along) {
            let one = gaussian(density, at(stop), seed)?;
            at_ends.extend(one.clone().filter(|_| number + 1 == stops.len()));
            found.extend(one);
        }
        // An ascent ends within a fixed distance of its start. Newton's method has no such limit.
        if let Some(density) = density.filter(|_| rank < BEST && is_full) {
            let mut point = end;
            if climb(density, &mut point)? {
                by_newton.extend(gaussian(Some(density), point, seed)?);
            }
        }
        if found.len() >= GAUSSIANS_MAX {
            break;
        }
    }
    if found.is_empty() {
        let example = describe(model, &z, 0, log_p[0]);
        return Err(Error::NotFinite { step: 0, dropped: ASCENTS, drawn: ASCENTS, example });
    }
    let mut once = 0;
    if let Some(density) = density.filter(|_| discrete.is_empty() && is_full && continuous.len() <= LATENTS_MAX) {
        let further = more_rounds(density, starts, (&found, &ends), seed, session)?;
        ends.extend(further.modes.iter().map(|mode| mode.z.clone()));
        found.extend(further.modes);
        once = further.once;
    }
    found.sort_by(|a, b| b.elbo.total_cmp(&a.elbo));
    let mut modes = distinct(found.into_iter(), &continuous);
    // It comes second, however good, so that a fit from each decides: a mode may be a worse place to start from than the way to it.
    let best = by_newton.into_iter().reduce(|a, b| if b.elbo > a.elbo { b } else { a });
    if let Some(one) = best.filter(|one| one.elbo > modes[0].elbo && is_apart(&modes, &one.z, &continuous)) {
        modes.insert(1, one);
    }
    if let Some(one) = by_mass {
        modes.insert(0, one);
    }
    Ok(ModeSearch { modes, ends: Batch::from_draws(&ends), once })
}

/// What further rounds of ascents found.
struct Further {
    modes: Vec<Mode>,
    /// How many of several modes one ascent alone ended at.
    once: usize,
}

/// Further rounds of ascents, if there is more than one mode; they go on while they find modes that count, or one ascent alone ended at
/// one.
fn more_rounds(
    density: LogDensity,
    starts: &Starts,
    (found, ends): (&[Mode], &[Vec<f64>]),
    seed: u64,
    session: &mut Session,
) -> Result<Further> {
    let continuous = density.continuous;
    let is_near = |mode: &Mode, z: &[f64]| distance(mode, z, continuous) <= NEAR;
    // Modes, and how many ascents ended at each.
    let mut reached: Vec<(Mode, usize)> = Vec::new();
    for mode in found {
        if is_at_mode(density, mode)? && !reached.iter().any(|(other, _)| is_near(other, &mode.z)) {
            reached.push((mode.clone(), ends.iter().filter(|end| is_near(mode, end)).count()));
        }
    }
    let best = found.iter().map(|mode| mode.elbo).fold(f64::NEG_INFINITY, f64::max);
    let counts = |mode: &Mode| mode.elbo > best - WORSE;
    let once = |reached: &[(Mode, usize)]| {
        let (all, once) = reached
            .iter()
            .filter(|(mode, _)| counts(mode))
            .fold((0, 0), |(all, once), (_, hits)| (all + 1, once + usize::from(*hits < 2)));
        if all > 1 { once } else { 0 }
    };
    let is_one_of_many = reached.iter().filter(|(mode, _)| counts(mode)).count() > 1;
    let (known_len, mut without) = (reached.len(), if is_one_of_many { 0 } else { ROUNDS_WITHOUT });
    for round in 1..ROUNDS {
        if without >= ROUNDS_WITHOUT && once(&reached) == 0 || reached.len() >= GAUSSIANS_MAX {
            break;
        }
        without += 1;
        let Ascents { z, log_p, .. } = ascents(density.model, starts, (&[], continuous), (seed, round), session)?;
        for s in (0..ASCENTS).filter(|s| log_p[*s].is_finite()) {
            let end: Vec<f64> = (0..z.columns_len()).map(|i| z.get(i, s)).collect();
            if let Some((_, hits)) = reached.iter_mut().find(|(mode, _)| is_near(mode, &end)) {
                *hits += 1;
                continue;
            }
            let Some(mode) = gaussian(Some(density), end, seed)? else { continue };
            if is_at_mode(density, &mode)? {
                without = if counts(&mode) { 0 } else { without };
                reached.push((mode, 1));
            }
        }
    }
    let once = once(&reached);
    Ok(Further { modes: reached.split_off(known_len).into_iter().map(|(mode, _)| mode).collect(), once })
}

/// Whether a point is far from these modes.
fn is_apart(modes: &[Mode], z: &[f64], continuous: &[usize]) -> bool {
    modes.iter().all(|mode| distance(mode, z, continuous) > NEAR)
}

/// Whether an ascent has reached a mode: where a variance goes to zero there is none.
fn is_at_mode(density: LogDensity, mode: &Mode) -> Result<bool> {
    let (z, mut log_p) = (Batch::from_columns(mode.z.clone(), 1), [0.0]);
    let (mut d_z, n) = (Batch::zeros(mode.z.len(), 1), density.continuous.len());
    density.gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let own = Batch::from_columns(density.continuous.iter().map(|i| d_z.get(*i, 0)).collect(), 1);
    let mut step = Batch::zeros(n, 1);
    mode.whitening.transpose_multiply(&own, &mut step);
    let squares: f64 = step.as_slice().iter().map(|x| x * x).sum();
    Ok(squares <= AT_MODE * AT_MODE * n as f64)
}

/// Where the ascents began and ended, the log densities at their ends, and points along them.
struct Ascents {
    begun: Batch,
    z: Batch,
    log_p: Vec<f64>,
    stops: Vec<Batch>,
}

fn ascents(
    model: &dyn Model,
    starts: &Starts,
    (discrete, continuous): (&[usize], &[usize]),
    (seed, round): (u64, usize),
    session: &mut Session,
) -> Result<Ascents> {
    let (latents, gradient) = (model.latents(), model.gradient());
    let mut streams: Vec<Stream> =
        (0..ASCENTS).map(|s| stream(seed, Purpose::ModeSearch.step(), 0, (s + round * ASCENTS) as u64)).collect();
    let begun = scatter(model, starts, round, &mut streams)?;
    let mut z = begun.clone();
    let (mut log_p, mut d_z) = (vec![0.0; ASCENTS], Batch::zeros(latents.len(), ASCENTS));
    let mut ascent = Ascent::new(continuous.to_vec(), &z);
    let mut stops: Vec<Batch> = Vec::new();
    for step in 0..STEPS {
        if step % SWEEP == 0 {
            advance(step, session)?;
            sweep(model, discrete, &mut z, &mut streams)?;
        }
        match gradient {
            Some(gradient) => gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?,
            None => model.log_joint(&z, &mut log_p)?,
        }
        ascent.step(&mut z, &log_p, &d_z);
        if (step + 1) % (STEPS / STOPS) == 0 {
            stops.push(z.clone());
        }
    }
    model.log_joint(&z, &mut log_p)?;
    Ok(Ascents { begun, z, log_p, stops })
}

/// The Gaussians at the given modes, after Newton's method.
fn given_modes(density: Option<LogDensity>, starts: &Starts, seed: u64) -> Result<Vec<Mode>> {
    let (Some(modes), Some(density)) = (&starts.modes, density) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for s in 0..modes.draws_len() {
        let mut point: Vec<f64> = (0..modes.columns_len()).map(|i| modes.get(i, s)).collect();
        climb(density, &mut point)?;
        found.extend(gaussian(Some(density), point, seed)?);
    }
    Ok(found)
}

fn advance(step: usize, session: &mut Session) -> Result<()> {
    match session.advance("search", step, STEPS) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped { step: step as u64 }),
    }
}

/// The Gaussians that are distinct from better ones and not much worse than the first, which is the best.
pub(in crate::infer) fn distinct(sorted: impl Iterator<Item = Mode>, continuous: &[usize]) -> Vec<Mode> {
    let mut apart: Vec<Mode> = Vec::new();
    for one in sorted {
        let worse = apart.first().is_some_and(|best| one.elbo < best.elbo - WORSE);
        if !worse && is_apart(&apart, &one.z, continuous) {
            apart.push(one);
        }
    }
    apart
}

/// The distance of a point from a mode, in standard deviations of the mode and per latent.
pub(in crate::infer) fn distance(from: &Mode, to: &[f64], continuous: &[usize]) -> f64 {
    let n = continuous.len();
    let mut x: Vec<f64> = continuous.iter().map(|i| to[*i] - from.z[*i]).collect();
    from.whitening.solve(&mut x);
    (x.iter().map(|x| x * x).sum::<f64>() / n.max(1) as f64).sqrt()
}

/// The Gaussian of a model with few latents, all continuous, with the curvature at a point; `None` if that is not finite.
///
/// # Errors
/// Errors of the model.
pub fn gaussian_at(model: &dyn Model, point: Vec<f64>, seed: u64) -> Result<Option<Mode>> {
    let continuous: Vec<usize> = (0..point.len()).collect();
    let Some(gradient) = model.gradient() else { return Ok(None) };
    gaussian(Some(LogDensity::new(model, gradient, &continuous)), point, seed)
}

/// The Gaussian with the curvature at a point, and its ELBO.
fn gaussian(density: Option<LogDensity>, point: Vec<f64>, seed: u64) -> Result<Option<Mode>> {
    let Some(density) = density.filter(|density| !density.continuous.is_empty()) else {
        return Ok(Some(Mode { z: point, whitening: Whitening::Diagonal(Vec::new()), elbo: 0.0 }));
    };
    let Some(local) = LocalGaussian::new(density, &point, seed)? else { return Ok(None) };
    Ok(local.elbo().map(|elbo| Mode { z: point, whitening: local.whitening, elbo }))
}
