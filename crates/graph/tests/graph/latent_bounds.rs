//! Bounds that other latents or the data set: every point of the unconstrained space is possible, and the density with its log
//! Jacobian integrates to the evidence.

use super::check;
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Bounds, Distribution, Expr, Function, GraphBuilder, GraphModel, Marginalise};

fn normal(g: &mut GraphBuilder, name: &str) -> Expr {
    let (mean, precision) = (g.constant(0.0), g.constant(1.0));
    g.stochastic(name, Distribution::Normal { mean, precision }, None, None).unwrap()
}

/// b with density b e⁻ᵇ.
fn gamma(g: &mut GraphBuilder, name: &str) -> Expr {
    let (shape, rate) = (g.constant(2.0), g.constant(1.0));
    g.stochastic(name, Distribution::Gamma { shape, rate }, None, None).unwrap()
}

fn observe_uniform(g: &mut GraphBuilder, name: &str, upper: Expr, y: f64) {
    let lower = g.constant(0.0);
    g.stochastic(name, Distribution::Uniform { lower, upper }, None, Some(y)).unwrap();
}

/// The integral of the density over the unconstrained space of one to three latents, on a grid. Fails if a point of the grid is
/// impossible.
fn evidence(g: GraphBuilder) -> f64 {
    let model = check(g.build().unwrap(), &Marginalise::Nothing, 3);
    let dimensions = model.latents().len();
    let (nodes, reach): (usize, f64) = [(40_001, 25.0), (801, 16.0), (121, 9.0)][dimensions - 1];
    let width = 2.0 * reach / (nodes - 1) as f64;
    let total = nodes.pow(dimensions as u32);
    let mut sum = 0.0;
    for first in (0..total).step_by(4096) {
        let len = 4096.min(total - first);
        let mut z = Batch::zeros(dimensions, len);
        for s in 0..len {
            let mut at = first + s;
            for d in 0..dimensions {
                z.set(d, s, -reach + width * (at % nodes) as f64);
                at /= nodes;
            }
        }
        let mut out = vec![0.0; len];
        model.log_joint(&z, &mut out).unwrap();
        assert!(out.iter().all(|x| !x.is_nan()), "an undefined density");
        sum += out.iter().map(|x| x.exp()).sum::<f64>();
    }
    // Far out, differences of nearly equal numbers round to 0.
    assert!(is_possible(&model), "a point near the centre is impossible");
    sum * width.powi(dimensions as i32)
}

/// Whether the density is positive on a grid around the centre.
fn is_possible(model: &GraphModel) -> bool {
    let dimensions = model.latents().len();
    let total = 13_usize.pow(dimensions as u32);
    let mut z = Batch::zeros(dimensions, total);
    for s in 0..total {
        let mut at = s;
        for d in 0..dimensions {
            z.set(d, s, (at % 13) as f64 - 6.0);
            at /= 13;
        }
    }
    let mut out = vec![0.0; total];
    model.log_joint(&z, &mut out).unwrap();
    out.iter().all(|x| x.is_finite())
}

fn assert_evidence(name: &str, g: GraphBuilder, expected: f64) {
    let found = evidence(g);
    assert!((found - expected).abs() < 1e-3 * expected, "{name}: {found}, not {expected}");
}

/// E₁(2), an exponential integral.
const E1_OF_2: f64 = 0.048_900_510_708_061_12;

/// Without the limit that the data set, almost no point is possible and a fit finds no start.
#[test]
fn a_uniform_reaches_beyond_its_data() {
    let mut g = GraphBuilder::new();
    let b = gamma(&mut g, "b");
    observe_uniform(&mut g, "y[1]", b, 2.0);
    observe_uniform(&mut g, "y[2]", b, 0.5);
    // ∫₂^∞ b e⁻ᵇ b⁻² db.
    assert_evidence("two", g, E1_OF_2);
}

/// The end of the outer uniform must reach beyond the data too: a limit on one latent is handed on to those above it.
#[test]
fn limits_are_handed_on() {
    let mut g = GraphBuilder::new();
    let b = gamma(&mut g, "b");
    let lower = g.constant(0.0);
    let x = g.stochastic("x", Distribution::Uniform { lower, upper: b }, None, None).unwrap();
    observe_uniform(&mut g, "y", x, 2.0);
    // ∫₂^∞ b e⁻ᵇ ∫₂ᵇ 1/(b x) dx db = ∫₂^∞ e⁻ᵇ log(b / 2) db.
    assert_evidence("nested", g, E1_OF_2);
}

/// Both ends depend on both latents.
#[test]
fn a_uniform_around_a_latent() {
    let mut g = GraphBuilder::new();
    let (m, one, half) = (normal(&mut g, "m"), g.constant(1.0), g.constant(0.5));
    let w = g.stochastic("w", Distribution::Exponential { rate: one }, None, None).unwrap();
    let arm = g.multiply(w, half);
    let (lower, upper) = (g.call(Function::Subtract, &[m, arm]), g.add(m, arm));
    for (name, y) in [("y[1]", -0.3), ("y[2]", 0.4)] {
        g.stochastic(name, Distribution::Uniform { lower, upper }, None, Some(y)).unwrap();
    }
    // ∫ φ(m) ∫ e⁻ʷ w⁻² dw dm over w ≥ 2 max(m + 0.3, 0.4 − m), by the midpoint rule.
    let tail =
        |from: f64| (0..4000).map(|k| from + 0.005 * (f64::from(k) + 0.5)).map(|w| (-w).exp() / (w * w)).sum::<f64>();
    let expected: f64 = (0..1600)
        .map(|k| -8.0 + 0.01 * (f64::from(k) + 0.5))
        .map(|m| {
            (-0.5 * m * m).exp() / (2.0 * std::f64::consts::PI).sqrt() * tail(2.0 * (m + 0.3).max(0.4 - m)) * 0.005
        })
        .sum::<f64>()
        * 0.01;
    assert_evidence("around", g, expected);
}

/// The data lie above a random truncation bound.
#[test]
fn a_truncation_bound_below_the_data() {
    let mut g = GraphBuilder::new();
    let a = normal(&mut g, "a");
    let (mean, precision) = (g.constant(0.0), g.constant(1.0));
    let bounds = Bounds { lower: Some(a), upper: None, renormalised: true };
    g.stochastic("y", Distribution::Normal { mean, precision }, Some(bounds), Some(0.5)).unwrap();
    // ∫ φ(a) φ(½) / (1 − Φ(a)) da up to ½ is −φ(½) log(1 − Φ(½)).
    assert_evidence("truncated", g, 0.352_065_326_764_299_5 * 1.175_911_761_593_618_8);
}

#[test]
fn a_random_cut_point_of_a_censored_time() {
    let mut g = GraphBuilder::new();
    let (cut, time) = (normal(&mut g, "cut"), normal(&mut g, "time"));
    g.stochastic("beyond", Distribution::Interval { time, cuts: vec![cut] }, None, Some(1.0)).unwrap();
    assert_evidence("censored", g, 0.5);
    // The time is known, the cut point is not: Φ(−0.3) of the cut points lie beyond it.
    let mut g = GraphBuilder::new();
    let (cut, time) = (normal(&mut g, "cut"), g.constant(0.3));
    g.stochastic("beyond", Distribution::Interval { time, cuts: vec![cut] }, None, Some(0.0)).unwrap();
    assert_evidence("known time", g, 0.382_088_577_811_047_3);
}

/// `one ~ dbern(step(a - b))`, in the ways that people write it: each order of n latents has probability 1/n!.
#[test]
fn the_ones_trick_orders_latents() {
    type Condition = fn(&mut GraphBuilder, [Expr; 3]) -> Expr;
    let step = |g: &mut GraphBuilder, a: Expr, b: Expr| {
        let difference = g.call(Function::Subtract, &[a, b]);
        g.call(Function::Step, &[difference])
    };
    let mut g = GraphBuilder::new();
    let (a, b) = (normal(&mut g, "a"), normal(&mut g, "b"));
    let p = step(&mut g, a, b);
    g.stochastic("one", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    assert_evidence("step", g, 0.5);
    let three: [(&str, Condition); 3] = [
        ("and", |g, [a, b, c]| {
            let (ab, bc) = (g.call(Function::Greater, &[a, b]), g.call(Function::Greater, &[b, c]));
            g.call(Function::And, &[ab, bc])
        }),
        ("product", |g, [a, b, c]| {
            let (ab, bc) = (g.call(Function::GreaterEqual, &[b, a]), g.call(Function::LessEqual, &[b, c]));
            g.multiply(ab, bc)
        }),
        // c, the last, lies between the others, which orders those.
        ("between", |g, [a, b, c]| {
            let (ac, cb) = (g.call(Function::Less, &[a, c]), g.call(Function::Less, &[c, b]));
            g.multiply(ac, cb)
        }),
    ];
    for (name, condition) in three {
        let mut g = GraphBuilder::new();
        let latents = [normal(&mut g, "a"), normal(&mut g, "b"), normal(&mut g, "c")];
        let p = condition(&mut g, latents);
        g.stochastic("one", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
        assert_evidence(name, g, 1.0 / 6.0);
    }
}

/// A positive latent above a bound that may be negative: the tighter of the two counts, and the density is divided by the
/// right constant.
#[test]
fn of_two_lower_bounds_the_larger_counts() {
    type Make = fn(&mut GraphBuilder) -> Distribution;
    let distributions: [(&str, Make); 6] = [
        ("exponential", |g| Distribution::Exponential { rate: g.constant(1.0) }),
        ("gamma", |g| Distribution::Gamma { shape: g.constant(2.0), rate: g.constant(1.0) }),
        ("inverse gamma", |g| Distribution::InverseGamma { shape: g.constant(3.0), scale: g.constant(2.0) }),
        ("log-normal", |g| Distribution::LogNormal { mean: g.constant(0.0), precision: g.constant(1.0) }),
        ("Weibull", |g| Distribution::Weibull { shape: g.constant(1.5), rate: g.constant(1.0) }),
        ("half-flat", |_| Distribution::HalfFlat),
    ];
    for (name, make) in distributions {
        let mut g = GraphBuilder::new();
        let (a, distribution, nine) = (normal(&mut g, "a"), make(&mut g), g.constant(9.0));
        let upper = (name == "half-flat").then_some(nine);
        let bounds = Bounds { lower: Some(a), upper, renormalised: true };
        let x = g.stochastic("x", distribution, Some(bounds), None).unwrap();
        let share = g.call(Function::Phi, &[x]);
        let total: f64 = [0.0, 1.0]
            .map(|y| {
                let mut g = g.clone();
                g.stochastic("y", Distribution::Bernoulli { p: share }, None, Some(y)).unwrap();
                evidence(g)
            })
            .iter()
            .sum();
        assert!((total - 1.0).abs() < 2e-3, "{name}: {total}");
    }
}

/// The data contradict the prior: said before the fit, with the two numbers.
#[test]
fn a_latent_without_a_possible_value() {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let b = g.stochastic("b", Distribution::Uniform { lower: zero, upper: one }, None, None).unwrap();
    observe_uniform(&mut g, "y", b, 2.0);
    let error = g.build().unwrap().model().unwrap_err().to_string();
    assert_eq!(error, "`b`: no value is possible: by its distribution and by the data it must be above 2 and below 1");
}

/// `dflat() T(0,)` is the flat distribution above 0; with two bounds it is uniform.
#[test]
fn a_flat_distribution_between_bounds() {
    let build = |lower: Option<f64>, upper: Option<f64>, flat: Distribution| {
        let mut g = GraphBuilder::new();
        let end = |g: &mut GraphBuilder, x: Option<f64>| x.map(|x| g.constant(x));
        let bounds = Bounds { lower: end(&mut g, lower), upper: end(&mut g, upper), renormalised: true };
        let s = g.stochastic("s", flat, Some(bounds), None).unwrap();
        let precision = g.constant(1.0);
        g.stochastic("y", Distribution::Normal { mean: s, precision }, None, Some(0.0)).unwrap();
        g
    };
    assert_evidence("above", build(Some(0.0), None, Distribution::Flat), 0.5);
    assert_evidence("below", build(None, Some(0.0), Distribution::Flat), 0.5);
    // (Φ(2) − Φ(0)) / 2.
    assert_evidence("between", build(Some(0.0), Some(2.0), Distribution::Flat), 0.477_249_868_051_820_8 / 2.0);
    assert_evidence("half", build(Some(-1.0), Some(2.0), Distribution::HalfFlat), 0.477_249_868_051_820_8 / 2.0);
}
