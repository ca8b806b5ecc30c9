//! The weights of a deep exponential family, and what is believed of them.
//!
//! The words' weights W ≥ 0 have gamma priors. Given how the counts are shared among the latents they are
//! conjugate: every q that is offered has the same two statistics, the counts A_vk that latent k explains of term v (with the
//! prior's shape) and the activity B_k that it had (with the prior's rate), and they are averaged over minibatches (stochastic
//! variational inference; Hoffman, Blei, Wang and Paisley, 2013). Documents see exp E ln W where a rate's logarithm is taken
//! and E W where rates are summed, which bounds E ln p(x | z, W) from below for any q(W).
//!
//! Weights between layers are Gaussian, with a prior N(0, 1), and climb the gradient.

use crate::adam::Adam;
use crate::error::{Error, Result};
use crate::kernel::between::Link;
use crate::kernel::words::{Seen, geometric, tempered};
use crate::shape::{Family, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::single::{LANES, Lanes, lanes_len};
use hyperprior_math::special::{digamma, ln_gamma};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is believed of a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Belief {
    /// A gamma law for the words' weights, a Gaussian for those between layers.
    #[default]
    Gamma,
    /// A log-normal law for the words' weights, a Gaussian for those between layers.
    LogNormal,
    /// One value each.
    Point,
}

impl FromStr for Belief {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "gamma" => Ok(Self::Gamma),
            "log-normal" => Ok(Self::LogNormal),
            "point" => Ok(Self::Point),
            _ => Err(Error::BadSetting {
                field: "weights",
                value: text.to_owned(),
                reason: "use gamma, log-normal or point",
            }),
        }
    }
}

impl fmt::Display for Belief {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Gamma => "gamma",
            Self::LogNormal => "log-normal",
            Self::Point => "point",
        })
    }
}

/// The prior of the words' weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermPrior {
    /// The shape: below 1, few terms have nearly all of a latent's weight.
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
    belief: Belief,
    prior: TermPrior,
    width: usize,
    /// A, a row of lanes for each term; lanes without a latent hold the prior's shape.
    shape: Vec<Lanes>,
    /// B.
    rate: Vec<Lanes>,
    /// What documents see in the logarithms of rates, exp E ln W in the end; and Σ_v E W_vk.
    geometric: Vec<Lanes>,
    sums: Vec<Lanes>,
    /// b, which is given: learnt, it would take the words away from the latents.
    background: Vec<f32>,
    background_sum: f64,
    /// How far what documents see has gone from E W, where every term has a chance, to exp E ln W.
    sharpness: f32,
}

/// Rows that one thread treats at a time.
pub(crate) const ROWS: usize = 128;

impl TermWeights {
    /// Weights with the given means, as sure as `activity` documents make them.
    pub(crate) fn new(
        belief: Belief,
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
            belief,
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

    /// How many terms there are.
    pub fn terms_len(&self) -> usize {
        self.background.len()
    }

    /// How many latents the lowest layer has.
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

    /// What documents see of W_vk in the logarithms of rates: exp E ln W_vk in the end.
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
            hide_padding(self.width, j, out);
        }
    }

    /// Moves the statistics a share `step` of the way: `statistic(v, row)` adds what latents explain of term v in the whole
    /// corpus, not yet times W, and `activity` is what the latents did in it.
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

    /// About how many words of the corpus a latent explains: Σ_v E W_vk times what it did in all documents.
    pub(crate) fn explained(&self, k: usize) -> f64 {
        let activity = self.rate[k / LANES].0[k % LANES] - self.prior.rate;
        f64::from(activity) * f64::from(self.sum(k))
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

    /// After the statistics were written to.
    pub(crate) fn restore(&mut self, sharpness: f32) {
        self.sharpness = sharpness;
        self.refresh();
    }

    /// Calculates what documents see.
    fn refresh(&mut self) {
        let n = self.rate.len();
        let (rate, width, belief, sharpness) = (&self.rate, self.width, self.belief, self.sharpness);
        let chunks = self.geometric.par_chunks_mut(ROWS * n).zip(self.shape.par_chunks(ROWS * n));
        let partial: Vec<Vec<[f64; LANES]>> = chunks
            .map(|(out, shape)| {
                match belief {
                    Belief::Gamma => geometric(shape, rate, out),
                    // The best log-normal given A and B has variance 1/A and mean A/B.
                    Belief::LogNormal | Belief::Point => {
                        let is_point = belief == Belief::Point;
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
                if sharpness < 1.0 && belief != Belief::Point {
                    tempered(shape, rate, sharpness, out);
                }
                out.iter_mut().enumerate().for_each(|(i, out)| hide_padding(width, i % n, out));
                sums
            })
            .collect();
        for j in 0..n {
            for lane in 0..LANES {
                let sum: f64 = partial.iter().map(|sums| sums[j][lane]).sum();
                self.sums[j].0[lane] = (sum / f64::from(self.rate[j].0[lane])) as f32;
            }
            hide_padding(self.width, j, &mut self.sums[j]);
        }
    }

    /// E ln p(W) − E ln q(W); of a point its ln p(ln W), which is no bound on anything.
    pub fn value(&self) -> f64 {
        let (c, r) = (f64::from(self.prior.shape), f64::from(self.prior.rate));
        let of_prior = c * r.ln() - ln_gamma(c);
        let one = |a: f64, b: f64| {
            let mean = a / b;
            match self.belief {
                Belief::Gamma => {
                    let psi = digamma(a);
                    let log_mean = psi - b.ln();
                    of_prior + (c - 1.0) * log_mean - r * mean - ((a - 1.0) * psi + b.ln() - a - ln_gamma(a))
                }
                Belief::LogNormal => {
                    let (mu, entropy) = (mean.ln() - 0.5 / a, 0.5 * (1.0 + (2.0 * std::f64::consts::PI / a).ln()));
                    of_prior + c * mu - r * mean + entropy
                }
                Belief::Point => of_prior + c * mean.ln() - r * mean,
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

/// Sets the lanes of the j-th vector that hold no latent to zero.
fn hide_padding(width: usize, j: usize, lanes: &mut Lanes) {
    lanes.0[LANES.min(width.saturating_sub(j * LANES))..].fill(0.0);
}

/// The weights from one layer to the one below it, or the natural parameters of the top layer, which has no parents.
#[derive(Clone, Debug)]
pub struct Between {
    family: Family,
    gamma_shape: f32,
    parents_len: usize,
    /// Means of the rows, one a parent, and then of the intercepts; and the logarithms of their standard deviations.
    mean: Vec<Lanes>,
    log_sd: Vec<Lanes>,
    /// A draw of them, and the noise that it was made of.
    drawn: Vec<Lanes>,
    noise: Vec<Lanes>,
    mask: Vec<Lanes>,
    is_point: bool,
    adam: [Adam; 2],
}

impl Between {
    /// The weights above each layer, the lowest first.
    pub(crate) fn all(shape: &Shape, belief: Belief, prior_mean: f32, gamma_shape: f32, rng: &mut Stream) -> Vec<Self> {
        let mask = shape.mask();
        let layers = shape.layers();
        (0..layers.len())
            .map(|l| {
                let mask = mask[shape.tiles(l)].to_vec();
                let (n, parents_len) = (mask.len(), layers.get(l + 1).map_or(0, |above| above.width));
                let mut mean = vec![Lanes::default(); (parents_len + 1) * n];
                for (row, lanes) in mean.chunks_exact_mut(n).enumerate() {
                    for (lanes, mask) in lanes.iter_mut().zip(&mask) {
                        for (x, mask) in lanes.0.iter_mut().zip(mask.0) {
                            let normal: f32 = StandardNormal.sample(rng);
                            let at = if row < parents_len {
                                SPREAD * normal
                            } else {
                                layers[l].family.intercept(prior_mean)
                            };
                            *x = at * mask;
                        }
                    }
                }
                Self {
                    family: layers[l].family,
                    gamma_shape,
                    parents_len,
                    log_sd: vec![Lanes([SD.ln(); LANES]); mean.len()],
                    drawn: mean.clone(),
                    noise: vec![Lanes::default(); mean.len()],
                    adam: [Adam::new(mean.len()), Adam::new(mean.len())],
                    mean,
                    mask,
                    is_point: belief == Belief::Point,
                }
            })
            .collect()
    }

    pub(crate) fn link(&self) -> Link<'_> {
        let (rows, bias) = self.drawn.split_at(self.parents_len * self.mask.len());
        Link { rows, bias, family: self.family, gamma_shape: self.gamma_shape, mask: &self.mask }
    }

    /// The shape of the layer's latents, where they are gamma ones.
    pub fn gamma_shape(&self) -> f32 {
        self.gamma_shape
    }

    /// How many parents there are.
    pub fn parents_len(&self) -> usize {
        self.parents_len
    }

    pub(crate) fn means(&self) -> &[Lanes] {
        &self.mean
    }

    pub(crate) fn means_mut(&mut self) -> &mut [Lanes] {
        &mut self.mean
    }

    pub(crate) fn adam(&self) -> &[Adam; 2] {
        &self.adam
    }

    pub(crate) fn adam_mut(&mut self) -> &mut [Adam; 2] {
        &mut self.adam
    }

    pub(crate) fn arrays(&self) -> Vec<&[Lanes]> {
        let moments = self.adam.iter().flat_map(Adam::arrays);
        [self.mean.as_slice(), self.log_sd.as_slice()].into_iter().chain(moments).collect()
    }

    pub(crate) fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let moments = self.adam.iter_mut().flat_map(Adam::arrays_mut);
        [self.mean.as_mut_slice(), self.log_sd.as_mut_slice()].into_iter().chain(moments).collect()
    }

    /// How many vectors of lanes the rows and the intercepts take.
    pub(crate) fn len(&self) -> usize {
        self.mean.len()
    }

    /// The mean weight from a parent to a child.
    pub fn mean(&self, parent: usize, child: usize) -> f32 {
        self.mean[parent * self.mask.len() + child / LANES].0[child % LANES]
    }

    /// The mean intercept of a child.
    pub fn intercept(&self, child: usize) -> f32 {
        self.mean(self.parents_len, child)
    }

    /// Draws the weights that a step is for; the intercepts stay at their means.
    pub(crate) fn draw(&mut self, rng: &mut Stream) {
        let n = self.mask.len();
        for i in 0..self.mean.len() {
            let is_sure = self.is_point || i >= self.parents_len * n;
            for lane in 0..LANES {
                let noise: f32 = if is_sure { 0.0 } else { StandardNormal.sample(rng) };
                let noise = noise * self.mask[i % n].0[lane];
                self.noise[i].0[lane] = noise;
                self.drawn[i].0[lane] = self.mean[i].0[lane] + self.log_sd[i].0[lane].exp() * noise;
            }
        }
    }

    /// The means take the place of a draw.
    pub(crate) fn settle(&mut self) {
        self.drawn.clone_from(&self.mean);
    }

    /// A step along the gradient of the whole corpus at the draw; the prior N(0, 1) of the weights is added here.
    pub(crate) fn ascend(&mut self, gradient: &[Lanes], size: f32) {
        let n = self.mask.len();
        let rows_len = self.parents_len * n;
        let (mut d_mean, mut d_log_sd) = (gradient.to_vec(), vec![Lanes::default(); gradient.len()]);
        for i in 0..rows_len {
            for lane in 0..LANES {
                let mask = self.mask[i % n].0[lane];
                let d = mask * (gradient[i].0[lane] - self.drawn[i].0[lane]);
                d_mean[i].0[lane] = d;
                let sd = self.log_sd[i].0[lane].exp();
                d_log_sd[i].0[lane] = mask * (d * self.noise[i].0[lane] * sd + 1.0);
            }
        }
        let [means, sds] = &mut self.adam;
        means.ascend(&mut self.mean, &d_mean, size);
        if !self.is_point {
            sds.ascend(&mut self.log_sd[..], &d_log_sd, size);
        }
    }

    /// E ln p − E ln q of the weights; of points ln p.
    pub fn value(&self) -> f64 {
        let n = self.mask.len();
        let mut value = 0.0;
        for i in 0..self.parents_len * n {
            for lane in 0..LANES {
                let (m, log_sd) = (f64::from(self.mean[i].0[lane]), f64::from(self.log_sd[i].0[lane]));
                let mask = f64::from(self.mask[i % n].0[lane]);
                value += mask
                    * if self.is_point {
                        -0.5 * (m * m + (2.0 * std::f64::consts::PI).ln())
                    } else {
                        0.5 + log_sd - 0.5 * (m * m + (2.0 * log_sd).exp())
                    };
            }
        }
        value
    }
}

/// How far apart weights between layers start, and how sure of themselves.
const SPREAD: f32 = 0.3;
const SD: f32 = 0.1;
