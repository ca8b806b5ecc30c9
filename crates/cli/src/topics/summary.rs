//! A finished training in the numbers and words that are told of it, on paper and as JSON.

use super::heldout::HeldOut;
use hyperprior::report::SCHEMA;
use hyperprior_def::topics::{Theme, Word};
use hyperprior_def::{Activity, WeightPosterior, Corpus, Topics, Training};
use serde::Serialize;

/// What there is to tell.
pub struct TopicsReport<'a> {
    /// The corpus's name.
    pub name: String,
    /// All documents, and those that were trained on.
    pub corpus: &'a Corpus,
    pub train: &'a Corpus,
    /// The places in the corpus of those that were trained on and of those that were set aside.
    pub places: [&'a [usize]; 2],
    /// The model.
    pub training: &'a Training<'a>,
    /// Its latents in the documents trained on.
    pub activity: Activity,
    /// Its latents by their words.
    pub topics: Topics,
    /// What was found of documents that were set aside.
    pub aside: HeldOut,
    /// The bound per word.
    pub elbo: f64,
    /// (epoch, what was climbed per word).
    pub trace: Vec<(u64, f64)>,
    /// The time that it took.
    pub wall_seconds: f64,
}

/// `summary.json`. What is not known is `null`.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    schema: u32,
    corpus: &'a str,
    /// The lowest layer's, and every layer's from below.
    family: String,
    families: Vec<String>,
    layers: Vec<usize>,
    method: String,
    weights: String,
    seed: u64,
    documents: usize,
    terms: usize,
    tokens: u64,
    heldout_documents: usize,
    measured_documents: usize,
    epochs: u32,
    /// The bound per word: of the documents trained on with the weights, and of the part that is seen of those set aside.
    elbo: f64,
    elbo_heldout: Option<f64>,
    /// Of hidden word types, with means plugged in and with rates averaged over draws.
    heldout_perplexity: Option<f64>,
    heldout_perplexity_averaged: Option<f64>,
    unigram_perplexity: Option<f64>,
    /// Of hidden words.
    completion_perplexity: Option<f64>,
    completion_perplexity_averaged: Option<f64>,
    completion_unigram_perplexity: Option<f64>,
    background_share: f64,
    wall_seconds: f64,
    warnings: Vec<String>,
    topics: Vec<Vec<&'a str>>,
    /// The layers above, from below.
    upper: Vec<Vec<Upper<'a>>>,
}

/// A latent above the lowest layer.
#[derive(Debug, Serialize)]
struct Upper<'a> {
    /// The numbers of those that it raises in the layer below, from 1.
    uses: Vec<usize>,
    words: Vec<&'a str>,
}

impl<'a> Upper<'a> {
    fn new(theme: &'a Theme) -> Self {
        Self { uses: theme.uses.iter().map(|used| used.number).collect(), words: words_of(&theme.words) }
    }
}

fn words_of(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.word.as_str()).collect()
}

/// What is said of topics that foretell worse than a model without any.
fn worse(perplexity: f64, unigram: f64, weights: WeightPosterior) -> Option<String> {
    let said = format!(
        "the topics foretell hidden word types worse than the shares of all words do (perplexity {perplexity:.0} against \
         {unigram:.0})"
    );
    (perplexity > unigram).then(|| said + advice(weights))
}

fn advice(weights: WeightPosterior) -> &'static str {
    match weights {
        WeightPosterior::Point => "; look at their words before you use them",
        _ => "; try --weights point",
    }
}

impl TopicsReport<'_> {
    /// Whether it was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.training.epoch() < self.training.settings().epochs
    }

    /// How many of the documents set aside were measured, of how many, where that was not all.
    pub fn unmeasured(&self) -> Option<(usize, usize)> {
        let (measured, len) = (self.aside.activity.len(), self.places[1].len());
        (measured < len).then_some((measured, len))
    }

    /// What a person has to know before believing the topics.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (epoch, epochs) = (self.training.epoch(), self.training.settings().epochs);
        if self.is_stopped() {
            warnings.push(format!("the training was stopped after epoch {epoch} of {epochs}"));
        }
        if let Some((measured, len)) = self.unmeasured().filter(|_| !self.is_stopped()) {
            warnings
                .push(format!("only {measured} of the {len} documents set aside were measured before it was stopped"));
        }
        let weights = self.training.settings().weights;
        warnings.extend(self.aside.foretold.and_then(|f| worse(f.types.0.perplexity, f.types.1, weights)));
        warnings
    }

    /// `summary.json`.
    pub fn summary(&self) -> Summary<'_> {
        let settings = self.training.settings();
        let [types, words] = [self.aside.foretold.map(|f| f.types), self.aside.foretold.map(|f| f.words)];
        Summary {
            schema: SCHEMA,
            corpus: &self.name,
            family: settings.layers[0].family.to_string(),
            families: settings.layers.iter().map(|layer| layer.family.to_string()).collect(),
            layers: settings.layers.iter().map(|layer| layer.width).collect(),
            method: settings.method.to_string(),
            weights: settings.weights.to_string(),
            seed: settings.seed,
            documents: self.corpus.documents_len(),
            terms: self.corpus.terms_len(),
            tokens: self.corpus.tokens_len(),
            heldout_documents: self.corpus.documents_len() - self.train.documents_len(),
            measured_documents: self.aside.foretold.map_or(0, |foretold| foretold.documents),
            epochs: self.training.epoch(),
            elbo: self.elbo,
            elbo_heldout: types.map(|(found, _)| found.elbo_per_word),
            heldout_perplexity: types.map(|(found, _)| found.perplexity),
            heldout_perplexity_averaged: types.map(|(found, _)| found.perplexity_averaged),
            unigram_perplexity: types.map(|(_, unigram)| unigram),
            completion_perplexity: words.map(|(found, _)| found.perplexity),
            completion_perplexity_averaged: words.map(|(found, _)| found.perplexity_averaged),
            completion_unigram_perplexity: words.map(|(_, unigram)| unigram),
            background_share: self.topics.background_share,
            wall_seconds: self.wall_seconds,
            warnings: self.warnings(),
            topics: self.topics.topics.iter().map(|topic| words_of(&topic.words)).collect(),
            upper: self.topics.themes.iter().map(|themes| themes.iter().map(Upper::new).collect()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_say_little_are_warned_of() {
        assert_eq!(worse(900.0, 1000.0, WeightPosterior::Gamma), None);
        let said = worse(1100.0, 1000.0, WeightPosterior::Gamma).expect("a warning");
        assert!(said.contains("(perplexity 1100 against 1000)") && said.contains("--weights point"), "{said}");
        assert!(!worse(1100.0, 1000.0, WeightPosterior::Point).expect("a warning").contains("--weights"));
    }
}
