//! MCMC moves recover tails that an approximation lacks, or the verdict says that they may not.

use hyperprior::Quiet;
use hyperprior::diagnostics::Verdict;
use hyperprior::infer::{InferSettings, Source};
use hyperprior::posterior::summarise;
use hyperprior_bugs::{Array, Data, Options, compile};
use hyperprior_graph::Marginalise;
use hyperprior_graph::fit::Task;

/// The mean and the standard deviation of s given three observations, with m integrated out: p(s) ∝ s⁻² exp(−Σ(y − ȳ)²/2s²).
fn exact(squares: f64) -> (f64, f64) {
    let density = |s: f64| (-0.5 * squares / (s * s)).exp() / (s * s);
    let step = 1e-3;
    let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
    for k in 1..100_000 {
        let s = (f64::from(k) - 0.5) * step;
        let p = density(s);
        mass += p;
        first += p * s;
        second += p * s * s;
    }
    let mean = first / mass;
    (mean, (second / mass - mean * mean).sqrt())
}

#[test]
fn the_long_tail_of_a_scale_with_three_observations() {
    let model = "model { for (i in 1:3) { y[i] ~ dnorm(m, 1 / (s * s)) } m ~ dnorm(0, 1.0E-6) s ~ dunif(0, 100) }";
    let data = Data::default().with("y", Array::vector(vec![1.0, 2.0, 4.0]));
    let (mean, deviation) = exact(14.0 / 3.0);
    for seed in 1..=3 {
        let compiled = compile(model, "scale", &data, &Options::default()).expect("a model");
        let task = Task::new(compiled.graph, &Marginalise::Auto, &[]).expect("a task");
        let settings = InferSettings::default().seed(seed);
        let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
        let summaries = summarise(&posterior.draws);
        let s = summaries.iter().find(|one| one.name == "s").expect("s");
        let Source::Approximate(inferred) = &posterior.source else { panic!("an approximation") };
        // With importance weights alone, the mean would be below three quarters of this.
        assert!((s.mean - mean).abs() < 0.1 * deviation, "seed {seed}: {} against {mean}", s.mean);
        let is_short = s.sd < 0.85 * deviation;
        assert!(!is_short || inferred.verdict() > Verdict::Trust, "seed {seed}: {} against {deviation}", s.sd);
    }
}
