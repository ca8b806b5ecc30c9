//! Marginalised counts against enumeration: likelihoods with several modes, with impossible values in between, and large rates. A
//! sum that stops at the first impossible or falling value fails here.

use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Distribution, Expr, Function, Graph, GraphBuilder, GraphModel, Marginalise};
use hyperprior_math::special::{ln_choose, ln_factorial, log_sum_exp};

fn log_poisson(n: f64, rate: f64) -> f64 {
    n * rate.ln() - rate - ln_factorial(n)
}

fn log_normal(x: f64, mean: f64, precision: f64) -> f64 {
    0.5 * (precision / (2.0 * std::f64::consts::PI)).ln() - 0.5 * precision * (x - mean).powi(2)
}

/// The log of Σ eʷ over the values from `first` on, and the mean of the values.
fn enumerate(first: usize, end: usize, log_weight: impl Fn(f64) -> f64) -> (f64, f64) {
    let logs: Vec<f64> = (first..end).map(|n| log_weight(n as f64)).collect();
    let total = log_sum_exp(&logs);
    (total, logs.iter().enumerate().map(|(v, w)| (first + v) as f64 * (w - total).exp()).sum())
}

/// A Poisson count `N` and what depends on it.
fn poisson(rate: f64, rest: impl Fn(&mut GraphBuilder, Expr)) -> Graph {
    let mut g = GraphBuilder::new();
    let rate = g.constant(rate);
    let n = g.stochastic("N", Distribution::Poisson { rate }, None, None).unwrap();
    rest(&mut g, n);
    g.build().unwrap()
}

/// Compares the log evidence and the mean of N with the exact ones.
fn check(graph: Graph, exact: (f64, f64), within: f64) {
    let model = graph.model().unwrap();
    assert_eq!(model.marginalised().collect::<Vec<_>>(), ["N"]);
    let mut log_evidence = [0.0];
    model.log_joint(&Batch::zeros(0, 1), &mut log_evidence).unwrap();
    assert!((log_evidence[0] - exact.0).abs() < 1e-6, "log evidence {} against {}", log_evidence[0], exact.0);
    let quantities: Vec<_> = model.quantities().into_iter().filter(|q| q.name == "N").collect();
    let draws = model.complete(&Batch::zeros(0, 4000), &quantities, 1).unwrap();
    let mean = draws.column(0).iter().sum::<f64>() / 4000.0;
    assert!((mean - exact.1).abs() < within, "mean {mean} against {}", exact.1);
}

/// a + b · step(sign · (n − at)).
fn step(g: &mut GraphBuilder, n: Expr, (at, sign): (f64, f64), (a, b): (f64, f64)) -> Expr {
    let (at, sign, a, b) = (g.constant(-at), g.constant(sign), g.constant(a), g.constant(b));
    let distance = g.add(n, at);
    let distance = g.multiply(sign, distance);
    let indicator = g.call(Function::Step, &[distance]);
    let scaled = g.multiply(b, indicator);
    g.add(a, scaled)
}

/// A probability that is 0 between 20 and 60.
fn dipped(g: &mut GraphBuilder, n: Expr) -> Expr {
    let (high, low) = (step(g, n, (60.0, 1.0), (0.0, 0.9)), step(g, n, (20.0, -1.0), (0.0, 0.1)));
    g.add(high, low)
}

fn dipped_at(n: f64) -> f64 {
    match n {
        60.0.. => 0.9,
        ..=20.0 => 0.1,
        _ => 0.0,
    }
}

#[test]
fn impossible_values_between_possible_ones_do_not_end_the_sum() {
    let graph = poisson(100.0, |g, n| {
        let p = dipped(g, n);
        g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    });
    check(graph, enumerate(0, 1000, |n| log_poisson(n, 100.0) + dipped_at(n).ln()), 0.1);
    let graph = poisson(100.0, |g, n| {
        let p = step(g, n, (60.0, 1.0), (0.0, 0.9));
        g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    });
    check(graph, enumerate(60, 1000, |n| log_poisson(n, 100.0) + 0.9_f64.ln()), 0.1);
}

/// The likelihood is flat until far out, and larger there.
#[test]
fn a_plateau_does_not_end_the_sum() {
    let graph = poisson(3.0, |g, n| {
        let p = step(g, n, (40.0, 1.0), (1e-60, 0.5));
        g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    });
    let p = |n: f64| if n >= 40.0 { 0.5 + 1e-60 } else { 1e-60_f64 };
    check(graph, enumerate(0, 1000, |n| log_poisson(n, 3.0) + p(n).ln()), 0.1);
}

#[test]
fn both_modes_of_a_likelihood_are_summed() {
    let graph = poisson(100.0, |g, n| {
        let (shift, precision) = (g.constant(-100.0), g.constant(1.0));
        let distance = g.add(n, shift);
        let mean = g.call(Function::Abs, &[distance]);
        g.stochastic("y", Distribution::Normal { mean, precision }, None, Some(95.0)).unwrap();
    });
    check(graph, enumerate(0, 1000, |n| log_poisson(n, 100.0) + log_normal(95.0, (n - 100.0).abs(), 1.0)), 0.1);
}

/// The precision grows with the count, so that no bound of the density is known.
#[test]
fn densities_without_a_bound_are_summed() {
    let graph = poisson(30.0, |g, n| {
        let (zero, half) = (g.constant(0.0), g.constant(0.5));
        let square = g.multiply(n, n);
        let precision = g.add(square, half);
        g.stochastic("y", Distribution::Normal { mean: zero, precision }, None, Some(0.05)).unwrap();
    });
    check(graph, enumerate(0, 1000, |n| log_poisson(n, 30.0) + log_normal(0.05, 0.0, n * n + 0.5)), 0.1);
}

#[test]
fn large_rates_are_summed_around_the_rate() {
    for (rate, precision) in [(4500.0_f64, 1e-3_f64), (6000.0, 1e-3), (1e6, 1e-5)] {
        let y = rate + 100.0;
        let graph = poisson(rate, |g, mean| {
            let precision = g.constant(precision);
            g.stochastic("y", Distribution::Normal { mean, precision }, None, Some(y)).unwrap();
        });
        let (first, end) = ((rate - 40.0 * rate.sqrt()) as usize, (rate + 40.0 * rate.sqrt()) as usize);
        check(graph, enumerate(first, end, |n| log_poisson(n, rate) + log_normal(y, n, precision)), 0.5);
    }
    // The observation is far below the rate, and far above it.
    for (y, p) in [(900.0, 0.5), (5900.0, 0.9), (7000.0, 0.5)] {
        let graph = poisson(6000.0, |g, n| {
            let p = g.constant(p);
            g.stochastic("y", Distribution::Binomial { p, n }, None, Some(y)).unwrap();
        });
        let log_binomial = |n: f64| ln_choose(n, y) + y * p.ln() + (n - y) * (1.0 - p).ln();
        check(graph, enumerate(y as usize, 30_000, |n| log_poisson(n, 6000.0) + log_binomial(n)), 0.5);
    }
}

/// A rate that is itself latent: the sum grows with it.
#[test]
fn sums_follow_a_latent_rate() {
    let mut g = GraphBuilder::new();
    let theta = g.stochastic("theta", Distribution::Flat, None, None).unwrap();
    let rate = g.call(Function::Exp, &[theta]);
    let n = g.stochastic("N", Distribution::Poisson { rate }, None, None).unwrap();
    let p = dipped(&mut g, n);
    g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    for rate in [0.5_f64, 3.0, 30.0, 100.0, 6000.0] {
        let mut z = Batch::zeros(1, 1);
        z.set(0, 0, rate.ln());
        let mut found = [0.0];
        model.log_joint(&z, &mut found).unwrap();
        let exact = enumerate(0, 20_000, |n| log_poisson(n, rate) + dipped_at(n).ln()).0;
        assert!((found[0] - exact).abs() < 1e-7, "rate {rate}: {} against {exact}", found[0]);
    }
    let mut z = Batch::zeros(1, 1);
    z.set(0, 0, 1e7_f64.ln());
    assert!(model.fault(&z, 0).unwrap().reason.contains("`N` cannot be marginalised"));
}

/// A binary neighbour is marginalised before the count or after it.
#[test]
fn counts_with_a_discrete_neighbour_are_summed() {
    let mut g = GraphBuilder::new();
    let (half, rates) = (g.constant(0.3), [g.constant(2.0), g.constant(150.0)]);
    let z = g.stochastic("z", Distribution::Bernoulli { p: half }, None, None).unwrap();
    let one = g.constant(1.0);
    let index = g.add(z, one);
    let rate = g.select(index, &rates);
    let n = g.stochastic("N", Distribution::Poisson { rate }, None, None).unwrap();
    let p = step(&mut g, n, (100.0, 1.0), (1e-9, 0.5));
    g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    assert_eq!(model.marginalised().count(), 2);
    let mut found = [0.0];
    model.log_joint(&Batch::zeros(0, 1), &mut found).unwrap();
    let exact = enumerate(0, 2000, |n| {
        let prior = [0.7_f64.ln() + log_poisson(n, 2.0), 0.3_f64.ln() + log_poisson(n, 150.0)];
        log_sum_exp(&prior) + if n >= 100.0 { 0.5 + 1e-9 } else { 1e-9_f64 }.ln()
    });
    assert!((found[0] - exact.0).abs() < 1e-7, "{} against {}", found[0], exact.0);
}

/// A geometric count with an observation that says only that it is 10 or more.
fn geometric(p: f64) -> Graph {
    let mut g = GraphBuilder::new();
    let p = g.constant(p);
    let n = g.stochastic("N", Distribution::Geometric { p }, None, None).unwrap();
    let p = step(&mut g, n, (10.0, 1.0), (0.0, 0.9));
    g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    g.build().unwrap()
}

/// A count whose tail is too heavy to be summed is not cut off: it is kept, and asking for the sum is an error.
#[test]
fn heavy_tails_are_not_cut_off() {
    let heavy: GraphModel = geometric(1e-5).model().unwrap();
    assert_eq!(heavy.marginalised().count(), 0);
    let named = geometric(1e-5).model_with(&Marginalise::Named(vec!["N".to_owned()])).unwrap_err();
    assert!(named.to_string().contains("`N` cannot be marginalised"), "{named}");
    let p = 2e-3_f64;
    check(geometric(p), enumerate(10, 60_000, |n| p.ln() + n * (1.0 - p).ln() + 0.9_f64.ln()), 1.0);
}

/// All trials succeed: the random number of trials is the observation.
#[test]
fn a_random_number_of_certain_successes_can_be_observed() {
    let graph = poisson(5.0, |g, n| {
        let p = g.constant(1.0);
        g.stochastic("y", Distribution::Binomial { p, n }, None, Some(3.0)).unwrap();
    });
    check(graph, (log_poisson(3.0, 5.0), 3.0), 1e-9);
}

/// exp(log x), (√x)² and Φ(Φ⁻¹(x)) are x only where the inner function is defined.
#[test]
fn inverse_functions_keep_their_domains() {
    for (inner, outer) in
        [(Function::Log, Function::Exp), (Function::Sqrt, Function::Power), (Function::Probit, Function::Phi)]
    {
        let mut g = GraphBuilder::new();
        let x = g.stochastic("x", Distribution::Flat, None, None).unwrap();
        let (one, two) = (g.constant(1.0), g.constant(2.0));
        let inside = g.call(inner, &[x]);
        let mean = if outer == Function::Power { g.call(outer, &[inside, two]) } else { g.call(outer, &[inside]) };
        g.stochastic("y", Distribution::Normal { mean, precision: one }, None, Some(1.0)).unwrap();
        let model = g.build().unwrap().model().unwrap();
        let mut z = Batch::zeros(1, 2);
        z.set(0, 0, 0.5);
        z.set(0, 1, -0.5);
        let mut found = [0.0; 2];
        model.log_joint(&z, &mut found).unwrap();
        assert!((found[0] - log_normal(1.0, 0.5, 1.0)).abs() < 1e-9, "{inner:?}: {}", found[0]);
        assert!(!found[1].is_finite(), "{inner:?} of a negative number: {}", found[1]);
    }
}
