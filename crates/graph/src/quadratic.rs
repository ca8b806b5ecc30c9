//! Which latents the log joint is a quadratic function of, whatever the others are: given these, they are jointly Gaussian.
//!
//! The degree of every expression is known from the degrees of its operands: a sum has the largest, a product the sum, and any function that is
//! not a polynomial has none unless its operand is constant. Latents are left out until no term has a degree above two.

use super::expression::{Expr, Expressions, Node};
use super::operation::{Binary, Ternary, Unary};
use super::tape::Below;
use std::collections::HashMap;

/// The degree of an expression as a polynomial of some latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Degree {
    Polynomial(u8),
    /// It is not a polynomial of at most degree two.
    None,
}

/// The highest degree of the log density of a Gaussian.
const QUADRATIC: u8 = 2;
/// Products that are looked at to find the latent that is in most of those of too high a degree.
const PRODUCTS_MAX: usize = 4_000_000;

/// Coordinates that the sum of these terms is a quadratic function of, if no more than so many of the candidates are left out; `None` if
/// there are none.
pub(super) fn quadratic(
    arena: &Expressions,
    terms: &[(Expr, f64)],
    mut is_candidate: Vec<bool>,
    others_max: usize,
) -> Option<Vec<bool>> {
    let below = Below::all(arena, terms, &[]);
    let mut left_out = 0;
    while is_candidate.contains(&true) {
        match fault(arena, &below, &is_candidate) {
            None => return Some(is_candidate),
            Some(Fault::NotPolynomial(latents)) => {
                for l in latents {
                    left_out += usize::from(std::mem::replace(&mut is_candidate[l as usize], false));
                }
            }
            Some(Fault::TooHigh(l)) => {
                left_out += 1;
                is_candidate[l as usize] = false;
            }
        }
        if left_out > others_max {
            return None;
        }
    }
    None
}

/// Why terms are not quadratic.
enum Fault {
    /// Functions of these latents are not polynomials.
    NotPolynomial(Vec<u32>),
    /// Products have too high a degree, most of them because of this latent.
    TooHigh(u32),
}

fn fault(arena: &Expressions, below: &Below, is_candidate: &[bool]) -> Option<Fault> {
    let mut degrees = vec![Degree::Polynomial(0); arena.len()];
    let of = |degrees: &[Degree], e: Expr| degrees[e.0 as usize];
    let (mut not_polynomial, mut too_high) = (Vec::new(), Vec::new());
    for &e in &below.exprs {
        let degree = degree(arena, e, is_candidate, |e| of(&degrees, e));
        let mut are_polynomials = true;
        arena.operands(e, |operand| are_polynomials &= of(&degrees, operand) != Degree::None);
        if degree == Degree::None && are_polynomials {
            match is_product(arena, e) {
                true => too_high.push(e),
                false => not_polynomial.push(e),
            }
        }
        degrees[e.0 as usize] = degree;
    }
    if !not_polynomial.is_empty() {
        let mut latents = Vec::new();
        walk(arena, &not_polynomial, &degrees, |e| {
            if let Node::Leaf(l) = arena.node(e) {
                latents.push(l);
            }
        });
        return Some(Fault::NotPolynomial(latents));
    }
    // The latent that is in most products within those of too high a degree.
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let mut left = PRODUCTS_MAX;
    for e in too_high {
        let mut products = Vec::new();
        walk(arena, &[e], &degrees, |inner| {
            if is_product(arena, inner) && varies(of(&degrees, inner)) {
                products.push(inner);
            }
        });
        for product in products {
            walk(arena, &[product], &degrees, |inner| {
                if let Node::Leaf(l) = arena.node(inner) {
                    *counts.entry(l).or_default() += 1;
                    left = left.saturating_sub(1);
                }
            });
        }
        if left == 0 {
            break;
        }
    }
    counts.into_iter().max_by_key(|(l, count)| (*count, std::cmp::Reverse(*l))).map(|(l, _)| Fault::TooHigh(l))
}

/// Calls `f` with these expressions and all that they are made of and that are not constant.
fn walk(arena: &Expressions, from: &[Expr], degrees: &[Degree], mut f: impl FnMut(Expr)) {
    let mut stack = from.to_vec();
    let mut seen: std::collections::HashSet<Expr> = from.iter().copied().collect();
    while let Some(e) = stack.pop() {
        f(e);
        arena.operands(e, |operand| {
            if varies(degrees[operand.0 as usize]) && seen.insert(operand) {
                stack.push(operand);
            }
        });
    }
}

fn varies(degree: Degree) -> bool {
    degree != Degree::Polynomial(0)
}

/// Whether an expression is a product of two that may vary, or a square.
fn is_product(arena: &Expressions, e: Expr) -> bool {
    matches!(arena.node(e), Node::Binary(Binary::Multiply, ..) | Node::Unary(Unary::Square, _))
}

fn degree(arena: &Expressions, e: Expr, is_candidate: &[bool], of: impl Fn(Expr) -> Degree) -> Degree {
    let product = |a: Degree, b: Degree| match (a, b) {
        (Degree::Polynomial(a), Degree::Polynomial(b)) if a + b <= QUADRATIC => Degree::Polynomial(a + b),
        _ => Degree::None,
    };
    let constant = |e: Expr| of(e) == Degree::Polynomial(0);
    match arena.node(e) {
        Node::Constant(_) => Degree::Polynomial(0),
        Node::Leaf(l) => Degree::Polynomial(u8::from(is_candidate[l as usize])),
        Node::Linear { list, .. } => largest(arena.list(list).iter().map(|e| of(*e))),
        Node::Unary(Unary::Square, a) => product(of(a), of(a)),
        Node::Binary(Binary::Multiply, a, b) => product(of(a), of(b)),
        Node::Binary(Binary::Divide, a, b) if constant(b) => of(a),
        Node::Binary(Binary::Require | Binary::Within, condition, a) if constant(condition) => of(a),
        Node::Ternary(Ternary::Choose, condition, a, b) if constant(condition) => largest([of(a), of(b)].into_iter()),
        Node::Select { index, list } if constant(index) => largest(arena.list(list).iter().map(|e| of(*e))),
        _ => {
            let mut is_constant = true;
            arena.operands(e, |operand| is_constant &= constant(operand));
            if is_constant { Degree::Polynomial(0) } else { Degree::None }
        }
    }
}

fn largest(degrees: impl Iterator<Item = Degree>) -> Degree {
    degrees.fold(Degree::Polynomial(0), |a, b| match (a, b) {
        (Degree::Polynomial(a), Degree::Polynomial(b)) => Degree::Polynomial(a.max(b)),
        _ => Degree::None,
    })
}
