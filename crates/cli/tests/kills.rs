//! SIGKILL at any moment, in the middle of a file too, costs time and nothing else.
#![cfg(unix)]

mod support;

use std::time::Duration;
use support::kills::Case;
use support::{Folder, example, run, text};

/// `HYPERPRIOR_KILLS` says how many, where it is set.
fn kills() -> usize {
    std::env::var("HYPERPRIOR_KILLS").map_or(10, |text| text.parse().expect("HYPERPRIOR_KILLS is a whole number"))
}

#[test]
fn topics() {
    let case = Case {
        begin: "topics bible --layers 6,3 --epochs 6 --heldout 0.01 --quiet",
        resume: "resume --quiet",
        checkpoint: "checkpoint",
        exact: &["model", "trace.csv", "topics.json", "activations.csv", "weights.parquet", "config.toml"],
        times: &["wall_seconds"],
    };
    let folder = Folder::new("kills-topics");
    let tally = case.check(&folder.path(""), kills(), Duration::from_secs(1200), 1);
    eprintln!("{tally:?}");
    // Otherwise nothing was tried: most kills come after the first epoch, and of two one waits for a file.
    assert!(4 * tally.resumed >= tally.kills && 8 * tally.in_writes >= tally.kills, "{tally:?}");
}

#[test]
fn fits() {
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

/// A run that is killed before it has taken an earlier run's checkpoint away leaves one that goes with other settings.
#[test]
fn a_checkpoint_of_other_settings_is_refused() {
    let folder = Folder::new("kills-settings");
    let [one, other] = ["one", "other"].map(|name| folder.path(name).display().to_string());
    let train = "topics bible --layers 2 --method mean-field --heldout 0.01 --quiet";
    let killed = |line: &str, out: &str| {
        let checkpoint = std::path::Path::new(out).join("checkpoint");
        let mut child = support::command(&format!("{line} --out {out}"))
            .env("HYPERPRIOR_SAVE_SECONDS", "0")
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
    let told = text(&refused.stderr);
    assert!(told.contains("it goes with other settings than those in config.toml"), "{told}");
}
