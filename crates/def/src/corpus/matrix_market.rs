//! Matrix Market: a sparse matrix with a document in each row and a term in each column.

use super::Corpus;
use super::builder::Counts;
use super::lines::Lines;
use super::list::List;
use super::number::Tokens;
use super::read::check_sizes;
use super::triples::{self, Sizes};
use crate::error::Result;
use std::io::{self, Write};

/// What such a file begins with, in any case.
pub(super) const BANNER: &str = "%%MatrixMarket";

const HEADER: &str = "the first line must be `%%MatrixMarket matrix coordinate integer general`";
const FORM: &str = "a line is `row column count`, such as `1 7 3`; a row is a document";
const PATTERN_FORM: &str = "a line of a pattern is `row column`, such as `1 7`; a row is a document";

/// The counts, and the number of terms.
pub(super) fn read(lines: &mut Lines, vocabulary: Option<&List>) -> Result<(Counts, usize)> {
    let with_counts = banner(lines)?;
    let sizes = sizes(lines)?;
    let terms_len = check_sizes(lines, &sizes, vocabulary)?;
    let form = if with_counts { FORM } else { PATTERN_FORM };
    Ok((triples::read(lines, &sizes, with_counts, form)?, terms_len))
}

/// Whether there are counts; a pattern has none.
fn banner(lines: &mut Lines) -> Result<bool> {
    lines.advance()?;
    let line = lines.text()?.to_ascii_lowercase();
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("%%matrixmarket") {
        return Err(lines.malformed(0, "no `%%MatrixMarket` at the beginning", HEADER));
    }
    let words: Vec<&str> = words.collect();
    let refused = |found: &str, remedy: &str| Err(lines.malformed(0, format!("a matrix that is `{found}`"), remedy));
    match words[..] {
        ["matrix", "coordinate", field @ ("integer" | "real" | "pattern"), "general"] => Ok(field != "pattern"),
        ["matrix", "array", ..] => refused("array", "write it sparse: as `coordinate`, not as `array`"),
        ["matrix", "coordinate", "integer" | "real" | "pattern", symmetry] => {
            refused(symmetry, "documents by terms is no symmetric matrix: write it as `general`")
        }
        ["matrix", "coordinate", field, _] => refused(field, "counts are `integer`, `real` or `pattern`"),
        _ => Err(lines.malformed(0, "a first line that does not say how the matrix is written", HEADER)),
    }
}

/// The line after the remarks.
fn sizes(lines: &mut Lines) -> Result<Sizes> {
    const SIZES: &str = "after the remarks comes a line `rows columns counts`";
    while lines.advance()? {
        if lines.bytes().starts_with(b"%") || Tokens::new(lines.bytes()).next().is_none() {
            continue;
        }
        let mut numbers = [0; 3];
        let mut tokens = Tokens::new(lines.bytes());
        for number in &mut numbers {
            let Some(token) = tokens.next() else {
                return Err(lines.malformed(lines.bytes().len(), "the line of sizes ends too early", SIZES));
            };
            *number = token.whole().ok_or_else(|| lines.not_a_number(token, SIZES))?;
        }
        if let Some(more) = tokens.next() {
            return Err(lines.malformed(more.at, format!("`{}` after the sizes", more.shown()), SIZES));
        }
        let [documents_len, terms_len, nonzeros_len] = numbers;
        return Ok(Sizes { documents_len, terms_len, nonzeros_len });
    }
    Err(lines.malformed(0, "the file ends before its sizes", SIZES))
}

impl Corpus {
    /// Writes the counts as a Matrix Market file; [`Corpus::write_vocabulary`] writes the terms that go with them.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_matrix_market(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{BANNER} matrix coordinate integer general")?;
        writeln!(out, "{} {} {}", self.documents_len(), self.terms_len(), self.nonzeros_len())?;
        self.write_triples(out)
    }
}
