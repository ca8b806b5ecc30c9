//! A structured likelihood: a tree, or a forest, over discrete latents.
//!
//! q(z | λ) = Π_i q(z_i | z_pa(i); λ_i), where λ_i holds one member of i's family for every value of its parent. A chain models
//! the dependence between neighbours in time or space, and a prior over λ adds the rest: any variational family can be the
//! likelihood of a hierarchical one. O(d) per draw.

use super::{Kind, Likelihood};
use crate::error::{Error, Result};
use crate::likelihood::PathwisePass;
use hyperprior_math::batch::Batch;
use hyperprior_math::family::{Family, Support};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use std::ops::Range;

#[derive(Debug)]
struct Node {
    family: Box<dyn Family>,
    parent: Option<usize>,
    lambda: Range<usize>,
}

/// A forest over discrete latents; each has at most one parent, whose values are 0, 1, … up to some bound.
///
/// ```
/// use hyperprior::likelihood::{Likelihood, Tree};
/// use hyperprior::math::family::Bernoulli;
/// let chain = Tree::chain(Bernoulli, 8)?;
/// assert_eq!(chain.lambda_len(), 1 + 7 * 2); // a logit, then one for each value of the coin before
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Parents before children.
    order: Vec<usize>,
    lambda_len: usize,
}

/// The largest number of values of a parent: each needs its own parameters.
const PARENT_MAX: f64 = 65_536.0;

impl Tree {
    /// One family per latent, with the latent that it depends on.
    ///
    /// # Errors
    /// [`Error::EmptyModel`] if there are none; [`Error::BadPart`] for a family that is not discrete, a parent that does not
    /// exist or whose values are not 0 to some bound, or a cycle.
    pub fn new(factors: Vec<(Box<dyn Family>, Option<usize>)>) -> Result<Self> {
        let bad = |reason: String| Err(Error::BadPart { part: "a tree likelihood".to_owned(), reason });
        if factors.is_empty() {
            return Err(Error::EmptyModel);
        }
        let mut values = Vec::with_capacity(factors.len());
        for (i, (family, parent)) in factors.iter().enumerate() {
            if !family.support().is_discrete() {
                return bad(format!("factor {i}, `{}`, is not discrete; use a mean-field likelihood", family.name()));
            }
            let Some(parent) = *parent else {
                values.push(1);
                continue;
            };
            match factors.get(parent).map(|(family, _)| family.support()) {
                Some(Support::Integers { lower: 0.0, upper }) if upper < PARENT_MAX => values.push(upper as usize + 1),
                Some(_) => {
                    return bad(format!(
                        "factor {parent}, a parent, must have values 0, 1, … up to some bound below {PARENT_MAX}"
                    ));
                }
                None => return bad(format!("factor {i} depends on {parent}, but there are only {}", factors.len())),
            }
        }
        let order = match parents_first(&factors) {
            Ok(order) => order,
            Err(i) => return bad(format!("factor {i} depends on itself, directly or through others")),
        };
        let mut lambda_len = 0;
        let nodes = factors
            .into_iter()
            .zip(values)
            .map(|((family, parent), values)| {
                let first = lambda_len;
                lambda_len += values * family.parameters_len();
                Node { family, parent, lambda: first..lambda_len }
            })
            .collect();
        Ok(Self { nodes, order, lambda_len })
    }

    /// Each latent depends on the one before it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn chain<F: Family + Clone + 'static>(family: F, len: usize) -> Result<Self> {
        Self::new((0..len).map(|i| (Box::new(family.clone()) as Box<dyn Family>, i.checked_sub(1))).collect())
    }

    /// The parameters of node `i` for each draw: those for its parent's value.
    fn chosen(&self, i: usize, lambda: &Batch, z: &Batch, scratch: &mut Scratch) -> Vec<f64> {
        let (node, draws_len) = (&self.nodes[i], lambda.draws_len());
        let parameters_len = node.family.parameters_len();
        let mut own = scratch.take(parameters_len * draws_len);
        for s in 0..draws_len {
            let first = node.lambda.start + self.value(i, z, s) * parameters_len;
            for p in 0..parameters_len {
                own[p * draws_len + s] = lambda.get(first + p, s);
            }
        }
        own
    }

    /// The parent's value in draw `s`, 0 without one.
    fn value(&self, i: usize, z: &Batch, s: usize) -> usize {
        let node = &self.nodes[i];
        let last = node.lambda.len() / node.family.parameters_len() - 1;
        node.parent.map_or(0, |parent| (z.get(parent, s) as usize).min(last))
    }
}

/// An order of the factors with parents first, or a factor that is part of a cycle.
fn parents_first(factors: &[(Box<dyn Family>, Option<usize>)]) -> std::result::Result<Vec<usize>, usize> {
    let mut order = Vec::with_capacity(factors.len());
    let mut placed = vec![false; factors.len()];
    while order.len() < factors.len() {
        let before = order.len();
        for (i, (_, parent)) in factors.iter().enumerate() {
            if !placed[i] && parent.is_none_or(|parent| placed[parent]) {
                placed[i] = true;
                order.push(i);
            }
        }
        if order.len() == before {
            return Err(placed.iter().position(|placed| !placed).unwrap_or(0));
        }
    }
    Ok(order)
}

impl Likelihood for Tree {
    fn latents_len(&self) -> usize {
        self.nodes.len()
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn point_mass_len(&self) -> usize {
        0
    }

    fn lambda_range(&self, i: usize) -> Range<usize> {
        self.nodes[i].lambda.clone()
    }

    fn support(&self, i: usize) -> Support {
        self.nodes[i].family.support()
    }

    fn kind(&self, _i: usize) -> Kind {
        Kind::Sampled
    }

    fn is_factorised(&self) -> bool {
        false
    }

    fn sample(&self, lambda: &Batch, streams: &mut [Stream], z: &mut Batch, scratch: &mut Scratch) {
        for &i in &self.order {
            let own = self.chosen(i, lambda, z, scratch);
            self.nodes[i].family.sample(&own, streams, z.column_mut(i));
            scratch.give(own);
        }
    }

    fn log_density(&self, lambda: &Batch, z: &Batch, out: &mut Batch, scratch: &mut Scratch) {
        for (i, node) in self.nodes.iter().enumerate() {
            let own = self.chosen(i, lambda, z, scratch);
            node.family.log_density(&own, z.column(i), out.column_mut(i));
            scratch.give(own);
        }
    }

    fn log_density_of(&self, _i: usize, _lambda: &Batch, _z_i: &[f64], out: &mut [f64]) {
        out.fill(f64::NAN);
    }

    fn score(&self, i: usize, _lambda: &Batch, _z_i: &[f64], _signal: &[f64], d_lambda: &mut Batch) {
        d_lambda.columns_mut(self.lambda_range(i)).fill(f64::NAN);
    }

    fn score_drawn(
        &self,
        i: usize,
        lambda: &Batch,
        z: &Batch,
        signal: &[f64],
        d_lambda: &mut Batch,
        scratch: &mut Scratch,
    ) {
        let (node, draws_len) = (&self.nodes[i], lambda.draws_len());
        let own = self.chosen(i, lambda, z, scratch);
        let mut d_own = scratch.take(own.len());
        node.family.score(&own, z.column(i), signal, &mut d_own);
        let parameters_len = node.family.parameters_len();
        for s in 0..draws_len {
            let first = node.lambda.start + self.value(i, z, s) * parameters_len;
            for p in 0..parameters_len {
                d_lambda.column_mut(first + p)[s] += d_own[p * draws_len + s];
            }
        }
        scratch.give(d_own);
        scratch.give(own);
    }

    fn window(&self, _i: usize, _lambda: &Batch) -> Option<(f64, f64)> {
        None
    }

    fn pathwise(&self, i: usize, _lambda: &Batch, _pass: PathwisePass, d_lambda: &mut Batch, _scratch: &mut Scratch) {
        d_lambda.columns_mut(self.lambda_range(i)).fill(f64::NAN);
    }

    fn information(&self, _i: usize, _lambda: &Batch, out: &mut [f64]) {
        out.fill(f64::NAN);
    }

    fn start_at(&self, i: usize, z: f64, out: &mut [f64]) {
        let family = &self.nodes[i].family;
        for member in out.chunks_exact_mut(family.parameters_len()) {
            family.start_at(z, member);
        }
    }

    fn factor_name(&self, _i: usize) -> &'static str {
        "tree"
    }
}
