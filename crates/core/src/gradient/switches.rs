//! The discrete level above λ: the derivative along the logit of a switch by local expectation.
//!
//! For b_m ~ Bernoulli(σ(a_m)), ∂/∂a_m E[f] = σ'(a_m) E_{b_−m}[f(b_m = 1) − f(b_m = 0)], where f is the whole integrand with λ
//! and z drawn again. Both sides use the same random numbers, so that the difference is due to the switch. This costs one more
//! forward pass per switch.

use super::GradientSettings;
use super::impossible::possible;
use crate::error::Result;
use crate::model::Model;
use crate::objective::Pass;
use crate::variational::Variational;
use hyperprior_math::random::Stream;
use hyperprior_math::special::sigmoid;

/// The working memory of flipped passes.
#[derive(Debug, Default)]
pub(super) struct Flips {
    pass: Pass,
    streams: Vec<Stream>,
    logits: Vec<f64>,
    d_logits: Vec<f64>,
}

impl Flips {
    /// d_theta += the derivative along the switches' logits of Σ_s weight\[s\] · integrand\[s\].
    pub(super) fn add(
        &mut self,
        pass: &Pass,
        model: &dyn Model,
        q: &Variational,
        (theta, phi): (&[f64], &[f64]),
        settings: &GradientSettings,
        weight: &[f64],
        d_theta: &mut [f64],
    ) -> Result<()> {
        let switches_len = q.prior().switches_len();
        if switches_len == 0 {
            return Ok(());
        }
        self.logits.resize(switches_len, 0.0);
        self.d_logits.clear();
        self.d_logits.resize(switches_len, 0.0);
        q.prior().switch_logits(theta, &mut self.logits);
        for m in 0..switches_len {
            let column = q.prior().noise_len() + m;
            self.streams.clear();
            self.streams.extend_from_slice(&pass.before_z);
            self.pass.flip(q, theta, &pass.draws, column, &mut self.streams);
            self.pass.forward(model, q, theta, phi)?;
            if settings.importance > 0 {
                self.pass.tighten(q, (theta, phi), &mut self.streams, settings.importance);
            }
            let slope = sigmoid(self.logits[m]) * sigmoid(-self.logits[m]);
            for (s, b) in pass.draws.eps.column(column).iter().enumerate() {
                let difference = (2.0 * b - 1.0) * (pass.integrand[s] - self.pass.integrand[s]);
                if weight[s] != 0.0 && !difference.is_nan() {
                    self.d_logits[m] += weight[s] * slope * possible(difference);
                }
            }
        }
        q.prior().switch_logits_pullback(&self.d_logits, d_theta);
        Ok(())
    }
}
