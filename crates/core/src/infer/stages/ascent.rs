//! Gradient ascents from many starts at once.

use crate::error::{Error, Result};
use crate::model::{Model, Support, describe};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The number of ascents in a round.
pub(super) const ASCENTS: usize = 32;
/// The steps of an ascent, and their first size.
pub(super) const STEPS: usize = 400;
const SIZE: f64 = 0.1;
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
    /// Points near modes that may be too narrow for an ascent: Newton's method starts there.
    pub modes: Option<Batch>,
    /// A point in the middle of the mass, from which an ascent would lead away.
    pub centre: Option<Vec<f64>>,
}

/// The starts of a round with a finite density, if there are any.
pub(super) fn scatter(model: &dyn Model, starts: &Starts, round: usize, streams: &mut [Stream]) -> Result<Batch> {
    let latents = model.latents();
    let each = ASCENTS / 2;
    let mut z = Batch::zeros(latents.len(), ASCENTS);
    let (mut log_p, mut is_ordinary) = (vec![f64::NAN; ASCENTS], vec![true; ASCENTS]);
    for shrink in 0..SHRINKS {
        for (s, rng) in streams.iter_mut().enumerate().filter(|(s, _)| !log_p[*s].is_finite()) {
            // Wide in some ascents, narrow in others, and closer to zero every time.
            let width = [0.1, 0.5, 1.0, 2.0][s / 2 % 4] * 0.8_f64.powi(shrink as i32);
            for i in 0..latents.len() {
                let given = starts.given.as_ref().and_then(|given| given[i]);
                let point = match &starts.points {
                    Some(points) if s % 2 == 1 && shrink * each < points.draws_len() => {
                        Some(points.get(i, (s / 2 + (round + shrink) * each) % points.draws_len()))
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
                    (None, Support::Counts) => (3.0 * uniform * (1.0 + shrink as f64)).floor(),
                    (None, _) => width * normal,
                };
                z.set(i, s, x);
            }
        }
        model.is_ordinary(&z, &mut is_ordinary);
        // Expensive starts are usually poor ones, so they are replaced if there are others.
        let is_choice = shrink < SHRINKS / 2 && is_ordinary.contains(&true);
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
    first: Vec<Vec<f64>>,
    second: Vec<Vec<f64>>,
    previous: Vec<Vec<f64>>,
    slow: Vec<f64>,
    count: i32,
}

impl Ascent {
    pub(super) fn new(continuous: Vec<usize>, z: &Batch) -> Self {
        let zeros = vec![vec![0.0; z.draws_len()]; continuous.len()];
        Self {
            first: zeros.clone(),
            second: zeros,
            previous: continuous.iter().map(|i| z.column(*i).to_vec()).collect(),
            slow: vec![1.0; z.draws_len()],
            count: 0,
            continuous,
        }
    }

    pub(super) fn step(&mut self, z: &mut Batch, log_p: &[f64], d_z: &Batch) {
        let size = crate::fit::half_cosine(SIZE, f64::from(self.count) / STEPS as f64).max(1e-3);
        self.count += 1;
        let (fade, fade_second) = (1.0 - 0.9_f64.powi(self.count), 1.0 - 0.99_f64.powi(self.count));
        let fine: Vec<bool> = (0..z.draws_len())
            .map(|s| log_p[s].is_finite() && self.continuous.iter().all(|i| d_z.get(*i, s).is_finite()))
            .collect();
        for (slow, fine) in self.slow.iter_mut().zip(&fine) {
            // A step that went too far is undone, and the next ones are shorter.
            *slow = if *fine { (*slow * 1.02).min(1.0) } else { *slow * 0.3 };
        }
        for (k, i) in self.continuous.iter().enumerate() {
            for (s, x) in z.column_mut(*i).iter_mut().enumerate() {
                if !fine[s] {
                    *x = self.previous[k][s];
                    self.first[k][s] = 0.0;
                    continue;
                }
                self.previous[k][s] = *x;
                let d = d_z.get(*i, s);
                self.first[k][s] += 0.1 * (d - self.first[k][s]);
                self.second[k][s] += 0.01 * (d * d - self.second[k][s]);
                let direction = (self.first[k][s] / fade) / ((self.second[k][s] / fade_second).sqrt() + 1e-12);
                *x += size * self.slow[s] * direction;
            }
        }
    }
}

/// Ascends the density along the continuous latents from these points; the discrete ones stay as they are. Returns the log densities
/// at the ends.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::infer::ascend;
/// use hyperprior::targets::GaussianMixture;
/// let mut z = Batch::from_columns(vec![2.0, 2.5], 1);
/// ascend(&GaussianMixture::new(), &mut z)?;
/// assert!((z.get(0, 0) - 3.0).abs() < 0.01); // a component is at (3, 3)
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model, and [`Error::Model`] if it has no gradient.
pub fn ascend(model: &dyn Model, z: &mut Batch) -> Result<Vec<f64>> {
    let latents = model.latents();
    let Some(gradient) = model.gradient() else { return Err(Error::Model("an ascent needs a gradient".to_owned())) };
    let continuous: Vec<usize> = (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).collect();
    let (mut log_p, mut d_z) = (vec![0.0; z.draws_len()], Batch::zeros(latents.len(), z.draws_len()));
    let mut ascent = Ascent::new(continuous, z);
    for _ in 0..STEPS {
        gradient.log_joint_gradient(z, &mut log_p, &mut d_z)?;
        ascent.step(z, &log_p, &d_z);
    }
    model.log_joint(z, &mut log_p)?;
    Ok(log_p)
}
