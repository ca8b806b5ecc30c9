//! Simulation-based calibration of a model file: data are simulated from the model, fitted, and the truths ranked among the draws.

mod report;
mod round;

pub use report::Calibrated;

use crate::error::CliError;
use crate::progress::{Counter, StopFlag};
use hyperprior::infer::InferSettings;
use hyperprior::model::graph::Eliminate;
use hyperprior::posterior::Monitor;
use hyperprior::posterior::calibration::assess;
use hyperprior_bugs::simulate::Simulated;
use hyperprior_bugs::{Data, Options};
use rayon::prelude::*;
use report::Verdicts;
use round::{Round, round};

/// The probability that anything is called wrong where everything is right.
pub const LEVEL: f64 = 0.01;
/// Draws of a fit for each one that is ranked: neighbours may depend on each other.
const THINNED: usize = 10;

/// Rounds that each core is handed at a time.
const AT_ONCE: usize = 4;

/// What is calibrated, and how.
pub struct Calibration<'a> {
    /// The model's name.
    pub name: String,
    /// The program.
    pub source: &'a str,
    /// How to compile it.
    pub options: &'a Options,
    /// What is summed out.
    pub eliminate: Eliminate,
    /// Calculated quantities that are ranked beside the latents.
    pub monitors: Vec<Monitor>,
    /// How each fit goes; its seed is that of the whole.
    pub settings: InferSettings,
    /// Draws that a truth is ranked among.
    pub draws: usize,
    /// Rounds.
    pub rounds: usize,
}

impl Calibration<'_> {
    /// Runs all rounds, several at a time: small fits leave cores idle where they come one after the other. Every round has
    /// random streams of its own, so that the numbers do not depend on how many there are.
    ///
    /// A signal ends it with the rounds before the first that is not done: those that happen to be done sooner are not a fair
    /// choice of all.
    pub fn run(&self, simulated: &Simulated, stop: &StopFlag, quiet: bool) -> Result<Calibrated, CliError> {
        let counter = Counter::new("calibrate", simulated.len(), quiet);
        let one = |k: usize| {
            let round = if stop.is_raised() { Round::Stopped } else { round(self, simulated, k, stop) };
            counter.advance();
            round
        };
        // In order, a few for each core at a time, so that little is lost where it is stopped.
        let at_once = AT_ONCE * rayon::current_num_threads();
        let mut all: Vec<Round> = Vec::with_capacity(simulated.len());
        for first in (0..simulated.len()).step_by(at_once) {
            all.par_extend((first..simulated.len().min(first + at_once)).into_par_iter().map(one));
        }
        counter.finish();
        let done: Vec<Round> = all.into_iter().take_while(|round| !matches!(round, Round::Stopped)).collect();
        let done_len = done.len();
        let mut verdicts = Verdicts::default();
        let (mut failed, mut unsimulated, mut failure) = (0, 0, None);
        let mut ranks: Vec<(String, Vec<usize>)> = Vec::new();
        let mut fitted = 0;
        for round in done {
            match round {
                Round::Ranked { ranks: own, verdict } => {
                    verdicts.count(verdict);
                    fitted += 1;
                    collect(&mut ranks, own);
                }
                Round::Failed(error) => {
                    failed += 1;
                    failure.get_or_insert(error);
                }
                Round::Unsimulated => unsimulated += 1,
                Round::Usage(error) => return Err(error),
                Round::Stopped => {}
            }
        }
        // A quantity that some rounds have no value of cannot be judged by the others.
        let (whole, partial): (Vec<_>, Vec<_>) = ranks.into_iter().partition(|(_, ranks)| ranks.len() == fitted);
        Ok(Calibrated {
            model: self.name.clone(),
            seed: self.settings.seed,
            method: self.settings.method.to_string(),
            rounds: self.rounds,
            done: done_len,
            fitted,
            failed,
            failure,
            unsimulated,
            draws: self.draws,
            level: LEVEL,
            verdicts,
            left_out: partial.into_iter().map(|(name, _)| name).collect(),
            quantities: assess(whole, self.draws, LEVEL),
        })
    }

    /// The settings of the fit of a round.
    fn settings(&self, seed: u64) -> InferSettings {
        InferSettings { seed, draws: self.draws * THINNED, ..self.settings.clone() }
    }

    /// Simulates all rounds.
    pub fn simulate(&self, data: &Data) -> Result<Simulated, hyperprior_bugs::simulate::SimulateError> {
        Simulated::new(self.source, data, self.options, self.rounds, self.settings.seed)
    }
}

/// Adds the ranks of a round, in the order in which names first came up.
fn collect(all: &mut Vec<(String, Vec<usize>)>, own: Vec<(String, usize)>) {
    for (at, (name, rank)) in own.into_iter().enumerate() {
        // Rounds have the same names in the same order, but for those without a value.
        let place = match all.get(at) {
            Some((known, _)) if *known == name => Some(at),
            _ => all.iter().position(|(known, _)| *known == name),
        };
        match place {
            Some(place) => all[place].1.push(rank),
            None => all.push((name, vec![rank])),
        }
    }
}
