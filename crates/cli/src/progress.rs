//! A progress bar for the steps of a fit, and the flag that Ctrl-C raises.

use crate::error::STOPPED;
use hyperprior::fit::{Observer, Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Raised by Ctrl-C or SIGTERM; fits stop after the current step. A second signal ends the process immediately.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<Signals>);

#[derive(Debug, Default)]
struct Signals {
    is_raised: AtomicBool,
    /// Whether there are partial results to report.
    has_results: AtomicBool,
}

impl StopFlag {
    /// The process's flag, raised by signals.
    pub fn on_signals() -> Self {
        let flag = Self::on_signals_after_results();
        flag.mark_results();
        flag
    }

    /// The same, but a signal before [`mark_results`](Self::mark_results) ends the process immediately, since there is nothing to
    /// lose. All callers share one flag, since signals belong to the process.
    pub fn on_signals_after_results() -> Self {
        static OF_PROCESS: OnceLock<StopFlag> = OnceLock::new();
        OF_PROCESS.get_or_init(Self::listening).clone()
    }

    fn listening() -> Self {
        let flag = Self::default();
        let signals = flag.0.clone();
        // If the handler cannot be set, a signal ends the process immediately.
        let _ = ctrlc::set_handler(move || {
            let has_results = signals.has_results.load(Ordering::SeqCst);
            if signals.is_raised.swap(true, Ordering::SeqCst) || !has_results {
                eprintln!("hyperprior: stopped immediately; unsaved results are lost");
                std::process::exit(STOPPED.into());
            }
        });
        flag
    }

    /// From now on there are partial results to report.
    pub fn mark_results(&self) {
        self.0.has_results.store(true, Ordering::SeqCst);
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.0.is_raised.load(Ordering::SeqCst)
    }
}

/// A progress counter on standard error, shared by threads.
pub struct Counter(ProgressBar);

impl Counter {
    /// Nothing done yet.
    pub fn new(label: &str, of: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(of as u64), target);
        let style = ProgressStyle::with_template("{msg:16} {wide_bar:.cyan} {pos:>5}/{len} {per_sec} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(label.to_owned());
        Self(bar)
    }

    /// Counts one more.
    pub fn advance(&self) {
        self.0.inc(1);
    }

    /// Removes the counter.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// A progress bar on standard error; hidden with `--quiet` or without a terminal.
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

    /// Shows a message.
    pub fn say(&self, words: &str) {
        self.bar.set_message(words.to_owned());
        self.bar.tick();
    }

    /// The number of steps observed, including those of the short runs.
    pub fn steps_taken(&self) -> u64 {
        self.steps_taken
    }

    /// Removes the bar.
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
            self.bar.set_message(format!("{}{what} · ELBO {smooth:.3}", self.label));
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
