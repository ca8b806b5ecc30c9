//! The product's side of the step bench, through its public API: one layer of 100 counts, mean-field, 8 draws, minibatches of 256
//! documents, one step of each document at a visit. Reads what `inputs.py` wrote.
//!
//! `step time FOLDER EPOCHS THREADS` trains on 32 copies of the documents, so that what is done once an epoch is divided by as many
//! steps as in a real training, and writes the milliseconds of a step, epoch by epoch, to `hyperprior_ms.f64`, and those of the
//! processors to `hyperprior_cpu.f64`.
//!
//! `step trace FOLDER EPOCHS` trains on the documents themselves, a step an epoch. Where it starts from goes to `start_*.f64`, where
//! each of its first steps arrives to `*_STEP.f64`, for a peer to do the same.

use hyperprior_bench_def::{corpus, write};
use hyperprior_def::{Corpus, Family, Layer, Method, Settings, Training};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const LATENTS: usize = 100;
const BATCH: usize = 256;
/// Minibatches in an epoch: those of a corpus of 8,192 documents.
const COPIES: usize = 32;
/// Steps that are followed.
const FOLLOWED: u32 = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["time", folder, epochs, threads] => time(Path::new(folder), epochs.parse()?, threads.parse()?),
        ["trace", folder, epochs] => trace(Path::new(folder), epochs.parse()?),
        _ => Err("usage: step time FOLDER EPOCHS THREADS, or step trace FOLDER EPOCHS".into()),
    }
}

fn settings(epochs: u32) -> Settings {
    Settings::default().layers(vec![Layer { family: Family::Poisson, width: LATENTS }]).method(Method::MeanField).epochs(epochs).batch(BATCH).draws(8).local_steps(1)
}

fn documents(folder: &Path) -> Result<Corpus, Box<dyn Error>> {
    let corpus = corpus(&folder.join("docs.ldac"), &folder.join("vocab.txt"))?;
    match corpus.documents_len() {
        BATCH => Ok(corpus),
        other => Err(format!("{other} documents instead of {BATCH}; run inputs.py again").into()),
    }
}

fn time(folder: &Path, epochs: u32, threads: usize) -> Result<(), Box<dyn Error>> {
    let one = documents(folder)?;
    let corpus = one.subset(&(0..COPIES * BATCH).map(|d| d % BATCH).collect::<Vec<_>>());
    let mut training = Training::new(&corpus, &settings(epochs))?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let epoch = |training: &mut Training| {
        let (start, busy) = (Instant::now(), processors());
        training.run_epoch().expect("an epoch");
        let spent = [start.elapsed().as_secs_f64(), processors() - busy];
        spent.map(|seconds| seconds * 1e3 / COPIES as f64)
    };
    let spent: Vec<[f64; 2]> = pool.install(|| (0..epochs).map(|_| epoch(&mut training)).collect());
    println!("milliseconds a step, and of the processors, epoch by epoch: {spent:.2?}");
    write(&folder.join("hyperprior_ms.f64"), spent.iter().map(|[clock, _]| *clock))?;
    Ok(write(&folder.join("hyperprior_cpu.f64"), spent.iter().map(|[_, busy]| *busy))?)
}

/// Seconds that the processors have spent on this process, in ticks of a hundredth; nothing where `/proc` does not tell.
fn processors() -> f64 {
    let told = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may hold anything; user and system time are the 12th and 13th numbers after it.
    let ticks = told.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn trace(folder: &Path, epochs: u32) -> Result<(), Box<dyn Error>> {
    let corpus = documents(folder)?;
    let mut training = Training::new(&corpus, &settings(epochs))?;
    let background = (0..corpus.terms_len()).map(|v| f64::from(training.terms().background(v)));
    write(&folder.join("background.f64"), background)?;
    state(folder, "start_", "", &corpus, &training)?;
    for step in 0..epochs.min(FOLLOWED) {
        training.run_epoch().expect("an epoch");
        state(folder, "", &format!("_{step}"), &corpus, &training)?;
    }
    Ok(())
}

/// The documents' and the weights' means, and the intercepts.
fn state(folder: &Path, before: &str, after: &str, corpus: &Corpus, training: &Training) -> Result<(), Box<dyn Error>> {
    let path = |name: &str| folder.join(format!("{before}{name}{after}.f64"));
    let activity = (0..BATCH).flat_map(|d| training.activations(d).swap_remove(0)).map(f64::from);
    write(&path("activity"), activity)?;
    let terms = training.terms();
    let means = (0..corpus.terms_len()).flat_map(|v| (0..LATENTS).map(move |k| f64::from(terms.mean(v, k))));
    write(&path("mean"), means)?;
    let intercepts = (0..LATENTS).map(|k| f64::from(training.layer_weights()[0].intercept(k)));
    Ok(write(&path("intercept"), intercepts)?)
}
