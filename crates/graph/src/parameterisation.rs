//! Learnt parameterisation (Gorinova, Moore and Hoffman, 2020): each latent of a hierarchy gets coordinates relative to the location
//! and scale of its distribution, to a degree that is fitted.
//!
//! An effect x with location m and scale s, both random, is x itself if it is centred (degree 1), and (x − m) / s if it is not (degree 0).
//! The first suits effects with much data, the second effects with little: there, x and s form a funnel. Between the two, the coordinate
//! y has location c m and scale s^c, and x = m + s^(1 − c) (y − c m). Here m and s are measured from typical values, so that y stays
//! where it is while c is learnt. The degrees c maximise the ELBO of a factorised Gaussian, except that effects whose scale may be near
//! zero are not centred at all.
//! All are the same model, so that the degrees affect how hard it is to fit, never its posterior.

use super::by_mass::{ByMass, SEED, START_DRAWS, draws_at};
use super::centring::{Centring, Degree, Degrees};
use super::degree_fit::maximise;
use super::elimination::Marginalise;
use super::expression::Expr;
use super::hierarchy::{candidates, chained, vague_beginnings};
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::neck::with_neck;
use super::node::Graph;
use super::unconstrained::{Coordinate, Transform};
use hyperprior::infer::{gaussian_at, mode_search};
use hyperprior::{Model, Quiet, Result};
use hyperprior_math::batch::Batch;

/// A degree this close to 0 or 1 is 0 or 1.
const CLOSE: f64 = 0.1;
/// By how many nats the ELBO of a Gaussian with centring must be higher to be preferred.
const GAIN_MIN: f64 = 5.0;

impl GraphModel {
    /// The same model with learnt degrees of centring; unchanged if it has no hierarchy, if discrete latents are not marginalised,
    /// or if all latents are best centred.
    pub(crate) fn recentred(self, which: &Marginalise) -> Result<Self> {
        let candidates = candidates(&self.graph);
        if !self.kept.is_empty() || !candidates.contains(&true) {
            return Ok(self);
        }
        let Some(Learnt { degrees, values }) = learn(&self.graph, which, &candidates) else { return Ok(self) };
        let is_centred = degrees.0.iter().all(Option::is_none);
        let mut model = if is_centred { self } else { Self::new(self.graph, which, &degrees)? };
        let (centre, failure) = model.unconstrained_point(&mut model.places(), &|leaf| values[leaf]);
        model.centre = centre.into_iter().map(|x| x.filter(|x| x.is_finite())).collect();
        if failure.is_some() {
            model.centre = None;
        }
        Ok(model)
    }

    /// Evaluates expressions of the unconstrained graph at a draw of the coordinates; those that are marginalised are NaN.
    pub(super) fn interpret(&self, interpreter: &mut Interpreter, z: &Batch, s: usize) {
        interpreter.run(&self.unconstrained.arena, |l, _| {
            self.columns[l as usize].map_or(f64::NAN, |column| z.get(column as usize, s))
        });
    }

    /// The medians of the location and the log scale of each latent of the graph that is standardised.
    fn references(&self, z: &Batch) -> Vec<[f64; 2]> {
        let of_coordinate = |coordinate: &Coordinate| match coordinate.transform {
            Transform::Located { location, log_scale, .. } => Some((coordinate.leaf, [location, log_scale])),
            _ => None,
        };
        let places: Vec<(usize, [Expr; 2])> = self.unconstrained.coordinates.iter().filter_map(of_coordinate).collect();
        let wanted: Vec<Expr> = places.iter().flat_map(|(_, place)| *place).collect();
        let mut interpreter = Interpreter::new(&self.unconstrained.arena, &wanted);
        let mut found: Vec<[Vec<f64>; 2]> = vec![Default::default(); places.len()];
        for s in 0..z.draws_len() {
            self.interpret(&mut interpreter, z, s);
            for (found, (_, place)) in found.iter_mut().zip(&places) {
                found.iter_mut().zip(place).for_each(|(found, e)| found.push(interpreter.value(*e)));
            }
        }
        let mut references = vec![[0.0; 2]; self.graph.leaves.len()];
        for (found, (leaf, _)) in found.into_iter().zip(&places) {
            references[*leaf] = found.map(|mut x| {
                x.retain(|x| x.is_finite());
                x.sort_by(f64::total_cmp);
                x.get(x.len() / 2).copied().unwrap_or(0.0)
            });
        }
        references
    }

    /// The values of the graph's latents at each draw of the coordinates; those that are marginalised are left out.
    pub(super) fn latent_values(&self, z: &Batch) -> Vec<Vec<Option<f64>>> {
        let fitted: Vec<Option<Expr>> = self.unconstrained.leaves.clone();
        let wanted: Vec<Expr> = fitted.iter().flatten().copied().collect();
        let mut interpreter = Interpreter::new(&self.unconstrained.arena, &wanted);
        (0..z.draws_len())
            .map(|s| {
                self.interpret(&mut interpreter, z, s);
                fitted.iter().map(|e| e.map(|e| interpreter.value(e)).filter(|x| x.is_finite())).collect()
            })
            .collect()
    }
}

/// Degrees of centring, and the latents in the middle of the mass; none for those that are marginalised.
struct Learnt {
    degrees: Degrees,
    values: Vec<Option<f64>>,
}

/// The degrees that maximise the ELBO of a factorised Gaussian; nothing if that cannot be fitted.
fn learn(graph: &Graph, which: &Marginalise, candidates: &[bool]) -> Option<Learnt> {
    let chained = chained(graph, candidates);
    let all = |degree: Degree, references: &dyn Fn(usize) -> [f64; 2]| {
        let of = |l: usize| {
            let is_chained = chained[l];
            candidates[l].then(|| Centring { degree, reference: references(l), is_chained })
        };
        Degrees((0..candidates.len()).map(of).collect())
    };
    // Without centring there is no funnel towards a scale of zero, so the mode is near the mass.
    let free = GraphModel::new(graph.clone(), which, &all(Degree::Fixed(0.0), &|_| [0.0; 2])).ok()?;
    let modes = mode_search(&free, &free.starts(SEED).ok()?, SEED, &mut Quiet).ok()?.modes;
    let by_mass = ByMass::find(&free, which, candidates, &modes[0]);
    let near = by_mass.as_ref().map_or_else(|| draws_at(&modes[0]).0, |found| found.near.clone());
    let references = free.references(&near);
    let is_vague = vague_beginnings(graph, &chained, |l| references[l][1]);
    if is_vague.contains(&true) {
        let others: Vec<bool> = candidates.iter().zip(&is_vague).map(|(is, is_vague)| *is && !is_vague).collect();
        return learn(graph, which, &others);
    }
    let learnt = GraphModel::new(graph.clone(), which, &all(Degree::Learnt, &|l| references[l])).ok()?;
    let mut places = learnt.places();
    let mapped: Vec<Vec<Option<f64>>> = free
        .latent_values(&near)
        .iter()
        .map(|values| learnt.unconstrained_point(&mut places, &|leaf| values[leaf]).0)
        .collect();
    let n = learnt.latents().len();
    let (mut centre, mut scale) = (vec![0.0; n], vec![1.0; n]);
    for i in 0..n {
        let mut x: Vec<f64> = mapped.iter().filter_map(|point| point[i]).filter(|x| x.is_finite()).collect();
        if x.len() > START_DRAWS / 2 {
            x.sort_by(f64::total_cmp);
            centre[i] = x[x.len() / 2];
            scale[i] = ((x[x.len() * 3 / 4] - x[x.len() / 4]) / 1.35).max(1e-9);
        }
    }
    let is_degree: Vec<bool> = (0..n).map(|i| learnt.latents().name(i).starts_with("centring of ")).collect();
    let fitted = maximise(&learnt, &centre, &scale, &is_degree, SEED)?;
    let middle = Batch::from_columns(fitted.iter().map(|(location, _)| *location).collect(), 1);
    let values = learnt.latent_values(&middle).pop()?;
    let (degree_of, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| is_degree[*i]);
    let mut logits = degree_of.into_iter().map(|i| fitted[i].0);
    // The other coordinates are those of the first model, in the same order.
    let places: Vec<(f64, f64)> = others.into_iter().map(|i| fitted[i]).collect();
    let has_neck = with_neck(&free, &near, &places, SEED);
    // The coordinates are in the order of the latents that have one.
    let mut degrees = Degrees(vec![None; candidates.len()]);
    for (l, coordinate) in learnt.unconstrained.coordinates.iter().enumerate() {
        if learnt.columns[l].is_some() && matches!(coordinate.transform, Transform::Degree) {
            let degree = 1.0 / (1.0 + (-logits.next()?).exp());
            let degree = if degree < CLOSE || has_neck[coordinate.leaf] {
                0.0
            } else if degree > 1.0 - CLOSE {
                1.0
            } else {
                degree
            };
            // A centred latent needs no other coordinate, but those after it in a chain must know where the chain begins.
            let (reference, is_chained) = (references[coordinate.leaf], chained[coordinate.leaf]);
            degrees.0[coordinate.leaf] = (degree < 1.0 || is_chained).then_some(Centring {
                degree: Degree::Fixed(degree),
                reference,
                is_chained,
            });
        }
    }
    if degrees.0.iter().flatten().all(|centring| centring.degree == Degree::Fixed(1.0)) {
        degrees.0.fill(None);
    }
    let learnt = Learnt { degrees, values };
    // A factorised Gaussian knows nothing of states that are tied to each other and to the data.
    match by_mass.filter(|_| !has_neck.contains(&true)) {
        Some(ByMass { elbo, values, .. }) if learnt.elbo(graph, which).is_some_and(|own| elbo > own + GAIN_MIN) => {
            Some(Learnt { degrees: Degrees(vec![None; candidates.len()]), values })
        }
        _ => Some(learnt),
    }
}

impl Learnt {
    /// The ELBO of the Gaussian in the middle of the mass.
    fn elbo(&self, graph: &Graph, which: &Marginalise) -> Option<f64> {
        let model = GraphModel::new(graph.clone(), which, &self.degrees).ok()?;
        let (point, _) = model.unconstrained_point(&mut model.places(), &|leaf| self.values[leaf]);
        let point = point.into_iter().collect::<Option<Vec<f64>>>()?;
        gaussian_at(&model, point, SEED).ok()?.map(|mode| mode.elbo)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::distribution::{Distribution, VectorDistribution};
    use hyperprior_math::random::stream;
    use rand::RngExt;

    /// Effects of every kind that can be centred to a degree, and an observation of each.
    fn hierarchy() -> Graph {
        let mut g = GraphBuilder::new();
        let (zero, one, four, quarter) = (g.constant(0.0), g.constant(1.0), g.constant(4.0), g.constant(0.25));
        let mean = g.stochastic("mean", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let rate = g.stochastic("rate", Distribution::Gamma { shape: four, rate: one }, None, None).unwrap();
        let kinds = [
            Distribution::Normal { mean, precision: rate },
            Distribution::StudentT { mean, precision: rate, df: four },
            Distribution::LogNormal { mean, precision: rate },
            Distribution::Laplace { mean, rate },
            Distribution::Logistic { mean, rate },
            Distribution::Gamma { shape: rate, rate },
            Distribution::Exponential { rate },
        ];
        for (k, kind) in kinds.into_iter().enumerate() {
            let effect = g.stochastic(&format!("effect[{}]", k + 1), kind, None, None).unwrap();
            let seen = Distribution::Normal { mean: effect, precision: one };
            g.stochastic(&format!("y[{}]", k + 1), seen, None, Some(0.5)).unwrap();
        }
        // The covariance of the first vector is a multiple of a known one, the second has another structure.
        let (zero_two, half_rate) = (vec![mean, zero], g.multiply(rate, quarter));
        let covariance = [rate, half_rate, half_rate, rate];
        let inverse = g.inverse(&covariance, 2);
        let more = g.add(rate, one);
        let vectors = [
            VectorDistribution::MultivariateNormal { mean: zero_two.clone(), precision: inverse },
            VectorDistribution::MultivariateStudentT {
                mean: zero_two,
                precision: vec![rate, quarter, quarter, more],
                df: four,
            },
        ];
        for (k, kind) in vectors.into_iter().enumerate() {
            let names = [1, 2].map(|i| format!("vector[{},{i}]", k + 1));
            let own = g.stochastic_vector(&names, kind, None).unwrap();
            let seen = Distribution::Normal { mean: own[1], precision: one };
            g.stochastic(&format!("seen[{}]", k + 1), seen, None, Some(0.5)).unwrap();
        }
        g.build().unwrap()
    }

    /// Checks that coordinates of these degrees are those of the same density, and that the inverse belongs to them.
    fn same_model(graph: &Graph, degrees: &Degrees, seed: u64) {
        let model = GraphModel::new(graph.clone(), &Marginalise::Auto, degrees).unwrap();
        hyperprior::check(&model, seed).unwrap();
        let n = model.latents().len();
        let mut rng = stream(2, 0, 0, 0);
        for _ in 0..5 {
            let z: Vec<f64> = (0..n).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect();
            let values = |z: &[f64]| -> Vec<f64> {
                model.latent_values(&Batch::from_columns(z.to_vec(), 1))[0].iter().map(|x| x.unwrap()).collect()
            };
            let own = values(&z);
            // Each latent depends on its coordinate and on earlier ones, so the Jacobian is triangular.
            let step = 1e-5;
            let log_jacobian: f64 = (0..n)
                .map(|i| {
                    let moved = |by: f64| {
                        let mut z = z.clone();
                        z[i] += by;
                        values(&z)[i]
                    };
                    ((moved(step) - moved(-step)) / (2.0 * step)).ln()
                })
                .sum();
            let mut log_joint = [0.0];
            model.log_joint(&Batch::from_columns(z.clone(), 1), &mut log_joint).unwrap();
            let expected = model.log_density(&own).unwrap() + log_jacobian;
            assert!((log_joint[0] - expected).abs() < 1e-6, "{} and {expected}", log_joint[0]);
            let (point, failure) = model.unconstrained_point(&mut model.places(), &|leaf| Some(own[leaf]));
            assert!(failure.is_none());
            for (i, (x, z)) in point.iter().zip(&z).enumerate() {
                assert!((x.unwrap() - z).abs() < 1e-9, "coordinate {i}: {x:?} and {z}");
            }
        }
    }

    /// Catches a Jacobian or a place of the wrong distribution, and an inverse that does not belong to the transform.
    #[test]
    fn every_degree_is_the_same_model() {
        let graph = hierarchy();
        let all = candidates(&graph);
        assert_eq!(all.iter().filter(|is| **is).count(), 11);
        for degree in [0.0, 0.3, 0.8] {
            let centring = Centring { degree: Degree::Fixed(degree), reference: [0.4, -0.7], is_chained: false };
            let degrees = Degrees(all.iter().map(|is| is.then_some(centring)).collect());
            same_model(&graph, &degrees, 5);
        }
    }

    /// Catches a Jacobian that is not that of a chain's coordinates, and an inverse that does not belong to them: a random walk and a trend.
    #[test]
    fn chains_are_the_same_model() {
        let mut g = GraphBuilder::new();
        let (zero, one, minus_one) = (g.constant(0.0), g.constant(1.0), g.constant(-1.0));
        let precision = g.stochastic("precision", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
        let (mut last, mut before) = (zero, zero);
        for t in 0..9 {
            let (twice, minus) = (g.add(last, last), g.multiply(minus_one, before));
            let mean = if t < 6 { last } else { g.add(twice, minus) };
            let own = match t {
                4 => Distribution::LogNormal { mean, precision },
                _ => Distribution::Normal { mean, precision },
            };
            let x = g.stochastic(&format!("x[{}]", t + 1), own, None, None).unwrap();
            g.stochastic(&format!("y[{}]", t + 1), Distribution::Normal { mean: x, precision: one }, None, Some(0.5))
                .unwrap();
            (before, last) = (last, x);
        }
        let graph = g.build().unwrap();
        let all = candidates(&graph);
        let chained = chained(&graph, &all);
        assert_eq!(chained.iter().filter(|is| **is).count(), 9);
        for some in [[0.0; 2], [0.6; 2], [0.6, 1.0]] {
            let centring = |l: usize| {
                let degree = Degree::Fixed(some[usize::from(l % 3 == 2)]);
                Centring { degree, reference: [0.2, -0.4], is_chained: chained[l] }
            };
            let degrees = Degrees((0..all.len()).map(|l| all[l].then(|| centring(l))).collect());
            same_model(&graph, &degrees, 5);
            // However some states are centred, each is coupled with those that the graph couples it with.
            let model = GraphModel::new(graph.clone(), &Marginalise::Auto, &degrees).unwrap();
            let far = model.coupled().unwrap().iter().filter(|[i, j]| *i.min(j) > 0 && i.abs_diff(*j) > 2);
            assert_eq!(far.count(), 0, "{some:?}");
        }
    }

    /// Eight effects with one observation each, of this precision.
    fn effects(precision: f64) -> Graph {
        let mut g = GraphBuilder::new();
        let (zero, one, known) = (g.constant(0.0), g.constant(1.0), g.constant(precision));
        let mean = g.stochastic("mean", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let of_effects = g.stochastic("precision", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
        for k in 0..8 {
            let own = Distribution::Normal { mean, precision: of_effects };
            let effect = g.stochastic(&format!("effect[{}]", k + 1), own, None, None).unwrap();
            let seen = Distribution::Normal { mean: effect, precision: known };
            g.stochastic(&format!("y[{}]", k + 1), seen, None, Some((k as f64 - 3.5) / 2.0)).unwrap();
        }
        g.build().unwrap()
    }

    #[test]
    fn effects_with_much_data_are_centred_and_those_with_little_are_not() {
        for (precision, range) in [(0.01, 0.0..=0.2), (400.0, 0.8..=1.0)] {
            let graph = effects(precision);
            let candidates = candidates(&graph);
            let degrees = learn(&graph, &Marginalise::Auto, &candidates).unwrap().degrees;
            for l in (0..candidates.len()).filter(|l| candidates[*l]) {
                let degree = match degrees.0[l] {
                    None => 1.0,
                    Some(Centring { degree: Degree::Fixed(degree), .. }) => degree,
                    Some(Centring { degree: Degree::Learnt, .. }) => panic!("a degree was not learnt"),
                };
                assert!(range.contains(&degree), "precision {precision}: {degree}");
            }
        }
    }

    /// A censored effect lies beyond its cut point, whatever its degree.
    #[test]
    fn limits_of_observations_hold_for_effects_too() {
        let mut g = GraphBuilder::new();
        let (zero, one, cut) = (g.constant(0.0), g.constant(1.0), g.constant(2.0));
        let rate = g.stochastic("rate", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
        let time = g.stochastic("time", Distribution::Normal { mean: zero, precision: rate }, None, None).unwrap();
        g.stochastic("is_late", Distribution::Interval { time, cuts: vec![cut] }, None, Some(1.0)).unwrap();
        let graph = g.build().unwrap();
        let centring = Centring { degree: Degree::Fixed(0.0), reference: [0.0; 2], is_chained: false };
        let degrees = Degrees(candidates(&graph).iter().map(|is| is.then_some(centring)).collect());
        let model = GraphModel::new(graph, &Marginalise::Auto, &degrees).unwrap();
        for z in [-3.0, 0.0, 3.0] {
            let values = model.latent_values(&Batch::from_columns(vec![0.5, z], 1));
            assert!(values[0][1].unwrap() > 2.0, "{values:?}");
        }
    }

    #[test]
    fn discrete_parameters_and_fixed_scales_leave_latents_centred() {
        let mut g = GraphBuilder::new();
        let (zero, one, half) = (g.constant(0.0), g.constant(1.0), g.constant(0.5));
        let is_in = g.stochastic("is_in", Distribution::Bernoulli { p: half }, None, None).unwrap();
        let precision = g.add(is_in, one);
        let spiked = g.stochastic("spiked", Distribution::Normal { mean: zero, precision }, None, None).unwrap();
        let fixed = g.stochastic("fixed", Distribution::Normal { mean: spiked, precision: one }, None, None).unwrap();
        g.stochastic("y", Distribution::Normal { mean: fixed, precision: one }, None, Some(1.0)).unwrap();
        assert!(!candidates(&g.build().unwrap()).contains(&true));
    }
}
