//! Exact marginalisation of Gaussian latents, against sums and integrals over the others.

use hyperprior::infer::{InferSettings, Integrated, Method, Posterior, Source};
use hyperprior::model::{Model, random_points};
use hyperprior::{Batch, Quiet};
use hyperprior_graph::fit::Task;
use hyperprior_graph::{Distribution, Expr, Function, Graph, GraphBuilder, GraphModel, Marginalise};
use hyperprior_math::linalg::{cholesky, packed};
use hyperprior_testkit::quadrature::Rule;
use std::f64::consts::PI;

fn run(graph: &Graph, seed: u64) -> (Posterior, Integrated) {
    let task = Task::new(graph.clone(), &Marginalise::Auto, &[]).unwrap();
    let posterior = task.run(&InferSettings::default().seed(seed), &mut Quiet).unwrap();
    let Source::Integrated(found) = &posterior.source else { panic!("an approximation") };
    let found = (**found).clone();
    (posterior, found)
}

fn is_integrated(graph: &Graph, settings: &InferSettings) -> bool {
    let task = Task::new(graph.clone(), &Marginalise::Auto, &[]).unwrap();
    matches!(task.run(settings, &mut Quiet).unwrap().source, Source::Integrated(_))
}

fn moments(posterior: &Posterior, name: &str) -> [f64; 2] {
    let summaries = posterior.summaries();
    let found = summaries.iter().find(|one| one.name == name).unwrap();
    [found.mean, found.sd]
}

fn normal(g: &mut GraphBuilder, name: &str, mean: Expr, precision: Expr, y: Option<f64>) -> Expr {
    g.stochastic(name, Distribution::Normal { mean, precision }, None, y).unwrap()
}

/// The log density of observations with mean zero and this covariance.
fn log_normal(y: &[f64], covariance: impl Fn(usize, usize) -> f64) -> f64 {
    let n = y.len();
    let factor = cholesky(&(0..n * n).map(|e| covariance(e / n, e % n)).collect::<Vec<_>>(), n).unwrap();
    let (mut e, mut total) = (y.to_vec(), -0.5 * n as f64 * (2.0 * PI).ln());
    for i in 0..n {
        let taken: f64 = (0..i).map(|j| factor[packed(i, j)] * e[j]).sum();
        e[i] = (e[i] - taken) / factor[packed(i, i)];
        total -= 0.5 * e[i] * e[i] + factor[packed(i, i)].ln();
    }
    total
}

const Y: [f64; 6] = [0.1, 0.4, 0.9, 1.2, 2.9, 3.3];

/// Three groups around an unknown mean, with two observations each; the precision of the groups, or also that of the observations, is
/// unknown.
fn groups(is_error_known: bool) -> Graph {
    let mut g = GraphBuilder::new();
    let (zero, one, two) = (g.constant(0.0), g.constant(1.0), g.constant(2.0));
    let precision = g.stochastic("tau", Distribution::Gamma { shape: two, rate: one }, None, None).unwrap();
    let error = match is_error_known {
        true => one,
        false => g.stochastic("error", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap(),
    };
    let centre = normal(&mut g, "mu", zero, one, None);
    for i in 0..3 {
        let mean = normal(&mut g, &format!("theta[{}]", i + 1), centre, precision, None);
        for j in 0..2 {
            normal(&mut g, &format!("y[{},{}]", i + 1, j + 1), mean, error, Some(Y[2 * i + j]));
        }
    }
    g.build().unwrap()
}

/// log p(y | tau, error).
fn log_likelihood(tau: f64, error: f64) -> f64 {
    log_normal(&Y, |i, j| 1.0 + f64::from(i / 2 == j / 2) / tau + f64::from(i == j) / error)
}

#[test]
fn without_other_latents_nothing_is_approximated() {
    let mut g = GraphBuilder::new();
    let (zero, half, two) = (g.constant(0.0), g.constant(0.5), g.constant(2.0));
    let mean = normal(&mut g, "mu", zero, half, None);
    (0..6).for_each(|i| {
        normal(&mut g, &format!("y[{}]", i + 1), mean, two, Some(Y[i]));
    });
    let (posterior, found) = run(&g.build().unwrap(), 1);
    let exact = log_normal(&Y, |i, j| 2.0 + 0.5 * f64::from(i == j));
    assert!((found.log_evidence.value - exact).abs() < 1e-10 && found.log_evidence.standard_error == 0.0);
    let precision = 0.5 + 12.0;
    let [mean, sd] = moments(&posterior, "mu");
    assert!((mean - 2.0 * Y.iter().sum::<f64>() / precision).abs() < 1e-3);
    assert!((sd * precision.sqrt() - 1.0).abs() < 2e-3);
}

/// Catches coefficients that are added up where only their small difference is left: data that are far from zero.
#[test]
fn data_far_from_zero_lose_no_digits() {
    let (prior, precision, shift) = (1e-10, 2.0, 1e5);
    let mut g = GraphBuilder::new();
    let [zero, of_mean, of_data] = [0.0, prior, precision].map(|x| g.constant(x));
    let mean = normal(&mut g, "mu", zero, of_mean, None);
    for (i, y) in Y.iter().enumerate() {
        normal(&mut g, &format!("y[{}]", i + 1), mean, of_data, Some(shift + y));
    }
    let (posterior, found) = run(&g.build().unwrap(), 1);
    let (n, centre) = (6.0, Y.iter().sum::<f64>() / 6.0);
    let within: f64 = Y.iter().map(|y| (y - centre).powi(2)).sum();
    let total = prior + n * precision;
    let between = prior * n * precision / total * (shift + centre).powi(2);
    let exact = 0.5 * (n * (precision / (2.0 * PI)).ln() + (prior / total).ln() - precision * within - between);
    assert!((found.log_evidence.value - exact).abs() < 1e-6, "{} {exact}", found.log_evidence.value);
    let [mean, sd] = moments(&posterior, "mu");
    assert!((mean - shift - centre).abs() < 1e-3 && (sd * total.sqrt() - 1.0).abs() < 2e-3);
}

/// Catches an evidence without a Jacobian, draws that do not follow the marginal, and effects that do not follow their precision.
#[test]
fn one_precision_is_integrated_out_on_a_line_and_two_by_importance_sampling() {
    // Over log tau, with the Jacobian; Gamma(2, 1) and Gamma(2, 2).
    let line = Rule::line(-9.0, 5.0, 0.05);
    let log_prior = |t: f64, rate: f64| 2.0 * (rate.ln() + t) - rate * t.exp();
    let evidence = line.integrate(|t| (log_likelihood(t[0].exp(), 1.0) + log_prior(t[0], 1.0)).exp());
    let mean =
        line.integrate(|t| t[0].exp() * (log_likelihood(t[0].exp(), 1.0) + log_prior(t[0], 1.0)).exp()) / evidence;
    // E[mu | y, tau] = Σ y weighted: covariance of mu with each observation is 1.
    let of_mu = |tau: f64| {
        let own = 1.0 / (1.0 / tau + 0.5);
        own * Y.iter().sum::<f64>() / 2.0 / (1.0 + 3.0 * own)
    };
    let mu = line.integrate(|t| of_mu(t[0].exp()) * (log_likelihood(t[0].exp(), 1.0) + log_prior(t[0], 1.0)).exp())
        / evidence;
    for seed in 1..=3 {
        let (posterior, found) = run(&groups(true), seed);
        assert_eq!((found.summary.khat, found.summary.gaussian, found.summary.conditioned.len()), (None, 4, 1));
        assert!((found.log_evidence.value - evidence.ln()).abs() < 1e-3, "{:?}, {}", found.log_evidence, evidence.ln());
        let [tau, sd] = moments(&posterior, "tau");
        assert!((tau - mean).abs() < 0.01 * sd, "{tau} and {mean}");
        let [found, sd] = moments(&posterior, "mu");
        assert!((found - mu).abs() < 0.03 * sd, "{found} and {mu}");
    }
    let two = Rule::line(-9.0, 5.0, 0.1);
    let evidence = two.integrate(|s| {
        two.integrate(|t| {
            let log_prior = log_prior(t[0], 1.0) + log_prior(s[0], 2.0);
            (log_likelihood(t[0].exp(), s[0].exp()) + log_prior).exp()
        })
    });
    let mean = two.integrate(|s| {
        two.integrate(|t| {
            let log_prior = log_prior(t[0], 1.0) + log_prior(s[0], 2.0);
            s[0].exp() * (log_likelihood(t[0].exp(), s[0].exp()) + log_prior).exp()
        })
    }) / evidence;
    for seed in 1..=3 {
        let (posterior, found) = run(&groups(false), seed);
        let (log, error) = (found.log_evidence.value, found.log_evidence.standard_error);
        assert!((log - evidence.ln()).abs() < 4.0 * error && error < 0.02, "{log} ± {error}, {}", evidence.ln());
        let [found, sd] = moments(&posterior, "error");
        assert!((found - mean).abs() < 0.08 * sd, "{found} and {mean}");
    }
}

/// Two numbers of which only the squares are observed, through latents that are Gaussian given these: four modes far apart.
fn squares() -> Graph {
    let mut g = GraphBuilder::new();
    let (zero, one, wide) = (g.constant(0.0), g.constant(1.0), g.constant(0.04));
    for i in 1..=2 {
        let root = normal(&mut g, &format!("root[{i}]"), zero, wide, None);
        let square = g.multiply(root, root);
        let x = normal(&mut g, &format!("x[{i}]"), square, one, None);
        normal(&mut g, &format!("y[{i}]"), x, one, Some(9.0));
    }
    g.build().unwrap()
}

/// Catches modes that the search for the mass of θ loses.
#[test]
fn every_mode_of_the_marginal_is_found() {
    let line = Rule::line(-8.0, 8.0, 0.01);
    let density =
        |t: f64| (-0.5 * t * t / 25.0 - 0.25 * (9.0 - t * t).powi(2)).exp() / (50.0 * PI).sqrt() / (4.0 * PI).sqrt();
    let evidence = line.integrate(|t| density(t[0]));
    let variance = line.integrate(|t| t[0] * t[0] * density(t[0])) / evidence;
    for seed in 1..=4 {
        let (posterior, found) = run(&squares(), seed);
        assert_eq!(found.summary.conditioned, ["root[1]", "root[2]"]);
        let (log, error) = (found.log_evidence.value, found.log_evidence.standard_error);
        assert!((log - 2.0 * evidence.ln()).abs() < 4.0 * error, "{log} ± {error}, {}", 2.0 * evidence.ln());
        for name in ["root[1]", "root[2]"] {
            let [mean, sd] = moments(&posterior, name);
            assert!(mean.abs() < 0.1 * sd && (sd / variance.sqrt() - 1.0).abs() < 0.02, "{name}: {mean}, {sd}");
        }
    }
}

/// A regression with two coefficients that may be zero.
fn selection(marginalise: &Marginalise) -> Task {
    Task::new(regression(2, &Y, column), marginalise, &[]).unwrap()
}

/// A regression whose coefficients may be zero.
fn regression(predictors: usize, y: &[f64], column: impl Fn(usize, usize) -> f64) -> Graph {
    regression_with(None, predictors, y, column)
}

/// The same with a known precision of the data.
fn regression_with(known: Option<f64>, predictors: usize, y: &[f64], column: impl Fn(usize, usize) -> f64) -> Graph {
    let mut g = GraphBuilder::new();
    let (zero, one, two, share) = (g.constant(0.0), g.constant(1.0), g.constant(2.0), g.constant(0.3));
    let precision = match known {
        Some(precision) => g.constant(precision),
        None => g.stochastic("tau", Distribution::Gamma { shape: two, rate: two }, None, None).unwrap(),
    };
    let terms: Vec<Expr> = (1..=predictors)
        .map(|j| {
            let is_in = g.stochastic(&format!("g[{j}]"), Distribution::Bernoulli { p: share }, None, None).unwrap();
            let own = normal(&mut g, &format!("b[{j}]"), zero, one, None);
            g.multiply(is_in, own)
        })
        .collect();
    for (i, y) in y.iter().enumerate() {
        let x: Vec<Expr> = (0..predictors).map(|j| g.constant(column(j, i))).collect();
        let mean = g.inner_product(&x, &terms);
        normal(&mut g, &format!("y[{}]", i + 1), mean, precision, Some(*y));
    }
    g.build().unwrap()
}

fn column(j: usize, i: usize) -> f64 {
    if j == 0 { 1.0 } else { (i as f64 - 2.5) / 2.0 }
}

/// Catches states with the wrong weights, marginalised or kept.
#[test]
fn states_of_discrete_latents_are_summed_over() {
    let line = Rule::line(-8.0, 5.0, 0.05);
    let of_state = |state: [f64; 2]| {
        let log_p: f64 = state.iter().map(|g| if *g == 1.0 { 0.3_f64.ln() } else { 0.7_f64.ln() }).sum();
        line.integrate(|t| {
            let covariance = |i: usize, j: usize| {
                let shared: f64 = (0..2).map(|k| state[k] * column(k, i) * column(k, j)).sum();
                shared + f64::from(i == j) * (-t[0]).exp()
            };
            (log_p + log_normal(&Y, covariance) + 2.0 * (2.0_f64.ln() + t[0]) - 2.0 * t[0].exp()).exp()
        })
    };
    let states = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]].map(of_state);
    let evidence: f64 = states.iter().sum();
    for which in [Marginalise::Auto, Marginalise::Nothing] {
        let task = selection(&which);
        let posterior = task.run(&InferSettings::default(), &mut Quiet).unwrap();
        let Source::Integrated(found) = &posterior.source else { panic!("an approximation") };
        assert_eq!((found.summary.states, found.z.columns_len()), (Some(4), task.model().latents().len()));
        assert!((found.log_evidence.value - evidence.ln()).abs() < 1e-3);
        for (name, exact) in [("g[1]", states[2] + states[3]), ("g[2]", states[1] + states[3])] {
            let [mean, _] = moments(&posterior, name);
            assert!((mean - exact / evidence).abs() < 0.025, "{name}: {mean} and {}", exact / evidence);
        }
    }
}

/// Catches chains that stay where they began, and an evidence that is not that of all states: with 13 predictors, against all states.
#[test]
fn chains_over_many_states_agree_with_sums() {
    const PREDICTORS: usize = 13;
    let x = |j: usize, i: usize| ((3 * i + 7 * j) as f64).sin() + 0.7 * ((3 * i + 7 * (j / 2)) as f64).cos();
    let y: Vec<f64> = (0..10).map(|i| 0.9 * x(2, i) - 0.7 * x(9, i) + 0.4 * (5.0 * i as f64).sin()).collect();
    let grid: Vec<f64> = (0..36).map(|k| -4.0 + 0.2 * f64::from(k)).collect();
    let products: Vec<Vec<f64>> =
        (0..PREDICTORS).map(|j| (0..100).map(|e| x(j, e / 10) * x(j, e % 10)).collect()).collect();
    let (mut evidence, mut included, mut tau) = (0.0, [0.0; PREDICTORS], 0.0);
    for state in 0..1 << PREDICTORS {
        let is_in = |j: usize| state >> j & 1 == 1;
        let len = (0..PREDICTORS).filter(|j| is_in(*j)).count();
        let log_prior = len as f64 * 0.3_f64.ln() + (PREDICTORS - len) as f64 * 0.7_f64.ln();
        let shared: Vec<f64> =
            (0..100).map(|e| (0..PREDICTORS).filter(|j| is_in(*j)).map(|j| products[j][e]).sum()).collect();
        for t in &grid {
            let covariance = |i: usize, k: usize| shared[10 * i + k] + f64::from(i == k) * (-t).exp();
            let log_p = log_prior + log_normal(&y, covariance) + 2.0 * (2.0_f64.ln() + t) - 2.0 * t.exp();
            let mass = 0.2 * log_p.exp();
            evidence += mass;
            tau += mass * t.exp();
            (0..PREDICTORS).filter(|j| is_in(*j)).for_each(|j| included[j] += mass);
        }
    }
    let graph = regression(PREDICTORS, &y, x);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&graph, 3))
    };
    let (posterior, found) = with(2);
    assert_eq!(found.summary.states, None);
    assert!(found.summary.chains.as_ref().is_some_and(|chains| chains.rhat < 1.02));
    let error = found.log_evidence.value - f64::ln(evidence);
    assert!(
        error.abs() < 4.0 * found.log_evidence.standard_error && found.log_evidence.standard_error < 0.05,
        "{error}"
    );
    for (j, exact) in included.iter().enumerate() {
        let [mean, _] = moments(&posterior, &format!("g[{}]", j + 1));
        assert!((mean - exact / evidence).abs() < 0.05, "{j}: {mean} and {}", exact / evidence);
    }
    let [mean, sd] = moments(&posterior, "tau");
    assert!((mean - tau / evidence).abs() < 0.15 * sd, "{mean} and {}", tau / evidence);
    assert_eq!(with(1).1.z, found.z);
}

/// Catches chains that need another latent beside the indicators, and chains that all are in one of two places: in the second data set the
/// sum of two predictors is nearly that of two others, and the way from one pair to the other leads through states without mass.
#[test]
fn chains_of_indicators_alone_are_right_or_not_used() {
    const PREDICTORS: usize = 13;
    let plain = |j: usize, i: usize| ((3 * i + 7 * j) as f64).sin();
    let paired = |j: usize, i: usize| match j {
        2 => plain(0, i) + (i as f64 * 1.7).cos(),
        3 => plain(1, i) - (i as f64 * 1.7).cos() + 0.01 * (i as f64).sin(),
        _ => plain(j, i),
    };
    for (is_easy, precision) in [(true, 4.0), (false, 200.0)] {
        let x = |j: usize, i: usize| if is_easy { plain(j, i) } else { paired(j, i) };
        let y: Vec<f64> = (0..10).map(|i| x(0, i) + x(1, i) + 0.1 * (5.0 * i as f64).sin()).collect();
        let graph = regression_with(Some(precision), PREDICTORS, &y, x);
        let task = Task::new(graph, &Marginalise::Auto, &[]).unwrap();
        let settings = InferSettings::default().seed(2);
        let posterior = task.run(&settings, &mut Quiet).unwrap();
        let Source::Integrated(found) = &posterior.source else {
            assert!(!is_easy);
            continue;
        };
        let (mut evidence, mut included) = (0.0, [0.0; PREDICTORS]);
        for state in 0..1 << PREDICTORS {
            let is_in = |j: usize| f64::from(state >> j & 1);
            let log_prior: f64 =
                (0..PREDICTORS).map(|j| if is_in(j) == 1.0 { 0.3_f64.ln() } else { 0.7_f64.ln() }).sum();
            let covariance = |i: usize, k: usize| {
                let shared: f64 = (0..PREDICTORS).map(|j| is_in(j) * x(j, i) * x(j, k)).sum();
                shared + f64::from(i == k) / precision
            };
            let mass = (log_prior + log_normal(&y, covariance)).exp();
            evidence += mass;
            included.iter_mut().enumerate().for_each(|(j, included)| *included += mass * is_in(j));
        }
        let error = found.log_evidence.value - f64::ln(evidence);
        assert!(error.abs() < 4.0 * found.log_evidence.standard_error + 0.02, "{error}");
        for (j, exact) in included.iter().enumerate() {
            let [mean, _] = moments(&posterior, &format!("g[{}]", j + 1));
            assert!((mean - exact / evidence).abs() < 0.06, "{j}: {mean} and {}", exact / evidence);
        }
    }
}

#[test]
fn numbers_do_not_depend_on_threads() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&groups(false), 5).1)
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one.z, three.z);
    assert_eq!(one.log_evidence, three.log_evidence);
    assert_ne!(one.z, run(&groups(false), 6).1.z);
}

#[test]
fn what_was_asked_for_is_not_replaced() {
    let settings = InferSettings::default();
    assert!(is_integrated(&groups(true), &settings));
    for other in [settings.clone().method(Method::FullRank), settings.clone().moves(2), settings.steps(200)] {
        assert!(!is_integrated(&groups(true), &other));
    }
}

/// Catches a graph that is rewritten again for an approximation: a rate that is integrated out beside Gaussian latents is listed once.
#[test]
fn an_approximation_takes_the_rewritten_graph() {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let precision = g.stochastic("tau", Distribution::Gamma { shape: one, rate: one }, None, None).unwrap();
    let x = normal(&mut g, "x", zero, precision, None);
    normal(&mut g, "y", x, one, Some(0.5));
    let rate = g.stochastic("rate", Distribution::Gamma { shape: one, rate: precision }, None, None).unwrap();
    g.stochastic("count", Distribution::Poisson { rate }, None, Some(2.0)).unwrap();
    let task = Task::new(g.build().unwrap(), &Marginalise::Auto, &[]).unwrap();
    for settings in [InferSettings::default(), InferSettings::default().method(Method::FullRank)] {
        task.run(&settings, &mut Quiet).unwrap();
        assert_eq!(task.model().marginalised().collect::<Vec<_>>(), ["rate"]);
    }
}

/// A mean without a proper prior that is not Gaussian, and a count: neither can be integrated out.
#[test]
fn other_models_are_approximated() {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let flat = g.stochastic("flat", Distribution::HalfFlat, None, None).unwrap();
    let x = normal(&mut g, "x", zero, flat, None);
    normal(&mut g, "y", x, one, Some(0.5));
    let model = g.build().unwrap().model().unwrap();
    assert!(!hyperprior::infer::may_integrate(&model));
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let x = normal(&mut g, "x", zero, one, None);
    let rate = g.call(Function::Exp, &[x]);
    g.stochastic("y", Distribution::Poisson { rate }, None, Some(3.0)).unwrap();
    let model = g.build().unwrap().model().unwrap();
    assert!(model.gaussian_given_others(6).is_none());
}

/// Catches a latent that is called Gaussian and is not: along those that are, third differences of the log joint vanish wherever the others
/// are.
#[test]
fn the_log_joint_is_quadratic_in_what_is_called_gaussian() {
    let graphs = [groups(true), groups(false), squares(), factors()];
    let gaussian = [4, 4, 2, 5];
    for (graph, expected) in graphs.into_iter().zip(gaussian) {
        let model = graph.model_with(&Marginalise::Nothing).unwrap();
        let columns = model.gaussian_given_others(6).unwrap();
        assert_eq!(columns.len(), expected);
        let n = model.latents().len();
        for seed in 0..5 {
            let value = |i: usize, k: usize| ((i * 7 + k * 3 + seed * 11) as f64).sin();
            let mut z = Batch::zeros(n, 4);
            for i in 0..n {
                let direction = if columns.contains(&i) { value(i, 1) } else { 0.0 };
                (0..4).for_each(|s| z.set(i, s, value(i, 0) + s as f64 * direction));
            }
            let mut log_p = [0.0; 4];
            model.log_joint(&z, &mut log_p).unwrap();
            let third = log_p[3] - 3.0 * log_p[2] + 3.0 * log_p[1] - log_p[0];
            assert!(third.abs() < 1e-9 * (1.0 + log_p[3].abs()), "{third}");
        }
    }
}

/// Loadings times scores: one loading for five scores, so the loading is the one that is left out.
fn factors() -> Graph {
    let mut g = GraphBuilder::new();
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let loading = normal(&mut g, "loading", zero, one, None);
    for i in 0..5 {
        let score = normal(&mut g, &format!("score[{}]", i + 1), zero, one, None);
        let mean = g.multiply(loading, score);
        normal(&mut g, &format!("y[{}]", i + 1), mean, one, Some(Y[i]));
    }
    g.build().unwrap()
}

/// c + gᵀx − ½ xᵀPx at the draws of a model, by the coefficients that it knows.
fn by_coefficients(model: &GraphModel, z: &Batch) -> Option<Vec<f64>> {
    let gaussian = model.gaussian_given_others(10)?;
    let known = model.quadratic(&gaussian)?;
    let len = z.draws_len();
    let (mut constant, mut linear) = (vec![0.0; len], Batch::zeros(gaussian.len(), len));
    let mut entries = Batch::zeros(known.pairs().len(), len);
    // They do not depend on the Gaussian latents.
    let mut others = z.clone();
    gaussian.iter().for_each(|i| others.column_mut(*i).fill(f64::NAN));
    known.coefficients(&others, &mut constant, &mut linear, &mut entries);
    let x = |i: u32, s: usize| z.get(gaussian[i as usize], s);
    let of = |s: usize| {
        let linear: f64 = (0..gaussian.len()).map(|k| linear.get(k, s) * x(k as u32, s)).sum();
        let pairs = known.pairs().iter().enumerate();
        let squares: f64 =
            pairs.map(|(k, [i, j])| entries.get(k, s) * x(*i, s) * x(*j, s) * if i == j { 0.5 } else { 1.0 }).sum();
        constant[s] + linear - squares
    };
    Some((0..len).map(of).collect())
}

#[test]
fn the_coefficients_of_a_quadratic_are_those_of_the_log_joint() {
    let mut graphs = vec![groups(true), groups(false), squares(), factors()];
    let mut g = GraphBuilder::new();
    let [zero, half, one, two] = [0.0, 0.5, 1.0, 2.0].map(|x| g.constant(x));
    let gamma = |g: &mut GraphBuilder, name: &str| {
        g.stochastic(name, Distribution::Gamma { shape: two, rate: one }, None, None).unwrap()
    };
    let (tau, rate) = (gamma(&mut g, "tau"), gamma(&mut g, "rate"));
    let (mut products, mut effects) = (Vec::new(), Vec::new());
    for j in 0..4 {
        let is_in = g.stochastic(&format!("g[{}]", j + 1), Distribution::Bernoulli { p: half }, None, None).unwrap();
        let b = normal(&mut g, &format!("b[{}]", j + 1), zero, one, None);
        products.push(g.multiply(is_in, b));
        effects.push(b);
    }
    for i in 0..7 {
        // A regression on what is in the model, an effect that decays at an unknown rate, a quotient, and a choice.
        let f = f64::from(i);
        let x: Vec<Expr> = (0..4).map(|j| g.constant((f + f64::from(j)).sin())).collect();
        let power = g.constant(-0.2 * f);
        let power = g.multiply(rate, power);
        let decay = g.call(Function::Exp, &[power]);
        let mut terms = vec![g.inner_product(&x, &products), g.multiply(decay, effects[0])];
        terms.push(g.call(Function::Divide, &[effects[1], tau]));
        let chosen = g.call(Function::Less, &[tau, one]);
        terms.push(g.call(Function::IfElse, &[chosen, effects[2], effects[3]]));
        let mean = g.sum(&terms);
        normal(&mut g, &format!("y[{}]", i + 1), mean, tau, Some(f.cos()));
    }
    graphs.push(g.build().unwrap());
    for graph in graphs {
        let model = graph.model_with(&Marginalise::Nothing).unwrap();
        let z = random_points(model.latents(), 40, 3);
        hyperprior::check(&model, 1).unwrap();
        let mut log_p = vec![0.0; 40];
        model.log_joint(&z, &mut log_p).unwrap();
        let found = by_coefficients(&model, &z).unwrap();
        for (found, log_p) in found.iter().zip(&log_p) {
            assert!((found - log_p).abs() < 1e-9 * (1.0 + log_p.abs()), "{found} {log_p}");
        }
    }
}
