//! Tables of comma-separated values as a run writes them (RFC 4180).

/// The fields of each line, the header's first.
pub fn fields(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            letter => field.push(letter),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}

/// A number; what is no number is not known.
pub fn number(field: &str) -> f64 {
    field.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_quoted_is_read_back() {
        let names = ["plain", "a \"word\", quoted", "two\nlines", ""];
        let line: Vec<_> = names.iter().map(|name| crate::output::quoted(name)).collect();
        let text = format!("{}\n1,-2.5e-7,NaN,\n", line.join(","));
        let rows = fields(&text);
        assert_eq!(rows[0], names);
        assert_eq!(rows[1].iter().map(|field| number(field)).collect::<Vec<_>>()[..2], [1.0, -2.5e-7]);
        assert!(number(&rows[1][2]).is_nan() && number(&rows[1][3]).is_nan());
        assert_eq!(rows.len(), 2);
        assert_eq!(fields("a,b"), [["a", "b"]]);
    }
}
