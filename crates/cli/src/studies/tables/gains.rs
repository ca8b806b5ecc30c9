//! What a method gains over mean-field on the same held-out documents, with standard errors over the documents.

use super::grid::{Entry, Section};
use super::heading::heading;
use super::numbers::Numbers;
use super::report::Report;
use hyperprior_def::{Gain, Method};

/// Of the log likelihoods of hidden word types, over pairs of cells with the same seed.
fn of_types(pairs: &[(&Numbers, &Numbers)]) -> Option<Gain> {
    Gain::new(pairs.iter().flat_map(|(one, other)| {
        let documents = one.each.types.iter().zip(&other.each.types).zip(&one.each.hidden);
        documents.map(|((one, other), words)| (*one, *other, *words))
    }))
}

/// Of the annealed likelihoods.
fn annealed(pairs: &[(&Numbers, &Numbers)]) -> Option<Gain> {
    Gain::new(pairs.iter().flat_map(|(one, other)| {
        let documents = one.each.annealed.iter().zip(&other.each.annealed).zip(&one.each.words);
        documents.map(|((one, other), words)| (*one, *other, *words))
    }))
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
                for gain in [of_types(&pairs), annealed(&pairs)] {
                    line.push(gain.map_or_else(|| "–".to_owned(), |gain| gain.to_string()));
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
