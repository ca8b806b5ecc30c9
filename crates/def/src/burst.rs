//! Counts of words that come in bursts: a word that has occurred in a document is likely to occur again.
//!
//! With rate R, a count x is negative binomial of shape R/δ and with P(x = 0) = e^−R: the sum of Poisson(R) many bursts, whose lengths
//! have a logarithmic distribution. So words that do not occur enter through the sum of the rates, as with Poisson counts, and
//!
//! ln p(x) = −R + Σ_{i < x} ln(R + iδ) + x h(δ) − ln x!, with h(δ) = ln((1 − e^−δ) / δ).
//!
//! The mean is R (e^δ − 1) / δ, and the variance e^δ times the mean. At δ = 0 the count is Poisson. An occurrence after i others is an
//! entry of its own whose background is larger by iδ, so the kernels are those of Poisson counts.

use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::kernel::words::Words;
use hyperprior_math::special::ln_factorial;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The distribution of the number of times that a word occurs, given its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordCounts {
    /// Poisson: every occurrence is independent of the others.
    #[default]
    Poisson,
    /// Negative binomial, whose variance is e^δ times the mean; δ is learnt for every term.
    NegativeBinomial,
}

impl fmt::Display for WordCounts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Poisson => "poisson",
            Self::NegativeBinomial => "negative-binomial",
        })
    }
}

impl FromStr for WordCounts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "poisson" => Ok(Self::Poisson),
            "negative-binomial" => Ok(Self::NegativeBinomial),
            _ => Err(Error::BadSetting {
                field: "words",
                value: text.to_owned(),
                reason: "use poisson or negative-binomial",
            }),
        }
    }
}

/// The share of the words that come after others of their burst, at the start; and how many words it counts as, for each term.
const START: f64 = 0.15;
const PRIOR: f64 = 20.0;
/// The least and the largest δ.
const LEAST: f64 = 1e-3;
const MOST: f64 = 10.0;

/// h(δ), the constant of every word.
pub(crate) fn log_constant(burst: f64) -> f64 {
    (-(-burst).exp_m1() / burst).ln()
}

/// The δ at which this share of the words comes after others of their burst: δ / (e^δ − 1) = 1 − share. By Newton's method from a guess,
/// on a function that is concave.
fn with_share(share: f64, guess: f64) -> f64 {
    let mut burst = guess.clamp(LEAST, MOST);
    for _ in 0..NEWTON {
        let e = burst.exp_m1();
        let (value, slope) = (1.0 - burst / e, (burst * (e + 1.0) - e) / (e * e));
        burst = (burst + (share - value) / slope).clamp(LEAST, MOST);
    }
    burst
}

/// The iterations of Newton's method.
const NEWTON: usize = 6;

/// δ of every term, learnt from running averages over minibatches.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    pub(crate) each: Vec<f32>,
    /// How many words of each term come after others of their burst, and how many there are.
    pub(crate) continued: Vec<f32>,
    counts: Vec<f64>,
}

impl Bursts {
    /// Before the first minibatch.
    pub(crate) fn new(corpus: &Corpus) -> Self {
        let mut counts = vec![0.0; corpus.terms_len()];
        corpus.terms().iter().zip(corpus.counts()).for_each(|(term, x)| counts[*term as usize] += f64::from(*x));
        let each = vec![with_share(START, 0.3) as f32; counts.len()];
        let continued = counts.iter().map(|n| (START * n) as f32).collect();
        Self { each, continued, counts }
    }

    /// Moves the averages by a share towards the counts of a minibatch, and δ to where the bound is largest given these (the M step of an
    /// EM algorithm in which each word begins a burst or continues one). The prior of a term counts as much as a few words of all terms.
    pub(crate) fn update(&mut self, size: f64, continued: impl Fn(usize) -> f64 + Sync) {
        let each = self.continued.par_iter_mut().enumerate();
        each.for_each(|(v, own)| *own += (size * (continued(v) - f64::from(*own))) as f32);
        let all: f64 = self.continued.iter().map(|x| f64::from(*x)).sum();
        let share = all / self.counts.iter().sum::<f64>();
        let averages = self.continued.par_iter().zip(&self.counts);
        self.each.par_iter_mut().zip(averages).for_each(|(burst, (continued, count))| {
            let share = (f64::from(*continued) + PRIOR * share) / (count + PRIOR);
            *burst = with_share(share, f64::from(*burst)) as f32;
        });
    }

    /// The mean over all words of the variance of a count divided by its mean, e^δ.
    pub(crate) fn overdispersion(&self) -> f64 {
        let sum: f64 = self.each.iter().zip(&self.counts).map(|(burst, n)| n * f64::from(*burst).exp()).sum();
        sum / self.counts.iter().sum::<f64>()
    }
}

/// Of δ of every term: e^δ − 1 divided by δ, the mean length of a burst, so that the mean of a count is its rate times that; 1 without
/// bursts.
pub(crate) fn mean_length(bursts: &[f32], term: usize) -> f64 {
    bursts.get(term).map_or(1.0, |burst| f64::from(*burst).exp_m1() / f64::from(*burst))
}

/// What words add to the bound whatever the latents are.
pub(crate) fn constant(bursts: &[f32], (terms, counts): (&[u32], &[f32])) -> f64 {
    let of = |(term, x): (&u32, &f32)| {
        let own = bursts.get(*term as usize).map_or(0.0, |burst| log_constant(f64::from(*burst)));
        f64::from(*x) * own - ln_factorial(f64::from(*x))
    };
    terms.iter().zip(counts).map(of).sum()
}

/// A part of a document's words, each kept with this probability, has the same shape R/δ: how much smaller the rate of a term is, and the
/// constant of every word.
pub(crate) fn thinned(bursts: &[f32], term: usize, kept: f64) -> (f64, f64) {
    let Some(burst) = bursts.get(term).map(|burst| f64::from(*burst)) else { return (kept, kept.ln()) };
    let p = -(-burst).exp_m1();
    let rest = 1.0 - p + p * kept;
    ((burst + rest.ln()) / burst, (p * kept / rest / burst).ln())
}

/// Documents word by word: each occurrence of a term is an entry of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    starts: Vec<usize>,
    terms: Vec<u32>,
    /// As many ones as the longest document has words.
    ones: Vec<f32>,
    /// The number of earlier occurrences of the term in the document.
    earlier: Vec<f32>,
}

impl Tokens {
    pub(crate) fn of<'d>(documents: impl Iterator<Item = (&'d [u32], &'d [f32])>) -> Self {
        let mut tokens = Self { starts: vec![0], ..Self::default() };
        let mut longest = 0;
        for (terms, counts) in documents {
            for (term, count) in terms.iter().zip(counts) {
                for i in 0..*count as u32 {
                    tokens.terms.push(*term);
                    tokens.earlier.push(i as f32);
                }
            }
            longest = longest.max(tokens.terms.len() - tokens.starts[tokens.starts.len() - 1]);
            tokens.starts.push(tokens.terms.len());
        }
        tokens.ones = vec![1.0; longest];
        tokens
    }

    pub(crate) fn words<'a>(&'a self, document: usize, bursts: &'a [f32]) -> Words<'a> {
        let range = self.starts[document]..self.starts[document + 1];
        let counts = &self.ones[..range.len()];
        Words { terms: &self.terms[range.clone()], counts, earlier: &self.earlier[range], bursts }
    }
}

/// A corpus as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) corpus: &'a Corpus,
    /// Word by word, and δ of every term, if they come in bursts.
    pub(crate) bursty: Option<(&'a Tokens, &'a [f32])>,
}

impl<'a> Text<'a> {
    pub(crate) fn words(&self, document: usize) -> Words<'a> {
        match self.bursty {
            Some((tokens, bursts)) => tokens.words(document, bursts),
            None => Words::of(self.corpus.document(document)),
        }
    }

    /// What a document adds to the bound whatever its latents are.
    pub(crate) fn constant(&self, document: usize) -> f64 {
        constant(self.bursty.map_or(&[], |(_, bursts)| bursts), self.corpus.document(document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ln p(x) of the formula above.
    fn log_p(x: u32, rate: f64, burst: f32) -> f64 {
        let rises: f64 = (0..x).map(|i| (rate + f64::from(i) * f64::from(burst)).ln()).sum();
        rises - rate + constant(&[burst], (&[0], &[x as f32]))
    }

    /// Catches a wrong constant, mean or variance: the probabilities sum to one and have the moments of the negative binomial.
    #[test]
    fn probabilities_are_those_of_bursts() {
        for (rate, burst) in [(0.3, 0.8), (2.0, 0.1), (1.5, 2.0), (0.7, 1e-3)] {
            let p: Vec<f64> = (0..2000).map(|x| log_p(x, rate, burst).exp()).collect();
            let moment = |f: &dyn Fn(f64) -> f64| -> f64 { p.iter().enumerate().map(|(x, p)| p * f(x as f64)).sum() };
            let mean = rate * mean_length(&[burst], 0);
            assert!((moment(&|_| 1.0) - 1.0).abs() < 1e-9);
            assert!((moment(&|x| x) / mean - 1.0).abs() < 1e-9);
            assert!((moment(&|x| (x - mean).powi(2)) / (mean * f64::from(burst).exp()) - 1.0).abs() < 1e-8);
        }
    }

    /// Catches a wrong M step: δ settles where the likelihood of given counts and rates, with the prior, is largest.
    #[test]
    fn the_bursts_settle_at_the_maximum() {
        let counts: Vec<(u32, f64)> = (0..400).map(|k| ([1, 1, 2, 5][k % 4], 0.2 + 0.01 * (k % 7) as f64)).collect();
        let words: f64 = counts.iter().map(|(x, _)| f64::from(*x)).sum();
        let mut bursts = Bursts { each: vec![0.3], continued: vec![1.0], counts: vec![words] };
        let mut share = 0.0;
        for _ in 0..200 {
            let burst = f64::from(bursts.each[0]);
            let of = |(x, rate): &(u32, f64)| -> f64 {
                (0..*x).map(|i| f64::from(i) * burst / (rate + f64::from(i) * burst)).sum()
            };
            let continued: f64 = counts.iter().map(of).sum();
            share = continued / words;
            bursts.update(1.0, |_| continued);
        }
        let burst = bursts.each[0];
        let total = |burst: f32| {
            let prior = PRIOR * (share * f64::from(burst).ln() + log_constant(f64::from(burst)));
            counts.iter().map(|(x, rate)| log_p(*x, *rate, burst)).sum::<f64>() + prior
        };
        assert!(total(burst) > total(burst * 1.01) && total(burst) > total(burst / 1.01), "{burst}");
    }

    #[test]
    fn shares_of_bursts_are_inverted() {
        for burst in [0.01_f64, 0.3, 1.0, 4.0] {
            for guess in [0.001, 0.3, 9.0] {
                let found = with_share(1.0 - burst / burst.exp_m1(), guess);
                let again = with_share(1.0 - burst / burst.exp_m1(), found);
                assert!((again / burst - 1.0).abs() < 1e-3, "{burst} from {guess}: {found}, {again}");
            }
        }
    }

    /// Catches a wrong rate or constant of a part of the words: its distribution is the mixture over the whole.
    #[test]
    fn a_part_of_the_words_has_its_own_rate() {
        for (rate, bursts, kept) in [(0.6, vec![0.9_f32], 0.5), (2.0, vec![0.2], 0.3), (1.0, vec![], 0.5)] {
            let (smaller, of_word) = thinned(&bursts, 0, kept);
            let burst = bursts.first().copied().unwrap_or(0.0);
            let rises = |x: u32| -> f64 { (0..x).map(|i| (rate + f64::from(i) * f64::from(burst)).ln()).sum() };
            for x in 0..6_u32 {
                let ln_factorial = |x: u32| ln_factorial(f64::from(x));
                let whole: f64 = (x..150)
                    .map(|n| {
                        let log_p = rises(n) - rate + constant(&bursts, (&[0], &[n as f32]));
                        let log_choose = ln_factorial(n) - ln_factorial(x) - ln_factorial(n - x);
                        let (seen, hidden) = (f64::from(x) * f64::ln(kept), f64::from(n - x) * f64::ln(1.0 - kept));
                        (log_p + log_choose + seen + hidden).exp()
                    })
                    .sum();
                let own = rises(x) - smaller * rate + f64::from(x) * of_word - ln_factorial(x);
                assert!((own.exp() / whole - 1.0).abs() < 1e-9, "{x}: {} and {whole}", own.exp());
            }
        }
    }
}
