//! Runs all cells of a plan and the curve; finished ones are not run again.

use super::bench::Bench;
use super::curve;
use super::numbers::{Numbers, Point};
use super::plan::{Plan, split, spread};
use super::report::Report;
use super::settings::Choice;
use super::store::Store;
use super::watch::{Watch, Work, label};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::topics::duration;
use hyperprior_def::Corpus;
use std::io::Write;
use std::path::PathBuf;
use toml::Table;

/// The tables to build.
pub struct Job {
    /// The name of the corpus, and the command line.
    pub name: String,
    pub command: String,
    /// The cells.
    pub plan: Plan,
    /// The settings that all cells share.
    pub choice: Choice,
    /// The folder for the files.
    pub out: PathBuf,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether to show no progress and no messages.
    pub quiet: bool,
}

/// Finished cells and points.
#[derive(Default)]
struct Found {
    cells: Vec<Numbers>,
    points: Vec<Point>,
}

impl Job {
    /// Runs the cells that are not finished, and prints the tables.
    pub fn run(self, read: impl FnOnce() -> Result<(Corpus, Vec<String>), CliError>) -> Result<(), CliError> {
        for cell in self.plan.cells() {
            cell.settings(self.choice.train()).check()?;
        }
        for steps in self.plan.curve.iter().chain([&self.choice.steps]) {
            self.choice.fit_for(*steps).check()?;
        }
        let stop = StopFlag::on_signals_after_results();
        let mut watch = Watch::new(self.quiet);
        let (corpus, notes) = read()?;
        notes.iter().for_each(|note| watch.say(&format!("Note: {note}")));
        let facts = self.choice.facts(&corpus)?;
        let store = Store::open(&self.out, &facts)?;
        let mut found = self.saved(&store)?;
        stop.mark_results();
        let measured = self.measure(&corpus, &store, &stop, &mut watch, &mut found);
        watch.finish();
        let reported = if found.cells.is_empty() { Ok(()) } else { self.report(&corpus, &facts, &store, &found) };
        // The first error counts.
        measured?;
        reported?;
        let (done, cells) = (found.cells.len(), self.plan.cells().len());
        if done < cells || found.points.len() < self.plan.curves().len() * self.plan.curve.len() {
            return Err(CliError::StoppedTables { done, cells });
        }
        Ok(())
    }

    /// The cells and points saved by earlier runs.
    fn saved(&self, store: &Store) -> Result<Found, CliError> {
        let (curves, mut found) = (self.plan.curves(), Found::default());
        for cell in self.plan.cells() {
            found.cells.extend(store.cell(&cell, curves.contains(&cell))?);
        }
        for cell in curves.iter().filter(|cell| found.cells.iter().any(|own| own.cell == **cell)) {
            for steps in &self.plan.curve {
                found.points.extend(store.point(cell, *steps)?);
            }
        }
        Ok(found)
    }

    /// Runs the remaining cells and points, seed by seed, until the end or a signal.
    fn measure(
        &self,
        corpus: &Corpus,
        store: &Store,
        stop: &StopFlag,
        watch: &mut Watch,
        found: &mut Found,
    ) -> Result<(), CliError> {
        let (plan, curves) = (&self.plan, self.plan.curves());
        let cells: Vec<_> = plan.cells().into_iter().filter(|c| found.cells.iter().all(|own| own.cell != *c)).collect();
        let is_done = |(c, s): &(usize, u32)| found.points.iter().any(|p| p.cell == curves[*c] && p.steps == *s);
        let all_points = (0..curves.len()).flat_map(|c| plan.curve.iter().map(move |steps| (c, *steps)));
        let points: Vec<(usize, u32)> = all_points.filter(|point| !is_done(point)).collect();
        if cells.len() + points.len() == 0 {
            watch.say(&format!("All cells are already done: {}", store.path().display()));
        } else if !found.cells.is_empty() {
            let (done, all) = (found.cells.len(), plan.cells().len());
            watch.say(&format!("{done} of {all} cells are already done: {}", store.path().display()));
        }
        for (i, &seed) in plan.seeds.iter().enumerate() {
            let [train, heldout] = split(corpus, seed)?;
            let test = spread(&heldout, self.choice.measured);
            let work = Work::new(self.choice, [&train, &test].map(Corpus::documents_len));
            if i == 0 {
                let of_cells: f64 = cells.iter().map(|cell| work.cell(cell)).sum();
                let of_points: f64 = points.iter().map(|(c, steps)| work.point(&curves[*c], *steps)).sum();
                watch.begin(of_cells + of_points);
            }
            let heldout_len = heldout.documents_len();
            let bench = Bench { choice: self.choice, work, train: &train, heldout_len, test: &test, store, stop };
            for cell in cells.iter().filter(|cell| cell.seed == seed) {
                watch.next(label(plan, cell));
                let Some(numbers) = bench.cell(cell, watch)? else { return Ok(()) };
                store.save_cell(&numbers)?;
                let seconds = duration(numbers.training_seconds + numbers.evaluation_seconds);
                let left = watch.left().map_or_else(String::new, |left| format!("; about {left} left"));
                watch.say(&format!(
                    "{}: perplexity {:.1}, {seconds}{left}",
                    label(plan, cell),
                    numbers.heldout_perplexity
                ));
                found.cells.push(numbers);
            }
            for (c, cell) in curves.iter().enumerate().filter(|(_, cell)| cell.seed == seed) {
                let steps: Vec<u32> = points.iter().filter(|point| point.0 == c).map(|point| point.1).collect();
                if steps.is_empty() {
                    continue;
                }
                let trained = store.model(cell)?;
                for steps in steps {
                    watch.next(format!("curve of {}: {steps} steps", cell.describe()));
                    let Some(point) = bench.point(cell, &trained, steps, watch)? else { return Ok(()) };
                    store.save_point(&point)?;
                    found.points.push(point);
                }
            }
        }
        Ok(())
    }

    fn report(&self, corpus: &Corpus, facts: &Table, store: &Store, found: &Found) -> Result<(), CliError> {
        let place = |n: &Numbers| self.plan.cells().iter().position(|cell| *cell == n.cell);
        let mut cells = found.cells.clone();
        cells.sort_by_key(place);
        let mut points = found.points.clone();
        points.sort_by_key(|p| (self.plan.curves().iter().position(|cell| *cell == p.cell), p.steps));
        let report = Report {
            name: &self.name,
            command: &self.command,
            corpus,
            plan: &self.plan,
            choice: &self.choice,
            facts,
            cells: &cells,
            points: &points,
        };
        let printed = self.print(&report, store);
        curve::draw(&self.plan, &points, store.path())?;
        store.text("cells.csv", &report.csv())?;
        store.text("tables.md", &report.markdown(!points.is_empty()))?;
        printed
    }

    fn print(&self, report: &Report, store: &Store) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &report.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", report.text())?;
            writeln!(out, "\nTables and cells: {}", store.path().display())?;
        }
        Ok(out.flush()?)
    }
}
