//! Fuzzing on stable Rust: a corpus of inputs, changed at random by a seeded generator, is run through a target in a process of its
//! own, so that a panic, an overflow of the stack, a hang and too much memory are all seen, and the input is kept.
//!
//! Case n of a target depends on the seed, the corpus and n alone. A test that fuzzes is named as its target, in a binary whose
//! allocator is [`memory::Bounded`](crate::memory::Bounded):
//!
//! ```ignore
//! #[test]
//! fn monitor() {
//!     let run = |input: &[u8]| drop(Monitor::parse_list(&String::from_utf8_lossy(input)));
//!     let corpus = Corpus::read(Path::new("tests/inputs/monitor"), "");
//!     Target { name: "monitor", corpus: &corpus, words: &["[", ":"], limits: Limits::default(), run: &run }.check(5000);
//! }
//! ```
//!
//! `HYPERPRIOR_FUZZ_SECONDS=600` runs each target for so long instead, `HYPERPRIOR_FUZZ_SEED=2` takes other cases, and
//! `HYPERPRIOR_FUZZ_INPUT=FILE` runs that one input.

mod cases;
mod corpus;
mod mutate;
mod shrink;
mod watch;

pub use corpus::Corpus;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use watch::{Ended, Watched};

/// As little as a thread of somebody's program has.
const STACK: usize = 2 << 20;
/// Failures of so many kinds are enough to look at, and so many in all: each costs the start of a process.
const KINDS: usize = 8;
const FAILURES: usize = 12;

/// The most that one input may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of time.
    pub seconds: u64,
    /// Of memory.
    pub bytes: usize,
}

impl Default for Limits {
    /// Far above what inputs of this size need, far below what a machine has.
    fn default() -> Self {
        Self { seconds: 20, bytes: 3 << 29 }
    }
}

/// What is fuzzed.
pub struct Target<'a> {
    /// The name of the test, with its modules: the process that runs the cases finds it by that.
    pub name: &'a str,
    /// What the cases are made from. Each is run as it is, too.
    pub corpus: &'a Corpus,
    /// Pieces that mean something to the target.
    pub words: &'a [&'a str],
    /// What an input may take.
    pub limits: Limits,
    /// Reads an input. It panics where something is wrong with what came of it.
    pub run: &'a (dyn Fn(&[u8]) + Sync),
}

impl Target<'_> {
    /// Runs so many cases, or as many as there is time for where `HYPERPRIOR_FUZZ_SECONDS` says how long.
    ///
    /// # Panics
    /// Where an input made the target panic, abort, hang or take too much memory: with the file that has the input.
    pub fn check(&self, cases: u64) {
        let seconds = number("HYPERPRIOR_FUZZ_SECONDS");
        self.check_until(cases, seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)));
    }

    /// Runs so many cases, whatever the environment says.
    ///
    /// # Panics
    /// As [`check`](Self::check).
    pub fn check_exactly(&self, cases: u64) {
        self.check_until(cases, None);
    }

    fn check_until(&self, cases: u64, deadline: Option<Instant>) {
        assert!(!self.corpus.inputs.is_empty(), "{} has no corpus", self.name);
        let seed = number("HYPERPRIOR_FUZZ_SEED").unwrap_or(1);
        if let Some(only) = std::env::var_os(cases::ONLY) {
            let input = std::fs::read(&only).unwrap_or_else(|e| panic!("cannot read {}: {e}", only.display()));
            return cases::alone(self, &input);
        }
        if let Some(lot) = cases::Lot::of_child() {
            return cases::run(self, seed, &lot);
        }
        let cases = if deadline.is_some() { u64::MAX } else { cases + self.corpus.inputs.len() as u64 };
        let folder = folder(self.name);
        let (mut first, mut failures, mut failures_len) = (0, Vec::<(String, String)>::new(), 0);
        while first < cases
            && failures.len() < KINDS
            && failures_len < FAILURES
            && deadline.is_none_or(|end| Instant::now() < end)
        {
            let watched = Watched::start(self.name, &folder, &[(cases::FROM, first), (cases::UNTIL, cases)]);
            let (case, ended) = watched.wait(Duration::from_secs(self.limits.seconds), deadline);
            first = case.saturating_add(1);
            failures_len += 1;
            match ended {
                Ended::Well => break,
                Ended::Badly { kind, .. } if failures.iter().any(|(other, _)| *other == kind) => {}
                Ended::Badly { kind, said } => {
                    let input = cases::input(self, seed, case);
                    let input = shrink::shrink(self, &folder, input, &kind);
                    let file = folder.join(format!("case-{case}"));
                    std::fs::write(&file, &input).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
                    failures.push((kind, format!("case {case}, {}:\n{said}", file.display())));
                }
            }
        }
        eprintln!("{}: {} cases, seed {seed}", self.name, first.min(cases));
        let all: Vec<String> = failures.into_iter().map(|(kind, rest)| format!("{kind}\n{rest}")).collect();
        assert!(
            all.is_empty(),
            "{} inputs of {} went wrong; copy each to the corpus of the target under a name that tells what it is\n\n{}",
            all.len(),
            self.name,
            all.join("\n\n")
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} = {text} is no whole number")))
}

/// Where a target's files go.
fn folder(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its own program");
    let target = exe.ancestors().nth(3).expect("a test lies in target/PROFILE/deps");
    let folder = target.join("fuzz").join(name.replace("::", "-"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    folder
}
