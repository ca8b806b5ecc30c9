//! The words of a text.

/// Calls `found` with each word of a text, in lower case.
///
/// A word is a run of letters of any script. A final `'s` and apostrophes inside the word are removed: `Solomon's` becomes
/// `solomon` and `don't` becomes `dont`. A run with a digit in it, such as `1990s`, is not a word. A hyphen separates two words.
///
/// ```
/// use hyperprior_def::corpus::words;
///
/// let mut found = Vec::new();
/// words("Don’t touch Solomon's well-known Ärger, 1990s!", |word| found.push(word.to_string()));
/// assert_eq!(found, ["dont", "touch", "solomon", "well", "known", "ärger"]);
/// ```
pub fn words(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || is_inner(c))).unwrap_or(rest.len());
        let run = rest[..end].trim_end_matches(is_apostrophe);
        rest = &rest[end..];
        if run.contains(char::is_numeric) {
            continue;
        }
        word.clear();
        let run = without_possessive(run);
        word.extend(run.chars().filter(|&c| !is_apostrophe(c) && c != SOFT_HYPHEN).flat_map(char::to_lowercase));
        found(&word);
    }
}

const SOFT_HYPHEN: char = '\u{ad}';

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}')
}

/// Non-letters allowed inside a word: apostrophes, soft hyphens, and combining accents.
fn is_inner(c: char) -> bool {
    is_apostrophe(c) || c == SOFT_HYPHEN || matches!(c, '\u{300}'..='\u{36f}')
}

fn without_possessive(run: &str) -> &str {
    let Some(before) = run.strip_suffix(['s', 'S']) else { return run };
    let stem = before.trim_end_matches(is_apostrophe);
    if stem.len() < before.len() && !stem.is_empty() { stem } else { run }
}
