//! Independent runs with the same number of particles: means, and how far they are from each other.

use crate::diagnostics::convergence::moments;
use crate::objective::Estimate;
use hyperprior_math::special::log_sum_exp;

/// The shares at which tails begin.
const TAILS: [f64; 2] = [0.05, 0.95];

/// Independent runs, weighted by their normalising constants.
pub(super) struct Islands {
    weights: Vec<f64>,
    each: usize,
}

impl Islands {
    pub(super) fn new(log_z: &[f64], each: usize) -> Self {
        let total = log_sum_exp(log_z);
        Self { weights: log_z.iter().map(|z| (z - total).exp()).collect(), each }
    }

    /// The sum of the squared weights.
    pub(super) fn squares(&self) -> f64 {
        self.weights.iter().map(|w| w * w).sum()
    }

    /// The log weight of every particle; they sum to 1.
    pub(super) fn log_weights(&self) -> Vec<f64> {
        let of = |weight: &f64| std::iter::repeat_n((weight / self.each as f64).ln(), self.each);
        self.weights.iter().flat_map(of).collect()
    }

    /// The mean of the normalising constants, which is unbiased, with the standard error of its logarithm.
    pub(super) fn log_evidence(&self, log_z: &[f64]) -> Estimate {
        let len = self.weights.len() as f64;
        let squares: f64 = self.weights.iter().map(|w| (len * w - 1.0).powi(2)).sum();
        let standard_error = (squares / (len * (len - 1.0))).sqrt();
        Estimate { value: log_sum_exp(log_z) - len.ln(), standard_error }
    }

    /// The effective sample sizes of a quantity's mean and of the shares of its tails, the less of the two: the variance over the particles
    /// divided by the squared standard error of the mean over the islands.
    pub(super) fn ess(&self, column: &[f64]) -> [f64; 2] {
        let weight = |s: &usize| self.weights[s / self.each] / self.each as f64;
        let mut order: Vec<usize> = (0..column.len()).collect();
        order.sort_by(|a, b| column[*a].total_cmp(&column[*b]));
        let tail = |share: f64| {
            let mut reached = 0.0;
            let end = order.iter().find(|s| {
                reached += weight(s);
                reached >= share
            });
            let end = end.map_or(f64::INFINITY, |s| column[*s]);
            self.ess_of(column, &|x| f64::from(u8::from(x <= end)))
        };
        [self.ess_of(column, &|x| x), TAILS.map(tail).into_iter().fold(f64::INFINITY, f64::min)]
    }

    fn ess_of(&self, column: &[f64], f: &dyn Fn(f64) -> f64) -> f64 {
        let (means, squares): (Vec<f64>, Vec<f64>) = (column.chunks(self.each))
            .map(|own| {
                let (sum, squares) = own.iter().fold((0.0, 0.0), |(a, b), x| (a + f(*x), b + f(*x) * f(*x)));
                (sum / own.len() as f64, squares / own.len() as f64)
            })
            .unzip();
        let weighted = |x: &[f64]| self.weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        let (mean, squares) = (weighted(&means), weighted(&squares));
        let len = self.weights.len() as f64;
        let error: f64 = self.weights.iter().zip(&means).map(|(w, m)| (w * (m - mean)).powi(2)).sum();
        // If one island has nearly all the weight, its mean is nearly that of all, and the differences of the others count.
        let error = (error * len / (len - 1.0)).max(self.squares() * moments(&means).1);
        let (variance, most) = (squares - mean * mean, self.each as f64 / self.squares());
        // A share of 0 or 1 is known.
        if error > 0.0 && variance > 1e-12 * squares { (variance / error).min(most) } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    fn normals(len: usize, seed: u64) -> Vec<f64> {
        (0..len).map(|s| StandardNormal.sample(&mut stream(seed, 0, 0, s as u64))).collect()
    }

    /// Catches an effective sample size that grows as one island takes all the weight.
    #[test]
    fn one_island_knows_no_more_than_its_particles() {
        let column = normals(16 * 100, 1);
        for lead in [0.0, 1.0, 3.0, 10.0, 100.0] {
            let log_z: Vec<f64> = (0..16).map(|k| if k == 0 { lead } else { 0.0 }).collect();
            let islands = Islands::new(&log_z, 100);
            let most = 100.0 / islands.squares();
            assert!(islands.ess(&column).iter().all(|ess| *ess <= most + 1e-9), "{lead}");
        }
    }

    /// Independent particles count once each, and islands that differ count for as much as their differences say.
    #[test]
    fn the_effective_sample_size_is_that_of_the_means() {
        let column = normals(64 * 100, 2);
        let islands = Islands::new(&[0.0; 64], 100);
        let [bulk, tail] = islands.ess(&column);
        assert!((0.6..=1.0).contains(&(bulk / 6400.0)) && (0.5..=1.0).contains(&(tail / 6400.0)), "{bulk} {tail}");
        let shifts = normals(64, 3);
        let apart: Vec<f64> = column.iter().enumerate().map(|(s, x)| x + shifts[s / 100]).collect();
        // A variance of 2, and a squared standard error of 1/64.
        let [bulk, _] = islands.ess(&apart);
        assert!((90.0..190.0).contains(&bulk), "{bulk}");
    }
}
