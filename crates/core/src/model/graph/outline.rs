//! A model's latents in outline: what values each can take, and what inference does with it.

use super::expression::Expr;
use super::line::{Place, Raw};
use super::model::GraphModel;
use super::node::AnyLaw;
use crate::model::Support;
use std::fmt;

/// What inference does with a latent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It is approximated.
    Fitted,
    /// It is summed out, and drawn given the others.
    SummedOut,
    /// No observation depends on it: it is drawn from its law.
    FromLaw,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Fitted => "fitted",
            Self::SummedOut => "summed out",
            Self::FromLaw => "from its law",
        })
    }
}

/// A latent of the user's, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its name, with indices from one.
    pub name: String,
    /// Its law.
    pub law: &'static str,
    /// The values that it can take, as far as the law and the observations say.
    pub support: String,
    /// Whether those are whole numbers.
    pub is_discrete: bool,
    /// What is done with it.
    pub role: Role,
    /// How many terms of the log joint contain it, for a discrete one that is fitted.
    pub blanket: Option<usize>,
}

impl GraphModel {
    /// The latents, in the order of [`Graph::latent_names`](super::Graph::latent_names).
    ///
    /// ```
    /// use hyperprior::model::graph::{GraphBuilder, Law, Role};
    ///
    /// let mut g = GraphBuilder::new();
    /// let (one, half) = (g.constant(1.0), g.constant(0.5));
    /// let rate = g.stochastic("rate", Law::Gamma { shape: one, rate: one }, None, None)?;
    /// let n = g.stochastic("n", Law::Poisson { rate }, None, None)?;
    /// g.stochastic("seen", Law::Binomial { p: half, n }, None, Some(3.0))?;
    /// let model = g.build()?.model()?;
    /// let outline = model.outline();
    /// assert_eq!((outline[0].support.as_str(), outline[0].role), ("above 0", Role::Fitted));
    /// assert_eq!((outline[1].support.as_str(), outline[1].role), ("3, 4, …", Role::SummedOut));
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    pub fn outline(&self) -> Vec<Outline> {
        let mut raw: Vec<Option<usize>> = vec![None; self.graph.leaves.len()];
        for (l, one) in self.line.raw.iter().enumerate() {
            match &one.place {
                Place::Simplex(leaves, _) | Place::Matrix(leaves, ..) => {
                    leaves.iter().for_each(|leaf| raw[*leaf] = Some(l));
                }
                _ => raw[one.leaf] = Some(l),
            }
        }
        let outline = |(leaf, raw): (usize, &Option<usize>)| {
            let own = &self.graph.leaves[leaf];
            let law = match &self.graph.random[own.random as usize].law {
                AnyLaw::Scalar(law) => law.name(),
                AnyLaw::Vector(law) => law.name(),
            };
            let is_discrete = self.graph.arena.known(own.expr).whole;
            let column = raw.and_then(|l| self.columns[l]);
            let (role, support) = match raw {
                None if self.line.leaves[leaf].is_none() => (Role::FromLaw, format!("as the {law} law says")),
                // An element that follows from others, such as the last of a simplex of one.
                None => (Role::Fitted, "given by the others".to_owned()),
                Some(l) if column.is_none() => (Role::SummedOut, self.support(&self.line.raw[*l])),
                Some(l) => (Role::Fitted, self.support(&self.line.raw[*l])),
            };
            let blanket = column.filter(|_| is_discrete).map(|column| self.blanket_len(column as usize));
            Outline { name: own.name.clone(), law, support, is_discrete, role, blanket }
        };
        raw.iter().enumerate().map(outline).collect()
    }

    fn support(&self, raw: &Raw) -> String {
        let end = |e: &Expr| self.line.arena.value(*e).map_or_else(|| "a random end".to_owned(), |x| x.to_string());
        match (&raw.place, raw.support) {
            (Place::Above(lower), _) => format!("above {}", end(lower)),
            (Place::Below(upper), _) => format!("below {}", end(upper)),
            (Place::Between(lower, upper), _) => format!("{} to {}", end(lower), end(upper)),
            (Place::Whole(least), Support::Integers { lower, upper }) if upper - lower == 1.0 => {
                format!("{} or {}", least + lower, least + upper)
            }
            (Place::Whole(least), Support::Integers { lower, upper }) => {
                format!("{}, …, {}", least + lower, least + upper)
            }
            (Place::Whole(least), _) => format!("{least}, {}, …", least + 1.0),
            (Place::Simplex(..), _) => "simplex".to_owned(),
            (Place::Matrix(..), _) => "positive definite".to_owned(),
            (Place::Line, _) => "real".to_owned(),
        }
    }
}
