//! What a method gains over mean-field on the same held-out documents, with standard errors over the documents.

use super::grid::{Entry, Section};
use super::heading::heading;
use super::numbers::Numbers;
use super::report::Report;
use hyperprior_def::Method;

/// The mean difference of two log likelihoods per word, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gain {
    mean: f64,
    error: f64,
}

/// More standard errors than this are a difference.
const SURE: f64 = 2.0;

impl Gain {
    /// From the log likelihoods of each document under both, and its number of words. `None` for fewer than two documents.
    fn new(documents: &[(f64, f64, f64)]) -> Option<Self> {
        if documents.len() < 2 {
            return None;
        }
        let words: f64 = documents.iter().map(|(.., words)| words).sum();
        let mean = documents.iter().map(|(one, other, _)| one - other).sum::<f64>() / words;
        let squares: f64 = documents.iter().map(|(one, other, words)| (one - other - mean * words).powi(2)).sum();
        let n = documents.len() as f64;
        Some(Self { mean, error: (squares * n / (n - 1.0)).sqrt() / words })
    }

    /// Of the log likelihoods of hidden word types, over pairs of cells with the same seed.
    fn of_types(pairs: &[(&Numbers, &Numbers)]) -> Option<Self> {
        let both = |(one, other): &(&Numbers, &Numbers)| -> Vec<_> {
            let documents = one.each.types.iter().zip(&other.each.types).zip(&one.each.hidden);
            documents.map(|((one, other), words)| (*one, *other, *words)).collect()
        };
        Self::new(&pairs.iter().flat_map(both).collect::<Vec<_>>())
    }

    /// Of the annealed likelihoods.
    fn annealed(pairs: &[(&Numbers, &Numbers)]) -> Option<Self> {
        let both = |(one, other): &(&Numbers, &Numbers)| -> Vec<_> {
            let documents = one.each.annealed.iter().zip(&other.each.annealed).zip(&one.each.words);
            documents.map(|((one, other), words)| (*one, *other, *words)).collect()
        };
        Self::new(&pairs.iter().flat_map(both).collect::<Vec<_>>())
    }

    /// In words: more than two standard errors count.
    fn verdict(self) -> &'static str {
        match self {
            Self { mean, error } if mean > SURE * error => "better",
            Self { mean, error } if mean < -SURE * error => "worse",
            _ => "same",
        }
    }

    /// As text.
    fn show(self) -> String {
        format!("{:+.4} ± {:.4}", self.mean, self.error)
    }
}

impl Report<'_> {
    /// The gains over mean-field of every model and method, over the documents of all seeds.
    pub(super) fn gains(&self) -> Section {
        let mut rows = Vec::new();
        for row in self.rows() {
            for method in row.methods.iter().filter(|method| **method != Method::MeanField) {
                let own = |method: Method| {
                    move |n: &&Numbers| {
                        n.cell.family == row.family && n.cell.layers == *row.layers && n.cell.method == method
                    }
                };
                let other =
                    |n: &Numbers| self.in_order().filter(own(Method::MeanField)).find(|o| o.cell.seed == n.cell.seed);
                let pairs: Vec<(&Numbers, &Numbers)> =
                    self.in_order().filter(own(*method)).filter_map(|n| Some((n, other(n)?))).collect();
                let mut line = vec![row.family.to_string(), row.layers.to_string(), heading(*method)];
                for gain in [Gain::of_types(&pairs), Gain::annealed(&pairs)] {
                    line.push(gain.map_or_else(|| "–".to_owned(), Gain::show));
                    line.push(gain.map_or("–", Gain::verdict).to_owned());
                }
                rows.push(line.into_iter().map(Entry::plain).collect());
            }
        }
        let header = ["family", "layers", "method", "hidden types", "", "annealed likelihood", ""];
        Section {
            title: "Gain in log likelihood per word over mean-field, with its standard error over documents".to_owned(),
            header: header.map(str::to_owned).to_vec(),
            rows,
            notes: vec!["More than two standard errors are called a difference.".to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_judged_by_its_error_over_documents() {
        let gain = Gain::new(&[(-10.0, -11.0, 5.0), (-20.0, -20.5, 5.0), (-30.0, -31.5, 10.0)]).expect("a gain");
        assert!((gain.mean - 0.15).abs() < 1e-12);
        // The residuals are 0.25, −0.25 and 0.
        assert!((gain.error - (0.125_f64 * 1.5).sqrt() / 20.0).abs() < 1e-12);
        assert_eq!(gain.verdict(), "better");
        assert_eq!(Gain { mean: -gain.mean, ..gain }.verdict(), "worse");
        assert_eq!(Gain { mean: gain.error, ..gain }.verdict(), "same");
        assert_eq!(Gain::new(&[(1.0, 0.0, 1.0)]), None);
    }
}
