//! Files of numbers that tell when they are damaged: a line that names the format, a head as JSON, numbers in little-endian single
//! precision, and a checksum of all that.

use crc32fast::Hasher;
use hyperprior_math::single::{LANES, Lanes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Writes one.
pub(crate) struct Sealer<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> Sealer<W> {
    /// Writes the line that names the format, and the head.
    pub(crate) fn new(out: W, format: &[u8], head: &impl Serialize) -> io::Result<Self> {
        let mut sealer = Self { inner: out, hasher: Hasher::new() };
        let head = serde_json::to_vec(head)?;
        sealer.put(format)?;
        sealer.put(&(head.len() as u64).to_le_bytes())?;
        sealer.put(&head)?;
        Ok(sealer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }

    pub(crate) fn floats(&mut self, floats: &[f32]) -> io::Result<()> {
        let mut bytes = [0; 4 * LANES];
        for floats in floats.chunks(LANES) {
            for (to, x) in bytes.chunks_exact_mut(4).zip(floats) {
                to.copy_from_slice(&x.to_le_bytes());
            }
            self.put(&bytes[..4 * floats.len()])?;
        }
        Ok(())
    }

    pub(crate) fn lanes(&mut self, lanes: &[Lanes]) -> io::Result<()> {
        lanes.iter().try_for_each(|lanes| self.floats(&lanes.0))
    }

    /// Writes the checksum.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let sum = self.hasher.finalize();
        self.inner.write_all(&sum.to_le_bytes())?;
        self.inner.flush()
    }
}

/// Why a file is not taken.
pub(crate) type Reason = &'static str;

/// Reads one.
pub(crate) struct Opener<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> Opener<R> {
    /// Reads the line that names the format, and the head. Of a format whose name differs in the number at its end alone it is said
    /// that it is another version's.
    pub(crate) fn new<H: DeserializeOwned>(file: R, format: &[u8]) -> Result<(Self, H), Reason> {
        let mut opener = Self { inner: file, hasher: Hasher::new() };
        let mut found = vec![0; format.len()];
        opener.take(&mut found)?;
        if found != format {
            let is_ours = found.starts_with(&format[..format.len() - 2]);
            return Err(if is_ours { "it was written by another version" } else { "it is no such file" });
        }
        let mut len = [0; 8];
        opener.take(&mut len)?;
        let len = u64::from_le_bytes(len);
        // A length that is damaged must not claim memory that the file does not fill.
        let mut head = Vec::new();
        opener.inner.by_ref().take(len).read_to_end(&mut head).map_err(|_| CUT_OFF)?;
        if head.len() as u64 != len {
            return Err(CUT_OFF);
        }
        opener.hasher.update(&head);
        let head = serde_json::from_slice(&head).map_err(|_| DAMAGED_HEAD)?;
        Ok((opener, head))
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), Reason> {
        self.inner.read_exact(bytes).map_err(|_| CUT_OFF)?;
        self.hasher.update(bytes);
        Ok(())
    }

    pub(crate) fn floats(&mut self, floats: &mut [f32]) -> Result<(), Reason> {
        let mut bytes = [0; 4 * LANES];
        for floats in floats.chunks_mut(LANES) {
            self.take(&mut bytes[..4 * floats.len()])?;
            for (x, from) in floats.iter_mut().zip(bytes.chunks_exact(4)) {
                *x = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
            }
        }
        Ok(())
    }

    pub(crate) fn lanes(&mut self, lanes: &mut [Lanes]) -> Result<(), Reason> {
        lanes.iter_mut().try_for_each(|lanes| self.floats(&mut lanes.0))
    }

    /// Whether the checksum agrees.
    pub(crate) fn finish(mut self) -> Result<(), Reason> {
        let sum = self.hasher.clone().finalize();
        let mut stored = [0; 4];
        self.take(&mut stored)?;
        if u32::from_le_bytes(stored) == sum { Ok(()) } else { Err("it is damaged: its checksum does not agree") }
    }
}

const CUT_OFF: Reason = "it ends too early";
/// Of a head that cannot be what was written.
pub(crate) const DAMAGED_HEAD: Reason = "its settings are damaged";
