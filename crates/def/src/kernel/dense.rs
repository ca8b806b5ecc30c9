//! Compares the kernels with the formulas as written on paper: in double precision, over all terms, with sums over every value of a
//! latent. They agree to 1e-5 of the sum of the absolute terms.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use super::layer::{self, Link};
use super::words::{self, Seen, Words};
use crate::shape::Family;
use hyperprior_math::random::{Stream, stream};
use hyperprior_math::single::{DRAWS, LANES, Lanes, Tile, lanes_len};
use hyperprior_math::special::{digamma, ln_factorial, sigmoid, softplus};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::RngExt;

const TOLERANCE: f64 = 1e-5;
/// The rounding error of a number near one in single precision.
const ROUNDED: f64 = 1.2e-7;
/// Every value of a latent with non-negligible mass: means are below 10.
const VALUES: usize = 80;

fn near(what: &str, found: f32, exact: f64, scale: f64) -> Result<(), TestCaseError> {
    let far = (f64::from(found) - exact).abs();
    prop_assert!(far <= TOLERANCE * scale, "{what}: {found}, not {exact}; off by {:.1e} of {scale}", far / scale);
    Ok(())
}

/// Numbers in lanes, and the same in double precision; lanes beyond the last hold `padding`.
fn rows(numbers: &[Vec<f32>], padding: f32) -> (Vec<Lanes>, Vec<Vec<f64>>) {
    let lanes = |row: &Vec<f32>| {
        let mut lanes = vec![Lanes([padding; LANES]); lanes_len(row.len())];
        row.iter().enumerate().for_each(|(k, x)| lanes[k / LANES].0[k % LANES] = *x);
        lanes
    };
    (numbers.iter().flat_map(lanes).collect(), numbers.iter().map(|row| doubles(row)).collect())
}

/// The same for draws: a tile holds eight of them.
fn tiles(draws: &[Vec<f32>], padding: f32) -> (Vec<Tile>, Vec<Vec<f64>>) {
    let len = draws[0].len();
    let mut tiles = vec![Tile([[padding; LANES]; DRAWS]); lanes_len(len)];
    for (q, draw) in draws.iter().enumerate() {
        draw.iter().enumerate().for_each(|(k, x)| tiles[k / LANES].0[q][k % LANES] = *x);
    }
    (tiles, draws.iter().map(|draw| doubles(draw)).collect())
}

fn doubles(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|x| f64::from(*x)).collect()
}

fn matrix(len: usize, width: usize, mut one: impl FnMut() -> f32) -> Vec<Vec<f32>> {
    (0..len).map(|_| (0..width).map(|_| one()).collect()).collect()
}

fn log_uniform(rng: &mut Stream, low: f32, high: f32) -> f32 {
    rng.random_range(low.ln()..high.ln()).exp()
}

/// A latent: 0 or 1, or a small count, often 0.
fn latent(family: Family, rng: &mut Stream) -> f32 {
    match family {
        Family::Bernoulli => f32::from(rng.random_bool(0.4)),
        _ if rng.random_bool(0.4) => 0.0,
        _ => rng.random_range(0..8) as f32,
    }
}

/// How often a term occurs: half of the time not at all, usually a few times, sometimes many times.
fn count(rng: &mut Stream) -> f32 {
    match rng.random_range(0..10) {
        0..5 => 0.0,
        5..8 => rng.random_range(1..3) as f32,
        8 => rng.random_range(3..9) as f32,
        _ => rng.random_range(9..300) as f32,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// z with latent k at another value.
fn with(z: &[f64], k: usize, value: f64) -> Vec<f64> {
    let mut z = z.to_vec();
    z[k] = value;
    z
}

/// The value from which a latent's difference is taken.
fn lower(family: Family, z: f64) -> f64 {
    if family == Family::Bernoulli { 0.0 } else { z }
}

/// ln p(x | z) over all terms, and the sum of its absolute terms.
fn log_words(x: &[f64], weights: &[Vec<f64>], background: &[f64], z: &[f64]) -> (f64, f64) {
    let (mut sum, mut scale) = (0.0, 0.0);
    for ((x, w), b) in x.iter().zip(weights).zip(background) {
        let rate = b + dot(w, z);
        sum += x * rate.ln() - rate - ln_factorial(*x);
        scale += x * rate.ln().abs() + rate + ln_factorial(*x);
    }
    (sum, scale)
}

/// E ln p(z | a) over z with mean m, summed over all values.
fn expected(family: Family, mean: f64, a: f64) -> f64 {
    match family {
        Family::Bernoulli => mean * sigmoid(a).ln() + (1.0 - mean) * sigmoid(-a).ln(),
        _ => (0..VALUES).map(|z| log_poisson(z, mean).exp() * log_poisson(z, rate(a))).sum(),
    }
}

fn rate(a: f64) -> f64 {
    softplus(a) + f64::from(layer::RATE_MIN)
}

fn log_poisson(z: usize, rate: f64) -> f64 {
    z as f64 * rate.ln() - rate - ln_factorial(z as f64)
}

/// E ln q(z) over z from q.
fn entropy(family: Family, mean: f64) -> f64 {
    match family {
        Family::Bernoulli => mean * mean.ln() + (1.0 - mean) * (1.0 - mean).ln(),
        _ => (0..VALUES).map(|z| log_poisson(z, mean).exp() * log_poisson(z, mean)).sum(),
    }
}

/// The sum of the absolute terms of [`expected`] that depend on a.
fn size(family: Family, mean: f64, a: f64) -> f64 {
    match family {
        Family::Bernoulli => (mean * a).abs() + softplus(a),
        _ => (mean * rate(a).ln()).abs() + rate(a),
    }
}

fn families() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::Poisson), Just(Family::Bernoulli)]
}

fn draws() -> impl Strategy<Value = usize> {
    (0_u32..4).prop_map(|power| 1 << power)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(13),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Three documents: ln p(x | z), its change with each latent, and the counts of each term that each latent explains.
    #[test]
    fn words_agree_with_sums_over_all_terms(
        family in families(), draws in draws(), width in 1_usize..40, terms_len in 1_usize..80, seed: u64,
    ) {
        let mut rng = stream(seed, 0, 0, 0);
        let (lanes, weights) = rows(&matrix(terms_len, width, || log_uniform(&mut rng, 1e-4, 2.0)), 0.0);
        let background: Vec<f32> = (0..terms_len).map(|_| log_uniform(&mut rng, 0.02, 1.0)).collect();
        let sum = |k: usize| weights.iter().map(|row| row[k]).sum::<f64>();
        let (sums, _) = rows(&[(0..width).map(|k| sum(k) as f32).collect()], 0.0);
        let seen = Seen { weights: &lanes, background: &background, sums: &sums };
        let b = doubles(&background);
        let mut explained = vec![vec![Lanes::default(); sums.len()]; terms_len];
        let mut exact = vec![vec![0.0; width]; terms_len];
        for _ in 0..3 {
            let x: Vec<f32> = (0..terms_len).map(|_| count(&mut rng)).collect();
            let terms: Vec<u32> = (0..terms_len as u32).filter(|v| x[*v as usize] > 0.0).collect();
            let counts: Vec<f32> = x.iter().copied().filter(|x| *x > 0.0).collect();
            let own = Words::of((&terms, &counts));
            let (z, z_exact) = tiles(&matrix(draws, width, || latent(family, &mut rng)), 0.0);
            let x = doubles(&x);
            let mut inverse = vec![[0.0; DRAWS]; terms.len()];
            let (mean, mean_exact) = tiles(&matrix(draws, width, || log_uniform(&mut rng, 1e-3, 9.0)), 0.0);
            let value = words::rates(&own, &seen, [&z, &mean], draws, &mut inverse);
            let mut change = vec![Tile::default(); z.len()];
            words::differences(&own, &seen, &z, family == Family::Bernoulli, draws, &inverse, &mut change);
            for (q, z) in z_exact.iter().enumerate() {
                let (all, scale) = log_words(&x, &weights, &b, z);
                let absent: f64 = b.iter().sum::<f64>() + (0..width).map(|k| z[k] * sum(k)).sum::<f64>();
                let factorials: f64 = x.iter().map(|x| ln_factorial(*x)).sum();
                let expected: f64 = (0..width).map(|k| mean_exact[q][k] * sum(k)).sum();
                near("ln p(x | z)", value[q], all + absent + factorials - expected, scale + expected)?;
                for (term, inverse) in terms.iter().zip(&inverse) {
                    let rate = b[*term as usize] + dot(&weights[*term as usize], z);
                    near("1 / R", inverse[q], 1.0 / rate, 1.0 / rate)?;
                }
                for k in 0..width {
                    let low = lower(family, z[k]);
                    let ends = [low + 1.0, low].map(|value| with(z, k, value));
                    let [up, down] = [0, 1].map(|i| log_words(&x, &weights, &b, &ends[i]).0);
                    // The sum is over logarithms of factors above one, each of them rounded.
                    let logs: f64 = x.iter().zip(&weights).zip(&b).map(|((x, w), b)| {
                        x * ((b + dot(w, &ends[0])) / (b + dot(w, &ends[1]))).ln()
                    }).sum();
                    let scale = logs + sum(k) + x.iter().sum::<f64>() * ROUNDED / TOLERANCE;
                    near("a difference", change[k / LANES].0[q][k % LANES], up - down, scale)?;
                }
            }
            for ((term, x), inverse) in terms.iter().zip(&counts).zip(&inverse) {
                let v = *term as usize;
                words::allocate(*x, inverse, &z, draws, &mut explained[v]);
                for z in &z_exact {
                    let rate = b[v] + dot(&weights[v], z);
                    exact[v].iter_mut().zip(z).for_each(|(sum, z)| *sum += f64::from(*x) * z / rate);
                }
            }
        }
        for (found, exact) in explained.iter().zip(&exact) {
            for k in 0..width {
                near("the explained count", found[k / LANES].0[k % LANES], exact[k], exact[k])?;
            }
        }
    }

    /// exp E ln W of gamma variables.
    #[test]
    fn geometric_means_are_those_of_gammas(width in 1_usize..40, terms_len in 1_usize..20, seed: u64) {
        let mut rng = stream(seed, 1, 0, 0);
        let (shapes, shapes_exact) = rows(&matrix(terms_len, width, || log_uniform(&mut rng, 0.05, 1e5)), 0.1);
        let (rates, rates_exact) = rows(&matrix(1, width, || log_uniform(&mut rng, 0.1, 1e5)), 1.0);
        let mut out = vec![Lanes::default(); shapes.len()];
        words::geometric(&shapes, &rates, &mut out);
        for v in 0..terms_len {
            for k in 0..width {
                let exact = digamma(shapes_exact[v][k]).exp() / rates_exact[0][k];
                near("exp E ln W", out[v * rates.len() + k / LANES].0[k % LANES], exact, exact)?;
            }
        }
    }

    /// The means of q(z | λ), and their derivatives.
    #[test]
    fn means_are_those_of_the_families(family in families(), draws in draws(), width in 1_usize..40, seed: u64) {
        let mut rng = stream(seed, 2, 0, 0);
        let (lambda, exact) = tiles(&matrix(draws, width, || rng.random_range(-12.0..12.0)), 0.0);
        let mut found = [vec![Tile::default(); lambda.len()], vec![Tile::default(); lambda.len()]];
        let [mean, slope] = &mut found;
        layer::means(family == Family::Bernoulli, &lambda, draws, mean, slope);
        for q in 0..draws {
            for k in 0..width {
                let l = exact[q][k];
                let [mean, slope] = found.each_ref().map(|tiles| tiles[k / LANES].0[q][k % LANES]);
                let p = sigmoid(l);
                let (m, d) = match family {
                    Family::Poisson => (rate(l), p),
                    _ => (p, p * (1.0 - p)),
                };
                near("a mean", mean, m, m)?;
                near("its derivative", slope, d, p)?;
            }
        }
    }

    /// A layer given the one above: activations, −KL, signals and derivatives.
    #[test]
    fn layers_agree_with_sums_over_all_values(
        family in families(), above in families(), draws in draws(),
        width in 1_usize..40, parents_len in 0_usize..20, seed: u64,
    ) {
        let mut rng = stream(seed, 3, 0, 0);
        let spread = 1.0 / (1.0 + parents_len as f32).sqrt();
        let (lanes, weights) = rows(&matrix(parents_len, width, || spread * rng.random_range(-1.0..1.0)), 0.0);
        let (bias, bias_exact) = rows(&matrix(1, width, || rng.random_range(-3.0..2.0)), 0.0);
        let (mask, _) = rows(&[vec![1.0; width]], 0.0);
        let link = Link { rows: &lanes, bias: &bias, family, gamma_shape: 1.0, mask: &mask };
        let (z, z_exact) = tiles(&matrix(draws, parents_len.max(1), || latent(above, &mut rng)), 0.0);
        // Lanes without a child must have no effect.
        let (lambda, lambda_exact) = tiles(&matrix(draws, width, || rng.random_range(-4.0..4.0)), 1.5);
        let n = lambda.len();
        let [mut mean, mut slope, mut a, mut d_a] = [(); 4].map(|()| vec![Tile::default(); n]);
        layer::means(family == Family::Bernoulli, &lambda, draws, &mut mean, &mut slope);
        layer::activations(&link, &z, parents_len, draws, &mut a);
        let before = 0.25_f32;
        let (mut signal, mut value) = (vec![Tile([[before; LANES]; DRAWS]); n], [before; DRAWS]);
        layer::own(&link, &lambda, &mean, &a, draws, &mut signal, &mut d_a, &mut value);
        let mut of_parents = vec![Tile([[before; LANES]; DRAWS]); z.len()];
        let is_binary = above == Family::Bernoulli;
        layer::parents(&link, &mean, &a, &z, parents_len, is_binary, draws, &mut of_parents);
        let (mut d_rows, mut d_bias) = (vec![Lanes([before; LANES]); lanes.len()], vec![Lanes([before; LANES]); n]);
        layer::gradient(&z, parents_len, &d_a, draws, &[1.0 / draws as f32; DRAWS], &mut d_rows, &mut d_bias);

        let activation = |j: usize, z: &[f64]| bias_exact[0][j] + (0..parents_len).map(|k| weights[k][j] * z[k]).sum::<f64>();
        let at = |tiles: &[Tile], q: usize, j: usize| tiles[j / LANES].0[q][j % LANES];
        let means = |q: usize, j: usize| match family {
            Family::Poisson => rate(lambda_exact[q][j]),
            _ => sigmoid(lambda_exact[q][j]),
        };
        let before = f64::from(before);
        let mut slopes = vec![vec![0.0; width]; draws];
        for (q, z) in z_exact.iter().enumerate() {
            let (mut bound, mut scale) = (before, before);
            for j in 0..width {
                let (m, l, exact) = (means(q, j), lambda_exact[q][j], activation(j, z));
                let parts: f64 = (0..parents_len).map(|k| (weights[k][j] * z[k]).abs()).sum();
                near("an activation", at(&a, q, j), exact, bias_exact[0][j].abs() + parts)?;
                bound += expected(family, m, exact) - entropy(family, m);
                scale += size(family, m, exact) + size(family, m, l);
                let (ratio, parts) = match family {
                    Family::Poisson => (rate(exact).ln() - m.ln(), rate(exact).ln().abs() + m.ln().abs()),
                    _ => (exact - l, exact.abs() + l.abs()),
                };
                near("a signal", at(&signal, q, j), before + ratio, before + parts)?;
                let h = 1e-4;
                slopes[q][j] = (expected(family, m, exact + h) - expected(family, m, exact - h)) / (2.0 * h);
                near("a derivative", at(&d_a, q, j), slopes[q][j], sigmoid(exact) + m)?;
            }
            for j in width..n * LANES {
                prop_assert_eq!((at(&d_a, q, j), at(&signal, q, j)), (0.0, 0.25));
            }
            near("minus KL", value[q], bound, scale)?;
            for k in 0..parents_len {
                let low = lower(above, z[k]);
                let (mut change, mut scale) = (0.0, 0.0);
                for j in 0..width {
                    let [up, down] = [low + 1.0, low].map(|value| activation(j, &with(z, k, value)));
                    let m = means(q, j);
                    change += expected(family, m, up) - expected(family, m, down);
                    scale += size(family, m, up) + size(family, m, down);
                    // The kernel takes ln(1 + e^a) of a rounded sum, which matters for the logarithms of rates below 1e-3.
                    if family == Family::Poisson {
                        scale += m * (1.0 / rate(up) + 1.0 / rate(down)) * ROUNDED / TOLERANCE;
                    }
                }
                near("a parent's signal", at(&of_parents, q, k), before + change, before + scale)?;
            }
        }
        let share = 1.0 / draws as f64;
        for j in 0..width {
            let parts = |k: Option<usize>| {
                let of = |q: usize| share * slopes[q][j] * k.map_or(1.0, |k| z_exact[q][k]);
                ((0..draws).map(of).sum::<f64>(), (0..draws).map(|q| of(q).abs()).sum::<f64>())
            };
            let (sum, scale) = parts(None);
            near("along an intercept", d_bias[j / LANES].0[j % LANES], before + sum, before + scale)?;
            for k in 0..parents_len {
                let (sum, scale) = parts(Some(k));
                near("along a weight", d_rows[k * n + j / LANES].0[j % LANES], before + sum, before + scale)?;
            }
        }
    }
}
