//! Linear response of a fit: posterior standard deviations and correlations corrected for what the approximation leaves out.

use crate::Quantity;
use crate::fit::{FitError, Task};
use hyperprior::infer::{InferSettings, Inferred, WhitenedModel};
use hyperprior::posterior::{LinearResponse, LinearResponseSettings};
use hyperprior::report::LinearResponseSummary;
use hyperprior::{Batch, Error, Model};

/// With more quantities than this, the summary has no correlation matrix.
const CORRELATED_MAX: usize = 50;

impl Task {
    /// The linear response of a fit. If the fit is not at a maximum, or too large, the summary says so; this is not an error,
    /// because the rest of the fit is still valid.
    ///
    /// # Errors
    /// Any other error of the inference.
    pub fn linear_response(
        &self,
        inferred: &Inferred,
        settings: &InferSettings,
    ) -> Result<LinearResponseSummary, FitError> {
        let model = self.model();
        let quantities: Vec<Quantity> = self.quantities().iter().filter(|q| model.is_fitted(q)).cloned().collect();
        let missing = |reason: String| Ok(LinearResponseSummary::Missing { reason });
        if quantities.is_empty() {
            return missing("no monitored quantity depends on fitted latents alone".to_owned());
        }
        let q = inferred.method.variational_with(model.latents(), &settings.parts)?;
        let whitened = WhitenedModel::new(model as &dyn Model, inferred.location.clone(), inferred.whitening.clone());
        let own = |u: &Batch| {
            let mut z = Batch::zeros(u.columns_len(), u.draws_len());
            whitened.restore(u, &mut z);
            model.complete(&z, &quantities, settings.seed)
        };
        let how = LinearResponseSettings::default().seed(settings.seed);
        match hyperprior::posterior::linear_response(&whitened, &q, &inferred.fitted.theta, &how, &own) {
            Ok(response) => Ok(found(&quantities, &response)),
            Err(error @ (Error::NotAnOptimum { .. } | Error::Mismatch { .. })) => missing(error.to_string()),
            Err(error) => Err(error.into()),
        }
    }
}

fn found(quantities: &[Quantity], response: &LinearResponse) -> LinearResponseSummary {
    let name = |q: &Quantity| q.name.clone();
    let sd = quantities.iter().enumerate().map(|(i, q)| (name(q), Some(response.sd(i)))).collect();
    let len = quantities.len();
    if len > CORRELATED_MAX {
        return LinearResponseSummary::Found { sd, names: Vec::new(), correlation: Vec::new() };
    }
    let row = |i: usize| (0..len).map(|j| Some(response.correlation(i, j))).collect();
    let (names, correlation) = (quantities.iter().map(name).collect(), (0..len).map(row).collect());
    LinearResponseSummary::Found { sd, names, correlation }
}
