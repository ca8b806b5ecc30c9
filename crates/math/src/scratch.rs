//! A pool of buffers: take one and give it back; after the first iteration nothing is allocated.

/// A pool of `Vec<f64>`.
///
/// Code that takes the same sequence of sizes every time allocates only the first time.
///
/// ```
/// use hyperprior_math::scratch::Scratch;
/// let mut scratch = Scratch::default();
/// let buffer = scratch.take(8);
/// assert_eq!(buffer, vec![0.0; 8]);
/// scratch.give(buffer);
/// ```
#[derive(Debug, Default)]
pub struct Scratch {
    free: Vec<Vec<f64>>,
}

impl Scratch {
    /// A buffer of `len` zeros.
    ///
    /// Uses the smallest free buffer that is large enough; if there is none, the largest grows.
    pub fn take(&mut self, len: usize) -> Vec<f64> {
        let fits = (0..self.free.len())
            .filter(|&i| self.free[i].capacity() >= len)
            .min_by_key(|&i| self.free[i].capacity())
            .or_else(|| (0..self.free.len()).max_by_key(|&i| self.free[i].capacity()));
        let mut buffer = fits.map(|i| self.free.swap_remove(i)).unwrap_or_default();
        buffer.clear();
        buffer.resize(len, 0.0);
        buffer
    }

    /// Puts a buffer back.
    pub fn give(&mut self, buffer: Vec<f64>) {
        self.free.push(buffer);
    }

    /// A batch of zeros.
    pub fn take_batch(&mut self, columns_len: usize, draws_len: usize) -> crate::batch::Batch {
        crate::batch::Batch::from_vec(self.take(columns_len * draws_len), columns_len, draws_len)
    }

    /// Puts a batch back.
    pub fn give_batch(&mut self, batch: crate::batch::Batch) {
        self.give(batch.into_vec());
    }
}
