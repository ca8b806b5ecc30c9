//! The formats of a corpus, and how one is told from another.

use super::matrix_market;
use super::number::Tokens;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How a corpus is written.
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
    /// What the name and the first bytes of a file speak of.
    pub(super) fn of(path: &Path, head: &[u8]) -> Option<Self> {
        // No other format begins like this, whatever the file is called.
        let banner = matrix_market::BANNER.as_bytes();
        if head.get(..banner.len()).is_some_and(|start| start.eq_ignore_ascii_case(banner)) {
            return Some(Self::MatrixMarket);
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("").to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "ldac" | "lda-c" => Some(Self::LdaC),
            "uci" | "bow" => Some(Self::Uci),
            "mtx" | "mm" => Some(Self::MatrixMarket),
            // UCI's own files are called docword.*.txt, and LDA-C is often called .txt or .dat.
            "txt" | "text" => Some(Self::of_counts(head).unwrap_or(Self::Text)),
            _ => Self::of_counts(head),
        }
    }

    /// The format of counts that the first lines are in, if they are.
    fn of_counts(head: &[u8]) -> Option<Self> {
        let mut lines = head.split(|&byte| byte == b'\n').map(|line| Tokens::new(line).collect::<Vec<_>>());
        let first = lines.next()?;
        first.first()?.whole()?;
        if first.len() > 1 {
            // The last token may be cut off where the head ends, but its neighbour is not.
            let pair = first[1].split_at(b':')?;
            return pair.0.whole().map(|_| Self::LdaC);
        }
        let alone = |line: Option<Vec<_>>| {
            line.is_some_and(|line: Vec<super::number::Token>| line.len() == 1 && line[0].whole().is_some())
        };
        (alone(lines.next()) && alone(lines.next())).then_some(Self::Uci)
    }
}
