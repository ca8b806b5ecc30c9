//! Simulation-based calibration of a model file: simulate data, fit them, and rank the true values among the draws.

mod calibration;
mod report;
mod round;

pub use calibration::Calibration;
pub use report::Calibrated;

use crate::error::CliError;
use crate::progress::{Counter, StopFlag};
use hyperprior::diagnostics::calibration::assess;
use hyperprior_bugs::Data;
use hyperprior_bugs::simulate::Simulated;
use rayon::prelude::*;
use report::Verdicts;
use round::{Round, round};

/// The familywise error rate: the probability of flagging any quantity if all are calibrated.
pub const LEVEL: f64 = 0.01;

/// Rounds per core in a batch.
const AT_ONCE: usize = 4;

impl Calibration<'_> {
    /// Runs all rounds, several in parallel, since a small fit cannot use all cores. Every round has its own random streams, so the
    /// numbers do not depend on the number of cores.
    ///
    /// After a signal, only the rounds before the first unfinished one count: those that finish sooner are a biased sample.
    pub fn run(&self, simulated: &Simulated, stop: &StopFlag, quiet: bool) -> Result<Calibrated, CliError> {
        let counter = Counter::new("sbc", simulated.len(), quiet);
        let one = |k: usize| {
            let round = if stop.is_raised() { Round::Stopped } else { round(self, simulated, k, stop) };
            counter.advance();
            round
        };
        // In order, a few per core at a time, so that little is lost when stopped.
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
        // A quantity without a value in some rounds cannot be judged by the others.
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
            not_ranked: partial.into_iter().map(|(name, _)| name).collect(),
            quantities: assess(whole, self.draws, LEVEL),
        })
    }

    /// Simulates all rounds.
    pub fn simulate(&self, data: &Data) -> Result<Simulated, hyperprior_bugs::simulate::SimulateError> {
        Simulated::new(self.source, data, self.options, self.rounds, self.settings.seed)
    }
}

/// Adds the ranks of a round, in the order in which names first occur.
fn collect(all: &mut Vec<(String, Vec<usize>)>, own: Vec<(String, usize)>) {
    for (at, (name, rank)) in own.into_iter().enumerate() {
        // Rounds have the same names in the same order, except for those without a value.
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
