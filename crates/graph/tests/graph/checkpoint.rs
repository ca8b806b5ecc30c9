//! Interrupted inference resumes to the same numbers, wherever it was interrupted.

use hyperprior::checkpoint::{Checkpoint, CheckpointState};
use hyperprior::fit::Progress;
use hyperprior::infer::{InferSettings, Inferred, Method, infer};
use hyperprior::{Error, Observer, Quiet, Result, Session};
use hyperprior_graph::{Distribution, GraphBuilder, GraphModel, Marginalise};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stops at a given call.
struct StopAt {
    call: usize,
    calls: usize,
}

impl StopAt {
    fn count(&mut self) -> ControlFlow<()> {
        self.calls += 1;
        if self.calls >= self.call { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for StopAt {
    fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
        self.count()
    }

    fn advance(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        self.count()
    }
}

type States = Arc<Mutex<Vec<CheckpointState>>>;

/// A checkpoint that continues from this state and records every seventh state it saves.
fn recorded(state: CheckpointState) -> (Checkpoint, States) {
    let seen: States = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&seen);
    let mut number = 0;
    let save = Box::new(move |state: &CheckpointState| {
        number += 1;
        if number % 7 == 0 {
            to.lock().expect("one writer").push(state.clone());
        }
        Ok(())
    });
    (Checkpoint::new(state, Duration::ZERO, save), seen)
}

/// Observations from one of two normals each; which one is a discrete latent.
fn model(marginalise: &Marginalise) -> Result<GraphModel> {
    let mut g = GraphBuilder::new();
    let (zero, half, one, wide) = (g.constant(0.0), g.constant(0.5), g.constant(1.0), g.constant(0.01));
    let mean = g.stochastic("mean", Distribution::Normal { mean: zero, precision: wide }, None, None)?;
    for i in 0..3 {
        let which = g.stochastic(&format!("which[{}]", i + 1), Distribution::Bernoulli { p: half }, None, None)?;
        let own = g.add(mean, which);
        g.stochastic(
            &format!("y[{}]", i + 1),
            Distribution::Normal { mean: own, precision: one },
            None,
            Some(f64::from(i)),
        )?;
    }
    g.build()?.model_with(marginalise)
}

fn run(model: &GraphModel, settings: &InferSettings, checkpoint: &mut Checkpoint, stop_at: usize) -> Result<Inferred> {
    let mut observer = StopAt { call: stop_at, calls: 0 };
    let session = Session::new(&mut observer).with_checkpoint(Some(checkpoint));
    infer(model, &model.starts(settings.seed)?, settings, session)
}

fn assert_same(a: &Inferred, b: &Inferred) {
    assert_eq!(a.z, b.z);
    assert_eq!((a.moved, a.psis, &a.fitted), (b.moved, b.psis, &b.fitted));
    assert_eq!((&a.bounds, a.has_converged), (&b.bounds, b.has_converged));
}

#[test]
fn resuming_gives_the_same_result_wherever_it_was_interrupted() {
    // Without a fixed number of steps, the state of the stopping rule is saved too.
    for (marginalise, method, steps) in [
        (Marginalise::Auto, Method::Auto, Some(60)),
        (Marginalise::Auto, Method::Auto, None),
        (Marginalise::Auto, Method::Mixture(2), Some(60)),
        (Marginalise::Nothing, Method::Auto, Some(60)),
    ] {
        let model = model(&marginalise).expect("a model");
        let settings = InferSettings::default().method(method).steps(steps).draws(64);
        let (mut whole, seen) = recorded(CheckpointState::default());
        let expected = run(&model, &settings, &mut whole, usize::MAX).expect("a posterior");
        let seen = seen.lock().expect("one writer").clone();
        assert!(seen.len() > 10, "{} states", seen.len());
        // As if killed: only the last saved state is left.
        for state in seen.iter().step_by(seen.len() / 4) {
            let bytes = state.to_bytes().expect("bytes");
            let (mut again, _) = recorded(CheckpointState::from_bytes(&bytes).expect("a state"));
            assert_same(&run(&model, &settings, &mut again, usize::MAX).expect("a posterior"), &expected);
        }
        // As if asked to stop, again and again.
        let mut state = CheckpointState::default();
        for stop_at in [5, 120, 60, 40, 500, usize::MAX] {
            let (mut part, _) = recorded(state);
            let found = run(&model, &settings, &mut part, stop_at);
            state = part.state().clone();
            match found {
                // An interrupted mode search is not saved.
                Err(Error::Stopped { .. }) => assert_eq!((stop_at, &state), (5, &CheckpointState::default())),
                found if stop_at == usize::MAX => assert_same(&found.expect("a posterior"), &expected),
                found => assert!(stop_at > 5 && found.is_ok(), "{found:?}"),
            }
        }
    }
}

#[test]
fn checkpoints_of_another_computation_are_rejected() {
    let settings = InferSettings::default().steps(60).draws(64);
    let (mut whole, _) = recorded(CheckpointState::default());
    run(&model(&Marginalise::Nothing).expect("a model"), &settings, &mut whole, usize::MAX).expect("a posterior");
    let state = whole.state().clone();
    let other = model(&Marginalise::Auto).expect("a model");
    let found = run(&other, &settings, &mut recorded(state.clone()).0, usize::MAX);
    assert!(matches!(found, Err(Error::Checkpoint { .. })), "{found:?}");
    let bytes = state.to_bytes().expect("bytes");
    for len in (0..bytes.len()).step_by(bytes.len() / 50) {
        assert!(CheckpointState::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_checkpoint_that_cannot_be_saved_is_an_error() {
    let full = Box::new(|_: &CheckpointState| Err("no space left".to_owned()));
    let mut full = Checkpoint::new(CheckpointState::default(), Duration::ZERO, full);
    let model = model(&Marginalise::Auto).expect("a model");
    let mut quiet = Quiet;
    let session = Session::new(&mut quiet).with_checkpoint(Some(&mut full));
    let found = infer(&model, &model.starts(1).expect("starts"), &InferSettings::default(), session);
    assert_eq!(found.expect_err("no room"), Error::Checkpoint { reason: "no space left".to_owned() });
}
