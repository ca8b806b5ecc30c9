//! The report of a prediction, as text and as JSON.

use crate::error::CliError;
use crate::render::terminal;
use hyperprior::objective::Estimate;
use hyperprior::posterior::{Draws, Kind, Parameters, Summary, ranges, summarise};
use hyperprior::report::SCHEMA;
use hyperprior_bugs::predict::Elpd;
use hyperprior_bugs::transfer::Transfer;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A prediction.
pub struct Predicted {
    /// The model's name.
    pub name: String,
    /// The run.
    pub run: PathBuf,
    /// The seed.
    pub seed: u64,
    /// Which latents are reused and which resimulated.
    pub transfer: Transfer,
    /// Draws of the monitored quantities.
    pub draws: Draws,
    /// The compiler's warnings.
    pub warned: Vec<String>,
    /// The log predictive density of the new observations, without those that the run was fitted to.
    pub elpd: Option<Elpd>,
    /// The number of observations that the run was fitted to.
    pub seen: usize,
}

/// `summary.json`.
#[derive(Debug, Serialize)]
pub struct PredictedSummary<'a> {
    schema: u32,
    model: &'a str,
    run: &'a PathBuf,
    seed: u64,
    draws: usize,
    reused: Vec<String>,
    resimulated: Vec<String>,
    elpd: Option<Elpd>,
    seen: usize,
    warnings: Vec<String>,
    parameters: Parameters,
}

impl Predicted {
    /// Summaries of the draws.
    pub fn summaries(&self) -> Vec<Summary> {
        summarise(&self.draws)
    }

    fn warnings(&self) -> Vec<String> {
        let unlike = self.transfer.mismatched.iter().map(|(array, here, there)| {
            format!(
                "`{array}` is resimulated, since it has {here} elements here and {there} in the run; name the elements to reuse \
                 with --reuse"
            )
        });
        unlike.collect()
    }

    /// `summary.json`.
    pub fn summary<'a>(&'a self, summaries: &'a [Summary]) -> PredictedSummary<'a> {
        let short = |names: &[String]| ranges::ranges(names.iter().map(String::as_str));
        PredictedSummary {
            schema: SCHEMA,
            model: &self.name,
            run: &self.run,
            seed: self.seed,
            draws: self.draws.len(),
            reused: short(&self.transfer.reused),
            resimulated: short(&self.transfer.resimulated),
            elpd: self.elpd,
            seen: self.seen,
            warnings: self.warned.iter().cloned().chain(self.warnings()).collect(),
            parameters: Parameters(summaries.to_vec()),
        }
    }

    /// The report as text.
    pub fn text(&self, summaries: &[Summary]) -> Result<String, CliError> {
        let line = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => ranges::line(names.iter().map(String::as_str)),
        };
        let mut out = format!("{}: {} draws of {}\n\n", self.name, self.draws.len(), self.run.display());
        let _ = writeln!(out, "reused:       {}", line(&self.transfer.reused));
        let _ = writeln!(out, "resimulated:  {}", line(&self.transfer.resimulated));
        if let Some(elpd) = self.elpd {
            let shown = terminal::estimate(Estimate { value: elpd.value, standard_error: elpd.standard_error });
            let plural = if elpd.observations == 1 { "" } else { "s" };
            let seen = if self.seen > 0 { "; those that the run was fitted to are excluded" } else { "" };
            let _ = writeln!(out, "elpd:         {shown}, of {} new observation{plural}{seen}", elpd.observations);
        } else if self.seen > 0 {
            let _ = writeln!(out, "elpd:         none, since the run was fitted to all observations");
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            out.push('\n');
        }
        warnings.iter().for_each(|warning| out.push_str(&format!("Warning: {warning}.\n")));
        if summaries.is_empty() {
            return Ok(out);
        }
        let _ = write!(out, "\n{}", terminal::parameters(summaries, terminal::ROWS));
        if self.draws.columns().iter().any(|c| c.kind == Kind::Discrete) {
            let own: Vec<Summary> = summaries.iter().filter(|s| s.kind == Kind::Discrete).cloned().collect();
            let discrete = terminal::discrete(&self.draws, &own, terminal::ROWS)?;
            if !discrete.is_empty() {
                let _ = write!(out, "\n{discrete}");
            }
        }
        Ok(out)
    }
}
