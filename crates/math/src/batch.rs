//! A batch: S draws of several numbers, stored as one contiguous column of draws per number.

/// S draws of `columns_len` numbers; column `i` holds the S draws of number `i`.
///
/// Inner loops run over draws, so a column is what SIMD code sees.
///
/// ```
/// use hyperprior_math::batch::Batch;
/// let mut z = Batch::zeros(2, 3);
/// z.column_mut(1).copy_from_slice(&[1.0, 2.0, 3.0]);
/// assert_eq!(z.get(1, 2), 3.0);
/// assert_eq!(z.columns(0..2).len(), 6);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    data: Vec<f64>,
    columns_len: usize,
    draws_len: usize,
}

impl Batch {
    /// A batch of zeros.
    pub fn zeros(columns_len: usize, draws_len: usize) -> Self {
        Self { data: vec![0.0; columns_len * draws_len], columns_len, draws_len }
    }

    /// A batch from columns laid end to end.
    ///
    /// # Panics
    /// If `data` does not hold a whole number of columns.
    pub fn from_columns(data: Vec<f64>, draws_len: usize) -> Self {
        assert!(draws_len > 0 && data.len().is_multiple_of(draws_len), "columns of unequal length");
        let columns_len = data.len() / draws_len;
        Self { data, columns_len, draws_len }
    }

    /// A batch that takes over `data`, whose length must be `columns_len × draws_len`.
    pub(crate) fn from_vec(data: Vec<f64>, columns_len: usize, draws_len: usize) -> Self {
        debug_assert_eq!(data.len(), columns_len * draws_len);
        Self { data, columns_len, draws_len }
    }

    /// Draws, each with a value for every column.
    pub fn from_draws(draws: &[Vec<f64>]) -> Self {
        let mut out = Self::zeros(draws.first().map_or(0, Vec::len), draws.len());
        for i in 0..out.columns_len() {
            out.column_mut(i).iter_mut().zip(draws).for_each(|(to, draw)| *to = draw[i]);
        }
        out
    }

    /// All columns, end to end; consumes the batch.
    pub fn into_vec(self) -> Vec<f64> {
        self.data
    }

    /// Sets the shape and fills with zeros, keeping the allocation if it is large enough.
    pub fn reset(&mut self, columns_len: usize, draws_len: usize) {
        self.data.clear();
        self.data.resize(columns_len * draws_len, 0.0);
        self.columns_len = columns_len;
        self.draws_len = draws_len;
    }

    /// Sets the shape without clearing: the contents are whatever was there. For outputs that are overwritten completely.
    pub fn reshape(&mut self, columns_len: usize, draws_len: usize) {
        self.data.resize(columns_len * draws_len, 0.0);
        self.columns_len = columns_len;
        self.draws_len = draws_len;
    }

    /// The number of columns.
    pub fn columns_len(&self) -> usize {
        self.columns_len
    }

    /// The number of draws.
    pub fn draws_len(&self) -> usize {
        self.draws_len
    }

    /// Every draw of number `i`.
    pub fn column(&self, i: usize) -> &[f64] {
        &self.data[i * self.draws_len..(i + 1) * self.draws_len]
    }

    /// Every draw of number `i`, mutable.
    pub fn column_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.draws_len..(i + 1) * self.draws_len]
    }

    /// Neighbouring columns as one slice.
    pub fn columns(&self, range: std::ops::Range<usize>) -> &[f64] {
        &self.data[range.start * self.draws_len..range.end * self.draws_len]
    }

    /// Neighbouring columns as one mutable slice.
    pub fn columns_mut(&mut self, range: std::ops::Range<usize>) -> &mut [f64] {
        &mut self.data[range.start * self.draws_len..range.end * self.draws_len]
    }

    /// Number `i` of draw `s`.
    pub fn get(&self, i: usize, s: usize) -> f64 {
        self.data[i * self.draws_len + s]
    }

    /// Sets number `i` of draw `s`.
    pub fn set(&mut self, i: usize, s: usize, value: f64) {
        self.data[i * self.draws_len + s] = value;
    }

    /// All columns, end to end.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All columns, end to end, mutable.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// Makes this a copy of `other`, keeping the allocation if it is large enough.
    pub fn copy_from(&mut self, other: &Self) {
        self.reshape(other.columns_len, other.draws_len);
        self.data.copy_from_slice(&other.data);
    }

    /// Copies draw `s` into `out`, one number per column.
    pub fn read_draw(&self, s: usize, out: &mut [f64]) {
        for (i, o) in out.iter_mut().enumerate() {
            *o = self.get(i, s);
        }
    }
}
