//! A full disk: the messages, and that no results are lost. A small disk is mounted in a namespace; where the system does not allow
//! that, these tests are skipped.
#![cfg(target_os = "linux")]

#[path = "suite/support/mod.rs"]
mod support;

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use support::{Folder, command, text};

/// Runs a script with a disk of this size at `$DISK`; `$HYPERPRIOR` is the command. `None` if no such disk can be mounted.
fn on_a_disk_of(size: &str, folder: &Folder, script: &str) -> Option<Output> {
    let disk = folder.path("disk");
    std::fs::create_dir_all(&disk).expect("a folder");
    // With larger pages, small files take more space.
    let mount = format!(
        "[ \"$(getconf PAGESIZE)\" = 4096 ] && mount -t tmpfs -o size={size} tmpfs \"$DISK\" || exit 99\n{script}"
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount])
        .env("DISK", &disk)
        .env("HYPERPRIOR", env!("CARGO_BIN_EXE_hyperprior"))
        .current_dir(folder.path(""))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no `unshare`");
        return None;
    };
    let is_refused = output.status.code() == Some(99) || text(&output.stderr).starts_with("unshare:");
    if is_refused {
        eprintln!("skipped: no disk can be mounted: {}", text(&output.stderr));
        return None;
    }
    Some(output)
}

/// A corpus whose files take a page or a few each; with these names, `activations.csv` takes twenty.
fn sky(folder: &Folder) {
    let name = "x".repeat(2000);
    folder.file("names", &(0..40).map(|d| format!("{d}{name}\n")).collect::<String>());
    folder.file("sky.txt", &"the sun and the moon\nmoon sun star\nbread and wine\nwine bread oil\n".repeat(10));
}

const RUN: &str =
    "\"$HYPERPRIOR\" topics sky.txt --layers 2 --epochs 3 --method mean-field --json --quiet --out \"$DISK/run\"";

/// There is space for the checkpoint, but not for the results: they are printed, and written later when there is space.
#[test]
fn a_run_on_a_full_disk_is_not_lost() {
    let folder = Folder::new("full-run");
    sky(&folder);
    let script = format!(
        "{RUN} --names names > printed; echo $? > code; ls -A \"$DISK/run\" > left
         mount -o remount,size=1m \"$DISK\" || exit 99
         \"$HYPERPRIOR\" resume \"$DISK/run\" --quiet --json > again; echo $? >> code; cp \"$DISK/run/summary.json\" written"
    );
    let Some(output) = on_a_disk_of("64k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let stderr = text(&output.stderr);
    assert_eq!(read("code"), "73\n0\n", "{stderr}");
    for part in [
        "disk/run/activations.csv`: No space left on device",
        "free some space or choose another disk",
        "The printed results are complete; write the files with `hyperprior resume ",
        "disk/run` once there is space",
    ] {
        assert!(stderr.contains(part), "{part} is not in\n{stderr}");
    }
    // No partial and no temporary files.
    assert_eq!(read("left"), "checkpoint\nconfig.toml\nmodel\n");
    let json = |name: &str| {
        let mut found: Value = serde_json::from_str(&read(name)).expect(name);
        found["wall_seconds"].take();
        found
    };
    assert_eq!(json("printed")["epochs"], 3);
    assert_eq!(json("again"), json("printed"));
    assert_eq!(json("written"), json("printed"));
}

/// Training continues, with a warning, if checkpoints cannot be saved; the results are printed.
#[test]
fn a_training_that_cannot_be_saved_continues() {
    let folder = Folder::new("full-training");
    sky(&folder);
    let script = format!("{} > printed; echo $? > code; ls -A \"$DISK/run\" > left", RUN.replace("--quiet", ""));
    let Some(output) = on_a_disk_of("4k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let stderr = text(&output.stderr);
    assert_eq!(read("code"), "73\n", "{stderr}");
    assert!(stderr.contains("Warning: the checkpoint could not be saved: cannot write"), "{stderr}");
    assert!(stderr.contains("The printed results are complete\n"), "{stderr}");
    assert_eq!(read("left"), "config.toml\n");
    assert!(serde_json::from_str::<Value>(&read("printed")).is_ok());
}

/// There is space for one checkpoint but not for a second one: the first stays intact, the training continues, and resuming later
/// gives the same numbers.
#[test]
fn a_checkpoint_stays_intact_when_the_next_does_not_fit() {
    let folder = Folder::new("full-checkpoint");
    let run =
        "\"$HYPERPRIOR\" topics bible --save-every 0 --layers 2 --epochs 4 --method mean-field --heldout 0.01 --json";
    let script = format!(
        "{run} --quiet > alone
         {run} --out \"$DISK/run\" > printed; echo $? > code; ls -A \"$DISK/run\" > left; cp \"$DISK/run/checkpoint\" kept
         mount -o remount,size=16m \"$DISK\" || exit 99
         \"$HYPERPRIOR\" resume \"$DISK/run\" --quiet --json > again; echo $? >> code"
    );
    let Some(output) = on_a_disk_of("880k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let stderr = text(&output.stderr);
    assert_eq!(read("code"), "73\n0\n", "{stderr}");
    assert!(stderr.contains("Warning: the checkpoint could not be saved: cannot write"), "{stderr}");
    assert!(read("left").contains("checkpoint\n") && !read("left").contains(".tmp"), "{}", read("left"));
    // The checkpoint is that of the first epoch.
    let kept = std::fs::read(folder.path("kept")).expect("a checkpoint");
    assert!(kept.windows(9).any(|window| window == b"\"epoch\":1"), "{stderr}");
    let json = |name: &str| {
        let mut found: Value = serde_json::from_str(&read(name)).expect(name);
        found["wall_seconds"].take();
        found
    };
    assert_eq!(json("printed"), json("alone"));
    assert_eq!(json("again"), json("alone"));
}

/// A disk without any space fails before the training, and the files of an earlier run stay intact. The topics of new documents are
/// still printed.
#[test]
fn a_full_disk_keeps_its_files() {
    let folder = Folder::new("full-before");
    sky(&folder);
    let script = format!(
        "{RUN} > first; cp -r \"$DISK/run\" before; dd if=/dev/zero of=\"$DISK/fill\" 2> /dev/null
         {RUN} > second; echo $? > code; cp -r \"$DISK/run\" after
         \"$HYPERPRIOR\" topics infer \"$DISK/run\" sky.txt --out \"$DISK/found\" > third; echo $? >> code; ls -A \"$DISK/found\" > left"
    );
    let Some(output) = on_a_disk_of("200k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let stderr = text(&output.stderr);
    assert_eq!(read("code"), "73\n73\n", "{stderr}");
    assert!(stderr.contains("disk/run/config.toml`: No space left on device"), "{stderr}");
    assert!(stderr.contains("disk/found/activations.csv`: No space left on device"), "{stderr}");
    assert!(read("second").is_empty() && read("left").is_empty());
    assert!(read("third").contains("words of the topic"), "{}", read("third"));
    for name in ["summary.json", "topics.json", "activations.csv", "config.toml", "trace.csv"] {
        assert_eq!(read(&format!("before/{name}")), read(&format!("after/{name}")), "{name}");
    }
}

/// If standard output is full, the files are still written.
#[test]
fn files_are_written_if_standard_output_is_full() {
    let folder = Folder::new("full-output");
    sky(&folder);
    let (corpus, out) = (folder.path("sky.txt"), folder.path("run"));
    for more in ["", " --json"] {
        let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
        let line = format!("topics {} --layers 2 --epochs 2 --quiet --out {}{more}", corpus.display(), out.display());
        let output = command(&line).stdout(Stdio::from(full)).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(73));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("cannot write to standard output: No space left on device"), "{stderr}");
        assert!(std::fs::read_to_string(out.join("summary.json")).is_ok_and(|text| text.ends_with("}\n")));
        std::fs::remove_dir_all(&out).expect("the folder is removed");
    }
}
