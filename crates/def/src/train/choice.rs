//! Which method `hvm` is: half way through the training, mean-field and every candidate go on for a few epochs without the validation
//! documents, and are compared on these. What the weights knew of them before fades, and is the same for all. The training itself goes
//! on from where it was, with all documents.

use super::{START, Training};
use crate::corpus::Corpus;
use crate::error::Result;
use crate::gain::Gain;
use crate::heldout::{Holdout, Measured, Predictor};
use crate::kernel::layer::RATE_MIN;
use crate::local::Method;
use crate::memory;
use crate::minibatch::{CHUNK, MinibatchChunk};
use crate::settings::FitSettings;
use crate::shape::Shape;
use hyperprior_math::random::stream;
use hyperprior_math::single::Lanes;
use rayon::prelude::*;
use serde::{Deserialize, Serialize, Serializer};

/// The share of the documents that are validation documents, and the smallest and largest number of them.
const SHARE: usize = 10;
const DOCUMENTS: std::ops::RangeInclusive<usize> = 20..=200;
/// The candidates train for this share of the epochs that are left.
const TRIAL: u32 = 3;
/// The least number of epochs of which a half leaves something to choose.
const EPOCHS_MIN: u32 = 4;
/// Steps of the fit of a validation document, and temperatures of its annealed likelihood.
const STEPS: u32 = 100;
const TEMPERATURES: usize = 50;

/// How a candidate compares with mean-field on validation documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The candidate.
    #[serde(serialize_with = "by_name")]
    pub method: Method,
    /// Its gain in the log likelihood of hidden word types.
    pub hidden_types: Option<Gain>,
    /// Its gain in the annealed log likelihood of whole documents; `None` if some latents are continuous.
    pub annealed: Option<Gain>,
}

/// The name that people use, and not the earlier one that some files keep.
fn by_name<S: Serializer>(method: &Method, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(method)
}

impl Candidate {
    /// Its gains, if it is better than mean-field by one measure and worse by none.
    fn gain(&self) -> Option<f64> {
        let gains: Vec<Gain> = [self.hidden_types, self.annealed].into_iter().flatten().collect();
        let is_chosen = gains.iter().any(|gain| gain.is_better()) && !gains.iter().any(|gain| gain.is_worse());
        is_chosen.then(|| gains.iter().map(|gain| gain.mean).sum())
    }
}

/// The method that [`Method::Hvm`] turned out to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The method.
    #[serde(serialize_with = "by_name")]
    pub method: Method,
    /// The number of validation documents.
    pub documents: usize,
    /// What it was chosen from, beside mean-field.
    pub candidates: Vec<Candidate>,
}

impl Choice {
    /// The candidate with the largest gains, or mean-field if none gains.
    fn of(documents: usize, candidates: Vec<Candidate>) -> Self {
        let gains = candidates.iter().filter_map(|candidate| Some((candidate.method, candidate.gain()?)));
        let best = gains.reduce(|best, next| if next.1 > best.1 { next } else { best });
        Self { method: best.map_or(Method::MeanField, |(method, _)| method), documents, candidates }
    }
}

/// The validation documents, spread over the corpus; none if there would be too few.
fn validation(documents_len: usize) -> Vec<usize> {
    let len = (documents_len / SHARE).min(*DOCUMENTS.end());
    let len = if len < *DOCUMENTS.start() { 0 } else { len };
    (0..len).map(|i| i * documents_len / len).collect()
}

/// What the validation documents say of a method: of each document, its log likelihood of hidden word types with their number, and
/// its annealed likelihood with its number of words.
struct Evaluated {
    types: Vec<(f64, f64)>,
    annealed: Vec<(f64, f64)>,
}

impl Evaluated {
    fn gain(one: &[(f64, f64)], other: &[(f64, f64)]) -> Option<Gain> {
        Gain::new(one.iter().zip(other).map(|(one, other)| (one.0, other.0, one.1)))
    }
}

impl Training<'_> {
    /// The method that [`Method::Hvm`] turned out to be; `None` before the choice, or if another method was asked for.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Whether [`Training::choose`] is due before the next epoch.
    pub fn is_due(&self) -> bool {
        let settings = &self.settings;
        settings.method == Method::Hvm && self.choice.is_none() && self.epoch == Method::chooses(settings.epochs)
    }

    /// Chooses the method if [`Training::is_due`]. `goes_on` gets the name of each candidate before its epochs; once it returns
    /// false, nothing is chosen and the training stays where it is. [`Training::run_epoch`] chooses too, without asking.
    ///
    /// # Errors
    /// The errors of the fits to validation documents.
    pub fn choose(&mut self, goes_on: &mut dyn FnMut(Method) -> bool) -> Result<()> {
        if !self.is_due() {
            return Ok(());
        }
        let places = validation(self.corpus.documents_len());
        // What a GPU trains is mean-field.
        if places.is_empty() || self.settings.epochs < EPOCHS_MIN || self.device.0.is_some() {
            self.adopt(Choice::of(0, Vec::new()));
            return Ok(());
        }
        let corpus = self.corpus.subset(&places);
        let Some(base) = self.evaluated(Method::MeanField, (&places, &corpus), goes_on)? else { return Ok(()) };
        let mut candidates = Vec::new();
        for method in Method::candidates(&self.shape) {
            let settings = self.settings.clone().method(method);
            let shape = Shape::with(&settings.layers, method.is_conway_maxwell())?;
            if memory::check(&settings, &shape, self.corpus.terms_len(), self.corpus.documents_len()).is_err() {
                continue;
            }
            let Some(own) = self.evaluated(method, (&places, &corpus), goes_on)? else { return Ok(()) };
            candidates.push(Candidate {
                method,
                hidden_types: Evaluated::gain(&own.types, &base.types),
                annealed: Evaluated::gain(&own.annealed, &base.annealed),
            });
        }
        self.adopt(Choice::of(corpus.documents_len(), candidates));
        Ok(())
    }

    /// What the validation documents say of a method after a few epochs; `None` once `goes_on` says so.
    fn evaluated(
        &self,
        method: Method,
        (places, validation): (&[usize], &Corpus),
        goes_on: &mut dyn FnMut(Method) -> bool,
    ) -> Result<Option<Evaluated>> {
        // Half of twice as many epochs, so that the steps shrink as they would until the end.
        let epochs = (self.settings.epochs - self.epoch).div_ceil(TRIAL).max(2);
        let mut trial = self.clone();
        trial.settings.epochs = 2 * epochs;
        trial.epoch = epochs;
        trial.switch(method);
        for _ in 0..epochs {
            if !goes_on(method) {
                return Ok(None);
            }
            trial.pass(places)?;
        }
        if !goes_on(method) {
            return Ok(None);
        }
        let predictor = Predictor::new(&trial, FitSettings::default().steps(STEPS))?;
        let all = 0..validation.documents_len();
        let mut types = Measured::default();
        predictor.measure(validation, Holdout::Types, all.clone(), &mut types)?;
        let annealed = if self.shape.is_continuous() {
            Vec::new()
        } else {
            let fits = predictor.infer(validation, all.clone());
            predictor.annealed(validation, all.clone(), &fits, TEMPERATURES)?
        };
        let words = |d: usize| validation.document(d).1.iter().map(|x| f64::from(*x)).sum::<f64>();
        let annealed = annealed.into_iter().enumerate().map(|(d, found)| (found, words(d))).collect();
        Ok(Some(Evaluated { types: types.documents().collect(), annealed }))
    }

    /// Goes on with the chosen method.
    fn adopt(&mut self, choice: Choice) {
        self.switch(choice.method);
        self.choice = Some(choice);
    }

    /// Goes on with another method from mean-field parameters.
    fn switch(&mut self, method: Method) {
        if method == Method::MeanField {
            self.settings.method = method;
            return;
        }
        // The layers are valid.
        let Ok(shape) = Shape::with(self.shape.layers(), method.is_conway_maxwell()) else { return };
        let (before, len) = (self.settings.method.parameters_len(&self.shape), method.parameters_len(&shape));
        let (activity, seed) = (self.settings.activity, self.settings.seed);
        let mut local = vec![Lanes::default(); len * self.corpus.documents_len()];
        let old = self.local[0].par_chunks(before);
        local.par_chunks_mut(len).zip(old).enumerate().for_each(|(d, (new, old))| {
            method.start(&shape, activity, &mut stream(seed, START, 1 + d as u64, 0), new);
            carry_over(&self.shape, &shape, old, new);
        });
        let zeros = vec![Lanes::default(); local.len()];
        self.local = [local, zeros.clone(), zeros];
        let chunk = MinibatchChunk::new(&shape, method, &self.layer_weights, None);
        let chunks_len = self.settings.batch.min(self.corpus.documents_len()).div_ceil(CHUNK);
        self.chunks = vec![chunk; chunks_len];
        (self.settings.method, self.shape) = (method, shape);
    }
}

/// Copies the λ of a mean-field fit. That of a count is the logarithm of its mean where its factor is Conway–Maxwell.
fn carry_over(from: &Shape, to: &Shape, old: &[Lanes], new: &mut [Lanes]) {
    for (l, layer) in from.layers().iter().enumerate() {
        new[from.tiles(l)].copy_from_slice(&old[from.tiles(l)]);
        if layer.family.is_continuous() {
            new[to.scales(l)].copy_from_slice(&old[from.scales(l)]);
        }
        if to.is_conway_maxwell(l) {
            for (tile, lane) in (0..layer.width).map(|k| from.place(l, k)) {
                new[tile].0[lane] = log_mean(old[tile].0[lane]);
            }
        }
    }
}

/// ln of the mean of a Poisson factor with this λ.
fn log_mean(lambda: f32) -> f32 {
    let soft = if lambda > 20.0 { lambda } else { lambda.exp().ln_1p() };
    (soft + RATE_MIN).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(method: Method, types: [f64; 2], annealed: Option<[f64; 2]>) -> Candidate {
        let gain = |[mean, error]: [f64; 2]| Gain { mean, error };
        Candidate { method, hidden_types: Some(gain(types)), annealed: annealed.map(gain) }
    }

    /// Catches a choice by the mean alone, and one that is better by one measure and worse by the other.
    #[test]
    fn what_gains_by_one_measure_and_loses_by_none_is_chosen() {
        let noisy = candidate(Method::Mixture(8), [0.1, 0.06], Some([0.1, 0.06]));
        let torn = candidate(Method::ConwayMaxwell, [-0.1, 0.01], Some([0.2, 0.01]));
        let good = candidate(Method::Flow(2, 10), [0.01, 0.004], Some([-0.001, 0.004]));
        let better = candidate(Method::LowRank(8), [0.001, 0.01], Some([0.02, 0.004]));
        let of = |candidates: &[Candidate]| Choice::of(100, candidates.to_vec()).method;
        assert_eq!(of(&[noisy, torn]), Method::MeanField);
        assert_eq!(of(&[noisy, torn, good]), good.method);
        assert_eq!(of(&[better, good]), better.method);
        assert_eq!(of(&[candidate(Method::LowRank(8), [0.01, 0.004], None)]), Method::LowRank(8));
    }

    /// Catches parameters in another order, and counts whose mean changes.
    #[test]
    fn a_fit_is_carried_over_with_its_means() {
        use crate::shape::{Family, Layer};
        use hyperprior_math::single::LANES;
        let layers = [(Family::Poisson, 20), (Family::Bernoulli, 3), (Family::Poisson, 2)];
        let layers: Vec<Layer> = layers.into_iter().map(|(family, width)| Layer { family, width }).collect();
        let (from, to) = (Shape::new(&layers).expect("a shape"), Shape::with(&layers, true).expect("a shape"));
        let own = |j: usize, lane: usize| (j * LANES + lane) as f32 * 0.7 - 9.0;
        let old: Vec<Lanes> = (0..from.lambda_len()).map(|j| Lanes(std::array::from_fn(|lane| own(j, lane)))).collect();
        let method = Method::ConwayMaxwellMixture(2);
        let mut new = vec![Lanes::default(); method.parameters_len(&to)];
        carry_over(&from, &to, &old, &mut new);
        for (l, layer) in layers.iter().enumerate() {
            for k in 0..layer.width {
                let (tile, lane) = from.place(l, k);
                let (old, new) = (old[tile].0[lane], new[tile].0[lane]);
                let mean = f64::from(old).exp().ln_1p() + f64::from(RATE_MIN);
                let expected = if layer.family == Family::Poisson { mean.ln() } else { f64::from(old) };
                assert!(
                    (f64::from(new) - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                    "{l}, {k}: {new}, {expected}"
                );
            }
        }
        assert!(to.scales(0).all(|j| new[j] == Lanes::default()));
    }
}
