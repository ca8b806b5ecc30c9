//! The likelihood of a document by annealed importance sampling (Neal, 2001).
//!
//! Chains start in a distribution q whose factors have the means of a fit, and move through q^(1−t) p^t to the posterior as t rises
//! from 0 to 1. The mean of their weights is p(x) whatever q is, so that models are compared by their weights alone, and not by how
//! well their documents were fitted. Its logarithm is too low on average, by less the more temperatures there are.

use crate::estimate::Given;
use crate::kernel::layer::RATE_MIN;
use crate::shape::{Family, Shape};
use hyperprior_math::random::Stream;
use hyperprior_math::simd::LANES as CHAINS;
use hyperprior_math::special::log_sum_exp;
use hyperprior_math::vector;
use rand::RngExt;
use rand_distr::{Distribution, Poisson};
use std::ops::Range;

/// The mean of a binary latent in q is at least this far from 0 and 1, and that of a count from 0: a chain could not come back from
/// a value that q excludes.
const EDGE: f64 = 0.01;

/// Numbers for every chain, row by row: a row for each latent, child or word.
type Rows = Vec<f64>;

/// The chains in the latents of one layer.
struct LayerState {
    family: Family,
    width: usize,
    z: Rows,
    /// The natural parameters of q.
    base: Vec<f64>,
    /// Given the layer above: the activations, the natural parameters and the log normalisers.
    activation: Rows,
    natural: Rows,
    normaliser: Rows,
    /// The weights of each parent, row by row, and the intercepts.
    rows: Vec<f64>,
    bias: Vec<f64>,
}

/// Eight chains in the latents of a document whose layers are discrete.
pub(crate) struct Annealing {
    layers: Vec<LayerState>,
    /// Σ ln of the normalisers of q.
    base_normaliser: f64,
    counts: Vec<f64>,
    background: Vec<f64>,
    /// The weights of the words that occur, latent by latent, and of all words together.
    columns: Vec<f64>,
    sums: Vec<f64>,
    rates: Rows,
    /// What a proposal would change: the rates' or children's factors, activations, natural parameters and log normalisers.
    proposed: [Rows; 4],
}

/// The natural parameter of a factor with this mean, and its log normaliser.
fn base_of(family: Family, mean: f64) -> (f64, f64) {
    match family {
        Family::Bernoulli => {
            let mean = mean.clamp(EDGE, 1.0 - EDGE);
            ((mean / (1.0 - mean)).ln(), -(-mean).ln_1p())
        }
        _ => {
            let mean = mean.max(EDGE);
            (mean.ln(), mean)
        }
    }
}

/// The natural parameters and the log normalisers of a layer given its activations.
fn conditional(family: Family, activation: &[f64], natural: &mut [f64], normaliser: &mut [f64]) {
    vector::softplus_sigmoid(activation, normaliser, natural);
    if family == Family::Bernoulli {
        natural.copy_from_slice(activation);
    } else {
        normaliser.iter_mut().for_each(|rate| *rate += f64::from(RATE_MIN));
        vector::ln(normaliser, natural);
    }
}

impl Annealing {
    /// For a document, with the mean of each latent in q, layer by layer. The layers are discrete.
    pub(crate) fn new(given: &Given, means: &[Vec<f32>]) -> Self {
        let Given { shape, words, seen, links } = *given;
        let lowest = shape.tiles(0).len();
        let entries = words.terms.len();
        let weight = |entry: usize, k: usize| {
            let (tile, lane) = shape.place(0, k);
            f64::from(seen.weights[words.terms[entry] as usize * lowest + tile].0[lane])
        };
        let background = |entry: usize| f64::from(seen.background[words.terms[entry] as usize] + words.added(entry));
        let mut base_normaliser = 0.0;
        let layers: Vec<LayerState> = (0..links.len())
            .map(|l| {
                let layer = shape.layers()[l];
                let (natural, normalisers): (Vec<f64>, Vec<f64>) =
                    means[l].iter().map(|mean| base_of(layer.family, f64::from(*mean))).unzip();
                base_normaliser += normalisers.iter().sum::<f64>();
                let parents = links[l].rows.len() / links[l].bias.len();
                let own = |lanes: &[_]| own_of(shape, l, lanes);
                let rows = (0..parents).flat_map(|p| own(&links[l].rows[p * links[l].bias.len()..])).collect();
                let rows_of = |width: usize| vec![0.0; width * CHAINS];
                LayerState {
                    family: layer.family,
                    width: layer.width,
                    z: rows_of(layer.width),
                    base: natural,
                    activation: rows_of(layer.width),
                    natural: rows_of(layer.width),
                    normaliser: rows_of(layer.width),
                    rows,
                    bias: own(links[l].bias),
                }
            })
            .collect();
        let longest = layers.iter().map(|layer| layer.width).max().unwrap_or(0).max(entries);
        let width = layers[0].width;
        Self {
            base_normaliser,
            counts: words.counts.iter().map(|x| f64::from(*x)).collect(),
            background: (0..entries).map(background).collect(),
            columns: (0..width).flat_map(|k| (0..entries).map(move |entry| weight(entry, k))).collect(),
            sums: own_of(shape, 0, seen.sums),
            rates: vec![0.0; entries * CHAINS],
            proposed: std::array::from_fn(|_| vec![0.0; longest * CHAINS]),
            layers,
        }
    }

    /// An estimate of ln p(x), up to terms that depend on no latent, from this many temperatures.
    pub(crate) fn run(&mut self, temperatures: usize, rng: &mut Stream) -> f64 {
        self.start(rng);
        let mut weights = [0.0; CHAINS];
        let step = 1.0 / temperatures as f64;
        for i in 1..=temperatures {
            for (weight, ratio) in weights.iter_mut().zip(self.log_ratio()) {
                *weight += step * ratio;
            }
            // After the last weight no move counts.
            if i < temperatures {
                self.sweep(i as f64 * step, rng);
            }
        }
        log_sum_exp(&weights) - (CHAINS as f64).ln()
    }

    /// Draws every chain from q.
    fn start(&mut self, rng: &mut Stream) {
        for layer in &mut self.layers {
            for (z, natural) in layer.z.chunks_exact_mut(CHAINS).zip(&layer.base) {
                let mean = natural.exp();
                for z in z {
                    *z = match layer.family {
                        Family::Bernoulli => f64::from(rng.random::<f64>() * (1.0 + mean) < mean),
                        _ => Poisson::new(mean).map_or(0.0, |counts| counts.sample(rng)),
                    };
                }
            }
        }
        for l in 0..self.layers.len() {
            let (below, above) = self.layers.split_at_mut(l + 1);
            let layer = &mut below[l];
            for (a, bias) in layer.activation.chunks_exact_mut(CHAINS).zip(&layer.bias) {
                a.fill(*bias);
            }
            let parents = above.first().map_or(&[][..], |above| &above.z);
            for (z, row) in parents.chunks_exact(CHAINS).zip(layer.rows.chunks_exact(layer.width)) {
                add_outer(row, z, &mut layer.activation);
            }
            conditional(layer.family, &layer.activation, &mut layer.natural, &mut layer.normaliser);
        }
        for (rates, background) in self.rates.chunks_exact_mut(CHAINS).zip(&self.background) {
            rates.fill(*background);
        }
        let entries = self.counts.len();
        for (k, z) in self.layers[0].z.chunks_exact(CHAINS).enumerate() {
            add_outer(&self.columns[k * entries..][..entries], z, &mut self.rates);
        }
    }

    /// ln p(x, z) − ln q(z) of each chain.
    fn log_ratio(&mut self) -> [f64; CHAINS] {
        let mut total = [self.base_normaliser; CHAINS];
        let logs = &mut self.proposed[0][..self.rates.len()];
        vector::ln(&self.rates, logs);
        add_weighted(&self.counts, logs, &mut total);
        for (z, sum) in self.layers[0].z.chunks_exact(CHAINS).zip(&self.sums) {
            total.iter_mut().zip(z).for_each(|(total, z)| *total -= sum * z);
        }
        for layer in &self.layers {
            let rows = layer.z.chunks_exact(CHAINS).zip(layer.natural.chunks_exact(CHAINS));
            for (((z, natural), normaliser), base) in rows.zip(layer.normaliser.chunks_exact(CHAINS)).zip(&layer.base) {
                for c in 0..CHAINS {
                    total[c] += z[c] * (natural[c] - base) - normaliser[c];
                }
            }
        }
        total
    }

    /// A Metropolis step of every latent that leaves q^(1−t) p^t invariant: a binary latent changes, a count goes up or down by one.
    fn sweep(&mut self, t: f64, rng: &mut Stream) {
        for l in 0..self.layers.len() {
            for k in 0..self.layers[l].width {
                let own = k * CHAINS..(k + 1) * CHAINS;
                let layer = &self.layers[l];
                let mut steps = [0.0; CHAINS];
                let mut change = [0.0; CHAINS];
                for (c, z) in layer.z[own.clone()].iter().enumerate() {
                    if layer.family == Family::Bernoulli {
                        steps[c] = 1.0 - 2.0 * z;
                    } else if rng.random::<bool>() {
                        steps[c] = 1.0;
                        change[c] = -(z + 1.0).ln();
                    } else if *z > 0.0 {
                        steps[c] = -1.0;
                        change[c] = z.ln();
                    }
                }
                let below = if l == 0 { self.propose_rates(k, &steps) } else { self.propose_children(l, k, &steps) };
                let layer = &mut self.layers[l];
                for c in 0..CHAINS {
                    let prior = t * layer.natural[own.start + c] + (1.0 - t) * layer.base[k];
                    change[c] += t * below[c] + steps[c] * prior;
                    if rng.random::<f64>().ln() >= change[c] {
                        steps[c] = 0.0;
                    }
                }
                layer.z[own].iter_mut().zip(&steps).for_each(|(z, step)| *z += step);
                self.accept(l, k, &steps);
            }
        }
    }

    /// The change of ln p(x | z) as latent k of the lowest layer moves.
    fn propose_rates(&mut self, k: usize, steps: &[f64; CHAINS]) -> [f64; CHAINS] {
        let entries = self.counts.len();
        let [factors, logs, ..] = &mut self.proposed;
        let rows = self.rates.chunks_exact(CHAINS).zip(factors.chunks_exact_mut(CHAINS));
        for ((rates, factors), weight) in rows.zip(&self.columns[k * entries..][..entries]) {
            for c in 0..CHAINS {
                factors[c] = (rates[c] + steps[c] * weight) / rates[c];
            }
        }
        let used = entries * CHAINS;
        vector::ln(&factors[..used], &mut logs[..used]);
        let mut change = steps.map(|step| -step * self.sums[k]);
        add_weighted(&self.counts, &logs[..used], &mut change);
        change
    }

    /// The change of ln p of the layer below as latent k of layer l moves.
    fn propose_children(&mut self, l: usize, k: usize, steps: &[f64; CHAINS]) -> [f64; CHAINS] {
        let below = &self.layers[l - 1];
        let used = below.width * CHAINS;
        let [_, activation, natural, normaliser] = &mut self.proposed;
        let (activation, natural, normaliser) =
            (&mut activation[..used], &mut natural[..used], &mut normaliser[..used]);
        activation.copy_from_slice(&below.activation);
        add_outer(&below.rows[k * below.width..][..below.width], steps, activation);
        conditional(below.family, activation, natural, normaliser);
        let mut change = [0.0; CHAINS];
        for first in (0..used).step_by(CHAINS) {
            for c in 0..CHAINS {
                let at = first + c;
                change[c] += below.z[at] * (natural[at] - below.natural[at]) - normaliser[at] + below.normaliser[at];
            }
        }
        change
    }

    /// Carries out the moves of latent k of layer l; chains that stay have a step of 0.
    fn accept(&mut self, l: usize, k: usize, steps: &[f64; CHAINS]) {
        if l == 0 {
            let entries = self.counts.len();
            add_outer(&self.columns[k * entries..][..entries], steps, &mut self.rates);
            return;
        }
        let below = &mut self.layers[l - 1];
        let [_, activation, natural, normaliser] = &self.proposed;
        for (to, from) in
            [(&mut below.activation, activation), (&mut below.natural, natural), (&mut below.normaliser, normaliser)]
        {
            for (to, from) in to.chunks_exact_mut(CHAINS).zip(from.chunks_exact(CHAINS)) {
                for c in (0..CHAINS).filter(|c| steps[*c] != 0.0) {
                    to[c] = from[c];
                }
            }
        }
    }
}

/// The numbers of a layer, without the empty lanes.
fn own_of(shape: &Shape, l: usize, lanes: &[hyperprior_math::single::Lanes]) -> Vec<f64> {
    let Range { start, .. } = shape.tiles(l);
    let one = |k: usize| {
        let (tile, lane) = shape.place(l, k);
        f64::from(lanes[tile - start].0[lane])
    };
    (0..shape.layers()[l].width).map(one).collect()
}

/// out += row × chains.
fn add_outer(row: &[f64], chains: &[f64], out: &mut [f64]) {
    for (out, w) in out.chunks_exact_mut(CHAINS).zip(row) {
        for (out, x) in out.iter_mut().zip(chains) {
            *out += w * x;
        }
    }
}

/// total += Σ of the rows, weighted.
fn add_weighted(weights: &[f64], rows: &[f64], total: &mut [f64; CHAINS]) {
    for (row, w) in rows.chunks_exact(CHAINS).zip(weights) {
        for c in 0..CHAINS {
            total[c] += w * row[c];
        }
    }
}
