//! Helpers to run the command.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod browser;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The command with these arguments, split at blanks.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperprior"));
    command.args(line.split_whitespace());
    command
}

pub fn run(line: &str) -> Output {
    command(line).output().expect("the binary runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The standard output of a successful command.
pub fn printed(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// The output of a successful command with `--json`.
pub fn json(line: &str) -> Value {
    serde_json::from_str(&printed(&format!("{line} --json --quiet"))).expect("JSON and nothing else")
}

/// An example's model and data, as arguments.
pub fn example(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    format!("{} --data {}", folder.join("model.bug").display(), folder.join("data.json").display())
}

/// An example's data.
pub fn example_data(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).join("data.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the data")).expect("JSON")
}

/// A temporary folder.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(number).collect()
}

/// Fails unless every command line exits with its code, prints its hint to standard error, and prints nothing to standard output.
pub fn assert_refused<S: AsRef<str>>(cases: impl IntoIterator<Item = (String, i32, S)>) {
    for (line, code, hint) in cases {
        let output = run(&line);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}\n{stderr}");
        assert!(stderr.contains(hint.as_ref()), "{line} printed {stderr}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}
