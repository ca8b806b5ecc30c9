//! Factor graphs: tapes against plain evaluation and finite differences, elimination against enumeration.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::Batch;
use hyperprior::model::graph::{Bounds, Eliminate, Expr, Function, Graph, GraphBuilder, GraphModel, Law, VectorLaw};
use hyperprior::model::{Model, Support};
use hyperprior_math::random::stream;
use rand::RngExt;

fn numbers(g: &mut GraphBuilder, x: &[f64]) -> Vec<Expr> {
    x.iter().map(|x| g.constant(*x)).collect()
}

/// A point of the latents' supports.
fn scatter(model: &GraphModel, draws_len: usize, seed: u64) -> Batch {
    let mut z = Batch::zeros(model.latents().len(), draws_len);
    for s in 0..draws_len {
        let mut rng = stream(seed, 0, 0, s as u64);
        for i in 0..model.latents().len() {
            let u: f64 = rng.random();
            let x = match model.latents().support(i) {
                Support::Integers { lower, upper } => lower + (u * (upper - lower + 1.0)).floor(),
                Support::Counts => (8.0 * u).floor(),
                _ => 3.0 * u - 1.5,
            };
            z.set(i, s, x);
        }
    }
    z
}

/// Gradient, locals and conditionals against the log joint.
fn check(graph: Graph, which: &Eliminate, seed: u64) -> GraphModel {
    let model = graph.model_with(which).unwrap();
    hyperprior::check(&model, seed).unwrap();
    model
}

/// One latent of every continuous law, each the mean of an observation.
fn continuous_laws() -> Graph {
    let mut g = GraphBuilder::new();
    let c = |g: &mut GraphBuilder, x: f64| g.constant(x);
    let (half, one, two, three) = (c(&mut g, 0.5), c(&mut g, 1.0), c(&mut g, 2.0), c(&mut g, 3.0));
    let shape = g.stochastic("shape", Law::Gamma { shape: two, rate: two }, None, None).unwrap();
    let laws = [
        Law::Normal { mean: one, precision: shape },
        Law::LogNormal { mean: half, precision: shape },
        Law::Gamma { shape, rate: two },
        Law::Exponential { rate: shape },
        Law::ChiSquared { df: shape },
        Law::Beta { a: shape, b: two },
        Law::Uniform { lower: one, upper: three },
        Law::StudentT { mean: half, precision: shape, df: three },
        Law::Laplace { mean: half, rate: shape },
        Law::Logistic { mean: half, rate: shape },
        Law::Weibull { shape, rate: two },
        Law::Pareto { shape, lower: half },
        Law::GeneralisedGamma { shape, rate: two, power: half },
        Law::FDistribution { n: three, m: shape },
        Law::Flat,
        Law::HalfFlat,
    ];
    for (k, law) in laws.into_iter().enumerate() {
        let x = g.stochastic(&format!("x[{}]", k + 1), law, None, None).unwrap();
        g.stochastic(&format!("y[{}]", k + 1), Law::Normal { mean: x, precision: two }, None, Some(0.7)).unwrap();
    }
    let bounds = Bounds { lower: Some(half), upper: None, renormalised: true };
    let cut = g.stochastic("cut", Law::Normal { mean: shape, precision: two }, Some(bounds), None).unwrap();
    let bounds = Bounds { lower: Some(half), upper: Some(two), renormalised: true };
    let both = g.stochastic("both", Law::Weibull { shape, rate: cut }, Some(bounds), None).unwrap();
    g.stochastic("z", Law::Normal { mean: both, precision: shape }, None, Some(1.1)).unwrap();
    g.build().unwrap()
}

#[test]
fn every_continuous_law_has_the_right_gradient() {
    check(continuous_laws(), &Eliminate::Auto, 3);
}

/// The laid-out density is the user's own plus the log derivative of the map, whose own check is a volume: the density of the
/// latents integrates to what it did.
#[test]
fn laws_on_the_line_integrate_to_one() {
    type Make = Box<dyn Fn(&mut GraphBuilder) -> Law>;
    let laws: Vec<(&str, Make)> = vec![
        ("gamma", Box::new(|g| Law::Gamma { shape: g.constant(2.0), rate: g.constant(1.5) })),
        ("beta", Box::new(|g| Law::Beta { a: g.constant(2.0), b: g.constant(3.0) })),
        ("uniform", Box::new(|g| Law::Uniform { lower: g.constant(-1.0), upper: g.constant(4.0) })),
        ("weibull", Box::new(|g| Law::Weibull { shape: g.constant(1.5), rate: g.constant(0.7) })),
        ("pareto", Box::new(|g| Law::Pareto { shape: g.constant(3.0), lower: g.constant(2.0) })),
        ("t", Box::new(|g| Law::StudentT { mean: g.constant(0.5), precision: g.constant(2.0), df: g.constant(5.0) })),
        ("laplace", Box::new(|g| Law::Laplace { mean: g.constant(0.5), rate: g.constant(2.0) })),
        ("logistic", Box::new(|g| Law::Logistic { mean: g.constant(0.5), rate: g.constant(2.0) })),
        ("lognormal", Box::new(|g| Law::LogNormal { mean: g.constant(0.5), precision: g.constant(2.0) })),
        ("chi", Box::new(|g| Law::ChiSquared { df: g.constant(3.0) })),
        ("F", Box::new(|g| Law::FDistribution { n: g.constant(6.0), m: g.constant(8.0) })),
        (
            "generalised gamma",
            Box::new(|g| Law::GeneralisedGamma {
                shape: g.constant(2.0),
                rate: g.constant(0.5),
                power: g.constant(1.5),
            }),
        ),
    ];
    for (name, law) in laws {
        for bounded in [(false, false), (true, false), (false, true), (true, true)] {
            let mut g = GraphBuilder::new();
            let law = law(&mut g);
            let (low, high) = (g.constant(0.45), g.constant(if name == "beta" { 0.8 } else { 3.5 }));
            let bounds =
                Bounds { lower: bounded.0.then_some(low), upper: bounded.1.then_some(high), renormalised: true };
            let bounds = (bounded != (false, false)).then_some(bounds);
            let x = g.stochastic("x", law, bounds, None).unwrap();
            // A latent that no observation depends on is left out, so one is tied on, and seen both ways.
            let share = g.call(Function::Phi, &[x]);
            let seen = |g: &mut GraphBuilder, y: f64, name: &str| {
                g.stochastic(name, Law::Bernoulli { p: share }, None, Some(y)).unwrap();
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

const LAWS: usize = 14;
const BETA: usize = 6;

/// Every continuous law that can be truncated, with a parameter that may be random.
fn truncatable(shape: Expr, two: Expr) -> [Law; LAWS] {
    [
        Law::Normal { mean: shape, precision: two },
        Law::LogNormal { mean: two, precision: shape },
        Law::Gamma { shape, rate: two },
        Law::Gamma { shape: two, rate: shape },
        Law::Exponential { rate: shape },
        Law::ChiSquared { df: shape },
        Law::Beta { a: shape, b: two },
        Law::StudentT { mean: two, precision: shape, df: shape },
        Law::Laplace { mean: shape, rate: two },
        Law::Logistic { mean: two, rate: shape },
        Law::Weibull { shape, rate: two },
        Law::Pareto { shape, lower: two },
        Law::GeneralisedGamma { shape, rate: two, power: shape },
        Law::FDistribution { n: two, m: shape },
    ]
}

#[test]
fn truncated_laws_have_the_right_constant_and_gradient() {
    let bounds = [(Some(0.3), None), (None, Some(2.6)), (Some(0.3), Some(2.6)), (Some(2.4), Some(2.6))];
    for law in 0..LAWS {
        for (low, high) in bounds {
            let scale = if law == BETA { 0.35 } else { 1.0 };
            let build = |fixed: Option<f64>| {
                let mut g = GraphBuilder::new();
                let two = g.constant(2.0);
                let shape = match fixed {
                    Some(x) => g.constant(x),
                    None => g.stochastic("shape", Law::Gamma { shape: two, rate: two }, None, None).unwrap(),
                };
                let end = |g: &mut GraphBuilder, x: Option<f64>| x.map(|x| g.constant(scale * x));
                let bounds = Bounds { lower: end(&mut g, low), upper: end(&mut g, high), renormalised: true };
                let x = g.stochastic("x", truncatable(shape, two)[law].clone(), Some(bounds), None).unwrap();
                g.stochastic("y", Law::Normal { mean: x, precision: two }, None, Some(0.7)).unwrap();
                g.build().unwrap()
            };
            let random = check(build(None), &Eliminate::Nothing, 3);
            let x = 2.5 * scale;
            for shape in [0.4, 1.7, 6.0] {
                let fixed = build(Some(shape)).model().unwrap().log_density(&[x]).unwrap();
                let prior = 4.0_f64.ln() + f64::ln(shape) - 2.0 * shape;
                let both = random.log_density(&[shape, x]).unwrap();
                assert!((both - prior - fixed).abs() < 1e-9, "{law} {low:?} {high:?} {shape}: {both} {prior} {fixed}");
            }
        }
    }
}

/// Vectors: a simplex, a random precision matrix, and normals under it.
fn vectors() -> Graph {
    let mut g = GraphBuilder::new();
    let alpha = numbers(&mut g, &[1.5, 2.0, 0.0, 3.0]);
    let names: Vec<String> = (1..=4).map(|k| format!("p[{k}]")).collect();
    let p = g.stochastic_vector(&names, VectorLaw::Dirichlet { alpha }, None).unwrap();
    let n = g.constant(9.0);
    let names: Vec<String> = (1..=4).map(|k| format!("y[{k}]")).collect();
    g.stochastic_vector(&names, VectorLaw::Multinomial { p, n }, Some(&[4.0, 3.0, 0.0, 2.0])).unwrap();
    let scale = numbers(&mut g, &[2.0, 0.3, 0.3, 1.0]);
    let df = g.constant(4.0);
    let names: Vec<String> = ["1,1", "1,2", "2,1", "2,2"].iter().map(|k| format!("omega[{k}]")).collect();
    let omega = g.stochastic_vector(&names, VectorLaw::Wishart { scale, df }, None).unwrap();
    let mean = numbers(&mut g, &[0.5, -0.5]);
    for i in 0..3 {
        let names: Vec<String> = (1..=2).map(|k| format!("x[{},{k}]", i + 1)).collect();
        let law = VectorLaw::MultivariateNormal { mean: mean.clone(), precision: omega.clone() };
        let x = g.stochastic_vector(&names, law, None).unwrap();
        let law = VectorLaw::MultivariateStudentT { mean: x, precision: omega.clone(), df };
        let names: Vec<String> = (1..=2).map(|k| format!("t[{},{k}]", i + 1)).collect();
        g.stochastic_vector(&names, law, Some(&[0.3 * i as f64, 0.4])).unwrap();
    }
    let inverse = g.inverse(&omega, 2);
    g.name("sigma[1,1]", inverse[0]);
    let log = g.log_determinant(&omega, 2);
    g.name("logdet", log);
    g.build().unwrap()
}

#[test]
fn vector_laws_have_the_right_gradient() {
    let model = check(vectors(), &Eliminate::Auto, 5);
    // What is calculated agrees with what it is calculated from.
    let z = scatter(&model, 5, 1);
    let quantities = model.quantities();
    let drawn = model.complete(&z, &quantities, 1).unwrap();
    let at = |name: &str, s: usize| drawn.get(quantities.iter().position(|q| q.name == name).unwrap(), s);
    for s in 0..5 {
        let total: f64 = [1, 2, 4].iter().map(|k| at(&format!("p[{k}]"), s)).sum();
        assert!((total - 1.0).abs() < 1e-12);
        let (a, b, c) = (at("omega[1,1]", s), at("omega[2,1]", s), at("omega[2,2]", s));
        let determinant = a * c - b * b;
        assert!((at("logdet", s) - determinant.ln()).abs() < 1e-9);
        assert!((at("sigma[1,1]", s) - c / determinant).abs() < 1e-9 * (c / determinant));
        assert_eq!(at("omega[1,2]", s), b);
    }
}

/// A hidden chain, labels, a coupled pair and a switch whose terms share a scale: small enough to enumerate.
fn discrete(lengths: (usize, usize)) -> Graph {
    let mut g = GraphBuilder::new();
    let (one, two) = (g.constant(1.0), g.constant(2.0));
    let scale = g.stochastic("scale", Law::Gamma { shape: two, rate: two }, None, None).unwrap();
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
        let z = g.stochastic(&format!("z[{}]", t + 1), Law::Categorical { weights }, None, None).unwrap();
        let mean = g.select(z, &means);
        let y = [0.1, -0.7, 1.9, 0.5][t % 4];
        g.stochastic(&format!("y[{}]", t + 1), Law::Normal { mean, precision: scale }, None, Some(y)).unwrap();
        previous = Some(z);
    }
    let half = g.constant(0.3);
    let bits: Vec<Expr> = (0..lengths.1)
        .map(|k| g.stochastic(&format!("b[{}]", k + 1), Law::Bernoulli { p: half }, None, None).unwrap())
        .collect();
    let weights = numbers(&mut g, &[1.2, -0.8, 0.5, -1.5][..lengths.1]);
    let signal = g.inner_product(&weights, &bits);
    let logit = g.add(signal, scale);
    let p = g.call(Function::InverseLogit, &[logit]);
    g.stochastic("seen", Law::Bernoulli { p }, None, Some(1.0)).unwrap();
    let mean = g.sum(&bits);
    let rate = g.add(mean, one);
    g.stochastic("count", Law::Poisson { rate }, None, Some(2.0)).unwrap();
    let total = g.sum(&bits);
    g.name("total", total);
    g.build().unwrap()
}

/// log Σ_z p(x, z, λ) over the latents that `kept` still has and `summed` has not.
fn sum_out(kept: &GraphModel, summed: &GraphModel, at: f64) -> (f64, f64) {
    let mut out = [0.0];
    let mut z = Batch::zeros(1, 1);
    z.set(0, 0, at);
    summed.log_joint(&z, &mut out).unwrap();
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
fn elimination_is_summation() {
    let graph = discrete((4, 4));
    let kept = check(graph.clone(), &Eliminate::Nothing, 1);
    let summed = check(graph.clone(), &Eliminate::Auto, 1);
    assert_eq!((kept.latents().len(), summed.latents().len()), (9, 1));
    for at in [-1.0, 0.3, 1.2] {
        let (found, exact) = sum_out(&kept, &summed, at);
        assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
    }
    // Some summed out, the others kept.
    let some = check(graph, &Eliminate::Named(vec!["z".to_owned(), "b[2]".to_owned()]), 1);
    assert_eq!(some.eliminated().count(), 5);
    let (found, exact) = sum_out(&some, &summed, 0.3);
    assert!((found - exact).abs() < 1e-10, "{found} against {exact}");
}

#[test]
fn latents_that_were_summed_out_are_drawn_from_their_conditional() {
    let graph = discrete((3, 2));
    let summed = graph.clone().model().unwrap();
    let kept = graph.model_with(&Eliminate::Nothing).unwrap();
    let (draws_len, at) = (40_000, 0.2);
    let mut z = Batch::zeros(1, draws_len);
    z.column_mut(0).fill(at);
    let quantities = summed.quantities();
    let drawn = summed.complete(&z, &quantities, 4).unwrap();
    let column = |name: &str| drawn.column(quantities.iter().position(|q| q.name == name).unwrap());
    // The joint law of (z1, z2, z3, b1, b2) by enumeration.
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
fn latent_counts_are_summed_as_far_as_needed() {
    for log_rate in [1.0, 4.0, 6.0] {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let raw = g.stochastic("raw", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
        let rate = g.call(Function::Exp, &[raw]);
        let n = g.stochastic("N", Law::Poisson { rate }, None, None).unwrap();
        let p = g.constant(0.3);
        g.stochastic("y", Law::Binomial { p, n }, None, Some(7.0)).unwrap();
        let model = g.build().unwrap().model().unwrap();
        assert_eq!(model.eliminated().collect::<Vec<_>>(), ["N"]);
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

/// A kept latent chooses the rate of a count that is summed out: its conditional is right for every value, near or far,
/// whatever the latent is now.
#[test]
fn a_conditional_does_not_depend_on_the_latent_itself() {
    let rates = [2.0, 90.0, 700.0];
    let mut g = GraphBuilder::new();
    let weights = numbers(&mut g, &[0.2, 0.3, 0.5]);
    let c = g.stochastic("c", Law::Categorical { weights }, None, None).unwrap();
    let list = numbers(&mut g, &rates);
    let rate = g.select(c, &list);
    let n = g.stochastic("N", Law::Poisson { rate }, None, None).unwrap();
    let p = g.constant(0.3);
    g.stochastic("y", Law::Binomial { p, n }, None, Some(7.0)).unwrap();
    let model = g.build().unwrap().model_with(&Eliminate::Named(vec!["N".to_owned()])).unwrap();
    assert_eq!(model.eliminated().collect::<Vec<_>>(), ["N"]);
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

#[test]
fn latents_that_nothing_depends_on_are_drawn_from_their_laws() {
    let mut g = GraphBuilder::new();
    let (zero, one, four) = (g.constant(0.0), g.constant(1.0), g.constant(4.0));
    let mu = g.stochastic("mu", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
    g.stochastic("y", Law::Normal { mean: mu, precision: one }, None, Some(0.5)).unwrap();
    let next = g.stochastic("next", Law::Normal { mean: mu, precision: four }, None, None).unwrap();
    g.stochastic("after", Law::Uniform { lower: zero, upper: one }, None, None).unwrap();
    let far = g.add(next, one);
    g.name("far", far);
    let model = g.build().unwrap().model().unwrap();
    assert_eq!(model.latents().len(), 1);
    assert_eq!(model.unconnected().collect::<Vec<_>>(), ["next", "after"]);
    let mut z = Batch::zeros(1, 20_000);
    z.column_mut(0).fill(2.0);
    let quantities = model.quantities();
    let drawn = model.complete(&z, &quantities, 9).unwrap();
    let mean = |k: usize| drawn.column(k).iter().sum::<f64>() / 20_000.0;
    assert_eq!(quantities[1].name, "next");
    // Five standard errors: 5 · .5 / √20000 = .018 and 5 · .29 / √20000 = .010.
    assert!((mean(1) - 2.0).abs() < 0.018 && (mean(2) - 0.5).abs() < 0.0102);
    assert!((mean(3) - mean(1) - 1.0).abs() < 1e-9);
}

/// Tape and interpreter are two programs for one thing.
#[test]
fn the_tape_agrees_with_plain_evaluation() {
    for graph in [continuous_laws(), vectors(), discrete((5, 4))] {
        let model = graph.model_with(&Eliminate::Nothing).unwrap();
        let z = scatter(&model, 37, 2);
        let mut out = vec![0.0; 37];
        model.log_joint(&z, &mut out).unwrap();
        for s in 0..37 {
            let plain = model.log_joint_plain(&z, s);
            let close = (out[s] - plain).abs() < 1e-9 * plain.abs().max(1.0);
            assert!(close || out[s] == plain, "{} against {plain}", out[s]);
        }
    }
}

#[test]
fn starting_values_become_points_of_the_line() {
    let mut g = GraphBuilder::new();
    let (one, two) = (g.constant(1.0), g.constant(2.0));
    let a = g.stochastic("a", Law::Gamma { shape: one, rate: one }, None, None).unwrap();
    let b = g.stochastic("b", Law::Uniform { lower: one, upper: two }, None, None).unwrap();
    let alpha = numbers(&mut g, &[1.0, 1.0, 1.0]);
    let names: Vec<String> = (1..=3).map(|k| format!("p[{k}]")).collect();
    let p = g.stochastic_vector(&names, VectorLaw::Dirichlet { alpha }, None).unwrap();
    let scale = numbers(&mut g, &[1.0, 0.0, 0.0, 1.0]);
    let names: Vec<String> = ["1,1", "1,2", "2,1", "2,2"].iter().map(|k| format!("w[{k}]")).collect();
    let w = g.stochastic_vector(&names, VectorLaw::Wishart { scale, df: two }, None).unwrap();
    let mean = g.sum(&[a, b, p[0], p[1], w[0], w[1], w[3]]);
    g.stochastic("y", Law::Normal { mean, precision: one }, None, Some(0.5)).unwrap();
    let starts = [
        ("a", 0.7),
        ("b", 1.25),
        ("p[1]", 0.2),
        ("p[2]", 0.5),
        ("p[3]", 0.3),
        ("w[1,1]", 2.0),
        ("w[2,1]", -0.4),
        ("w[2,2]", 1.5),
    ];
    for (name, x) in starts {
        g.start(name, x).unwrap();
    }
    assert!(g.start("y", 1.0).unwrap_err().to_string().contains("no latent `y`"));
    let mut bad = g.clone();
    bad.start("b", 3.0).unwrap();
    let error = bad.build().unwrap().model().unwrap().start().unwrap_err();
    assert!(error.to_string().contains("`b` cannot start at 3"), "{error}");
    let model = g.build().unwrap().model().unwrap();
    let start = model.start().unwrap().unwrap();
    let mut z = Batch::zeros(model.latents().len(), 1);
    for (i, x) in start.iter().enumerate() {
        z.set(i, 0, x.unwrap());
    }
    let quantities = model.quantities();
    let drawn = model.complete(&z, &quantities, 1).unwrap();
    for (name, x) in starts {
        let at = quantities.iter().position(|q| q.name == name).unwrap();
        assert!((drawn.get(at, 0) - x).abs() < 1e-12, "{name}");
    }
}

/// What a datum does not tell about a parameter must not let it out of its range.
#[test]
fn parameters_stay_in_their_range_whatever_was_observed() {
    type Make = fn(&mut GraphBuilder, Expr) -> (Law, f64);
    let laws: [(&str, Make, [f64; 2]); 5] = [
        ("binomial", |g, p| (Law::Binomial { p, n: g.constant(10.0) }, 0.0), [-0.2, 0.2]),
        ("Bernoulli", |_, p| (Law::Bernoulli { p }, 1.0), [1.2, 0.2]),
        ("Poisson", |_, rate| (Law::Poisson { rate }, 0.0), [-0.2, 0.2]),
        ("negative binomial", |g, r| (Law::NegativeBinomial { p: g.constant(0.5), r }, 0.0), [-0.2, 0.2]),
        (
            "categorical",
            |g, a| {
                let b = g.constant(1.0);
                let rest = g.call(Function::Subtract, &[b, a]);
                (Law::Categorical { weights: vec![a, rest] }, 1.0)
            },
            [1.2, 0.2],
        ),
    ];
    for (name, make, [outside, inside]) in laws {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let x = g.stochastic("x", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
        let (law, y) = make(&mut g, x);
        g.stochastic("y", law, None, Some(y)).unwrap();
        let model = g.build().unwrap().model().unwrap();
        let mut z = Batch::zeros(1, 2);
        z.set(0, 0, outside);
        z.set(0, 1, inside);
        let mut out = [0.0; 2];
        model.log_joint(&z, &mut out).unwrap();
        assert!(!out[0].is_finite() && out[1].is_finite(), "{name}: {out:?}");
    }
}

/// A count whose law has no unknown parameter is cut off no earlier than one whose law has.
#[test]
fn counts_with_known_rates_are_summed_far_enough_too() {
    let mut g = GraphBuilder::new();
    let (one, hundred, tenth) = (g.constant(1.0), g.constant(100.0), g.constant(0.1));
    let theta = g.stochastic("theta", Law::Beta { a: one, b: one }, None, None).unwrap();
    g.stochastic("w", Law::Bernoulli { p: theta }, None, Some(1.0)).unwrap();
    let n = g.stochastic("N", Law::Poisson { rate: hundred }, None, None).unwrap();
    g.stochastic("y", Law::Binomial { p: tenth, n }, None, Some(10.0)).unwrap();
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

/// A latent known to lie above a bound says something about its parameters.
#[test]
fn censored_latents_are_observations() {
    let mut g = GraphBuilder::new();
    let one = g.constant(1.0);
    let rate = g.stochastic("rate", Law::Gamma { shape: one, rate: one }, None, None).unwrap();
    let bounds = Bounds { lower: Some(one), upper: None, renormalised: false };
    g.stochastic("t", Law::Exponential { rate }, Some(bounds), None).unwrap();
    let model = g.build().unwrap().model().unwrap();
    assert_eq!(model.latents().len(), 2);
    assert_eq!(model.unconnected().count(), 0);
    hyperprior::check(&model, 3).unwrap();
}

/// Whole numbers are divided exactly.
#[test]
fn quotients_of_whole_numbers_are_exact() {
    let mut g = GraphBuilder::new();
    let weights = numbers(&mut g, &[1.0; 60]);
    let z = g.stochastic("z", Law::Categorical { weights }, None, None).unwrap();
    let (one, three) = (g.constant(1.0), g.constant(3.0));
    let before = g.call(Function::Subtract, &[z, one]);
    let third = g.call(Function::Divide, &[before, three]);
    let row = g.call(Function::Trunc, &[third]);
    g.name("row", row);
    let half = g.constant(0.5);
    g.stochastic("y", Law::Normal { mean: row, precision: half }, None, Some(3.0)).unwrap();
    let model = g.build().unwrap().model_with(&Eliminate::Nothing).unwrap();
    let mut at = Batch::zeros(1, 60);
    for s in 0..60 {
        at.set(0, s, s as f64);
    }
    let (mut out, quantities) = (vec![0.0; 60], model.quantities());
    model.log_joint(&at, &mut out).unwrap();
    let drawn = model.complete(&at, &quantities, 1).unwrap();
    for s in 0..60 {
        let expected = (s / 3) as f64;
        assert_eq!(drawn.get(1, s), expected);
        let density = 0.5 * 0.5_f64.ln() - 0.25 * (expected - 3.0).powi(2) - 0.5 * (2.0 * std::f64::consts::PI).ln();
        assert!((out[s] - density + 60.0_f64.ln()).abs() < 1e-12);
    }
}
