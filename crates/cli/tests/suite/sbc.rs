//! `hyperprior check --calibrate` and `hyperprior fit --linear-response`: right fits pass, wrong ones are named.

mod support;

use serde_json::{Value, json};
use support::{Folder, example, json, run, text};

/// Two means of which the data know the sum: their posterior correlation is −16/17.
const SUM: &str = "model { a ~ dnorm(0, 1) b ~ dnorm(0, 1) for (i in 1:4) { y[i] ~ dnorm(a + b, 4) } d <- a - b }";
const DATA: &str = r#"{"y": [1, 1.2, 0.8, 0.5]}"#;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn shapes(found: &Value) -> Vec<&str> {
    let quantities = found["quantities"].as_array().expect("quantities");
    quantities.iter().map(|q| q["shape"].as_str().expect("a shape")).collect()
}

#[test]
fn a_right_inference_passes_and_a_narrow_one_does_not() {
    let folder = Folder::new("calibrate-sum");
    let (model, data) = (folder.file("sum.bug", SUM), folder.file("sum.json", DATA));
    let right = json(&format!("check {model} --data {data} --calibrate 60 --monitor d"));
    assert_eq!((&right["fitted"], &right["failed"], &right["done"]), (&json!(60), &json!(0), &json!(60)));
    assert_eq!(shapes(&right), ["uniform"; 3]);
    let mean_field = format!("check {model} --data {data} --calibrate 60 --method mean-field --correct none");
    let narrow = json(&mean_field);
    assert_eq!(shapes(&narrow), ["too-narrow"; 2]);
    // The spread of mean-field is 1/√17, a third of what it should be: its 90 % interval holds 43 %.
    for quantity in narrow["quantities"].as_array().expect("quantities") {
        let held = number(&quantity["coverage"][1]);
        assert!((held - 0.43).abs() < 0.25, "{held}");
        assert!(number(&quantity["adjusted"]) < 1e-6);
    }
    let told = run(&format!("{mean_field} --quiet"));
    assert!(text(&told.stdout).contains("Intervals are too narrow"), "{}", text(&told.stdout));
    for threads in [1, 3] {
        assert_eq!(json(&format!("{mean_field} --threads {threads}")), narrow);
    }
}

/// Labels that are summed out are ranked too, and ties among them broken.
#[test]
fn discrete_latents_are_ranked() {
    let folder = Folder::new("calibrate-labels");
    let source = "model { p ~ dbeta(2, 2) for (i in 1:6) { z[i] ~ dbern(p) y[i] ~ dnorm(3 * z[i], 1) } }";
    let model = folder.file("labels.bug", source);
    let data = folder.file("labels.json", r#"{"y": [0, 1, 2, 3, 4, null]}"#);
    let found = json(&format!("check {model} --data {data} --calibrate 50"));
    assert_eq!(found["fitted"], json!(50));
    // p, six labels, and the datum that is missing.
    assert_eq!(shapes(&found), ["uniform"; 8]);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let folder = Folder::new("calibrate-wrong");
    let file = |name: &str, source: &str| folder.file(name, source);
    let data = folder.file("y.json", r#"{"y": 3, "N": 2}"#);
    let flat = file("flat.bug", "model { r ~ dflat() y ~ dnorm(r, N) }");
    let bare = file("bare.bug", "model { r ~ dgamma(1, 1) w ~ dpois(r + N + y) }");
    let wide = file("wide.bug", "model { r ~ dnorm(0, 1.0E-9) y ~ dpois(exp(r) * N) }");
    let known = file("known.bug", "model { y ~ dpois(N) }");
    for (line, code, hint) in [
        (
            format!("check {flat} --data {data} --calibrate 20"),
            65,
            "`r` cannot be drawn: a flat law is no probability law",
        ),
        (format!("check {bare} --data {data} --calibrate 20"), 65, "nothing is observed"),
        (format!("check {known} --data {data} --calibrate 20"), 65, "nothing in the model is unknown"),
        (format!("check {flat} --data {data} --calibrate 3"), 64, "3 is not in 10..="),
        (format!("check {flat} --data {data} --method hvm"), 64, "--calibrate"),
        (format!("check {} --calibrate 10 --monitor nonesuch", example("eight_schools")), 64, "nonesuch"),
    ] {
        let output = run(&line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{line} said {}", text(&output.stderr));
    }
    let found = json(&format!("check {wide} --data {data} --calibrate 10"));
    let lost = number(&found["unsimulated"]) + number(&found["failed"]) + number(&found["fitted"]);
    assert!(number(&found["unsimulated"]) > 0.0 && lost == 10.0, "{found}");
}

/// The exact posterior is Gaussian: precision [[17, 16], [16, 17]].
#[test]
fn linear_response_mends_the_spreads_of_mean_field() {
    let folder = Folder::new("linear-response");
    let (model, data) = (folder.file("sum.bug", SUM), folder.file("sum.json", DATA));
    let how = format!("fit {model} --data {data} --method mean-field --correct none");
    let found = json(&format!("{how} --linear-response"));
    let response = &found["linear_response"];
    for (name, exact) in [("a", (17.0_f64 / 33.0).sqrt()), ("b", (17.0_f64 / 33.0).sqrt()), ("d", 2f64.sqrt())] {
        let sd = number(&response["sd"][name]);
        assert!((sd - exact).abs() < 1e-6, "{name}: {sd} for {exact}");
    }
    assert!(number(&found["parameters"]["a"]["sd"]) < 0.3);
    let names: Vec<&str> = response["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let at = |name: &str| names.iter().position(|n| *n == name).expect("a name");
    let correlation = number(&response["correlation"][at("a")][at("b")]);
    assert!((correlation + 16.0 / 17.0).abs() < 1e-6, "{correlation}");
    assert!(json(&how).get("linear_response").is_none());
    let told = run(&format!("{how} --linear-response --quiet"));
    let told = text(&told.stdout);
    assert!(told.contains("sd (corrected)") && told.contains("0.718"), "{told}");
    let refused = run(&format!("fit {model} --data {data} --linear-response"));
    assert_eq!(refused.status.code(), Some(64));
    assert!(text(&refused.stderr).contains("--method mean-field --correct none"));
}

#[test]
fn the_factor_at_fault_is_named() {
    let folder = Folder::new("faults");
    let source = "model {\n  b ~ dnorm(0, 1)\n  for (i in 1:3) {\n    mu[i] <- step(b - 50) * exp(b)\n    y[i] ~ dpois(mu[i])\n  }\n}\n";
    let (model, data) = (folder.file("m.bug", source), folder.file("d.json", r#"{"y": [0, 2, 3]}"#));
    let output = run(&format!("fit {model} --data {data} --quiet"));
    assert_eq!(output.status.code(), Some(65));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("log density −∞ at y[2] = 2 ~ dpois(mu[2] = 0), {model}:5")), "{said}");
    // Some draws of the approximation lie where a probability is above 1.
    let source = "model {\n  a ~ dunif(0, 1)\n  b ~ dnorm(0, 1)\n  for (i in 1:3) {\n    y[i] ~ dbern(p[i])\n    p[i] <- a + b * x[i]\n  }\n}\n";
    let model = folder.file("p.bug", source);
    let data = folder.file("p.json", r#"{"y": [1, 0, 1], "x": [0.1, 0.2, 0.3]}"#);
    let found = json(&format!("fit {model} --data {data}"));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("are impossible in the model") && warnings.contains(" fall to y[3]"), "{warnings}");
    assert!(warnings.contains(&format!("{model}:5")), "{warnings}");
}

/// Data that no latents could have brought about are told before anything is fitted, with their place in the model and their file.
#[test]
fn impossible_data_are_told_before_a_fit() {
    let folder = Folder::new("impossible");
    for (k, (relation, data, said)) in [
        ("y ~ dpois(r)", r#"{"y": -1}"#, "`y` is observed as -1, which a Poisson law cannot give"),
        ("y ~ dpois(r)", r#"{"y": 1.5}"#, "its values are whole numbers"),
        ("y ~ dbeta(r, 1)", r#"{"y": 1.5}"#, "its values lie between 0 and 1"),
        ("y ~ dbin(r / (1 + r), 3)", r#"{"y": 4}"#, "its values are from 0 to 3"),
        ("y ~ dcat(p[])", r#"{"y": 4, "p": [0.2, 0.3, 0.5]}"#, "its values are from 1 to 3"),
        ("y ~ dnorm(r, 1) T(0, 2)", r#"{"y": 4}"#, "outside the bounds of its truncation"),
        ("y ~ dgamma(2, r)", r#"{"y": 0}"#, "y = 0 ~ dgamma(2, r) is impossible whatever the latents are"),
        (
            "y[1:3] ~ dmulti(p[], 2)",
            r#"{"y": [1, 0, 1], "p": [0.5, 0.5, 0]}"#,
            "~ dmulti(p = (0.5, 0.5, 0), 2) is impossible",
        ),
        ("y ~ dinterval(3, 2)", r#"{"y": 0}"#, "y = 0 ~ dinterval(3, cuts = (2)) is impossible"),
        ("y ~ dnorm(1 / n + r, 1)", r#"{"y": 0, "n": 0}"#, "is impossible whatever the latents are"),
    ]
    .into_iter()
    .enumerate()
    {
        let model = folder
            .file(&format!("m{k}.bug"), &format!("model {{\n  r ~ dgamma(1, 1)\n  {relation}\n  w ~ dpois(r)\n}}\n"));
        let data = folder.file(&format!("d{k}.json"), &data.replace('}', r#", "w": 2}"#));
        for command in ["fit", "check"] {
            let output = run(&format!("{command} {model} --data {data} --quiet"));
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(65), "{relation}: {stderr}");
            let place = format!("m{k}.bug:3:");
            assert!(stderr.contains(said) && stderr.contains(&place), "{relation} said {stderr}");
            assert!(stderr.contains(&format!("check the datum in {data}")), "{relation} said {stderr}");
        }
    }
    for (relation, data, said) in [
        ("y ~ dnorm(r, tau)", r#"{"y": 4, "tau": -1}"#, "precision = -1: it must be above 0"),
        ("y ~ dbern(q)", r#"{"y": 1, "q": 1.2}"#, "p = 1.2: it must lie between 0 and 1"),
        ("y[1:2] ~ dmnorm(m[], P[,])", r#"{"y": [1, 2], "m": [0, 0], "P": [[1, 2], [2, 1]]}"#, "is not a number"),
        (
            "O[1:2, 1:2] ~ dwish(R[,], 3)\n y[1:2] ~ dmnorm(m[], O[,])",
            r#"{"y": [1, 2], "m": [0, 0], "R": [[1, 2], [2, 1]]}"#,
            "positive definite",
        ),
    ] {
        let model = folder.file("p.bug", &format!("model {{\n  r ~ dgamma(1, 1)\n  {relation}\n  w ~ dpois(r)\n}}\n"));
        let data = folder.file("p.json", &data.replace(r#"{"y""#, r#"{"w": 2, "y""#));
        let output = run(&format!("fit {model} --data {data} --quiet"));
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(65), "{relation}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains("p.bug:3:"), "{relation} said {stderr}");
    }
}
