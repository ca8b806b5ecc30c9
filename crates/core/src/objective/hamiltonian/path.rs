//! The steps between q and p, forwards from noise or backwards from draws of the posterior.

use super::target::{Memory, Target};
use crate::error::Result;
use crate::prior::log_standard_normal;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, standard_normals};
use hyperprior_math::special::sigmoid;

/// ψ on its natural scale.
pub(crate) struct Steps {
    /// δ.
    pub(crate) size: f64,
    /// η, the share of the momentum that is kept.
    pub(crate) kept: f64,
    /// The differences between temperatures, which add up to one.
    pub(crate) rises: Vec<f64>,
}

impl Steps {
    pub(crate) fn new(psi: &[f64]) -> Self {
        let logits = &psi[2..];
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().map(|logit| (logit - top).exp()).sum();
        let rises = logits.iter().map(|logit| (logit - top).exp() / total).collect();
        Self { size: psi[0].exp(), kept: sigmoid(psi[1]), rises }
    }

    /// K.
    pub(crate) fn temperatures(&self) -> usize {
        self.rises.len()
    }

    /// t_k of step k, from 1 to K − 1.
    pub(crate) fn temperature(&self, k: usize) -> f64 {
        self.rises[..k].iter().sum()
    }
}

/// A block of paths. Node k is the state after step k; node 0 is the draw of q.
#[derive(Default)]
pub(crate) struct Path {
    /// ε, ∇g and ρ at every node.
    pub(crate) eps: Vec<Batch>,
    pub(crate) gradient: Vec<Batch>,
    pub(crate) momentum: Vec<Batch>,
    /// The normals ξ of step k, the refreshed momentum ρ′, and the momentum half way through the step; those of node 0 are empty.
    pub(crate) fresh: Vec<Batch>,
    pub(crate) refreshed: Vec<Batch>,
    pub(crate) half: Vec<Batch>,
    pub(crate) log_w: Vec<f64>,
    memory: Memory,
}

/// The push along one coordinate in s^(1−t) e^(t g).
pub(crate) fn push(t: f64, eps: f64, gradient: f64) -> f64 {
    t * gradient - (1.0 - t) * eps
}

impl Path {
    /// Draws the noise and takes all steps: forwards, or from `end` backwards.
    pub(crate) fn run(
        &mut self,
        target: &Target,
        steps: Steps,
        end: Option<&Batch>,
        streams: &mut [Stream],
    ) -> Result<()> {
        let (len, n) = (streams.len(), target.noise_len());
        let mut normals = || {
            let mut batch = Batch::zeros(n, len);
            standard_normals(streams, &mut batch);
            batch
        };
        let nodes = steps.temperatures();
        let start = end.cloned().unwrap_or_else(&mut normals);
        let momentum = normals();
        let fresh: Vec<Batch> = (1..nodes).map(|_| normals()).collect();
        match end {
            None => self.forward(target, &steps, start, momentum, fresh),
            Some(_) => self.backward(target, &steps, start, momentum, fresh),
        }
    }

    /// The path from this noise, momentum and fresh momentum of every step.
    pub(crate) fn forward(
        &mut self,
        target: &Target,
        steps: &Steps,
        start: Batch,
        momentum: Batch,
        fresh: Vec<Batch>,
    ) -> Result<()> {
        let (n, len) = (start.columns_len(), start.draws_len());
        let (mut log_s, mut log_g, mut d) = (vec![0.0; len], vec![0.0; len], Batch::default());
        log_standard_normal(&start, 0..n, &mut log_s);
        target.evaluate(&start, &mut log_g, &mut d, &mut self.memory)?;
        self.log_w = log_s.iter().map(|log_s| -log_s).collect();
        (self.eps, self.gradient, self.momentum) = (vec![start], vec![d], vec![momentum]);
        self.fresh = [vec![Batch::default()], fresh].concat();
        (self.refreshed, self.half) = (vec![Batch::default()], vec![Batch::default()]);
        let other = (1.0 - steps.kept * steps.kept).sqrt();
        for k in 1..steps.temperatures() {
            let t = steps.temperature(k);
            let mut refreshed = Batch::zeros(n, len);
            combine(&mut refreshed, (steps.kept, &self.momentum[k - 1]), (other, &self.fresh[k]));
            let (eps, gradient, momentum, half) = leap(
                target,
                (t, steps.size),
                (&self.eps[k - 1], &self.gradient[k - 1]),
                &refreshed,
                (&mut log_g, &mut self.memory),
            )?;
            self.add_energies(&refreshed, &momentum);
            self.eps.push(eps);
            self.gradient.push(gradient);
            self.momentum.push(momentum);
            self.half.push(half);
            self.refreshed.push(refreshed);
        }
        self.log_w.iter_mut().zip(&log_g).for_each(|(log_w, log_g)| *log_w += log_g);
        Ok(())
    }

    /// The reversed steps from draws of the posterior in the noise. Only the log weights are kept.
    fn backward(
        &mut self,
        target: &Target,
        steps: &Steps,
        mut eps: Batch,
        mut momentum: Batch,
        fresh: Vec<Batch>,
    ) -> Result<()> {
        let (n, len) = (eps.columns_len(), eps.draws_len());
        let (mut log_g, mut gradient) = (vec![0.0; len], Batch::default());
        target.evaluate(&eps, &mut log_g, &mut gradient, &mut self.memory)?;
        self.log_w = log_g.clone();
        let other = (1.0 - steps.kept * steps.kept).sqrt();
        for (k, fresh) in (1..steps.temperatures()).zip(&fresh).rev() {
            let t = steps.temperature(k);
            // A leapfrog step with the momentum turned round goes back.
            let turned = negative(&momentum);
            let before;
            (eps, gradient, before, _) =
                leap(target, (t, steps.size), (&eps, &gradient), &turned, (&mut log_g, &mut self.memory))?;
            let refreshed = negative(&before);
            self.add_energies(&refreshed, &momentum);
            let mut earlier = Batch::zeros(n, len);
            combine(&mut earlier, (steps.kept, &refreshed), (other, fresh));
            momentum = earlier;
        }
        let mut log_s = vec![0.0; len];
        log_standard_normal(&eps, 0..n, &mut log_s);
        self.log_w.iter_mut().zip(&log_s).for_each(|(log_w, log_s)| *log_w -= log_s);
        Ok(())
    }

    /// log w += log N(ρ; 0, I) − log N(ρ′; 0, I).
    fn add_energies(&mut self, refreshed: &Batch, momentum: &Batch) {
        for i in 0..refreshed.columns_len() {
            for ((log_w, before), after) in self.log_w.iter_mut().zip(refreshed.column(i)).zip(momentum.column(i)) {
                *log_w += 0.5 * (before * before - after * after);
            }
        }
    }
}

fn combine(out: &mut Batch, (a, x): (f64, &Batch), (b, y): (f64, &Batch)) {
    let of = x.as_slice().iter().zip(y.as_slice());
    out.as_mut_slice().iter_mut().zip(of).for_each(|(out, (x, y))| *out = a * x + b * y);
}

fn negative(batch: &Batch) -> Batch {
    let mut out = batch.clone();
    out.as_mut_slice().iter_mut().for_each(|x| *x = -*x);
    out
}

/// One leapfrog step: ε, ∇g, the momentum and the momentum half way.
fn leap(
    target: &Target,
    (t, size): (f64, f64),
    (eps, gradient): (&Batch, &Batch),
    momentum: &Batch,
    (log_g, memory): (&mut [f64], &mut Memory),
) -> Result<(Batch, Batch, Batch, Batch)> {
    let kick = |momentum: &mut Batch, eps: &Batch, gradient: &Batch| {
        let at = momentum.as_mut_slice().iter_mut().zip(eps.as_slice()).zip(gradient.as_slice());
        at.for_each(|((rho, eps), d)| *rho += 0.5 * size * push(t, *eps, *d));
    };
    let (mut half, mut to, mut d) = (momentum.clone(), eps.clone(), Batch::default());
    kick(&mut half, eps, gradient);
    to.as_mut_slice().iter_mut().zip(half.as_slice()).for_each(|(eps, rho)| *eps += size * rho);
    target.evaluate(&to, log_g, &mut d, memory)?;
    let mut after = half.clone();
    kick(&mut after, &to, &d);
    Ok((to, d, after, half))
}
