//! Restarts: the same approximation fitted from several starts, and R̂ over the fits.

use super::model_selection::{Candidate, weight};
use super::resample::StageStream;
use crate::diagnostics::convergence::{self, has_converged, moments};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::infer::budget::Work;
use crate::infer::result::Restarts;
use crate::model::Model;
use hyperprior_math::batch::Batch;
use rand::RngExt;

/// How many times an approximation is fitted by default.
const RESTARTS: usize = 2;

/// Fits the same approximation again from other starts. The best is kept.
pub(in crate::infer) fn restart(
    best: &mut Candidate,
    again: impl Fn(&Candidate, u64, &mut Work) -> Result<Fitted>,
    work: &mut Work,
) -> Result<Option<Restarts>> {
    let (seed, accuracy) = (work.settings.seed, work.settings.accuracy);
    let usual = if work.is_heavy(&best.whitened) { 1 } else { RESTARTS };
    let wanted = work.settings.restarts.unwrap_or(usual);
    if wanted < 2 || work.ledger.is_stopped {
        return Ok(None);
    }
    let mut weighted = vec![best.weighted(seed)?];
    for number in 1..wanted {
        if work.is_over()? {
            break;
        }
        let fitted = match again(best, StageStream::RestartSeed.stream(seed, number as u64).random(), work) {
            Ok(fitted) => fitted,
            Err(Error::NotFinite { .. } | Error::GradientNotFinite { .. }) => continue,
            Err(error) => return Err(error),
        };
        if fitted.stopped {
            break;
        }
        let next = weight(&best.whitened, &best.q, &fitted, seed)?;
        if next.elbo > weighted[0].elbo {
            best.has_converged = has_converged(&fitted);
            best.fitted = fitted;
            weighted.insert(0, next);
        } else {
            weighted.push(next);
        }
    }
    if weighted.len() < 2 {
        return Ok(None);
    }
    let elbo: Vec<f64> = weighted.iter().map(|one| one.elbo).collect();
    // A fit that ended much lower says nothing about the posterior.
    let close: Vec<Batch> = weighted.into_iter().filter(|one| one.elbo > elbo[0] - accuracy).map(|one| one.u).collect();
    let (rhat, latent) = rhat(&close);
    let rhat = (close.len() > 1).then_some(rhat);
    Ok(Some(Restarts { elbo, rhat, latent: best.whitened.latents().name(latent) }))
}

/// The largest R̂ of any latent over draws of several approximations, and that latent.
fn rhat(draws: &[Batch]) -> (f64, usize) {
    let of = |i: usize| convergence::rhat(draws.iter().map(|u| moments(u.column(i))));
    let columns_len = draws.first().map_or(0, Batch::columns_len);
    (0..columns_len).map(|i| (of(i), i)).fold((1.0, 0), |worst, one| if one.0 > worst.0 { one } else { worst })
}
