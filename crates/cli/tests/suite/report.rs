//! `report.html`: written by a run, rebuilt from its files, and opened in a browser if there is one.

use crate::support::browser::{Browser, chromium};
use crate::support::{Folder, example, printed, run, text};
use serde_json::{Value, json};
use std::path::Path;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// A fit writes its report, and `report` rebuilds the same from the files, also without the Parquet file.
#[test]
fn a_report_is_rebuilt_from_the_files() {
    let folder = Folder::new("report-rebuilt");
    let fit = folder.path("fit");
    printed(&format!("fit {} --draws 500 --loo --ppc --quiet --out {}", example("coal"), fit.display()));
    let first = read(&fit.join("report.html"));
    for part in [
        "<strong>Trust</strong>",
        "Reason: every latent was integrated out by adaptive quadrature",
        "its limit of",
        "lambda[1]",
        "hyperprior rerun",
    ] {
        assert!(first.contains(part), "{part}");
    }
    assert!(first.len() < 1_000_000 && !first.contains("http:") && !first.contains("https:"), "{}", first.len());
    let path = printed(&format!("report {}", fit.display()));
    assert_eq!(path.trim(), fit.join("report.html").display().to_string());
    assert_eq!(read(&fit.join("report.html")), first);
    std::fs::remove_file(fit.join("draws.parquet")).expect("a file");
    printed(&format!("report {}", fit.display()));
    assert_eq!(read(&fit.join("report.html")), first);
    for name in ["draws.csv", "trace.csv", "config.toml"] {
        std::fs::remove_file(fit.join(name)).expect("a file");
    }
    printed(&format!("report {}", fit.display()));
    let bare = read(&fit.join("report.html"));
    assert!(bare.contains("<strong>Trust</strong>") && !bare.contains(">Dependence</h2>"), "{}", bare.len());
}

#[test]
fn a_reference_fit_is_compared() {
    let folder = Folder::new("report-compared");
    let [one, two] = ["one", "two"].map(|name| folder.path(name));
    printed(&format!("fit {} --draws 500 --quiet --out {}", example("eight_schools"), one.display()));
    let line = format!("fit {} --draws 500 --method mean-field --correct none", example("eight_schools"));
    printed(&format!("{line} --quiet --out {}", two.display()));
    printed(&format!("report {} --compare-with {}", one.display(), two.display()));
    let report = read(&one.join("report.html"));
    assert!(
        report.contains("Right: <b>mean-field (two)</b>") && report.contains("class=\"pairs compared\""),
        "{}",
        report.len()
    );
}

#[test]
fn a_folder_that_is_not_a_run_is_refused() {
    let folder = Folder::new("report-refused");
    let refused = |code: i32, hint: &str, name: &str| {
        let output = run(&format!("report {}", folder.path(name).display()));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(hint), "{error}");
    };
    refused(66, "summary.json", "nothing");
    for (name, summary) in [("other", r#"{"schema": 1}"#), ("broken", "{"), ("odd", r#"{"model": 1, "method": []}"#)] {
        std::fs::create_dir_all(folder.path(name)).expect("a folder");
        folder.file(&format!("{name}/summary.json"), summary);
        refused(65, "cannot make a report from", name);
    }
}

/// A browser, if there is one; `./check` installs one.
fn browser(name: &str) -> Option<(Browser, Folder)> {
    let folder = Folder::new(name);
    let Some(chromium) = chromium() else {
        eprintln!("skipped: Chromium is not installed");
        return None;
    };
    Some((Browser::start(&chromium, &folder.path("browser")), folder))
}

/// The tests below rely on this: errors, requests and too wide a page are detected.
#[test]
fn faults_of_a_page_are_detected() {
    let Some((mut browser, folder)) = browser("report-faults") else { return };
    let faults =
        "<p style='width:900px'>wide</p><script src='missing.js'></script><script>throw new Error('a fault')</script>";
    let page = folder.file("page.html", faults);
    browser.open(Path::new(&page));
    browser.width(390);
    assert!(browser.value("document.documentElement.scrollWidth").as_u64() > Some(390));
    assert!(browser.requests.iter().any(|url| url.ends_with("missing.js")), "{:?}", browser.requests);
    assert!(browser.errors.iter().any(|error| error.contains("a fault")), "{:?}", browser.errors);
}

/// No errors, no requests except for the page itself, and no page wider than its window.
fn assert_sound(browser: &mut Browser, path: &Path) {
    let own = format!("file://{}", path.display());
    let others: Vec<&String> =
        browser.requests.iter().filter(|url| **url != own && !url.starts_with("data:")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(browser.requests.contains(&own), "the page was not requested");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    for width in [390, 768, 1200] {
        browser.width(width);
        let wide = browser.value("document.documentElement.scrollWidth").as_u64().expect("a width");
        assert!(wide <= u64::from(width), "at {width}: {wide}");
    }
    browser.width(1200);
}

const NAMES: &str = "[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)";

/// The first column of numbers.
const MEANS: &str =
    "[...document.querySelectorAll('#table tbody tr')].map(tr => tr.querySelector('td.number').textContent)";

fn numbers(value: &Value) -> Vec<f64> {
    let number = |x: &Value| x.as_str().expect("text").replace('−', "-").parse::<f64>().expect("a number");
    value.as_array().expect("a list").iter().map(number).collect()
}

#[test]
fn the_report_of_a_fit_works_in_a_browser() {
    let Some((mut browser, folder)) = browser("report-fit") else { return };
    let fit = folder.path("fit");
    printed(&format!("fit {} --draws 500 --quiet --out {}", example("hmm_quakes"), fit.display()));
    let report = fit.join("report.html");
    browser.open(&report);
    assert_sound(&mut browser, &report);
    let names = browser.value(NAMES);
    assert_eq!(names[0], json!("A[1,1]"));
    assert_eq!(names.as_array().map(Vec::len), Some(40));
    let click = |column: usize| format!("document.querySelectorAll('#table thead button')[{column}].click()");
    // By the mean, ascending and descending, then in the original order.
    for sign in [1.0, -1.0] {
        browser.value(&click(1));
        let means = numbers(&browser.value(MEANS));
        assert!(means.is_sorted_by(|a, b| sign * a <= sign * b), "{means:?}");
        let order = browser.value("document.querySelectorAll('#table thead th')[2].getAttribute('aria-sort')");
        assert_eq!(order, json!(if sign > 0.0 { "ascending" } else { "descending" }));
    }
    browser.value(&click(1));
    assert_eq!(browser.value(NAMES), names);
    // By name with the keyboard: z[107] comes after z[26].
    browser.value("document.querySelector('#table thead button').focus()");
    browser.key("Enter");
    browser.key("Enter");
    assert_eq!(browser.value(NAMES)[0], json!("z[107]"));
    browser.value(&click(0));
    // Filtered, then all.
    browser.value("document.getElementById('filter').focus()");
    browser.write("LAMBDA");
    assert_eq!(browser.value(NAMES), json!(["lambda[1]", "lambda[2]", "lambda[3]"]));
    assert_eq!(browser.value("document.getElementById('count').textContent"), json!("3 of 121 parameters"));
    let all = "(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); \
               document.getElementById('more').click(); return document.querySelectorAll('#table tbody tr').length; })()";
    assert_eq!(browser.value(all), json!(121));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A thousand parameters whose names contain markup: the page is small and quick, and does not run their scripts.
#[test]
fn a_large_report_of_hostile_names_stays_quick() {
    let Some((mut browser, folder)) = browser("report-large") else { return };
    let name =
        |i: usize| format!("<img src=x onerror=\"window.broken=1\"></script><script>window.broken=1</script>{i}");
    let parameters: serde_json::Map<String, Value> = (0..1000)
        .map(|i| {
            (
                name(i),
                json!({"mean": i as f64, "sd": 1.0, "q05": 0.0, "median": 1.0, "q95": 2.0, "mcse": 0.1, "ess": 10.0}),
            )
        })
        .collect();
    let summary = json!({"model": name(0), "method": name(1), "verdict": "distrust", "reason": name(2), "warnings": [name(3)],
        "parameters": parameters, "plan": {"marginalised": [name(4)], "gradient": {name(5): [name(6)]}},
        "fit_history": {"restarts": {"elbo": [1.0], "rhat": 1.0, "latent": name(7)}}});
    std::fs::create_dir_all(folder.path("run")).expect("a folder");
    folder.file("run/summary.json", &summary.to_string());
    let columns: Vec<String> = (0..1000).map(|i| format!("\"{}\"", name(i).replace('"', "\"\""))).collect();
    let row = |s: usize| (0..1000).map(|i| format!("{:?}", ((s * (i + 7)) % 101) as f64)).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..200).map(row).collect();
    folder.file("run/draws.csv", &format!("{}\n{}\n", columns.join(","), rows.join("\n")));
    folder.file("run/config.toml", &name(8));
    printed(&format!("report {}", folder.path("run").display()));
    let report = folder.path("run/report.html");
    let len = read(&report).len();
    assert!(len < 3_000_000, "{len} bytes");
    browser.open(&report);
    assert_sound(&mut browser, &report);
    assert_eq!(browser.value("window.broken === undefined && document.images.length === 0"), json!(true));
    let sorted = "(() => { const began = performance.now(); document.querySelectorAll('#table thead button')[1].click(); \
                  document.querySelectorAll('#table thead button')[1].click(); document.body.offsetHeight; \
                  return performance.now() - began; })()";
    let milliseconds = browser.value(sorted).as_f64().expect("a time");
    assert!(milliseconds < 1000.0, "two sorts took {milliseconds} ms");
    assert_eq!(numbers(&browser.value(MEANS))[0], 999.0);
    assert_eq!(browser.value("document.querySelectorAll('#table tbody tr').length"), json!(40));
    browser.value("document.getElementById('all').click()");
    assert_eq!(browser.value("document.querySelectorAll('#table tbody tr').length"), json!(1000));
    assert_sound(&mut browser, &report);
}

#[test]
fn the_explorer_of_topics_works_in_a_browser() {
    let Some((mut browser, folder)) = browser("report-topics") else { return };
    let run = folder.path("topics");
    printed(&format!("topics bible --layers 8,3 --epochs 3 --quiet --out {}", run.display()));
    let report = run.join("report.html");
    assert!(read(&report).len() < 1_000_000);
    browser.open(&report);
    assert_sound(&mut browser, &report);
    let heading = "document.querySelector('#detail h3').textContent";
    let seen = "[...document.querySelectorAll('#tree [role=treeitem]')].filter(i => i.offsetParent !== null).length";
    assert_eq!(browser.value(heading), json!("Theme 1"));
    let open = browser.value(seen).as_u64().expect("a count");
    // From the first theme down to the words of its first topic, with the keyboard.
    browser.value("document.querySelector('#tree [tabindex=\"0\"]').focus()");
    for key in ["ArrowDown", "ArrowRight"] {
        browser.key(key);
    }
    assert_eq!(browser.value(seen).as_u64(), Some(open + 8));
    browser.key("Enter");
    assert!(browser.value(heading).as_str().is_some_and(|text| text.starts_with("Topic ")));
    browser.key("ArrowLeft");
    assert_eq!(browser.value(seen).as_u64(), Some(open));
    // A click on a document shows its topics, and a click on a topic shows that topic.
    let documents = "[...document.querySelectorAll('#detail .link:not(.back)')].pop()";
    let name = browser.value(&format!("{documents}.textContent"));
    browser.value(&format!("{documents}.click()"));
    assert_eq!(browser.value(heading), name);
    browser.value("document.querySelector('#detail .link').click()");
    assert!(browser.value(heading).as_str().is_some_and(|text| text.starts_with("Topic ")));
    // The search finds documents by name.
    browser.value("document.getElementById('search').focus()");
    browser.write("solomon 3");
    assert_eq!(browser.value("document.querySelectorAll('#results button').length"), json!(1));
    browser.value("document.querySelector('#results button').click()");
    assert_eq!(browser.value(heading), json!("Song of Solomon 3"));
    browser.value("document.getElementById('close').click()");
    assert!(browser.value(seen).as_u64() < Some(open));
    browser.value("document.getElementById('open').click()");
    assert!(browser.value(seen).as_u64() > Some(open));
    assert_sound(&mut browser, &report);
}
