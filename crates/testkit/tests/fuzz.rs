//! Tests of the fuzzer itself: targets that fail in every way it should detect.

use hyperprior_testkit::fuzz::{Corpus, Limits, Target};
use hyperprior_testkit::memory::Bounded;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// The report for a target; empty if nothing failed.
fn found(name: &str, run: &(dyn Fn(&[u8]) + Sync)) -> String {
    let corpus = Corpus::default().with("a reader [of] 12 words").with("nothing");
    let limits = Limits { seconds: 1, bytes: 1 << 28 };
    let check = || Target { name, corpus: &corpus, words: &["word"], limits, run }.check_exactly(1000);
    if std::env::vars_os().any(|(name, _)| name == "HYPERPRIOR_FUZZ_NOTE" || name == "HYPERPRIOR_FUZZ_INPUT") {
        // This is the child process that runs the cases: a failure must end it, and there is nothing more to check here.
        check();
        std::process::exit(0);
    }
    let panic = catch_unwind(AssertUnwindSafe(check)).err();
    panic.and_then(|panic| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn has(input: &[u8], part: &str) -> bool {
    String::from_utf8_lossy(input).contains(part)
}

#[test]
fn a_panic_is_found_and_its_input_is_short() {
    let run = |input: &[u8]| assert!(!has(input, "[["), "brackets within brackets");
    let report = found("a_panic_is_found_and_its_input_is_short", &run);
    assert!(report.contains("brackets within brackets") && report.contains("1 inputs"), "{report}");
    let file = report.split(", ").nth(1).and_then(|rest| rest.split(":\n").next()).unwrap_or_default();
    assert_eq!(std::fs::read(file).unwrap_or_default(), b"[[", "{report}");
}

#[test]
fn an_overflow_of_the_stack_is_found() {
    fn deep(input: &[u8], depth: usize) -> usize {
        let room = std::hint::black_box([depth; 1024]);
        if input.get(depth) == Some(&b'(') { 1 + deep(input, depth + 1) } else { room[7] }
    }
    let run = |input: &[u8]| {
        let at = input.windows(4).position(|window| window == b"((((").unwrap_or(0);
        std::hint::black_box(deep(&input[at..], 0));
    };
    let report = found("an_overflow_of_the_stack_is_found", &run);
    assert!(report.contains("has overflowed its stack"), "{report}");
}

#[test]
fn too_much_memory_is_found() {
    let run = |input: &[u8]| {
        let len = if has(input, "999999999999") { 1_usize << 40 } else { 1 };
        drop(std::hint::black_box(vec![0_u8; len]));
    };
    let report = found("too_much_memory_is_found", &run);
    assert!(report.contains("used too much memory"), "{report}");
}

#[test]
fn a_hang_is_found() {
    let run = |input: &[u8]| while has(input, "wordword") {};
    let report = found("a_hang_is_found", &run);
    assert!(report.contains("hung for 1 s"), "{report}");
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let run = |input: &[u8]| drop(String::from_utf8_lossy(input).into_owned());
    assert_eq!(found("nothing_is_found_where_nothing_is_wrong", &run), "");
}
