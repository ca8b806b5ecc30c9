//! Long chains of the No-U-Turn sampler: the last resort of `auto`, and a method of its own.

use super::budget::Work;
use super::method::Method;
use super::result::{ESS_MIN, Inferred, NutsSummary, SmcSummary};
use super::settings::InferSettings;
use super::stages::bridge::bridge;
use super::stages::deciles::have_same_deciles;
use super::stages::missed_modes::missed_mode;
use super::stages::missed_tail::missed_tail;
use super::stages::nuts_chains::{NutsLimits, nuts_chains};
use super::stages::overdispersed::{Delivered, overdispersed};
use super::stages::pathfinder::Mode;
use super::stages::smc::FULL_MAX;
use super::stages::superchains::SuperchainRun;
use super::stages::whitened::WhitenedModel;
use crate::diagnostics::Verdict;
use crate::error::Result;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;

/// The most gradients of the No-U-Turn sampler, and the most work of chains that nobody asked for.
const GRADIENTS_MAX: usize = 6_000_000;
const NUTS_WORK: f64 = 2.4e10;
/// How many times more gradients chains that have nearly mixed may take, if there are so many latents that particles would not do better.
const LONGER: usize = 4;
/// The share of divergent transitions above which chains begin again with shorter steps: where they are the last judge of a verdict, even
/// few may hide a tail.
const DIVERGENT: f64 = 0.0002;
const DIVERGENT_ASKED: f64 = 0.005;
/// An evidence with a larger standard error rests on few draws.
pub(super) const EVIDENCE_ERROR_MAX: f64 = 0.1;

/// Whether the draws need long chains: if they are not trusted as they are, or the approximation is poor.
pub(super) fn needs_chains(
    inferred: &Inferred,
    model: &WhitenedModel<dyn Model + '_>,
    settings: &InferSettings,
) -> bool {
    let is_evidence_good = inferred.bounds.log_evidence.standard_error <= EVIDENCE_ERROR_MAX;
    let is_doubtful = inferred.verdict() != Verdict::Trust || !inferred.psis.is_good() || !is_evidence_good;
    let is_stopped = inferred.is_stopped || inferred.superchains.as_ref().is_none_or(|found| found.stopped);
    settings.is_free()
        && is_doubtful
        && inferred.improper.is_empty()
        && !is_stopped
        && model.gradient().is_some()
        && !model.continuous().is_empty()
}

/// Replaces the draws with those of the No-U-Turn sampler, if its chains agree or were asked for. Returns also the draws of chains that
/// do not.
pub(super) fn with_chains(
    inferred: Inferred,
    (whitened, q, log_weights): (&WhitenedModel<dyn Model + '_>, &Variational, &[f64]),
    (run, delivered): (Option<&SuperchainRun>, &Delivered),
    known: &[Mode],
    work: &mut Work,
) -> Result<(Inferred, Option<Batch>)> {
    work.session.enter("long chains (NUTS)");
    let settings = work.settings;
    let is_asked = settings.method == Method::Nuts;
    // Whoever asks for chains has time for them.
    let work_max = if is_asked { f64::INFINITY } else { NUTS_WORK };
    let gradients = ((work_max / (3.0 * whitened.work() as f64)) as usize).min(GRADIENTS_MAX);
    let most = if whitened.latents().len() > FULL_MAX { LONGER * gradients } else { gradients };
    let divergent = if is_asked { DIVERGENT_ASKED } else { DIVERGENT };
    let limits = NutsLimits { gradients, most, divergent, draws: settings.draws };
    let starts = match run {
        Some(run) => run.one_of_each(delivered.u),
        None => overdispersed(whitened, delivered, settings.seed)?,
    };
    let Some((z, nuts)) = nuts_chains(whitened, &starts, limits, settings.seed, &mut work.session)? else {
        return Ok((inferred, None));
    };
    let nuts = NutsSummary { agrees: have_same_deciles(&inferred.z, &z), ..nuts };
    // Draws that are trusted are many and nearly independent.
    let is_kept = inferred.verdict() == Verdict::Trust && nuts.ess_tail < ESS_MIN;
    let bridge = |u: &Batch, ess: f64| bridge(whitened, (q, &inferred.fitted), log_weights, (u, ess));
    if is_kept && !is_asked || !nuts.has_converged() {
        let bridge = if is_kept { bridge(delivered.u, inferred.effective_sample_size())? } else { None };
        let nuts = Some(NutsSummary { is_used: is_asked, ..nuts });
        return Ok(match is_asked {
            true => (Inferred { z, nuts, bridge, ..inferred }, None),
            false => (Inferred { nuts, bridge, ..inferred }, Some(z)),
        });
    }
    let nuts = NutsSummary { is_used: true, ..nuts };
    let u = whitened.whiten(&z);
    let bridge = bridge(&u, nuts.ess_bulk)?;
    let log_evidence = bridge.unwrap_or(inferred.bounds.log_evidence).value;
    let delivered = Delivered { u: &u, log_evidence, ..*delivered };
    let superchains = run.map(|run| run.compare(whitened, &delivered, settings.seed)).transpose()?;
    let missed_mode = missed_mode(&z, log_evidence, known);
    let missed_tail = missed_tail(whitened.model(), &z, log_evidence, settings.seed)?;
    let smc = inferred.smc.map(|smc| SmcSummary { is_used: false, ..smc });
    let found = Inferred { z, missed_mode, missed_tail, superchains, nuts: Some(nuts), smc, bridge, ..inferred };
    Ok((found, None))
}
