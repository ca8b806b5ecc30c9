//! Which latents are coupled: the pairs whose second derivative of the log joint may be other than zero.
//!
//! A sum couples nothing, a product couples its factors with each other, and any other function couples all that it depends on. The log
//! joint is a sum of terms with few latents each, so these are few pairs of the many.

use super::expression::{Expr, Expressions, Node};
use super::operation::Binary;
use super::tape::Below;
use std::collections::HashSet;
use std::rc::Rc;

/// With more pairs than this, nothing is gained by knowing them.
const PAIRS_MAX: usize = 4_000_000;

/// The pairs of columns that are coupled in the sum of these terms; `column` gives the column of a coordinate. `None` if there are too many.
pub(super) fn coupled(
    arena: &Expressions,
    terms: &[(Expr, f64)],
    column: impl Fn(u32) -> u32,
) -> Option<Vec<[u32; 2]>> {
    let below = Below::all(arena, terms, &[]);
    let mut depends: Vec<Option<Rc<[u32]>>> = vec![None; arena.len()];
    let none: Rc<[u32]> = Rc::from([]);
    let (mut pairs, mut known): (HashSet<[u32; 2]>, HashSet<Rc<[u32]>>) = (HashSet::new(), HashSet::new());
    for &e in &below.exprs {
        let of = |e: Expr| depends[e.0 as usize].clone().unwrap_or_else(|| none.clone());
        let mut operands: Vec<Rc<[u32]>> = Vec::new();
        arena.operands(e, |operand| operands.push(of(operand)));
        let union = match (arena.node(e), &operands[..]) {
            (Node::Leaf(l), _) => Rc::from([column(l)]),
            (_, [one]) => one.clone(),
            (_, many) => {
                let mut all: Vec<u32> = many.iter().flat_map(|of| of.iter().copied()).collect();
                all.sort_unstable();
                all.dedup();
                Rc::from(all)
            }
        };
        match (arena.node(e), &operands[..]) {
            (Node::Constant(_) | Node::Leaf(_) | Node::Linear { .. }, _) => {}
            (Node::Binary(Binary::Multiply, ..), [a, b]) => {
                a.iter().for_each(|i| pairs.extend(b.iter().filter(|j| i != *j).map(|j| [*i.min(j), *i.max(j)])));
            }
            _ => {
                if union.len() * union.len() > 2 * PAIRS_MAX {
                    return None;
                }
                if known.insert(union.clone()) {
                    for (at, i) in union.iter().enumerate() {
                        pairs.extend(union[at + 1..].iter().map(|j| [*i, *j]));
                    }
                }
            }
        }
        if pairs.len() > PAIRS_MAX {
            return None;
        }
        depends[e.0 as usize] = Some(union);
    }
    let mut pairs: Vec<[u32; 2]> = pairs.into_iter().collect();
    pairs.sort_unstable();
    Some(pairs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use crate::builder::GraphBuilder;
    use crate::distribution::Distribution;
    use crate::elimination::Marginalise;
    use crate::function::Function;
    use crate::model::GraphModel;
    use hyperprior::Model;
    use hyperprior_math::batch::Batch;

    /// A random walk of log rates with a count at each, in two groups with a shared effect.
    fn walk(len: usize, is_recentred: bool) -> GraphModel {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let precision = g.stochastic("precision", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
        let effect = g.stochastic("effect", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let mut before = zero;
        for t in 0..len {
            let own = Distribution::Normal { mean: before, precision };
            let x = g.stochastic(&format!("x[{}]", t + 1), own, None, None).unwrap();
            let sum = g.add(x, effect);
            let rate = g.call(Function::Exp, &[if t % 2 == 0 { sum } else { x }]);
            g.stochastic(&format!("y[{}]", t + 1), Distribution::Poisson { rate }, None, Some((t % 4) as f64)).unwrap();
            before = x;
        }
        let model = g.build().unwrap().model().unwrap();
        if is_recentred { model.recentred(&Marginalise::Auto).unwrap() } else { model }
    }

    /// Catches pairs that are missing: every second derivative that is not zero belongs to one.
    #[test]
    fn latents_that_are_not_coupled_have_no_second_derivative() {
        for is_recentred in [false, true] {
            let model = walk(12, is_recentred);
            let n = model.latents().len();
            let pairs = model.coupled().unwrap();
            let (gradient, step) = (model.gradient().unwrap(), 1e-4);
            let mut z = Batch::zeros(n, 2 * n);
            for i in 0..n {
                z.column_mut(i).fill(0.3 * (i as f64).sin());
                z.column_mut(i)[2 * i] += step;
                z.column_mut(i)[2 * i + 1] -= step;
            }
            let (mut log_p, mut d_z) = (vec![0.0; 2 * n], Batch::zeros(n, 2 * n));
            gradient.log_joint_gradient(&z, &mut log_p, &mut d_z).unwrap();
            for i in 0..n {
                for j in 0..i {
                    let second = (d_z.get(j, 2 * i) - d_z.get(j, 2 * i + 1)) / (2.0 * step);
                    let is_pair = pairs.binary_search(&[j as u32, i as u32]).is_ok();
                    assert!(is_pair || second.abs() < 1e-6, "{j}, {i}: {second}");
                }
            }
        }
    }

    /// Relative to the value before, every value of a random walk would be coupled with all before it.
    #[test]
    fn the_values_of_a_random_walk_are_coupled_with_their_neighbours() {
        for is_recentred in [false, true] {
            let len = 40;
            let model = walk(len, is_recentred);
            let pairs = model.coupled().unwrap().len();
            // Each value with the next, the precision and the effect; in other coordinates with no more.
            assert!(pairs <= 3 * len + 2, "{pairs}");
        }
    }
}
