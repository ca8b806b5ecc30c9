//! A process that runs cases, and what becomes of it.

use super::cases::{DONE, NOTE};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How a process ended.
pub(super) enum Ended {
    /// All is well, or time is up.
    Well,
    /// A case went wrong.
    Badly {
        /// In one line; two of one kind have the same.
        kind: String,
        /// The end of what the process said.
        said: String,
    },
}

/// A process, and the files that tell of it.
pub(super) struct Watched {
    child: Child,
    note: PathBuf,
    said: PathBuf,
}

impl Watched {
    /// The test `name` of this program in a process of its own.
    pub fn start(name: &str, folder: &Path, variables: &[(&str, u64)]) -> Self {
        let (note, said) = (folder.join("note"), folder.join("said"));
        let _ = std::fs::remove_file(&note);
        let file = File::create(&said).expect("a file for what is said");
        let mut command = Command::new(std::env::current_exe().expect("a test knows its own program"));
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(NOTE, &note).env("RUST_BACKTRACE", "0");
        command.envs(variables.iter().map(|(name, value)| (name, value.to_string())));
        let both = file.try_clone().expect("one file for both");
        let child = command.stdin(Stdio::null()).stdout(both).stderr(file).spawn().expect("a test starts itself");
        Self { child, note, said }
    }

    /// Waits for its end, or until it spends too long on one case. With the case it was at.
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
                return (at, Ended::Well);
            }
            if since.elapsed() > most {
                self.end();
                return (at, Ended::Badly { kind: format!("hung for {} s", most.as_secs()), said: self.told() });
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
            assert!(case.is_some(), "the process ran no test: a target is named as its test, with its modules");
            assert_eq!(case, Some(DONE), "the process ended before its cases");
            return Ended::Well;
        }
        let said = self.told();
        assert!(case.is_some(), "the process ended before the first case:\n{said}");
        Ended::Badly { kind: kind(&said, status), said }
    }

    /// The end of what it said.
    fn told(&self) -> String {
        let said = std::fs::read(&self.said).unwrap_or_default();
        let start = said.len().saturating_sub(2000);
        String::from_utf8_lossy(&said[start..]).into_owned()
    }
}

/// What tells one failure from another: the place of a panic, the reason of an abort.
pub(super) fn kind(said: &str, status: ExitStatus) -> String {
    let telling = |line: &&str| {
        ["panicked at ", "has overflowed its stack", "memory allocation of "].iter().any(|part| line.contains(part))
    };
    let Some(line) = said.lines().find(telling) else { return status.to_string() };
    if line.contains("memory allocation of ") {
        return "asked for too much memory".to_owned();
    }
    line.split_once("panicked at ").map_or(line, |(_, place)| place).to_owned()
}
