//! The step size of the No-U-Turn sampler, adapted during the warm-up.

use serde::{Deserialize, Serialize};

/// Dual averaging of the step size (Nesterov, 2009; Hoffman and Gelman, 2014).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepSize {
    pub(super) step: f64,
    centre: f64,
    error: f64,
    ln_average: f64,
    count: f64,
}

impl StepSize {
    /// The constants of the averaging.
    const SHRINKAGE: f64 = 0.05;
    const DELAY: f64 = 10.0;
    const FORGETTING: f64 = 0.75;

    pub(super) fn new(step: f64) -> Self {
        Self { step, centre: (4.0 * step).ln(), error: 0.0, ln_average: 0.0, count: 0.0 }
    }

    /// Learns from the acceptance of a transition.
    pub(super) fn adapt(&mut self, accepted: f64, aim: f64) {
        self.count += 1.0;
        let weight = 1.0 / (self.count + Self::DELAY);
        self.error = (1.0 - weight) * self.error + weight * (aim - accepted);
        let ln_step = self.centre - self.count.sqrt() / Self::SHRINKAGE * self.error;
        let share = self.count.powf(-Self::FORGETTING);
        self.ln_average = share * ln_step + (1.0 - share) * self.ln_average;
        self.step = ln_step.exp();
    }

    /// Keeps the average from now on.
    pub(super) fn settle(&mut self) {
        if self.count > 0.0 {
            self.step = self.ln_average.exp();
        }
    }
}
