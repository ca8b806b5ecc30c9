//! Watches a child process that runs cases.

use super::cases::{DONE, NOTE};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How a process ended.
pub(super) enum Ended {
    /// No failure, or time is up.
    Passed,
    /// A case failed.
    Failed {
        /// One line; failures of the same kind share it.
        kind: String,
        /// The end of the process's output.
        output: String,
    },
}

/// A process and its output files.
pub(super) struct Watched {
    child: Child,
    note: PathBuf,
    output: PathBuf,
}

impl Watched {
    /// Runs the test `name` of this program in a child process.
    pub fn start(name: &str, folder: &Path, variables: &[(&str, u64)]) -> Self {
        let (note, output) = (folder.join("note"), folder.join("output"));
        let _ = std::fs::remove_file(&note);
        let file = File::create(&output).expect("a file for the output");
        let mut command = Command::new(std::env::current_exe().expect("a test knows its own program"));
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(NOTE, &note).env("RUST_BACKTRACE", "0");
        command.envs(variables.iter().map(|(name, value)| (name, value.to_string())));
        let both = file.try_clone().expect("one file for both streams");
        let child = command.stdin(Stdio::null()).stdout(both).stderr(file).spawn().expect("a test starts itself");
        Self { child, note, output }
    }

    /// Waits until it ends or spends too long on one case; also returns the case it had reached.
    pub fn wait(mut self, most: Duration, deadline: Option<Instant>) -> (u64, Ended) {
        let (mut case, mut since) = (None, Instant::now());
        let mut wait = Duration::from_millis(2);
        loop {
            let ended = self.child.try_wait().expect("a child can be waited for");
            let now = self.noted();
            if now != case {
                (case, since) = (now, Instant::now());
            }
            let at = case.unwrap_or(0);
            if let Some(status) = ended {
                return (at, self.judge(status, case));
            }
            if deadline.is_some_and(|end| Instant::now() > end) {
                self.end();
                return (at, Ended::Passed);
            }
            if since.elapsed() > most {
                self.end();
                let kind = format!("hung for {} s", most.as_secs());
                return (at, Ended::Failed { kind, output: self.output_end() });
            }
            sleep(wait);
            wait = (2 * wait).min(Duration::from_millis(50));
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn noted(&self) -> Option<u64> {
        let bytes = std::fs::read(&self.note).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn judge(&self, status: ExitStatus, case: Option<u64>) -> Ended {
        if status.success() {
            assert!(case.is_some(), "the process ran no test: a target's name must be its test's, with its modules");
            assert_eq!(case, Some(DONE), "the process ended before its cases");
            return Ended::Passed;
        }
        let output = self.output_end();
        assert!(case.is_some(), "the process ended before the first case:\n{output}");
        Ended::Failed { kind: kind(&output, status), output }
    }

    /// The end of its output.
    fn output_end(&self) -> String {
        let output = std::fs::read(&self.output).unwrap_or_default();
        let start = output.len().saturating_sub(2000);
        String::from_utf8_lossy(&output[start..]).into_owned()
    }
}

/// What distinguishes failures: the location of a panic, the reason of an abort.
pub(super) fn kind(output: &str, status: ExitStatus) -> String {
    let is_reason = |line: &&str| {
        ["panicked at ", "has overflowed its stack", "memory allocation of "].iter().any(|part| line.contains(part))
    };
    let Some(line) = output.lines().find(is_reason) else { return status.to_string() };
    if line.contains("memory allocation of ") {
        return "used too much memory".to_owned();
    }
    line.split_once("panicked at ").map_or(line, |(_, place)| place).to_owned()
}
