//! One Gaussian, fitted until it no longer moves; and where the components of a mixture start.

use super::course::{Length, Work};
use super::drawn::DRAW_STEP;
use super::search::Found;
use super::units::Units;
use super::way::{has_settled, reached};
use super::whitened::Whitened;
use crate::error::Result;
use crate::fit::Fitted;
use crate::model::Model;
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::random::{Stream, stream};
use rand_distr::{Distribution, StandardNormal};

/// How often a Gaussian is fitted anew while its bound is rising.
const RUNS: usize = 16;
/// Runs that may end no higher than the one before, by this many nats, before that is the end.
const PATIENCE: usize = 2;
const HIGHER: f64 = 0.1;
/// The share of a fit's steps that are all of one size: while they are, a bound that rises has still a way to go.
pub(super) const FLAT: f64 = 0.5;

/// A Gaussian that no longer moves.
pub(super) struct Settled<'a> {
    /// The units that it was last fitted in, and the fit.
    pub(super) near: Whitened<'a, dyn Model + 'a>,
    pub(super) fitted: Fitted,
    /// Where it is in the model's own units.
    pub(super) place: Found,
    /// Whether its bound had settled.
    pub(super) has_settled: Option<bool>,
}

/// Fits one Gaussian, and again in its own units for as long as it is still on its way: the units of the first guess may be too
/// small to get far in.
pub(super) fn settle<'a>(
    model: &'a dyn Model,
    gaussian: &Variational,
    from: &Found,
    length: Length,
    work: &mut Work,
) -> Result<Settled<'a>> {
    let origin = Start::at(vec![0.0; from.z.len()], 1.0);
    let mut near = Whitened::new(model, from.z.clone(), from.units.clone());
    let (mut run, mut highest, mut idle) = (1, f64::NEG_INFINITY, 0);
    loop {
        let fitted = work.fit(&near, gaussian, &origin, work.settings.seed, length)?;
        let (z, units) = near.compose(gaussian, &fitted.theta);
        // A run got somewhere only if it ended higher than those before it.
        let last = reached(&fitted);
        idle = if last > highest + HIGHER { 0 } else { idle + 1 };
        highest = highest.max(last);
        let has_settled = if idle == PATIENCE { Some(true) } else { has_settled(&fitted) };
        if fitted.stopped || work.course.is_spent() || run == RUNS || has_settled != Some(false) {
            let place = Found { z, units, elbo: last };
            return Ok(Settled { near, fitted, place, has_settled });
        }
        near = Whitened::new(model, z, units);
        run += 1;
    }
}

/// The places that were found, seen from the units that will be fitted in; where more components are wanted than there are places, the others
/// stand near them.
pub(super) fn among((centre, frame): (&[f64], &Units), found: &[Found], components_len: usize, seed: u64) -> Start {
    let mut rng = stream(seed, DRAW_STEP, u64::MAX, 0);
    let n = centre.len();
    let solve = |mut x: Vec<f64>| {
        frame.solve(&mut x);
        x
    };
    let mut start = Start { locations: Vec::new(), scales: Vec::new(), covariances: Vec::new() };
    for k in 0..components_len {
        let one = &found[k % found.len()];
        let place = &one.z;
        if let (Units::Diagonal(outer), Units::Diagonal(inner)) = (frame, &one.units) {
            let away = |i: usize, rng: &mut Stream| -> f64 {
                let normal: f64 = StandardNormal.sample(rng);
                if k < found.len() { 0.0 } else { inner[i] * normal }
            };
            let location = (0..n).map(|i| (place[i] - centre[i] + away(i, &mut rng)) / outer[i]).collect();
            start.locations.push(location);
            start.scales.push((0..n).map(|i| inner[i] / outer[i]).collect());
            start.covariances.push(None);
            continue;
        }
        // L⁻¹ M column by column; its rows give the covariance.
        let columns: Vec<Vec<f64>> = (0..n).map(|j| solve((0..n).map(|i| one.units.get(i, j)).collect())).collect();
        let mut location = solve((0..n).map(|i| place[i] - centre[i]).collect());
        if k >= found.len() {
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
