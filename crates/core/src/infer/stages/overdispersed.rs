//! Where superchains start: farther apart than the draws, and where the draws may have too little mass.

use super::sparse_curvature::SparseCurvature;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::moments;
use crate::error::Result;
use crate::infer::result::SUPERCHAINS;
use crate::model::{Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use rand::RngExt;

/// How much wider than the draws the starts are spread, and how often an impossible start is drawn again closer to them.
const WIDE: f64 = 3.0;
const SHRINKS: usize = 12;
/// Ends of ascents farther apart than this, in standard deviations and per latent, are distinct.
const ENDS_APART: f64 = 1.0;

/// What the superchains are compared with, and where some of them start.
pub(in crate::infer) struct Delivered<'a> {
    /// The draws, in whitened coordinates.
    pub(in crate::infer) u: &'a Batch,
    /// Where the ascents of the mode search ended, in whitened coordinates.
    pub(in crate::infer) ends: &'a Batch,
    /// Draws of the approximation with large importance weights: it has too little mass there.
    pub(in crate::infer) heavy: &'a Batch,
    /// The moves of each draw.
    pub(in crate::infer) moves: usize,
    /// The estimate of the log evidence.
    pub(in crate::infer) log_evidence: f64,
}

/// A point for each superchain: wide versions of the draws, ends of ascents, and draws with large weights.
pub(in crate::infer) fn overdispersed(
    whitened: &WhitenedModel<dyn Model + '_>,
    delivered: &Delivered,
    seed: u64,
) -> Result<Batch> {
    let (u, latents) = (delivered.u, whitened.latents());
    let n = latents.len();
    let centre: Vec<f64> = (0..n).map(|i| moments(u.column(i)).0).collect();
    let is_wide = spread_latents(whitened);
    let ends = distinct_ends(whitened, delivered.ends)?;
    let mut points = Batch::zeros(n, SUPERCHAINS);
    let mut rngs: Vec<Stream> =
        (0..SUPERCHAINS).map(|k| stream(seed, Purpose::Superchains.step(), 0, k as u64)).collect();
    let mut log_p = vec![f64::NAN; SUPERCHAINS];
    for shrink in 0..=SHRINKS {
        for (k, rng) in rngs.iter_mut().enumerate().filter(|(k, _)| !log_p[*k].is_finite()) {
            let from = rng.random_range(0..u.draws_len());
            let given = [None, Some(delivered.ends), Some(delivered.heavy)][k % 3];
            let given = given.filter(|points| shrink == 0 && points.draws_len() > 0);
            let given = given.map(|points| {
                let at = rng.random_range(0..points.draws_len());
                (points, if k % 3 == 1 { ends.get(k / 3).copied().unwrap_or(at) } else { at })
            });
            let width = if shrink == SHRINKS { 1.0 } else { 1.0 + (WIDE - 1.0) * 0.7_f64.powi(shrink as i32) };
            for i in 0..n {
                let (draw, other) = (u.get(i, from), u.get(i, rng.random_range(0..u.draws_len())));
                let (coin, uniform): (f64, f64) = (rng.random(), rng.random());
                let x = match latents.support(i) {
                    _ if let Some((points, at)) = given => points.get(i, at),
                    Support::Integers { lower, upper } if coin < (width - 1.0) / WIDE => {
                        lower + (uniform * (upper - lower + 1.0)).floor().min(upper - lower)
                    }
                    Support::Integers { .. } | Support::Counts if coin < 0.5 && width > 1.0 => other,
                    Support::Integers { .. } | Support::Counts => draw,
                    _ if !is_wide[i] => draw,
                    _ => centre[i] + width * (draw - centre[i]),
                };
                points.set(i, k, x);
            }
        }
        whitened.log_joint(&points, &mut log_p)?;
        if log_p.iter().all(|x| x.is_finite()) {
            break;
        }
    }
    Ok(points)
}

/// The latents whose starts are spread. Of very many, only those that describe the others: in these coordinates the others follow them,
/// and far from the draws in thousands of directions at once there is nothing to be found.
fn spread_latents(whitened: &WhitenedModel<dyn Model + '_>) -> Vec<bool> {
    let n = whitened.latents().len();
    let hubs = match whitened.place().1 {
        Whitening::Sparse(_) => {
            SparseCurvature::new(whitened.model(), whitened.continuous()).map(|sparse| sparse.hubs())
        }
        _ => None,
    };
    match hubs {
        Some(hubs) if !hubs.is_empty() => (0..n).map(|i| hubs.binary_search(&i).is_ok()).collect(),
        _ => vec![true; n],
    }
}

/// The ends of ascents that are far from those with a higher density, in the order of their density.
fn distinct_ends(whitened: &WhitenedModel<dyn Model + '_>, ends: &Batch) -> Result<Vec<usize>> {
    let mut log_p = vec![0.0; ends.draws_len()];
    if log_p.is_empty() {
        return Ok(Vec::new());
    }
    whitened.log_joint(ends, &mut log_p)?;
    let mut order: Vec<usize> = (0..log_p.len()).filter(|s| log_p[*s].is_finite()).collect();
    order.sort_by(|a, b| log_p[*b].total_cmp(&log_p[*a]));
    let n = ends.columns_len();
    let is_far = |a: usize, b: usize| {
        (0..n).map(|i| (ends.get(i, a) - ends.get(i, b)).powi(2)).sum::<f64>() > ENDS_APART * ENDS_APART * n as f64
    };
    let mut distinct: Vec<usize> = Vec::new();
    for s in order {
        if distinct.iter().all(|other| is_far(s, *other)) {
            distinct.push(s);
        }
    }
    Ok(distinct)
}
