//! The sizes that a corpus can have, and those of a header.

use super::lines::Lines;
use super::list::List;
use crate::error::Result;

/// The sizes in a header.
pub(super) struct Sizes {
    pub documents_len: u64,
    pub terms_len: u64,
    pub nonzeros_len: u64,
}

/// The largest number of terms without a vocabulary: a mistyped number must not fill the memory with names.
const UNNAMED_MAX: u64 = 1_000_000;

const UNNAMED_REMEDY: &str = "give the vocabulary's file, or correct the number";

/// The number of a term without a vocabulary.
pub(super) fn unnamed(lines: &Lines, at: usize, term: u64) -> Result<u32> {
    if term < UNNAMED_MAX {
        return Ok(term as u32);
    }
    let message = format!("term {term}, but without a vocabulary there are {UNNAMED_MAX} terms at most");
    Err(lines.malformed(at, message, UNNAMED_REMEDY))
}

/// Checks that the sizes of a header are possible and agree with the vocabulary; returns the number of terms.
pub(super) fn check_sizes(lines: &Lines, sizes: &Sizes, vocabulary: Option<&List>) -> Result<usize> {
    if sizes.documents_len > u64::from(u32::MAX) {
        let message =
            format!("the header says {} documents, but there can be {} at most", sizes.documents_len, u32::MAX);
        return Err(lines.disagreement(message, "correct the header"));
    }
    let Some(list) = vocabulary else {
        if sizes.terms_len > UNNAMED_MAX {
            let says = format!("the header says {} terms", sizes.terms_len);
            let message = format!("{says}, but without a vocabulary there can be {UNNAMED_MAX} at most");
            return Err(lines.disagreement(message, UNNAMED_REMEDY));
        }
        return Ok(sizes.terms_len as usize);
    };
    let terms_len = list.names.len();
    if sizes.terms_len == terms_len as u64 {
        return Ok(terms_len);
    }
    let turned = sizes.documents_len == terms_len as u64;
    let remedy = if turned {
        "transpose the matrix: documents are rows, terms are columns"
    } else {
        "use the vocabulary that the counts were made with"
    };
    let says = format!("the header says {} terms", sizes.terms_len);
    Err(lines.disagreement(format!("{says}, but `{}` has {terms_len}", list.path.display()), remedy))
}
