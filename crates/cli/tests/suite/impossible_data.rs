//! Impossible data and invalid parameters are reported with their place in the model.

use crate::support::{Folder, json, run, text};

#[test]
fn the_impossible_factor_is_named() {
    let folder = Folder::new("faults");
    let source = "model {\n  b ~ dnorm(0, 1)\n  for (i in 1:3) {\n    mu[i] <- step(b - 50) * exp(b)\n    y[i] ~ dpois(mu[i])\n  }\n}\n";
    let (model, data) = (folder.file("m.bug", source), folder.file("d.json", r#"{"y": [0, 2, 3]}"#));
    let output = run(&format!("fit {model} --data {data} --quiet"));
    assert_eq!(output.status.code(), Some(65));
    let stderr = text(&output.stderr);
    assert!(stderr.contains(&format!("log density −∞ at y[2] = 2 ~ dpois(mu[2] = 0), {model}:5")), "{stderr}");
    // For some draws of the approximation a probability is above 1.
    let source = "model {\n  a ~ dunif(0, 1)\n  b ~ dnorm(0, 1)\n  for (i in 1:3) {\n    y[i] ~ dbern(p[i])\n    p[i] <- a + b * x[i]\n  }\n}\n";
    let model = folder.file("p.bug", source);
    let data = folder.file("p.json", r#"{"y": [1, 0, 1], "x": [0.1, 0.2, 0.3]}"#);
    let found = json(&format!("fit {model} --data {data}"));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("are impossible in the model") && warnings.contains("the cause is y[3]"), "{warnings}");
    assert!(warnings.contains(&format!("{model}:5")), "{warnings}");
}

/// Data that are impossible for any latents are reported before the fit, with their place in the model and their file.
#[test]
fn impossible_data_are_reported_before_the_fit() {
    let folder = Folder::new("impossible");
    for (k, (relation, data, hint)) in [
        ("y ~ dpois(r)", r#"{"y": -1}"#, "`y` is observed as -1, which is impossible under its Poisson distribution"),
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
            assert!(stderr.contains(hint) && stderr.contains(&place), "{relation} printed {stderr}");
            assert!(stderr.contains(&format!("check the datum in {data}")), "{relation} printed {stderr}");
        }
    }
    for (relation, data, hint) in [
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
        assert!(stderr.contains(hint) && stderr.contains("p.bug:3:"), "{relation} printed {stderr}");
    }
}
