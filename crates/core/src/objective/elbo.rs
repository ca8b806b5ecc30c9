//! Monte Carlo estimates of all bounds from the same draws.

use super::importance::pair;
use super::integrand::Pass;
use super::strata::{Estimate, Strata};
use crate::error::{Error, Result};
use crate::model::{CommonFault, Fault, Model, describe};
use crate::variational::Variational;
use hyperprior_math::random::{Purpose, Stream, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How bounds are estimated. See [`evaluate`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BoundSettings {
    /// Draws of (z, λ) per component of the prior.
    pub draws: usize,
    /// J, the draws of λ ~ r per draw of z that tighten the importance-weighted bounds; with 0 there is no upper bound.
    pub samples: usize,
    /// The seed.
    pub seed: u64,
}

crate::setters!(BoundSettings {
    draws: usize, samples: usize, seed: u64;
});

impl Default for BoundSettings {
    fn default() -> Self {
        Self { draws: 4096, samples: 16, seed: 0 }
    }
}

/// The bounds of a fitted q. See [`evaluate`].
///
/// If some draws are invalid, because their integrand is not finite, the ELBO of q itself is −∞ or undefined. The bounds are then those
/// of q restricted to A, the other draws: E\[integrand | A\] + ln q(A), where q(A) is estimated by their share. It is a lower bound on
/// log p(x) for any A, and the standard errors include that of the share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bounds {
    /// The hierarchical ELBO.
    pub elbo: Estimate,
    /// The conditional-entropy bound.
    pub conditional_entropy: Estimate,
    /// The importance-weighted lower bound with the settings' J.
    pub importance_lower: Estimate,
    /// The importance-weighted upper bound on the exact ELBO of q(z), or of its restriction, if J ≥ 1.
    pub upper: Option<Estimate>,
    /// The log of the evidence estimate p(x) = E[p(x, z)/q̂(z)], q̂(z) from the settings' J, with the standard error of the log. With J = 0
    /// it is E[e^integrand]. Invalid draws count as zeros.
    pub log_evidence: Estimate,
    /// The number of draws.
    pub drawn: usize,
    /// The number of invalid draws, whose integrand was not finite. If there are any, q puts mass where the model is impossible, and
    /// the bounds are those of q restricted to the rest.
    pub dropped: usize,
    /// The most common cause of invalid draws, if the model knows its factors.
    #[serde(default)]
    pub fault: Option<CommonFault>,
}

/// Draws per block.
const BLOCK: usize = 128;
/// The maximum number of invalid draws that are examined for their cause, in total and per block.
const FAULTS: usize = 100;
const FAULTS_OF_BLOCK: usize = 8;

/// The contributions of one draw.
#[derive(Clone, Copy, Debug)]
struct Contribution {
    elbo: f64,
    conditional_entropy: f64,
    lower: f64,
    upper: f64,
}

/// Estimates all bounds from the same draws, in parallel; the numbers do not depend on the number of threads.
///
/// ```
/// use hyperprior::objective::{BoundSettings, evaluate};
/// use hyperprior::targets::Ising;
/// use hyperprior::{Model, Variational, likelihood::MeanField};
/// let model = Ising::ring(4, 0.5)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let bounds = evaluate(&model, &q, (&[0.0; 4], &[]), &BoundSettings::default())?;
/// assert!(bounds.elbo.value < bounds.log_evidence.value);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// Errors of the model, [`Error::BadSetting`] for no draws, and [`Error::NotFinite`] if all draws are invalid.
pub fn evaluate(
    model: &dyn Model,
    q: &Variational,
    (theta, phi): (&[f64], &[f64]),
    settings: &BoundSettings,
) -> Result<Bounds> {
    q.check(model)?;
    q.check_parameters(theta, phi)?;
    if settings.draws == 0 {
        let reason = "at least one draw is needed";
        return Err(Error::BadSetting { field: "draws", value: "0".to_owned(), reason });
    }
    let components_len = q.prior().components_len();
    let blocks: Vec<(usize, usize)> =
        (0..components_len).flat_map(|k| (0..settings.draws).step_by(BLOCK).map(move |first| (k, first))).collect();
    let run = |&(k, first): &(usize, usize)| {
        let len = BLOCK.min(settings.draws - first);
        let mut streams: Vec<Stream> =
            (0..len).map(|s| stream(settings.seed, Purpose::Bounds.step(), k as u64, (first + s) as u64)).collect();
        block(model, q, (theta, phi), k, &mut streams, settings.samples).map(|b| (k, b))
    };
    let results: Vec<(usize, BlockResult)> = blocks.par_iter().map(run).collect::<Result<_>>()?;
    let drawn = settings.draws * components_len;
    let dropped: usize = results.iter().map(|(_, b)| b.dropped).sum();
    if dropped == drawn {
        let example = results.into_iter().find_map(|(_, b)| b.example).unwrap_or_default();
        return Err(Error::NotFinite { step: 0, dropped, drawn, example });
    }
    let mut log_pi = vec![0.0; components_len];
    q.prior().log_weights(theta, &mut log_pi);
    let strata = |f: &dyn Fn(&BlockResult) -> Vec<f64>| {
        let mut strata = Strata { samples: vec![Vec::new(); components_len], log_pi: &log_pi, draws: settings.draws };
        for (k, block) in &results {
            strata.samples[*k].extend(f(block));
        }
        strata
    };
    let restricted =
        |f: fn(&Contribution) -> f64| strata(&|block| block.contributions.iter().map(f).collect()).restricted_bound();
    Ok(Bounds {
        elbo: restricted(|c| c.elbo),
        conditional_entropy: restricted(|c| c.conditional_entropy),
        importance_lower: restricted(|c| c.lower),
        upper: (settings.samples > 0).then(|| restricted(|c| c.upper)),
        log_evidence: strata(&|block| block.contributions.iter().map(|c| c.lower).collect()).log_evidence(),
        drawn,
        dropped,
        fault: CommonFault::among(results.into_iter().flat_map(|(_, block)| block.faults).take(FAULTS).collect()),
    })
}

struct BlockResult {
    /// Of the valid draws.
    contributions: Vec<Contribution>,
    dropped: usize,
    example: Option<String>,
    faults: Vec<Fault>,
}

fn block(
    model: &dyn Model,
    q: &Variational,
    (theta, phi): (&[f64], &[f64]),
    k: usize,
    streams: &mut [Stream],
    samples: usize,
) -> Result<BlockResult> {
    let mut pass = Pass::default();
    pass.draw(q, theta, k, streams, 1, false);
    pass.forward(model, q, theta, phi)?;
    let own: Vec<f64> = (0..streams.len()).map(|s| pass.log_p[s] - pass.integrand[s]).collect();
    let (lower, upper) = pair(q, (theta, phi), (&pass.draws, pass.prepared()), &own, streams, samples);
    let contributions = Vec::with_capacity(streams.len());
    let mut result = BlockResult { contributions, dropped: 0, example: None, faults: Vec::new() };
    for s in 0..streams.len() {
        let log_p = pass.log_p[s];
        if !pass.integrand[s].is_finite() {
            result.dropped += 1;
            result.example.get_or_insert_with(|| describe(model, &pass.draws.z, s, log_p));
            if result.faults.len() < FAULTS_OF_BLOCK {
                result.faults.extend(model.fault(&pass.draws.z, s));
            }
            continue;
        }
        let log_q: f64 = (0..pass.log_q.columns_len()).map(|i| pass.log_q.get(i, s)).sum();
        result.contributions.push(Contribution {
            elbo: pass.integrand[s],
            conditional_entropy: log_p - log_q,
            lower: log_p - lower[s],
            upper: log_p - upper[s],
        });
    }
    Ok(result)
}
