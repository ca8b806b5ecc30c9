//! Semantics of programs: their quantities and densities against calculations by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Compiled, Data, Dialect, Options, compile, render};
use hyperprior_graph::{
    Bounds, Distribution, Expr, Function, Graph, GraphBuilder, GraphModel, Marginalise, VectorDistribution,
};
use std::collections::BTreeMap;

fn compiled(source: &str, data: &str, options: &Options) -> Compiled {
    let data = read(data, Format::RDump).unwrap_or_else(|e| panic!("{e}"));
    compile(source, "model", &data, options).unwrap_or_else(|e| panic!("{}", render(&e, "model", source, false)))
}

fn model(graph: Graph) -> GraphModel {
    graph.model_with(&Marginalise::Nothing).unwrap_or_else(|e| panic!("{e}"))
}

/// The quantities of a program at given values of its latents, all of them normal, so that their coordinates are their values.
fn calculated(source: &str, data: &str, latents: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let model = model(compiled(source, data, &Options::default()).graph);
    let mut z = Batch::zeros(model.latents().len(), 1);
    for i in 0..model.latents().len() {
        let name = model.latents().name(i);
        let (_, x) = latents.iter().find(|(other, _)| *other == name).unwrap_or_else(|| panic!("no value for {name}"));
        z.set(i, 0, *x);
    }
    let quantities = model.quantities();
    let values = model.complete(&z, &quantities, 1).unwrap();
    quantities.into_iter().enumerate().map(|(k, q)| (q.name, values.get(k, 0))).collect()
}

/// Three normal latents a[1], a[2], a[3], tied to data, and the quantity `x` as written.
fn value(expression: &str) -> Vec<f64> {
    let source = format!("model {{ for (i in 1:3) {{ a[i] ~ dnorm(0, 1) y[i] ~ dnorm(a[i], 1) }} x <- {expression} }}");
    let data = "y <- c(0, 0, 0)\nd <- c(3, 1, 2)\nR <- structure(c(2, 0.5, 0.5, 1), .Dim = c(2, 2))\nn <- 2";
    let found = calculated(&source, data, &[("a[1]", 0.7), ("a[2]", -0.4), ("a[3]", 1.5)]);
    found.into_iter().filter(|(name, _)| name == "x" || name.starts_with("x[")).map(|(_, x)| x).collect()
}

fn assert_value(expression: &str, expected: &[f64]) {
    let found = value(expression);
    let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-12 * (1.0 + y.abs());
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(close),
        "{expression} is {found:?}, not {expected:?}"
    );
}

const A: [f64; 3] = [0.7, -0.4, 1.5];

#[test]
fn arithmetic() {
    assert_value("-a[1]^2", &[-0.49]);
    assert_value("a[1] - a[2] - a[3]", &[0.7 + 0.4 - 1.5]);
    assert_value("a[1] / 2 * a[3]", &[0.7 / 2.0 * 1.5]);
    assert_value("2^3^2 + a[1]", &[512.7]);
    assert_value("7 / 2 + a[1]", &[4.2]);
    // A factor of zero makes a product zero, whatever the other factor.
    assert_value("0 * log(0) + a[1]", &[0.7]);
    assert_value("step(a[2]) * log(0) + a[1]", &[0.7]);
    assert_value("step(a[2]) * log(step(a[2])) + a[1]", &[0.7]);
    assert_value("step(a[2]) * log(a[2]) + a[1]", &[0.7]);
    assert_value("(a[1] > 0) + 2 * (a[2] >= 0) + 4 * (a[3] == a[3])", &[5.0 - 0.0]);
    assert_value("ifelse(a[1] < 0 || !(a[2] > 0) && a[3] != 1, a[1], a[2])", &[0.7]);
    assert_value("step(a[2]) + equals(a[1], a[1]) + a[1]", &[1.7]);
    assert_value("pow(a[2], 2) + a[2]^3", &[0.16 - 0.064]);
    assert_value("0 * log(0) + a[1]", &[0.7]);
    assert_value(
        "exp(a[1]) + log(a[3]) + sqrt(a[3]) + abs(a[2])",
        &[0.7_f64.exp() + 1.5_f64.ln() + 1.5_f64.sqrt() + 0.4],
    );
    assert_value("log10(a[3]) + log10(1000)", &[1.5_f64.log10() + 3.0]);
    assert_value("pi * a[1]", &[std::f64::consts::PI * 0.7]);
    assert_value("round(a[3] * 1.1) + trunc(a[3] * 1.1)", &[3.0]);
}

/// The formulas suggested for `floor` and `ceiling` are right below zero too.
#[test]
fn floor_and_ceiling() {
    let x = "c(2.5 * a[2], a[2], a[3], a[3] - 2, 5 * a[2], 2 * a[3])";
    let values = [-1.0, -0.4, 1.5, -0.5, -2.0, 3.0_f64];
    assert_value(&format!("trunc({x}) - ({x} < trunc({x}))"), &values.map(f64::floor));
    assert_value(&format!("trunc({x}) + ({x} > trunc({x}))"), &values.map(f64::ceil));
    for (name, formula) in [("floor", "trunc(x) - (x < trunc(x))"), ("ceiling", "trunc(x) + (x > trunc(x))")] {
        let source = format!("model {{ y <- {name}(1) }}");
        let errors = compile(&source, "model", &Data::default(), &Options::default()).unwrap_err();
        assert_eq!(errors[0].hint.as_deref(), Some(format!("did you mean `{formula}`?").as_str()));
    }
}

#[test]
fn reductions() {
    let mean = A.iter().sum::<f64>() / 3.0;
    let variance = A.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2.0;
    assert_value("sum(a[])", &[1.8]);
    assert_value("sum(a[2:3], 1)", &[2.1]);
    assert_value("prod(a)", &[0.7 * -0.4 * 1.5]);
    assert_value("mean(a[]) + 0", &[mean]);
    assert_value("sd(a[])", &[variance.sqrt()]);
    assert_value("min(a[]) + max(a[], 9)", &[8.6]);
    assert_value("inprod(a[], d[])", &[3.0 * 0.7 - 0.4 + 3.0]);
    assert_value("a[1] + length(a) + length(d[1:2])", &[5.7]);
    assert_value("sum(dim(R)) + a[1]", &[4.7]);
}

#[test]
fn vectors_and_matrices() {
    assert_value("a[] + d[]", &[3.7, 0.6, 3.5]);
    assert_value("2 * a[1:2] - 1", &[0.4, -1.8]);
    assert_value("exp(a[])", &A.map(f64::exp));
    assert_value("c(a[1], 2 * a[2])", &[0.7, -0.8]);
    assert_value("rep(a[1:2], n)", &[0.7, -0.4, 0.7, -0.4]);
    assert_value("R[,] %*% a[1:2]", &[1.4 - 0.2, 0.35 - 0.4]);
    assert_value("a[1:2] %*% R", &[1.4 - 0.2, 0.35 - 0.4]);
    assert_value("a[1:2] %*% R[,] %*% a[1:2]", &[2.0 * 0.49 - 2.0 * 0.5 * 0.28 + 0.16]);
    assert_value("a[] %*% a[]", &[0.49 + 0.16 + 2.25]);
    assert_value("a[1] + logdet(R[,])", &[0.7 + 1.75_f64.ln()]);
    assert_value("a[1] * inverse(R)", &[0.7 / 1.75, -0.35 / 1.75, -0.35 / 1.75, 1.4 / 1.75]);
    // Upper triangular, as in R and NIMBLE; x[2, 1] is 0 and not reported.
    assert_value("a[1] * chol(R)", &[0.7 * 2.0_f64.sqrt(), 0.35 / 2.0_f64.sqrt(), 0.7 * 0.875_f64.sqrt()]);
    assert_value("a[1] * t(R[1:2, c(2, 1)])", &[0.35, 0.7, 1.4, 0.35]);
}

/// Catches a name of the program that is taken for the constant.
#[test]
fn pi_can_be_a_variable() {
    let found = calculated("model { a ~ dnorm(0, 1) y ~ dnorm(a, 1) x <- a * pi }", "y <- 0\npi <- 3", &[("a", 0.5)]);
    assert_eq!(found["x"], 1.5);
}

/// The densities of distributions that are written with others.
#[test]
fn the_half_cauchy_density() {
    let density = |prior: &str, s: f64| {
        let source = format!("model {{ s ~ {prior} y ~ dnorm(s, 1) }}");
        model(compiled(&source, "y <- 0", &Options::default()).graph).log_density(&[s]).unwrap()
    };
    for s in [0.3_f64, 2.0, 7.0] {
        let likelihood = -0.5 * s * s - 0.5 * (2.0 * std::f64::consts::PI).ln();
        // 2 / (π · 2.5 · (1 + (s / 2.5)²)).
        let cauchy = (2.0 / (std::f64::consts::PI * 2.5 * (1.0 + (s / 2.5).powi(2)))).ln();
        assert!((density("dhalfcauchy(2.5)", s) - likelihood - cauchy).abs() < 1e-12);
        // Up to 10 lies the share (2 / π) arctan(4).
        let share = (2.0 / std::f64::consts::PI * 4.0_f64.atan()).ln();
        assert!((density("dhalfcauchy(2.5) T(, 10)", s) - likelihood - cauchy + share).abs() < 1e-9);
        assert!((density("dhalfcauchy(2.5) T(-1, 10)", s) - likelihood - cauchy + share).abs() < 1e-9);
        assert!((density("dflat() T(0,)", s) - likelihood).abs() < 1e-12);
    }
}

/// A matrix is made a vector by column, the first index fastest; JAGS 4.3.1 gives these numbers.
#[test]
fn matrices_become_vectors_by_column() {
    let data = "given.m <- structure(1:6, .Dim = c(3, 2))\ngiven.w <- structure(1:8, .Dim = c(2, 2, 2))\ny <- 0";
    let found = |expression: &str| {
        let source =
            format!("model {{ a ~ dnorm(0, 1) y ~ dnorm(a, 1) m <- a * given.m w <- a * given.w x <- {expression} }}");
        let found = calculated(&source, data, &[("a", 1.0)]);
        let mut x: Vec<(String, f64)> = found.into_iter().filter(|(name, _)| name.starts_with('x')).collect();
        x.sort_by_key(|(name, _)| name[1..].trim_matches(['[', ']']).parse::<usize>().unwrap_or(0));
        x.into_iter().map(|(_, x)| x).collect::<Vec<_>>()
    };
    let cases: [(&str, &[f64]); 9] = [
        ("c(m, 7 * a)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
        ("c(t(m))", &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        ("c(w)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        ("c(w[2,,])", &[2.0, 4.0, 6.0, 8.0]),
        ("rep(m[1:2,], 2)", &[1.0, 2.0, 4.0, 5.0, 1.0, 2.0, 4.0, 5.0]),
        ("rep(m, c(1, 2, 0, 0, 1, 0))", &[1.0, 2.0, 2.0, 5.0]),
        ("rank(t(m))", &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]),
        ("order(t(m))", &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]),
        ("inprod(c(1, 2, 3, 4, 5, 6), m)", &[91.0]),
    ];
    for (expression, expected) in cases {
        assert_eq!(found(expression), expected, "{expression}");
    }
}

/// Extents of length 1 are ignored in a definition, as in JAGS.
#[test]
fn sides_agree_without_extents_of_one() {
    let data = "given.m <- structure(1:6, .Dim = c(3, 2))\ngiven.r <- structure(1:3, .Dim = c(1, 3))\ny <- 0";
    for (relation, element, expected) in [
        ("x[1, 1:3] <- m[1:3, 2]", "x[1,3]", 6.0),
        ("x[1:3] <- r[1, 1:3]", "x[2]", 2.0),
        ("x[1:3] <- r", "x[2]", 2.0),
        ("x[1:3, 1, 1:2] <- m", "x[2,1,2]", 5.0),
        ("x[1:2, 1:3] <- t(m[1:3, 1:2])", "x[2,1]", 4.0),
    ] {
        let source = format!(
            "var r[1, 3]; model {{ a ~ dnorm(0, 1) y ~ dnorm(a, 1) m <- a * given.m r <- a * given.r {relation} }}"
        );
        assert_eq!(calculated(&source, data, &[("a", 1.0)])[element], expected, "{relation}");
    }
}

#[test]
fn order() {
    assert_value("sort(a[])", &[-0.4, 0.7, 1.5]);
    assert_value("rank(a[])", &[2.0, 1.0, 3.0]);
    assert_value("order(a[])", &[2.0, 1.0, 3.0]);
    assert_value("rank(a[], 3) + ranked(a[], 1)", &[2.6]);
    assert_value("a[1] * sort(d)", &[0.7, 1.4, 2.1]);
    assert_value("a[1] * rank(d)", &[2.1, 0.7, 1.4]);
    assert_value("a[1] * order(d)", &[1.4, 2.1, 0.7]);
    assert_value("interp.lin(a[1], c(0, 1, 2), c(0, 10, 0))", &[7.0]);
    assert_value("interp.lin(a[2], c(0, 1, 2), c(5, 10, 0))", &[5.0]);
    assert_value("interp.lin(a[3], c(0, 1, 2), c(5, 10, 0))", &[5.0]);
    assert_value("pnorm(a[1], 0.7, 4)", &[0.5]);
}

#[test]
fn links_are_inverted() {
    let found = calculated(
        "model { y ~ dnorm(a, 1) a ~ dnorm(0, 1) log(b) <- a; logit(c) = a; probit(d) <- a; cloglog(e) <- a }",
        "y <- 1",
        &[("a", 0.3)],
    );
    assert!((found["b"] - 0.3_f64.exp()).abs() < 1e-12);
    assert!((found["c"] - 1.0 / (1.0 + (-0.3_f64).exp())).abs() < 1e-12);
    assert!((found["d"] - 0.617_911_422_188_952_6).abs() < 1e-12);
    assert!((found["e"] - (1.0 - (-0.3_f64.exp()).exp())).abs() < 1e-12);
}

#[test]
fn elements_are_named_as_they_are_written() {
    let source = "var m[2, 2]; model { for (i in 1:2) { for (j in 1:2) { m[i, j] <- a + i * j } } v[1] <- a w <- a
                  y ~ dnorm(a, 1) a ~ dnorm(0, 1) }";
    let found = calculated(source, "y <- 0", &[("a", 0.5)]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "m[1,1]", "m[1,2]", "m[2,1]", "m[2,2]", "v[1]", "w"]);
    assert_eq!(found["m[2,1]"], 2.5);
}

/// The two graphs have the same latents and the same log joint at many points.
fn assert_same(source: &str, data: &str, options: &Options, by_hand: GraphBuilder) {
    let found = model(compiled(source, data, options).graph);
    let expected = model(by_hand.build().unwrap());
    let names = |m: &GraphModel| (0..m.latents().len()).map(|i| m.latents().name(i)).collect::<Vec<_>>();
    let columns: Vec<usize> = names(&found)
        .iter()
        .map(|name| {
            names(&expected).iter().position(|other| other == name).unwrap_or_else(|| panic!("{name} is not by hand"))
        })
        .collect();
    assert_eq!(columns.len(), names(&expected).len(), "{:?} and {:?}", names(&found), names(&expected));
    const DRAWS: usize = 40;
    let (mut z, mut z_expected) = (Batch::zeros(columns.len(), DRAWS), Batch::zeros(columns.len(), DRAWS));
    for (i, &column) in columns.iter().enumerate() {
        for s in 0..DRAWS {
            // Points spread over the real line, and over the small integers.
            let u = ((s * 7 + i * 3) % 11) as f64 / 11.0;
            let x = match found.latents().support(i) {
                hyperprior::model::Support::Integers { lower, upper } => lower + (u * (upper - lower + 1.0)).floor(),
                hyperprior::model::Support::Counts => (6.0 * u).floor(),
                _ => 2.0 * u - 1.0,
            };
            z.set(i, s, x);
            z_expected.set(column, s, x);
        }
    }
    let (mut a, mut b) = (vec![0.0; DRAWS], vec![0.0; DRAWS]);
    found.log_joint(&z, &mut a).unwrap();
    expected.log_joint(&z_expected, &mut b).unwrap();
    assert!(a.iter().any(|x| x.is_finite()), "no draw is possible: {a:?}");
    for (x, y) in a.iter().zip(&b) {
        assert!(x == y || (x - y).abs() < 1e-10 * (1.0 + y.abs()), "{x} and {y}");
    }
}

fn numbers(g: &mut GraphBuilder, x: &[f64]) -> Vec<Expr> {
    x.iter().map(|x| g.constant(*x)).collect()
}

#[test]
fn a_random_index() {
    let mut g = GraphBuilder::new();
    let p = numbers(&mut g, &[0.2, 0.3, 0.5]);
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let mu: Vec<Expr> = (1..=3)
        .map(|k| {
            g.stochastic(&format!("mu[{k}]"), Distribution::Normal { mean: zero, precision: one }, None, None).unwrap()
        })
        .collect();
    for (i, y) in [0.5, -1.0].into_iter().enumerate() {
        let z = g
            .stochastic(&format!("z[{}]", i + 1), Distribution::Categorical { weights: p.clone() }, None, None)
            .unwrap();
        let mean = g.select(z, &mu);
        g.stochastic(&format!("y[{}]", i + 1), Distribution::Normal { mean, precision: one }, None, Some(y)).unwrap();
    }
    let source = "model { for (i in 1:2) { y[i] ~ dnorm(mu[z[i]], 1) z[i] ~ dcat(p[]) } for (k in 1:3) { mu[k] ~ dnorm(0, 1) } }";
    assert_same(source, "y <- c(0.5, -1)\np <- c(0.2, 0.3, 0.5)", &Options::default(), g);
}

#[test]
fn two_random_indices() {
    let table = [0.1, 0.4, 0.3, 0.8, 0.2, 0.6];
    let mut g = GraphBuilder::new();
    let eta = numbers(&mut g, &table);
    let (w2, w3) = (numbers(&mut g, &[1.0, 2.0]), numbers(&mut g, &[1.0, 1.0, 3.0]));
    let i = g.stochastic("i", Distribution::Categorical { weights: w2 }, None, None).unwrap();
    let j = g.stochastic("j", Distribution::Categorical { weights: w3 }, None, None).unwrap();
    // By hand, one index after the other.
    let rows: Vec<Expr> = eta.chunks(3).map(|row| g.select(j, row)).collect();
    let p = g.select(i, &rows);
    g.stochastic("y", Distribution::Bernoulli { p }, None, Some(1.0)).unwrap();
    let data =
        "y <- 1\nw2 <- c(1, 2)\nw3 <- c(1, 1, 3)\neta <- structure(c(0.1, 0.8, 0.4, 0.2, 0.3, 0.6), .Dim = c(2, 3))";
    assert_same("model { y ~ dbern(eta[i, j]) i ~ dcat(w2[]) j ~ dcat(w3[]) }", data, &Options::default(), g);
}

/// The log density of y = 1 given `relations`, at values of the latents by name, and with the latents marginalised.
fn density_at(relations: &str, latents: &[(&str, f64)]) -> (f64, f64) {
    let data = "y <- 1\nw2 <- c(1, 1)\nw3 <- c(1, 1, 2)\neta <- structure(c(0.1, 0.8, 0.4, 0.2), .Dim = c(2, 2))";
    let source = format!("model {{ y ~ dbern(p) i ~ dcat(w2[]) j ~ dcat(w3[]) {relations} }}");
    let graph = || compiled(&source, data, &Options::default()).graph;
    let kept = model(graph());
    let order: Vec<String> = kept.graph().latent_names().map(str::to_owned).collect();
    let values: Vec<f64> =
        order.iter().map(|name| latents.iter().find(|(other, _)| other == name).unwrap().1).collect();
    let summed = graph().model().unwrap();
    assert_eq!(summed.latents().len(), 0);
    let mut total = [0.0];
    summed.log_joint(&Batch::zeros(0, 1), &mut total).unwrap();
    (kept.log_density(&values).unwrap(), total[0])
}

/// An index outside its dimension is impossible; it never reads from the next row.
#[test]
fn random_indices_outside_the_table() {
    let prior = |j: f64| (0.5 * if j == 3.0 { 0.5 } else { 0.25_f64 }).ln();
    let table = [[0.1, 0.4], [0.8, 0.2]];
    for relations in ["p <- eta[i, j]", "p <- eta[3 - i, j]", "p <- eta[i, j] * (j < 3)"] {
        let mut all = 0.0;
        for i in [1.0, 2.0] {
            for j in [1.0, 2.0, 3.0] {
                let row = if relations.contains("3 - i") { 2 - i as usize } else { i as usize - 1 };
                let p: f64 = if j < 3.0 { table[row][j as usize - 1] } else { 0.0 };
                let exact = prior(j) + p.ln();
                let (found, _) = density_at(relations, &[("i", i), ("j", j)]);
                assert!(
                    found == exact || (found - exact).abs() < 1e-12,
                    "{relations} at {i}, {j}: {found} not {exact}"
                );
                all += exact.exp();
            }
        }
        let (_, total) = density_at(relations, &[("i", 1.0), ("j", 1.0)]);
        assert!((total - all.ln()).abs() < 1e-12, "{relations}: {total} not {}", all.ln());
    }
    // A choice that does not use the element is unaffected.
    let relations = "p <- ifelse(j < 3, eta[i, j], 0.5)";
    let (found, _) = density_at(relations, &[("i", 2.0), ("j", 3.0)]);
    assert!((found - prior(3.0) - 0.5_f64.ln()).abs() < 1e-12, "{found}");
    // One index, an unbounded count.
    let relations = "p <- w[k + 1] k ~ dpois(2) w[1] <- 0.3 w[2] <- 0.6";
    for (k, p) in [(0.0, 0.3), (1.0, 0.6), (2.0, 0.0), (40.0, 0.0)] {
        let (found, total) = density_at(relations, &[("i", 1.0), ("j", 1.0), ("k", k)]);
        let exact = prior(1.0) + k * 2.0_f64.ln() - 2.0 + f64::ln(p);
        assert!(found == exact || (found - exact).abs() < 1e-12, "{k}: {found} not {exact}");
        assert!((total - (0.3_f64 + 1.2).ln() + 2.0).abs() < 1e-12, "{total}");
    }
}

#[test]
fn a_row_of_a_table_by_a_random_index() {
    let mut g = GraphBuilder::new();
    let w = numbers(&mut g, &[0.5, 0.5]);
    let c = g.stochastic("c", Distribution::Categorical { weights: w }, None, None).unwrap();
    let table = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]];
    let weights: Vec<Expr> = (0..3)
        .map(|k| {
            let column = numbers(&mut g, &[table[0][k], table[1][k]]);
            g.select(c, &column)
        })
        .collect();
    g.stochastic("y", Distribution::Categorical { weights }, None, Some(3.0)).unwrap();
    let data = "y <- 3\nw <- c(0.5, 0.5)\ntheta <- structure(c(9, 0.1, 9, 0.3, 9, 0.2, 9, 0.3, 9, 0.7, 9, 0.4), .Dim = c(2, 2, 3))\nr <- 2";
    assert_same("model { y ~ dcat(theta[r, c, ]) c ~ dcat(w[]) }", data, &Options::default(), g);
}

#[test]
fn vector_distributions() {
    let mut g = GraphBuilder::new();
    let ones = numbers(&mut g, &[1.0, 1.0]);
    let identity = numbers(&mut g, &[1.0, 0.0, 0.0, 1.0]);
    let (three, five) = (g.constant(3.0), g.constant(5.0));
    let names = |stem: &str| [format!("{stem}[1]"), format!("{stem}[2]")];
    let p = g.stochastic_vector(&names("p"), VectorDistribution::Dirichlet { alpha: ones.clone() }, None).unwrap();
    g.stochastic_vector(&names("x"), VectorDistribution::Multinomial { p, n: five }, Some(&[2.0, 3.0])).unwrap();
    let matrix = [[1, 1], [1, 2], [2, 1], [2, 2]].map(|[i, j]| format!("omega[{i},{j}]"));
    let omega =
        g.stochastic_vector(&matrix, VectorDistribution::Wishart { scale: identity.clone(), df: three }, None).unwrap();
    let distribution = VectorDistribution::MultivariateNormal { mean: ones, precision: omega };
    g.stochastic_vector(&names("b"), distribution, Some(&[0.5, 2.0])).unwrap();
    let source = "var omega[2, 2]; model { p ~ ddirch(ones[]) x[] ~ dmulti(p[], 5) omega[,] ~ dwish(R[,], 3) b[1:2] ~ dmnorm(ones, omega) }";
    let data = "ones <- c(1, 1)\nR <- structure(c(1, 0, 0, 1), .Dim = c(2, 2))\nx <- c(2, 3)\nb <- c(0.5, 2)";
    assert_same(source, data, &Options::default(), g);
}

#[test]
fn truncation_and_censoring() {
    let build = |renormalised: bool| {
        let mut g = GraphBuilder::new();
        let (zero, one) = (g.constant(0.0), g.constant(1.0));
        let mu = g.stochastic("mu", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
        let bounds = Bounds { lower: Some(zero), upper: None, renormalised };
        let x = g.stochastic("x", Distribution::Normal { mean: mu, precision: one }, Some(bounds), None).unwrap();
        g.stochastic("y", Distribution::Poisson { rate: x }, None, Some(2.0)).unwrap();
        g
    };
    let source = |kind: &str| format!("model {{ mu ~ dnorm(0, 1) x ~ dnorm(mu, 1) {kind}(0, ) y ~ dpois(x) }}");
    let openbugs = Options { dialect: Dialect::OpenBugs, ..Options::default() };
    assert_same(&source("T"), "y <- 2", &Options::default(), build(true));
    assert_same(&source("C"), "y <- 2", &openbugs, build(false));
    assert_same(&source("I"), "y <- 2", &openbugs, build(false));
}

/// y[1], y[2] ~ N(mu, 1) with these values, mu ~ N(0, 1).
fn normal_mean(y: [f64; 2], name: &str) -> GraphBuilder {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let mu = g.stochastic("mu", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    for (i, y) in y.into_iter().enumerate() {
        g.stochastic(&format!("{name}[{}]", i + 1), Distribution::Normal { mean: mu, precision: one }, None, Some(y))
            .unwrap();
    }
    g
}

#[test]
fn a_data_block_makes_data() {
    let source = "data { for (i in 1:n) { z[i] <- log(y[i]) } n <- length(y) m <- mean(z[]) }
                  model { for (i in 1:n) { z[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) s <- mu + m }";
    assert_same(source, "y <- c(1, 2)", &Options::default(), normal_mean([0.0, 2.0_f64.ln()], "z"));
}

#[test]
fn a_data_block_may_simulate() {
    let source =
        "data { for (i in 1:50) { y[i] ~ dnorm(m, 100) } m <- 3 z[1:2] ~ dmulti(p[], 4) s <- sum(z[]) + y[1] - y[1] }
                  model { for (i in 1:50) { y[i] ~ dnorm(mu, 100) } mu ~ dnorm(0, 1) k ~ dpois(s * exp(mu)) }";
    let found = compiled(source, "p <- c(0.5, 0.5)\nk <- 2", &Options::default());
    assert_eq!((found.observed, found.latent), (51, 1));
    // 50 draws with standard deviation 0.1 around 3: the likelihood is highest near 3, and far lower at 2 and 4.
    let model = model(found.graph);
    let mut z = Batch::zeros(1, 3);
    (0..3).for_each(|s| z.set(0, s, 2.0 + s as f64));
    let mut log_joint = [0.0; 3];
    model.log_joint(&z, &mut log_joint).unwrap();
    assert!(log_joint[1] > log_joint[0] + 1000.0 && log_joint[1] > log_joint[2] + 1000.0, "{log_joint:?}");
}

#[test]
fn openbugs_transforms_data_in_the_model() {
    let openbugs = Options { dialect: Dialect::OpenBugs, ..Options::default() };
    for source in [
        "model { for (i in 1:n) { z[i] <- log(y[i]) z[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) }",
        "model { for (i in 1:n) { z[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) for (i in 1:n) { z[i] <- log(y[i]) } }",
    ] {
        assert_same(source, "y <- c(1, 2)\nn <- 2", &openbugs, normal_mean([0.0, 2.0_f64.ln()], "z"));
    }
}

#[test]
fn a_missing_observation_is_a_latent() {
    let mut g = normal_mean([1.0, 2.0], "y");
    let one = g.constant(1.0);
    let mu = g.stochastic("other", Distribution::Normal { mean: one, precision: one }, None, None).unwrap();
    let two = g.constant(2.0);
    let scaled = g.call(Function::Multiply, &[mu, two]);
    g.stochastic("w", Distribution::Normal { mean: scaled, precision: one }, None, Some(0.0)).unwrap();
    let source =
        "model { for (i in 1:2) { y[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) other ~ dnorm(1, 1) w ~ dnorm(2 * other, 1) }";
    assert_same(source, "y <- c(1, 2)\nother <- NA\nw <- 0", &Options::default(), g);
}

#[test]
fn loops_as_in_jags() {
    // 1:0 is empty, (1:N)-1 begins with 0, and a calculated constant may end a loop.
    let source = "model { N <- M - 1 for (i in 1:0) { z[i] ~ dnorm(0, 1) } for (i in (1:N)-1) { y[i + 1] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) }";
    assert_same(source, "M <- 3\ny <- c(1, 2)", &Options::default(), normal_mean([1.0, 2.0], "y"));
    let openbugs = Options { dialect: Dialect::OpenBugs, ..Options::default() };
    let source = "model { for (i in 1:M-1) { y[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) }";
    assert_same(source, "M <- 3\ny <- c(1, 2)", &openbugs, normal_mean([1.0, 2.0], "y"));
}

#[test]
fn a_counter_hides_a_variable() {
    let source = "model { for (i in 1:2) { y[i] ~ dnorm(mu, 1) } i ~ dnorm(0, 1) w ~ dnorm(i, 1) mu ~ dnorm(0, 1) }";
    let compiled = compiled(source, "y <- c(1, 2)\nw <- 1", &Options::default());
    assert_eq!((compiled.observed, compiled.latent), (3, 2));
}

#[test]
fn relations_may_be_in_any_order_and_chains_may_be_long() {
    // Everything is used before it is defined, and the chain begins with the last relation.
    let source = "model { y ~ dnorm(x[1], 1) for (t in 1:(N - 1)) { x[t] ~ dnorm(x[t + 1], 1) } x[N] ~ dnorm(0, 1) }";
    let compiled = compiled(source, "y <- 1\nN <- 100000", &Options::default());
    assert_eq!(compiled.latent, 100_000);
}

#[test]
fn starting_values_reach_their_latents() {
    let init = read("mu <- c(1, NA)\ntau <- 2", Format::RDump).unwrap();
    let options = Options { init: Some(init), ..Options::default() };
    let source = "model { for (i in 1:2) { mu[i] ~ dnorm(0, tau) y[i] ~ dnorm(mu[i], 1) } tau ~ dgamma(1, 1) }";
    let compiled = compiled(source, "y <- c(1, 2)", &options);
    assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
}

/// The log density and the quantities of a program at latents that depend on their names alone.
fn evaluated(source: &str, options: &Options) -> (f64, BTreeMap<String, f64>) {
    let model = model(compiled(source, "y <- c(0.3, -1, 2, 0.5)\nn <- 4", options).graph);
    let mut z = Batch::zeros(model.latents().len(), 1);
    for i in 0..model.latents().len() {
        let x: u32 = model.latents().name(i).bytes().map(u32::from).sum();
        z.set(i, 0, (f64::from(x) * 0.7).sin());
    }
    let mut log_p = [0.0];
    model.log_joint(&z, &mut log_p).unwrap();
    let quantities = model.quantities();
    let values = model.complete(&z, &quantities, 1).unwrap();
    (log_p[0], quantities.into_iter().enumerate().map(|(k, q)| (q.name, values.get(k, 0))).collect())
}

/// Catches a wrong location, scale or order: values made of standardised noise are those with the distribution written out.
#[test]
fn standardised_noise_is_a_distribution() {
    let rest = "for (t in 1:n) { y[t] ~ dnorm(x[t], 1) } s ~ dexp(1) tau ~ dgamma(2, 1) b ~ dnorm(0, 1)";
    for (noise, drawn) in [
        ("x[t] <- b - t + e[t] * s e[t] ~ dnorm(0, 1)", "x[t] ~ dnorm(b - t, pow(s, -2)) e[t] <- (x[t] - b + t) / s"),
        (
            "x[t] <- b + 2 * e[t] / sqrt(tau) e[t] ~ dnorm(3, 4)",
            "x[t] ~ dnorm(b + 6 / sqrt(tau), tau) e[t] <- (x[t] - b) * sqrt(tau) / 2",
        ),
    ] {
        let [(log_p, own), (expected, other)] = [noise, drawn]
            .map(|text| evaluated(&format!("model {{ for (t in 1:n) {{ {text} }} {rest} }}"), &Options::default()));
        assert!((log_p - expected).abs() < 1e-12, "{noise}: {log_p}, {expected}");
        assert_eq!(own.len(), other.len());
        for (name, x) in &own {
            assert!((x - other[name]).abs() < 1e-12, "{noise}: {name} is {x}, not {}", other[name]);
        }
    }
}

/// A random walk of standardised steps becomes one of states; noise that is used otherwise, or whose scale may be negative, is kept.
#[test]
fn noise_is_kept_where_it_has_to_be() {
    let latents = |source: &str, options: &Options| {
        let model = model(compiled(source, "y <- c(0.3, -1, 2, 0.5)", options).graph);
        let mut names: Vec<String> = (0..model.latents().len()).map(|i| model.latents().name(i)).collect();
        // These two are latents if something depends on them.
        names.retain(|name| name != "b" && name != "s");
        names.sort();
        names.join(" ")
    };
    let program = |value: &str, more: &str| {
        format!(
            "model {{ s ~ dexp(1) b ~ dnorm(0, 1) {more} x[1] <- 10 * e[1] for (t in 2:4) {{ x[t] <- {value} }}
             for (t in 1:4) {{ e[t] ~ dnorm(0, 1) y[t] ~ dnorm(x[t], 1) }} }}"
        )
    };
    let walk = program("x[t - 1] + s * e[t]", "");
    assert_eq!(latents(&walk, &Options::default()), "e[1] x[2] x[3] x[4]");
    let long = program("x[t - 1] + b + b * t + b * t * t + pow(b, 2) + exp(b) + s * e[t] / 2", "");
    assert_eq!(latents(&long, &Options::default()), "e[1] x[2] x[3] x[4]");
    let kept = "e[1] e[2] e[3] e[4]";
    for source in [
        program("x[t - 1] + b * e[t]", ""),
        program("x[t - 1] + s * e[t]", "sum <- e[1] + e[2]"),
        program("x[t - 1] + s * exp(e[t])", ""),
        program("x[t - 1] + s / e[t]", ""),
        program("x[t - 1] + s * e[t] + e[t]", ""),
        program("x[t - 1] + s * e[t] * e[t]", ""),
    ] {
        assert_eq!(latents(&source, &Options::default()), kept, "{source}");
    }
    // Noise that is used and nowhere defined.
    let source = "model { s ~ dexp(1) for (t in 2:4) { e[t] ~ dnorm(0, 1) } for (t in 1:4) { x[t] <- s * e[t] y[t] ~ dnorm(x[t], 1) } }";
    let data = read("y <- c(0.3, -1, 2, 0.5)", Format::RDump).unwrap();
    let faults = compile(source, "model", &data, &Options::default()).unwrap_err();
    assert!(faults[0].message.contains("`e[1]` is used, but never defined"), "{faults:?}");
    // One element that several values are made of.
    assert_eq!(latents(&program("x[1] + s * e[2]", ""), &Options::default()), "e[1] e[2]");
    let init = read("e <- c(0, 0.1, 0.2, 0.3)", Format::RDump).unwrap();
    assert_eq!(latents(&walk, &Options { init: Some(init), ..Options::default() }), kept);
}
