//! Scalar distributions: gradients, normalising constants and supports.

use super::check;
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Bounds, Distribution, Expr, Function, Graph, GraphBuilder, Marginalise};

/// One latent of every continuous distribution, each the mean of an observation.
pub fn continuous_distributions() -> Graph {
    let mut g = GraphBuilder::new();
    let c = |g: &mut GraphBuilder, x: f64| g.constant(x);
    let (half, one, two, three) = (c(&mut g, 0.5), c(&mut g, 1.0), c(&mut g, 2.0), c(&mut g, 3.0));
    let shape = g.stochastic("shape", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap();
    let distributions = [
        Distribution::Normal { mean: one, precision: shape },
        Distribution::LogNormal { mean: half, precision: shape },
        Distribution::Gamma { shape, rate: two },
        Distribution::InverseGamma { shape, scale: two },
        Distribution::Exponential { rate: shape },
        Distribution::ChiSquared { df: shape },
        Distribution::Beta { a: shape, b: two },
        Distribution::Uniform { lower: one, upper: three },
        Distribution::StudentT { mean: half, precision: shape, df: three },
        Distribution::Laplace { mean: half, rate: shape },
        Distribution::Logistic { mean: half, rate: shape },
        Distribution::Weibull { shape, rate: two },
        Distribution::Pareto { shape, lower: half },
        Distribution::GeneralisedGamma { shape, rate: two, power: half },
        Distribution::FDistribution { n: three, m: shape },
        Distribution::Flat,
        Distribution::HalfFlat,
    ];
    for (k, distribution) in distributions.into_iter().enumerate() {
        let x = g.stochastic(&format!("x[{}]", k + 1), distribution, None, None).unwrap();
        g.stochastic(&format!("y[{}]", k + 1), Distribution::Normal { mean: x, precision: two }, None, Some(0.7))
            .unwrap();
    }
    let bounds = Bounds { lower: Some(half), upper: None, renormalised: true };
    let cut = g.stochastic("cut", Distribution::Normal { mean: shape, precision: two }, Some(bounds), None).unwrap();
    let bounds = Bounds { lower: Some(half), upper: Some(two), renormalised: true };
    let both = g.stochastic("both", Distribution::Weibull { shape, rate: cut }, Some(bounds), None).unwrap();
    g.stochastic("z", Distribution::Normal { mean: both, precision: shape }, None, Some(1.1)).unwrap();
    g.build().unwrap()
}

#[test]
fn every_continuous_distribution_has_the_right_gradient() {
    check(continuous_distributions(), &Marginalise::Auto, 3);
}

/// In unconstrained coordinates, the density with its log Jacobian still integrates to 1.
#[test]
fn unconstrained_densities_integrate_to_one() {
    type Make = Box<dyn Fn(&mut GraphBuilder) -> Distribution>;
    let distributions: Vec<(&str, Make)> = vec![
        ("gamma", Box::new(|g| Distribution::Gamma { shape: g.constant(2.0), rate: g.constant(1.5) })),
        ("inverse gamma", Box::new(|g| Distribution::InverseGamma { shape: g.constant(2.5), scale: g.constant(1.5) })),
        ("beta", Box::new(|g| Distribution::Beta { a: g.constant(2.0), b: g.constant(3.0) })),
        ("uniform", Box::new(|g| Distribution::Uniform { lower: g.constant(-1.0), upper: g.constant(4.0) })),
        ("weibull", Box::new(|g| Distribution::Weibull { shape: g.constant(1.5), rate: g.constant(0.7) })),
        ("pareto", Box::new(|g| Distribution::Pareto { shape: g.constant(3.0), lower: g.constant(2.0) })),
        (
            "t",
            Box::new(|g| Distribution::StudentT {
                mean: g.constant(0.5),
                precision: g.constant(2.0),
                df: g.constant(5.0),
            }),
        ),
        ("laplace", Box::new(|g| Distribution::Laplace { mean: g.constant(0.5), rate: g.constant(2.0) })),
        ("logistic", Box::new(|g| Distribution::Logistic { mean: g.constant(0.5), rate: g.constant(2.0) })),
        ("lognormal", Box::new(|g| Distribution::LogNormal { mean: g.constant(0.5), precision: g.constant(2.0) })),
        ("chi", Box::new(|g| Distribution::ChiSquared { df: g.constant(3.0) })),
        ("F", Box::new(|g| Distribution::FDistribution { n: g.constant(6.0), m: g.constant(8.0) })),
        (
            "generalised gamma",
            Box::new(|g| Distribution::GeneralisedGamma {
                shape: g.constant(2.0),
                rate: g.constant(0.5),
                power: g.constant(1.5),
            }),
        ),
    ];
    for (name, make) in distributions {
        for bounded in [(false, false), (true, false), (false, true), (true, true)] {
            let mut g = GraphBuilder::new();
            let distribution = make(&mut g);
            let (low, high) = (g.constant(0.45), g.constant(if name == "beta" { 0.8 } else { 3.5 }));
            let bounds =
                Bounds { lower: bounded.0.then_some(low), upper: bounded.1.then_some(high), renormalised: true };
            let bounds = (bounded != (false, false)).then_some(bounds);
            let x = g.stochastic("x", distribution, bounds, None).unwrap();
            // A latent without data would be left out, so add a binary observation and sum over its two values.
            let share = g.call(Function::Phi, &[x]);
            let seen = |g: &mut GraphBuilder, y: f64, name: &str| {
                g.stochastic(name, Distribution::Bernoulli { p: share }, None, Some(y)).unwrap();
            };
            let total = |y: f64| {
                let mut g = g.clone();
                seen(&mut g, y, "y");
                let model = g.build().unwrap().model().unwrap();
                // Fine enough for the kink of the double exponential: h²/12 times the jump of the slope is 1.5e-7.
                let nodes = 120_001;
                let mut z = Batch::zeros(1, nodes);
                for s in 0..nodes {
                    z.set(0, s, -40.0 + 80.0 * s as f64 / (nodes - 1) as f64);
                }
                let mut out = vec![0.0; nodes];
                model.log_joint(&z, &mut out).unwrap();
                out.iter().map(|x| x.exp()).sum::<f64>() * 80.0 / (nodes - 1) as f64
            };
            let both = total(0.0) + total(1.0);
            assert!((both - 1.0).abs() < 1e-6, "{name} {bounded:?}: {both}");
        }
    }
}

const DISTRIBUTIONS: usize = 16;
const BETA: usize = 6;

/// Every continuous distribution that can be truncated, with a parameter that may be random.
fn truncatable(shape: Expr, two: Expr) -> [Distribution; DISTRIBUTIONS] {
    [
        Distribution::Normal { mean: shape, precision: two },
        Distribution::LogNormal { mean: two, precision: shape },
        Distribution::Gamma { shape, rate: two },
        Distribution::Gamma { shape: two, rate: shape },
        Distribution::Exponential { rate: shape },
        Distribution::ChiSquared { df: shape },
        Distribution::Beta { a: shape, b: two },
        Distribution::StudentT { mean: two, precision: shape, df: shape },
        Distribution::Laplace { mean: shape, rate: two },
        Distribution::Logistic { mean: two, rate: shape },
        Distribution::Weibull { shape, rate: two },
        Distribution::Pareto { shape, lower: two },
        Distribution::GeneralisedGamma { shape, rate: two, power: shape },
        Distribution::FDistribution { n: two, m: shape },
        Distribution::InverseGamma { shape, scale: two },
        Distribution::InverseGamma { shape: two, scale: shape },
    ]
}

#[test]
fn truncated_distributions_have_the_right_constant_and_gradient() {
    let bounds = [(Some(0.3), None), (None, Some(2.6)), (Some(0.3), Some(2.6)), (Some(2.4), Some(2.6))];
    for which in 0..DISTRIBUTIONS {
        for (low, high) in bounds {
            let scale = if which == BETA { 0.35 } else { 1.0 };
            let build = |fixed: Option<f64>| {
                let mut g = GraphBuilder::new();
                let two = g.constant(2.0);
                let shape = match fixed {
                    Some(x) => g.constant(x),
                    None => g.stochastic("shape", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap(),
                };
                let end = |g: &mut GraphBuilder, x: Option<f64>| x.map(|x| g.constant(scale * x));
                let bounds = Bounds { lower: end(&mut g, low), upper: end(&mut g, high), renormalised: true };
                let x = g.stochastic("x", truncatable(shape, two)[which].clone(), Some(bounds), None).unwrap();
                g.stochastic("y", Distribution::Normal { mean: x, precision: two }, None, Some(0.7)).unwrap();
                g.build().unwrap()
            };
            let random = check(build(None), &Marginalise::Nothing, 3);
            let x = 2.5 * scale;
            for shape in [0.4, 1.7, 6.0] {
                let fixed = build(Some(shape)).model().unwrap().log_density(&[x]).unwrap();
                let prior = 4.0_f64.ln() + f64::ln(shape) - 2.0 * shape;
                let both = random.log_density(&[shape, x]).unwrap();
                assert!(
                    (both - prior - fixed).abs() < 1e-9,
                    "{which} {low:?} {high:?} {shape}: {both} {prior} {fixed}"
                );
            }
        }
    }
}

/// A beta with a parameter of 1 has a closed form between bounds, fixed or random; its density integrates to 1.
#[test]
fn betas_between_bounds_integrate_to_one() {
    for [a, b] in [[1.0, 1.0], [1.0, 2.5], [0.4, 1.0], [3.0, 1.0], [2.0, 2.0]] {
        for (low, high) in [(Some(0.2), None), (None, Some(0.7)), (Some(0.2), Some(0.7)), (Some(0.0), Some(1.0))] {
            for is_random in [false, true] {
                let mut g = GraphBuilder::new();
                let (a, b, one) = (g.constant(a), g.constant(b), g.constant(1.0));
                let mut end = |name: &str, x: Option<f64>| {
                    x.map(|x| match is_random {
                        true => g.stochastic(name, Distribution::Beta { a: one, b: one }, None, None).unwrap(),
                        false => g.constant(x),
                    })
                };
                let bounds = Bounds { lower: end("low", low), upper: end("high", high), renormalised: true };
                g.stochastic("x", Distribution::Beta { a, b }, Some(bounds), None).unwrap();
                let model = g.build().unwrap().model_with(&Marginalise::Nothing).unwrap();
                let (from, to) = (low.unwrap_or(0.0), high.unwrap_or(1.0));
                if is_random && (from, to) == (0.0, 1.0) {
                    continue;
                }
                // The midpoint rule in t³, since the density may be unbounded at 0.
                let total: f64 = (0..4000)
                    .map(|k| {
                        let t = (f64::from(k) + 0.5) / 4000.0;
                        let x = from + (to - from) * t.powi(3);
                        let ends = [low, high].into_iter().flatten().filter(|_| is_random);
                        let point: Vec<f64> = ends.chain([x]).collect();
                        model.log_density(&point).unwrap().exp() * (to - from) * 3.0 * t * t / 4000.0
                    })
                    .sum();
                assert!((total - 1.0).abs() < 1e-3, "{low:?} {high:?} {is_random}: {total}");
            }
        }
    }
}

/// A parameter must stay in its range even if the observation does not depend on it.
#[test]
fn parameters_outside_their_range_are_impossible() {
    type Make = fn(&mut GraphBuilder, Expr) -> (Distribution, f64);
    let distributions: [(&str, Make, [f64; 2]); 5] = [
        ("binomial", |g, p| (Distribution::Binomial { p, n: g.constant(10.0) }, 0.0), [-0.2, 0.2]),
        ("Bernoulli", |_, p| (Distribution::Bernoulli { p }, 1.0), [1.2, 0.2]),
        ("Poisson", |_, rate| (Distribution::Poisson { rate }, 0.0), [-0.2, 0.2]),
        ("negative binomial", |g, r| (Distribution::NegativeBinomial { p: g.constant(0.5), r }, 0.0), [-0.2, 0.2]),
        (
            "categorical",
            |g, a| {
                let b = g.constant(1.0);
                let rest = g.call(Function::Subtract, &[b, a]);
                (Distribution::Categorical { weights: vec![a, rest] }, 1.0)
            },
            [1.2, 0.2],
        ),
    ];
    for (name, make, [outside, inside]) in distributions {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let x = g.stochastic("x", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let (distribution, y) = make(&mut g, x);
        g.stochastic("y", distribution, None, Some(y)).unwrap();
        let model = g.build().unwrap().model().unwrap();
        let mut z = Batch::zeros(1, 2);
        z.set(0, 0, outside);
        z.set(0, 1, inside);
        let mut out = [0.0; 2];
        model.log_joint(&z, &mut out).unwrap();
        assert!(!out[0].is_finite() && out[1].is_finite(), "{name}: {out:?}");
    }
}

/// A latent known to lie above a bound is informative about its parameters.
#[test]
fn censored_latents_are_observations() {
    let mut g = GraphBuilder::new();
    let one = g.constant(1.0);
    let rate = g.stochastic("rate", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
    let bounds = Bounds { lower: Some(one), upper: None, renormalised: false };
    g.stochastic("t", Distribution::Exponential { rate }, Some(bounds), None).unwrap();
    let model = g.build().unwrap().model().unwrap();
    assert_eq!(model.latents().len(), 2);
    assert_eq!(model.prior_only().count(), 0);
    hyperprior::check(&model, 3).unwrap();
}

/// The reciprocal of a gamma has its density times the derivative of the reciprocal.
#[test]
fn the_inverse_gamma_density() {
    let mut g = GraphBuilder::new();
    let (shape, scale, one) = (g.constant(2.5), g.constant(1.5), g.constant(1.0));
    let x = g.stochastic("x", Distribution::InverseGamma { shape, scale }, None, None).unwrap();
    g.stochastic("y", Distribution::Normal { mean: x, precision: one }, None, Some(0.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    for x in [0.1_f64, 0.7, 4.0] {
        // Γ(2.5) = ¾ √π.
        let norm = (0.75 * std::f64::consts::PI.sqrt()).ln();
        let prior = 2.5 * 1.5_f64.ln() - norm - 3.5 * x.ln() - 1.5 / x;
        let likelihood = -0.5 * x * x - 0.5 * (2.0 * std::f64::consts::PI).ln();
        let found = model.log_density(&[x]).unwrap();
        assert!((found - prior - likelihood).abs() < 1e-12, "{x}: {found}");
    }
}
