//! SIGKILL at any moment, even while a file is being written, loses time but no results.
#![cfg(unix)]

mod case;
#[path = "../suite/support/mod.rs"]
mod support;

use case::Case;
use std::time::Duration;
use support::{Folder, example, run, text};

/// The number of kills: `HYPERPRIOR_KILLS`, or 6.
fn kills() -> usize {
    std::env::var("HYPERPRIOR_KILLS").map_or(6, |text| text.parse().expect("HYPERPRIOR_KILLS is a whole number"))
}

#[test]
fn killed_topics_resume_to_the_same_files() {
    let case = Case {
        begin: "topics bible --layers 6,3 --epochs 3 --heldout 0.01 --quiet --save-every 0",
        resume: "resume --quiet",
        checkpoint: "checkpoint",
        exact: &["model", "trace.csv", "topics.json", "activations.csv", "weights.parquet", "config.toml"],
        times: &["wall_seconds"],
    };
    let folder = Folder::new("kills-topics");
    let tally = case.check(&folder.path(""), kills(), Duration::from_secs(1200), 1);
    eprintln!("{tally:?}");
    // Most kills come after the first epoch, and every other one waits for a file to be written.
    assert!(4 * tally.resumed >= tally.kills && 8 * tally.in_writes >= tally.kills, "{tally:?}");
}

#[test]
fn killed_fits_resume_to_the_same_files() {
    let begin = format!("fit {} --draws 300 --quiet --save-every 0", example("hmm_quakes"));
    let case = Case {
        begin: &begin,
        resume: "resume --quiet",
        checkpoint: "checkpoint",
        exact: &["draws.parquet", "draws.csv", "trace.csv", "CODAchain1.txt", "config.toml"],
        times: &["wall_seconds"],
    };
    let folder = Folder::new("kills-fits");
    let tally = case.check(&folder.path(""), kills(), Duration::from_secs(1200), 2);
    eprintln!("{tally:?}");
    assert!(4 * tally.resumed >= tally.kills && 8 * tally.in_writes >= tally.kills, "{tally:?}");
}

/// A run that is killed before it removes an earlier run's checkpoint leaves one with other settings.
#[test]
fn a_checkpoint_with_other_settings_is_refused() {
    let folder = Folder::new("kills-settings");
    let [one, other] = ["one", "other"].map(|name| folder.path(name).display().to_string());
    let train = "topics bible --layers 2 --method mean-field --heldout 0.01 --quiet --save-every 0";
    let killed = |line: &str, out: &str| {
        let checkpoint = std::path::Path::new(out).join("checkpoint");
        let mut child = support::command(&format!("{line} --out {out}"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("the binary runs");
        let waits = (0..3000).take_while(|_| !checkpoint.exists());
        waits.for_each(|_| std::thread::sleep(Duration::from_millis(10)));
        child.kill().expect("SIGKILL");
        child.wait().expect("an end");
        checkpoint
    };
    let first = killed(&format!("{train} --epochs 1000000"), &one);
    let second = killed(&format!("{train} --epochs 1000001"), &other);
    std::fs::copy(first, second).expect("a copy");
    let refused = run(&format!("resume {other} --quiet"));
    assert_eq!(refused.status.code(), Some(65));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("its settings differ from those in config.toml"), "{stderr}");
}
