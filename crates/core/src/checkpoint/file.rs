//! Files with a checksum: a line that names the format, a header as JSON, bytes or little-endian single-precision numbers, and a
//! CRC-32 of all that precedes it.

use crc32fast::Hasher;
use hyperprior_math::single::{LANES, Lanes};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Writes a file with a checksum.
///
/// ```
/// use hyperprior::checkpoint::{ChecksumReader, ChecksumWriter};
/// let mut file = Vec::new();
/// let mut out = ChecksumWriter::new(&mut file, b"counts 1\n", &"a header")?;
/// out.bytes(b"the content")?;
/// out.finish()?;
/// let (mut reader, header): (_, String) = ChecksumReader::new(&file[..], b"counts 1\n").unwrap();
/// assert_eq!((header.as_str(), reader.bytes().unwrap()), ("a header", b"the content".to_vec()));
/// reader.finish().unwrap();
/// file[20] ^= 1;
/// let opened = ChecksumReader::new::<String>(&file[..], b"counts 1\n");
/// assert!(opened.and_then(|(mut reader, _)| reader.bytes().and_then(|_| reader.finish())).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ChecksumWriter<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> ChecksumWriter<W> {
    /// Writes the line that names the format, and the header.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn new(out: W, format: &[u8], header: &impl Serialize) -> io::Result<Self> {
        let mut writer = Self { inner: out, hasher: Hasher::new() };
        let header = serde_json::to_vec(header)?;
        writer.put(format)?;
        writer.bytes(&header)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.write_all(bytes)
    }

    /// Writes bytes, preceded by their number.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(&(bytes.len() as u64).to_le_bytes())?;
        self.put(bytes)
    }

    /// Writes numbers, without their number.
    ///
    /// # Errors
    /// Errors of the underlying writer.
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

    /// Writes lanes of numbers, as [`floats`](Self::floats).
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn lanes(&mut self, lanes: &[Lanes]) -> io::Result<()> {
        lanes.iter().try_for_each(|lanes| self.floats(&lanes.0))
    }

    /// Writes the checksum.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn finish(mut self) -> io::Result<()> {
        let sum = self.hasher.finalize();
        self.inner.write_all(&sum.to_le_bytes())?;
        self.inner.flush()
    }
}

/// Why a file cannot be read.
pub type Reason = &'static str;

/// Reads a file with a checksum. See [`ChecksumWriter`].
#[derive(Debug)]
pub struct ChecksumReader<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> ChecksumReader<R> {
    /// Reads the line that names the format, and the header. If only the last character of the format's name differs, the file was
    /// written by another version.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn new<H: DeserializeOwned>(file: R, format: &[u8]) -> Result<(Self, H), Reason> {
        let mut reader = Self { inner: file, hasher: Hasher::new() };
        let mut found = vec![0; format.len()];
        reader.take(&mut found)?;
        if found != format {
            let is_ours = found.starts_with(&format[..format.len() - 2]);
            return Err(if is_ours { "it was written by another version" } else { "it is not a file of this kind" });
        }
        let header = serde_json::from_slice(&reader.bytes()?).map_err(|_| DAMAGED_HEAD)?;
        Ok((reader, header))
    }

    /// Reads bytes, preceded by their number.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Reason> {
        let mut len = [0; 8];
        self.take(&mut len)?;
        let len = u64::from_le_bytes(len);
        // A damaged length must not allocate more memory than the file fills.
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

    /// Reads as many numbers as fit into `floats`.
    ///
    /// # Errors
    /// Why the file cannot be read.
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

    /// Reads lanes of numbers, as [`floats`](Self::floats).
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn lanes(&mut self, lanes: &mut [Lanes]) -> Result<(), Reason> {
        lanes.iter_mut().try_for_each(|lanes| self.floats(&mut lanes.0))
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn finish(mut self) -> Result<(), Reason> {
        let sum = self.hasher.clone().finalize();
        let mut stored = [0; 4];
        self.take(&mut stored)?;
        if u32::from_le_bytes(stored) == sum { Ok(()) } else { Err("it is damaged: its checksum does not match") }
    }
}

const CUT_OFF: Reason = "it ends too early";
/// The reason for a header that cannot be parsed.
pub const DAMAGED_HEAD: Reason = "its settings are damaged";
