//! Distributions of vectors and matrices.

use super::{check, numbers, scatter};
use hyperprior_graph::{Distribution, Graph, GraphBuilder, Marginalise, VectorDistribution};

/// A simplex, a random precision matrix, and normals with that precision.
pub fn vectors() -> Graph {
    let mut g = GraphBuilder::new();
    let alpha = numbers(&mut g, &[1.5, 2.0, 0.0, 3.0]);
    let names: Vec<String> = (1..=4).map(|k| format!("p[{k}]")).collect();
    let p = g.stochastic_vector(&names, VectorDistribution::Dirichlet { alpha }, None).unwrap();
    let n = g.constant(9.0);
    let names: Vec<String> = (1..=4).map(|k| format!("y[{k}]")).collect();
    g.stochastic_vector(&names, VectorDistribution::Multinomial { p, n }, Some(&[4.0, 3.0, 0.0, 2.0])).unwrap();
    let scale = numbers(&mut g, &[2.0, 0.3, 0.3, 1.0]);
    let df = g.constant(4.0);
    let names: Vec<String> = ["1,1", "1,2", "2,1", "2,2"].iter().map(|k| format!("omega[{k}]")).collect();
    let omega = g.stochastic_vector(&names, VectorDistribution::Wishart { scale, df }, None).unwrap();
    let mean = numbers(&mut g, &[0.5, -0.5]);
    for i in 0..3 {
        let names: Vec<String> = (1..=2).map(|k| format!("x[{},{k}]", i + 1)).collect();
        let distribution = VectorDistribution::MultivariateNormal { mean: mean.clone(), precision: omega.clone() };
        let x = g.stochastic_vector(&names, distribution, None).unwrap();
        let distribution = VectorDistribution::MultivariateStudentT { mean: x, precision: omega.clone(), df };
        let names: Vec<String> = (1..=2).map(|k| format!("t[{},{k}]", i + 1)).collect();
        g.stochastic_vector(&names, distribution, Some(&[0.3 * i as f64, 0.4])).unwrap();
    }
    let inverse = g.inverse(&omega, 2);
    g.name("sigma[1,1]", inverse[0]);
    let log = g.log_determinant(&omega, 2);
    g.name("logdet", log);
    g.build().unwrap()
}

#[test]
fn vector_distributions_have_the_right_gradient() {
    let model = check(vectors(), &Marginalise::Auto, 5);
    // Calculated quantities agree with the latents.
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

/// Catches a wrong determinant or quadratic form of a matrix that is a multiple of a known one, or the inverse of another: the density
/// of two normals with covariance v R (R has correlation .6), and with covariance R + v on the diagonal.
#[test]
fn normals_with_known_correlations_have_their_density() {
    for is_multiple in [true, false] {
        let mut g = GraphBuilder::new();
        let (one, correlation) = (g.constant(1.0), g.constant(0.6));
        let v = g.stochastic("v", Distribution::Exponential { rate: one }, None, None).unwrap();
        let (diagonal, other) = match is_multiple {
            true => (v, g.multiply(v, correlation)),
            false => (g.add(v, one), correlation),
        };
        let precision = g.inverse(&[diagonal, other, other, diagonal], 2);
        let mean = numbers(&mut g, &[0.5, -0.5]);
        let names = ["x[1]".to_owned(), "x[2]".to_owned()];
        let observed: &[f64] = &[1.5, 0.3];
        g.stochastic_vector(&names, VectorDistribution::MultivariateNormal { mean, precision }, Some(observed))
            .unwrap();
        let model = g.build().unwrap().model().unwrap();
        for v in [0.2_f64, 1.0, 7.0] {
            let [a, b] = if is_multiple { [v, 0.6 * v] } else { [1.0 + v, 0.6] };
            let (determinant, x, y) = (a * a - b * b, 1.0, 0.8);
            let energy = (a * (x * x + y * y) - 2.0 * b * x * y) / determinant;
            let expected = -v - (2.0 * std::f64::consts::PI).ln() - 0.5 * determinant.ln() - 0.5 * energy;
            let found = model.log_density(&[v]).unwrap();
            assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
        }
    }
}
