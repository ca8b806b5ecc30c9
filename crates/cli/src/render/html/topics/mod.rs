//! The report of a topics run: the hierarchy from the top layer down to words, with the documents.

mod explorer;
mod read;

use super::page::{Fact, Page, facts};
use super::read::Run;
use super::trace::picture;
use super::{escape, repeat};
use crate::error::CliError;
use crate::topics::{duration, grouped};
use explorer::Explorer;
use read::Summary;
use std::fmt::Write as _;

/// The whole file.
pub fn report(run: &Run) -> Result<String, CliError> {
    let summary = read::summary(run)?;
    let mut page = Page::new(&summary.corpus, &subtitle(&summary));
    add(&mut page, run)?;
    page.section("training", "Training", picture(&run.trace()?, &[], None, ["epoch", "Objective per word"]));
    page.section("repeat", "Reproduce", repeat::section(run)?);
    Ok(page.html())
}

/// Adds the topics to a page.
pub fn add(page: &mut Page, run: &Run) -> Result<(), CliError> {
    let summary = read::summary(run)?;
    let topics = read::topics(run)?;
    let documents = read::documents(run, topics.topics.len())?;
    let explorer = Explorer::new(&topics, &documents);
    page.section("about", "", about(&summary, topics.background_share));
    page.section("explorer", "Topics", FRAME.to_owned());
    page.script("explorer-data", &escape::json(&explorer)?, include_str!("../assets/explorer.js"));
    Ok(())
}

fn subtitle(summary: &Summary) -> String {
    let mut parts = vec![
        format!("{} documents", grouped(summary.documents)),
        format!("{} terms", grouped(summary.terms)),
        format!("{} words", grouped(summary.tokens)),
    ];
    if summary.heldout_documents > 0 {
        parts.push(format!("{} held-out documents", grouped(summary.heldout_documents)));
    }
    parts.push(format!("seed {}", summary.seed));
    parts.join(" · ")
}

fn about(summary: &Summary, background: f64) -> String {
    let chosen = summary.choice.as_ref().map_or_else(String::new, |choice| format!(": {}", choice.method));
    let method = format!("{}{chosen}, {} weights", escape::text(&summary.method), escape::text(&summary.weights));
    let mut lines: Vec<Fact> = vec![("method", method)];
    let layers: Vec<String> = summary
        .layers
        .iter()
        .zip(&summary.families)
        .map(|(width, family)| format!("{width} {}", escape::text(family)))
        .collect();
    if !layers.is_empty() {
        lines.insert(0, ("layers, bottom first", layers.join(", ")));
    }
    if let Some(dependent) = summary.dependent_documents {
        lines.push(("documents that keep dependence", grouped(dependent)));
    }
    if let Some(elbo) = summary.elbo {
        lines.push(("ELBO", format!("{elbo:.4} per word").replace('-', "−")));
    }
    if let (Some(found), Some(unigram)) = (summary.heldout_perplexity, summary.unigram_perplexity) {
        lines
            .push(("perplexity of hidden word types", format!("{found:.0}<small>{unigram:.0} without topics</small>")));
    }
    if let (Some(found), Some(unigram)) = (summary.completion_perplexity, summary.completion_unigram_perplexity) {
        lines.push(("perplexity of hidden words", format!("{found:.0}<small>{unigram:.0} without topics</small>")));
    }
    lines.push(("background", format!("{:.1} % of the words", 100.0 * background)));
    let time = summary.wall_seconds.map_or_else(String::new, |seconds| format!("<small>{}</small>", duration(seconds)));
    lines.push(("epochs", format!("{}{time}", summary.epochs)));
    let mut out = facts(&lines);
    let mut items = String::new();
    for warning in &summary.warnings {
        let _ = write!(items, "<li>{}.</li>", escape::text(warning.trim_end_matches('.')));
    }
    if !items.is_empty() {
        let _ = write!(out, "<div class=\"warnings\"><h2>Warnings</h2><ul>{items}</ul></div>");
    }
    out
}

/// The frame that the script fills.
const FRAME: &str = "\
<div class=\"tools\"><label for=\"search\">Search words and documents</label> <input id=\"search\" type=\"search\" autocomplete=\"off\" \
spellcheck=\"false\"> <button type=\"button\" class=\"plain\" id=\"open\">Open all</button> \
<button type=\"button\" class=\"plain\" id=\"close\">Close all</button> <span id=\"found\" role=\"status\" aria-live=\"polite\"></span></div>
<div class=\"explorer\"><div><ul id=\"results\" hidden></ul><ul id=\"tree\" role=\"tree\" aria-label=\"Topics\"></ul></div>
<div id=\"detail\" role=\"region\" aria-label=\"Details\" tabindex=\"-1\"></div></div>
<noscript><p class=\"note\">The explorer needs JavaScript; the topics are in topics.json.</p></noscript>";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_facts_and_warnings_are_shown() {
        let summary = json!({"corpus": "<b>", "families": ["poisson"], "method": "hvm", "weights": "gamma", "documents": 1189,
            "choice": {"method": "mixture:8", "documents": 90, "candidates": []},
            "heldout_perplexity": 900.4, "unigram_perplexity": 1100.0, "elbo": -7.0, "warnings": ["a < b"]});
        let summary: Summary = serde_json::from_value(summary).expect("a summary");
        let html = about(&summary, 0.02);
        assert!(html.contains("900<small>1100 without topics") && html.contains("2.0 % of the words"), "{html}");
        assert!(html.contains("hvm: mixture:8, gamma weights"), "{html}");
        assert!(html.contains("<li>a &lt; b.</li>") && subtitle(&summary).starts_with("1,189 documents"), "{html}");
    }
}
