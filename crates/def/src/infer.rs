//! The latents of whole documents, given the weights.

use crate::annealed::Annealing;
use crate::burst::{Tokens, constant};
use crate::corpus::{Corpus, Document};
use crate::error::{Error, Result};
use crate::estimate::Given;
use crate::expected::expected;
use crate::heldout::{Holdout, Predictor};
use crate::kernel::layer::Link;
use crate::kernel::words::Words;
use crate::settings::FitSettings;
use crate::trained::Trained;
use crate::weights::LayerWeights;
use hyperprior_math::random::{TextPurpose, stream};
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

    /// ln p(words | weights) of documents by annealed importance sampling (Neal, 2001) with this many temperatures, from fits to
    /// them. The estimate hardly depends on the fits, and is too low by less the more temperatures there are.
    ///
    /// # Errors
    /// [`Error::BadSetting`] if a layer is continuous or there are no temperatures.
    ///
    /// # Panics
    /// There is no such document, or there are fewer fits than documents.
    pub fn annealed(
        &self,
        corpus: &Corpus,
        documents: Range<usize>,
        fits: &[Inferred],
        temperatures: usize,
    ) -> Result<Vec<f64>> {
        if temperatures == 0 {
            let reason = "annealing takes at least one temperature";
            return Err(Error::BadSetting { field: "temperatures", value: "0".to_owned(), reason });
        }
        if let Some(layer) = self.shape.layers().iter().find(|layer| layer.family.is_continuous()) {
            let (value, reason) =
                (layer.family.to_string(), "annealing is for layers of poisson and bernoulli latents");
            return Err(Error::BadSetting { field: "layers", value, reason });
        }
        let links: Vec<Link> = self.layer_weights.iter().map(LayerWeights::link).collect();
        let one = |d: usize| {
            let document = corpus.document(d);
            let tokens = (!self.bursts.is_empty()).then(|| Tokens::of(std::iter::once(document)));
            let words = tokens.as_ref().map_or_else(|| Words::of(document), |tokens| tokens.words(0, self.bursts));
            let given = Given { shape: self.shape, words, seen: self.terms.seen(), links: &links };
            let mut rng = stream(self.seed, TextPurpose::Annealing.step(), d as u64, 0);
            let found = Annealing::new(&given, &fits[d - documents.start].activations).run(temperatures, &mut rng);
            found + constant(self.bursts, document) - self.terms.background_sum()
        };
        Ok(documents.clone().into_par_iter().map(one).collect())
    }
}
