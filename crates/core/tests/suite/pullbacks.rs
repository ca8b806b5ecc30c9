//! Every prior and every recursive approximation separately: pullbacks match finite differences, densities agree with each other,
//! local terms are local, and draws follow the density.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{assert_gradient, numbers, priors, recursives};
use hyperprior::likelihood::{Factor, Kind, Likelihood, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::{Bernoulli, Categorical, Normal, Poisson};
use hyperprior::math::random::{Stream, stream};
use hyperprior::math::scratch::Scratch;
use hyperprior::prior::PriorPass;
use hyperprior::prior::{Density, Prior};
use hyperprior::recursive::RecursivePass;
use hyperprior::recursive::{Cache, InverseFlow, Known, Space, Surroundings};
use hyperprior::{Batch, Variational};
use hyperprior_testkit::finite_difference::gradient;
use hyperprior_testkit::goodness::kolmogorov_smirnov;
use hyperprior_testkit::mean::MeanTest;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::Arc;

/// The probability that a correct sampler fails; with fixed seeds, a failure means that the values changed.
const ALPHA: f64 = 1e-6;

/// Differences with steps of 2e-3, extrapolated twice; planar layers with a small w need short steps.
const STEP: f64 = 2e-3;
/// The step along θ. A spline's second derivative jumps at its knots; with steps this short, and these seeds, no step crosses a
/// knot. Rounding errors of the differences are about 1e-9.
const SHORT_STEP: f64 = 2e-5;
const TOLERANCE: f64 = 1e-7;

fn random_batch(columns_len: usize, draws_len: usize, seed: u64) -> Batch {
    if columns_len == 0 {
        return Batch::zeros(0, draws_len);
    }
    Batch::from_columns(numbers(columns_len * draws_len, 1.0, seed), draws_len)
}

fn weighted(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// λ and log q for component k.
fn transform(prior: &dyn Prior, theta: &[f64], k: usize, eps: &Batch, density: Density) -> (Batch, Vec<f64>) {
    let mut lambda = Batch::zeros(prior.lambda_len(), eps.draws_len());
    let mut log_q = vec![0.0; eps.draws_len()];
    prior.transform(PriorPass { theta, component: k, eps, density }, &mut lambda, &mut log_q, &mut Scratch::default());
    (lambda, log_q)
}

/// Likelihoods of every kind of factor, each with its draws: coins, a point mass, counts, dice with few sides and more
/// (whose features are a table), a normal.
fn likelihoods() -> Vec<(MeanField, Vec<f64>)> {
    let coin = || Factor::Family(Box::new(Bernoulli));
    let point = || Factor::PointMass(Bijector::Exp);
    let die = |sides: usize| Factor::Family(Box::new(Categorical::new(sides).unwrap()));
    let new = |factors| MeanField::new(factors).unwrap();
    vec![
        (new(vec![coin(), coin()]), vec![1.0, 0.0]),
        (new(vec![coin(), point(), Factor::Family(Box::new(Poisson))]), vec![1.0, 1.3, 4.0]),
        (new(vec![die(3), Factor::Family(Box::new(Normal))]), vec![2.0, -0.4]),
        (new(vec![die(6)]), vec![4.0]),
    ]
}

/// Runs `check` on every compatible likelihood × prior × approximation; θ and φ come from `seed`.
fn for_all(seed: u64, mut check: impl FnMut(&str, &Variational, &[f64], &[f64], &[f64])) {
    for (l, (likelihood, z)) in likelihoods().into_iter().enumerate() {
        let n = likelihood.lambda_len();
        for (p, prior) in priors(n).iter().enumerate() {
            let theta = numbers(prior.parameters_len(), 0.4, seed);
            for r in 0..recursives(&likelihood, &**prior, &theta).len() {
                let prior = priors(n).swap_remove(p);
                let recursive = recursives(&likelihood, &*prior, &theta).swap_remove(r);
                let likelihood = likelihoods().swap_remove(l).0;
                let Ok(q) = Variational::from_parts(Arc::new(likelihood), prior, recursive) else { continue };
                let phi = numbers(q.phi_len(), 0.4, seed ^ 0x5a5a);
                let label = format!("{l} × {} × {}", q.prior().name(), q.recursive().name());
                check(&label, &q, &theta, &phi, &z);
            }
        }
    }
}

/// log r and the results stored for later calls.
struct Held {
    log_r: Vec<f64>,
    prepared: Cache,
    cache: Cache,
}

impl Held {
    fn new(q: &Variational, at: Surroundings, x: &Batch, z: &Batch) -> Self {
        let (mut prepared, mut cache, mut scratch) = (Cache::default(), Cache::default(), Scratch::default());
        let mut log_r = vec![0.0; x.draws_len()];
        q.recursive().prepare(at, x, z, &mut prepared, &mut scratch);
        q.recursive().forward(at, x, &prepared, &mut log_r, &mut cache, &mut scratch);
        Self { log_r, prepared, cache }
    }

    fn known(&self) -> Known<'_> {
        Known { prepared: &self.prepared, cache: &self.cache }
    }
}

fn repeat(z: &[f64], draws_len: usize) -> Batch {
    Batch::from_columns(z.iter().flat_map(|z| std::iter::repeat_n(*z, draws_len)).collect(), draws_len)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default() })]

    /// Catches a wrong derivative of λ(ε; θ) or of log q, for every density that a prior can report. Eleven draws are more than one
    /// SIMD vector and not a multiple of it.
    #[test]
    fn the_pullback_of_a_prior_matches_finite_differences(seed in any::<u64>()) {
        for prior in priors(3) {
            let theta = numbers(prior.parameters_len(), 0.5, seed);
            let eps = random_batch(prior.noise_len(), 11, seed ^ 1);
            let d_lambda = random_batch(3, 11, seed ^ 2);
            let d_log_q = numbers(11, 1.0, seed ^ 3);
            let mut densities = vec![Density::Unneeded];
            if prior.has_density() {
                densities.push(Density::Whole);
            }
            if prior.has_leading_density() {
                densities.extend([Density::Leading(1), Density::Leading(2)]);
            }
            for (density, k) in densities.iter().flat_map(|d| (0..prior.components_len()).map(move |k| (*d, k))) {
                let total = |theta: &[f64]| {
                    let (lambda, log_q) = transform(&*prior, theta, k, &eps, density);
                    weighted(lambda.as_slice(), d_lambda.as_slice()) + weighted(&log_q, &d_log_q)
                };
                // A point has no density.
                let (lambda, _) = transform(&*prior, &theta, k, &eps, density);
                let mut d_theta = vec![0.0; theta.len()];
                let mut scratch = Scratch::default();
                prior.pullback(PriorPass { theta: &theta, component: k, eps: &eps, density }, &lambda, &d_lambda, &d_log_q, &mut d_theta, &mut scratch);
                let label = format!("{} {density:?} {k}", prior.name());
                assert_gradient(&label, &d_theta, &gradient(total, &theta, SHORT_STEP), TOLERANCE);
            }
        }
    }

    /// Catches a Jacobian with the wrong sign: the density reported with the transformation is the density at λ.
    #[test]
    fn the_two_densities_of_a_prior_agree(seed in any::<u64>()) {
        for prior in priors(3).into_iter().filter(|p| p.has_density()) {
            let theta = numbers(prior.parameters_len(), 0.5, seed);
            let eps = random_batch(prior.noise_len(), 11, seed ^ 1);
            for k in 0..prior.components_len() {
                let (lambda, log_q) = transform(&*prior, &theta, k, &eps, Density::Whole);
                let mut at_lambda = vec![0.0; 11];
                prior.log_density(&theta, &lambda, &mut at_lambda, &mut Scratch::default());
                // The planar flow is inverted by root finding, with an error of a few bits.
                assert_gradient(&prior.name(), &log_q, &at_lambda, 1e-9);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, rng_seed: RngSeed::Fixed(4), ..ProptestConfig::default() })]

    /// Catches a wrong derivative of log r along x, z or φ.
    #[test]
    fn the_pullback_of_a_recursive_approximation_matches_finite_differences(seed in any::<u64>()) {
        for_all(seed, |label, q, theta, phi, z| {
            let r = q.recursive();
            if q.prior().noise_len() == 0 || r.name() == "prior" {
                return;
            }
            let x = random_batch(q.prior().noise_len(), 3, seed ^ 1);
            let z = repeat(z, 3);
            let d_log_r = numbers(3, 1.0, seed ^ 2);
            for k in 0..q.prior().components_len() {
                let log_r = |x: &Batch, z: &Batch, phi: &[f64]| {
                    weighted(&Held::new(q, q.surroundings(theta, phi, k), x, z).log_r, &d_log_r)
                };
                let at = q.surroundings(theta, phi, k);
                let held = Held::new(q, at, &x, &z);
                let (mut d_x, mut d_z) = (Batch::zeros(x.columns_len(), 3), Batch::zeros(z.columns_len(), 3));
                let mut d_phi = vec![0.0; phi.len()];
                let mut scratch = Scratch::default();
                r.pullback(RecursivePass { at, x: &x, z: &z, known: held.known() }, &d_log_r, &mut d_x, &mut d_z, &mut d_phi, &mut scratch);
                let numeric = gradient(|phi| log_r(&x, &z, phi), phi, STEP);
                assert_gradient(&format!("{label}: φ"), &d_phi, &numeric, TOLERANCE);
                // On the noise x does not depend on θ, and the analytic approximations omit its derivative.
                if r.space() == Space::Lambda || !phi.is_empty() {
                    let moved = |x: &[f64]| log_r(&Batch::from_columns(x.to_vec(), 3), &z, phi);
                    assert_gradient(&format!("{label}: x"), d_x.as_slice(), &gradient(moved, x.as_slice(), STEP), TOLERANCE);
                }
                for i in (0..z.columns_len()).filter(|&i| q.likelihood().kind(i) == Kind::Pathwise) {
                    let moved = |z_i: &[f64]| {
                        let mut z = z.clone();
                        z.column_mut(i).copy_from_slice(z_i);
                        log_r(&x, &z, phi)
                    };
                    let numeric = gradient(moved, z.column(i), STEP);
                    assert_gradient(&format!("{label}: z"), d_z.column(i), &numeric, TOLERANCE);
                }
            }
        });
    }

    /// Catches a conditional or a local term that omits a term with z_i: both change with z_i exactly as log r does.
    #[test]
    fn conditionals_and_local_terms_change_as_log_r_does(seed in any::<u64>()) {
        for_all(seed, |label, q, theta, phi, z| {
            let r = q.recursive();
            if q.prior().noise_len() == 0 || r.name() == "prior" {
                return;
            }
            let x = random_batch(q.prior().noise_len(), 3, seed ^ 1);
            let z = repeat(z, 3);
            for (k, i) in (0..q.prior().components_len()).flat_map(|k| (0..z.columns_len()).map(move |i| (k, i))) {
                if q.likelihood().kind(i) != Kind::Sampled {
                    continue;
                }
                let at = q.surroundings(theta, phi, k);
                let here = Held::new(q, at, &x, &z);
                let values = [0.0, 1.0];
                let mut out = Batch::zeros(values.len(), 3);
                r.conditional(RecursivePass { at, x: &x, z: &z, known: here.known() }, i, &values, &mut out, &mut Scratch::default());
                let moved: Vec<Held> = values
                    .iter()
                    .map(|value| {
                        let mut z = z.clone();
                        z.column_mut(i).fill(*value);
                        Held::new(q, at, &x, &z)
                    })
                    .collect();
                let local = |held: &Held| {
                    let mut local = vec![0.0; 3];
                    r.local(at, i, held.known(), &mut local);
                    local
                };
                let (from, to) = (local(&moved[0]), local(&moved[1]));
                for s in 0..3 {
                    let change = moved[1].log_r[s] - moved[0].log_r[s];
                    let label = format!("{label}: latent {i}");
                    assert_gradient(&label, &[out.get(1, s) - out.get(0, s), to[s] - from[s]], &[change; 2], 1e-9);
                }
            }
        });
    }
}

fn streams(draws_len: usize, seed: u64) -> Vec<Stream> {
    (0..draws_len).map(|s| stream(seed, 0, 0, s as u64)).collect()
}

/// Draws of r given one z, with log r of each.
fn draws(q: &Variational, theta: &[f64], phi: &[f64], z: &[f64], n: usize, seed: u64) -> (Batch, Vec<usize>, Vec<f64>) {
    let z = repeat(z, n);
    let at = q.surroundings(theta, phi, 0);
    let mut x = random_batch(q.prior().noise_len(), 1, 9);
    // The point-mass coordinates of x are given, the same for every draw.
    x = repeat(x.as_slice(), n);
    let mut prepared = Cache::default();
    let mut components = vec![0; n];
    let mut scratch = Scratch::default();
    q.recursive().prepare(at, &x, &z, &mut prepared, &mut scratch);
    q.recursive().sample(at, &prepared, &mut streams(n, seed), &mut x, &mut components, &mut scratch);
    let mut log_r = vec![0.0; n];
    for k in 0..q.prior().components_len() {
        let mut of_k = vec![0.0; n];
        let at = q.surroundings(theta, phi, k);
        q.recursive().forward(at, &x, &prepared, &mut of_k, &mut Cache::default(), &mut scratch);
        (0..n).filter(|&s| components[s] == k).for_each(|s| log_r[s] = of_k[s]);
    }
    (x, components, log_r)
}

/// Catches a sampler that does not follow the density, and a density that does not integrate to one: E_r[q̃/r] = 1 for a
/// normalised q̃ well inside r. A scale with an error of a tenth, or a missing Jacobian, changes the mean by more than a tenth.
#[test]
fn draws_of_every_recursive_approximation_follow_its_density() {
    for_all(17, |label, q, theta, phi, z| {
        let given = q.likelihood().point_mass_len();
        let (n, covered) = (16_000, q.prior().noise_len().saturating_sub(given));
        // In five or more dimensions the ratios would need many more draws.
        if covered == 0 || covered > 4 {
            return;
        }
        // One normal per component, centred at its draws and half as wide.
        let (pilot, of, _) = draws(q, theta, phi, z, 2000, 1);
        let on_noise = q.recursive().space() == Space::Noise;
        let group = |k: usize| if on_noise { k } else { 0 };
        let groups = if on_noise { q.prior().components_len() } else { 1 };
        let moments: Vec<Vec<(f64, f64)>> = (0..groups)
            .map(|g| {
                let own: Vec<usize> = (0..2000).filter(|&s| group(of[s]) == g).collect();
                let mean = |f: &dyn Fn(usize) -> f64| own.iter().map(|&s| f(s)).sum::<f64>() / own.len() as f64;
                (given..given + covered)
                    .map(|i| {
                        let centre = mean(&|s| pilot.get(i, s));
                        (centre, 0.5 * mean(&|s| (pilot.get(i, s) - centre).powi(2)).sqrt())
                    })
                    .collect()
            })
            .collect();
        let share = |g: usize| of.iter().filter(|&&k| group(k) == g).count() as f64 / 2000.0;
        let (x, components, log_r) = draws(q, theta, phi, z, n, 2);
        let ratios: Vec<f64> = (0..n)
            .map(|s| {
                let log_target: f64 = moments[group(components[s])]
                    .iter()
                    .enumerate()
                    .map(|(j, (centre, sd))| {
                        let t = (x.get(given + j, s) - centre) / sd;
                        -0.5 * t * t - sd.ln() - 0.918_938_533_204_672_8
                    })
                    .sum();
                (log_target - log_r[s]).exp() * share(group(components[s]))
            })
            .collect();
        let test = MeanTest::new(&ratios);
        assert!((test.mean - 1.0).abs() < 5.0 * test.standard_error, "{label}: {test:?}");
        test.assert(1.0, 0.1);
    });
}

/// Catches a wrong inverse of an inverse flow: the distribution function of its draws is the integral of its density.
#[test]
fn draws_of_a_one_dimensional_inverse_flow_pass_a_kolmogorov_smirnov_test() {
    let likelihood = MeanField::of(Bernoulli, 1).unwrap();
    let recursive = InverseFlow::new(&likelihood, 1, 3, Space::Lambda);
    let prior = priors(1).swap_remove(1);
    let q = Variational::from_parts(Arc::new(likelihood), prior, Box::new(recursive)).unwrap();
    let (theta, phi) = (vec![0.0; 2], numbers(q.phi_len(), 0.8, 21));
    let (x, _, _) = draws(&q, &theta, &phi, &[1.0], 20_000, 3);
    const STEP: f64 = 1e-3;
    let grid: Vec<f64> = (-20_000..=20_000).map(|i| f64::from(i) * STEP).collect();
    let nodes = Batch::from_columns(grid.clone(), grid.len());
    let density = Held::new(&q, q.surroundings(&theta, &phi, 0), &nodes, &repeat(&[1.0], grid.len())).log_r;
    let mut below = vec![0.0];
    for pair in density.windows(2) {
        below.push(below[below.len() - 1] + 0.5 * STEP * (pair[0].exp() + pair[1].exp()));
    }
    assert!((below[grid.len() - 1] - 1.0).abs() < 1e-6, "the grid covers r");
    let cdf = |x: f64| below[(((x - grid[0]) / STEP) as usize).min(grid.len() - 1)];
    let p = kolmogorov_smirnov(x.column(0), cdf);
    assert!(p > ALPHA, "p = {p:e}");
}
