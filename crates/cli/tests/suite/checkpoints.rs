//! Fits that are killed, stopped, repeated or not trusted.

use crate::support::{Folder, command, example, json, run, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A summary without the time.
fn summary(path: &Path) -> Value {
    let text = std::fs::read_to_string(path.join("summary.json")).expect("a summary");
    let mut summary: Value = serde_json::from_str(&text).expect("JSON");
    summary["wall_seconds"] = Value::Null;
    summary
}

fn same(a: &Path, b: &Path) {
    assert_eq!(summary(a), summary(b));
    for name in ["draws.parquet", "draws.csv", "trace.csv", "CODAchain1.txt"] {
        let [a, b] = [a, b].map(|folder| std::fs::read(folder.join(name)).expect(name));
        assert!(a == b, "{name} differs");
    }
    for folder in [a, b] {
        let left = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name());
        let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(!left.iter().any(|name| name.starts_with('.') || name == "checkpoint"), "{left:?}");
    }
}

/// Starts a command and sends it a signal after a while.
fn interrupted(line: &str, signal: &str, after: Duration) -> std::process::Output {
    let child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    std::thread::sleep(after);
    let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    child.wait_with_output().expect("it ends")
}

/// Wherever a fit is killed or stopped, it resumes to the same numbers; with and without marginalised labels.
#[test]
fn interrupted_fits_resume_to_the_same_numbers() {
    let folder = Folder::new("checkpoints");
    for (name, more) in [("hmm_quakes", "--draws 200"), ("coal", "--draws 200 --steps 200 --eliminate none")] {
        let whole = folder.path(&format!("{name}-whole"));
        let line = format!("fit {} {more} --quiet --save-every 0", example(name));
        assert!(run(&format!("{line} --out {}", whole.display())).status.success());
        for (signal, milliseconds) in [("-KILL", 150), ("-KILL", 500), ("-INT", 700), ("-TERM", 1000)] {
            let part = folder.path(&format!("{name}{signal}-{milliseconds}"));
            let again = format!("resume {} --quiet", part.display());
            let stopped =
                interrupted(&format!("{line} --out {}", part.display()), signal, Duration::from_millis(milliseconds));
            if !part.join("config.toml").exists() || stopped.status.success() {
                continue;
            }
            // Interrupt it a second time.
            interrupted(&again, signal, Duration::from_millis(milliseconds));
            if part.join("checkpoint").exists() || !part.join("summary.json").exists() {
                let output = run(&again);
                assert!(output.status.success(), "{}", text(&output.stderr));
            }
            same(&whole, &part);
        }
    }
}

#[test]
fn an_interrupted_fit_says_how_to_resume() {
    let folder = Folder::new("checkpoints-interrupt");
    let out = folder.path("run");
    let line = format!("fit {} --steps 3000 --draws 500 --out {}", example("rats"), out.display());
    let output = interrupted(&line, "-INT", Duration::from_millis(2000));
    let stderr = text(&output.stderr);
    if output.status.success() {
        return; // A fast machine is done by now.
    }
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains(&format!("continue with `hyperprior resume {}`", out.display())), "{stderr}");
    // The fit or the moves may have been stopped.
    assert_ne!(summary(&out)["verdict"], "trust");
    assert!(run(&format!("resume {} --quiet", out.display())).status.success());
    let whole = folder.path("whole");
    assert!(
        run(&format!("fit {} --steps 3000 --draws 500 --quiet --out {}", example("rats"), whole.display()))
            .status
            .success()
    );
    same(&whole, &out);
}

#[test]
fn bad_checkpoints_are_refused() {
    let folder = Folder::new("checkpoints-refused");
    let out = folder.path("run");
    let [model, data] = ["m.bug", "d.json"];
    let model = folder.file(model, "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }");
    let data = folder.file(data, r#"{"y": 7}"#);
    let line = format!("fit {model} --data {data} --steps 100000000 --save-every 0 --quiet --out {}", out.display());
    let output = interrupted(&line, "-INT", Duration::from_millis(700));
    assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
    let path = out.join("checkpoint");
    let good = std::fs::read(&path).expect("a checkpoint");
    let refused = |bytes: &[u8], reason: &str| {
        std::fs::write(&path, bytes).expect("a file");
        let output = run(&format!("resume {} --quiet", out.display()));
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(65), "{stderr}");
        assert!(stderr.contains(reason) && stderr.contains("hyperprior rerun"), "{stderr}");
    };
    for len in [0, 5, 17, 30, good.len() / 2, good.len() - 1] {
        refused(&good[..len], "it ends too early");
    }
    for at in (0..good.len()).step_by(good.len() / 12) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        refused(&flipped, "cannot resume from");
    }
    refused(b"hyperprior fit 0\nwhatever there was", "it was written by another version");
    std::fs::write(&path, &good).expect("a file");
    folder.file("d.json", r#"{"y": 6}"#);
    refused(&good, "the model or its data have changed since then");
}

#[test]
fn a_rerun_gives_the_same_files() {
    let folder = Folder::new("checkpoints-rerun");
    let [first, second] = ["first", "second"].map(|name| folder.path(name));
    let more = "--seed 9 --draws 300 --monitor lambda,k --correct resample --method mixture:2 --step-size 0.02";
    assert!(run(&format!("fit {} {more} --quiet --out {}", example("coal"), first.display())).status.success());
    assert!(run(&format!("rerun {} --quiet --out {}", first.display(), second.display())).status.success());
    same(&first, &second);
    let output = run(&format!("resume {} --quiet", first.display()));
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("is complete; repeat it with `hyperprior rerun"), "{}", text(&output.stderr));
    assert_eq!(run("rerun nowhere").status.code(), Some(66));
}

/// Known failures of an approximation get a warning.
#[test]
fn planted_failures_are_caught() {
    let folder = Folder::new("checkpoints-planted");
    let two = folder.file("two.bug", "model { mu ~ dnorm(0.3, 0.01)\n m <- pow(mu, 2)\n y ~ dnorm(m, 0.1) }");
    let two = format!("{two} --data {}", folder.file("two.json", r#"{"y": 25}"#));
    let heavy = "model { for (i in 1:3) { x[i] ~ dt(0, 1, 1.5) }\n s <- sum(x[])\n y ~ dnorm(s, 0.0001) }";
    let heavy = folder.file("heavy.bug", heavy);
    let heavy = format!("{heavy} --data {}", folder.file("heavy.json", r#"{"y": 0}"#));
    let verdict_of = |line: &str| {
        let found = json(line);
        (
            found["verdict"].as_str().expect("a verdict").to_owned(),
            found["warnings"][0].as_str().unwrap_or("").to_owned(),
        )
    };
    // One of two modes is missed; then both are found.
    for method in ["full-rank", "mean-field", "flow:2"] {
        let (verdict, why) = verdict_of(&format!("fit {two} --method {method}"));
        assert!(verdict == "distrust" && why.contains("the search found a region"), "{method}: {verdict}, {why}");
    }
    assert_eq!(verdict_of(&format!("fit {two}")).0, "trust");
    // Heavy tails under a Gaussian.
    let (verdict, why) = verdict_of(&format!("fit {heavy} --method full-rank"));
    assert!(verdict != "trust" && why.contains("the tails of x["), "{verdict}, {why}");
    // A hundredth of the steps.
    let (verdict, why) = verdict_of(&format!("fit {} --steps 4", example("hmm_quakes")));
    assert!(verdict != "trust" && why.contains("too few"), "{verdict}, {why}");
    // Steps a hundred times too large: the fit fails, or is not trusted, unless long chains made up for it.
    let output = run(&format!("fit {} --step-size 3 --strict --quiet", example("dawid_skene")));
    assert!(matches!(output.status.code(), Some(3 | 65)), "{}", text(&output.stdout));
    // Integrated out, the tails are known: the standard deviation is 4.63. Those of a posterior that is a thousand times as wide are not.
    let sd = json(&format!("fit {heavy} --strict"))["parameters"]["x[1]"]["sd"].as_f64().expect("a number");
    assert!((sd / 4.63 - 1.0).abs() < 0.1, "{sd}");
    let wider = "model { for (i in 1:3) { x[i] ~ dt(0, 1, 1.5) }\n s <- sum(x[])\n y ~ dnorm(s, 1.0E-10) }";
    let wider = format!("{} --data {}", folder.file("wider.bug", wider), folder.file("wider.json", r#"{"y": 0}"#));
    assert_eq!(run(&format!("fit {wider} --strict --quiet")).status.code(), Some(3));
}
