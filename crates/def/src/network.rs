//! An inference network: it computes the parameters of a document from its words, so that the document has none of its own.
//!
//! One hidden layer of rectified units. The inputs are ln(1 + x) of each word, scaled to norm one, and the logarithm of the
//! document's length; so the cost of a document is its words times the hidden units.

use crate::adam::{Adam, Units, ascend};
use crate::kernel::total;
use crate::kernel::words::Words;
use crate::settings::Settings;
use crate::shape::Shape;
use hyperprior_math::random::{Stream, TextPurpose, stream};
use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::simd::{load, splat};
use hyperprior_math::single::{LANES, Lanes, lanes_len};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// The random stream of its start.
const NETWORK: u64 = TextPurpose::Network.step();
/// The initial sizes of the weights of words and of outputs.
const WORD: f32 = 0.5;
const OUTPUT: f32 = 0.1;
/// The centre and scale of ln(1 + length).
const LENGTH: (f32, f32) = (5.0, 2.0);
/// The size of its steps relative to those of a document's own parameters.
const STEP: f32 = 0.03;

/// The network's weights and the moments of their gradients.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    hidden_len: usize,
    /// For each term a row over the hidden units; the last row is the length's.
    words: Vec<Lanes>,
    moments: [Vec<Lanes>; 2],
    /// For each hidden unit a row over the outputs, then the outputs' biases; and the hidden units' biases.
    rows: Vec<Lanes>,
    bias: Vec<Lanes>,
    adam: [Adam; 2],
}

/// The state of one document's forward pass, and the derivatives along its hidden units.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    hidden: Vec<Lanes>,
    d_hidden: Vec<Lanes>,
    /// 1 over the norm of the word inputs, and the input for the document's length.
    scale: f32,
    length: f32,
}

impl Pass {
    /// The input of a word with this count.
    fn input(&self, count: f32) -> f32 {
        self.scale * count.ln_1p()
    }
}

impl Network {
    /// A network with this many hidden units whose outputs start around `start`.
    pub(crate) fn new(terms_len: usize, hidden_len: usize, start: &[Lanes], rng: &mut Stream) -> Self {
        let (ht, outputs) = (lanes_len(hidden_len), start.len());
        let mut normal = |size: f32| -> f32 {
            let normal: f32 = StandardNormal.sample(rng);
            size * normal
        };
        let mut words = vec![Lanes::default(); (terms_len + 1) * ht];
        for row in words.chunks_exact_mut(ht) {
            (0..hidden_len).for_each(|h| row[h / LANES].0[h % LANES] = normal(WORD));
        }
        let mut rows = vec![Lanes::default(); (hidden_len + 1) * outputs];
        for lanes in &mut rows[..hidden_len * outputs] {
            lanes.0.iter_mut().for_each(|x| *x = normal(OUTPUT / (hidden_len as f32).sqrt()));
        }
        rows[hidden_len * outputs..].copy_from_slice(start);
        let zeros = || vec![Lanes::default(); words.len()];
        Self {
            hidden_len,
            moments: [zeros(), zeros()],
            bias: vec![Lanes::default(); ht],
            adam: [Adam::new(rows.len()), Adam::new(ht)],
            words,
            rows,
        }
    }

    /// The network of these settings, if any; its outputs start where documents' own parameters would.
    pub(crate) fn of(settings: &Settings, shape: &Shape, terms_len: usize) -> Option<Self> {
        let units = settings.amortize?;
        let mut rng = stream(settings.seed, NETWORK, 0, 0);
        let method = settings.method;
        let mut start = vec![Lanes::default(); method.parameters_len(shape)];
        method.start(shape, settings.activity, &mut rng, &mut start);
        method.spread(shape, &mut rng, &mut start);
        Some(Self::new(terms_len, units, &start, &mut rng))
    }

    fn hidden_tiles(&self) -> usize {
        self.bias.len()
    }

    /// The number of vectors of the outputs.
    fn outputs_len(&self) -> usize {
        self.rows.len() / (self.hidden_len + 1)
    }

    /// The length of the gradient along all weights except those of words.
    pub(crate) fn gradient_len(&self) -> usize {
        self.rows.len() + self.bias.len()
    }

    pub(crate) fn arrays(&self) -> Vec<&[Lanes]> {
        let [first, second] = &self.moments;
        let mut all = vec![self.words.as_slice(), first, second, &self.rows, &self.bias];
        self.adam.iter().for_each(|adam| all.extend(adam.arrays()));
        all
    }

    pub(crate) fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let [first, second] = &mut self.moments;
        let mut all = vec![self.words.as_mut_slice(), first, second, &mut self.rows, &mut self.bias];
        self.adam.iter_mut().for_each(|adam| all.extend(adam.arrays_mut()));
        all
    }

    /// The weights without the moments.
    pub(crate) fn weights(&self) -> [&[Lanes]; 3] {
        [&self.words, &self.rows, &self.bias]
    }

    pub(crate) fn weights_mut(&mut self) -> [&mut [Lanes]; 3] {
        [&mut self.words, &mut self.rows, &mut self.bias]
    }

    /// The number of steps taken.
    pub(crate) fn number(&self) -> u32 {
        self.adam[0].number()
    }

    pub(crate) fn set_number(&mut self, number: u32) {
        self.adam.iter_mut().for_each(|adam| adam.set_number(number));
    }

    /// The parameters of a document with these words.
    pub(crate) fn forward(&self, words: &Words, pass: &mut Pass, out: &mut [Lanes]) {
        let ht = self.hidden_tiles();
        let squares: f32 = words.counts.iter().map(|x| x.ln_1p().powi(2)).sum();
        pass.scale = 1.0 / squares.sqrt().max(1e-6);
        pass.length = (words.counts.iter().sum::<f32>().ln_1p() - LENGTH.0) / LENGTH.1;
        pass.hidden.clear();
        pass.hidden.extend_from_slice(&self.bias);
        let row = |v: usize| &self.words[v * ht..(v + 1) * ht];
        for (term, x) in words.terms.iter().zip(words.counts) {
            let input = pass.input(*x);
            add(&mut pass.hidden, row(*term as usize), input);
        }
        add(&mut pass.hidden, row(self.words.len() / ht - 1), pass.length);
        pass.hidden.iter_mut().for_each(|lanes| lanes.0 = lanes.0.map(|x| x.max(0.0)));
        let n = self.outputs_len();
        out.copy_from_slice(&self.rows[self.hidden_len * n..]);
        for h in 0..self.hidden_len {
            let x = pass.hidden[h / LANES].0[h % LANES];
            if x > 0.0 {
                add(out, &self.rows[h * n..(h + 1) * n], x);
            }
        }
    }

    /// Adds the derivatives along all weights except those of words to `gradient`, given those along the outputs; the derivatives
    /// along the hidden units, which the words' weights need, stay in the pass.
    pub(crate) fn backward(&self, pass: &mut Pass, d_out: &[Lanes], gradient: &mut [Lanes]) {
        let n = self.outputs_len();
        let (d_rows, d_bias) = gradient.split_at_mut(self.rows.len());
        pass.d_hidden.clear();
        pass.d_hidden.resize(self.hidden_tiles(), Lanes::default());
        for h in 0..self.hidden_len {
            let x = pass.hidden[h / LANES].0[h % LANES];
            if x > 0.0 {
                add(&mut d_rows[h * n..(h + 1) * n], d_out, x);
                pass.d_hidden[h / LANES].0[h % LANES] = dot(&self.rows[h * n..(h + 1) * n], d_out);
            }
        }
        add(&mut d_rows[self.hidden_len * n..], d_out, 1.0);
        add(d_bias, &pass.d_hidden, 1.0);
    }

    /// A step up the gradients. `passes_of` iterates over the passes and counts of the documents in which a term occurs; the
    /// weights of terms that occur nowhere do not change.
    pub(crate) fn ascend<'p, I>(
        &mut self,
        gradient: &[Lanes],
        passes: &[&'p Pass],
        passes_of: impl Fn(usize) -> I + Sync,
        size: f32,
    ) where
        I: Iterator<Item = (&'p Pass, f32)>,
    {
        let size = size * STEP;
        let (d_rows, d_bias) = gradient.split_at(self.rows.len());
        let [rows, bias] = &mut self.adam;
        rows.ascend(&mut self.rows, d_rows, size);
        bias.ascend(&mut self.bias, d_bias, size);
        let (ht, number) = (self.bias.len(), rows.number());
        let last = self.words.len() / ht - 1;
        let [first, second] = &mut self.moments;
        let all = self.words.par_chunks_mut(ht).zip(first.par_chunks_mut(ht)).zip(second.par_chunks_mut(ht));
        all.enumerate().for_each_init(
            || vec![Lanes::default(); ht],
            |d_row, (v, ((row, first), second))| {
                let mut occurs = v == last;
                d_row.fill(Lanes::default());
                if occurs {
                    passes.iter().for_each(|pass| add(d_row, &pass.d_hidden, pass.length));
                } else {
                    for (pass, count) in passes_of(v) {
                        add(d_row, &pass.d_hidden, pass.input(count));
                        occurs = true;
                    }
                }
                if occurs {
                    ascend(row, d_row, [first, second], number, Units::own(ht, size));
                }
            },
        );
    }
}

#[inline(always)]
fn add_kernel<S: Simd>(s: S, to: &mut [Lanes], from: &[Lanes], factor: f32) {
    let factor = splat(s, factor);
    for (to, from) in to.iter_mut().zip(from) {
        load(s, &from.0).mul_add(factor, load(s, &to.0)).store_slice(&mut to.0);
    }
}

simd_fn!(
    fn add(to: &mut [Lanes], from: &[Lanes], factor: f32) = add_kernel
);

#[inline(always)]
fn dot_kernel<S: Simd>(s: S, a: &[Lanes], b: &[Lanes]) -> f32 {
    let mut sum = splat(s, 0.0);
    for (a, b) in a.iter().zip(b) {
        sum = load(s, &a.0).mul_add(load(s, &b.0), sum);
    }
    total(sum)
}

simd_fn!(
    fn dot(a: &[Lanes], b: &[Lanes]) -> f32 = dot_kernel
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The derivative along every kind of weight is the central difference.
    #[test]
    fn the_gradient_is_that_of_the_outputs() {
        let start = vec![Lanes([0.5; LANES]); 2];
        let network = Network::new(5, 20, &start, &mut stream(2, 0, 0, 0));
        let words = Words::of((&[0, 2, 3], &[2.0, 1.0, 5.0]));
        let d_out: Vec<Lanes> =
            (0..2).map(|t| Lanes(std::array::from_fn(|l| ((3 * t + l) as f32 * 0.7).sin()))).collect();
        let value = |network: &Network| -> f64 {
            let mut out = vec![Lanes::default(); 2];
            network.forward(&words, &mut Pass::default(), &mut out);
            let products = out.iter().zip(&d_out).flat_map(|(a, b)| a.0.into_iter().zip(b.0));
            products.map(|(a, b)| f64::from(a) * f64::from(b)).sum()
        };
        let mut pass = Pass::default();
        let mut gradient = vec![Lanes::default(); network.gradient_len()];
        network.forward(&words, &mut pass, &mut [Lanes::default(); 2]);
        network.backward(&mut pass, &d_out, &mut gradient);
        let difference = |place: &dyn Fn(&mut Network) -> &mut f32| {
            let moved = |h: f32| {
                let mut network = network.clone();
                *place(&mut network) += h;
                value(&network)
            };
            (moved(1e-2) - moved(-1e-2)) / 2e-2
        };
        let near = |found: f32, expected: f64| {
            assert!((f64::from(found) - expected).abs() < 2e-3 * expected.abs().max(0.1), "{found}, not {expected}");
        };
        let ht = network.hidden_tiles();
        let mut seen = 0;
        for lane in 0..LANES {
            let rows = network.rows.len();
            near(gradient[2].0[lane], difference(&|n| &mut n.rows[2].0[lane]));
            near(gradient[rows - 1].0[lane], difference(&|n| &mut n.rows[rows - 1].0[lane]));
            near(gradient[rows].0[lane], difference(&|n| &mut n.bias[0].0[lane]));
            for (v, input) in [(2, pass.input(1.0)), (3, pass.input(5.0)), (5, pass.length)] {
                near(input * pass.d_hidden[0].0[lane], difference(&|n| &mut n.words[v * ht].0[lane]));
                seen += i32::from(pass.d_hidden[0].0[lane] != 0.0);
            }
        }
        assert!(seen > 10, "most units must be active for the test to mean anything: {seen}");
    }
}
