//! Where a fit starts: chains on a tempered posterior, which need only log p, clustered into components.
//!
//! A start in the wrong place is the most common reason for a variational fit to fail. Chains on p(x, z)^β with β < 1 cross between
//! modes more easily than chains on the posterior itself.

use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::model::{Model, Support, describe};
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// What a start is made from. See [`StartSettings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartKind {
    /// Clusters of tempered chains.
    #[default]
    Tempered,
    /// Independent λ at the mean-field optimum with standard deviation `scale`; if that is small, the hierarchical model starts as
    /// mean-field.
    MeanField,
}

/// Where a fit starts.
///
/// ```
/// use hyperprior::fit::{FitSettings, StartKind, StartSettings};
/// let start = StartSettings::single().kind(StartKind::MeanField).scale(0.1);
/// let settings = FitSettings::default().start(start);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StartSettings {
    /// What the start is made from.
    pub kind: StartKind,
    /// The number of starts; with more than one, each gets a short run, and the one with the best bound is continued.
    pub tries: usize,
    /// The steps of each short run.
    pub steps: u64,
    /// Draws per component when the starts are ranked.
    pub ranking_draws: usize,
    /// β, the power of the density on which the chains run.
    pub temper: f64,
    /// The number of chains.
    pub chains: usize,
    /// The number of sweeps over the latents.
    pub sweeps: usize,
    /// The minimum standard deviation of λ around a location.
    pub scale: f64,
}

crate::setters!(StartSettings {
    kind: StartKind, tries: usize, steps: u64, ranking_draws: usize, temper: f64, chains: usize, sweeps: usize, scale: f64;
});

impl Default for StartSettings {
    fn default() -> Self {
        Self {
            kind: StartKind::default(),
            tries: 8,
            steps: 300,
            ranking_draws: 1024,
            temper: 0.5,
            chains: 256,
            sweeps: 30,
            scale: 0.3,
        }
    }
}

impl StartSettings {
    /// A single start, without short runs.
    pub fn single() -> Self {
        Self { tries: 1, ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<()> {
        let bad = |field, value: String, reason| Err(Error::BadSetting { field, value, reason });
        if self.tries == 0 {
            return bad("start.tries", "0".to_owned(), "at least one start is needed");
        }
        if self.chains < 2 {
            return bad("start.chains", self.chains.to_string(), "at least two chains are needed");
        }
        if self.ranking_draws == 0 {
            return bad("start.ranking_draws", "0".to_owned(), "at least one draw is needed");
        }
        if !(self.temper > 0.0 && self.temper <= 1.0) {
            return bad("start.temper", self.temper.to_string(), "it must be a power above 0 and at most 1");
        }
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return bad("start.scale", self.scale.to_string(), "it must be above 0");
        }
        Ok(())
    }
}

/// The maximum number of evaluations of the log joint by the tempered chains.
const EVALUATIONS_MAX: usize = 4000;
/// With more parameters than this, λ gets no covariance from the chains.
const COVARIANCE_MAX: usize = 64;
/// The number of points tried for each new centre.
const CANDIDATES: usize = 8;
/// Iterations of k-means after the centres are chosen.
const LLOYD: usize = 3;

/// The starts, from clusters of tempered chains.
pub(super) fn tempered_starts(
    model: &dyn Model,
    q: &Variational,
    seed: u64,
    settings: &StartSettings,
) -> Result<Vec<Start>> {
    let chains = temper(model, seed, settings)?;
    let cluster =
        |number| cluster(&chains, q, settings.scale, &mut stream(seed, Purpose::Temper.step(), 1 + number, 0));
    Ok((0..settings.tries as u64).map(cluster).collect())
}

/// The final states of the tempered chains, a column per latent, without those whose density is not finite.
fn temper(model: &dyn Model, seed: u64, settings: &StartSettings) -> Result<Batch> {
    let latents = model.latents();
    let chains_len = settings.chains;
    let mut streams: Vec<Stream> = (0..chains_len).map(|s| stream(seed, Purpose::Temper.step(), 0, s as u64)).collect();
    let mut z = Batch::zeros(latents.len(), chains_len);
    for i in 0..latents.len() {
        for (z, rng) in z.column_mut(i).iter_mut().zip(&mut streams) {
            *z = scatter(latents.support(i), rng);
        }
    }
    let mut log_p = vec![0.0; chains_len];
    model.log_joint(&z, &mut log_p)?;
    let sweeps = settings.sweeps.min(EVALUATIONS_MAX / latents.len());
    let mut moved = vec![0.0; chains_len];
    let mut log_p_moved = vec![0.0; chains_len];
    for _ in 0..sweeps {
        for i in 0..latents.len() {
            moved.copy_from_slice(z.column(i));
            for (z, rng) in z.column_mut(i).iter_mut().zip(&mut streams) {
                *z = propose(latents.support(i), *z, rng);
            }
            model.log_joint(&z, &mut log_p_moved)?;
            let column = z.column_mut(i);
            for s in 0..chains_len {
                let u: f64 = streams[s].random();
                // From an impossible state every possible one is accepted.
                let rise = if log_p[s].is_finite() { log_p_moved[s] - log_p[s] } else { f64::INFINITY };
                if log_p_moved[s].is_finite() && u.ln() < settings.temper * rise {
                    log_p[s] = log_p_moved[s];
                } else {
                    column[s] = moved[s];
                }
            }
        }
    }
    let alive: Vec<usize> = (0..chains_len).filter(|&s| log_p[s].is_finite()).collect();
    if alive.is_empty() {
        let example = describe(model, &z, 0, log_p[0]);
        return Err(Error::NotFinite { step: 0, dropped: chains_len, drawn: chains_len, example });
    }
    let mut kept = Batch::zeros(latents.len(), alive.len());
    for i in 0..latents.len() {
        for (to, from) in alive.iter().enumerate() {
            kept.set(i, to, z.get(i, *from));
        }
    }
    Ok(kept)
}

/// A value from anywhere sensible in the support.
fn scatter(support: Support, rng: &mut Stream) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    let uniform: f64 = rng.random();
    match support {
        Support::Positive => (1.5 * normal).exp(),
        Support::UnitInterval => uniform.clamp(1e-9, 1.0 - 1e-9),
        Support::Integers { lower, upper } => lower + (uniform * (upper - lower + 1.0)).floor().min(upper - lower),
        Support::Counts => (4.0 * uniform - 0.7).exp().round(),
        _ => 3.0 * normal,
    }
}

/// A Metropolis proposal, symmetric on the unconstrained scale or nearly so, which is enough for a start.
fn propose(support: Support, z: f64, rng: &mut Stream) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    // Steps of very different sizes, so that some suit any scale.
    let size: f64 = [0.1, 0.5, 2.0, 6.0][rng.random_range(0..4)];
    match support {
        Support::Positive => z * (size.min(2.0) * normal).exp(),
        Support::UnitInterval => {
            let logit = (z / (1.0 - z)).ln() + size * normal;
            (1.0 / (1.0 + (-logit).exp())).clamp(1e-9, 1.0 - 1e-9)
        }
        Support::Integers { lower, upper } if upper - lower <= 15.0 => {
            let shift = 1.0 + rng.random_range(0..(upper - lower).max(1.0) as u64) as f64;
            lower + (z - lower + shift).rem_euclid(upper - lower + 1.0)
        }
        Support::Integers { lower, upper } => (z + (size * 2.0 * normal).round()).clamp(lower, upper),
        Support::Counts => (z + (1.0 + size * normal.abs()).floor() * normal.signum()).abs(),
        _ => z + size * normal,
    }
}

/// Clusters the chains into the prior's components: distant centres by greedy k-means++, then a few iterations of k-means.
pub(crate) fn cluster(chains: &Batch, q: &Variational, scale: f64, rng: &mut Stream) -> Start {
    let components_len = q.prior().components_len();
    // Distances are between λ, since the components are distributions of λ.
    let points = lambdas(chains, q.likelihood());
    if q.prior().columns_len() == 0 && components_len == 1 {
        // A point starts at a chain: between two modes there may be no mass.
        let s = rng.random_range(0..points.len());
        return Start::at(points[s].clone(), scale);
    }
    let mut centres = vec![points[rng.random_range(0..points.len())].clone()];
    let mut far: Vec<f64> = points.iter().map(|p| distance(p, &centres[0])).collect();
    while centres.len() < components_len {
        // Of a few distant points, the one that brings the chains closest to their centres: another mode, not the edge of a wide
        // one.
        let nearer = |c: &[f64]| -> Vec<f64> { points.iter().zip(&far).map(|(p, f)| f.min(distance(p, c))).collect() };
        let total = |far: &[f64]| far.iter().sum::<f64>();
        let tried: Vec<(usize, Vec<f64>)> =
            (0..CANDIDATES).map(|_| weighted(&far, rng)).map(|s| (s, nearer(&points[s]))).collect();
        let best = tried.into_iter().min_by(|a, b| total(&a.1).total_cmp(&total(&b.1)));
        let Some((s, left)) = best else { break };
        centres.push(points[s].clone());
        far = left;
    }
    let mut members = assign(&points, &centres);
    for _ in 0..LLOYD {
        for (k, centre) in centres.iter_mut().enumerate() {
            let own: Vec<&Vec<f64>> = (0..points.len()).filter(|&s| members[s] == k).map(|s| &points[s]).collect();
            if !own.is_empty() {
                for (i, c) in centre.iter_mut().enumerate() {
                    *c = own.iter().map(|p| p[i]).sum::<f64>() / own.len() as f64;
                }
            }
        }
        members = assign(&points, &centres);
    }
    let mut start = Start { locations: Vec::new(), scales: Vec::new(), covariances: Vec::new() };
    for k in 0..components_len {
        let own: Vec<&[f64]> = (0..points.len()).filter(|&s| members[s] == k).map(|s| &*points[s]).collect();
        let own = if own.is_empty() { vec![&*points[rng.random_range(0..points.len())]] } else { own };
        moments(&own, scale, &mut start);
    }
    start
}

/// The location, scales and covariance of a cluster of λ.
fn moments(own: &[&[f64]], floor: f64, start: &mut Start) {
    let n = own[0].len();
    let count = own.len() as f64;
    let mean: Vec<f64> = (0..n).map(|i| own.iter().map(|l| l[i]).sum::<f64>() / count).collect();
    let moment = |i: usize, j: usize| own.iter().map(|l| (l[i] - mean[i]) * (l[j] - mean[j])).sum::<f64>() / count;
    // The spread of the chains includes that of the likelihood and of the tempering; half of it is closer to that of λ.
    let half = |i: usize, j: usize| 0.5 * moment(i, j) + if i == j { 0.5 * floor * floor } else { 0.0 };
    start.scales.push((0..n).map(|i| half(i, i).sqrt()).collect());
    start.covariances.push((n <= COVARIANCE_MAX).then(|| (0..n * n).map(|e| half(e / n, e % n)).collect()));
    start.locations.push(mean);
}

/// The λ of a likelihood centred at the state of each chain.
fn lambdas(chains: &Batch, likelihood: &dyn Likelihood) -> Vec<Vec<f64>> {
    (0..chains.draws_len())
        .map(|s| {
            let mut lambda = vec![0.0; likelihood.lambda_len()];
            for i in 0..chains.columns_len() {
                likelihood.start_at(i, chains.get(i, s), &mut lambda[likelihood.lambda_range(i)]);
            }
            lambda
        })
        .collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn assign(points: &[Vec<f64>], centres: &[Vec<f64>]) -> Vec<usize> {
    let nearest = |p: &Vec<f64>| {
        (0..centres.len()).min_by(|&a, &b| distance(p, &centres[a]).total_cmp(&distance(p, &centres[b]))).unwrap_or(0)
    };
    points.iter().map(nearest).collect()
}

/// An index drawn with probability proportional to its weight, or uniformly if all weights are zero.
fn weighted(weights: &[f64], rng: &mut Stream) -> usize {
    let total: f64 = weights.iter().sum();
    if !(total > 0.0) {
        return rng.random_range(0..weights.len());
    }
    let mut left = rng.random::<f64>() * total;
    for (i, w) in weights.iter().enumerate() {
        left -= w;
        if left < 0.0 {
            return i;
        }
    }
    weights.len() - 1
}
