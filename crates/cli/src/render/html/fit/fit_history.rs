//! The history of the fit: the ELBO by step, the step sizes, the candidates, and whether restarts agree.

use crate::render::html::escape;
use crate::render::html::page::{Fact, facts, table};
use crate::render::html::trace::{Mark, picture};
use crate::render::terminal::Digits;
use hyperprior::fit::StepSizeStage;
use hyperprior::infer::CandidateSummary;
use hyperprior::posterior::ranges;
use hyperprior::report::{FitHistory, FitSummary};

/// The section's body; empty if nothing was approximated.
pub fn section(summary: &FitSummary, trace: &[(f64, f64)]) -> String {
    let mut out = String::new();
    let stages = summary.fit_history.as_ref().map_or(&[][..], |history| &history.stages);
    let mut at = 0;
    let marks: Vec<Mark> = stages
        .windows(2)
        .map(|pair| {
            at += pair[0].steps;
            Mark { at: at as f64, label: format!("size {}", size(pair[1].size)) }
        })
        .collect();
    let level = format!("the final ELBO, {}", nats(summary.elbo.value));
    out.push_str(&picture(trace, &marks, Some((summary.elbo.value, &level)), ["step", "ELBO"]));
    if let Some(history) = &summary.fit_history {
        out.push_str(&details(history));
    }
    out
}

fn size(size: f64) -> String {
    Digits::new(size, 0.0).show(size).trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn nats(x: f64) -> String {
    Digits::Decimals(3).show(x).replace('-', "−")
}

fn details(history: &FitHistory) -> String {
    let mut out = String::new();
    if history.stages.len() > 1 {
        let row = |(i, stage): (usize, &StepSizeStage)| {
            vec![
                (i + 1).to_string(),
                size(stage.size),
                stage.steps.to_string(),
                Digits::Decimals(2).show(stage.rhat),
                nats(stage.elbo),
                nats(stage.expected_gain),
            ]
        };
        let rows: Vec<Vec<String>> = history.stages.iter().enumerate().map(row).collect();
        out.push_str("<h3>Step sizes</h3>\n");
        out.push_str(&table("Step sizes", &["stage", "step size", "steps", "R̂", "ELBO", "expected gain"], 0, &rows));
    }
    if history.candidates.len() > 1 {
        let row = |candidate: &CandidateSummary| {
            vec![
                escape::text(&candidate.method.to_string()),
                nats(candidate.elbo),
                Digits::Decimals(2).show(candidate.khat),
                candidate.steps.to_string(),
            ]
        };
        let rows: Vec<Vec<String>> = history.candidates.iter().map(row).collect();
        out.push_str("<h3>Candidates</h3>\n");
        out.push_str(&table("Candidates", &["method", "ELBO", "k̂", "steps"], 1, &rows));
    }
    let mut lines: Vec<Fact> = Vec::new();
    if let [stage] = history.stages.as_slice() {
        lines.push((
            "steps",
            format!("{} of size {}<small>R̂ {:.2} over windows</small>", stage.steps, size(stage.size), stage.rhat),
        ));
        let gain = nats(stage.expected_gain);
        lines.push(("expected gain", format!("{gain} nats<small>from more or smaller steps</small>")));
    }
    if let Some(restarts) = &history.restarts {
        let bounds: Vec<String> = restarts.elbo.iter().map(|elbo| nats(*elbo)).collect();
        let agreement = match restarts.rhat {
            None => "no other fit came close<small>".to_owned(),
            Some(rhat) => format!("largest R̂ {rhat:.3}<small>for {}; ", escape::text(&restarts.latent)),
        };
        lines.push(("restarts", format!("{agreement}ELBOs {}</small>", bounds.join(", "))));
    }
    if history.budget_spent {
        lines.push(("budget", "spent".to_owned()));
    }
    out + &facts(&lines)
}

/// The parts of the approximation.
pub fn plan(summary: &FitSummary) -> Vec<Fact> {
    let plan = &summary.plan;
    let line = |names: &[String]| escape::text(&ranges::line(names.iter().map(String::as_str)));
    let mut facts = vec![("method", escape::text(&summary.method))];
    let recursive = if summary.has_gap() || plan.recursive.is_empty() { &plan.recursive } else { "not needed" };
    let parts = [("likelihood", plan.likelihood.as_str()), ("prior", &plan.prior), ("r", recursive)];
    facts.extend(
        parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(label, part)| (label, escape::text(part))),
    );
    for (label, names) in [("marginalised", &plan.marginalised), ("prior only", &plan.prior_only)] {
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
    fn step_sizes_and_candidates_are_listed() {
        let summary = json!({"model": "m", "method": "hvm", "elbo": {"value": -2.0, "standard_error": 0.1}, "fit_history": {
            "stages": [{"size": 0.02, "steps": 60, "rhat": 1.05, "elbo": -2.5, "expected_gain": 0.5},
                       {"size": 0.01, "steps": 40, "rhat": 1.01, "elbo": -2.0, "expected_gain": 0.01}],
            "candidates": [{"method": "full-rank", "elbo": -3.0, "khat": null, "steps": 10}, {"method": "mixture:4", "elbo": -2.0, "khat": 0.4}],
            "restarts": {"elbo": [-2.0, -2.1], "rhat": 1.002, "latent": "z<3>"}}});
        let summary: FitSummary = serde_json::from_value(summary).expect("a summary");
        let trace: Vec<(f64, f64)> = (1..=100).map(|i| (f64::from(i), -3.0 + f64::from(i) / 100.0)).collect();
        let html = section(&summary, &trace);
        // The second stage begins at step 60 of 100.
        assert!(html.contains("left:60.00%\">size 0.01"), "{html}");
        assert!(html.contains("mixture:4") && html.contains("z&lt;3&gt;") && html.contains("−2.100"), "{html}");
        assert!(html.contains("<td class=\"number\">–</td>"), "{html}");
    }
}
