//! The width of text in DejaVu Sans, and line breaking.

/// Advance widths of U+0020..=U+007E in hundredths of an em, read from DejaVuSans.ttf 2.37.
///
/// Helvetica and Arial, the fallbacks named in the SVG, are narrower, so they fit too.
#[rustfmt::skip]
const ADVANCE: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84,
    84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61,
    69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59,
    82, 59, 59, 52, 64, 34, 64, 84,
];

/// Bold letters are at most about this much wider; a second exact table is not needed.
const BOLD_FACTOR: f64 = 1.13;

/// Width in pixels of `text` on one line.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let hundredths: f64 = text.chars().map(advance).sum();
    hundredths / 100.0 * size * if bold { BOLD_FACTOR } else { 1.0 }
}

fn advance(letter: char) -> f64 {
    match letter {
        ' '..='~' => f64::from(ADVANCE[letter as usize - 32]),
        '₀'..='₉' | '⁰'..='⁹' | '¹' | '²' | '³' => 40.0,
        'α'..='ω' | 'à'..='ÿ' => 66.0,
        '–' => 50.0,
        // Operators are 84, and no character that the program writes is wider than an em.
        '−' | '×' => 84.0,
        _ => 100.0,
    }
}

/// Breaks `text` into lines no wider than `room`, between words if possible and inside a word otherwise.
pub(super) fn wrap(text: &str, size: f64, bold: bool, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&joined, size, bold) <= room {
            line = joined;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for letter in word.chars() {
            line.push(letter);
            if width(&line, size, bold) > room && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}
