//! Effects whose scale may be near zero. Where the neck of the funnel has a part of the posterior that matters, chains can enter it only
//! if the effects are not centred, however well centring suits the rest.

use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::unconstrained::Transform;
use hyperprior::infer::tail_share;
use hyperprior_math::batch::Batch;
use std::collections::BTreeMap;

/// A neck with a smaller share of the posterior does not matter.
const SHARE_MIN: f64 = 0.03;

/// For each latent of the graph, whether it is an effect whose scale may be near zero. The model has effects that are not centred, and
/// the draws are near its mode.
pub(super) fn with_neck(model: &GraphModel, near: &Batch, seed: u64) -> Vec<bool> {
    let mut has_neck = vec![false; model.graph.leaves.len()];
    for (column, effects) in by_scale(model) {
        let Some((_, log_scale)) = effects.first() else { continue };
        let log_scales = values(model, *log_scale, near);
        let x = near.column(column);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let (centre, scale) = (mean(x), mean(&log_scales));
        let covariance: f64 = x.iter().zip(&log_scales).map(|(x, y)| (x - centre) * (y - scale)).sum();
        if !covariance.is_finite() || covariance == 0.0 {
            continue;
        }
        if tail_share(model, near, column, -covariance.signum(), seed).is_ok_and(|share| share > SHARE_MIN) {
            effects.iter().for_each(|(leaf, _)| has_neck[*leaf] = true);
        }
    }
    has_neck
}

/// The effects, with the expressions of their log scales, by the columns that the scale depends on.
fn by_scale(model: &GraphModel) -> BTreeMap<usize, Vec<(usize, Expr)>> {
    let arena = &model.unconstrained.arena;
    let mut found: BTreeMap<usize, Vec<(usize, Expr)>> = BTreeMap::new();
    let mut columns_of: BTreeMap<Expr, Vec<usize>> = BTreeMap::new();
    for coordinate in &model.unconstrained.coordinates {
        let Transform::Located { log_scale, .. } = coordinate.transform else { continue };
        let columns = columns_of.entry(log_scale).or_insert_with(|| {
            let (mut stack, mut seen, mut columns) = (vec![log_scale], std::collections::BTreeSet::new(), Vec::new());
            while let Some(e) = stack.pop() {
                if !seen.insert(e) {
                    continue;
                }
                if let Node::Leaf(l) = arena.node(e) {
                    columns.extend(model.columns[l as usize].map(|column| column as usize));
                }
                arena.operands(e, |operand| stack.push(operand));
            }
            columns
        });
        for column in columns.iter() {
            found.entry(*column).or_default().push((coordinate.leaf, log_scale));
        }
    }
    found
}

/// An expression at each draw.
fn values(model: &GraphModel, e: Expr, z: &Batch) -> Vec<f64> {
    let mut interpreter = Interpreter::new(&model.unconstrained.arena, &[e]);
    (0..z.draws_len())
        .map(|s| {
            interpreter.run(&model.unconstrained.arena, |l, _| {
                model.columns[l as usize].map_or(f64::NAN, |column| z.get(column as usize, s))
            });
            interpreter.value(e)
        })
        .collect()
}
