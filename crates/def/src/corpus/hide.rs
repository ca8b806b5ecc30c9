//! Parts of a document set aside, to ask a model about them.

use crate::error::{Error, Result};
use hyperprior_math::random::stream;
use rand::seq::SliceRandom;
use rand_distr::{Binomial, Distribution};

const TYPES_STREAM: u64 = 0x7479_7065;
const TOKENS_STREAM: u64 = 0x746f_6b65;

/// A document of its own: its terms, ascending, and the count of each.
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

/// Hides a share of a document's terms, each with all its counts: what is observed, and what is hidden.
///
/// At least one term is observed, and at least one hidden unless the share is 0. A document of fewer than two terms is
/// observed as it is. The same seed and document index hide the same terms.
///
/// ```
/// use hyperprior_def::corpus::hide_types;
///
/// let (observed, hidden) = hide_types((&[1, 4, 6, 9], &[2.0, 1.0, 1.0, 3.0]), 0.5, 1, 0).unwrap();
/// assert_eq!((observed.terms.len(), hidden.terms.len()), (2, 2));
/// ```
///
/// # Errors
/// [`Error::BadSetting`] if `share` is not between 0 and 1.
pub fn hide_types(document: (&[u32], &[f32]), share: f64, seed: u64, index: u64) -> Result<(Document, Document)> {
    check_share(share)?;
    let (terms, counts) = document;
    let mut hide = vec![false; terms.len()];
    if terms.len() >= 2 && share > 0.0 {
        let hidden_len = (share * terms.len() as f64).round() as usize;
        hide[..hidden_len.clamp(1, terms.len() - 1)].fill(true);
        hide.shuffle(&mut stream(seed, TYPES_STREAM, index, 0));
    }
    let (mut observed, mut hidden) = (Document::default(), Document::default());
    for ((&term, &count), hide) in terms.iter().zip(counts).zip(hide) {
        if hide { &mut hidden } else { &mut observed }.push(term, count);
    }
    Ok((observed, hidden))
}

/// Hides each word of a document with probability `share`, one by one: what is observed, and what is hidden.
///
/// A term can be on both sides. A document of fewer than two terms is observed as it is; of a short document everything
/// may be hidden, or nothing.
///
/// # Errors
/// [`Error::BadSetting`] if `share` is not between 0 and 1.
pub fn hide_tokens(document: (&[u32], &[f32]), share: f64, seed: u64, index: u64) -> Result<(Document, Document)> {
    check_share(share)?;
    let (terms, counts) = document;
    let share = if terms.len() >= 2 { share } else { 0.0 };
    let mut rng = stream(seed, TOKENS_STREAM, index, 0);
    let (mut observed, mut hidden) = (Document::default(), Document::default());
    for (&term, &count) in terms.iter().zip(counts) {
        // A share between 0 and 1 always makes a binomial law.
        let hide = Binomial::new(count as u64, share).map_or(0, |law| law.sample(&mut rng)) as f32;
        observed.push(term, count - hide);
        hidden.push(term, hide);
    }
    Ok((observed, hidden))
}

pub(super) fn check_share(share: f64) -> Result<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(Error::BadSetting { field: "share", value: share.to_string(), reason: "it is a share, between 0 and 1" })
}
