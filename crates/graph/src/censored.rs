//! Censored latents are integrated out: where all that is known of a number is between which cut points it lies, the likelihood is the
//! probability of that interval, and the number is drawn from its distribution within it.

use super::constraint::discrete;
use super::distribution::{Bounds, Distribution};
use super::expression::{Expr, Node};
use super::node::{AnyDistribution, Graph, Random};

/// A latent, the random nodes of its own and of its interval, and the ends of that.
struct Censored {
    leaf: usize,
    interval: usize,
    ends: [Option<Expr>; 2],
}

impl Graph {
    /// The same graph with censored latents drawn from their distributions within their intervals, which the interval's node no longer
    /// depends on: its density is the probability of the interval. The product of the two densities is the same as before.
    pub(super) fn with_intervals(mut self) -> Self {
        let found = self.censored_latents();
        for Censored { leaf, interval, ends: [lower, upper] } in found {
            let own = self.leaves[leaf].random as usize;
            let AnyDistribution::Scalar(distribution) = self.random[own].distribution.clone() else { continue };
            let Ok(share) = self.arena.log_probability_between(&distribution, lower, upper, true) else { continue };
            // A probability of 0 or 1 whatever the latents are is left to the checks of the whole model.
            if self.arena.value(share).is_some() {
                continue;
            }
            self.random[own].bounds = Some(Bounds { lower, upper, renormalised: true });
            let (density, inside) = (self.random[own].density, self.random[interval].density);
            let within = self.arena.subtract(density, share);
            self.random[own].density = self.arena.add(within, inside);
            self.random[interval].density = share;
            self.integrated.push(leaf as u32);
        }
        self
    }

    /// The latents of which nothing but one interval with constant ends is observed, and whose distribution has a simple probability.
    fn censored_latents(&self) -> Vec<Censored> {
        let mut found: Vec<Censored> = (0..self.random.len()).filter_map(|r| self.censored_by(r)).collect();
        let mut are_alone =
            self.are_alone(&found.iter().map(|one| (one.leaf, one.interval)).collect::<Vec<_>>()).into_iter();
        found.retain(|_| are_alone.next() == Some(true));
        found
    }

    /// For latents that an observation depends on: whether it is the only one that does, and depends on no other random node, and the
    /// parameters of the latent are not discrete.
    pub(super) fn are_alone(&self, observed: &[(usize, usize)]) -> Vec<bool> {
        if observed.is_empty() {
            return Vec::new();
        }
        // What the other nodes depend on, and what the distributions of these latents do.
        let mut is_apart = vec![false; self.random.len()];
        let mut is_observation = vec![false; self.random.len()];
        let mut times = vec![0; self.leaves.len()];
        for (leaf, observation) in observed {
            is_observation[*observation] = true;
            is_apart[self.leaves[*leaf].random as usize] = true;
            times[*leaf] += 1;
        }
        let needed = |(r, node): (usize, &Random)| match () {
            () if is_observation[r] => Vec::new(),
            () if is_apart[r] => node.parents(),
            () => [&[node.density][..], &node.value, &node.parents()].concat(),
        };
        let needed: Vec<Expr> = self.random.iter().enumerate().flat_map(needed).collect();
        let is_needed = self.arena.reach(&needed);
        let is_discrete = discrete(self);
        let parameters = |leaf: usize| self.random[self.leaves[leaf].random as usize].parents();
        let is_alone = |(leaf, _): &(usize, usize)| {
            times[*leaf] == 1
                && !is_needed[self.leaves[*leaf].expr.0 as usize]
                && !parameters(*leaf).iter().any(|e| is_discrete[e.0 as usize])
        };
        observed.iter().map(is_alone).collect()
    }

    /// The latent whose interval an observed node is, if its ends are constant.
    fn censored_by(&self, interval: usize) -> Option<Censored> {
        let node = &self.random[interval];
        let AnyDistribution::Scalar(Distribution::Interval { time, cuts }) = &node.distribution else { return None };
        let (Node::Leaf(l), Some(value)) = (self.arena.node(*time), self.arena.value(node.value[0])) else {
            return None;
        };
        let leaf = l as usize;
        let own = &self.random[self.leaves[leaf].random as usize];
        let AnyDistribution::Scalar(distribution) = &own.distribution else { return None };
        let is_simple = matches!(
            distribution,
            Distribution::Normal { .. }
                | Distribution::LogNormal { .. }
                | Distribution::Logistic { .. }
                | Distribution::Laplace { .. }
                | Distribution::Exponential { .. }
                | Distribution::Weibull { .. }
                | Distribution::Pareto { .. }
        );
        if own.bounds.is_some() || !is_simple || !cuts.iter().all(|e| self.arena.value(*e).is_some()) {
            return None;
        }
        let end = |k: f64| (k >= 0.0).then(|| cuts.get(k as usize)).flatten().copied();
        Some(Censored { leaf, interval, ends: [end(value - 1.0), end(value)] })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use crate::builder::GraphBuilder;
    use crate::distribution::Distribution;
    use crate::elimination::Marginalise;
    use crate::expression::Expr;
    use crate::node::Graph;
    use hyperprior::Model;
    use hyperprior_math::batch::Batch;
    use hyperprior_math::special::log_sum_exp;

    /// A number with this distribution, of which nothing but the interval with this number among those between 0.7 and 1.9 is known.
    fn censored(own: impl Fn(Expr, Expr) -> Distribution, interval: f64) -> Graph {
        let mut g = GraphBuilder::new();
        let (one, two) = (g.constant(1.0), g.constant(2.0));
        let mean = g.stochastic("mean", Distribution::Normal { mean: one, precision: two }, None, None).unwrap();
        let rate = g.stochastic("rate", Distribution::Gamma { shape: two, rate: one }, None, None).unwrap();
        let time = g.stochastic("time", own(mean, rate), None, None).unwrap();
        let cuts = vec![g.constant(0.7), g.constant(1.9)];
        g.stochastic("interval", Distribution::Interval { time, cuts }, None, Some(interval)).unwrap();
        let twice = g.add(time, time);
        g.name("twice", twice);
        g.build().unwrap()
    }

    /// Catches a wrong end of the interval, a density that is not divided by its probability, and draws outside: the integral over the
    /// number, on a grid of its coordinate, is the density without it, and its draws have the mean of that grid.
    #[test]
    fn a_censored_number_is_integrated_out_and_drawn_within_its_interval() {
        let kinds: [fn(Expr, Expr) -> Distribution; 6] = [
            |mean, precision| Distribution::Normal { mean, precision },
            |mean, precision| Distribution::LogNormal { mean, precision },
            |mean, rate| Distribution::Logistic { mean, rate },
            |mean, rate| Distribution::Laplace { mean, rate },
            |_, rate| Distribution::Exponential { rate },
            |_, rate| Distribution::Weibull { shape: rate, rate },
        ];
        let point = [0.4, -0.3];
        for (number, kind) in kinds.into_iter().enumerate() {
            for interval in [0.0, 1.0, 2.0] {
                let without = censored(kind, interval).model().unwrap();
                assert_eq!(without.marginalised().collect::<Vec<_>>(), ["time"], "{number}");
                assert!(!without.prior_only().any(|name| name == "time"));
                let with = censored(kind, interval).model_with(&Marginalise::Nothing).unwrap();
                let n = with.latents().len();
                assert_eq!(without.latents().len() + 1, n);
                let grid: Vec<f64> = (-6000..6000).map(|k| 0.005 * f64::from(k)).collect();
                let mut z = Batch::zeros(n, grid.len());
                (0..n - 1).for_each(|i| z.column_mut(i).fill(point[i]));
                z.column_mut(n - 1).copy_from_slice(&grid);
                let mut log_p = vec![0.0; grid.len()];
                with.log_joint(&z, &mut log_p).unwrap();
                let total = log_sum_exp(&log_p) + 0.005_f64.ln();
                let mut own = [0.0];
                without.log_joint(&Batch::from_columns(point[..n - 1].to_vec(), 1), &mut own).unwrap();
                assert!((own[0] - total).abs() < 2e-3, "{number}, {interval}: {} and {total}", own[0]);
                hyperprior::check(&without, 1).unwrap();
                let time = |q: &&crate::draw::Quantity| q.name == "time" || q.name == "twice";
                let quantities: Vec<_> = with.quantities().iter().filter(time).cloned().collect();
                let on_grid = with.complete(&z, &quantities, 1).unwrap();
                let weight = |s: usize| (log_p[s] - total).exp() * 0.005;
                let expected: f64 = (0..grid.len()).map(|s| weight(s) * on_grid.get(0, s).min(50.0)).sum();
                let draws = 4000;
                let mut same = Batch::zeros(n - 1, draws);
                (0..n - 1).for_each(|i| same.column_mut(i).fill(point[i]));
                let quantities: Vec<_> = without.quantities().iter().filter(time).cloned().collect();
                let drawn = without.complete(&same, &quantities, 1).unwrap();
                let times = drawn.column(0);
                let [low, high] = [[f64::NEG_INFINITY, 0.7], [0.7, 1.9], [1.9, f64::INFINITY]][interval as usize];
                assert!(times.iter().all(|x| (low..=high).contains(x)), "{number}, {interval}");
                assert!(times.iter().zip(drawn.column(1)).all(|(x, twice)| 2.0 * x == *twice));
                let mean = times.iter().map(|x| x.min(50.0)).sum::<f64>() / f64::from(draws as u32);
                let sd =
                    (times.iter().map(|x| (x.min(50.0) - mean).powi(2)).sum::<f64>() / f64::from(draws as u32)).sqrt();
                assert!(
                    (mean - expected).abs() < 4.0 * sd / 4000.0_f64.sqrt() + 1e-3,
                    "{number}, {interval}: {mean} and {expected}"
                );
            }
        }
    }

    /// Catches a number that is integrated out although other data depend on it, or another interval.
    #[test]
    fn a_number_with_other_data_is_not_integrated_out() {
        for kind in 0..3 {
            let mut g = GraphBuilder::new();
            let (zero, one) = (g.constant(0.0), g.constant(1.0));
            let rate = g.stochastic("rate", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
            let time = g.stochastic("time", Distribution::Exponential { rate }, None, None).unwrap();
            let interval = Distribution::Interval { time, cuts: vec![one] };
            g.stochastic("interval", interval.clone(), None, Some(1.0)).unwrap();
            match kind {
                0 => g.stochastic("y", Distribution::Normal { mean: time, precision: one }, None, Some(1.5)),
                1 => g.stochastic("again", interval, None, Some(1.0)),
                // The cut point of another number.
                _ => {
                    let other = g.stochastic("other", Distribution::Normal { mean: zero, precision: one }, None, None);
                    let cut = Distribution::Interval { time: other.unwrap(), cuts: vec![time] };
                    g.stochastic("below", cut, None, Some(0.0))
                }
            }
            .unwrap();
            let model = g.build().unwrap().model().unwrap();
            assert!(!model.marginalised().any(|name| name == "time"), "{kind}");
        }
    }
}
