//! The topics of new documents, as text, as JSON and in files.

use super::files::{ACTIVATIONS, PART};
use super::inference::Inference;
use super::layers::describe;
use super::report::{duration, grouped, percent, remainder};
use crate::render::terminal::table;
use crate::run_dir::{Columns, RunDirectory, WriteError};
use hyperprior::report::SCHEMA;
use hyperprior_def::{Corpus, Trained};
use serde::Serialize;
use std::fmt::Write as _;

/// The number of documents shown.
const ROWS: usize = 10;
/// The longest name shown.
const NAME_MAX: usize = 40;
/// Topics with a smaller share of a document are not shown, except the first.
const SHARE_MIN: f64 = 0.01;

/// The results.
pub struct NewDocumentTopics<'a> {
    /// The settings.
    pub inference: &'a Inference,
    /// The name of the documents.
    pub name: String,
    /// The model.
    pub trained: &'a Trained,
    /// The documents, with the vocabulary of the run.
    pub corpus: &'a Corpus,
    /// The number of unknown words.
    pub unknown_len: u64,
    /// E z of the bottom layer, and the bound, for each document done.
    pub found: Vec<(Vec<f32>, f64)>,
    /// The running time.
    pub wall_seconds: f64,
}

/// `summary.json`; `null` means unknown.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    schema: u32,
    run: String,
    corpus: &'a str,
    trained_epochs: u32,
    epochs: u32,
    families: Vec<String>,
    layers: Vec<usize>,
    method: String,
    seed: u64,
    steps: u32,
    documents: usize,
    inferred_documents: usize,
    empty_documents: usize,
    /// The numbers of known and unknown words.
    tokens: u64,
    unknown_tokens: u64,
    /// The bound on ln p(words | weights), per word.
    elbo: Option<f64>,
    wall_seconds: f64,
    warnings: Vec<String>,
    /// The words of every topic.
    topics: Vec<Vec<String>>,
    results: Vec<Found<'a>>,
}

/// The topics of a document.
#[derive(Debug, Serialize)]
struct Found<'a> {
    document: &'a str,
    tokens: u64,
    elbo: Option<f64>,
    /// The strongest first; empty if no word is known.
    topics: Vec<Strong>,
}

/// A topic in a document.
#[derive(Debug, Serialize)]
struct Strong {
    topic: usize,
    /// The share of the document's words.
    share: f64,
    activation: f32,
}

impl NewDocumentTopics<'_> {
    /// Adds the results for the next documents.
    pub fn add(&mut self, found: Vec<hyperprior_def::Inferred>) {
        self.found.extend(found.into_iter().map(|mut found| (found.activations.swap_remove(0), found.bound)));
    }

    /// The number of known words in a document.
    fn tokens(&self, document: usize) -> u64 {
        self.corpus.document(document).1.iter().map(|count| *count as u64).sum()
    }

    fn empty_documents(&self) -> impl Iterator<Item = usize> {
        (0..self.corpus.documents_len()).filter(|d| self.corpus.document(*d).0.is_empty())
    }

    /// Notes on unknown words and empty documents.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unknown_len > 0 {
            let all = self.unknown_len + self.corpus.tokens_len();
            let [unknown, all] = [self.unknown_len, all].map(grouped);
            notes.push(format!("{unknown} of {all} words are not in the run's vocabulary and are ignored"));
        }
        let empty: Vec<usize> = self.empty_documents().collect();
        if let Some(first) = empty.first() {
            let of = grouped(self.corpus.documents_len() as u64);
            let first = shown(&self.corpus.names()[*first]);
            let [have, rows] = if empty.len() == 1 { ["has", "its row is"] } else { ["have", "their rows are"] };
            let which = if empty.len() == 1 { format!("`{first}`") } else { format!("`{first}` is the first") };
            notes.push(format!(
                "{} of {of} documents {have} no known word ({which}); {rows} empty",
                grouped(empty.len() as u64)
            ));
        }
        notes
    }

    /// Warnings about the results.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let (epoch, epochs) = (self.trained.epoch(), self.trained.settings().epochs);
        if epoch < epochs {
            warnings.push(format!("the run is not finished: its topics are those after epoch {epoch} of {epochs}"));
        }
        let (done, len) = (self.found.len(), self.corpus.documents_len());
        if done < len {
            warnings.push(format!("stopped after {} of {} documents", grouped(done as u64), grouped(len as u64)));
        }
        warnings
    }

    /// The bound per word over the documents done.
    fn elbo(&self) -> Option<f64> {
        let done = (0..self.found.len()).filter(|d| self.tokens(*d) > 0);
        let (bound, tokens) =
            done.fold((0.0, 0), |(bound, tokens), d| (bound + self.found[d].1, tokens + self.tokens(d)));
        (tokens > 0).then(|| bound / tokens as f64)
    }

    fn strongest(&self, document: usize) -> Vec<Strong> {
        if self.tokens(document) == 0 {
            return Vec::new();
        }
        let lowest = &self.found[document].0;
        let shares = self.trained.shares(lowest, self.corpus.document(document));
        let of =
            |(i, latent): (usize, &usize)| Strong { topic: i + 1, share: shares[*latent], activation: lowest[*latent] };
        let mut all: Vec<Strong> = self.trained.order().iter().enumerate().map(of).collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all.truncate(self.inference.top);
        all
    }

    fn words(&self, latent: usize) -> Vec<String> {
        self.trained.words(latent, self.inference.words).into_iter().map(|word| word.word).collect()
    }

    /// The report as text.
    pub fn report(&self) -> String {
        let settings = self.trained.settings();
        let [documents, tokens] = [self.corpus.documents_len() as u64, self.corpus.tokens_len()].map(grouped);
        let mut out = format!("{}: {documents} documents, {tokens} words of the run's vocabulary\n\n", self.name);
        let elbo = self.elbo().map_or_else(|| "–".to_owned(), |elbo| format!("{elbo:.4} per word"));
        for (label, text) in [
            ("run", format!("{}, {} epochs", self.inference.run.display(), self.trained.epoch())),
            ("layers", describe(&settings.layers)),
            ("method", format!("{}, {} weights", settings.method, settings.weights)),
            ("time", duration(self.wall_seconds)),
            ("ELBO", elbo),
        ] {
            let _ = writeln!(out, "{label:<10}  {text}");
        }
        for (i, warning) in self.warnings().iter().enumerate() {
            let _ = writeln!(out, "{}Warning: {warning}.", if i == 0 { "\n" } else { "" });
        }
        let _ = write!(out, "\n{}", self.table());
        out
    }

    fn table(&self) -> String {
        let mut rows = Vec::new();
        for d in 0..self.found.len().min(ROWS) {
            let (name, tokens) = (shown(&self.corpus.names()[d]), grouped(self.tokens(d)));
            let strongest = self.strongest(d);
            if strongest.is_empty() {
                rows.push([name, tokens, "–".to_owned(), "–".to_owned(), "no known word".to_owned()].to_vec());
                continue;
            }
            let shown = strongest.iter().enumerate().filter(|(i, strong)| *i == 0 || strong.share >= SHARE_MIN);
            for (i, strong) in shown {
                // A document is named once.
                let [name, tokens] = if i == 0 { [name.clone(), tokens.clone()] } else { Default::default() };
                let words = self.words(self.trained.order()[strong.topic - 1]).join(" ");
                rows.push([name, tokens, strong.topic.to_string(), percent(strong.share), words].to_vec());
            }
        }
        let header = ["document", "words", "topic", "share", "words of the topic"];
        let shown = self.found.len().min(ROWS);
        format!("{}{}", table::render(&header, &rows), remainder(self.found.len(), shown))
    }

    /// `summary.json`.
    pub fn summary(&self) -> Summary<'_> {
        let settings = self.trained.settings();
        let found = |d: usize| Found {
            document: &self.corpus.names()[d],
            tokens: self.tokens(d),
            elbo: (self.tokens(d) > 0).then(|| self.found[d].1),
            topics: self.strongest(d),
        };
        Summary {
            schema: SCHEMA,
            run: self.inference.run.display().to_string(),
            corpus: &self.name,
            trained_epochs: self.trained.epoch(),
            epochs: settings.epochs,
            families: settings.layers.iter().map(|layer| layer.family.to_string()).collect(),
            layers: settings.layers.iter().map(|layer| layer.width).collect(),
            method: settings.method.to_string(),
            seed: self.inference.seed,
            steps: self.inference.fit.steps,
            documents: self.corpus.documents_len(),
            inferred_documents: self.found.len(),
            empty_documents: self.empty_documents().count(),
            tokens: self.corpus.tokens_len(),
            unknown_tokens: self.unknown_len,
            elbo: self.elbo(),
            wall_seconds: self.wall_seconds,
            warnings: self.warnings(),
            topics: self.trained.order().iter().map(|latent| self.words(*latent)).collect(),
            results: (0..self.found.len()).map(found).collect(),
        }
    }

    /// Writes `activations.csv`, in the format of the run's, and `summary.json`.
    pub fn write(&self, run: &RunDirectory) -> Result<(), WriteError> {
        let column = |latent: usize| -> Vec<f32> {
            let one = |(d, (lowest, _)): (usize, &(Vec<f32>, f64))| {
                if self.tokens(d) > 0 { lowest[latent] } else { f32::NAN }
            };
            self.found.iter().enumerate().map(one).collect()
        };
        let topics = self.trained.order().iter().enumerate();
        let columns: Vec<(String, Vec<f32>)> =
            topics.map(|(i, latent)| (format!("topic{}", i + 1), column(*latent))).collect();
        let rows = &self.corpus.names()[..self.found.len()];
        let parts = vec!["new"; rows.len()];
        let labels = Some((PART, parts.as_slice()));
        run.columns_csv(ACTIVATIONS, &Columns { key: "document", rows, labels, columns: &columns })?;
        run.summary(&self.summary())?;
        Ok(())
    }
}

/// A name, shortened to fit the table.
fn shown(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
