//! The tape: expressions laid out as runs of like operations, evaluated over a tile of draws at once.
//!
//! Expressions at the same depth with the same operation form a run: one dispatch, then a loop over its members, and inside
//! that a loop over the draws of a tile, in SIMD. A plate of a thousand likelihood terms is thus a few loops. The value of an
//! expression is a row of [`TILE`] numbers; rows are numbered in the order of evaluation, so that a run writes a contiguous
//! block and reads only rows before it.

mod backward;
mod forward;
mod terminal;

use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Ternary, Unary};
pub(crate) use forward::Workspace;
use std::ops::Range;
use terminal::Terminal;

/// Draws in a tile.
pub(crate) const TILE: usize = 16;
/// A row of values.
pub(crate) type Row = [f64; TILE];

/// What the members of a run do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Weighted sums of the same rows.
    Shared {
        terms_len: u32,
    },
    /// Weighted sums, each of its own rows.
    Linear {
        terms_len: u32,
    },
    Unary(Unary),
    Binary(Binary),
    Ternary(Ternary),
    /// One of the same rows, by a random index.
    Select {
        choices_len: u32,
    },
    LogSumExp {
        terms_len: u32,
    },
}

/// Like operations, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    kind: Kind,
    /// The rows that it writes.
    rows: Range<u32>,
    /// Where its operands begin.
    operands: u32,
    /// Where its weights begin: for sums, each member's weights and then its constant.
    weights: u32,
}

/// A program for a set of expressions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    rows_len: u32,
    constants: Vec<(u32, f64)>,
    /// The rows of latents, with their columns.
    inputs: Vec<(u32, u32)>,
    runs: Vec<Run>,
    /// Runs from here on depend on the latent that varies.
    varying: usize,
    operands: Vec<u32>,
    weights: Vec<f64>,
    /// The rows that are added up, with their weights.
    roots: Vec<(u32, f64)>,
    /// What else is added up, and has no rows.
    terminals: Vec<Terminal>,
    /// What is added to the sum.
    offset: f64,
    /// The rows that were asked for.
    outputs: Vec<u32>,
}

/// Sorting key of an expression: varying or not, depth, kind, list.
type Key = (bool, u32, Kind, u32, u32);

impl Tape {
    /// A program that adds up `roots` and evaluates `outputs`; `column` says where a latent's values are. Where `apart` is
    /// set, every root has a row, so that they can be looked at one by one.
    pub(crate) fn new(
        arena: &Expressions,
        roots: &[(Expr, f64)],
        outputs: &[Expr],
        column: impl Fn(u32) -> u32,
        apart: bool,
    ) -> Self {
        Self::of(arena, &Below::all(arena, roots, outputs), roots, outputs, column, None, apart)
    }

    /// As [`new`](Self::new), for the expressions `below` roots and outputs. Where `varies` is given, what depends on that
    /// latent comes last.
    pub(crate) fn of(
        arena: &Expressions,
        below: &Below,
        roots: &[(Expr, f64)],
        outputs: &[Expr],
        column: impl Fn(u32) -> u32,
        varies: Option<u32>,
        apart: bool,
    ) -> Self {
        let mut tape = Self::default();
        let sum = Sum::of(arena, roots);
        let mut keys: Vec<Key> = Vec::with_capacity(below.exprs.len());
        let place = below.index();
        let mut depth = vec![0_u32; below.exprs.len()];
        let mut moving = vec![false; below.exprs.len()];
        let mut lists = std::collections::HashMap::new();
        for e in &below.exprs {
            if let Node::Linear { list, .. } = arena.node(*e) {
                *lists.entry(list).or_insert(0_u32) += 1;
            }
        }
        let terminal = if apart { Vec::new() } else { terminal::find(arena, below, &place, &sum, outputs) };
        let mut has_row = vec![true; below.exprs.len()];
        for (root, _) in &terminal {
            has_row[*root] = false;
            arena.operands(below.exprs[*root], |e| has_row[place.get(e)] = false);
        }
        for (i, e) in below.exprs.iter().enumerate() {
            let (mut deepest, mut moves) = (0, false);
            arena.operands(*e, |o| {
                let o = place.get(o);
                deepest = deepest.max(depth[o] + 1);
                moves |= moving[o];
            });
            depth[i] = deepest;
            let (kind, list) = match arena.node(*e) {
                Node::Constant(_) => continue,
                Node::Leaf(l) => {
                    moving[i] = varies == Some(l);
                    continue;
                }
                Node::Linear { list, .. } => {
                    let terms_len = arena.list(list).len() as u32;
                    if lists[&list] > 1 {
                        (Kind::Shared { terms_len }, list.0)
                    } else {
                        (Kind::Linear { terms_len }, 0)
                    }
                }
                Node::Unary(f, _) => (Kind::Unary(f), 0),
                Node::Binary(f, ..) => (Kind::Binary(f), 0),
                Node::Ternary(f, ..) => (Kind::Ternary(f), 0),
                Node::Select { list, .. } => (Kind::Select { choices_len: arena.list(list).len() as u32 }, list.0),
                Node::LogSumExp { list } => (Kind::LogSumExp { terms_len: arena.list(list).len() as u32 }, 0),
            };
            moving[i] = moves;
            if !has_row[i] {
                continue;
            }
            keys.push((moves, deepest, kind, list, i as u32));
        }
        keys.sort_unstable();
        let mut row = vec![u32::MAX; below.exprs.len()];
        for (i, e) in below.exprs.iter().enumerate() {
            match arena.node(*e) {
                Node::Constant(x) => tape.constants.push((tape.rows_len, x)),
                Node::Leaf(l) => tape.inputs.push((tape.rows_len, column(l))),
                _ => continue,
            }
            row[i] = tape.rows_len;
            tape.rows_len += 1;
        }
        let mut previous: Option<(bool, u32, Kind, u32)> = None;
        tape.varying = usize::MAX;
        for (moves, deep, kind, list, i) in keys {
            row[i as usize] = tape.rows_len;
            let e = below.exprs[i as usize];
            if previous != Some((moves, deep, kind, list)) {
                if moves && tape.varying == usize::MAX {
                    tape.varying = tape.runs.len();
                }
                previous = Some((moves, deep, kind, list));
                let (operands, weights) = (tape.operands.len() as u32, tape.weights.len() as u32);
                tape.runs.push(Run { kind, rows: tape.rows_len..tape.rows_len, operands, weights });
                // What all members share stands once, at the front.
                if let Node::Linear { list, .. } | Node::Select { list, .. } = arena.node(e)
                    && matches!(kind, Kind::Shared { .. } | Kind::Select { .. })
                {
                    tape.operands.extend(arena.list(list).iter().map(|o| row[place.get(*o)]));
                }
            }
            match arena.node(e) {
                Node::Linear { list, weights, constant } => {
                    if matches!(kind, Kind::Linear { .. }) {
                        tape.operands.extend(arena.list(list).iter().map(|o| row[place.get(*o)]));
                    }
                    tape.weights.extend_from_slice(arena.weights(list, weights));
                    tape.weights.push(constant);
                }
                Node::Select { index, .. } => tape.operands.push(row[place.get(index)]),
                _ => arena.operands(e, |o| tape.operands.push(row[place.get(o)])),
            }
            tape.rows_len += 1;
            if let Some(run) = tape.runs.last_mut() {
                run.rows.end = tape.rows_len;
            }
        }
        tape.varying = tape.varying.min(tape.runs.len());
        tape.offset = sum.offset;
        let with_row = sum.terms.iter().map(|(e, w)| (place.get(*e), *w)).filter(|(i, _)| has_row[*i]);
        tape.roots = with_row.map(|(i, w)| (row[i], w)).collect();
        tape.add_terminals(arena, below, terminal, |e| row[place.get(e)]);
        tape.outputs = outputs.iter().map(|e| row[place.get(*e)]).collect();
        tape
    }

    /// How many rows a workspace has.
    pub(crate) fn rows_len(&self) -> usize {
        self.rows_len as usize
    }

    /// About how many additions an evaluation of one draw costs; with `varying`, of what depends on the latent that varies.
    pub(crate) fn work(&self, varying: bool) -> usize {
        let member = |kind: Kind| match kind {
            Kind::Shared { terms_len } | Kind::Linear { terms_len } => 1 + terms_len as usize / 2,
            Kind::Unary(Unary::Square | Unary::Abs | Unary::Step | Unary::IsZero) => 1,
            Kind::Unary(Unary::Exp | Unary::Log | Unary::Sigmoid | Unary::Softplus | Unary::Reciprocal) => 6,
            // One number at a time.
            Kind::Unary(_) | Kind::Binary(Binary::XLogY | Binary::Power) => 30,
            Kind::Binary(_) | Kind::Ternary(_) => 2,
            Kind::Select { .. } => 4,
            Kind::LogSumExp { terms_len } => 6 * terms_len as usize,
        };
        let first = if varying { self.varying } else { 0 };
        let runs: usize = self.runs[first..].iter().map(|run| run.rows.len() * member(run.kind)).sum();
        runs + self.terminals.iter().map(Terminal::work).sum::<usize>()
    }

    /// How many runs there are.
    pub(crate) fn runs_len(&self) -> usize {
        self.runs.len()
    }

    fn operands_of(&self, run: &Run) -> &[u32] {
        &self.operands[run.operands as usize..]
    }

    fn weights_of(&self, run: &Run) -> &[f64] {
        &self.weights[run.weights as usize..]
    }
}

/// A sum of expressions with the sums among them taken apart and like terms collected.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    place: std::collections::HashMap<Expr, usize>,
    pub(crate) terms: Vec<(Expr, f64)>,
    pub(crate) offset: f64,
}

impl Sum {
    pub(crate) fn of(arena: &Expressions, roots: &[(Expr, f64)]) -> Self {
        let mut sum = Self::default();
        for (e, w) in roots {
            sum.add_scaled(arena, *e, *w);
        }
        sum.terms.retain(|(_, w)| *w != 0.0);
        sum
    }

    fn add_scaled(&mut self, arena: &Expressions, e: Expr, weight: f64) {
        match arena.node(e) {
            Node::Constant(x) => self.offset += weight * x,
            Node::Linear { list, weights, constant } => {
                self.offset += weight * constant;
                for (e, w) in arena.list(list).iter().zip(arena.weights(list, weights)) {
                    self.add_scaled(arena, *e, weight * w);
                }
            }
            _ => {
                let next = self.terms.len();
                let at = *self.place.entry(e).or_insert(next);
                if at == next {
                    self.terms.push((e, 0.0));
                }
                self.terms[at].1 += weight;
            }
        }
    }
}

/// The expressions that some others are made of, in the order of the arena.
#[derive(Clone, Debug)]
pub(crate) struct Below {
    pub(crate) exprs: Vec<Expr>,
}

impl Below {
    /// By a sweep over the whole arena.
    pub(crate) fn all(arena: &Expressions, roots: &[(Expr, f64)], outputs: &[Expr]) -> Self {
        let mut tops: Vec<Expr> = Sum::of(arena, roots).terms.iter().map(|t| t.0).collect();
        tops.extend_from_slice(outputs);
        let reached = super::eliminate::reach(arena, &tops);
        let exprs = (0..arena.len() as u32).filter(|i| reached[*i as usize]).map(Expr).collect();
        Self { exprs }
    }

    /// By walking down from the roots and outputs, for a few of them in a large arena. `seen` is a mark per expression, `mark`
    /// one that was not used before.
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

    fn index(&self) -> Index {
        let (first, last) = (self.exprs.first().map_or(0, |e| e.0), self.exprs.last().map_or(0, |e| e.0));
        // A table where the expressions are close together, a search where they are few and far between.
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

/// The place of an expression among those of a [`Below`].
#[derive(Debug)]
struct Index {
    first: u32,
    table: Vec<u32>,
    exprs: Vec<Expr>,
}

impl Index {
    fn get(&self, e: Expr) -> usize {
        if self.table.is_empty() {
            self.exprs.partition_point(|o| *o < e)
        } else {
            self.table[(e.0 - self.first) as usize] as usize
        }
    }
}
