//! Reverse-mode differentiation of a tape: the runs in reverse, each adding to the cotangents of its operands.
//!
//! A cotangent of zero adds nothing, even if the derivative is infinite: a term without weight must not matter.

use super::forward::{Workspace, chosen, rows, sigmoid, sum};
use super::log_sums::log_product_slopes;
use super::program::{Kind, Tape};
use super::row::{Row, TILE, VECTORS, get, put};
use crate::operation::{Binary, Unary};
use hyperprior_math::batch::Batch;
use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V, exp, splat};
use hyperprior_math::simd_fn;

impl Tape {
    /// Computes all cotangents of the roots' sum, and returns the sum. The values must have been evaluated.
    pub(crate) fn backward(&self, workspace: &mut Workspace) -> Row {
        let Workspace { values, cotangents, vectors } = workspace;
        cotangents.resize(values.len(), [0.0; TILE]);
        cotangents.iter_mut().for_each(|row| row[..*vectors * LANES].fill(0.0));
        for (row, w) in &self.roots {
            cotangents[*row as usize][..*vectors * LANES].iter_mut().for_each(|d| *d += w);
        }
        let mut total = [self.offset; TILE];
        sum(&self.roots, values, *vectors, &mut total);
        self.add_slopes(workspace, &mut total);
        backward(self, &workspace.values, workspace.vectors, &mut workspace.cotangents);
        total
    }

    /// Copies the latents' cotangents to the draws from `first` on.
    pub(crate) fn store(&self, workspace: &Workspace, first: usize, d_z: &mut Batch) {
        let len = (d_z.draws_len() - first).min(TILE);
        for (row, column) in &self.inputs {
            let to = &mut d_z.column_mut(*column as usize)[first..first + len];
            to.copy_from_slice(&workspace.cotangents[*row as usize][..len]);
        }
    }
}

simd_fn!(fn backward(tape: &Tape, values: &[Row], vectors: usize, cotangents: &mut [Row]) = backward_kernel);

#[inline(always)]
fn backward_kernel<S: Simd>(s: S, tape: &Tape, values: &[Row], vectors: usize, cotangents: &mut [Row]) {
    match vectors {
        1 => backward_with::<S, 1>(s, tape, values, cotangents),
        _ => backward_with::<S, VECTORS>(s, tape, values, cotangents),
    }
}

#[inline(always)]
fn backward_with<S: Simd, const N: usize>(s: S, tape: &Tape, values: &[Row], cotangents: &mut [Row]) {
    for run in tape.runs.iter().rev() {
        let operands = tape.operands_of(run);
        let weights = tape.weights_of(run);
        let (before, rest) = cotangents.split_at_mut(run.rows.start as usize);
        let own = &rest[..run.rows.len()];
        let values_own = &values[rows(run)];
        match run.kind {
            Kind::Shared { .. } | Kind::Linear { .. } => sums::<S, N>(s, run.kind, operands, weights, own, before),
            // Only terminals are.
            Kind::Products { .. } => {}
            Kind::Unary(f) => unary::<S, N>(s, f, operands, values, values_own, own, before),
            Kind::Binary(f) => binary::<S, N>(s, f, operands, values, values_own, own, before),
            Kind::Ternary(f) => {
                for (d, o) in own.iter().zip(operands.chunks_exact(3)) {
                    let o = [o[0], o[1], o[2]].map(|o| o as usize);
                    for i in (0..N * LANES).filter(|i| d[*i] != 0.0) {
                        let slopes = f.derivatives(o.map(|o| values[o][i]));
                        for (o, slope) in o.into_iter().zip(slopes).filter(|(_, slope)| *slope != 0.0) {
                            before[o][i] += d[i] * slope;
                        }
                    }
                }
            }
            Kind::Select { choices_len } => {
                let (choices, indices) = operands.split_at(choices_len as usize);
                for (d, index) in own.iter().zip(indices) {
                    let index = &values[*index as usize];
                    for i in 0..N * LANES {
                        if let Some(row) = chosen(index[i], choices) {
                            before[row][i] += d[i];
                        }
                    }
                }
            }
            Kind::LogProduct { terms_len } => {
                let further = &values[run.rows.end as usize..][..run.further_len() as usize];
                log_product_slopes::<S, N>(s, terms_len as usize, operands, (values, values_own, further), own, before);
            }
            Kind::LogSumExp { terms_len, keeps_shares } => {
                let each = operands.chunks_exact(terms_len as usize);
                for ((d, total), operands) in own.iter().zip(values_own).zip(each) {
                    for o in operands {
                        let (x, to) = (&values[*o as usize], &mut before[*o as usize]);
                        for v in 0..N {
                            let (d, x) = (get(s, d, v), get(s, x, v));
                            let share = if keeps_shares { x } else { exp(s, x - get(s, total, v)) };
                            put(add_product(s, get(s, to, v), d, share), to, v);
                        }
                    }
                }
            }
        }
    }
}

/// a + d · slope; a if d is zero, whatever the slope.
#[inline(always)]
pub(super) fn add_product<S: Simd>(s: S, a: V<S>, d: V<S>, slope: V<S>) -> V<S> {
    d.simd_eq(splat(s, 0.0)).select(a, d.mul_add(slope, a))
}

/// Weighted sums.
#[inline(always)]
pub(super) fn sums<S: Simd, const N: usize>(
    s: S,
    kind: Kind,
    operands: &[u32],
    weights: &[f64],
    own: &[Row],
    before: &mut [Row],
) {
    match kind {
        Kind::Shared { terms_len } => shared::<S, N>(s, &operands[..terms_len as usize], weights, own, before),
        Kind::Linear { terms_len } => {
            let len = terms_len as usize;
            for ((d, operands), weights) in
                own.iter().zip(operands.chunks_exact(len)).zip(weights.chunks_exact(len + 1))
            {
                add_weighted::<S, N>(s, operands, weights, d, before);
            }
        }
        // The other kinds are not sums.
        _ => {}
    }
}

/// A weighted sum.
#[inline(always)]
pub(super) fn add_weighted<S: Simd, const N: usize>(
    s: S,
    operands: &[u32],
    weights: &[f64],
    d: &Row,
    before: &mut [Row],
) {
    for (o, w) in operands.iter().zip(weights) {
        let to = &mut before[*o as usize];
        for v in 0..N {
            put(get(s, d, v).mul_add(splat(s, *w), get(s, to, v)), to, v);
        }
    }
}

/// Sums of the same rows, four rows at a time: each row's cotangent is summed over all members before it is written.
#[inline(always)]
fn shared<S: Simd, const N: usize>(s: S, operands: &[u32], weights: &[f64], own: &[Row], before: &mut [Row]) {
    const ROWS: usize = 4;
    let stride = operands.len() + 1;
    let mut at = 0;
    while at + ROWS <= operands.len() {
        let mut sums = [[splat(s, 0.0); N]; ROWS];
        for (d, weights) in own.iter().zip(weights.chunks_exact(stride)) {
            for v in 0..N {
                let d = get(s, d, v);
                for r in 0..ROWS {
                    sums[r][v] = d.mul_add(splat(s, weights[at + r]), sums[r][v]);
                }
            }
        }
        for r in 0..ROWS {
            let to = &mut before[operands[at + r] as usize];
            for v in 0..N {
                put(get(s, to, v) + sums[r][v], to, v);
            }
        }
        at += ROWS;
    }
    for (k, o) in operands.iter().enumerate().skip(at) {
        let mut sums = [splat(s, 0.0); N];
        for (d, weights) in own.iter().zip(weights.chunks_exact(stride)) {
            for v in 0..N {
                sums[v] = get(s, d, v).mul_add(splat(s, weights[k]), sums[v]);
            }
        }
        let to = &mut before[*o as usize];
        for v in 0..N {
            put(get(s, to, v) + sums[v], to, v);
        }
    }
}

#[inline(always)]
fn each<S: Simd, const N: usize>(
    s: S,
    operands: &[u32],
    values: &[Row],
    values_own: &[Row],
    own: &[Row],
    before: &mut [Row],
    slope: impl Fn(V<S>, V<S>) -> V<S>,
) {
    for ((d, y), o) in own.iter().zip(values_own).zip(operands) {
        let (x, to) = (&values[*o as usize], &mut before[*o as usize]);
        for v in 0..N {
            let slope = slope(get(s, x, v), get(s, y, v));
            put(add_product(s, get(s, to, v), get(s, d, v), slope), to, v);
        }
    }
}

#[inline(always)]
fn unary<S: Simd, const N: usize>(
    s: S,
    f: Unary,
    operands: &[u32],
    values: &[Row],
    values_own: &[Row],
    own: &[Row],
    before: &mut [Row],
) {
    match f {
        Unary::Exp => each::<S, N>(s, operands, values, values_own, own, before, |_, y| y),
        Unary::Log => each::<S, N>(s, operands, values, values_own, own, before, |x, _| splat(s, 1.0) / x),
        Unary::Square => each::<S, N>(s, operands, values, values_own, own, before, |x, _| x + x),
        Unary::Reciprocal => each::<S, N>(s, operands, values, values_own, own, before, |_, y| -(y * y)),
        Unary::Softplus => each::<S, N>(s, operands, values, values_own, own, before, |x, _| sigmoid(s, x)),
        Unary::Sigmoid => {
            each::<S, N>(s, operands, values, values_own, own, before, |_, y| y * (splat(s, 1.0) - y));
        }
        Unary::Step | Unary::IsZero | Unary::Round | Unary::Trunc => {}
        _ => {
            for ((d, y), o) in own.iter().zip(values_own).zip(operands) {
                let (x, to) = (&values[*o as usize], &mut before[*o as usize]);
                for i in 0..N * LANES {
                    if d[i] != 0.0 {
                        to[i] += d[i] * f.derivative(x[i], y[i]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn binary<S: Simd, const N: usize>(
    s: S,
    f: Binary,
    operands: &[u32],
    values: &[Row],
    values_own: &[Row],
    own: &[Row],
    before: &mut [Row],
) {
    for ((d, y), pair) in own.iter().zip(values_own).zip(operands.chunks_exact(2)) {
        let (a, b) = (pair[0] as usize, pair[1] as usize);
        if f == Binary::Multiply {
            for (to, other) in [(a, b), (b, a)] {
                let to = &mut before[to];
                for v in 0..N {
                    put(add_product(s, get(s, to, v), get(s, d, v), get(s, &values[other], v)), to, v);
                }
            }
            continue;
        }
        for i in 0..N * LANES {
            if d[i] != 0.0 {
                let (d_a, d_b) = f.derivatives(values[a][i], values[b][i], y[i]);
                // The other derivative may be infinite, and zero times infinity would be NaN.
                if d_a != 0.0 {
                    before[a][i] += d[i] * d_a;
                }
                if d_b != 0.0 {
                    before[b][i] += d[i] * d_b;
                }
            }
        }
    }
}
