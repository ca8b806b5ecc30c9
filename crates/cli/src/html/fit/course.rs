//! How the fit went: the bound by step, the rounds, what was tried, and whether fits from elsewhere agree.

use crate::html::escape;
use crate::html::page::{Fact, facts, table};
use crate::html::read::{Course, FitSummary, Round, Tried};
use crate::html::trace::{Mark, picture};
use crate::names;
use crate::render::Digits;

/// The section's body; nothing where nothing was approximated.
pub fn section(summary: &FitSummary, trace: &[(f64, f64)]) -> String {
    let mut out = String::new();
    let rounds = summary.course.as_ref().map_or(&[][..], |course| &course.rounds);
    let mut at = 0;
    let marks: Vec<Mark> = rounds
        .windows(2)
        .map(|pair| {
            at += pair[0].steps;
            Mark { at: at as f64, said: format!("size {}", size(pair[1].size)) }
        })
        .collect();
    let level = format!("the bound in the end, {}", nats(summary.elbo.value));
    out.push_str(&picture(trace, &marks, Some((summary.elbo.value, &level)), ["step", "bound"]));
    if let Some(course) = &summary.course {
        out.push_str(&told(course));
    }
    out
}

fn size(size: f64) -> String {
    Digits::new(size, 0.0).show(size).trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn nats(x: f64) -> String {
    Digits::Decimals(3).show(x).replace('-', "−")
}

fn told(course: &Course) -> String {
    let mut out = String::new();
    if course.rounds.len() > 1 {
        let row = |(i, round): (usize, &Round)| {
            vec![
                (i + 1).to_string(),
                size(round.size),
                round.steps.to_string(),
                Digits::Decimals(2).show(round.rhat),
                nats(round.elbo),
                nats(round.to_gain),
            ]
        };
        let rows: Vec<Vec<String>> = course.rounds.iter().enumerate().map(row).collect();
        out.push_str("<h3>Rounds</h3>\n");
        out.push_str(&table("Rounds", &["round", "step size", "steps", "R̂", "bound", "to gain"], 0, &rows));
    }
    if course.tried.len() > 1 {
        let row = |tried: &Tried| {
            vec![
                escape::text(&tried.method),
                nats(tried.elbo),
                Digits::Decimals(2).show(tried.khat),
                tried.steps.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = course.tried.iter().map(row).collect();
        out.push_str("<h3>Approximations that were tried</h3>\n");
        out.push_str(&table("Approximations that were tried", &["method", "bound", "k̂", "steps"], 1, &rows));
    }
    let mut lines: Vec<Fact> = Vec::new();
    if let [round] = course.rounds.as_slice() {
        lines.push((
            "steps",
            format!("{} of size {}<small>R̂ {:.2} over windows</small>", round.steps, size(round.size), round.rhat),
        ));
        lines.push(("to gain", format!("{} nats<small>by more or smaller steps</small>", nats(round.to_gain))));
    }
    if let Some(restarts) = &course.restarts {
        let bounds: Vec<String> = restarts.elbo.iter().map(|elbo| nats(elbo.unwrap_or(f64::NAN))).collect();
        let agreement = match restarts.rhat.is_nan() {
            true => "none came as high<small>".to_owned(),
            false => format!("R̂ {:.3} at most<small>that of {}; ", restarts.rhat, escape::text(&restarts.latent)),
        };
        lines.push(("restarts", format!("{agreement}bounds {}</small>", bounds.join(", "))));
    }
    if course.budget_spent {
        lines.push(("budget", "spent".to_owned()));
    }
    out + &facts(&lines)
}

/// What the approximation was put together from.
pub fn plan(summary: &FitSummary) -> Vec<Fact> {
    let plan = &summary.plan;
    let line = |names: &[String]| escape::text(&names::line(names.iter().map(String::as_str)));
    let mut facts = vec![("method", escape::text(&summary.method))];
    let recursive = if summary.has_gap() || plan.recursive.is_empty() { &plan.recursive } else { "none needed" };
    let parts = [("likelihood", plan.likelihood.as_str()), ("prior", &plan.prior), ("r", recursive)];
    facts.extend(
        parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(label, part)| (label, escape::text(part))),
    );
    for (label, names) in [("summed out", &plan.eliminated), ("from its law", &plan.from_law)] {
        if !names.is_empty() {
            facts.push((label, line(names)));
        }
    }
    let gradient =
        plan.gradient.iter().map(|(how, names)| format!("{}<small>{}</small>", escape::text(how), line(names)));
    let gradient: String = gradient.collect();
    if !gradient.is_empty() {
        facts.push(("gradient", gradient));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rounds_and_rungs_are_told() {
        let summary = json!({"model": "m", "method": "hvm", "elbo": {"value": -2.0, "standard_error": 0.1}, "course": {
            "rounds": [{"size": 0.02, "steps": 60, "rhat": 1.05, "elbo": -2.5, "to_gain": 0.5},
                       {"size": 0.01, "steps": 40, "rhat": 1.01, "elbo": -2.0, "to_gain": 0.01}],
            "tried": [{"method": "full-rank", "elbo": -3.0, "khat": null, "steps": 10}, {"method": "<b>", "elbo": -2.0, "khat": 0.4}],
            "restarts": {"elbo": [-2.0, -2.1], "rhat": 1.002, "latent": "z<3>"}}});
        let summary: FitSummary = serde_json::from_value(summary).expect("a summary");
        let trace: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i), -3.0 + f64::from(i) / 100.0)).collect();
        let html = section(&summary, &trace);
        // The second round begins at step 60 of the picture's 100.
        assert!(html.contains("left:60.00%\">size 0.01"), "{html}");
        assert!(html.contains("&lt;b&gt;") && html.contains("z&lt;3&gt;") && html.contains("−2.100"), "{html}");
        assert!(html.contains("<td class=\"number\">–</td>"), "{html}");
    }
}
