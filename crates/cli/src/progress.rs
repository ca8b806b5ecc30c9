//! A progress bar over the steps of a fit, and the flag that Ctrl-C raises.

use crate::error::STOPPED;
use hyperprior::fit::{Observer, Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Raised by Ctrl-C or SIGTERM; fits stop after their step. A second signal ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<Signals>);

#[derive(Debug, Default)]
struct Signals {
    is_raised: AtomicBool,
    /// Whether there is something that a fit would keep when it is stopped.
    is_kept: AtomicBool,
}

impl StopFlag {
    /// A flag that the process's signals raise.
    pub fn on_signals() -> Self {
        let flag = Self::on_signals_once_kept();
        flag.keep();
        flag
    }

    /// The same, but a signal that comes before [`keep`](Self::keep) ends the process at once: there is nothing to lose. Signals are
    /// the process's, and so is their flag: all that asks for one has the same.
    pub fn on_signals_once_kept() -> Self {
        static OF_PROCESS: OnceLock<StopFlag> = OnceLock::new();
        OF_PROCESS.get_or_init(Self::listening).clone()
    }

    fn listening() -> Self {
        let flag = Self::default();
        let signals = flag.0.clone();
        // Where it cannot be set the process keeps its default: it ends at once.
        let _ = ctrlc::set_handler(move || {
            let is_kept = signals.is_kept.load(Ordering::SeqCst);
            if signals.is_raised.swap(true, Ordering::SeqCst) || !is_kept {
                eprintln!("hyperprior: stopped at once; what was not written yet is lost");
                std::process::exit(STOPPED.into());
            }
        });
        flag
    }

    /// From now on there is something to keep.
    pub fn keep(&self) {
        self.0.is_kept.store(true, Ordering::SeqCst);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.is_raised.load(Ordering::SeqCst)
    }
}

/// A count on standard error of things that several threads do.
pub struct Counter(ProgressBar);

impl Counter {
    /// Nothing done yet, of so many.
    pub fn new(label: &str, of: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(of as u64), target);
        let style = ProgressStyle::with_template("{msg:16} {wide_bar:.cyan} {pos:>5}/{len} {per_sec} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(label.to_owned());
        Self(bar)
    }

    /// One more is done.
    pub fn advance(&self) {
        self.0.inc(1);
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// A bar on standard error, and nothing where that is no terminal or the person wants quiet.
pub struct Bar {
    bar: ProgressBar,
    label: String,
    stop: StopFlag,
    smooth: Option<f64>,
    steps_taken: u64,
}

impl Bar {
    /// A bar for one fit.
    pub fn new(label: &str, quiet: bool, stop: &StopFlag) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style = ProgressStyle::with_template("{msg:48} {wide_bar:.cyan} {pos:>5}/{len} {per_sec} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(label.to_owned());
        Self { bar, label: label.to_owned(), stop: stop.clone(), smooth: None, steps_taken: 0 }
    }

    /// Shows some words instead of steps.
    pub fn say(&self, words: &str) {
        self.bar.set_message(words.to_owned());
        self.bar.tick();
    }

    /// How many steps it has seen, those of the starts among them.
    pub fn steps_taken(&self) -> u64 {
        self.steps_taken
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Bar {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.steps_taken += 1;
        let elbo = progress.estimate.elbo;
        let smooth = self.smooth.map_or(elbo, |s| s + 0.02 * (elbo - s));
        self.smooth = Some(smooth);
        if progress.step == 1 || progress.step.is_multiple_of(50) || progress.step == progress.steps {
            let what = match progress.phase {
                Phase::Start { number, of } => format!(" · start {} of {of}", number + 1),
                Phase::Main => String::new(),
            };
            self.bar.set_length(progress.steps);
            self.bar.set_position(progress.step);
            self.bar.set_message(format!("{}{what} · bound {smooth:.3}", self.label));
        }
        if self.stop.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn advance(&mut self, work: &'static str, done: usize, of: usize) -> ControlFlow<()> {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(work);
        if self.stop.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
