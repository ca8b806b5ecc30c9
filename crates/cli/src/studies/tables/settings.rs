//! Everything that determines the numbers of a cell, with the defaults.

use crate::error::CliError;
use hyperprior_def::heldout::FitSettings;
use hyperprior_def::{Corpus, Settings, WeightPosterior, WordCounts};
use serde::Serialize;
use toml::{Table, Value};

/// The paper's models.
pub const LAYERS: [&str; 3] = ["100", "100-30", "100-30-15"];
pub const FAMILIES: &str = "poisson,bernoulli";
/// In the order of the paper's columns.
pub const METHODS: &str = "hvm,mean-field";
pub const SEEDS: &str = "1,2";
/// Point estimates predict best.
pub const WEIGHTS: WeightPosterior = WeightPosterior::Point;
/// Passes over the documents, and draws per step.
pub const EPOCHS: u32 = 20;
pub const DRAWS: usize = 4;
/// Optimisation steps per held-out document: with few steps, the comparison measures the speed of the methods.
pub const STEPS: u32 = 300;
/// The share of held-out documents, and the largest number of them to evaluate: with this many steps, evaluation takes longer than
/// training.
pub const HELDOUT: f64 = 0.1;
pub const MEASURED: usize = 300;
/// Temperatures of annealed importance sampling.
pub const TEMPERATURES: usize = 200;
/// Draws for the training bound, in units of eight.
pub const BOUND_ROUNDS: u64 = 8;
/// The steps of the curve, and its largest number of documents.
pub const CURVE: &str = "25,50,100,200,400,800";
pub const CURVE_DOCUMENTS: usize = 200;

/// The options that all cells share.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The approximation of the weights' posterior.
    pub weights: WeightPosterior,
    /// The distribution of the counts of words.
    pub words: WordCounts,
    /// Passes over the documents.
    pub epochs: u32,
    /// Draws per step.
    pub draws: usize,
    /// Optimisation steps per held-out document.
    pub steps: u32,
    /// The largest number of held-out documents to evaluate.
    pub measured: usize,
    /// Temperatures of annealed importance sampling of held-out documents; 0 for none.
    pub temperatures: usize,
}

impl Choice {
    /// The settings of training that all cells share.
    pub fn train(&self) -> Settings {
        Settings::default().weights(self.weights).words(self.words).epochs(self.epochs).draws(self.draws)
    }

    /// The settings of the fit of a held-out document.
    pub fn fit(&self) -> FitSettings {
        self.fit_for(self.steps)
    }

    /// The same with another number of steps.
    pub fn fit_for(&self, steps: u32) -> FitSettings {
        FitSettings::default().steps(steps)
    }

    /// Everything that the numbers of a cell depend on, except the cell.
    pub fn facts(&self, corpus: &Corpus) -> Result<Table, CliError> {
        let internal = |error: toml::ser::Error| CliError::Internal(error.to_string());
        let mut train = Table::try_from(self.train()).map_err(internal)?;
        for own in ["layers", "method", "seed"] {
            train.remove(own);
        }
        let facts = Facts {
            version: env!("CARGO_PKG_VERSION"),
            heldout: HELDOUT,
            measured: self.measured,
            temperatures: self.temperatures,
            bound_rounds: BOUND_ROUNDS,
            curve_documents: CURVE_DOCUMENTS,
            corpus: Read {
                fingerprint: corpus.fingerprint(),
                documents: corpus.documents_len(),
                terms: corpus.terms_len(),
                words: corpus.tokens_len(),
            },
            fit: self.fit(),
            train,
        };
        Table::try_from(facts).map_err(internal)
    }
}

#[derive(Serialize)]
struct Facts {
    version: &'static str,
    heldout: f64,
    measured: usize,
    temperatures: usize,
    bound_rounds: u64,
    curve_documents: usize,
    corpus: Read,
    fit: FitSettings,
    train: Table,
}

#[derive(Serialize)]
struct Read {
    fingerprint: u32,
    documents: usize,
    terms: usize,
    words: u64,
}

/// The differences between two tables, as text.
pub fn differences(there: &Table, here: &Table) -> Vec<String> {
    let [there, here] = [there, here].map(|table| {
        let mut all = Vec::new();
        flatten("", table, &mut all);
        all
    });
    let of = |all: &[(String, String)], key: &str| {
        all.iter().find(|(own, _)| own == key).map_or_else(|| "missing".to_owned(), |(_, value)| value.clone())
    };
    let gone = there.iter().filter(|(key, _)| !here.iter().any(|(own, _)| own == key));
    let keys = here.iter().chain(gone).map(|(key, _)| key);
    keys.map(|key| (key, of(&there, key), of(&here, key)))
        .filter(|(_, there, here)| there != here)
        .map(|(key, there, here)| format!("{key} was {there} and is now {here}"))
        .collect()
}

fn flatten(before: &str, table: &Table, into: &mut Vec<(String, String)>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => flatten(&format!("{before}{key}."), inner, into),
            value => into.push((format!("{before}{key}"), value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let words = WordCounts::Poisson;
        let choice = Choice {
            weights: WEIGHTS,
            words,
            epochs: EPOCHS,
            draws: DRAWS,
            steps: STEPS,
            measured: MEASURED,
            temperatures: TEMPERATURES,
        };
        let bible = hyperprior_def::corpus::bible();
        let facts = choice.facts(&bible).expect("facts");
        let kept: Table = toml::from_str(&toml::to_string_pretty(&facts).expect("TOML")).expect("TOML");
        assert_eq!(differences(&kept, &facts), Vec::<String>::new());
        let other = Choice { epochs: 7, steps: 9, ..choice }.facts(&bible).expect("facts");
        assert_eq!(
            differences(&facts, &other),
            [format!("fit.steps was {STEPS} and is now 9"), format!("train.epochs was {EPOCHS} and is now 7")]
        );
        let mut less = facts.clone();
        less.remove("version");
        assert!(differences(&less, &facts)[0].starts_with("version was missing and is now \""));
        assert!(differences(&facts, &less)[0].ends_with("and is now missing"));
    }
}
