//! A fully connected network over a batch: y = W_n tanh(… tanh(W_1 x + b_1) …) + b_n, with its pullback.
//!
//! Input and output are columns of draws, laid end to end. A layer from m numbers to n costs O(mn) per draw.

#![allow(clippy::too_many_arguments, reason = "a kernel takes its buffers one by one")]

use crate::random::Stream;
use crate::scratch::Scratch;
use crate::simd::{self, LANES, Simd, V, load, prelude::*, splat, store, sums};
use rand_distr::{Distribution, StandardNormal};

/// A network of the given sizes: input, hidden layers, output. Hidden layers are tanh, the output is linear.
///
/// Layer by layer its parameters are the weights, row by row, then the biases. Sizes of 0 are allowed: without inputs the
/// output is the biases. A single size is the identity.
///
/// ```
/// use hyperprior_math::network::Mlp;
/// let network = Mlp::new([2, 1, 1]);
/// let parameters = [1.0, -1.0, 0.5, 2.0, 0.25];
/// let (mut hidden, mut output) = ([0.0], [0.0]);
/// network.forward(&parameters, 1, &[0.3, 0.8], &mut hidden, &mut output);
/// assert_eq!(output, [0.25]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mlp<Sizes = Vec<usize>> {
    sizes: Sizes,
}

/// One layer's weights, row by row, and biases.
struct Layer<'a> {
    inputs_len: usize,
    outputs_len: usize,
    weights: &'a [f64],
    biases: &'a [f64],
}

impl<Sizes: AsRef<[usize]>> Mlp<Sizes> {
    /// A network of these sizes, input first and output last.
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes }
    }

    /// The sizes it was made with.
    pub fn sizes(&self) -> &[usize] {
        self.sizes.as_ref()
    }

    /// The number of inputs.
    pub fn input_len(&self) -> usize {
        self.sizes().first().copied().unwrap_or(0)
    }

    /// The number of outputs.
    pub fn output_len(&self) -> usize {
        self.sizes().last().copied().unwrap_or(0)
    }

    /// The total size of the hidden layers.
    pub fn hidden_len(&self) -> usize {
        let sizes = self.sizes();
        sizes.iter().take(sizes.len().saturating_sub(1)).skip(1).sum()
    }

    /// How many parameters there are.
    pub fn parameters_len(&self) -> usize {
        self.sizes().windows(2).map(|pair| layer_len(pair[0], pair[1])).sum()
    }

    /// Parameters to start from: normal weights with variance 2 / (inputs + outputs), no biases. The last layer's weights
    /// are multiplied by `output_scale`; with 0 the output is exactly 0 until the last layer moves.
    pub fn initialize(&self, output_scale: f64, rng: &mut Stream, parameters: &mut [f64]) {
        let layers_len = self.sizes().len().saturating_sub(1);
        let mut rest = parameters;
        for (l, pair) in self.sizes().windows(2).enumerate() {
            let (own, below) = std::mem::take(&mut rest).split_at_mut(layer_len(pair[0], pair[1]));
            let (weights, biases) = own.split_at_mut(pair[0] * pair[1]);
            let scale = (2.0 / (pair[0] + pair[1]).max(1) as f64).sqrt();
            let scale = if l + 1 == layers_len { output_scale * scale } else { scale };
            for weight in weights {
                let z: f64 = StandardNormal.sample(rng);
                *weight = scale * z;
            }
            biases.fill(0.0);
            rest = below;
        }
    }

    /// output = the network of `input`. `hidden`, with [`hidden_len`](Self::hidden_len) columns, receives the hidden layers,
    /// which [`pullback`](Self::pullback) needs.
    ///
    /// # Panics
    /// If a slice is shorter than its columns of `draws_len` draws.
    pub fn forward(&self, parameters: &[f64], draws_len: usize, input: &[f64], hidden: &mut [f64], output: &mut [f64]) {
        let sizes = self.sizes();
        let (mut below, mut hidden, mut at) = (&input[..self.input_len() * draws_len], hidden, 0);
        for l in 1..sizes.len() {
            let layer = Layer::new(sizes, parameters, l, at);
            at += layer_len(sizes[l - 1], sizes[l]);
            if l + 1 == sizes.len() {
                layer.forward(draws_len, below, &mut output[..sizes[l] * draws_len]);
                return;
            }
            let (own, above) = hidden.split_at_mut(sizes[l] * draws_len);
            layer.forward(draws_len, below, own);
            tanh_in_place(own);
            (below, hidden) = (own, above);
        }
        output[..below.len()].copy_from_slice(below);
    }

    /// Adds to `d_parameters` and `d_input`, given the cotangent of the output, the inputs of [`forward`](Self::forward) and
    /// the `hidden` layers that it left.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn pullback(
        &self,
        parameters: &[f64],
        draws_len: usize,
        input: &[f64],
        hidden: &[f64],
        d_output: &[f64],
        d_parameters: &mut [f64],
        d_input: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let sizes = self.sizes();
        if sizes.len() < 2 {
            crate::vector::add_scaled(1.0, d_output, d_input);
            return;
        }
        let mut d_hidden = scratch.take(self.hidden_len() * draws_len);
        let (mut parameters_at, mut hidden_at) = (self.parameters_len(), self.hidden_len() * draws_len);
        for l in (1..sizes.len()).rev() {
            let end = parameters_at;
            parameters_at -= layer_len(sizes[l - 1], sizes[l]);
            let layer = Layer::new(sizes, parameters, l, parameters_at);
            let d_layer = &mut d_parameters[parameters_at..end];
            // The hidden numbers from `hidden_at` on belong to this layer and those above, earlier ones to the layers below.
            let (d_below, d_own) = d_hidden.split_at_mut(hidden_at);
            let d_own = if l + 1 == sizes.len() { d_output } else { &d_own[..sizes[l] * draws_len] };
            if l == 1 {
                layer.pullback(draws_len, input, d_own, d_layer, d_input);
                break;
            }
            let start = hidden_at - sizes[l - 1] * draws_len;
            let (below, d_below) = (&hidden[start..hidden_at], &mut d_below[start..]);
            layer.pullback(draws_len, below, d_own, d_layer, d_below);
            tanh_pullback(below, d_below);
            hidden_at = start;
        }
        scratch.give(d_hidden);
    }
}

fn layer_len(inputs_len: usize, outputs_len: usize) -> usize {
    outputs_len * (inputs_len + 1)
}

impl<'a> Layer<'a> {
    /// Layer `l` of the sizes, whose parameters start at `at`.
    fn new(sizes: &[usize], parameters: &'a [f64], l: usize, at: usize) -> Self {
        let (inputs_len, outputs_len) = (sizes[l - 1], sizes[l]);
        let own = &parameters[at..at + layer_len(inputs_len, outputs_len)];
        let (weights, biases) = own.split_at(inputs_len * outputs_len);
        Self { inputs_len, outputs_len, weights, biases }
    }

    fn forward(&self, draws_len: usize, input: &[f64], output: &mut [f64]) {
        for (column, bias) in output.chunks_exact_mut(draws_len.max(1)).zip(self.biases) {
            column.fill(*bias);
        }
        add_product(self.weights, [self.inputs_len, 1], [self.outputs_len, self.inputs_len], draws_len, input, output);
    }

    fn pullback(
        &self,
        draws_len: usize,
        input: &[f64],
        d_output: &[f64],
        d_parameters: &mut [f64],
        d_input: &mut [f64],
    ) {
        let (d_weights, d_biases) = d_parameters.split_at_mut(self.weights.len());
        for (d_bias, column) in d_biases.iter_mut().zip(d_output.chunks_exact(draws_len.max(1))) {
            *d_bias += column.iter().sum::<f64>();
        }
        let shape = [self.inputs_len, self.outputs_len];
        add_outer(d_output, input, [self.outputs_len, self.inputs_len], draws_len, d_weights);
        add_product(self.weights, [1, self.inputs_len], shape, draws_len, d_output, d_input);
    }
}

/// `ROWS` rows of a product: out\[r, s\] += Σ_i weights\[r · strides\[0\] + i · strides\[1\]\] x\[i, s\].
#[inline(always)]
fn add_rows<S: Simd, const ROWS: usize>(
    s: S,
    weights: &[f64],
    strides: [usize; 2],
    columns_len: usize,
    draws_len: usize,
    x: &[f64],
    out: &mut [f64],
) {
    for at in (0..draws_len).step_by(LANES) {
        let mut sum = [splat(s, 0.0); ROWS];
        for i in 0..columns_len {
            let x = load(s, &x[i * draws_len..(i + 1) * draws_len], at, 0.0);
            for r in 0..ROWS {
                sum[r] = splat(s, weights[r * strides[0] + i * strides[1]]).mul_add(x, sum[r]);
            }
        }
        for r in 0..ROWS {
            let out = &mut out[r * draws_len..(r + 1) * draws_len];
            store(sum[r] + load(s, out, at, 0.0), out, at);
        }
    }
}

#[inline(always)]
fn add_product_kernel<S: Simd>(
    s: S,
    weights: &[f64],
    strides: [usize; 2],
    [rows_len, columns_len]: [usize; 2],
    draws_len: usize,
    x: &[f64],
    out: &mut [f64],
) {
    // Four rows at a time, so that a column is loaded once for four products and the sums do not wait for each other.
    let mut r = 0;
    while r < rows_len {
        let (weights, out) = (weights.get(r * strides[0]..).unwrap_or_default(), &mut out[r * draws_len..]);
        if r + 4 <= rows_len {
            add_rows::<S, 4>(s, weights, strides, columns_len, draws_len, x, out);
            r += 4;
        } else {
            add_rows::<S, 1>(s, weights, strides, columns_len, draws_len, x, out);
            r += 1;
        }
    }
}
crate::simd_fn!(
    /// out += W x for a matrix of shape \[rows, columns\] whose entry (r, i) lies at r · strides\[0\] + i · strides\[1\].
    fn add_product(
        weights: &[f64],
        strides: [usize; 2],
        shape: [usize; 2],
        draws_len: usize,
        x: &[f64],
        out: &mut [f64],
    ) = add_product_kernel
);

#[inline(always)]
fn add_outer_kernel<S: Simd>(
    s: S,
    y: &[f64],
    x: &[f64],
    [rows_len, columns_len]: [usize; 2],
    draws_len: usize,
    out: &mut [f64],
) {
    for r in 0..rows_len {
        let y = &y[r * draws_len..(r + 1) * draws_len];
        let out = &mut out[r * columns_len..(r + 1) * columns_len];
        // Eight columns at a time, so that their sums over draws become one vector.
        for first in (0..columns_len).step_by(LANES) {
            let mut sum: [V<S>; LANES] = [splat(s, 0.0); LANES];
            for at in (0..draws_len).step_by(LANES) {
                let y = load(s, y, at, 0.0);
                for j in 0..LANES.min(columns_len - first) {
                    let x = &x[(first + j) * draws_len..(first + j + 1) * draws_len];
                    sum[j] = y.mul_add(load(s, x, at, 0.0), sum[j]);
                }
            }
            store(sums(sum) + load(s, out, first, 0.0), out, first);
        }
    }
}
crate::simd_fn!(
    /// out\[r, i\] += Σ_s y\[r, s\] x\[i, s\], for a matrix of shape \[rows, columns\] given row by row.
    fn add_outer(y: &[f64], x: &[f64], shape: [usize; 2], draws_len: usize, out: &mut [f64]) = add_outer_kernel
);

#[inline(always)]
fn tanh_in_place_kernel<S: Simd>(s: S, x: &mut [f64]) {
    for at in (0..x.len()).step_by(LANES) {
        store(simd::tanh(s, load(s, x, at, 0.0)), x, at);
    }
}
crate::simd_fn!(
    fn tanh_in_place(x: &mut [f64]) = tanh_in_place_kernel
);

#[inline(always)]
fn tanh_pullback_kernel<S: Simd>(s: S, tanh: &[f64], d: &mut [f64]) {
    for at in (0..d.len()).step_by(LANES) {
        let (t, d_t) = (load(s, tanh, at, 0.0), load(s, d, at, 0.0));
        store((-t).mul_add(t, splat(s, 1.0)) * d_t, d, at);
    }
}
crate::simd_fn!(
    /// d ← d (1 − tanh²): from the cotangent of tanh x to that of x.
    fn tanh_pullback(tanh: &[f64], d: &mut [f64]) = tanh_pullback_kernel
);
