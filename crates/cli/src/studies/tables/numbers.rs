//! The numbers of a cell.

use super::plan::Cell;
use hyperprior_def::Method;
use serde::{Deserialize, Deserializer, Serialize};

/// The numbers of a cell. A non-finite one is `null` in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Numbers {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The method that the cell's turned out to be, if it was chosen.
    #[serde(default)]
    pub chosen: Option<Method>,
    /// The numbers of training documents, of held-out documents, and of those evaluated.
    pub documents: usize,
    pub heldout_documents: usize,
    pub measured_documents: usize,
    /// The bound per word on the training documents, with the weights.
    #[serde(deserialize_with = "number")]
    pub elbo: f64,
    /// Given the weights: on whole held-out documents, and on their visible halves.
    #[serde(deserialize_with = "number")]
    pub elbo_heldout: f64,
    #[serde(deserialize_with = "number")]
    pub elbo_visible: f64,
    /// For hidden word types, with means plugged in and with rates averaged over draws.
    #[serde(deserialize_with = "number")]
    pub heldout_perplexity: f64,
    #[serde(deserialize_with = "number")]
    pub heldout_perplexity_averaged: f64,
    #[serde(deserialize_with = "number")]
    pub unigram_perplexity: f64,
    /// For hidden words.
    #[serde(deserialize_with = "number")]
    pub completion_perplexity: f64,
    #[serde(deserialize_with = "number")]
    pub completion_perplexity_averaged: f64,
    #[serde(deserialize_with = "number")]
    pub completion_unigram_perplexity: f64,
    /// ln p(words) per word of whole held-out documents by annealed importance sampling, given the weights.
    #[serde(deserialize_with = "number")]
    pub annealed: f64,
    /// Document by document.
    pub each: Each,
    /// The times of training and evaluation.
    pub training_seconds: f64,
    pub evaluation_seconds: f64,
}

/// The numbers of each evaluated document, from which differences get standard errors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Each {
    /// The log likelihood of hidden word types with means plugged in, and the number of hidden words.
    pub types: Vec<f64>,
    pub hidden: Vec<f64>,
    /// The annealed likelihood of the whole document, and its number of words; empty without annealing.
    pub annealed: Vec<f64>,
    pub words: Vec<f64>,
}

/// A point of the curve of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The number of steps per document, and of documents.
    pub steps: u32,
    pub documents: usize,
    /// For hidden word types.
    #[serde(deserialize_with = "number")]
    pub heldout_perplexity: f64,
    #[serde(deserialize_with = "number")]
    pub heldout_perplexity_averaged: f64,
    /// The bound per word on the visible halves.
    #[serde(deserialize_with = "number")]
    pub elbo_visible: f64,
    /// The running time.
    pub seconds: f64,
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// One of the numbers by which methods are compared.
pub struct Measure {
    /// Its name in files.
    pub name: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// Whether it is a log likelihood or a bound on one, where larger is better, and not a perplexity.
    pub is_log: bool,
    /// The number.
    pub of: fn(&Numbers) -> f64,
}

/// All measures.
pub const MEASURES: [Measure; 8] = [
    Measure { name: "elbo", label: "training bound", is_log: true, of: |n| n.elbo },
    Measure { name: "elbo_heldout", label: "held-out bound", is_log: true, of: |n| n.elbo_heldout },
    Measure { name: "elbo_visible", label: "visible bound", is_log: true, of: |n| n.elbo_visible },
    Measure { name: "heldout_perplexity", label: "types plug-in", is_log: false, of: |n| n.heldout_perplexity },
    Measure {
        name: "heldout_perplexity_averaged",
        label: "types averaged",
        is_log: false,
        of: |n| n.heldout_perplexity_averaged,
    },
    Measure { name: "completion_perplexity", label: "words plug-in", is_log: false, of: |n| n.completion_perplexity },
    Measure {
        name: "completion_perplexity_averaged",
        label: "words averaged",
        is_log: false,
        of: |n| n.completion_perplexity_averaged,
    },
    Measure { name: "annealed", label: "annealed likelihood", is_log: true, of: |n| n.annealed },
];

/// The places in [`MEASURES`] of those with their own tables.
pub const BOUNDS: std::ops::Range<usize> = 0..3;
pub const PLUG_IN: usize = 3;
pub const AVERAGED: usize = 4;
pub const ANNEALED: usize = 7;

impl Measure {
    /// Whether one number is no worse than another. NaN is worse than any number.
    pub fn is_no_worse(&self, one: f64, other: f64) -> bool {
        if one.is_nan() || other.is_nan() {
            return !one.is_nan();
        }
        if self.is_log { one >= other } else { one <= other }
    }

    /// A value as text.
    pub fn show(&self, value: f64) -> String {
        match value {
            value if !value.is_finite() => "–".to_owned(),
            value if self.is_log => format!("{value:.4}"),
            value => format!("{value:.1}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_bound_and_a_smaller_perplexity_are_better() {
        let [bound, perplexity] = [0, 3].map(|i| &MEASURES[i]);
        assert!(bound.is_no_worse(-3.0, -3.1) && !bound.is_no_worse(-3.1, -3.0) && bound.is_no_worse(-3.0, -3.0));
        assert!(perplexity.is_no_worse(800.0, 801.0) && !perplexity.is_no_worse(801.0, 800.0));
        assert!(!perplexity.is_no_worse(f64::NAN, 1.0) && perplexity.is_no_worse(1.0, f64::NAN));
        assert_eq!([bound.show(-3.17624), perplexity.show(844.96), bound.show(f64::NAN)], ["-3.1762", "845.0", "–"]);
    }

    #[test]
    fn nan_is_null_in_json() {
        let text = r#"{"family": "poisson", "layers": [4, 2], "method": "flow:2,10", "seed": 1, "steps": 5,
            "documents": 3, "heldout_perplexity": null, "heldout_perplexity_averaged": 2.5, "elbo_visible": -1.5,
            "seconds": 0.5}"#;
        let point: Point = serde_json::from_str(text).expect("a point");
        assert!(point.heldout_perplexity.is_nan() && point.elbo_visible == -1.5);
        assert_eq!(point.cell.file_name(), "poisson_4-2_flow-2-10_seed1");
        assert!(serde_json::to_string(&point).expect("JSON").contains("\"heldout_perplexity\":null"));
    }
}
