//! The tape of a graph.

use super::distributions::continuous_distributions;
use super::marginalisation::discrete;
use super::vectors::vectors;
use super::{numbers, scatter};
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Distribution, Function, GraphBuilder, Marginalise};

/// Tape and interpreter compute the same density.
#[test]
fn the_tape_agrees_with_plain_evaluation() {
    for graph in [continuous_distributions(), vectors(), discrete((5, 4))] {
        let model = graph.model_with(&Marginalise::Nothing).unwrap();
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
fn quotients_of_integers_are_exact() {
    let mut g = GraphBuilder::new();
    let weights = numbers(&mut g, &[1.0; 60]);
    let z = g.stochastic("z", Distribution::Categorical { weights }, None, None).unwrap();
    let (one, three) = (g.constant(1.0), g.constant(3.0));
    let before = g.call(Function::Subtract, &[z, one]);
    let third = g.call(Function::Divide, &[before, three]);
    let row = g.call(Function::Trunc, &[third]);
    g.name("row", row);
    let half = g.constant(0.5);
    g.stochastic("y", Distribution::Normal { mean: row, precision: half }, None, Some(3.0)).unwrap();
    let model = g.build().unwrap().model_with(&Marginalise::Nothing).unwrap();
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
