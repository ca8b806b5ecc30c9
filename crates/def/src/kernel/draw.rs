//! Draws of discrete latents, sixteen at a time.

use super::row;
use hyperprior_math::random::Stream;
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{exp, splat};
use hyperprior_math::single::{DRAWS, LANES, Tile};
use rand::RngExt;
use rand_distr::{Distribution, Poisson};

/// Rates below this are drawn by inversion over the values, of which there are enough for any such rate.
const SMALL: f32 = 40.0;
const VALUES: usize = 160;
/// Beyond the mean, probabilities below this are treated as zero.
const NONE: f32 = 1e-9;
/// Larger rates are clamped to this.
const RATE_MAX: f32 = 1e6;

/// Uniform numbers in [0, 1) for `width` latents, the same for both draws of a pair if draws are paired; and 0 in the other lanes,
/// which counts and bits turn into 0.
pub(crate) fn uniform(width: usize, draws: usize, is_paired: bool, rng: &mut Stream, out: &mut [Tile]) {
    let mut bits = [0_u32; LANES];
    for (j, tile) in out.iter_mut().enumerate() {
        let used = LANES.min(width.saturating_sub(j * LANES));
        bits[used..].fill(0);
        for q in 0..draws {
            if is_paired && q % 2 == 1 {
                tile.0[q] = tile.0[q - 1];
            } else {
                rng.fill(&mut bits[..used]);
                tile.0[q] = bits.map(|bits| (bits >> 8) as f32 * (1.0 / 16_777_216.0));
            }
        }
    }
}

#[inline(always)]
fn counts_kernel<S: Simd>(s: S, mean: &[Tile], draws: usize, z: &mut [Tile]) {
    let one = splat(s, 1.0);
    for (mean, z) in mean.iter().zip(z) {
        for q in 0..draws {
            let (mean, u) = (row(s, mean, q).min(splat(s, SMALL)), row(s, z, q));
            let mut p = exp(s, -mean);
            let (mut reached, mut count) = (p, splat(s, 0.0));
            for value in 1..VALUES {
                // Rounding may leave the sum of all probabilities below u; then this is the last value with positive probability.
                let is_left = p.simd_gt(splat(s, NONE)) | mean.simd_gt(splat(s, value as f32));
                let is_above = u.simd_gt(reached) & is_left;
                if !is_above.any_true() {
                    break;
                }
                count = is_above.select(count + one, count);
                p *= mean * (1.0 / value as f32);
                reached += p;
            }
            count.store_slice(&mut z.0[q]);
        }
    }
}

simd_fn!(
    fn small_counts(mean: &[Tile], draws: usize, z: &mut [Tile]) = counts_kernel
);

/// Turns the uniform numbers in `z` into Poisson counts with these means; large means use other random numbers.
pub(crate) fn counts(mean: &[Tile], draws: usize, rng: &mut Stream, z: &mut [Tile]) {
    small_counts(mean, draws, z);
    for (mean, z) in mean.iter().zip(z) {
        for (mean, z) in mean.0.iter().zip(&mut z.0).take(draws) {
            for (mean, z) in mean.iter().zip(z).filter(|(mean, _)| **mean >= SMALL) {
                *z = Poisson::new(mean.min(RATE_MAX)).map_or(0.0, |poisson| poisson.sample(rng));
            }
        }
    }
}

/// Turns the uniform numbers in `z` into latents that are 1 with these probabilities.
pub(crate) fn bits(mean: &[Tile], draws: usize, z: &mut [Tile]) {
    for (mean, z) in mean.iter().zip(z) {
        for (mean, z) in mean.0.iter().zip(&mut z.0).take(draws.min(DRAWS)) {
            mean.iter().zip(z).for_each(|(mean, z)| *z = f32::from(*z > 1.0 - *mean));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;

    #[test]
    fn frequencies_are_those_of_the_distributions() {
        let means = [0.0001, 0.3, 1.0, 7.0, 39.0, 60.0];
        let mut mean = vec![Tile::default()];
        for row in &mut mean[0].0 {
            row[..means.len()].copy_from_slice(&means);
        }
        let mut rng = stream(1, 0, 0, 0);
        let mut z = mean.clone();
        let rounds = 20_000;
        let (mut sums, mut squares) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        for _ in 0..rounds {
            uniform(LANES, DRAWS, false, &mut rng, &mut z);
            counts(&mean, DRAWS, &mut rng, &mut z);
            for row in &z[0].0 {
                for lane in 0..LANES {
                    sums[lane] += f64::from(row[lane]);
                    squares[lane] += f64::from(row[lane]).powi(2);
                }
            }
        }
        let n = f64::from(rounds * DRAWS as u32);
        for (lane, m) in means.iter().map(|m| f64::from(*m)).enumerate() {
            let (mean, square) = (sums[lane] / n, squares[lane] / n);
            // Six standard errors; a Poisson's fourth moment is m (1 + 7 m + 6 m² + m³).
            assert!((mean - m).abs() < 6.0 * (m / n).sqrt(), "mean {mean} of {m}");
            let error = ((m * (1.0 + 7.0 * m + 6.0 * m * m + m.powi(3)) - (m + m * m).powi(2)) / n).sqrt();
            assert!((square - m - m * m).abs() < 6.0 * error, "square {square} of {m}");
        }
        assert_eq!(sums[means.len()..], [0.0; 10]);
        // The largest number below 1 works too.
        for mean in (1..400).map(|i| i as f32 / 10.0) {
            let mut z = [Tile([[1.0 - 1.0 / 16_777_216.0; LANES]; DRAWS])];
            small_counts(&[Tile([[mean; LANES]; DRAWS])], 1, &mut z);
            let far = mean + 8.0 * mean.sqrt() + 8.0;
            assert!((mean..far).contains(&z[0].0[0][0]), "{} for the mean {mean}", z[0].0[0][0]);
        }
        let chances = [0.0001_f32, 0.3, 0.9];
        let mut ones = [0.0; 3];
        for row in &mut mean[0].0 {
            row[..3].copy_from_slice(&chances);
        }
        for _ in 0..rounds {
            uniform(LANES, DRAWS, false, &mut rng, &mut z);
            bits(&mean, DRAWS, &mut z);
            z[0].0.iter().for_each(|row| (0..3).for_each(|lane| ones[lane] += f64::from(row[lane])));
        }
        for (ones, p) in ones.iter().zip(chances.map(f64::from)) {
            assert!((ones / n - p).abs() < 6.0 * (p * (1.0 - p) / n).sqrt(), "{} of {p}", ones / n);
        }
    }

    #[test]
    fn pairs_share_their_numbers() {
        let mut z = vec![Tile::default(); 2];
        uniform(20, 4, true, &mut stream(1, 0, 0, 0), &mut z);
        assert_eq!(z[1].0[0], z[1].0[1]);
        assert_ne!(z[1].0[1], z[1].0[2]);
        assert_ne!(z[0].0[0][..4], z[1].0[0][..4]);
        assert_eq!(z[1].0[0][4..], [0.0; 12]);
        bits(&[Tile([[0.5; LANES]; DRAWS]); 2], 4, &mut z);
        assert_eq!(z[1].0[0][4..], [0.0; 12]);
    }
}
