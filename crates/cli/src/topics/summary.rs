//! The results of a topics run, and its `summary.json`.

use super::heldout::HeldOut;
use hyperprior::report::SCHEMA;
use hyperprior_def::topics::{Theme, Word};
use hyperprior_def::{Activity, Choice, Corpus, Topics, Training, WeightPosterior};
use serde::Serialize;

/// The results.
pub struct TopicsReport<'a> {
    /// The corpus's name.
    pub name: String,
    /// All documents, and the training documents.
    pub corpus: &'a Corpus,
    pub train: &'a Corpus,
    /// The places of the training and the held-out documents in the corpus.
    pub places: [&'a [usize]; 2],
    /// The model.
    pub training: &'a Training<'a>,
    /// Its latents in the training documents.
    pub activity: Activity,
    /// Its latents by their words.
    pub topics: Topics,
    /// The results for the held-out documents.
    pub heldout: HeldOut,
    /// The bound per word.
    pub elbo: f64,
    /// (epoch, objective per word).
    pub trace: Vec<(u64, f64)>,
    /// The running time.
    pub wall_seconds: f64,
}

/// `summary.json`; `null` means unknown.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    schema: u32,
    corpus: &'a str,
    /// The family of the bottom layer, and of every layer, bottom first.
    family: String,
    families: Vec<String>,
    layers: Vec<usize>,
    method: String,
    /// What `hvm` turned out to be.
    choice: Option<&'a Choice>,
    /// The number of training documents whose Gaussian keeps dependence.
    dependent_documents: Option<usize>,
    weights: String,
    words: String,
    /// The variance of a word's count divided by its mean, given the latents, averaged over all words.
    overdispersion: f64,
    seed: u64,
    documents: usize,
    terms: usize,
    tokens: u64,
    heldout_documents: usize,
    measured_documents: usize,
    epochs: u32,
    /// The bound per word: for the training documents with the weights, and for the visible part of the held-out documents.
    elbo: f64,
    elbo_heldout: Option<f64>,
    /// For hidden word types, with means plugged in and with rates averaged over draws.
    heldout_perplexity: Option<f64>,
    heldout_perplexity_averaged: Option<f64>,
    unigram_perplexity: Option<f64>,
    /// For hidden words.
    completion_perplexity: Option<f64>,
    completion_perplexity_averaged: Option<f64>,
    completion_unigram_perplexity: Option<f64>,
    background_share: f64,
    wall_seconds: f64,
    warnings: Vec<String>,
    topics: Vec<Vec<&'a str>>,
    /// The layers above the bottom layer, lowest first.
    upper: Vec<Vec<Upper<'a>>>,
}

/// A latent above the bottom layer.
#[derive(Debug, Serialize)]
struct Upper<'a> {
    /// The numbers of the latents that it raises in the layer below (those with the largest positive weights), from 1.
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

/// The warning for topics that predict worse than a unigram model.
fn worse(perplexity: f64, unigram: f64, weights: WeightPosterior) -> Option<String> {
    let warning = format!(
        "the topics predict hidden word types worse than a unigram model (perplexity {perplexity:.0} against {unigram:.0})"
    );
    (perplexity > unigram).then(|| warning + advice(weights))
}

fn advice(weights: WeightPosterior) -> &'static str {
    match weights {
        WeightPosterior::Point => "; inspect their words before you use them",
        _ => "; try --weights point",
    }
}

impl TopicsReport<'_> {
    /// Whether training was stopped early.
    pub fn is_stopped(&self) -> bool {
        self.training.epoch() < self.training.settings().epochs
    }

    /// The number of held-out documents evaluated and the number of all, if not all were evaluated.
    pub fn unmeasured(&self) -> Option<(usize, usize)> {
        let (measured, len) = (self.heldout.activity.len(), self.places[1].len());
        (measured < len).then_some((measured, len))
    }

    /// Warnings about the topics.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (epoch, epochs) = (self.training.epoch(), self.training.settings().epochs);
        if self.is_stopped() {
            warnings.push(format!("the training was stopped after epoch {epoch} of {epochs}"));
        }
        if let Some((measured, len)) = self.unmeasured().filter(|_| !self.is_stopped()) {
            warnings.push(format!(
                "only {measured} of the {len} held-out documents were evaluated before the run was stopped"
            ));
        }
        let weights = self.training.settings().weights;
        warnings.extend(self.heldout.perplexity.and_then(|f| worse(f.types.0.perplexity, f.types.1, weights)));
        warnings
    }

    /// `summary.json`.
    pub fn summary(&self) -> Summary<'_> {
        let settings = self.training.settings();
        let [types, words] = [self.heldout.perplexity.map(|f| f.types), self.heldout.perplexity.map(|f| f.words)];
        Summary {
            schema: SCHEMA,
            corpus: &self.name,
            family: settings.layers[0].family.to_string(),
            families: settings.layers.iter().map(|layer| layer.family.to_string()).collect(),
            layers: settings.layers.iter().map(|layer| layer.width).collect(),
            method: self.training.wanted().method.to_string(),
            choice: self.training.choice(),
            dependent_documents: self.training.dependent_len(),
            weights: settings.weights.to_string(),
            words: settings.words.to_string(),
            overdispersion: self.training.overdispersion(),
            seed: settings.seed,
            documents: self.corpus.documents_len(),
            terms: self.corpus.terms_len(),
            tokens: self.corpus.tokens_len(),
            heldout_documents: self.corpus.documents_len() - self.train.documents_len(),
            measured_documents: self.heldout.perplexity.map_or(0, |perplexity| perplexity.documents),
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
    fn topics_worse_than_unigrams_get_a_warning() {
        assert_eq!(worse(900.0, 1000.0, WeightPosterior::Gamma), None);
        let said = worse(1100.0, 1000.0, WeightPosterior::Gamma).expect("a warning");
        assert!(said.contains("(perplexity 1100 against 1000)") && said.contains("--weights point"), "{said}");
        assert!(!worse(1100.0, 1000.0, WeightPosterior::Point).expect("a warning").contains("--weights"));
    }
}
