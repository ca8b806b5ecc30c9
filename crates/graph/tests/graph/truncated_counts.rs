//! Counts truncated from below: density and slope are accurate even if almost all probability lies below the bound.

use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Bounds, Distribution, Function, GraphBuilder, GraphModel, Marginalise};

#[derive(Clone, Copy, Debug)]
enum Family {
    /// Of rate eᶿ.
    Poisson,
    /// Of probability logistic θ and size 2.5.
    NegativeBinomial,
    /// Of probability logistic θ.
    Geometric,
}

/// θ flat, and one observation of the truncated distribution.
fn model(family: Family, least: f64, observed: f64) -> GraphModel {
    let mut g = GraphBuilder::new();
    let theta = g.stochastic("theta", Distribution::Flat, None, None).unwrap();
    let distribution = match family {
        Family::Poisson => Distribution::Poisson { rate: g.call(Function::Exp, &[theta]) },
        Family::NegativeBinomial => {
            Distribution::NegativeBinomial { p: g.call(Function::InverseLogit, &[theta]), r: g.constant(2.5) }
        }
        Family::Geometric => Distribution::Geometric { p: g.call(Function::InverseLogit, &[theta]) },
    };
    let bounds = Bounds { lower: Some(g.constant(least)), upper: None, renormalised: true };
    g.stochastic("y", distribution, Some(bounds), Some(observed)).unwrap();
    g.build().unwrap().model_with(&Marginalise::Nothing).unwrap()
}

/// (family, θ, bound, observation, log density, its slope along θ), the last two with 100 digits and then rounded.
const CASES: [(Family, f64, f64, f64, f64, f64); 17] = [
    (Family::Poisson, -800.0, 1.0, 1.0, 0.0, 0.0),
    (Family::Poisson, -800.0, 2.0, 3.0, -801.0986122886682, 1.0),
    (Family::Poisson, -300.0, 2.0, 2.0, 0.0, 0.0),
    (Family::Poisson, -40.0, 1.0, 3.0, -81.79175946922805, 2.0),
    (Family::Poisson, -21.0, 2.0, 2.0, -2.527520142797011e-10, -2.52752014295672e-10),
    (Family::Poisson, -21.0, 3.0, 5.0, -44.995732273743556, 1.999999999810436),
    (Family::Poisson, -5.0, 2.0, 2.0, -0.0022472438196865, -0.002248505683683005),
    (Family::Poisson, 1.0, 4.0, 9.0, -5.282036246537583, 4.210717794821082),
    (Family::Poisson, 4.0, 2.0, 60.0, -3.2263234568158303, 5.401849966855761),
    (Family::NegativeBinomial, 36.0, 1.0, 1.0, 0.0, 0.0),
    (Family::NegativeBinomial, 36.0, 2.0, 2.0, 0.0, 0.0),
    (Family::NegativeBinomial, 30.0, 3.0, 4.0, -29.68154626888169, -0.9999999999997777),
    (Family::NegativeBinomial, 2.0, 2.0, 3.0, -1.9149249836946123, -0.6961817590990987),
    (Family::NegativeBinomial, -9.0, 2.0, 3.0, -20.619307083533805, 2.4993213313116645),
    (Family::NegativeBinomial, -40.0, 2.0, 3.0, -98.11862837208226, 2.5),
    (Family::Geometric, 36.0, 3.0, 4.0, -36.0, -1.0),
    (Family::Geometric, 0.0, 3.0, 4.0, -1.3862943611198906, 0.0),
];

#[test]
fn densities_and_slopes_are_accurate_for_rare_counts() {
    for (family, theta, least, observed, exact, slope) in CASES {
        let model = model(family, least, observed);
        let mut z = Batch::zeros(1, 1);
        z.set(0, 0, theta);
        let (mut out, mut d_z) = ([0.0], Batch::zeros(1, 1));
        model.gradient().unwrap().log_joint_gradient(&z, &mut out, &mut d_z).unwrap();
        let (value, d_theta) = (out[0], d_z.get(0, 0));
        let at = format!("{family:?} at θ = {theta}, {observed} of {least} or more");
        // Rounding is relative to the terms of the density, which are of the order of θ times the count.
        let rounding = 1e-14 * (1.0 + observed * theta.abs());
        assert!((value - exact).abs() < rounding, "{at}: {value} against {exact}");
        assert!((d_theta - slope).abs() < 1e-13 * (1.0 + observed), "{at}: slope {d_theta} against {slope}");
    }
}

/// The number of trials is random, and the probability tiny, whether or not it is a logistic.
#[test]
fn trials_of_a_random_number() {
    for (is_logistic, least) in [(true, 1.0), (true, 2.0), (false, 1.0), (false, 2.0)] {
        let mut g = GraphBuilder::new();
        let weights = [0.2; 5].map(|w| g.constant(w)).to_vec();
        let theta = g.stochastic("theta", Distribution::Flat, None, None).unwrap();
        let n = g.stochastic("n", Distribution::Categorical { weights }, None, None).unwrap();
        let p = g.call(if is_logistic { Function::InverseLogit } else { Function::Exp }, &[theta]);
        let bounds = Bounds { lower: Some(g.constant(least)), upper: None, renormalised: true };
        g.stochastic("y", Distribution::Binomial { p, n }, Some(bounds), Some(least + 1.0)).unwrap();
        let model = g.build().unwrap().model_with(&Marginalise::Nothing).unwrap();
        for trials in 1..=5 {
            let value = model.log_density(&[-36.0, f64::from(trials)]).unwrap() - 0.2_f64.ln();
            // The ratio of the first two terms of the binomial series: the rest is below rounding.
            let ratio = (f64::from(trials) - least) / (least + 1.0);
            let exact = if ratio > 0.0 { ratio.ln() - 36.0 } else { f64::NEG_INFINITY };
            assert!(value == exact || (value - exact).abs() < 1e-12, "{trials} {least}: {value} against {exact}");
        }
        hyperprior::check(&model, 5).unwrap();
    }
}

#[test]
fn bounds_without_probability_are_rejected() {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let bounds = Bounds { lower: Some(one), upper: None, renormalised: true };
    let error = g.stochastic("y", Distribution::Poisson { rate: zero }, Some(bounds), None).unwrap_err();
    assert!(error.to_string().contains("the probability between the bounds is zero"), "{error}");
}
