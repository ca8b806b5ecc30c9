//! `hyperprior fit`: exact answers, files and errors.

use crate::support::{
    Folder, assert_refused, command, example, example_data, json, number, numbers, printed, run, text,
};
use hyperprior_math::special::{ln_gamma, log_sum_exp};
use serde_json::{Value, json};

/// |found − exact| in Monte Carlo standard errors.
fn errors_away(parameter: &Value, exact: f64) -> f64 {
    (number(&parameter["mean"]) - exact).abs() / number(&parameter["mcse"])
}

/// Given k the rates are gamma, so that p(k | y) ∝ Π Γ(1 + count) / (1 + years)^(1 + count), the prior being uniform.
#[test]
fn coal_has_the_exact_posterior() {
    let y = numbers(&example_data("coal")["y"]);
    let side = |y: &[f64]| {
        let count: f64 = y.iter().sum();
        ln_gamma(1.0 + count) - (1.0 + count) * (1.0 + y.len() as f64).ln()
    };
    let joint: Vec<f64> = (1..=y.len()).map(|k| side(&y[..k]) + side(&y[k..])).collect();
    let total = log_sum_exp(&joint);
    let constant: f64 = y.iter().map(|y| ln_gamma(y + 1.0)).sum();
    let evidence = total - (y.len() as f64).ln() - constant;

    let found = json(&format!("fit {}", example("coal")));
    let pmf = &found["parameters"]["k"]["pmf"];
    for (k, log) in joint.iter().enumerate() {
        let exact = (log - total).exp();
        let own = pmf.get((k + 1).to_string()).map_or(0.0, number);
        assert!((own - exact).abs() < 0.02, "k = {}: {own} for {exact}", k + 1);
    }
    // Exact, from the same sums: bench/jags/exact.py.
    for (name, exact) in [("lambda[1]", 3.0642), ("lambda[2]", 0.9224), ("k", 40.071)] {
        let away = errors_away(&found["parameters"][name], exact);
        assert!(away < 5.0, "{name} is {away} standard errors away");
    }
    assert!((number(&found["evidence"]["log"]) - evidence).abs() < 0.02, "{} for {evidence}", found["evidence"]);
    assert!(number(&found["elbo"]["value"]) < evidence + 0.01);
    assert_eq!(found["plan"]["marginalised"], json!(["k"]));
}

#[test]
fn three_coins_are_exact() {
    let found = json(&format!("fit {}", example("three_coins")));
    assert!((number(&found["evidence"]["log"]) - 0.5f64.ln()).abs() < 1e-12);
    assert_eq!((&found["method"], &found["khat"], &found["verdict"]), (&json!("exact"), &Value::Null, &json!("trust")));
    assert_eq!(found["plan"]["marginalised"], json!(["coin"]));
    assert_eq!(found["plan"]["prior_only"], json!(["ypred"]));
    assert!(errors_away(&found["parameters"]["coin"], 7.0 / 3.0) < 5.0);
    assert!(errors_away(&found["parameters"]["ypred"], 7.0 / 12.0) < 5.0);
    for (value, exact) in [("1", 1.0 / 6.0), ("2", 1.0 / 3.0), ("3", 0.5)] {
        assert!((number(&found["parameters"]["coin"]["pmf"][value]) - exact).abs() < 0.03);
    }
    let stdout = printed(&format!("fit {}", example("three_coins")));
    assert!(stdout.contains("exact: every latent was marginalised") && stdout.contains("-0.6931 (exact)"), "{stdout}");
}

/// Against all 2⁸ configurations.
#[test]
fn sbn_is_exact() {
    let data = example_data("sbn_exact");
    let (b, ph, v) = (numbers(&data["b"]), numbers(&data["ph"]), numbers(&data["v"]));
    let w: Vec<Vec<f64>> = data["W"].as_array().expect("rows").iter().map(numbers).collect();
    let log = |x: f64, p: f64| if x == 1.0 { p.ln() } else { (-p).ln_1p() };
    let states: Vec<Vec<f64>> = (0..256).map(|s| (0..8).map(|j| f64::from(s >> j & 1)).collect()).collect();
    let joint = |h: &Vec<f64>| {
        let prior: f64 = h.iter().zip(&ph).map(|(h, p)| log(*h, *p)).sum();
        let visible = |i: usize| b[i] + w[i].iter().zip(h).map(|(w, h)| w * h).sum::<f64>();
        prior + (0..v.len()).map(|i| log(v[i], 1.0 / (1.0 + (-visible(i)).exp()))).sum::<f64>()
    };
    let joint: Vec<f64> = states.iter().map(joint).collect();
    let evidence = log_sum_exp(&joint);
    let found = json(&format!("fit {} --draws 20000", example("sbn_exact")));
    assert!((number(&found["evidence"]["log"]) - evidence).abs() < 1e-9);
    for j in 0..8 {
        let exact: f64 = states.iter().zip(&joint).map(|(h, log)| h[j] * (log - evidence).exp()).sum();
        let own = number(&found["parameters"][format!("h[{}]", j + 1)]["mean"]);
        // Five standard errors of 20,000 draws, for any probability.
        assert!((own - exact).abs() < 5.0 * 0.5 / 20_000f64.sqrt(), "h[{}]: {own} for {exact}", j + 1);
    }
}

#[test]
fn without_data_the_draws_are_from_the_prior() {
    let folder = Folder::new("fit-prior");
    let model = folder.file("prior.bug", "model { mu ~ dnorm(3, 4) n ~ dpois(exp(mu - 3)) twice <- 2 * mu }");
    let found = json(&format!("fit {model}"));
    assert_eq!((&found["method"], &found["evidence"]["log"]), (&json!("prior"), &json!(0.0)));
    for (name, exact) in [("mu", 3.0), ("twice", 6.0), ("n", 0.125f64.exp())] {
        let away = errors_away(&found["parameters"][name], exact);
        assert!(away < 5.0, "{name} is {away} standard errors away");
    }
    assert!(printed(&format!("fit {model}")).contains("none: nothing is observed, so these are draws from the prior"));
}

/// Beta(8, 4): mean 2/3, variance 2/9/13. The evidence is 1/11.
#[test]
fn every_method_finds_a_conjugate_posterior() {
    let folder = Folder::new("fit-methods");
    let model = folder.file("coin.bug", "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }");
    let data = folder.file("coin.json", r#"{"y": 7}"#);
    for method in ["auto", "mean-field", "full-rank", "mixture:2", "flow:2", "copula:1", "hvm", "nuts"] {
        for correct in ["none", "resample", "resample-move"] {
            let found = json(&format!("fit {model} --data {data} --method {method} --correct {correct} --steps 1000"));
            let theta = &found["parameters"]["theta"];
            assert!((number(&theta["mean"]) - 2.0 / 3.0).abs() < 0.015, "{method}, {correct}: {theta}");
            assert!((number(&theta["sd"]) / (2.0f64 / 117.0).sqrt() - 1.0).abs() < 0.1, "{method}, {correct}: {theta}");
            assert!((number(&found["evidence"]["log"]) + 11f64.ln()).abs() < 0.1, "{method}: {}", found["evidence"]);
        }
    }
}

#[test]
fn the_no_u_turn_sampler_needs_a_continuous_latent() {
    let folder = Folder::new("fit-nuts");
    let model = folder.file("coins.bug", "model { for (i in 1:3) { z[i] ~ dbern(0.3) } y ~ dnorm(sum(z[]), 1) }");
    let data = folder.file("coins.json", r#"{"y": 2}"#);
    let output = run(&format!("fit {model} --data {data} --eliminate none --method nuts"));
    let stderr = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr.contains("needs a continuous latent"), "{stderr}");
}

/// Catches a bound that is not computed, is that of other temperatures, or lies above the enumerated evidence; and a bound for continuous
/// latents.
#[test]
fn an_annealed_bound_is_reported() {
    let exact = number(&json(&format!("fit {}", example("sbn_exact")))["evidence"]["log"]);
    let fit = format!("fit {} --eliminate none --method mean-field --steps 300", example("sbn_exact"));
    let of = |temperatures: usize| {
        let found = json(&format!("{fit} --bound annealed:{temperatures}"));
        assert_eq!(found["annealed"]["temperatures"], json!(temperatures));
        let bound = &found["annealed"]["lower"];
        (number(&bound["value"]), number(&bound["standard_error"]), number(&found["elbo"]["value"]))
    };
    let (one, many) = (of(1), of(32));
    assert!((one.0 - one.2).abs() < 5.0 * one.1, "with one temperature it is the hierarchical ELBO: {one:?}");
    assert!(one.0 + 3.0 * one.1 < many.0 && many.0 < exact + 4.0 * many.1, "{one:?} {many:?} {exact}");
    assert!(exact - many.0 < 0.3 * (exact - one.0), "{one:?} {many:?} {exact}");
    let stdout = printed(&format!("{fit} --bound annealed:4"));
    assert!(stdout.contains("log evidence at least") && stdout.contains("with 4 temperatures"), "{stdout}");

    let folder = Folder::new("fit-annealed");
    let model = folder.file("coin.bug", "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }");
    let data = folder.file("coin.json", r#"{"y": 7}"#);
    let output = run(&format!("fit {model} --data {data} --bound annealed:4"));
    assert_ne!(output.status.code(), Some(0));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("annealed") && stderr.contains("must be discrete"), "{stderr}");
}

/// Marginalised, fitted, and some of each give the same answer.
#[test]
fn discrete_latents_that_are_not_marginalised_are_fitted() {
    let folder = Folder::new("fit-discrete");
    let model = folder
        .file("labels.bug", "model { for (i in 1:4) { z[i] ~ dbern(p) y[i] ~ dnorm(4 * z[i], 1) } p ~ dbeta(2, 2) }");
    let data = folder.file("labels.json", r#"{"y": [0.1, 3.9, 2.1, 4.2]}"#);
    let marginalised = json(&format!("fit {model} --data {data}"));
    assert_eq!(marginalised["plan"]["marginalised"], json!(["z[1:4]"]));
    let fitted = json(&format!("fit {model} --data {data} --eliminate none --steps 300"));
    assert_eq!(fitted["plan"]["marginalised"], json!([]));
    let named = json(&format!("fit {model} --data {data} --eliminate z[3],z[1] --steps 300"));
    assert_eq!(named["plan"]["marginalised"].as_array().map(Vec::len), Some(2));
    for name in ["z[1]", "z[2]", "z[3]", "z[4]", "p"] {
        let of = |found: &Value| number(&found["parameters"][name]["mean"]);
        let expected = of(&marginalised);
        assert!((of(&fitted) - expected).abs() < 0.05, "{name}: {} for {expected}", of(&fitted));
        assert!((of(&named) - expected).abs() < 0.05, "{name}: {} for {expected}", of(&named));
    }
}

#[test]
fn the_summary_has_every_field() {
    let found = json(&format!("fit {}", example("coal")));
    let keys: Vec<&String> = found.as_object().expect("an object").keys().collect();
    let documented = [
        "converged",
        "diagnostics",
        "elbo",
        "evidence",
        "fit_history",
        "khat",
        "khat_limit",
        "method",
        "model",
        "parameters",
        "plan",
        "reason",
        "schema",
        "seed",
        "steps",
        "verdict",
        "wall_seconds",
        "warnings",
    ];
    assert_eq!(keys, documented);
    assert_eq!((&found["schema"], &found["model"], &found["seed"]), (&json!(2), &json!("coal"), &json!(1)));
    assert_eq!(found["plan"]["gradient"], json!({"pathwise": ["lambda[1:2]"]}));
    for part in ["mean", "sd", "q05", "median", "q95", "mcse", "ess"] {
        assert!(found["parameters"]["lambda[1]"][part].is_number(), "{part}");
    }
}

#[test]
fn a_run_writes_its_files() {
    let folder = Folder::new("fit-run");
    let out = folder.path("run");
    let line = format!("fit {} --draws 500 --monitor lambda,k --out {}", example("coal"), out.display());
    let stdout = printed(&line);
    assert!(stdout.contains(&out.display().to_string()), "{stdout}");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let csv = read("draws.csv");
    assert_eq!(csv.lines().next(), Some("lambda[1],lambda[2],k"));
    assert_eq!(csv.lines().count(), 501);
    assert_eq!(read("CODAindex.txt").lines().last(), Some("k 1001 1500"));
    assert_eq!(read("CODAchain1.txt").lines().count(), 1500);
    assert!(std::fs::read(out.join("draws.parquet")).expect("a file").starts_with(b"PAR1"));
    assert!(read("trace.csv").lines().count() > 30);
    let config = read("config.toml");
    for line in ["draws = 500", "method = \"auto\"", "seed = 1", "monitor = \"lambda,k\"", "dialect = \"jags\""] {
        assert!(config.contains(line), "{line} is not in\n{config}");
    }
    let summary: Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    let again = json(&line);
    assert_eq!(summary["parameters"], again["parameters"]);
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let of = |threads: u8| {
        let mut found = json(&format!("fit {} --threads {threads} --seed 7", example("zip_claims")));
        found["wall_seconds"].take();
        found
    };
    let one = of(1);
    assert_eq!(one, of(2));
    let other = json(&format!("fit {} --seed 8", example("zip_claims")));
    assert_ne!(one["parameters"]["mu"], other["parameters"]["mu"]);
}

#[test]
fn monitors_select_and_arrays_are_in_order() {
    let names = |line: &str| -> Vec<String> {
        let stdout = printed(&format!("fit {} --draws 200 {line}", example("eight_schools")));
        let rows = stdout.lines().skip_while(|line| !line.starts_with("name ")).skip(2);
        rows.take_while(|line| !line.is_empty())
            .map(|line| line.split_whitespace().next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(names("--monitor sigma,theta[2:3],eta[1]"), ["sigma", "theta[2]", "theta[3]", "eta[1]"]);
    let all = names("");
    assert_eq!(all.len(), 18);
    // Parameters first; `eta` is noise that is calculated from `theta`.
    let [theta, eta] = ["theta", "eta"].map(|name| (1..=8).map(|j| format!("{name}[{j}]")).collect::<Vec<_>>());
    assert_eq!((&all[2..10], &all[10..]), (&theta[..], &eta[..]));
}

#[test]
fn data_come_from_several_files_and_starts_from_another() {
    let folder = Folder::new("fit-files");
    let model = folder.file("line.bug", "model { for (i in 1:N) { y[i] ~ dnorm(mu + d[g[i]], 1) } mu ~ dnorm(0, 0.01) d[1] <- 0 d[2] ~ dnorm(0, 0.01) }");
    let table = folder.file("table.csv", "y,g\n1.0,a\n1.2,a\n3.1,b\n2.9,b\n");
    let sizes = folder.file("sizes.R", "N <- 4\n");
    let init = folder.file("init.json", r#"{"mu": 1, "d": [null, 2]}"#);
    let output = run(&format!("fit {model} --data {table} --data {sizes} --init {init} --draws 1000"));
    let (stdout, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{noted}");
    assert!(noted.contains("Note:") && noted.contains('g'), "the coding of a text column is noted: {noted}");
    assert!(stdout.contains("4 observed nodes") && stdout.contains("2 continuous"), "{stdout}");
    let quiet = run(&format!("fit {model} --data {table} --data {sizes} --quiet --draws 100"));
    assert!(quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    let openbugs = format!("fit {model} --data {table} --data {sizes} --dialect openbugs --draws 100 --quiet");
    assert!(run(&openbugs).status.success());
}

#[test]
fn errors_have_codes_and_hints() {
    let folder = Folder::new("fit-wrong");
    let model = folder.file("p.bug", "model { for (i in 1:N) { y[i] ~ dpois(lambda) } lambda ~ dgamma(1, 1) }");
    let broken = folder.file("broken.bug", "model { lambda ~ dgamma(1, 1 }");
    let nothing = folder.file("nothing.bug", "model { y ~ dpois(2) }");
    let data = folder.file("data.json", r#"{"N": 3, "y": [1, 0, 2]}"#);
    let bare = folder.file("bare.json", r#"{"N": 3, "y": [1, NaN, 2]}"#);
    let dumped = folder.file("dumped.R", "N <- 3\ny <- c(1, NaN, 2)\n");
    let late = folder.file("late.json", r#"{"k": 500}"#);
    let negative = folder.file("negative.json", r#"{"N": 3, "y": [1, -1, 2]}"#);
    let short = folder.file("short.json", r#"{"N": 5, "y": [1, 0, 2]}"#);
    let square = folder.file("square.json", r#"{"N": 2, "y": [[1, 0], [2, 3]]}"#);
    let one = folder.file("one.json", r#"{"y": 1}"#);
    let odd = folder.file("data.xyz", "y = 1");
    let bytes = folder.path("bytes.bug");
    std::fs::write(&bytes, [0xff, 0xfe, 0x00]).expect("a file");
    let blocked = folder.file("blocked", "a file where the folder should go");
    let start = folder.file("start.json", r#"{"lambda": -1}"#);
    let cases = [
        ("fit".to_owned(), 64, "<MODEL>"),
        (format!("fit {model} --data {data} --method flows"), 64, "mixture:K"),
        (format!("fit {model} --data {data} --method mixture:0"), 64, "above 0"),
        (format!("fit {model} --data {data} --method mixture:1001"), 64, "at most 1000"),
        (format!("fit {model} --data {data} --draws 9"), 64, "at least 10 draws are needed"),
        (format!("fit {model} --data {data} --draws 400000000"), 64, "would take 14.9 GiB"),
        (format!("fit {model} --data {data} --monitor y"), 64, "`y` is observed"),
        (
            format!("fit {model} --data {data} --eliminate lambda"),
            64,
            "`lambda` cannot be marginalised: it is not discrete",
        ),
        (format!("fit {model} --data {data} --monitor lamda"), 64, "did you mean `lambda`?"),
        (format!("fit {model} --data {data} --monitor lambda[2"), 64, "closing bracket"),
        (format!("fit {model} --data {data} --eliminate q"), 64, "no latent `q`; there are: lambda"),
        (format!("fit {model} --data {data} --correct never"), 64, "resample"),
        (format!("fit {model} --data {data} --dialect winbugs"), 64, "openbugs"),
        (format!("fit {broken}"), 65, "broken.bug:1:"),
        (format!("fit {nothing} --data {one}"), 65, "nothing in the model is unknown"),
        (format!("fit {} --data {data}", bytes.display()), 65, "save it as UTF-8"),
        (format!("fit {model} --data {bare}"), 65, "a missing value is written `null`"),
        (format!("fit {model} --data {dumped}"), 65, "a missing value is written NA"),
        (format!("fit {} --init {late}", example("coal")), 65, "it must be a whole number from 1 to 112"),
        (format!("fit {model} --data {negative}"), 65, "`y[2]` is observed as -1"),
        (format!("fit {model} --data {short}"), 65, "index 4 of `y` is beyond its extent of 3"),
        (format!("fit {model} --data {square}"), 65, "`y`"),
        (format!("fit {model} --data {data} --data {data}"), 65, "in an earlier data file too"),
        (format!("fit {model} --data {odd}"), 65, "use .json, .R or .csv"),
        (format!("fit {model} --data {data} --init {start}"), 65, "`lambda` cannot start at -1"),
        (format!("fit {model}"), 65, "give `N` a value in the data"),
        ("fit nonesuch.bug".to_owned(), 66, "nonesuch.bug"),
        (format!("fit {model} --data nonesuch.json"), 66, "check the path"),
        (format!("fit {model} --data {data} --init nonesuch.R"), 66, "nonesuch.R"),
        (format!("fit {model} --data {data} --out {blocked}"), 73, "something else has that name"),
    ];
    assert_refused(cases);
}

/// The density is zero at every starting point of the search.
#[test]
fn a_fit_that_cannot_start_suggests_starting_values() {
    let folder = Folder::new("fit-start");
    let model = folder.file("far.bug", "model { x ~ dnorm(0, 1.0E-4) y ~ dnorm(log(x - 500), 100) }");
    let data = folder.file("far.json", r#"{"y": 3}"#);
    let output = run(&format!("fit {model} --data {data}"));
    assert_eq!(output.status.code(), Some(65), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("give starting values at which the data are possible with --init FILE"),
        "{}",
        text(&output.stderr)
    );
    let init = folder.file("init.json", r#"{"x": 520}"#);
    assert!(run(&format!("fit {model} --data {data} --init {init} --draws 200")).status.success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_fit_prints_its_results_and_exits_with_75() {
    use std::process::Stdio;
    let folder = Folder::new("fit-interrupt");
    let out = folder.path("run");
    let line = format!("fit {} --steps 100000000 --draws 500 --out {}", example("rats"), out.display());
    let child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("stopped early, at step") && stderr.contains("of 100000000"), "{stderr}");
    assert!(
        stdout.contains("mu.b")
            && stdout.contains("Verdict: distrust")
            && stdout.contains("the fit was stopped at step"),
        "{stdout}"
    );
    let summary = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["converged"], json!(false));
    assert!(number(&summary["steps"]) > 0.0);
}

/// Uneven weights lower the effective sample size.
#[test]
fn the_effective_sample_size_follows_the_weights() {
    let found = json(&format!("fit {} --method mean-field --correct resample", example("eight_schools")));
    let mu = &found["parameters"]["mu"];
    let ess = number(&mu["ess"]);
    assert!(ess < 3999.0, "{ess}");
    assert!((number(&mu["mcse"]) * ess.sqrt() / number(&mu["sd"]) - 1.0).abs() < 1e-9, "{mu}");
    let exact = json(&format!("fit {}", example("three_coins")));
    assert_eq!(exact["parameters"]["coin"]["ess"], json!(4000.0));
}

/// The reader of the output may close the pipe.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::process::Stdio;
    for more in ["", " --json"] {
        let line = format!("fit {}{more}", example("three_coins"));
        let mut child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success() && !text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
    }
}

#[test]
fn help_shows_examples() {
    for name in ["fit", "check"] {
        let stdout = printed(&format!("{name} --help"));
        assert!(stdout.contains("Examples:") && stdout.contains(&format!("hyperprior {name} examples/coal/model.bug")));
    }
}

/// Catches a prior that is fitted without its density, an r that belongs to another prior, and a setting that is read and ignored: every
/// bound is below the exact evidence, and what joins the spins is above mean-field.
#[test]
fn parts_estimators_and_optimisers_are_chosen_by_name() {
    let folder = Folder::new("fit-parts");
    let model = folder.file(
        "spins.bug",
        "model { for (i in 1:5) { z[i] ~ dbern(0.5) }
         for (i in 1:4) { one[i] ~ dbern(exp(1.2 * (2 * z[i] - 1) * (2 * z[i + 1] - 1) - 1.2)) } y ~ dpois(1 + 3 * z[1]) }",
    );
    let data = folder.file("spins.json", r#"{"one": [1, 1, 1, 1], "y": 3}"#);
    let of = |found: &Value| (number(&found["elbo"]["value"]), number(&found["elbo"]["standard_error"]));
    let exact = number(&json(&format!("fit {model} --data {data}"))["evidence"]["log"]);
    let fit = |options: &str| json(&format!("fit {model} --data {data} --eliminate none --correct none {options}"));
    let (mean_field, _) = of(&fit("--method mean-field"));
    assert!(mean_field < exact - 0.3, "{mean_field} {exact}");
    let parts = [
        ("--prior atoms:4", "mixture of 4 atoms", 0.3),
        ("--prior atoms:4 --estimator score", "mixture of 4 atoms", 0.3),
        ("--prior atoms:4 --optimizer rms-prop-nesterov", "mixture of 4 atoms", 0.0),
        ("--prior switches:3", "factorial mixture (3 switches) over delta", 0.0),
        ("--prior levels:2", "hierarchical (linear map) over gaussian (diagonal)", 0.0),
        ("--prior gaussian-process:6", "hierarchical (gaussian process with 6 data) over gaussian (diagonal)", 0.0),
        ("--prior coupling:4", "affine coupling flow of 4", 0.0),
        ("--prior gaussian --recursive levels", "gaussian (full)", 0.0),
    ];
    let mut numbers = Vec::new();
    for (options, prior, gain) in parts {
        let found = fit(options);
        let (elbo, error) = of(&found);
        assert_eq!(found["plan"]["prior"], json!(prior), "{options}");
        assert!(elbo < exact + 4.0 * error, "{options}: {elbo} is above {exact}");
        assert!(elbo > mean_field + gain - 0.05, "{options}: {elbo}, mean-field {mean_field}");
        numbers.push(elbo);
    }
    assert!(numbers[0] != numbers[1] && numbers[0] != numbers[2], "{numbers:?}");
    let wrong = [
        ("--prior atom:4", 64, "use diagonal, gaussian"),
        ("--recursive atoms", 64, "exact or levels"),
        ("--estimator exact", 64, "local-expectation"),
        ("--optimizer sgd", 64, "rms-prop-nesterov"),
        ("--prior mixture:3 --recursive exact", 64, "it is for mixtures of atoms"),
    ];
    let case = |(options, code, hint): (&str, i32, &'static str)| {
        (format!("fit {model} --data {data} --eliminate none {options}"), code, hint)
    };
    assert_refused(wrong.map(case));
}
