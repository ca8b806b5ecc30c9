//! Functions of sums that are used only in the total, such as the likelihood of a plate. Neither the sums nor the functions are
//! stored: they are evaluated a few members at a time, added to the total and differentiated while still in cache.

use super::backward;
use super::below::{Index, Sum};
use super::forward::{self, Workspace};
use super::program::{Kind, Tape, Terminal};
use super::row::{Row, TILE, VECTORS, get, put};
use crate::expression::{Expr, Expressions, List, Node};
use crate::operation::{Binary, Unary};
use hyperprior_math::simd::prelude::*;
use hyperprior_math::simd::{LANES, Simd, V, exp, softplus_sigmoid, splat};
use hyperprior_math::simd_fn;
use std::collections::HashMap;

/// Members at a time; their rows fit in the L1 cache.
const CHUNK: usize = 32;

/// The most terms of a sum that is multiplied out.
const MULTIPLIED_OUT: usize = 3;

/// A product of two expressions, with its weight in a sum and in the total.
struct Product {
    factors: [Expr; 2],
    inside: f64,
    outside: f64,
}

/// A root that is a function of a sum, where neither the function nor the sum is used elsewhere.
pub(super) struct Found {
    root: Expr,
    f: Unary,
    weight: f64,
    /// The terms that are products and used in the sum alone, or there and in the total.
    products: Vec<Product>,
    terms: Vec<(Expr, f64)>,
    constant: f64,
    /// The list of the terms, if all are rows.
    list: Option<List>,
    /// What needs no rows.
    pub(super) within: Vec<Expr>,
}

/// The expressions of a tape and how they are used.
struct Search<'a> {
    arena: &'a Expressions,
    place: &'a Index,
    uses: &'a [u32],
    /// Their weights in the total.
    weights: HashMap<Expr, f64>,
}

impl Search<'_> {
    fn uses(&self, e: Expr) -> u32 {
        self.uses[self.place.get(e)]
    }

    /// A root as a function of a sum.
    fn found(&self, root: Expr, weight: f64) -> Option<Found> {
        let Node::Unary(f, sum) = self.arena.node(root) else { return None };
        if self.uses(root) > 1 {
            return None;
        }
        let (products, terms, within) = (Vec::new(), Vec::new(), vec![root]);
        let mut found = Found { root, f, weight, products, terms, constant: 0.0, list: None, within };
        let Node::Linear { list, weights, constant } = self.arena.node(sum) else {
            return self.add_product(sum, 1.0, &mut found).then_some(found);
        };
        if self.uses(sum) > 1 {
            return None;
        }
        found.constant = constant;
        found.within.push(sum);
        for (e, w) in self.arena.list(list).iter().zip(self.arena.weights(list, weights)) {
            if !self.add_product(*e, *w, &mut found) {
                found.terms.push((*e, *w));
            }
        }
        found.list = found.products.is_empty().then_some(list);
        Some(found)
    }

    /// Adds an expression with this weight, if it is a product that is used here alone, or here and in the total. A factor that is a short
    /// sum is multiplied out.
    fn add_product(&self, e: Expr, inside: f64, found: &mut Found) -> bool {
        let Node::Binary(Binary::Multiply, a, b) = self.arena.node(e) else { return false };
        let outside = self.weights.get(&e).copied();
        if self.uses(e) != 1 + u32::from(outside.is_some()) {
            return false;
        }
        let outside = outside.unwrap_or(0.0);
        found.within.push(e);
        for [a, b] in [[a, b], [b, a]] {
            if let Node::Linear { list, weights, constant: 0.0 } = self.arena.node(b)
                && self.uses(b) == 1
                && self.arena.list(list).len() <= MULTIPLIED_OUT
            {
                let terms = self.arena.list(list).iter().zip(self.arena.weights(list, weights));
                let product =
                    |(b, w): (&Expr, &f64)| Product { factors: [a, *b], inside: inside * w, outside: outside * w };
                found.products.extend(terms.map(product));
                found.within.push(b);
                return true;
            }
        }
        found.products.push(Product { factors: [a, b], inside, outside });
        true
    }
}

/// The roots that are functions of sums.
pub(super) fn find(arena: &Expressions, place: &Index, sum: &Sum, uses: &[u32]) -> Vec<Found> {
    let search = Search { arena, place, uses, weights: sum.terms.iter().copied().collect() };
    sum.terms.iter().filter_map(|(root, weight)| search.found(*root, *weight)).collect()
}

impl Tape {
    /// Adds the roots that [`find`] returned to the program, grouped by kind.
    pub(super) fn add_terminals(&mut self, found: Vec<Found>, row: impl Fn(Expr) -> u32) {
        let mut lists = HashMap::new();
        for list in found.iter().filter_map(|found| found.list) {
            *lists.entry(list).or_insert(0_u32) += 1;
        }
        let key = |found: &Found| {
            let [products_len, terms_len] = [found.products.len(), found.terms.len()].map(|len| len as u32);
            let (kind, list) = match found.list {
                None => (Kind::Products { products_len, terms_len }, 0),
                Some(list) if lists[&list] > 1 => (Kind::Shared { terms_len }, list.0),
                Some(_) => (Kind::Linear { terms_len }, 0),
            };
            (found.f, kind, list)
        };
        let mut members: Vec<_> = found.into_iter().map(|found| (key(&found), found)).collect();
        members.sort_by_key(|(key, found)| (*key, found.root));
        let mut previous = None;
        for (key, found) in members {
            let (f, kind, _) = key;
            let is_new = previous != Some(key);
            if is_new {
                previous = Some(key);
                let (operands, weights) = (self.operands.len() as u32, self.weights.len() as u32);
                self.terminals.push(Terminal { kind, f, operands, weights, roots: Vec::new() });
            }
            if is_new || !matches!(kind, Kind::Shared { .. }) {
                self.operands.extend(found.products.iter().flat_map(|product| product.factors).map(&row));
                self.operands.extend(found.terms.iter().map(|(e, _)| row(*e)));
            }
            self.weights.extend(found.products.iter().map(|product| product.inside));
            self.weights.extend(found.terms.iter().map(|(_, w)| w));
            self.weights.push(found.constant);
            self.weights.extend(found.products.iter().map(|product| product.outside));
            if let Some(terminal) = self.terminals.last_mut() {
                terminal.roots.push(found.weight);
            }
        }
    }

    /// Adds the terminals to the total.
    pub(super) fn add_values(&self, workspace: &Workspace, total: &mut Row) {
        add_values(self, &workspace.values, workspace.vectors, total);
    }

    /// Adds the terminals to the total, and their derivatives to the cotangents.
    pub(super) fn add_slopes(&self, Workspace { values, cotangents, vectors }: &mut Workspace, total: &mut Row) {
        add_slopes(self, values, *vectors, cotangents, total);
    }
}

simd_fn!(fn add_values(tape: &Tape, values: &[Row], vectors: usize, total: &mut Row) = add_values_kernel);
simd_fn!(
    fn add_slopes(tape: &Tape, values: &[Row], vectors: usize, cotangents: &mut [Row], total: &mut Row) =
        add_slopes_kernel
);

#[inline(always)]
fn add_values_kernel<S: Simd>(s: S, tape: &Tape, values: &[Row], vectors: usize, total: &mut Row) {
    match vectors {
        1 => add::<S, 1>(s, tape, values, None, total),
        _ => add::<S, VECTORS>(s, tape, values, None, total),
    }
}

#[inline(always)]
fn add_slopes_kernel<S: Simd>(
    s: S,
    tape: &Tape,
    values: &[Row],
    vectors: usize,
    cotangents: &mut [Row],
    total: &mut Row,
) {
    match vectors {
        1 => add::<S, 1>(s, tape, values, Some(cotangents), total),
        _ => add::<S, VECTORS>(s, tape, values, Some(cotangents), total),
    }
}

/// Adds every member to the total and, if there are cotangents, its derivatives to them.
#[inline(always)]
fn add<S: Simd, const N: usize>(
    s: S,
    tape: &Tape,
    values: &[Row],
    mut cotangents: Option<&mut [Row]>,
    total: &mut Row,
) {
    let mut rows = [[0.0; TILE]; CHUNK];
    let mut sums = [splat(s, 0.0); N];
    for terminal in &tape.terminals {
        let mut operands = &tape.operands[terminal.operands as usize..];
        let mut weights = &tape.weights[terminal.weights as usize..];
        let (stride, step) = match terminal.kind {
            Kind::Linear { terms_len } => (terms_len as usize + 1, terms_len as usize),
            Kind::Shared { terms_len } => (terms_len as usize + 1, 0),
            Kind::Products { products_len, terms_len } => {
                let len = (2 * products_len + terms_len) as usize;
                (len + 1, len)
            }
            // All terminals are sums.
            _ => continue,
        };
        for roots in terminal.roots.chunks(CHUNK) {
            let rows = &mut rows[..roots.len()];
            let members = || operands.chunks_exact(step).zip(weights.chunks_exact(stride));
            match terminal.kind {
                Kind::Products { products_len, .. } => {
                    add_products::<S, N>(s, products_len as usize, members(), values, rows, &mut sums);
                }
                kind => forward::sums::<S, N>(s, kind, operands, weights, values, rows),
            }
            apply::<S, N>(s, terminal.f, roots, rows, &mut sums);
            match (terminal.kind, cotangents.as_deref_mut()) {
                (_, None) => {}
                (Kind::Products { products_len, .. }, Some(cotangents)) => {
                    add_slopes_of_products::<S, N>(s, products_len as usize, members(), (values, rows), cotangents);
                }
                (kind, Some(cotangents)) => backward::sums::<S, N>(s, kind, operands, weights, rows, cotangents),
            }
            weights = &weights[stride * roots.len()..];
            operands = &operands[step * roots.len()..];
        }
    }
    for v in 0..N {
        put(get(s, total, v) + sums[v], total, v);
    }
}

/// Weighted sums of products and of rows, and the products' own part of the total.
#[inline(always)]
fn add_products<'a, S: Simd, const N: usize>(
    s: S,
    products_len: usize,
    members: impl Iterator<Item = (&'a [u32], &'a [f64])>,
    values: &[Row],
    rows: &mut [Row],
    sums: &mut [V<S>; N],
) {
    for (row, (operands, weights)) in rows.iter_mut().zip(members) {
        let (pairs, terms) = operands.split_at(2 * products_len);
        let (inside, weights) = weights.split_at(products_len);
        let (outside, constant) = (&weights[terms.len() + 1..], weights[terms.len()]);
        let mut own = [splat(s, constant); N];
        for (pair, (inside, outside)) in pairs.chunks_exact(2).zip(inside.iter().zip(outside)) {
            let (a, b) = (&values[pair[0] as usize], &values[pair[1] as usize]);
            for v in 0..N {
                let product = forward::product(s, a, b, v);
                own[v] = product.mul_add(splat(s, *inside), own[v]);
                // An infinite product without weight must not matter.
                if *outside != 0.0 {
                    sums[v] = product.mul_add(splat(s, *outside), sums[v]);
                }
            }
        }
        forward::add_weighted::<S, N>(s, terms, weights, values, &mut own);
        for v in 0..N {
            put(own[v], row, v);
        }
    }
}

/// Adds the derivatives of the same, given those of the sums, to the cotangents.
#[inline(always)]
fn add_slopes_of_products<'a, S: Simd, const N: usize>(
    s: S,
    products_len: usize,
    members: impl Iterator<Item = (&'a [u32], &'a [f64])>,
    (values, rows): (&[Row], &[Row]),
    cotangents: &mut [Row],
) {
    for (row, (operands, weights)) in rows.iter().zip(members) {
        let (pairs, terms) = operands.split_at(2 * products_len);
        let (inside, weights) = weights.split_at(products_len);
        let outside = &weights[terms.len() + 1..];
        for (pair, (inside, outside)) in pairs.chunks_exact(2).zip(inside.iter().zip(outside)) {
            for (to, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let (to, other) = (&mut cotangents[to as usize], &values[other as usize]);
                for v in 0..N {
                    let d = get(s, row, v).mul_add(splat(s, *inside), splat(s, *outside));
                    put(backward::add_product(s, get(s, to, v), d, get(s, other, v)), to, v);
                }
            }
        }
        backward::add_weighted::<S, N>(s, terms, weights, row, cotangents);
    }
}

/// Adds the weighted values to the sums, and overwrites the rows with the weighted slopes.
#[inline(always)]
fn apply<S: Simd, const N: usize>(s: S, f: Unary, roots: &[f64], rows: &mut [Row], sums: &mut [V<S>; N]) {
    match f {
        Unary::Softplus => each::<S, Softplus, N>(s, roots, rows, sums),
        Unary::Exp => each::<S, Exp, N>(s, roots, rows, sums),
        Unary::Square => each::<S, Square, N>(s, roots, rows, sums),
        _ => {
            for (row, w) in rows.iter_mut().zip(roots) {
                let mut y = [0.0; TILE];
                for i in 0..N * LANES {
                    y[i] = f.apply(row[i]);
                }
                for v in 0..N {
                    sums[v] = get(s, &y, v).mul_add(splat(s, *w), sums[v]);
                }
                for i in 0..N * LANES {
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
fn each<S: Simd, C: Curve, const N: usize>(s: S, roots: &[f64], rows: &mut [Row], sums: &mut [V<S>; N]) {
    for (row, w) in rows.iter_mut().zip(roots) {
        let w = splat(s, *w);
        for v in 0..N {
            let (value, slope) = C::at(s, get(s, row, v));
            sums[v] = value.mul_add(w, sums[v]);
            put(slope * w, row, v);
        }
    }
}
