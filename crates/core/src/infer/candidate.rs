//! Approximations that were fitted, weighed against each other.

use super::approximation::Method;
use super::drawn::draw;
use super::smooth::{Tail, smooth};
use super::way::moments;
use super::whitened::Whitened;
use crate::error::Result;
use crate::fit::Fitted;
use crate::model::Model;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use serde::{Deserialize, Serialize};

/// Draws that an approximation is weighed by.
const WEIGHED: usize = 4000;

/// An approximation that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// Which.
    pub method: Method,
    /// Its bound.
    pub elbo: f64,
    /// The shape of its weights' tail.
    pub khat: f64,
    /// Steps that its fit took.
    pub steps: u64,
}

/// Fits of the same approximation from several starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restarts {
    /// The bound of each, the one that was kept first.
    pub elbo: Vec<f64>,
    /// R̂ over those whose bounds are within the accuracy of the best: how far the means of a latent are apart, against its spread.
    /// That of the latent with the largest, and nothing where no other came close.
    pub rhat: Option<f64>,
    /// That latent.
    pub latent: String,
}

/// A fitted approximation.
pub(super) struct Candidate<'a> {
    pub(super) near: Whitened<'a, dyn Model + 'a>,
    pub(super) q: Variational,
    pub(super) fitted: Fitted,
    pub(super) has_settled: Option<bool>,
    pub(super) method: Method,
}

/// What its draws weigh.
pub(super) struct Weighed {
    pub(super) u: Batch,
    pub(super) tail: Tail,
    pub(super) elbo: f64,
    log_evidence: f64,
}

impl Weighed {
    /// What a better approximation could gain, at most; nothing that is known where the weights cannot tell.
    pub(super) fn headroom(&self) -> f64 {
        if self.tail.is_good() { self.log_evidence - self.elbo } else { f64::INFINITY }
    }
}

impl Candidate<'_> {
    pub(super) fn weighed(&self, seed: u64) -> Result<Weighed> {
        weigh(&self.near, &self.q, &self.fitted, seed)
    }

    pub(super) fn rung(&self, weighed: &Weighed) -> Rung {
        Rung { method: self.method, elbo: weighed.elbo, khat: weighed.tail.khat, steps: self.fitted.steps }
    }
}

/// Weighs draws of a fitted approximation.
pub(super) fn weigh(model: &dyn Model, q: &Variational, fitted: &Fitted, seed: u64) -> Result<Weighed> {
    let (u, mut log_weights) = draw(model, q, fitted, WEIGHED, seed)?;
    let finite: Vec<f64> = log_weights.iter().copied().filter(|w| w.is_finite()).collect();
    let top = finite.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let mean = finite.iter().map(|w| (w - top).exp()).sum::<f64>() / log_weights.len() as f64;
    let elbo = if finite.is_empty() { f64::NEG_INFINITY } else { moments(&finite).0 };
    Ok(Weighed { u, tail: smooth(&mut log_weights), elbo, log_evidence: top + mean.ln() })
}

/// R̂ of the latent for which it is largest, over draws of several approximations, and that latent.
pub(super) fn rhat(draws: &[Batch]) -> (f64, usize) {
    let of = |i: usize| {
        let (means, variances): (Vec<f64>, Vec<f64>) = draws.iter().map(|u| moments(u.column(i))).unzip();
        let (between, within) = (moments(&means).1, moments(&variances).0);
        if between == 0.0 { 1.0 } else { (1.0 + between / within).sqrt() }
    };
    let columns_len = draws.first().map_or(0, Batch::columns_len);
    (0..columns_len).map(|i| (of(i), i)).fold((1.0, 0), |worst, one| if one.0 > worst.0 { one } else { worst })
}
