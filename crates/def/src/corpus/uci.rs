//! UCI bag of words: the numbers of documents, terms and counts on one line each, then lines `document term count`, numbered from
//! 1.

use super::bag_of_words::Corpus;
use super::builder::Counts;
use super::lines::Lines;
use super::list::List;
use super::number::Tokens;
use super::sizes::{Sizes, check_sizes};
use super::triples;
use crate::error::Result;
use std::io::{self, Write};

const HEADER: &str = "the first three lines are the numbers of documents, of terms and of counts";
const FORM: &str = "a line is `document term count`, such as `1 7 3`";

/// The counts, and the number of terms.
pub(super) fn read(lines: &mut Lines, vocabulary: Option<&List>) -> Result<(Counts, usize)> {
    let mut header = [0; 3];
    for (number, what) in header.iter_mut().zip(["documents", "terms", "counts"]) {
        lines.advance()?;
        let mut tokens = Tokens::new(lines.bytes());
        let Some(token) = tokens.next() else {
            return Err(lines.malformed(0, format!("the number of {what} is missing"), HEADER));
        };
        *number = token.whole().ok_or_else(|| lines.not_a_number(token, HEADER))?;
        if let Some(more) = tokens.next() {
            let message = format!("`{}` after the number of {what}", more.shown());
            return Err(lines.malformed(more.at, message, HEADER));
        }
    }
    let [documents_len, terms_len, nonzeros_len] = header;
    let sizes = Sizes { documents_len, terms_len, nonzeros_len };
    let terms_len = check_sizes(lines, &sizes, vocabulary)?;
    Ok((triples::read(lines, &sizes, true, FORM)?, terms_len))
}

impl Corpus {
    /// Writes the counts as a UCI bag of words; [`Corpus::write_vocabulary`] writes the terms that go with them.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_uci(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}\n{}\n{}", self.documents_len(), self.terms_len(), self.nonzeros_len())?;
        self.write_triples(out)
    }

    pub(super) fn write_triples(&self, out: &mut impl Write) -> io::Result<()> {
        for d in 0..self.documents_len() {
            let (terms, counts) = self.document(d);
            for (term, count) in terms.iter().zip(counts) {
                writeln!(out, "{} {} {count}", d + 1, term + 1)?;
            }
        }
        Ok(())
    }
}
