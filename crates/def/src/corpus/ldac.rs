//! LDA-C: a line for each document, with the number of its terms and then `term:count` for each, terms numbered from 0.

use super::bag_of_words::Corpus;
use super::builder::{Builder, Counts};
use super::lines::Lines;
use super::list::List;
use super::number::{Token, Tokens};
use super::sizes::unnamed;
use crate::error::{Error, Result};
use std::io::{self, Write};

const FORM: &str = "a line is the number of terms, then `term:count` for each, such as `2 0:1 7:3`";

/// The counts, and one more than the largest number of a term.
pub(super) fn read(lines: &mut Lines, vocabulary: Option<&List>) -> Result<(Counts, usize)> {
    let mut builder = Builder::new();
    let mut terms_len = 0;
    while lines.advance()? {
        document(lines, vocabulary, &mut builder, &mut terms_len)?;
        builder.finish().map_err(|term| {
            let message = format!("the counts of term {term} add up to more than 16777216");
            lines.malformed(0, message, "split the document, or check that it is a single document")
        })?;
    }
    Ok((builder.counts(), terms_len))
}

fn document(lines: &Lines, vocabulary: Option<&List>, builder: &mut Builder, terms_len: &mut usize) -> Result<()> {
    let mut tokens = Tokens::new(lines.bytes());
    // An empty line is an empty document.
    let Some(first) = tokens.next() else { return Ok(()) };
    let promised = first.whole().ok_or_else(|| lines.not_a_number(first, FORM))?;
    let mut found = 0;
    for token in tokens {
        let Some((id, count)) = token.split_at(b':') else {
            let missing = || lines.malformed(token.at, format!("`{}` has no colon", token.shown()), FORM);
            return Err(lines.binary(token).unwrap_or_else(missing));
        };
        let term = term(lines, id, vocabulary)?;
        let count = count.count().map_err(|fault| lines.bad_count(count, fault, FORM))?;
        // A count of 0 is as good as none.
        if count > 0.0 {
            builder.push(term, count);
        }
        *terms_len = (*terms_len).max(term as usize + 1);
        found += 1;
    }
    if found != promised {
        let message = format!("the line begins with {promised}, but {found} terms follow");
        let remedy = "correct the number, or download the file again if it is cut off";
        return Err(lines.malformed(first.at, message, remedy));
    }
    Ok(())
}

fn term(lines: &Lines, token: Token, vocabulary: Option<&List>) -> Result<u32> {
    let term = token.whole().ok_or_else(|| lines.not_a_number(token, FORM))?;
    match vocabulary {
        Some(vocabulary) if term >= vocabulary.names.len() as u64 => {
            let ((line, column), path) = (lines.place(token.at), lines.path().to_path_buf());
            let terms_len = vocabulary.names.len();
            Err(Error::UnknownTerm { path, line, column, term, vocabulary: vocabulary.path.clone(), terms_len })
        }
        Some(_) => Ok(term as u32),
        None => unnamed(lines, token.at, term),
    }
}

impl Corpus {
    /// Writes the counts as LDA-C; [`Corpus::write_vocabulary`] writes the terms that go with them.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_ldac(&self, out: &mut impl Write) -> io::Result<()> {
        for d in 0..self.documents_len() {
            let (terms, counts) = self.document(d);
            write!(out, "{}", terms.len())?;
            for (term, count) in terms.iter().zip(counts) {
                write!(out, " {term}:{count}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes the vocabulary, a term on each line.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_vocabulary(&self, out: &mut impl Write) -> io::Result<()> {
        self.vocabulary().iter().try_for_each(|term| writeln!(out, "{term}"))
    }
}
