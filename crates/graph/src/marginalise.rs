//! Variable elimination: discrete latents in parts of the graph with small treewidth are marginalised out of the log joint.
//!
//! A term that contains such latents becomes a table of expressions, one for each of their joint values. Eliminating a latent
//! adds the tables that contain it and takes the log-sum-exp over its values. The result is again an expression, evaluated and
//! differentiated like any other, and equal entries are one node. The terms of the sums are stored: the latent is drawn from
//! them afterwards.

use super::expression::{Expr, Expressions, Node};
use super::rewrite::Substitution;
use super::unconstrained::{Coordinate, Term, Transform, Unconstrained};
use hyperprior::model::Support;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The largest table that a latent may be marginalised out of.
const TABLE_MAX: f64 = 16_384.0;
/// The most table entries in total.
const TABLES_MAX: f64 = 2_097_152.0;
/// Counts are summed over this many values at level 0, and twice as many at each further level.
const COUNTS: f64 = 32.0;
/// How many levels there are.
pub(crate) const LEVELS: u32 = 8;

/// Which discrete latents to marginalise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Marginalise {
    /// All for which it is cheap.
    #[default]
    Auto,
    /// None.
    Nothing,
    /// Those with these names: a whole array (`z`) or an element of one (`z[3]`).
    Named(Vec<String>),
}

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

/// The end of a truncated sum: its last two terms and the sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub(crate) last: Expr,
    pub(crate) previous: Expr,
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

/// The roots that contain each of these latents.
pub(crate) fn blankets(arena: &Expressions, roots: &[Expr], latents: &[u32]) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::new(); latents.len()];
    if latents.is_empty() {
        return found;
    }
    let parents = Parents::new(arena, roots);
    let mut roots_of: Vec<Vec<u32>> = vec![Vec::new(); arena.len()];
    for (t, root) in roots.iter().enumerate() {
        roots_of[root.0 as usize].push(t as u32);
    }
    let mut leaf = std::collections::HashMap::new();
    for i in 0..arena.len() as u32 {
        if let Node::Leaf(l) = arena.node(Expr(i)) {
            leaf.insert(l, i);
        }
    }
    let mut seen = vec![u32::MAX; arena.len()];
    let mut stack = Vec::new();
    for (k, latent) in latents.iter().enumerate() {
        stack.extend(leaf.get(latent));
        while let Some(e) = stack.pop() {
            if std::mem::replace(&mut seen[e as usize], k as u32) != k as u32 {
                found[k].extend(&roots_of[e as usize]);
                stack.extend(parents.of(e));
            }
        }
        found[k].sort_unstable();
    }
    found
}

/// The expressions that use each expression, below some roots.
#[derive(Debug)]
struct Parents {
    first: Vec<u32>,
    parents: Vec<u32>,
}

impl Parents {
    fn new(arena: &Expressions, roots: &[Expr]) -> Self {
        let reached = arena.reach(roots);
        let mut first = vec![0_u32; arena.len() + 1];
        for (i, _) in reached.iter().enumerate().filter(|(_, r)| **r) {
            arena.operands(Expr(i as u32), |e| first[e.0 as usize + 1] += 1);
        }
        for i in 0..arena.len() {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut parents = vec![0; first[arena.len()] as usize];
        for (i, _) in reached.iter().enumerate().filter(|(_, r)| **r) {
            arena.operands(Expr(i as u32), |e| {
                let at = &mut next[e.0 as usize];
                parents[*at as usize] = i as u32;
                *at += 1;
            });
        }
        Self { first, parents }
    }

    fn of(&self, e: u32) -> &[u32] {
        &self.parents[self.first[e as usize] as usize..self.first[e as usize + 1] as usize]
    }
}

/// The smallest value of a latent and the number of values that it is summed over, which grows with the least count.
pub(super) fn domain(coordinate: &Coordinate, level: u32) -> (f64, f64) {
    match (coordinate.support, &coordinate.transform) {
        (Support::Integers { lower, upper }, _) => (lower, upper - lower + 1.0),
        (_, Transform::Integer(least)) => (0.0, (COUNTS + least) * f64::from(1 << level)),
        _ => (0.0, COUNTS * f64::from(1 << level)),
    }
}

/// The elimination order, and the latents that are kept: the latent with the smallest table is next, until none is small enough.
pub(crate) fn order(unconstrained: &Unconstrained, which: &Marginalise) -> (Vec<u32>, Vec<u32>) {
    let discrete: Vec<u32> = (0..unconstrained.coordinates.len() as u32)
        .filter(|l| unconstrained.coordinates[*l as usize].support.is_discrete())
        .collect();
    let wanted = |l: u32| match which {
        Marginalise::Auto => true,
        Marginalise::Nothing => false,
        Marginalise::Named(names) => {
            let name = &unconstrained.coordinates[l as usize].name;
            let array = name.split('[').next().unwrap_or(name);
            names.iter().any(|n| n == name || n == array)
        }
    };
    let (chosen, mut kept): (Vec<u32>, Vec<u32>) = discrete.into_iter().partition(|l| wanted(*l));
    let roots: Vec<Expr> = unconstrained.terms.iter().map(|t| t.expr).collect();
    let mut scopes: Vec<Vec<u32>> = vec![Vec::new(); roots.len()];
    for (k, terms) in blankets(&unconstrained.arena, &roots, &chosen).iter().enumerate() {
        for t in terms {
            scopes[*t as usize].push(k as u32);
        }
    }
    let size: Vec<f64> = chosen.iter().map(|l| domain(&unconstrained.coordinates[*l as usize], 0).1).collect();
    let mut neighbours: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); chosen.len()];
    let mut crowded = vec![false; chosen.len()];
    for scope in &scopes {
        // The latents of a term over too many of them are all kept; listing their pairs would take quadratic time.
        if scope.iter().map(|k| size[*k as usize].log2()).sum::<f64>() > TABLE_MAX.log2() {
            scope.iter().for_each(|k| crowded[*k as usize] = true);
            continue;
        }
        for a in scope {
            neighbours[*a as usize].extend(scope.iter().filter(|b| *b != a));
        }
    }
    let is_count = |k: usize| unconstrained.coordinates[chosen[k] as usize].support == Support::Counts;
    let cost = |k: usize, neighbours: &[BTreeSet<u32>]| {
        // If one count determines the size of another, their table cannot be truncated.
        if is_count(k) && neighbours[k].iter().any(|n| is_count(*n as usize)) {
            return f64::INFINITY;
        }
        let around: f64 = neighbours[k].iter().map(|n| size[*n as usize].log2()).sum();
        size[k].log2() + around
    };
    let key = |cost: f64, k: usize| Reverse(((cost * 1e6) as u64, k as u32));
    let mut queue: BinaryHeap<_> =
        (0..chosen.len()).filter(|k| !crowded[*k]).map(|k| key(cost(k, &neighbours), k)).collect();
    let mut done = vec![false; chosen.len()];
    let mut marginalised = Vec::new();
    let mut total = 0.0;
    while let Some(Reverse((recorded, k))) = queue.pop() {
        let k = k as usize;
        if done[k] {
            continue;
        }
        let now = cost(k, &neighbours);
        if (now * 1e6) as u64 != recorded {
            queue.push(key(now, k));
            continue;
        }
        total += now.exp2();
        if now > TABLE_MAX.log2() || total > TABLES_MAX {
            break;
        }
        done[k] = true;
        marginalised.push(chosen[k]);
        let around: Vec<u32> = neighbours[k].iter().copied().collect();
        for a in &around {
            neighbours[*a as usize].remove(&(k as u32));
            neighbours[*a as usize].extend(around.iter().filter(|b| *b != a));
        }
    }
    kept.extend((0..chosen.len()).filter(|k| !done[*k]).map(|k| chosen[k]));
    kept.sort_unstable();
    (marginalised, kept)
}

/// A table over some latents, given by their places in the elimination order.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) scope: Vec<usize>,
    pub(super) entries: Vec<Expr>,
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
    let (mut stages, mut tails) = (Vec::new(), Vec::new());
    for k in 0..order.len() {
        let own: Vec<Table> = holding[k].iter().filter_map(|t| tables[*t].take()).collect();
        let (entries, summed) = marginalise_one(&mut arena, own, k, &domains, counts[k], &mut tails);
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
pub(super) fn marginalise_one(
    arena: &mut Expressions,
    own: Vec<Table>,
    k: usize,
    domains: &[(f64, usize)],
    is_count: bool,
    tails: &mut Vec<Tail>,
) -> (Vec<Expr>, Table) {
    let scope: BTreeSet<usize> = own.iter().flat_map(|t| t.scope.iter().copied()).filter(|s| *s != k).collect();
    let scope: Vec<usize> = scope.into_iter().collect();
    let (_, values_len) = domains[k];
    let rows: usize = scope.iter().map(|s| domains[*s].1).product();
    let mut joint = vec![0_usize; domains.len()];
    let mut entries = Vec::with_capacity(rows * values_len);
    let mut sums = Vec::with_capacity(rows);
    for row in 0..rows {
        unpack(row, &scope, domains, &mut joint);
        let first = entries.len();
        for v in 0..values_len {
            joint[k] = v;
            let parts: Vec<(Expr, f64)> =
                own.iter().map(|t| (t.entries[place(&t.scope, domains, &joint)], 1.0)).collect();
            // An impossible value does not count, even if the rest is undefined.
            let impossible = parts.iter().any(|(e, _)| arena.value(*e) == Some(f64::NEG_INFINITY));
            let entry = if impossible { arena.constant(f64::NEG_INFINITY) } else { arena.linear(&parts, 0.0) };
            entries.push(entry);
        }
        let sum = arena.log_sum_exp(&entries[first..]);
        if is_count && values_len > 1 {
            let (last, previous) = (entries[entries.len() - 1], entries[entries.len() - 2]);
            tails.push(Tail { last, previous, sum });
        }
        sums.push(sum);
    }
    (entries, Table { scope, entries: sums })
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
    let fixed_len = arena.len();
    let mut touched = vec![false; fixed_len];
    for i in 0..fixed_len {
        let e = Expr(i as u32);
        touched[i] = match arena.node(e) {
            Node::Leaf(l) => number[l as usize].is_some(),
            _ => {
                let mut any = false;
                arena.operands(e, |e| any |= touched[e.0 as usize]);
                any
            }
        };
    }
    let mut seen = vec![u32::MAX; fixed_len];
    let mut substitution = Substitution::default();
    let mut joint = vec![0_usize; order.len()];
    let expand = |(t, term): (usize, &Term)| {
        if !touched[term.expr.0 as usize] {
            return None;
        }
        let (mut affected, mut scope, mut stack) = (Vec::new(), Vec::new(), vec![term.expr]);
        while let Some(e) = stack.pop() {
            let i = e.0 as usize;
            if !touched[i] || std::mem::replace(&mut seen[i], t as u32) == t as u32 {
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
        let rows: usize = scope.iter().map(|s: &usize| domains[*s].1).product();
        let mut entries = Vec::with_capacity(rows);
        for row in 0..rows {
            unpack(row, &scope, domains, &mut joint);
            let value = |l: u32| number[l as usize].map(|k| domains[k].0 + joint[k] as f64);
            entries.push(substitution.apply(arena, &affected, value, term.expr));
        }
        Some(Table { scope, entries })
    };
    unconstrained.terms.iter().enumerate().map(expand).collect()
}

/// Writes the joint value at this place of a table, the last latent of the scope fastest.
fn unpack(mut row: usize, scope: &[usize], domains: &[(f64, usize)], joint: &mut [usize]) {
    for s in scope.iter().rev() {
        joint[*s] = row % domains[*s].1;
        row /= domains[*s].1;
    }
}

/// The place of a joint value in a table.
fn place(scope: &[usize], domains: &[(f64, usize)], joint: &[usize]) -> usize {
    scope.iter().fold(0, |at, s| at * domains[*s].1 + joint[*s])
}
