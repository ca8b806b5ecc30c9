//! How well the words of documents that were set aside are foretold.

use crate::error::CliError;
use hyperprior_def::heldout::{FitSettings, Heldout, Hide, Predictor, unigram};
use hyperprior_def::{Corpus, Training};

/// The perplexity of hidden words.
#[derive(Clone, Copy, Debug)]
pub struct Foretold {
    /// How many documents it is of.
    pub documents: usize,
    /// Of hidden word types, and of hidden words; each with what the shares of all words come to.
    pub types: (Heldout, f64),
    pub words: (Heldout, f64),
}

/// Documents that are measured where someone waits for the end.
const HASTY: usize = 200;

impl Foretold {
    /// By a training as it stands; in haste by some of the documents. None where nothing could be hidden.
    pub fn new(training: &Training, train: &Corpus, test: &Corpus, in_haste: bool) -> Result<Option<Self>, CliError> {
        let few = (in_haste && test.documents_len() > HASTY).then(|| first(test, HASTY));
        let test = few.as_ref().unwrap_or(test);
        let predictor = Predictor::new(training, FitSettings::default())?;
        let measure = |hide| -> Result<(Heldout, f64), CliError> {
            Ok((predictor.heldout(test, hide)?, unigram(train, test, hide, training.settings().seed)?))
        };
        let foretold =
            Self { documents: test.documents_len(), types: measure(Hide::Types)?, words: measure(Hide::Tokens)? };
        Ok((foretold.types.0.hidden > 0.0 && foretold.words.0.hidden > 0.0).then_some(foretold))
    }
}

/// A measurement that takes no longer than an epoch, for the person who watches.
pub struct Glance {
    corpus: Corpus,
}

/// Shorter than a real one: it is to be seen whether the number falls.
const QUICK: FitSettings = FitSettings { steps: 50, size: 0.2, draws: 1 };

impl Glance {
    /// Of as many documents as take an epoch's time.
    pub fn new(training: &Training, train: &Corpus, test: &Corpus) -> Self {
        let settings = training.settings();
        let steps = train.documents_len() * settings.local_steps as usize * settings.draws;
        let documents = (steps / (QUICK.steps as usize * QUICK.draws)).clamp(1, HASTY);
        Self { corpus: first(test, documents) }
    }

    /// About the perplexity of hidden word types.
    pub fn perplexity(&self, training: &Training) -> Result<f64, CliError> {
        Ok(Predictor::new(training, QUICK)?.heldout(&self.corpus, Hide::Types)?.perplexity)
    }
}

fn first(corpus: &Corpus, documents: usize) -> Corpus {
    corpus.subset(&(0..corpus.documents_len().min(documents)).collect::<Vec<_>>())
}
