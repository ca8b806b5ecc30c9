//! The verdict, its reason, and the numbers behind it.

use crate::render::html::escape;
use crate::render::html::page::{Fact, facts};
use crate::render::terminal::estimate;
use hyperprior::diagnostics::Verdict;
use hyperprior::objective::Estimate;
use hyperprior::report::{Estimator, FitSummary};
use std::fmt::Write as _;

/// The end of the scale for k̂; from 1 on, weights have no mean.
const KHAT_END: f64 = 1.2;

/// The section's body.
pub fn section(summary: &FitSummary) -> String {
    let mut out = verdict(summary);
    out.push_str(&facts(&bounds(summary)));
    out.push_str(&warnings(summary));
    out
}

fn verdict(summary: &FitSummary) -> String {
    let (class, word, meaning) = match summary.verdict {
        Some(Verdict::Trust) => ("trust", "Trust", "You can rely on means, standard deviations and probabilities."),
        Some(Verdict::MeansOnly) => {
            ("means", "Means only", "Do not rely on standard deviations, tails or probabilities.")
        }
        Some(Verdict::Distrust) => ("distrust", "Distrust", "Do not rely on these numbers."),
        None => return String::new(),
    };
    let reason = match &summary.reason {
        Some(reason) => format!("<p class=\"reason\">Reason: {}.</p>", escape::text(reason)),
        None => String::new(),
    };
    format!(
        "<div class=\"verdict {class}\"><p><span class=\"label\">Verdict</span><strong>{word}</strong></p>\
         <div><p>{meaning}</p>{reason}</div></div>\n"
    )
}

fn bounds(summary: &FitSummary) -> Vec<Fact> {
    let shown = |value, standard_error| estimate(Estimate { value, standard_error }).replace('-', "−");
    let mut facts = Vec::new();
    if let (None, Some(evidence)) = (summary.khat, &summary.evidence) {
        // Nothing was approximated by a distribution.
        let by = match evidence.by {
            Estimator::Quadrature => "quadrature",
            Estimator::BridgeSampling => "bridge sampling",
            _ => "exact",
        };
        facts.push(("log evidence", format!("{} ({by})", shown(evidence.log, evidence.standard_error))));
        return facts;
    }
    let elbo = &summary.elbo;
    let upper = elbo
        .upper
        .filter(|_| summary.has_gap())
        .map(|upper| format!("<small>at most {upper:.3} with a perfect r</small>").replace('-', "−"));
    // Where latents were integrated out, nothing was approximated by a distribution with a bound.
    if summary.integration.is_none() {
        facts.push(("ELBO", shown(elbo.value, elbo.standard_error) + &upper.unwrap_or_default()));
    }
    if let Some(annealed) = &summary.annealed {
        let bound = shown(annealed.lower.value, annealed.lower.standard_error);
        facts.push(("annealed bound", format!("{bound}<small>annealed:{}</small>", annealed.temperatures)));
    }
    if let Some(evidence) = &summary.evidence {
        facts.push((
            "log evidence",
            match summary.is_evidence_good() {
                true => shown(evidence.log, evidence.standard_error),
                false => {
                    format!("at least {:.3}<small>the estimate is unreliable</small>", evidence.log).replace('-', "−")
                }
            },
        ));
    }
    if let Some(khat) = summary.khat {
        facts.push(("k̂", gauge(khat, summary.khat_limit)));
    }
    facts
}

/// A number on a scale, with its limit.
fn gauge(khat: f64, limit: Option<f64>) -> String {
    let place = |x: f64| 100.0 * (x / KHAT_END).clamp(0.0, 1.0);
    let Some(limit) = limit else { return format!("{khat:.2}") };
    let (side, class) = if khat <= limit { ("below", "good") } else { ("above", "bad") };
    format!(
        "{khat:.2}<small>{side} its limit of {limit:.2}</small><span class=\"gauge {class}\" aria-hidden=\"true\">\
         <i style=\"width:{:.1}%\"></i><b style=\"left:{:.1}%\"></b></span>",
        place(khat),
        place(limit)
    )
}

fn warnings(summary: &FitSummary) -> String {
    let is_other = |warning: &&String| Some(*warning) != summary.reason.as_ref();
    let mut items = String::new();
    for warning in summary.warnings.iter().filter(is_other) {
        let _ = write!(items, "<li>{}.</li>", escape::text(warning.trim_end_matches('.')));
    }
    if items.is_empty() { items } else { format!("<div class=\"warnings\"><h2>Warnings</h2><ul>{items}</ul></div>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(changes: serde_json::Value) -> String {
        let mut summary = json!({"model": "m", "method": "hvm", "converged": true, "khat": 0.21, "khat_limit": 0.7, "verdict": "trust",
            "reason": "it converged", "elbo": {"value": -3.25, "standard_error": 0.01, "upper": -3.25},
            "evidence": {"log": -3.2, "standard_error": 0.01}});
        for (key, value) in changes.as_object().expect("an object") {
            summary[key] = value.clone();
        }
        section(&serde_json::from_value(summary).expect("a summary"))
    }

    #[test]
    fn the_reason_of_the_verdict_is_shown_once() {
        let html = said(
            json!({"verdict": "distrust", "reason": "<the> bound rose", "warnings": ["<the> bound rose", "a & b"]}),
        );
        assert!(html.contains("<strong>Distrust</strong>"), "{html}");
        assert_eq!(html.matches("&lt;the&gt; bound rose").count(), 1, "{html}");
        assert!(html.contains("<li>a &amp; b.</li>"), "{html}");
        assert!(!said(json!({})).contains("Warnings"));
    }

    #[test]
    fn the_evidence_is_a_lower_bound_if_khat_is_high() {
        let html = said(json!({}));
        assert!(html.contains("−3.200 ± 0.010") && html.contains("below its limit of 0.70"), "{html}");
        let html = said(json!({"khat": 0.9, "verdict": "distrust"}));
        assert!(html.contains("at least −3.200") && html.contains("above its limit of 0.70"), "{html}");
        // The ELBO of a trusted fit is nearly as high; then, it is not.
        assert!(!said(json!({"khat": 0.9})).contains("at least"));
        assert!(
            said(json!({"khat": 0.9, "elbo": {"value": -4.0, "standard_error": 0.01}})).contains("at least −3.200")
        );
        let html = said(json!({"khat": null, "elbo": {"value": -3.2, "standard_error": 0.0}}));
        assert!(html.contains("(exact)") && !html.contains(">ELBO<"), "{html}");
    }
}
