//! Matrix Market: a sparse matrix with a document in each row and a term in each column.

use super::bag_of_words::Corpus;
use super::builder::Counts;
use super::lines::Lines;
use super::list::List;
use super::number::Tokens;
use super::sizes::{Sizes, check_sizes};
use super::triples;
use crate::error::Result;
use std::io::{self, Write};

/// The beginning of such a file, in upper or lower case.
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

/// Whether the file has counts; a pattern has none.
fn banner(lines: &mut Lines) -> Result<bool> {
    lines.advance()?;
    let line = lines.text()?.to_ascii_lowercase();
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("%%matrixmarket") {
        return Err(lines.malformed(0, "the file does not begin with `%%MatrixMarket`", HEADER));
    }
    let words: Vec<&str> = words.collect();
    let refused = |found: &str, remedy: &str| Err(lines.malformed(0, format!("unsupported matrix: `{found}`"), remedy));
    match words[..] {
        ["matrix", "coordinate", field @ ("integer" | "real" | "pattern"), "general"] => Ok(field != "pattern"),
        ["matrix", "array", ..] => refused("array", "write a sparse matrix: `coordinate`, not `array`"),
        ["matrix", "coordinate", "integer" | "real" | "pattern", symmetry] => {
            refused(symmetry, "a matrix of documents by terms is not symmetric: write `general`")
        }
        ["matrix", "coordinate", field, _] => refused(field, "use `integer`, `real` or `pattern`"),
        _ => Err(lines.malformed(0, "the first line does not give the format of the matrix", HEADER)),
    }
}

/// The line of sizes, after the comments.
fn sizes(lines: &mut Lines) -> Result<Sizes> {
    const SIZES: &str = "after the comments comes a line `rows columns counts`";
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
    /// The errors of the writer.
    pub fn write_matrix_market(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{BANNER} matrix coordinate integer general")?;
        writeln!(out, "{} {} {}", self.documents_len(), self.terms_len(), self.nonzeros_len())?;
        self.write_triples(out)
    }
}
