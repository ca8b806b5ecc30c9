//! A fuzz target and its limits.

use super::corpus::Corpus;

/// Limits for one input.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time.
    pub seconds: u64,
    /// Memory.
    pub bytes: usize,
}

impl Default for Limits {
    /// Far above the needs of inputs of this size, far below the limits of a machine.
    fn default() -> Self {
        Self { seconds: 20, bytes: 3 << 29 }
    }
}

/// A fuzz target.
pub struct Target<'a> {
    /// The name of the test with its modules, by which the child process finds it.
    pub name: &'a str,
    /// The inputs from which cases are made. Each is also run unchanged.
    pub corpus: &'a Corpus,
    /// Tokens that the target understands.
    pub words: &'a [&'a str],
    /// The limits for one input.
    pub limits: Limits,
    /// Processes an input; panics if the result is wrong.
    pub run: &'a (dyn Fn(&[u8]) + Sync),
}
