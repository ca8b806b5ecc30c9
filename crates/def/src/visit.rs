//! What a minibatch leaves behind: the draws of its documents, and its words term by term.

use crate::corpus::Corpus;
use crate::estimate::Estimator;
use crate::local::Method;
use crate::network::{Network, Pass};
use crate::shape::Shape;
use crate::weights::Between;
use hyperprior_math::single::{DRAWS, Lanes, Tile};

/// Documents that one thread treats at a time.
pub(crate) const CHUNK: usize = 16;

/// A few documents of a minibatch, and what came of them.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) estimator: Estimator,
    /// The lowest layer's draws of each document, and 1/R of its words, each draw as much as it counts.
    pub(crate) z: Vec<Vec<Tile>>,
    pub(crate) inverse: Vec<Vec<[f32; DRAWS]>>,
    pub(crate) activity: Vec<Lanes>,
    pub(crate) d_between: Vec<Vec<Lanes>>,
    pub(crate) value: f64,
    pub(crate) amortized: Amortized,
}

/// Where a network works.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amortized {
    pub(crate) passes: Vec<Pass>,
    pub(crate) at: Vec<Lanes>,
    pub(crate) d_out: Vec<Lanes>,
    pub(crate) gradient: Vec<Lanes>,
}

pub(crate) fn add(sum: &mut [Lanes], other: &[Lanes], scale: f32) {
    for (sum, other) in sum.iter_mut().zip(other) {
        for (sum, other) in sum.0.iter_mut().zip(other.0) {
            *sum += scale * other;
        }
    }
}

impl Visit {
    pub(crate) fn new(shape: &Shape, method: Method, between: &[Between], network: Option<&Network>) -> Self {
        let outputs = || vec![Lanes::default(); method.parameters_len(shape)];
        let amortized = network.map_or_else(Amortized::default, |network| Amortized {
            passes: vec![Pass::default(); CHUNK],
            at: outputs(),
            d_out: outputs(),
            gradient: vec![Lanes::default(); network.gradient_len()],
        });
        let lowest = shape.tiles(0).len();
        Self {
            estimator: Estimator::new(shape, method),
            z: vec![vec![Tile::default(); lowest]; CHUNK],
            inverse: vec![Vec::new(); CHUNK],
            activity: vec![Lanes::default(); lowest],
            d_between: between.iter().map(|between| vec![Lanes::default(); between.len()]).collect(),
            value: 0.0,
            amortized,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.activity.fill(Lanes::default());
        self.d_between.iter_mut().for_each(|d| d.fill(Lanes::default()));
        self.amortized.gradient.fill(Lanes::default());
        self.value = 0.0;
    }

    /// Keeps what the weights need of the last step.
    pub(crate) fn keep(&mut self, shape: &Shape, i: usize, draws: usize) {
        let lowest = shape.tiles(0);
        self.z[i].copy_from_slice(&self.estimator.z[lowest.clone()]);
        std::mem::swap(&mut self.inverse[i], &mut self.estimator.inverse);
        let shares = self.estimator.shares;
        for inverse in &mut self.inverse[i] {
            inverse[..draws].iter_mut().zip(shares).for_each(|(inverse, share)| *inverse *= share);
        }
        for (sum, mean) in self.activity.iter_mut().zip(&self.estimator.mean[lowest]) {
            for q in 0..draws {
                for (sum, mean) in sum.0.iter_mut().zip(mean.0[q]) {
                    *sum += shares[q] * mean;
                }
            }
        }
        self.estimator.between(shape, draws, &mut self.d_between);
    }
}

/// The words of a minibatch term by term.
pub(crate) struct TermIndex {
    starts: Vec<u32>,
    /// The document's place in the minibatch, and the word's place in the document.
    words: Vec<(u32, u32)>,
}

impl TermIndex {
    pub(crate) fn new(corpus: &Corpus, batch: &[usize]) -> Self {
        let mut starts = vec![0_u32; corpus.terms_len() + 1];
        for d in batch {
            for term in corpus.document(*d).0 {
                starts[*term as usize + 1] += 1;
            }
        }
        for v in 0..corpus.terms_len() {
            starts[v + 1] += starts[v];
        }
        let mut at = starts.clone();
        let mut words = vec![(0, 0); starts[corpus.terms_len()] as usize];
        for (place, d) in batch.iter().enumerate() {
            for (word, term) in corpus.document(*d).0.iter().enumerate() {
                words[at[*term as usize] as usize] = (place as u32, word as u32);
                at[*term as usize] += 1;
            }
        }
        Self { starts, words }
    }

    pub(crate) fn of(&self, term: usize) -> impl Iterator<Item = (usize, usize)> {
        let range = self.starts[term] as usize..self.starts[term + 1] as usize;
        self.words[range].iter().map(|(place, word)| (*place as usize, *word as usize))
    }
}
