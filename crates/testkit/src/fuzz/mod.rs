//! Fuzzing on stable Rust: a seeded generator mutates a corpus of inputs, and a child process runs them through a target, so
//! that panics, stack overflows, hangs and excessive memory are all detected, and the failing input is saved.
//!
//! Case n of a target depends on the seed, the corpus and n alone. A fuzz test has the same name as its target, in a binary
//! whose allocator is [`memory::Bounded`](crate::memory::Bounded):
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
//! `HYPERPRIOR_FUZZ_SECONDS=600` runs each target for that time instead, `HYPERPRIOR_FUZZ_SEED=2` generates other cases, and
//! `HYPERPRIOR_FUZZ_INPUT=FILE` runs that one input.

mod cases;
mod corpus;
mod mutate;
mod shrink;
mod target;
mod watch;

pub use corpus::Corpus;
pub use target::{Limits, Target};

use cases::number;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use watch::{Ended, Watched};

/// Stop after this many kinds of failure, or this many failures in all: each one costs a new process.
const KINDS: usize = 8;
const FAILURES: usize = 12;

impl Target<'_> {
    /// Runs this many cases, or, if `HYPERPRIOR_FUZZ_SECONDS` is set, as many as fit into that time.
    ///
    /// # Panics
    /// If an input makes the target panic, abort, hang or use too much memory; the message names the file with the input.
    pub fn check(&self, cases: u64) {
        let seconds = number("HYPERPRIOR_FUZZ_SECONDS");
        self.check_until(cases, seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)));
    }

    /// Runs this many cases, regardless of the environment.
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
                Ended::Passed => break,
                Ended::Failed { kind, .. } if failures.iter().any(|(other, _)| *other == kind) => {}
                Ended::Failed { kind, output } => {
                    let input = cases::input(self, seed, case);
                    let input = shrink::shrink(self, &folder, input, &kind);
                    let file = folder.join(format!("case-{case}"));
                    std::fs::write(&file, &input).unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
                    failures.push((kind, format!("case {case}, {}:\n{output}", file.display())));
                }
            }
        }
        eprintln!("{}: {} cases, seed {seed}", self.name, first.min(cases));
        let all: Vec<String> = failures.into_iter().map(|(kind, rest)| format!("{kind}\n{rest}")).collect();
        assert!(
            all.is_empty(),
            "{} inputs of {} failed; copy each to the corpus of the target under a descriptive name\n\n{}",
            all.len(),
            self.name,
            all.join("\n\n")
        );
    }
}

/// The folder for a target's files.
fn folder(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its own program");
    let target = exe.ancestors().nth(3).expect("a test lies in target/PROFILE/deps");
    let folder = target.join("fuzz").join(name.replace("::", "-"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    folder
}
