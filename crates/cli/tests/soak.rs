//! Many fits in one process do not leak memory.

use hyperprior::fit::Quiet;
use hyperprior::infer::InferSettings;
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Options, compile};
use hyperprior_def::{Corpus, Layer, Settings, Training};
use hyperprior_graph::Marginalise;
use hyperprior_graph::fit::Task;
use hyperprior_testkit::memory::{self, Bounded};
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// Models of every kind: exact, continuous, mixed, and with marginalised latents.
const MODELS: [&str; 4] = ["three_coins", "eight_schools", "coal", "zip_claims"];
/// Thread pools hold a little more or less each time. A leak of 30 bytes per fit exceeds this.
const SLACK: usize = 4 << 10;

fn fit(name: &str, seed: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).expect("an example");
    let data = read(&file("data.json"), Format::Json).expect("data");
    let compiled = compile(&file("model.bug"), name, &data, &Options::default()).expect("a model");
    let task = Task::new(compiled.graph, &Marginalise::Auto, &[]).expect("a task");
    let settings = InferSettings::default().seed(seed).draws(100).steps(100);
    let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
    assert_eq!(posterior.draws.len(), 100);
}

fn train(seed: u64) {
    let starts = (0..=40).map(|d| 3 * d).collect();
    let terms = (0..40_u32).flat_map(|d| [d % 5, 5 + d % 7, 12 + d % 3]).collect();
    let names = (0..40).map(|d| d.to_string()).collect();
    let vocabulary = (0..15).map(|v| format!("w{v}")).collect();
    let corpus = Corpus::new(starts, terms, vec![1.0; 120], names, vocabulary).expect("a collection");
    let layers = [4, 2].map(|width| Layer { family: hyperprior_def::Family::Poisson, width }).to_vec();
    let mut training =
        Training::new(&corpus, &Settings::default().layers(layers).epochs(5).seed(seed)).expect("a training");
    (0..5).for_each(|_| {
        training.run_epoch().expect("an epoch");
    });
    let mut saved = Vec::new();
    training.save(&mut saved).expect("memory");
    assert_eq!(Training::load(&corpus, saved.as_slice()).expect("what was saved").epoch(), 5);
}

/// Catches memory held per fit: an unbounded cache, a thread that never ends, a list that only grows.
#[test]
fn memory_in_use_does_not_grow() {
    // Both are at the end of a cycle through all models.
    let (warm, last) = (50, 200);
    let mut in_use_warm = 0;
    for number in 1..=last {
        match (number as usize) % (MODELS.len() + 1) {
            0 => train(number),
            k => fit(MODELS[k - 1], number),
        }
        if number == warm {
            in_use_warm = memory::in_use();
        }
    }
    let grown = memory::in_use().saturating_sub(in_use_warm);
    eprintln!("{in_use_warm} bytes in use after {warm} fits, {} after {last}", memory::in_use());
    assert!(grown < SLACK, "{grown} bytes more after {last} fits than the {in_use_warm} after {warm}");
}
