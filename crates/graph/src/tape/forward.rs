//! Evaluating a tape.

use super::log_sums::{log_product, log_sum_exp, log_sum_exp_with_shares};
use super::program::{Kind, Run, Tape};
use super::row::{Row, TILE, VECTORS, get, put};
use crate::operation::{Binary, Ternary, Unary, x_log_y};
use hyperprior_math::batch::Batch;
use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V, exp, ln, softplus_sigmoid, splat};
use hyperprior_math::simd_fn;
use std::ops::Range;

/// The rows of a tape for one tile of draws.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(super) values: Vec<Row>,
    pub(super) cotangents: Vec<Row>,
    /// The vectors of a row that the draws fill; what follows them is not evaluated.
    pub(super) vectors: usize,
}

impl Workspace {
    pub(crate) fn new(tape: &Tape) -> Self {
        let mut values = vec![[0.0; TILE]; tape.rows_len()];
        for (row, x) in &tape.constants {
            values[*row as usize] = [*x; TILE];
        }
        Self { values, cotangents: Vec::new(), vectors: VECTORS }
    }

    /// The numbers in a row that are evaluated.
    pub(crate) fn len(&self) -> usize {
        self.vectors * LANES
    }
}

impl Tape {
    /// Copies the draws from `first` on into the rows of the latents, and fills an incomplete tile with the last draw.
    pub(crate) fn load(&self, z: &Batch, first: usize, workspace: &mut Workspace) {
        let len = (z.draws_len() - first).min(TILE);
        workspace.vectors = len.div_ceil(LANES);
        for (row, column) in &self.inputs {
            let from = &z.column(*column as usize)[first..first + len];
            let to = &mut workspace.values[*row as usize];
            to[..len].copy_from_slice(from);
            to[len..].fill(from[len - 1]);
        }
    }

    /// Sets a latent of every draw to one value.
    pub(crate) fn set(&self, column: u32, x: f64, workspace: &mut Workspace) {
        for (row, _) in self.inputs.iter().filter(|(_, c)| *c == column) {
            workspace.values[*row as usize] = [x; TILE];
        }
    }

    /// Evaluates everything.
    pub(crate) fn forward(&self, workspace: &mut Workspace) {
        forward(self, 0..self.runs.len(), workspace.vectors, &mut workspace.values);
    }

    /// Evaluates what does not depend on the varying latent.
    pub(crate) fn forward_fixed(&self, workspace: &mut Workspace) {
        forward(self, 0..self.varying, workspace.vectors, &mut workspace.values);
    }

    /// Evaluates what depends on the varying latent.
    pub(crate) fn forward_varying(&self, workspace: &mut Workspace) {
        forward(self, self.varying..self.runs.len(), workspace.vectors, &mut workspace.values);
    }

    /// The sum of the roots.
    pub(crate) fn total(&self, workspace: &Workspace) -> Row {
        let mut total = [self.offset; TILE];
        sum(&self.roots, &workspace.values, workspace.vectors, &mut total);
        self.add_values(workspace, &mut total);
        total
    }

    /// The value of an output.
    pub(crate) fn output<'a>(&self, k: usize, workspace: &'a Workspace) -> &'a Row {
        &workspace.values[self.outputs[k] as usize]
    }

    /// The roots' rows and weights.
    pub(crate) fn roots(&self) -> &[(u32, f64)] {
        &self.roots
    }

    /// The value of a row.
    pub(crate) fn row<'a>(&self, row: u32, workspace: &'a Workspace) -> &'a Row {
        &workspace.values[row as usize]
    }
}

simd_fn!(fn forward(tape: &Tape, runs: Range<usize>, vectors: usize, values: &mut [Row]) = forward_kernel);
simd_fn!(pub(super) fn sum(roots: &[(u32, f64)], values: &[Row], vectors: usize, total: &mut Row) = sum_kernel);

#[inline(always)]
fn sum_kernel<S: Simd>(s: S, roots: &[(u32, f64)], values: &[Row], vectors: usize, total: &mut Row) {
    match vectors {
        1 => sum_with::<S, 1>(s, roots, values, total),
        _ => sum_with::<S, VECTORS>(s, roots, values, total),
    }
}

#[inline(always)]
fn sum_with<S: Simd, const N: usize>(s: S, roots: &[(u32, f64)], values: &[Row], total: &mut Row) {
    let mut sums = [splat(s, 0.0); N];
    for v in 0..N {
        sums[v] = get(s, total, v);
    }
    for (row, w) in roots {
        let row = &values[*row as usize];
        for v in 0..N {
            sums[v] = get(s, row, v).mul_add(splat(s, *w), sums[v]);
        }
    }
    for v in 0..N {
        put(sums[v], total, v);
    }
}

#[inline(always)]
fn forward_kernel<S: Simd>(s: S, tape: &Tape, runs: Range<usize>, vectors: usize, values: &mut [Row]) {
    match vectors {
        1 => forward_with::<S, 1>(s, tape, runs, values),
        _ => forward_with::<S, VECTORS>(s, tape, runs, values),
    }
}

#[inline(always)]
fn forward_with<S: Simd, const N: usize>(s: S, tape: &Tape, runs: Range<usize>, values: &mut [Row]) {
    for run in &tape.runs[runs] {
        let operands = tape.operands_of(run);
        let (before, rest) = values.split_at_mut(run.rows.start as usize);
        let (own, further) = rest.split_at_mut(run.rows.len());
        match run.kind {
            Kind::Shared { .. } | Kind::Linear { .. } => {
                sums::<S, N>(s, run.kind, operands, tape.weights_of(run), before, own)
            }
            // Only terminals are.
            Kind::Products { .. } => {}
            Kind::Unary(f) => unary::<S, N>(s, f, operands, before, own),
            Kind::Binary(f) => binary::<S, N>(s, f, operands, before, own),
            Kind::Ternary(f) => ternary::<N>(f, operands, before, own),
            Kind::Select { choices_len } => {
                let (choices, indices) = operands.split_at(choices_len as usize);
                select::<N>(choices, indices, before, own);
            }
            Kind::LogProduct { terms_len } => {
                log_product::<S, N>(
                    s,
                    terms_len as usize,
                    operands,
                    before,
                    own,
                    &mut further[..run.further_len() as usize],
                );
            }
            Kind::LogSumExp { terms_len, keeps_shares: false } => {
                log_sum_exp::<S, N>(s, terms_len as usize, operands, before, own);
            }
            Kind::LogSumExp { terms_len, keeps_shares: true } => {
                log_sum_exp_with_shares::<S, N>(s, terms_len as usize, operands, before, own);
            }
        }
    }
}

/// Weighted sums, each with its constant.
#[inline(always)]
pub(super) fn sums<S: Simd, const N: usize>(
    s: S,
    kind: Kind,
    operands: &[u32],
    weights: &[f64],
    before: &[Row],
    own: &mut [Row],
) {
    match kind {
        Kind::Shared { terms_len } => shared::<S, N>(s, &operands[..terms_len as usize], weights, before, own),
        Kind::Linear { terms_len } => linear::<S, N>(s, terms_len as usize, operands, weights, before, own),
        // The other kinds are not sums.
        _ => {}
    }
}

/// Sums of the same rows, four sums at a time, so that each row is read once for all four.
#[inline(always)]
fn shared<S: Simd, const N: usize>(s: S, operands: &[u32], weights: &[f64], before: &[Row], own: &mut [Row]) {
    const SUMS: usize = 4;
    let stride = operands.len() + 1;
    let mut at = 0;
    while at + SUMS <= own.len() {
        let weights = &weights[at * stride..(at + SUMS) * stride];
        let mut sums = [[splat(s, 0.0); N]; SUMS];
        for m in 0..SUMS {
            sums[m] = [splat(s, weights[m * stride + operands.len()]); N];
        }
        for (k, o) in operands.iter().enumerate() {
            let row = &before[*o as usize];
            for v in 0..N {
                let x = get(s, row, v);
                for m in 0..SUMS {
                    sums[m][v] = x.mul_add(splat(s, weights[m * stride + k]), sums[m][v]);
                }
            }
        }
        for m in 0..SUMS {
            for v in 0..N {
                put(sums[m][v], &mut own[at + m], v);
            }
        }
        at += SUMS;
    }
    for (out, weights) in own[at..].iter_mut().zip(weights[at * stride..].chunks_exact(stride)) {
        weighted::<S, N>(s, operands, weights, before, out);
    }
}

#[inline(always)]
fn linear<S: Simd, const N: usize>(
    s: S,
    len: usize,
    operands: &[u32],
    weights: &[f64],
    before: &[Row],
    own: &mut [Row],
) {
    for ((out, operands), weights) in own.iter_mut().zip(operands.chunks_exact(len)).zip(weights.chunks_exact(len + 1))
    {
        weighted::<S, N>(s, operands, weights, before, out);
    }
}

#[inline(always)]
fn weighted<S: Simd, const N: usize>(s: S, operands: &[u32], weights: &[f64], before: &[Row], out: &mut Row) {
    let mut sums = [splat(s, weights[operands.len()]); N];
    add_weighted::<S, N>(s, operands, weights, before, &mut sums);
    for v in 0..N {
        put(sums[v], out, v);
    }
}

/// Adds weighted rows.
#[inline(always)]
pub(super) fn add_weighted<S: Simd, const N: usize>(
    s: S,
    operands: &[u32],
    weights: &[f64],
    before: &[Row],
    sums: &mut [V<S>; N],
) {
    for (o, w) in operands.iter().zip(weights) {
        let row = &before[*o as usize];
        for v in 0..N {
            sums[v] = get(s, row, v).mul_add(splat(s, *w), sums[v]);
        }
    }
}

#[inline(always)]
fn each<S: Simd, const N: usize>(s: S, operands: &[u32], before: &[Row], own: &mut [Row], f: impl Fn(V<S>) -> V<S>) {
    for (out, o) in own.iter_mut().zip(operands) {
        let row = &before[*o as usize];
        for v in 0..N {
            put(f(get(s, row, v)), out, v);
        }
    }
}

#[inline(always)]
fn unary<S: Simd, const N: usize>(s: S, f: Unary, operands: &[u32], before: &[Row], own: &mut [Row]) {
    match f {
        Unary::Exp => each::<S, N>(s, operands, before, own, |x| exp(s, x)),
        Unary::Log => each::<S, N>(s, operands, before, own, |x| ln(s, x)),
        Unary::Square => each::<S, N>(s, operands, before, own, |x| x * x),
        Unary::Reciprocal => each::<S, N>(s, operands, before, own, |x| splat(s, 1.0) / x),
        Unary::Abs => each::<S, N>(s, operands, before, own, |x| x.abs()),
        Unary::Softplus => each::<S, N>(s, operands, before, own, |x| softplus_sigmoid(s, x).0),
        Unary::Sigmoid => each::<S, N>(s, operands, before, own, |x| sigmoid(s, x)),
        _ => {
            for (out, o) in own.iter_mut().zip(operands) {
                let x = &before[*o as usize];
                for i in 0..N * LANES {
                    out[i] = f.apply(x[i]);
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn sigmoid<S: Simd>(s: S, x: V<S>) -> V<S> {
    let e = exp(s, -x.abs());
    let inverse = splat(s, 1.0) / (e + 1.0);
    x.simd_ge(splat(s, 0.0)).select(inverse, e * inverse)
}

/// The product of two rows; zero if one of them is, whatever the other.
#[inline(always)]
pub(super) fn product<S: Simd>(s: S, a: &Row, b: &Row, v: usize) -> V<S> {
    let (a, b, zero) = (get(s, a, v), get(s, b, v), splat(s, 0.0));
    (a.simd_eq(zero) | b.simd_eq(zero)).select(zero, a * b)
}

#[inline(always)]
fn binary<S: Simd, const N: usize>(s: S, f: Binary, operands: &[u32], before: &[Row], own: &mut [Row]) {
    for (out, pair) in own.iter_mut().zip(operands.chunks_exact(2)) {
        let (a, b) = (&before[pair[0] as usize], &before[pair[1] as usize]);
        match f {
            Binary::Multiply => {
                for v in 0..N {
                    put(product(s, a, b, v), out, v);
                }
            }
            Binary::XLogY => {
                for i in 0..N * LANES {
                    out[i] = x_log_y(a[i], b[i]);
                }
            }
            _ => {
                for i in 0..N * LANES {
                    out[i] = f.apply(a[i], b[i]);
                }
            }
        }
    }
}

fn ternary<const N: usize>(f: Ternary, operands: &[u32], before: &[Row], own: &mut [Row]) {
    for (out, o) in own.iter_mut().zip(operands.chunks_exact(3)) {
        let [a, b, c] = [o[0], o[1], o[2]].map(|o| &before[o as usize]);
        for i in 0..N * LANES {
            out[i] = f.apply([a[i], b[i], c[i]]);
        }
    }
}

/// The row that a random index (counted from one) selects.
#[inline(always)]
pub(super) fn chosen(index: f64, choices: &[u32]) -> Option<usize> {
    // The cast maps NaN and negative numbers to 0, which is not an index.
    let k = index as usize;
    (k >= 1 && k <= choices.len() && k as f64 == index).then(|| choices[k - 1] as usize)
}

fn select<const N: usize>(choices: &[u32], indices: &[u32], before: &[Row], own: &mut [Row]) {
    for (out, index) in own.iter_mut().zip(indices) {
        let index = &before[*index as usize];
        for i in 0..N * LANES {
            out[i] = chosen(index[i], choices).map_or(f64::NAN, |row| before[row][i]);
        }
    }
}

/// The rows of a run.
pub(super) fn rows(run: &Run) -> Range<usize> {
    run.rows.start as usize..run.rows.end as usize
}
