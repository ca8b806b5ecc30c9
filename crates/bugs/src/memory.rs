//! Checks that draws fit in memory before anything is computed.

use hyperprior::infer::OVERSAMPLED;
use thiserror::Error;

/// The most memory for draws, in bytes.
const BYTES_MAX: f64 = 8.0 * GIB;
const GIB: f64 = (1_u64 << 30) as f64;

/// Too many draws for the memory.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error(
    "{draws} draws would take {:.1} GiB, with {columns} numbers for each; the most is {:.0} GiB: use at most {:.0} draws, or \
     monitor fewer quantities",
    bytes(*draws, *columns) / GIB,
    BYTES_MAX / GIB,
    (BYTES_MAX / bytes(1, *columns)).floor()
)]
pub struct TooMany {
    draws: usize,
    columns: usize,
}

fn bytes(draws: usize, columns: usize) -> f64 {
    draws as f64 * columns as f64 * size_of::<f64>() as f64
}

/// How many numbers a fit has in memory for each draw; several draws of the latents are weighted for each one returned.
pub fn columns_of_fit(latents: usize, quantities: usize) -> usize {
    OVERSAMPLED * latents + quantities
}

/// Checks that this many draws fit, with this many numbers each.
///
/// ```
/// use hyperprior_bugs::memory::within_memory;
/// assert!(within_memory(4000, 1000).is_ok());
/// let error = within_memory(400_000_000, 5).unwrap_err();
/// assert!(error.to_string().contains("would take 14.9 GiB"));
/// ```
///
/// # Errors
/// [`TooMany`] if they do not.
pub fn within_memory(draws: usize, columns: usize) -> Result<(), TooMany> {
    if bytes(draws, columns) <= BYTES_MAX { Ok(()) } else { Err(TooMany { draws, columns }) }
}
