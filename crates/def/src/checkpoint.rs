//! Checkpoints of a training: everything that the next epoch needs, so that a resumed training gives the same numbers.
//!
//! The settings and counters are the head of a file with a checksum. The corpus is not included, only its fingerprint.

use crate::adam::Adam;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::settings::Settings;
use crate::train::{Choice, Training};
use crc32fast::Hasher;
use hyperprior::checkpoint::{ChecksumReader, ChecksumWriter, DAMAGED_HEAD};
use hyperprior_math::single::Lanes;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The first line, with the version of the format.
const FORMAT: &[u8] = b"hyperprior topics 1\n";

/// Everything except the arrays.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: String,
    settings: Settings,
    epoch: u32,
    step: u64,
    sharpness: f32,
    adam: Vec<[u32; 2]>,
    /// The number of steps of the network.
    #[serde(default)]
    network: Option<u32>,
    /// The bits of the objective, epoch by epoch.
    history: Vec<u64>,
    /// What the method turned out to be, if it was chosen.
    #[serde(default)]
    choice: Option<Choice>,
    corpus: u32,
}

impl Corpus {
    /// A checksum, very likely different for different corpora.
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
    /// Writes a checkpoint, between two epochs.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn save(&self, out: impl Write) -> io::Result<()> {
        let head = Head {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: self.settings.clone(),
            epoch: self.epoch,
            step: self.step,
            sharpness: self.terms.sharpness(),
            adam: self
                .layer_weights
                .iter()
                .map(|layer_weights| layer_weights.adam().each_ref().map(Adam::number))
                .collect(),
            network: self.network.as_ref().map(Network::number),
            history: self.history.iter().map(|x| x.to_bits()).collect(),
            choice: self.choice.clone(),
            corpus: self.corpus.fingerprint(),
        };
        let mut out = ChecksumWriter::new(out, FORMAT, &head)?;
        self.arrays().into_iter().try_for_each(|lanes| out.lanes(lanes))?;
        if let Some((_, bursts)) = &self.bursty {
            [&bursts.each, &bursts.continued].into_iter().try_for_each(|numbers| out.floats(numbers))?;
        }
        out.finish()
    }

    /// Resumes a training from a checkpoint, on the same corpus.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the file is not a checkpoint, is of another version, is cut off or damaged, or belongs to another
    /// corpus.
    pub fn load(corpus: &'a Corpus, file: impl Read) -> Result<Self> {
        let bad = |reason| Error::Checkpoint { reason };
        let (mut file, head): (_, Head) = ChecksumReader::new(file, FORMAT).map_err(bad)?;
        if head.version != env!("CARGO_PKG_VERSION") {
            return Err(bad("it was written by another version"));
        }
        if head.corpus != corpus.fingerprint() {
            return Err(bad("it belongs to another corpus, or another split of it"));
        }
        // The settings were valid when it was written.
        let mut training = Self::new(corpus, &head.settings).map_err(|_| bad(DAMAGED_HEAD))?;
        if head.adam.len() != training.layer_weights.len() {
            return Err(bad(DAMAGED_HEAD));
        }
        training.epoch = head.epoch;
        training.step = head.step;
        training.choice = head.choice;
        training.history = head.history.into_iter().map(f64::from_bits).collect();
        for (layer_weights, numbers) in training.layer_weights.iter_mut().zip(&head.adam) {
            layer_weights.adam_mut().iter_mut().zip(numbers).for_each(|(adam, number)| adam.set_number(*number));
        }
        if let (Some(network), Some(number)) = (&mut training.network, head.network) {
            network.set_number(number);
        }
        for lanes in training.arrays_mut() {
            file.lanes(lanes).map_err(bad)?;
        }
        if let Some((_, bursts)) = &mut training.bursty {
            let numbers = [&mut bursts.each, &mut bursts.continued];
            numbers.into_iter().try_for_each(|numbers| file.floats(numbers)).map_err(bad)?;
        }
        file.finish().map_err(bad)?;
        training.terms.restore(head.sharpness);
        Ok(training)
    }

    fn arrays(&self) -> Vec<&[Lanes]> {
        let mut all: Vec<&[Lanes]> = self.local.iter().map(Vec::as_slice).collect();
        all.extend(self.terms.arrays());
        all.extend(self.layer_weights.iter().flat_map(|layer_weights| layer_weights.arrays()));
        all.extend(self.network.iter().flat_map(Network::arrays));
        all
    }

    fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let mut all: Vec<&mut [Lanes]> = self.local.iter_mut().map(Vec::as_mut_slice).collect();
        all.extend(self.terms.arrays_mut());
        all.extend(self.layer_weights.iter_mut().flat_map(|layer_weights| layer_weights.arrays_mut()));
        all.extend(self.network.iter_mut().flat_map(Network::arrays_mut));
        all
    }
}
