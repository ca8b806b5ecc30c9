//! What is told of new data, on paper and as JSON.

use crate::error::CliError;
use crate::names;
use crate::output::summary::SCHEMA;
use crate::render;
use hyperprior::bound::Estimate;
use hyperprior::posterior::{Draws, Kind, Parameters, Summary, summarise};
use hyperprior_bugs::carry::Carry;
use hyperprior_bugs::predict::Elpd;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What there is to tell.
pub struct Predicted {
    /// The model's name.
    pub name: String,
    /// The run.
    pub run: PathBuf,
    /// The seed.
    pub seed: u64,
    /// What became of the latents.
    pub carry: Carry,
    /// Draws of what is shown.
    pub draws: Draws,
    /// What the front end warned of.
    pub warned: Vec<String>,
    /// The log predictive density of the new data's observations, but for those that the run has seen.
    pub elpd: Option<Elpd>,
    /// How many of them it has.
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
    carried: Vec<String>,
    anew: Vec<String>,
    elpd: Option<Elpd>,
    seen: usize,
    warnings: Vec<String>,
    parameters: Parameters<'a>,
}

impl Predicted {
    /// What the draws say.
    pub fn summaries(&self) -> Vec<Summary> {
        summarise(&self.draws)
    }

    fn warnings(&self) -> Vec<String> {
        let unlike = self.carry.unlike.iter().map(|(array, here, there)| {
            format!(
                "`{array}` is drawn from its law, since it has {here} elements here and {there} in the run; --carry names \
                 elements to carry over"
            )
        });
        unlike.collect()
    }

    /// `summary.json`.
    pub fn summary<'a>(&'a self, summaries: &'a [Summary]) -> PredictedSummary<'a> {
        let short = |names: &[String]| names::ranges(names.iter().map(String::as_str));
        PredictedSummary {
            schema: SCHEMA,
            model: &self.name,
            run: &self.run,
            seed: self.seed,
            draws: self.draws.len(),
            carried: short(&self.carry.carried),
            anew: short(&self.carry.anew),
            elpd: self.elpd,
            seen: self.seen,
            warnings: self.warned.iter().cloned().chain(self.warnings()).collect(),
            parameters: Parameters(summaries),
        }
    }

    /// For people.
    pub fn text(&self, summaries: &[Summary]) -> Result<String, CliError> {
        let line = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => names::line(names.iter().map(String::as_str)),
        };
        let mut out = format!("{}: {} draws of {}\n\n", self.name, self.draws.len(), self.run.display());
        let _ = writeln!(out, "carried over: {}", line(&self.carry.carried));
        let _ = writeln!(out, "drawn anew:   {}", line(&self.carry.anew));
        if let Some(elpd) = self.elpd {
            let shown = render::estimate(Estimate { value: elpd.value, standard_error: elpd.standard_error });
            let plural = if elpd.observations == 1 { "" } else { "s" };
            let seen = if self.seen > 0 { "; those that the run has seen are left out" } else { "" };
            let _ = writeln!(out, "elpd:         {shown}, of {} new observation{plural}{seen}", elpd.observations);
        } else if self.seen > 0 {
            let _ = writeln!(out, "elpd:         none, since the run has seen all that is observed here");
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            out.push('\n');
        }
        warnings.iter().for_each(|warning| out.push_str(&format!("Warning: {warning}.\n")));
        if summaries.is_empty() {
            return Ok(out);
        }
        let _ = write!(out, "\n{}", render::parameters(summaries, render::ROWS));
        if self.draws.columns().iter().any(|c| c.kind == Kind::Discrete) {
            let own: Vec<Summary> = summaries.iter().filter(|s| s.kind == Kind::Discrete).cloned().collect();
            let discrete = render::discrete(&self.draws, &own, render::ROWS)?;
            if !discrete.is_empty() {
                let _ = write!(out, "\n{discrete}");
            }
        }
        Ok(out)
    }
}
