//! Colours for text on a terminal.

use std::borrow::Cow;
use std::io::IsTerminal;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[1;32m";
const YELLOW: &str = "\x1b[1;33m";
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// The text for standard output: coloured on a terminal, unless `NO_COLOR` is set.
pub fn for_stdout(text: &str) -> Cow<'_, str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
        true => Cow::Owned(coloured(text)),
        false => Cow::Borrowed(text),
    }
}

/// Verdicts and warnings coloured by severity, heads of tables bold, their rules dim.
fn coloured(text: &str) -> String {
    const BEGINNINGS: [(&str, &str); 5] = [
        ("Verdict: trust", GREEN),
        ("Verdict: means only", YELLOW),
        ("Verdict: distrust", RED),
        ("Warning:", YELLOW),
        ("Note:", YELLOW),
    ];
    let is_rule = |line: &str| line.starts_with('─');
    let mut lines = text.split_inclusive('\n').peekable();
    let mut out = String::with_capacity(text.len() + 64);
    while let Some(line) = lines.next() {
        let body = line.trim_end_matches('\n');
        let beginning = BEGINNINGS.iter().find(|(beginning, _)| body.starts_with(beginning));
        let (len, colour) = match beginning {
            Some((beginning, colour)) => (beginning.len(), *colour),
            None if is_rule(body) => (body.len(), DIM),
            None if !body.is_empty() && lines.peek().is_some_and(|next| is_rule(next)) => (body.len(), BOLD),
            None => (0, ""),
        };
        if len > 0 {
            out.extend([colour, &body[..len], PLAIN, &body[len..]]);
        } else {
            out.push_str(body);
        }
        out.push_str(&line[body.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_colour_is_added() {
        let text = "a model\n\nVerdict: trust. It had converged.\nWarning: labels switch.\n\nname  mean\n────  ────\nmu    1.00\n\nend";
        let coloured = coloured(text);
        assert_ne!(coloured, text);
        let mut plain = coloured.clone();
        for code in [BOLD, DIM, GREEN, YELLOW, RED, PLAIN] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text);
        assert!(coloured.contains("\x1b[1;32mVerdict: trust\x1b[0m. It"), "{coloured:?}");
        assert!(coloured.contains("\x1b[1mname  mean\x1b[0m\n\x1b[2m────"), "{coloured:?}");
    }
}
