//! Starting points: values that a person gives, and draws from the prior, as points in unconstrained coordinates.

use super::draw::DRAW_STEP;
use super::error::GraphError;
use super::expression::Expr;
use super::interpret::Interpreter;
use super::model::GraphModel;
use super::unconstrained::Transform;
use hyperprior::Result;
use hyperprior::infer::{Starts, ascend};
use hyperprior_math::batch::Batch;
use hyperprior_math::family::Support;
use hyperprior_math::linalg::{cholesky, packed_len};
use hyperprior_math::random::stream;

/// How many prior draws a mode search may start from.
const START_POINTS: usize = 128;
/// The most combinations of values of marginalised latents whose modes are starts, and the ascents for each.
const COMBINATIONS_MAX: usize = 8;
const ASCENTS: usize = 4;

impl GraphModel {
    /// The starting values in the model's coordinates, none for a coordinate without one; nothing if no starting value was given at
    /// all.
    ///
    /// # Errors
    /// [`Error::BadModel`](hyperprior::Error::BadModel) for a value outside its latent's support.
    pub fn start(&self) -> Result<Option<Vec<Option<f64>>>> {
        if self.graph.leaves.iter().all(|leaf| leaf.start.is_none()) {
            return Ok(None);
        }
        let (point, failure) = self.unconstrained_point(&mut self.places(), &|leaf| self.graph.leaves[leaf].start);
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(Some(point)),
        }
    }

    /// Where a mode search starts: the given starting values, modes given each value of a few marginalised latents, and draws from
    /// the priors.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn starts(&self, seed: u64) -> Result<Starts> {
        let points = Some(self.prior_points(START_POINTS, seed));
        let (modes, centre) = (self.conditional_modes(seed)?, self.centre.clone());
        Ok(Starts { given: self.start()?, points, modes, centre })
    }

    /// A mode of the density given each combination of values of the marginalised latents, if there are few. The marginal density
    /// may have modes so narrow that no ascent from elsewhere finds them.
    fn conditional_modes(&self, seed: u64) -> Result<Option<Batch>> {
        let mut combinations: Vec<Vec<f64>> = vec![Vec::new()];
        for l in &self.order {
            let Support::Integers { lower, upper } = self.unconstrained.coordinates[*l as usize].support else {
                return Ok(None);
            };
            if combinations.len() as f64 * (upper - lower + 1.0) > COMBINATIONS_MAX as f64 {
                return Ok(None);
            }
            let values = (0..=(upper - lower) as usize).map(|v| lower + v as f64);
            combinations = combinations
                .iter()
                .flat_map(|one| values.clone().map(|v| one.iter().copied().chain([v]).collect()))
                .collect();
        }
        if combinations.len() < 2 || self.latents.is_empty() || !self.kept.is_empty() {
            return Ok(None);
        }
        let whole = self.unmarginalised()?;
        let mut z = whole.prior_points(combinations.len() * ASCENTS, seed);
        for (number, combination) in combinations.iter().enumerate() {
            for (l, x) in self.order.iter().zip(combination) {
                let Some(column) = whole.columns[*l as usize] else { continue };
                (0..ASCENTS).for_each(|s| z.set(column as usize, number * ASCENTS + s, *x));
            }
        }
        let log_p = ascend(&whole, &mut z)?;
        let best = |number: usize| {
            let own = number * ASCENTS..(number + 1) * ASCENTS;
            own.filter(|s| log_p[*s].is_finite()).max_by(|a, b| log_p[*a].total_cmp(&log_p[*b]))
        };
        let kept: Vec<u32> =
            (0..self.columns.len()).filter(|l| self.columns[*l].is_some()).filter_map(|l| whole.columns[l]).collect();
        let ends: Vec<usize> = (0..combinations.len()).filter_map(best).collect();
        let mut modes = Batch::zeros(kept.len(), ends.len());
        for (i, column) in kept.iter().enumerate() {
            let own = ends.iter().map(|s| z.get(*column as usize, *s));
            modes.column_mut(i).iter_mut().zip(own).for_each(|(to, x)| *to = x);
        }
        Ok(Some(modes))
    }

    /// Draws of the latents from their priors, as points in the model's coordinates (a column each). A coordinate is 0 if its
    /// latent cannot be drawn or its value is impossible given the observations.
    pub fn prior_points(&self, len: usize, seed: u64) -> Batch {
        let parents: Vec<Expr> = self.graph.random.iter().flat_map(|node| node.parents()).collect();
        let all: Vec<Expr> = parents.into_iter().chain(self.graph.leaves.iter().map(|leaf| leaf.expr)).collect();
        let mut interpreter = Interpreter::new(&self.graph.arena, &all);
        let mut places = self.places();
        let mut out = Batch::zeros(self.columns.iter().flatten().count(), len);
        for s in 0..len {
            let mut rng = stream(seed, DRAW_STEP, 1, s as u64);
            let mut drawn: Vec<Option<f64>> = vec![None; self.graph.leaves.len()];
            interpreter.run(&self.graph.arena, |l, values| {
                let l = l as usize;
                if drawn[l].is_none() {
                    let node = &self.graph.random[self.graph.leaves[l].random as usize];
                    for (leaf, x) in self.graph.draw(node, values, &mut rng).unwrap_or_default() {
                        drawn[leaf] = Some(x);
                    }
                }
                drawn[l].unwrap_or(f64::NAN)
            });
            let (point, _) = self.unconstrained_point(&mut places, &|leaf| drawn[leaf].filter(|x| x.is_finite()));
            for (i, x) in point.into_iter().enumerate() {
                out.set(i, s, x.filter(|x| x.is_finite()).unwrap_or(0.0));
            }
        }
        out
    }

    /// An interpreter for the latents and their bounds in unconstrained coordinates.
    pub(super) fn places(&self) -> Interpreter {
        let ends = self.unconstrained.coordinates.iter().flat_map(|coordinate| match coordinate.transform {
            Transform::Above(end) | Transform::Below(end) => vec![end],
            Transform::Between(lower, upper) => vec![lower, upper],
            Transform::Located { location, kept, log_scale, .. } => vec![location, kept, log_scale],
            _ => Vec::new(),
        });
        let wanted: Vec<Expr> = ends.chain(self.unconstrained.leaves.iter().flatten().copied()).collect();
        Interpreter::new(&self.unconstrained.arena, &wanted)
    }

    /// The coordinates of these values of the latents, and what is wrong with the first impossible one.
    pub(super) fn unconstrained_point(
        &self,
        interpreter: &mut Interpreter,
        start: &dyn Fn(usize) -> Option<f64>,
    ) -> (Vec<Option<f64>>, Option<GraphError>) {
        let mut failure = None;
        let mut found = vec![None; self.unconstrained.coordinates.len()];
        interpreter.run(&self.unconstrained.arena, |l, values| {
            match self.coordinate_start(l as usize, values, start) {
                Ok(x) => {
                    found[l as usize] = x;
                    x.unwrap_or(0.0)
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    0.0
                }
            }
        });
        ((0..found.len()).filter(|l| self.columns[*l].is_some()).map(|l| found[l]).collect(), failure)
    }

    fn coordinate_start(
        &self,
        l: usize,
        values: &[f64],
        start: &dyn Fn(usize) -> Option<f64>,
    ) -> std::result::Result<Option<f64>, GraphError> {
        let coordinate = &self.unconstrained.coordinates[l];
        let Some(x) = start(coordinate.leaf) else { return Ok(None) };
        let end = |e: &Expr| values[e.0 as usize];
        let bad = |reason: String| Err(GraphError::BadStart { name: coordinate.name.clone(), value: x, reason });
        let result = match &coordinate.transform {
            Transform::Identity => x,
            Transform::Above(lower) if x > end(lower) => (x - end(lower)).ln(),
            Transform::Above(lower) => return bad(format!("it must be above {}", end(lower))),
            Transform::Below(upper) if x < end(upper) => (end(upper) - x).ln(),
            Transform::Below(upper) => return bad(format!("it must be below {}", end(upper))),
            Transform::Between(lower, upper) => {
                let (lower, upper) = (end(lower), end(upper));
                if !(lower < x && x < upper) {
                    return bad(format!("it must lie between {lower} and {upper}"));
                }
                ((x - lower) / (upper - x)).ln()
            }
            Transform::Located { is_log: true, .. } if !(x > 0.0) => return bad("it must be above 0".to_owned()),
            Transform::Located { location, kept, log_scale, is_log, .. } => {
                let x = if *is_log { x.ln() } else { x };
                (x - end(location)) * (-end(log_scale)).exp() + end(kept)
            }
            Transform::Degree => return Ok(None),
            Transform::Integer(least) => {
                if !coordinate.support.contains(x - least) {
                    return bad(match coordinate.support {
                        Support::Integers { lower, upper } => {
                            format!("it must be a whole number from {} to {}", least + lower, least + upper)
                        }
                        _ => format!("it must be a whole number, {least} or more"),
                    });
                }
                x - least
            }
            Transform::Simplex(leaves, k) => {
                let Some(all) = leaves.iter().map(|leaf| start(*leaf)).collect::<Option<Vec<f64>>>() else {
                    return bad("all elements of the vector need a starting value".to_owned());
                };
                let rest: f64 = all[k + 1..].iter().sum();
                if !(all[*k] > 0.0 && rest > 0.0) {
                    return bad("all elements must be above 0".to_owned());
                }
                (all[*k] / rest).ln() + ((leaves.len() - 1 - k) as f64).ln()
            }
            Transform::Matrix(leaves, i, j) => {
                let Some(all) = leaves.iter().map(|leaf| start(*leaf)).collect::<Option<Vec<f64>>>() else {
                    return bad("all elements of the matrix need a starting value".to_owned());
                };
                let Some(factor) = triangle(&all) else { return bad("the matrix is not positive definite".to_owned()) };
                let entry = factor[packed_len(*i) + j];
                if i == j { entry.ln() } else { entry }
            }
        };
        Ok(Some(result))
    }
}

/// The packed Cholesky factor of a matrix given by its packed lower triangle.
fn triangle(lower: &[f64]) -> Option<Vec<f64>> {
    let n = (2 * lower.len()).isqrt();
    let at = |i: usize, j: usize| lower[packed_len(i.max(j)) + i.min(j)];
    cholesky(&(0..n * n).map(|e| at(e / n, e % n)).collect::<Vec<_>>(), n)
}
