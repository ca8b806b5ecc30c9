//! Prediction: pointwise log likelihoods against enumeration and against fits without the observation, replications and
//! predictions against exact distributions.

use hyperprior::Batch;
use hyperprior::posterior::{Loo, Statistic};
use hyperprior_graph::{Distribution, Expr, Graph, GraphBuilder, Marginalise, posterior_predictive_check};
use hyperprior_math::random::stream;
use hyperprior_math::special::{ln_gamma, log_sum_exp};
use hyperprior_testkit::goodness::chi_square;
use rand::RngExt;
use std::collections::HashMap;

/// A graph under construction, of which one observation may be left out.
struct Building {
    g: GraphBuilder,
    without: Option<usize>,
    observed: usize,
}

impl Building {
    fn new(without: Option<usize>) -> Self {
        Self { g: GraphBuilder::new(), without, observed: 0 }
    }

    fn number(&mut self, x: f64) -> Expr {
        self.g.constant(x)
    }

    fn latent(&mut self, name: &str, distribution: Distribution) -> Expr {
        self.g.stochastic(name, distribution, None, None).unwrap()
    }

    fn observe(&mut self, distribution: Distribution, y: f64) {
        let number = self.observed;
        self.observed += 1;
        if self.without != Some(number) {
            self.g.stochastic(&format!("y[{}]", number + 1), distribution, None, Some(y)).unwrap();
        }
    }

    fn build(self) -> Graph {
        self.g.build().unwrap()
    }
}

/// log Σ p(y, z) over the discrete latents, by enumeration on the original scale.
fn enumerated(graph: &Graph, kept: &HashMap<String, f64>, values: &dyn Fn(&str) -> Vec<f64>) -> f64 {
    let names: Vec<String> = graph.latent_names().map(str::to_owned).collect();
    let model = graph.clone().model_with(&Marginalise::Nothing).unwrap();
    let supports: Vec<Vec<f64>> =
        names.iter().map(|name| kept.get(name).map_or_else(|| values(name), |x| vec![*x])).collect();
    let all = hyperprior_testkit::enumerate::product(&supports);
    let logs: Vec<f64> = all.iter().map(|point| model.log_density(point).unwrap()).collect();
    log_sum_exp(&logs)
}

/// Checks every unit in every draw against log p(y, z) − log p(y without it, z).
fn check_against_enumeration(
    build: &dyn Fn(Option<usize>) -> Graph,
    values: &dyn Fn(&str) -> Vec<f64>,
    independent: &[bool],
) {
    let model = build(None).model().unwrap();
    let pointwise = model.pointwise().unwrap();
    let found: Vec<bool> = pointwise.units().iter().map(|u| u.is_independent).collect();
    assert_eq!(found, independent);
    let z = hyperprior::model::random_points(hyperprior::Model::latents(&model), 3, 7);
    let marginalised: Vec<&str> = model.marginalised().collect();
    let latents: Vec<_> = model.quantities().into_iter().filter(|q| q.is_latent).collect();
    let complete = model.complete(&z, &latents, 1).unwrap();
    let log_likelihood = pointwise.log_likelihood(&z).unwrap();
    for s in 0..z.draws_len() {
        let kept: HashMap<String, f64> = latents
            .iter()
            .enumerate()
            .filter(|(_, q)| !q.is_discrete && !marginalised.contains(&q.name.as_str()))
            .map(|(i, q)| (q.name.clone(), complete.get(i, s)))
            .collect();
        let whole = enumerated(&build(None), &kept, values);
        for u in 0..independent.len() {
            let exact = whole - enumerated(&build(Some(u)), &kept, values);
            let own = log_likelihood.get(u, s);
            assert!((own - exact).abs() < 1e-8, "unit {u} of draw {s}: {own} for {exact}");
        }
    }
}

/// One label for each observation; one value of a label makes an observation impossible.
#[test]
fn labels_of_single_observations_are_marginalised() {
    let build = |without| {
        let mut b = Building::new(without);
        let (one, two) = (b.number(1.0), b.number(2.0));
        let p = b.latent("p", Distribution::Beta { a: one, b: two });
        let rate = b.latent("rate", Distribution::Gamma { shape: two, rate: one });
        for (i, y) in [0.0, 3.0, 1.0].into_iter().enumerate() {
            let group = b.latent(&format!("group[{}]", i + 1), Distribution::Bernoulli { p });
            let own = b.g.multiply(rate, group);
            b.observe(Distribution::Poisson { rate: own }, y);
        }
        b.build()
    };
    check_against_enumeration(&build, &|_| vec![0.0, 1.0], &[true; 3]);
}

/// A hidden Markov chain: each observation given those before and after it.
#[test]
fn observations_of_a_chain_are_left_out_one_by_one() {
    let build = |without| {
        let mut b = Building::new(without);
        let (one, three) = (b.number(1.0), b.number(3.0));
        let stay = b.latent("stay", Distribution::Beta { a: three, b: one });
        let rates = ["low", "high"].map(|name| b.latent(name, Distribution::Gamma { shape: three, rate: one }));
        let leave = b.g.call(hyperprior_graph::Function::Subtract, &[one, stay]);
        let mut state: Option<Expr> = None;
        for (t, y) in [2.0, 0.0, 1.0, 7.0, 5.0].into_iter().enumerate() {
            let weights = match state {
                None => vec![one, three],
                Some(before) => [[stay, leave], [leave, stay]].map(|row| b.g.select(before, &row)).to_vec(),
            };
            let now = b.latent(&format!("state[{}]", t + 1), Distribution::Categorical { weights });
            let rate = b.g.select(now, &rates);
            b.observe(Distribution::Poisson { rate }, y);
            state = Some(now);
        }
        b.build()
    };
    check_against_enumeration(&build, &|_| vec![1.0, 2.0], &[false; 5]);
}

/// The observations bound a count from below: without the largest of them, it may be smaller.
#[test]
fn a_count_is_bounded_by_the_other_observations() {
    let build = |without| {
        let mut b = Building::new(without);
        let (one, two) = (b.number(1.0), b.number(2.0));
        let p = b.latent("p", Distribution::Beta { a: two, b: two });
        let rate = b.latent("rate", Distribution::Gamma { shape: two, rate: one });
        let n = b.latent("n", Distribution::Poisson { rate });
        for y in [1.0, 4.0, 2.0] {
            b.observe(Distribution::Binomial { p, n }, y);
        }
        b.build()
    };
    check_against_enumeration(&build, &|_| (0..150).map(f64::from).collect(), &[false; 3]);
}

/// One latent is fixed by its observation, another has two possible values.
#[test]
fn a_latent_fixed_by_an_observation_is_free_without_it() {
    let build = |without| {
        let mut b = Building::new(without);
        let (two, five, third) = (b.number(2.0), b.number(5.0), b.number(1.0 / 3.0));
        let p = b.latent("p", Distribution::Beta { a: two, b: two });
        for (i, y) in [5.0, 4.0].into_iter().enumerate() {
            let n = b.latent(&format!("n[{}]", i + 1), Distribution::Binomial { p, n: five });
            b.observe(Distribution::Binomial { p: third, n }, y);
        }
        b.build()
    };
    check_against_enumeration(&build, &|_| (0..6).map(f64::from).collect(), &[true; 2]);
}

/// Switches that all observations share, and a fitted latent whose prior depends on one of them.
#[test]
fn fitted_latents_may_depend_on_marginalised_ones() {
    let build = |without| {
        let mut b = Building::new(without);
        let (zero, half, one, nine) = (b.number(0.0), b.number(0.5), b.number(1.0), b.number(9.0));
        let on = ["g[1]", "g[2]"].map(|name| b.latent(name, Distribution::Bernoulli { p: half }));
        let index = b.g.add(on[0], one);
        let precision = b.g.select(index, &[nine, one]);
        let slope = b.latent("slope", Distribution::Normal { mean: zero, precision });
        for (x, y) in [(1.0, 0.4), (-2.0, -1.3), (0.5, 2.0)] {
            let x = b.number(x);
            let mean = b.g.multiply(x, slope);
            let mean = b.g.add(mean, on[1]);
            b.observe(Distribution::Normal { mean, precision: one }, y);
        }
        b.build()
    };
    check_against_enumeration(&build, &|_| vec![0.0, 1.0], &[false; 3]);
}

/// If a piece is too large for leaving out single observations, all of it is one unit: p(y | z).
#[test]
fn a_piece_that_is_too_large_is_one_unit() {
    let mut b = Building::new(None);
    let (one, ten) = (b.number(1.0), b.number(10.0));
    let weights = [vec![one, ten], vec![ten, one]];
    let rates = [1.0, 4.0].map(|rate| b.number(rate));
    let mut state: Option<Expr> = None;
    let y: Vec<f64> = (0..1200).map(|t| f64::from(t % 5)).collect();
    for (t, y) in y.iter().enumerate() {
        let weights = match state {
            None => vec![one, one],
            Some(before) => (0..2).map(|k| b.g.select(before, &[weights[0][k], weights[1][k]])).collect(),
        };
        let now = b.latent(&format!("state[{}]", t + 1), Distribution::Categorical { weights });
        let rate = b.g.select(now, &rates);
        b.observe(Distribution::Poisson { rate }, *y);
        state = Some(now);
    }
    let model = b.build().model().unwrap();
    let pointwise = model.pointwise().unwrap();
    let units = pointwise.units();
    assert_eq!((units.len(), units[0].observations_len, units[0].name.as_str()), (1, 1200, "y[1]"));
    // The forward algorithm.
    let emission = |rate: f64, y: f64| (y * rate.ln() - rate - ln_gamma(y + 1.0)).exp();
    let mut forward = [0.5, 0.5];
    let mut log = 0.0;
    for (t, y) in y.iter().enumerate() {
        if t > 0 {
            forward = [(forward[0] + 10.0 * forward[1]) / 11.0, (10.0 * forward[0] + forward[1]) / 11.0];
        }
        forward = [forward[0] * emission(1.0, *y), forward[1] * emission(4.0, *y)];
        let total = forward[0] + forward[1];
        log += total.ln();
        forward = forward.map(|x| x / total);
    }
    let own = pointwise.log_likelihood(&Batch::zeros(0, 1)).unwrap().get(0, 0);
    assert!((own - log).abs() < 1e-8 * log.abs(), "{own} for {log}");
}

#[test]
fn observations_of_sums_of_many_latents_are_left_out() {
    let build = |without: Option<usize>| {
        let mut b = Building::new(without);
        let (one, share) = (b.number(1.0), b.number(0.4));
        let scale = b.latent("scale", Distribution::Gamma { shape: one, rate: one });
        let mut bits = Vec::new();
        for k in 0..16 {
            let bit = b.latent(&format!("b[{}]", k + 1), Distribution::Bernoulli { p: share });
            let mean = b.g.multiply(bit, scale);
            b.observe(Distribution::Normal { mean, precision: one }, [0.9, -0.3, 0.4][k % 3]);
            bits.push(bit);
        }
        let total = b.g.sum(&bits);
        let rate = b.g.add(total, scale);
        b.observe(Distribution::Poisson { rate }, 4.0);
        b.build().model().unwrap()
    };
    let model = build(None);
    assert_eq!(model.marginalised().count(), 16);
    let z = hyperprior::model::random_points(hyperprior::Model::latents(&model), 2, 7);
    let log_joint = |model: &hyperprior_graph::GraphModel| {
        let mut out = [0.0; 2];
        hyperprior::Model::log_joint(model, &z, &mut out).unwrap();
        out
    };
    let found = model.pointwise().unwrap().log_likelihood(&z).unwrap();
    let whole = log_joint(&model);
    for u in 0..17 {
        let rest = log_joint(&build(Some(u)));
        for s in 0..2 {
            let (own, exact) = (found.get(u, s), whole[s] - rest[s]);
            assert!((own - exact).abs() < 1e-8, "unit {u} of draw {s}: {own} for {exact}");
        }
    }
}

/// Draws from a density on a grid, by inverting its distribution function at stratified points.
fn grid_draws(log_density: &dyn Fn(f64) -> f64, len: usize, seed: u64) -> Vec<f64> {
    let (from, step, points) = (-12.0, 0.002, 12_000);
    let logs: Vec<f64> = (0..points).map(|k| log_density(from + step * f64::from(k))).collect();
    let total = log_sum_exp(&logs);
    let (mut k, mut reached) = (0, (logs[0] - total).exp());
    (0..len)
        .map(|s| {
            let u: f64 = stream(seed, 0, 0, s as u64).random();
            let goal = (s as f64 + u) / len as f64;
            while reached < goal && k + 1 < logs.len() {
                k += 1;
                reached += (logs[k] - total).exp();
            }
            from + step * k as f64
        })
        .collect()
}

/// A mixture of two known Poissons, labels marginalised: leave-one-out from draws of one posterior against quadrature of every
/// posterior without one observation. With 4,000 draws and a p_loo below .5 a unit the error is below .02.
#[test]
fn leave_one_out_agrees_with_fits_without_the_observation() {
    let y = [0.0, 6.0, 1.0, 0.0, 9.0, 2.0, 4.0];
    let build = |without| {
        let mut b = Building::new(without);
        let (one, low, high) = (b.number(1.0), b.number(1.0), b.number(6.0));
        let w = b.latent("w", Distribution::Beta { a: one, b: one });
        for (i, y) in y.into_iter().enumerate() {
            let label = b.latent(&format!("label[{}]", i + 1), Distribution::Bernoulli { p: w });
            let next = b.g.add(label, one);
            let rate = b.g.select(next, &[low, high]);
            b.observe(Distribution::Poisson { rate }, y);
        }
        b.build()
    };
    let model = build(None).model().unwrap();
    let log_joint = |model: &hyperprior_graph::GraphModel, x: f64| {
        let mut out = [0.0];
        hyperprior::Model::log_joint(model, &Batch::from_columns(vec![x], 1), &mut out).unwrap();
        out[0]
    };
    let draws = grid_draws(&|x| log_joint(&model, x), 4000, 5);
    let z = Batch::from_columns(draws.clone(), draws.len());
    let pointwise = model.pointwise().unwrap();
    let loo = Loo::new(&pointwise.log_likelihood(&z).unwrap());
    let evidence = |model: &hyperprior_graph::GraphModel| {
        let logs: Vec<f64> = (0..2400).map(|k| log_joint(model, -12.0 + 0.01 * f64::from(k))).collect();
        log_sum_exp(&logs)
    };
    for u in 0..y.len() {
        let exact = evidence(&model) - evidence(&build(Some(u)).model().unwrap());
        let unit = loo.units[u];
        assert!((unit.elpd - exact).abs() < 0.02, "{u}: {} for {exact}", unit.elpd);
        assert!(unit.khat < loo.limit && unit.p_loo < 0.5, "{unit:?}");
    }
}

/// A coin of unknown bias: p(yᵢ | y₋ᵢ) = (1 + the other throws like it) / (2 + n − 1).
#[test]
fn a_coin_has_its_exact_leave_one_out_probabilities() {
    let y = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
    let mut b = Building::new(None);
    let one = b.number(1.0);
    let p = b.latent("p", Distribution::Beta { a: one, b: one });
    y.iter().for_each(|y| b.observe(Distribution::Bernoulli { p }, *y));
    let model = b.build().model().unwrap();
    // Beta(7, 3) of the posterior on the logit.
    let draws = grid_draws(&|x| 7.0 * x - 10.0 * x.exp().ln_1p(), 4000, 9);
    let z = Batch::from_columns(draws.clone(), draws.len());
    let loo = Loo::new(&model.pointwise().unwrap().log_likelihood(&z).unwrap());
    for (unit, y) in loo.units.iter().zip(y) {
        let exact = (if y == 1.0 { 6.0 / 9.0 } else { 2.0 / 9.0_f64 }).ln();
        assert!((unit.elpd - exact).abs() < 0.02, "{} for {exact}", unit.elpd);
    }
}

/// A label with a known posterior and observations given it: replications use the labels that `complete` draws. The χ² test has
/// a level of 10⁻⁴; an error of .1 in a label's weight would shift a probability by .06, forty standard errors.
#[test]
fn replications_follow_the_posterior_predictive_distribution() {
    let mut b = Building::new(None);
    let (one, two, five) = (b.number(1.0), b.number(2.0), b.number(5.0));
    let label = b.latent("label", Distribution::Categorical { weights: vec![one, two] });
    let ps = [0.2, 0.8].map(|p| b.number(p));
    let p = b.g.select(label, &ps);
    b.observe(Distribution::Binomial { p, n: five }, 2.0);
    b.observe(Distribution::Bernoulli { p }, 1.0);
    let model = b.build().model().unwrap();
    let draws_len = 100_000;
    let again = model.replicate(&Batch::zeros(0, draws_len), 3).unwrap();
    let labels = model.complete(&Batch::zeros(0, draws_len), &model.quantities(), 3).unwrap();
    let choose = [1.0, 5.0, 10.0, 10.0, 5.0, 1.0];
    let binomial = |k: usize, p: f64| choose[k] * p.powi(k as i32) * (1.0 - p).powi(5 - k as i32);
    let weight = [binomial(2, 0.2) * 0.2, 2.0 * binomial(2, 0.8) * 0.8];
    let share = weight.map(|w| w / (weight[0] + weight[1]));
    // Jointly with the label, the count and the throw.
    let mut cells = vec![0_u64; 24];
    let mut exact = vec![0.0; 24];
    for s in 0..draws_len {
        let (l, k, y) = (labels.get(0, s) as usize - 1, again.get(0, s) as usize, again.get(1, s) as usize);
        cells[12 * l + 2 * k + y] += 1;
    }
    for l in 0..2 {
        let p = [0.2, 0.8][l];
        for k in 0..6 {
            exact[12 * l + 2 * k] = share[l] * binomial(k, p) * (1.0 - p);
            exact[12 * l + 2 * k + 1] = share[l] * binomial(k, p) * p;
        }
    }
    let p = chi_square(&cells, &exact, draws_len as u64);
    assert!(p > 1e-4, "{p}");
}

/// Counts with more zeros than under a Poisson: the share of zeros and the standard deviation are extreme, the mean is not.
#[test]
fn a_predictive_check_detects_zero_inflation() {
    let y: Vec<f64> = (0..60).map(|i| if i % 3 == 0 { 6.0 } else { 0.0 }).collect();
    let mut b = Building::new(None);
    let one = b.number(1.0);
    let rate = b.latent("rate", Distribution::Gamma { shape: one, rate: one });
    y.iter().for_each(|y| b.observe(Distribution::Poisson { rate }, *y));
    let model = b.build().model().unwrap();
    // Gamma(121, 61) on the log.
    let draws = grid_draws(&|x| 121.0 * x - 61.0 * x.exp(), 2000, 4);
    let checked = posterior_predictive_check(&model, &Batch::from_columns(draws, 2000), 1).unwrap();
    assert_eq!((checked.len(), checked[0].array.as_str(), checked[0].observed), (1, "y", 60));
    let of = |statistic| checked[0].statistics.iter().find(|s| s.statistic == statistic).unwrap();
    assert!(of(Statistic::Mean).tail > 0.5 && of(Statistic::Zeros).tail < 0.01 && of(Statistic::Sd).tail < 0.01);
    assert_eq!((of(Statistic::Mean).data, of(Statistic::Zeros).data), (2.0, 40.0 / 60.0));
    // A replication's mean has the mean of the rate, 121/61, and the variance 121/61² + (121/61)/60: five standard errors.
    let mean = of(Statistic::Mean);
    assert!((mean.mean - 121.0 / 61.0).abs() < 5.0 * (0.0656_f64 / 2000.0).sqrt(), "{mean:?}");
    assert!(mean.q05 < 1.7 && mean.q95 > 2.3, "{mean:?}");
}

/// New latents are drawn given the transferred ones, observations get their log density, and do not update the draws.
#[test]
fn new_data_are_predicted_from_transferred_latents() {
    let mut b = Building::new(None);
    let one = b.number(1.0);
    let p = b.latent("p", Distribution::Beta { a: one, b: one });
    let z = b.latent("z", Distribution::Bernoulli { p });
    b.observe(Distribution::Normal { mean: z, precision: one }, 5.0);
    let graph = b.build();
    let draws_len = 40_000;
    let transferred =
        Batch::from_columns((0..draws_len).map(|s| if s % 2 == 0 { 0.1 } else { 0.7 }).collect(), draws_len);
    let quantities = graph.quantities();
    let found = graph.predict(&["p"], &transferred, &quantities, 2).unwrap();
    let at = quantities.iter().position(|q| q.name == "z").unwrap();
    let mut cells = [0_u64; 4];
    for s in 0..draws_len {
        cells[2 * (s % 2) + found.values.get(at, s) as usize] += 1;
        let distance: f64 = 5.0 - found.values.get(at, s);
        let exact = -0.5 * (distance * distance + (2.0 * std::f64::consts::PI).ln());
        assert!((found.log_likelihood.get(0, s) - exact).abs() < 1e-12);
    }
    // The level is 10⁻⁴. Had 5.0 updated the draws, e^4.5 = 90 times as many would be ones.
    assert!(chi_square(&cells, &[0.45, 0.05, 0.15, 0.35], draws_len as u64) > 1e-4, "{cells:?}");
    assert_eq!(found.observed, ["y[1]"]);
    let said = |names: &[&str], columns| {
        graph.predict(names, &Batch::zeros(columns, 2), &quantities, 2).unwrap_err().to_string()
    };
    assert!(said(&["q"], 1).contains("no latent `q`"));
    assert!(said(&["p"], 2).contains("1 names for 2 columns"));
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let mut b = Building::new(None);
    let one = b.number(1.0);
    let p = b.latent("p", Distribution::Beta { a: one, b: one });
    for i in 0..5 {
        let z = b.latent(&format!("z[{i}]"), Distribution::Bernoulli { p });
        b.observe(Distribution::Normal { mean: z, precision: one }, f64::from(i));
    }
    let graph = b.build();
    let model = graph.clone().model().unwrap();
    let z = hyperprior::model::random_points(hyperprior::Model::latents(&model), 100, 3);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let again = model.replicate(&z, 1).unwrap();
            let logs = model.pointwise().unwrap().log_likelihood(&z).unwrap();
            let transferred = Batch::from_columns(vec![0.3; 100], 100);
            let new = graph.predict(&["p"], &transferred, &graph.quantities(), 1).unwrap();
            [again, logs, new.values, new.log_likelihood].map(|b| b.as_slice().to_vec())
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(4));
}
