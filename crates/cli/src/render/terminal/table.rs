//! A plain-text table.

/// Lays rows out under a header; columns of numbers or empty cells are right-aligned.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..header.len())
        .map(|c| rows.iter().map(|r| width(&r[c])).chain([width(header[c])]).max().unwrap_or(0))
        .collect();
    let numeric: Vec<bool> = (0..header.len())
        .map(|c| {
            rows.iter().all(|r| r[c].is_empty() || r[c].starts_with(|x: char| x.is_ascii_digit() || "-−–∞".contains(x)))
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let mut out = String::new();
        for (c, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[c] - width(cell));
            let (before, after) = if numeric[c] { (pad.as_str(), "") } else { ("", pad.as_str()) };
            out.push_str(if c > 0 { "  " } else { "" });
            out.push_str(before);
            out.push_str(cell);
            out.push_str(after);
        }
        out.trim_end().to_owned() + "\n"
    };
    let mut out = line(header.to_vec());
    out.push_str(&line(widths.iter().map(|w| &RULE[..RULE.len().min(3 * w)]).collect()));
    for row in rows {
        out.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    out
}

/// A divergence to five decimals, or in scientific notation if it is smaller.
pub fn divergence(kl: f64) -> String {
    if kl.abs() < 1e-4 && kl != 0.0 { format!("{kl:.1e}") } else { format!("{kl:.5}") }
}

/// Horizontal strokes, three bytes each.
const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

#[cfg(test)]
mod tests {
    use super::{divergence, render};

    #[test]
    fn numbers_are_right_aligned_and_words_left_aligned() {
        let rows = vec![vec!["a".to_owned(), "1.25".to_owned()], vec!["bcd".to_owned(), "-10.5".to_owned()]];
        assert_eq!(render(&["name", "KL"], &rows), "name     KL\n────  ─────\na      1.25\nbcd   -10.5\n");
    }

    #[test]
    fn small_divergences_are_not_zero() {
        assert_eq!([0.35088, 1.54e-8, -2e-16, 0.0].map(divergence), ["0.35088", "1.5e-8", "-2.0e-16", "0.00000"]);
    }
}
