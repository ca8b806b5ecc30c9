//! The progress of a topics run.

use hyperprior_def::Epoch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Shows epochs on standard error.
pub struct Watch {
    bar: ProgressBar,
    quiet: bool,
    words: f64,
    spent: Duration,
    /// The last quick perplexity.
    perplexity: Option<f64>,
    /// The last objective per word.
    objective: f64,
}

impl Watch {
    /// A bar for this many epochs.
    pub fn new(epochs: u32, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(epochs.into()), target);
        let style = ProgressStyle::with_template("{msg:51} {wide_bar:.cyan} epoch {pos}/{len} left {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message("reading");
        // An epoch may take a long time.
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, quiet, words: 0.0, spent: Duration::ZERO, perplexity: None, objective: 0.0 }
    }

    /// Whether the bar is visible.
    pub fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Prints a note, unless quiet.
    pub fn note(&self, note: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("Note: {note}"));
        }
    }

    /// Prints a warning, unless quiet.
    pub fn warn(&self, warning: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("Warning: {warning}"));
        }
    }

    /// From now on, counts documents.
    pub fn documents(&self, what: &'static str, len: usize) {
        let style = ProgressStyle::with_template("{msg:51} {wide_bar:.cyan} {pos}/{len} left {eta}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(len as u64);
        self.bar.reset();
        self.say(what);
    }

    /// Sets the number of documents done.
    pub fn done(&self, documents: usize) {
        self.bar.set_position(documents as u64);
    }

    /// Shows the name of the next phase.
    pub fn say(&self, words: impl Into<Cow<'static, str>>) {
        self.bar.set_message(words);
        self.bar.tick();
    }

    /// Starts the clock for the remaining time.
    pub fn begin(&self) {
        self.bar.reset();
        self.say("first epoch");
    }

    /// Shows a finished epoch.
    pub fn epoch(&mut self, epoch: &Epoch, words: f64, began: Instant) {
        self.words += words;
        self.spent += began.elapsed();
        self.objective = epoch.objective / words;
        self.bar.set_position(epoch.number.into());
        self.show();
    }

    /// Shows a quick perplexity.
    pub fn glance(&mut self, perplexity: f64) {
        self.perplexity = Some(perplexity);
        self.show();
    }

    fn show(&self) {
        let speed = short(self.words / self.spent.as_secs_f64().max(1e-9));
        let perplexity = self.perplexity.map_or_else(String::new, |p| format!(" · perplexity {p:.0}"));
        self.bar.set_message(format!("ELBO {:.4}/word{perplexity} · {speed} words/s", self.objective));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // An error message starts on its own line.
        self.finish();
    }
}

/// Two or three significant figures.
fn short(x: f64) -> String {
    match x {
        x if x < 1e3 => format!("{x:.0}"),
        x if x < 1e4 => format!("{:.1} k", x / 1e3),
        x if x < 1e6 => format!("{:.0} k", x / 1e3),
        x => format!("{:.1} M", x / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn speeds_are_short() {
        assert_eq!([12.3, 1234.0, 456_789.0, 7.25e6].map(short), ["12", "1.2 k", "457 k", "7.2 M"]);
    }
}
