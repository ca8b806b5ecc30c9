//! Draws of quantities that are not fitted, and starting values.

use super::numbers;
use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_graph::{Distribution, GraphBuilder, VectorDistribution};

#[test]
fn latents_without_data_are_drawn_from_their_priors() {
    let mut g = GraphBuilder::new();
    let (zero, one, four) = (g.constant(0.0), g.constant(1.0), g.constant(4.0));
    let mu = g.stochastic("mu", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    g.stochastic("y", Distribution::Normal { mean: mu, precision: one }, None, Some(0.5)).unwrap();
    let next = g.stochastic("next", Distribution::Normal { mean: mu, precision: four }, None, None).unwrap();
    g.stochastic("after", Distribution::Uniform { lower: zero, upper: one }, None, None).unwrap();
    let far = g.add(next, one);
    g.name("far", far);
    let model = g.build().unwrap().model().unwrap();
    assert_eq!(model.latents().len(), 1);
    assert_eq!(model.prior_only().collect::<Vec<_>>(), ["next", "after"]);
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

#[test]
fn starting_values_are_transformed_to_coordinates_and_back() {
    let mut g = GraphBuilder::new();
    let (one, two) = (g.constant(1.0), g.constant(2.0));
    let a = g.stochastic("a", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
    let b = g.stochastic("b", Distribution::Uniform { lower: one, upper: two }, None, None).unwrap();
    let alpha = numbers(&mut g, &[1.0, 1.0, 1.0]);
    let names: Vec<String> = (1..=3).map(|k| format!("p[{k}]")).collect();
    let p = g.stochastic_vector(&names, VectorDistribution::Dirichlet { alpha }, None).unwrap();
    let scale = numbers(&mut g, &[1.0, 0.0, 0.0, 1.0]);
    let names: Vec<String> = ["1,1", "1,2", "2,1", "2,2"].iter().map(|k| format!("w[{k}]")).collect();
    let w = g.stochastic_vector(&names, VectorDistribution::Wishart { scale, df: two }, None).unwrap();
    let mean = g.sum(&[a, b, p[0], p[1], w[0], w[1], w[3]]);
    g.stochastic("y", Distribution::Normal { mean, precision: one }, None, Some(0.5)).unwrap();
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
