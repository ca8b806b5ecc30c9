//! A training on disk: everything that the next epoch needs, so that a training that was broken off goes on to the same numbers.
//!
//! The file is a line that names the format, the settings and counters as JSON, the numbers in little-endian single precision, and a
//! checksum of all that. The corpus is not in it, only its fingerprint.

use crate::adam::Adam;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::train::{Settings, Training};
use crc32fast::Hasher;
use hyperprior_math::single::{LANES, Lanes};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The first line; the number goes up when what follows changes.
const FORMAT: &[u8] = b"hyperprior topics 1\n";
/// Longer settings than this are no settings.
const HEAD_MAX: u64 = 1 << 20;

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

/// Writes and sums up.
struct Summed<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> Summed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }

    fn put_lanes(&mut self, lanes: &[Lanes]) -> io::Result<()> {
        let mut bytes = [0; 4 * LANES];
        for lanes in lanes {
            for (to, x) in bytes.chunks_exact_mut(4).zip(lanes.0) {
                to.copy_from_slice(&x.to_le_bytes());
            }
            self.put(&bytes)?;
        }
        Ok(())
    }
}

impl<R: Read> Summed<R> {
    fn take(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.inner.read_exact(bytes).map_err(|_| Error::Checkpoint { reason: "it ends too early" })?;
        self.hasher.update(bytes);
        Ok(())
    }

    fn take_lanes(&mut self, lanes: &mut [Lanes]) -> Result<()> {
        let mut bytes = [0; 4 * LANES];
        for lanes in lanes {
            self.take(&mut bytes)?;
            for (x, from) in lanes.0.iter_mut().zip(bytes.chunks_exact(4)) {
                *x = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
            }
        }
        Ok(())
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
            history: self.history.iter().map(|x| x.to_bits()).collect(),
            corpus: self.corpus.fingerprint(),
        };
        let head = serde_json::to_vec(&head)?;
        let mut out = Summed { inner: out, hasher: Hasher::new() };
        out.put(FORMAT)?;
        out.put(&(head.len() as u64).to_le_bytes())?;
        out.put(&head)?;
        for lanes in self.arrays() {
            out.put_lanes(lanes)?;
        }
        let sum = out.hasher.clone().finalize();
        out.inner.write_all(&sum.to_le_bytes())?;
        out.inner.flush()
    }

    /// A training as it was saved, on the corpus that it was on.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for a file that is none, is of another version, is cut off or damaged, or goes with another corpus.
    pub fn load(corpus: &'a Corpus, file: impl Read) -> Result<Self> {
        let bad = |reason| Error::Checkpoint { reason };
        let mut file = Summed { inner: file, hasher: Hasher::new() };
        let mut format = [0; FORMAT.len()];
        file.take(&mut format)?;
        if format != FORMAT {
            let is_ours = format.starts_with(&FORMAT[..FORMAT.len() - 2]);
            return Err(bad(if is_ours { "it was written by another version" } else { "it is no such file" }));
        }
        let mut len = [0; 8];
        file.take(&mut len)?;
        let len = u64::from_le_bytes(len);
        if len > HEAD_MAX {
            return Err(bad("its settings are damaged"));
        }
        let mut head = vec![0; len as usize];
        file.take(&mut head)?;
        let head: Head = serde_json::from_slice(&head).map_err(|_| bad("its settings are damaged"))?;
        if head.version != env!("CARGO_PKG_VERSION") {
            return Err(bad("it was written by another version"));
        }
        if head.corpus != corpus.fingerprint() {
            return Err(bad("it goes with another corpus, or another split of it"));
        }
        let mut training = Self::new(corpus, &head.settings)?;
        if head.adam.len() != training.between.len() {
            return Err(bad("its settings are damaged"));
        }
        training.epoch = head.epoch;
        training.step = head.step;
        training.history = head.history.into_iter().map(f64::from_bits).collect();
        for (between, numbers) in training.between.iter_mut().zip(&head.adam) {
            between.adam_mut().iter_mut().zip(numbers).for_each(|(adam, number)| adam.set_number(*number));
        }
        for lanes in training.arrays_mut() {
            file.take_lanes(lanes)?;
        }
        let sum = file.hasher.clone().finalize();
        let mut stored = [0; 4];
        file.take(&mut stored)?;
        if u32::from_le_bytes(stored) != sum {
            return Err(bad("it is damaged: its checksum does not agree"));
        }
        training.terms.restore(head.sharpness);
        Ok(training)
    }

    fn arrays(&self) -> Vec<&[Lanes]> {
        let mut all: Vec<&[Lanes]> = self.local.iter().map(Vec::as_slice).collect();
        all.extend(self.terms.arrays());
        all.extend(self.between.iter().flat_map(|between| between.arrays()));
        all
    }

    fn arrays_mut(&mut self) -> Vec<&mut [Lanes]> {
        let mut all: Vec<&mut [Lanes]> = self.local.iter_mut().map(Vec::as_mut_slice).collect();
        all.extend(self.terms.arrays_mut());
        all.extend(self.between.iter_mut().flat_map(|between| between.arrays_mut()));
        all
    }
}
