//! The factorial mixture: binary switches above λ, a discrete level on top of any prior.
//!
//! λ = λ_inner(ε) + Σ_m b_m δ_m, b_m ~ Bernoulli(σ(a_m)). M switches make a mixture of 2^M shifted copies of the inner prior at
//! the cost of M shifts, O(Md); their logits are learned by local expectation, with one more pass of the model for each.

use super::{Density, Prior, Start};
use crate::error::{Error, Result};
use crate::prior::PriorPass;
use hyperprior_math::batch::Batch;
use hyperprior_math::linalg;
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::{add_scaled, dot};
use rand_distr::{Distribution, StandardNormal};

/// Any prior under `switches_len` binary switches; θ is the inner prior's, then the switches' logits, then each shift.
///
/// ```
/// use hyperprior::prior::{Delta, Prior, FactorialMixture};
/// let prior = FactorialMixture::new(Delta { lambda_len: 4 }, 2)?;
/// assert_eq!((prior.switches_len(), prior.parameters_len()), (2, 4 + 2 + 2 * 4));
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct FactorialMixture {
    inner: Box<dyn Prior>,
    switches_len: usize,
}

impl FactorialMixture {
    /// Puts switches above a prior.
    ///
    /// # Errors
    /// [`Error::BadPart`] if the prior already has switches.
    pub fn new(inner: impl Prior + 'static, switches_len: usize) -> Result<Self> {
        Self::over(Box::new(inner), switches_len)
    }

    /// Puts switches above a prior chosen at run time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn over(inner: Box<dyn Prior>, switches_len: usize) -> Result<Self> {
        if inner.switches_len() > 0 {
            let reason = "the inner prior already has switches; use more of those instead".to_owned();
            return Err(Error::BadPart { part: "a factorial mixture".to_owned(), reason });
        }
        Ok(Self { inner, switches_len })
    }

    fn logits(&self) -> std::ops::Range<usize> {
        let first = self.inner.parameters_len();
        first..first + self.switches_len
    }

    fn shift(&self, m: usize) -> std::ops::Range<usize> {
        let first = self.logits().end + m * self.lambda_len();
        first..first + self.lambda_len()
    }

    fn inner_theta<'a>(&self, theta: &'a [f64]) -> &'a [f64] {
        &theta[..self.inner.parameters_len()]
    }

    /// The inner prior's noise.
    fn normals(&self, eps: &Batch, scratch: &mut Scratch) -> Batch {
        let mut normals = scratch.take_batch(self.noise_len(), eps.draws_len());
        normals.as_mut_slice().copy_from_slice(eps.columns(0..self.noise_len()));
        normals
    }
}

impl Prior for FactorialMixture {
    fn name(&self) -> String {
        format!("factorial mixture ({} switches) over {}", self.switches_len, self.inner.name())
    }

    fn lambda_len(&self) -> usize {
        self.inner.lambda_len()
    }

    fn noise_len(&self) -> usize {
        self.inner.noise_len()
    }

    fn switches_len(&self) -> usize {
        self.switches_len
    }

    fn switch_logits(&self, theta: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&theta[self.logits()]);
    }

    fn switch_logits_pullback(&self, d_logits: &[f64], d_theta: &mut [f64]) {
        add_scaled(1.0, d_logits, &mut d_theta[self.logits()]);
    }

    fn parameters_len(&self) -> usize {
        self.inner.parameters_len() + self.switches_len * (1 + self.lambda_len())
    }

    fn components_len(&self) -> usize {
        self.inner.components_len()
    }

    fn log_weights(&self, theta: &[f64], out: &mut [f64]) {
        self.inner.log_weights(self.inner_theta(theta), out);
    }

    fn weights_pullback(&self, theta: &[f64], values: &[f64], d_theta: &mut [f64]) {
        self.inner.weights_pullback(self.inner_theta(theta), values, &mut d_theta[..self.inner.parameters_len()]);
    }

    fn log_weights_pullback(&self, theta: &[f64], counts: &[f64], d_theta: &mut [f64]) {
        self.inner.log_weights_pullback(self.inner_theta(theta), counts, &mut d_theta[..self.inner.parameters_len()]);
    }

    fn has_density(&self) -> bool {
        // It would be a sum over 2^M.
        false
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, component: k, eps, .. } = pass;
        let normals = self.normals(eps, scratch);
        self.inner.transform(
            PriorPass { theta: self.inner_theta(theta), component: k, eps: &normals, density: Density::Unneeded },
            lambda,
            log_q,
            scratch,
        );
        scratch.give_batch(normals);
        for m in 0..self.switches_len {
            let switch = eps.column(self.noise_len() + m);
            for (i, shift) in theta[self.shift(m)].iter().enumerate() {
                add_scaled(*shift, switch, lambda.column_mut(i));
            }
        }
    }

    fn pullback(
        &self,
        pass: PriorPass,
        lambda: &Batch,
        d_lambda: &Batch,
        d_log_q: &[f64],
        d_theta: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let PriorPass { theta, component: k, eps, .. } = pass;
        for m in 0..self.switches_len {
            let switch = eps.column(self.noise_len() + m);
            for (i, d) in d_theta[self.shift(m)].iter_mut().enumerate() {
                *d += dot(switch, d_lambda.column(i));
            }
        }
        // The inner prior's λ is λ minus the shifts.
        let mut unshifted = scratch.take_batch(self.lambda_len(), eps.draws_len());
        unshifted.copy_from(lambda);
        for m in 0..self.switches_len {
            let switch = eps.column(self.noise_len() + m);
            for (i, shift) in theta[self.shift(m)].iter().enumerate() {
                add_scaled(-*shift, switch, unshifted.column_mut(i));
            }
        }
        let normals = self.normals(eps, scratch);
        let d_inner = &mut d_theta[..self.inner.parameters_len()];
        let (theta, density) = (self.inner_theta(theta), Density::Unneeded);
        self.inner.pullback(
            PriorPass { theta, component: k, eps: &normals, density },
            &unshifted,
            d_lambda,
            d_log_q,
            d_inner,
            scratch,
        );
        scratch.give_batch(normals);
        scratch.give_batch(unshifted);
    }

    fn log_density(&self, _theta: &[f64], _lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        out.fill(f64::NAN);
    }

    /// The shifts lie along the directions in which the start is widest, so that the switches first split it there.
    fn initialize(&self, start: &Start, rng: &mut Stream, theta: &mut [f64]) {
        let n = self.lambda_len();
        let covariance = start.covariances.first().and_then(Option::as_ref);
        let directions = covariance.and_then(|c| linalg::principal_directions(c, n, self.switches_len));
        let mut centre = start.clone();
        for m in 0..self.switches_len {
            let shift = self.shift(m);
            match directions.as_ref().and_then(|d| d.get(m)) {
                // Two points, one standard deviation on either side of the centre, have the start's variance.
                Some(direction) => theta[shift.clone()].iter_mut().zip(direction).for_each(|(t, d)| *t = 2.0 * d),
                None => theta[shift.clone()].iter_mut().zip(&start.scales[0]).for_each(|(t, scale)| {
                    let normal: f64 = StandardNormal.sample(rng);
                    *t = 2.0 * scale * normal;
                }),
            }
            for location in &mut centre.locations {
                add_scaled(-0.5, &theta[shift.clone()], location);
            }
        }
        theta[self.logits()].fill(0.0);
        let inner = self.inner.parameters_len();
        self.inner.initialize(&centre, rng, &mut theta[..inner]);
    }
}
