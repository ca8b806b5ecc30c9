//! The log density at points, on the scale on which the model is written.

use crate::error::CliError;
use hyperprior::Batch;
use hyperprior::model::{Model, random_points};
use hyperprior_graph::{GraphModel, Quantity};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::HashMap;

/// A point and the density there.
#[derive(Debug, Serialize)]
pub struct Point {
    values: Values,
    /// log p of the latents.
    pub log_prior: f64,
    /// log p of the observations given them.
    pub log_likelihood: f64,
    /// Their sum.
    pub log_joint: f64,
}

/// Every latent's name and value, in order.
#[derive(Debug)]
struct Values(Vec<(String, f64)>);

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Random points. Latents that are marginalised or depend on no observation are drawn given the others.
pub fn points(model: &GraphModel, len: usize, seed: u64) -> Result<Vec<Point>, CliError> {
    at(model, &random_points(model.latents(), len, seed), seed)
}

/// The point at which a fit without a mode search would start: the starting values, and 0 on the unconstrained scale for the
/// others.
pub fn start(model: &GraphModel, seed: u64) -> Result<Option<Point>, CliError> {
    let given = model.start()?;
    let mut z = Batch::zeros(model.latents().len(), 1);
    for (i, value) in given.iter().flatten().enumerate() {
        z.set(i, 0, value.unwrap_or(0.0));
    }
    Ok(at(model, &z, seed)?.pop())
}

fn at(model: &GraphModel, z: &Batch, seed: u64) -> Result<Vec<Point>, CliError> {
    let all = model.quantities();
    let by_name: HashMap<&str, &Quantity> = all.iter().filter(|q| q.is_latent).map(|q| (q.name.as_str(), q)).collect();
    let names: Vec<&str> = model.graph().latent_names().collect();
    let latents: Vec<Quantity> = names.iter().filter_map(|name| by_name.get(name).copied().cloned()).collect();
    let values = model.complete(z, &latents, seed)?;
    let mut own = vec![0.0; latents.len()];
    let point = |s: usize| {
        values.read_draw(s, &mut own);
        let (log_prior, log_likelihood) = model.log_prior_and_likelihood(&own)?;
        let values = names.iter().zip(&own).map(|(name, x)| ((*name).to_owned(), *x)).collect();
        Ok(Point { values: Values(values), log_prior, log_likelihood, log_joint: log_prior + log_likelihood })
    };
    (0..z.draws_len()).map(point).collect()
}
