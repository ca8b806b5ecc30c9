//! `fit --loo`, `fit --ppc` and `hyperprior predict`, against exact answers.

use crate::support::{Folder, assert_refused, example, example_data, json, number, numbers, printed};
use hyperprior_math::special::{ln_gamma, log_sum_exp};
use serde_json::{Value, json};

/// log p(y) of the coal model, with the rates and the change point integrated out, and optionally without one year.
fn coal_evidence(y: &[f64], without: Option<usize>) -> f64 {
    let side = |years: std::ops::Range<usize>| {
        let own: Vec<f64> = years.filter(|t| Some(*t) != without).map(|t| y[t]).collect();
        let count: f64 = own.iter().sum();
        let constant: f64 = own.iter().map(|y| ln_gamma(y + 1.0)).sum();
        ln_gamma(1.0 + count) - (1.0 + count) * (1.0 + own.len() as f64).ln() - constant
    };
    let joint: Vec<f64> = (1..=y.len()).map(|k| side(0..k) + side(k..y.len())).collect();
    log_sum_exp(&joint) - (y.len() as f64).ln()
}

/// All observations share the marginalised change point; each is still predicted exactly from all others.
#[test]
fn loo_of_coal_agrees_with_refits() {
    let folder = Folder::new("predict-loo");
    let out = folder.path("run");
    let y = numbers(&example_data("coal")["y"]);
    let exact: f64 = (0..y.len()).map(|t| coal_evidence(&y, None) - coal_evidence(&y, Some(t))).sum();
    let found = json(&format!("fit {} --loo --out {}", example("coal"), out.display()));
    let loo = &found["loo"];
    // 112 terms with errors of about √(p_waic/4000) each and random signs.
    assert!((number(&loo["elpd_loo"]) - exact).abs() < 0.1, "{loo} for {exact}");
    assert!(number(&loo["p_loo"]) > 1.0 && number(&loo["p_loo"]) < 4.0, "{loo}");
    assert_eq!((&loo["units"], &loo["khat_above"], &loo["waic"]), (&json!(112), &json!(0), &Value::Null));
    assert!(found.get("predictive").is_none());
    assert!(std::fs::read(out.join("log_likelihood.parquet")).expect("a file").starts_with(b"PAR1"));
    let summary = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["loo"], *loo);
    let stdout = printed(&format!("fit {} --loo --quiet", example("coal")));
    assert!(stdout.contains("Leave-one-out cross-validation (PSIS-LOO), 112 observations"), "{stdout}");
    assert!(
        stdout.contains("below its limit of 0.70 for all") && stdout.contains("WAIC needs independent ones"),
        "{stdout}"
    );
}

/// A Poisson does not reproduce the zeros; a zero-inflated model does.
#[test]
fn a_predictive_check_finds_excess_zeros() {
    let folder = Folder::new("predict-check");
    let model = folder.file("poisson.bug", "model { for (i in 1:N) { y[i] ~ dpois(mu) } mu ~ dgamma(0.5, 0.0001) }");
    let y: Vec<u8> = (0..60).map(|i| if i % 3 == 0 { 4 + i % 5 } else { 0 }).collect();
    let data = folder.file("claims.json", &json!({"N": 60, "y": y}).to_string());
    let line = format!("fit {model} --data {data} --ppc");
    let found = json(&line);
    let array = &found["predictive"][0];
    assert_eq!((&array["array"], &array["observed"]), (&json!("y"), &json!(60)));
    let of = |name: &str| {
        let all = array["statistics"].as_array().expect("statistics");
        all.iter().find(|s| s["statistic"] == json!(name)).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert!(number(&of("zeros")["tail"]) < 0.01 && number(&of("mean")["tail"]) > 0.5, "{array}");
    assert_eq!((number(&of("max")["data"]), number(&of("zeros")["data"])), (8.0, 40.0 / 60.0));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("the share of zeros of `y` is above nearly all"), "{warnings}");
    assert!(printed(&line).contains("Warning: the share of zeros of `y`"));
    assert!(found.get("loo").is_none());
    let program = example("zip_claims").split_whitespace().next().expect("a path").to_owned();
    let better = json(&format!("fit {program} --data {data} --ppc --loo"));
    assert!(!better["warnings"].to_string().contains("share of zeros"), "{}", better["warnings"]);
    // The label of each claim is marginalised: the claims are independent given the other latents.
    assert!(better["loo"]["waic"]["p_waic"].is_number(), "{}", better["loo"]);
    let plain = json(&format!("fit {model} --data {data} --loo"));
    assert!(number(&better["loo"]["elpd_loo"]) > number(&plain["loo"]["elpd_loo"]) + 50.0);
}

/// Likelihoods that are conditional on drawn labels get a warning, since labels that an observation excludes are missing.
#[test]
fn labels_that_are_not_marginalised_get_a_warning() {
    let folder = Folder::new("predict-given");
    let program = "model { for (i in 1:4) { z[i] ~ dbern(p) y[i] ~ dnorm(2 * z[i], 1) } p ~ dbeta(1, 1) }";
    let model = folder.file("two.bug", program);
    let data = folder.file("two.json", r#"{"y": [0.1, 2.3, -0.4, 1.2]}"#);
    let line = format!("fit {model} --data {data} --loo --steps 300");
    let (marginalised, drawn) = (json(&line), json(&format!("{line} --eliminate none")));
    let conditioned_on = [&marginalised, &drawn].map(|found| &found["loo"]["conditioned_on"]);
    assert_eq!(conditioned_on, [&json!([]), &json!(["z[1:4]"])]);
    assert!(drawn["warnings"].to_string().contains("conditional on drawn values of z[1:4]"), "{}", drawn["warnings"]);
    assert!(!marginalised["warnings"].to_string().contains("drawn values"), "{}", marginalised["warnings"]);
    // Soft labels exclude nothing, so both estimate the same quantity, one with more noise.
    let of = |found: &Value| number(&found["loo"]["elpd_loo"]);
    assert!((of(&marginalised) - of(&drawn)).abs() < 0.3, "{} for {}", of(&drawn), of(&marginalised));
}

const COIN: &str = "model { for (i in 1:n) { y[i] ~ dbern(p) } p ~ dbeta(1, 1) }";

/// A coin with 6 heads in 8 throws: the next is heads with probability 7/10.
fn coin(folder: &Folder, options: &str) -> String {
    let model = folder.file("coin.bug", COIN);
    let data = folder.file("coin.json", r#"{"n": 8, "y": [1, 1, 0, 1, 1, 0, 1, 1]}"#);
    let out = folder.path("run").display().to_string();
    printed(&format!("fit {model} --data {data} --quiet --out {out} {options}"));
    out
}

#[test]
fn new_throws_have_the_exact_predictive_distribution() {
    let folder = Folder::new("predict-coin");
    let run = coin(&folder, "");
    let data = folder.file("new.json", r#"{"n": 3}"#);
    let found = json(&format!("predict {run} --data {data} --draws 20000"));
    assert_eq!((&found["reused"], &found["resimulated"]), (&json!(["p"]), &json!(["y[1:3]"])));
    assert_eq!((&found["draws"], &found["elpd"]), (&json!(20000), &Value::Null));
    for i in 1..=3 {
        let y = &found["parameters"][format!("y[{i}]")];
        // Four thousand draws of p, each used five times: its variance of .02 counts for 4,000, that of the throws for 20,000.
        let error = (0.21_f64 / 20_000.0 + 0.02 / 4000.0).sqrt();
        assert!((number(&y["mean"]) - 0.7).abs() < 5.0 * error, "{y}");
    }
    let data = folder.file("test.json", r#"{"n": 4, "y": [0, null, 1, 0]}"#);
    let found = json(&format!("predict {run} --data {data}"));
    assert_eq!(found["resimulated"], json!(["y[2]"]));
    let (elpd, exact) = (&found["elpd"], 0.7_f64.ln() + 2.0 * 0.3_f64.ln());
    assert!((number(&elpd["value"]) - exact).abs() < 0.05, "{elpd} for {exact}");
    assert_eq!((&elpd["observations"], &found["seen"]), (&json!(3), &json!(0)));
    let seen = folder.file("seen.json", r#"{"n": 9, "y": [1, 1, 0, 1, 1, 0, 1, 1, 0]}"#);
    let found = json(&format!("predict {run} --data {seen}"));
    assert_eq!((&found["elpd"]["observations"], &found["seen"]), (&json!(1), &json!(8)));
    assert!((number(&found["elpd"]["value"]) - 0.3_f64.ln()).abs() < 0.05, "{}", found["elpd"]);
    let stdout = printed(&format!("predict {run} --data {seen} --quiet"));
    assert!(stdout.contains("of 1 new observation; those that the run was fitted to are excluded"), "{stdout}");
}

/// By enumeration, the coin that was thrown once is the third with probability 1/2, and heads again has probability 7/12.
#[test]
fn a_discrete_latent_is_reused() {
    let folder = Folder::new("predict-three");
    let run = folder.path("run").display().to_string();
    printed(&format!("fit {} --quiet --out {run}", example("three_coins")));
    let mut data = example_data("three_coins");
    data.as_object_mut().expect("an object").remove("y");
    let data = folder.file("new.json", &data.to_string());
    let found = json(&format!("predict {run} --data {data}"));
    assert_eq!((&found["reused"], &found["resimulated"]), (&json!(["coin"]), &json!(["y", "ypred"])));
    for name in ["y", "ypred"] {
        let mean = number(&found["parameters"][name]["mean"]);
        assert!((mean - 7.0 / 12.0).abs() < 5.0 * (0.25_f64 / 4000.0).sqrt(), "{name}: {mean}");
    }
}

#[test]
fn rows_are_resimulated_and_files_are_written() {
    let folder = Folder::new("predict-files");
    let run = folder.path("run").display().to_string();
    printed(&format!("fit {} --quiet --draws 1000 --out {run}", example("occupancy")));
    let mut data = example_data("occupancy");
    let object = data.as_object_mut().expect("an object");
    object.insert("sites".to_owned(), json!(4));
    object.remove("y");
    let data = folder.file("new.json", &data.to_string());
    let out = folder.path("predicted");
    let line = format!("predict {run} --data {data} --out {}", out.display());
    let stdout = printed(&line);
    assert!(
        stdout.contains("reused:       psi, p\n") && stdout.contains("resimulated:  occupied[1:4], y[1:4,1:"),
        "{stdout}"
    );
    assert!(stdout.contains("\noccupied[4]") && stdout.contains(&out.display().to_string()), "{stdout}");
    let csv = std::fs::read_to_string(out.join("draws.csv")).expect("a file");
    assert!(csv.lines().count() == 1001 && csv.starts_with("occupied[1],"), "{}", csv.lines().next().unwrap_or(""));
    assert!(std::fs::read(out.join("draws.parquet")).expect("a file").starts_with(b"PAR1"));
    let summary = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
    let again = json(&format!("{line} --threads 1"));
    assert_eq!(serde_json::from_str::<Value>(&summary).expect("JSON"), again);
    let other = json(&format!("{line} --seed 2"));
    assert_ne!(again["parameters"], other["parameters"]);
    let chosen = json(&format!("predict {run} --data {data} --reuse psi --monitor p,total"));
    assert_eq!(chosen["reused"], json!(["psi"]));
    let names: Vec<&String> = chosen["parameters"].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["p", "total"]);
    // If it is not reused, p is drawn from its uniform prior.
    assert!((number(&chosen["parameters"]["p"]["mean"]) - 0.5).abs() < 5.0 * (1.0_f64 / 12.0 / 1000.0).sqrt());
}

/// A chain continues from its last state: the earlier states are reused by name.
#[test]
fn a_chain_continues() {
    let folder = Folder::new("predict-chain");
    let model = folder.file(
        "walk.bug",
        "model { x[1] ~ dnorm(0, 0.01) for (t in 2:n) { x[t] ~ dnorm(x[t - 1] + 3, 100) } for (t in 1:n) { y[t] ~ dnorm(x[t], 400) } }",
    );
    let data = folder.file("old.json", r#"{"n": 3, "y": [10, 13, 16]}"#);
    let run = folder.path("run").display().to_string();
    printed(&format!("fit {model} --data {data} --quiet --out {run}"));
    let data = folder.file("new.json", r#"{"n": 5, "y": [10, 13, 16, null, null]}"#);
    let found = json(&format!("predict {run} --data {data} --reuse x[1:3]"));
    assert_eq!((&found["reused"], &found["resimulated"]), (&json!(["x[1:3]"]), &json!(["x[4:5]", "y[4:5]"])));
    // 16 + 6, with a spread below .2: five standard errors of 4,000 draws.
    assert!((number(&found["parameters"]["y[5]"]["mean"]) - 22.0).abs() < 0.02, "{}", found["parameters"]["y[5]"]);
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("predict-wrong");
    let fitted = coin(&folder, "--draws 100");
    let monitored = Folder::new("predict-monitored");
    let model = monitored
        .file("m.bug", "model { for (i in 1:n) { y[i] ~ dnorm(mu, tau) } mu ~ dnorm(0, 1) tau ~ dgamma(1, 1) }");
    let data = monitored.file("m.json", r#"{"n": 2, "y": [1, 0.5]}"#);
    let partial = monitored.path("run").display().to_string();
    printed(&format!("fit {model} --data {data} --quiet --draws 100 --monitor tau --out {partial}"));
    let without = monitored.path("without");
    std::fs::create_dir_all(&without).expect("a folder");
    std::fs::copy(folder.path("run").join("config.toml"), without.join("config.toml")).expect("a copy");
    let broken = monitored.path("broken");
    std::fs::create_dir_all(&broken).expect("a folder");
    std::fs::copy(folder.path("run").join("config.toml"), broken.join("config.toml")).expect("a copy");
    std::fs::write(broken.join("draws.parquet"), "not Parquet").expect("a file");
    let other = Folder::new("predict-missing");
    let missing = coin(&other, "--draws 100");
    std::fs::remove_file(other.path("coin.json")).expect("the data are removed");
    let new = folder.file("new.json", r#"{"n": 3}"#);
    let prior = folder.file("prior.bug", "model { p ~ dbeta(1, 1) }");
    let cases = [
        (format!("predict {fitted}"), 64, "--data"),
        (format!("predict {fitted} --data {new} --reuse q"), 64, "there is no variable `q`"),
        (format!("predict {fitted} --data {new} --reuse y"), 64, "the run has no latent `y`"),
        (format!("predict {fitted} --data {new} --monitor z"), 64, "there is no variable `z`"),
        (format!("predict {fitted} --data {new} --out {fitted}"), 64, "would overwrite the run"),
        (format!("predict {fitted} --data {new} --draws 3"), 64, "at least 10 draws"),
        (format!("predict {partial} --data {data}"), 65, "has no draws of `mu`: it was run with --monitor tau"),
        (format!("predict {} --data {new}", without.display()), 66, "it has no draws.parquet"),
        (format!("predict {} --data {new}", broken.display()), 66, "draws.parquet cannot be read"),
        (format!("predict {missing} --data {new}"), 66, "run this from the folder in which `fit` was run"),
        (format!("predict nonesuch --data {new}"), 66, "a folder written by `fit --out`"),
        (format!("predict {fitted} --data nonesuch.json"), 66, "check the path"),
        (format!("fit {prior} --loo"), 64, "--loo: nothing is observed"),
        (format!("fit {prior} --ppc"), 64, "--ppc: nothing is observed"),
    ];
    assert_refused(cases);
}
