//! The documents of a minibatch, in chunks of one thread each: their steps, their draws, and their words term by term.

use crate::burst::Text;
use crate::estimate::{Estimator, Given};
use crate::kernel::layer::Link;
use crate::kernel::words::Seen;
use crate::local::Method;
use crate::network::{Network, Pass};
use crate::settings::Settings;
use crate::shape::Shape;
use crate::weights::LayerWeights;
use hyperprior_math::random::{TextPurpose, stream};
use hyperprior_math::single::{DRAWS, Lanes, Tile};

/// Documents that one thread processes at a time.
pub(crate) const CHUNK: usize = 16;

/// A few documents of a minibatch and the results of their last step.
#[derive(Clone, Debug)]
pub(crate) struct MinibatchChunk {
    pub(crate) estimator: Estimator,
    /// The lowest layer's draws of each document, and 1/R of its words times the weight of each draw.
    pub(crate) z: Vec<Vec<Tile>>,
    pub(crate) inverse: Vec<Vec<[f32; DRAWS]>>,
    pub(crate) activity: Vec<Lanes>,
    pub(crate) d_layer_weights: Vec<Vec<Lanes>>,
    pub(crate) value: f64,
    pub(crate) amortized: Amortized,
}

/// Working memory if an inference network gives the parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amortized {
    pub(crate) passes: Vec<Pass>,
    pub(crate) at: Vec<Lanes>,
    pub(crate) d_out: Vec<Lanes>,
    pub(crate) gradient: Vec<Lanes>,
}

/// What all documents of a minibatch share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) settings: &'a Settings,
    pub(crate) shape: &'a Shape,
    pub(crate) seen: Seen<'a>,
    pub(crate) links: &'a [Link<'a>],
    pub(crate) network: Option<&'a Network>,
    /// The variational model at this stage of the training, and the number of draws of a step.
    pub(crate) method: Method,
    pub(crate) draws: usize,
    /// The number of the minibatch, and of the steps that each document has taken with this variational model.
    pub(crate) step: u64,
    pub(crate) steps_done: u32,
    /// Whether this is the first epoch with this variational model.
    pub(crate) is_first: bool,
    pub(crate) size: f32,
}

/// A document's parameters and the moments of their gradients; `None` if a network gives the parameters.
pub(crate) type Parameters<'a> = Option<[&'a mut [Lanes]; 3]>;

pub(crate) fn add(sum: &mut [Lanes], other: &[Lanes], scale: f32) {
    for (sum, other) in sum.iter_mut().zip(other) {
        for (sum, other) in sum.0.iter_mut().zip(other.0) {
            *sum += scale * other;
        }
    }
}

impl MinibatchChunk {
    pub(crate) fn new(
        shape: &Shape,
        method: Method,
        layer_weights: &[LayerWeights],
        network: Option<&Network>,
    ) -> Self {
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
            d_layer_weights: layer_weights.iter().map(|weights| vec![Lanes::default(); weights.len()]).collect(),
            value: 0.0,
            amortized,
        }
    }

    fn clear(&mut self) {
        self.activity.fill(Lanes::default());
        self.d_layer_weights.iter_mut().for_each(|d| d.fill(Lanes::default()));
        self.amortized.gradient.fill(Lanes::default());
        self.value = 0.0;
    }

    /// Takes the steps of a few documents and keeps what the weights need of them.
    pub(crate) fn run(&mut self, shared: &Shared, documents: &[usize], parameters: &mut [Parameters]) {
        let Shared { shape, settings, method, draws, .. } = *shared;
        self.clear();
        for (i, d) in documents.iter().enumerate() {
            let words = shared.text.words(*d);
            let given = Given { shape, words, seen: shared.seen, links: shared.links };
            let mut rng = stream(settings.seed, shared.step, *d as u64, 0);
            let mut value = 0.0;
            if let Some(network) = shared.network {
                let fitted_len = method.parameters_len(shape);
                let Self { estimator, amortized, .. } = &mut *self;
                network.forward(&words, &mut amortized.passes[i], &mut amortized.at);
                let at = &amortized.at[..fitted_len];
                value = estimator.step(&given, at, draws, &mut rng);
                amortized.d_out[..fitted_len].copy_from_slice(&estimator.gradient);
                estimator.weights_gradient(value, &mut amortized.d_out[..fitted_len]);
                network.backward(&mut amortized.passes[i], &amortized.d_out, &mut amortized.gradient);
            }
            if let Some([at, first, second]) = &mut parameters[i] {
                if shared.is_first {
                    method.begin(
                        shape,
                        &mut stream(settings.seed, TextPurpose::DocumentStart.step(), 1 + *d as u64, 1),
                        at,
                    );
                }
                for local_step in 0..settings.local_steps {
                    value = self.estimator.step(&given, at, draws, &mut rng);
                    let number = shared.steps_done + local_step + 1;
                    self.estimator.ascend(method, &given, [at, first, second], number, shared.size);
                }
            }
            self.value += f64::from(value) + shared.text.constant(*d);
            self.keep(shape, i, draws);
        }
    }

    /// Keeps what the weights need of the last step.
    fn keep(&mut self, shape: &Shape, i: usize, draws: usize) {
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
        self.estimator.layer_weights_gradient(shape, draws, &mut self.d_layer_weights);
    }
}

/// The words of a minibatch term by term.
pub(crate) struct TermIndex {
    starts: Vec<u32>,
    /// The document's position in the minibatch, and the word's position in the document.
    words: Vec<(u32, u32)>,
}

impl TermIndex {
    pub(crate) fn new(text: &Text, batch: &[usize]) -> Self {
        let terms_len = text.corpus.terms_len();
        let mut starts = vec![0_u32; terms_len + 1];
        for d in batch {
            for term in text.words(*d).terms {
                starts[*term as usize + 1] += 1;
            }
        }
        for v in 0..terms_len {
            starts[v + 1] += starts[v];
        }
        let mut at = starts.clone();
        let mut words = vec![(0, 0); starts[terms_len] as usize];
        for (place, d) in batch.iter().enumerate() {
            for (word, term) in text.words(*d).terms.iter().enumerate() {
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
