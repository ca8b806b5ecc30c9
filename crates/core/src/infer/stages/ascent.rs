//! Gradient ascents from many starts at once.

use crate::error::{Error, Result};
use crate::model::{Model, Support, describe};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The number of ascents.
pub(super) const ASCENTS: usize = 32;
/// How many times an impossible start is redrawn closer to zero.
const SHRINKS: usize = 40;

/// Where a mode search starts. The default is random starts.
///
/// ```
/// use hyperprior::infer::Starts;
/// // Start the first latent at 2 and the second at random.
/// let starts = Starts { given: Some(vec![Some(2.0), None]), ..Starts::default() };
/// ```
#[derive(Clone, Debug, Default)]
pub struct Starts {
    /// Initial values; `None` for a latent that starts at random.
    pub given: Option<Vec<Option<f64>>>,
    /// Points to start some ascents from, such as draws from the prior.
    pub points: Option<Batch>,
}

/// Starts with a finite density, if there are any.
pub(super) fn scatter(model: &dyn Model, starts: &Starts, streams: &mut [Stream]) -> Result<Batch> {
    let latents = model.latents();
    let mut z = Batch::zeros(latents.len(), ASCENTS);
    let (mut log_p, mut is_ordinary) = (vec![f64::NAN; ASCENTS], vec![true; ASCENTS]);
    for round in 0..SHRINKS {
        for (s, rng) in streams.iter_mut().enumerate().filter(|(s, _)| !log_p[*s].is_finite()) {
            // Wide in some ascents, narrow in others, and closer to zero in every round.
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
        // Expensive starts are usually poor ones, so they are replaced if there are others.
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

/// Replaces each bad start by the first good one.
fn replace(z: &mut Batch, is_bad: impl Fn(usize) -> bool) {
    let Some(good) = (0..z.draws_len()).find(|s| !is_bad(*s)) else { return };
    for s in (0..z.draws_len()).filter(|s| is_bad(*s)) {
        for i in 0..z.columns_len() {
            let x = z.get(i, good);
            z.set(i, s, x);
        }
    }
}

/// Adam over the continuous latents, separately for every ascent.
pub(super) struct Ascent {
    continuous: Vec<usize>,
    first: Vec<[f64; ASCENTS]>,
    second: Vec<[f64; ASCENTS]>,
    previous: Vec<[f64; ASCENTS]>,
    slow: [f64; ASCENTS],
    count: i32,
}

impl Ascent {
    pub(super) fn new(continuous: Vec<usize>, z: &Batch) -> Self {
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

    pub(super) fn step(&mut self, z: &mut Batch, log_p: &[f64], d_z: &Batch, size: f64) {
        self.count += 1;
        let (fade, fade_second) = (1.0 - 0.9_f64.powi(self.count), 1.0 - 0.99_f64.powi(self.count));
        let fine: Vec<bool> = (0..ASCENTS)
            .map(|s| log_p[s].is_finite() && self.continuous.iter().all(|i| d_z.get(*i, s).is_finite()))
            .collect();
        for s in 0..ASCENTS {
            // A step that went too far is undone, and the next ones are shorter.
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
