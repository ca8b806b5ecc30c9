//! Kills runs at random moments, resumes them, and compares the result with an uninterrupted run.

use crate::support::{command, text};
use hyperprior_math::random::{Stream, stream};
use rand::RngExt;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A run that can be resumed.
pub struct Case<'a> {
    /// The command that starts it, without `--out` and its folder.
    pub begin: &'a str,
    /// The command that resumes it, without the folder.
    pub resume: &'a str,
    /// The name of its checkpoint.
    pub checkpoint: &'a str,
    /// Files that must be the same byte by byte.
    pub exact: &'a [&'a str],
    /// Fields of `summary.json` that differ from run to run.
    pub times: &'a [&'a str],
}

/// Counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// Killed processes.
    pub kills: usize,
    /// Those killed while writing a file.
    pub in_writes: usize,
    /// Processes that resumed from a checkpoint.
    pub resumed: usize,
    /// Finished runs.
    pub runs: usize,
}

/// The largest number of kills of one run.
const KILLS_OF_A_RUN: usize = 6;

impl Case<'_> {
    /// Kills this many processes, or as many as there is time for. Every run ends with the files of an uninterrupted one.
    pub fn check(&self, folder: &Path, kills: usize, time: Duration, seed: u64) -> Tally {
        let began = Instant::now();
        let (whole, broken) = (folder.join("whole"), folder.join("broken"));
        self.finish(self.start(self.begin, &whole, true));
        let took = began.elapsed();
        let expected = self.files(&whole);
        let mut rng = stream(seed, 0, 0, 0);
        let mut tally = Tally::default();
        while tally.kills < kills && began.elapsed() < time {
            let _ = std::fs::remove_dir_all(&broken);
            let most = KILLS_OF_A_RUN.min(kills - tally.kills);
            self.broken(&broken, most, took, &mut rng, &mut tally);
            let found = self.files(&broken);
            for ((name, expected), (_, found)) in expected.iter().zip(&found) {
                assert!(found == expected, "{name} differs from that of an uninterrupted run; {tally:?}");
            }
            let left: Vec<_> =
                std::fs::read_dir(&broken).expect("a folder").map(|e| e.expect("a file").file_name()).collect();
            let is_left =
                |name: &std::ffi::OsString| name == self.checkpoint || name.to_string_lossy().starts_with('.');
            assert!(!left.iter().any(is_left), "{left:?}; {tally:?}");
            tally.runs += 1;
        }
        tally
    }

    /// Kills a run this often, and resumes it each time.
    fn broken(&self, out: &Path, kills: usize, took: Duration, rng: &mut Stream, tally: &mut Tally) {
        let before = tally.kills;
        loop {
            let is_resumed = out.join(self.checkpoint).exists();
            // A finished run has no checkpoint; one that was killed before its first checkpoint starts over.
            if !is_resumed && out.join("summary.json").exists() {
                return;
            }
            tally.resumed += usize::from(is_resumed);
            let line = if is_resumed { self.resume } else { self.begin };
            let mut child = self.start(line, out, !is_resumed);
            if tally.kills - before == kills {
                return self.finish(child);
            }
            let wait = took.mul_f64(rng.random::<f64>().powi(2));
            if rng.random() {
                std::thread::sleep(wait);
            } else {
                await_a_write(&mut child, out, wait, took);
            }
            if child.try_wait().expect("a child can be waited for").is_some() {
                // It finished first.
                self.finish(child);
                continue;
            }
            child.kill().expect("SIGKILL");
            child.wait().expect("an end");
            tally.kills += 1;
            tally.in_writes += usize::from(is_writing(out));
        }
    }

    fn start(&self, line: &str, out: &Path, is_new: bool) -> Child {
        let mut command = command(line);
        if is_new {
            command.arg("--out");
        }
        command.arg(out);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs")
    }

    fn finish(&self, child: Child) {
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    }

    fn files(&self, out: &Path) -> Vec<(String, Vec<u8>)> {
        let read = |name: &str| std::fs::read(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut files: Vec<_> = self.exact.iter().map(|name| ((*name).to_owned(), read(name))).collect();
        let mut summary: Value = serde_json::from_slice(&read("summary.json")).expect("JSON");
        for name in self.times {
            assert!(summary[*name].take().is_number(), "{name}");
        }
        files.push(("summary.json".to_owned(), summary.to_string().into_bytes()));
        files
    }
}

/// The files being written.
fn writing(out: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "tmp"))
}

fn is_writing(out: &Path) -> bool {
    writing(out).next().is_some()
}

/// Waits, and then until a file is being written, if one ever is.
fn await_a_write(child: &mut Child, out: &Path, wait: Duration, most: Duration) {
    let began = Instant::now();
    std::thread::sleep(wait);
    while !is_writing(out) && began.elapsed() < 2 * most && child.try_wait().is_ok_and(|ended| ended.is_none()) {}
}
