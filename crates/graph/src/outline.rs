//! An outline of a model's latents: the values that each can take, and its role in inference.

use super::expression::Expr;
use super::model::GraphModel;
use super::node::AnyDistribution;
use super::unconstrained::{Coordinate, Transform};
use hyperprior::model::Support;
use hyperprior::report::Role;

/// A latent of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Its name, with indices from one.
    pub name: String,
    /// Its distribution.
    pub distribution: &'static str,
    /// The values that it can take given its distribution and the observations.
    pub support: String,
    /// Whether those are integers.
    pub is_discrete: bool,
    /// Its role in inference.
    pub role: Role,
    /// For a fitted discrete latent, the number of terms of the log joint that contain it.
    pub blanket: Option<usize>,
    /// Its degree of centring, if that is below 1: 0 if its coordinate is standardised by the location and scale of its distribution.
    pub centring: Option<f64>,
}

impl GraphModel {
    /// The latents, in the order of [`Graph::latent_names`](super::node::Graph::latent_names).
    ///
    /// ```
    /// use hyperprior_graph::{GraphBuilder, Distribution, Role};
    ///
    /// let mut g = GraphBuilder::new();
    /// let (one, half) = (g.constant(1.0), g.constant(0.5));
    /// let rate = g.stochastic("rate", Distribution::Gamma { shape: one, rate: one }, None, None)?;
    /// let n = g.stochastic("n", Distribution::Poisson { rate }, None, None)?;
    /// g.stochastic("seen", Distribution::Binomial { p: half, n }, None, Some(3.0))?;
    /// let model = g.build()?.model()?;
    /// let outline = model.outline();
    /// assert_eq!((outline[0].support.as_str(), outline[0].role), ("above 0", Role::Fitted));
    /// assert_eq!((outline[1].support.as_str(), outline[1].role), ("3, 4, …", Role::Marginalised));
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    pub fn outline(&self) -> Vec<Outline> {
        let mut coordinate: Vec<Option<usize>> = vec![None; self.graph.leaves.len()];
        for (l, one) in self.unconstrained.coordinates.iter().enumerate() {
            match &one.transform {
                Transform::Simplex(leaves, _) | Transform::Matrix(leaves, ..) => {
                    leaves.iter().for_each(|leaf| coordinate[*leaf] = Some(l));
                }
                _ => coordinate[one.leaf] = Some(l),
            }
        }
        let outline = |(leaf, coordinate): (usize, &Option<usize>)| {
            let own = &self.graph.leaves[leaf];
            let distribution = match &self.graph.random[own.random as usize].distribution {
                AnyDistribution::Scalar(distribution) => distribution.name(),
                AnyDistribution::Vector(distribution) => distribution.name(),
            };
            let is_discrete = self.graph.arena.known(own.expr).whole;
            let column = coordinate.and_then(|l| self.columns[l]);
            let (role, support) = match coordinate {
                None if self.graph.integrated.contains(&(leaf as u32)) => {
                    (Role::Marginalised, "an interval".to_owned())
                }
                None if self.unconstrained.leaves[leaf].is_none() => {
                    (Role::PriorOnly, format!("that of its {distribution} distribution"))
                }
                // An element determined by the others, such as that of a simplex of one.
                None => (Role::Fitted, "determined by the others".to_owned()),
                Some(l) if column.is_none() => (Role::Marginalised, self.support(&self.unconstrained.coordinates[*l])),
                Some(l) => (Role::Fitted, self.support(&self.unconstrained.coordinates[*l])),
            };
            let blanket = column.filter(|_| is_discrete).map(|column| self.blanket_len(column as usize));
            let degree = coordinate.and_then(|l| match self.unconstrained.coordinates[l].transform {
                Transform::Located { degree, .. } => self.unconstrained.arena.value(degree),
                _ => None,
            });
            let centring = degree.filter(|degree| *degree < 1.0);
            Outline { name: own.name.clone(), distribution, support, is_discrete, role, blanket, centring }
        };
        coordinate.iter().enumerate().map(outline).collect()
    }

    fn support(&self, coordinate: &Coordinate) -> String {
        let end = |e: &Expr| {
            self.unconstrained.arena.value(*e).map_or_else(|| "a random bound".to_owned(), |x| x.to_string())
        };
        match (&coordinate.transform, coordinate.support) {
            (Transform::Above(lower), _) => format!("above {}", end(lower)),
            (Transform::Below(upper), _) => format!("below {}", end(upper)),
            (Transform::Between(lower, upper), _) => format!("{} to {}", end(lower), end(upper)),
            (Transform::Integer(least), Support::Integers { lower, upper }) if upper - lower == 1.0 => {
                format!("{} or {}", least + lower, least + upper)
            }
            (Transform::Integer(least), Support::Integers { lower, upper }) => {
                format!("{}, …, {}", least + lower, least + upper)
            }
            (Transform::Integer(least), _) => format!("{least}, {}, …", least + 1.0),
            (Transform::Simplex(..), _) => "simplex".to_owned(),
            (Transform::Matrix(..), _) => "positive definite".to_owned(),
            (Transform::Located { is_log: true, .. }, _) => "above 0".to_owned(),
            (Transform::Identity | Transform::Located { .. } | Transform::Degree, _) => "real".to_owned(),
        }
    }
}
