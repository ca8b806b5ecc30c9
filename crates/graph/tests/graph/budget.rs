//! Convergence, model selection, restarts and budgets of inference.

use hyperprior::diagnostics::Verdict;
use hyperprior::infer::{InferSettings, Inferred, Method, infer};
use hyperprior::{Budget, Quiet, Session};
use hyperprior_graph::{Distribution, GraphBuilder, GraphModel, Marginalise};

/// Three group means with an unknown precision, each observed twice: the posterior has slightly longer tails than a Gaussian.
fn groups() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let precision = g.stochastic("tau", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
    let centre = g.stochastic("mu", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    for i in 1..=3 {
        let mean =
            g.stochastic(&format!("theta[{i}]"), Distribution::Normal { mean: centre, precision }, None, None).unwrap();
        for j in 1..=2 {
            let y = f64::from(i) * 0.8 - 1.0 + f64::from(j) * 0.3;
            g.stochastic(&format!("y[{i},{j}]"), Distribution::Normal { mean, precision: one }, None, Some(y)).unwrap();
        }
    }
    g.build().unwrap().model().unwrap()
}

/// Coins that share a bias, each thrown once and sometimes misread.
fn coins() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (one, tenth) = (g.constant(1.0), g.constant(0.1));
    let bias = g.stochastic("bias", Distribution::Beta { a: one, b: one }, None, None).unwrap();
    for i in 1..=3 {
        let z = g.stochastic(&format!("z[{i}]"), Distribution::Bernoulli { p: bias }, None, None).unwrap();
        let most = g.constant(0.8);
        let scaled = g.multiply(most, z);
        let p = g.add(tenth, scaled);
        g.stochastic(&format!("y[{i}]"), Distribution::Bernoulli { p }, None, Some(f64::from(i % 2))).unwrap();
    }
    g.build().unwrap().model_with(&Marginalise::Nothing).unwrap()
}

fn run<'s>(model: &GraphModel, settings: &InferSettings, session: impl Into<Session<'s>>) -> Inferred {
    infer(model, &model.starts(settings.seed).unwrap(), settings, session).unwrap()
}

#[test]
fn fits_converge_and_restarts_agree() {
    for (model, method) in [(groups(), Method::FullRank), (coins(), Method::Hvm)] {
        let found = run(&model, &InferSettings::default().method(method).restarts(2), &mut Quiet);
        let last = found.fitted.stages.last().unwrap();
        assert_eq!(found.has_converged, Some(true), "{:?}", found.fitted.stages);
        assert_eq!(found.fitted.steps, found.fitted.stages.iter().map(|stage| stage.steps).sum::<u64>());
        assert!(last.expected_gain <= 0.1, "{last:?}");
        // The final bound agrees with the mean of the last stage, from other draws.
        assert!((last.elbo - found.bounds.elbo.value).abs() < 0.1, "{last:?} {:?}", found.bounds.elbo);
        let restarts = found.restarts.as_ref().unwrap();
        assert_eq!(restarts.elbo.len(), 2);
        assert!(restarts.rhat.is_some_and(|rhat| rhat < 1.02), "{restarts:?}");
        assert_eq!(found.verdict(), Verdict::Trust, "{:?}", found.diagnostics());
        // Without discrete latents, superchains judge the draws, and no second fit is needed.
        let usual = run(&model, &InferSettings::default().method(method), &mut Quiet);
        assert_eq!(usual.restarts.is_some(), method == Method::Hvm);
        // A fixed number of steps is respected, and so is a single fit.
        let pinned = InferSettings::default().method(method).steps(170).restarts(1);
        let found = run(&model, &pinned, &mut Quiet);
        assert_eq!((found.fitted.steps, found.steps, &found.restarts), (170, 170, &None));
        assert!(found.fitted.stages.is_empty());
    }
}

#[test]
fn larger_approximations_are_tried_while_the_bound_gains() {
    let model = groups();
    let at = |accuracy: f64| run(&model, &InferSettings::default().accuracy(accuracy), &mut Quiet);
    let (rough, fine) = (at(5.0), at(0.02));
    assert_eq!((rough.method, rough.candidates.len()), (Method::FullRank, 1));
    assert!(fine.candidates.len() > 1 && fine.method != Method::FullRank, "{:?}", fine.candidates);
    assert!(fine.bounds.elbo.value > rough.bounds.elbo.value + 0.02, "{:?} {:?}", fine.candidates, rough.candidates);
    // The evidence is the same, and the best candidate was kept.
    let (a, b) = (rough.bounds.log_evidence, fine.bounds.log_evidence);
    assert!((a.value - b.value).abs() < 5.0 * a.standard_error.hypot(b.standard_error).max(0.005), "{a:?} {b:?}");
    let kept = fine.candidates.iter().find(|candidate| candidate.method == fine.method).unwrap();
    assert!(fine.candidates.iter().all(|candidate| candidate.elbo <= kept.elbo + 0.02), "{:?}", fine.candidates);
}

/// A budget that is spent after some queries.
struct Queries(u32);

impl Budget for Queries {
    fn is_spent(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

#[test]
fn a_run_that_its_budget_ended_can_be_reproduced() {
    let methods = ["auto", "mean-field", "low-rank:2", "full-rank", "mixture:2", "flow:2", "copula:1"];
    for (model, methods) in [(groups(), &methods[..]), (coins(), &["auto", "mean-field"][..])] {
        for (method, queries) in methods.iter().flat_map(|method| [1, 2, 5, 8].map(|queries| (*method, queries))) {
            let method = method.parse().unwrap();
            let settings = InferSettings::default().method(method).accuracy(0.02).draws(200);
            let found = run(&model, &settings, Session::new(&mut Quiet).with_budget(&mut Queries(queries)));
            let again = settings.budget_record(found.budget_record.clone());
            let same = run(&model, &again, &mut Quiet);
            let about = format!("{method}, {queries} queries");
            assert_eq!(same.budget_record, found.budget_record, "{about}");
            assert_eq!((same.z, same.fitted.theta), (found.z, found.fitted.theta), "{about}");
            assert_eq!((same.candidates, same.restarts), (found.candidates, found.restarts), "{about}");
        }
    }
    // By the clock: a budget of zero allows the shortest first fit only.
    let settings = InferSettings::default().budget(0.0);
    let found = run(&groups(), &settings, &mut Quiet);
    assert!(found.budget_record.is_some() && found.steps == 150 && found.restarts.is_none(), "{}", found.steps);
    assert_ne!(found.verdict(), Verdict::Trust);
    // A fixed number of steps is subject to the budget too.
    let settings = settings.steps(100_000);
    assert!(run(&groups(), &settings, &mut Quiet).steps < 1000);
}

#[test]
fn invalid_accuracies_are_rejected() {
    let model = groups();
    for accuracy in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let settings = InferSettings::default().accuracy(accuracy);
        assert!(infer(&model, &model.starts(1).unwrap(), &settings, &mut Quiet).is_err(), "{accuracy}");
    }
}

/// Two groups of observations, one location and long-tailed distributions: two modes with half of the posterior each.
#[test]
fn both_modes_of_a_bimodal_posterior_are_found() {
    let mut g = GraphBuilder::new();
    let (zero, one, wide) = (g.constant(0.0), g.constant(1.0), g.constant(1e-4));
    let theta = g.stochastic("theta", Distribution::Normal { mean: zero, precision: wide }, None, None).unwrap();
    for (i, y) in [-10.0, -11.0, -10.5, 10.0, 9.0, 9.5].into_iter().enumerate() {
        let distribution = Distribution::StudentT { mean: theta, precision: one, df: one };
        g.stochastic(&format!("y[{}]", i + 1), distribution, None, Some(y)).unwrap();
    }
    let model = g.build().unwrap().model().unwrap();
    for seed in 1..=4 {
        let found = run(&model, &InferSettings::default().seed(seed), &mut Quiet);
        let below = found.z.column(0).iter().filter(|z| **z < 0.0).count() as f64 / found.z.draws_len() as f64;
        assert!((0.4..0.6).contains(&below) || found.verdict() != Verdict::Trust, "seed {seed}: {below} below zero");
        // By quadrature.
        assert!((found.bounds.log_evidence.value + 29.78).abs() < 0.1, "seed {seed}: {:?}", found.bounds.log_evidence);
    }
}
