//! `hyperprior demo`: a tour of two minutes.

use super::input::{Input, Reading};
use super::reproduce::print_target;
use crate::error::CliError;
use crate::fit;
use crate::progress::StopFlag;
use crate::render::html;
use crate::run_dir::{RunDirectory, SAVE_EVERY};
use crate::studies::reproduce::{self, Target, pictures};
use crate::topics;
use clap::Args;
use hyperprior::infer::InferSettings;
use hyperprior::targets::CountTarget;
use hyperprior_def::{Device, Family, Layer, Settings};
use std::io::Write;
use std::path::PathBuf;

/// Take a tour: fit discrete posteriors, a BUGS model and the topics of a text.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hyperprior demo
  hyperprior demo --out tour --seed 2")]
pub struct Demo {
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Folder for the report, the pictures and the runs
    #[arg(long, default_value = "hyperprior-demo", value_name = "DIR")]
    out: PathBuf,
    /// Show no progress bar
    #[arg(long)]
    quiet: bool,
}

/// The change-point example of the repository.
const MODEL: &str = include_str!("../../../../examples/coal/model.bug");
const DATA: &str = include_str!("../../../../examples/coal/data.json");

impl Demo {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let written = self.spins_and_counts()?;
        self.change_point()?;
        self.topics()?;
        let report = self.report(&written)?;
        say(&format!(
            "\n{}\nRuns: {} and {}\n\nReport: {}",
            pictures::announce(&written),
            self.folder("coal").display(),
            self.folder("topics").display(),
            report.display()
        ))
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    fn report(&self, written: &[PathBuf]) -> Result<PathBuf, CliError> {
        let drawings = written.iter().filter(|path| path.extension().is_some_and(|ending| ending == "svg"));
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|reason| CliError::Read { path: path.clone(), reason })
        };
        let pictures = drawings.map(read).collect::<Result<Vec<_>, _>>()?;
        let html = html::tour(&pictures, &self.folder("coal"), &self.folder("topics"))?;
        Ok(RunDirectory::create(&self.out)?.text("report.html", &html)?)
    }

    fn spins_and_counts(&self) -> Result<Vec<PathBuf>, CliError> {
        let stop = StopFlag::on_signals();
        say(
            "1. Two hidden counts whose posterior has four modes, and eight spins on a ring that tend to agree with their neighbours.\n   \
             Mean-field treats them as independent; the hierarchical model puts a prior on mean-field's parameters and keeps\n   \
             their dependence. Both are compared with the exact posterior.\n",
        )?;
        let mut written = Vec::new();
        for target in [Target::Counts(CountTarget::Figure), Target::Ring(0.5)] {
            let mut rows = Vec::new();
            let result = reproduce::run(target, self.seed, self.quiet, &stop, |outcome| {
                rows.push(outcome.row.clone());
                Ok(())
            });
            print_target(target, &rows)?;
            let (posterior, outcomes) = result?;
            written.extend(pictures::draw(target, &posterior, &outcomes, &self.out)?);
        }
        say(
            "KL is the divergence from the true posterior in nats (0 is perfect). The ELBO is bracketed from both sides, so the\n\
             gap of the bound is known without enumeration.\n",
        )?;
        Ok(written)
    }

    fn change_point(&self) -> Result<(), CliError> {
        say(
            "2. The year in which coal mining became safer, and the rates of disasters before and after: a BUGS model.\n",
        )?;
        let folder = self.folder("coal");
        let run = RunDirectory::create(&folder)?;
        let input = Input {
            model: run.text("model.bug", MODEL)?,
            data: vec![run.text("data.json", DATA)?],
            init: None,
            dialect: Reading::default(),
            eliminate: "auto".to_owned(),
        };
        let config = fit::Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            fingerprint: input.fingerprint()?,
            monitor: String::new(),
            save_every: SAVE_EVERY,
            ppc: true,
            loo: false,
            linear_response: false,
            input,
            infer: InferSettings::default().seed(self.seed),
        };
        fit::Job { config, out: Some(folder), json: false, quiet: self.quiet, strict: false, timings: false }.run(false)
    }

    fn topics(&self) -> Result<(), CliError> {
        say("\n3. The topics of the King James Bible in two layers; each chapter is a document.\n")?;
        let layers = [20, 6].map(|width| Layer { family: Family::default(), width }).to_vec();
        let config = topics::Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            corpus: "bible".into(),
            heldout: 0.1,
            words: 8,
            save_every: SAVE_EVERY,
            device: Device::Cpu,
            read: None,
            train: Settings::default().layers(layers).seed(self.seed),
        };
        topics::Job::of(config, Some(self.folder("topics")), false, self.quiet).run_again(false)
    }
}

fn say(text: &str) -> Result<(), CliError> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}
