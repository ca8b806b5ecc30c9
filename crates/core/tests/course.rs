//! What an inference does by itself: it ends its fits, tries larger approximations, fits again from elsewhere, and keeps to a budget.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::fit::{Observer, Progress, Quiet};
use hyperprior::infer::{InferSettings, Inferred, Method, Starts, Verdict, infer};
use hyperprior::model::graph::{Eliminate, GraphBuilder, GraphModel, Law};
use std::ops::ControlFlow;

/// Three means with a variance of their own, each seen twice: a Gaussian lacks a little of its tail.
fn groups() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let precision = g.stochastic("tau", Law::Gamma { shape: one, rate: one }, None, None).unwrap();
    let centre = g.stochastic("mu", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
    for i in 1..=3 {
        let mean = g.stochastic(&format!("theta[{i}]"), Law::Normal { mean: centre, precision }, None, None).unwrap();
        for j in 1..=2 {
            let y = f64::from(i) * 0.8 - 1.0 + f64::from(j) * 0.3;
            g.stochastic(&format!("y[{i},{j}]"), Law::Normal { mean, precision: one }, None, Some(y)).unwrap();
        }
    }
    g.build().unwrap().model().unwrap()
}

/// Coins that share a bias, each thrown once and misread now and then.
fn coins() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (one, tenth) = (g.constant(1.0), g.constant(0.1));
    let bias = g.stochastic("bias", Law::Beta { a: one, b: one }, None, None).unwrap();
    for i in 1..=3 {
        let z = g.stochastic(&format!("z[{i}]"), Law::Bernoulli { p: bias }, None, None).unwrap();
        let most = g.constant(0.8);
        let scaled = g.multiply(most, z);
        let p = g.add(tenth, scaled);
        g.stochastic(&format!("y[{i}]"), Law::Bernoulli { p }, None, Some(f64::from(i % 2))).unwrap();
    }
    g.build().unwrap().model_with(&Eliminate::Nothing).unwrap()
}

fn run(model: &GraphModel, settings: &InferSettings, observer: &mut dyn Observer) -> Inferred {
    infer(model, &Starts::of(model, settings.seed).unwrap(), settings, observer).unwrap()
}

#[test]
fn fits_end_by_themselves_and_agree_with_others() {
    for (model, method) in [(groups(), Method::FullRank), (coins(), Method::Hvm)] {
        let found = run(&model, &InferSettings { method, ..InferSettings::default() }, &mut Quiet);
        let last = found.fitted.rounds.last().unwrap();
        assert_eq!(found.has_settled, Some(true), "{:?}", found.fitted.rounds);
        assert_eq!(found.fitted.steps, found.fitted.rounds.iter().map(|round| round.steps).sum::<u64>());
        assert!(last.to_gain <= 0.1, "{last:?}");
        // The bound at the end is that of the last round's mean, by other draws.
        assert!((last.elbo - found.bounds.elbo.value).abs() < 0.1, "{last:?} {:?}", found.bounds.elbo);
        let restarts = found.restarts.as_ref().unwrap();
        assert_eq!(restarts.elbo.len(), 2);
        assert!(restarts.rhat.is_some_and(|rhat| rhat < 1.02), "{restarts:?}");
        assert_eq!(found.verdict(), Verdict::Trust, "{:?}", found.doubts());
        // Steps that are asked for are taken, and no second fit that is not wanted.
        let pinned = InferSettings { method, steps: Some(170), restarts: Some(1), ..InferSettings::default() };
        let found = run(&model, &pinned, &mut Quiet);
        assert_eq!((found.fitted.steps, found.steps, &found.restarts), (170, 170, &None));
        assert!(found.fitted.rounds.is_empty());
    }
}

#[test]
fn larger_approximations_are_tried_while_they_gain() {
    let model = groups();
    let at = |accuracy: f64| run(&model, &InferSettings { accuracy, ..InferSettings::default() }, &mut Quiet);
    let (rough, fine) = (at(5.0), at(0.02));
    assert_eq!((rough.method, rough.rungs.len()), (Method::FullRank, 1));
    assert!(fine.rungs.len() > 1 && fine.method != Method::FullRank, "{:?}", fine.rungs);
    assert!(fine.bounds.elbo.value > rough.bounds.elbo.value + 0.02, "{:?} {:?}", fine.rungs, rough.rungs);
    // Nothing was tried that could not gain, and the evidence is the same.
    let (a, b) = (rough.bounds.log_evidence, fine.bounds.log_evidence);
    assert!((a.value - b.value).abs() < 5.0 * a.standard_error.hypot(b.standard_error).max(0.005), "{a:?} {b:?}");
    let kept = fine.rungs.iter().find(|rung| rung.method == fine.method).unwrap();
    assert!(fine.rungs.iter().all(|rung| rung.elbo <= kept.elbo + 0.02), "{:?}", fine.rungs);
}

/// Has enough after some questions.
struct Impatient(u32);

impl Observer for Impatient {
    fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_spent(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

#[test]
fn what_a_budget_ended_ends_there_again() {
    let methods = ["auto", "mean-field", "low-rank:2", "full-rank", "mixture:2", "flow:2", "copula:1"];
    for (model, methods) in [(groups(), &methods[..]), (coins(), &["auto", "mean-field"][..])] {
        for (method, questions) in methods.iter().flat_map(|method| [1, 2, 5, 8].map(|questions| (*method, questions)))
        {
            let method = method.parse().unwrap();
            let settings = InferSettings { method, accuracy: 0.02, draws: 200, ..InferSettings::default() };
            let found = run(&model, &settings, &mut Impatient(questions));
            let again = InferSettings { within: found.within.clone(), ..settings };
            let same = run(&model, &again, &mut Quiet);
            let about = format!("{method}, {questions} questions");
            assert_eq!(same.within, found.within, "{about}");
            assert_eq!((same.z, same.fitted.theta), (found.z, found.fitted.theta), "{about}");
            assert_eq!((same.rungs, same.restarts), (found.rungs, found.restarts), "{about}");
        }
    }
    // By the clock: no time at all is enough for a first look and nothing more.
    let settings = InferSettings { budget: Some(0.0), ..InferSettings::default() };
    let found = run(&groups(), &settings, &mut Quiet);
    assert!(found.within.is_some() && found.steps == 150 && found.restarts.is_none(), "{}", found.steps);
    assert_ne!(found.verdict(), Verdict::Trust);
    // Steps that are asked for have a budget too.
    let settings = InferSettings { steps: Some(100_000), ..settings };
    assert!(run(&groups(), &settings, &mut Quiet).steps < 1000);
}

#[test]
fn an_accuracy_that_is_none_is_refused() {
    let model = groups();
    for accuracy in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let settings = InferSettings { accuracy, ..InferSettings::default() };
        assert!(infer(&model, &Starts::of(&model, 1).unwrap(), &settings, &mut Quiet).is_err(), "{accuracy}");
    }
}

/// Two groups of observations under one location, and laws with long tails: two modes with half of the posterior each.
#[test]
fn another_mode_is_not_hidden_by_a_wide_one() {
    let mut g = GraphBuilder::new();
    let (zero, one, wide) = (g.constant(0.0), g.constant(1.0), g.constant(1e-4));
    let theta = g.stochastic("theta", Law::Normal { mean: zero, precision: wide }, None, None).unwrap();
    for (i, y) in [-10.0, -11.0, -10.5, 10.0, 9.0, 9.5].into_iter().enumerate() {
        let law = Law::StudentT { mean: theta, precision: one, df: one };
        g.stochastic(&format!("y[{}]", i + 1), law, None, Some(y)).unwrap();
    }
    let model = g.build().unwrap().model().unwrap();
    for seed in 1..=4 {
        let found = run(&model, &InferSettings { seed, ..InferSettings::default() }, &mut Quiet);
        let below = found.z.column(0).iter().filter(|z| **z < 0.0).count() as f64 / found.z.draws_len() as f64;
        assert!((0.4..0.6).contains(&below) || found.verdict() != Verdict::Trust, "seed {seed}: {below} below zero");
        // By quadrature.
        assert!((found.bounds.log_evidence.value + 29.78).abs() < 0.1, "seed {seed}: {:?}", found.bounds.log_evidence);
    }
}
