//! How much memory a training takes: one epoch, and the most bytes in use at each stage.
//!
//! `memory DOCS VOCAB LATENTS [METHOD]`; what the system holds for the process at its peak is told where `/proc` tells it.

// The command's own counters: what is told there is counted here.
#[path = "../../../../crates/cli/src/memory.rs"]
mod memory;

use hyperprior_bench_def::corpus;
use hyperprior_def::{Family, Layer, Method, Settings, Training};
use memory::{Meter, describe};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (docs, vocabulary, latents, method) = match &arguments[..] {
        [docs, vocabulary, latents] => (docs, vocabulary, latents, Method::MeanField),
        [docs, vocabulary, latents, method] => (docs, vocabulary, latents, method.parse()?),
        _ => return Err("usage: memory DOCS VOCAB LATENTS [METHOD]".into()),
    };
    let settings = Settings::default().layers(vec![Layer { family: Family::Poisson, width: latents.parse()? }]).method(method).epochs(1);
    let meter = Meter::start();
    let corpus = corpus(Path::new(docs), Path::new(vocabulary))?;
    let (documents, terms, nonzeros) = (corpus.documents_len(), corpus.terms_len(), corpus.nonzeros_len());
    println!("{documents} documents, {terms} terms, {nonzeros} nonzeros; {method}, {latents} latents");
    tell("read", &meter);
    let began = Instant::now();
    let mut training = Training::new(&corpus, &settings)?;
    tell("started", &meter);
    training.run_epoch().expect("an epoch");
    tell("an epoch", &meter);
    println!("training took {:.1} s", began.elapsed().as_secs_f64());
    if let Some(peak) = resident_peak() {
        println!("{:9} {:>11} resident at the peak", "in all", describe(peak * 1024));
    }
    Ok(())
}

fn tell(stage: &str, meter: &Meter) {
    println!("{stage:9} {:>11} allocated at the peak so far", describe(meter.peak_bytes()));
}

/// In KiB.
fn resident_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}
