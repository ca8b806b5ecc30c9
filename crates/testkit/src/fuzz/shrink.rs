//! Shrinks a failing input.

use super::cases::ONLY;
use super::target::Target;
use super::watch::kind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit for shrinking.
const TIME: Duration = Duration::from_secs(10);

/// Removes pieces of an input as long as it fails in the same way.
pub(super) fn shrink(target: &Target, folder: &Path, mut input: Vec<u8>, wanted: &str) -> Vec<u8> {
    let began = Instant::now();
    if wanted.starts_with("hung") {
        // Each attempt would take as long as the hang.
        return input;
    }
    let mut piece = input.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            if began.elapsed() > TIME {
                return input;
            }
            let mut shorter = input.clone();
            shorter.drain(at..(at + piece).min(input.len()));
            if fails(target, folder, &shorter).is_some_and(|kind| kind == wanted) {
                input = shorter;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    input
}

/// How an input fails, if it does.
fn fails(target: &Target, folder: &Path, input: &[u8]) -> Option<String> {
    let file = folder.join("shorter");
    std::fs::write(&file, input).expect("a file for an input");
    let mut command = Command::new("timeout");
    command.arg(target.limits.seconds.to_string()).arg(std::env::current_exe().expect("a test knows its own program"));
    command
        .args([target.name, "--exact", "--nocapture", "--test-threads=1"])
        .env(ONLY, &file)
        .env("RUST_BACKTRACE", "0");
    let output = command.stdin(Stdio::null()).output().ok()?;
    if output.status.success() {
        return None;
    }
    let text = [output.stdout, output.stderr].concat();
    Some(kind(&String::from_utf8_lossy(&text), output.status))
}
