//! Marginalised latents.

use super::{check, numbers};
use hyperprior::Batch;
use hyperprior::model::{Model, Support};
use hyperprior_graph::{Distribution, Expr, Function, Graph, GraphBuilder, GraphModel, Marginalise};
use std::collections::HashMap;

/// A hidden Markov chain, coupled binary latents and a shared scale: small enough to enumerate.
pub fn discrete(lengths: (usize, usize)) -> Graph {
    let mut g = GraphBuilder::new();
    let (one, two) = (g.constant(1.0), g.constant(2.0));
    let scale = g.stochastic("scale", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap();
    let means = numbers(&mut g, &[-1.0, 0.4, 2.0]);
    let means: Vec<Expr> = means.into_iter().map(|m| g.multiply(m, scale)).collect();
    let rows: Vec<Vec<Expr>> =
        [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.0, 0.5, 0.5]].iter().map(|r| numbers(&mut g, r)).collect();
    let mut previous = None;
    for t in 0..lengths.0 {
        let weights = match previous {
            None => rows[0].clone(),
            Some(z) => (0..3).map(|k| g.select(z, &rows.iter().map(|r| r[k]).collect::<Vec<_>>())).collect(),
        };
        let z = g.stochastic(&format!("z[{}]", t + 1), Distribution::Categorical { weights }, None, None).unwrap();
        let mean = g.select(z, &means);
        let y = [0.1, -0.7, 1.9, 0.5][t % 4];
        g.stochastic(&format!("y[{}]", t + 1), Distribution::Normal { mean, precision: scale }, None, Some(y)).unwrap();
        previous = Some(z);
    }
    let half = g.constant(0.3);
    let bits: Vec<Expr> = (0..lengths.1)
        .map(|k| g.stochastic(&format!("b[{}]", k + 1), Distribution::Bernoulli { p: half }, None, None).unwrap())
        .collect();
    let weights = numbers(&mut g, &[1.2, -0.8, 0.5, -1.5][..lengths.1]);
    let signal = g.inner_product(&weights, &bits);
    let logit = g.add(signal, scale);
    let p = g.call(Function::InverseLogit, &[logit]);
    g.stochastic("seen", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    let mean = g.sum(&bits);
    let rate = g.add(mean, one);
    g.stochastic("count", Distribution::Poisson { rate }, None, Some(2.0)).unwrap();
    let total = g.sum(&bits);
    g.name("total", total);
    g.build().unwrap()
}

/// The log joint of `marginalised`, and log Σ_z p(x, z, λ) over the latents that only `kept` has.
fn both_ways(kept: &GraphModel, marginalised: &GraphModel, at: f64) -> (f64, f64) {
    let mut out = [0.0];
    let mut z = Batch::zeros(1, 1);
    z.set(0, 0, at);
    marginalised.log_joint(&z, &mut out).unwrap();
    let latents = kept.latents();
    let ranges: Vec<(f64, f64)> = (0..latents.len())
        .map(|i| match latents.support(i) {
            Support::Integers { lower, upper } => (lower, upper),
            _ => (at, at),
        })
        .collect();
    let states: usize = ranges.iter().map(|(l, u)| (u - l) as usize + 1).product();
    let mut z = Batch::zeros(latents.len(), states);
    for s in 0..states {
        let mut rest = s;
        for (i, (lower, upper)) in ranges.iter().enumerate() {
            let len = (upper - lower) as usize + 1;
            z.set(i, s, lower + (rest % len) as f64);
            rest /= len;
        }
    }
    let mut all = vec![0.0; states];
    kept.log_joint(&z, &mut all).unwrap();
    let top = all.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    (out[0], top + all.iter().map(|x| (x - top).exp()).sum::<f64>().ln())
}

#[test]
fn marginalisation_equals_enumeration() {
    let graph = discrete((4, 4));
    let kept = check(graph.clone(), &Marginalise::Nothing, 1);
    let marginalised = check(graph.clone(), &Marginalise::Auto, 1);
    assert_eq!((kept.latents().len(), marginalised.latents().len()), (9, 1));
    for at in [-1.0, 0.3, 1.2] {
        let (found, exact) = both_ways(&kept, &marginalised, at);
        assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
    }
    // Some marginalised, the others kept.
    let some = check(graph, &Marginalise::Named(vec!["z".to_owned(), "b[2]".to_owned()]), 1);
    assert_eq!(some.marginalised().count(), 5);
    let (found, exact) = both_ways(&some, &marginalised, 0.3);
    assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
}

/// Draws of all quantities given the only latent that is fitted, by name.
fn drawn_at(model: &GraphModel, at: f64, draws_len: usize) -> HashMap<String, Vec<f64>> {
    let quantities = model.quantities();
    let drawn = model.complete(&Batch::from_columns(vec![at; draws_len], draws_len), &quantities, 4).unwrap();
    quantities.into_iter().enumerate().map(|(k, q)| (q.name, drawn.column(k).to_vec())).collect()
}

#[test]
fn marginalised_latents_are_drawn_from_their_conditional() {
    let graph = discrete((3, 2));
    let marginalised = graph.clone().model().unwrap();
    let kept = graph.model_with(&Marginalise::Nothing).unwrap();
    let (draws_len, at) = (40_000, 0.2);
    let drawn = drawn_at(&marginalised, at, draws_len);
    let column = |name: &str| &drawn[name];
    // The joint distribution of (z1, z2, z3, b1, b2) by enumeration.
    let mut all = Batch::zeros(kept.latents().len(), 27 * 4);
    for s in 0..27 * 4 {
        let values = [at, (s % 3) as f64, (s / 3 % 3) as f64, (s / 9 % 3) as f64];
        for (i, x) in values.iter().chain(&[(s / 27 % 2) as f64, (s / 54) as f64]).enumerate() {
            all.set(i, s, *x);
        }
    }
    assert_eq!(kept.latents().name(1), "z[1]");
    let mut log = vec![0.0; 27 * 4];
    kept.log_joint(&all, &mut log).unwrap();
    let top = log.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let total: f64 = log.iter().map(|x| (x - top).exp()).sum();
    let mut counts = vec![0.0; 27 * 4];
    for s in 0..draws_len {
        let state = (column("z[1]")[s] - 1.0)
            + 3.0 * (column("z[2]")[s] - 1.0)
            + 9.0 * (column("z[3]")[s] - 1.0)
            + 27.0 * column("b[1]")[s]
            + 54.0 * column("b[2]")[s];
        counts[state as usize] += 1.0;
        assert_eq!(column("total")[s], column("b[1]")[s] + column("b[2]")[s]);
    }
    // χ² over the states that are likely enough; 5 standard deviations of a χ² with that many degrees of freedom.
    let (mut statistic, mut cells) = (0.0, 0.0);
    for s in 0..27 * 4 {
        let expected = draws_len as f64 * (log[s] - top).exp() / total;
        if expected >= 10.0 {
            statistic += (counts[s] - expected).powi(2) / expected;
            cells += 1.0;
        } else if expected == 0.0 {
            assert_eq!(counts[s], 0.0);
        }
    }
    assert!(cells > 40.0);
    assert!(statistic < cells + 5.0 * (2.0_f64 * cells).sqrt(), "χ² {statistic} over {cells} cells");
}

/// N ~ Poisson(λ) seen through binomials: the marginal counts are Poisson(λ p).
#[test]
fn sums_over_counts_are_truncated_late_enough() {
    for log_rate in [1.0, 4.0, 6.0] {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let raw = g.stochastic("raw", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let rate = g.call(Function::Exp, &[raw]);
        let n = g.stochastic("N", Distribution::Poisson { rate }, None, None).unwrap();
        let p = g.constant(0.3);
        g.stochastic("y", Distribution::Binomial { p, n }, None, Some(7.0)).unwrap();
        let model = g.build().unwrap().model().unwrap();
        assert_eq!(model.marginalised().collect::<Vec<_>>(), ["N"]);
        let mut z = Batch::zeros(1, 2);
        z.column_mut(0).fill(log_rate);
        let (mut out, mut d_z) = ([0.0; 2], Batch::zeros(1, 2));
        model.gradient().unwrap().log_joint_gradient(&z, &mut out, &mut d_z).unwrap();
        let thinned = 0.3 * f64::exp(log_rate);
        let prior = -0.5 * log_rate * log_rate - 0.5 * (2.0 * std::f64::consts::PI).ln();
        let exact = prior + 7.0 * thinned.ln() - thinned - 5040.0_f64.ln();
        assert!((out[0] - exact).abs() < 1e-8, "{} against {exact}", out[0]);
        assert!((d_z.get(0, 0) - (7.0 - thinned - log_rate)).abs() < 1e-6);
        let quantities = model.quantities();
        let drawn = model.complete(&z, &quantities, 1).unwrap();
        assert!(drawn.get(1, 0) >= 7.0);
    }
}

/// A kept latent chooses the rate of a marginalised count: its conditional is right for every value, near or far, whatever its
/// current value.
#[test]
fn a_conditional_does_not_depend_on_the_current_value() {
    let rates = [2.0, 90.0, 700.0];
    let mut g = GraphBuilder::new();
    let weights = numbers(&mut g, &[0.2, 0.3, 0.5]);
    let c = g.stochastic("c", Distribution::Categorical { weights }, None, None).unwrap();
    let list = numbers(&mut g, &rates);
    let rate = g.select(c, &list);
    let n = g.stochastic("N", Distribution::Poisson { rate }, None, None).unwrap();
    let p = g.constant(0.3);
    g.stochastic("y", Distribution::Binomial { p, n }, None, Some(7.0)).unwrap();
    let model = g.build().unwrap().model_with(&Marginalise::Named(vec!["N".to_owned()])).unwrap();
    assert_eq!(model.marginalised().collect::<Vec<_>>(), ["N"]);
    let exact = |k: usize| {
        let thinned = 0.3 * rates[k];
        [0.2_f64, 0.3, 0.5][k].ln() + 7.0 * thinned.ln() - thinned - 5040.0_f64.ln()
    };
    for now in 0..3 {
        let mut z = Batch::zeros(1, 1);
        z.set(0, 0, f64::from(now));
        let mut out = Batch::zeros(3, 1);
        model.conditionals().unwrap().log_conditional(0, &z, &[0.0, 1.0, 2.0], &mut out).unwrap();
        for k in 0..3 {
            let (found, exact) = (out.get(k, 0) - out.get(0, 0), exact(k) - exact(0));
            assert!((found - exact).abs() < 1e-8, "value {k}, now {now}: {found} against {exact}");
        }
    }
}

/// The sum over a count with a known rate is not truncated too early.
#[test]
fn sums_over_counts_with_known_rates_are_truncated_late_enough() {
    let mut g = GraphBuilder::new();
    let (one, hundred, tenth) = (g.constant(1.0), g.constant(100.0), g.constant(0.1));
    let theta = g.stochastic("theta", Distribution::Beta { a: one, b: one }, None, None).unwrap();
    g.stochastic("w", Distribution::Bernoulli { p: theta }, None, Some(1.0)).unwrap();
    let n = g.stochastic("N", Distribution::Poisson { rate: hundred }, None, None).unwrap();
    g.stochastic("y", Distribution::Binomial { p: tenth, n }, None, Some(10.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    let mut z = Batch::zeros(1, 4000);
    z.column_mut(0).fill(0.0);
    let quantities = model.quantities();
    let drawn = model.complete(&z, &quantities, 1).unwrap();
    let at = quantities.iter().position(|q| q.name == "N").unwrap();
    // N − 10 is Poisson(90): five standard errors are .75.
    let mean = drawn.column(at).iter().sum::<f64>() / 4000.0;
    assert!((mean - 100.0).abs() < 0.75, "{mean}");
}

/// Sixteen indicators with an observation each, and observations of the sum of the first six, of more and of all of them, and of their
/// mean: a table over all their joint values is too large.
fn summed_indicators() -> Graph {
    let mut g = GraphBuilder::new();
    let (one, two, share) = (g.constant(1.0), g.constant(2.0), g.constant(0.3));
    let scale = g.stochastic("scale", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap();
    let mut bits = Vec::new();
    for k in 0..16 {
        let bit = g.stochastic(&format!("b[{}]", k + 1), Distribution::Bernoulli { p: share }, None, None).unwrap();
        let mean = g.multiply(bit, scale);
        let y = [0.4, -0.2, 1.1, 0.0, 0.7][k % 5];
        g.stochastic(&format!("y[{}]", k + 1), Distribution::Normal { mean, precision: one }, None, Some(y)).unwrap();
        bits.push(bit);
    }
    for (len, seen) in [(6, 3.0), (11, 4.0), (16, 9.0)] {
        let total = g.sum(&bits[..len]);
        let rate = g.add(total, scale);
        g.stochastic(&format!("count[{len}]"), Distribution::Poisson { rate }, None, Some(seen)).unwrap();
        g.name(&format!("total[{len}]"), total);
    }
    // The zeros are counted too.
    let zeros: Vec<Expr> = bits.iter().map(|bit| g.call(Function::Not, &[*bit])).collect();
    let zeros = g.sum(&zeros);
    let rate = g.add(zeros, scale);
    g.stochastic("zeros", Distribution::Poisson { rate }, None, Some(5.0)).unwrap();
    let sixteenths = numbers(&mut g, &[1.0 / 16.0; 16]);
    let share = g.inner_product(&sixteenths, &bits);
    g.stochastic("share", Distribution::Normal { mean: share, precision: one }, None, Some(0.2)).unwrap();
    g.build().unwrap()
}

#[test]
fn sums_of_many_latents_are_marginalised_as_running_sums() {
    let graph = summed_indicators();
    let kept = graph.clone().model_with(&Marginalise::Nothing).unwrap();
    let marginalised = check(graph, &Marginalise::Auto, 1);
    assert_eq!((marginalised.latents().len(), marginalised.marginalised().count()), (1, 16));
    for at in [-1.0, 0.3] {
        let (found, exact) = both_ways(&kept, &marginalised, at);
        assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
    }
    // Draws have the exact mean of the indicators' sum, and each sum is that of its own indicators.
    let (draws_len, at) = (20_000, 0.3);
    let drawn = drawn_at(&marginalised, at, draws_len);
    let column = |name: &str| &drawn[name];
    let mut all = Batch::zeros(17, 1 << 16);
    for s in 0..1 << 16 {
        all.set(0, s, at);
        (0..16).for_each(|k| all.set(k + 1, s, f64::from(u32::from(s & (1 << k) > 0))));
    }
    let mut log = vec![0.0; 1 << 16];
    kept.log_joint(&all, &mut log).unwrap();
    let top = log.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let mut exact = [0.0; 17];
    (0..1_usize << 16).for_each(|s| exact[s.count_ones() as usize] += (log[s] - top).exp());
    let whole: f64 = exact.iter().sum();
    let total = column("total[16]");
    for (sum, weight) in exact.iter().enumerate() {
        let p = weight / whole;
        let found = total.iter().filter(|x| **x == sum as f64).count() as f64 / draws_len as f64;
        assert!(
            (found - p).abs() < 5.0 * (p * (1.0 - p) / draws_len as f64).sqrt() + 1e-6,
            "{sum}: {found}, exactly {p}"
        );
    }
    for s in 0..draws_len {
        let bits: f64 = (1..=6).map(|k| column(&format!("b[{k}]"))[s]).sum();
        assert_eq!(column("total[6]")[s], bits);
    }
}
