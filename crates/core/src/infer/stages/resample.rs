//! Draws from a fitted approximation with their importance weights, and resampling.

use crate::error::Result;
use crate::fit::Fitted;
use crate::model::Model;
use crate::objective::Pass;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;

/// Draws per block.
pub(super) const BLOCK: usize = 64;

/// The number of weighted draws for each draw that is kept: the shares of modes that are far apart come from the weights alone.
pub const OVERSAMPLED: usize = 4;
/// The offset of systematic sampling that draws no random number.
pub(super) const MIDDLE: f64 = 0.5;

/// Streams of a stage that are numbered as data of [`Purpose::Draws`], above the numbers of the prior's components.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(in crate::infer) enum StageStream {
    /// The start of a mixture's components.
    MixtureStart = u64::MAX,
    /// The start of an approximation of discrete latents.
    ClusteredStart = u64::MAX - 1,
    /// The seeds of restarts.
    RestartSeed = u64::MAX - 2,
    /// The starts of restarts.
    RestartStart = u64::MAX - 3,
    /// Draws from single components.
    Components = u64::MAX - 4,
}

impl StageStream {
    /// The stream with this number.
    pub(in crate::infer) fn stream(self, seed: u64, number: u64) -> Stream {
        stream(seed, Purpose::Draws.step(), self as u64, number)
    }
}

/// The draws with these numbers, in this order.
pub(super) fn taken(u: &Batch, from: &[usize]) -> Batch {
    let mut out = Batch::zeros(u.columns_len(), from.len());
    for i in 0..u.columns_len() {
        let column = u.column(i);
        out.column_mut(i).iter_mut().zip(from).for_each(|(x, s)| *x = column[*s]);
    }
    out
}

/// `len` draws, the given ones repeated.
pub(in crate::infer) fn repeated(u: &Batch, len: usize) -> Batch {
    taken(u, &(0..len).map(|s| s % u.draws_len()).collect::<Vec<_>>())
}

/// `len` draws at equal intervals.
pub(super) fn thinned(u: &Batch, len: usize) -> Batch {
    taken(u, &(0..len).map(|to| to * u.draws_len() / len).collect::<Vec<_>>())
}

/// Systematic sampling of `len` numbers in proportion to weights with this sum: how often each is drawn differs from its expectation by
/// less than one. With an offset drawn between 0 and 1 it is unbiased.
pub(super) fn systematic(log_weights: &[f64], log_sum: f64, len: usize, offset: f64) -> impl Iterator<Item = usize> {
    let weight = move |s: usize| (log_weights[s] - log_sum).exp();
    let (mut s, mut reached) = (0, weight(0));
    (0..len).map(move |to| {
        let goal = (to as f64 + offset) / len as f64;
        while reached < goal && s + 1 < log_weights.len() {
            s += 1;
            reached += weight(s);
        }
        s
    })
}

/// Draws by systematic resampling; the weights sum to 1.
pub(super) fn resampled(u: &Batch, log_weights: &[f64], len: usize) -> Batch {
    taken(u, &systematic(log_weights, 0.0, len, MIDDLE).collect::<Vec<_>>())
}

/// The draw with the largest weight in each of `len` groups.
pub(super) fn heaviest(u: &Batch, log_weights: &[f64], len: usize) -> Batch {
    let len = len.min(u.draws_len());
    let largest = |group: usize| {
        (group..u.draws_len()).step_by(len).max_by(|a, b| log_weights[*a].total_cmp(&log_weights[*b])).unwrap_or(group)
    };
    taken(u, &(0..len).map(largest).collect::<Vec<_>>())
}

/// Draws from each component of q.
pub(in crate::infer) fn of_components(q: &Variational, fitted: &Fitted, len: usize, seed: u64) -> Vec<Batch> {
    let of = |k: usize| {
        let number = |s: usize| (k * len + s) as u64;
        let mut streams: Vec<Stream> = (0..len).map(|s| StageStream::Components.stream(seed, number(s))).collect();
        let mut pass = Pass::default();
        pass.draw(q, &fitted.theta, k, &mut streams, 1, false);
        pass.draws.z
    };
    (0..q.prior().components_len()).map(of).collect()
}

/// Fresh draws of r behind an importance weight. With λ_0 the λ that generated z, p/q̂(z) is a weight like p(x, z) r(λ_0 | z)/q(z, λ_0):
/// both have the evidence as their mean, and the first varies less.
const SAMPLES: usize = 8;

/// Draws from q, and their log importance weights, log p − log q̂(z). Components are drawn in proportion to their weights.
pub(super) fn draw(
    model: &dyn Model,
    q: &Variational,
    fitted: &Fitted,
    len: usize,
    seed: u64,
) -> Result<(Batch, Vec<f64>)> {
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
            (0..size).map(|s| stream(seed, Purpose::Draws.step(), k as u64, (first + s) as u64)).collect();
        let mut pass = Pass::default();
        pass.draw(q, &fitted.theta, k, &mut streams, 1, false);
        let at = (&*fitted.theta, &*fitted.phi);
        pass.forward(model, q, at.0, at.1)?;
        if q.has_recursion() {
            pass.tighten(q, at, &mut streams, SAMPLES);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_testkit::mean::assert_mean;
    use rand_distr::{Distribution, StandardNormal};

    /// Catches copies that do not follow the weights: their number is the expected one.
    #[test]
    fn the_number_of_copies_is_the_expected_one() {
        let u = Batch::from_columns(vec![1.0, 2.0, 3.0, 4.0], 4);
        let log_weights = [0.1_f64, 0.5, 0.0, 0.4].map(f64::ln);
        let copies = resampled(&u, &log_weights, 20);
        let count = |x: f64| copies.column(0).iter().filter(|y| **y == x).count();
        assert_eq!([1.0, 2.0, 3.0, 4.0].map(count), [2, 10, 0, 8]);
    }

    /// Catches resampling that changes a distribution: exact draws with equal weights stay a sample of it, and weighted draws of a wider
    /// normal become one of the standard normal. Variances within 5 %, probabilities of .1 as well.
    #[test]
    fn resampling_leaves_the_weighted_distribution_invariant() {
        for sd in [1.0_f64, 1.3] {
            let x: Vec<f64> = (0..400_000)
                .map(|s| sd * Distribution::<f64>::sample(&StandardNormal, &mut stream(3, 0, 0, s)))
                .collect();
            let log_weights: Vec<f64> = x.iter().map(|x| 0.5 * x * x * (1.0 / (sd * sd) - 1.0)).collect();
            let total: f64 = log_weights.iter().map(|w| w.exp()).sum();
            let log_weights: Vec<f64> = log_weights.iter().map(|w| w - total.ln()).collect();
            let found = resampled(&Batch::from_columns(x, 400_000), &log_weights, 100_000);
            let found = found.column(0);
            assert_mean(found, 0.0, 0.05);
            assert_mean(&found.iter().map(|x| x * x).collect::<Vec<_>>(), 1.0, 0.05);
            assert_mean(
                &found.iter().map(|x| f64::from(*x < -1.281_551_565_544_600_4)).collect::<Vec<_>>(),
                0.1,
                0.005,
            );
        }
    }
}
