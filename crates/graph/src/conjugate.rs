//! Latents that are conjugate to their only observation are integrated out: a probability with a beta distribution and the successes of a
//! number of trials, a rate with a gamma distribution and a count or a time. The likelihood is that of the distribution mixed over the
//! latent (beta-binomial, negative binomial, Lomax), and the latent is drawn from its distribution given the observation.
//!
//! Only if the parameters of the latent are random, as in a hierarchy: there its distribution changes with them, and many such latents form
//! a funnel.

use super::distribution::Distribution;
use super::expression::{Expr, Expressions, Node};
use super::node::{AnyDistribution, Graph};
use super::operation::Binary;

/// A latent with its only observation: its distribution given that, and the log density of the observation without it.
struct Conjugate {
    given: Distribution,
    /// What the observation adds to the parameters.
    added: [f64; 2],
    marginal: Expr,
}

impl Graph {
    /// The same graph with conjugate latents drawn from their distributions given their observations, whose nodes no longer depend on
    /// them. The product of the two densities is the same as before.
    pub(super) fn with_conjugates(mut self) -> Self {
        let pairs: Vec<(usize, usize)> =
            (0..self.random.len()).filter_map(|r| Some((self.conjugate_to(r)?, r))).collect();
        let are_alone = self.are_alone(&pairs);
        for ((leaf, observation), is_alone) in pairs.into_iter().zip(are_alone) {
            if !is_alone {
                continue;
            }
            let Some(Conjugate { given, added, marginal }) = self.conjugate(leaf, observation) else { continue };
            let own = self.leaves[leaf].random as usize;
            let density = self.arena.log_density(&given, self.leaves[leaf].expr, true);
            // Between bounds, each is divided by its probability there.
            let (inside, marginal) = match self.between_bounds(own, &given) {
                Some(Ok([before, after])) => {
                    (after, self.arena.linear(&[(marginal, 1.0), (after, 1.0), (before, -1.0)], 0.0))
                }
                Some(Err(())) => continue,
                None => (self.arena.constant(0.0), marginal),
            };
            self.random[own].density = self.arena.subtract(density, inside);
            self.random[own].added = Some(added);
            self.random[observation].density = marginal;
            self.integrated.push(leaf as u32);
        }
        self
    }

    /// The log probabilities between the bounds of a node by its distribution and by this one, if it has bounds; an error if these are not
    /// known.
    fn between_bounds(&mut self, node: usize, given: &Distribution) -> Option<Result<[Expr; 2], ()>> {
        let bounds = self.random[node].bounds?;
        let AnyDistribution::Scalar(own) = self.random[node].distribution.clone() else { return Some(Err(())) };
        let mut between = |distribution: &Distribution| {
            self.arena.log_probability_between(distribution, bounds.lower, bounds.upper, true).map_err(|_| ())
        };
        Some(between(&own).and_then(|before| Ok([before, between(given)?])))
    }

    /// The latent that the distribution of an observation may be conjugate to: with a beta or gamma distribution with random parameters.
    fn conjugate_to(&self, observation: usize) -> Option<usize> {
        let node = &self.random[observation];
        let AnyDistribution::Scalar(distribution) = &node.distribution else { return None };
        if !node.is_observed || node.bounds.is_some() {
            return None;
        }
        let parameter = match distribution {
            Distribution::Bernoulli { p } => *p,
            Distribution::Binomial { p, n } if self.arena.value(*n).is_some() => *p,
            Distribution::Poisson { rate } | Distribution::Exponential { rate } => factor(&self.arena, *rate)?.0,
            _ => return None,
        };
        let Node::Leaf(leaf) = self.arena.node(parameter) else { return None };
        let own = &self.random[self.leaves[leaf as usize].random as usize];
        let AnyDistribution::Scalar(distribution) = &own.distribution else { return None };
        let is_random = own.parents().iter().any(|e| self.arena.value(*e).is_none());
        let is_conjugate = matches!(distribution, Distribution::Beta { .. } | Distribution::Gamma { .. });
        // A censored latent is an observation itself.
        let is_free = own.bounds.is_none_or(|bounds| {
            let is_constant = |end: Option<Expr>| end.is_none_or(|e| self.arena.value(e).is_some());
            bounds.renormalised && is_constant(bounds.lower) && is_constant(bounds.upper)
        });
        (is_conjugate && is_random && is_free).then_some(leaf as usize)
    }

    fn conjugate(&mut self, leaf: usize, observation: usize) -> Option<Conjugate> {
        let AnyDistribution::Scalar(own) = self.random[self.leaves[leaf].random as usize].distribution.clone() else {
            return None;
        };
        let node = &self.random[observation];
        let AnyDistribution::Scalar(observed) = node.distribution.clone() else { return None };
        let y = self.arena.value(node.value[0])?;
        let arena = &mut self.arena;
        let (given, added, marginal) = match (own, observed) {
            (Distribution::Beta { a, b }, Distribution::Bernoulli { .. }) => arena.beta_binomial([a, b], y, 1.0)?,
            (Distribution::Beta { a, b }, Distribution::Binomial { n, .. }) => {
                let n = arena.value(n)?;
                arena.beta_binomial([a, b], y, n)?
            }
            (Distribution::Gamma { shape, rate }, Distribution::Poisson { rate: of }) => {
                let exposure = factor(arena, of)?.1;
                arena.gamma_poisson([shape, rate], y, exposure)?
            }
            (Distribution::Gamma { shape, rate }, Distribution::Exponential { rate: of }) => {
                let exposure = factor(arena, of)?.1;
                arena.gamma_exponential([shape, rate], y, exposure)?
            }
            _ => return None,
        };
        // Impossible observations are left to the checks of the whole model.
        arena.value(marginal).is_none().then_some(Conjugate { given, added, marginal })
    }
}

/// A latent and the positive constant that it is multiplied by.
fn factor(arena: &Expressions, e: Expr) -> Option<(Expr, f64)> {
    let (latent, by) = match arena.node(e) {
        Node::Leaf(_) => (e, 1.0),
        Node::Binary(Binary::Multiply, a, b) => match (arena.value(a), arena.value(b)) {
            (Some(by), None) => (b, by),
            (None, Some(by)) => (a, by),
            _ => return None,
        },
        _ => arena.multiple(e)?,
    };
    (by > 0.0 && by.is_finite()).then_some((latent, by))
}

impl Expressions {
    /// A probability with a beta distribution given y successes in n trials, and the log probability of these.
    fn beta_binomial(&mut self, [a, b]: [Expr; 2], y: f64, n: f64) -> Option<(Distribution, [f64; 2], Expr)> {
        if !(y >= 0.0 && y <= n && y.fract() == 0.0 && n.fract() == 0.0) {
            return None;
        }
        let (successes, failures) = (self.linear(&[(a, 1.0)], y), self.linear(&[(b, 1.0)], n - y));
        let (before, after) = (self.log_beta(a, b), self.log_beta(successes, failures));
        let [all, some, rest] = [n, y, n - y].map(|k| hyperprior_math::special::ln_gamma(k + 1.0));
        let log = self.linear(&[(after, 1.0), (before, -1.0)], all - some - rest);
        let log = self.require_positive(&[a, b], log);
        Some((Distribution::Beta { a: successes, b: failures }, [y, n - y], log))
    }

    /// A rate with a gamma distribution given a count whose rate is a multiple of it, and the log probability of the count.
    fn gamma_poisson(
        &mut self,
        [shape, rate]: [Expr; 2],
        y: f64,
        exposure: f64,
    ) -> Option<(Distribution, [f64; 2], Expr)> {
        if !(y >= 0.0 && y.fract() == 0.0) {
            return None;
        }
        let (more, faster) = (self.linear(&[(shape, 1.0)], y), self.linear(&[(rate, 1.0)], exposure));
        let (top, bottom) = (self.log_gamma(more), self.log_gamma(shape));
        let (log_rate, log_faster) = (self.log(rate), self.log(faster));
        let (before, after) = (self.multiply(shape, log_rate), self.multiply(more, log_faster));
        let constant = y * exposure.ln() - hyperprior_math::special::ln_gamma(y + 1.0);
        let log = self.linear(&[(top, 1.0), (bottom, -1.0), (before, 1.0), (after, -1.0)], constant);
        let log = self.require_positive(&[shape, rate], log);
        Some((Distribution::Gamma { shape: more, rate: faster }, [y, exposure], log))
    }

    /// The same given a time with an exponential distribution.
    fn gamma_exponential(
        &mut self,
        [shape, rate]: [Expr; 2],
        y: f64,
        exposure: f64,
    ) -> Option<(Distribution, [f64; 2], Expr)> {
        if !(y >= 0.0 && y.is_finite()) {
            return None;
        }
        let (more, longer) = (self.linear(&[(shape, 1.0)], 1.0), self.linear(&[(rate, 1.0)], exposure * y));
        let (log_shape, log_rate, log_longer) = (self.log(shape), self.log(rate), self.log(longer));
        let (before, after) = (self.multiply(shape, log_rate), self.multiply(more, log_longer));
        let log = self.linear(&[(log_shape, 1.0), (before, 1.0), (after, -1.0)], exposure.ln());
        let log = self.require_positive(&[shape, rate], log);
        Some((Distribution::Gamma { shape: more, rate: longer }, [1.0, exposure * y], log))
    }

    /// `x` if these are not negative, else −∞; where one is zero, its logarithm or its gamma function is infinite.
    fn require_positive(&mut self, these: &[Expr], x: Expr) -> Expr {
        these.iter().fold(x, |x, e| if self.known(*e).positive { x } else { self.require(*e, x) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use crate::builder::GraphBuilder;
    use crate::distribution::{Bounds, Distribution};
    use crate::elimination::Marginalise;
    use crate::expression::Expr;
    use crate::node::Graph;
    use hyperprior::Model;
    use hyperprior_math::batch::Batch;
    use hyperprior_math::special::log_sum_exp;

    type Pair = (fn(Expr, Expr) -> Distribution, fn(&mut GraphBuilder, Expr) -> Distribution, f64);

    const PAIRS: [Pair; 5] = [
        (|a, b| Distribution::Beta { a, b }, |_, p| Distribution::Bernoulli { p }, 1.0),
        (
            |a, b| Distribution::Beta { a, b },
            |g, p| {
                let n = g.constant(9.0);
                Distribution::Binomial { p, n }
            },
            3.0,
        ),
        (|shape, rate| Distribution::Gamma { shape, rate }, |_, rate| Distribution::Poisson { rate }, 4.0),
        (
            |shape, rate| Distribution::Gamma { shape, rate },
            |g, rate| {
                let exposure = g.constant(2.5);
                Distribution::Poisson { rate: g.multiply(exposure, rate) }
            },
            4.0,
        ),
        (
            |shape, rate| Distribution::Gamma { shape, rate },
            |g, rate| {
                let exposure = g.constant(0.4);
                Distribution::Exponential { rate: g.multiply(rate, exposure) }
            },
            1.7,
        ),
    ];

    fn pair((own, observed, y): &Pair, uses: usize, is_bounded: bool) -> Graph {
        let mut g = GraphBuilder::new();
        let (one, two) = (g.constant(1.0), g.constant(2.0));
        let a = g.stochastic("a", Distribution::Gamma { shape: two, rate: one }, None, None).unwrap();
        let b = g.stochastic("b", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap();
        let (lower, upper) = (Some(g.constant(0.2)), Some(g.constant(0.9)));
        let bounds = is_bounded.then_some(Bounds { lower, upper, renormalised: true });
        let theta = g.stochastic("theta", own(a, b), bounds, None).unwrap();
        for k in 0..uses {
            let observed = observed(&mut g, theta);
            g.stochastic(&format!("y[{}]", k + 1), observed, None, Some(*y)).unwrap();
        }
        let twice = g.add(theta, theta);
        g.name("twice", twice);
        g.build().unwrap()
    }

    /// Catches a wrong normalising constant, a wrong update of a parameter, and an exposure that is left out: the integral over the latent,
    /// on a grid of its coordinate, is the density without it, and its draws have the mean of that grid.
    #[test]
    fn a_conjugate_latent_is_integrated_out_and_drawn_given_its_observation() {
        let point = [0.4, -0.3];
        for (number, (kind, is_bounded)) in PAIRS.iter().flat_map(|kind| [(kind, false), (kind, true)]).enumerate() {
            let without = pair(kind, 1, is_bounded).model().unwrap();
            assert_eq!(without.marginalised().collect::<Vec<_>>(), ["theta"], "{number}");
            hyperprior::check(&without, 1).unwrap();
            let with = pair(kind, 1, is_bounded).model_with(&Marginalise::Nothing).unwrap();
            assert_eq!((without.latents().len(), with.latents().len()), (2, 3));
            let grid: Vec<f64> = (-8000..8000).map(|k| 0.005 * f64::from(k)).collect();
            let mut z = Batch::zeros(3, grid.len());
            (0..2).for_each(|i| z.column_mut(i).fill(point[i]));
            z.column_mut(2).copy_from_slice(&grid);
            let mut log_p = vec![0.0; grid.len()];
            with.log_joint(&z, &mut log_p).unwrap();
            let total = log_sum_exp(&log_p) + 0.005_f64.ln();
            let mut own = [0.0];
            without.log_joint(&Batch::from_columns(point.to_vec(), 1), &mut own).unwrap();
            assert!((own[0] - total).abs() < 1e-6, "{number}: {} and {total}", own[0]);
            // Of all nodes, at values of all latents, it is the same density.
            let values = [1.3, 0.8, 0.6];
            let densities = [&without, &with].map(|model| model.log_density(&values).unwrap());
            assert!((densities[0] - densities[1]).abs() < 1e-10, "{number}: {densities:?}");
            let theta = |q: &&crate::draw::Quantity| q.name == "theta" || q.name == "twice";
            let quantities: Vec<_> = with.quantities().iter().filter(theta).cloned().collect();
            let on_grid = with.complete(&z, &quantities, 1).unwrap();
            let expected: f64 = (0..grid.len()).map(|s| (log_p[s] - total).exp() * 0.005 * on_grid.get(0, s)).sum();
            let draws = 20_000;
            let mut same = Batch::zeros(2, draws);
            (0..2).for_each(|i| same.column_mut(i).fill(point[i]));
            let quantities: Vec<_> = without.quantities().iter().filter(theta).cloned().collect();
            let drawn = without.complete(&same, &quantities, 1).unwrap();
            let own = drawn.column(0);
            assert!(own.iter().zip(drawn.column(1)).all(|(x, twice)| 2.0 * x == *twice));
            let mean = own.iter().sum::<f64>() / draws as f64;
            let sd = (own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64).sqrt();
            assert!((mean - expected).abs() < 4.0 * sd / (draws as f64).sqrt(), "{number}: {mean} and {expected}");
        }
    }

    #[test]
    fn other_data_or_constant_parameters_leave_a_latent_in() {
        for kind in &PAIRS {
            assert_eq!(pair(kind, 2, false).model().unwrap().marginalised().count(), 0);
        }
        let mut g = GraphBuilder::new();
        let one = g.constant(1.0);
        let p = g.stochastic("p", Distribution::Beta { a: one, b: one }, None, None).unwrap();
        g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
        assert_eq!(g.build().unwrap().model().unwrap().marginalised().count(), 0);
    }

    /// The density of an observation given the others is without the latent that only this observation depends on.
    #[test]
    fn an_observation_left_out_is_predicted_without_its_latent() {
        let mut g = GraphBuilder::new();
        let (one, two, nine) = (g.constant(1.0), g.constant(2.0), g.constant(9.0));
        let a = g.stochastic("a", Distribution::Gamma { shape: two, rate: one }, None, None).unwrap();
        for k in 0..2 {
            let p = g.stochastic(&format!("p[{}]", k + 1), Distribution::Beta { a, b: two }, None, None).unwrap();
            let y = Some(3.0 + f64::from(k));
            g.stochastic(&format!("y[{}]", k + 1), Distribution::Binomial { p, n: nine }, None, y).unwrap();
        }
        let model = g.build().unwrap().model().unwrap();
        let z = Batch::from_columns(vec![0.4], 1);
        let found = model.pointwise().unwrap().log_likelihood(&z).unwrap();
        let a = 0.4_f64.exp();
        let log_beta = |a: f64, b: f64| {
            use hyperprior_math::special::ln_gamma;
            ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
        };
        for (k, ways) in [84.0_f64, 126.0].into_iter().enumerate() {
            let y = 3.0 + k as f64;
            let expected = ways.ln() + log_beta(a + y, 11.0 - y) - log_beta(a, 2.0);
            assert!((found.get(k, 0) - expected).abs() < 1e-10, "{} and {expected}", found.get(k, 0));
        }
    }
}
