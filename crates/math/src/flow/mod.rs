//! Normalizing flows: invertible maps of a batch, with their log-determinants and pullbacks.

mod coupling;
mod planar;

pub use coupling::{Bend, Coupling};
pub use planar::Planar;

use crate::batch::Batch;
use crate::random::Stream;
use crate::scratch::Scratch;

/// An invertible map of several numbers; the caller passes its parameters.
pub trait Flow: std::fmt::Debug + Send + Sync {
    /// A short name with its sizes, such as `planar flow of 2`.
    fn name(&self) -> String;

    /// How many numbers are transformed.
    fn numbers_len(&self) -> usize;

    /// How many parameters there are.
    fn parameters_len(&self) -> usize;

    /// Writes parameters of the identity map that a fit can leave.
    fn identity(&self, rng: &mut Stream, parameters: &mut [f64]);

    /// x ← the map applied to x; log_det\[s\] += log|det| of its Jacobian there.
    fn forward(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], scratch: &mut Scratch);

    /// Pulls back the cotangents of the output and of the log-determinant: `d_x` holds that of the output and becomes that of
    /// the input; adds to `d_parameters`. `x` holds the input; it is overwritten during the call and restored afterwards.
    fn pullback(
        &self,
        parameters: &[f64],
        x: &mut Batch,
        d_x: &mut Batch,
        d_log_det: &[f64],
        d_parameters: &mut [f64],
        scratch: &mut Scratch,
    );

    /// Inverts the map: `x` holds the output and becomes the input; log_det\[s\] += log|det| of the map there.
    fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], scratch: &mut Scratch);
}

/// Keeps no activations: the pullback runs the map again.
impl Flow for Planar {
    fn name(&self) -> String {
        format!("planar flow of {}", self.layers_len)
    }

    fn numbers_len(&self) -> usize {
        self.len
    }

    fn parameters_len(&self) -> usize {
        self.parameters_len()
    }

    fn identity(&self, rng: &mut Stream, parameters: &mut [f64]) {
        self.identity(1.0, rng, parameters);
    }

    fn forward(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], scratch: &mut Scratch) {
        let mut tanh = scratch.take(self.layers_len * x.draws_len());
        self.forward(parameters, x, log_det, &mut tanh);
        scratch.give(tanh);
    }

    fn pullback(
        &self,
        parameters: &[f64],
        x: &mut Batch,
        d_x: &mut Batch,
        d_log_det: &[f64],
        d_parameters: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let mut tanh = scratch.take(self.layers_len * x.draws_len());
        let mut log_det = scratch.take(x.draws_len());
        self.forward(parameters, x, &mut log_det, &mut tanh);
        self.pullback(parameters, x, d_x, d_log_det, &tanh, d_parameters, scratch);
        scratch.give(log_det);
        scratch.give(tanh);
    }

    fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], _scratch: &mut Scratch) {
        self.invert(parameters, x, log_det);
    }
}
