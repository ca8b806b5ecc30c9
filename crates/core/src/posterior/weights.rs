//! The weights of draws: equal, or importance weights.

/// The weights of draws, scaled so that the largest is one.
///
/// Equal weights are exactly one, so that sums over them are counts.
///
/// ```
/// use hyperprior::posterior::Weights;
/// let weights = Weights::from_logs(&[0.0, 3f64.ln(), f64::NEG_INFINITY]);
/// assert_eq!(weights.total(), 4.0 / 3.0);
/// // Kish: (1 + 3)² / (1² + 3²).
/// assert!((weights.effective_len() - 1.6).abs() < 1e-15);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    relative: Vec<f64>,
    total: f64,
    effective_len: f64,
    is_equal: bool,
}

impl Weights {
    /// The same weight for each of `len` draws.
    pub fn equal(len: usize) -> Self {
        Self { relative: vec![1.0; len], total: len as f64, effective_len: len as f64, is_equal: true }
    }

    /// Weights from their logarithms, of which at least one is finite and none is +∞ or NaN.
    pub fn from_logs(logs: &[f64]) -> Self {
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let relative: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
        let total: f64 = relative.iter().sum();
        let squares: f64 = relative.iter().map(|w| w * w).sum();
        Self { relative, total, effective_len: total * total / squares, is_equal: false }
    }

    /// Whether they were created equal.
    pub(super) fn is_equal(&self) -> bool {
        self.is_equal
    }

    /// The weights, the largest of which is one.
    pub fn relative(&self) -> &[f64] {
        &self.relative
    }

    /// Their sum.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The effective sample size: Kish's (Σw)² / Σw².
    pub fn effective_len(&self) -> f64 {
        self.effective_len
    }
}
