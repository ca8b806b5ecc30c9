//! `hyperprior reproduce tables`, with small models: cells, tables, files and interruptions.

use crate::support::{Folder, assert_refused, command, json, printed, run, text};
use serde_json::{Value, json};
use std::path::Path;

/// Sixty short documents of two kinds.
fn corpus(folder: &Folder) -> String {
    let kinds = ["6 0:2 1:1 2:3 3:1 8:1 9:2", "6 4:1 5:2 6:2 7:1 8:2 9:1", "5 0:1 2:2 4:1 6:1 9:1"];
    folder.file("sky.ldac", &format!("{}\n", kinds.join("\n")).repeat(20))
}

/// A command that takes less than a second.
fn small(corpus: &str, out: &Path) -> String {
    let options = "--layers 4 --layers 4-2 --seeds 1 --epochs 2 --steps 6 --measured 5 --curve 3,6";
    format!("reproduce tables --corpus {corpus} {options} --out {}", out.display())
}

/// The results without the times.
fn without_times(mut found: Value) -> Value {
    for (list, fields) in [("cells", &["training_seconds", "evaluation_seconds"][..]), ("curve", &["seconds"])] {
        for one in found[list].as_array_mut().expect("a list") {
            for field in fields {
                assert!(one[field].take().as_f64().is_some_and(|seconds| seconds >= 0.0), "{field}");
            }
        }
    }
    found
}

fn len(value: &Value) -> usize {
    value.as_array().expect("a list").len()
}

#[test]
fn every_cell_is_evaluated_and_saved() {
    let folder = Folder::new("tables-all");
    let (corpus, out) = (corpus(&folder), folder.path("out"));
    let line = small(&corpus, &out);
    let found = json(&line);
    assert_eq!((&found["schema"], &found["corpus"], &found["documents"]), (&json!(2), &json!("sky"), &json!(60)));
    // Two families, two models, two methods, and the flows for one-layer models.
    assert_eq!((len(&found["cells"]), &found["planned_cells"]), (10, &json!(10)));
    assert_eq!(len(&found["curve"]), 2 * 2 * 2);
    let order: Vec<&str> =
        found["cells"].as_array().expect("cells").iter().map(|c| c["method"].as_str().expect("a method")).collect();
    assert_eq!(order[..5], ["hvm", "mean-field", "flow:2,10", "hvm", "mean-field"]);
    for cell in found["cells"].as_array().expect("cells") {
        assert_eq!((&cell["documents"], &cell["heldout_documents"]), (&json!(54), &json!(6)), "{cell}");
        assert_eq!(cell["measured_documents"], json!(5), "{cell}");
        let number = |field: &str| cell[field].as_f64().unwrap_or_else(|| panic!("{field} in {cell}"));
        for bound in ["elbo", "elbo_heldout", "elbo_visible"] {
            assert!((-20.0..0.0).contains(&number(bound)), "{bound} in {cell}");
        }
        for form in ["heldout_perplexity", "completion_perplexity"] {
            for form in [form.to_owned(), format!("{form}_averaged")] {
                assert!((1.0..100.0).contains(&number(&form)), "{form} in {cell}");
            }
        }
        // Every bound is below the likelihood that it bounds.
        assert!((number("elbo_heldout") - 0.02..0.0).contains(&number("annealed")), "{cell}");
        assert_eq!(["types", "hidden", "annealed", "words"].map(|of| len(&cell["each"][of])), [5; 4], "{cell}");
        assert!(number("unigram_perplexity") < 12.0 && number("completion_unigram_perplexity") < 12.0);
    }
    let counts = &found["no_worse"];
    assert_eq!((&counts[0]["method"], &counts[0]["cells"]), (&json!("hvm"), &json!(4)));
    assert_eq!((&counts[1]["method"], &counts[1]["cells"]), (&json!("flow:2,10"), &json!(2)));
    assert!(counts[0]["elbo_heldout"].as_u64().is_some_and(|count| count <= 4));

    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let saved: Value = serde_json::from_str(&read("cells/poisson_4-2_hvm_seed1.json")).expect("JSON");
    assert_eq!(saved, found["cells"][3]);
    assert!(read("curves/bernoulli_4_mean-field_seed1_steps3.json").contains("\"steps\": 3"));
    let csv = read("cells.csv");
    assert_eq!(csv.lines().count(), 1 + 10);
    assert!(csv.starts_with(
        "family,layers,method,seed,documents,heldout_documents,measured_documents,elbo,elbo_heldout,elbo_visible,"
    ));
    assert!(csv.replace("\"flow:2,10\"", "flow").lines().all(|row| row.split(',').count() == 19), "{csv}");
    let markdown = read("tables.md");
    let command = line.replace("reproduce", "```sh\nhyperprior reproduce");
    for part in [
        command.as_str(),
        "| poisson | 4 |",
        "|  | 4, flow:2,10 |",
        "by annealed importance sampling",
        "| poisson | 4-2 | HVM | ",
        "(curve.png)",
        "epochs = 2",
        "temperatures = 200",
        "fingerprint = ",
    ] {
        assert!(markdown.contains(part), "{part} is not in\n{markdown}");
    }
    assert!(read("curve.svg").starts_with("<svg") && out.join("curve.png").exists());
    let left: Vec<_> =
        std::fs::read_dir(out.join("cells")).expect("cells").map(|f| f.expect("a file").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with("checkpoint")), "{left:?}");

    // Nothing is run again: even the times are the same.
    let output = run(&format!("{line} --json"));
    assert!(text(&output.stderr).contains("All cells are already done"), "{}", text(&output.stderr));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), found);
    // The models with one layer are saved, for curves requested later.
    assert!(
        out.join("cells/poisson_4_flow-2-10_seed1.model").exists()
            && !out.join("cells/poisson_4-2_hvm_seed1.model").exists()
    );
    // Additional cells and points are added.
    let more = json(&line.replace("--seeds 1", "--seeds 1,2").replace("--curve 3,6", "--curve 3,6,9"));
    assert_eq!((len(&more["cells"]), len(&more["curve"])), (20, 12));
    assert_eq!(more["cells"].as_array().expect("cells")[..10], found["cells"].as_array().expect("cells")[..]);
    assert_ne!(more["cells"][10]["elbo"], more["cells"][0]["elbo"]);
}

/// Only discrete layers can be annealed, and only if asked for.
#[test]
fn cells_without_an_annealed_likelihood_have_none() {
    let folder = Folder::new("tables-annealed");
    let corpus = corpus(&folder);
    for (name, options) in [("gamma", "--families gamma"), ("none", "--families poisson --temperatures 0")] {
        let line = small(&corpus, &folder.path(name)).replace("--curve 3,6", "--no-curve");
        let found = json(&format!("{line} {options} --methods mean-field,mixture:2 --flow none"));
        for cell in found["cells"].as_array().expect("cells") {
            assert!(cell["annealed"].is_null() && len(&cell["each"]["annealed"]) == 0, "{cell}");
        }
    }
}

/// With the same options, a cell and `topics` give the same numbers.
#[test]
fn a_cell_agrees_with_topics() {
    let folder = Folder::new("tables-topics");
    let (corpus, out) = (corpus(&folder), folder.path("out"));
    let options = "--families poisson --methods mean-field --flow none --no-curve";
    let cell =
        json(&format!("{} {options}", small(&corpus, &out).replace("--steps 6 --measured 5 --curve 3,6", "")))["cells"]
            [1]
        .take();
    let topics = json(&format!("topics {corpus} --layers 4,2 --epochs 2 --weights point --method mean-field"));
    for (of_cell, of_topics) in [
        ("elbo_visible", "elbo_heldout"),
        ("heldout_perplexity", "heldout_perplexity"),
        ("heldout_perplexity_averaged", "heldout_perplexity_averaged"),
        ("unigram_perplexity", "unigram_perplexity"),
        ("completion_perplexity", "completion_perplexity"),
        ("completion_perplexity_averaged", "completion_perplexity_averaged"),
        ("completion_unigram_perplexity", "completion_unigram_perplexity"),
    ] {
        assert_eq!(cell[of_cell], topics[of_topics], "{of_cell}");
    }
    // The bound uses fewer draws.
    let [one, other] = [&cell, &topics].map(|found| found["elbo"].as_f64().expect("a bound"));
    assert!((one - other).abs() < 0.05, "{one} {other}");
}

#[test]
fn the_tables_are_in_the_papers_layout() {
    let folder = Folder::new("tables-layout");
    let corpus = corpus(&folder);
    let line = |out: &str, layers: &str| {
        let options = "--methods mean-field --flow none --no-curve --seeds 1,2 --epochs 1 --steps 2 --quiet";
        format!("reproduce tables --corpus {corpus} {layers} {options} --out {}", folder.path(out).display())
    };
    let stdout = printed(&line("paper", ""));
    for part in [
        "sky: 60 documents, 10 terms, ",
        "Held-out perplexity of hidden word types, plug-in\n",
        "Held-out perplexity of hidden word types, averaged over z\n",
        "These are different corpora",
        "Smaller is better; means of seeds 1, 2;",
        "No model is fitted by both mean-field and another method.",
    ] {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    let row = stdout.lines().find(|line| line.contains("100-30-15")).expect("a row of three layers");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert!(row.ends_with(&["3346", "3962", "3007", "3332"]), "{row:?}");
    assert!(
        stdout.contains("paper NYT: HVM  paper NYT: mean-field  paper Science: HVM  paper Science: mean-field\n"),
        "{stdout}"
    );
    // The paper has no numbers for other models.
    assert!(!printed(&line("other", "--layers 3")).contains("Science"));
}

/// Stopped during training, or killed between two cells, the same command continues to the same numbers.
#[cfg(unix)]
#[test]
fn interrupted_tables_continue_to_the_same_numbers() {
    use std::process::Stdio;
    let folder = Folder::new("tables-stopped");
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path(name));
    let line = |out: &Path| {
        let options =
            "--layers 4 --families poisson --methods mean-field,flow --seeds 1 --epochs 60 --steps 20 --curve 5";
        format!("reproduce tables --corpus bible {options} --out {}", out.display())
    };
    let expected = without_times(json(&line(&whole)));
    // Sends a signal some time after a file exists.
    let interrupt = |signal: &str, file: &str, milliseconds: u64| {
        let child =
            command(&line(&broken)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let waits = (0..6000).take_while(|_| !broken.join(file).exists());
        waits.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(10)));
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let _ = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        child.wait_with_output().expect("it ends")
    };
    // The folder exists before the first epoch.
    let output = interrupt("-TERM", "config.toml", 0);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stdout.is_empty(), "{stdout}");
    // Long enough for an epoch, too short for all of them, which depends on the machine.
    let checkpoint = broken.join("cells/poisson_4_flow-2-10_seed1.checkpoint");
    for milliseconds in [100, 200, 400, 800, 1600] {
        let output = interrupt("-TERM", "cells/poisson_4_mean-field_seed1.json", milliseconds);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(75), "{stderr}");
        assert!(
            stderr.contains("with 1 of 2 cells done") && stderr.contains("Run the same command again to continue"),
            "{stderr}"
        );
        assert!(stdout.contains("1 of 2 cells are done") && stdout.contains("Held-out perplexity"), "{stdout}");
        if checkpoint.exists() {
            break;
        }
    }
    assert!(checkpoint.exists());
    let output = interrupt("-KILL", "cells/poisson_4_flow-2-10_seed1.json", 0);
    // A fast machine is done by now.
    assert!(matches!(output.status.code(), None | Some(0)), "{}", text(&output.stderr));
    assert_eq!(without_times(json(&line(&broken))), expected);
    let left = std::fs::read_dir(broken.join("cells")).expect("cells").map(|f| f.expect("a file").file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with("checkpoint")));
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("tables-wrong");
    let (corpus, out) = (corpus(&folder), folder.path("out"));
    let few = folder.file("few.ldac", "2 0:1 1:1\n");
    let single = folder.file("single.ldac", &"1 0:1\n".repeat(20));
    let other = folder.file("config.toml", "seed = 1\n");
    let elsewhere = Path::new(&other).parent().expect("a folder").display().to_string();
    let line =
        format!("{} --methods mean-field --flow none --no-curve", small(&corpus, &out).replace("--curve 3,6", ""));
    printed(&format!("{line} --quiet"));
    let tables = "reproduce tables --corpus";
    let fresh = folder.path("fresh").display().to_string();
    let cases = [
        ("reproduce tables".to_owned(), 64, "--corpus"),
        ("reproduce tables bible".to_owned(), 64, "bible"),
        (format!("{tables} nonesuch.ldac --out {fresh}"), 66, "cannot read `nonesuch.ldac`"),
        (format!("{tables} bible --vocab x --out {fresh}"), 64, "--vocab does not apply to the built-in Bible"),
        (format!("{tables} {few} --layers 4 --out {fresh}"), 64, "1 documents are too few"),
        (format!("{tables} {single} --layers 4 --epochs 1 --out {fresh}"), 64, "enough words to hide"),
        (format!("{tables} bible --layers 4,bernoulli:2"), 64, "which --families sets"),
        (format!("{tables} bible --families cauchy"), 64, "use "),
        (format!("{tables} bible --methods flows"), 64, "use mean-field, conway-maxwell, hvm"),
        (format!("{tables} bible --draws 3 --out {fresh}"), 64, "use 1, 2, 4 or 8 draws"),
        (format!("{tables} bible --steps 0"), 64, "--steps"),
        (format!("{tables} bible --curve 5 --no-curve"), 64, "--no-curve"),
        (format!("{tables} {corpus} --out {elsewhere}"), 64, "belongs to something else; choose another --out"),
        (line.replace("--epochs 2", "--epochs 3"), 64, "train.epochs was 2 and is now 3"),
        (line.replace("--steps 6", "--steps 7"), 64, "fit.steps was 6 and is now 7. Use the earlier options"),
        (line.replace("--measured 5", "--measured 4"), 64, "measured was 5 and is now 4"),
        (format!("{line} --temperatures 3"), 64, "temperatures was 200 and is now 3"),
        (format!("{tables} bible --measured 0"), 64, "1 or more"),
        (format!("{line} --weights gamma"), 64, "train.weights was \"point\" and is now \"gamma\""),
        (line.replace(&corpus, "bible"), 64, "cells with another corpus or other settings"),
        (line.replace(&corpus, "bible"), 64, "choose another --out, or remove the folder"),
        (format!("{tables} {corpus} --out {corpus}"), 73, "something else has that name"),
    ];
    assert_refused(cases);
    // In a folder without results, other settings do no harm.
    let [one, other] =
        ["--epochs 1", "--epochs 2"].map(|epochs| format!("{tables} {few} --layers 4 {epochs} --out {fresh}"));
    assert!([one, other].iter().all(|line| text(&run(line).stderr).contains("1 documents are too few")));
    let cell = out.join("cells/poisson_4_mean-field_seed1.json");
    std::fs::write(&cell, "{").expect("a damaged cell");
    let output = run(&line);
    assert_eq!(output.status.code(), Some(65), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("remove it to compute its results again"));
    std::fs::remove_file(&cell).expect("removed");
    assert!(run(&line).status.success());
}

#[test]
fn help_has_both_the_studies_and_the_tables() {
    let studies = printed("reproduce --help");
    for part in ["correlated-poisson", "ising", "tables", "--target", "Examples:"] {
        assert!(studies.contains(part), "{part} is not in\n{studies}");
    }
    let tables = printed("reproduce tables --help");
    for part in
        ["--corpus", "[default: 100 100-30 100-30-15]", "[default: poisson,bernoulli]", "[default: 1,2]", "Examples:"]
    {
        assert!(tables.contains(part), "{part} is not in\n{tables}");
    }
}
