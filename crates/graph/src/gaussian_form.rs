//! The coefficients of a log joint that is a quadratic function of some latents x: log p = c + gᵀx − ½ xᵀPx, where c, g and P are expressions
//! of the other latents.
//!
//! All terms are multiplied out and like ones collected, so that a linear regression costs as much as its sufficient statistics, however many
//! observations there are.

use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Ternary, Unary};
use super::pooled::Pooled;
use super::tape::{TILE, Tape};
use hyperprior::model::Quadratic;
use hyperprior_math::batch::Batch;
use std::collections::{BTreeMap, HashMap};

/// The most factors of a monomial beside the latents x.
const FACTORS_MAX: usize = 6;
/// Sums without any x that have more terms than this are one factor.
const EXPANDED_MAX: usize = 8;
/// The most products of two monomials.
const PRODUCTS_MAX: usize = 5_000_000;
/// No latent, or no factor.
const NONE: u32 = u32::MAX;

/// A product of at most two latents x, given by their columns, and of other expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Monomial {
    latents: [u32; 2],
    factors: [u32; FACTORS_MAX],
}

impl Monomial {
    const ONE: Self = Self { latents: [NONE; 2], factors: [NONE; FACTORS_MAX] };

    fn latent(column: u32) -> Self {
        Self { latents: [column, NONE], ..Self::ONE }
    }

    fn factor(e: Expr) -> Self {
        let mut factors = [NONE; FACTORS_MAX];
        factors[0] = e.0;
        Self { factors, ..Self::ONE }
    }

    /// `None` if the product has too high a degree.
    fn times(&self, other: &Self) -> Option<Self> {
        Some(Self { latents: joined(&self.latents, &other.latents)?, factors: joined(&self.factors, &other.factors)? })
    }
}

/// Both lists in one, sorted.
fn joined<const N: usize>(a: &[u32; N], b: &[u32; N]) -> Option<[u32; N]> {
    let all = || a.iter().chain(b).copied().filter(|x| *x != NONE);
    if all().count() > N {
        return None;
    }
    let mut out = [NONE; N];
    out.iter_mut().zip(all()).for_each(|(out, x)| *out = x);
    out.sort_unstable();
    Some(out)
}

/// A sum of monomials with their weights, sorted.
type Polynomial = Vec<(Monomial, f64)>;

#[derive(Default)]
struct Collected(HashMap<Monomial, f64>);

impl Collected {
    fn add(&mut self, polynomial: &Polynomial, weight: f64) {
        polynomial.iter().for_each(|(monomial, w)| *self.0.entry(*monomial).or_default() += w * weight);
    }

    fn sorted(self) -> Polynomial {
        let mut terms: Polynomial = self.0.into_iter().collect();
        terms.sort_unstable_by_key(|(monomial, _)| *monomial);
        terms
    }
}

/// Multiplies expressions out.
struct Expansion<'a> {
    arena: &'a mut Expressions,
    /// Which expressions contain an x.
    contains: Vec<bool>,
    found: HashMap<Expr, Polynomial>,
    products_left: usize,
}

impl Expansion<'_> {
    /// Finds the polynomials of all operands first. `None` if an expression is not a polynomial, or too long.
    fn expand(&mut self, e: Expr, column: &impl Fn(u32) -> Option<u32>) -> Option<()> {
        let mut stack = vec![(e, false)];
        while let Some((e, is_ready)) = stack.pop() {
            if self.found.contains_key(&e) {
                continue;
            }
            if is_ready {
                let polynomial = self.of(e, column)?;
                self.found.insert(e, polynomial);
                continue;
            }
            stack.push((e, true));
            if self.is_expanded(e) {
                self.arena.operands(e, |operand| stack.push((operand, false)));
            }
        }
        Some(())
    }

    fn contains(&self, e: Expr) -> bool {
        self.contains.get(e.0 as usize).is_some_and(|contains| *contains)
    }

    /// Whether the polynomial is made of those of the operands.
    fn is_expanded(&self, e: Expr) -> bool {
        let is_sum_or_product = matches!(
            self.arena.node(e),
            Node::Linear { .. } | Node::Binary(Binary::Multiply, ..) | Node::Unary(Unary::Square, _)
        );
        self.contains(e) || is_sum_or_product
    }

    fn of(&mut self, e: Expr, column: &impl Fn(u32) -> Option<u32>) -> Option<Polynomial> {
        let constant = |x: f64| vec![(Monomial::ONE, x)];
        let whole = vec![(Monomial::factor(e), 1.0)];
        if !self.is_expanded(e) {
            return Some(match self.arena.node(e) {
                Node::Constant(x) => constant(x),
                _ => whole,
            });
        }
        let found = match self.arena.node(e) {
            Node::Leaf(l) => Some(vec![(Monomial::latent(column(l)?), 1.0)]),
            Node::Linear { list, weights, constant: own } => {
                let (list, weights) = (self.arena.list(list).to_vec(), self.arena.weights(list, weights).to_vec());
                let mut all = Collected::default();
                all.add(&constant(own), 1.0);
                list.iter().zip(weights).for_each(|(e, weight)| all.add(&self.found[e], weight));
                Some(all.sorted())
            }
            Node::Unary(Unary::Square, a) => self.product(a, a),
            Node::Binary(Binary::Multiply, a, b) => self.product(a, b),
            // Nothing divided by zero is not zero, as its product with the reciprocal would be.
            Node::Binary(Binary::Divide, a, b) if !self.contains(b) && self.arena.known(b).positive => {
                let inverse = self.arena.unary(Unary::Reciprocal, b);
                self.found.insert(inverse, vec![(Monomial::factor(inverse), 1.0)]);
                self.product(a, inverse)
            }
            Node::Ternary(Ternary::Choose, condition, a, b) if !self.contains(condition) => {
                let [zero, one] = [0.0, 1.0].map(|x| self.arena.constant(x));
                let mut all = Collected::default();
                for (e, first, second) in [(a, one, zero), (b, zero, one)] {
                    let is_chosen = self.arena.choose(condition, first, second);
                    self.found.insert(is_chosen, vec![(Monomial::factor(is_chosen), 1.0)]);
                    all.add(&self.product(e, is_chosen)?, 1.0);
                }
                Some(all.sorted())
            }
            _ => None,
        };
        let found = found.filter(|found| found.iter().all(|(_, weight)| weight.is_finite()));
        match found {
            _ if self.contains(e) => found,
            Some(found) if found.len() <= EXPANDED_MAX => Some(found),
            // One factor, as it contains no x.
            _ => Some(whole),
        }
    }

    /// `None` if the product is too long or of too high a degree.
    fn product(&mut self, a: Expr, b: Expr) -> Option<Polynomial> {
        let (x, y) = (&self.found[&a], &self.found[&b]);
        self.products_left = self.products_left.checked_sub(x.len() * y.len())?;
        let mut all: HashMap<Monomial, f64> = HashMap::with_capacity(x.len() * y.len() / 2);
        for (first, v) in x {
            for (second, w) in y {
                *all.entry(first.times(second)?).or_default() += v * w;
            }
        }
        Some(Collected(all).sorted())
    }

    /// The sum of these products of factors, each with its weight.
    fn sum(&mut self, of: &[([u32; FACTORS_MAX], f64)]) -> Expr {
        let mut constant = 0.0;
        let mut terms = Vec::with_capacity(of.len());
        for (factors, weight) in of {
            match factors.iter().filter(|e| **e != NONE).map(|e| Expr(*e)).reduce(|a, b| self.arena.multiply(a, b)) {
                Some(product) => terms.push((product, *weight)),
                None => constant += weight,
            }
        }
        self.arena.linear(&terms, constant)
    }
}

/// A tape whose outputs are the coefficients: c, the g, and the entries of P.
#[derive(Debug)]
pub(super) struct GaussianForm {
    pooled: Pooled,
    /// The positions of the x with an entry of g, and of the pairs with one of P.
    linear: Vec<u32>,
    pairs: Vec<[u32; 2]>,
}

impl GaussianForm {
    /// The coefficients of the sum of these terms along the latents in these columns, in increasing order. `None` if they are not found by
    /// multiplying out, or if there are very many.
    pub(super) fn new(
        arena: &Expressions,
        terms: &[Expr],
        columns: &[usize],
        column: impl Fn(u32) -> Option<u32>,
    ) -> Option<Self> {
        let position = |l: u32| column(l).and_then(|c| columns.binary_search(&(c as usize)).ok()).map(|k| k as u32);
        let mut arena = arena.clone();
        let mut contains = vec![false; arena.len()];
        let reached = arena.reach(terms);
        for e in (0..arena.len() as u32).map(Expr).filter(|e| reached[e.0 as usize]) {
            let mut own = matches!(arena.node(e), Node::Leaf(l) if position(l).is_some());
            arena.operands(e, |operand| own |= contains[operand.0 as usize]);
            contains[e.0 as usize] = own;
        }
        let mut expansion =
            Expansion { arena: &mut arena, contains, found: HashMap::new(), products_left: PRODUCTS_MAX };
        let mut all = Collected::default();
        for e in terms {
            if !expansion.contains(*e) {
                all.add(&vec![(Monomial::factor(*e), 1.0)], 1.0);
                continue;
            }
            expansion.expand(*e, &position)?;
            all.add(&expansion.found[e], 1.0);
        }
        let mut by_latents: BTreeMap<[u32; 2], Vec<([u32; FACTORS_MAX], f64)>> = BTreeMap::new();
        for (Monomial { latents, factors }, weight) in all.sorted() {
            by_latents.entry(latents).or_default().push((factors, weight));
        }
        let constant = by_latents.remove(&[NONE; 2]).unwrap_or_default();
        let mut outputs = vec![expansion.sum(&constant)];
        let (of_one, of_two): (Vec<_>, Vec<_>) = by_latents.into_iter().partition(|([_, second], _)| *second == NONE);
        outputs.extend(of_one.iter().map(|(_, of)| expansion.sum(of)));
        for ([i, j], of) in &of_two {
            let scale = if i == j { -2.0 } else { -1.0 };
            let of: Vec<_> = of.iter().map(|(factors, weight)| (*factors, scale * weight)).collect();
            outputs.push(expansion.sum(&of));
        }
        let tape = Tape::new(&arena, &[], &outputs, |l| column(l).unwrap_or(u32::MAX), false);
        Some(Self {
            pooled: Pooled::new(tape),
            linear: of_one.into_iter().map(|([i, _], _)| i).collect(),
            pairs: of_two.into_iter().map(|(pair, _)| pair).collect(),
        })
    }
}

impl Quadratic for GaussianForm {
    fn pairs(&self) -> &[[u32; 2]] {
        &self.pairs
    }

    fn work(&self) -> usize {
        self.pooled.tape.work(false) + self.linear.len() + self.pairs.len()
    }

    fn coefficients(&self, z: &Batch, constant: &mut [f64], linear: &mut Batch, entries: &mut Batch) {
        linear.as_mut_slice().fill(0.0);
        let mut workspace = self.pooled.take();
        let tape = &self.pooled.tape;
        for first in (0..z.draws_len()).step_by(TILE) {
            let own = first..z.draws_len().min(first + TILE);
            tape.load(z, first, &mut workspace);
            tape.forward(&mut workspace);
            constant[own.clone()].copy_from_slice(&tape.output(0, &workspace)[..own.len()]);
            for (k, i) in self.linear.iter().enumerate() {
                let row = tape.output(1 + k, &workspace);
                linear.column_mut(*i as usize)[own.clone()].copy_from_slice(&row[..own.len()]);
            }
            for k in 0..self.pairs.len() {
                let row = tape.output(1 + self.linear.len() + k, &workspace);
                entries.column_mut(k)[own.clone()].copy_from_slice(&row[..own.len()]);
            }
        }
        self.pooled.give(workspace);
    }
}
