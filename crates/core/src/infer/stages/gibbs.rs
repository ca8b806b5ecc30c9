//! Gibbs sweeps over discrete latents.

use crate::error::Result;
use crate::model::{Conditionals, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;

/// How many values of a count a Gibbs sweep considers first; their number doubles while the log weight of the last is within
/// `NEGLIGIBLE` of the largest.
const COUNTS: usize = 32;
const NEGLIGIBLE: f64 = 40.0;
/// Longer ranges are not enumerated.
const TABLE_MAX: f64 = 4096.0;

/// The conditional of a count over all values with a weight that is not negligible. Their number must not depend on the count's
/// own value, or the move would not be reversible.
fn counts(conditionals: &dyn Conditionals, i: usize, z: &Batch) -> Result<(Vec<f64>, Batch)> {
    let mut len = COUNTS;
    loop {
        let values: Vec<f64> = (0..len).map(|v| v as f64).collect();
        let mut out = Batch::zeros(len, z.draws_len());
        conditionals.log_conditional(i, z, &values, &mut out)?;
        let is_over = |s: usize| {
            let top = (0..len).map(|v| out.get(v, s)).fold(f64::NEG_INFINITY, f64::max);
            let (last, before) = (out.get(len - 1, s), out.get(len - 2, s));
            // If none of these values is possible, the possible ones lie further out, as the count itself does.
            let is_known = top > f64::NEG_INFINITY || z.get(i, s) < len as f64;
            is_known && (!(last > top - NEGLIGIBLE) || (last == f64::NEG_INFINITY && before == last))
        };
        if len >= TABLE_MAX as usize || (0..z.draws_len()).all(is_over) {
            return Ok((values, out));
        }
        len *= 2;
    }
}

/// Draws every discrete latent given everything else. Latents with ranges that are too long to enumerate keep their values.
pub(in crate::infer) fn sweep(
    model: &dyn Model,
    discrete: &[usize],
    z: &mut Batch,
    streams: &mut [Stream],
) -> Result<()> {
    let Some(conditionals) = model.conditionals() else { return Ok(()) };
    for &i in discrete {
        let (values, out) = match model.latents().support(i) {
            Support::Integers { lower, upper } if upper - lower < TABLE_MAX => {
                let values: Vec<f64> = (0..=(upper - lower) as usize).map(|v| lower + v as f64).collect();
                let mut out = Batch::zeros(values.len(), z.draws_len());
                conditionals.log_conditional(i, z, &values, &mut out)?;
                (values, out)
            }
            Support::Counts => counts(conditionals, i, z)?,
            _ => continue,
        };
        for (s, rng) in streams.iter_mut().enumerate() {
            // The largest of the log weights with Gumbel noise is a draw from them.
            let mut best = (f64::NEG_INFINITY, z.get(i, s));
            for (v, value) in values.iter().enumerate() {
                let u: f64 = rng.random();
                let noisy = out.get(v, s) - (-(u.max(f64::MIN_POSITIVE)).ln()).ln();
                if noisy > best.0 {
                    best = (noisy, *value);
                }
            }
            z.set(i, s, best.1);
        }
    }
    Ok(())
}
