//! The latents of whole documents, given the weights.

use crate::corpus::{Corpus, Document};
use crate::error::Result;
use crate::heldout::{FitSettings, Hide, Predictor, expected};
use crate::trained::Trained;
use rayon::prelude::*;
use std::ops::Range;

/// What is found of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// E z, layer by layer.
    pub activations: Vec<Vec<f32>>,
    /// The bound on ln p(words | weights).
    pub bound: f64,
}

impl<'a> Predictor<'a> {
    /// From a model on its own. The same seed gives the same numbers.
    ///
    /// # Errors
    /// What [`FitSettings::check`] says.
    pub fn of_trained(trained: &'a Trained, settings: FitSettings, seed: u64) -> Result<Self> {
        let between = trained.between().to_vec();
        Self::with((trained.shape(), trained.terms(), between), trained.network(), trained.settings(), settings, seed)
    }

    /// Fits the latents of documents of which every word is seen. What is found of one depends on its place in the corpus, but not on
    /// the range that is asked for.
    ///
    /// # Panics
    /// There is no such document, or one has a term that the model does not have.
    pub fn infer(&self, corpus: &Corpus, documents: Range<usize>) -> Vec<Inferred> {
        let one = |d: usize| {
            let (terms, counts) = corpus.document(d);
            let seen = Document { terms: terms.to_vec(), counts: counts.to_vec() };
            let (own, bound) = self.fit(&seen, &Document::default(), Hide::Types, d as u64);
            Inferred { activations: expected(self.shape, self.method, &own, self.seed, d as u64), bound }
        };
        documents.into_par_iter().map(one).collect()
    }
}
