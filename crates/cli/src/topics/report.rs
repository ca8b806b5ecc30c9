//! The report of a topics run as text.

use super::layers::describe;
use super::perplexity::Perplexity;
use super::summary::TopicsReport;
use crate::render::terminal::table;
use hyperprior_def::heldout::Heldout;
use hyperprior_def::topics::{Theme, Topic, Word};
use hyperprior_def::{Candidate, Choice, Gain, Method};
use std::fmt::Write as _;

/// The largest number of topics shown per layer.
const ROWS: usize = 50;

/// The whole report.
pub fn report(summary: &TopicsReport) -> String {
    let mut out = format!("{}\n\n", corpus(summary));
    for (label, text) in facts(summary) {
        let _ = writeln!(out, "{label:<10}  {text}");
    }
    if let Some(perplexity) = &summary.heldout.perplexity {
        let _ = write!(out, "\n{}", perplexities(perplexity));
    }
    if let Some(choice) = summary.training.choice().filter(|choice| !choice.candidates.is_empty()) {
        let _ = write!(out, "\n{}", candidates(choice));
    }
    for (i, warning) in summary.warnings().iter().enumerate() {
        let _ = writeln!(out, "{}Warning: {warning}.", if i == 0 { "\n" } else { "" });
    }
    let _ = write!(out, "\n{}", topics(&summary.topics.topics));
    for (above, themes) in summary.topics.themes.iter().enumerate() {
        let _ = write!(out, "\n{}", upper(above + 2, themes));
    }
    out
}

fn corpus(summary: &TopicsReport) -> String {
    let (all, train) = (summary.corpus, summary.train);
    let heldout = match all.documents_len() - train.documents_len() {
        0 => String::new(),
        heldout => format!("; {} held-out documents", grouped(heldout as u64)),
    };
    let [documents, terms] = [all.documents_len(), all.terms_len()].map(|len| grouped(len as u64));
    format!("{}: {documents} documents, {terms} terms, {} words{heldout}", summary.name, grouped(all.tokens_len()))
}

fn facts(summary: &TopicsReport) -> Vec<(&'static str, String)> {
    let settings = summary.training.settings();
    let epochs = if summary.is_stopped() { format!(" of {}", settings.epochs) } else { String::new() };
    let overdispersion = summary.training.overdispersion();
    let words =
        (overdispersion > 1.0).then(|| ("words", format!("negative binomial, variance {overdispersion:.2} × mean")));
    let method = match summary.training.choice() {
        Some(choice) => format!("{}: {}", Method::Hvm, choice.method),
        None => settings.method.to_string(),
    };
    let mut facts =
        vec![("layers", describe(&settings.layers)), ("method", format!("{method}, {} weights", settings.weights))];
    if let Some(dependent) = summary.training.dependent_len() {
        let [dependent, all] = [dependent, summary.train.documents_len()].map(|len| grouped(len as u64));
        facts.push(("dependence", format!("kept in {dependent} of {all} documents")));
    }
    facts.extend(words);
    facts.extend([
        ("epochs", format!("{}{epochs}", summary.training.epoch())),
        ("time", duration(summary.wall_seconds)),
        ("ELBO", format!("{:.4} per word", summary.elbo)),
    ]);
    facts
}

/// What the methods that were tried gained over mean-field.
fn candidates(choice: &Choice) -> String {
    let show = |gain: Option<Gain>| gain.map_or_else(|| "–".to_owned(), |gain| gain.to_string());
    let row = |one: &Candidate| vec![one.method.to_string(), show(one.hidden_types), show(one.annealed)];
    let rows: Vec<Vec<String>> = choice.candidates.iter().map(row).collect();
    let of = format!("nats per word over mean-field, {} documents", choice.documents);
    table::render(&[of.as_str(), "hidden types", "whole documents"], &rows)
}

/// The perplexity of hidden words, with that of a unigram model.
fn perplexities(perplexity: &Perplexity) -> String {
    let row = |what: &str, (found, unigram): &(Heldout, f64)| {
        let numbers = [found.perplexity, found.perplexity_averaged, *unigram].map(figures);
        [what.to_owned()].into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let rows =
        [row("half of the word types hidden", &perplexity.types), row("half of the words hidden", &perplexity.words)];
    let of = format!("perplexity, {} documents", grouped(perplexity.documents as u64));
    table::render(&[of.as_str(), "plug-in", "averaged", "unigram"], &rows)
}

fn figures(perplexity: f64) -> String {
    if perplexity < 100.0 { format!("{perplexity:.1}") } else { format!("{perplexity:.0}") }
}

fn topics(topics: &[Topic]) -> String {
    let row = |topic: &Topic| vec![topic.number.to_string(), percent(topic.share), line(&topic.words)];
    let rows: Vec<Vec<String>> = topics.iter().take(ROWS).map(row).collect();
    format!("{}{}", table::render(&["topic", "share", "words"], &rows), remainder(topics.len(), rows.len()))
}

fn upper(layer: usize, themes: &[Theme]) -> String {
    let uses = |theme: &Theme| {
        let uses: Vec<String> = theme.uses.iter().map(|used| used.number.to_string()).collect();
        if uses.is_empty() { "–".to_owned() } else { uses.join(" ") }
    };
    let row = |theme: &Theme| {
        vec![theme.number.to_string(), format!("{:.2}", theme.activity), uses(theme), line(&theme.words)]
    };
    let rows: Vec<Vec<String>> = themes.iter().take(ROWS).map(row).collect();
    let (own, below) = (format!("layer {layer}"), format!("raises in layer {}", layer - 1));
    let header = [own.as_str(), "activity", below.as_str(), "words"];
    format!("{}{}", table::render(&header, &rows), remainder(themes.len(), rows.len()))
}

fn line(words: &[Word]) -> String {
    words.iter().map(|word| word.word.as_str()).collect::<Vec<_>>().join(" ")
}

pub fn remainder(len: usize, shown: usize) -> String {
    match len - shown {
        0 => String::new(),
        more => format!("… and {more} more; save all with --out DIR\n"),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.1} s"),
        s if s < 5970.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Digits in groups of three.
pub fn grouped(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", grouped(number / 1000), number % 1000) }
}

#[cfg(test)]
mod tests {
    use super::{duration, grouped};

    #[test]
    fn digits_are_grouped_in_threes() {
        assert_eq!(
            [0, 12, 999, 1000, 12_345, 1_234_567].map(grouped),
            ["0", "12", "999", "1,000", "12,345", "1,234,567"]
        );
        assert_eq!([1.26, 99.0, 90.0 * 60.0, 7200.0].map(duration), ["1.3 s", "99.0 s", "90.0 min", "2.0 h"]);
    }
}
