//! Counts one by one, each with its document and its term, as in UCI and Matrix Market files.

use super::builder::{Builder, Counts};
use super::lines::Lines;
use super::number::{Token, Tokens};
use super::sizes::Sizes;
use crate::error::Result;

/// Reads the lines after a header: document and term, numbered from 1, and a count if `with_counts`.
pub(super) fn read(lines: &mut Lines, sizes: &Sizes, with_counts: bool, form: &str) -> Result<Counts> {
    let mut triples = Triples::new();
    let mut found = 0_u64;
    while lines.advance()? {
        let mut tokens = Tokens::new(lines.bytes());
        let Some(document) = tokens.next() else { continue };
        if found == sizes.nonzeros_len {
            let message = format!("more counts than the {} in the header", sizes.nonzeros_len);
            return Err(lines.malformed(document.at, message, "correct the header, or remove the extra lines"));
        }
        let end = lines.bytes().len();
        let missing = |what: &str| lines.malformed(end, format!("the line ends before its {what}"), form);
        let term = tokens.next().ok_or_else(|| missing("term"))?;
        let row = index(lines, document, "document", sizes.documents_len, form)?;
        let column = index(lines, term, "term", sizes.terms_len, form)?;
        let mut count = 1.0;
        if with_counts {
            let token = tokens.next().ok_or_else(|| missing("count"))?;
            count = token.count().map_err(|fault| lines.bad_count(token, fault, form))?;
        }
        if let Some(token) = tokens.next() {
            return Err(lines.malformed(token.at, format!("`{}` at the end of the line", token.shown()), form));
        }
        found += 1;
        if count > 0.0 {
            triples.push(row, column, count).map_err(|term| lines.overflow(term))?;
        }
    }
    if found < sizes.nonzeros_len {
        let promised = format!("the header says {} counts", sizes.nonzeros_len);
        let message = format!("{promised}, but {found} follow, the last on line {}", lines.number());
        return Err(lines.disagreement(message, "download the file again if it is cut off, or correct the header"));
    }
    triples.counts(sizes.documents_len).map_err(|term| lines.overflow(term))
}

/// A number from 1 to `len`, as a number from 0.
fn index(lines: &Lines, token: Token, what: &str, len: u64, form: &str) -> Result<u32> {
    match token.whole() {
        None => Err(lines.not_a_number(token, form)),
        Some(0) => Err(lines.malformed(token.at, format!("{what} 0"), format!("{what}s are numbered from 1"))),
        Some(i) if i > len => {
            let message = format!("{what} {i}, but the header says {len} {what}s");
            Err(lines.malformed(token.at, message, "correct the header, or the number"))
        }
        Some(i) => Ok((i - 1) as u32),
    }
}

/// Counts in file order: those in the order of documents go straight to the builder, the others wait.
struct Triples {
    builder: Builder,
    row: Option<u32>,
    late: Vec<(u32, u32, f32)>,
}

impl Triples {
    fn new() -> Self {
        Self { builder: Builder::new(), row: None, late: Vec::new() }
    }

    fn push(&mut self, row: u32, term: u32, count: f32) -> std::result::Result<(), u32> {
        if self.row.is_some_and(|last| row < last) {
            self.late.push((row, term, count));
            return Ok(());
        }
        if self.row != Some(row) {
            self.finish()?;
            self.builder.skip_to(row as usize);
            self.row = Some(row);
        }
        self.builder.push(term, count);
        Ok(())
    }

    fn finish(&mut self) -> std::result::Result<(), u32> {
        self.row.take().map_or(Ok(()), |_| self.builder.finish())
    }

    /// The counts by document. A header may claim any number of documents, so nothing of that length is allocated.
    fn counts(mut self, documents_len: u64) -> std::result::Result<Counts, u32> {
        self.finish()?;
        if self.late.is_empty() {
            self.builder.skip_to(documents_len as usize);
            return Ok(self.builder.counts());
        }
        let (early, mut all) = (self.builder.counts(), self.late);
        for (d, &number) in early.numbers.iter().enumerate() {
            let (terms, counts) = early.document(d);
            all.extend(terms.iter().zip(counts).map(|(&term, &count)| (number as u32, term, count)));
        }
        drop(early);
        // Files by columns consist of ascending runs, which this sort merges quickly.
        all.sort_by_key(|triple| triple.0);
        let mut sorted = Self::new();
        for (row, term, count) in all {
            sorted.push(row, term, count)?;
        }
        sorted.counts(documents_len)
    }
}
