//! Progress of the cells, with the estimated remaining time.

use super::plan::{Cell, Plan};
use super::settings::{BOUND_ROUNDS, CURVE_DOCUMENTS, Choice};
use crate::topics::duration;
use hyperprior_def::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// The amount of work, in steps of one latent.
#[derive(Clone, Copy)]
pub struct Work {
    choice: Choice,
    /// The numbers of training documents and of evaluated documents.
    documents: [usize; 2],
}

impl Work {
    /// For cells with these numbers of documents.
    pub fn new(choice: Choice, documents: [usize; 2]) -> Self {
        Self { choice, documents }
    }

    /// An epoch of a cell.
    pub fn epoch(&self, cell: &Cell) -> f64 {
        let settings = self.choice.train();
        breadth(cell) * self.documents[0] as f64 * f64::from(settings.local_steps) * settings.draws as f64
    }

    /// The training bound of a cell.
    pub fn bound(&self, cell: &Cell) -> f64 {
        breadth(cell) * self.documents[0] as f64 * 8.0 * BOUND_ROUNDS as f64
    }

    /// A held-out document: half of its types, half of its words, and the whole document.
    pub fn document(&self, cell: &Cell) -> f64 {
        3.0 * self.half(cell, self.choice.steps)
    }

    /// Half of a document, with this many steps.
    pub fn half(&self, cell: &Cell, steps: u32) -> f64 {
        breadth(cell) * f64::from(steps) * self.choice.fit().draws as f64
    }

    /// A whole cell.
    pub fn cell(&self, cell: &Cell) -> f64 {
        f64::from(self.choice.epochs) * self.epoch(cell)
            + self.bound(cell)
            + self.documents[1] as f64 * self.document(cell)
    }

    /// A point of its curve.
    pub fn point(&self, cell: &Cell, steps: u32) -> f64 {
        self.documents[1].min(CURVE_DOCUMENTS) as f64 * self.half(cell, steps)
    }
}

/// The latents of a document times their relative cost, measured on one corpus.
fn breadth(cell: &Cell) -> f64 {
    let cost = match cell.method {
        Method::MeanField => 1.0,
        Method::Flow(..) => 2.4,
        _ => 2.2,
    };
    let layers = &cell.layers.0;
    // The weights between two layers cost more than those between the bottom layer and the words.
    let upper: usize = layers.windows(2).map(|pair| 4 * (pair[0] + pair[1])).sum();
    (layers[0] + upper) as f64 * cost
}

/// A bar on standard error, and a line for each finished cell.
pub struct Watch {
    bar: ProgressBar,
    quiet: bool,
    began: Instant,
    done: f64,
    all: f64,
    label: String,
}

/// The length of the bar.
const PARTS: f64 = 1000.0;

impl Watch {
    /// A bar without progress yet.
    pub fn new(quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(PARTS as u64), target);
        let style = ProgressStyle::with_template("{msg} {wide_bar:.cyan} {percent} %");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message("reading");
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, quiet, began: Instant::now(), done: 0.0, all: 0.0, label: String::new() }
    }

    /// Starts the clock, with the total amount of work.
    pub fn begin(&mut self, all: f64) {
        (self.began, self.done, self.all) = (Instant::now(), 0.0, all);
    }

    /// Shows the next cell or point.
    pub fn next(&mut self, label: String) {
        self.label = label;
        self.show("");
    }

    /// Adds finished work and shows the stage.
    pub fn advance(&mut self, work: f64, stage: &str) {
        self.done += work;
        self.show(stage);
    }

    /// Removes work that was done by an earlier run.
    pub fn skip(&mut self, work: f64) {
        self.all -= work;
    }

    fn show(&self, stage: &str) {
        let left = self.left().map_or_else(String::new, |left| format!(" · {left} left"));
        let stage = if stage.is_empty() { String::new() } else { format!(" · {stage}") };
        self.bar.set_message(format!("{}{stage}{left}", self.label));
        self.bar.set_position((PARTS * self.done / self.all.max(1.0)) as u64);
    }

    /// The estimated remaining time.
    pub fn left(&self) -> Option<String> {
        let spent = self.began.elapsed().as_secs_f64();
        (self.done > 0.0).then(|| duration(spent * (self.all - self.done).max(0.0) / self.done))
    }

    /// Prints a line, unless quiet.
    pub fn say(&self, words: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("{words}"));
        }
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

/// The number and name of a cell in a plan.
pub fn label(plan: &Plan, cell: &Cell) -> String {
    let cells = plan.cells();
    let number = cells.iter().position(|own| own == cell).map_or(0, |place| place + 1);
    format!("{number}/{} {}", cells.len(), cell.describe())
}
