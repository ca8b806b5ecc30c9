//! The settings of a calibration.

use hyperprior::infer::InferSettings;
use hyperprior::posterior::Monitor;
use hyperprior_bugs::Options;
use hyperprior_graph::Marginalise;

/// Draws per ranked draw: neighbouring draws may be dependent.
const THINNED: usize = 10;

/// A model file, with the settings of its calibration.
pub struct Calibration<'a> {
    /// The model's name.
    pub name: String,
    /// The program.
    pub source: &'a str,
    /// Compiler options.
    pub options: &'a Options,
    /// What to marginalise.
    pub marginalise: Marginalise,
    /// Computed quantities to rank in addition to the latents.
    pub monitors: Vec<Monitor>,
    /// The settings of each fit, with the seed of the calibration.
    pub settings: InferSettings,
    /// The number of draws among which a true value is ranked.
    pub draws: usize,
    /// The number of rounds.
    pub rounds: usize,
}

impl Calibration<'_> {
    /// The settings of a round's fit.
    pub(super) fn settings(&self, seed: u64) -> InferSettings {
        self.settings.clone().seed(seed).draws(self.draws * THINNED)
    }
}
