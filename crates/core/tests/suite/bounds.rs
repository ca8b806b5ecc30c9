//! The bounds compared with exact numbers: the evidence (T9), r = prior (T10), marginalised components (T11), and lower and upper
//! bounds around the exact ELBO.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{
    Law, Small, assert_gradient, coins, every, fixed_noise, moves, numbers, priors, recursives, variational,
};
use hyperprior::gradient::{GradientEngine, GradientSettings};
use hyperprior::likelihood::MeanField;
use hyperprior::math::linalg::{lower_solve, packed, packed_len};
use hyperprior::math::random::stream;
use hyperprior::math::special::log_sum_exp;
use hyperprior::model::Support;
use hyperprior::objective::Pass;
use hyperprior::objective::{BoundSettings, Bounds, Estimate, evaluate};
use hyperprior::prior::{Covariance, Gaussian, Mixture, Prior, Start};
use hyperprior::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use hyperprior::{Model, Variational, exact};
use hyperprior_testkit::enumerate::counts;
use hyperprior_testkit::mean::{MeanTest, assert_mean};
use hyperprior_testkit::quadrature::Rule;

const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_8;

/// Every prior with every approximation, over two coins, at arbitrary θ and φ.
fn for_all(mut check: impl FnMut(&str, &Variational, &[f64], &[f64])) {
    let model = coins();
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    for (p, prior) in priors(2).iter().enumerate() {
        let theta = moves(prior.parameters_len(), 0.4, 30 + p as u64);
        for r in 0..recursives(&likelihood, &**prior, &theta).len() {
            let recursive = recursives(&likelihood, &**prior, &theta).swap_remove(r);
            let q = variational(model.latents(), priors(2).swap_remove(p), recursive);
            // On λ, r must be narrower than the prior: if it is wider than q(λ), the weights have infinite variance.
            let mut phi = vec![0.0; q.phi_len()];
            q.recursive().initialize(&Start::at(vec![0.0; 2], 0.4), &mut stream(1, 0, 0, 0), &mut phi);
            phi.iter_mut().zip(numbers(q.phi_len(), 0.15, 50 + r as u64)).for_each(|(phi, x)| *phi += x);
            check(&format!("{} × {}", q.prior().name(), q.recursive().name()), &q, &theta, &phi);
        }
    }
}

/// E_q[log p(x, z) − log q(z)], exact.
fn exact_elbo(model: &Small, q: &Variational, theta: &[f64], phi: &[f64]) -> f64 {
    let noise = Rule::normal(q.prior().noise_len(), 0.5);
    let law = Law { model, q, noise, latents: every(&[counts(1), counts(1)]) };
    let log_joint = exact::posterior(model, 1).unwrap().log_joint;
    law.marginal(theta, phi).iter().zip(log_joint).map(|(q, p)| q * (p - q.ln())).sum()
}

fn bounds(model: &dyn Model, q: &Variational, at: (&[f64], &[f64]), draws: usize, samples: usize) -> Bounds {
    evaluate(model, q, at, &BoundSettings::default().draws(draws).samples(samples).seed(11)).unwrap()
}

fn test(estimate: Estimate) -> MeanTest {
    MeanTest { mean: estimate.value, standard_error: estimate.standard_error }
}

/// T9. Catches a density that is not normalised or has the wrong sign: for any r, however poor, the mean weight is the evidence. A
/// constant missing from one density shows as 0.3 or more.
#[test]
fn the_mean_weight_is_the_evidence_for_every_recursive_approximation() {
    let model = coins();
    let log_evidence = exact::posterior(&model, 1).unwrap().log_evidence;
    for_all(|label, q, theta, phi| {
        let found = bounds(&model, q, (theta, phi), 20_000, 0).log_evidence;
        let distance = (found.value - log_evidence).abs() / found.standard_error;
        assert!(distance < 5.0, "{label}: {distance} standard errors from {log_evidence}: {found:?}");
        test(found).assert(log_evidence, 0.3);
    });
}

/// Catches impossible draws that are ignored instead of counted as zero: a state that the model forbids adds nothing to the
/// evidence, but it was drawn.
#[test]
fn an_impossible_state_counts_as_zero_in_the_evidence() {
    let model = Small::new(&[Support::BINARY; 2], |z| if z[0] + z[1] == 2.0 { f64::NEG_INFINITY } else { -1.0 });
    let q = variational(model.latents(), Box::new(Gaussian::new(2, Covariance::Full).unwrap()), Box::new(SameAsPrior));
    let found = bounds(&model, &q, (&[0.0; 5], &[]), 20_000, 0);
    assert!(found.dropped > 0, "some draws are impossible");
    // A quarter of the draws is impossible; if they were ignored, the estimate would be too high by 0.29.
    test(found.log_evidence).assert(3.0_f64.ln() - 1.0, 0.1);
}

/// Two coins that cannot both show heads.
fn forbidden() -> Small {
    Small::new(&[Support::BINARY; 2], |z| {
        if z[0] + z[1] == 2.0 { f64::NEG_INFINITY } else { 0.7 * z[0] - 0.4 * z[1] - 1.0 }
    })
}

/// Two Gaussians over the coins' logits, one of which puts much more mass on the forbidden state.
fn on_forbidden() -> (Variational, Vec<f64>) {
    let prior = Mixture::new(2, 2, Covariance::Full).unwrap();
    let q = variational(forbidden().latents(), Box::new(prior), Box::new(SameAsPrior));
    let mut theta = vec![0.0; q.theta_len()];
    let start = Start {
        locations: vec![vec![1.5, 1.0], vec![-1.0, -0.5]],
        scales: vec![vec![0.4; 2], vec![0.3; 2]],
        covariances: vec![None, None],
    };
    q.prior().initialize(&start, &mut stream(2, 0, 0, 0), &mut theta);
    (q, theta)
}

/// E[f | A] + ln q(A) and q(A), exact, for the possible states A.
fn exact_restricted(model: &Small, q: &Variational, theta: &[f64]) -> (f64, f64) {
    let law = Law { model, q, noise: Rule::normal(2, 0.5), latents: every(&[counts(1), counts(1)]) };
    let (mut sum, mut share) = (0.0, 0.0);
    for (k, log_pi) in law.log_weights(theta).iter().enumerate() {
        let (pass, weight) = law.pass(theta, &[], k);
        for (w, f) in weight.iter().zip(&pass.integrand).filter(|(_, f)| f.is_finite()) {
            sum += log_pi.exp() * w * f;
            share += log_pi.exp() * w;
        }
    }
    (sum / share + share.ln(), share)
}

/// Catches a bound that leaves out impossible draws without the log of the share kept: the mean of the others exceeds the log
/// evidence here. The estimates of the bound and of a gradient step are compared with enumeration.
#[test]
fn with_impossible_draws_the_bound_is_that_of_the_restricted_approximation() {
    let model = forbidden();
    let (q, theta) = on_forbidden();
    let (exact, share) = exact_restricted(&model, &q, &theta);
    let log_evidence = exact::posterior(&model, 1).unwrap().log_evidence;
    assert!(exact < log_evidence && exact - share.ln() > log_evidence, "{exact} {share} {log_evidence}");
    let found = bounds(&model, &q, (&theta, &[]), 40_000, 8);
    let kept = 1.0 - found.dropped as f64 / found.drawn as f64;
    assert!(kept < 0.8, "{kept}");
    test(found.elbo).assert(exact, 0.05);
    test(found.conditional_entropy).assert(exact, 0.05);
    assert!(
        found.importance_lower.value > found.elbo.value && found.importance_lower.value < log_evidence,
        "{found:?}"
    );
    assert!(found.upper.is_some_and(|upper| upper.value > found.importance_lower.value), "{found:?}");
    test(found.log_evidence).assert(log_evidence, 0.05);

    let settings = GradientSettings::default().draws(512);
    let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
    let mut d_theta = vec![0.0; theta.len()];
    let steps: Vec<f64> = (1..=200)
        .map(|step| engine.step(&model, &q, (4, step), (&theta, &[]), (&mut d_theta, &mut [])).unwrap().elbo)
        .collect();
    assert_mean(&steps, exact, 0.05);
}

/// Catches a standard error without that of the share: over many seeds it is the standard deviation of the estimates. Five standard
/// errors of a standard deviation over 1,000 seeds are 11 %.
#[test]
fn the_standard_errors_include_that_of_the_share_kept() {
    let model = forbidden();
    let (q, theta) = on_forbidden();
    let (exact, _) = exact_restricted(&model, &q, &theta);
    let seeds: Vec<Bounds> = (0..1000)
        .map(|seed| {
            let settings = BoundSettings::default().draws(400).samples(0).seed(seed);
            evaluate(&model, &q, (&theta, &[]), &settings).unwrap()
        })
        .collect();
    for estimate in [|b: &Bounds| b.elbo, |b: &Bounds| b.log_evidence] {
        let values: Vec<f64> = seeds.iter().map(|b| estimate(b).value).collect();
        let spread = MeanTest::new(&values).standard_error * 1000.0_f64.sqrt();
        let stated = (seeds.iter().map(|b| estimate(b).standard_error.powi(2)).sum::<f64>() / 1000.0).sqrt();
        assert!((stated / spread - 1.0).abs() < 0.11, "{stated} for {spread}");
    }
    assert_mean(&seeds.iter().map(|b| b.elbo.value).collect::<Vec<_>>(), exact, 0.02);
}

/// T10. Catches an r = prior that differs from the prior: the integrand is log p − log q(z | λ) at every draw, the hierarchical
/// ELBO is the conditional-entropy bound, and both are the mean of the mean-field ELBO over λ.
#[test]
fn with_r_equal_to_the_prior_the_bound_is_the_mean_of_the_mean_field_elbo() {
    let model = coins();
    for (p, prior) in priors(2).into_iter().enumerate() {
        let theta = numbers(prior.parameters_len(), 0.5, 70 + p as u64);
        let q = variational(model.latents(), prior, Box::new(SameAsPrior));
        for k in 0..q.prior().components_len() {
            let mut pass = Pass::default();
            let mut streams: Vec<_> = (0..50).map(|s| stream(3, 0, k as u64, s)).collect();
            pass.draw(&q, &theta, k, &mut streams, 1, false);
            pass.forward(&model, &q, &theta, &[]).unwrap();
            let without: Vec<f64> =
                (0..50).map(|s| pass.log_p[s] - pass.log_q.get(0, s) - pass.log_q.get(1, s)).collect();
            assert_gradient(&q.prior().name(), &pass.integrand, &without, 1e-13);
        }
        let found = bounds(&model, &q, (&theta, &[]), 500, 0);
        assert!((found.elbo.value - found.conditional_entropy.value).abs() < 1e-13);

        let latents = every(&[counts(1), counts(1)]);
        let noise = fixed_noise(q.prior().noise_len(), 4, 8);
        let law = Law { model: &model, q: &q, noise, latents: latents.clone() };
        let point = q.to_mean_field();
        let mean_field = |k: usize| {
            let (pass, _) = law.pass(&theta, &[], k);
            let at = |s: usize| vec![pass.draws.lambda.get(0, s), pass.draws.lambda.get(1, s)];
            let law = Law { model: &model, q: &point, noise: Rule::normal(0, 1.0), latents: latents.clone() };
            let nodes = pass.log_p.len() / 4;
            (0..nodes).map(|node| law.value(&at(4 * node), &[])).sum::<f64>() / nodes as f64
        };
        let expected: f64 = law.log_weights(&theta).iter().enumerate().map(|(k, p)| p.exp() * mean_field(k)).sum();
        assert_gradient(&q.prior().name(), &[law.value(&theta, &[])], &[expected], 1e-12);
    }
}

/// T11. Catches a mixture whose density is not the sum over its components: multiplying r by the exact responsibilities q(k | λ)
/// changes nothing at any draw.
#[test]
fn exact_responsibilities_equal_the_marginalised_component() {
    let model = coins();
    let mixture = Mixture::new(2, 3, Covariance::Full).unwrap();
    let theta = numbers(mixture.parameters_len(), 0.6, 5);
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursive = Box::new(InverseFlow::new(&likelihood, 3, 3, Space::Lambda));
    let q = variational(model.latents(), Box::new(mixture), recursive);
    let phi = numbers(q.phi_len(), 0.4, 6);
    let mut log_pi = [0.0; 3];
    q.prior().log_weights(&theta, &mut log_pi);
    // log π_k + log N(λ; k).
    let joint = |lambda: &[f64], k: usize| {
        let (mut mean, mut scale) = (vec![0.0; 2], vec![0.0; packed_len(2)]);
        q.prior().gaussians().unwrap().component(&theta, k, &mut mean, &mut scale);
        let mut white = vec![lambda[0] - mean[0], lambda[1] - mean[1]];
        lower_solve(&scale, &mut white, 1);
        let terms = (0..2).map(|i| -0.5 * white[i] * white[i] - scale[packed(i, i)].ln() - HALF_LN_2_PI);
        log_pi[k] + terms.sum::<f64>()
    };
    let law = Law { model: &model, q: &q, noise: fixed_noise(2, 5, 2), latents: every(&[counts(1), counts(1)]) };
    for k in 0..3 {
        let (pass, _) = law.pass(&theta, &phi, k);
        for s in 0..pass.log_p.len() {
            let lambda = [pass.draws.lambda.get(0, s), pass.draws.lambda.get(1, s)];
            let all: Vec<f64> = (0..3).map(|k| joint(&lambda, k)).collect();
            let responsibility = all[k] - log_sum_exp(&all);
            let log_q = pass.log_q.get(0, s) + pass.log_q.get(1, s);
            let with_k = pass.log_p[s] + pass.log_r[s] + responsibility - log_q - all[k];
            assert_gradient("T11", &[pass.integrand[s]], &[with_k], 1e-12);
        }
    }
}

/// Catches an analytic r that is not the same approximation on both spaces: on λ the component is marginalised, which can only
/// tighten the bound, and with one component nothing changes.
#[test]
fn on_lambda_the_analytic_approximation_is_at_least_as_tight_as_on_the_noise() {
    let model = coins();
    for (components_len, fit) in [1, 2]
        .into_iter()
        .flat_map(|k| [GaussianFit::Laplace, GaussianFit::ExpectationPropagation].map(move |fit| (k, fit)))
    {
        let prior = || Mixture::new(2, components_len, Covariance::Full).unwrap();
        let theta = numbers(prior().parameters_len(), 0.6, 9);
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let value = |space: Space| {
            let recursive = MixtureGaussian::new(&likelihood, &prior(), fit, space).unwrap();
            let q = variational(model.latents(), Box::new(prior()), Box::new(recursive));
            let noise = Rule::normal(2, 0.5);
            Law { model: &model, q: &q, noise, latents: every(&[counts(1), counts(1)]) }.value(&theta, &[])
        };
        let gain = value(Space::Lambda) - value(Space::Noise);
        match components_len {
            1 => assert!(gain.abs() < 1e-12, "{fit:?}: {gain}"),
            _ => assert!(gain > 1e-6, "{fit:?}: {gain}"),
        }
    }
}

/// Catches a bound on the wrong side of the exact ELBO of q(z).
#[test]
fn the_bounds_enclose_the_exact_elbo() {
    let model = coins();
    for_all(|label, q, theta, phi| {
        let exact = exact_elbo(&model, q, theta, phi);
        let found = bounds(&model, q, (theta, phi), 2000, 8);
        let upper = found.upper.expect("fresh draws give an upper bound");
        let below = |e: Estimate| e.value - 5.0 * e.standard_error <= exact + 1e-9;
        assert!(below(found.elbo) && below(found.importance_lower), "{label}: {exact} under {found:?}");
        assert!(upper.value + 5.0 * upper.standard_error >= exact - 1e-9, "{label}: {exact} over {found:?}");
        // J = 8 leaves no larger gap than the one-sample bound.
        assert!(found.importance_lower.value >= found.elbo.value - 1e-12, "{label}: {found:?}");
    });
}

/// Catches bounds that do not tighten: from J = 1 to 4 to 64 the lower bound rises and the upper falls, and at 64 both are within
/// 0.02 of the exact ELBO; with J = 0 the lower one is the hierarchical ELBO.
#[test]
fn the_bounds_tighten_with_the_number_of_fresh_draws() {
    let model = coins();
    let theta = [0.4, -0.3, 0.5, 1.1, 0.3];
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursives: [Box<dyn Recursive>; 2] =
        [Box::new(SameAsPrior), Box::new(InverseFlow::factorised(&likelihood, 1, Space::Noise))];
    for recursive in recursives {
        let q = variational(model.latents(), Box::new(Gaussian::new(2, Covariance::Full).unwrap()), recursive);
        let phi = vec![0.0; q.phi_len()];
        let exact = exact_elbo(&model, &q, &theta, &phi);
        let pair = |samples: usize| {
            let found = bounds(&model, &q, (&theta, &phi), 40_000, samples);
            (found.importance_lower, found.upper.unwrap())
        };
        let ([(l1, u1), (l4, u4), (l64, u64)], none) =
            ([pair(1), pair(4), pair(64)], bounds(&model, &q, (&theta, &phi), 40_000, 0));
        // The sums have different orders, so the last digits may differ.
        assert!((none.importance_lower.value - none.elbo.value).abs() < 1e-12 && none.upper.is_none(), "{none:?}");
        let apart = |low: Estimate, high: Estimate| {
            high.value - low.value > 5.0 * low.standard_error.hypot(high.standard_error)
        };
        assert!(apart(none.elbo, l1) && apart(l1, l4) && apart(l4, l64), "{l1:?} {l4:?} {l64:?}");
        assert!(apart(u4, u1) && apart(u64, u4), "{u1:?} {u4:?} {u64:?}");
        assert!((l64.value - exact).abs() < 0.02 && (u64.value - exact).abs() < 0.02, "{l64:?} {exact} {u64:?}");
    }
}
