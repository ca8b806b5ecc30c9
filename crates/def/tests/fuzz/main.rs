//! Any bytes give a corpus, a training or a model, or an error: never a panic, an abort, a hang or unbounded memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod counts;
mod damage;
mod round_trip;
mod saved;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyperprior_testkit::fuzz::{Corpus, Limits, Target};
use hyperprior_testkit::memory::Bounded;
use std::io::Write;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// A target of these tests. Its corpus: the inputs given, the inputs of a folder, and inputs that once failed.
fn target(name: &str, made: Corpus, folder: &str, words: &[&str], cases: u64, run: &(dyn Fn(&[u8]) + Sync)) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = made.and(&here.join("tests/inputs").join(folder), "").and(&here.join("tests/found").join(folder), "");
    Target { name, corpus: &corpus, words, limits: Limits::default(), run }.check(cases);
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
