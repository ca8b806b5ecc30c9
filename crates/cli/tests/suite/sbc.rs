//! `hyperprior check --sbc`: calibrated fits pass, others are flagged.

use crate::support::{Folder, assert_refused, example, json, number, printed};
use serde_json::{Value, json};

/// Two means whose sum is observed: their posterior correlation is −16/17.
pub const SUM: &str = "model { a ~ dnorm(0, 1) b ~ dnorm(0, 1) for (i in 1:4) { y[i] ~ dnorm(a + b, 4) } d <- a - b }";
pub const DATA: &str = r#"{"y": [1, 1.2, 0.8, 0.5]}"#;

fn shapes(found: &Value) -> Vec<&str> {
    let quantities = found["quantities"].as_array().expect("quantities");
    quantities.iter().map(|q| q["shape"].as_str().expect("a shape")).collect()
}

#[test]
fn calibrated_fits_pass_and_narrow_ones_do_not() {
    let folder = Folder::new("sbc-sum");
    let (model, data) = (folder.file("sum.bug", SUM), folder.file("sum.json", DATA));
    let right = json(&format!("check {model} --data {data} --sbc 60 --monitor d"));
    assert_eq!((&right["fitted"], &right["failed"], &right["done"]), (&json!(60), &json!(0), &json!(60)));
    assert_eq!(shapes(&right), ["uniform"; 3]);
    let mean_field = format!("check {model} --data {data} --sbc 60 --method mean-field --correct none");
    let narrow = json(&mean_field);
    assert_eq!(shapes(&narrow), ["too-narrow"; 2]);
    // The standard deviation of mean-field is 1/√17, a third of the exact one: its 90 % interval covers 43 %.
    for quantity in narrow["quantities"].as_array().expect("quantities") {
        let coverage = number(&quantity["coverage"][1]);
        assert!((coverage - 0.43).abs() < 0.25, "{coverage}");
        assert!(number(&quantity["adjusted"]) < 1e-6);
    }
    let stdout = printed(&format!("{mean_field} --quiet"));
    assert!(stdout.contains("Intervals are too narrow"), "{stdout}");
    for threads in [1, 3] {
        assert_eq!(json(&format!("{mean_field} --threads {threads}")), narrow);
    }
}

/// Marginalised labels are ranked too, with ties broken at random.
#[test]
fn discrete_latents_are_ranked() {
    let folder = Folder::new("sbc-labels");
    let source = "model { p ~ dbeta(2, 2) for (i in 1:6) { z[i] ~ dbern(p) y[i] ~ dnorm(3 * z[i], 1) } }";
    let model = folder.file("labels.bug", source);
    let data = folder.file("labels.json", r#"{"y": [0, 1, 2, 3, 4, null]}"#);
    let found = json(&format!("check {model} --data {data} --sbc 50"));
    assert_eq!(found["fitted"], json!(50));
    // p, six labels and the missing observation.
    assert_eq!(shapes(&found), ["uniform"; 8]);
}

#[test]
fn models_that_cannot_be_simulated_are_refused() {
    let folder = Folder::new("sbc-wrong");
    let file = |name: &str, source: &str| folder.file(name, source);
    let data = folder.file("y.json", r#"{"y": 3, "N": 2}"#);
    let flat = file("flat.bug", "model { r ~ dflat() y ~ dnorm(r, N) }");
    let bare = file("bare.bug", "model { r ~ dgamma(1, 1) w ~ dpois(r + N + y) }");
    let wide = file("wide.bug", "model { r ~ dnorm(0, 1.0E-9) y ~ dpois(exp(r) * N) }");
    let known = file("known.bug", "model { y ~ dpois(N) }");
    assert_refused([
        (format!("check {flat} --data {data} --sbc 20"), 65, "--sbc: `r` cannot be drawn: "),
        (format!("check {bare} --data {data} --sbc 20"), 65, "nothing is observed"),
        (format!("check {known} --data {data} --sbc 20"), 65, "nothing in the model is unknown"),
        (format!("check {flat} --data {data} --sbc 3"), 64, "3 is not in 10..="),
        (format!("check {flat} --data {data} --method hvm"), 64, "--sbc"),
        (format!("check {} --sbc 10 --monitor nonesuch", example("eight_schools")), 64, "nonesuch"),
    ]);
    let found = json(&format!("check {wide} --data {data} --sbc 10"));
    let all = number(&found["unsimulated"]) + number(&found["failed"]) + number(&found["fitted"]);
    assert!(number(&found["unsimulated"]) > 0.0 && all == 10.0, "{found}");
}
