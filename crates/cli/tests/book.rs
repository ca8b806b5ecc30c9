//! Runs every command in the book and the README, and compares the output with the pages.
//!
//! Shell blocks run, and R blocks if R and its packages posterior and coda are installed. A comment before a fenced block marks it:
//!
//! - `<!-- not run: why -->`: the commands are not run.
//! - `<!-- long -->`: the commands are run with `HYPERPRIOR_BOOK=all` and with `update`.
//! - `<!-- file: name -->`: the block is written to a file for the commands of the page.
//! - `<!-- output -->`: the output of the last commands; with `<!-- output from WORDS -->`, from the line that begins with those
//!   words. The last digits of numbers may differ between machines, so only the shape is compared; `HYPERPRIOR_BOOK=update` writes
//!   the output into the page.
#![cfg(unix)]

#[path = "suite/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::Folder;

/// A fenced block of a page.
struct Block {
    /// The comment before it.
    mark: Option<String>,
    language: String,
    /// Its lines, as line numbers of the page.
    lines: std::ops::Range<usize>,
}

fn blocks(page: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < page.len() {
        let Some(language) = page[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let before = page[..at].iter().rev().find(|line| !line.is_empty());
        let mark = before.and_then(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->"));
        let len = page[at + 1..].iter().take_while(|line| **line != "```").count();
        let lines = at + 1..at + 1 + len;
        at = lines.end + 1;
        blocks.push(Block { mark: mark.map(str::to_owned), language: language.to_owned(), lines });
    }
    blocks
}

/// A folder with the examples of a clone, and `cargo` and `hyperprior` scripts that run the tested binary.
fn clone(folder: &Folder) -> PathBuf {
    let (root, place, bin) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), folder.path("clone"), folder.path("bin"));
    fs::create_dir_all(&place).expect("a folder");
    fs::create_dir_all(&bin).expect("a folder");
    symlink(root.join("examples"), place.join("examples")).expect("a link");
    let binary = env!("CARGO_BIN_EXE_hyperprior");
    let cargo =
        format!("#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 1\nshift 3\nexec '{binary}' \"$@\"\n");
    for (name, text) in [("hyperprior", format!("#!/bin/sh\nexec '{binary}' \"$@\"\n")), ("cargo", cargo)] {
        let path = bin.join(name);
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable script");
    }
    place
}

/// The interpreter of a language, which takes the block as its last argument.
fn interpreter(language: &str) -> Option<Command> {
    let (program, option) = match language {
        "sh" => ("sh", "-c"),
        "r" => ("Rscript", "-e"),
        _ => return None,
    };
    let mut command = Command::new(program);
    command.arg(option);
    Some(command)
}

fn has_r() -> bool {
    let loaded = Command::new("Rscript").args(["-e", "library(posterior); library(coda)"]).output();
    loaded.is_ok_and(|out| out.status.success())
}

/// The part of an output that is the same on every machine: without digits and the widths that follow them.
fn shape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' | '.' | '-' | '─' | ' ' | '\n' | '↑' | '↓' | '+' => {}
            '▁'..='█' => {}
            c => out.push(c),
        }
    }
    out
}

fn check(page: &Path, mode: &str) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|error| error.to_string())?;
    let lines: Vec<&str> = text.lines().collect();
    let body = |block: &Block| lines[block.lines.clone()].join("\n") + "\n";
    let name = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = Folder::new(&format!("book-{name}"));
    let place = clone(&folder);
    let found = blocks(&lines);
    for block in &found {
        if let Some(file) = block.mark.as_ref().and_then(|mark| mark.strip_prefix("file: ")) {
            fs::write(place.join(file), body(block)).map_err(|error| error.to_string())?;
        }
    }
    let (mut printed, mut failures, mut changes) = (None, String::new(), Vec::new());
    for (k, block) in found.iter().enumerate() {
        let mark = block.mark.as_deref().unwrap_or_default();
        if let Some(mut command) = interpreter(&block.language) {
            let is_run = !mark.starts_with("not run: ") && (mark != "long" || mode != "short");
            printed = None;
            if is_run && block.language == "r" && !has_r() {
                eprintln!(
                    "{}:{}: SKIPPED: R with posterior and coda is not installed",
                    page.display(),
                    block.lines.start
                );
            } else if is_run {
                let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
                let script = match block.language.as_str() {
                    "sh" => format!("set -e\n{{\n{}}} 2>&1\n", body(block)),
                    _ => body(block),
                };
                let out = command.arg(script).current_dir(&place).env("PATH", path).output();
                let out = out.map_err(|error| error.to_string())?;
                let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
                if !out.status.success() {
                    text += &String::from_utf8_lossy(&out.stderr);
                }
                printed = Some((text, out.status.success()));
            }
            let is_output = |b: &Block| b.mark.as_deref().is_some_and(|mark| mark.starts_with("output"));
            let is_shown = found[k + 1..].iter().take_while(|b| interpreter(&b.language).is_none()).any(is_output);
            if let Some((text, false)) = printed.as_ref().filter(|_| !is_shown) {
                let _ = writeln!(failures, "{}:{}: failed:\n{text}", page.display(), block.lines.start);
            }
        }
        if let (Some(from), Some((text, _))) = (mark.strip_prefix("output"), &printed) {
            let from = from.strip_prefix(" from ").unwrap_or_default();
            let skipped = text.lines().take_while(|line| !line.starts_with(from));
            let text = &text[skipped.map(|line| line.len() + 1).sum::<usize>().min(text.len())..];
            if mode == "update" {
                changes.push((block.lines.clone(), text.trim_end().to_owned()));
            } else if shape(text) != shape(&body(block)) {
                let _ = writeln!(
                    failures,
                    "{}:{}: the output differs from the page:\n{text}",
                    page.display(),
                    block.lines.start
                );
            }
        }
    }
    if !changes.is_empty() {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        for (range, text) in changes.into_iter().rev() {
            lines.splice(range, text.lines().map(str::to_owned));
        }
        fs::write(page, lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

#[test]
fn the_commands_of_the_book_work() {
    let mode = std::env::var("HYPERPRIOR_BOOK").unwrap_or_else(|_| "short".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let only = std::env::var("HYPERPRIOR_PAGE").ok();
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("book/src"))
        .expect("a book")
        .map(|entry| entry.expect("a page").path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain([root.join("README.md"), root.join("examples/README.md")])
        .filter(|path| only.as_ref().is_none_or(|only| path.ends_with(only)))
        .collect();
    pages.sort();
    assert!(!pages.is_empty(), "there is no such page");
    let failures: String = pages.iter().filter_map(|page| check(page, &mode).err()).collect();
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn shapes_ignore_digits_but_not_words() {
    assert_eq!(shape("mean 1.25 ± 0.3\n────\n"), shape("mean   -10.5 ± 0.31\n──────\n"));
    assert_ne!(shape("mean 1.25"), shape("median 1.25"));
    let page = ["text", "<!-- output -->", "", "```text", "a", "b", "```", "```sh", "c", "```"];
    let found = blocks(&page);
    assert_eq!((found[0].mark.as_deref(), found[0].lines.clone()), (Some("output"), 4..6));
    assert_eq!((found[1].mark.as_deref(), found[1].language.as_str()), (None, "sh"));
}
