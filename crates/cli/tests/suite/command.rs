//! Help, usage errors, pictures, exit codes and old names of options.

use crate::support::{Folder, assert_refused, json, printed, run, text};
use std::path::PathBuf;
use std::process::Command;

/// A temporary folder that does not exist yet.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn help_shows_examples_and_exits_with_zero() {
    for line in ["--help", "reproduce --help", "demo --help"] {
        assert!(printed(line).contains("Examples:"), "{line}");
    }
    assert!(printed("--version").starts_with("hyperprior "));
}

/// The names under `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let own = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).map(str::to_owned);
    let names = own.filter_map(name).filter_map(|rest| rest.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_examples_a_manual_page_and_completions() {
    let commands = subcommands(&printed("--help"));
    assert!(commands.len() > 8, "{commands:?}");
    let pages = folder("manual");
    printed(&format!("man --out {}", pages.display()));
    for name in &commands {
        let help = printed(&format!("{name} --help"));
        assert!(help.contains("Examples:"), "{name}");
        let page = std::fs::read_to_string(pages.join(format!("hyperprior-{name}.1"))).expect("a page");
        assert!(page.contains(".TH") && page.contains("Examples:"), "{name}");
    }
    assert!(printed("man").contains(".TH hyperprior 1"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = printed(&format!("completions {shell}"));
        assert!(commands.iter().all(|name| script.contains(name.as_str())), "{shell}");
    }
    assert_eq!(run("completions csh").status.code(), Some(64));
}

/// Options keep their old names as hidden aliases.
#[test]
fn old_names_of_options_still_work() {
    let folder = Folder::new("aliases");
    let model = folder.file("coin.bug", "model { for (i in 1:n) { y[i] ~ dbern(p) } p ~ dbeta(1, 1) }");
    let data = folder.file("coin.json", r#"{"n": 4, "y": [1, 1, 0, 1]}"#);
    let [one, two] = ["one", "two"].map(|name| folder.path(name).display().to_string());
    let fit = format!("fit {model} --data {data} --draws 50 --steps 50");
    assert!(json(&format!("{fit} --check-predictive --correct moves --out {one}"))["predictive"].is_array());
    printed(&format!("{fit} --correct weights --quiet --out {two}"));
    assert_eq!(json(&format!("predict {one} --data {data} --carry p"))["reused"][0], "p");
    printed(&format!("report {one} --beside {two}"));
    assert_eq!(json(&format!("check {model} --data {data} --calibrate 10 --steps 50"))["done"], 10);
    let help = ["fit", "check", "predict", "report"].map(|name| printed(&format!("{name} --help"))).concat();
    for old in ["--check-predictive", "--calibrate", "--carry", "--beside", "weights"] {
        assert!(!help.contains(old), "{old}");
    }
}

#[test]
fn usage_errors_have_code_64() {
    let cases = [
        ("", "Usage"),
        ("reproduce", "EXPERIMENT"),
        ("reproduce nonesuch", "correlated-poisson"),
        ("reproduce ising --target c", "choose one of j0.5, j1"),
        ("reproduce ising --seed -1", "--seed"),
        ("demo --threads 0", "threads"),
    ];
    assert_refused(cases.map(|(line, hint)| (line.to_owned(), 64, hint)));
}

#[test]
fn pictures_are_written_to_the_folder() {
    let out = folder("pictures");
    let stdout = printed(&format!("reproduce correlated-poisson --target b --out {} --quiet", out.display()));
    assert!(stdout.contains("exact KL"), "{stdout}");
    for name in ["correlated-poisson-b", "gaussian-gamma"] {
        let svg = std::fs::read_to_string(out.join(name).with_extension("svg")).expect("an SVG");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let png = std::fs::read(out.join(name).with_extension("png")).expect("a PNG");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let blocked = folder("blocked");
    std::fs::create_dir_all(blocked.parent().expect("a parent")).expect("a folder");
    std::fs::write(&blocked, "a file where the folder should go").expect("a file");
    let output = run(&format!("reproduce correlated-poisson --target b --out {} --quiet", blocked.display()));
    assert_eq!(output.status.code(), Some(73));
    assert!(text(&output.stderr).contains("blocked"), "{}", text(&output.stderr));
    // The table was printed before the picture failed.
    assert!(text(&output.stdout).contains("mean-field"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_study_exits_with_75() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hyperprior"))
        .args(["reproduce", "ising", "--no-pictures", "--quiet"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success() && child.try_wait().is_ok());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(75));
    assert!(text(&output.stderr).contains("stopped early"));
}
