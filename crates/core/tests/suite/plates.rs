//! Plates: unbiased minibatch gradients, inference networks, and fits with known answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{assert_gradient, numbers};
use hyperprior::fit::Quiet;
use hyperprior::gradient::GradientSettings;
use hyperprior::likelihood::{Factor, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::Bernoulli;
use hyperprior::math::special::{log_add_exp, sigmoid};
use hyperprior::model::{Latents, Support};
use hyperprior::plate::{Guide, PlateEngine, PlateFit, PlateGradient, PlateModel, PlateParameters, PlateSettings};
use hyperprior::prior::{Covariance, Delta, Gaussian, Mixture, Start};
use hyperprior::recursive::{InverseFlow, SameAsPrior, Space};
use hyperprior::{Batch, Result, Variational};
use hyperprior_testkit::finite_difference;

/// β ~ N(0, 2²); z_n ~ N(β, 1); x_n ~ N(z_n, 0.5²). Everything is Gaussian, so the posterior is known.
struct Normals {
    globals: Latents,
    locals: Latents,
    data: Vec<[f64; 1]>,
}

impl Normals {
    fn new(data: &[f64]) -> Self {
        Self {
            globals: Latents::new().scalar("beta", Support::Real).unwrap(),
            locals: Latents::new().scalar("z", Support::Real).unwrap(),
            data: data.iter().map(|x| [*x]).collect(),
        }
    }
}

impl PlateModel for Normals {
    fn globals(&self) -> &Latents {
        &self.globals
    }
    fn locals(&self) -> &Latents {
        &self.locals
    }
    fn data_len(&self) -> usize {
        self.data.len()
    }
    fn features(&self, n: usize) -> &[f64] {
        &self.data[n]
    }
    fn has_gradient(&self) -> bool {
        true
    }
    fn log_globals(&self, globals: &Batch, out: &mut [f64], d_globals: &mut Batch) -> Result<()> {
        for s in 0..out.len() {
            out[s] = -globals.get(0, s).powi(2) / 8.0;
            d_globals.set(0, s, -globals.get(0, s) / 4.0);
        }
        Ok(())
    }
    fn log_datum(&self, n: usize, globals: &Batch, z: &Batch, out: &mut [f64]) -> Result<()> {
        for s in 0..out.len() {
            let (z, beta, x) = (z.get(0, s), globals.get(0, s), self.data[n][0]);
            out[s] = -0.5 * (z - beta).powi(2) - 2.0 * (x - z).powi(2);
        }
        Ok(())
    }
    fn log_datum_gradient(
        &self,
        n: usize,
        globals: &Batch,
        z: &Batch,
        out: &mut [f64],
        d_globals: &mut Batch,
        d_z: &mut Batch,
    ) -> Result<()> {
        self.log_datum(n, globals, z, out)?;
        for s in 0..out.len() {
            let (z, beta, x) = (z.get(0, s), globals.get(0, s), self.data[n][0]);
            d_globals.set(0, s, z - beta);
            d_z.set(0, s, beta - z + 4.0 * (x - z));
        }
        Ok(())
    }
}

fn normal_q() -> Variational {
    let point = Factor::PointMass(Bijector::for_support(Support::Real).unwrap());
    let prior = Gaussian::new(1, Covariance::Diagonal).unwrap();
    Variational::new(MeanField::new(vec![point]).unwrap(), prior, SameAsPrior).unwrap()
}

/// Two clusters with unknown centres; the cluster of a datum is its latent.
struct Clusters {
    globals: Latents,
    locals: Latents,
    data: Vec<f64>,
    /// The inputs of an inference network for each datum.
    features: Vec<Vec<f64>>,
}

impl Clusters {
    fn new(data: &[f64]) -> Self {
        Self {
            globals: Latents::new().vector("centre", 2, Support::Real).unwrap(),
            locals: Latents::new().scalar("label", Support::BINARY).unwrap(),
            data: data.to_vec(),
            features: data.iter().map(|x| vec![*x]).collect(),
        }
    }
}

impl PlateModel for Clusters {
    fn globals(&self) -> &Latents {
        &self.globals
    }
    fn locals(&self) -> &Latents {
        &self.locals
    }
    fn data_len(&self) -> usize {
        self.data.len()
    }
    fn features(&self, n: usize) -> &[f64] {
        &self.features[n]
    }
    fn has_gradient(&self) -> bool {
        true
    }
    fn log_globals(&self, globals: &Batch, out: &mut [f64], d_globals: &mut Batch) -> Result<()> {
        for s in 0..out.len() {
            out[s] = -(globals.get(0, s).powi(2) + globals.get(1, s).powi(2)) / 50.0;
            (0..2).for_each(|i| d_globals.set(i, s, -globals.get(i, s) / 25.0));
        }
        Ok(())
    }
    fn log_datum(&self, n: usize, globals: &Batch, z: &Batch, out: &mut [f64]) -> Result<()> {
        for s in 0..out.len() {
            out[s] = -0.5 * (self.data[n] - globals.get(z.get(0, s) as usize, s)).powi(2);
        }
        Ok(())
    }
    fn log_datum_gradient(
        &self,
        n: usize,
        globals: &Batch,
        z: &Batch,
        out: &mut [f64],
        d_globals: &mut Batch,
        _d_z: &mut Batch,
    ) -> Result<()> {
        self.log_datum(n, globals, z, out)?;
        for s in 0..out.len() {
            let own = z.get(0, s) as usize;
            d_globals.set(own, s, self.data[n] - globals.get(own, s));
            d_globals.set(1 - own, s, 0.0);
        }
        Ok(())
    }
}

fn centres() -> Variational {
    let points = (0..2).map(|_| Factor::PointMass(Bijector::for_support(Support::Real).unwrap())).collect();
    let prior = Gaussian::new(2, Covariance::Full).unwrap();
    Variational::new(MeanField::new(points).unwrap(), prior, SameAsPrior).unwrap()
}

/// q of a label: hierarchical, so that there is a φ.
fn label() -> Variational {
    let likelihood = MeanField::of(Bernoulli, 1).unwrap();
    let recursive = InverseFlow::factorised(&likelihood, 1, Space::Noise);
    Variational::new(likelihood, Gaussian::new(1, Covariance::Diagonal).unwrap(), recursive).unwrap()
}

const DATA: [f64; 6] = [-1.7, 2.2, -2.4, 1.8, 2.9, -0.3];

/// Arbitrary parameters of the right sizes.
fn somewhere(globals: &Variational, locals: &Variational, guide: &Guide, seed: u64) -> PlateParameters {
    let row = locals.theta_len() + locals.phi_len();
    let len = match guide {
        Guide::Table => DATA.len() * row,
        Guide::Network(hidden) => {
            let sizes: Vec<usize> = [&[1], &hidden[..], &[row]].concat();
            row + sizes.windows(2).map(|w| (w[0] + 1) * w[1]).sum::<usize>()
        }
    };
    PlateParameters {
        globals: (numbers(globals.theta_len(), 0.4, seed), numbers(globals.phi_len(), 0.4, seed + 1)),
        locals: numbers(len, 0.3, seed + 2),
    }
}

fn settings(draws: usize) -> GradientSettings {
    GradientSettings::default().draws(draws).replicates(1)
}

/// Catches a scale other than N/B, a term of the globals that is scaled too, and draws that depend on the rest of the batch: with
/// the same random numbers, the mean gradient over the batches of one epoch is that of the whole data set, up to rounding.
#[test]
fn the_mean_minibatch_gradient_is_that_of_the_whole_data_set() {
    let model = Clusters::new(&DATA);
    let (globals, locals) = (centres(), label());
    for guide in [Guide::Table, Guide::Network(vec![3])] {
        let at = somewhere(&globals, &locals, &guide, 3);
        let mut engine = PlateEngine::new(&model, Some(&globals), &locals, &guide, &settings(16)).unwrap();
        let mut whole = PlateGradient::default();
        let of_whole = engine.step(&model, &[0, 1, 2, 3, 4, 5], (1, 9), &at, &mut whole).unwrap();
        let (mut elbo, mut mean) = (0.0, whole.clone());
        let row = locals.theta_len() + locals.phi_len();
        for numbers in [&mut mean.globals.0, &mut mean.globals.1, &mut mean.locals] {
            numbers.fill(0.0);
        }
        for batch in [[4, 0], [1, 5], [3, 2]] {
            let mut part = PlateGradient::default();
            elbo += engine.step(&model, &batch, (1, 9), &at, &mut part).unwrap().elbo / 3.0;
            let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(t, f)| *t += f / 3.0);
            add(&mut mean.globals.0, &part.globals.0);
            add(&mut mean.globals.1, &part.globals.1);
            match guide {
                Guide::Table => {
                    for (place, n) in batch.into_iter().enumerate() {
                        add(&mut mean.locals[n * row..(n + 1) * row], &part.locals[place * row..(place + 1) * row]);
                    }
                }
                Guide::Network(_) => add(&mut mean.locals, &part.locals),
            }
        }
        assert!((elbo - of_whole.elbo).abs() < 1e-10);
        assert_gradient("globals", &mean.globals.0, &whole.globals.0, 1e-10);
        assert_gradient("locals", &mean.locals, &whole.locals, 1e-10);
    }
}

/// Catches any wrong derivative between the data, the globals, the network and the bound: if all latents are point masses and the
/// noise is fixed, the estimate is an ordinary function of the parameters.
#[test]
fn with_the_noise_fixed_the_gradient_is_the_derivative_of_the_estimate() {
    let model = Normals::new(&DATA);
    let (globals, locals) = (normal_q(), normal_q());
    let batch = [5, 1, 2];
    for guide in [Guide::Table, Guide::Network(vec![4])] {
        let at = somewhere(&globals, &locals, &guide, 11);
        let value = |at: &PlateParameters, gradient: &mut PlateGradient| {
            let mut engine = PlateEngine::new(&model, Some(&globals), &locals, &guide, &settings(8)).unwrap();
            engine.step(&model, &batch, (2, 4), at, gradient).unwrap().elbo
        };
        let mut gradient = PlateGradient::default();
        value(&at, &mut gradient);
        let unused = &mut PlateGradient::default();
        let along = |theta: &[f64], unused: &mut PlateGradient| {
            value(&PlateParameters { globals: (theta.to_vec(), at.globals.1.clone()), ..at.clone() }, unused)
        };
        let numeric = finite_difference::gradient(|theta| along(theta, unused), &at.globals.0, 1e-2);
        assert_gradient("globals", &gradient.globals.0, &numeric, 1e-8);
        let along = |locals: &[f64], unused: &mut PlateGradient| {
            value(&PlateParameters { locals: locals.to_vec(), ..at.clone() }, unused)
        };
        let unused = &mut PlateGradient::default();
        let numeric = finite_difference::gradient(|locals| along(locals, unused), &at.locals, 1e-2);
        let found = match guide {
            Guide::Table => {
                // Rows that are not in the batch have no gradient.
                let mut rows = vec![0.0; at.locals.len()];
                for (place, n) in batch.into_iter().enumerate() {
                    rows[2 * n..2 * n + 2].copy_from_slice(&gradient.locals[2 * place..2 * place + 2]);
                }
                rows
            }
            Guide::Network(_) => gradient.locals.clone(),
        };
        assert_gradient("locals", &found, &numeric, 1e-8);
    }
}

/// Catches a network whose output is not the row that a table would hold: its value and gradients are those of the table.
#[test]
fn a_network_that_is_a_lookup_table_equals_the_table() {
    // With an indicator for each datum as features, a network without hidden layers is a table.
    let indicator = |n: usize| (0..DATA.len()).map(|m| f64::from(m == n)).collect();
    let model = Clusters { features: (0..DATA.len()).map(indicator).collect(), ..Clusters::new(&DATA) };
    let (globals, locals) = (centres(), label());
    let table = somewhere(&globals, &locals, &Guide::Table, 5);
    let row = locals.theta_len() + locals.phi_len();
    // The shared row and the biases are zero; the weights, row by row of the output, are the table.
    let mut network = vec![0.0; row];
    network.extend((0..row).flat_map(|r| (0..DATA.len()).map(move |n| (r, n))).map(|(r, n)| table.locals[n * row + r]));
    network.extend(vec![0.0; row]);
    let as_network = PlateParameters { locals: network, ..table.clone() };
    let batch = [0, 3, 4];
    let step = |guide: &Guide, at: &PlateParameters| {
        let mut gradient = PlateGradient::default();
        let mut engine = PlateEngine::new(&model, Some(&globals), &locals, guide, &settings(8)).unwrap();
        let estimate = engine.step(&model, &batch, (3, 1), at, &mut gradient).unwrap();
        (estimate.elbo, gradient)
    };
    let (elbo, of_table) = step(&Guide::Table, &table);
    let (same, of_network) = step(&Guide::Network(vec![]), &as_network);
    assert!((elbo - same).abs() < 1e-12);
    assert_gradient("globals", &of_network.globals.0, &of_table.globals.0, 1e-12);
    for (place, n) in batch.into_iter().enumerate() {
        for r in 0..row {
            let found = of_network.locals[row + r * DATA.len() + n];
            assert!((found - of_table.locals[place * row + r]).abs() < 1e-12);
        }
    }
}

fn many_data() -> Vec<f64> {
    numbers(60, 1.0, 21).into_iter().enumerate().map(|(n, x)| x + if n % 3 == 0 { -2.0 } else { 2.5 }).collect()
}

/// Catches a fit with the wrong optimum: for a Gaussian model, q(β) Π q(z_n) has the exact mean of the posterior, with a table and
/// with a network.
#[test]
fn a_fit_of_normals_has_the_means_of_the_posterior() {
    let data = many_data();
    let model = Normals::new(&data);
    // x_n ~ N(β, 1 + ¼) and β ~ N(0, 4); then E[z_n | β] = (β + 4 x_n) / 5.
    let n = data.len() as f64;
    let mean = data.iter().sum::<f64>() / 1.25 / (n / 1.25 + 0.25);
    for guide in [Guide::Table, Guide::Network(vec![8])] {
        let (globals, locals) = (normal_q(), normal_q());
        let settings = PlateSettings::default().epochs(1000).batch_len(20).step_size(0.05);
        let start = Start::at(vec![0.0], 0.5);
        let mut fit = PlateFit::init(&model, (Some(&globals), &locals), &guide, &settings, (&start, &start)).unwrap();
        let _ = fit.run(&mut Quiet).unwrap();
        let found = fit.parameters().globals.0[0];
        assert!((found - mean).abs() < 0.05, "{guide:?}: {found} against {mean}");
        for datum in [0, 7, 31] {
            let (found, expected) = (fit.row(datum)[0], (mean + 4.0 * data[datum]) / 5.0);
            assert!((found - expected).abs() < 0.15, "{guide:?}, datum {datum}: {found} against {expected}");
        }
    }
}

/// Catches labels that do not follow the data: an inference network finds the centres, and the probability of each label is its
/// responsibility.
#[test]
fn an_inference_network_finds_clusters_and_labels() {
    let data = many_data();
    let model = Clusters::new(&data);
    let globals = centres();
    let likelihood = MeanField::of(Bernoulli, 1).unwrap();
    let locals = Variational::new(likelihood, Delta { lambda_len: 1 }, SameAsPrior).unwrap();
    let settings = PlateSettings::default().epochs(300).batch_len(20).step_size(0.03);
    let (of_centres, of_labels) = (Start::at(vec![-0.5, 0.5], 0.3), Start::at(vec![0.0], 0.3));
    let guide = Guide::Network(vec![8]);
    let starts = (&of_centres, &of_labels);
    let mut fit = PlateFit::init(&model, (Some(&globals), &locals), &guide, &settings, starts).unwrap();
    let _ = fit.run(&mut Quiet).unwrap();
    let found = &fit.parameters().globals.0[..2];
    let mean = |low: bool| {
        let own: Vec<f64> = data.iter().copied().filter(|x| (*x < 0.0) == low).collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    assert!((found[0] - mean(true)).abs() < 0.3 && (found[1] - mean(false)).abs() < 0.3, "{found:?}");
    for n in 0..data.len() {
        let log_p = found.iter().map(|c| -0.5 * (data[n] - c).powi(2)).collect::<Vec<f64>>();
        let expected = (log_p[1] - log_add_exp(log_p[0], log_p[1])).exp();
        let probability = sigmoid(fit.row(n)[0]);
        assert!((probability - expected).abs() < 0.1, "datum {n} at {}: {probability} against {expected}", data[n]);
    }
}

/// Catches parts that a plate does not support.
#[test]
fn unsupported_parts_of_a_plate_are_refused_with_a_reason() {
    let model = Clusters::new(&DATA);
    let (globals, locals) = (centres(), label());
    let said = |result: Result<PlateEngine>| result.unwrap_err().to_string();
    let guide = Guide::Table;
    assert!(said(PlateEngine::new(&model, None, &locals, &guide, &settings(8))).contains("no variational model"));
    let likelihood = MeanField::of(Bernoulli, 1).unwrap();
    let prior = Mixture::new(1, 2, Covariance::Diagonal).unwrap();
    let mixture = Variational::new(likelihood, prior, SameAsPrior).unwrap();
    let refused = said(PlateEngine::new(&model, Some(&globals), &mixture, &guide, &settings(8)));
    assert!(refused.contains("does not support mixtures or switches"), "{refused}");
    let start = Start::at(vec![0.0; 2], 1.0);
    let no_batch = PlateSettings::default().batch_len(0);
    let starts = (&start, &Start::at(vec![0.0], 1.0));
    let refused = PlateFit::init(&model, (Some(&globals), &locals), &guide, &no_batch, starts).err().unwrap();
    assert!(refused.to_string().contains("batch_len"));
    let empty = Clusters::new(&[]);
    let fine = PlateSettings::default();
    assert!(PlateFit::init(&empty, (Some(&globals), &locals), &guide, &fine, starts).is_err());
}
