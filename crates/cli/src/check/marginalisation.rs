//! The marginalisation, compared with a plain sum over every configuration.

use crate::error::CliError;
use hyperprior::Batch;
use hyperprior::model::{Model, Support, random_points};
use hyperprior::posterior::ranges;
use hyperprior_graph::{GraphModel, Marginalise};
use hyperprior_math::special::log_sum_exp;
use serde::Serialize;
use std::collections::HashMap;

/// Points at which the two sums are compared.
const POINTS: usize = 8;
/// More numbers than this are not enumerated.
const NUMBERS_MAX: usize = 1 << 23;
/// Tolerance for rounding, relative to the larger of 1 and the log joint.
const TOLERANCE: f64 = 1e-9;

/// The comparison.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Marginalisation {
    /// The sums agree.
    Agree {
        /// The number of configurations.
        configurations: usize,
        /// The number of points at which they were summed.
        points: usize,
        /// The largest relative difference.
        difference: f64,
    },
    /// Not compared.
    Skipped {
        /// Why.
        skipped: &'static str,
    },
}

/// Compares a model with the same model without marginalisation.
pub fn marginalisation(model: &GraphModel, seed: u64) -> Result<Marginalisation, CliError> {
    let skipped = |skipped| Ok(Marginalisation::Skipped { skipped });
    if model.marginalised().next().is_none() {
        return skipped("nothing is marginalised");
    }
    let whole = model.graph().clone().model_with(&Marginalise::Nothing)?;
    let own: HashMap<String, usize> = (0..model.latents().len()).map(|i| (model.latents().name(i), i)).collect();
    let latents = whole.latents();
    // For each latent of the whole model its column in the marginalised one, or its number of values.
    let mut values: Vec<Result<usize, usize>> = Vec::with_capacity(latents.len());
    let mut configurations = 1_usize;
    for i in 0..latents.len() {
        let value = match (own.get(&latents.name(i)), latents.support(i)) {
            (Some(column), _) => Ok(*column),
            (None, Support::Integers { lower, upper }) => Err((upper - lower) as usize + 1),
            (None, _) => return skipped("infinitely many configurations"),
        };
        if let Err(len) = value {
            configurations = configurations.saturating_mul(len);
        }
        values.push(value);
    }
    if configurations.saturating_mul(latents.len().max(1)) > NUMBERS_MAX {
        return skipped("too many configurations");
    }
    let here = random_points(model.latents(), POINTS, seed);
    let mut found = vec![0.0; POINTS];
    model.log_joint(&here, &mut found)?;
    let mut difference = 0.0_f64;
    for s in 0..POINTS {
        let mut z = Batch::zeros(latents.len(), configurations);
        let mut inner = configurations;
        for (i, value) in values.iter().enumerate() {
            match *value {
                Ok(column) => z.column_mut(i).fill(here.get(column, s)),
                Err(len) => {
                    inner /= len;
                    z.column_mut(i).iter_mut().enumerate().for_each(|(c, z)| *z = (c / inner % len) as f64);
                }
            }
        }
        let mut log_p = vec![0.0; configurations];
        whole.log_joint(&z, &mut log_p)?;
        let expected = log_sum_exp(&log_p);
        if expected == found[s] || !expected.is_finite() && !found[s].is_finite() {
            continue;
        }
        let own = (expected - found[s]).abs() / expected.abs().max(1.0);
        if !(own <= TOLERANCE) {
            return Err(CliError::Internal(format!(
                "the log joint with {} marginalised is {}, but {expected} by enumeration",
                ranges::line(model.marginalised()),
                found[s]
            )));
        }
        difference = difference.max(own);
    }
    Ok(Marginalisation::Agree { configurations, points: POINTS, difference })
}
