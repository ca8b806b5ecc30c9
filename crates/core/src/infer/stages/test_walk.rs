//! Models for tests. A random walk of log rates with an unknown precision and a count at each time: latents that are coupled in a chain,
//! and all with one. Effects on the logit of a probability with an unknown mean: latents that are coupled with that one only.

use crate::error::Result;
use crate::model::{Gradient, Latents, Model, Support};
use hyperprior_math::batch::Batch;

#[derive(Debug)]
pub(super) struct Walk {
    latents: Latents,
    counts: Vec<f64>,
    pairs: Vec<[u32; 2]>,
}

impl Walk {
    /// With this many times.
    pub(super) fn new(len: usize) -> Self {
        let latents = Latents::new().vector("z", len + 1, Support::Real).expect("a vector");
        let counts = (0..len).map(|t| f64::from((t * 7 % 5) as u32)).collect();
        let pairs = (1..=len as u32).flat_map(|t| [[0, t], [t, (t + 1).min(len as u32)]]).collect();
        Self { latents, counts, pairs }
    }
}

impl Model for Walk {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        let mut d_z = Batch::zeros(z.columns_len(), z.draws_len());
        self.log_joint_gradient(z, out, &mut d_z)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        Some(&self.pairs)
    }
}

impl Gradient for Walk {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let (log_precision, mut total) = (z.get(0, s), 0.0);
            let mut d = vec![0.0; z.columns_len()];
            total -= 0.5 * (log_precision - 3.0).powi(2);
            d[0] -= log_precision - 3.0;
            for (t, count) in self.counts.iter().enumerate() {
                let x = z.get(t + 1, s);
                total += count * x - x.exp();
                d[t + 1] += count - x.exp();
                let (precision, before) = if t == 0 { (1.0, 0.0) } else { (log_precision.exp(), z.get(t, s)) };
                total -= 0.5 * precision * (x - before).powi(2);
                d[t + 1] -= precision * (x - before);
                if t > 0 {
                    total += 0.5 * log_precision;
                    d[0] += 0.5 - 0.5 * precision * (x - before).powi(2);
                    d[t] += precision * (x - before);
                }
            }
            *out = total;
            d.iter().enumerate().for_each(|(i, d)| d_z.set(i, s, *d));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Effects {
    latents: Latents,
    pairs: Vec<[u32; 2]>,
}

impl Effects {
    /// With this many effects: the first has 0 successes in 4 trials, the next 1, and so on.
    pub(super) fn new(len: usize) -> Self {
        let latents = Latents::new().vector("z", len + 1, Support::Real).expect("a vector");
        Self { latents, pairs: (1..=len as u32).map(|j| [0, j]).collect() }
    }
}

impl Model for Effects {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        let mut d_z = Batch::zeros(z.columns_len(), z.draws_len());
        self.log_joint_gradient(z, out, &mut d_z)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn coupled(&self) -> Option<&[[u32; 2]]> {
        Some(&self.pairs)
    }
}

impl Gradient for Effects {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let mean = z.get(0, s);
            *out = -0.5 * mean * mean;
            let mut d_mean = -mean;
            for j in 1..z.columns_len() {
                let (x, successes) = (z.get(j, s), f64::from((j as u32 - 1) % 5));
                *out += -0.5 * (x - mean).powi(2) + successes * x - 4.0 * x.exp().ln_1p();
                d_mean += x - mean;
                d_z.set(j, s, mean - x + successes - 4.0 / (1.0 + (-x).exp()));
            }
            d_z.set(0, s, d_mean);
        }
        Ok(())
    }
}
