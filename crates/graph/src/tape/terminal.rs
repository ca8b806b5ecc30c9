//! Functions of sums that are used only in the total, such as the likelihood of a plate. Neither the sums nor the functions are
//! stored: they are evaluated a few members at a time, added to the total and differentiated while still in cache.

use super::backward;
use super::below::{Below, Index, Sum};
use super::forward::{self, VECTORS, get, put};
use super::program::{Kind, Row, TILE, Tape, Terminal};
use crate::expression::{Expr, Expressions, Node};
use crate::operation::Unary;
use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{Simd, V, exp, softplus_sigmoid, splat};
use hyperprior_math::simd_fn;

/// Members at a time; their rows fit in the L1 cache.
const CHUNK: usize = 32;

/// The roots that are functions of sums, where neither the function nor the sum is used elsewhere: their places and weights.
pub(super) fn find(arena: &Expressions, place: &Index, sum: &Sum, uses: &[u32]) -> Vec<(usize, f64)> {
    let is_alone = |e: Expr| uses[place.get(e)] == 1;
    let is_terminal = |e: Expr| match arena.node(e) {
        Node::Unary(_, a) => is_alone(e) && is_alone(a) && matches!(arena.node(a), Node::Linear { .. }),
        _ => false,
    };
    sum.terms.iter().filter(|(e, _)| is_terminal(*e)).map(|(e, w)| (place.get(*e), *w)).collect()
}

impl Tape {
    /// Adds the roots that [`find`] returned to the program, grouped by kind.
    pub(super) fn add_terminals(
        &mut self,
        arena: &Expressions,
        below: &Below,
        found: Vec<(usize, f64)>,
        row: impl Fn(Expr) -> u32,
    ) {
        let parts = |root: usize| match arena.node(below.exprs[root]) {
            Node::Unary(f, a) => match arena.node(a) {
                Node::Linear { list, weights, constant } => Some((f, list, weights, constant)),
                _ => None,
            },
            _ => None,
        };
        let mut lists = std::collections::HashMap::new();
        for (_, list, ..) in found.iter().filter_map(|(root, _)| parts(*root)) {
            *lists.entry(list).or_insert(0_u32) += 1;
        }
        let mut members = Vec::with_capacity(found.len());
        for (root, w) in found {
            let Some((f, list, weights, constant)) = parts(root) else { continue };
            let terms_len = arena.list(list).len() as u32;
            let (kind, key) = match lists[&list] {
                1 => (Kind::Linear { terms_len }, 0),
                _ => (Kind::Shared { terms_len }, list.0),
            };
            members.push(((f, kind, key), root, w, list, arena.weights(list, weights), constant));
        }
        members.sort_by_key(|m| (m.0, m.1));
        let mut previous = None;
        for (key, _, w, list, weights, constant) in members {
            let (f, kind, _) = key;
            let is_new = previous != Some(key);
            if is_new {
                previous = Some(key);
                let (operands, weights) = (self.operands.len() as u32, self.weights.len() as u32);
                self.terminals.push(Terminal { kind, f, operands, weights, roots: Vec::new() });
            }
            if is_new || matches!(kind, Kind::Linear { .. }) {
                self.operands.extend(arena.list(list).iter().map(|e| row(*e)));
            }
            self.weights.extend_from_slice(weights);
            self.weights.push(constant);
            if let Some(terminal) = self.terminals.last_mut() {
                terminal.roots.push(w);
            }
        }
    }

    /// Adds the terminals to the total.
    pub(super) fn add_values(&self, values: &[Row], total: &mut Row) {
        add_values(self, values, total);
    }

    /// Adds the terminals to the total, and their derivatives to the cotangents.
    pub(super) fn add_slopes(&self, values: &[Row], cotangents: &mut [Row], total: &mut Row) {
        add_slopes(self, values, cotangents, total);
    }
}

simd_fn!(fn add_values(tape: &Tape, values: &[Row], total: &mut Row) = add_values_kernel);
simd_fn!(fn add_slopes(tape: &Tape, values: &[Row], cotangents: &mut [Row], total: &mut Row) = add_slopes_kernel);

#[inline(always)]
fn add_values_kernel<S: Simd>(s: S, tape: &Tape, values: &[Row], total: &mut Row) {
    add(s, tape, values, None, total);
}

#[inline(always)]
fn add_slopes_kernel<S: Simd>(s: S, tape: &Tape, values: &[Row], cotangents: &mut [Row], total: &mut Row) {
    add(s, tape, values, Some(cotangents), total);
}

/// Adds every member to the total and, if there are cotangents, its derivatives to them.
#[inline(always)]
fn add<S: Simd>(s: S, tape: &Tape, values: &[Row], mut cotangents: Option<&mut [Row]>, total: &mut Row) {
    let mut rows = [[0.0; TILE]; CHUNK];
    let mut sums = [splat(s, 0.0); VECTORS];
    for terminal in &tape.terminals {
        let mut operands = &tape.operands[terminal.operands as usize..];
        let mut weights = &tape.weights[terminal.weights as usize..];
        let (stride, step) = match terminal.kind {
            Kind::Linear { terms_len } => (terms_len as usize + 1, terms_len as usize),
            Kind::Shared { terms_len } => (terms_len as usize + 1, 0),
            // All terminals are sums.
            _ => continue,
        };
        for roots in terminal.roots.chunks(CHUNK) {
            let rows = &mut rows[..roots.len()];
            forward::sums(s, terminal.kind, operands, weights, values, rows);
            apply(s, terminal.f, roots, rows, &mut sums);
            if let Some(cotangents) = cotangents.as_deref_mut() {
                backward::sums(s, terminal.kind, operands, weights, rows, cotangents);
            }
            weights = &weights[stride * roots.len()..];
            operands = &operands[step * roots.len()..];
        }
    }
    for v in 0..VECTORS {
        put(get(s, total, v) + sums[v], total, v);
    }
}

/// Adds the weighted values to the sums, and overwrites the rows with the weighted slopes.
#[inline(always)]
fn apply<S: Simd>(s: S, f: Unary, roots: &[f64], rows: &mut [Row], sums: &mut [V<S>; VECTORS]) {
    match f {
        Unary::Softplus => each::<S, Softplus>(s, roots, rows, sums),
        Unary::Exp => each::<S, Exp>(s, roots, rows, sums),
        Unary::Square => each::<S, Square>(s, roots, rows, sums),
        _ => {
            for (row, w) in rows.iter_mut().zip(roots) {
                let y = row.map(|x| f.apply(x));
                for v in 0..VECTORS {
                    sums[v] = get(s, &y, v).mul_add(splat(s, *w), sums[v]);
                }
                for i in 0..TILE {
                    row[i] = w * f.derivative(row[i], y[i]);
                }
            }
        }
    }
}

/// A function together with its derivative. A trait, because a closure would not be compiled for the SIMD level.
trait Curve {
    fn at<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>);
}

struct Softplus;
struct Exp;
struct Square;

impl Curve for Softplus {
    #[inline(always)]
    fn at<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
        softplus_sigmoid(s, x)
    }
}

impl Curve for Exp {
    #[inline(always)]
    fn at<S: Simd>(s: S, x: V<S>) -> (V<S>, V<S>) {
        let y = exp(s, x);
        (y, y)
    }
}

impl Curve for Square {
    #[inline(always)]
    fn at<S: Simd>(_: S, x: V<S>) -> (V<S>, V<S>) {
        (x * x, x + x)
    }
}

#[inline(always)]
fn each<S: Simd, C: Curve>(s: S, roots: &[f64], rows: &mut [Row], sums: &mut [V<S>; VECTORS]) {
    for (row, w) in rows.iter_mut().zip(roots) {
        let w = splat(s, *w);
        for v in 0..VECTORS {
            let (value, slope) = C::at(s, get(s, row, v));
            sums[v] = value.mul_add(w, sums[v]);
            put(slope * w, row, v);
        }
    }
}
