//! The factor that makes a draw impossible is named, with its distribution at that draw.

use hyperprior::infer::{Method, WhitenedModel, Whitening};
use hyperprior::objective::{BoundSettings, evaluate};
use hyperprior::{Batch, Model};
use hyperprior_graph::{Distribution, Function, GraphBuilder, GraphModel, Marginalise, VectorDistribution};

/// y[1], y[2] ~ Poisson(mu[i]), mu[1] = e^b, mu[2] = max(0, b).
fn counts() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    g.set_origin("m.bug:2");
    let b = g.stochastic("b", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    g.set_origin("m.bug:4");
    let first = g.call(Function::Exp, &[b]);
    let second = g.call(Function::Max, &[zero, b]);
    for (i, mu) in [(1, first), (2, second)] {
        g.name(&format!("mu[{i}]"), mu);
        g.stochastic(&format!("y[{i}]"), Distribution::Poisson { rate: mu }, None, Some(3.0)).unwrap();
    }
    g.build().unwrap().model().unwrap()
}

#[test]
fn an_impossible_draw_names_its_factor() {
    let model = counts();
    let z = Batch::from_columns(vec![0.5, -1.0], 2);
    assert_eq!(model.fault(&z, 0), None);
    let fault = model.fault(&z, 1).unwrap();
    assert_eq!(fault.factor, "y[2]");
    assert_eq!(fault.reason, "log density −∞ at y[2] = 3 ~ dpois(mu[2] = 0), m.bug:4");
    // In whitened coordinates the draw differs, but the factor is the same.
    let near = WhitenedModel::new(&model, vec![1.0], Whitening::Diagonal(vec![2.0]));
    assert_eq!(near.fault(&Batch::from_columns(vec![-1.0], 1), 0).unwrap(), fault);
    assert_eq!(near.fault(&z, 0), None);
}

/// Half of a standard normal's draws are below 0.
#[test]
fn bounds_name_the_most_common_impossible_factor() {
    let model = counts();
    let q = Method::FullRank.variational(model.latents()).unwrap();
    let bounds = evaluate(&model, &q, (&[0.0, 0.0], &[]), &BoundSettings::default()).unwrap();
    assert!((bounds.dropped as f64 / bounds.drawn as f64 - 0.5).abs() < 0.05);
    let common = bounds.fault.unwrap();
    assert_eq!((common.fault.factor.as_str(), common.count), ("y[2]", common.of));
    assert!(common.of > 50);
    let fine = evaluate(&model, &q, (&[5.0, -5.0], &[]), &BoundSettings::default()).unwrap();
    assert_eq!((fine.dropped, fine.fault), (0, None));
}

/// A marginalised label, none of whose values allows the datum: one of them is reported.
#[test]
fn faults_report_a_value_of_marginalised_latents() {
    let mut g = GraphBuilder::new();
    let (zero, half, one) = (g.constant(0.0), g.constant(0.5), g.constant(1.0));
    let b = g.stochastic("b", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    let label = g.stochastic("label", Distribution::Bernoulli { p: half }, None, None).unwrap();
    let positive = g.call(Function::Max, &[zero, b]);
    let shift = g.add(label, one);
    let mu = g.multiply(positive, shift);
    g.stochastic("y", Distribution::Poisson { rate: mu }, None, Some(1.0)).unwrap();
    let model = g.build().unwrap().model_with(&Marginalise::Auto).unwrap();
    assert_eq!(model.marginalised().collect::<Vec<_>>(), ["label"]);
    let fault = model.fault(&Batch::from_columns(vec![-1.0], 1), 0).unwrap();
    assert_eq!(fault.reason, "log density −∞ at y = 1 ~ dpois(0)");
}

#[test]
fn impossible_nodes_are_rejected_when_declared() {
    let mut g = GraphBuilder::new();
    let (zero, one, two, half) = (g.constant(0.0), g.constant(1.0), g.constant(2.0), g.constant(0.5));
    let s = g.stochastic("s", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
    let error =
        g.stochastic("y", Distribution::Gamma { shape: two, rate: s }, None, Some(0.0)).unwrap_err().to_string();
    assert_eq!(error, "y = 0 ~ dgamma(2, s) is impossible whatever the latents are: its log density is −∞");
    let names = ["v[1]".to_owned(), "v[2]".to_owned()];
    let flipped = vec![one, two, two, one];
    let distribution = VectorDistribution::MultivariateNormal { mean: vec![s, zero], precision: flipped };
    let error = g.stochastic_vector(&names, distribution, Some(&[0.5, 1.0])).unwrap_err().to_string();
    let expected = "v[1], … = (0.5, 1) ~ dmnorm(mean = (?, 0), precision = (1, 2, 2, 1)) is impossible whatever the latents \
                    are: its log density is not a number";
    assert_eq!(error, expected);
    let distribution = VectorDistribution::Multinomial { p: vec![half, half, zero], n: two };
    let names = [1, 2, 3].map(|i| format!("k[{i}]"));
    let error = g.stochastic_vector(&names, distribution, Some(&[0.0, 1.0, 1.0])).unwrap_err().to_string();
    assert!(error.contains("k[1], … = (0, 1, 1) ~ dmulti(p = (0.5, 0.5, 0), 2) is impossible"), "{error}");
}
