//! The activity of the latents in the training documents.

use crate::corpus::Corpus;
use crate::train::Training;
use rayon::prelude::*;

/// E z of every latent in every document.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Document by document, layer by layer.
    documents: Vec<Vec<Vec<f32>>>,
    /// The mean over the documents, layer by layer, and that of |E z|.
    means: Vec<Vec<f64>>,
    sizes: Vec<Vec<f64>>,
}

impl Activity {
    /// From the current state of a training on `corpus`.
    pub fn new(training: &Training, corpus: &Corpus) -> Self {
        let documents: Vec<Vec<Vec<f32>>> =
            (0..corpus.documents_len()).into_par_iter().map(|d| training.activations(d)).collect();
        let mut means: Vec<Vec<f64>> = training.shape().layers().iter().map(|layer| vec![0.0; layer.width]).collect();
        let mut sizes = means.clone();
        for document in &documents {
            for ((means, sizes), own) in means.iter_mut().zip(&mut sizes).zip(document) {
                means.iter_mut().zip(own).for_each(|(mean, z)| *mean += f64::from(*z));
                sizes.iter_mut().zip(own).for_each(|(size, z)| *size += f64::from(z.abs()));
            }
        }
        let len = documents.len().max(1) as f64;
        means.iter_mut().chain(&mut sizes).flatten().for_each(|mean| *mean /= len);
        Self { documents, means, sizes }
    }

    /// The number of documents.
    pub fn documents_len(&self) -> usize {
        self.documents.len()
    }

    /// E z of a layer's latents in a document.
    ///
    /// # Panics
    /// There is no such document or layer.
    pub fn document(&self, document: usize, layer: usize) -> &[f32] {
        &self.documents[document][layer]
    }

    /// The mean of |E z| over the documents for each of a layer's latents. It is the mean of E z except in Gaussian layers, where a
    /// latent that is far below zero in some documents and far above in others is active too.
    ///
    /// # Panics
    /// There is no such layer.
    pub fn sizes(&self, layer: usize) -> &[f64] {
        &self.sizes[layer]
    }

    /// The mean of E z over the documents for each of a layer's latents.
    ///
    /// # Panics
    /// There is no such layer.
    pub fn means(&self, layer: usize) -> &[f64] {
        &self.means[layer]
    }
}
