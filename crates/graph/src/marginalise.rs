//! Variable elimination: discrete latents in parts of the graph with small treewidth are marginalised out of the log joint.
//!
//! A term that contains such latents becomes a table of expressions, one for each of their joint values. Eliminating a latent
//! adds the tables that contain it and takes the log-sum-exp over its values. The result is again an expression, evaluated and
//! differentiated like any other, and equal entries are one node. The terms of the sums are stored: the latent is drawn from
//! them afterwards.
//!
//! A count is summed over a window of its values. Each table that contains a count also has a bound of what the values outside the
//! window would add: of the probability there for the count's own distribution, of the largest value there for the others.

use super::counts::{Factor, Own};
use super::elimination::domain;
use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Ternary};
use super::rewrite::Substitution;
use super::unconstrained::{Term, Unconstrained};
use hyperprior::model::Support;
use std::collections::{BTreeSet, HashSet};

/// A factor of which no bound is known counts as this many times its sum over the window, so that practically all of the count's
/// distribution has to lie in the window.
const UNBOUNDED: f64 = 1e5;

/// The elimination of one latent.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The number of its coordinate.
    pub(crate) latent: u32,
    /// Its smallest value; the others are consecutive.
    pub(crate) low: f64,
    pub(crate) values_len: usize,
    /// The latents that are drawn before it: their coordinates, smallest values and numbers of values.
    pub(crate) scope: Vec<(u32, f64, usize)>,
    /// The log weight of each value (fastest) for each joint value of the scope (its last latent fastest).
    pub(crate) table: Vec<Expr>,
}

/// A truncated sum, and a bound of what it leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// The coordinate that is summed over.
    pub(crate) latent: u32,
    pub(crate) rest: Expr,
    pub(crate) sum: Expr,
}

/// The log joint with latents marginalised.
#[derive(Clone, Debug)]
pub(crate) struct Marginalised {
    pub(crate) arena: Expressions,
    pub(crate) terms: Vec<Expr>,
    /// In the order of elimination; drawing goes through them in reverse.
    pub(crate) stages: Vec<Stage>,
    pub(crate) tails: Vec<Tail>,
}

/// A table over some latents, given by their places in the elimination order.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) scope: Vec<usize>,
    pub(super) entries: Vec<Expr>,
    /// Bounds outside the window of the count in the scope, if there is one. A scope never has two.
    pub(super) outside: Option<Outside>,
}

/// Bounds of a table outside the window of a count, for each joint value of the other latents in its scope.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    count: usize,
    above: Vec<Expr>,
    /// Empty if the window starts at the least value.
    below: Vec<Expr>,
}

/// Marginalises the latents in this order, and sums counts over the values of this level.
pub(crate) fn marginalise(unconstrained: &Unconstrained, order: &[u32], level: u32) -> Marginalised {
    let mut arena = unconstrained.arena.clone();
    let domains: Vec<(f64, usize)> = order
        .iter()
        .map(|l| domain(&unconstrained.coordinates[*l as usize], level))
        .map(|(low, len)| (low, len as usize))
        .collect();
    let counts: Vec<bool> =
        order.iter().map(|l| unconstrained.coordinates[*l as usize].support == Support::Counts).collect();
    let mut terms = Vec::new();
    let mut tables: Vec<Option<Table>> = Vec::new();
    let mut holding: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    let put = |table: Table, tables: &mut Vec<Option<Table>>, holding: &mut Vec<Vec<usize>>| {
        for k in &table.scope {
            holding[*k].push(tables.len());
        }
        tables.push(Some(table));
    };
    for (term, table) in unconstrained.terms.iter().zip(expand(&mut arena, unconstrained, order, &domains)) {
        match table {
            None => terms.push(term.expr),
            Some(table) => put(table, &mut tables, &mut holding),
        }
    }
    let (mut stages, mut tails, mut met) = (Vec::new(), Vec::new(), HashSet::new());
    for k in 0..order.len() {
        let own: Vec<Table> = holding[k].iter().filter_map(|t| tables[*t].take()).collect();
        let count = counts[k].then_some(order[k]);
        let (entries, summed) = marginalise_one(&mut arena, own, k, &domains, count, &mut tails, &mut met);
        let of = |s: &usize| (order[*s], domains[*s].0, domains[*s].1);
        stages.push(Stage {
            latent: order[k],
            low: domains[k].0,
            values_len: domains[k].1,
            scope: summed.scope.iter().map(of).collect(),
            table: entries,
        });
        if summed.scope.is_empty() {
            terms.extend(summed.entries);
        } else {
            put(summed, &mut tables, &mut holding);
        }
    }
    Marginalised { arena, terms, stages, tails }
}

/// Marginalises latent `k` out of the tables that contain it: their sum, with the latent's values fastest, and the marginal table.
/// `met` has the entries of tables with other latents, as a chain has the same ones at each of its steps.
pub(super) fn marginalise_one(
    arena: &mut Expressions,
    own: Vec<Table>,
    k: usize,
    domains: &[(f64, usize)],
    count: Option<u32>,
    tails: &mut Vec<Tail>,
    met: &mut HashSet<Expr>,
) -> (Vec<Expr>, Table) {
    let scope: BTreeSet<usize> = own.iter().flat_map(|t| t.scope.iter().copied()).filter(|s| *s != k).collect();
    let scope: Vec<usize> = scope.into_iter().collect();
    let (_, values_len) = domains[k];
    let rows: usize = scope.iter().map(|s| domains[*s].1).product();
    let mut joint = vec![0_usize; domains.len()];
    let mut entries = Vec::with_capacity(rows * values_len);
    let mut sums = Vec::with_capacity(rows);
    let products = if count.is_none() { log_products(arena, &own, k, (&scope, rows), domains, met) } else { None };
    for row in 0..rows {
        unpack(row, &scope, domains, &mut joint);
        let first = entries.len();
        for v in 0..values_len {
            joint[k] = v;
            entries.push(total(arena, own.iter().map(|t| t.entries[place(&t.scope, domains, &joint)])));
        }
        let product = products.as_ref().map(|products| products[row]);
        let sum = product.unwrap_or_else(|| arena.log_sum_exp(&entries[first..]));
        if let Some(latent) = count {
            let outside = Side::BOTH.map(|side| outside(arena, &own, side, domains, &joint));
            let outside: Vec<Expr> = outside.into_iter().flatten().collect();
            tails.push(Tail { latent, rest: arena.log_sum_exp(&outside), sum });
        }
        sums.push(sum);
    }
    let other = own.iter().filter_map(|t| t.outside.as_ref()).map(|o| o.count).find(|c| *c != k);
    let outside = other.map(|count| {
        let others: Vec<usize> = scope.iter().copied().filter(|s| *s != count).collect();
        let [above, below] = Side::BOTH.map(|side| outside_summed(arena, &own, side, (k, &others), domains));
        Outside { count, above, below }
    });
    (entries, Table { scope, entries: sums, outside })
}

/// The sums over the values of latent `k` for each joint value of the others, if what contains only that latent can be told from the rest
/// and the rest was met before: a vector times a matrix that others are multiplied with too.
fn log_products(
    arena: &mut Expressions,
    own: &[Table],
    k: usize,
    (scope, rows): (&[usize], usize),
    domains: &[(f64, usize)],
    met: &mut HashSet<Expr>,
) -> Option<Vec<Expr>> {
    let (alone, others): (Vec<&Table>, Vec<&Table>) = own.iter().partition(|t| t.scope == [k]);
    if rows < 2 || alone.is_empty() || others.is_empty() {
        return None;
    }
    let mut joint = vec![0_usize; domains.len()];
    let mut entry = |arena: &mut Expressions, tables: &[&Table], row: usize, v: usize| {
        unpack(row, scope, domains, &mut joint);
        joint[k] = v;
        total(arena, tables.iter().map(|t| t.entries[place(&t.scope, domains, &joint)]))
    };
    let values = 0..domains[k].1;
    let vector: Vec<Expr> = values.clone().map(|v| entry(arena, &alone, 0, v)).collect();
    let matrix: Vec<Expr> =
        (0..rows * values.len()).map(|at| entry(arena, &others, at / values.len(), at % values.len())).collect();
    let new_len = matrix.iter().filter(|e| met.insert(**e)).count();
    let is_impossible = |e: &Expr| arena.value(*e) == Some(f64::NEG_INFINITY);
    if new_len > 0
        || vector.iter().chain(&matrix).any(is_impossible)
        || vector.iter().all(|e| arena.value(*e).is_some())
    {
        return None;
    }
    Some(matrix.chunks_exact(values.len()).map(|b| arena.log_product(&vector, b)).collect())
}

/// A sum of logs. An impossible value does not count, even if the rest is undefined.
fn total(arena: &mut Expressions, parts: impl Iterator<Item = Expr>) -> Expr {
    let parts: Vec<(Expr, f64)> = parts.map(|e| (e, 1.0)).collect();
    let impossible = parts.iter().any(|(e, _)| arena.value(*e) == Some(f64::NEG_INFINITY));
    if impossible { arena.constant(f64::NEG_INFINITY) } else { arena.linear(&parts, 0.0) }
}

/// The values of a count above its window, or below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Above, Self::Below];
}

impl Outside {
    fn on(&self, side: Side) -> &[Expr] {
        match side {
            Side::Above => &self.above,
            Side::Below => &self.below,
        }
    }
}

/// A bound of the product of these tables on one side of the count's window; none if there is nothing on that side.
fn outside(
    arena: &mut Expressions,
    own: &[Table],
    side: Side,
    domains: &[(f64, usize)],
    joint: &[usize],
) -> Option<Expr> {
    if own.iter().filter_map(|t| t.outside.as_ref()).any(|o| o.on(side).is_empty()) {
        return None;
    }
    let part = |t: &Table| match &t.outside {
        None => t.entries[place(&t.scope, domains, joint)],
        Some(outside) => {
            let others = t.scope.iter().filter(|s| **s != outside.count);
            outside.on(side)[others.fold(0, |at, s| at * domains[*s].1 + joint[*s])]
        }
    };
    Some(total(arena, own.iter().map(part)))
}

/// The bounds of a marginal table on one side of the window of the count that is left, for each joint value of the others. `k` is
/// the latent that is marginalised.
fn outside_summed(
    arena: &mut Expressions,
    own: &[Table],
    side: Side,
    (k, others): (usize, &[usize]),
    domains: &[(f64, usize)],
) -> Vec<Expr> {
    let rows: usize = others.iter().map(|s| domains[*s].1).product();
    let mut joint = vec![0_usize; domains.len()];
    let mut sums = Vec::with_capacity(rows);
    for row in 0..rows {
        unpack(row, others, domains, &mut joint);
        let mut bounds = Vec::with_capacity(domains[k].1);
        for v in 0..domains[k].1 {
            joint[k] = v;
            bounds.extend(outside(arena, own, side, domains, &joint));
        }
        if bounds.is_empty() {
            return Vec::new();
        }
        sums.push(arena.log_sum_exp(&bounds));
    }
    sums
}

/// The table of each term that contains latents of the elimination order.
pub(super) fn expand(
    arena: &mut Expressions,
    unconstrained: &Unconstrained,
    order: &[u32],
    domains: &[(f64, usize)],
) -> Vec<Option<Table>> {
    let mut number = vec![None; unconstrained.coordinates.len()];
    for (k, l) in order.iter().enumerate() {
        number[*l as usize] = Some(k);
    }
    let touched = arena.containing(|l| number[l as usize].is_some());
    let mut seen = vec![u32::MAX; touched.len()];
    let mut substitution = Substitution::default();
    let mut joint = vec![0_usize; order.len()];
    let is_count = |k: usize| unconstrained.coordinates[order[k] as usize].support == Support::Counts;
    let mut scope_of = |arena: &Expressions, e: Expr, mark: u32| {
        let (mut affected, mut scope, mut stack) = (Vec::new(), Vec::new(), vec![e]);
        while let Some(e) = stack.pop() {
            let i = e.0 as usize;
            if !touched[i] || std::mem::replace(&mut seen[i], mark) == mark {
                continue;
            }
            affected.push(e);
            match arena.node(e) {
                Node::Leaf(l) => scope.extend(number[l as usize]),
                _ => arena.operands(e, |e| stack.push(e)),
            }
        }
        affected.sort_unstable();
        scope.sort_unstable();
        (affected, scope)
    };
    let expand = |(t, (term, factor)): (usize, (&Term, &Factor))| {
        if !touched[term.expr.0 as usize] {
            return None;
        }
        let (affected, scope): (Vec<Expr>, Vec<usize>) = scope_of(arena, term.expr, 2 * t as u32);
        let rows: usize = scope.iter().map(|s: &usize| domains[*s].1).product();
        let mut substitute = |arena: &mut Expressions, (affected, wanted): (&[Expr], Expr), scope: &[usize], row| {
            unpack(row, scope, domains, &mut joint);
            let value = |l: u32| number[l as usize].map(|k| domains[k].0 + joint[k] as f64);
            substitution.apply(arena, affected, value, wanted)
        };
        let entries: Vec<Expr> = (0..rows).map(|row| substitute(arena, (&affected, term.expr), &scope, row)).collect();
        let Some(count) = scope.iter().copied().find(|k| is_count(*k)) else {
            return Some(Table { scope, entries, outside: None });
        };
        let others: Vec<usize> = scope.iter().copied().filter(|s| *s != count).collect();
        let ceiling = factor.ceiling.map(|e| (e, scope_of(arena, e, 2 * t as u32 + 1)));
        let mut outside = Outside { count, above: Vec::new(), below: Vec::new() };
        let window = (&entries[..], order[count], domains[count]);
        for row in 0..others.iter().map(|s| domains[*s].1).product() {
            let ceiling = match &ceiling {
                Some((e, (affected, scope))) if !scope.contains(&count) => {
                    Some(substitute(arena, (affected, *e), &others, row))
                }
                _ => None,
            };
            let stride = scope.iter().rev().take_while(|s| **s != count).map(|s| domains[*s].1).product();
            outside.push(arena, window, (row, stride), factor, ceiling);
        }
        Some(Table { scope, entries, outside: Some(outside) })
    };
    unconstrained.terms.iter().zip(&unconstrained.factors).enumerate().map(expand).collect()
}

impl Outside {
    /// Adds the bounds for one joint value of the other latents. `window` has the entries of the table, the count's coordinate, and
    /// its first value and number of values; `stride` is the distance of entries with successive values.
    fn push(
        &mut self,
        arena: &mut Expressions,
        (entries, latent, (low, len)): (&[Expr], u32, (f64, usize)),
        (row, stride): (usize, usize),
        factor: &Factor,
        ceiling: Option<Expr>,
    ) {
        let first = row / stride * (stride * len) + row % stride;
        let at = |v: usize| entries[first + v * stride];
        let (last, previous) = (at(len - 1), at(len - 2));
        let is_cut_below = low > 0.0;
        match factor.own.filter(|(own, _)| *own == latent) {
            Some((_, own)) => {
                let previous = match own {
                    Own::Falling => previous,
                    Own::NearlyFalling => {
                        let k = low + len as f64 - 1.0;
                        arena.linear(&[(previous, 1.0)], ((k - 1.0) / k).ln())
                    }
                    Own::Unknown => arena.constant(f64::NEG_INFINITY),
                };
                self.above.push(arena.binary(Binary::LogRest, last, previous));
                if is_cut_below {
                    self.below.push(arena.binary(Binary::LogRest, at(0), at(1)));
                }
            }
            None => {
                let ceiling = ceiling.unwrap_or_else(|| {
                    let all: Vec<Expr> = (0..len).map(at).collect();
                    let sum = arena.log_sum_exp(&all);
                    arena.linear(&[(sum, 1.0)], UNBOUNDED.ln())
                });
                let falls = factor.has_one_mode;
                self.above.push(if falls { arena.ternary(Ternary::Falling, last, previous, ceiling) } else { ceiling });
                if is_cut_below {
                    self.below.push(ceiling);
                }
            }
        }
    }
}

/// Writes the joint value at this place of a table, the last latent of the scope fastest.
pub(super) fn unpack(mut row: usize, scope: &[usize], domains: &[(f64, usize)], joint: &mut [usize]) {
    for s in scope.iter().rev() {
        joint[*s] = row % domains[*s].1;
        row /= domains[*s].1;
    }
}

/// The place of a joint value in a table.
fn place(scope: &[usize], domains: &[(f64, usize)], joint: &[usize]) -> usize {
    scope.iter().fold(0, |at, s| at * domains[*s].1 + joint[*s])
}
