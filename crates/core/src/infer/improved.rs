//! What replaces draws that are not good enough.

use super::budget::Work;
use super::integrated::{MUCH, integrated, with_quadrature};
use super::long_chains::{needs_chains, with_chains};
use super::method::Method;
use super::result::Inferred;
use super::stages::overdispersed::Delivered;
use super::stages::pathfinder::Mode;
use super::stages::superchains::SuperchainRun;
use super::stages::whitened::WhitenedModel;
use super::tempering::with_tempering;
use crate::diagnostics::Verdict;
use crate::error::Result;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;

/// Replaces draws that are not good enough: by quadrature, by long chains, or by tempered sequential Monte Carlo. Chains that draw
/// discrete latents one by one seldom leave a mode, so that particles come first.
pub(super) fn improved(
    inferred: Inferred,
    (whitened, q, log_weights): (&WhitenedModel<dyn Model + '_>, &Variational, &[f64]),
    (run, delivered): (Option<&SuperchainRun>, &Delivered),
    known: &[Mode],
    work: &mut Work,
) -> Result<Inferred> {
    let is_asked = work.settings.method == Method::Nuts;
    let needs_chains = |inferred: &Inferred, settings| run.is_some() && needs_chains(inferred, whitened, settings);
    if needs_chains(&inferred, work.settings) && !work.is_over()? {
        let chains = run.map(|run| run.one_of_each(delivered.u));
        if let Some(found) = integrated(whitened, (delivered.u, chains.as_ref()), (known, delivered.ends), MUCH, work)?
        {
            return with_quadrature(inferred, whitened, found, known, work.settings.seed);
        }
    }
    let has_discrete = whitened.continuous().len() < whitened.latents().len();
    let tempered = |inferred: Inferred, chains: Option<&Batch>, work: &mut Work| match run {
        Some(run) => with_tempering(inferred, (whitened, q), (run, delivered), (known, chains), work),
        None => Ok(inferred),
    };
    let inferred = if has_discrete { tempered(inferred, None, work)? } else { inferred };
    let is_stopped = inferred.moved.is_some_and(|moved| moved.stopped);
    let is_settled = inferred.particles().is_some() && inferred.verdict() == Verdict::Trust;
    let is_wanted = is_asked || !is_settled && needs_chains(&inferred, work.settings);
    if is_stopped || !is_wanted || work.is_over()? {
        return Ok(inferred);
    }
    let (inferred, chains) = with_chains(inferred, (whitened, q, log_weights), (run, delivered), known, work)?;
    if has_discrete { Ok(inferred) } else { tempered(inferred, chains.as_ref(), work) }
}
