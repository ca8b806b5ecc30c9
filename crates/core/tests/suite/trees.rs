//! The tree likelihood: its density, score and sampler agree, and it fits the dependence it is meant for.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, assert_gradient, batch, every, fixed_noise, numbers};
use hyperprior::fit::{FitSettings, Quiet, fit};
use hyperprior::gradient::{Estimator, GradientEngine, GradientSettings};
use hyperprior::likelihood::{Likelihood, Tree};
use hyperprior::math::family::{Bernoulli, Categorical, Family, Normal, Poisson};
use hyperprior::math::random::stream;
use hyperprior::math::scratch::Scratch;
use hyperprior::prior::{Covariance, Delta, Gaussian, Prior};
use hyperprior::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use hyperprior::targets::Ising;
use hyperprior::{Batch, Variational, exact};
use hyperprior_testkit::enumerate::{counts, product};
use hyperprior_testkit::finite_difference;
use hyperprior_testkit::goodness::chi_square;
use std::sync::Arc;

/// A die with three sides that depends on the coin after it, and a coin that depends on the die.
fn family_tree() -> Tree {
    let die = Box::new(Categorical::new(3).unwrap()) as Box<dyn Family>;
    Tree::new(vec![(die, Some(1)), (Box::new(Bernoulli), None), (Box::new(Bernoulli), Some(0))]).unwrap()
}

fn states() -> Vec<Vec<f64>> {
    product(&[counts(2), counts(1), counts(1)])
}

/// q(z | λ) of every state.
fn probabilities(tree: &Tree, lambda: &[f64]) -> Vec<f64> {
    let z = batch(&states());
    let columns = lambda.iter().flat_map(|l| std::iter::repeat_n(*l, z.draws_len())).collect();
    let mut log_q = Batch::zeros(3, z.draws_len());
    tree.log_density(&Batch::from_columns(columns, z.draws_len()), &z, &mut log_q, &mut Scratch::default());
    (0..z.draws_len()).map(|s| (0..3).map(|i| log_q.get(i, s)).sum::<f64>().exp()).collect()
}

/// Catches a parent's value that selects the wrong parameters, in the density or in the sampler.
#[test]
fn the_density_is_normalised_and_the_draws_follow_it() {
    let tree = family_tree();
    // Two logits of the die for each side of the coin, the coin's own logit, and one logit for each side of the die.
    assert_eq!(tree.lambda_len(), 2 * 2 + 1 + 3);
    let lambda = numbers(8, 1.0, 3);
    let expected = probabilities(&tree, &lambda);
    assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let n = 40_000;
    let mut streams: Vec<_> = (0..n).map(|s| stream(5, 0, 0, s)).collect();
    let columns = lambda.iter().flat_map(|l| std::iter::repeat_n(*l, n as usize)).collect();
    let mut z = Batch::zeros(3, n as usize);
    tree.sample(&Batch::from_columns(columns, n as usize), &mut streams, &mut z, &mut Scratch::default());
    let mut observed = vec![0; expected.len()];
    for s in 0..n as usize {
        observed[states().iter().position(|state| (0..3).all(|i| state[i] == z.get(i, s))).unwrap()] += 1;
    }
    assert!(chi_square(&observed, &expected, n) > 1e-6);
}

fn model() -> Small {
    let supports = [
        hyperprior::model::Support::Integers { lower: 0.0, upper: 2.0 },
        hyperprior::model::Support::BINARY,
        hyperprior::model::Support::BINARY,
    ];
    Small::new(&supports, |z| 0.7 * z[0] * z[1] - 0.4 * (z[2] - z[0]).powi(2) + 0.3 * z[2] * z[1] - 0.2 * z[1])
}

/// Catches a score that goes to the parameters of another value of the parent, and a signal that omits the effect of a draw on its
/// children.
#[test]
fn the_gradient_is_the_derivative_of_the_bound() {
    let model = model();
    let plain = GradientSettings::default().replicates(1).antithetic(false).baseline(false);
    let priors: [fn() -> Box<dyn Prior>; 2] =
        [|| Box::new(Delta { lambda_len: 8 }), || Box::new(Gaussian::new(8, Covariance::Full).unwrap())];
    for (p, prior) in priors.into_iter().enumerate() {
        let recursives: Vec<Box<dyn Recursive>> = match p {
            0 => vec![Box::new(SameAsPrior)],
            _ => vec![Box::new(SameAsPrior), Box::new(InverseFlow::new(&family_tree(), 1, 2, Space::Noise))],
        };
        for recursive in recursives {
            let q = Variational::from_parts(Arc::new(family_tree()), prior(), recursive).unwrap();
            let (theta, phi) = (numbers(q.theta_len(), 0.4, 7), numbers(q.phi_len(), 0.5, 8));
            let noise = fixed_noise(q.prior().noise_len(), 3, 2);
            let latents = every(&[counts(2), counts(1), counts(1)]);
            let law = Law { model: &model, q: &q, noise, latents };
            let (d_theta, d_phi) = law.gradient(&theta, &phi, &plain);
            let numeric = finite_difference::gradient(|t| law.value(t, &phi), &theta, 1e-2);
            assert_gradient("θ", &d_theta, &numeric, 1e-8);
            let numeric = finite_difference::gradient(|p| law.value(&theta, p), &phi, 1e-2);
            assert_gradient("φ", &d_phi, &numeric, 1e-8);
        }
    }
}

/// Catches a structure that cannot represent the dependence it is meant for: a chain of spins is a tree, so the fit is exact, while
/// mean-field is far off.
#[test]
fn a_chain_likelihood_fits_a_chain_of_spins_exactly() {
    let model = Ising::new(5, (1..5).map(|i| (i - 1, i)).collect(), 0.8).unwrap();
    let posterior = exact::posterior(&model, 1).unwrap();
    let kl = |q: &Variational| {
        let fitted = fit(&model, q, &FitSettings::default(), &mut Quiet).unwrap();
        exact::marginal(q, &fitted.theta, &posterior, 1).kl
    };
    let chain = Tree::chain(Bernoulli, 5).unwrap();
    let structured = kl(&Variational::new(chain, Delta { lambda_len: 9 }, SameAsPrior).unwrap());
    let mean_field = kl(&Variational::mean_field(hyperprior::likelihood::MeanField::of(Bernoulli, 5).unwrap()));
    assert!(structured < 2e-3, "structured {structured}");
    assert!(mean_field > 0.5, "mean-field {mean_field}");
}

/// Catches parts and estimators that assume a product of factors.
#[test]
fn parts_that_do_not_fit_a_tree_are_refused_with_a_reason() {
    let said = |result: hyperprior::Result<Tree>| result.unwrap_err().to_string();
    let boxed = |family: Box<dyn Family>| family;
    assert!(said(Tree::new(vec![(boxed(Box::new(Normal)), None)])).contains("not discrete"));
    assert!(said(Tree::new(vec![(boxed(Box::new(Bernoulli)), Some(3))])).contains("there are only 1"));
    let counts = vec![(boxed(Box::new(Poisson)), None), (boxed(Box::new(Bernoulli)), Some(0))];
    assert!(said(Tree::new(counts)).contains("up to some bound"));
    let circle = vec![(boxed(Box::new(Bernoulli)), Some(1)), (boxed(Box::new(Bernoulli)), Some(0))];
    assert!(said(Tree::new(circle)).contains("depends on itself"));
    let prior = Gaussian::new(8, Covariance::Full).unwrap();
    let refused = MixtureGaussian::new(&family_tree(), &prior, GaussianFit::Laplace, Space::Noise);
    assert!(refused.unwrap_err().to_string().contains("not a product of factors"));
    let q = Variational::new(family_tree(), Delta { lambda_len: 8 }, SameAsPrior).unwrap();
    for estimator in [Estimator::LocalExpectation, Estimator::DisArm, Estimator::Difference] {
        let settings = GradientSettings::default().estimator(estimator);
        let refused = GradientEngine::new(&model(), &q, &settings).unwrap_err().to_string();
        assert!(refused.contains("use the score"), "{refused}");
    }
}
