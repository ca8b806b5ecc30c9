//! The child process that runs cases: it writes the number of each case before starting it, so that the parent knows which one
//! ended the process.

use super::mutate::mutated;
use super::target::Target;
use crate::memory;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;

/// The default stack of a Rust thread.
const STACK: usize = 2 << 20;
/// A single input.
pub(super) const ONLY: &str = "HYPERPRIOR_FUZZ_INPUT";
/// The file for the number of the current case, and the range of cases.
pub(super) const NOTE: &str = "HYPERPRIOR_FUZZ_NOTE";
pub(super) const FROM: &str = "HYPERPRIOR_FUZZ_FROM";
pub(super) const UNTIL: &str = "HYPERPRIOR_FUZZ_UNTIL";
/// Written instead of a number when all cases are done.
pub(super) const DONE: u64 = u64::MAX;

/// The cases of one process.
pub(super) struct Lot {
    note: PathBuf,
    from: u64,
    until: u64,
}

impl Lot {
    /// The cases of this process, if a fuzzing parent started it.
    pub fn of_child() -> Option<Self> {
        let note = std::env::var_os(NOTE)?.into();
        let number = |name| number(name).unwrap_or_else(|| panic!("{NOTE} is set without {name}"));
        Some(Self { note, from: number(FROM), until: number(UNTIL) })
    }
}

/// Case n: first the corpus unchanged, then mutated.
pub(super) fn input(target: &Target, seed: u64, case: u64) -> Vec<u8> {
    let inputs = &target.corpus.inputs;
    if let Some(whole) = inputs.get(case as usize) {
        return whole.clone();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(case);
    mutated(inputs, target.words, &mut rng)
}

pub(super) fn run(target: &Target, seed: u64, lot: &Lot) {
    let mut note = File::create(&lot.note).unwrap_or_else(|e| panic!("cannot write {}: {e}", lot.note.display()));
    let mut write = |case: u64| {
        note.rewind().and_then(|()| note.write_all(&case.to_le_bytes())).expect("a note can be written");
    };
    on_a_small_stack(target, || {
        for case in lot.from..lot.until {
            write(case);
            (target.run)(&input(target, seed, case));
        }
        write(DONE);
    });
}

pub(super) fn alone(target: &Target, input: &[u8]) {
    on_a_small_stack(target, || (target.run)(input));
}

fn on_a_small_stack(target: &Target, work: impl FnOnce() + Send) {
    memory::bound(memory::in_use() + target.limits.bytes);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A number in an environment variable.
pub(super) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} = {text} is not a whole number")))
}
