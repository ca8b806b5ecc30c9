//! Raw little-endian files, as numpy reads and writes them.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// The 32-bit numbers of a file, of which there must be `len`.
pub fn read(path: &Path, len: usize) -> Result<Vec<f64>> {
    let bytes = std::fs::read(path)?;
    if bytes.len() != 4 * len {
        let reason = format!("{} holds {} bytes, not {}; run inputs.py again", path.display(), bytes.len(), 4 * len);
        return Err(Error::new(ErrorKind::InvalidData, reason));
    }
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok(numbers.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect())
}

/// Writes 64-bit numbers.
pub fn write(path: &Path, numbers: &[f64]) -> Result<()> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(path, bytes)
}
