//! What the command says to a person: help, mistakes, pictures, exit codes.

use std::path::PathBuf;
use std::process::{Command, Output};

fn hyperprior(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperprior")).args(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn help_shows_examples_and_exits_with_zero() {
    for arguments in [&["--help"][..], &["reproduce", "--help"], &["demo", "--help"]] {
        let output = hyperprior(arguments);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("Examples:"), "{arguments:?}");
    }
    assert!(text(&hyperprior(&["--version"]).stdout).starts_with("hyperprior "));
}

/// The names under `Commands:` of a help text.
fn subcommands(help: &str) -> Vec<String> {
    let own = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).map(str::to_owned);
    let names = own.filter_map(name).filter_map(|rest| rest.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_examples_a_manual_page_and_completions() {
    let commands = subcommands(&text(&hyperprior(&["--help"]).stdout));
    assert!(commands.len() > 8, "{commands:?}");
    let pages = folder("manual");
    assert!(hyperprior(&["man", "--out", &pages.display().to_string()]).status.success());
    for name in &commands {
        let help = text(&hyperprior(&[name, "--help"]).stdout);
        assert!(help.contains("Examples:"), "{name}");
        let page = std::fs::read_to_string(pages.join(format!("hyperprior-{name}.1"))).expect("a page");
        assert!(page.contains(".TH") && page.contains("Examples:"), "{name}");
    }
    assert!(text(&hyperprior(&["man"]).stdout).contains(".TH hyperprior 1"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&hyperprior(&["completions", shell]).stdout);
        assert!(commands.iter().all(|name| script.contains(name.as_str())), "{shell}");
    }
    assert_eq!(hyperprior(&["completions", "csh"]).status.code(), Some(64));
}

#[test]
fn mistakes_on_the_command_line_are_usage_errors() {
    let cases: [(&[&str], &str); 6] = [
        (&[], "Usage"),
        (&["reproduce"], "EXPERIMENT"),
        (&["reproduce", "nonesuch"], "correlated-poisson"),
        (&["reproduce", "ising", "--target", "c"], "choose one of j0.5, j1"),
        (&["reproduce", "ising", "--seed", "-1"], "--seed"),
        (&["demo", "--threads", "0"], "threads"),
    ];
    for (arguments, hint) in cases {
        let output = hyperprior(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?} said {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn pictures_are_written_where_they_were_asked_for() {
    let out = folder("pictures");
    let path = out.to_str().expect("a path in UTF-8");
    let output = hyperprior(&["reproduce", "correlated-poisson", "--target", "b", "--out", path, "--quiet"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("exact KL"));
    for name in ["correlated-poisson-b", "gaussian-gamma"] {
        let svg = std::fs::read_to_string(out.join(name).with_extension("svg")).expect("an SVG");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        let png = std::fs::read(out.join(name).with_extension("png")).expect("a PNG");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let blocked = folder("blocked");
    std::fs::create_dir_all(blocked.parent().expect("a parent")).expect("a folder");
    std::fs::write(&blocked, "a file where the folder should go").expect("a file");
    let path = blocked.to_str().expect("a path in UTF-8");
    let output = hyperprior(&["reproduce", "correlated-poisson", "--target", "b", "--out", path, "--quiet"]);
    assert_eq!(output.status.code(), Some(73));
    assert!(text(&output.stderr).contains("blocked"), "{}", text(&output.stderr));
    // The table was printed before the picture failed.
    assert!(text(&output.stdout).contains("mean-field"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_75_and_says_so() {
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
