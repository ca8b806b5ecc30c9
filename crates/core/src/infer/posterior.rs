//! Draws of a posterior, and their source.

use super::result::Inferred;
use super::stages::integration_summary::Integrated;
use crate::posterior::{Draws, Summary, summarise};
use hyperprior_math::batch::Batch;

/// Where the draws of a [`Posterior`] come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// From the exact posterior: all latents were marginalised, or their states enumerated.
    Exact {
        /// log p(x).
        log_evidence: f64,
        /// The draws of the latents that were not marginalised.
        z: Batch,
    },
    /// From the posterior after exact marginalisation of Gaussian latents.
    Integrated(Box<Integrated>),
    /// From the prior: nothing was observed.
    Prior,
    /// From an approximation, corrected according to the settings.
    Approximate(Box<Inferred>),
}

/// Draws of the quantities of interest, and their source.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::infer::{Posterior, Source};
/// use hyperprior::posterior::{Column, Draws};
/// let draws = Draws::new(vec![Column::continuous("mu")], Batch::from_columns(vec![0.5, 1.5], 2))?;
/// let posterior = Posterior { draws, source: Source::Exact { log_evidence: -3.0, z: Batch::zeros(0, 2) } };
/// assert_eq!(posterior.summaries()[0].mean, 1.0);
/// # Ok::<(), hyperprior::posterior::DrawsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Posterior {
    /// The draws.
    pub draws: Draws,
    /// Their source.
    pub source: Source,
}

impl Posterior {
    /// The draws of the model's unconstrained latents; without columns if all were marginalised or nothing is observed.
    pub fn latents(&self) -> Batch {
        match &self.source {
            Source::Approximate(inferred) => inferred.z.clone(),
            Source::Exact { z, .. } => z.clone(),
            Source::Integrated(found) => found.z.clone(),
            Source::Prior => Batch::zeros(0, self.draws.len()),
        }
    }

    /// The effective sample size of draws that have or had importance weights.
    pub fn effective_sample_size(&self) -> Option<f64> {
        match &self.source {
            Source::Approximate(inferred) => Some(inferred.effective_sample_size()),
            Source::Integrated(found) => Some(found.summary.ess),
            Source::Exact { .. } | Source::Prior => None,
        }
    }

    /// The summary of each quantity.
    ///
    /// If the MCMC moves have not made up for the importance weights of an approximation, the effective sample size is smaller than
    /// the number of draws, and the standard errors of the means are larger accordingly.
    pub fn summaries(&self) -> Vec<Summary> {
        let mut summaries = summarise(&self.draws);
        if let Some(ess) = self.effective_sample_size() {
            for summary in &mut summaries {
                summary.ess = summary.ess.min(ess);
                summary.mcse = summary.sd / summary.ess.sqrt();
            }
        }
        summaries
    }
}
