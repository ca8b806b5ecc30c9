//! Any text gives a model, data or errors, but never a panic, an abort, a hang or exhausted memory.

mod data;
mod init;
mod model;
mod monitor;

use hyperprior_testkit::fuzz::{Corpus, Limits, Target};
use hyperprior_testkit::memory::Bounded;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// Fragments of models and data.
const WORDS: [&str; 92] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "~",
    "<-",
    "=",
    "-",
    "+",
    "*",
    "/",
    "^",
    "!",
    "&&",
    "||",
    "==",
    "<",
    ">=",
    ";",
    "#",
    "/*",
    "%*%",
    "N",
    "x",
    "y",
    "x[",
    "x[]",
    "R[,]",
    "y[i]",
    "T(",
    "I(",
    "C(",
    "T(,0)",
    "for (i in 1:N) {",
    "for (i in ",
    "1:N",
    "1:",
    "model {",
    "data {",
    "var ",
    "NA",
    "null",
    "true",
    "c(",
    "list(",
    "structure(",
    ".Dim = ",
    "rep(",
    "integer(",
    "as.integer(",
    "\"",
    "`",
    "'",
    "z ~ dnorm(0, 1)",
    "dnorm(",
    "dcat(",
    "dbern(",
    "dbin(",
    "dpois(",
    "dgamma(",
    "dbeta(",
    "ddirch(",
    "dmulti(",
    "dmnorm(",
    "dwish(",
    "dinterval(",
    "dunif(",
    "dweib(",
    "dnegbin(",
    "dhyper(",
    "dsum(",
    "dsample(",
    "sum(",
    "mean(",
    "prod(",
    "sort(",
    "rank(",
    "order(",
    "inverse(",
    "logdet(",
    "t(",
    "length(",
    "dim(",
    "ifelse(",
    "step(",
    "inprod(",
    "exp(",
    "logit(",
];

/// A fuzz target. Its corpus: its own inputs, earlier findings, and example files.
fn target(name: &str, examples: &str, cases: u64, run: &(dyn Fn(&[u8]) + Sync)) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = name.trim_end_matches("::changed").rsplit("::").next().unwrap_or(name);
    let mut corpus =
        Corpus::read(&here.join("tests/inputs").join(own), "").and(&here.join("tests/found").join(own), "");
    if !examples.is_empty() {
        corpus = corpus.and(&here.join("../../examples"), examples);
    }
    Target { name, corpus: &corpus, words: &WORDS, limits: Limits::default(), run }.check(cases);
}
