//! From a model to draws: posteriors with known answers, and the stages of inference.

use hyperprior::infer::{
    Correction, InferSettings, Method, MoveSchedule, Starts, WhitenedModel, Whitening, infer, mcmc_moves, mode_search,
};
use hyperprior::math::special::ln_factorial;
use hyperprior::model::{Conditionals, Latents, Model, Support, check};
use hyperprior::{Batch, Error, Quiet};
use hyperprior_graph::fit::Task;
use hyperprior_graph::{Distribution, Expr, Function, Graph, GraphBuilder, GraphModel, Marginalise};

fn settings(method: Method) -> InferSettings {
    InferSettings::default().method(method)
}

/// Ten counts of one rate: the posterior is Gamma(2 + Σy, 1 + 10).
fn rates() -> GraphModel {
    let mut g = GraphBuilder::new();
    let (one, two) = (g.constant(1.0), g.constant(2.0));
    let rate = g.stochastic("rate", Distribution::Gamma { shape: two, rate: one }, None, None).unwrap();
    for (i, y) in [3.0, 1.0, 4.0, 1.0, 5.0, 2.0, 2.0, 6.0, 0.0, 3.0].into_iter().enumerate() {
        g.stochastic(&format!("y[{}]", i + 1), Distribution::Poisson { rate }, None, Some(y)).unwrap();
    }
    g.build().unwrap().model().unwrap()
}

fn moments(x: &[f64]) -> (f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
}

#[test]
fn every_method_finds_a_conjugate_posterior() {
    let model = rates();
    let (shape, rate) = (29.0_f64, 11.0);
    for method in ["auto", "mean-field", "full-rank", "mixture:2", "flow:2", "copula:1", "hvm"] {
        let settings = settings(method.parse().unwrap());
        let found = infer(&model, &model.starts(1).unwrap(), &settings, &mut Quiet).unwrap();
        let plain = settings.correct(Correction::None);
        let uncorrected = infer(&model, &model.starts(1).unwrap(), &plain, &mut Quiet).unwrap();
        // The draws, and those of the approximation alone, which a correction would mend.
        for z in [&found.z, &uncorrected.z] {
            let drawn = model.complete(z, &model.quantities(), 1).unwrap();
            let (mean, sd) = moments(drawn.column(0));
            // Five standard errors of the mean of 4000 draws are .08 sd, and of the sd 5.6 %.
            assert!((mean - shape / rate).abs() < 0.08 * shape.sqrt() / rate, "{method}: mean {mean}");
            assert!((sd / (shape.sqrt() / rate) - 1.0).abs() < 0.06, "{method}: sd {sd}");
        }
        // The evidence of the Gamma–Poisson model, exactly.
        let factorials: f64 =
            [6.0, 1.0, 24.0, 1.0, 120.0, 2.0, 2.0, 720.0, 1.0, 6.0].iter().map(|x: &f64| x.ln()).sum();
        let log_gamma = |x: f64| hyperprior::math::special::ln_gamma(x);
        let exact = log_gamma(shape) - shape * rate.ln() - log_gamma(2.0) - factorials;
        let evidence = found.bounds.log_evidence;
        assert!((evidence.value - exact).abs() < 5.0 * evidence.standard_error.max(2e-4), "{method}: {evidence:?}");
        // A log-normal is this close to the gamma distribution.
        let elbo = uncorrected.bounds.elbo;
        let gap = exact - elbo.value;
        assert!(
            gap > -5.0 * elbo.standard_error && gap < 0.005 + 5.0 * elbo.standard_error,
            "{method}: {elbo:?} {exact}"
        );
    }
}

/// A switch moves a mean by twelve: two modes far apart, with known shares.
fn switch() -> Graph {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let p = g.constant(0.3);
    let z = g.stochastic("z", Distribution::Bernoulli { p }, None, None).unwrap();
    let twelve = g.constant(12.0);
    let jump = g.multiply(twelve, z);
    let mu = g.stochastic("mu", Distribution::Normal { mean: jump, precision: one }, None, None).unwrap();
    // The distance from the midpoint is observed, so both modes have the same likelihood.
    let six = g.constant(6.0);
    let distance = g.call(Function::Subtract, &[mu, six]);
    let length = g.call(Function::Abs, &[distance]);
    g.stochastic("y", Distribution::Normal { mean: length, precision: one }, None, Some(6.0)).unwrap();
    let two = g.constant(2.0);
    let w = g.stochastic("w", Distribution::Normal { mean: zero, precision: two }, None, None).unwrap();
    g.stochastic("x", Distribution::Normal { mean: w, precision: two }, None, Some(1.0)).unwrap();
    g.build().unwrap()
}

#[test]
fn modes_far_apart_have_their_shares() {
    for (which, correct) in [
        (Marginalise::Auto, Correction::ResampleMove),
        (Marginalise::Auto, Correction::None),
        (Marginalise::Nothing, Correction::ResampleMove),
        (Marginalise::Nothing, Correction::None),
    ] {
        let model = switch().model_with(&which).unwrap();
        let settings = settings(Method::Auto).correct(correct);
        let found = infer(&model, &model.starts(1).unwrap(), &settings, &mut Quiet).unwrap();
        let quantities = model.quantities();
        let drawn = model.complete(&found.z, &quantities, 1).unwrap();
        let column = |name: &str| drawn.column(quantities.iter().position(|q| q.name == name).unwrap());
        // |mu − 6| near 6 holds at mu near 0 and near 12, equally likely: z = 1 has its prior's probability.
        assert!((moments(column("z")).0 - 0.3).abs() < 0.04, "{which:?}: {}", moments(column("z")).0);
        assert!((moments(column("mu")).0 - 3.6).abs() < 0.5);
        // The other latent is conjugate: mean 1/2, precision 4.
        let (mean, sd) = moments(column("w"));
        assert!((mean - 0.5).abs() < 0.04 && (sd - 0.5).abs() < 0.03, "{mean} {sd}");
    }
}

#[test]
fn a_whitened_model_is_the_same_model() {
    let model = rates();
    let whitened = WhitenedModel::new(&model, vec![0.9], Whitening::Full(vec![0.2]));
    check(&whitened, 3).unwrap();
    let model = switch().model_with(&Marginalise::Nothing).unwrap();
    let whitened = WhitenedModel::new(&model, vec![0.9, -0.3], Whitening::Full(vec![0.2, -0.4, 1.5]));
    check(&whitened, 3).unwrap();
    let whitened = WhitenedModel::new(&model, vec![0.9, -0.3], Whitening::Diagonal(vec![0.2, 1.5]));
    check(&whitened, 3).unwrap();
    let mut u = Batch::zeros(3, 2);
    u.set(1, 0, 0.7);
    u.set(2, 1, -1.1);
    let mut z = Batch::zeros(3, 2);
    whitened.restore(&u, &mut z);
    let back = whitened.whiten(&z);
    assert!(u.as_slice().iter().zip(back.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12));
}

/// Draws from a wrong distribution end up in the posterior, the only one that the moves leave invariant.
#[test]
fn mcmc_moves_converge_to_the_posterior() {
    let model = rates();
    let near = WhitenedModel::new(&model, vec![1.0], Whitening::Full(vec![0.2]));
    let mut u = Batch::zeros(1, 4000);
    for s in 0..4000 {
        u.set(0, s, -2.0 + 0.001 * s as f64);
    }
    let moved = mcmc_moves(&near, &mut u, &MoveSchedule::fixed(60), (3, 0), &mut Quiet).unwrap();
    assert!((moved.accepted.unwrap() - 0.8).abs() < 0.1, "{moved:?}");
    let mut z = Batch::zeros(1, 4000);
    near.restore(&u, &mut z);
    let rate: Vec<f64> = z.column(0).iter().map(|z| z.exp()).collect();
    let (mean, sd) = moments(&rate);
    let exact = (29.0 / 11.0, 29.0_f64.sqrt() / 11.0);
    assert!((mean - exact.0).abs() < 0.08 * exact.1 && (sd / exact.1 - 1.0).abs() < 0.06, "{mean} {sd}");
}

#[test]
fn the_same_seed_gives_the_same_draws_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let model = switch().model_with(&Marginalise::Nothing).unwrap();
            let short = InferSettings::default().steps(50).draws(100);
            let found = infer(&model, &model.starts(1).unwrap(), &short, &mut Quiet).unwrap();
            model.complete(&found.z, &model.quantities(), 1).unwrap()
        })
    };
    let one = run(1);
    assert_eq!(one.as_slice(), run(2).as_slice());
    assert_eq!(one.as_slice(), run(4).as_slice());
}

#[test]
fn an_impossible_model_is_an_error() {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let x: Expr = g.stochastic("x", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    // The log of a number that is never positive.
    let square = g.call(Function::Power, &[x, one]);
    let minus = g.call(Function::Abs, &[square]);
    let negative = g.call(Function::Negate, &[minus]);
    let log = g.call(Function::Log, &[negative]);
    g.stochastic("y", Distribution::Normal { mean: log, precision: one }, None, Some(0.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    let error = infer(&model, &model.starts(1).unwrap(), &settings(Method::Auto), &mut Quiet).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
    assert!(error.to_string().contains("(first: log density not a number at y = 0 ~ dnorm(NaN, 1))"), "{error}");
    assert!(mode_search(&model, &Starts::default(), 1, &mut Quiet).is_err());
}

#[test]
fn corrections_are_optional() {
    let model = rates();
    for correct in [Correction::None, Correction::Resample] {
        let found =
            infer(&model, &model.starts(1).unwrap(), &settings(Method::FullRank).correct(correct), &mut Quiet).unwrap();
        assert!(found.moved.is_none());
        assert_eq!(found.z.draws_len(), 4000);
    }
}

/// The moves stop once the draws are uncorrelated with where they started, and no sooner.
#[test]
fn moves_stop_once_the_draws_have_mixed() {
    let model = rates();
    let near = WhitenedModel::new(&model, vec![1.0], Whitening::Full(vec![0.2]));
    let start = |s: usize| -2.0 + 0.004 * s as f64;
    let moved = |schedule: &MoveSchedule| {
        let mut u = Batch::zeros(1, 1000);
        (0..1000).for_each(|s| u.set(0, s, start(s)));
        let moved = mcmc_moves(&near, &mut u, schedule, (3, 0), &mut Quiet).unwrap();
        let (x, y): (Vec<f64>, Vec<f64>) = (0..1000).map(|s| (start(s), u.get(0, s))).unzip();
        let ((mean_x, sd_x), (mean_y, sd_y)) = (moments(&x), moments(&y));
        let covariance = x.iter().zip(&y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / 1000.0;
        let found = (covariance / (sd_x * sd_y)).powi(2) - 2.0 * 3.0_f64.ln() / 1000.0;
        assert!(moved.memory >= found.max(0.0).sqrt() - 1e-9, "{moved:?}");
        moved
    };
    let once = moved(&MoveSchedule::fixed(1));
    let mixed = moved(&MoveSchedule { moves: [1, 60], memory: 0.05 });
    assert_eq!(once.moves, 1);
    assert!(mixed.memory <= 0.05 && mixed.moves < 60, "{mixed:?}");
    let never = moved(&MoveSchedule { moves: [1, 5], memory: -1.0 });
    assert_eq!(never.moves, 5);
}

/// A count that is 60 plus a Poisson(50).
struct Far(Latents);

impl Far {
    fn log_p(z: f64) -> f64 {
        if z < 60.0 { f64::NEG_INFINITY } else { (z - 60.0) * 50.0_f64.ln() - ln_factorial(z - 60.0) }
    }
}

impl Model for Far {
    fn latents(&self) -> &Latents {
        &self.0
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
        out.iter_mut().zip(z.column(0)).for_each(|(out, z)| *out = Self::log_p(*z));
        Ok(())
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }
}

impl Conditionals for Far {
    fn log_conditional(&self, _i: usize, _z: &Batch, values: &[f64], out: &mut Batch) -> hyperprior::Result<()> {
        values.iter().enumerate().for_each(|(v, value)| out.column_mut(v).fill(Self::log_p(*value)));
        Ok(())
    }
}

#[test]
fn gibbs_moves_reach_large_counts() {
    let model = Far(Latents::new().vector("N", 1, Support::Counts).unwrap());
    let near = WhitenedModel::new(&model, vec![], Whitening::Diagonal(vec![]));
    let mut u = Batch::zeros(1, 4000);
    u.column_mut(0).fill(61.0);
    mcmc_moves(&near, &mut u, &MoveSchedule::fixed(1), (3, 0), &mut Quiet).unwrap();
    let (mean, sd) = moments(u.column(0));
    // Five standard errors of the mean.
    assert!((mean - 110.0).abs() < 0.6 && (sd / 50.0_f64.sqrt() - 1.0).abs() < 0.06, "{mean} {sd}");
}

/// x ~ N(0, 1) and y ~ N(x, sd), where a discrete latent decides whether sd is 0.02 or 30. At y = 3 the first makes a mode with half
/// of the mass that is too narrow for an ascent from elsewhere.
#[test]
fn a_mode_given_a_discrete_value_is_a_start() {
    let mut g = GraphBuilder::new();
    let (zero, one, p) = (g.constant(0.0), g.constant(1.0), g.constant(0.75));
    let z = g.stochastic("z", Distribution::Bernoulli { p }, None, None).unwrap();
    let x = g.stochastic("x", Distribution::Normal { mean: zero, precision: one }, None, None).unwrap();
    let (wide, narrow, shift) = (g.constant(1.0 / 900.0), g.constant(2500.0), g.constant(1.0));
    let index = g.add(z, shift);
    let precision = g.select(index, &[wide, narrow]);
    g.stochastic("y", Distribution::Normal { mean: x, precision }, None, Some(3.0)).unwrap();
    let task = Task::new(g.build().unwrap(), &Marginalise::Auto, &[]).unwrap();
    let starts = task.model().starts(1).unwrap();
    let modes = starts.modes.unwrap();
    assert!((0..2).any(|s| (modes.get(0, s) - 3.0).abs() < 0.05), "{modes:?}");
    let posterior = task.run(&InferSettings::default(), &mut Quiet).unwrap();
    // p(z = 1 | y) from the two marginal densities of y.
    let density = |sd: f64| (-0.5 * (3.0_f64 / sd).powi(2)).exp() / sd;
    let (of_narrow, of_wide) = (0.75 * density(f64::hypot(1.0, 0.02)), 0.25 * density(f64::hypot(1.0, 30.0)));
    let exact = of_narrow / (of_narrow + of_wide);
    let found = posterior.summaries().into_iter().find(|s| s.name == "z").unwrap().mean;
    assert!((found - exact).abs() < 0.02, "{found} {exact}");
}
