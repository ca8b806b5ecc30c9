//! Posterior predictive checks and leave-one-out cross-validation.

use crate::render::html::escape;
use crate::render::html::page::{Fact, facts, table};
use crate::render::terminal::{Digits, estimate};
use hyperprior::objective::Estimate;
use hyperprior::posterior::PpcArray;
use hyperprior::report::{FitSummary, LooSummary, Worst};

/// The section's body; empty if neither was requested.
pub fn section(summary: &FitSummary) -> String {
    let predictive = summary.predictive.as_deref().filter(|arrays| !arrays.is_empty()).map(predictive);
    let loo = summary.loo.as_ref().map(loo);
    predictive.unwrap_or_default() + &loo.unwrap_or_default()
}

fn predictive(arrays: &[PpcArray]) -> String {
    let mut rows = Vec::new();
    for array in arrays {
        for s in &array.statistics {
            let digits = Digits::new(s.mean, (s.q95 - s.q05) / 3.0);
            let numbers = [s.data, s.mean, s.q05, s.q95].map(|x| digits.show(x).replace('-', "−"));
            let tail = if s.tail < 0.01 {
                format!("<strong>{:.4}</strong>", s.tail)
            } else {
                Digits::Decimals(2).show(s.tail)
            };
            let named =
                [escape::text(&array.array), escape::text(&s.statistic.to_string()), strip(s.data, s.q05, s.q95)];
            rows.push(named.into_iter().chain(numbers).chain([tail]).collect());
        }
    }
    let header = ["name", "statistic", "data among replications", "data", "model", "5%", "95%", "tail"];
    let note = "<p class=\"note\">The line covers 90 % of the replicated data sets, and the dot is the data. A tail probability near 0 \
                means that the model does not reproduce this statistic.</p>";
    format!("<h3>Posterior predictive check</h3>\n{}{note}\n", table("Posterior predictive check", &header, 3, &rows))
}

/// The model's 90 % interval with the data as a dot.
fn strip(data: f64, low: f64, high: f64) -> String {
    let all = [data, low, high];
    if !all.iter().all(|x| x.is_finite()) {
        return String::new();
    }
    let (from, to) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
    let place = |x: f64| if to > from { 6.0 + 108.0 * (x - from) / (to - from) } else { 60.0 };
    let [data, low, high] = all.map(place);
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 120 20\" aria-hidden=\"true\"><path class=\"interval\" d=\"M{low:.1} 10H{high:.1}\"/>\
         <circle cx=\"{data:.1}\" cy=\"10\" r=\"3.5\"/></svg>"
    )
}

fn loo(loo: &LooSummary) -> String {
    let shown = |value, standard_error| estimate(Estimate { value, standard_error }).replace('-', "−");
    let above = match loo.khat_above {
        0 => format!("below its limit of {:.2} for all", loo.khat_limit),
        above => format!("above its limit of {:.2} for {above} of {}", loo.khat_limit, loo.units),
    };
    let mut lines: Vec<Fact> = vec![
        ("elpd", shown(loo.elpd_loo, loo.elpd_loo_standard_error)),
        ("effective parameters", Digits::Decimals(2).show(loo.p_loo)),
        ("k̂", above),
    ];
    if let Some(waic) = &loo.waic {
        lines.push(("elpd by WAIC", shown(waic.elpd_waic, waic.elpd_waic_standard_error)));
    }
    let row = |worst: &Worst| {
        vec![
            escape::text(&worst.name),
            Digits::Decimals(2).show(worst.khat),
            Digits::Decimals(3).show(worst.elpd).replace('-', "−"),
        ]
    };
    let worst: Vec<Vec<String>> = loo.worst.iter().map(row).collect();
    let worst = if worst.is_empty() {
        String::new()
    } else {
        table("Most influential observations", &["observation", "k̂", "elpd"], 1, &worst)
    };
    format!("<h3>Leave-one-out cross-validation, {} observations</h3>\n{}{worst}", loo.units, facts(&lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn extreme_data_are_highlighted() {
        let summary = json!({"model": "m", "method": "hvm",
            "predictive": [{"array": "y<", "statistics": [
                {"statistic": "max", "data": 9.0, "mean": 2.0, "q05": 1.0, "q95": 3.0, "tail": 0.001},
                {"statistic": "zeros", "data": 0.0, "mean": 0.0, "q05": 0.0, "q95": 0.0, "tail": 1.0}]}],
            "loo": {"elpd_loo": -172.27, "elpd_loo_standard_error": 8.05, "p_loo": 2.07, "units": 112, "khat_limit": 0.7,
                    "khat_above": 1, "worst": [{"name": "y[3]", "khat": 0.9, "elpd": -7.0}], "waic": null}});
        let html = section(&serde_json::from_value(summary).expect("a summary"));
        // The data are at the right end, and the model's interval covers the first quarter.
        assert!(html.contains("d=\"M6.0 10H33.0\"/><circle cx=\"114.0\""), "{html}");
        assert!(
            html.contains("<strong>0.0010</strong>") && html.contains("y&lt;") && html.contains("share of zeros"),
            "{html}"
        );
        assert!(html.contains("−172.3 ± 8.1") && html.contains("for 1 of 112") && html.contains("y[3]"), "{html}");
    }
}
