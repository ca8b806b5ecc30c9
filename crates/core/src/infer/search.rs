//! Where a posterior is, and how wide: several ascents at once, and a Gaussian fitted to the curvature along the way.
//!
//! A mode is a poor place for an approximation to start where the density has no peak worth the name (a variance that goes to
//! zero); so the Gaussians at several points of an ascent are compared by their bounds, and the best one wins, as Pathfinder does
//! (Zhang, Carpenter, Gelman and Vehtari, 2022).

use super::moves::sweep;
use super::units::Units;
use crate::error::{Error, Result};
use crate::fit::Observer;
use crate::journal::{self, Begun, Columns};
use crate::model::graph::GraphModel;
use crate::model::{Gradient, Latents, Model, Support, describe};
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_math::random::{Stream, standard_normals, stream};
use hyperprior_math::special::HALF_LN_2_PI;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Ascents at once.
const ASCENTS: usize = 32;
/// Steps of an ascent.
const STEPS: usize = 400;
/// Points along an ascent that are looked at.
const STOPS: usize = 8;
/// Ascents whose points along the way are looked at.
const BEST: usize = 3;
/// The most Gaussians that are looked at.
const LOOKED_AT: usize = 40;
/// Gaussians whose bounds are so far below the best have too little of the posterior to matter.
pub(super) const WORSE: f64 = 8.0;
/// Gaussians nearer to a better one than this many of its standard deviations are the same.
const NEAR: f64 = 2.0;
/// Draws that a Gaussian's bound is estimated from.
const DRAWS: usize = 128;
/// More continuous latents than this get a diagonal.
const FULL_MAX: usize = 300;
/// Draws of the latents' laws that ascents may start from.
const POINTS: usize = 64;
/// How often an impossible start is drawn nearer to zero.
const SHRINKS: usize = 40;
/// Sweeps over the discrete latents happen every so many steps.
const SWEEP: usize = 10;
/// Streams of a search are apart from all others.
const SEARCH_STEP: u64 = u64::MAX - 4;

/// A Gaussian near a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// All latents, the discrete ones where the ascent had them.
    pub z: Vec<f64>,
    /// The scale of the continuous ones.
    pub units: Units,
    /// The Gaussian's bound, given the discrete latents.
    pub elbo: f64,
}

/// What a search finds.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Gaussians, the best first, each apart from the others.
    pub found: Vec<Found>,
    /// Where the ascents ended, those that are impossible left out.
    pub ends: Batch,
}

impl Searched {
    /// Itself, where it is of a model with such latents.
    fn if_of(self, latents: &Latents) -> Result<Self> {
        let n = latents.len();
        let continuous_len = (0..n).filter(|i| !latents.support(*i).is_discrete()).count();
        let is_of = |one: &Found| one.z.len() == n && one.units.is_for(continuous_len);
        if self.found.is_empty() || !self.found.iter().all(is_of) || self.ends.columns_len() != n {
            return Err(Error::Checkpoint { reason: "it is of another model".to_owned() });
        }
        Ok(self)
    }
}

/// Where a search starts.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    /// The values that some latents are to start from.
    pub given: Option<Vec<Option<f64>>>,
    /// Points to start some ascents from, such as draws of the latents' own laws.
    pub points: Option<Batch>,
}

impl Starts {
    /// For a factor graph: the starting values given with it, and draws from its latents' laws.
    ///
    /// # Errors
    /// A starting value outside its latent's support.
    pub fn of(model: &GraphModel, seed: u64) -> Result<Self> {
        Ok(Self { given: model.start()?, points: Some(model.prior_points(POINTS, seed)) })
    }
}

/// Looks for the posterior.
///
/// # Errors
/// What the model returns, [`Error::NotFinite`] where no start has a finite density, and [`Error::Stopped`] where the observer wants
/// no more: half a search is worth nothing.
pub fn search(model: &dyn Model, starts: &Starts, seed: u64, observer: &mut dyn Observer) -> Result<Searched> {
    if let Begun::Finished((found, ends)) = journal::begin::<(Vec<Found>, Columns)>(observer)? {
        return Searched { found, ends: ends.batch()? }.if_of(model.latents());
    }
    let searched = look(model, starts, seed, observer)?;
    journal::finish(observer, || (searched.found.clone(), Columns::of(&searched.ends)))?;
    Ok(searched)
}

fn look(model: &dyn Model, starts: &Starts, seed: u64, observer: &mut dyn Observer) -> Result<Searched> {
    let Some(gradient) = model.gradient() else {
        return Err(Error::Model("a search needs the model's gradient".to_owned()));
    };
    let latents = model.latents();
    let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
    let discrete: Vec<usize> = (0..latents.len()).filter(|i| latents.support(*i).is_discrete()).collect();
    let mut streams: Vec<Stream> = (0..ASCENTS).map(|s| stream(seed, SEARCH_STEP, 0, s as u64)).collect();
    let mut z = scatter(model, starts, &mut streams)?;
    let (mut log_p, mut d_z) = (vec![0.0; ASCENTS], Batch::zeros(latents.len(), ASCENTS));
    let mut ascent = Ascent::new(continuous.clone(), &z);
    let mut stops: Vec<Batch> = Vec::new();
    for step in 0..STEPS {
        if step % SWEEP == 0 {
            advance(step, observer)?;
            sweep(model, &discrete, &mut z, &mut streams)?;
        }
        gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        let size = crate::fit::half_cosine(0.1, step as f64 / STEPS as f64).max(1e-3);
        ascent.step(&mut z, &log_p, &d_z, size);
        if (step + 1) % (STEPS / STOPS) == 0 {
            stops.push(z.clone());
        }
    }
    model.log_joint(&z, &mut log_p)?;
    let mut order: Vec<usize> = (0..ASCENTS).collect();
    let value = |s: usize| if log_p[s].is_nan() { f64::NEG_INFINITY } else { log_p[s] };
    order.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
    let alive: Vec<usize> = (0..ASCENTS).filter(|s| log_p[*s].is_finite()).collect();
    let mut ends = Batch::zeros(latents.len(), alive.len());
    for (to, s) in alive.iter().enumerate() {
        for i in 0..latents.len() {
            ends.set(i, to, z.get(i, *s));
        }
    }
    let (mut found, mut at_ends): (Vec<Found>, Vec<Found>) = (Vec::new(), Vec::new());
    for (rank, s) in order.into_iter().enumerate() {
        advance(STEPS, observer)?;
        let at = |stop: &Batch| -> Vec<f64> { (0..latents.len()).map(|i| stop.get(i, s)).collect() };
        let end = at(&z);
        // Most ascents end where others did. Gaussians from on the way may be wide enough to hide another end.
        if rank >= BEST && at_ends.iter().any(|other| distance(other, &end, &continuous) <= NEAR) {
            continue;
        }
        let along = if rank < BEST { 0 } else { stops.len() - 1 };
        for (number, stop) in stops.iter().enumerate().skip(along) {
            let one = gaussian(model, gradient, &continuous, at(stop), seed)?;
            at_ends.extend(one.clone().filter(|_| number + 1 == stops.len()));
            found.extend(one);
        }
        if found.len() >= LOOKED_AT {
            break;
        }
    }
    if found.is_empty() {
        let example = describe(model, &z, 0, log_p[0]);
        return Err(Error::NotFinite { step: 0, dropped: ASCENTS, drawn: ASCENTS, example });
    }
    found.sort_by(|a, b| b.elbo.total_cmp(&a.elbo));
    Ok(Searched { found: apart(found.into_iter(), &continuous), ends })
}

fn advance(step: usize, observer: &mut dyn Observer) -> Result<()> {
    match observer.advance("search", step, STEPS) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped { step: step as u64 }),
    }
}

/// Those that are apart from better ones and not much worse than the best, which comes first.
pub(super) fn apart(sorted: impl Iterator<Item = Found>, continuous: &[usize]) -> Vec<Found> {
    let mut apart: Vec<Found> = Vec::new();
    for one in sorted {
        let worse = apart.first().is_some_and(|best| one.elbo < best.elbo - WORSE);
        if !worse && apart.iter().all(|other| distance(other, &one.z, continuous) > NEAR) {
            apart.push(one);
        }
    }
    apart
}

/// How far a place is from another's, in that one's standard deviations and per latent.
pub(super) fn distance(from: &Found, to: &[f64], continuous: &[usize]) -> f64 {
    let n = continuous.len();
    let mut x: Vec<f64> = continuous.iter().map(|i| to[*i] - from.z[*i]).collect();
    from.units.solve(&mut x);
    (x.iter().map(|x| x * x).sum::<f64>() / n.max(1) as f64).sqrt()
}

/// Starts with a finite density, where there are any.
fn scatter(model: &dyn Model, starts: &Starts, streams: &mut [Stream]) -> Result<Batch> {
    let latents = model.latents();
    let mut z = Batch::zeros(latents.len(), ASCENTS);
    let (mut log_p, mut is_ordinary) = (vec![f64::NAN; ASCENTS], vec![true; ASCENTS]);
    for round in 0..SHRINKS {
        for (s, rng) in streams.iter_mut().enumerate().filter(|(s, _)| !log_p[*s].is_finite()) {
            // Wide in some ascents, narrow in others, and ever nearer to zero.
            let width = [0.1, 0.5, 1.0, 2.0][s / 2 % 4] * 0.8_f64.powi(round as i32);
            for i in 0..latents.len() {
                let given = starts.given.as_ref().and_then(|given| given[i]);
                let point = match &starts.points {
                    Some(points) if s % 2 == 1 && round * ASCENTS / 2 < points.draws_len() => {
                        Some(points.get(i, (s / 2 + round * ASCENTS / 2) % points.draws_len()))
                    }
                    _ => None,
                };
                let normal: f64 = StandardNormal.sample(rng);
                let uniform: f64 = rng.random();
                let x = match (given, latents.support(i)) {
                    (Some(x), support) if support.is_discrete() => x,
                    (Some(x), _) => x + 0.05 * width * normal,
                    (None, _) if point.is_some() => point.unwrap_or(0.0),
                    (None, Support::Integers { lower, upper }) => {
                        lower + (uniform * (upper - lower + 1.0)).floor().min(upper - lower)
                    }
                    (None, Support::Counts) => (3.0 * uniform * (1.0 + round as f64)).floor(),
                    (None, _) => width * normal,
                };
                z.set(i, s, x);
            }
        }
        model.is_ordinary(&z, &mut is_ordinary);
        // What is expensive is most often hopeless too, where anything else is possible.
        let is_choice = round < SHRINKS / 2 && is_ordinary.contains(&true);
        if is_choice {
            replace(&mut z, |s| !is_ordinary[s]);
        }
        model.log_joint(&z, &mut log_p)?;
        if is_choice {
            let costly = log_p.iter_mut().zip(&is_ordinary).filter(|(_, is_ordinary)| !**is_ordinary);
            costly.for_each(|(log_p, _)| *log_p = f64::NAN);
        }
        if log_p.iter().all(|x| x.is_finite()) {
            return Ok(z);
        }
    }
    if !log_p.iter().any(|x| x.is_finite()) {
        let example = describe(model, &z, 0, log_p[0]);
        return Err(Error::NotFinite { step: 0, dropped: ASCENTS, drawn: ASCENTS, example });
    }
    replace(&mut z, |s| !log_p[s].is_finite());
    Ok(z)
}

/// Puts the first good start in the place of each bad one.
fn replace(z: &mut Batch, is_bad: impl Fn(usize) -> bool) {
    let Some(good) = (0..z.draws_len()).find(|s| !is_bad(*s)) else { return };
    for s in (0..z.draws_len()).filter(|s| is_bad(*s)) {
        for i in 0..z.columns_len() {
            let x = z.get(i, good);
            z.set(i, s, x);
        }
    }
}

/// Adam over the continuous latents of every ascent on its own.
struct Ascent {
    continuous: Vec<usize>,
    first: Vec<[f64; ASCENTS]>,
    second: Vec<[f64; ASCENTS]>,
    previous: Vec<[f64; ASCENTS]>,
    slow: [f64; ASCENTS],
    count: i32,
}

impl Ascent {
    fn new(continuous: Vec<usize>, z: &Batch) -> Self {
        let zeros = vec![[0.0; ASCENTS]; continuous.len()];
        let start = |i: &usize| std::array::from_fn(|s| z.get(*i, s));
        Self {
            first: zeros.clone(),
            second: zeros,
            previous: continuous.iter().map(start).collect(),
            slow: [1.0; ASCENTS],
            count: 0,
            continuous,
        }
    }

    fn step(&mut self, z: &mut Batch, log_p: &[f64], d_z: &Batch, size: f64) {
        self.count += 1;
        let (fade, fade_second) = (1.0 - 0.9_f64.powi(self.count), 1.0 - 0.99_f64.powi(self.count));
        let fine: Vec<bool> = (0..ASCENTS)
            .map(|s| log_p[s].is_finite() && self.continuous.iter().all(|i| d_z.get(*i, s).is_finite()))
            .collect();
        for s in 0..ASCENTS {
            // A step too far is taken back, and the next ones are shorter.
            self.slow[s] = if fine[s] { (self.slow[s] * 1.02).min(1.0) } else { self.slow[s] * 0.3 };
        }
        for (k, i) in self.continuous.iter().enumerate() {
            let column = z.column_mut(*i);
            for s in 0..ASCENTS {
                if !fine[s] {
                    column[s] = self.previous[k][s];
                    self.first[k][s] = 0.0;
                    continue;
                }
                self.previous[k][s] = column[s];
                let d = d_z.get(*i, s);
                self.first[k][s] += 0.1 * (d - self.first[k][s]);
                self.second[k][s] += 0.01 * (d * d - self.second[k][s]);
                let direction = (self.first[k][s] / fade) / ((self.second[k][s] / fade_second).sqrt() + 1e-12);
                column[s] += size * self.slow[s] * direction;
            }
        }
    }
}

/// The Gaussian of the curvature at a point, moved by one Newton step where that helps, and its bound.
fn gaussian(
    model: &dyn Model,
    gradient: &dyn Gradient,
    continuous: &[usize],
    point: Vec<f64>,
    seed: u64,
) -> Result<Option<Found>> {
    let n = continuous.len();
    if n == 0 {
        return Ok(Some(Found { z: point, units: Units::Diagonal(Vec::new()), elbo: 0.0 }));
    }
    let full =
        if n <= FULL_MAX { curvature(gradient, continuous, &point)?.and_then(|c| full_units(&c, n)) } else { None };
    let units = match full {
        Some(units) => units,
        None => match diagonal(gradient, continuous, &point, seed)? {
            Some(diagonal) => Units::Diagonal(diagonal.iter().map(|c| 1.0 / c.max(1e-4).sqrt()).collect()),
            None => return Ok(None),
        },
    };
    let elbo = bound(model, continuous, &point, &units, seed)?;
    Ok(elbo.is_finite().then_some(Found { z: point, units, elbo }))
}

/// −∂²log p by central differences of the gradient, row by row.
fn curvature(gradient: &dyn Gradient, continuous: &[usize], point: &[f64]) -> Result<Option<Vec<f64>>> {
    let n = continuous.len();
    let mut out = vec![0.0; n * n];
    let (mut log_p, mut d_z) = (vec![0.0; ASCENTS], Batch::zeros(point.len(), ASCENTS));
    let mut z = Batch::zeros(point.len(), ASCENTS);
    for first in (0..n).step_by(ASCENTS / 2) {
        let len = (ASCENTS / 2).min(n - first);
        for (i, x) in point.iter().enumerate() {
            z.column_mut(i).fill(*x);
        }
        let step = |k: usize| 1e-4 * point[continuous[k]].abs().max(1.0);
        for j in 0..len {
            let (i, h) = (continuous[first + j], step(first + j));
            z.set(i, 2 * j, point[i] + h);
            z.set(i, 2 * j + 1, point[i] - h);
        }
        gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
        for j in 0..len {
            let row = first + j;
            for k in 0..n {
                let i = continuous[k];
                out[row * n + k] = -(d_z.get(i, 2 * j) - d_z.get(i, 2 * j + 1)) / (2.0 * step(row));
            }
        }
    }
    for i in 0..n {
        for j in 0..i {
            let mean = 0.5 * (out[i * n + j] + out[j * n + i]);
            (out[i * n + j], out[j * n + i]) = (mean, mean);
        }
    }
    Ok(out.iter().all(|x| x.is_finite()).then_some(out))
}

/// The diagonal of −∂²log p, from differences of the gradient along random signs: vᵢ (H v)ᵢ has mean Hᵢᵢ (Hutchinson, 1990).
fn diagonal(gradient: &dyn Gradient, continuous: &[usize], point: &[f64], seed: u64) -> Result<Option<Vec<f64>>> {
    let mut rng = stream(seed, SEARCH_STEP, 2, 0);
    let (mut log_p, mut d_z) = (vec![0.0; ASCENTS], Batch::zeros(point.len(), ASCENTS));
    let mut z = Batch::zeros(point.len(), ASCENTS);
    for (i, x) in point.iter().enumerate() {
        z.column_mut(i).fill(*x);
    }
    let mut moved = Batch::zeros(continuous.len(), ASCENTS);
    for (k, i) in continuous.iter().enumerate() {
        for s in (0..ASCENTS).step_by(2) {
            let h = 1e-4 * point[*i].abs().max(1.0) * if rng.random::<bool>() { 1.0 } else { -1.0 };
            moved.set(k, s, h);
            z.set(*i, s, point[*i] + h);
            z.set(*i, s + 1, point[*i] - h);
        }
    }
    gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let out: Vec<f64> = continuous
        .iter()
        .enumerate()
        .map(|(k, i)| {
            let probes = (0..ASCENTS).step_by(2);
            probes.map(|s| -(d_z.get(*i, s) - d_z.get(*i, s + 1)) / (2.0 * moved.get(k, s))).sum::<f64>()
                / (ASCENTS / 2) as f64
        })
        .collect();
    Ok(out.iter().all(|x| x.is_finite()).then_some(out))
}

/// The lower triangle of the inverse of the curvature, made positive where it is not.
fn full_units(curvature: &[f64], n: usize) -> Option<Units> {
    let size: Vec<f64> = (0..n).map(|i| curvature[i * n + i].abs().max(1e-4).sqrt()).collect();
    let mut ridge = 0.0;
    let factor = loop {
        let scaled: Vec<f64> = (0..n * n)
            .map(|e| {
                let (i, j) = (e / n, e % n);
                curvature[e] / (size[i] * size[j]) + if i == j { ridge } else { 0.0 }
            })
            .collect();
        match cholesky(&scaled, n) {
            Some(factor) if (0..n).all(|i| factor[packed(i, i)] > 1e-4) => break factor,
            _ if ridge > 1e3 => return None,
            _ => ridge = if ridge == 0.0 { 1e-3 } else { 4.0 * ridge },
        }
    };
    // (C Cᵀ)⁻¹ by columns: solve C y = e_j, then Cᵀ x = y.
    let mut covariance = vec![0.0; n * n];
    for j in 0..n {
        let mut x = vec![0.0; n];
        x[j] = 1.0;
        for i in j..n {
            let taken: f64 = (j..i).map(|k| factor[packed(i, k)] * x[k]).sum();
            x[i] = (x[i] - taken) / factor[packed(i, i)];
        }
        for i in (0..n).rev() {
            let taken: f64 = (i + 1..n).map(|k| factor[packed(k, i)] * x[k]).sum();
            x[i] = (x[i] - taken) / factor[packed(i, i)];
        }
        for i in 0..n {
            covariance[i * n + j] = x[i] / (size[i] * size[j]);
        }
    }
    cholesky(&covariance, n).map(Units::Full)
}

/// The bound of a Gaussian over the continuous latents, the discrete ones held; −∞ where a tenth of the draws are impossible.
fn bound(model: &dyn Model, continuous: &[usize], point: &[f64], units: &Units, seed: u64) -> Result<f64> {
    let n = continuous.len();
    let mut streams: Vec<Stream> = (0..DRAWS).map(|s| stream(seed, SEARCH_STEP, 1, s as u64)).collect();
    let (mut noise, mut moved) = (Batch::zeros(n, DRAWS), Batch::zeros(n, DRAWS));
    standard_normals(&mut streams, &mut noise);
    units.multiply(&noise, &mut moved);
    let mut z = Batch::zeros(point.len(), DRAWS);
    for (i, x) in point.iter().enumerate() {
        z.column_mut(i).fill(*x);
    }
    for (k, i) in continuous.iter().enumerate() {
        for (z, x) in z.column_mut(*i).iter_mut().zip(moved.column(k)) {
            *z += x;
        }
    }
    let mut log_p = vec![0.0; DRAWS];
    model.log_joint(&z, &mut log_p)?;
    let alive: Vec<f64> = log_p.into_iter().filter(|x| x.is_finite()).collect();
    if alive.len() * 10 < DRAWS * 9 {
        return Ok(f64::NEG_INFINITY);
    }
    let entropy = units.log_volume(n) + n as f64 * (0.5 + HALF_LN_2_PI);
    Ok(alive.iter().sum::<f64>() / alive.len() as f64 + entropy)
}
