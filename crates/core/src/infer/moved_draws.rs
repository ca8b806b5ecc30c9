//! The MCMC moves of weighted draws, and the check by superchains.

use super::budget::Work;
use super::result::{MoveSummary, ess_min, resampled_ess};
use super::settings::{Correction, DRAWS, InferSettings};
use super::stages::hmc::work_of_move;
use super::stages::importance::{Source, Weighed, learnt_again};
use super::stages::overdispersed::Delivered;
use super::stages::resample_move::{MoveSchedule, mcmc_moves};
use super::stages::superchains::{SuperchainRun, superchains};
use super::stages::whitened::WhitenedModel;
use crate::diagnostics::psis::Psis;
use crate::error::Result;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use std::ops::RangeInclusive;

/// The least and the most work of the MCMC moves: little enough to go unnoticed, and as much as a user will wait for. Each is
/// limited to a range of moves.
const WORK: [f64; 2] = [5e8, 6e9];
const LEAST: RangeInclusive<usize> = 1..=20;
const MOST: RangeInclusive<usize> = 12..=1000;
/// The error of the importance weights that the moves may leave, in standard deviations.
const ERROR: f64 = 0.015;
/// The largest correlation with the start that is accepted, so that copies of the same draw separate; and the limit if the weights
/// are unreliable.
const MEMORY: f64 = 0.3;
const MEMORY_UNRELIABLE: f64 = 0.1;

/// Moves draws and compares them with superchains. Those of a learnt mixture are replaced if the superchains teach it more.
pub(super) fn moved_draws(
    whitened: &WhitenedModel<dyn Model + '_>,
    weighed: &mut Weighed,
    ends: &Batch,
    is_moved: bool,
    work: &mut Work,
) -> Result<(Option<MoveSummary>, Option<SuperchainRun>)> {
    let mut moved = if is_moved { moved(whitened, weighed, work)? } else { None };
    let mut checked = checked(whitened, &weighed.delivered(ends), moved, work)?;
    if let (Some(run), Source::Mixture(_)) = (&mut checked, weighed.source) {
        work.session.enter("importance weights");
        if let Some(again) = learnt_again(whitened, weighed, run, work.settings)? {
            *weighed = again;
            moved = self::moved(whitened, weighed, work)?;
            run.found = run.compare(whitened, &weighed.delivered(ends), work.settings.seed)?;
        }
    }
    Ok((moved, checked))
}

/// Superchains, if the draws were moved.
fn checked(
    whitened: &WhitenedModel<dyn Model + '_>,
    delivered: &Delivered,
    moved: Option<MoveSummary>,
    work: &mut Work,
) -> Result<Option<SuperchainRun>> {
    match moved {
        Some(MoveSummary { moves, stopped: false, .. }) if !work.ledger.is_spent() => {
            work.session.enter("superchains");
            let delivered = Delivered { moves, ..*delivered };
            superchains(whitened, &delivered, work.settings.seed, &mut work.session).map(Some)
        }
        _ => Ok(None),
    }
}

/// Moves the draws, if the settings say so.
fn moved(
    whitened: &WhitenedModel<dyn Model + '_>,
    Weighed { u, psis, source, .. }: &mut Weighed,
    work: &mut Work,
) -> Result<Option<MoveSummary>> {
    if work.settings.correct != Correction::ResampleMove {
        return Ok(None);
    }
    work.session.enter("MCMC moves");
    // Moves of draws that were made for even weights can improve little, if the effective sample size is enough without them.
    let len = u.draws_len();
    let is_enough = *source != Source::Fitted && psis.is_good() && resampled_ess(len, psis.ess, 1.0) >= ess_min(len);
    let schedule = schedule(whitened, work.settings, psis, is_enough || work.ledger.is_spent());
    mcmc_moves(whitened, u, &schedule, (work.settings.seed, 0), &mut work.session).map(Some)
}

/// When the MCMC moves end: once the draws depend little on where they started, within limits set by the cost of the model.
fn schedule(model: &dyn Model, settings: &InferSettings, psis: &Psis, is_least: bool) -> MoveSchedule {
    if let Some(moves) = settings.moves {
        return MoveSchedule::fixed(moves);
    }
    let each = work_of_move(model) * settings.draws.max(DRAWS) as f64;
    let moves = [(WORK[0] / each, LEAST), (WORK[1] / each, MOST)];
    let moves = moves.map(|(x, range)| (x as usize).clamp(*range.start(), *range.end()));
    // An effective sample size W leaves errors of 1/√W standard deviations; the moves reduce them to their share `memory`.
    let moves = if is_least { [moves[0]; 2] } else { moves };
    let memory = if psis.is_good() { (ERROR * psis.ess.sqrt()).min(MEMORY) } else { MEMORY_UNRELIABLE };
    MoveSchedule { moves, memory }
}
