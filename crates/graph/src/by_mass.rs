//! Where the mass of a hierarchical model is, for models whose density is highest elsewhere.

use super::centring::Degrees;
use super::elimination::Marginalise;
use super::hierarchy::scale_latents;
use super::model::GraphModel;
use hyperprior::Model;
use hyperprior::infer::{Mode, mode_by_mass};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, standard_normals, stream};

/// The seed of the search and of the fit, which are part of the model.
pub(super) const SEED: u64 = 1;
/// The draws of the Gaussian at the mode, from which the factorised one starts.
pub(super) const START_DRAWS: usize = 64;
/// The most latents of which a better place is looked for, and the mean difference of importance weights, in nats, with which it is.
const SEARCHED_MAX: usize = 100;
const POOR: f64 = 20.0;
/// The evaluations for each latent that it takes, and the most work, in additions.
const EVALUATIONS: f64 = 15_000.0;
const WORK: f64 = 1e10;

/// The Gaussian where the marginal of the scales has its mass, with the effects integrated out given them. With centring they are the
/// easiest to integrate out.
pub(super) struct ByMass {
    /// Its ELBO.
    pub(super) elbo: f64,
    /// The latents in its middle; none for those that are marginalised.
    pub(super) values: Vec<Option<f64>>,
    /// Its draws, in the coordinates of the model without centring.
    pub(super) near: Batch,
}

impl ByMass {
    /// `None` if the Gaussian at the mode of a model without centring is good, or nothing better is found.
    pub(super) fn find(free: &GraphModel, which: &Marginalise, candidates: &[bool], mode: &Mode) -> Option<Self> {
        let (near, log_q) = draws_at(mode);
        let n = free.latents().len();
        if n > SEARCHED_MAX || EVALUATIONS * n as f64 * free.work() as f64 > WORK || !is_poor(free, &near, &log_q) {
            return None;
        }
        let centred = GraphModel::new(free.graph.clone(), which, &Degrees(vec![None; candidates.len()])).ok()?;
        let starts = free.mapped(&near, &centred)?;
        let is_scale = scale_latents(&free.graph, candidates);
        let coordinates = centred.unconstrained.coordinates.iter().zip(&centred.columns);
        let of_scale = coordinates.filter(|(coordinate, _)| is_scale[coordinate.leaf]);
        let scales: Vec<usize> = of_scale.filter_map(|(_, column)| column.map(|i| i as usize)).collect();
        let found = mode_by_mass(&centred, &scales, &starts, SEED).ok()?.filter(|found| found.elbo > mode.elbo)?;
        let near = centred.mapped(&draws_at(&found).0, free)?;
        let values = centred.latent_values(&Batch::from_columns(found.z, 1)).pop()?;
        Some(Self { elbo: found.elbo, values, near })
    }
}

/// Draws of the Gaussian at a mode, and their log densities but for a constant.
pub(super) fn draws_at(mode: &Mode) -> (Batch, Vec<f64>) {
    let n = mode.z.len();
    let mut streams: Vec<_> = (0..START_DRAWS as u64).map(|s| stream(SEED, Purpose::Centring.step(), 0, s)).collect();
    let (mut noise, mut z) = (Batch::zeros(n, START_DRAWS), Batch::zeros(n, START_DRAWS));
    standard_normals(&mut streams, &mut noise);
    mode.whitening.multiply(&noise, &mut z);
    let log_q = (0..START_DRAWS).map(|s| -0.5 * (0..n).map(|i| noise.get(i, s).powi(2)).sum::<f64>()).collect();
    for (i, at) in mode.z.iter().enumerate() {
        z.column_mut(i).iter_mut().for_each(|x| *x += at);
    }
    (z, log_q)
}

/// Whether a Gaussian is a poor approximation: the importance weights of its draws differ by very much.
fn is_poor(model: &GraphModel, draws: &Batch, log_q: &[f64]) -> bool {
    let mut weights = vec![0.0; draws.draws_len()];
    let is_known = model.log_joint(draws, &mut weights).is_ok();
    weights.iter_mut().zip(log_q).for_each(|(w, log_q)| *w -= log_q);
    // The sum over a count may not be known.
    let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let below = |w: &f64| if w.is_nan() { f64::INFINITY } else { top - w };
    is_known && !(weights.iter().map(below).sum::<f64>() <= POOR * weights.len() as f64)
}

impl GraphModel {
    /// Draws in the coordinates of another model of the same graph, without those that are not finite there; `None` if that leaves hardly
    /// any.
    fn mapped(&self, z: &Batch, other: &Self) -> Option<Batch> {
        let mut places = other.places();
        let finite = |values: &Vec<Option<f64>>| -> Option<Vec<f64>> {
            let (point, _) = other.unconstrained_point(&mut places, &|leaf| values[leaf]);
            point.into_iter().map(|x| x.filter(|x| x.is_finite())).collect()
        };
        let points: Vec<Vec<f64>> = self.latent_values(z).iter().filter_map(finite).collect();
        let n = points.first()?.len();
        let columns = (0..n).flat_map(|i| points.iter().map(move |point| point[i])).collect();
        (points.len() > z.draws_len() / 2).then(|| Batch::from_columns(columns, points.len()))
    }
}
