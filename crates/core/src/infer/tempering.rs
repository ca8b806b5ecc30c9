//! Posteriors whose modes chains do not move between: tempered sequential Monte Carlo, if nothing before is trusted.

use super::budget::Work;
use super::integrated::is_default;
use super::result::{DIVERGENT_MAX, Inferred, SmcSummary};
use super::stages::missed_modes::missed_mode;
use super::stages::missed_tail::missed_tail;
use super::stages::overdispersed::Delivered;
use super::stages::pathfinder::Mode;
use super::stages::resample::of_components;
use super::stages::smc::{Bridged, SmcPlan, tempered_smc};
use super::stages::superchains::SuperchainRun;
use super::stages::whitened::WhitenedModel;
use crate::diagnostics::Verdict;
use crate::error::Result;
use crate::model::Model;
use crate::variational::Variational;

/// The most work, in additions.
const WORK_MAX: f64 = 1e11;
/// The draws that say where a component of the approximation is.
const OF_COMPONENT: usize = 64;

/// Whether particles may know better. Where trajectories diverge, theirs would too.
fn is_needed(inferred: &Inferred, run: &SuperchainRun, work: &Work) -> bool {
    let may_help = inferred.nuts.as_ref().is_none_or(|nuts| nuts.divergent <= DIVERGENT_MAX && !nuts.stopped);
    is_default(work.settings)
        && may_help
        && inferred.improper.is_empty()
        && !inferred.is_stopped
        && !run.found.stopped
        && inferred.verdict() != Verdict::Trust
}

/// Replaces draws that are not trusted with the particles of tempered sequential Monte Carlo, if islands of particles agree.
pub(super) fn with_tempering(
    inferred: Inferred,
    (whitened, q): (&WhitenedModel<dyn Model + '_>, &Variational),
    (run, delivered): (&SuperchainRun, &Delivered),
    known: &[Mode],
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
    let plan = SmcPlan { u: delivered.u, places: &places, draws, work_max: WORK_MAX, seed };
    let Some(Bridged { u, log_evidence, summary }) = tempered_smc(whitened, plan, &mut work.session)? else {
        return Ok(inferred);
    };
    if !summary.is_useful() {
        return Ok(Inferred { smc: Some(summary), ..inferred });
    }
    let z = whitened.restored(&u);
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
        ..inferred.clone()
    };
    // Particles that are distrusted too are no better.
    Ok(if found.verdict() == Verdict::Distrust { Inferred { smc: Some(summary), ..inferred } } else { found })
}
