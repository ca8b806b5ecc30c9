//! Work that is broken off goes on to the same numbers, wherever that was.

use hyperprior::fit::{Observer, Progress};
use hyperprior::infer::{InferSettings, Inferred, Method, Starts, infer};
use hyperprior::journal::{Journal, Pages};
use hyperprior::model::graph::{Eliminate, GraphBuilder, GraphModel, Law};
use hyperprior::{Error, Result};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Writes down every few states, and stops at a given call.
struct Writer {
    journal: Journal,
    seen: Arc<Mutex<Vec<Pages>>>,
    calls: usize,
    stop_at: usize,
}

impl Writer {
    fn new(pages: Pages, stop_at: usize) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&seen);
        let mut number = 0;
        let save = Box::new(move |pages: &Pages| {
            number += 1;
            if number % 7 == 0 {
                to.lock().expect("one writer").push(pages.clone());
            }
            Ok(())
        });
        Self { journal: Journal::new(pages, Duration::ZERO, save), seen, calls: 0, stop_at }
    }

    fn called(&mut self) -> ControlFlow<()> {
        self.calls += 1;
        if self.calls >= self.stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for Writer {
    fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
        self.called()
    }

    fn advance(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        self.called()
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        Some(&mut self.journal)
    }
}

/// Two groups of observations, each from one of two normals; which is a discrete latent.
fn model(eliminate: &Eliminate) -> Result<GraphModel> {
    let mut g = GraphBuilder::new();
    let (zero, half, one, wide) = (g.constant(0.0), g.constant(0.5), g.constant(1.0), g.constant(0.01));
    let mean = g.stochastic("mean", Law::Normal { mean: zero, precision: wide }, None, None)?;
    for i in 0..3 {
        let which = g.stochastic(&format!("which[{}]", i + 1), Law::Bernoulli { p: half }, None, None)?;
        let own = g.add(mean, which);
        g.stochastic(&format!("y[{}]", i + 1), Law::Normal { mean: own, precision: one }, None, Some(f64::from(i)))?;
    }
    g.build()?.model_with(eliminate)
}

fn run(model: &GraphModel, settings: &InferSettings, writer: &mut Writer) -> Result<Inferred> {
    infer(model, &Starts::of(model, settings.seed)?, settings, writer)
}

fn same(a: &Inferred, b: &Inferred) {
    assert_eq!(a.z, b.z);
    assert_eq!((a.moved, a.tail, &a.fitted), (b.moved, b.tail, &b.fitted));
    assert_eq!((&a.bounds, a.has_settled), (&b.bounds, b.has_settled));
}

#[test]
fn wherever_it_was_broken_off() {
    // A fit that ends by itself has its windows to remember too.
    for (eliminate, method, steps) in [
        (Eliminate::Auto, Method::Auto, Some(60)),
        (Eliminate::Auto, Method::Auto, None),
        (Eliminate::Auto, Method::Mixture(2), Some(60)),
        (Eliminate::Nothing, Method::Auto, Some(60)),
    ] {
        let model = model(&eliminate).expect("a model");
        let settings = InferSettings { method, steps, draws: 64, ..InferSettings::default() };
        let mut whole = Writer::new(Pages::default(), usize::MAX);
        let expected = run(&model, &settings, &mut whole).expect("a posterior");
        let seen = whole.seen.lock().expect("one writer").clone();
        assert!(seen.len() > 10, "{} states", seen.len());
        // As if killed: all that is left is what was last written.
        for pages in seen.iter().step_by(seen.len() / 4) {
            let bytes = pages.to_bytes().expect("bytes");
            let mut again = Writer::new(Pages::from_bytes(&bytes).expect("pages"), usize::MAX);
            same(&run(&model, &settings, &mut again).expect("a posterior"), &expected);
        }
        // As if asked to stop, again and again.
        let mut pages = Pages::default();
        for stop_at in [5, 120, 60, 40, 500, usize::MAX] {
            let mut part = Writer::new(pages, stop_at);
            let found = run(&model, &settings, &mut part);
            pages = part.journal.pages().clone();
            match found {
                // Half a search is worth nothing.
                Err(Error::Stopped { .. }) => assert_eq!((stop_at, &pages), (5, &Pages::default())),
                found if stop_at == usize::MAX => same(&found.expect("a posterior"), &expected),
                found => assert!(stop_at > 5 && found.is_ok(), "{found:?}"),
            }
        }
    }
}

#[test]
fn what_goes_with_other_work_is_refused() {
    let settings = InferSettings { steps: Some(60), draws: 64, ..InferSettings::default() };
    let mut whole = Writer::new(Pages::default(), usize::MAX);
    run(&model(&Eliminate::Nothing).expect("a model"), &settings, &mut whole).expect("a posterior");
    let pages = whole.journal.pages().clone();
    let other = model(&Eliminate::Auto).expect("a model");
    let found = run(&other, &settings, &mut Writer::new(pages.clone(), usize::MAX));
    assert!(matches!(found, Err(Error::Checkpoint { .. })), "{found:?}");
    let bytes = pages.to_bytes().expect("bytes");
    for len in (0..bytes.len()).step_by(bytes.len() / 50) {
        assert!(Pages::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_state_that_cannot_be_written_ends_the_work() {
    struct Full(Journal);
    impl Observer for Full {
        fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
        fn journal(&mut self) -> Option<&mut Journal> {
            Some(&mut self.0)
        }
    }
    let full = Box::new(|_: &Pages| Err("no space left".to_owned()));
    let mut full = Full(Journal::new(Pages::default(), Duration::ZERO, full));
    let model = model(&Eliminate::Auto).expect("a model");
    let found = infer(&model, &Starts::of(&model, 1).expect("starts"), &InferSettings::default(), &mut full);
    assert_eq!(found.expect_err("no room"), Error::Checkpoint { reason: "no space left".to_owned() });
}
