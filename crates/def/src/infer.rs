//! The latents of whole documents, given the weights.

use crate::corpus::{Corpus, Document};
use crate::error::Result;
use crate::expected::expected;
use crate::heldout::{Holdout, Predictor};
use crate::settings::FitSettings;
use crate::trained::Trained;
use rayon::prelude::*;
use std::ops::Range;

/// The fit to a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// E z, layer by layer.
    pub activations: Vec<Vec<f32>>,
    /// The bound on ln p(words | weights).
    pub bound: f64,
}

impl<'a> Predictor<'a> {
    /// From a saved model. The same seed gives the same numbers.
    ///
    /// # Errors
    /// The errors of [`FitSettings::check`].
    pub fn of_trained(trained: &'a Trained, settings: FitSettings, seed: u64) -> Result<Self> {
        let layer_weights = trained.layer_weights().to_vec();
        Self::with(
            (trained.shape(), trained.terms(), layer_weights, trained.bursts()),
            trained.network(),
            trained.settings(),
            settings,
            seed,
        )
    }

    /// Fits the latents of documents to all their words. The random numbers of a document depend on its position in the corpus, but
    /// not on the range.
    ///
    /// # Panics
    /// There is no such document, or one has a term that the model does not have.
    pub fn infer(&self, corpus: &Corpus, documents: Range<usize>) -> Vec<Inferred> {
        let one = |d: usize| {
            let (terms, counts) = corpus.document(d);
            let seen = Document { terms: terms.to_vec(), counts: counts.to_vec() };
            let (own, bound) = self.fit(&seen, &Document::default(), Holdout::Types, d as u64);
            Inferred { activations: expected(self.shape, self.method, &own, self.seed, d as u64), bound }
        };
        documents.into_par_iter().map(one).collect()
    }
}
