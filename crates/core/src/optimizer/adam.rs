//! Adam: steps scaled by running means of the gradient and of its square, both corrected for their start at zero.

use super::Optimizer;

/// Adam with decays .9 and .999 (Kingma and Ba 2015).
///
/// ```
/// use hyperprior::optimizer::{Adam, Optimizer};
/// let (mut x, mut adam) = ([1.0], Adam::new(1));
/// adam.ascend(&mut x, &[-1.0], 0.1);
/// assert!((x[0] - 0.9).abs() < 1e-8); // the first step has the given size
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    steps: i32,
}

impl Adam {
    const MEAN_DECAY: f64 = 0.9;
    const SQUARE_DECAY: f64 = 0.999;
    const FLOOR: f64 = 1e-8;

    /// For `len` parameters.
    pub fn new(len: usize) -> Self {
        Self { mean: vec![0.0; len], square: vec![0.0; len], steps: 0 }
    }
}

impl Optimizer for Adam {
    fn ascend(&mut self, x: &mut [f64], gradient: &[f64], size: f64) {
        self.steps = self.steps.saturating_add(1);
        let mean_start = 1.0 - Self::MEAN_DECAY.powi(self.steps);
        let square_start = 1.0 - Self::SQUARE_DECAY.powi(self.steps);
        for (((x, g), mean), square) in x.iter_mut().zip(gradient).zip(&mut self.mean).zip(&mut self.square) {
            *mean = Self::MEAN_DECAY * *mean + (1.0 - Self::MEAN_DECAY) * g;
            *square = Self::SQUARE_DECAY * *square + (1.0 - Self::SQUARE_DECAY) * g * g;
            *x += size * (*mean / mean_start) / ((*square / square_start).sqrt() + Self::FLOOR);
        }
    }

    fn memory(&self) -> Vec<f64> {
        let steps = std::iter::once(f64::from(self.steps));
        steps.chain(self.mean.iter().copied()).chain(self.square.iter().copied()).collect()
    }

    fn recall(&mut self, memory: &[f64]) -> bool {
        let n = self.mean.len();
        if memory.len() != 1 + 2 * n {
            return false;
        }
        self.steps = memory[0] as i32;
        self.mean.copy_from_slice(&memory[1..=n]);
        self.square.copy_from_slice(&memory[1 + n..]);
        true
    }
}
