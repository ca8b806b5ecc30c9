//! Sums of many discrete latents as chains of running sums.
//!
//! A term that contains the sum of n discrete latents is a table over all their joint values. With the running sums cₖ = cₖ₋₁ + zₖ as
//! further latents, each a function of two others, it is a table over the last of them alone, and elimination takes the time of a
//! convolution: about n³ for indicators. Sums that begin alike share their running sums, so that the sums of a cumulated series are one
//! chain.

use super::counts::{Factor, Window};
use super::expression::{Expr, Expressions, Known, Node};
use super::marginalise::unpack;
use super::node::Graph;
use super::operation::{Binary, Unary};
use super::rewrite::{Shape, Substitution};
use super::unconstrained::{Coordinate, Term, Transform, Unconstrained};
use hyperprior::model::Support;
use std::collections::{BTreeSet, HashMap};

/// Sums with fewer parts are left as they are.
const PARTS_MIN: usize = 3;
/// The most joint values of the latents in one part.
const PART_MAX: usize = 1024;
/// The most expressions in one part.
const EXPRESSIONS_MAX: usize = 256;
/// The most values of a sum.
const VALUES_MAX: f64 = 4096.0;
/// Multiples of a step may be off by this much.
const ROUNDING: f64 = 1e-9;

/// A part of a sum that shares no latent with the others.
#[derive(Debug)]
struct Part {
    terms: Vec<(Expr, f64)>,
    latents: Vec<u32>,
}

/// A part's smallest value, and how much larger it is for each joint value of its latents.
#[derive(Debug)]
struct Range {
    least: f64,
    above: Vec<f64>,
}

/// A latent that is the sum of some parts above the least that it can be, in steps.
#[derive(Clone, Copy, Debug)]
struct Running {
    leaf: Expr,
    most: f64,
}

impl Range {
    fn most(&self) -> f64 {
        self.above.iter().copied().fold(0.0, f64::max)
    }

    /// Of the part times −1.
    fn negate(&mut self) {
        let most = self.most();
        self.least = -(self.least + most);
        self.above.iter_mut().for_each(|x| *x = most - *x);
    }
}

type Key = (Option<usize>, Vec<u32>, Vec<u64>);

#[derive(Debug)]
struct RunningSums<'a> {
    graph: &'a Graph,
    new: Unconstrained,
    sums: Vec<Running>,
    /// The number of each sum: by that of the sum before it, and the latents of its last part with the part's values in steps.
    numbers: HashMap<Key, usize>,
    substitution: Substitution,
}

/// The same density with further latents, the running sums; none if no term has the sum of many discrete latents.
pub(super) fn with_running_sums(graph: &Graph, unconstrained: &Unconstrained) -> Option<Unconstrained> {
    let ceilings = unconstrained.factors.iter().filter_map(|factor| factor.ceiling);
    let roots: Vec<Expr> = unconstrained.terms.iter().map(|term| term.expr).chain(ceilings).collect();
    let reached = unconstrained.arena.reach(&roots);
    let touched = unconstrained.arena.containing(|l| values_len(unconstrained, l).is_some());
    let (numbers, substitution) = (HashMap::new(), Substitution::default());
    let mut sums = RunningSums { graph, new: unconstrained.clone(), sums: Vec::new(), numbers, substitution };
    let mut rebuilt: Vec<Expr> = (0..reached.len() as u32).map(Expr).collect();
    let mut shape = Shape::default();
    for i in (0..rebuilt.len()).filter(|i| reached[*i] && touched[*i]) {
        let e = rebuilt[i];
        if !matches!(unconstrained.arena.node(e), Node::Leaf(_)) {
            shape.take(&unconstrained.arena, e);
            let new = shape.make(&mut sums.new.arena, |e| rebuilt[e.0 as usize], |_| e);
            rebuilt[i] = sums.replaced(new).unwrap_or(new);
        }
    }
    if sums.sums.is_empty() {
        return None;
    }
    let len = unconstrained.terms.len();
    for (term, factor) in sums.new.terms[..len].iter_mut().zip(&mut sums.new.factors) {
        term.expr = rebuilt[term.expr.0 as usize];
        factor.ceiling = factor.ceiling.map(|e| rebuilt[e.0 as usize]);
    }
    Some(sums.new)
}

/// How many values a latent has, if it is discrete and they are finitely many.
fn values_len(unconstrained: &Unconstrained, latent: u32) -> Option<usize> {
    match unconstrained.coordinates[latent as usize].support {
        Support::Integers { lower, upper } => Some((upper - lower) as usize + 1),
        _ => None,
    }
}

impl RunningSums<'_> {
    /// The expression with its sum of discrete latents as the last of a chain of running sums.
    fn replaced(&mut self, e: Expr) -> Option<Expr> {
        let Node::Linear { list, weights, constant } = self.new.arena.node(e) else { return None };
        let arena = &self.new.arena;
        if arena.list(list).len() < PARTS_MIN {
            return None;
        }
        let terms: Vec<(Expr, f64)> =
            arena.list(list).iter().copied().zip(arena.weights(list, weights).iter().copied()).collect();
        let (mut parts, mut rest) = self.parts(&terms);
        if parts.len() < PARTS_MIN {
            return None;
        }
        let mut ranges: Vec<Range> = parts.iter().map(|part| self.range(part)).collect::<Option<_>>()?;
        // A number of failures is that of trials without the successes: of the two, one is made.
        let falls = ranges[0].above.first() > ranges[0].above.last();
        if falls {
            parts.iter_mut().flat_map(|part| &mut part.terms).for_each(|(_, w)| *w = -*w);
            ranges.iter_mut().for_each(Range::negate);
        }
        let above = || ranges.iter().flat_map(|range| &range.above).copied();
        let step = above().filter(|x| *x > 0.0).reduce(f64::min)?;
        let is_multiple = |x: f64| (x / step - (x / step).round()).abs() <= ROUNDING;
        let most: f64 = ranges.iter().map(Range::most).sum();
        if !above().all(is_multiple) || most / step >= VALUES_MAX {
            return None;
        }
        let mut last = None;
        for (part, range) in parts.iter().zip(&ranges) {
            let steps = range.above.iter().map(|x| (x / step).round() as u64).collect();
            let key = (last, part.latents.clone(), steps);
            let number = match self.numbers.get(&key) {
                Some(number) => *number,
                None => {
                    let own: Vec<(Expr, f64)> = part.terms.iter().map(|(e, w)| (*e, w / step)).collect();
                    let leaf = self.new.arena.linear(&own, -range.least / step);
                    let own = Running { leaf, most: (range.most() / step).round() };
                    let sum = last.map_or(own, |before: usize| self.add(self.sums[before], own, part.latents[0]));
                    self.sums.push(sum);
                    self.numbers.insert(key, self.sums.len() - 1);
                    self.sums.len() - 1
                }
            };
            last = Some(number);
        }
        let sign = if falls { -1.0 } else { 1.0 };
        rest.push((self.sums[last?].leaf, sign * step));
        let least: f64 = ranges.iter().map(|range| range.least).sum();
        Some(self.new.arena.linear(&rest, constant + sign * least))
    }

    /// The parts of a sum that are made of discrete latents alone, and the other terms.
    fn parts(&self, terms: &[(Expr, f64)]) -> (Vec<Part>, Vec<(Expr, f64)>) {
        let (mut parts, mut rest): (Vec<Part>, Vec<(Expr, f64)>) = (Vec::new(), Vec::new());
        // The part of each latent.
        let mut part_of: HashMap<u32, usize> = HashMap::new();
        for term in terms {
            let Some(latents) = self.latents(term.0) else {
                rest.push(*term);
                continue;
            };
            let mut own: Vec<usize> = latents.iter().filter_map(|l| part_of.get(l).copied()).collect();
            own.sort_unstable();
            own.dedup();
            let Some((first, others)) = own.split_first() else {
                part_of.extend(latents.iter().map(|l| (*l, parts.len())));
                parts.push(Part { terms: vec![*term], latents });
                continue;
            };
            // All parts with these latents become one.
            parts[*first].terms.push(*term);
            let mut all = latents;
            for other in others {
                let Part { terms, latents } =
                    std::mem::replace(&mut parts[*other], Part { terms: vec![], latents: vec![] });
                parts[*first].terms.extend(terms);
                all.extend(latents);
            }
            all.append(&mut parts[*first].latents);
            all.sort_unstable();
            all.dedup();
            part_of.extend(all.iter().map(|l| (*l, *first)));
            parts[*first].latents = all;
        }
        parts.retain(|part| !part.terms.is_empty());
        (parts, rest)
    }

    /// The latents of an expression, if all of them are discrete with finitely many values.
    fn latents(&self, e: Expr) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        for e in below(&self.new.arena, e, EXPRESSIONS_MAX)? {
            if let Node::Leaf(l) = self.new.arena.node(e) {
                values_len(&self.new, l)?;
                found.push(l);
            }
        }
        found.sort_unstable();
        (!found.is_empty()).then_some(found)
    }

    /// The values of a part, if they are few and finite.
    fn range(&mut self, part: &Part) -> Option<Range> {
        let len = |l: &u32| values_len(&self.new, *l).map(|len| (0.0, len));
        let domains: Vec<(f64, usize)> = part.latents.iter().map(len).collect::<Option<_>>()?;
        let rows = domains.iter().try_fold(1_usize, |rows, (_, len)| rows.checked_mul(*len))?;
        if rows > PART_MAX {
            return None;
        }
        let sum = self.new.arena.linear(&part.terms, 0.0);
        let affected = below(&self.new.arena, sum, usize::MAX)?;
        let scope: Vec<usize> = (0..domains.len()).collect();
        let (mut joint, mut values) = (vec![0; domains.len()], Vec::with_capacity(rows));
        for row in 0..rows {
            unpack(row, &scope, &domains, &mut joint);
            let value = |l: u32| part.latents.binary_search(&l).ok().map(|k| joint[k] as f64);
            let value = self.substitution.apply(&mut self.new.arena, &affected, value, sum);
            values.push(self.new.arena.value(value).filter(|x| x.is_finite())?);
        }
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Range { least, above: values.iter().map(|x| x - least).collect() })
    }

    /// A latent that is the sum of two others.
    fn add(&mut self, a: Running, b: Running, latent: u32) -> Running {
        let most = a.most + b.most;
        let Coordinate { leaf, name, .. } = self.new.coordinates[latent as usize].clone();
        let (number, support) = (self.new.coordinates.len() as u32, Support::Integers { lower: 0.0, upper: most });
        let (transform, window) = (Transform::Integer(0.0), Window::default());
        self.new.coordinates.push(Coordinate { name, support, leaf, transform, window });
        let known = Known { nonnegative: true, positive: false, whole: true, at_most_one: false };
        let arena = &mut self.new.arena;
        let sum = arena.leaf(number, known);
        // Differences are integers, but for rounding.
        let difference = arena.linear(&[(sum, 1.0), (a.leaf, -1.0), (b.leaf, -1.0)], 0.0);
        let distance = arena.unary(Unary::Abs, difference);
        let nearer_than_half = arena.linear(&[(distance, -1.0)], 0.5);
        let zero = arena.constant(0.0);
        let expr = arena.binary(Binary::Require, nearer_than_half, zero);
        self.new.terms.push(Term { expr, random: self.graph.leaves[leaf].random });
        self.new.factors.push(Factor::default());
        Running { leaf: sum, most }
    }
}

/// An expression and all that it is made of, operands first; none if these are more.
fn below(arena: &Expressions, e: Expr, most: usize) -> Option<Vec<Expr>> {
    let (mut seen, mut stack) = (BTreeSet::new(), vec![e]);
    while let Some(e) = stack.pop() {
        if seen.insert(e) {
            arena.operands(e, |e| stack.push(e));
        }
        if seen.len() > most {
            return None;
        }
    }
    Some(seen.into_iter().collect())
}
