//! Posteriors whose modes chains do not move between: tempered sequential Monte Carlo, if nothing before is trusted.

use super::budget::Work;
use super::result::{DIVERGENT_MAX, Inferred, MoveSummary, NutsSummary, RHAT_MAX, SmcSummary};
use super::stages::deciles::have_same_deciles;
use super::stages::missed_modes::missed_mode;
use super::stages::missed_tail::missed_tail;
use super::stages::overdispersed::Delivered;
use super::stages::pathfinder::Mode;
use super::stages::resample::of_components;
use super::stages::smc::{Bridged, FULL_MAX, SmcPlan, TemperedRun, tempered_smc};
use super::stages::superchains::SuperchainRun;
use super::stages::whitened::WhitenedModel;
use crate::diagnostics::Verdict;
use crate::error::Result;
use crate::model::Model;
use crate::objective::Bounds;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;

/// The most work, in additions.
const WORK_MAX: f64 = 8e10;
/// The largest standard error of the log evidence, and how many standard errors it may be below the ELBO.
const EVIDENCE_ERROR_MAX: f64 = 0.3;
const BEYOND: f64 = 4.0;
/// The draws that say where a component of the approximation is.
const OF_COMPONENT: usize = 64;

/// Whether particles may know better. Where trajectories diverge, theirs would too; and where chains of many latents, whose covariance
/// particles do not know, agree but have not run long enough, particles would not do so sooner.
fn is_needed(inferred: &Inferred, run: &SuperchainRun, work: &Work) -> bool {
    let has_many = inferred.z.columns_len() > FULL_MAX;
    let is_slow = |nuts: &NutsSummary| has_many && nuts.rhat <= RHAT_MAX && nuts.agrees && !nuts.has_converged();
    let may_help = |nuts: &NutsSummary| nuts.divergent <= DIVERGENT_MAX && !nuts.stopped && !is_slow(nuts);
    work.settings.is_free()
        && inferred.nuts.as_ref().is_none_or(may_help)
        && inferred.improper.is_empty()
        && !inferred.is_stopped
        && !run.found.stopped
        && inferred.verdict() != Verdict::Trust
}

/// Replaces draws that are not trusted with the particles of tempered sequential Monte Carlo, if islands of particles agree, and agree
/// with long chains that have nearly mixed.
pub(super) fn with_tempering(
    inferred: Inferred,
    (whitened, q): (&WhitenedModel<dyn Model + '_>, &Variational),
    (run, delivered): (&SuperchainRun, &Delivered),
    (known, chains): (&[Mode], Option<&Batch>),
    work: &mut Work,
) -> Result<Inferred> {
    if !is_needed(&inferred, run, work) || work.is_over()? {
        return Ok(inferred);
    }
    work.session.enter("tempered sequential Monte Carlo");
    let (draws, seed) = (work.settings.draws, work.settings.seed);
    let mut places = run.places();
    if q.prior().components_len() > 1 {
        places.extend(of_components(q, &inferred.fitted, OF_COMPONENT, seed));
    }
    let own = whitened.whiten(&inferred.z);
    let plan = SmcPlan { u: &own, places: &places, draws, work_max: WORK_MAX, seed };
    let Bridged { u, log_evidence, summary } = match tempered_smc(whitened, plan, &mut work.session)? {
        TemperedRun::Bridged(bridged) => bridged,
        TemperedRun::GivenUp => return Ok(inferred),
        TemperedRun::Stopped => {
            let moved = inferred.moved.map(|moved| MoveSummary { stopped: true, ..moved });
            return Ok(Inferred { moved, ..inferred });
        }
    };
    let z = whitened.restored(&u);
    let have_nearly_mixed = inferred.nuts.as_ref().is_some_and(|nuts| nuts.rhat <= RHAT_MAX);
    let are_contradicted = chains.is_some_and(|chains| have_nearly_mixed && !have_same_deciles(chains, &z));
    // The ELBO is a lower bound on the log evidence: particles below it miss mass.
    let Bounds { elbo, dropped, .. } = &inferred.bounds;
    let least = elbo.value - BEYOND * (elbo.standard_error.powi(2) + log_evidence.standard_error.powi(2)).sqrt();
    let is_too_low = *dropped == 0 && log_evidence.value < least;
    let is_uncertain = !(log_evidence.standard_error <= EVIDENCE_ERROR_MAX);
    if !summary.is_useful() || are_contradicted || is_too_low || is_uncertain {
        return Ok(Inferred { smc: Some(summary), ..inferred });
    }
    let delivered = Delivered { u: &u, log_evidence: log_evidence.value, ..*delivered };
    let superchains = run.compare(whitened, &delivered, seed)?;
    let missed_mode = missed_mode(&z, log_evidence.value, known);
    let missed_tail = missed_tail(whitened.model(), &z, log_evidence.value, seed)?;
    let mut bounds = inferred.bounds.clone();
    bounds.log_evidence = log_evidence;
    let smc = Some(SmcSummary { is_used: true, ..summary.clone() });
    let found = Inferred {
        z,
        bounds,
        missed_mode,
        missed_tail,
        superchains: Some(superchains),
        smc,
        moved: None,
        drifting: None,
        bridge: None,
        nuts: inferred.nuts.clone().map(|nuts| NutsSummary { is_used: false, ..nuts }),
        ..inferred.clone()
    };
    // Particles that are trusted no more are no better.
    Ok(if found.verdict() < inferred.verdict() { found } else { Inferred { smc: Some(summary), ..inferred } })
}
