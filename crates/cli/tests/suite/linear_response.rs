//! `hyperprior fit --linear-response`.

use crate::sbc::{DATA, SUM};
use crate::support::{Folder, json, number, printed, run, text};
use serde_json::Value;

/// The exact posterior is Gaussian: precision [[17, 16], [16, 17]].
#[test]
fn linear_response_corrects_the_standard_deviations_of_mean_field() {
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
    let stdout = printed(&format!("{how} --linear-response --quiet"));
    assert!(stdout.contains("sd (corrected)") && stdout.contains("0.718"), "{stdout}");
    let refused = run(&format!("fit {model} --data {data} --linear-response"));
    assert_eq!(refused.status.code(), Some(64));
    assert!(text(&refused.stderr).contains("--method mean-field --correct none"));
}
