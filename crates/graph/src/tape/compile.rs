//! Compiling expressions to a tape.

use super::below::{Below, Index, Sum};
use super::program::{Kind, Run, Tape};
use super::terminal;
use crate::expression::{Expr, Expressions, Node};
use std::collections::HashMap;

/// The sorting key of an expression: whether it varies, its depth, kind and list, and its place below the roots.
type Key = (bool, u32, Kind, u32, u32);

impl Tape {
    /// A program that adds up `roots` and evaluates `outputs`; `column` gives the column of a latent. With `apart`, every root
    /// has its own row.
    pub(crate) fn new(
        arena: &Expressions,
        roots: &[(Expr, f64)],
        outputs: &[Expr],
        column: impl Fn(u32) -> u32,
        apart: bool,
    ) -> Self {
        Self::of(arena, &Below::all(arena, roots, outputs), roots, outputs, column, None, apart)
    }

    /// As [`new`](Self::new), for the expressions `below` roots and outputs. Whatever depends on the latent `varies` comes
    /// last.
    pub(crate) fn of(
        arena: &Expressions,
        below: &Below,
        roots: &[(Expr, f64)],
        outputs: &[Expr],
        column: impl Fn(u32) -> u32,
        varies: Option<u32>,
        apart: bool,
    ) -> Self {
        let sum = Sum::of(arena, roots);
        let place = below.index();
        let uses = below.uses(arena, &place, &sum, outputs);
        let terminals = if apart { Vec::new() } else { terminal::find(arena, &place, &sum, &uses) };
        let mut has_row = vec![true; below.exprs.len()];
        for terminal in &terminals {
            terminal.within.iter().for_each(|e| has_row[place.get(*e)] = false);
        }
        let mut tape = Self { offset: sum.offset, ..Self::default() };
        let mut row = tape.add_leaves(arena, below, column);
        tape.add_runs(arena, below, &place, keys(arena, below, &place, (&has_row, &uses), varies), &mut row);
        let with_row = sum.terms.iter().map(|(e, w)| (place.get(*e), *w)).filter(|(i, _)| has_row[*i]);
        tape.roots = with_row.map(|(i, w)| (row[i], w)).collect();
        tape.add_terminals(terminals, |e| row[place.get(e)]);
        tape.outputs = outputs.iter().map(|e| row[place.get(*e)]).collect();
        tape
    }

    /// Adds a row for each constant and each latent, and returns the rows of all expressions as far as they are known.
    fn add_leaves(&mut self, arena: &Expressions, below: &Below, column: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut row = vec![u32::MAX; below.exprs.len()];
        for (i, e) in below.exprs.iter().enumerate() {
            match arena.node(*e) {
                Node::Constant(x) => self.constants.push((self.rows_len, x)),
                Node::Leaf(l) => self.inputs.push((self.rows_len, column(l))),
                _ => continue,
            }
            row[i] = self.rows_len;
            self.rows_len += 1;
        }
        row
    }

    /// Adds the runs of the expressions with these keys, and enters their rows.
    fn add_runs(&mut self, arena: &Expressions, below: &Below, place: &Index, keys: Vec<Key>, row: &mut [u32]) {
        let mut previous: Option<(bool, u32, Kind, u32)> = None;
        self.varying = usize::MAX;
        for (varies, depth, kind, list, i) in keys {
            let e = below.exprs[i as usize];
            if previous != Some((varies, depth, kind, list)) {
                if varies && self.varying == usize::MAX {
                    self.varying = self.runs.len();
                }
                previous = Some((varies, depth, kind, list));
                self.rows_len += self.runs.last().map_or(0, Run::further_len);
                let (operands, weights) = (self.operands.len() as u32, self.weights.len() as u32);
                self.runs.push(Run { kind, rows: self.rows_len..self.rows_len, operands, weights });
                // Operands that all members share are stored once, at the front.
                if let Node::Linear { list, .. } | Node::Select { list, .. } | Node::LogProduct { a: list, .. } =
                    arena.node(e)
                    && !matches!(kind, Kind::Linear { .. })
                {
                    self.operands.extend(arena.list(list).iter().map(|o| row[place.get(*o)]));
                }
            }
            match arena.node(e) {
                Node::Linear { list, weights, constant } => {
                    if matches!(kind, Kind::Linear { .. }) {
                        self.operands.extend(arena.list(list).iter().map(|o| row[place.get(*o)]));
                    }
                    self.weights.extend_from_slice(arena.weights(list, weights));
                    self.weights.push(constant);
                }
                Node::Select { index, .. } => self.operands.push(row[place.get(index)]),
                Node::LogProduct { b, .. } => self.operands.extend(arena.list(b).iter().map(|o| row[place.get(*o)])),
                _ => arena.operands(e, |o| self.operands.push(row[place.get(o)])),
            }
            row[i as usize] = self.rows_len;
            self.rows_len += 1;
            if let Some(run) = self.runs.last_mut() {
                run.rows.end = self.rows_len;
            }
        }
        self.rows_len += self.runs.last().map_or(0, Run::further_len);
        self.varying = self.varying.min(self.runs.len());
    }
}

/// The sorted keys of the expressions that have a row and are neither constants nor latents.
fn keys(
    arena: &Expressions,
    below: &Below,
    place: &Index,
    (has_row, uses): (&[bool], &[u32]),
    varies: Option<u32>,
) -> Vec<Key> {
    let mut lists = HashMap::new();
    for e in &below.exprs {
        if let Node::Linear { list, .. } = arena.node(*e) {
            *lists.entry(list).or_insert(0_u32) += 1;
        }
    }
    let mut keys: Vec<Key> = Vec::with_capacity(below.exprs.len());
    let mut depth = vec![0_u32; below.exprs.len()];
    let mut varying = vec![false; below.exprs.len()];
    for (i, e) in below.exprs.iter().enumerate() {
        let (mut deepest, mut any) = (0, false);
        arena.operands(*e, |o| {
            let o = place.get(o);
            deepest = deepest.max(depth[o] + 1);
            any |= varying[o];
        });
        depth[i] = deepest;
        varying[i] = any;
        let (kind, list) = match arena.node(*e) {
            Node::Constant(_) => continue,
            Node::Leaf(l) => {
                varying[i] = varies == Some(l);
                continue;
            }
            Node::Linear { list, .. } => {
                let terms_len = arena.list(list).len() as u32;
                if lists[&list] > 1 { (Kind::Shared { terms_len }, list.0) } else { (Kind::Linear { terms_len }, 0) }
            }
            Node::Unary(f, _) => (Kind::Unary(f), 0),
            Node::Binary(f, ..) => (Kind::Binary(f), 0),
            Node::Ternary(f, ..) => (Kind::Ternary(f), 0),
            Node::Select { list, .. } => (Kind::Select { choices_len: arena.list(list).len() as u32 }, list.0),
            Node::LogProduct { a, .. } => (Kind::LogProduct { terms_len: arena.list(a).len() as u32 }, a.0),
            Node::LogSumExp { list } => {
                let list = arena.list(list);
                // Differentiating a sum needs no value of it, so that its row is free if nothing else reads it and it is computed again
                // whenever this is.
                let is_free = |e: &Expr| {
                    let o = place.get(*e);
                    matches!(arena.node(*e), Node::Linear { .. }) && uses[o] == 1 && varying[o] == any
                };
                (Kind::LogSumExp { terms_len: list.len() as u32, keeps_shares: list.iter().all(is_free) }, 0)
            }
        };
        if has_row[i] {
            keys.push((any, deepest, kind, list, i as u32));
        }
    }
    keys.sort_unstable();
    keys
}
