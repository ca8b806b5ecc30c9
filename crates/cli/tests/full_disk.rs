//! A disk that is full: what is said, and that nothing which was found is lost. A small disk is made in a namespace of the test's own,
//! and where the system allows none these tests have nothing to say.
#![cfg(target_os = "linux")]

mod support;

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use support::{Folder, command, text};

/// Runs a script on a disk of this size, which is `$DISK`; `$HYPERPRIOR` is the command. Nothing where no such disk can be made.
fn on_a_disk_of(size: &str, folder: &Folder, script: &str) -> Option<Output> {
    let disk = folder.path("disk");
    std::fs::create_dir_all(&disk).expect("a folder");
    // Where pages are larger, so is the least that a file takes.
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
        eprintln!("skipped: no disk can be made here: {}", text(&output.stderr));
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

/// There is room for the training, but not for what is told of it: that is printed, and written when there is room.
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
    let told = text(&output.stderr);
    assert_eq!(read("code"), "73\n0\n", "{told}");
    for part in [
        "disk/run/activations.csv`: No space left on device",
        "free some space or choose another disk",
        "What was printed is complete",
        "disk/run` writes the files once there is room",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    // Neither half a file nor what one was to be made of.
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

/// A training goes on where it cannot be saved, and says so; what it found is printed.
#[test]
fn a_training_that_cannot_be_saved_goes_on() {
    let folder = Folder::new("full-training");
    sky(&folder);
    let script = format!("{} > printed; echo $? > code; ls -A \"$DISK/run\" > left", RUN.replace("--quiet", ""));
    let Some(output) = on_a_disk_of("4k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let told = text(&output.stderr);
    assert_eq!(read("code"), "73\n", "{told}");
    assert!(told.contains("Note: the training could not be saved: cannot write"), "{told}");
    assert!(told.contains("What was printed is complete\n"), "{told}");
    assert_eq!(read("left"), "config.toml\n");
    assert!(serde_json::from_str::<Value>(&read("printed")).is_ok());
}

/// There is room for one checkpoint and not for the next beside it: the first stays as it is, the training goes on, and when there is
/// room what was saved leads to the same numbers.
#[test]
fn a_checkpoint_is_whole_when_the_next_does_not_fit() {
    let folder = Folder::new("full-checkpoint");
    let run = "HYPERPRIOR_SAVE_SECONDS=0 \"$HYPERPRIOR\" topics bible --layers 2 --epochs 4 --method mean-field --heldout 0.01 --json";
    let script = format!(
        "{run} --quiet > alone
         {run} --out \"$DISK/run\" > printed; echo $? > code; ls -A \"$DISK/run\" > left; cp \"$DISK/run/checkpoint\" kept
         mount -o remount,size=16m \"$DISK\" || exit 99
         \"$HYPERPRIOR\" resume \"$DISK/run\" --quiet --json > again; echo $? >> code"
    );
    let Some(output) = on_a_disk_of("880k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let told = text(&output.stderr);
    assert_eq!(read("code"), "73\n0\n", "{told}");
    assert!(told.contains("Note: the training could not be saved: cannot write"), "{told}");
    assert!(read("left").contains("checkpoint\n") && !read("left").contains(".tmp"), "{}", read("left"));
    // Of the first epoch: it was not the last that was saved.
    let kept = std::fs::read(folder.path("kept")).expect("a checkpoint");
    assert!(kept.windows(9).any(|window| window == b"\"epoch\":1"), "{told}");
    let json = |name: &str| {
        let mut found: Value = serde_json::from_str(&read(name)).expect(name);
        found["wall_seconds"].take();
        found
    };
    assert_eq!(json("printed"), json("alone"));
    assert_eq!(json("again"), json("alone"));
}

/// A disk without any room is told of before the training; what an earlier run left is whole. New documents are printed all the same.
#[test]
fn a_disk_without_room_keeps_what_it_has() {
    let folder = Folder::new("full-before");
    sky(&folder);
    let script = format!(
        "{RUN} > first; cp -r \"$DISK/run\" before; dd if=/dev/zero of=\"$DISK/fill\" 2> /dev/null
         {RUN} > second; echo $? > code; cp -r \"$DISK/run\" after
         \"$HYPERPRIOR\" topics infer \"$DISK/run\" sky.txt --out \"$DISK/found\" > third; echo $? >> code; ls -A \"$DISK/found\" > left"
    );
    let Some(output) = on_a_disk_of("200k", &folder, &script) else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect(name);
    let told = text(&output.stderr);
    assert_eq!(read("code"), "73\n73\n", "{told}");
    assert!(told.contains("disk/run/config.toml`: No space left on device"), "{told}");
    assert!(told.contains("disk/found/activations.csv`: No space left on device"), "{told}");
    assert!(read("second").is_empty() && read("left").is_empty());
    assert!(read("third").contains("words of the topic"), "{}", read("third"));
    for name in ["summary.json", "topics.json", "activations.csv", "config.toml", "trace.csv"] {
        assert_eq!(read(&format!("before/{name}")), read(&format!("after/{name}")), "{name}");
    }
}

/// Standard output that is full is told of, and takes nothing from the files.
#[test]
fn full_standard_output_takes_nothing_from_the_files() {
    let folder = Folder::new("full-output");
    sky(&folder);
    let (corpus, out) = (folder.path("sky.txt"), folder.path("run"));
    for more in ["", " --json"] {
        let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
        let line = format!("topics {} --layers 2 --epochs 2 --quiet --out {}{more}", corpus.display(), out.display());
        let output = command(&line).stdout(Stdio::from(full)).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(73));
        let told = text(&output.stderr);
        assert!(told.contains("cannot write to standard output: No space left on device"), "{told}");
        assert!(std::fs::read_to_string(out.join("summary.json")).is_ok_and(|text| text.ends_with("}\n")));
        std::fs::remove_dir_all(&out).expect("the folder goes");
    }
}
