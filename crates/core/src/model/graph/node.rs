//! The finished graph on the scale of its user: random nodes, latents, and the names that can be looked at.

use super::expression::{Expr, Expressions};
use super::law::{Bounds, Law, VectorLaw};

/// A law of either kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnyLaw {
    Scalar(Law),
    Vector(VectorLaw),
}

/// A random node with its law and its value: numbers where it is observed, latents where it is not.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    /// Its name; that of its first element, where it is a vector.
    pub(crate) name: String,
    /// The names of a vector's elements; none for a number.
    pub(crate) elements: Vec<String>,
    pub(crate) law: AnyLaw,
    pub(crate) bounds: Option<Bounds>,
    pub(crate) value: Vec<Expr>,
    /// log p(value | parents).
    pub(crate) density: Expr,
    pub(crate) is_observed: bool,
    /// Where the model states it, by its number among the graph's origins.
    pub(crate) origin: Option<u32>,
}

/// A latent number.
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
/// Made by a [`GraphBuilder`](super::GraphBuilder); turned into a [`Model`](crate::Model) by [`model`](Self::model).
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) arena: Expressions,
    pub(crate) random: Vec<Random>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) named: Vec<(String, Expr)>,
    /// Places in the source that nodes come from, in the words of the front end.
    pub(crate) origins: Vec<String>,
}

impl Graph {
    /// The names of the latents, in the order of their declaration.
    pub fn latent_names(&self) -> impl Iterator<Item = &str> {
        self.leaves.iter().map(|leaf| leaf.name.as_str())
    }

    /// The names of the observed nodes, of a vector that of its first element.
    pub fn observed_names(&self) -> impl Iterator<Item = &str> {
        self.random.iter().filter(|r| r.is_observed).map(|r| r.name.as_str())
    }

    /// Where the model states a node.
    pub(super) fn origin(&self, node: &Random) -> Option<&str> {
        node.origin.map(|at| self.origins[at as usize].as_str())
    }

    /// The first node that cannot be drawn from its law, and why not.
    pub fn undrawable(&self) -> Option<(&str, &'static str)> {
        self.random.iter().find_map(|node| {
            let reason = match (&node.law, node.bounds) {
                (AnyLaw::Scalar(Law::Flat | Law::HalfFlat), None) => "a flat law is no probability law",
                (AnyLaw::Scalar(Law::Flat | Law::HalfFlat), Some(_)) => {
                    "a flat law has no draws, not even between bounds"
                }
                (_, Some(bounds)) if !bounds.renormalised => {
                    "what is known to lie between bounds (censoring) has no law of its own"
                }
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
