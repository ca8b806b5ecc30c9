//! The factor that makes a draw impossible is named, with its law as it is at that draw.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::bound::{BoundSettings, evaluate};
use hyperprior::infer::{Method, Units, Whitened};
use hyperprior::model::graph::{Eliminate, Function, GraphBuilder, GraphModel, Law, VectorLaw};
use hyperprior::{Batch, Model};

/// y[1], y[2] ~ Poisson(mu[i]), mu[1] = e^b, mu[2] = b where that is above 0, and 0 where it is not.
fn counts() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    g.set_origin("m.bug:2");
    let b = g.stochastic("b", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
    g.set_origin("m.bug:4");
    let first = g.call(Function::Exp, &[b]);
    let second = g.call(Function::Max, &[zero, b]);
    for (i, mu) in [(1, first), (2, second)] {
        g.name(&format!("mu[{i}]"), mu);
        g.stochastic(&format!("y[{i}]"), Law::Poisson { rate: mu }, None, Some(3.0)).unwrap();
    }
    g.build().unwrap().model().unwrap()
}

#[test]
fn a_draw_says_which_factor_it_falls_to() {
    let model = counts();
    let z = Batch::from_columns(vec![0.5, -1.0], 2);
    assert_eq!(model.fault(&z, 0), None);
    let fault = model.fault(&z, 1).unwrap();
    assert_eq!(fault.factor, "y[2]");
    assert_eq!(fault.reason, "log density −∞ at y[2] = 3 ~ dpois(mu[2] = 0), m.bug:4");
    // In other units the draw is another, and the factor the same.
    let near = Whitened::new(&model, vec![1.0], Units::Diagonal(vec![2.0]));
    assert_eq!(near.fault(&Batch::from_columns(vec![-1.0], 1), 0).unwrap(), fault);
    assert_eq!(near.fault(&z, 0), None);
}

/// Half of a standard normal's draws are below 0.
#[test]
fn a_bound_says_which_factor_most_of_its_losses_fall_to() {
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

/// A label that is summed out, none of whose values allows the datum: one of them is told.
#[test]
fn latents_that_are_summed_out_have_a_value() {
    let mut g = GraphBuilder::new();
    let (zero, half, one) = (g.constant(0.0), g.constant(0.5), g.constant(1.0));
    let b = g.stochastic("b", Law::Normal { mean: zero, precision: one }, None, None).unwrap();
    let label = g.stochastic("label", Law::Bernoulli { p: half }, None, None).unwrap();
    let positive = g.call(Function::Max, &[zero, b]);
    let shift = g.add(label, one);
    let mu = g.multiply(positive, shift);
    g.stochastic("y", Law::Poisson { rate: mu }, None, Some(1.0)).unwrap();
    let model = g.build().unwrap().model_with(&Eliminate::Auto).unwrap();
    assert_eq!(model.eliminated().collect::<Vec<_>>(), ["label"]);
    let fault = model.fault(&Batch::from_columns(vec![-1.0], 1), 0).unwrap();
    assert_eq!(fault.reason, "log density −∞ at y = 1 ~ dpois(0)");
}

#[test]
fn what_is_impossible_from_the_beginning_is_refused_where_it_is_stated() {
    let mut g = GraphBuilder::new();
    let (zero, one, two, half) = (g.constant(0.0), g.constant(1.0), g.constant(2.0), g.constant(0.5));
    let s = g.stochastic("s", Law::Gamma { shape: one, rate: one }, None, None).unwrap();
    let error = g.stochastic("y", Law::Gamma { shape: two, rate: s }, None, Some(0.0)).unwrap_err().to_string();
    assert_eq!(error, "y = 0 ~ dgamma(2, s) is impossible whatever the latents are: its log density is −∞");
    let names = ["v[1]".to_owned(), "v[2]".to_owned()];
    let flipped = vec![one, two, two, one];
    let law = VectorLaw::MultivariateNormal { mean: vec![s, zero], precision: flipped };
    let error = g.stochastic_vector(&names, law, Some(&[0.5, 1.0])).unwrap_err().to_string();
    let expected = "v[1], … = (0.5, 1) ~ dmnorm(mean = (?, 0), precision = (1, 2, 2, 1)) is impossible whatever the latents \
                    are: its log density is not a number";
    assert_eq!(error, expected);
    let law = VectorLaw::Multinomial { p: vec![half, half, zero], n: two };
    let names = [1, 2, 3].map(|i| format!("k[{i}]"));
    let error = g.stochastic_vector(&names, law, Some(&[0.0, 1.0, 1.0])).unwrap_err().to_string();
    assert!(error.contains("k[1], … = (0, 1, 1) ~ dmulti(p = (0.5, 0.5, 0), 2) is impossible"), "{error}");
}
