//! Compile time grows linearly with the model, and drawing all named quantities is fast.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hyperprior::Batch;
use hyperprior::model::Model;
use hyperprior_bugs::{Array, Data, Options, compile, render};
use hyperprior_graph::GraphModel;
use hyperprior_testkit::clock::Clock;
use std::sync::{Mutex, MutexGuard};

/// Serialises the timings: two at once would compete for memory, and count each other's processor time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn model(source: &str, data: &Data) -> GraphModel {
    let compiled = compile(source, "model", data, &Options::default());
    compiled.unwrap_or_else(|e| panic!("{}", render(&e, "model", source, false))).graph.model().unwrap()
}

/// Seconds of processor time to compile a model of about `nodes` nodes: random effects, a regression, marginalised labels.
fn seconds(nodes: usize) -> f64 {
    let source = "model {
        for (i in 1:N) {
            y[i] ~ dpois(rate[i])
            log(rate[i]) <- a[group[i]] + b * x[i]
            z[i] ~ dbern(share)
            w[i] ~ dnorm(mean[z[i] + 1], tau)
        }
        for (j in 1:J) { a[j] ~ dnorm(m, tau) }
        for (k in 1:2) { mean[k] ~ dnorm(0, 0.01) }
        b ~ dnorm(0, 1)
        m ~ dnorm(0, 1)
        tau ~ dgamma(2, 2)
        share ~ dbeta(1, 1)
    }";
    // Four nodes a row, and a group for every eight rows.
    let rows = nodes / 4;
    let groups = rows.div_ceil(8);
    let numbers = |f: &dyn Fn(usize) -> f64| Array::vector((0..rows).map(f).collect());
    let data = Data::default()
        .with("N", Array::scalar(rows as f64))
        .with("J", Array::scalar(groups as f64))
        .with("y", numbers(&|i| (i % 5) as f64))
        .with("x", numbers(&|i| (i as f64 * 0.7).sin()))
        .with("w", numbers(&|i| (i as f64 * 1.3).cos()))
        .with("group", numbers(&|i| (1 + i / 8) as f64));
    let clock = Clock::start();
    let model = model(source, &data);
    let took = clock.seconds();
    assert_eq!((model.latents().len(), model.marginalised().count()), (groups + 6, rows));
    took
}

/// Catches compile time that grows faster than the model; quadratic time would have an exponent of 2. Ten thousand nodes fit in a
/// cache and a hundred thousand do not, so the exponent is measured between the two larger sizes. The limits leave room for a busy
/// machine, on which 10⁵ nodes took 0.8 to 1.2 seconds.
#[test]
fn compiling_is_linear() {
    let _turn = alone();
    seconds(1_000);
    let least = |nodes: usize| (0..3).map(|_| seconds(nodes)).fold(f64::INFINITY, f64::min);
    let times = [10_000, 30_000, 100_000].map(|nodes| (nodes, least(nodes)));
    let (first, last) = (times[1], times[2]);
    let exponent = (last.1 / first.1).ln() / (last.0 as f64 / first.0 as f64).ln();
    assert!(last.1 < 4.0 && exponent < 1.5, "{times:?}: exponent {exponent:.2}");
}

fn timed_complete(model: &GraphModel, draws: usize) -> f64 {
    let quantities = model.quantities();
    let z = Batch::zeros(model.latents().len(), draws);
    let clock = Clock::start();
    let drawn = model.complete(&z, &quantities, 1).unwrap();
    assert_eq!(drawn.columns_len(), quantities.len());
    clock.seconds()
}

/// Catches slow draws of marginalised counts (1.2 seconds on a busy machine) and labels (0.6 seconds).
#[test]
fn completing_draws_is_fast() {
    let _turn = alone();
    let counts = "model {
        for (i in 1:N) {
            n[i] ~ dpois(rate[i])
            log(rate[i]) <- a + b * x[i]
            for (j in 1:3) { y[i, j] ~ dbin(p, n[i]) }
        }
        a ~ dnorm(0, 1)
        b ~ dnorm(0, 1)
        p ~ dbeta(1, 1)
    }";
    let sites = 600;
    let y = (0..3 * sites).map(|i| (i % 4) as f64).collect();
    let data = Data::default()
        .with("N", Array::scalar(sites as f64))
        .with("x", Array::vector((0..sites).map(|i| (i as f64 * 0.7).sin()).collect()))
        .with("y", Array { shape: vec![sites, 3], values: y });
    let counts = timed_complete(&model(counts, &data), 4000);
    let labels = "model {
        for (i in 1:N) {
            z[i] ~ dcat(share[])
            y[i] ~ dnorm(mean[z[i]], tau)
            is.first[i] <- equals(z[i], 1)
        }
        for (k in 1:3) { mean[k] ~ dnorm(0, 0.1) }
        tau ~ dgamma(2, 2)
        share[1:3] ~ ddirch(alpha[])
    }";
    let data = Data::default()
        .with("N", Array::scalar(1000.0))
        .with("alpha", Array::vector(vec![1.0; 3]))
        .with("y", Array::vector((0..1000).map(|i| (i as f64 * 1.3).cos()).collect()));
    let labels = timed_complete(&model(labels, &data), 4000);
    assert!(counts < 10.0 && labels < 10.0, "{counts} {labels}");
}
