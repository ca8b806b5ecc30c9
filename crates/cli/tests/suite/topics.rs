//! `hyperprior topics`: numbers, files, errors and interruptions.

use crate::support::{Folder, assert_refused, command, json, number, printed, run, text};
use serde_json::{Value, json};

/// A command that takes less than a second.
const SMALL: &str = "topics bible --layers 6,3 --epochs 4 --top-words 5 --heldout 0.02";

#[test]
fn the_bible_has_topics() {
    let stdout = printed(&format!("{SMALL} --quiet"));
    assert!(
        stdout.starts_with("bible: 1,189 documents, 4,376 terms, 257,526 words; 24 held-out documents\n"),
        "{stdout}"
    );
    let chosen = ["hvm: ", "nats per word over mean-field, 116 documents ", "\nmixture:8 ", "\nconway-maxwell "];
    let parts = ["layers      6, 3 poisson\n", ", gamma weights", "\nELBO ", "half of the word types hidden"];
    for part in chosen.into_iter().chain(parts) {
        assert!(stdout.contains(part), "{part} is not in\n{stdout}");
    }
    let after = |header: &str| -> Vec<&str> {
        let rows = stdout.lines().skip_while(|line| !line.starts_with(header)).skip(2);
        rows.take_while(|line| !line.is_empty()).collect()
    };
    assert_eq!(after("topic ").len(), 6, "{stdout}");
    assert_eq!(after("layer 2 ").len(), 3, "{stdout}");
    assert!(after("topic ").iter().all(|line| line.split_whitespace().count() == 3 + 5), "{stdout}");
}

#[test]
fn the_summary_has_every_field() {
    let found = json(SMALL);
    let mut keys: Vec<&str> = found.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    let mut documented = [
        "schema",
        "corpus",
        "family",
        "families",
        "layers",
        "method",
        "choice",
        "dependent_documents",
        "weights",
        "words",
        "overdispersion",
        "seed",
        "documents",
        "terms",
        "tokens",
        "heldout_documents",
        "measured_documents",
        "epochs",
        "elbo",
        "elbo_heldout",
        "heldout_perplexity",
        "heldout_perplexity_averaged",
        "unigram_perplexity",
        "completion_perplexity",
        "completion_perplexity_averaged",
        "completion_unigram_perplexity",
        "background_share",
        "wall_seconds",
        "warnings",
        "topics",
        "upper",
    ];
    documented.sort_unstable();
    assert_eq!(keys, documented);
    assert_eq!((&found["schema"], &found["layers"], &found["epochs"]), (&json!(2), &json!([6, 3]), &json!(4)));
    let candidates = found["choice"]["candidates"].as_array().expect("candidates");
    let methods: Vec<&Value> = candidates.iter().map(|candidate| &candidate["method"]).collect();
    assert_eq!(methods, [&json!("mixture:8"), &json!("conway-maxwell")]);
    assert!(candidates.iter().all(|one| one["hidden_types"]["error"].is_f64() && one["annealed"]["mean"].is_f64()));
    assert!(found["dependent_documents"].is_null());
    let lens = |value: &Value| -> Vec<usize> {
        value.as_array().expect("topics").iter().map(|words| words.as_array().expect("words").len()).collect()
    };
    assert_eq!(lens(&found["topics"]), [5; 6]);
    assert_eq!(lens(&found["upper"]), [3]);
    assert!(found["upper"][0][0]["uses"].is_array() && found["upper"][0][0]["words"].is_array());
}

/// By every measure, after a few epochs.
#[test]
fn topics_predict_better_than_unigrams() {
    let found = json("topics bible --layers 20 --epochs 20 --method mean-field --heldout 0.05");
    for (form, unigram) in [
        ("heldout_perplexity", "unigram_perplexity"),
        ("heldout_perplexity_averaged", "unigram_perplexity"),
        ("completion_perplexity", "completion_unigram_perplexity"),
        ("completion_perplexity_averaged", "completion_unigram_perplexity"),
    ] {
        assert!(number(&found[form]) < number(&found[unigram]), "{form}: {found}");
    }
    assert!(number(&found["unigram_perplexity"]) < number(&found["terms"]));
}

#[test]
fn a_run_writes_its_files() {
    let folder = Folder::new("topics-run");
    let out = folder.path("run");
    let line = format!("{SMALL} --seed 3 --out {}", out.display());
    let found = json(&line);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let summary: Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    assert_eq!(summary, found);

    let topics: Value = serde_json::from_str(&read("topics.json")).expect("JSON");
    let shares: Vec<f64> = topics["topics"].as_array().expect("topics").iter().map(|t| number(&t["share"])).collect();
    assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
    let total = shares.iter().sum::<f64>() + number(&topics["background_share"]);
    assert!((total - 1.0).abs() < 0.1, "{total}");
    for (i, words) in found["topics"].as_array().expect("topics").iter().enumerate() {
        assert_eq!(topics["topics"][i]["words"][0]["word"], words[0]);
    }

    let activations = read("activations.csv");
    assert_eq!(activations.lines().next(), Some("document,part,topic1,topic2,topic3,topic4,topic5,topic6"));
    assert_eq!(activations.lines().count(), 1 + 1189);
    // In the order of the corpus, training and held-out documents alike.
    assert!(activations.lines().nth(1).is_some_and(|row| row.starts_with("Genesis 1,")));
    assert!(activations.lines().last().is_some_and(|row| row.starts_with("Revelation 22,")));
    let heldout: Vec<&str> = activations.lines().filter(|row| row.contains(",heldout,")).collect();
    assert_eq!(heldout.len(), 24);
    for row in &heldout {
        let active: f32 = row.split(',').skip(2).map(|cell| cell.parse::<f32>().expect("a number")).sum();
        assert!(active > 0.1, "{row}");
    }
    assert_eq!(activations.lines().filter(|row| row.contains(",train,")).count(), 1189 - 24);
    assert!(std::fs::read(out.join("model")).expect("a file").starts_with(b"hyperprior topics model "));
    assert!(!out.join("checkpoint").exists());
    assert!(std::fs::read(out.join("weights.parquet")).expect("a file").starts_with(b"PAR1"));
    let trace = read("trace.csv");
    assert_eq!((trace.lines().next(), trace.lines().count()), (Some("epoch,objective"), 5));
    let last = trace.lines().last().and_then(|line| line.strip_prefix("4,")).expect("the fourth epoch");
    // The objective of an epoch is a mean over its steps; the bound is for the final parameters.
    assert!((last.parse::<f64>().expect("a number") - number(&found["elbo"])).abs() < 0.2, "{trace} {found}");
    let config = read("config.toml");
    for line in ["corpus = \"bible\"", "heldout = 0.02", "seed = 3", "epochs = 4", "method = \"hvm\"", "width = 6"] {
        assert!(config.contains(line), "{line} is not in\n{config}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let of = |more: &str| {
        let mut found = json(&format!("{SMALL} {more}"));
        found["wall_seconds"].take();
        found
    };
    let one = of("--threads 1");
    assert_eq!(one, of("--threads 2"));
    assert_ne!(one["elbo"], of("--seed 2")["elbo"]);
}

#[test]
fn every_option_is_accepted() {
    for choice in [
        "--family bernoulli",
        "--family gamma",
        "--gamma-shape 1.5 --family gamma --method mixture:2",
        "--gamma-shape 0.2 --family gamma --method flow:1,2",
        "--method mean-field",
        "--method low-rank:2",
        "--weights log-normal",
        "--weights point",
        "--batch 100 --draws 4",
    ] {
        let found = json(&format!("topics bible --layers 4 --epochs 2 --heldout 0.02 {choice}"));
        let (option, value) = choice.split_once(' ').expect("an option and its value");
        if let Some(reported) = found.get(option.trim_start_matches('-')) {
            assert_eq!(reported, value);
        }
        assert!(
            number(&found["elbo"]) < 0.0 && number(&found["heldout_perplexity"]) < number(&found["terms"]),
            "{choice}"
        );
    }
}

/// A layer may name its family; the report, the summary and the configuration have it.
#[test]
fn layers_may_have_different_families() {
    let folder = Folder::new("topics-families");
    let out = folder.path("run");
    let line = format!(
        "topics bible --family bernoulli --layers 5,poisson:3,2,gaussian:2,gamma:2 --epochs 2 --heldout 0.02 --out {}",
        out.display()
    );
    let found = json(&line);
    let families = ["bernoulli", "poisson", "bernoulli", "gaussian", "gamma"];
    assert_eq!(found["families"], json!(families));
    assert_eq!((&found["family"], &found["layers"]), (&json!("bernoulli"), &json!([5, 3, 2, 2, 2])));
    let config = std::fs::read_to_string(out.join("config.toml")).expect("a configuration");
    let in_config: Vec<&str> = config.lines().filter(|line| line.starts_with("family")).collect();
    assert_eq!(in_config, families.map(|family| format!("family = \"{family}\"")));
    let stdout = printed(&format!("{line} --quiet"));
    assert!(stdout.contains("layers      5 bernoulli, 3 poisson, 2 bernoulli, 2 gaussian, 2 gamma\n"), "{stdout}");
}

/// The same documents in every format.
#[test]
fn text_and_counts_are_read() {
    let folder = Folder::new("topics-read");
    let lines = "the sun and the moon\nmoon sun star\nbread and wine\nwine bread oil\n".repeat(10);
    let line = folder.file("sky.txt", &lines);
    std::fs::create_dir_all(folder.path("mail")).expect("a folder");
    for (i, document) in lines.lines().enumerate() {
        folder.file(&format!("mail/{i}.txt"), document);
    }
    let counts = "2 0:1 1:1\n3 0:1 1:1 2:1\n2 3:1 4:1\n3 3:1 4:1 5:1\n".repeat(10);
    let counts = folder.file("sky.ldac", &counts);
    let vocabulary = folder.file("vocab.txt", "moon\nsun\nstar\nbread\nwine\noil\n");
    let small = "--layers 2 --epochs 3";
    for corpus in [line.clone(), folder.path("mail").display().to_string(), format!("{counts} --vocab {vocabulary}")] {
        let found = json(&format!("topics {corpus} {small}"));
        assert_eq!((&found["documents"], &found["terms"], &found["tokens"]), (&json!(40), &json!(6), &json!(100)));
        assert_eq!(found["heldout_documents"], json!(4), "{corpus}");
    }
    let found = json(&format!("topics {line} {small} --stop-words none --heldout 0 --min-length 3"));
    assert_eq!((&found["terms"], &found["heldout_perplexity"]), (&json!(8), &Value::Null));
    let output = run(&format!("topics {counts} {small}"));
    assert!(output.status.success());
    let note = "Note: no vocabulary was given, so the 6 terms are called by their numbers; name them with --vocab FILE";
    assert!(text(&output.stderr).contains(note), "{}", text(&output.stderr));
    assert!(run(&format!("topics {counts} {small} --quiet")).stderr.is_empty());
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("topics-wrong");
    let empty = folder.file("empty.txt", "");
    let blank = folder.file("blank.txt", "the and of\n\n");
    let rare = folder.file("rare.txt", "sun\nmoon\nstar\n");
    let counts = folder.file("docs.ldac", "2 0:1 7:2\n1 1:1\n");
    let broken = folder.file("broken.ldac", "2 0:1 7\n");
    let vocabulary = folder.file("vocab.txt", "sun\nmoon\n");
    let odd = folder.file("odd.xyz", "what is this\n");
    let one = folder.file("one.txt", "sun sun moon\n");
    let blocked = folder.file("blocked", "a file where the folder should go");
    let cases = [
        ("topics".to_owned(), 64, "<CORPUS>"),
        ("topics bible --layers 50,x".to_owned(), 64, "`x` is not a width"),
        ("topics bible --layers 50,cauchy:5".to_owned(), 64, "`cauchy` is not a family of latents: use "),
        ("topics bible --layers 0".to_owned(), 64, "a layer has from 1 to 4096 latents"),
        ("topics bible --method flows".to_owned(), 64, "low-rank:R with R from 1 to 16, or flow:L,M"),
        ("topics bible --family cauchy".to_owned(), 64, "use poisson, bernoulli, gamma or gaussian"),
        (
            "topics bible --layers gaussian:5".to_owned(),
            64,
            "make it poisson, bernoulli or gamma, and put gaussian layers",
        ),
        ("topics bible --family gamma --gamma-shape 0".to_owned(), 64, "--gamma-shape 0 is invalid"),
        ("topics bible --weights normal".to_owned(), 64, "use gamma, log-normal or point"),
        ("topics bible --draws 3".to_owned(), 64, "--draws 3 is invalid: use 1, 2, 4 or 8 draws"),
        ("topics bible --batch 0".to_owned(), 64, "a minibatch has at least one document"),
        ("topics bible --heldout 1".to_owned(), 64, "from 0 up to 1"),
        ("topics bible --epochs 0".to_owned(), 64, "--epochs"),
        ("topics bible --vocab x".to_owned(), 64, "--vocab does not apply to the built-in Bible"),
        ("topics bible --max-share 0.5".to_owned(), 64, "--max-share does not apply to the built-in Bible"),
        (format!("topics {counts} --max-terms 10"), 64, "--max-terms is for text"),
        (format!("topics {rare} --min-documents 1 --vocab {vocabulary}"), 64, "--vocab "),
        (
            format!("topics {rare} --min-length 5 --max-length 3"),
            64,
            "--max-length 3 is invalid: it must not be below the smallest length",
        ),
        (format!("topics {one} --min-documents 1 --max-share 1 --heldout 0.9"), 64, "holds out all 1 documents"),
        (format!("topics {empty}"), 65, "empty.txt"),
        (format!("topics {blank}"), 65, "no document has a word other than stop words"),
        (format!("topics {rare}"), 65, "lower the smallest number of documents of a word"),
        (format!("topics {rare} --min-documents 1 --min-length 9"), 65, "lower the smallest length of a document"),
        (format!("topics {counts} --vocab {vocabulary}"), 65, "line 1, column 7: term 7, but"),
        (format!("topics {broken}"), 65, "line 1, column 7"),
        (format!("topics {odd}"), 65, "or give the format"),
        ("topics nonesuch.ldac".to_owned(), 66, "cannot read `nonesuch.ldac`"),
        (format!("topics {counts} --vocab nonesuch.txt"), 66, "nonesuch.txt"),
        (format!("topics {rare} --stop-words nonesuch.stop"), 66, "nonesuch.stop"),
        (format!("topics bible --out {blocked}"), 73, "something else has that name"),
    ];
    assert_refused(cases);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_prints_its_topics_and_exits_with_75() {
    use std::process::Stdio;
    let folder = Folder::new("topics-interrupt");
    let out = folder.path("run");
    let line = format!("topics bible --layers 6 --epochs 1000000 --out {}", out.display());
    let child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("stopped early, after epoch") && stderr.contains("of 1000000"), "{stderr}");
    assert!(
        stdout.contains("Warning: the training was stopped after epoch") && stdout.contains("\ntopic "),
        "{stdout}"
    );
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("summary.json")).expect("a summary")).expect("JSON");
    assert!(number(&summary["epochs"]) >= 1.0);
}

/// Stopped during the evaluation, after training, a run prints its topics and resumes to the numbers of an uninterrupted run.
#[cfg(unix)]
#[test]
fn an_interrupted_evaluation_resumes_to_the_same_numbers() {
    use std::process::Stdio;
    let folder = Folder::new("topics-measured");
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path(name).display().to_string());
    let long = "topics bible --layers 6 --epochs 1 --method mean-field --heldout 0.4 --out";
    let mut expected = json(&format!("{long} {whole}"));
    let line = format!("{long} {broken}");
    let child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    // Written after training, before the evaluation.
    let checkpoint = std::path::Path::new(&broken).join("checkpoint");
    let waits = (0..6000).take_while(|_| !checkpoint.exists());
    waits.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(10)));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("stopped early, after ") && stderr.contains(" of 476 held-out documents"), "{stderr}");
    assert!(stderr.contains(&format!("continue with `hyperprior resume {broken}`")), "{stderr}");
    assert!(
        stdout.contains("\ntopic ") && stdout.contains(" of the 476 held-out documents were evaluated before"),
        "{stdout}"
    );
    let read = |run: &str, name: &str| std::fs::read_to_string(format!("{run}/{name}")).expect("a file");
    let rows = |run: &str| read(run, "activations.csv").lines().filter(|row| row.contains(",heldout,")).count();
    let summary: Value = serde_json::from_str(&read(&broken, "summary.json")).expect("JSON");
    assert_eq!(summary["measured_documents"], json!(rows(&broken)));
    assert!((1..476).contains(&rows(&broken)), "{}", rows(&broken));

    let mut found = json(&format!("resume {broken}"));
    for summary in [&mut found, &mut expected] {
        summary["wall_seconds"].take();
    }
    assert_eq!(found, expected);
    assert_eq!(read(&whole, "activations.csv"), read(&broken, "activations.csv"));
    assert_eq!(rows(&whole), 476);
    assert!(!checkpoint.exists());
}

#[test]
fn help_shows_examples() {
    let stdout = printed("topics --help");
    assert!(stdout.contains("Examples:") && stdout.contains("hyperprior topics bible"), "{stdout}");
    for default in ["[default: 50]", "[default: hvm]", "[default: poisson]", "[default: gamma]", "[default: 0.1]"] {
        assert!(stdout.contains(default), "{default} is not in\n{stdout}");
    }
}

/// Stopped during training, a run resumes from its checkpoint to the numbers of an uninterrupted run.
#[cfg(unix)]
#[test]
fn an_interrupted_training_resumes_to_the_same_numbers() {
    let folder = Folder::new("topics-stopped");
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path(name).display().to_string());
    let long = "topics bible --layers 20,5 --epochs 60 --heldout 0.02 --quiet --json --out";
    let expected: Value = serde_json::from_str(&printed(&format!("{long} {whole}"))).expect("JSON");
    let checkpoint = std::path::Path::new(&broken).join("checkpoint");
    // Long enough for an epoch, too short for all of them, which depends on the machine.
    for milliseconds in [300, 600, 1200, 2400, 4800] {
        let quiet = std::process::Stdio::null;
        let mut child = command(&format!("{long} {broken}")).stdout(quiet()).stderr(quiet()).spawn().expect("a run");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let signal = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(signal.expect("a signal").success());
        assert_eq!(child.wait().expect("an end").code(), Some(75));
        if checkpoint.exists() {
            break;
        }
    }
    let saved = std::fs::read(&checkpoint).expect("a checkpoint");
    // A damaged checkpoint is refused, and nothing is lost.
    let mut damaged = saved.clone();
    damaged[saved.len() / 2] ^= 1;
    std::fs::write(&checkpoint, &damaged).expect("a damaged one");
    let refused = run(&format!("resume {broken} --quiet"));
    assert_eq!(refused.status.code(), Some(65));
    assert!(text(&refused.stderr).contains("its checksum does not match"), "{}", text(&refused.stderr));
    std::fs::write(&checkpoint, &saved).expect("the good one");
    let mut found: Value = serde_json::from_str(&printed(&format!("resume {broken} --quiet --json"))).expect("JSON");
    found["wall_seconds"] = expected["wall_seconds"].clone();
    assert_eq!(found, expected);
    assert!(!checkpoint.exists());
    let trace = |run: &str| std::fs::read_to_string(format!("{run}/trace.csv")).expect("a trace");
    assert_eq!(trace(&whole), trace(&broken));
    // A finished run has no checkpoint, and another folder has no run.
    assert_eq!(run(&format!("resume {broken} --quiet")).status.code(), Some(66));
    assert_eq!(run("resume no-such-folder").status.code(), Some(66));
}

/// Catches a GPU that trains something else than what was asked for, where it cannot train that.
#[test]
fn devices_that_cannot_be_used_are_refused() {
    assert_refused([
        ("topics bible --device gpu".to_owned(), 64, "use cpu, cuda, or cuda:N"),
        (format!("{SMALL} --device cuda --words negative-binomial"), 65, "the device `cpu`"),
        ("topics bible --device cuda --layers gamma:5".to_owned(), 65, "gamma"),
    ]);
}

/// Words of the Bible come in bursts: the bound and the perplexity of hidden words are far better, and a saved run keeps it.
#[test]
fn words_may_come_in_bursts() {
    let plain = json(&format!("{SMALL} --weights point"));
    let bursty = json(&format!("{SMALL} --weights point --words negative-binomial"));
    assert_eq!(
        (&bursty["words"], &plain["words"], &plain["overdispersion"]),
        (&json!("negative-binomial"), &json!("poisson"), &json!(1.0))
    );
    assert!(number(&bursty["overdispersion"]) > 1.5, "{}", bursty["overdispersion"]);
    assert!(number(&bursty["elbo_heldout"]) > number(&plain["elbo_heldout"]) + 0.2);
    assert!(number(&bursty["completion_perplexity"]) < 0.8 * number(&plain["completion_perplexity"]));
    let folder = Folder::new("bursts");
    let new = folder.file("new.txt", "the lord spoke to moses, and moses spoke to the lord\n");
    let out = folder.path("run").display().to_string();
    printed(&format!("{SMALL} --words negative-binomial --quiet --out {out}"));
    let found = json(&format!("topics infer {out} {new}"));
    assert!(number(&found["elbo"]) < 0.0, "{found}");
    assert_refused([("topics bible --words 8".to_owned(), 64, "--top-words")]);
}
