//! Posteriors of whole programs against exact ones: long tails, improper posteriors, data in any unit, hundreds of states.

use hyperprior::Quiet;
use hyperprior::diagnostics::Verdict;
use hyperprior::infer::{InferSettings, Source};
use hyperprior::posterior::{Summary, summarise};
use hyperprior_bugs::{Array, Data, Options, compile};
use hyperprior_graph::Marginalise;
use hyperprior_graph::fit::Task;

/// What a fit says.
struct Found {
    summaries: Vec<Summary>,
    verdict: Verdict,
    improper: Vec<String>,
    log_evidence: f64,
}

/// A fit with default settings, or the same by an approximation, even if latents can be integrated out.
fn fit(model: &str, data: &Data, seed: u64, is_approximate: bool) -> Found {
    let compiled = compile(model, "model", data, &Options::default()).expect("a model");
    let task = Task::new(compiled.graph, &Marginalise::Auto, &[]).expect("a task");
    let settings = InferSettings::default().seed(seed);
    let settings = if is_approximate { settings.restarts(1) } else { settings };
    let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
    let report = task.report(("model".to_owned(), 0, vec![]), settings, &posterior, 0.0);
    let (verdict, log_evidence) = (report.verdict(), report.bounds().1.log);
    let improper = match &posterior.source {
        Source::Approximate(inferred) => inferred.improper.clone(),
        _ => Vec::new(),
    };
    assert!(!is_approximate || matches!(posterior.source, Source::Approximate(_)));
    Found { summaries: summarise(&posterior.draws), verdict, improper, log_evidence }
}

/// Seeds, each by default and by an approximation.
fn seeds(last: u64) -> impl Iterator<Item = (u64, bool)> {
    (1..=last).flat_map(|seed| [(seed, false), (seed, true)])
}

fn named<'a>(summaries: &'a [Summary], name: &str) -> &'a Summary {
    summaries.iter().find(|one| one.name == name).expect("a quantity of the model")
}

/// The mean and the standard deviation of values with these weights: (weight, value).
fn weighted(points: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for (p, x) in points {
        mass += p;
        first += p * x;
        second += p * x * x;
    }
    let mean = first / mass;
    (mean, (second / mass - mean * mean).sqrt())
}

/// The mean and the standard deviation of s given three observations, with m integrated out: p(s) ∝ s⁻² exp(−Σ(y − ȳ)²/2s²).
fn exact(squares: f64) -> (f64, f64) {
    let density = |s: f64| (-0.5 * squares / (s * s)).exp() / (s * s);
    weighted((1..100_000).map(|k| (f64::from(k) - 0.5) * 1e-3).map(|s| (density(s), s)))
}

#[test]
fn the_long_tail_of_a_scale_with_three_observations() {
    let model = "model { for (i in 1:3) { y[i] ~ dnorm(m, 1 / (s * s)) } m ~ dnorm(0, 1.0E-6) s ~ dunif(0, 100) }";
    let data = Data::default().with("y", Array::vector(vec![1.0, 2.0, 4.0]));
    let (mean, deviation) = exact(14.0 / 3.0);
    for (seed, is_approximate) in seeds(3) {
        let Found { summaries, verdict, .. } = fit(model, &data, seed, is_approximate);
        let s = named(&summaries, "s");
        // With importance weights alone, the mean would be below three quarters of this.
        assert!((s.mean - mean).abs() < 0.1 * deviation, "seed {seed}: {} against {mean}", s.mean);
        let is_short = s.sd < 0.85 * deviation;
        assert!(!is_short || verdict > Verdict::Trust, "seed {seed}: {} against {deviation}", s.sd);
    }
}

/// Models with flat priors, their data, and the latents along which the posterior is improper.
fn with_flat_priors() -> Vec<(&'static str, Data, &'static [&'static str])> {
    let data = |y: &[f64]| Data::default().with("y", Array::vector(y.to_vec()));
    let with_x = |x: &[f64], y: &[f64]| data(y).with("x", Array::vector(x.to_vec()));
    let effects = "model { for (j in 1:8) { y[j] ~ dnorm(theta[j], 1) theta[j] ~ dnorm(mu, exp(-2 * log_s)) }
        mu ~ dflat() log_s ~ dflat() }";
    let scale = "model { for (j in 1:3) { y[j] ~ dnorm(theta[j], 1) theta[j] ~ dnorm(mu, 1 / (s * s)) }
        mu ~ dflat() s ~ dflat() T(0,) }";
    let logistic = "model { for (i in 1:6) { y[i] ~ dbern(ilogit(a + b * x[i])) } a ~ dflat() b ~ dflat() }";
    let student = "model { for (i in 1:3) { y[i] ~ dt(mu, exp(-2 * log_s), 2) } mu ~ dflat() log_s ~ dflat() }";
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    vec![
        ("model { y[1] ~ dnorm(a + b, 1) a ~ dflat() b ~ dflat() }", data(&[2.3]), &["a", "b"]),
        (effects, data(&[1.2, -0.4, 0.8, 2.1, 0.3, -1.0, 0.6, 1.4]), &["log_s"]),
        (logistic, with_x(&x, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), &["a", "b"]),
        // Proper: three groups with a flat scale, data that are not separable, and a location–scale family.
        (scale, data(&[1.2, -0.4, 3.0]), &[]),
        (logistic, with_x(&x, &[0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), &[]),
        (student, data(&[0.0, 1.0, 10.0]), &[]),
    ]
}

#[test]
fn improper_posteriors_are_recognised() {
    for (model, data, expected) in with_flat_priors() {
        let Found { improper: mut found, verdict, .. } = fit(model, &data, 1, true);
        found.sort();
        assert_eq!(found, expected, "{model}");
        assert!(expected.is_empty() || verdict == Verdict::Distrust, "{model}");
        // By default it is not called proper either.
        assert!(expected.is_empty() || fit(model, &data, 1, false).verdict == Verdict::Distrust, "{model}");
    }
}

#[test]
fn a_regression_in_dollars() {
    // Each x twice, with residuals of opposite signs: least squares gives 12,000 and 3,500 exactly.
    let x: Vec<f64> = (0..40).map(|i| f64::from(i / 2) / 2.0).collect();
    let away = |i: usize| (4000.0 + 400.0 * (i / 2) as f64) * if i.is_multiple_of(2) { 1.0 } else { -1.0 };
    let y: Vec<f64> = x.iter().enumerate().map(|(i, x)| 12_000.0 + 3500.0 * x + away(i)).collect();
    let squares: f64 = (0..40).map(|i| away(i).powi(2)).sum();
    let mean = x.iter().sum::<f64>() / 40.0;
    let spread: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    // The slope has a t distribution with 38 degrees of freedom.
    let deviation = (squares / 36.0 / spread).sqrt();
    let model = "model { for (i in 1:40) { y[i] ~ dnorm(a + b * x[i], tau) }
        a ~ dnorm(0, 1.0E-12) b ~ dnorm(0, 1.0E-12) tau ~ dgamma(0.001, 0.001) }";
    let data = Data::default().with("y", Array::vector(y)).with("x", Array::vector(x));
    for (seed, is_approximate) in seeds(4) {
        let Found { summaries, verdict, .. } = fit(model, &data, seed, is_approximate);
        let b = named(&summaries, "b");
        assert!((b.mean - 3500.0).abs() < 0.15 * deviation, "seed {seed}: {}", b.mean);
        assert!((b.sd / deviation - 1.0).abs() < 0.1, "seed {seed}: {} against {deviation}", b.sd);
        assert_eq!(verdict, Verdict::Trust, "seed {seed}");
    }
}

/// Six groups of five: the mean and the standard deviation of the between-group share of the variance, with the group effects and the
/// overall mean integrated out. Both precisions have Gamma(.001, .001) priors, so a between-group variance near zero is possible.
fn exact_share(means: &[f64; 6], within: f64) -> (f64, f64) {
    let centre = means.iter().sum::<f64>() / 6.0;
    let between: f64 = means.iter().map(|m| (m - centre).powi(2)).sum();
    let point = |log_w: f64, log_b: f64| {
        let (w, b) = (log_w.exp(), log_b.exp());
        let v = b + w / 5.0;
        let prior = -0.001 * (log_w + log_b + 1.0 / w + 1.0 / b);
        let log_p = prior - 12.0 * log_w - 0.5 * within / w - 2.5 * v.ln() - 0.5 * between / v;
        (log_p.exp(), b / (b + w))
    };
    let log_b = || (0..3000).map(|j| -14.0 + 0.01 * f64::from(j));
    weighted(
        (0..200).map(|i| -1.0 + 0.02 * f64::from(i)).flat_map(|log_w| log_b().map(move |log_b| point(log_w, log_b))),
    )
}

#[test]
fn a_variance_component_near_zero() {
    let effects = [-0.9, 0.2, 1.1, -0.3, 0.7, -0.8];
    let residuals = [-2.1, -0.8, 0.1, 0.9, 1.9];
    let y: Vec<f64> = effects.iter().flat_map(|e| residuals.map(|r| 10.0 + e + r)).collect();
    let within = 6.0 * residuals.iter().map(|r| r * r).sum::<f64>();
    let (mean, deviation) = exact_share(&effects, within);
    let model = "model { for (i in 1:6) { for (j in 1:5) { y[5 * (i - 1) + j] ~ dnorm(mu[i], tau) } mu[i] ~ dnorm(m, tau.between) }
        m ~ dnorm(0, 1.0E-10) tau ~ dgamma(0.001, 0.001) tau.between ~ dgamma(0.001, 0.001)
        share <- tau / (tau + tau.between) }";
    let data = Data::default().with("y", Array::vector(y));
    for (seed, is_approximate) in seeds(3) {
        let Found { summaries, verdict, .. } = fit(model, &data, seed, is_approximate);
        let share = named(&summaries, "share");
        let is_right = (share.mean - mean).abs() < 0.1 * deviation && (share.sd / deviation - 1.0).abs() < 0.15;
        assert!(is_right || verdict == Verdict::Distrust, "seed {seed}: {share:?} {mean} {deviation}");
    }
}

/// log p(y | level, noise) of a random walk with this first variance, observed with noise: the Kalman filter.
fn log_likelihood(y: &[f64], [level, noise]: [f64; 2]) -> f64 {
    let (mut mean, mut variance, mut sum) = (0.0, 1000.0, 0.0);
    for y in y {
        let (whole, away) = (variance + noise * noise, y - mean);
        sum -= 0.5 * ((2.0 * std::f64::consts::PI * whole).ln() + away * away / whole);
        let gain = variance / whole;
        mean += gain * away;
        variance = variance * (1.0 - gain) + level * level;
    }
    sum
}

/// Hundreds of states of a random walk: their scale and that of the noise, and the evidence, are those of the Kalman filter.
#[test]
fn a_local_level_of_400_states() {
    let mut state = 12_345_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    // Sums of uniforms are normal enough for data.
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut x = 5.0;
    let y: Vec<f64> = (0..400)
        .map(|_| {
            x += 0.4 * normal();
            x + normal()
        })
        .collect();
    let model = "model { x[1] ~ dnorm(0, 0.001) for (t in 2:400) { x[t] ~ dnorm(x[t-1], 1 / (level * level)) }
        for (t in 1:400) { y[t] ~ dnorm(x[t], 1 / (noise * noise)) } level ~ dunif(0, 10) noise ~ dunif(0, 10) }";
    // A grid over both scales: the prior is flat.
    let grid: Vec<([f64; 2], f64)> = (0..61)
        .flat_map(|i| (0..61).map(move |j| [0.15 + 0.01 * f64::from(i), 0.7 + 0.01 * f64::from(j)]))
        .map(|scales| (scales, log_likelihood(&y, scales)))
        .collect();
    let top = grid.iter().fold(f64::NEG_INFINITY, |top, (_, log_p)| top.max(*log_p));
    let exact = |k: usize| weighted(grid.iter().map(|(scales, log_p)| ((log_p - top).exp(), scales[k])));
    let log_evidence = top + (grid.iter().map(|(_, p)| (p - top).exp()).sum::<f64>() * 1e-4 / 100.0).ln();
    for (seed, is_approximate) in seeds(1) {
        let data = Data::default().with("y", Array::vector(y.clone()));
        let Found { summaries, verdict, log_evidence: own, .. } = fit(model, &data, seed, is_approximate);
        for (name, (mean, sd)) in [("level", exact(0)), ("noise", exact(1))] {
            let own = named(&summaries, name);
            assert!((own.mean - mean).abs() < 0.1 * sd, "{name}: {} against {mean} ± {sd}", own.mean);
            assert!((own.sd / sd - 1.0).abs() < 0.1, "{name}: {} against {sd}", own.sd);
        }
        assert!((own - log_evidence).abs() < 0.1, "{own} against {log_evidence}");
        assert_eq!(verdict, Verdict::Trust);
    }
}
