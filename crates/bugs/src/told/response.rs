//! Linear response of a mean-field fit: the spreads that it would have with the dependence that it leaves out.

use crate::fit::{FitError, Task};
use hyperprior::infer::{InferSettings, Inferred, Whitened};
use hyperprior::model::graph::Quantity;
use hyperprior::posterior::{LinearResponse, ResponseSettings, linear_response};
use hyperprior::{Batch, Error, Model};
use serde::Serialize;
use std::collections::BTreeMap;

/// More quantities than this have no correlation matrix in `summary.json`.
const CORRELATED_MAX: usize = 50;

/// What linear response says, or why it says nothing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Response {
    /// The corrected spreads.
    Found {
        /// The standard deviation of each quantity that is calculated from fitted latents alone.
        sd: BTreeMap<String, f64>,
        /// What the correlation matrix is of, in its order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The correlations, where there are few quantities.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        correlation: Vec<Vec<f64>>,
    },
    /// Nothing.
    Missing {
        /// Why.
        reason: String,
    },
}

impl Response {
    /// The linear response of a fit. A curvature that is not that of a maximum, and a fit that is too large, are told, not errors:
    /// the rest of the fit is as it is.
    ///
    /// # Errors
    /// What the engine says of anything else.
    pub fn of(task: &Task, inferred: &Inferred, settings: &InferSettings) -> Result<Self, FitError> {
        let model = task.model();
        let quantities: Vec<Quantity> = task.quantities().iter().filter(|q| model.is_fitted(q)).cloned().collect();
        let missing = |reason: String| Ok(Self::Missing { reason });
        if quantities.is_empty() {
            return missing("nothing that is shown is calculated from fitted latents alone".to_owned());
        }
        let q = inferred.method.variational_with(model.latents(), &settings.parts)?;
        let near = Whitened::new(model as &dyn Model, inferred.location.clone(), inferred.units.clone());
        let own = |u: &Batch| {
            let mut z = Batch::zeros(u.columns_len(), u.draws_len());
            near.restore(u, &mut z);
            model.complete(&z, &quantities, settings.seed)
        };
        let how = ResponseSettings { seed: settings.seed, ..ResponseSettings::default() };
        match linear_response(&near, &q, &inferred.fitted.theta, &how, &own) {
            Ok(response) => Ok(Self::found(&quantities, &response)),
            Err(error @ (Error::NotAnOptimum { .. } | Error::Mismatch { .. })) => missing(error.to_string()),
            Err(error) => Err(error.into()),
        }
    }

    fn found(quantities: &[Quantity], response: &LinearResponse) -> Self {
        let name = |q: &Quantity| q.name.clone();
        let sd = quantities.iter().enumerate().map(|(i, q)| (name(q), response.sd(i))).collect();
        let len = quantities.len();
        if len > CORRELATED_MAX {
            return Self::Found { sd, names: Vec::new(), correlation: Vec::new() };
        }
        let row = |i: usize| (0..len).map(|j| response.correlation(i, j)).collect();
        Self::Found { sd, names: quantities.iter().map(name).collect(), correlation: (0..len).map(row).collect() }
    }

    /// The corrected standard deviations by name.
    pub fn sds(&self) -> Option<&BTreeMap<String, f64>> {
        match self {
            Self::Found { sd, .. } => Some(sd),
            Self::Missing { .. } => None,
        }
    }
}
