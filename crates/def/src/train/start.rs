//! The words' weights at the start of a training.

use crate::corpus::Corpus;
use crate::settings::Settings;
use crate::weights::TermWeights;
use hyperprior_math::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Each latent starts from the words of a few documents, mixed with those of all.
pub(super) fn term_weights(corpus: &Corpus, settings: &Settings, rng: &mut Stream) -> TermWeights {
    const FEW: usize = 20;
    const SHARE: f32 = 0.8;
    let (documents, terms) = (corpus.documents_len(), corpus.terms_len());
    let width = settings.layers[0].width;
    let mut all = vec![0.1_f32; terms];
    for (term, x) in corpus.terms().iter().zip(corpus.counts()) {
        all[*term as usize] += x;
    }
    let total: f32 = all.iter().sum();
    all.iter_mut().for_each(|x| *x /= total);
    let length = corpus.tokens_len() as f32 / documents as f32;
    let active = settings.layers[0].family.possible(settings.activity);
    let size = length / (width as f32 * active);
    let mut own = vec![0.0_f32; terms * width];
    for k in 0..width {
        let mut taken = 0.0;
        for _ in 0..FEW {
            let (words, counts) = corpus.document(rng.random_range(0..documents));
            for (term, x) in words.iter().zip(counts) {
                own[*term as usize * width + k] += x;
                taken += x;
            }
        }
        for v in 0..terms {
            let x = &mut own[v * width + k];
            let normal: f32 = StandardNormal.sample(rng);
            *x = size * (SHARE * *x / f32::max(taken, 1.0) + (1.0 - SHARE) * all[v] * (0.3 * normal).exp());
        }
    }
    let background: Vec<f32> = all.iter().map(|share| settings.background * length * share).collect();
    TermWeights::new(
        settings.weights,
        settings.term_prior,
        width,
        &|v, k| own[v * width + k],
        &background,
        documents as f32 * active,
    )
}
