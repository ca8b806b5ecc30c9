//! The expressions below some roots, and sums of roots with like terms collected.

use crate::expression::{Expr, Expressions, Node};
use std::collections::BTreeMap;

/// A sum of expressions, with nested sums expanded and like terms collected.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) terms: Vec<(Expr, f64)>,
    pub(crate) offset: f64,
}

impl Sum {
    /// Operands come before what is made of them, so that the weight of the last expression is complete when it is expanded: a sum that
    /// others contain many times over is expanded once.
    pub(crate) fn of(arena: &Expressions, roots: &[(Expr, f64)]) -> Self {
        let (mut sum, mut open) = (Self::default(), BTreeMap::new());
        roots.iter().for_each(|(e, w)| *open.entry(*e).or_insert(0.0) += w);
        while let Some((e, weight)) = open.pop_last() {
            match arena.node(e) {
                Node::Constant(x) => sum.offset += weight * x,
                Node::Linear { list, weights, constant } => {
                    sum.offset += weight * constant;
                    for (e, w) in arena.list(list).iter().zip(arena.weights(list, weights)) {
                        *open.entry(*e).or_insert(0.0) += weight * w;
                    }
                }
                _ if weight != 0.0 => sum.terms.push((e, weight)),
                _ => {}
            }
        }
        sum.terms.reverse();
        sum
    }
}

/// Some expressions and all that they are made of, in the order of the arena.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    pub(crate) exprs: Vec<Expr>,
}

impl Below {
    /// Sweeps over the whole arena.
    pub(crate) fn all(arena: &Expressions, roots: &[(Expr, f64)], outputs: &[Expr]) -> Self {
        let mut tops: Vec<Expr> = Sum::of(arena, roots).terms.iter().map(|t| t.0).collect();
        tops.extend_from_slice(outputs);
        let reached = arena.reach(&tops);
        let exprs = (0..arena.len() as u32).filter(|i| reached[*i as usize]).map(Expr).collect();
        Self { exprs }
    }

    /// Walks down from the roots and outputs, for a few of them in a large arena. `seen` has a mark for each expression; `mark`
    /// must be one that has not been used.
    pub(crate) fn few(
        arena: &Expressions,
        roots: &[(Expr, f64)],
        outputs: &[Expr],
        seen: &mut [u32],
        mark: u32,
    ) -> Self {
        let mut stack: Vec<Expr> = Sum::of(arena, roots).terms.iter().map(|t| t.0).collect();
        stack.extend_from_slice(outputs);
        let mut exprs = Vec::new();
        while let Some(e) = stack.pop() {
            if std::mem::replace(&mut seen[e.0 as usize], mark) != mark {
                exprs.push(e);
                arena.operands(e, |o| stack.push(o));
            }
        }
        exprs.sort_unstable();
        Self { exprs }
    }

    /// How often each expression is used: by others, in a sum, and as an output.
    pub(super) fn uses(&self, arena: &Expressions, place: &Index, sum: &Sum, outputs: &[Expr]) -> Vec<u32> {
        let mut uses = vec![0; self.exprs.len()];
        for e in &self.exprs {
            arena.operands(*e, |o| uses[place.get(o)] += 1);
        }
        let roots = sum.terms.iter().map(|(e, _)| e);
        roots.chain(outputs).for_each(|e| uses[place.get(*e)] += 1);
        uses
    }

    pub(super) fn index(&self) -> Index {
        let (first, last) = (self.exprs.first().map_or(0, |e| e.0), self.exprs.last().map_or(0, |e| e.0));
        // A table if the expressions are close together, a binary search if they are sparse.
        let dense = (last - first) as usize <= 16 * self.exprs.len();
        let mut table = Vec::new();
        if dense {
            table.resize((last - first) as usize + 1, u32::MAX);
            for (i, e) in self.exprs.iter().enumerate() {
                table[(e.0 - first) as usize] = i as u32;
            }
        }
        Index { first, table, exprs: if dense { Vec::new() } else { self.exprs.clone() } }
    }
}

/// Finds the place of an expression in a [`Below`].
#[derive(Debug)]
pub(super) struct Index {
    first: u32,
    table: Vec<u32>,
    exprs: Vec<Expr>,
}

impl Index {
    pub(super) fn get(&self, e: Expr) -> usize {
        if self.table.is_empty() {
            self.exprs.partition_point(|o| *o < e)
        } else {
            self.table[(e.0 - self.first) as usize] as usize
        }
    }
}
