//! `hyperprior compare`: bounds against exact answers, and methods against each other.
//!
//! `HYPERPRIOR_SEEDS="1 2 3 4 5"` runs these seeds, and the longer tests.

use crate::support::{assert_refused, json, printed, run, text};
use serde_json::Value;
use std::process::Command;

/// The rows of a comparison; no methods means all of them.
fn rows(target: &str, methods: &str, seed: u64) -> Vec<Value> {
    let methods = if methods.is_empty() { String::new() } else { format!("--methods {methods}") };
    let report = json(&format!("compare {target} --seed {seed} --no-pictures {methods}"));
    assert_eq!(report["target"], target);
    assert_eq!(report["seed"], seed);
    report["rows"].as_array().expect("rows").clone()
}

/// The requested seeds; none in a quick run.
fn requested_seeds() -> Vec<u64> {
    let seeds = std::env::var("HYPERPRIOR_SEEDS").unwrap_or_default();
    seeds.split_whitespace().map(|s| s.parse().expect("a seed")).collect()
}

fn seeds() -> Vec<u64> {
    if requested_seeds().is_empty() { vec![1] } else { requested_seeds() }
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
        // No bound is more than two nats away.
        assert!(exact - low < 2.0 && high - exact < 2.0, "a bound two nats away in {row}");
        assert!(number(row, "kl") > -1e-9, "{row}");
    }
}

#[test]
fn negative_multinomials_are_bracketed_and_mixtures_fit_them() {
    for seed in seeds() {
        let rows = rows("correlated-poisson-c", "", seed);
        assert_sandwich(&rows);
        let best = ["mixture", "hvm-mixture"].map(|m| kl(&rows, m)).into_iter().fold(f64::INFINITY, f64::min);
        assert!(best <= 0.002, "seed {seed}: {best}");
    }
}

/// No mixture of Poissons gets below 4.1625 here; Conway–Maxwell factors do.
#[test]
fn narrower_factors_beat_every_mixture_of_poissons() {
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
fn a_hierarchical_model_captures_the_ring() {
    for seed in seeds() {
        let rows = rows("ising-ring-8", "bbvi,hvm-gaussian", seed);
        assert_sandwich(&rows);
        assert!(kl(&rows, "hvm-gaussian") <= 0.005, "seed {seed}: {}", kl(&rows, "hvm-gaussian"));
    }
}

#[test]
fn a_hierarchical_model_captures_the_grid() {
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
        // Mean-field finds one of 32 modes. Half of its KL is far more than the spread between seeds.
        assert!(kl(&rows, "hvm-switches") < 0.5 * kl(&rows, "bbvi"), "{rows:?}");
    }
}

/// Every row of every discrete target; takes minutes, so only with `HYPERPRIOR_SEEDS`.
#[test]
fn all_discrete_rows_are_bracketed() {
    for seed in requested_seeds() {
        for target in ["correlated-poisson-figure", "correlated-poisson-b", "ising-ring-8", "ising-grid-4x4"] {
            assert_sandwich(&rows(target, "", seed));
        }
    }
}

/// Catches a prior whose density is wrong by a constant: if the evidence is 1 no bound is above 0, and a flow is closer to the
/// banana than any Gaussian.
#[test]
fn a_flow_fits_the_banana_better_than_a_gaussian() {
    let rows = rows("banana", "bbvi,dsvi,normalizing-flow,hvm-flow", 1);
    for row in rows.iter().filter(|r| r["applies"] == true) {
        assert_eq!(row["elbo_exact"], Value::Null);
        assert_eq!(number(row, "kl"), -number(row, "elbo"));
        assert!(number(row, "elbo") < 4.0 * number(row, "elbo_standard_error"), "{row}");
    }
    assert!(5.0 * kl(&rows, "normalizing-flow") < kl(&rows, "dsvi"), "{rows:?}");
    let inapplicable = rows.iter().find(|r| r["method"] == "hvm-flow").expect("a row");
    assert_eq!(inapplicable["applies"], false);
    let reason = inapplicable["reason"].as_str().expect("a reason");
    assert!(reason.contains("needs discrete latents; here it is the same as normalizing-flow"), "{reason}");
}

/// The keys in order, and the row of a method that does not apply.
#[test]
fn json_has_all_fields_and_reasons() {
    const FIELDS: [&str; 16] = [
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
        "annealed",
    ];
    let output = run("compare ising-ring-8 --methods dsvi,bbvi,hvm-switches --json --no-pictures --quiet");
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
        // The keys in the order printed.
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
    // A fit holds at least its chains and draws: 8 latents, 256 chains of 8 bytes.
    assert!(number(&rows[0], "peak_bytes") > 16_384.0);
    assert_eq!(
        (&rows[1]["applies"], &rows[1]["reason"]),
        (&Value::from(false), &Value::from("needs continuous latents"))
    );
    assert!(FIELDS[3..].iter().all(|field| rows[1][field].is_null()));
    // 3 switches: 8 locations and 3 × (1 + 8) of θ, 3 × (1 + 8) of φ.
    assert_eq!(rows[2]["parameters"], 62);
}

/// Catches annealed bounds on the wrong side of the enumerated evidence or that do not close in, and a table without them.
#[test]
fn annealed_bounds_bracket_the_evidence_and_close_in() {
    for (target, method) in
        [("ising-ring-8", "bbvi"), ("correlated-poisson-b", "hvm-gaussian"), ("correlated-poisson-e", "bbvi")]
    {
        let compare = format!("compare {target} --methods {method} --annealed 1,2,4,8 --no-pictures");
        let report = json(&compare);
        let bounds = report["rows"][0]["annealed"].as_array().expect("bounds");
        assert_eq!(bounds.iter().map(|b| b["temperatures"].as_u64()).collect::<Vec<_>>(), [1, 2, 4, 8].map(Some));
        let mut gaps = [f64::INFINITY; 2];
        for bound in bounds {
            let exact = number(bound, "log_evidence");
            let sides = [("lower", -1.0), ("upper", 1.0)];
            gaps = sides.map(|(side, sign)| {
                let (gap, error) =
                    (sign * (number(bound, side) - exact), number(bound, &format!("{side}_standard_error")));
                assert!(gap > -4.0 * error, "{target}: the {side} bound is on the wrong side: {bound}");
                let before = gaps[usize::from(side == "upper")];
                assert!(gap < before + 4.0 * error, "{target}: the {side} bound does not close in: {bounds:?}");
                gap
            });
        }
        // With one temperature the lower bound is the hierarchical ELBO of the row.
        let elbo = number(&report["rows"][0], "elbo");
        assert!(
            (number(&bounds[0], "lower") - elbo).abs() < 5.0 * number(&bounds[0], "lower_standard_error"),
            "{report}"
        );
    }
    // Continuous latents take Hamiltonian steps from one Gaussian; a mixture has no such bounds.
    let report = json("compare gaussian-mixture --methods dsvi,mixture --annealed 1,8 --no-pictures");
    let bounds = report["rows"][0]["annealed"].as_array().expect("bounds");
    for (side, sign) in [("lower", -1.0), ("upper", 1.0)] {
        let gap = |k: usize| sign * number(&bounds[k], side);
        assert!(gap(1) > 0.0 && gap(1) < 0.9 * gap(0), "the {side} bound: {bounds:?}");
    }
    assert!(report["rows"][1]["annealed"].is_null());
    let stdout = printed("compare ising-ring-8 --methods bbvi --annealed 2 --no-pictures --quiet");
    assert!(stdout.contains("log p(x) ≥") && stdout.contains("bbvi, annealed:2"), "{stdout}");
}

#[test]
fn the_table_has_every_method_and_the_picture_is_written() {
    let out = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let _ = std::fs::remove_dir_all(&out);
    let stdout = printed(&format!("compare ising-ring-8 --methods bbvi,dsvi --coupling 0.5 --out {}", out.display()));
    for expected in ["J = 0.5", "exact ELBO", "bbvi", "0.963", "dsvi does not apply: needs continuous latents"] {
        assert!(stdout.contains(expected), "{expected} in {stdout}");
    }
    assert!(!stdout.contains('\x1b'), "no colours without a terminal");
    let svg = std::fs::read_to_string(out.join("compare-ising-ring-8.svg")).expect("an SVG");
    assert!(svg.contains("bbvi") && svg.contains("needs continuous latents"));
    let png = std::fs::read(out.join("compare-ising-ring-8.png")).expect("a PNG");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
}

/// Without the integral the KL is unknown, but its bounds bracket the exact value, 0.2829 by enumeration. Their standard errors are
/// below 0.01.
#[test]
fn too_large_a_grid_gives_bounds_on_the_kl() {
    let compare = "compare correlated-poisson-b --methods bbvi,hvm-gaussian --states-max 1000 --no-pictures";
    let stdout = printed(&format!("{compare} --quiet"));
    let line = stdout.lines().find(|l| l.starts_with("hvm-gaussian: KL between")).expect("the bounds");
    let numbers: Vec<f64> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers.len(), 2, "{line}");
    assert!(numbers[0] - 0.04 < 0.2829 && 0.2829 < numbers[1] + 0.04 && numbers[1] - numbers[0] < 0.1, "{line}");
    // A point mass needs no integral.
    assert!(stdout.contains("0.73106"), "{stdout}");
    let report = json(compare);
    assert!(report["rows"][1]["kl"].is_null() && report["rows"][1]["elbo_exact"].is_null());
}

#[test]
fn usage_errors_have_hints() {
    let cases = [
        ("compare", "TARGET"),
        ("compare bananna", "'banana'"),
        ("compare nonesuch", "switchboard"),
        ("compare banana --methods bbvi,hvm-flo", "'hvm-flow'"),
        ("compare banana --coupling 1", "has no coupling"),
        ("compare ising-ring-8 --coupling NaN", "finite"),
        ("compare ising-ring-8 --annealed 0", "such as 1,2,4,8"),
    ];
    assert_refused(cases.map(|(line, hint)| (line.to_owned(), 64, hint)));
}

/// Finished rows are printed, and the exit code says that the others were not run.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_the_finished_rows() {
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

/// Catches rows without their errors, methods that are corrected after all, and options of the other kind of subject that are ignored.
#[test]
fn a_model_is_compared_with_its_own_fit() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let files = format!("{root}/sbn_exact/model.bug --data {root}/sbn_exact/data.json --eliminate none");
    let report = json(&format!("compare {files} --methods mean-field,low-rank:2"));
    assert_eq!((&report["model"], &report["reference"]["verdict"]), (&json_value("sbn_exact"), &json_value("trust")));
    assert!((number(&report["reference"], "log_evidence") + 15.6196).abs() < 0.01, "{report}");
    let rows = report["rows"].as_array().expect("rows");
    let methods: Vec<&Value> = rows.iter().map(|row| &row["method"]).collect();
    assert_eq!(methods, [&json_value("mean-field"), &json_value("low-rank:2")]);
    for row in rows {
        assert!(number(row, "elbo") < -15.6196 + 4.0 * number(row, "elbo_standard_error"), "{row}");
        assert!(row["reason"].is_null() && number(row, "right") <= number(&report["reference"], "quantities"), "{row}");
    }
    // Mean-field misses the dependence of causes that explain the same symptom; corrected draws would not.
    assert!(number(&rows[0], "worst_sd") > 0.15 && number(&rows[0], "elbo") < number(&rows[1], "elbo"), "{report}");
    for (line, said) in [
        (format!("compare {files} --methods bbvi"), "for a model file use mean-field"),
        (format!("compare {files} --coupling 1"), "--coupling is for targets"),
        (format!("compare {files} --annealed 2"), "fit --bound annealed:K"),
        (format!("compare {files} --methods nuts"), "not an approximation to compare"),
        ("compare banana --methods hvm".to_owned(), "hvm is a method for a model file"),
        ("compare banana --data x.json".to_owned(), "--data and --init are for a model file"),
        ("compare no-such.bug".to_owned(), "cannot read `no-such.bug`"),
    ] {
        let output = run(&line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(said), "{line}: {stderr}");
    }
}

fn json_value(text: &str) -> Value {
    Value::String(text.to_owned())
}
