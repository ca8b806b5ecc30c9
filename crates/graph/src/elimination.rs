//! The order in which discrete latents are eliminated, and the values that counts are summed over.

use super::expression::{Expr, Expressions, Node};
use super::unconstrained::{Coordinate, Transform, Unconstrained};
use hyperprior::model::Support;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The largest table that a latent may be marginalised out of.
const TABLE_MAX: f64 = 16_384.0;
/// The most table entries in total.
const TABLES_MAX: f64 = 2_097_152.0;
/// Counts are summed over this many values at level 0, and twice as many at each further level.
const COUNTS: f64 = 32.0;
/// The most values that a count is summed over.
pub(crate) const VALUES_MAX: f64 = 65_536.0;
/// How many levels there are at least, and at most if the tables stay small.
const LEVELS: (u32, u32) = (8, 12);

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

/// The smallest value of a latent and the number of values that it is summed over. The number grows with the level and with the
/// least count that was observed.
pub(super) fn domain(coordinate: &Coordinate, level: u32) -> (f64, f64) {
    let growth = f64::from(1 << level);
    let all = match (coordinate.support, &coordinate.transform) {
        (Support::Integers { lower, upper }, _) => return (lower, upper - lower + 1.0),
        (_, Transform::Integer(least)) => (COUNTS + least) * growth,
        _ => COUNTS * growth,
    };
    // Level 0 is not cut: if it is too long, the latent is kept.
    let first = all / growth;
    let Some((centre, half)) = coordinate.window.around else { return (0.0, all.min(VALUES_MAX.max(first))) };
    let half = (half * growth).min(half.max(0.5 * VALUES_MAX));
    let low = (centre - half).max(0.0);
    (low, (centre + half - low).max(COUNTS * growth).min(VALUES_MAX.max(2.0 * half)))
}

/// Over how many levels the sums over these latents may grow.
pub(super) fn levels_len(coordinates: &[&Coordinate]) -> usize {
    let counts = || coordinates.iter().filter(|c| c.support == Support::Counts);
    if counts().next().is_none() {
        return 1;
    }
    let total = |level: u32| counts().map(|c| domain(c, level).1).sum::<f64>();
    (LEVELS.0..LEVELS.1).find(|level| total(*level) > TABLES_MAX / 4.0).unwrap_or(LEVELS.1) as usize
}

/// Which latents are eliminated.
pub(crate) struct Order {
    /// In this order.
    pub(crate) marginalised: Vec<u32>,
    /// The others, sorted.
    pub(crate) kept: Vec<u32>,
    /// The most states of the latents that one term contains.
    pub(crate) widest: f64,
}

/// The order of elimination: the latent with the smallest table is next, until none is small enough. The latents in `except` are kept in
/// any case.
pub(crate) fn order(unconstrained: &Unconstrained, which: &Marginalise, except: &[u32]) -> Order {
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
    let (chosen, mut kept): (Vec<u32>, Vec<u32>) =
        discrete.into_iter().partition(|l| wanted(*l) && !except.contains(l));
    let roots: Vec<Expr> = unconstrained.terms.iter().map(|t| t.expr).collect();
    let mut scopes: Vec<Vec<u32>> = vec![Vec::new(); roots.len()];
    for (k, terms) in blankets(&unconstrained.arena, &roots, &chosen).iter().enumerate() {
        for t in terms {
            scopes[*t as usize].push(k as u32);
        }
    }
    let size: Vec<f64> = chosen.iter().map(|l| domain(&unconstrained.coordinates[*l as usize], 0).1).collect();
    let mut neighbours: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); chosen.len()];
    let (mut crowded, mut widest) = (vec![false; chosen.len()], 1.0_f64);
    for scope in &scopes {
        let states = scope.iter().map(|k| size[*k as usize]).product::<f64>();
        widest = widest.max(states);
        // The latents of a term over too many of them are all kept; listing their pairs would take quadratic time.
        if states > TABLE_MAX {
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
        if is_count(k) && unconstrained.coordinates[chosen[k] as usize].window.is_open {
            return f64::INFINITY;
        }
        if is_count(k) && neighbours[k].iter().any(|n| is_count(*n as usize)) {
            return f64::INFINITY;
        }
        let around: f64 = neighbours[k].iter().map(|n| size[*n as usize].log2()).sum();
        size[k].log2() + around
    };
    let key = |cost: f64, k: usize| Reverse(((cost * 1e6) as u64, k as u32));
    let mut queue: BinaryHeap<_> =
        (0..chosen.len()).filter(|k| !crowded[*k]).map(|k| key(cost(k, &neighbours), k)).collect();
    let (mut done, mut marginalised, mut total) = (vec![false; chosen.len()], Vec::new(), 0.0);
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
    Order { marginalised, kept, widest }
}

/// The number of states that all discrete latents have together.
pub(crate) fn states(unconstrained: &Unconstrained) -> f64 {
    let of = |coordinate: &Coordinate| match coordinate.support {
        Support::Integers { lower, upper } => upper - lower + 1.0,
        Support::Counts => f64::INFINITY,
        _ => 1.0,
    };
    unconstrained.coordinates.iter().map(of).product()
}
