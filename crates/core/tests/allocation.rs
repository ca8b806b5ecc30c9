//! A gradient step reuses its memory: after the first steps it makes no heap allocations, for any parts.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "suite/support/mod.rs"]
mod support;

use hyperprior::gradient::{Estimator, GradientEngine, GradientSettings};
use hyperprior::likelihood::{Likelihood, MeanField};
use hyperprior::math::family::{ConwayMaxwell, Mixed, Poisson};
use hyperprior::prior::{
    Atoms, Bend, Copula, CouplingFlow, Covariance, Delta, FactorialMixture, Gaussian, GaussianProcessMap, Hierarchical,
    LinearMap, LowRank, Mixture, MlpMap, NetworkPrior, PlanarFlow, Prior, SinhArcsinh,
};
use hyperprior::recursive::{
    GaussianFit, HierarchicalRecursive, InverseFlow, MixtureGaussian, Recursive, Responsibilities, SameAsPrior, Space,
};
use hyperprior::targets::{CorrelatedCounts, CountTarget, Ising};
use hyperprior::{Model, Variational};
use hyperprior_testkit::allocation::{self, Counting};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::numbers;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A pool whose threads share one counter, separate from those of other tests.
fn pool(threads: usize) -> (rayon::ThreadPool, usize) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let group = NEXT.fetch_add(1, Ordering::SeqCst) % allocation::GROUPS;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    (builder.start_handler(move |_| allocation::join(group)).build().unwrap(), group)
}

/// The number of allocations of ten steps, after ten steps that are not counted; on several threads the least of five such runs, since
/// their queues allocate now and then, whatever the work. What a step itself allocates is in every run.
fn allocations(threads: usize, model: &dyn Model, q: &Variational, settings: &GradientSettings) -> u64 {
    let theta = numbers(q.theta_len(), 0.1, 1);
    let phi = numbers(q.phi_len(), 0.1, 2);
    let (mut d_theta, mut d_phi) = (vec![0.0; theta.len()], vec![0.0; phi.len()]);
    let mut engine = GradientEngine::new(model, q, settings).unwrap();
    let (pool, group) = pool(threads);
    pool.install(|| {
        let mut steps = |range: std::ops::Range<u64>| {
            for step in range {
                engine.step(model, q, (1, step), (&theta, &phi), (&mut d_theta, &mut d_phi)).unwrap();
            }
        };
        steps(0..10);
        let mut run = |first: u64| {
            let before = allocation::count(group);
            steps(first..first + 10);
            allocation::count(group) - before
        };
        let runs = if threads == 1 { 1 } else { 5 };
        (1..=runs).map(|k| run(10 * k)).min().unwrap_or(u64::MAX)
    })
}

fn variational(
    model: &dyn Model,
    prior: impl Prior + 'static,
    recursive: impl FnOnce(&MeanField, &dyn Prior) -> Box<dyn Recursive>,
) -> Variational {
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let recursive = recursive(&likelihood, &prior);
    Variational::from_parts(Arc::new(likelihood), Box::new(prior), recursive).unwrap()
}

fn inverse_flow(layers_len: usize, space: Space) -> impl Fn(&MeanField, &dyn Prior) -> Box<dyn Recursive> {
    move |likelihood, prior| Box::new(InverseFlow::new(likelihood, prior.components_len(), layers_len, space))
}

fn analytic(fit: GaussianFit, space: Space) -> impl Fn(&MeanField, &dyn Prior) -> Box<dyn Recursive> {
    move |likelihood, prior| Box::new(MixtureGaussian::new(likelihood, prior, fit, space).unwrap())
}

/// Every kind of variational model over this model's latents.
fn all(model: &dyn Model) -> Vec<Variational> {
    let n = MeanField::for_latents(model.latents()).unwrap().lambda_len();
    let gaussian = |covariance| Gaussian::new(n, covariance).unwrap();
    let mixture = |covariance| Mixture::new(n, 3, covariance).unwrap();
    let mut all = vec![variational(model, Delta { lambda_len: n }, |_, _| Box::new(SameAsPrior))];
    let network = NetworkPrior::new(MlpMap::new(n, &[5, 4], n).unwrap()).unwrap();
    all.push(variational(model, network, inverse_flow(3, Space::Noise)));
    let hierarchical = |likelihood: &MeanField, prior: &dyn Prior| -> Box<dyn Recursive> {
        Box::new(HierarchicalRecursive::new(likelihood, prior))
    };
    all.push(variational(model, Atoms::new(n, 3).unwrap(), |_, _| Box::new(Responsibilities)));
    all.push(variational(model, FactorialMixture::new(Delta { lambda_len: n }, 2).unwrap(), hierarchical));
    all.push(variational(model, FactorialMixture::new(gaussian(Covariance::Diagonal), 2).unwrap(), hierarchical));
    let upper = || Gaussian::new(1, Covariance::Diagonal).unwrap();
    all.push(variational(model, Hierarchical::new(upper(), LinearMap::new(n, 1)).unwrap(), hierarchical));
    let process = GaussianProcessMap::new(n, 1, 4).unwrap();
    all.push(variational(model, Hierarchical::new(upper(), process).unwrap(), hierarchical));
    for space in [Space::Noise, Space::Lambda] {
        all.push(variational(model, LowRank::new(n, 2).unwrap(), inverse_flow(3, space)));
        all.push(variational(model, Copula::of(SinhArcsinh, n, 2).unwrap(), inverse_flow(3, space)));
        all.push(variational(model, PlanarFlow::new(n, 2).unwrap(), inverse_flow(10, space)));
        for bend in [Bend::Affine, Bend::Spline { bins: 4 }] {
            all.push(variational(model, CouplingFlow::new(n, 4, 5, bend).unwrap(), inverse_flow(3, space)));
        }
        all.push(variational(model, gaussian(Covariance::Diagonal), inverse_flow(0, space)));
        all.push(variational(model, gaussian(Covariance::Full), inverse_flow(3, space)));
        all.push(variational(model, mixture(Covariance::Diagonal), inverse_flow(0, space)));
        all.push(variational(model, mixture(Covariance::Full), inverse_flow(3, space)));
        for fit in [GaussianFit::Laplace, GaussianFit::ExpectationPropagation] {
            all.push(variational(model, mixture(Covariance::Full), analytic(fit, space)));
            all.push(variational(model, gaussian(Covariance::Diagonal), analytic(fit, space)));
        }
    }
    all
}

fn assert_nothing(model: &dyn Model, q: &Variational, settings: &GradientSettings) {
    let found = allocations(1, model, q, settings);
    let (prior, recursive) = (q.prior().name(), q.recursive().name());
    assert_eq!(found, 0, "{prior} with {recursive}: {settings:?}");
}

/// Catches a buffer that is allocated in the inner loop of any part.
#[test]
fn a_step_on_one_thread_allocates_nothing() {
    let model = Ising::ring(6, 0.3).unwrap();
    for q in all(&model) {
        for (estimator, sum_joint_recursion) in
            [(Estimator::Score, false), (Estimator::LocalExpectation, false), (Estimator::LocalExpectation, true)]
        {
            assert_nothing(
                &model,
                &q,
                &GradientSettings::default().estimator(estimator).sum_joint_recursion(sum_joint_recursion),
            );
        }
    }
}

/// As above for counts, by the score: a sum over a count's values needs more memory whenever a draw of λ has a wider window than
/// any before it.
#[test]
fn a_step_over_counts_on_one_thread_allocates_nothing() {
    let model = CorrelatedCounts::new(CountTarget::C);
    for q in all(&model) {
        assert_nothing(&model, &q, &GradientSettings::default().estimator(Estimator::Score));
    }
    // The families that sum over a table or over nodes, and so might need a buffer.
    for likelihood in [
        MeanField::of(ConwayMaxwell::new(60).unwrap(), 2).unwrap(),
        MeanField::of(Mixed::new(Poisson, 9).unwrap(), 2).unwrap(),
    ] {
        let recursive = inverse_flow(3, Space::Noise)(&likelihood, &Gaussian::new(4, Covariance::Full).unwrap());
        let prior = Box::new(Gaussian::new(4, Covariance::Full).unwrap());
        let q = Variational::from_parts(Arc::new(likelihood), prior, recursive).unwrap();
        assert_nothing(&model, &q, &GradientSettings::default().estimator(Estimator::Score));
    }
}

/// Catches fresh draws of r that allocate their buffers.
#[test]
fn an_importance_weighted_step_on_one_thread_allocates_nothing() {
    let model = Ising::ring(6, 0.3).unwrap();
    let on_noise = |q: &Variational| q.recursive().space() == Space::Noise;
    for q in all(&model).into_iter().filter(on_noise) {
        let settings = GradientSettings::default().estimator(Estimator::Score).importance(2);
        assert_nothing(&model, &q, &settings);
    }
}

/// Catches memory that grows with the model or the batch when threads share the work.
#[test]
fn allocations_on_two_threads_do_not_depend_on_the_model_size_or_the_draws() {
    let count = |spins: usize, draws: usize, space: Space| {
        let model = Ising::ring(spins, 0.3).unwrap();
        let q = variational(&model, PlanarFlow::new(spins, 2).unwrap(), inverse_flow(10, space));
        allocations(2, &model, &q, &GradientSettings::default().draws(draws))
    };
    for space in [Space::Noise, Space::Lambda] {
        let few = count(100, 32, space);
        assert_eq!([few, count(2000, 32, space), count(100, 256, space)], [few; 3]);
    }
}
