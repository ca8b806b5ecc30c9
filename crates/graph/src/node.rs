//! The finished graph on its original scale: random nodes, latents and named expressions.

use super::distribution::{Bounds, Distribution, VectorDistribution};
use super::expression::{Expr, Expressions};

/// A scalar or a vector distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnyDistribution {
    Scalar(Distribution),
    Vector(VectorDistribution),
}

/// A random node with its distribution and its value: constants if it is observed, latents if not.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// Its name; for a vector, that of its first element.
    pub(crate) name: String,
    /// The names of a vector's elements; empty for a scalar.
    pub(crate) elements: Vec<String>,
    pub(crate) distribution: AnyDistribution,
    pub(crate) bounds: Option<Bounds>,
    pub(crate) value: Vec<Expr>,
    /// log p(value | parents).
    pub(crate) density: Expr,
    pub(crate) is_observed: bool,
    /// What its only observation adds to the two parameters of its distribution, if that is conjugate and the latent is integrated out.
    pub(crate) added: Option<[f64; 2]>,
    /// Its place in the source, as an index into the graph's origins.
    pub(crate) origin: Option<u32>,
}

/// A scalar latent.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) name: String,
    pub(crate) expr: Expr,
    /// The random node that it belongs to.
    pub(crate) random: u32,
    pub(crate) start: Option<f64>,
}

/// A factor graph: random nodes, the expressions between them, and data.
///
/// Made by a [`GraphBuilder`](super::builder::GraphBuilder); turned into a [`Model`](hyperprior::Model) by [`model`](Self::model).
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) arena: Expressions,
    pub(crate) random: Vec<Random>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) named: Vec<(String, Expr)>,
    /// The continuous latents that are integrated out: those of which nothing but an interval is observed, and those that are conjugate to
    /// their only observation.
    pub(crate) integrated: Vec<u32>,
    /// Places in the source, as the front end words them.
    pub(crate) origins: Vec<String>,
}

impl Graph {
    /// The names of the latents, in the order of their declaration.
    pub fn latent_names(&self) -> impl Iterator<Item = &str> {
        self.leaves.iter().map(|leaf| leaf.name.as_str())
    }

    /// The names of the observed nodes; for a vector, that of its first element.
    pub fn observed_names(&self) -> impl Iterator<Item = &str> {
        self.random.iter().filter(|r| r.is_observed).map(|r| r.name.as_str())
    }

    /// The distribution of a latent; for an element of a normal or a Student t vector, that with its own mean and, as its precision, the
    /// diagonal entry, so that the scale is that given the other elements.
    pub(super) fn distribution_of(&self, leaf: usize) -> Option<Distribution> {
        let Leaf { expr, random, .. } = self.leaves[leaf];
        let node = &self.random[random as usize];
        let of_element = |mean: &[Expr], precision: &[Expr]| {
            let k = node.value.iter().position(|value| *value == expr)?;
            Some((mean[k], precision[k * (mean.len() + 1)]))
        };
        match &node.distribution {
            AnyDistribution::Scalar(distribution) => Some(distribution.clone()),
            AnyDistribution::Vector(VectorDistribution::MultivariateNormal { mean, precision }) => {
                of_element(mean, precision).map(|(mean, precision)| Distribution::Normal { mean, precision })
            }
            AnyDistribution::Vector(VectorDistribution::MultivariateStudentT { mean, precision, df }) => {
                let of = |(mean, precision)| Distribution::StudentT { mean, precision, df: *df };
                of_element(mean, precision).map(of)
            }
            AnyDistribution::Vector(_) => None,
        }
    }

    /// The place of a node in the source.
    pub(super) fn origin(&self, node: &Random) -> Option<&str> {
        node.origin.map(|at| self.origins[at as usize].as_str())
    }

    /// The first node that cannot be drawn from its distribution, and the reason.
    pub fn undrawable(&self) -> Option<(&str, &'static str)> {
        self.random.iter().find_map(|node| {
            let reason = match (&node.distribution, node.bounds) {
                (AnyDistribution::Scalar(Distribution::Flat | Distribution::HalfFlat), None) => {
                    "a flat distribution is improper"
                }
                (AnyDistribution::Scalar(Distribution::Flat | Distribution::HalfFlat), Some(_)) => {
                    "a flat distribution cannot be sampled, not even between bounds"
                }
                (_, Some(bounds)) if !bounds.renormalised => "a censored node has no distribution to draw from",
                _ => return None,
            };
            Some((node.name.as_str(), reason))
        })
    }

    /// How many random nodes are observed.
    pub fn observations_len(&self) -> usize {
        self.random.iter().filter(|r| r.is_observed).count()
    }

    /// How many expressions there are.
    pub fn expressions_len(&self) -> usize {
        self.arena.len()
    }
}
