//! What one fit gains over another on the same documents, in nats per word.

use serde::{Deserialize, Serialize};

/// The mean difference of two log likelihoods per word, and its standard error over documents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The difference.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

/// More standard errors than this are a difference.
const SURE: f64 = 2.0;

impl Gain {
    /// From the log likelihoods of each document under both, and its number of words. `None` for fewer than two documents or
    /// without words.
    pub fn new(documents: impl IntoIterator<Item = (f64, f64, f64)>) -> Option<Self> {
        let documents: Vec<(f64, f64, f64)> = documents.into_iter().collect();
        let words: f64 = documents.iter().map(|(.., words)| words).sum();
        if documents.len() < 2 || words <= 0.0 {
            return None;
        }
        let mean = documents.iter().map(|(one, other, _)| one - other).sum::<f64>() / words;
        let squares: f64 = documents.iter().map(|(one, other, words)| (one - other - mean * words).powi(2)).sum();
        let n = documents.len() as f64;
        Some(Self { mean, error: (squares * n / (n - 1.0)).sqrt() / words })
    }

    /// Whether it is above zero by more than two standard errors.
    pub fn is_better(self) -> bool {
        self.mean > SURE * self.error
    }

    /// Whether it is below zero by more than two standard errors.
    pub fn is_worse(self) -> bool {
        self.mean < -SURE * self.error
    }

    /// In a word: more than two standard errors count.
    pub fn verdict(self) -> &'static str {
        match self {
            _ if self.is_better() => "better",
            _ if self.is_worse() => "worse",
            _ => "same",
        }
    }
}

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:+.4} ± {:.4}", self.mean, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an error that forgets how the length of documents varies.
    #[test]
    fn a_gain_is_judged_by_its_error_over_documents() {
        let gain = Gain::new([(-10.0, -11.0, 5.0), (-20.0, -20.5, 5.0), (-30.0, -31.5, 10.0)]).expect("a gain");
        assert!((gain.mean - 0.15).abs() < 1e-12);
        // The residuals are 0.25, −0.25 and 0.
        assert!((gain.error - (0.125_f64 * 1.5).sqrt() / 20.0).abs() < 1e-12);
        assert_eq!(gain.verdict(), "better");
        assert_eq!(Gain { mean: -gain.mean, ..gain }.verdict(), "worse");
        assert_eq!(Gain { mean: gain.error, ..gain }.verdict(), "same");
        assert_eq!(Gain::new([(1.0, 0.0, 1.0)]), None);
    }
}
