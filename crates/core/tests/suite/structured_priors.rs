//! Structured priors (copulas, factorial mixtures, Gaussian processes, hierarchical priors) compared with closed forms.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, assert_gradient, batch, coins, every, numbers};
use hyperprior::exact;
use hyperprior::gradient::{GradientEngine, GradientSettings};
use hyperprior::likelihood::{Factor, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::Bernoulli;
use hyperprior::math::random::{standard_normals, stream};
use hyperprior::math::scratch::Scratch;
use hyperprior::math::special::sigmoid;
use hyperprior::model::{Latents, Support};
use hyperprior::prior::PriorPass;
use hyperprior::prior::{
    Atoms, Copula, Covariance, Delta, Density, FactorialMixture, Gaussian, GaussianProcessMap, LevelMap, LinearMap,
    LowRank, NormalMarginal, Prior, SinhArcsinh,
};
use hyperprior::recursive::{HierarchicalRecursive, InverseFlow, Recursive, Responsibilities, SameAsPrior, Space};
use hyperprior::{Batch, Model, Variational};
use hyperprior_testkit::enumerate::product;
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::mean::assert_mean;
use hyperprior_testkit::quadrature::Rule;

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

fn normals(columns_len: usize, draws_len: usize, seed: u64) -> Batch {
    let mut streams: Vec<_> = (0..draws_len).map(|s| stream(seed, 0, 0, s as u64)).collect();
    let mut eps = Batch::zeros(columns_len, draws_len);
    standard_normals(&mut streams, &mut eps);
    eps
}

fn place(prior: &dyn Prior, theta: &[f64], eps: &Batch, density: Density) -> (Batch, Vec<f64>) {
    let mut lambda = Batch::zeros(prior.lambda_len(), eps.draws_len());
    let mut log_q = vec![0.0; eps.draws_len()];
    prior.transform(PriorPass { theta, component: 0, eps, density }, &mut lambda, &mut log_q, &mut Scratch::default());
    (lambda, log_q)
}

/// U of a copula of rank 1 over two numbers with correlation ρ: for u = (a, a), (I + uuᵀ)² has 1 + 2a² + 2a⁴ on its diagonal
/// and 2a² + 2a⁴ off it.
fn factor_for(correlation: f64) -> [f64; 2] {
    let sum = correlation / (1.0 - correlation);
    let square = 0.5 * ((1.0 + 2.0 * sum).sqrt() - 1.0);
    [square.sqrt(); 2]
}

/// Catches a correlation that is not that of U, and marginals that change the ranks: Kendall's τ of a Gaussian copula is
/// 2/π asin ρ, 1/3 for ρ = 0.5, for any marginals.
#[test]
fn a_copula_has_kendalls_tau_of_its_correlation() {
    let prior = Copula::of(SinhArcsinh, 2, 1).unwrap();
    let mut theta = factor_for(0.5).to_vec();
    theta.extend([0.3, -0.2, 0.5, 0.3, -1.0, 0.4, -0.7, -0.2]);
    let (lambda, _) = place(&prior, &theta, &normals(2, 40_000, 1), Density::Unneeded);
    // Neighbouring draws form independent pairs.
    let signs: Vec<f64> = (0..20_000)
        .map(|s| {
            let difference = |i: usize| lambda.get(i, 2 * s) - lambda.get(i, 2 * s + 1);
            (difference(0) * difference(1)).signum()
        })
        .collect();
    assert_mean(&signs, 1.0 / 3.0, 0.05);
}

/// Catches a missing log-determinant or row length: with normal marginals the copula is the Gaussian with its covariance, and
/// without correlation a product.
#[test]
fn a_copula_of_normals_is_a_gaussian() {
    let prior = Copula::of(NormalMarginal, 2, 1).unwrap();
    let (rho, m, l) = (0.5, [0.4, -1.0], [0.2, -0.3]);
    let mut theta = factor_for(rho).to_vec();
    theta.extend([m[0], l[0], m[1], l[1]]);
    let lambda = batch(&[vec![0.1, 0.7], vec![-1.3, 0.2], vec![2.0, -2.5]]);
    let mut found = [0.0; 3];
    prior.log_density(&theta, &lambda, &mut found, &mut Scratch::default());
    for s in 0..3 {
        let x: Vec<f64> = (0..2).map(|i| (lambda.get(i, s) - m[i]) * f64::exp(-l[i])).collect();
        let square = (x[0] * x[0] - 2.0 * rho * x[0] * x[1] + x[1] * x[1]) / (1.0 - rho * rho);
        let log_det = l[0] + l[1] + 0.5 * (1.0 - rho * rho).ln();
        let expected = -0.5 * square - log_det - std::f64::consts::TAU.ln();
        assert!((found[s] - expected).abs() < 1e-12, "{} against {expected}", found[s]);
    }
    let free = Copula::of(SinhArcsinh, 2, 0).unwrap();
    let theta = [0.3, -0.2, 0.5, 0.3, -1.0, 0.4, -0.7, -0.2];
    let one = Copula::of(SinhArcsinh, 1, 0).unwrap();
    let (mut joint, mut product) = ([0.0; 3], [0.0; 3]);
    free.log_density(&theta, &lambda, &mut joint, &mut Scratch::default());
    for i in 0..2 {
        let mut part = [0.0; 3];
        let column = Batch::from_columns(lambda.column(i).to_vec(), 3);
        one.log_density(&theta[4 * i..4 * (i + 1)], &column, &mut part, &mut Scratch::default());
        product.iter_mut().zip(part).for_each(|(p, x)| *p += x);
    }
    assert_gradient("independence", &joint, &product, 1e-12);
}

/// Catches a bound that counts λ twice: with point masses q(z) is the copula's own density, and the bound is
/// log p + log|dz/dλ| − log q(λ), with no r.
#[test]
fn with_point_masses_q_of_z_is_the_copulas_density() {
    let model =
        crate::support::Small::new(&[Support::Positive; 2], |z| -z[0] - 0.5 * z[1] * z[0]).with_gradient(|z, d| {
            d[0] = -1.0 - 0.5 * z[1];
            d[1] = -0.5 * z[0];
        });
    let factors = || vec![Factor::PointMass(Bijector::Exp), Factor::PointMass(Bijector::Exp)];
    let prior = Copula::of(SinhArcsinh, 2, 1).unwrap();
    let theta = numbers(prior.parameters_len(), 0.5, 3);
    let q = Variational::new(MeanField::new(factors()).unwrap(), prior, SameAsPrior).unwrap();
    let eps = normals(2, 5, 2);
    let (lambda, log_q) = place(q.prior(), &theta, &eps, Density::Whole);
    let mut pass = hyperprior::objective::Pass::default();
    let mut z = lambda.clone();
    z.as_mut_slice().iter_mut().for_each(|z| *z = z.exp());
    pass.set(&q, &theta, 0, &eps, &z);
    pass.forward(&model, &q, &theta, &[]).unwrap();
    for s in 0..5 {
        let expected = pass.log_p[s] + lambda.get(0, s) + lambda.get(1, s) - log_q[s];
        assert!((pass.integrand[s] - expected).abs() < 1e-12);
    }
}

/// Catches a wrong square root: the covariance of λ is D (I + U (2I + UᵀU) Uᵀ) D.
#[test]
fn a_low_rank_gaussian_has_its_covariance() {
    let prior = LowRank::new(3, 2).unwrap();
    let theta = numbers(prior.parameters_len(), 0.6, 8);
    // λ − μ is linear in ε: its columns are the images of the unit vectors.
    let mut eps = Batch::zeros(3, 3);
    (0..3).for_each(|i| eps.set(i, i, 1.0));
    let (root, _) = place(&prior, &theta, &eps, Density::Unneeded);
    let (d, u) = (&theta[3..6], &theta[6..]);
    let gram = |r: usize, q: usize| (0..3).map(|i| u[3 * r + i] * u[3 * q + i]).sum::<f64>();
    for i in 0..3 {
        for j in 0..3 {
            let found: f64 = (0..3).map(|s| (root.get(i, s) - theta[i]) * (root.get(j, s) - theta[j])).sum();
            let mut inner = f64::from(i == j);
            for r in 0..2 {
                for q in 0..2 {
                    inner += u[3 * r + i] * (2.0 * f64::from(r == q) + gram(r, q)) * u[3 * q + j];
                }
            }
            assert!((found - (d[i] + d[j]).exp() * inner).abs() < 1e-12);
        }
    }
}

/// A factorial mixture of two bits over two coins: bits 0.3 and 0.6, base logits (−1, −1), shifts (2, 1) and (−1, 2).
fn two_bits() -> (FactorialMixture, Vec<f64>) {
    let prior = FactorialMixture::new(Delta { lambda_len: 2 }, 2).unwrap();
    (prior, vec![-1.0, -1.0, logit(0.3), logit(0.6), 2.0, 1.0, -1.0, 2.0])
}

/// Catches a bit that is not weighted by its probability, or a shift that belongs to another switch.
#[test]
fn two_switches_over_a_point_are_a_mixture_of_four_atoms() {
    let (prior, theta) = two_bits();
    let q = Variational::new(MeanField::of(Bernoulli, 2).unwrap(), prior, SameAsPrior).unwrap();
    let posterior = exact::posterior(&coins(), 1).unwrap();
    let found = exact::marginal(&q, &theta, &posterior, 1);
    for (found, expected) in found.probability.iter().zip([0.276001, 0.420904, 0.123108, 0.179988]) {
        assert!((found - expected).abs() < 1e-6, "{found} against {expected}");
    }
    // The same four as a mixture of atoms.
    let points = Atoms::new(2, 4).unwrap();
    let bits = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
    let mut same: Vec<f64> =
        bits.iter().map(|(a, b)| f64::ln((0.3 * a + 0.7 * (1.0 - a)) * (0.6 * b + 0.4 * (1.0 - b)))).collect();
    for (a, b) in bits {
        same.extend([-1.0 + 2.0 * a - b, -1.0 + a + 2.0 * b]);
    }
    let q = Variational::new(MeanField::of(Bernoulli, 2).unwrap(), points, Responsibilities).unwrap();
    let other = exact::marginal(&q, &same, &posterior, 1);
    assert_gradient("a mixture of atoms", &other.probability, &found.probability, 1e-12);
}

/// The bound of a factorial mixture, with its bits enumerated.
fn factorial_mixture_bound(q: &Variational, theta: &[f64], phi: &[f64]) -> f64 {
    let model = coins();
    let mut logits = [0.0; 2];
    q.prior().switch_logits(theta, &mut logits);
    let points = product(&[vec![0.0, 1.0], vec![0.0, 1.0]]);
    let probability = |b: &[f64]| (0..2).map(|m| sigmoid(logits[m] * (2.0 * b[m] - 1.0))).product();
    let weights = points.iter().map(|b| probability(b)).collect();
    let noise = Rule { points, weights };
    let coin = || vec![0.0, 1.0];
    Law { model: &model, q, noise, latents: every(&[coin(), coin()]) }.value(theta, phi)
}

/// Catches a logit of a switch whose gradient uses the wrong side, only part of the integrand, or nothing: the mean of the engine's
/// estimate is the derivative of the bound with the bits enumerated.
#[test]
fn local_expectation_over_switches_is_the_derivative_of_the_enumerated_bound() {
    let (model, (prior, theta)) = (coins(), two_bits());
    let likelihood = MeanField::of(Bernoulli, 2).unwrap();
    let recursive = HierarchicalRecursive::new(&likelihood, &prior);
    let phi = numbers(recursive.parameters_len(), 0.7, 4);
    let q = Variational::new(likelihood, prior, recursive).unwrap();
    let expected_theta = finite_difference::gradient(|t| factorial_mixture_bound(&q, t, &phi), &theta, 1e-2);
    let expected_phi = finite_difference::gradient(|p| factorial_mixture_bound(&q, &theta, p), &phi, 1e-2);
    let settings = GradientSettings::default().draws(64);
    let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
    let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
    let mut samples = vec![Vec::new(); theta.len() + phi.len()];
    for step in 0..4000 {
        engine.step(&model, &q, (7, step), (&theta, &phi), (&mut d_theta, &mut d_phi)).unwrap();
        for (sample, d) in samples.iter_mut().zip(d_theta.iter().chain(&d_phi)) {
            sample.push(*d);
        }
    }
    for (sample, expected) in samples.iter().zip(expected_theta.iter().chain(&expected_phi)) {
        assert_mean(sample, *expected, 0.02);
    }
}

/// Catches a bound with atoms and responsibilities that is not the ELBO of q(z).
#[test]
fn with_responsibilities_the_bound_is_exact() {
    let model = coins();
    let points = Atoms::new(2, 3).unwrap();
    let theta = numbers(points.parameters_len(), 1.0, 5);
    let q = Variational::new(MeanField::of(Bernoulli, 2).unwrap(), points, Responsibilities).unwrap();
    let posterior = exact::posterior(&model, 1).unwrap();
    let exact = exact::marginal(&q, &theta, &posterior, 1).elbo;
    let noise = Rule { points: vec![vec![]], weights: vec![1.0] };
    let law = Law { model: &model, q: &q, noise, latents: every(&[vec![0.0, 1.0], vec![0.0, 1.0]]) };
    assert!((law.value(&theta, &[]) - exact).abs() < 1e-12);
}

/// Catches a solve with the wrong matrix: the mean is K_ξs K_ss⁻¹ t and the variance k − K_ξs K_ss⁻¹ K_sξ, here for two data.
#[test]
fn a_gaussian_process_map_has_the_mean_and_variance_of_a_gaussian_process() {
    let map = GaussianProcessMap::new(1, 1, 2).unwrap();
    let (m, log_sigma, log_length, s, t) = (0.3, 0.2, -0.1, [0.2, -0.4], [1.5, -0.7]);
    let theta = [m, log_sigma, log_length, s[0], s[1], t[0], t[1]];
    let inputs = [map.place(0, 0) + s[0], map.place(1, 0) + s[1]];
    let (variance, length) = (f64::exp(2.0 * log_sigma), f64::exp(log_length));
    let kernel = |a: f64, b: f64| variance * (-0.5 * ((a - b) / length).powi(2)).exp();
    let noisy = variance * (1.0 + 1e-4);
    let off = kernel(inputs[0], inputs[1]);
    let determinant = noisy * noisy - off * off;
    let inverse = [[noisy / determinant, -off / determinant], [-off / determinant, noisy / determinant]];
    let upper = Batch::from_columns(vec![-0.9, 0.1, 1.7], 3);
    let (mut mean, mut log_scale) = (Batch::zeros(1, 3), Batch::zeros(1, 3));
    map.forward(&theta, &upper, &mut mean, &mut log_scale, &mut Scratch::default());
    for draw in 0..3 {
        let k = inputs.map(|i| kernel(i, upper.get(0, draw)));
        let solved = |y: [f64; 2]| inverse.map(|row| row[0] * y[0] + row[1] * y[1]);
        let expected = m + solved(t).iter().zip(k).map(|(a, k)| a * k).sum::<f64>();
        let spread = noisy - solved(k).iter().zip(k).map(|(a, k)| a * k).sum::<f64>();
        assert!((mean.get(0, draw) - expected).abs() < 1e-10);
        assert!((log_scale.get(0, draw) - 0.5 * spread.ln()).abs() < 1e-10);
    }
}

/// Catches levels whose noises are swapped: a linear map of a standard normal is the Gaussian with covariance W Wᵀ + e^{2l}.
#[test]
fn a_linear_map_of_a_normal_is_a_factor_model() {
    let upper = Gaussian::new(1, Covariance::Diagonal).unwrap();
    let prior = hyperprior::prior::Hierarchical::new(upper, LinearMap::new(2, 1)).unwrap();
    // m, l, W, V (none), then the upper normal's location and log scale.
    let theta = [0.5, -0.2, -0.3, 0.1, 0.8, -0.6, 0.0, 0.0, 0.0, 0.0];
    let mut eps = Batch::zeros(3, 3);
    (0..3).for_each(|i| eps.set(i, i, 1.0));
    let (root, _) = place(&prior, &theta, &eps, Density::Unneeded);
    let covariance =
        |i: usize, j: usize| -> f64 { (0..3).map(|s| (root.get(i, s) - theta[i]) * (root.get(j, s) - theta[j])).sum() };
    assert!((covariance(0, 0) - (0.64 + f64::exp(-0.6))).abs() < 1e-12);
    assert!((covariance(1, 1) - (0.36 + f64::exp(0.2))).abs() < 1e-12);
    assert!((covariance(0, 1) + 0.48).abs() < 1e-12);
}

/// Catches combinations of parts that cannot work.
#[test]
fn incompatible_parts_are_refused_with_a_reason() {
    let coins = || MeanField::of(Bernoulli, 2).unwrap();
    let said = |result: hyperprior::Result<Variational>| result.unwrap_err().to_string();
    let flow = InverseFlow::factorised(&coins(), 1, Space::Noise);
    let (factorial, _) = two_bits();
    assert!(said(Variational::new(coins(), factorial, flow.clone())).contains("hierarchical r"));
    let (factorial, _) = two_bits();
    let on_lambda = InverseFlow::factorised(&coins(), 1, Space::Lambda);
    assert!(said(Variational::new(coins(), factorial, on_lambda)).contains("put the approximation on the noise"));
    let gaussian = Gaussian::new(2, Covariance::Full).unwrap();
    assert!(said(Variational::new(coins(), gaussian, Responsibilities)).contains("mixtures of atoms"));
    let (factorial, _) = two_bits();
    assert!(said(Variational::new(coins(), factorial, Responsibilities)).contains("mixtures of atoms"));
    let points = Atoms::new(2, 3).unwrap();
    assert!(said(Variational::new(coins(), points, flow)).contains("a point has no density"));
    let masses = MeanField::new(vec![Factor::PointMass(Bijector::Exp)]).unwrap();
    assert!(
        said(Variational::new(masses, Atoms::new(1, 2).unwrap(), SameAsPrior))
            .contains("use a Gaussian, a mixture or a flow")
    );
    let (factorial, _) = two_bits();
    assert!(FactorialMixture::new(factorial, 1).unwrap_err().to_string().contains("already has switches"));
    assert!(Atoms::new(2, 0).unwrap_err().to_string().contains("at least 1"));
    assert!(LowRank::new(2, 3).unwrap_err().to_string().contains("rank 3"));
    assert!(Copula::of(NormalMarginal, 2, 3).unwrap_err().to_string().contains("rank 3"));
    assert!(GaussianProcessMap::new(2, 1, 0).unwrap_err().to_string().contains("at least 1"));
}

/// Catches a mixture with an r that it does not need: discrete latents have λ marginalised, continuous ones have a density, and
/// only both together need r.
#[test]
fn a_mixture_has_the_form_that_leaves_the_least_to_r() {
    let form = |latents: &Latents| {
        let q = Variational::mixture(latents, 3).unwrap();
        (q.prior().name(), q.recursive().name(), q.density())
    };
    let counts = || Latents::new().vector("z", 2, Support::Counts).unwrap();
    assert_eq!(form(&counts()), ("mixture of 3 atoms".to_owned(), "responsibilities".to_owned(), Density::Unneeded));
    let reals = Latents::new().vector("x", 2, Support::Real).unwrap();
    assert_eq!(form(&reals), ("mixture of 3 gaussians (diagonal)".to_owned(), "prior".to_owned(), Density::Whole));
    let both = counts().scalar("x", Support::Real).unwrap();
    assert_eq!(form(&both).1, "factorised");
    assert!(Variational::mixture(&counts(), 0).unwrap_err().to_string().contains("at least 1"));
    assert!(Variational::mixture(&Latents::new(), 2).is_err());
}

/// Catches a sum over quadrature nodes that is not the integral over the Gaussian: a mixture of diagonal Gaussians with λ
/// marginalised has the same q(z) as with λ drawn.
#[test]
fn a_mixture_with_lambda_marginalised_equals_the_one_with_lambda_drawn() {
    let model = crate::support::count();
    let posterior = exact::posterior(&model, 60).unwrap();
    let marginalised = Variational::mixture(model.latents(), 2).unwrap();
    let drawn = {
        let prior = hyperprior::prior::Mixture::new(1, 2, Covariance::Diagonal).unwrap();
        Variational::new(MeanField::for_latents(model.latents()).unwrap(), prior, SameAsPrior).unwrap()
    };
    // Both are laid out as logits of the weights, then (μ, ln σ) of each component.
    let theta = [0.3, -0.3, 0.4, -0.7, 1.5, -1.2];
    let by_sum = exact::marginal(&marginalised, &theta, &posterior, 1);
    let by_nodes = exact::marginal(&drawn, &theta, &posterior, 1);
    for (sum, nodes) in by_sum.probability.iter().zip(&by_nodes.probability) {
        assert!((sum - nodes).abs() < 2e-4, "{sum} against {nodes}");
    }
}

/// Catches a point mass whose map leaves the support of its latent.
#[test]
fn a_point_mass_must_stay_within_its_latents_support() {
    let model = crate::support::Small::new(&[Support::Positive], |z| -z[0]).with_gradient(|_, d| d[0] = -1.0);
    let with = |bijector| {
        let likelihood = MeanField::new(vec![Factor::PointMass(bijector)]).unwrap();
        let prior = Gaussian::new(1, Covariance::Diagonal).unwrap();
        Variational::new(likelihood, prior, SameAsPrior).unwrap().check(&model)
    };
    assert!(with(Bijector::Exp).is_ok());
    assert!(with(Bijector::Identity).unwrap_err().to_string().contains("its map leaves the support"));
}

/// Catches a switch without a gradient because one of its sides is impossible.
#[test]
fn a_switch_learns_to_avoid_an_impossible_side() {
    let model = crate::support::Small::new(&[Support::BINARY], |z| if z[0] == 1.0 { f64::NEG_INFINITY } else { 0.0 });
    let prior = FactorialMixture::new(Delta { lambda_len: 1 }, 1).unwrap();
    let q = Variational::new(MeanField::of(Bernoulli, 1).unwrap(), prior, SameAsPrior).unwrap();
    // The switch moves the coin from almost surely zero to almost surely one.
    let theta = [-30.0, 0.0, 60.0];
    let mut engine = GradientEngine::new(&model, &q, &GradientSettings::default()).unwrap();
    let mut d_theta = [0.0; 3];
    engine.step(&model, &q, (1, 1), (&theta, &[]), (&mut d_theta, &mut [])).unwrap();
    assert!(d_theta[1] < -10.0, "the logit's gradient is {}", d_theta[1]);
}

/// Catches inputs of a Gaussian process that start at the same place.
#[test]
fn the_inputs_of_a_gaussian_process_start_apart() {
    for data_len in 1..16 {
        let map = GaussianProcessMap::new(1, 3, data_len).unwrap();
        for c in 0..3 {
            let mut places: Vec<f64> = (0..data_len).map(|a| map.place(a, c)).collect();
            places.sort_by(f64::total_cmp);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 0.1), "{data_len} data along {c}");
        }
    }
}
