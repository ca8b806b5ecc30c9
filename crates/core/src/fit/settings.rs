//! The settings of a fit.

use super::start::StartSettings;
use super::stopping::StoppingRule;
use crate::error::{Error, Result};
use crate::gradient::GradientSettings;
use crate::optimizer::OptimizerKind;
use serde::{Deserialize, Serialize};

/// The settings of a fit.
///
/// ```
/// use hyperprior::fit::{FitSettings, StartSettings};
/// let settings = FitSettings::default().steps(500).start(StartSettings::single());
/// settings.check()?;
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FitSettings {
    /// The seed. The same seed gives the same numbers for any number of threads.
    pub seed: u64,
    /// Optimisation steps after the start; with a stopping rule, their maximum.
    pub steps: u64,
    /// The initial step size; it falls to zero along a half cosine, or with a stopping rule is halved from stage to stage.
    pub step_size: f64,
    /// The share of the steps before the step size begins to fall.
    pub flat: f64,
    /// The stopping rule; without one the fit takes all its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StoppingRule>,
    /// The optimiser.
    pub optimizer: OptimizerKind,
    /// How gradients are estimated.
    pub gradient: GradientSettings,
    /// Where the fit starts.
    pub start: StartSettings,
    /// The largest share of draws that may be invalid at a step.
    pub dropped_max: f64,
}

crate::setters!(FitSettings {
    seed: u64, steps: u64, step_size: f64, flat: f64, optimizer: OptimizerKind, gradient: GradientSettings, start: StartSettings, dropped_max: f64;
    stopping?: StoppingRule
});

impl Default for FitSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            steps: 4000,
            step_size: 0.02,
            flat: 0.0,
            stopping: None,
            optimizer: OptimizerKind::default(),
            gradient: GradientSettings::default(),
            start: StartSettings::default(),
            dropped_max: 0.5,
        }
    }
}

impl FitSettings {
    /// Checks that every field is valid.
    ///
    /// # Errors
    /// [`Error::BadSetting`] naming the field.
    pub fn check(&self) -> Result<()> {
        let bad = |field, value: f64, reason| Err(Error::BadSetting { field, value: value.to_string(), reason });
        if !(self.step_size > 0.0 && self.step_size.is_finite()) {
            return bad("step_size", self.step_size, "it must be above 0");
        }
        if !(0.0..=1.0).contains(&self.dropped_max) {
            return bad("dropped_max", self.dropped_max, "it must be a share between 0 and 1");
        }
        if !(0.0..1.0).contains(&self.flat) {
            return bad("flat", self.flat, "it must be a share, at least 0 and below 1");
        }
        if let Some(StoppingRule { accuracy, .. }) = self.stopping
            && !(accuracy > 0.0 && accuracy.is_finite())
        {
            return bad("accuracy", accuracy, "it must be above 0");
        }
        self.start.check()?;
        self.gradient.check()
    }

    /// The step size at `step` of `steps`.
    pub(super) fn size(&self, step: u64) -> f64 {
        let done = step as f64 / self.steps.max(1) as f64;
        half_cosine(self.step_size, ((done - self.flat) / (1.0 - self.flat)).max(0.0))
    }
}

/// The step size when this share of a schedule is done: from `size` to zero along a half cosine.
pub(crate) fn half_cosine(size: f64, done: f64) -> f64 {
    size * 0.5 * (1.0 + (std::f64::consts::PI * done.min(1.0)).cos())
}
