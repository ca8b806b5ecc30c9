//! Files that tell when they are damaged: a line that names the format, a head as JSON, numbers in little-endian single precision or
//! bytes, and a checksum of all that.

use crc32fast::Hasher;
use hyperprior_math::single::{LANES, Lanes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Writes one.
///
/// ```
/// use hyperprior::sealed::{Opener, Sealer};
/// let mut file = Vec::new();
/// let mut out = Sealer::new(&mut file, b"counts 1\n", &"a head")?;
/// out.bytes(b"what there is")?;
/// out.finish()?;
/// let (mut opener, head): (_, String) = Opener::new(&file[..], b"counts 1\n").unwrap();
/// assert_eq!((head.as_str(), opener.bytes().unwrap()), ("a head", b"what there is".to_vec()));
/// opener.finish().unwrap();
/// file[20] ^= 1;
/// let opened = Opener::new::<String>(&file[..], b"counts 1\n");
/// assert!(opened.and_then(|(mut opener, _)| opener.bytes().and_then(|_| opener.finish())).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Sealer<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> Sealer<W> {
    /// Writes the line that names the format, and the head.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(out: W, format: &[u8], head: &impl Serialize) -> io::Result<Self> {
        let mut sealer = Self { inner: out, hasher: Hasher::new() };
        let head = serde_json::to_vec(head)?;
        sealer.put(format)?;
        sealer.bytes(&head)?;
        Ok(sealer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }

    /// Writes bytes, and how many.
    ///
    /// # Errors
    /// What the system says.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(&(bytes.len() as u64).to_le_bytes())?;
        self.put(bytes)
    }

    /// Writes numbers; how many is for the reader to know.
    ///
    /// # Errors
    /// What the system says.
    pub fn floats(&mut self, floats: &[f32]) -> io::Result<()> {
        let mut bytes = [0; 4 * LANES];
        for floats in floats.chunks(LANES) {
            for (to, x) in bytes.chunks_exact_mut(4).zip(floats) {
                to.copy_from_slice(&x.to_le_bytes());
            }
            self.put(&bytes[..4 * floats.len()])?;
        }
        Ok(())
    }

    /// The same of lanes.
    ///
    /// # Errors
    /// What the system says.
    pub fn lanes(&mut self, lanes: &[Lanes]) -> io::Result<()> {
        lanes.iter().try_for_each(|lanes| self.floats(&lanes.0))
    }

    /// Writes the checksum.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<()> {
        let sum = self.hasher.finalize();
        self.inner.write_all(&sum.to_le_bytes())?;
        self.inner.flush()
    }
}

/// Why a file is not taken.
pub type Reason = &'static str;

/// Reads one.
#[derive(Debug)]
pub struct Opener<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> Opener<R> {
    /// Reads the line that names the format, and the head. Of a format whose name differs in the number at its end alone it is said
    /// that it is another version's.
    ///
    /// # Errors
    /// Why the file is not taken.
    pub fn new<H: DeserializeOwned>(file: R, format: &[u8]) -> Result<(Self, H), Reason> {
        let mut opener = Self { inner: file, hasher: Hasher::new() };
        let mut found = vec![0; format.len()];
        opener.take(&mut found)?;
        if found != format {
            let is_ours = found.starts_with(&format[..format.len() - 2]);
            return Err(if is_ours { "it was written by another version" } else { "it is no such file" });
        }
        let head = serde_json::from_slice(&opener.bytes()?).map_err(|_| DAMAGED_HEAD)?;
        Ok((opener, head))
    }

    /// Reads bytes, as many as were written.
    ///
    /// # Errors
    /// Why the file is not taken.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Reason> {
        let mut len = [0; 8];
        self.take(&mut len)?;
        let len = u64::from_le_bytes(len);
        // A length that is damaged must not claim memory that the file does not fill.
        let mut bytes = Vec::new();
        self.inner.by_ref().take(len).read_to_end(&mut bytes).map_err(|_| CUT_OFF)?;
        if bytes.len() as u64 != len {
            return Err(CUT_OFF);
        }
        self.hasher.update(&bytes);
        Ok(bytes)
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), Reason> {
        self.inner.read_exact(bytes).map_err(|_| CUT_OFF)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Reads as many numbers as there is room for.
    ///
    /// # Errors
    /// Why the file is not taken.
    pub fn floats(&mut self, floats: &mut [f32]) -> Result<(), Reason> {
        let mut bytes = [0; 4 * LANES];
        for floats in floats.chunks_mut(LANES) {
            self.take(&mut bytes[..4 * floats.len()])?;
            for (x, from) in floats.iter_mut().zip(bytes.chunks_exact(4)) {
                *x = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
            }
        }
        Ok(())
    }

    /// The same of lanes.
    ///
    /// # Errors
    /// Why the file is not taken.
    pub fn lanes(&mut self, lanes: &mut [Lanes]) -> Result<(), Reason> {
        lanes.iter_mut().try_for_each(|lanes| self.floats(&mut lanes.0))
    }

    /// Whether the checksum agrees.
    ///
    /// # Errors
    /// Why the file is not taken.
    pub fn finish(mut self) -> Result<(), Reason> {
        let sum = self.hasher.clone().finalize();
        let mut stored = [0; 4];
        self.take(&mut stored)?;
        if u32::from_le_bytes(stored) == sum { Ok(()) } else { Err("it is damaged: its checksum does not agree") }
    }
}

const CUT_OFF: Reason = "it ends too early";
/// Of a head that cannot be what was written.
pub const DAMAGED_HEAD: Reason = "its settings are damaged";
