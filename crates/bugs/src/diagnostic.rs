//! Diagnostics of a program: what is wrong, where, and what to do.

use crate::span::Span;
use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably not what was meant.
    Warning,
    /// The program cannot be compiled.
    Error,
}

/// Another place that the diagnostic refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// What is there.
    pub label: String,
}

/// An error, a warning or a note about a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// How serious it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The place; none if the problem is in the data alone.
    pub span: Option<Span>,
    /// What is at that place.
    pub label: String,
    /// What to do.
    pub hint: Option<String>,
    /// Other places.
    pub related: Vec<Related>,
}

impl Diagnostic {
    /// A diagnostic of this severity at this place.
    pub fn new(severity: Severity, message: impl Into<String>, span: Option<Span>) -> Self {
        Self { severity, message: message.into(), span, label: String::new(), hint: None, related: Vec::new() }
    }

    /// An error at a place.
    pub fn error(message: impl Into<String>, span: Span) -> Self {
        Self::new(Severity::Error, message, Some(span))
    }

    /// A warning at a place.
    pub fn warning(message: impl Into<String>, span: Span) -> Self {
        Self::new(Severity::Warning, message, Some(span))
    }

    /// Adds a label to the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push(Related { span, label: label.into() });
        self
    }
}

/// How many are drawn. More usually have one common cause or come from the wrong file, and drawing each takes time proportional to
/// the length of its line.
const DRAWN: usize = 30;

/// Draws diagnostics over the source that they refer to; `name` is the name of that source. If there are very many, the first are
/// drawn and the rest counted.
///
/// ```
/// use hyperprior_bugs::{Dialect, parse, render};
///
/// let source = "model { theta ~ dbeta(1, 1 }";
/// let parsed = parse(source, Dialect::Jags);
/// let drawn = render(&parsed.diagnostics, "coin.bug", source, false);
/// assert!(drawn.contains("coin.bug:1:28"));
/// ```
pub fn render(diagnostics: &[Diagnostic], name: &str, source: &str, colour: bool) -> String {
    let config = Config::default().with_color(colour).with_index_type(IndexType::Byte).with_char_set(CharSet::Unicode);
    let mut lines = (name, Source::from(source));
    let mut drawn = Vec::new();
    for diagnostic in diagnostics.iter().take(DRAWN) {
        let (kind, tint) = match diagnostic.severity {
            Severity::Error => (ReportKind::Error, Color::Red),
            Severity::Warning => (ReportKind::Warning, Color::Yellow),
            Severity::Note => (ReportKind::Custom("Note", Color::Blue), Color::Blue),
        };
        let Some(span) = diagnostic.span else {
            // The `Display` of a kind is always coloured.
            let head = match (colour, diagnostic.severity) {
                (true, _) => kind.to_string(),
                (false, Severity::Error) => "Error".to_owned(),
                (false, Severity::Warning) => "Warning".to_owned(),
                (false, Severity::Note) => "Note".to_owned(),
            };
            drawn.extend(format!("{head}: {}\n", diagnostic.message).into_bytes());
            if let Some(hint) = &diagnostic.hint {
                drawn.extend(format!("  Help: {hint}\n").into_bytes());
            }
            continue;
        };
        let place = |span: Span| {
            // A place at the end of the source has no character to point at; use the last one.
            let end = span.end.min(source.len());
            (name, span.start.min(end)..end)
        };
        // Labels out of order would be drawn as if they belonged to several files.
        let mut labels = vec![(span, &diagnostic.label, tint)];
        labels.extend(diagnostic.related.iter().map(|r| (r.span, &r.label, Color::Cyan)));
        labels.sort_by_key(|(span, ..)| *span);
        let mut report = Report::build(kind, place(span)).with_config(config).with_message(&diagnostic.message);
        report.add_labels(
            labels.into_iter().map(|(span, label, tint)| Label::new(place(span)).with_message(label).with_color(tint)),
        );
        if let Some(hint) = &diagnostic.hint {
            report = report.with_help(hint);
        }
        // Writing to memory cannot fail.
        let _ = report.finish().write(&mut lines, &mut drawn);
    }
    if diagnostics.len() > DRAWN {
        drawn.extend(format!("… and {} more\n", diagnostics.len() - DRAWN).into_bytes());
    }
    let drawn = String::from_utf8_lossy(&drawn);
    // The name of a note is always coloured.
    let drawn = if colour { drawn } else { without_colour(&drawn).into() };
    // Lines are padded with spaces up to the frame.
    drawn.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Removes colour codes, `ESC [ … m`. Of any other escape, which only the source can contain, only the ESC is removed.
fn without_colour(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code =
            piece.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        plain.push_str(code.and_then(|rest| rest.strip_prefix('m')).unwrap_or(piece));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches an escape in a source that removes the rest of the drawing.
    #[test]
    fn only_the_escape_character_of_other_codes_is_removed() {
        assert_eq!(without_colour("a\u{1b}[38;5;1mb\u{1b}[0m c\u{1b}d\u{1b}[1x"), "ab cd[1x");
    }

    #[test]
    fn only_the_first_of_very_many_are_drawn() {
        let diagnostics = vec![Diagnostic::error("something", Span { start: 0, end: 1 }).label("here"); DRAWN + 7];
        let drawn = render(&diagnostics, "m.bug", "model", false);
        assert_eq!(drawn.matches("Error: something").count(), DRAWN);
        assert!(drawn.ends_with("… and 7 more\n"), "{drawn}");
    }

    /// With and without a place, at every severity.
    #[test]
    fn without_colour_there_are_no_escape_codes() {
        let source = "model { x ~ dnorm(0, 1) }";
        for severity in [Severity::Error, Severity::Warning, Severity::Note] {
            for span in [None, Some(Span { start: 8, end: 9 })] {
                let diagnostics = [Diagnostic::new(severity, "something", span).label("here").hint("do this")];
                let plain = render(&diagnostics, "m.bug", source, false);
                assert!(!plain.contains('\u{1b}') && plain.contains(": something"), "{plain:?}");
            }
        }
    }
}
