//! From characters to tokens.

use crate::diagnostic::Diagnostic;
use crate::span::Span;

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind {
    Number(f64),
    /// A name; its text is in the source at the token's span.
    Name,
    Var,
    Data,
    Model,
    For,
    In,
    /// `<-`
    Arrow,
    /// `=`
    Assign,
    Tilde,
    Semicolon,
    Comma,
    Colon,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Plus,
    Minus,
    Star,
    Slash,
    Caret,
    /// `%…%`
    Special,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Bang,
    And,
    Or,
    End,
}

/// A token, its place, and whether it is the first of its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Span,
    pub starts_line: bool,
}

/// The tokens of a source, ending with `End`. Invalid characters are reported and skipped.
pub(super) fn lex(source: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), diagnostics: Vec::new(), starts_line: true };
    while lexer.blanks() {
        lexer.token();
    }
    let end = Span::new(source.len(), source.len());
    lexer.tokens.push(Token { kind: TokenKind::End, span: end, starts_line: true });
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    starts_line: bool,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    /// Skips white space and comments; false at the end of the source.
    fn blanks(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else { return false };
            if c == '\n' || c == '\r' {
                self.starts_line = true;
                self.at += 1;
            } else if c.is_ascii_whitespace() || c == '\u{feff}' {
                self.at += c.len_utf8();
            } else if c == '#' {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                // The star that opens a comment does not also close it.
                match comment.find("*/") {
                    Some(end) => self.at += end + 4,
                    None => {
                        let span = Span::new(self.at, self.at + 2);
                        self.diagnostics.push(
                            Diagnostic::error("this comment is never closed", span)
                                .label("the comment begins here")
                                .hint("close it with `*/`"),
                        );
                        self.at = self.source.len();
                    }
                }
            } else {
                return true;
            }
        }
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = Span::new(self.at, self.at + length);
        self.tokens.push(Token { kind, span, starts_line: self.starts_line });
        self.starts_line = false;
        self.at += length;
    }

    fn token(&mut self) {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return };
        let second = rest[c.len_utf8()..].chars().next();
        if c.is_ascii_alphabetic() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let kind = match &rest[..length] {
                "var" => TokenKind::Var,
                "data" => TokenKind::Data,
                "model" => TokenKind::Model,
                "for" => TokenKind::For,
                "in" => TokenKind::In,
                _ => TokenKind::Name,
            };
            return self.push(kind, length);
        }
        if c.is_ascii_digit() || (c == '.' && second.is_some_and(|s| s.is_ascii_digit())) {
            let length = number_length(rest.as_bytes());
            // Digits, a point and an exponent always parse; if the exponent is too large, the result is infinite.
            let value = rest[..length].parse().unwrap_or(f64::NAN);
            if !f64::is_finite(value) {
                let span = Span::new(self.at, self.at + length);
                self.diagnostics.push(
                    Diagnostic::error("this number is too large", span).label("beyond the range of double precision"),
                );
            }
            return self.push(TokenKind::Number(value), length);
        }
        if c == '%' {
            let inner = rest[1..].find(['%', '\n']);
            if let Some(length) = inner.filter(|&length| rest[1 + length..].starts_with('%')) {
                return self.push(TokenKind::Special, length + 2);
            }
            return self.stray(c);
        }
        let two = |next: char, long: TokenKind, short: TokenKind| match second {
            Some(s) if s == next => (long, 2),
            _ => (short, 1),
        };
        let (kind, length) = match c {
            '<' if second == Some('-') => (TokenKind::Arrow, 2),
            '<' => two('=', TokenKind::LessEqual, TokenKind::Less),
            '>' => two('=', TokenKind::GreaterEqual, TokenKind::Greater),
            '=' => two('=', TokenKind::Equal, TokenKind::Assign),
            '!' => two('=', TokenKind::NotEqual, TokenKind::Bang),
            '*' => two('*', TokenKind::Caret, TokenKind::Star),
            '&' if second == Some('&') => (TokenKind::And, 2),
            '|' if second == Some('|') => (TokenKind::Or, 2),
            '~' => (TokenKind::Tilde, 1),
            ';' => (TokenKind::Semicolon, 1),
            ',' => (TokenKind::Comma, 1),
            ':' => (TokenKind::Colon, 1),
            '(' => (TokenKind::OpenParen, 1),
            ')' => (TokenKind::CloseParen, 1),
            '[' => (TokenKind::OpenBracket, 1),
            ']' => (TokenKind::CloseBracket, 1),
            '{' => (TokenKind::OpenBrace, 1),
            '}' => (TokenKind::CloseBrace, 1),
            '+' => (TokenKind::Plus, 1),
            '-' => (TokenKind::Minus, 1),
            '/' => (TokenKind::Slash, 1),
            '^' => (TokenKind::Caret, 1),
            _ => return self.stray(c),
        };
        self.push(kind, length);
    }

    /// Reports an invalid character, once for a run of the same.
    fn stray(&mut self, c: char) {
        let length: usize = self.rest().chars().take_while(|&other| other == c).map(char::len_utf8).sum();
        let span = Span::new(self.at, self.at + length);
        self.at += length;
        let hint = match c {
            '\u{2212}' | '\u{2013}' | '\u{2014}' => "this is a typographic dash; type a plain `-`",
            '\u{2190}' => "type `<-`",
            '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '"' | '\'' => "the language has no strings",
            '\u{a0}' | '\u{2003}' | '\u{2009}' | '\u{3000}' => "this is a special space character; type a plain space",
            '&' => "`and` is written `&&`",
            '|' => "`or` is written `||`",
            '_' | '.' => "a name begins with a letter",
            '$' | '@' => "BUGS has no lists with fields; give each its own name",
            '%' => "the operator for matrices is `%*%`",
            _ => "remove it",
        };
        let message = if c.is_control() || c.is_whitespace() {
            format!("invalid character: U+{:04X}", u32::from(c))
        } else {
            format!("invalid character: `{c}`")
        };
        self.diagnostics.push(Diagnostic::error(message, span).label("not part of the language").hint(hint));
    }
}

/// How many bytes the number at the front takes.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        if end > at + 1 + sign {
            at = end;
        }
    }
    at
}
