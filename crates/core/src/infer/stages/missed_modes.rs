//! The missed-mode check: whether the draws cover the modes that the search found.

use super::missing_mass::{FEW, THERE, matters, share};
use super::pathfinder::{Mode, distance};
use crate::diagnostics::convergence::moments;
use crate::infer::result::MissedMode;
use hyperprior_math::batch::Batch;

/// The largest mode that draws `z` missed. The bound of a mode's Gaussian is a lower bound on its share of the evidence, and at
/// least that share of the draws should lie there.
pub(in crate::infer) fn missed_mode(z: &Batch, log_evidence: f64, modes: &[Mode]) -> Option<MissedMode> {
    let top = log_evidence.max(modes.iter().map(|p| p.elbo).fold(f64::NEG_INFINITY, f64::max));
    let all: Vec<usize> = (0..z.columns_len()).collect();
    let len = z.draws_len();
    let mut point = vec![0.0; all.len()];
    let spreads: Vec<(f64, f64)> = all.iter().map(|i| moments(z.column(*i))).collect();
    let far = |mode: &Mode| {
        let each =
            mode.z.iter().zip(&spreads).map(|(x, (mean, variance))| (x - mean).abs() / variance.sqrt().max(1e-9));
        each.fold(0.0, f64::max)
    };
    let mut missed: Option<MissedMode> = None;
    for mode in modes {
        let of_top = (mode.elbo - top).exp();
        if !matters(of_top, far(mode)) {
            continue;
        }
        let mut there = 0;
        for s in 0..len {
            point.iter_mut().enumerate().for_each(|(i, x)| *x = z.get(i, s));
            there += usize::from(distance(mode, &point, &all) <= THERE);
        }
        let drawn = there as f64 / len as f64;
        // Without draws there, the estimated evidence is that of the rest.
        let share = if drawn < FEW * of_top { share(mode.elbo, top) } else { of_top };
        let is_worse = missed.as_ref().is_none_or(|worst| share - drawn > worst.share - worst.drawn);
        if drawn < FEW * share && is_worse {
            missed = Some(MissedMode { share, drawn, z: mode.z.clone() });
        }
    }
    missed
}
