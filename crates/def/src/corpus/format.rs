//! The formats of a corpus, and how they are recognised.

use super::matrix_market;
use super::number::{Token, Tokens};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// A line for each document: the number of its terms, then `term:count` for each, terms numbered from 0.
    LdaC,
    /// Three lines with the numbers of documents, terms and counts, then `document term count`, numbered from 1.
    Uci,
    /// A sparse matrix with a document in each row and a term in each column.
    MatrixMarket,
    /// Text with a document on each line.
    Text,
    /// A folder with a document in each file of text.
    Folder,
}

impl Format {
    /// The format that the name and the first bytes of a file indicate.
    pub(super) fn of(path: &Path, head: &[u8]) -> Option<Self> {
        // No other format begins like this, whatever the name.
        let banner = matrix_market::BANNER.as_bytes();
        if head.get(..banner.len()).is_some_and(|start| start.eq_ignore_ascii_case(banner)) {
            return Some(Self::MatrixMarket);
        }
        match Self::of_name(path) {
            // UCI's own files are called docword.*.txt, and LDA-C files often .txt or .dat.
            Some(Self::Text) => Some(Self::of_counts(head).unwrap_or(Self::Text)),
            Some(format) => Some(format),
            None => Self::of_counts(head),
        }
    }

    /// The format that the name of a file indicates.
    pub(super) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "ldac" | "lda-c" => Some(Self::LdaC),
            "uci" | "bow" => Some(Self::Uci),
            "mtx" | "mm" => Some(Self::MatrixMarket),
            "txt" | "text" => Some(Self::Text),
            _ => None,
        }
    }

    /// The format of counts that the first lines are in, if any.
    fn of_counts(head: &[u8]) -> Option<Self> {
        let mut lines = head.split(|&byte| byte == b'\n').map(|line| Tokens::new(line).collect::<Vec<_>>()).peekable();
        let is_alone = |line: &Vec<Token>| line.len() == 1 && line[0].whole().is_some();
        if lines.clone().take(3).filter(is_alone).count() == 3 && lines.clone().count() > 3 {
            return Some(Self::Uci);
        }
        // Documents without words may come first.
        while lines.peek().is_some_and(|line| line.len() == 1 && line[0].whole() == Some(0)) {
            lines.next();
        }
        let first = lines.next()?;
        first.first()?.whole()?;
        // The last pair may be cut off at the end of the head; those before it are not.
        let is_pair = |token: &Token| token.split_at(b':').is_some_and(|pair| pair.0.whole().is_some());
        let whole_len = (first.len() - 1).max(2);
        first.get(1..whole_len).is_some_and(|pairs| pairs.iter().all(is_pair)).then_some(Self::LdaC)
    }
}
