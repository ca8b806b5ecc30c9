//! Reads comma-separated values (RFC 4180) as written by a run.

use std::iter::Peekable;
use std::str::Chars;

/// The fields of each line, starting with the header. Lines are parsed lazily.
pub fn rows(text: &str) -> Rows<'_> {
    Rows { letters: text.chars().peekable() }
}

/// See [`rows`].
pub struct Rows<'a> {
    letters: Peekable<Chars<'a>>,
}

impl Iterator for Rows<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        self.letters.peek()?;
        let (mut row, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        while let Some(letter) = self.letters.next() {
            match letter {
                '"' if is_quoted && self.letters.peek() == Some(&'"') => {
                    self.letters.next();
                    field.push('"');
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(std::mem::take(&mut field)),
                '\r' if !is_quoted && self.letters.peek() == Some(&'\n') => {}
                '\n' if !is_quoted => break,
                letter => field.push(letter),
            }
        }
        row.push(field);
        Some(row)
    }
}

/// A number; NaN for anything else.
pub fn number(field: &str) -> f64 {
    field.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_are_read_back() {
        let names = ["plain", "a \"word\", quoted", "two\nlines", ""];
        let line: Vec<_> = names.iter().map(|name| crate::run_dir::quoted(name)).collect();
        let text = format!("{}\n1,-2.5e-7,NaN,\n", line.join(","));
        let rows: Vec<Vec<String>> = rows(&text).collect();
        assert_eq!(rows[0], names);
        assert_eq!(rows[1].iter().map(|field| number(field)).collect::<Vec<_>>()[..2], [1.0, -2.5e-7]);
        assert!(number(&rows[1][2]).is_nan() && number(&rows[1][3]).is_nan());
        assert_eq!(rows.len(), 2);
        assert_eq!(super::rows("a,b").collect::<Vec<_>>(), [["a", "b"]]);
        assert_eq!(super::rows("").count(), 0);
    }
}
