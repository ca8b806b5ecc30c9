//! `hyperprior compare`, run as a person runs it: the bounds against the exact answers, the methods against each other.
//!
//! `HYPERPRIOR_SEEDS="1 2 3 4 5"` runs what takes longer, and more seeds than the first.

use serde_json::Value;
use std::process::{Command, Output};

fn hyperprior(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperprior")).args(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The rows of a comparison; no methods means all of them.
fn rows(target: &str, methods: &str, seed: u64) -> Vec<Value> {
    let seed = seed.to_string();
    let mut arguments = vec!["compare", target, "--seed", &seed, "--json", "--no-pictures", "--quiet"];
    if !methods.is_empty() {
        arguments.extend(["--methods", methods]);
    }
    let output = hyperprior(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else on standard output");
    assert_eq!(report["target"], target);
    assert_eq!(report["seed"].to_string(), seed);
    report["rows"].as_array().expect("rows").clone()
}

/// The seeds that were asked for; none were, in a quick run.
fn asked() -> Vec<u64> {
    let seeds = std::env::var("HYPERPRIOR_SEEDS").unwrap_or_default();
    seeds.split_whitespace().map(|s| s.parse().expect("a seed")).collect()
}

fn seeds() -> Vec<u64> {
    if asked().is_empty() { vec![1] } else { asked() }
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} in {row}"))
}

fn kl(rows: &[Value], method: &str) -> f64 {
    let row = rows.iter().find(|r| r["method"] == method).unwrap_or_else(|| panic!("a row for {method}"));
    number(row, "kl")
}

/// Catches a bound on the wrong side, and an enumeration that disagrees with the draws.
fn assert_sandwich(rows: &[Value]) {
    for row in rows.iter().filter(|r| r["applies"] == true) {
        let (low, exact, high) = (number(row, "elbo"), number(row, "elbo_exact"), number(row, "elbo_upper"));
        assert!(low <= exact + 4.0 * number(row, "elbo_standard_error"), "lower bound above the exact ELBO in {row}");
        assert!(exact <= high + 4.0 * number(row, "elbo_upper_standard_error"), "upper bound below it in {row}");
        // Tight enough to say something: no bound is more than two nats away.
        assert!(exact - low < 2.0 && high - exact < 2.0, "a bound two nats away in {row}");
        assert!(number(row, "kl") > -1e-9, "{row}");
    }
}

#[test]
fn negative_multinomials_are_bracketed_and_one_method_has_them() {
    for seed in seeds() {
        let rows = rows("correlated-poisson-c", "", seed);
        assert_sandwich(&rows);
        let best = ["mixture", "hvm-mixture"].map(|m| kl(&rows, m)).into_iter().fold(f64::INFINITY, f64::min);
        assert!(best <= 0.002, "seed {seed}: {best}");
    }
}

/// No mixture of Poissons gets below 4.1625 there; another factor does.
#[test]
fn a_narrower_factor_follows_what_no_poisson_can() {
    for seed in seeds() {
        let rows = rows("correlated-poisson-e", "bbvi,mixture,hvm-mixture,hvm-gaussian", seed);
        assert_sandwich(&rows);
        assert!(kl(&rows, "mixture") < 1.0, "{}", kl(&rows, "mixture"));
        for poisson in ["bbvi", "hvm-mixture", "hvm-gaussian"] {
            assert!(kl(&rows, poisson) > 4.162, "{poisson}: {}", kl(&rows, poisson));
        }
    }
}

#[test]
fn a_hierarchical_model_ties_the_ring_together() {
    for seed in seeds() {
        let rows = rows("ising-ring-8", "bbvi,hvm-gaussian", seed);
        assert_sandwich(&rows);
        assert!(kl(&rows, "hvm-gaussian") <= 0.005, "seed {seed}: {}", kl(&rows, "hvm-gaussian"));
    }
}

#[test]
fn a_hierarchical_model_ties_the_grid_together() {
    for seed in seeds() {
        let rows = rows("ising-grid-4x4", "bbvi,hvm-gaussian", seed);
        assert_sandwich(&rows);
        let (mean_field, gaussian) = (kl(&rows, "bbvi"), kl(&rows, "hvm-gaussian"));
        assert!(25.0 * gaussian < mean_field, "{gaussian} against {mean_field}");
    }
}

#[test]
fn switches_find_the_modes_of_the_switchboard() {
    for seed in seeds() {
        let rows = rows("switchboard", "bbvi,hvm-switches", seed);
        assert_sandwich(&rows);
        // Mean-field has one of 32 modes. Half of its distance is far more than the spread between seeds.
        assert!(kl(&rows, "hvm-switches") < 0.5 * kl(&rows, "bbvi"), "{rows:?}");
    }
}

/// Every row of every discrete target; minutes, so only where seeds were asked for.
#[test]
fn all_discrete_rows_are_bracketed() {
    for seed in asked() {
        for target in ["correlated-poisson-figure", "correlated-poisson-b", "ising-ring-8", "ising-grid-4x4"] {
            assert_sandwich(&rows(target, "", seed));
        }
    }
}

/// Catches a prior whose density is wrong by a constant: where the evidence is 1 no bound is above 0, and a flow is closer to
/// the banana than any Gaussian.
#[test]
fn a_flow_bends_along_the_banana() {
    let rows = rows("banana", "bbvi,dsvi,normalizing-flow,hvm-flow", 1);
    for row in rows.iter().filter(|r| r["applies"] == true) {
        assert_eq!(row["elbo_exact"], Value::Null);
        assert_eq!(number(row, "kl"), -number(row, "elbo"));
        assert!(number(row, "elbo") < 4.0 * number(row, "elbo_standard_error"), "{row}");
    }
    assert!(5.0 * kl(&rows, "normalizing-flow") < kl(&rows, "dsvi"), "{rows:?}");
    let absent = rows.iter().find(|r| r["method"] == "hvm-flow").expect("a row");
    assert_eq!(absent["applies"], false);
    assert!(absent["reason"].as_str().expect("a reason").contains("the normalizing flow"));
}

/// The keys in order, and what a row has that does not apply.
#[test]
fn json_has_its_fields_and_absent_methods_their_reason() {
    const FIELDS: [&str; 15] = [
        "method",
        "applies",
        "reason",
        "prior",
        "recursive",
        "elbo",
        "elbo_standard_error",
        "elbo_exact",
        "elbo_upper",
        "elbo_upper_standard_error",
        "kl",
        "seconds_per_step",
        "peak_bytes",
        "parameters",
        "gradient",
    ];
    let arguments =
        ["compare", "ising-ring-8", "--methods", "dsvi,bbvi,hvm-switches", "--json", "--no-pictures", "--quiet"];
    let output = hyperprior(&arguments);
    let printed = text(&output.stdout);
    assert!(output.stderr.is_empty() && printed.ends_with("}\n") && printed.lines().count() == 1);
    assert!(
        printed
            .starts_with(r#"{"target":"ising-ring-8","seed":1,"rows":[{"method":"bbvi","applies":true,"reason":null,"#)
    );
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    for row in rows {
        let object = row.as_object().expect("an object");
        assert_eq!(object.len(), FIELDS.len());
        // Each key after the one before it, as it was printed.
        let own = &printed[printed.find(&format!(r#"{{"method":{}"#, row["method"])).expect("the row")..];
        let places: Vec<usize> = FIELDS.iter().map(|f| own.find(&format!("\"{f}\":")).expect("the key")).collect();
        assert!(places.is_sorted(), "{places:?}");
    }
    let methods: Vec<&str> = rows.iter().filter_map(|r| r["method"].as_str()).collect();
    assert_eq!(methods, ["bbvi", "dsvi", "hvm-switches"]);
    assert_eq!(rows[0]["recursive"], "none");
    assert_eq!(rows[0]["parameters"], 8);
    assert_eq!(rows[0]["gradient"], "local expectation × 8");
    assert!(number(&rows[0], "seconds_per_step") > 0.0);
    // A fit holds its chains and its draws at least: 8 latents, 256 chains of 8 bytes.
    assert!(number(&rows[0], "peak_bytes") > 16_384.0);
    assert_eq!(
        (&rows[1]["applies"], &rows[1]["reason"]),
        (&Value::from(false), &Value::from("needs continuous latents"))
    );
    assert!(FIELDS[3..].iter().all(|field| rows[1][field].is_null()));
    // 3 switches: 8 locations and 3 × (1 + 8) of θ, 3 × (1 + 8) of φ.
    assert_eq!(rows[2]["parameters"], 62);
}

#[test]
fn the_table_has_every_method_and_the_picture_is_written() {
    let out = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let _ = std::fs::remove_dir_all(&out);
    let path = out.to_str().expect("a path in UTF-8");
    let output = hyperprior(&["compare", "ising-ring-8", "--methods", "bbvi,dsvi", "--coupling", "0.5", "--out", path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for expected in ["J = 0.5", "exact ELBO", "bbvi", "0.963", "dsvi does not apply: needs continuous latents"] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    assert!(!printed.contains('\x1b'), "no colours where no one is looking");
    let svg = std::fs::read_to_string(out.join("compare-ising-ring-8.svg")).expect("an SVG");
    assert!(svg.contains("bbvi") && svg.contains("needs continuous latents"));
    let png = std::fs::read(out.join("compare-ising-ring-8.png")).expect("a PNG");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
}

/// Without the integral the KL is unknown, and the bounds on it have the exact one, 0.2829 by enumeration, between them. Their
/// standard errors are below 0.01.
#[test]
fn a_grid_that_is_too_large_leaves_bounds_on_the_divergence() {
    let arguments = ["compare", "correlated-poisson-b", "--methods", "bbvi,hvm-gaussian", "--states-max", "1000"];
    let output = hyperprior(&[&arguments[..], &["--no-pictures", "--quiet"]].concat());
    let printed = text(&output.stdout);
    let line = printed.lines().find(|l| l.starts_with("hvm-gaussian: KL between")).expect("the bounds");
    let numbers: Vec<f64> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers.len(), 2, "{line}");
    assert!(numbers[0] - 0.04 < 0.2829 && 0.2829 < numbers[1] + 0.04 && numbers[1] - numbers[0] < 0.1, "{line}");
    // A point needs no integral.
    assert!(printed.contains("0.73106"), "{printed}");
    let output = hyperprior(&[&arguments[..], &["--no-pictures", "--quiet", "--json"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["rows"][1]["kl"].is_null() && report["rows"][1]["elbo_exact"].is_null());
}

#[test]
fn mistakes_are_usage_errors_with_a_way_out() {
    let cases: [(&[&str], &str); 6] = [
        (&["compare"], "TARGET"),
        (&["compare", "bananna"], "'banana'"),
        (&["compare", "nonesuch"], "switchboard"),
        (&["compare", "banana", "--methods", "bbvi,hvm-flo"], "'hvm-flow'"),
        (&["compare", "banana", "--coupling", "1"], "has no coupling"),
        (&["compare", "ising-ring-8", "--coupling", "NaN"], "finite"),
    ];
    for (arguments, hint) in cases {
        let output = hyperprior(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?} said {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(text(&hyperprior(&["compare", "--help"]).stdout).contains("Examples:"));
}

/// Rows that were finished are printed, and the exit code says that the rest was not run.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_the_rows_that_are_done() {
    let child = Command::new(env!("CARGO_BIN_EXE_hyperprior"))
        .args(["compare", "ising-grid-4x4", "--methods", "bbvi,hvm-gaussian", "--no-pictures", "--quiet", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_secs(5));
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(75));
    assert!(text(&output.stderr).contains("stopped early"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["method"], "bbvi");
}
