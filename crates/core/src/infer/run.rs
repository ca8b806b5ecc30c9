//! The way from a model to draws: a search for the posterior, an approximation fitted in the posterior's own units, draws from it
//! and their importance weights.

use super::approximation::Method;
use super::search::{Found, search};
use super::smooth::{Tail, smooth};
use super::whitened::{Units, Whitened};
use crate::bound::{BoundSettings, Bounds};
use crate::error::{Error, Result};
use crate::fit::{Fit, FitSettings, Fitted, Observer, StartSettings, fit};
use crate::gradient::{GradientSettings, Pass};
use crate::model::Model;
use crate::prior::Start;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg::packed;
use hyperprior_math::random::{Stream, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How a posterior is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferSettings {
    /// Which approximation.
    pub method: Method,
    /// The seed: same seed, same numbers, at any number of threads.
    pub seed: u64,
    /// How many draws of the posterior.
    pub draws: usize,
    /// Optimisation steps; what suits the method, where none is given.
    pub steps: Option<u64>,
}

impl Default for InferSettings {
    fn default() -> Self {
        Self { method: Method::Auto, seed: 1, draws: 4000, steps: None }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// Draws of the model's latents.
    pub z: Batch,
    /// The logarithms of their smoothed importance weights, whose sum is one.
    pub log_weights: Vec<f64>,
    /// What those weights say.
    pub tail: Tail,
    /// The bounds.
    pub bounds: Bounds,
    /// The method.
    pub method: Method,
    /// Its parts in words: likelihood, prior, r.
    pub parts: [String; 3],
    /// The fit.
    pub fitted: Fitted,
}

/// The standard deviations of the noise that a fit's own starts are spread by, in units of the posterior's.
const SPREAD: f64 = 1.0;
/// Draws per block when the posterior is drawn.
const BLOCK: usize = 64;
/// Streams of draws are apart from all others.
const DRAW_STEP: u64 = u64::MAX - 5;

/// Finds an approximation of a model's posterior and draws from it. `start` holds the values that some latents are to start from.
///
/// # Errors
/// What the model, the search and the fit say.
pub fn infer(
    model: &dyn Model,
    start: Option<&[Option<f64>]>,
    settings: &InferSettings,
    observer: &mut dyn Observer,
) -> Result<Inferred> {
    let latents = model.latents();
    if latents.is_empty() {
        return Err(Error::EmptyModel);
    }
    let found = search(model, start, settings.seed)?;
    let best = &found[0];
    let own = |found: &Found| -> Vec<f64> {
        (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()).map(|i| found.z[i]).collect()
    };
    let has_discrete = (0..latents.len()).any(|i| latents.support(i).is_discrete());
    let near = Whitened::new(model, own(best), best.units.clone());
    if has_discrete {
        return mixed(&near, settings, observer);
    }
    let gaussian = Method::FullRank.variational(latents)?;
    let fitted = at_origin(&near, &gaussian, settings, 1000, observer)?;
    if matches!(settings.method, Method::FullRank) {
        return finish(&near, &gaussian, fitted, Method::FullRank, settings);
    }
    let (location, units) = compose(&own(best), &best.units, &gaussian, &fitted.theta);
    let near = Whitened::new(model, location, units);
    let method = match settings.method {
        Method::Auto => Method::Flow(6),
        other => other,
    };
    let q = method.variational(latents)?;
    let fitted = at_origin(&near, &q, settings, 3000, observer)?;
    finish(&near, &q, fitted, method, settings)
}

/// Fits an approximation that starts at the standard normal.
fn at_origin(
    model: &dyn Model,
    q: &Variational,
    settings: &InferSettings,
    steps: u64,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let draws = if q.prior().components_len() > 1 { 16 } else { 32 };
    let settings = FitSettings {
        seed: settings.seed,
        steps: settings.steps.unwrap_or(steps),
        step_size: 0.01,
        gradient: GradientSettings { draws, replicates: 1, ..GradientSettings::default() },
        start: StartSettings::single(),
        ..FitSettings::default()
    };
    let n = q.prior().lambda_len();
    let k = q.prior().components_len();
    let mut rng = stream(settings.seed, DRAW_STEP, u64::MAX, 0);
    let locations = (0..k)
        .map(|_| {
            let jitter = |_| {
                let x: f64 = rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng);
                if k > 1 { SPREAD * x } else { 0.0 }
            };
            (0..n).map(jitter).collect()
        })
        .collect();
    let start = Start { locations, scales: vec![vec![1.0; n]], covariances: vec![None] };
    let mut fit = Fit::init(model, q, &settings, &start)?;
    let stopped = fit.run(observer)?.is_break();
    Ok(fit.finish(stopped))
}

/// m + L (μ + M u): the units of a Gaussian fitted in other units.
fn compose(location: &[f64], units: &Units, q: &Variational, theta: &[f64]) -> (Vec<f64>, Units) {
    let n = location.len();
    let (mut mean, mut inner) = (vec![0.0; n], vec![0.0; n * (n + 1) / 2]);
    if let Some(gaussians) = q.prior().gaussians() {
        gaussians.component(theta, 0, &mut mean, &mut inner);
    }
    let outer = |i: usize, j: usize| match units {
        Units::Full(l) => l[packed(i, j)],
        Units::Diagonal(l) => {
            if i == j {
                l[i]
            } else {
                0.0
            }
        }
    };
    let moved = (0..n).map(|i| location[i] + (0..=i).map(|j| outer(i, j) * mean[j]).sum::<f64>()).collect();
    let mut product = vec![0.0; n * (n + 1) / 2];
    for i in 0..n {
        for j in 0..=i {
            product[packed(i, j)] = (j..=i).map(|k| outer(i, k) * inner[packed(k, j)]).sum();
        }
    }
    (moved, Units::Full(product))
}

fn mixed(
    near: &Whitened<dyn Model + '_>,
    settings: &InferSettings,
    observer: &mut dyn Observer,
) -> Result<Inferred> {
    let method = match settings.method {
        Method::Auto => Method::Hvm,
        other => other,
    };
    let q = method.variational(near.latents())?;
    let fit_settings = FitSettings {
        seed: settings.seed,
        steps: settings.steps.unwrap_or(3000),
        start: StartSettings { tries: 4, ..StartSettings::default() },
        ..FitSettings::default()
    };
    let fitted = fit(near, &q, &fit_settings, observer)?;
    finish(near, &q, fitted, method, settings)
}

fn finish(
    near: &Whitened<dyn Model + '_>,
    q: &Variational,
    fitted: Fitted,
    method: Method,
    settings: &InferSettings,
) -> Result<Inferred> {
    let bounds = fitted.bounds(near, q, &BoundSettings { seed: settings.seed, ..BoundSettings::default() })?;
    let (u, mut log_weights) = draw(near, q, &fitted, settings.draws, settings.seed)?;
    let tail = smooth(&mut log_weights);
    let mut z = Batch::zeros(u.columns_len(), u.draws_len());
    near.restore(&u, &mut z);
    let parts = [q.likelihood().factor_name(0).to_owned(), q.prior().name(), q.recursive().name()];
    Ok(Inferred { z, log_weights, tail, bounds, method, parts, fitted })
}

/// Draws from q, and the logarithms of their importance weights. Components are drawn in proportion to their weights.
fn draw(model: &dyn Model, q: &Variational, fitted: &Fitted, len: usize, seed: u64) -> Result<(Batch, Vec<f64>)> {
    let components_len = q.prior().components_len();
    let mut log_pi = vec![0.0; components_len];
    q.prior().log_weights(&fitted.theta, &mut log_pi);
    let mut blocks = Vec::new();
    let (mut reached, mut taken) = (0.0, 0);
    for (k, log_pi) in log_pi.iter().enumerate() {
        reached += log_pi.exp() * len as f64;
        let until = if k + 1 == components_len { len } else { (reached.round() as usize).min(len) };
        while taken < until {
            let size = BLOCK.min(until - taken);
            blocks.push((k, taken, size));
            taken += size;
        }
    }
    let run = |&(k, first, size): &(usize, usize, usize)| -> Result<(Batch, Vec<f64>)> {
        let mut streams: Vec<Stream> =
            (0..size).map(|s| stream(seed, DRAW_STEP, k as u64, (first + s) as u64)).collect();
        let mut pass = Pass::default();
        pass.draw(q, &fitted.theta, k, &mut streams, 1, false);
        pass.forward(model, q, &fitted.theta, &fitted.phi)?;
        Ok((pass.draws.z, pass.integrand))
    };
    let results: Vec<(Batch, Vec<f64>)> = blocks.par_iter().map(run).collect::<Result<_>>()?;
    let mut z = Batch::zeros(model.latents().len(), len);
    let mut weights = Vec::with_capacity(len);
    for ((_, first, size), (own, log_weights)) in blocks.iter().zip(results) {
        for i in 0..own.columns_len() {
            z.column_mut(i)[*first..first + size].copy_from_slice(own.column(i));
        }
        weights.extend(log_weights);
    }
    Ok((z, weights))
}
