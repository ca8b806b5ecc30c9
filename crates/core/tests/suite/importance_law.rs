//! Importance-weighted training: the bound with J fresh λ's is integrated exactly, and its gradient along θ is the score term
//! alone, because the direct derivative of −log q̂(z) has mean zero.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, assert_gradient, every};
use hyperprior::gradient::{Backward, Estimator, GradientEngine, GradientSettings, plan};
use hyperprior::likelihood::MeanField;
use hyperprior::math::family::Bernoulli;
use hyperprior::math::special::log_sum_exp;
use hyperprior::model::Support;
use hyperprior::prior::{Covariance, Gaussian, Mixture, Prior};
use hyperprior::recursive::{InverseFlow, SameAsPrior, Space};
use hyperprior::{Variational, objective};
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::mean::{MeanTest, assert_mean};
use hyperprior_testkit::quadrature::Rule;

/// A coin whose sides differ.
fn coin() -> Small {
    Small::new(&[Support::BINARY], |z| [-0.2, -1.7][z[0] as usize])
}

fn variational(prior: impl Prior + 'static) -> Variational {
    let likelihood = MeanField::of(Bernoulli, 1).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, prior.components_len(), Space::Noise);
    Variational::new(likelihood, prior, recursive).unwrap()
}

fn gaussian() -> (Variational, Vec<f64>, Vec<f64>) {
    let prior = Gaussian::new(1, Covariance::Diagonal).unwrap();
    // λ is wide, and r is far from q(ε | z), so the fresh draws matter.
    (variational(prior), vec![0.4, 0.6], vec![-0.3, 0.9, -0.1, 0.2])
}

fn mixture() -> (Variational, Vec<f64>, Vec<f64>) {
    let theta = vec![0.2, -0.3, 1.2, 0.1, -0.9, 0.4];
    let phi = vec![0.3, -0.4, -0.1, 0.2, -0.3, 0.5, 0.1, -0.2, 0.4, -0.6, -0.1, 0.7];
    (variational(Mixture::new(1, 2, Covariance::Diagonal).unwrap()), theta, phi)
}

/// Semi-implicit inference (Yin and Zhou, 2018): the fresh λ's come from the prior itself.
fn semi_implicit() -> (Variational, Vec<f64>, Vec<f64>) {
    let prior = Gaussian::new(1, Covariance::Diagonal).unwrap();
    let q = Variational::new(MeanField::of(Bernoulli, 1).unwrap(), prior, SameAsPrior).unwrap();
    (q, vec![0.4, 0.6], vec![])
}

fn settings(importance: usize) -> GradientSettings {
    let estimator = Estimator::Score;
    GradientSettings::default()
        .replicates(1)
        .antithetic(false)
        .baseline(false)
        .estimator(estimator)
        .importance(importance)
}

/// For an r with scales of at least 0.7, steps of `step` are short enough: the error is e^(−2π²·0.49/step²), below 1e-20.
fn law<'a>(model: &'a Small, q: &'a Variational, step: f64) -> Law<'a> {
    Law { model, q, noise: Rule::normal(1, step), latents: every(&[vec![0.0, 1.0]]) }
}

/// One fresh λ: a_j and the weight r(k, ε | z) dε, for every z.
fn fresh(law: &Law, theta: &[f64], phi: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let dx = law.noise.points[1][0] - law.noise.points[0][0];
    let mut fresh = vec![Vec::new(); 2];
    for k in 0..law.q.prior().components_len() {
        let (pass, _) = law.pass(theta, phi, k);
        for s in 0..pass.log_p.len() {
            fresh[s % 2].push((pass.log_p[s] - pass.integrand[s], dx * pass.log_r[s].exp()));
        }
    }
    fresh
}

/// E over J fresh λ's of log mean(e^a_0, …, e^a_J).
fn log_q_hat(own: f64, fresh: &[(f64, f64)], samples: usize) -> f64 {
    fn add(terms: &mut Vec<f64>, weight: f64, fresh: &[(f64, f64)], left: usize) -> f64 {
        if left == 0 {
            return weight * (log_sum_exp(terms) - (terms.len() as f64).ln());
        }
        let mut total = 0.0;
        for (a, w) in fresh.iter().filter(|(_, w)| *w > 1e-22) {
            terms.push(*a);
            total += add(terms, weight * w, fresh, left - 1);
            terms.pop();
        }
        total
    }
    add(&mut vec![own], 1.0, fresh, samples)
}

/// The bound's value in each component, exactly.
fn values(law: &Law, theta: &[f64], phi: &[f64], samples: usize) -> Vec<f64> {
    let fresh = fresh(law, theta, phi);
    let value = |k: usize| {
        let (pass, weight) = law.pass(theta, phi, k);
        let term = |s: usize| {
            let own = pass.log_p[s] - pass.integrand[s];
            weight[s] * (pass.log_p[s] - log_q_hat(own, &fresh[s % 2], samples))
        };
        (0..weight.len()).filter(|&s| weight[s] > 1e-22).map(term).sum()
    };
    (0..law.q.prior().components_len()).map(value).collect()
}

fn value(law: &Law, theta: &[f64], phi: &[f64], samples: usize) -> f64 {
    law.log_weights(theta).iter().zip(values(law, theta, phi, samples)).map(|(p, f)| p.exp() * f).sum()
}

/// The mean of the engine's gradient: its backward pass is linear in the integrand, so the integrand is replaced by its mean over
/// the fresh λ's.
fn gradient(law: &Law, theta: &[f64], phi: &[f64], samples: usize) -> (Vec<f64>, Vec<f64>) {
    let fresh = fresh(law, theta, phi);
    let settings = settings(samples);
    let plans = plan(law.model, law.q, &settings).unwrap();
    let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
    for (k, log_pi) in law.log_weights(theta).iter().enumerate() {
        let (mut pass, mut weight) = law.pass(theta, phi, k);
        for s in 0..weight.len() {
            weight[s] *= log_pi.exp();
            let own = pass.log_p[s] - pass.integrand[s];
            pass.integrand[s] = pass.log_p[s] - log_q_hat(own, &fresh[s % 2], samples);
        }
        let backward =
            Backward { model: law.model, q: law.q, theta, phi, plans: &plans, settings: &settings, weight: &weight };
        pass.backward(backward, &mut d_theta, &mut d_phi).unwrap();
    }
    law.q.prior().weights_pullback(theta, &values(law, theta, phi, samples), &mut d_theta);
    (d_theta, d_phi)
}

/// Catches a direct derivative of log q̂(z) with a mean that is not zero, since the engine omits it, and mixture weights whose
/// gradient ignores log q̂(z).
#[test]
fn the_gradient_of_the_importance_weighted_bound_is_the_score_term_alone() {
    let model = coin();
    let cases = [
        (gaussian(), 1, 0.3),
        (gaussian(), 2, 0.45),
        (mixture(), 1, 0.3),
        (semi_implicit(), 1, 0.3),
        (semi_implicit(), 2, 0.45),
    ];
    for ((q, theta, phi), samples, step) in cases {
        let law = law(&model, &q, step);
        let (d_theta, _) = gradient(&law, &theta, &phi, samples);
        let numeric = finite_difference::gradient(|theta| value(&law, theta, &phi, samples), &theta, 1e-2);
        assert_gradient(&format!("{}, J = {samples}", q.prior().name()), &d_theta, &numeric, 1e-8);
        // Without fresh λ's the gradient is different, so the test is not vacuous.
        let (plain, _) = law.gradient(&theta, &phi, &settings(0));
        assert!(plain.iter().zip(&d_theta).any(|(a, b)| (a - b).abs() > 0.01), "{plain:?} against {d_theta:?}");
    }
}

/// Catches weights p/q̂(z) whose mean is not the evidence, such as those with the λ that generated z left out.
#[test]
fn the_tightened_weights_have_the_evidence_as_their_mean() {
    let model = coin();
    for (q, theta, phi) in [gaussian(), mixture(), semi_implicit()] {
        let law = law(&model, &q, 0.3);
        let fresh = fresh(&law, &theta, &phi);
        let mut mean = 0.0;
        for (k, log_pi) in law.log_weights(&theta).iter().enumerate() {
            let (pass, weight) = law.pass(&theta, &phi, k);
            for s in (0..weight.len()).filter(|&s| weight[s] > 1e-22) {
                let own = pass.log_p[s] - pass.integrand[s];
                let inverse = |(a, w): &(f64, f64)| w * 2.0 / (own.exp() + a.exp());
                let inverses: f64 = fresh[s % 2].iter().map(inverse).sum();
                mean += log_pi.exp() * weight[s] * pass.log_p[s].exp() * inverses;
            }
        }
        let evidence = (-0.2_f64).exp() + (-1.7_f64).exp();
        assert!((mean - evidence).abs() < 1e-8, "{}: {mean} against {evidence}", q.prior().name());
    }
}

/// Catches an engine whose gradient along φ is not `eq:r-grad` when the bound is tightened.
#[test]
fn the_gradient_along_phi_is_the_same_as_without_fresh_draws() {
    let model = coin();
    let (q, theta, phi) = mixture();
    let law = law(&model, &q, 0.3);
    let (_, tightened) = gradient(&law, &theta, &phi, 1);
    let (_, plain) = law.gradient(&theta, &phi, &settings(0));
    assert_gradient("φ", &tightened, &plain, 1e-14);
}

/// Catches fresh draws that are not draws of r, or weights a_j with a wrong density: the engine's mean gradient over seeded steps
/// is the exact one. A gradient without fresh draws has errors above 0.03.
#[test]
fn the_engines_gradient_has_the_exact_mean() {
    let model = coin();
    for ((q, theta, phi), samples) in [(gaussian(), 1), (mixture(), 1)] {
        let (exact, _) = gradient(&law(&model, &q, 0.3), &theta, &phi, samples);
        let settings = settings(samples).draws(64).replicates(4).antithetic(true).baseline(true).importance(samples);
        let mut engine = GradientEngine::new(&model, &q, &settings).unwrap();
        let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
        let mut found = vec![Vec::new(); theta.len()];
        for step in 0..3000 {
            engine.step(&model, &q, (5, step), (&theta, &phi), (&mut d_theta, &mut d_phi)).unwrap();
            found.iter_mut().zip(&d_theta).for_each(|(found, d)| found.push(*d));
        }
        for (found, exact) in found.iter().zip(&exact) {
            assert_mean(found, *exact, 0.01);
        }
    }
}

/// Catches bounds that weight their λ's differently from the gradient: both are the same J-sample bound.
#[test]
fn the_reported_bound_is_the_one_that_is_maximised() {
    let model = coin();
    for (q, theta, phi) in [gaussian(), mixture()] {
        let exact = value(&law(&model, &q, 0.3), &theta, &phi, 1);
        let bounds = objective::BoundSettings::default().draws(200_000).samples(1).seed(4);
        let found = objective::evaluate(&model, &q, (&theta, &phi), &bounds).unwrap().importance_lower;
        MeanTest { mean: found.value, standard_error: found.standard_error }.assert(exact, 0.02);
    }
}
