//! Effects whose scale may be near zero. Where the neck of the funnel has a part of the posterior that matters, chains can enter it only
//! if the effects are not centred, however well centring suits the rest.

use super::expression::{Expr, Node};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::unconstrained::Transform;
use hyperprior::infer::log_marginal;
use hyperprior_math::batch::Batch;
use std::collections::BTreeMap;

/// The distances from the middle at which a marginal is evaluated, in standard deviations.
const DISTANCES: [f64; 12] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.5, 7.5, 10.0, 14.0, 20.0, 28.0, 40.0];
/// How often the guess of the middle is improved.
const ROUNDS: usize = 10;
/// The standard deviation of a log scale about which some two hundred effects agree, 1/√400: it is not near zero.
const NARROW: f64 = 0.05;
/// A neck with a smaller share of the posterior does not matter.
const SHARE_MIN: f64 = 0.03;

/// For each latent of the graph, whether it is an effect whose scale may be near zero. The model has effects that are not centred. The
/// draws are near its mode; where the mass is, the locations and scales of a factorised Gaussian say, for latents that are not effects.
pub(super) fn with_neck(model: &GraphModel, near: &Batch, fitted: &[(f64, f64)], seed: u64) -> Vec<bool> {
    let mut has_neck = vec![false; model.graph.leaves.len()];
    for (column, effects) in by_scale(model) {
        let Some((_, log_scale)) = effects.first() else { continue };
        if is_narrow(&values(model, *log_scale, &moved(near, column, fitted[column]))) {
            continue;
        }
        if neck_share(model, near, (column, *log_scale), fitted[column], seed).is_some_and(|share| share > SHARE_MIN) {
            effects.iter().for_each(|(leaf, _)| has_neck[*leaf] = true);
        }
    }
    has_neck
}

/// Whether a log scale varies so little, given the other latents, that very many effects agree about it.
fn is_narrow(log_scale: &[f64]) -> bool {
    let n = log_scale.len() as f64;
    let mean = log_scale.iter().sum::<f64>() / n;
    (log_scale.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt() < NARROW
}

/// The share of the posterior where a log scale is more than three standard deviations below the middle of its marginal. The middle is
/// looked for first, from a guess of its location and scale. `None` if it is not found.
fn neck_share(
    model: &GraphModel,
    near: &Batch,
    (column, log_scale): (usize, Expr),
    mut guess: (f64, f64),
    seed: u64,
) -> Option<f64> {
    for _ in 0..ROUNDS {
        let near = moved(near, column, guess);
        let below = side_below(model, &near, column, log_scale)?;
        let along = |side: f64| {
            let at: Vec<f64> = DISTANCES.iter().map(|t| side * t).collect();
            log_marginal(model, &near, column, &at, seed)
        };
        let (down, up) = rayon::join(|| along(below), || along(-below));
        // From the lowest scale to the highest; where there is no density, there is no mass.
        let ends =
            |found: Vec<Option<f64>>| found.into_iter().map(|x| x.unwrap_or(f64::NEG_INFINITY)).collect::<Vec<_>>();
        let (mut log_m, up) = (ends(down.ok()?), ends(up.ok()?));
        log_m.reverse();
        log_m.extend(&up[1..]);
        let mut at: Vec<f64> = DISTANCES.iter().rev().map(|t| -t).collect();
        at.extend(&DISTANCES[1..]);
        let top = (1..at.len() - 1).max_by(|a, b| log_m[*a].total_cmp(&log_m[*b]))?;
        let bend = bend(&at[top - 1..=top + 1], &log_m[top - 1..=top + 1]);
        let width = if bend > 0.0 { (1.0 / bend.sqrt()).clamp(0.1, 10.0) } else { 10.0 };
        if at[top] != 0.0 || !(0.8..1.25).contains(&width) {
            // Towards larger scales the coordinate moves by −below.
            guess = (guess.0 - below * at[top] * guess.1, guess.1 * width);
            continue;
        }
        let density: Vec<f64> = log_m.iter().map(|x| (x - log_m[top]).exp()).collect();
        let mass = |from: usize, to: usize| -> f64 {
            (from..to).map(|k| 0.5 * (at[k + 1] - at[k]) * (density[k] + density[k + 1])).sum()
        };
        let three = at.iter().position(|t| *t >= -3.0)?;
        return Some(mass(0, three) / mass(0, at.len() - 1));
    }
    None
}

/// −d²/dx² of the parabola through three points.
fn bend(x: &[f64], y: &[f64]) -> f64 {
    let slope = |k: usize| (y[k + 1] - y[k]) / (x[k + 1] - x[k]);
    -2.0 * (slope(1) - slope(0)) / (x[2] - x[0])
}

/// The direction of a coordinate in which an expression falls.
fn side_below(model: &GraphModel, z: &Batch, column: usize, e: Expr) -> Option<f64> {
    let (x, y) = (z.column(column), values(model, e, z));
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (middle, level) = (mean(x), mean(&y));
    let covariance: f64 = x.iter().zip(&y).map(|(x, y)| (x - middle) * (y - level)).sum();
    (covariance.is_finite() && covariance != 0.0).then(|| -covariance.signum())
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
                if let Node::Leaf(l) = arena.node(e)
                    && !matches!(model.unconstrained.coordinates[l as usize].transform, Transform::Located { .. })
                {
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

/// The draws with another mean and standard deviation of one latent.
fn moved(z: &Batch, column: usize, (location, scale): (f64, f64)) -> Batch {
    let mut z = z.clone();
    let n = z.draws_len() as f64;
    let mean = z.column(column).iter().sum::<f64>() / n;
    let sd = (z.column(column).iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    z.column_mut(column).iter_mut().for_each(|x| *x = location + scale * (*x - mean) / sd);
    z
}

/// An expression at each draw.
fn values(model: &GraphModel, e: Expr, z: &Batch) -> Vec<f64> {
    let mut interpreter = Interpreter::new(&model.unconstrained.arena, &[e]);
    (0..z.draws_len())
        .map(|s| {
            model.interpret(&mut interpreter, z, s);
            interpreter.value(e)
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::centring::{Centring, Degree, Degrees};
    use crate::distribution::Distribution;
    use crate::elimination::Marginalise;
    use crate::function::Function;

    /// An effect about which the data say nothing, so that its log scale has its prior: Student t with these degrees of freedom.
    fn funnel(df: f64) -> GraphModel {
        let mut g = GraphBuilder::new();
        let (zero, one, df) = (g.constant(0.0), g.constant(1.0), g.constant(df));
        let log_scale =
            g.stochastic("log_scale", Distribution::StudentT { mean: zero, precision: one, df }, None, None).unwrap();
        with_effect(g, log_scale)
    }

    /// The same with a scale that is exponential, or one over an exponential: the log of an exponential has a long tail on the left and none
    /// on the right.
    fn skewed(sign: f64) -> GraphModel {
        let mut g = GraphBuilder::new();
        let (one, sign) = (g.constant(1.0), g.constant(sign));
        let gamma = g.stochastic("gamma", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
        let log_gamma = g.call(Function::Log, &[gamma]);
        let log_scale = g.multiply(sign, log_gamma);
        with_effect(g, log_scale)
    }

    fn with_effect(mut g: GraphBuilder, log_scale: Expr) -> GraphModel {
        let (zero, minus_two, little) = (g.constant(0.0), g.constant(-2.0), g.constant(1e-12));
        let log_precision = g.multiply(minus_two, log_scale);
        let precision = g.call(Function::Exp, &[log_precision]);
        let effect = g.stochastic("effect", Distribution::Normal { mean: zero, precision }, None, None).unwrap();
        g.stochastic("y", Distribution::Normal { mean: effect, precision: little }, None, Some(0.0)).unwrap();
        let centring = Some(Centring { degree: Degree::Fixed(0.0), reference: [0.0; 2], is_chained: false });
        GraphModel::new(g.build().unwrap(), &Marginalise::Auto, &Degrees(vec![None, centring])).unwrap()
    }

    /// Catches a width of the wrong scale and a middle that is not found. The share of a Cauchy distribution below −3 is a tenth.
    /// Widths are right to a quarter, so that of a normal one is at most that below −2.4.
    #[test]
    fn the_share_of_a_neck_is_that_of_the_tail() {
        for (df, expected) in [(1.0, 0.08..0.18), (1e6, 0.0..0.0082)] {
            let model = funnel(df);
            let near = Batch::from_columns((0..16).map(|k| f64::from(k % 8) - 3.5).collect(), 8);
            let scales = by_scale(&model);
            let (column, effects) = scales.first_key_value().unwrap();
            for guess in [(0.0, 1.0), (2.5, 0.7), (-6.0, 3.0)] {
                let share = neck_share(&model, &near, (*column, effects[0].1), guess, 1).unwrap();
                assert!(expected.contains(&share), "{df} {guess:?}: {share}");
            }
        }
    }
    /// Catches a neck that is looked for on the wrong side: below three standard deviations, the log of an exponential has a share of
    /// 1 − exp(−e⁻³), and that of one over an exponential has none.
    #[test]
    fn the_neck_is_where_the_scale_is_small() {
        for (sign, expected) in [(1.0, 0.03..0.08), (-1.0, 0.0..1e-4)] {
            let model = skewed(sign);
            let near = Batch::from_columns((0..16).map(|k| f64::from(k % 8) - 3.5).collect(), 8);
            let scales = by_scale(&model);
            let (column, effects) = scales.first_key_value().unwrap();
            for guess in [(0.0, 1.0), (1.5, 0.7)] {
                let share = neck_share(&model, &near, (*column, effects[0].1), guess, 1).unwrap();
                assert!(expected.contains(&share), "{sign} {guess:?}: {share}");
            }
        }
    }
}
