//! Tests of adaptive quadrature against grids, formulas and a filter.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use super::*;
use crate::diagnostics::convergence::moments;
use crate::infer::stages::test_models::{Coupled, bent, of_normal};
use crate::model::Model;

/// Draws from far too narrow an approximation of the posterior.
fn near(n: usize) -> Batch {
    let column = |i: usize| (0..100).map(move |s| 0.3 + 0.1 * f64::from((s * (7 + 2 * i as u32)) % 100) / 100.0);
    Batch::from_columns((0..n).flat_map(column).collect(), 100)
}

/// Draws by quadrature, and the numbers of θ and the others.
fn drawn(model: &dyn Model) -> (Nested, [usize; 2]) {
    let z = near(model.latents().len());
    let none = Batch::zeros(z.columns_len(), 0);
    let seen = Seen { z: &z, chains: None, modes: &none, ends: &none };
    let quadrature = Quadrature::new(model, seen, true, f64::INFINITY).unwrap().unwrap();
    let Drawn::Draws(nested) = quadrature.draws(16_384, 1).unwrap() else { panic!("no draws") };
    (nested, quadrature.size())
}

/// The log evidence, and the mean and the variance of each latent, of draws whose weights are nearly equal.
fn summary(z: &Batch, log_weights: &[f64]) -> (f64, Vec<(f64, f64)>) {
    let len = log_weights.len() as f64;
    assert!(effective(log_weights) > 0.9 * len, "{}", effective(log_weights) / len);
    (log_sum_exp(log_weights) - len.ln(), (0..z.columns_len()).map(|i| moments(z.column(i))).collect())
}

fn by_quadrature(model: &dyn Model) -> (f64, Vec<(f64, f64)>) {
    let (nested, _) = drawn(model);
    summary(&nested.z, &nested.log_weights)
}

/// The same on a regular grid of one or two latents.
fn on_grid(model: &dyn Model, from: f64, to: f64) -> (f64, Vec<(f64, f64)>) {
    let (n, nodes, len) = (model.latents().len(), 1500_usize, 1500_usize.pow(model.latents().len() as u32));
    let step = (to - from) / nodes as f64;
    let value = |i: usize, s: usize| from + step * (((s / nodes.pow(i as u32)) % nodes) as f64 + 0.5);
    let z = Batch::from_columns((0..n).flat_map(|i| (0..len).map(move |s| value(i, s))).collect(), len);
    let mut log_p = vec![0.0; len];
    model.log_joint(&z, &mut log_p).unwrap();
    let log_sum = log_sum_exp(&log_p);
    let moment = |i: usize, f: &dyn Fn(f64) -> f64| -> f64 {
        z.column(i).iter().zip(&log_p).map(|(x, w)| (w - log_sum).exp() * f(*x)).sum()
    };
    let of = |i: usize| {
        let mean = moment(i, &|x| x);
        (mean, moment(i, &|x| (x - mean).powi(2)))
    };
    (log_sum + n as f64 * step.ln(), (0..n).map(of).collect())
}

fn assert_same(found: &(f64, Vec<(f64, f64)>), exact: &(f64, Vec<(f64, f64)>)) {
    assert!((found.0 - exact.0).abs() < 0.01, "{} {}", found.0, exact.0);
    for (found, exact) in found.1.iter().zip(&exact.1) {
        // Of 16,384 draws; those of θ are better than independent ones.
        assert!((found.0 - exact.0).abs() < 0.03 * exact.1.sqrt(), "{found:?} {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{found:?} {exact:?}");
    }
}

/// Catches a missing mode, a wrong constant of the integral and a wrong density of θ: two coupled latents with two modes each, along a
/// hyperbola.
#[test]
fn two_coupled_latents_are_those_on_a_grid() {
    let product = Coupled::product();
    assert_same(&by_quadrature(&product), &on_grid(&product, -9.0, 9.0));
}

/// Catches parts that are not independent, or counted twice: many latents of one kind have the integral of one to that power.
#[test]
fn independent_latents_have_their_own_densities() {
    let (evidence, moments) = on_grid(&Coupled::squares(1), -6.0, 6.0);
    let exact = (12.0 * evidence, vec![moments[0]; 12]);
    assert_same(&by_quadrature(&Coupled::squares(12)), &exact);
}

/// Catches a wrong recursion: three latents of which every two are coupled, and none is Gaussian.
#[test]
fn three_coupled_latents_are_integrated_in_turn() {
    let ((log_integral, moments), model) = (of_normal(3), Coupled::bent(3));
    let (nested, size) = drawn(&model);
    assert_eq!(size, [2, 1]);
    let bent = Batch::from_columns(nested.z.as_slice().iter().map(|x| bent(*x)).collect(), nested.z.draws_len());
    assert_same(&summary(&bent, &nested.log_weights), &(log_integral, vec![moments; 3]));
}

/// Catches a wrong constant and a wrong scale of latents that are Gaussian together.
#[test]
fn latents_that_are_gaussian_are_integrated_out_together() {
    let (log_integral, moments) = of_normal(3);
    let (nested, size) = drawn(&Coupled::normal(3));
    assert_eq!(size, [0, 3]);
    assert_same(&summary(&nested.z, &nested.log_weights), &(log_integral, vec![moments; 3]));
}

/// Catches a mode that is missed since the others look Gaussian from the first: half of the mass is in a narrow one far away.
#[test]
fn a_narrow_mode_on_an_axis_is_found() {
    let (nested, size) = drawn(&Coupled::normal_and_narrow(3));
    assert_eq!(size, [2, 1]);
    let (evidence, moments) = summary(&nested.z, &nested.log_weights);
    let (log_integral, (mean, variance)) = of_normal(3);
    assert!((evidence - log_integral - 2.0_f64.ln()).abs() < 0.01, "{evidence}");
    assert!((moments[0].0 - mean - 4.5 * variance.sqrt()).abs() < 0.05, "{moments:?}");
}

/// Catches a density that is not that of the draws: it gives back the weights.
#[test]
fn the_density_is_that_of_the_draws() {
    for model in [Coupled::levels(9), Coupled::product()] {
        let z = near(model.latents().len());
        let none = Batch::zeros(z.columns_len(), 0);
        let seen = Seen { z: &z, chains: None, modes: &none, ends: &none };
        let quadrature = Quadrature::new(&model, seen, true, f64::INFINITY).unwrap().unwrap();
        let (thetas, outer) = quadrature.on_lines(64, 1).unwrap().unwrap();
        for (point, log_q) in &thetas {
            let given = quadrature.given(point).unwrap().unwrap();
            let (mut z, mut energy) = (Batch::from_columns(point.clone(), 1), [-log_q]);
            let levels = vec![&[0.3][..]; quadrature.size()[1]];
            given.draw(&quadrature.inner, &levels, &mut z, &mut energy);
            let found = quadrature.log_density(&outer, z.as_slice()).unwrap().unwrap();
            assert!((found + energy[0]).abs() < 1e-6, "{found} {}", energy[0]);
        }
    }
}

/// The log of the integral over the levels of a walk given the log precision, and the mean and variance of the last level, by the
/// recursion of Kalman.
fn filtered(log_precision: f64, len: usize) -> (f64, f64, f64) {
    let ln_2_pi = (2.0 * std::f64::consts::PI).ln();
    let (mut mean, mut variance, mut total) = (0.0, 0.0, -0.5 * log_precision * log_precision);
    for t in 0..len {
        let step = if t == 0 { 1.0 } else { (-log_precision).exp() };
        // The first has a density without its constant, the others have theirs but for 2π; so do the observations, of variance ½.
        variance += step;
        total += 0.5 * ln_2_pi + 0.5 * ln_2_pi - 0.5 * 2.0_f64.ln();
        let (seen, expected) = (f64::from((t * 7 % 5) as u32) - 2.0, variance + 0.5);
        total -= 0.5 * (ln_2_pi + expected.ln() + (seen - mean).powi(2) / expected);
        let gain = variance / expected;
        mean += gain * (seen - mean);
        variance *= 1.0 - gain;
    }
    (total, mean, variance)
}

/// Catches a wrong marginal of θ, and draws that do not follow it: the levels of a walk are Gaussian given its precision.
#[test]
fn a_walk_is_that_of_a_filter() {
    let len = 9;
    let grid: Vec<f64> = (0..4000).map(|k| -12.0 + 0.006 * (f64::from(k) + 0.5)).collect();
    let found: Vec<(f64, f64, f64)> = grid.iter().map(|x| filtered(*x, len)).collect();
    let log_sum = log_sum_exp(&found.iter().map(|(total, ..)| *total).collect::<Vec<_>>());
    let of = |f: &dyn Fn(usize) -> f64| -> f64 { (0..4000).map(|k| (found[k].0 - log_sum).exp() * f(k)).sum() };
    let (theta, last) = (of(&|k| grid[k]), of(&|k| found[k].1));
    let exact =
        [(theta, of(&|k| (grid[k] - theta).powi(2))), (last, of(&|k| found[k].2 + (found[k].1 - last).powi(2)))];
    let walk = Coupled::levels(len);
    let (nested, size) = drawn(&walk);
    assert_eq!(size, [1, len]);
    let (evidence, moments) = summary(&nested.z, &nested.log_weights);
    assert_same(&(evidence, vec![moments[0], moments[len]]), &(log_sum + 0.006_f64.ln(), exact.to_vec()));
}

/// Catches a wrong density of the proposal: with four, three are drawn by importance sampling.
#[test]
fn many_coupled_latents_are_drawn_by_importance_sampling() {
    let model = Coupled::bent(4);
    let (nested, size) = drawn(&model);
    assert_eq!(size, [3, 1]);
    let (log_sum, (log_integral, (mean, variance))) = (log_sum_exp(&nested.log_weights), of_normal(4));
    // Of some 600 effective values of θ.
    assert!((log_sum - (nested.log_weights.len() as f64).ln() - log_integral).abs() < 0.15);
    for i in 0..4 {
        let weighted = |f: &dyn Fn(f64) -> f64| -> f64 {
            nested.z.column(i).iter().zip(&nested.log_weights).map(|(x, w)| (w - log_sum).exp() * f(bent(*x))).sum()
        };
        let own = weighted(&|x| x);
        assert!((own - mean).abs() < 0.2 * variance.sqrt(), "{own} {mean}");
        assert!((weighted(&|x| (x - own).powi(2)) / variance - 1.0).abs() < 0.3);
    }
}
