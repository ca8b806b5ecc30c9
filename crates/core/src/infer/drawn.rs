//! Draws from a fitted approximation, their importance weights, and fewer or more of them.

use crate::error::Result;
use crate::fit::Fitted;
use crate::gradient::Pass;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rayon::prelude::*;

/// Draws per block.
const BLOCK: usize = 64;
/// Streams of draws are apart from all others.
pub(super) const DRAW_STEP: u64 = u64::MAX - 5;

/// The draws with these numbers, in this order.
fn taken(u: &Batch, from: &[usize]) -> Batch {
    let mut out = Batch::zeros(u.columns_len(), from.len());
    for i in 0..u.columns_len() {
        let column = u.column(i);
        out.column_mut(i).iter_mut().zip(from).for_each(|(x, s)| *x = column[*s]);
    }
    out
}

/// As many draws as wanted, the given ones over and over.
pub(super) fn repeated(u: &Batch, len: usize) -> Batch {
    taken(u, &(0..len).map(|s| s % u.draws_len()).collect::<Vec<_>>())
}

/// Every so many-th draw.
pub(super) fn thinned(u: &Batch, len: usize) -> Batch {
    taken(u, &(0..len).map(|to| to * u.draws_len() / len).collect::<Vec<_>>())
}

/// Systematic resampling with a fixed offset: each draw as often as its weight says, to within one.
pub(super) fn resampled(u: &Batch, log_weights: &[f64], len: usize) -> Batch {
    let (mut s, mut reached) = (0, log_weights[0].exp());
    let from: Vec<usize> = (0..len)
        .map(|to| {
            let goal = (to as f64 + 0.5) / len as f64;
            while reached < goal && s + 1 < u.draws_len() {
                s += 1;
                reached += log_weights[s].exp();
            }
            s
        })
        .collect();
    taken(u, &from)
}

/// Draws from q, and the logarithms of their importance weights. Components are drawn in proportion to their weights.
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
