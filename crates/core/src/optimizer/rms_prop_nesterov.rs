//! The paper's optimiser: RMSProp steps with Nesterov momentum.
//!
//! m ← .9 m + .1 g²; s = size · g / (√m + 1e-8); v ← .9 v + s; x ← x + .9 v + s.

use super::Optimizer;

/// RMSProp with Nesterov momentum.
///
/// ```
/// use hyperprior::optimizer::{Optimizer, RmsPropNesterov};
/// let (mut x, mut optimizer) = ([1.0], RmsPropNesterov::new(1));
/// optimizer.ascend(&mut x, &[-1.0], 1e-3);
/// assert!((x[0] - 0.993991673).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct RmsPropNesterov {
    square: Vec<f64>,
    velocity: Vec<f64>,
}

impl RmsPropNesterov {
    const DECAY: f64 = 0.9;
    const MOMENTUM: f64 = 0.9;
    const FLOOR: f64 = 1e-8;

    /// For `len` parameters.
    pub fn new(len: usize) -> Self {
        Self { square: vec![0.0; len], velocity: vec![0.0; len] }
    }
}

impl Optimizer for RmsPropNesterov {
    fn ascend(&mut self, x: &mut [f64], gradient: &[f64], size: f64) {
        for (((x, g), square), velocity) in x.iter_mut().zip(gradient).zip(&mut self.square).zip(&mut self.velocity) {
            *square = Self::DECAY * *square + (1.0 - Self::DECAY) * g * g;
            let step = size * g / (square.sqrt() + Self::FLOOR);
            *velocity = Self::MOMENTUM * *velocity + step;
            *x += Self::MOMENTUM * *velocity + step;
        }
    }

    fn memory(&self) -> Vec<f64> {
        self.square.iter().chain(&self.velocity).copied().collect()
    }

    fn recall(&mut self, memory: &[f64]) -> bool {
        let n = self.square.len();
        if memory.len() != 2 * n {
            return false;
        }
        self.square.copy_from_slice(&memory[..n]);
        self.velocity.copy_from_slice(&memory[n..]);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_steps_up_a_parabola_are_the_papers() {
        let (mut x, mut optimizer) = ([1.0], RmsPropNesterov::new(1));
        for expected in [0.993_991_673, 0.987_083_794, 0.979_298_408] {
            let gradient = [-x[0]];
            optimizer.ascend(&mut x, &gradient, 1e-3);
            assert!((x[0] - expected).abs() < 1e-9, "{} against {expected}", x[0]);
        }
    }
}
