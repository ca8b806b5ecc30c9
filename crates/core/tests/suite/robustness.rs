//! Invalid input: every mistake of a user gives an error that says what to do, never a panic, and a model that is undefined in
//! places is used where it is defined.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Law, Small, coins, count, every, fixed_noise, numbers};
use hyperprior::fit::{Fit, FitSettings, Fitted, Quiet, StartKind, StartSettings, fit};
use hyperprior::gradient::{Estimator, GradientEngine, GradientSettings};
use hyperprior::infer::{InferSettings, Starts, infer};
use hyperprior::likelihood::{Factor, MeanField};
use hyperprior::math::bijector::Bijector;
use hyperprior::math::family::{Bernoulli, Normal, Poisson};
use hyperprior::math::scratch::Scratch;
use hyperprior::model::{Gradient, Latents, Support};
use hyperprior::objective::{BoundSettings, evaluate};
use hyperprior::prior::PriorPass;
use hyperprior::prior::{Bend, CouplingFlow, Covariance, Delta, Density, Gaussian, Mixture, PlanarFlow, Prior, Start};
use hyperprior::recursive::{GaussianFit, InverseFlow, MixtureGaussian, Recursive, SameAsPrior, Space};
use hyperprior::{Batch, Error, Model, Result, Variational, exact};

#[track_caller]
fn says<T>(result: Result<T>, words: &[&str]) {
    let Err(error) = result else { panic!("it went through") };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{message}` does not say `{word}`");
    }
}

/// A quick fit: one start, few steps.
fn quick() -> FitSettings {
    FitSettings::default().steps(30).start(StartSettings::single())
}

fn coin_field() -> MeanField {
    MeanField::of(Bernoulli, 2).unwrap()
}

fn full() -> Gaussian {
    Gaussian::new(2, Covariance::Full).unwrap()
}

fn run(model: &dyn Model, settings: &FitSettings) -> Result<Fitted> {
    let q = Variational::new(coin_field(), full(), SameAsPrior)?;
    fit(model, &q, settings, &mut Quiet)
}

#[test]
fn a_model_without_latents_is_refused() {
    let empty = Small::new(&[], |_| 0.0);
    says(MeanField::for_latents(empty.latents()), &["no latent variables", "declare at least one"]);
    says(MeanField::new(Vec::new()), &["no latent variables"]);
    says(run(&empty, &quick()), &["no latent variables"]);
    says(hyperprior::check(&empty, 1), &["no latent variables"]);
}

#[test]
fn empty_parts_are_refused() {
    says(Mixture::new(2, 0, Covariance::Full), &["a mixture prior cannot be built", "0 components", "at least 1"]);
    says(Gaussian::new(0, Covariance::Full), &["a Gaussian prior cannot be built", "no parameters"]);
    says(PlanarFlow::new(0, 2), &["no parameters"]);
    says(CouplingFlow::new(0, 2, 4, Bend::Affine), &["no parameters"]);
    says(CouplingFlow::new(3, 2, 0, Bend::Affine), &["a coupling-flow prior", "no hidden units", "at least 1"]);
    for bins in [0, 1] {
        says(CouplingFlow::new(3, 2, 4, Bend::Spline { bins }), &["fewer than two bins", "at least 2"]);
    }
    says(Latents::new().vector("z", 0, Support::BINARY), &["latent `z`", "it is empty"]);
    let shifted = Support::Integers { lower: 1.0, upper: 4.0 };
    says(Factor::for_support(shifted), &["no factor covers the support", "must start at 0"]);
}

/// Catches a flow that without layers is not its base distribution.
#[test]
fn flows_without_layers_equal_their_base() {
    let (flow, diagonal) = (PlanarFlow::new(3, 0).unwrap(), Gaussian::new(3, Covariance::Diagonal).unwrap());
    let coupling = CouplingFlow::new(3, 0, 4, Bend::Affine).unwrap();
    assert_eq!([flow.parameters_len(), coupling.parameters_len()], [diagonal.parameters_len(); 2]);
    let theta = numbers(6, 0.5, 1);
    let eps = Batch::from_columns(numbers(12, 1.0, 2), 4);
    let transform = |prior: &dyn Prior| {
        let (mut lambda, mut log_q) = (Batch::zeros(3, 4), vec![0.0; 4]);
        prior.transform(
            PriorPass { theta: &theta, component: 0, eps: &eps, density: Density::Whole },
            &mut lambda,
            &mut log_q,
            &mut Scratch::default(),
        );
        (lambda, log_q)
    };
    assert_eq!(transform(&flow), transform(&diagonal));
    assert_eq!(transform(&coupling), transform(&diagonal));

    // An inverse flow whose layers are the identity is the factorised approximation with the same base.
    let model = coins();
    let value = |layers_len: usize| {
        let recursive = InverseFlow::new(&coin_field(), 1, layers_len, Space::Lambda);
        let q = Variational::new(coin_field(), full(), recursive).unwrap();
        let mut phi = vec![0.0; q.phi_len()];
        let start = Start::at(vec![0.3, -0.2], 0.8);
        q.recursive().initialize(&start, &mut hyperprior::math::random::stream(1, 0, 0, 0), &mut phi);
        let latents = every(&[vec![0.0, 1.0], vec![0.0, 1.0]]);
        Law { model: &model, q: &q, noise: fixed_noise(2, 3, 1), latents }.value(&numbers(5, 0.5, 3), &phi)
    };
    assert!((value(0) - value(3)).abs() < 1e-12);
    // a, b, e and f for each of two coins.
    assert_eq!(InverseFlow::factorised(&coin_field(), 1, Space::Noise).parameters_len(), 8);
}

/// Catches a fit that continues with NaN.
#[test]
fn a_model_that_is_nowhere_finite_is_refused_with_an_example() {
    for bad in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY] {
        let model = Small::new(&[Support::BINARY; 2], move |_| bad);
        let example = format!("gives {bad}");
        says(run(&model, &quick()), &["had no finite log joint density", "z0 = ", &example, "other starting values"]);
        says(hyperprior::check(&model, 1), &["had no finite log joint density", &example]);
        let q = Variational::new(coin_field(), full(), SameAsPrior).unwrap();
        says(evaluate(&model, &q, (&[0.0; 5], &[]), &BoundSettings::default()), &["4096 of 4096", &example]);
        // The engine itself, from a start that was not checked.
        let settings = quick();
        let mut fit = Fit::init(&model, &q, &settings, &Start::at(vec![0.0; 2], 0.3)).unwrap();
        says(fit.step(0.01), &["32 of 32 draws at step 0", &example]);
    }
}

/// Catches an invalid draw that affects the valid ones: it is counted and excluded, and the gradient comes from the rest.
#[test]
fn a_model_that_is_undefined_in_places_is_used_where_it_is_defined() {
    for bad in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY] {
        let model = Small::new(&[Support::BINARY; 2], move |z| if z[0] == 1.0 { bad } else { -z[1] });
        let patient = quick().dropped_max(1.0);
        let q = Variational::new(coin_field(), full(), SameAsPrior).unwrap();
        let bounds = evaluate(&model, &q, (&[0.0; 5], &[]), &BoundSettings::default()).unwrap();
        let share = bounds.dropped as f64 / bounds.drawn as f64;
        // Half of 4,096 draws: five standard errors are 0.04.
        assert!((share - 0.5).abs() < 0.04, "{share}");
        // The evidence counts what is undefined as zero: e⁰ + e⁻¹ where it is defined.
        let evidence = 1.0_f64.exp().recip().ln_1p();
        assert!((bounds.log_evidence.value - evidence).abs() < 0.15, "{:?}", bounds.log_evidence);
        assert!(bounds.elbo.value < evidence, "{:?}", bounds.elbo);
        for estimator in [Estimator::Score, Estimator::LocalExpectation] {
            let gradient = GradientSettings::default().estimator(estimator);
            let settings = patient.clone().gradient(gradient);
            let mut fit = Fit::init(&model, &q, &settings, &Start::at(vec![0.0; 2], 0.3)).unwrap();
            let estimate = fit.step(0.01).unwrap();
            assert!(estimate.dropped > 0 && estimate.dropped < estimate.drawn, "{estimate:?}");
            assert!(estimate.elbo.is_finite() && fit.theta().iter().all(|t| t.is_finite()));
        }
        let strict = quick().dropped_max(0.1);
        let mut fit = Fit::init(&model, &q, &strict, &Start::at(vec![0.0; 2], 0.3)).unwrap();
        says(fit.step(0.01), &["of 32 draws at step 0", "z0 = 1.0000", &format!("gives {bad}")]);
    }
}

/// Catches a start that was not checked: if no state is possible, or only one of many.
#[test]
fn an_impossible_start_is_refused_and_a_rare_one_is_found() {
    let nearly = Small::new(&[Support::BINARY; 2], |z| if z[0] + z[1] == 2.0 { 0.0 } else { f64::NEG_INFINITY });
    let settings = quick().dropped_max(1.0);
    let fitted = run(&nearly, &settings).unwrap();
    assert!(fitted.theta[0] > 0.0 && fitted.theta[1] > 0.0, "{:?}", fitted.theta);
    let nowhere = Small::new(&[Support::Counts], |z| if z[0] == 1e9 { 0.0 } else { f64::NEG_INFINITY });
    let q = Variational::mean_field(MeanField::of(Poisson, 1).unwrap());
    says(fit(&nowhere, &q, &quick(), &mut Quiet), &["had no finite log joint density", "gives -inf"]);
}

/// Catches an error of a model whose message is lost.
#[test]
fn errors_of_a_model_are_passed_on() {
    struct Broken(Latents);
    impl Model for Broken {
        fn latents(&self) -> &Latents {
            &self.0
        }
        fn log_joint(&self, _z: &Batch, _out: &mut [f64]) -> Result<()> {
            Err(Error::Model("the data file is gone".to_owned()))
        }
    }
    let model = Broken(Latents::new().vector("z", 2, Support::BINARY).unwrap());
    says(run(&model, &quick()), &["the model failed: the data file is gone"]);
    let lying = Small::new(&[Support::Real], |z| -z[0] * z[0]).with_gradient(|z, d| d[0] = -z[0]);
    says(hyperprior::check(&lying, 1), &["gradient disagrees", "latent z0", "at z0 = "]);
}

/// Catches a right gradient that is called wrong because the density has too few digits for a short step: the difference of two
/// numbers near 10⁸ has eight.
#[test]
fn rounding_in_a_density_is_not_held_against_its_gradient() {
    let rounded = |z: &[f64]| (1e8 - 0.5 * z[0] * z[0]) - 1e8;
    let honest = Small::new(&[Support::Real], rounded).with_gradient(|z, d| d[0] = -z[0]);
    assert!(hyperprior::check(&honest, 1).unwrap().gradient);
    let lying = Small::new(&[Support::Real], rounded).with_gradient(|z, d| d[0] = -1.01 * z[0]);
    says(hyperprior::check(&lying, 1), &["gradient disagrees"]);
}

/// Catches a gradient that is not finite although every draw is: the message must not blame the draws.
#[test]
fn a_gradient_that_is_not_finite_is_reported() {
    let model = Small::new(&[Support::Real], |z| -z[0] * z[0]).with_gradient(|_, d| d[0] = f64::NAN);
    let q = Variational::mean_field(MeanField::of(Normal, 1).unwrap());
    let settings = quick();
    let mut fit = Fit::init(&model, &q, &settings, &Start::at(vec![0.0; 2], 0.3)).unwrap();
    says(fit.step(0.01), &["gradient", "step 0", "not finite"]);
}

/// Catches parts of different sizes that would only fail at run time.
#[test]
fn parts_that_do_not_fit_are_refused() {
    let three = Gaussian::new(3, Covariance::Full).unwrap();
    says(Variational::new(coin_field(), three, SameAsPrior), &["one is over 3 parameters, the other over 2"]);
    let flow = || InverseFlow::factorised(&coin_field(), 1, Space::Noise);
    says(Variational::new(coin_field(), Delta { lambda_len: 2 }, flow()), &["a point has no density", "use r = prior"]);
    let mixture = || Mixture::new(2, 3, Covariance::Full).unwrap();
    says(Variational::new(coin_field(), mixture(), flow()), &["factorised", "1 component", "3"]);
    let of_three = InverseFlow::factorised(&MeanField::of(Bernoulli, 3).unwrap(), 1, Space::Noise);
    says(Variational::new(coin_field(), full(), of_three), &["factorised", "made for"]);
    let of_mixture = MixtureGaussian::new(&coin_field(), &mixture(), GaussianFit::Laplace, Space::Noise).unwrap();
    says(Variational::new(coin_field(), full(), of_mixture), &["mixture-Laplace", "made for"]);
    let planar = PlanarFlow::new(2, 1).unwrap();
    let laplace = MixtureGaussian::new(&coin_field(), &planar, GaussianFit::Laplace, Space::Noise);
    says(laplace, &["mixture-Laplace", "it needs a Gaussian", "use an inverse flow"]);
    let mixed = || {
        let point = Factor::PointMass(Bijector::Exp);
        MeanField::new(vec![Factor::Family(Box::new(Bernoulli)), point]).unwrap()
    };
    says(Variational::new(mixed(), PlanarFlow::new(2, 1).unwrap(), SameAsPrior), &["needs an approximation on λ"]);
    let on_lambda = MixtureGaussian::new(&mixed(), &full(), GaussianFit::Laplace, Space::Lambda);
    says(on_lambda, &["put it on the noise"]);
}

/// Catches a variational model that is used for a different model.
#[test]
fn a_variational_model_that_does_not_fit_the_model_is_refused() {
    let q = || Variational::new(coin_field(), full(), SameAsPrior).unwrap();
    says(q().check(&count()), &["factors for 2 latents, the model has 1"]);
    let reals = Small::new(&[Support::Real; 2], |_| 0.0);
    says(q().check(&reals), &["the factor `bernoulli` of z0", "the latent's support is Real"]);
    let normals = Variational::mean_field(MeanField::of(Normal, 2).unwrap());
    says(normals.check(&reals), &["the factor `normal` of z0", "the model has no gradient; give it one"]);

    struct Bare(Latents);
    impl Model for Bare {
        fn latents(&self) -> &Latents {
            &self.0
        }
        fn log_joint(&self, _z: &Batch, out: &mut [f64]) -> Result<()> {
            out.fill(0.0);
            Ok(())
        }
    }
    let bare = Bare(Latents::new().vector("z", 2, Support::BINARY).unwrap());
    let engine = |q: &Variational, settings: GradientSettings| GradientEngine::new(&bare, q, &settings);
    let summed = GradientSettings::default().estimator(Estimator::LocalExpectation);
    says(engine(&q(), summed), &["it has no conditionals", "use the score estimator"]);
    let on_lambda = InverseFlow::factorised(&coin_field(), 1, Space::Lambda);
    let on_lambda = Variational::new(coin_field(), full(), on_lambda).unwrap();
    let weighted = GradientSettings::default().importance(2);
    says(engine(&on_lambda, weighted), &["importance-weighted training", "needs an approximation on the noise"]);

    says(evaluate(&bare, &q(), (&[0.0; 4], &[]), &BoundSettings::default()), &["θ", "4", "5"]);
    let settings = quick();
    says(Fit::init(&bare, &q(), &settings, &Start::at(vec![0.0; 3], 0.3)).map(|_| ()), &["start", "3", "2"]);
}

/// Catches an invalid setting that is not checked before it is used.
#[test]
fn invalid_settings_are_refused_by_name() {
    type Change = fn(&mut FitSettings);
    let changes: [(Change, &str); 13] = [
        (|s| s.gradient.draws = 0, "`draws` = 0"),
        (|s| s.gradient.replicates = 0, "`replicates` = 0"),
        (|s| s.gradient.replicates = 5, "`replicates` = 5"),
        (|s| s.gradient.window_max = 0, "`window_max` = 0"),
        (|s| s.step_size = f64::NAN, "`step_size` = NaN"),
        (|s| s.step_size = 0.0, "`step_size` = 0"),
        (|s| s.step_size = f64::INFINITY, "`step_size` = inf"),
        (|s| s.dropped_max = 1.5, "`dropped_max` = 1.5"),
        (|s| s.start.tries = 0, "`start.tries` = 0"),
        (|s| s.start.chains = 1, "`start.chains` = 1"),
        (|s| s.start.ranking_draws = 0, "`start.ranking_draws` = 0"),
        (|s| s.start.temper = 0.0, "`start.temper` = 0"),
        (|s| s.start.scale = -1.0, "`start.scale` = -1"),
    ];
    for (change, words) in changes {
        let mut settings = quick();
        change(&mut settings);
        says(run(&coins(), &settings), &[words, "is invalid"]);
    }
    let q = Variational::new(coin_field(), full(), SameAsPrior).unwrap();
    let none = BoundSettings::default().draws(0);
    says(evaluate(&coins(), &q, (&[0.0; 5], &[]), &none), &["`draws` = 0", "at least one draw"]);
    let unknown = serde_json::from_str::<FitSettings>("{\"step_sise\": 0.1}").unwrap_err().to_string();
    assert!(unknown.contains("unknown field `step_sise`"), "{unknown}");
}

/// Catches a start that derives invalid gradient settings from valid ones.
#[test]
fn a_mean_field_start_works_with_any_valid_settings() {
    let gradient = GradientSettings::default().draws(30).replicates(5);
    let start = StartSettings::default().kind(StartKind::MeanField).tries(1);
    let fitted = run(&coins(), &quick().gradient(gradient).start(start)).unwrap();
    assert!(fitted.theta.iter().all(|t| t.is_finite()));
}

/// Catches an enumeration that would not end.
#[test]
fn enumerating_too_many_states_is_refused() {
    let real = Small::new(&[Support::Real], |_| 0.0);
    says(exact::posterior(&real, 10), &["cannot be enumerated", "z0 has the support Real"]);
    let many = Small::new(&[Support::Counts; 9], |_| 0.0);
    says(exact::posterior(&many, 63), &["cannot be enumerated", "more than"]);
}

/// Independent standard normals whose gradient is undefined far out, as if their density had overflowed there.
struct Overflowing(Latents);

impl Model for Overflowing {
    fn latents(&self) -> &Latents {
        &self.0
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        out.iter_mut().enumerate().for_each(|(s, out)| *out = (0..4).map(|i| -0.5 * z.get(i, s).powi(2)).sum());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for Overflowing {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.log_joint(z, out)?;
        for s in 0..out.len() {
            let is_far = (0..4).any(|i| z.get(i, s).abs() > 3.7);
            (0..4).for_each(|i| d_z.set(i, s, if is_far { f64::NAN } else { -z.get(i, s) }));
        }
        Ok(())
    }
}

/// Catches a rare draw that ends an inference with an error: the Gaussian stays at the mode, and the draws are right.
#[test]
fn a_gradient_that_overflows_in_rare_draws_does_not_end_an_inference() {
    let model = Overflowing(Latents::new().vector("x", 4, Support::Real).unwrap());
    let found = infer(&model, &Starts::default(), &InferSettings::default(), &mut Quiet).unwrap();
    for i in 0..4 {
        let x = found.z.column(i);
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let sd = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt();
        assert!(mean.abs() < 0.1 && (sd - 1.0).abs() < 0.1, "{mean} ± {sd}");
    }
}
