//! One Gaussian, refitted until it converges, and where the components of a mixture start.

use super::pathfinder::Mode;
use super::resample::StageStream;
use super::sparse_curvature::SparseCurvature;
use super::variational_newton::variational_newton;
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::diagnostics::convergence::{has_converged, reached};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::infer::budget::{Length, Work};
use crate::infer::settings::Correction;
use crate::model::Model;
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::random::Stream;
use rand_distr::{Distribution, StandardNormal};

/// How many times a Gaussian is refitted while its ELBO is rising.
const RUNS: usize = 16;
/// Refitting ends after this many runs without a gain of this many nats.
const PATIENCE: usize = 2;
const GAIN_MIN: f64 = 0.1;

/// A fitted Gaussian.
pub(in crate::infer) struct FittedGaussian<'a> {
    /// The whitened coordinates of the last run, and its fit.
    pub(in crate::infer) whitened: WhitenedModel<'a, dyn Model + 'a>,
    pub(in crate::infer) fitted: Fitted,
    /// Its location and scale in the model's coordinates.
    pub(in crate::infer) mode: Mode,
    /// Whether its ELBO had converged.
    pub(in crate::infer) has_converged: Option<bool>,
}

/// Fits one Gaussian, and refits it in its own whitened coordinates until it converges: in the coordinates of the first guess the
/// steps may be too short to get far.
pub(in crate::infer) fn fit_gaussian<'a>(
    model: &'a dyn Model,
    gaussian: &Variational,
    from: &Mode,
    length: Length,
    work: &mut Work,
) -> Result<FittedGaussian<'a>> {
    let origin = Start::at(vec![0.0; from.z.len()], 1.0);
    if let Some((mode, has_converged)) = sparse_gaussian(model, from, work)? {
        let whitened = WhitenedModel::new(model, mode.z.clone(), mode.whitening.clone());
        let fitted = work.fit(&whitened, gaussian, &origin, work.settings.seed, Length::Fixed(1))?;
        return Ok(FittedGaussian { whitened, fitted, mode, has_converged: Some(has_converged) });
    }
    let mut whitened = WhitenedModel::new(model, from.z.clone(), from.whitening.clone());
    let (mut run, mut highest, mut idle) = (1, f64::NEG_INFINITY, 0);
    loop {
        let fitted = match work.fit(&whitened, gaussian, &origin, work.settings.seed, length) {
            // A rare draw may be so far out that the density overflows. The Gaussian stays where it is, and the moves do the rest.
            Err(Error::NotFinite { .. } | Error::GradientNotFinite { .. })
                if work.settings.correct == Correction::ResampleMove =>
            {
                let fitted = work.fit(&whitened, gaussian, &origin, work.settings.seed, Length::Fixed(1))?;
                let mode = Mode {
                    z: whitened.place().0.to_vec(),
                    whitening: whitened.place().1.clone(),
                    elbo: reached(&fitted),
                };
                return Ok(FittedGaussian { whitened, fitted, mode, has_converged: Some(false) });
            }
            fitted => fitted?,
        };
        let (z, whitening) = whitened.compose(gaussian, &fitted.theta);
        // A run made progress only if it ended higher than those before it.
        let last = reached(&fitted);
        idle = if last > highest + GAIN_MIN { 0 } else { idle + 1 };
        highest = highest.max(last);
        let has_converged = if idle == PATIENCE { Some(true) } else { has_converged(&fitted) };
        if fitted.stopped || work.ledger.is_spent() || run == RUNS || has_converged != Some(false) {
            let mode = Mode { z, whitening, elbo: last };
            return Ok(FittedGaussian { whitened, fitted, mode, has_converged });
        }
        whitened = WhitenedModel::new(model, z, whitening);
        run += 1;
    }
}

/// The best Gaussian with a sparse precision near a mode, and whether its search had converged, if the model has one.
fn sparse_gaussian(model: &dyn Model, from: &Mode, work: &mut Work) -> Result<Option<(Mode, bool)>> {
    if !matches!(from.whitening, Whitening::Sparse(_)) {
        return Ok(None);
    }
    let continuous: Vec<usize> = (0..from.z.len()).collect();
    let Some(curvature) = SparseCurvature::new(model, &continuous) else { return Ok(None) };
    variational_newton(model, &curvature, from, work.settings.seed, &mut work.session)
}

/// The modes in the whitened coordinates of the fit. If there are more components than modes, the additional ones start at random
/// points around the modes.
pub(in crate::infer) fn mixture_start(
    (centre, frame): (&[f64], &Whitening),
    modes: &[Mode],
    components_len: usize,
    seed: u64,
) -> Start {
    let mut rng = StageStream::MixtureStart.stream(seed, 0);
    let n = centre.len();
    let solve = |mut x: Vec<f64>| {
        frame.solve(&mut x);
        x
    };
    let mut start = Start { locations: Vec::new(), scales: Vec::new(), covariances: Vec::new() };
    for k in 0..components_len {
        let one = &modes[k % modes.len()];
        let place = &one.z;
        if let (Whitening::Diagonal(outer), Whitening::Diagonal(inner)) = (frame, &one.whitening) {
            let away = |i: usize, rng: &mut Stream| -> f64 {
                let normal: f64 = StandardNormal.sample(rng);
                if k < modes.len() { 0.0 } else { inner[i] * normal }
            };
            let location = (0..n).map(|i| (place[i] - centre[i] + away(i, &mut rng)) / outer[i]).collect();
            start.locations.push(location);
            start.scales.push((0..n).map(|i| inner[i] / outer[i]).collect());
            start.covariances.push(None);
            continue;
        }
        if let Whitening::Sparse(_) = frame {
            let away: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
            let location = solve((0..n).map(|i| place[i] - centre[i]).collect());
            let apart = if k < modes.len() { 0.0 } else { 1.0 };
            start.locations.push(location.iter().zip(away).map(|(x, away)| x + apart * away).collect());
            start.scales.push(vec![1.0; n]);
            start.covariances.push(None);
            continue;
        }
        // L⁻¹ M column by column; its rows give the covariance.
        let columns: Vec<Vec<f64>> = (0..n).map(|j| solve((0..n).map(|i| one.whitening.get(i, j)).collect())).collect();
        let mut location = solve((0..n).map(|i| place[i] - centre[i]).collect());
        if k >= modes.len() {
            for column in &columns {
                let away: f64 = StandardNormal.sample(&mut rng);
                location.iter_mut().zip(column).for_each(|(l, c)| *l += away * c);
            }
        }
        start.locations.push(location);
        let entry = |i: usize, j: usize| columns.iter().map(|c| c[i] * c[j]).sum::<f64>();
        start.scales.push((0..n).map(|i| entry(i, i).sqrt()).collect());
        start.covariances.push(Some((0..n * n).map(|e| entry(e / n, e % n)).collect()));
    }
    start
}
