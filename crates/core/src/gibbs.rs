//! Gibbs sweeps over discrete latents.
//!
//! A range that fits in a table is drawn from as a whole. A longer one is divided into blocks of consecutive values, and a draw
//! moves within its block. A count has a table of the values that matter; between the table and the values beyond it there are
//! Metropolis moves. Where the table ends and where the blocks lie does not depend on the value that is moved, so every move
//! leaves the conditional distribution unchanged.

use crate::error::Result;
use crate::model::{Conditionals, Latents, Model, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;

/// How many values of a count the table has first; their number doubles while a later value has a log weight within `NEGLIGIBLE`
/// of the largest.
const COUNTS: usize = 32;
const NEGLIGIBLE: f64 = 40.0;
/// Later values that are looked at, so that the table does not end in a dip.
const PROBES: [f64; 5] = [64.0, 256.0, 1024.0, 4096.0, 16_384.0];
/// Longer ranges are not enumerated.
const TABLE_MAX: usize = 4096;
/// The lengths of blocks, and how often each is used.
const BLOCKS: [(f64, f64); 3] = [(64.0, 0.5), (512.0, 0.375), (4096.0, 0.125)];
/// Borders of blocks lie at multiples of their length divided by this, so that draws share blocks.
const PLACES: f64 = 4.0;
/// How often a count in its table proposes a value beyond it.
const BEYOND: f64 = 1.0 / 64.0;

/// The conditional of a count over the first values.
#[derive(Debug)]
struct Table {
    len: usize,
    /// The log weights of at least `len` values.
    weights: Batch,
    /// For which draws the table has practically all values that matter.
    is_whole: Vec<bool>,
}

fn table(conditionals: &dyn Conditionals, i: usize, z: &Batch) -> Result<Table> {
    let draws_len = z.draws_len();
    let (mut len, mut probes) = (COUNTS, Batch::zeros(0, draws_len));
    loop {
        let mut values: Vec<f64> = (0..len).map(|v| v as f64).collect();
        let is_first = len == COUNTS;
        if is_first {
            values.extend(PROBES);
        }
        let mut out = Batch::zeros(values.len(), draws_len);
        conditionals.log_conditional(i, z, &values, &mut out)?;
        if is_first {
            probes = Batch::zeros(PROBES.len(), draws_len);
            for v in 0..PROBES.len() {
                probes.column_mut(v).copy_from_slice(out.column(len + v));
            }
        }
        // Whether the table of this draw has practically all values that matter, and whether no table would.
        let state = |s: usize| {
            let later =
                || (0..PROBES.len()).filter(|v| PROBES[*v] >= len as f64).map(|v| (PROBES[v], probes.get(v, s)));
            let top = (0..len).map(|v| out.get(v, s)).chain(later().map(|p| p.1)).fold(f64::NEG_INFINITY, f64::max);
            let matters = |w: f64| w > top - NEGLIGIBLE;
            let is_whole =
                top > f64::NEG_INFINITY && !matters(out.get(len - 1, s)) && !later().any(|(_, w)| matters(w));
            (is_whole, later().any(|(x, w)| x >= TABLE_MAX as f64 && matters(w)))
        };
        let (whole, is_out): (Vec<bool>, Vec<bool>) = (0..draws_len).map(state).unzip();
        if len >= TABLE_MAX || (0..draws_len).all(|s| whole[s] || is_out[s]) {
            return Ok(Table { len, weights: out, is_whole: whole });
        }
        len *= 2;
    }
}

/// A draw from the values `first`, `first` + 1, … with these log weights; `now` if none is possible. The largest of the log
/// weights with Gumbel noise is a draw from them.
fn choose(weights: impl Iterator<Item = f64>, first: f64, now: f64, rng: &mut Stream) -> f64 {
    let mut best = (f64::NEG_INFINITY, now);
    for (v, weight) in weights.enumerate() {
        let u: f64 = rng.random();
        let noisy = weight - (-(u.max(f64::MIN_POSITIVE)).ln()).ln();
        if noisy > best.0 {
            best = (noisy, first + v as f64);
        }
    }
    best.1
}

/// The draws of these numbers, as a batch.
fn gather(z: &Batch, draws: impl ExactSizeIterator<Item = usize> + Clone) -> Batch {
    let mut own = Batch::zeros(z.columns_len(), draws.len());
    for column in 0..z.columns_len() {
        for (at, s) in draws.clone().enumerate() {
            own.set(column, at, z.get(column, s));
        }
    }
    own
}

/// A proposal of a count to leave its table or to come back.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    draw: usize,
    /// A value in the table, and one beyond it.
    inside: f64,
    beyond: f64,
    comes_back: bool,
}

/// Draws a count from its table. With probability `BEYOND`, a value in the table proposes one beyond it instead, from
/// g(x) = len / (x (x + 1)); a value x beyond the table proposes one in it, drawn from the table. The latter is accepted with
/// probability min(1, r) and the former with min(1, 1/r), or else the count is drawn from its table, where
/// r = `BEYOND` · g(x) · (sum of the table) / p(x).
fn move_in_table(
    conditionals: &dyn Conditionals,
    i: usize,
    table: &Table,
    z: &mut Batch,
    streams: &mut [Stream],
) -> Result<()> {
    let len = table.len as f64;
    let mut crossings = Vec::new();
    for (s, rng) in streams.iter_mut().enumerate().filter(|(s, _)| table.is_whole[*s]) {
        let now = z.get(i, s);
        let u: f64 = rng.random();
        if now < len && u < BEYOND {
            let beyond = (len / rng.random::<f64>().max(1e-9)).floor();
            crossings.push(Crossing { draw: s, inside: now, beyond, comes_back: false });
            continue;
        }
        let drawn = choose((0..table.len).map(|v| table.weights.get(v, s)), 0.0, now, rng);
        if now < len {
            z.set(i, s, drawn);
        } else {
            crossings.push(Crossing { draw: s, inside: drawn, beyond: now, comes_back: true });
        }
    }
    crossings.sort_by(|a, b| a.beyond.total_cmp(&b.beyond).then(a.draw.cmp(&b.draw)));
    for together in crossings.chunk_by(|a, b| a.beyond == b.beyond) {
        let x = together[0].beyond;
        let own = gather(z, together.iter().map(|c| c.draw));
        let mut out = Batch::zeros(1, together.len());
        conditionals.log_conditional(i, &own, &[x], &mut out)?;
        for (at, crossing) in together.iter().enumerate() {
            let s = crossing.draw;
            let weights = || (0..table.len).map(|v| table.weights.get(v, s)).filter(|w| !w.is_nan());
            let top = weights().fold(f64::NEG_INFINITY, f64::max);
            let sum = top + weights().map(|w| (w - top).exp()).sum::<f64>().ln();
            let ratio = BEYOND.ln() + (len / (x * (x + 1.0))).ln() + sum - out.get(0, at);
            let (log_accepted, to) =
                if crossing.comes_back { (ratio, crossing.inside) } else { (-ratio, crossing.beyond) };
            if streams[s].random::<f64>().ln() < log_accepted {
                z.set(i, s, to);
            } else if !crossing.comes_back {
                let weights = (0..table.len).map(|v| table.weights.get(v, s));
                z.set(i, s, choose(weights, 0.0, crossing.inside, &mut streams[s]));
            }
        }
    }
    Ok(())
}

/// Moves these draws of latent `i` within blocks of its range. Each draw has its own length of blocks and its own place of their
/// borders.
fn move_in_blocks(
    conditionals: &dyn Conditionals,
    (i, lower, upper): (usize, f64, f64),
    z: &mut Batch,
    streams: &mut [Stream],
    draws: &[usize],
) -> Result<()> {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(draws.len());
    for &s in draws {
        let rng = &mut streams[s];
        let mut u: f64 = rng.random();
        let mut len = BLOCKS[0].0;
        for (length, share) in BLOCKS {
            len = length;
            if u < share {
                break;
            }
            u -= share;
        }
        let shift = (rng.random::<f64>() * PLACES).floor() * (len / PLACES);
        let first = lower - shift + ((z.get(i, s) - lower + shift) / len).floor() * len;
        blocks.push((first, len, s));
    }
    blocks.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    for together in blocks.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (first, len, _) = together[0];
        let (first, end) = (first.max(lower), (first + len).min(upper + 1.0));
        let values: Vec<f64> = (0..(end - first).max(0.0) as usize).map(|v| first + v as f64).collect();
        let own = gather(z, together.iter().map(|(.., s)| *s));
        let mut out = Batch::zeros(values.len(), together.len());
        conditionals.log_conditional(i, &own, &values, &mut out)?;
        for (at, (.., s)) in together.iter().enumerate() {
            let weights = (0..values.len()).map(|v| out.get(v, at));
            let drawn = choose(weights, first, z.get(i, *s), &mut streams[*s]);
            z.set(i, *s, drawn);
        }
    }
    Ok(())
}

/// Draws every discrete latent given everything else, or moves it within a block of its range if the range is long.
pub(crate) fn sweep(model: &dyn Model, discrete: &[usize], z: &mut Batch, streams: &mut [Stream]) -> Result<()> {
    let Some(conditionals) = model.conditionals() else { return Ok(()) };
    scan(model.latents(), conditionals, discrete, z, streams)
}

/// The same for these conditionals. Further columns of `z` are passed on with each draw.
pub(crate) fn scan(
    latents: &Latents,
    conditionals: &dyn Conditionals,
    discrete: &[usize],
    z: &mut Batch,
    streams: &mut [Stream],
) -> Result<()> {
    for &i in discrete {
        match latents.support(i) {
            Support::Integers { lower, upper } if upper - lower < TABLE_MAX as f64 => {
                let values: Vec<f64> = (0..=(upper - lower) as usize).map(|v| lower + v as f64).collect();
                let mut out = Batch::zeros(values.len(), z.draws_len());
                conditionals.log_conditional(i, z, &values, &mut out)?;
                for (s, rng) in streams.iter_mut().enumerate() {
                    let weights = (0..values.len()).map(|v| out.get(v, s));
                    let drawn = choose(weights, lower, z.get(i, s), rng);
                    z.set(i, s, drawn);
                }
            }
            Support::Integers { lower, upper } => {
                let draws: Vec<usize> = (0..z.draws_len()).collect();
                move_in_blocks(conditionals, (i, lower, upper), z, streams, &draws)?;
            }
            Support::Counts => {
                let table = table(conditionals, i, z)?;
                move_in_table(conditionals, i, &table, z, streams)?;
                let long: Vec<usize> = (0..z.draws_len()).filter(|s| !table.is_whole[*s]).collect();
                move_in_blocks(conditionals, (i, 0.0, f64::INFINITY), z, streams, &long)?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use hyperprior_math::special::ln_factorial;

    /// One discrete latent with these log weights.
    struct One {
        latents: Latents,
        log_weight: fn(f64) -> f64,
    }

    impl One {
        fn new(support: Support, log_weight: fn(f64) -> f64) -> Self {
            Self { latents: Latents::new().scalar("n", support).unwrap(), log_weight }
        }
    }

    impl Model for One {
        fn latents(&self) -> &Latents {
            &self.latents
        }

        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            for (s, out) in out.iter_mut().enumerate() {
                *out = (self.log_weight)(z.get(0, s));
            }
            Ok(())
        }

        fn conditionals(&self) -> Option<&dyn Conditionals> {
            Some(self)
        }
    }

    impl Conditionals for One {
        fn log_conditional(&self, _: usize, _: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
            for (v, x) in values.iter().enumerate() {
                out.column_mut(v).fill((self.log_weight)(*x));
            }
            Ok(())
        }
    }

    fn poisson(n: f64, rate: f64) -> f64 {
        n * rate.ln() - rate - ln_factorial(n)
    }

    /// Draws by enumeration, moved by some sweeps: a χ² test of the moved values against the probabilities, in at most 40 cells of
    /// about equal probability; and the share of draws that moved at all.
    fn check(support: Support, values_len: usize, log_weight: fn(f64) -> f64, least_moved: f64) {
        let model = One::new(support, log_weight);
        let logs: Vec<f64> = (0..values_len).map(|n| log_weight(n as f64)).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logs.iter().map(|w| (w - top).exp()).sum();
        let shares: Vec<f64> = logs.iter().map(|w| (w - top).exp() / total).collect();
        let draws_len = 20_000;
        let mut streams: Vec<Stream> = (0..draws_len).map(|s| stream(7, 0, 0, s as u64)).collect();
        let mut z = Batch::zeros(1, draws_len);
        for (s, rng) in streams.iter_mut().enumerate() {
            let mut left: f64 = rng.random();
            let n = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            z.set(0, s, n.unwrap_or(0) as f64);
        }
        let before = z.column(0).to_vec();
        for _ in 0..3 {
            sweep(&model, &[0], &mut z, &mut streams).unwrap();
        }
        let (mut cell, mut share_of, mut cells) = (vec![0_usize; values_len], 0.0, Vec::new());
        for (n, share) in shares.iter().enumerate() {
            cell[n] = cells.len();
            share_of += share;
            if share_of > 1.0 / 40.0 {
                cells.push(share_of);
                share_of = 0.0;
            }
        }
        cells.push(share_of);
        let mut seen = vec![0.0; cells.len()];
        for n in z.column(0) {
            seen[cell[*n as usize]] += 1.0;
        }
        let expected = |c: usize| cells[c] * draws_len as f64;
        let used: Vec<usize> = (0..cells.len()).filter(|c| expected(*c) > 5.0).collect();
        let squared: f64 = used.iter().map(|c| (seen[*c] - expected(*c)).powi(2) / expected(*c)).sum();
        let df = used.len() as f64 - 1.0;
        // About four standard deviations.
        assert!(squared < df + 4.0 * (2.0 * df).sqrt(), "χ² = {squared} with {df} degrees of freedom");
        let moved = before.iter().zip(z.column(0)).filter(|(a, b)| a != b).count() as f64 / draws_len as f64;
        assert!(moved > least_moved, "{moved} of the draws moved");
    }

    #[test]
    fn small_counts_stay_at_their_distribution() {
        check(Support::Counts, 100, |n| poisson(n, 4.0), 0.7);
    }

    /// A table that ends at 4,096 would move every draw below it.
    #[test]
    fn large_counts_stay_at_their_distribution() {
        check(Support::Counts, 9000, |n| poisson(n, 6000.0), 0.9);
    }

    #[test]
    fn bounded_ranges_stay_at_their_distribution() {
        check(Support::Integers { lower: 0.0, upper: 30.0 }, 31, |n| -0.01 * (n - 11.0) * (n - 11.0), 0.8);
        check(Support::Integers { lower: 0.0, upper: 20_000.0 }, 20_001, |n| -1e-6 * (n - 11_000.0).powi(2), 0.9);
    }

    /// A table that ends at the first dip would leave out the second mode.
    #[test]
    fn counts_with_two_modes_stay_at_their_distribution() {
        let two = |n: f64| {
            let (a, b) = (poisson(n, 3.0), poisson(n, 200.0));
            a.max(b) + (-(a - b).abs()).exp().ln_1p()
        };
        check(Support::Counts, 1000, two, 0.7);
        // The second mode lies between two of the values that are looked at.
        let hidden = |n: f64| if (540.0..560.0).contains(&n) { -4.0 } else { poisson(n, 3.0) };
        check(Support::Counts, 1000, hidden, 0.5);
    }

    /// Impossible values in between do not end the range.
    #[test]
    fn counts_with_impossible_values_stay_at_their_distribution() {
        let dipped = |n: f64| if (5.0..60.0).contains(&n) { f64::NEG_INFINITY } else { poisson(n, 40.0) };
        check(Support::Counts, 400, dipped, 0.7);
        let far = |n: f64| if n < 70.0 { f64::NEG_INFINITY } else { poisson(n, 40.0) };
        check(Support::Counts, 400, far, 0.3);
    }

    /// Draws far beyond the values that matter come back.
    #[test]
    fn counts_come_back_from_far_out() {
        let model = One::new(Support::Counts, |n| poisson(n, 4.0));
        let mut streams: Vec<Stream> = (0..100).map(|s| stream(7, 0, 0, s)).collect();
        let mut z = Batch::zeros(1, 100);
        z.column_mut(0).fill(3000.0);
        sweep(&model, &[0], &mut z, &mut streams).unwrap();
        assert!(z.column(0).iter().all(|n| *n < 30.0));
    }
}
