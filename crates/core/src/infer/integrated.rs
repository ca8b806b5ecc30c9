//! Posteriors with few coupled latents by adaptive quadrature: those that take no time at all always, others if nothing before is trusted.

use super::budget::Work;
use super::result::{ESS_MIN, Inferred, QuadratureSummary};
use super::settings::InferSettings;
use super::stages::adaptive_importance::effective;
use super::stages::division::may_suit;
use super::stages::importance::KeptDraws;
use super::stages::missed_modes::missed_mode;
use super::stages::missed_tail::missed_tail;
use super::stages::nested_laplace::Nested;
use super::stages::pathfinder::Mode;
use super::stages::places::Seen;
use super::stages::quadrature::Quadrature;
use super::stages::quadrature_draws::Drawn;
use super::stages::resample::OVERSAMPLED;
use super::stages::whitened::WhitenedModel;
use crate::error::Result;
use crate::model::Model;
use crate::objective::Estimate;
use hyperprior_math::batch::Batch;

/// The work, in additions, that counts as no time at all, and the most work.
pub(super) const LITTLE: f64 = 6e8;
pub(super) const MUCH: f64 = 1.2e10;
/// The least share of the draws that is effective if all latents were integrated out on lines, or are Gaussian given those that were: their
/// weights are nearly equal.
const EVEN_MIN: [f64; 2] = [0.8, 0.98];
/// The least share otherwise.
const SHARE_MIN: f64 = 0.3;

/// How often quadrature is tried, with nodes where the posterior was not covered.
const ATTEMPTS: usize = 3;

/// Draws by quadrature.
pub(super) struct Integrated {
    z: Batch,
    log_evidence: Estimate,
    summary: QuadratureSummary,
}

/// Draws by quadrature if that takes no more than this work and is accurate. The draws and the ends of chains say where
/// the posterior is; it may also be at the modes and at the ends of the search.
pub(super) fn integrated(
    whitened: &WhitenedModel<dyn Model + '_>,
    (u, chains): (&Batch, Option<&Batch>),
    (known, ends): (&[Mode], &Batch),
    work_max: f64,
    work: &mut Work,
) -> Result<Option<Integrated>> {
    let settings = work.settings;
    // Before the draws of thousands of latents are restored.
    if !work.may_replace() || !may_suit(whitened.model()) {
        return Ok(None);
    }
    let (z, ends, n) = (whitened.restored(u), whitened.restored(ends), whitened.latents().len());
    let chains = chains.map(|chains| whitened.restored(chains));
    let mut points: Vec<Vec<f64>> = known.iter().map(|mode| mode.z.clone()).collect();
    let mut allows_gaussian = true;
    for _ in 0..ATTEMPTS {
        let mut modes = Batch::zeros(n, points.len());
        for (s, point) in points.iter().enumerate() {
            (0..n).for_each(|i| modes.set(i, s, point[i]));
        }
        let seen = Seen { z: &z, chains: chains.as_ref(), modes: &modes, ends: &ends };
        let Some(quadrature) = Quadrature::new(whitened.model(), seen, allows_gaussian, work_max)? else {
            return Ok(None);
        };
        // Importance sampling may miss a mode, and chains from elsewhere may find it.
        let is_exact = quadrature.is_exact();
        // Where little is integrated out, that of the rest is as hard as that of all, which was not enough.
        let [conditioned, integrated] = quadrature.size();
        if !is_exact && (chains.is_none() || integrated < conditioned) {
            return Ok(None);
        }
        work.session.enter("quadrature");
        // Weights that are nearly equal leave nearly all draws.
        let len = if is_exact { settings.draws } else { OVERSAMPLED * settings.draws };
        match quadrature.draws(len, settings.seed)? {
            Drawn::Draws(nested) => match accurate(&nested, &quadrature, settings) {
                None if quadrature.is_gaussian() => {}
                found => return Ok(found),
            },
            // Nodes at these points show what was missed.
            Drawn::Missed(missed) => points.extend(missed),
            Drawn::Failed if quadrature.is_gaussian() => {}
            Drawn::Failed => return Ok(None),
        }
        // Lines may show what a Gaussian cannot.
        allows_gaussian &= !quadrature.is_gaussian();
    }
    Ok(None)
}

/// The draws if they are accurate.
fn accurate(nested: &Nested, quadrature: &Quadrature, settings: &InferSettings) -> Option<Integrated> {
    let ([conditioned, integrated], is_exact) = (quadrature.size(), quadrature.is_exact());
    let is_gaussian = quadrature.is_gaussian();
    let KeptDraws { z, log_evidence, of_theta, .. } = KeptDraws::of(nested, settings);
    let share = effective(&nested.log_weights) / nested.log_weights.len() as f64;
    // Given θ the weights of the other latents are nearly equal, so that those of θ count.
    let is_accurate = if is_exact {
        share > EVEN_MIN[usize::from(is_gaussian)]
    } else {
        of_theta.is_good() && share > SHARE_MIN && of_theta.ess > ESS_MIN
    };
    let ess = if is_exact { share * z.draws_len() as f64 } else { of_theta.ess };
    let summary = QuadratureSummary { integrated, conditioned, is_gaussian, is_exact, khat: of_theta.khat, ess };
    is_accurate.then_some(Integrated { z, log_evidence, summary })
}

/// Replaces the draws with those by quadrature.
pub(super) fn with_quadrature(
    inferred: Inferred,
    whitened: &WhitenedModel<dyn Model + '_>,
    found: Integrated,
    known: &[Mode],
    seed: u64,
) -> Result<Inferred> {
    let Integrated { z, log_evidence, summary } = found;
    let mut bounds = inferred.bounds;
    bounds.log_evidence = log_evidence;
    let missed_mode = missed_mode(&z, log_evidence.value, known);
    let log_evidence = log_evidence.value;
    // Lines end where there is nothing any more.
    let missed_tail = if summary.is_exact { None } else { missed_tail(whitened.model(), &z, log_evidence, seed)? };
    Ok(Inferred {
        z,
        bounds,
        missed_mode,
        quadrature: Some(summary),
        // The draws depend neither on the fit nor on chains.
        has_converged: Some(true),
        moved: None,
        drifting: None,
        superchains: None,
        missed_tail,
        nuts: None,
        smc: None,
        bridge: None,
        ..inferred
    })
}
