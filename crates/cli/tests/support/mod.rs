//! The command, run on model files.
#![allow(dead_code, reason = "each test uses what it needs of this")]

pub mod browser;
pub mod kills;

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The command with these arguments; none of them may hold a blank.
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

/// What it prints where it succeeds.
pub fn printed(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// What it prints as JSON.
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

/// Files of a test's own.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Writes a file, and gives its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|x| x.as_f64().expect("a number")).collect()
}
