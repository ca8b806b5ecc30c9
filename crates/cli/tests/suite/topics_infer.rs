//! `hyperprior topics infer`: the topics of a run in new documents.

use crate::support::{Folder, assert_refused, command, json, number, printed, run, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Documents about the sky and about food.
const LINES: &str = "the sun and the moon\nmoon sun star\nbread and wine\nwine bread oil\n";

/// A run on these documents, whose corpus is removed.
fn trained(folder: &Folder, choices: &str) -> String {
    let corpus = folder.file("sky.txt", &LINES.repeat(10));
    let out = folder.path("run").display().to_string();
    printed(&format!("topics {corpus} {choices} --epochs 30 --heldout 0.1 --quiet --out {out}"));
    std::fs::remove_file(corpus).expect("the corpus is removed");
    out
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The rows of a table, cell by cell.
fn rows(path: PathBuf) -> Vec<Vec<String>> {
    read(path).lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Catches topics in another order than the run's, and rows of another document.
#[test]
fn new_documents_have_the_topics_of_the_run() {
    let folder = Folder::new("infer-text");
    let out = trained(&folder, "--layers 3");
    let new = folder.file("new.txt", "A Sun, a MOON and a star; the sun!\nsilicon\nwine and oil and bread, bread\n");
    let found = folder.path("found");
    let summary = json(&format!("topics infer {out} {new} --top 2 --words 3 --out {}", found.display()));
    let run_topics: Value = serde_json::from_str(&read(Path::new(&out).join("topics.json"))).expect("JSON");
    for (i, words) in summary["topics"].as_array().expect("topics").iter().enumerate() {
        assert_eq!(words[0], run_topics["topics"][i]["words"][0]["word"]);
        assert_eq!(words.as_array().map(Vec::len), Some(3));
    }
    let first = |document: usize| {
        let strong = &summary["results"][document]["topics"][0];
        assert!(number(&strong["share"]) > 0.5, "{strong}");
        summary["topics"][strong["topic"].as_u64().expect("a number") as usize - 1][0].clone()
    };
    assert!(["sun", "moon", "star"].contains(&first(0).as_str().expect("a word")), "{summary}");
    assert!(["bread", "wine", "oil"].contains(&first(2).as_str().expect("a word")), "{summary}");
    assert_eq!(summary["results"][1], json!({"document": "2", "tokens": 0, "elbo": null, "topics": []}));

    let table = rows(found.join("activations.csv"));
    let of_run = rows(Path::new(&out).join("activations.csv"));
    assert_eq!(table[0], of_run[0]);
    assert_eq!(table[0], ["document", "part", "topic1", "topic2", "topic3"]);
    assert_eq!(table.iter().skip(1).map(|row| row[..2].join(" ")).collect::<Vec<_>>(), ["1 new", "2 new", "3 new"]);
    assert_eq!(table[2][2..], ["", "", ""]);
    for (d, row) in [(0, 1), (2, 3)] {
        for strong in summary["results"][d]["topics"].as_array().expect("topics") {
            let cell = &table[row][1 + strong["topic"].as_u64().expect("a number") as usize];
            assert_eq!(cell.parse::<f32>().expect("a number"), number(&strong["activation"]) as f32);
        }
    }
    assert_eq!(serde_json::from_str::<Value>(&read(found.join("summary.json"))).expect("JSON"), summary);
    let bounds = number(&summary["results"][0]["elbo"]) + number(&summary["results"][2]["elbo"]);
    assert!((bounds / 8.0 - number(&summary["elbo"])).abs() < 1e-9, "{summary}");
}

#[test]
fn the_summary_has_every_field() {
    let folder = Folder::new("infer-summary");
    let out = trained(&folder, "--layers 3");
    let new = folder.file("new.txt", "sun moon silicon\nthe\n");
    let found = json(&format!("topics infer {out} {new} --seed 5 --steps 50"));
    let mut keys: Vec<&str> = found.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    let mut documented = [
        "schema",
        "run",
        "corpus",
        "trained_epochs",
        "epochs",
        "families",
        "layers",
        "method",
        "seed",
        "steps",
        "documents",
        "inferred_documents",
        "empty_documents",
        "tokens",
        "unknown_tokens",
        "elbo",
        "wall_seconds",
        "warnings",
        "topics",
        "results",
    ];
    documented.sort_unstable();
    assert_eq!(keys, documented);
    for (key, value) in [
        ("schema", json!(2)),
        ("corpus", json!("new")),
        ("trained_epochs", json!(30)),
        ("seed", json!(5)),
        ("steps", json!(50)),
        ("documents", json!(2)),
        ("inferred_documents", json!(2)),
        ("empty_documents", json!(1)),
        ("tokens", json!(2)),
        ("unknown_tokens", json!(1)),
        ("warnings", json!([])),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
}

#[test]
fn the_report_is_a_table() {
    let folder = Folder::new("infer-table");
    let out = trained(&folder, "--layers 3");
    let new = folder.file("new.txt", &format!("silicon\n{}", "sun moon moon\n".repeat(14)));
    let output = run(&format!("topics infer {out} {new}"));
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.starts_with("new: 15 documents, 42 words of the run's vocabulary\n"), "{stdout}");
    for part in ["\nELBO ", "\nlayers      3 poisson\n", "no known word", "… and 5 more; save all with --out DIR\n"] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    let names: Vec<&str> = stdout.lines().skip_while(|line| !line.starts_with("document")).skip(2).collect();
    let names = names.iter().filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok());
    assert!(names.filter(|name| *name > 10).count() == 0, "{stdout}");
    assert!(stderr.contains("Note: 1 of 43 words are not in the run's vocabulary and are ignored\n"), "{stderr}");
    assert!(stderr.contains("Note: 1 of 15 documents has no known word (`1`); its row is empty\n"), "{stderr}");
    assert!(run(&format!("topics infer {out} {new} --quiet")).stderr.is_empty());
}

/// The same documents in every format give the same numbers.
#[test]
fn every_format_is_read() {
    let folder = Folder::new("infer-formats");
    let out = trained(&folder, "--layers 3");
    let line = folder.file("new.txt", "sun moon sun\nwine oil\n");
    std::fs::create_dir_all(folder.path("mail")).expect("a folder");
    folder.file("mail/a.txt", "sun moon\nsun\n");
    folder.file("mail/b.txt", "wine, oil");
    let counts = folder.file("new.ldac", "2 1:1 4:2\n2 2:1 5:1\n");
    let uci = folder.file("new.uci", "2\n6\n4\n1 2 1\n1 5 2\n2 3 1\n2 6 1\n");
    let matrix = "%%MatrixMarket matrix coordinate integer general\n2 6 4\n1 2 1\n1 5 2\n2 3 1\n2 6 1\n";
    let matrix = folder.file("new.mtx", matrix);
    let own = folder.file("own.ldac", "2 0:2 3:1\n2 1:1 2:1\n");
    let vocabulary = folder.file("own.vocab", "sun\noil\nWine\nmoon\n");
    let zipped = folder.file("zipped.ldac", &read(&counts));
    assert!(std::process::Command::new("gzip").arg(&zipped).status().expect("gzip runs").success());
    let folder_of = folder.path("mail").display().to_string();
    let of = |documents: &str| {
        let found = json(&format!("topics infer {out} {documents}"));
        assert_eq!(found["tokens"], json!(5), "{documents}");
        let results = found["results"].as_array().expect("results").iter();
        results.map(|result| (result["elbo"].clone(), result["topics"].clone())).collect::<Vec<_>>()
    };
    let expected = of(&line);
    for documents in
        [folder_of, counts, uci, matrix, format!("{own} --vocab {vocabulary}"), format!("{zipped}.gz --format ldac")]
    {
        assert_eq!(of(&documents), expected, "{documents}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let folder = Folder::new("infer-threads");
    let out = trained(&folder, "--layers 3");
    let new = folder.file("new.txt", &LINES.repeat(20));
    let of = |more: &str| {
        let mut found = json(&format!("topics infer {out} {new} {more}"));
        found["wall_seconds"].take();
        found
    };
    let one = of("--threads 1");
    assert_eq!(one, of("--threads 3"));
    assert_ne!(one["elbo"], of("--seed 2")["elbo"]);
    assert_ne!(one["elbo"], of("--steps 10")["elbo"]);
}

/// Layers of different families, and every variational model of a document.
#[test]
fn every_kind_of_run_has_a_model() {
    let choices = [
        "--layers 3,bernoulli:2",
        "--layers gamma:3,gaussian:2,gamma:2 --gamma-shape 0.7",
        "--layers 3 --method flow:1,2",
        "--layers 3 --weights point --method mean-field",
        "--layers 3 --family bernoulli --weights log-normal",
    ];
    for (i, choices) in choices.iter().enumerate() {
        let folder = Folder::new(&format!("infer-choice-{i}"));
        let out = trained(&folder, choices);
        let new = folder.file("new.txt", "sun moon\n");
        assert!(number(&json(&format!("topics infer {out} {new}"))["elbo"]) < 0.0, "{choices}");
    }
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("infer-wrong");
    let out = trained(&folder, "--layers 3");
    let new = folder.file("new.txt", "sun moon\n");
    let empty = folder.file("empty.txt", "");
    let foreign = folder.file("foreign.txt", "soleil et lune\n");
    let large = folder.file("large.ldac", "1 0:1\n2 1:1 6:1\n");
    let other = folder.file("other.uci", "1\n7\n1\n1 7 1\n");
    let blocked = folder.file("blocked", "a file where the folder should go");
    let whole = std::fs::read(Path::new(&out).join("model")).expect("a model");
    let broken = |name: &str, bytes: &[u8]| {
        let path = folder.path(name);
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("model"), bytes).expect("a file");
        path.display().to_string()
    };
    let cut = broken("cut", &whole[..whole.len() / 2]);
    let mut bytes = whole.clone();
    bytes[whole.len() - 100] ^= 1;
    let damaged = broken("damaged", &bytes);
    let no_model = broken("no-model", b"something else of that name altogether");
    let bare = folder.path("bare");
    std::fs::create_dir_all(&bare).expect("a folder");
    let bare = bare.display().to_string();
    let unsaved = folder.path("unsaved");
    std::fs::create_dir_all(&unsaved).expect("a folder");
    std::fs::copy(Path::new(&out).join("config.toml"), unsaved.join("config.toml")).expect("a copy");
    let unsaved = unsaved.display().to_string();
    let cases = [
        ("topics infer".to_owned(), 64, "<RUN>"),
        (format!("topics infer {out}"), 64, "<NEWDOCS>"),
        (format!("topics bible infer {out} {new}"), 64, "cannot be used with"),
        (format!("topics infer {out} {new} --steps 0"), 64, "--steps"),
        (format!("topics infer {out} {new} --layers 3"), 64, "--layers"),
        (format!("topics infer {out} {new} --vocab {new}"), 64, "the words of text are looked up directly"),
        (format!("topics infer {out} {new} --out {out}"), 64, "is the folder of a run"),
        (format!("topics infer {out} {empty}"), 65, "no document has a word in it"),
        (format!("topics infer {out} {foreign}"), 65, "no document has a word that `"),
        (format!("topics infer {out} {large}"), 65, "large.ldac: line 2, column 7: term 6, but `"),
        (format!("topics infer {out} {other}"), 65, "the header says 7 terms, but `"),
        (format!("topics infer {cut} {new}"), 65, "it ends too early"),
        (format!("topics infer {damaged} {new}"), 65, "its checksum does not match"),
        (format!("topics infer {no_model} {new}"), 65, "it is not a file of this kind"),
        (format!("topics infer {new} {out}"), 66, "it is a file; give the folder"),
        (format!("topics infer {bare} {new}"), 66, "it has no file `model`"),
        (format!("topics infer {unsaved} {new}"), 66, "its training has not been saved yet"),
        (format!("topics infer no-such-run {new}"), 66, "cannot read `no-such-run`"),
        (format!("topics infer {out} nonesuch.txt"), 66, "cannot read `nonesuch.txt`"),
        (format!("topics infer {out} {new} --out {blocked}"), 73, "something else has that name"),
    ];
    assert_refused(cases);
}

#[test]
fn help_shows_examples() {
    let stdout = printed("topics infer --help");
    assert!(stdout.contains("Examples:") && stdout.contains("hyperprior topics infer run letters.txt"), "{stdout}");
    assert!(printed("topics --help").contains("hyperprior topics infer run letters.txt"));
}

/// An interrupted run has a model, with a warning. Interrupted inference keeps the finished documents.
#[cfg(unix)]
#[test]
fn an_interrupted_run_can_be_used() {
    use std::process::Stdio;
    let interrupt = |line: &str, milliseconds: u64| {
        let child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
        output
    };
    let folder = Folder::new("infer-stopped");
    let [out, found] = ["run", "found"].map(|name| folder.path(name).display().to_string());
    // Long enough for an epoch or a few documents, which depends on the machine.
    let waits = [800, 1600, 3200, 6400];
    let long = format!("topics bible --layers 4 --method mean-field --epochs 1000000 --heldout 0.01 --out {out}");
    let has_results = |milliseconds: &u64| !interrupt(&long, *milliseconds).stdout.is_empty();
    assert!(waits.iter().any(has_results), "no epoch was done");
    let new = folder.file("new.txt", "the lord spake unto moses\n");
    let summary = json(&format!("topics infer {out} {new}"));
    let warning = summary["warnings"][0].as_str().expect("a warning");
    assert!(warning.starts_with("the run is not finished: its topics are those after epoch "), "{warning}");
    assert_eq!((&summary["epochs"], summary["trained_epochs"] != json!(1_000_000)), (&json!(1_000_000), true));

    let line = format!("topics infer {out} bible --steps 3000 --out {found}");
    let mut outputs = waits.iter().map(|milliseconds| interrupt(&line, *milliseconds));
    let output = outputs.find(|output| !output.stdout.is_empty()).expect("some documents were done");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stderr.contains("stopped early, after ") && stderr.contains(" of 1189 documents"), "{stderr}");
    let summary: Value = serde_json::from_str(&read(Path::new(&found).join("summary.json"))).expect("JSON");
    let done = summary["inferred_documents"].as_u64().expect("a number") as usize;
    assert!((1..1189).contains(&done), "{done}");
    assert!(stdout.contains("Warning: stopped after ") && stdout.contains(" of 1,189 documents."), "{stdout}");
    assert_eq!(rows(Path::new(&found).join("activations.csv")).len(), 1 + done);
    assert_eq!(summary["results"].as_array().map(Vec::len), Some(done));
}
