//! A training on disk: everything that the next epoch needs, so that a training that was broken off goes on to the same numbers.
//!
//! The settings and counters are the head of a sealed file. The corpus is not in it, only its fingerprint.

use crate::adam::Adam;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::settings::Settings;
use crate::train::Training;
use crc32fast::Hasher;
use hyperprior::sealed::{DAMAGED_HEAD, Opener, Sealer};
use hyperprior_math::single::Lanes;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The first line; the number goes up when what follows changes.
const FORMAT: &[u8] = b"hyperprior topics 1\n";

/// What is not an array.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: String,
    settings: Settings,
    epoch: u32,
    step: u64,
    sharpness: f32,
    adam: Vec<[u32; 2]>,
    /// The steps of a network.
    #[serde(default)]
    network: Option<u32>,
    /// The bits of what was climbed.
    history: Vec<u64>,
    corpus: u32,
}

impl Corpus {
    /// A number that two different corpora hardly share.
    pub fn fingerprint(&self) -> u32 {
        let mut hasher = Hasher::new();
        self.starts().iter().for_each(|x| hasher.update(&(*x as u64).to_le_bytes()));
        self.terms().iter().for_each(|x| hasher.update(&x.to_le_bytes()));
        self.counts().iter().for_each(|x| hasher.update(&x.to_le_bytes()));
        self.vocabulary().iter().for_each(|term| hasher.update(term.as_bytes()));
        hasher.finalize()
    }
}

impl<'a> Training<'a> {
    /// Writes all that the next epoch needs. Between two epochs only.
    ///
    /// # Errors
    /// What the system says.
    pub fn save(&self, out: impl Write) -> io::Result<()> {
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: self.settings.clone(),
            epoch: self.epoch,
            step: self.step,
            sharpness: self.terms.sharpness(),
            adam: self.between.iter().map(|between| between.adam().each_ref().map(Adam::number)).collect(),
            network: self.network.as_ref().map(Network::number),
            history: self.history.iter().map(|x| x.to_bits()).collect(),
            corpus: self.corpus.fingerprint(),
        };
        let mut out = Sealer::new(out, FORMAT, &head)?;
        self.arrays().into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        out.finish()
    }

    /// A training as it was saved, on the corpus that it was on.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for a file that is none, is of another version, is cut off or damaged, or goes with another corpus.
    pub fn load(corpus: &'a Corpus, file: impl Read) -> Result<Self> {
        let bad = |reason| Error::Checkpoint { reason };
        let (mut file, head): (_, Head) = Opener::new(file, FORMAT).map_err(bad)?;
        if head.version != env!("CARGO_PKG_VERSION") {
            return Err(bad("it was written by another version"));
        }
        if head.corpus != corpus.fingerprint() {
            return Err(bad("it goes with another corpus, or another split of it"));
        }
        // Whoever wrote it had settings that can be trained with.
        let mut training = Self::new(corpus, &head.settings).map_err(|_| bad(DAMAGED_HEAD))?;
        if head.adam.len() != training.between.len() {
            return Err(bad(DAMAGED_HEAD));
        }
        training.epoch = head.epoch;
        training.step = head.step;
        training.history = head.history.into_iter().map(f64::from_bits).collect();
        for (between, numbers) in training.between.iter_mut().zip(&head.adam) {
            between.adam_mut().iter_mut().zip(numbers).for_each(|(adam, number)| adam.set_number(*number));
        }
        if let (Some(network), Some(number)) = (&mut training.network, head.network) {
            network.set_number(number);
        }
        for lanes in training.arrays_mut() {
            file.lanes(lanes).map_err(bad)?;
        }
        file.finish().map_err(bad)?;
        training.terms.restore(head.sharpness);
        Ok(training)
    }

    fn arrays(&self) -> Vec<&[Lanes]> {
        let mut all: Vec<&[Lanes]> = self.local.iter().map(Vec::as_slice).collect();
        all.extend(self.terms.arrays());
        all.extend(self.between.iter().flat_map(|between| between.arrays()));
        all.extend(self.network.iter().flat_map(Network::arrays));
        all
    }

    fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let mut all: Vec<&mut [Lanes]> = self.local.iter_mut().map(Vec::as_mut_slice).collect();
        all.extend(self.terms.arrays_mut());
        all.extend(self.between.iter_mut().flat_map(|between| between.arrays_mut()));
        all.extend(self.network.iter_mut().flat_map(Network::arrays_mut));
        all
    }
}
