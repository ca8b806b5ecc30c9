//! Holds out parts of a document, to be predicted by a model.

use crate::error::{Error, Result};
use hyperprior_math::random::stream;
use rand::seq::SliceRandom;
use rand_distr::{Binomial, Distribution};

const TYPES_STREAM: u64 = 0x7479_7065;
const TOKENS_STREAM: u64 = 0x746f_6b65;

/// A single document: its terms, ascending, and the count of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// The terms.
    pub terms: Vec<u32>,
    /// Their counts.
    pub counts: Vec<f32>,
}

impl Document {
    fn push(&mut self, term: u32, count: f32) {
        if count > 0.0 {
            self.terms.push(term);
            self.counts.push(count);
        }
    }
}

/// Holds out a share of a document's terms, each with its whole count: returns the observed and the held-out part.
///
/// At least one term is observed, and at least one is held out unless the share is 0. A document of fewer than two terms is
/// observed as a whole. The same seed and document index hold out the same terms.
///
/// ```
/// use hyperprior_def::corpus::hold_out_types;
///
/// let (observed, hidden) = hold_out_types((&[1, 4, 6, 9], &[2.0, 1.0, 1.0, 3.0]), 0.5, 1, 0).unwrap();
/// assert_eq!((observed.terms.len(), hidden.terms.len()), (2, 2));
/// ```
///
/// # Errors
/// [`Error::BadSetting`] if `share` is not between 0 and 1.
pub fn hold_out_types(document: (&[u32], &[f32]), share: f64, seed: u64, index: u64) -> Result<(Document, Document)> {
    check_share(share)?;
    let (terms, counts) = document;
    let mut is_hidden = vec![false; terms.len()];
    if terms.len() >= 2 && share > 0.0 {
        let hidden_len = (share * terms.len() as f64).round() as usize;
        is_hidden[..hidden_len.clamp(1, terms.len() - 1)].fill(true);
        is_hidden.shuffle(&mut stream(seed, TYPES_STREAM, index, 0));
    }
    let (mut observed, mut hidden) = (Document::default(), Document::default());
    for ((&term, &count), is_hidden) in terms.iter().zip(counts).zip(is_hidden) {
        if is_hidden { &mut hidden } else { &mut observed }.push(term, count);
    }
    Ok((observed, hidden))
}

/// Holds out each token of a document with probability `share`: returns the observed and the held-out part.
///
/// A term can be in both parts. A document of fewer than two terms is observed as a whole; of a short document everything may be
/// held out, or nothing.
///
/// # Errors
/// [`Error::BadSetting`] if `share` is not between 0 and 1.
pub fn hold_out_tokens(document: (&[u32], &[f32]), share: f64, seed: u64, index: u64) -> Result<(Document, Document)> {
    check_share(share)?;
    let (terms, counts) = document;
    let share = if terms.len() >= 2 { share } else { 0.0 };
    let mut rng = stream(seed, TOKENS_STREAM, index, 0);
    let (mut observed, mut hidden) = (Document::default(), Document::default());
    for (&term, &count) in terms.iter().zip(counts) {
        // A share between 0 and 1 always makes a binomial distribution.
        let hidden_count = Binomial::new(count as u64, share).map_or(0, |binomial| binomial.sample(&mut rng)) as f32;
        observed.push(term, count - hidden_count);
        hidden.push(term, hidden_count);
    }
    Ok((observed, hidden))
}

pub(super) fn check_share(share: f64) -> Result<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(Error::BadSetting { field: "share", value: share.to_string(), reason: "it must be between 0 and 1" })
}
