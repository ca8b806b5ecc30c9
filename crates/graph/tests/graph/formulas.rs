//! Random formulas: the graph's value (folded, simplified, compiled to a tape, with latents marginalised) against the same
//! formula calculated step by step.

use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Distribution, Expr, Function, GraphBuilder, GraphModel, Marginalise};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::f64::consts::PI;

#[derive(Clone, Debug)]
enum Formula {
    Constant(f64),
    /// A normal latent.
    Real(usize),
    /// A Bernoulli and a categorical one.
    Switch,
    Label,
    One(Function, Box<Formula>),
    Two(Function, Box<Formula>, Box<Formula>),
    IfElse(Box<[Formula; 3]>),
    /// One of three by the label.
    Select(Box<[Formula; 3]>),
}

const REALS: usize = 3;

/// Values of the latents.
#[derive(Clone, Copy, Debug)]
struct Point {
    reals: [f64; REALS],
    switch: f64,
    label: f64,
}

/// A value and a bound on its rounding error; none if the formula is undefined or too inaccurate.
type Value = Option<(f64, f64)>;

impl Formula {
    /// Evaluates step by step; a factor of zero makes a product zero.
    fn value(&self, at: &Point) -> Value {
        let (x, error) = match self {
            Self::Constant(x) => (*x, 0.0),
            Self::Real(i) => (at.reals[*i], 0.0),
            Self::Switch => (at.switch, 0.0),
            Self::Label => (at.label, 0.0),
            Self::One(f, a) => one(*f, a.value(at)?)?,
            Self::Two(f, a, b) => two(*f, a.value(at)?, b.value(at)?)?,
            Self::IfElse(parts) => {
                let (condition, error) = parts[0].value(at)?;
                let both = (parts[1].value(at)?, parts[2].value(at)?);
                if condition.abs() <= error && error > 0.0 {
                    return None;
                }
                if condition != 0.0 { both.0 } else { both.1 }
            }
            Self::Select(parts) => {
                let all: Option<Vec<_>> = parts.iter().map(|p| p.value(at)).collect();
                all?[at.label as usize - 1]
            }
        };
        let sensible = x == f64::NEG_INFINITY || x.abs() < 1e12;
        (sensible && error < 1e-6 * (1.0 + x.abs())).then_some((x, error))
    }

    fn build(&self, g: &mut GraphBuilder, latents: &(Vec<Expr>, Expr, Expr)) -> Expr {
        match self {
            Self::Constant(x) => g.constant(*x),
            Self::Real(i) => latents.0[*i],
            Self::Switch => latents.1,
            Self::Label => latents.2,
            Self::One(f, a) => {
                let a = a.build(g, latents);
                g.call(*f, &[a])
            }
            Self::Two(f, a, b) => {
                let arguments = [a.build(g, latents), b.build(g, latents)];
                g.call(*f, &arguments)
            }
            Self::IfElse(parts) => {
                let arguments: Vec<Expr> = parts.iter().map(|p| p.build(g, latents)).collect();
                g.call(Function::IfElse, &arguments)
            }
            Self::Select(parts) => {
                let from: Vec<Expr> = parts.iter().map(|p| p.build(g, latents)).collect();
                g.select(latents.2, &from)
            }
        }
    }
}

/// The rounding error of a result, given the error `passed` on by its operands; integers are exact.
fn rounded(x: f64, passed: f64) -> (f64, f64) {
    let exact = passed == 0.0 && x.fract() == 0.0 && x.abs() < 1e6;
    (x, if exact || x.is_infinite() { 0.0 } else { passed + 1e-15 * x.abs() + 1e-300 })
}

fn one(f: Function, (x, error): (f64, f64)) -> Value {
    let close_to_zero = error > 0.0 && x.abs() <= 2.0 * error;
    Some(match f {
        Function::Negate => (-x, error),
        Function::Abs => (x.abs(), error),
        Function::Exp if x < 20.0 => rounded(x.exp(), if x == f64::NEG_INFINITY { 0.0 } else { x.exp() * error }),
        Function::Log if x == 0.0 && error == 0.0 => (f64::NEG_INFINITY, 0.0),
        Function::Log if x > 0.0 && !close_to_zero => rounded(x.ln(), error / x + 1e-15),
        Function::Sqrt if x == 0.0 && error == 0.0 => (0.0, 0.0),
        Function::Sqrt if x > 0.0 && !close_to_zero => rounded(x.sqrt(), error / x.sqrt()),
        Function::InverseLogit if x.is_finite() => rounded(1.0 / (1.0 + (-x).exp()), error + 1e-15),
        Function::Step if x.is_finite() && !close_to_zero => (f64::from(x >= 0.0), 0.0),
        _ => return None,
    })
}

fn two(f: Function, (x, e): (f64, f64), (y, d): (f64, f64)) -> Value {
    let exact_zero = (x == 0.0 && e == 0.0) || (y == 0.0 && d == 0.0);
    let finite = x.is_finite() && y.is_finite();
    let (value, error) = match f {
        Function::Add => rounded(x + y, e + d + 1e-15 * (x.abs() + y.abs()) * f64::from(e + d > 0.0)),
        Function::Subtract => rounded(x - y, e + d + 1e-15 * (x.abs() + y.abs()) * f64::from(e + d > 0.0)),
        Function::Multiply if exact_zero => (0.0, 0.0),
        Function::Multiply if !finite && (e > 0.0 || d > 0.0) => return None,
        Function::Multiply => rounded(x * y, e * y.abs() + d * x.abs()),
        Function::Divide if finite && y.abs() > 1e-3 => rounded(x / y, (e + d * (x / y).abs()) / y.abs()),
        Function::Power if y == y.trunc() && d == 0.0 && y.abs() <= 4.0 && x.abs() > 1e-2 && finite => {
            rounded(x.powf(y), e * (y * x.powf(y - 1.0)).abs() + 1e-14 * x.powf(y).abs())
        }
        Function::Max => (x.max(y), e.max(d)),
        Function::Min => (x.min(y), e.max(d)),
        _ => return None,
    };
    // An infinite value has no rounding error.
    (!value.is_nan()).then_some((value, if finite { error } else { 0.0 }))
}

fn formula() -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![
        prop::sample::select(vec![0.0, 1.0, -1.0, 2.0, 0.5, -1.5, 3.0]).prop_map(Formula::Constant),
        (0..REALS).prop_map(Formula::Real),
        Just(Formula::Switch),
        Just(Formula::Label),
    ];
    let one = prop::sample::select(vec![
        Function::Negate,
        Function::Abs,
        Function::Exp,
        Function::Log,
        Function::Sqrt,
        Function::InverseLogit,
        Function::Step,
    ]);
    let two = prop::sample::select(vec![
        Function::Add,
        Function::Add,
        Function::Subtract,
        Function::Multiply,
        Function::Multiply,
        Function::Divide,
        Function::Power,
        Function::Max,
        Function::Min,
    ]);
    leaf.prop_recursive(6, 40, 3, move |inner| {
        prop_oneof![
            (one.clone(), inner.clone()).prop_map(|(f, a)| Formula::One(f, Box::new(a))),
            (two.clone(), inner.clone(), inner.clone()).prop_map(|(f, a, b)| Formula::Two(f, Box::new(a), Box::new(b))),
            prop::array::uniform3(inner.clone()).prop_map(|p| Formula::IfElse(Box::new(p))),
            prop::array::uniform3(inner).prop_map(|p| Formula::Select(Box::new(p))),
        ]
    })
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![prop::sample::select(vec![0.0, 1.0, -1.0, 2.0]), -3.0..3.0]
}

/// The latents, each with one observation, and the formula as the mean of another and as the logit of a third.
fn model(formula: &Formula, weights: [f64; 3], which: &Marginalise) -> Option<(GraphModel, Option<f64>)> {
    let mut g = GraphBuilder::new();
    let (zero, one, half) = (g.constant(0.0), g.constant(1.0), g.constant(0.5));
    let unit = |mean: Expr| Distribution::Normal { mean, precision: one };
    let mut reals = Vec::new();
    for i in 0..REALS {
        reals.push(g.stochastic(&format!("x[{}]", i + 1), unit(zero), None, None).unwrap());
    }
    let switch = g.stochastic("switch", Distribution::Bernoulli { p: half }, None, None).unwrap();
    let weights = weights.map(|w| g.constant(w)).to_vec();
    let label = g.stochastic("label", Distribution::Categorical { weights }, None, None).unwrap();
    for (i, e) in reals.iter().chain([&switch, &label]).enumerate() {
        g.stochastic(&format!("seen[{}]", i + 1), unit(*e), None, Some(0.0)).unwrap();
    }
    let q = formula.build(&mut g, &(reals, switch, label));
    g.name("q", q);
    let constant = g.value(q);
    if constant.is_none() {
        // Data may be impossible whatever the latents are.
        g.stochastic("y", unit(q), None, Some(0.5)).ok()?;
        let p = g.call(Function::InverseLogit, &[q]);
        g.stochastic("b", Distribution::Bernoulli { p }, None, Some(1.0)).ok()?;
    }
    Some((g.build().unwrap().model_with(which).ok()?, constant))
}

fn batch(points: &[Point]) -> Batch {
    let mut z = Batch::zeros(REALS + 2, points.len());
    for (s, at) in points.iter().enumerate() {
        for i in 0..REALS {
            z.set(i, s, at.reals[i]);
        }
        z.set(REALS, s, at.switch);
        z.set(REALS + 1, s, at.label - 1.0);
    }
    z
}

/// The log joint of `model`, given the formula's value.
fn expected(at: &Point, weights: [f64; 3], q: Option<f64>) -> f64 {
    let unit = |x: f64| -0.5 * x * x - 0.5 * (2.0 * PI).ln();
    let latents: f64 = at.reals.iter().map(|x| 2.0 * unit(*x)).sum();
    let total: f64 = weights.iter().sum();
    let discrete = 0.5_f64.ln() + (weights[at.label as usize - 1] / total).ln() + unit(at.switch) + unit(at.label);
    latents + discrete + q.map_or(0.0, |q| unit(0.5 - q) - (-q).exp().ln_1p())
}

fn close(a: f64, b: f64, error: f64) -> bool {
    a == b || (a - b).abs() <= error
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        max_global_rejects: 1_000_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    /// Catches a simplification that changes a value, and a tape that differs from plain evaluation.
    #[test]
    fn a_graph_evaluates_to_its_formula(
        formula in formula(),
        reals in prop::array::uniform3(real()),
        switch in 0..2_u8,
        label in 1..4_u8,
        weights in prop::sample::select(vec![[0.2, 0.3, 0.5], [0.5, 0.0, 0.5], [0.0, 1.0, 3.0]]),
    ) {
        let at = Point { reals, switch: f64::from(switch), label: f64::from(label) };
        let found = formula.value(&at);
        prop_assume!(found.is_some());
        let (q, error) = found.unwrap();
        let made = model(&formula, weights, &Marginalise::Nothing);
        prop_assume!(made.is_some());
        let (model, constant) = made.unwrap();
        let tolerance = 20.0 * error + 1e-12 * (1.0 + q.abs());
        let z = batch(&[at]);
        let quantities = model.quantities();
        let drawn = model.complete(&z, &quantities, 1).unwrap();
        let named = quantities.iter().position(|k| k.name == "q").map(|k| drawn.get(k, 0));
        let calculated = named.or(constant).unwrap();
        prop_assert!(close(calculated, q, tolerance), "{} for {}", calculated, q);
        let mut log_joint = [0.0];
        model.log_joint(&z, &mut log_joint).unwrap();
        if q.abs() < 30.0 {
            let wanted = expected(&at, weights, constant.is_none().then_some(q));
            let tolerance = (2.0 + q.abs()) * tolerance + 1e-12 * (1.0 + wanted.abs().min(1e9));
            prop_assert!(close(log_joint[0], wanted, tolerance), "{} for {}", log_joint[0], wanted);
        }
    }

    /// Catches marginalisation that differs from summation, with choices by a label, zeros and impossible values.
    #[test]
    fn marginalisation_equals_summation(
        formula in formula(),
        reals in prop::array::uniform3(real()),
        weights in prop::sample::select(vec![[0.2, 0.3, 0.5], [0.5, 0.0, 0.5], [0.0, 1.0, 3.0]]),
    ) {
        let all: Vec<Point> = (0..6)
            .map(|k| Point { reals, switch: f64::from(k % 2), label: f64::from(1 + k / 2) })
            .collect();
        // The formula must be defined for possible labels; its value for impossible ones does not matter.
        let possible = |at: &Point| weights[at.label as usize - 1] > 0.0;
        prop_assume!(all.iter().filter(|at| possible(at)).all(|at| formula.value(at).is_some_and(|q| q.0.abs() < 30.0)));
        let made = (model(&formula, weights, &Marginalise::Nothing), model(&formula, weights, &Marginalise::Auto));
        prop_assume!(made.0.is_some() && made.1.is_some());
        let (whole, marginalised) = (made.0.unwrap().0, made.1.unwrap().0);
        prop_assert_eq!(marginalised.latents().len(), REALS);
        let mut each = vec![0.0; 6];
        whole.log_joint(&batch(&all), &mut each).unwrap();
        let terms: Vec<f64> = all.iter().zip(&each).filter(|(at, _)| possible(at)).map(|(_, x)| *x).collect();
        let top = terms.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let wanted = top + terms.iter().map(|x| (x - top).exp()).sum::<f64>().ln();
        let mut z = Batch::zeros(REALS, 1);
        for i in 0..REALS {
            z.set(i, 0, reals[i]);
        }
        let mut found = [0.0];
        marginalised.log_joint(&z, &mut found).unwrap();
        prop_assert!(close(found[0], wanted, 1e-9 * (1.0 + wanted.abs())), "{} for {}", found[0], wanted);
    }
}
