//! The weights from the lowest layer to the words.

use super::posterior::WeightPosterior;
use crate::kernel::words::{Seen, geometric, tempered};
use hyperprior_math::single::{LANES, Lanes, lanes_len};
use hyperprior_math::special::{digamma, ln_gamma};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The prior of the words' weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermPrior {
    /// The shape: below 1, a few terms have nearly all of a latent's weight.
    pub shape: f32,
    /// The rate.
    pub rate: f32,
}

impl Default for TermPrior {
    fn default() -> Self {
        Self { shape: 0.1, rate: 0.3 }
    }
}

/// q(W) and q(b).
#[derive(Clone, Debug)]
pub struct TermWeights {
    posterior: WeightPosterior,
    prior: TermPrior,
    width: usize,
    /// A, a row of lanes for each term; lanes without a latent hold the prior's shape.
    shape: Vec<Lanes>,
    /// B.
    rate: Vec<Lanes>,
    /// The weights inside the logarithms of rates, exp E ln W by the end of training; and Σ_v E W_vk.
    geometric: Vec<Lanes>,
    sums: Vec<Lanes>,
    /// b, which is fixed: if it were learnt, it would take the words away from the latents.
    background: Vec<f32>,
    background_sum: f64,
    /// How far `geometric` has moved from E W (0), which gives every term a chance, to exp E ln W (1).
    sharpness: f32,
}

/// Rows that one thread processes at a time.
pub(crate) const ROWS: usize = 128;

impl TermWeights {
    /// Weights with the given means, as certain as an activity of `activity` makes them.
    pub(crate) fn new(
        posterior: WeightPosterior,
        prior: TermPrior,
        width: usize,
        means: &dyn Fn(usize, usize) -> f32,
        background: &[f32],
        activity: f32,
    ) -> Self {
        let n = lanes_len(width);
        let rate = prior.rate + activity;
        let mut shape = vec![Lanes([prior.shape; LANES]); background.len() * n];
        for v in 0..background.len() {
            for k in 0..width {
                shape[v * n + k / LANES].0[k % LANES] = (means(v, k) * rate).max(prior.shape);
            }
        }
        let mut weights = Self {
            posterior,
            prior,
            width,
            geometric: vec![Lanes::default(); shape.len()],
            shape,
            rate: vec![Lanes([rate; LANES]); n],
            sums: vec![Lanes::default(); n],
            background: background.to_vec(),
            background_sum: background.iter().map(|b| f64::from(*b)).sum(),
            sharpness: 0.0,
        };
        weights.refresh();
        weights
    }

    /// The number of terms.
    pub fn terms_len(&self) -> usize {
        self.background.len()
    }

    /// The number of latents in the lowest layer.
    pub fn width(&self) -> usize {
        self.width
    }

    /// E W_vk.
    pub fn mean(&self, term: usize, k: usize) -> f32 {
        let (tile, lane) = (k / LANES, k % LANES);
        self.shape[term * self.rate.len() + tile].0[lane] / self.rate[tile].0[lane]
    }

    /// b_v.
    pub fn background(&self, term: usize) -> f32 {
        self.background[term]
    }

    /// Σ_v b_v.
    pub fn background_sum(&self) -> f64 {
        self.background_sum
    }

    /// Σ_v E W_vk.
    pub fn sum(&self, k: usize) -> f32 {
        self.sums[k / LANES].0[k % LANES]
    }

    /// W_vk as it enters the logarithms of rates: exp E ln W_vk by the end of training.
    pub fn seen_weight(&self, term: usize, k: usize) -> f32 {
        self.geometric[term * self.rate.len() + k / LANES].0[k % LANES]
    }

    pub(crate) fn seen(&self) -> Seen<'_> {
        Seen { weights: &self.geometric, background: &self.background, sums: &self.sums }
    }

    /// E W of one term, in lanes.
    pub(crate) fn mean_row(&self, term: usize, out: &mut [Lanes]) {
        let n = self.rate.len();
        for (j, out) in out.iter_mut().enumerate() {
            for lane in 0..LANES {
                out.0[lane] = self.shape[term * n + j].0[lane] / self.rate[j].0[lane];
            }
            clear_padding(self.width, j, out);
        }
    }

    /// Moves the statistics by a share `step` towards those of the last minibatch: `statistic(v, row)` adds what the latents
    /// explain of term v in the whole corpus, before multiplication by W, and `activity` is the latents' activity in it.
    pub(crate) fn update(
        &mut self,
        step: f32,
        sharpness: f32,
        statistic: &(dyn Fn(usize, &mut [Lanes]) + Sync),
        activity: &[Lanes],
    ) {
        let (n, prior) = (self.rate.len(), self.prior);
        let seen = &self.geometric;
        self.shape.par_chunks_mut(ROWS * n).enumerate().for_each(|(chunk, rows)| {
            let mut explained = vec![Lanes::default(); n];
            for (r, row) in rows.chunks_exact_mut(n).enumerate() {
                let v = chunk * ROWS + r;
                explained.fill(Lanes::default());
                statistic(v, &mut explained);
                for j in 0..n {
                    let (seen, explained) = (&seen[v * n + j].0, &explained[j].0);
                    for (lane, own) in row[j].0.iter_mut().enumerate() {
                        let goal = prior.shape + explained[lane] * seen[lane];
                        *own += step * (goal - *own);
                    }
                }
            }
        });
        for (rate, activity) in self.rate.iter_mut().zip(activity) {
            for (rate, activity) in rate.0.iter_mut().zip(activity.0) {
                *rate += step * (prior.rate + activity - *rate);
            }
        }
        self.sharpness = sharpness;
        self.refresh();
    }

    /// Roughly how many words of the corpus a latent explains: Σ_v E W_vk times its activity in all documents.
    pub(crate) fn explained(&self, k: usize) -> f64 {
        let activity = self.rate[k / LANES].0[k % LANES] - self.prior.rate;
        f64::from(activity) * f64::from(self.sum(k))
    }

    /// The prior, and the form of the posterior.
    #[cfg(feature = "cuda")]
    pub(crate) fn prior(&self) -> (TermPrior, WeightPosterior) {
        (self.prior, self.posterior)
    }

    pub(crate) fn sharpness(&self) -> f32 {
        self.sharpness
    }

    pub(crate) fn arrays(&self) -> [&[Lanes]; 2] {
        [&self.shape, &self.rate]
    }

    pub(crate) fn arrays_mut(&mut self) -> [&mut [Lanes]; 2] {
        [&mut self.shape, &mut self.rate]
    }

    /// Recomputes the rest after the statistics were overwritten.
    pub(crate) fn restore(&mut self, sharpness: f32) {
        self.sharpness = sharpness;
        self.refresh();
    }

    /// Computes the weights that documents use.
    fn refresh(&mut self) {
        let n = self.rate.len();
        let (rate, width, posterior, sharpness) = (&self.rate, self.width, self.posterior, self.sharpness);
        let chunks = self.geometric.par_chunks_mut(ROWS * n).zip(self.shape.par_chunks(ROWS * n));
        let partial: Vec<Vec<[f64; LANES]>> = chunks
            .map(|(out, shape)| {
                match posterior {
                    WeightPosterior::Gamma => geometric(shape, rate, out),
                    // The best log-normal given A and B has variance 1/A and mean A/B.
                    WeightPosterior::LogNormal | WeightPosterior::Point => {
                        let is_point = posterior == WeightPosterior::Point;
                        for (i, (out, a)) in out.iter_mut().zip(shape).enumerate() {
                            for lane in 0..LANES {
                                let a = a.0[lane];
                                let less = if is_point { 1.0 } else { (-0.5 / a).exp() };
                                out.0[lane] = a / rate[i % n].0[lane] * less;
                            }
                        }
                    }
                }
                let mut sums = vec![[0.0; LANES]; n];
                for row in shape.chunks_exact(n) {
                    for (sum, a) in sums.iter_mut().zip(row) {
                        for lane in 0..LANES {
                            sum[lane] += f64::from(a.0[lane]);
                        }
                    }
                }
                if sharpness < 1.0 && posterior != WeightPosterior::Point {
                    tempered(shape, rate, sharpness, out);
                }
                out.iter_mut().enumerate().for_each(|(i, out)| clear_padding(width, i % n, out));
                sums
            })
            .collect();
        for j in 0..n {
            for lane in 0..LANES {
                let sum: f64 = partial.iter().map(|sums| sums[j][lane]).sum();
                self.sums[j].0[lane] = (sum / f64::from(self.rate[j].0[lane])) as f32;
            }
            clear_padding(self.width, j, &mut self.sums[j]);
        }
    }

    /// E ln p(W) − E ln q(W); for a point estimate ln p(ln W), which is not a bound.
    pub fn value(&self) -> f64 {
        let (c, r) = (f64::from(self.prior.shape), f64::from(self.prior.rate));
        let of_prior = c * r.ln() - ln_gamma(c);
        let one = |a: f64, b: f64| {
            let mean = a / b;
            match self.posterior {
                WeightPosterior::Gamma => {
                    let psi = digamma(a);
                    let log_mean = psi - b.ln();
                    of_prior + (c - 1.0) * log_mean - r * mean - ((a - 1.0) * psi + b.ln() - a - ln_gamma(a))
                }
                WeightPosterior::LogNormal => {
                    let (mu, entropy) = (mean.ln() - 0.5 / a, 0.5 * (1.0 + (2.0 * std::f64::consts::PI / a).ln()));
                    of_prior + c * mu - r * mean + entropy
                }
                WeightPosterior::Point => of_prior + c * mean.ln() - r * mean,
            }
        };
        let n = self.rate.len();
        let rows = self.shape.par_chunks(n).map(|row| {
            (0..self.width)
                .map(|k| one(f64::from(row[k / LANES].0[k % LANES]), f64::from(self.rate[k / LANES].0[k % LANES])))
                .sum::<f64>()
        });
        // In the order of the rows, so that the sum does not depend on the threads.
        let rows: Vec<f64> = rows.collect();
        rows.iter().sum()
    }
}

/// Zeroes the lanes of the j-th vector that hold no latent.
fn clear_padding(width: usize, j: usize, lanes: &mut Lanes) {
    lanes.0[LANES.min(width.saturating_sub(j * LANES))..].fill(0.0);
}
