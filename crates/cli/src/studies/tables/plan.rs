//! The cells of the tables: model, method and seed.

use super::settings::HELDOUT;
use crate::error::CliError;
use crate::topics::Layers;
use clap::ValueEnum;
use hyperprior_def::{Corpus, Family, Layer, Method, Settings};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The widths of a model's layers, bottom layer first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Widths(pub Vec<usize>);

impl fmt::Display for Widths {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0.iter().map(usize::to_string).collect::<Vec<_>>().join("-"))
    }
}

impl FromStr for Widths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let layers: Layers = text.replace('-', ",").parse()?;
        let mixed = || "all layers of a model have one family, which --families sets".to_owned();
        layers.widths().map(Self).ok_or_else(mixed)
    }
}

/// The models that are also fitted with the paper's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flows {
    /// No model
    None,
    /// Models with one layer
    OneLayer,
    /// All models
    All,
}

/// The paper's prior and recursive approximation: a planar flow of length 2 and an inverse flow of length 10.
pub const FLOW: Method = Method::Flow(2, 10);

/// One trained model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The family of its latents.
    pub family: Family,
    /// Its layers.
    pub layers: Widths,
    /// Its variational model.
    pub method: Method,
    /// The seed of the split, of the hidden words and of the training.
    pub seed: u64,
}

impl Cell {
    /// The name of its files.
    pub fn file_name(&self) -> String {
        let method = self.method.to_string().replace([':', ','], "-");
        format!("{}_{}_{method}_seed{}", self.family, self.layers, self.seed)
    }

    /// Its name in messages.
    pub fn describe(&self) -> String {
        format!("{} {} {}, seed {}", self.family, self.layers, self.method, self.seed)
    }

    /// The settings of its training.
    pub fn settings(&self, shared: Settings) -> Settings {
        let layers = self.layers.0.iter().map(|width| Layer { family: self.family, width: *width }).collect();
        shared.layers(layers).method(self.method).seed(self.seed)
    }
}

/// All cells and curves.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Families of latents.
    pub families: Vec<Family>,
    /// Layers for each family.
    pub layers: Vec<Widths>,
    /// Methods for each model.
    pub methods: Vec<Method>,
    /// Seeds for each model and method.
    pub seeds: Vec<u64>,
    /// The models with a row for the paper's flows.
    pub flows: Flows,
    /// The steps of the curve; empty for none.
    pub curve: Vec<u32>,
}

impl Plan {
    /// Without duplicates.
    #[must_use]
    pub fn deduplicated(mut self) -> Self {
        fn deduplicate<T: PartialEq>(all: &mut Vec<T>) {
            let mut kept: Vec<T> = Vec::new();
            for one in all.drain(..) {
                if !kept.contains(&one) {
                    kept.push(one);
                }
            }
            *all = kept;
        }
        deduplicate(&mut self.families);
        deduplicate(&mut self.layers);
        deduplicate(&mut self.methods);
        deduplicate(&mut self.seeds);
        self.curve.sort_unstable();
        self.curve.dedup();
        self
    }

    /// Whether these layers have a row for the paper's flows.
    pub fn has_flow(&self, layers: &Widths) -> bool {
        let is_requested = match self.flows {
            Flows::None => false,
            Flows::OneLayer => layers.0.len() == 1,
            Flows::All => true,
        };
        is_requested && !self.methods.contains(&FLOW)
    }

    /// The methods for these layers.
    pub fn methods(&self, layers: &Widths) -> Vec<Method> {
        self.methods.iter().copied().chain(self.has_flow(layers).then_some(FLOW)).collect()
    }

    /// Every cell, in the order of execution: cells that are compared are close together.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &seed in &self.seeds {
            for &family in &self.families {
                for layers in &self.layers {
                    let of = |method| Cell { family, layers: layers.clone(), method, seed };
                    cells.extend(self.methods(layers).into_iter().map(of));
                }
            }
        }
        cells
    }

    /// The cells with a curve: the first one-layer model of each family, with the first seed.
    pub fn curves(&self) -> Vec<Cell> {
        let first = self.layers.iter().find(|layers| layers.0.len() == 1).filter(|_| !self.curve.is_empty());
        let is_one = |cell: &Cell| {
            Some(&cell.layers) == first && Some(&cell.seed) == self.seeds.first() && self.methods.contains(&cell.method)
        };
        self.cells().into_iter().filter(is_one).collect()
    }
}

/// The training and the held-out documents of a seed.
pub fn split(corpus: &Corpus, seed: u64) -> Result<[Corpus; 2], CliError> {
    let (train, test) = corpus.split(HELDOUT, seed)?;
    if train.is_empty() || test.is_empty() {
        return Err(CliError::Usage(format!(
            "{} documents are too few to hold out a tenth and train on the rest; use a larger corpus",
            corpus.documents_len()
        )));
    }
    Ok([train, test].map(|places| corpus.subset(&places)))
}

/// At most `most` documents, spread over the corpus, since neighbours are often similar.
pub fn spread(corpus: &Corpus, most: usize) -> Corpus {
    let len = corpus.documents_len();
    let taken = len.min(most);
    corpus.subset(&(0..taken).map(|i| i * len / taken).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            families: vec![Family::Poisson, Family::Bernoulli],
            layers: ["100", "100,30", "100-30-15"].map(|text| text.parse().expect("widths")).to_vec(),
            methods: vec![Method::Hvm, Method::MeanField],
            seeds: vec![1, 2],
            flows: Flows::OneLayer,
            curve: vec![100, 50, 100],
        }
        .deduplicated()
    }

    #[test]
    fn the_papers_twelve_and_the_flows_are_there_for_each_seed() {
        let cells = plan().cells();
        assert_eq!(cells.len(), 2 * (12 + 2));
        assert_eq!(cells.iter().filter(|cell| cell.method == FLOW).count(), 4);
        let mut names: Vec<String> = cells.iter().map(Cell::file_name).collect();
        assert_eq!(names[0], "poisson_100_hvm_seed1");
        assert_eq!(names[2], "poisson_100_flow-2-10_seed1");
        assert_eq!(names[27], "bernoulli_100-30-15_mean-field_seed2");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cells.len());
        assert_eq!(Plan { flows: Flows::All, ..plan() }.cells().len(), 36);
    }

    #[test]
    fn curves_are_of_one_layer_and_the_first_seed() {
        let names: Vec<String> = plan().curves().iter().map(Cell::file_name).collect();
        let expected = ["poisson_100_hvm", "poisson_100_mean-field", "bernoulli_100_hvm", "bernoulli_100_mean-field"];
        assert_eq!(names, expected.map(|name| format!("{name}_seed1")));
        assert_eq!(plan().curve, [50, 100]);
        assert!(Plan { curve: Vec::new(), ..plan() }.curves().is_empty());
    }

    #[test]
    fn documents_are_spread_over_the_corpus() {
        let bible = hyperprior_def::corpus::bible();
        let some = spread(&bible, 4);
        assert_eq!(some.names(), ["Genesis 1", bible.names()[297].as_str(), &bible.names()[594], &bible.names()[891]]);
        assert_eq!(spread(&bible, 5000).fingerprint(), bible.fingerprint());
    }

    #[test]
    fn mixed_families_are_refused() {
        let said = "100,bernoulli:30".parse::<Widths>().expect_err("mixed layers");
        assert!(said.contains("--families"), "{said}");
    }
}
