//! `hyperprior check`.

use crate::support::{Folder, assert_refused, example, json, number, printed};
use serde_json::json;

#[test]
fn every_example_passes_the_check() {
    for name in [
        "capture_recapture",
        "coal",
        "dawid_skene",
        "eight_schools",
        "galaxy_dp",
        "hmm_quakes",
        "karate_sbm",
        "n_mixture",
        "occupancy",
        "rats",
        "sbn_exact",
        "spike_hald",
        "three_coins",
        "zip_claims",
    ] {
        let found = json(&format!("check {} --points 3", example(name)));
        assert_eq!(found["points"].as_array().map(Vec::len), Some(3), "{name}");
        let is_checked = |part: &str| found[part]["finite"].as_u64().is_some_and(|finite| finite > 0);
        assert!(is_checked("fitted") || is_checked("whole"), "{name}: {}", found["fitted"]);
        assert!(number(&found["start"]["log_prior"]).is_finite(), "{name}");
        for point in found["points"].as_array().expect("points") {
            assert!(number(&point["log_joint"]).is_finite(), "{name}: {point}");
        }
    }
}

#[test]
fn marginalisation_agrees_with_enumeration() {
    for (name, configurations) in [("coal", 112), ("sbn_exact", 256), ("spike_hald", 16), ("three_coins", 3)] {
        let found = json(&format!("check {}", example(name)));
        assert_eq!(found["marginalisation"]["configurations"], json!(configurations), "{name}");
        assert!(number(&found["marginalisation"]["difference"]) < 1e-12, "{name}");
    }
    let apart = json(&format!("check {} --eliminate none", example("coal")));
    assert_eq!(apart["marginalisation"], json!({"skipped": "nothing is marginalised"}));
    assert_eq!(apart["fitted"]["conditionals"], json!(true));
    let too_many = json(&format!("check {}", example("hmm_quakes")));
    assert_eq!(too_many["marginalisation"], json!({"skipped": "too many configurations"}));
}

#[test]
fn latents_are_listed_by_array() {
    let stdout = printed(&format!("check {} --quiet", example("karate_sbm")));
    let row = stdout.lines().find(|line| line.starts_with("z[2:33]")).unwrap_or_else(|| panic!("{stdout}"));
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["z[2:33]", "categorical", "1 or 2", "32", "fitted", "34"]);
    let found = json(&format!("check {}", example("n_mixture")));
    let n = found["latents"].as_array().expect("rows").iter().find(|row| row["name"] == "N[1:40]").expect("one row");
    assert_eq!((&n["count"], &n["role"]), (&json!(40), &json!("marginalised")));
}

/// log 2 − 2s plus the two normal densities at the values of each point, without the Jacobian of a transformation.
#[test]
fn densities_are_on_the_scale_of_the_model() {
    let folder = Folder::new("check-points");
    let model = folder.file("scale.bug", "model { s ~ dexp(2) y ~ dnorm(0, pow(s, -2)) z ~ dnorm(s, 1) }");
    let data = folder.file("scale.json", r#"{"y": 0.5}"#);
    let found = json(&format!("check {model} --data {data} --points 5 --seed 3"));
    let half = 0.5 * (2.0 * std::f64::consts::PI).ln();
    for point in found["points"].as_array().expect("points") {
        let (s, z) = (number(&point["values"]["s"]), number(&point["values"]["z"]));
        let expected = 2f64.ln() - 2.0 * s - half - s.ln() - 0.125 / (s * s) - half - 0.5 * (z - s) * (z - s);
        assert!((number(&point["log_joint"]) - expected).abs() < 1e-12 * expected.abs().max(1.0), "{point}");
    }
    let other = json(&format!("check {model} --data {data} --points 5 --seed 4"));
    assert_ne!(found["points"], other["points"]);
    let init = folder.file("init.json", r#"{"s": 2}"#);
    let started = json(&format!("check {model} --data {data} --init {init}"));
    assert!((number(&started["start"]["values"]["s"]) - 2.0).abs() < 1e-12);
    assert!((number(&started["start"]["log_likelihood"]) + half + 2f64.ln() + 0.125 / 4.0).abs() < 1e-12);
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("check-wrong");
    let broken = folder.file("broken.bug", "model { x ~ dnorm(0, 1 }");
    assert_refused([
        (format!("check {broken}"), 65, "broken.bug:1:"),
        ("check nonesuch.bug".to_owned(), 66, "nonesuch.bug"),
        (format!("check {} --eliminate q", example("coal")), 64, "no latent `q`"),
    ]);
}
