//! The parser's position among the tokens, and its messages about unexpected ones.

use super::ast::Name;
use super::dialect::Dialect;
use super::lexer::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, Related};
use crate::span::Span;

/// The current relation cannot be parsed; the reason has been reported.
pub(super) struct Stop;
pub(super) type Read<T> = Result<T, Stop>;

/// The maximum nesting depth: far beyond what people write, well within the stack.
const DEPTH: usize = 200;

pub(super) struct Parser<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token>,
    pub at: usize,
    pub diagnostics: Vec<Diagnostic>,
    pub dialect: Dialect,
    pub depth: usize,
}

impl Parser<'_> {
    pub fn peek(&self) -> Token {
        self.ahead(0)
    }

    pub fn ahead(&self, count: usize) -> Token {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    pub fn next(&mut self) -> Token {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub fn accept(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.next())
    }

    pub fn text(&self, span: Span) -> &str {
        &self.source[span.start..span.end]
    }

    /// The last token that was read.
    pub fn behind(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub fn name_of(&self, token: Token) -> Name {
        Name { text: self.text(token.span).to_string(), span: token.span }
    }

    pub fn report(&mut self, diagnostic: Diagnostic) -> Stop {
        self.diagnostics.push(diagnostic);
        Stop
    }

    /// Reports that the next token is not what was expected.
    pub fn unexpected(&mut self, wanted: &str) -> Stop {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end of the file".to_string(),
            TokenKind::Number(_) => format!("the number `{}`", self.text(token.span)),
            TokenKind::Name => format!("the name `{}`", self.text(token.span)),
            TokenKind::Var | TokenKind::Data | TokenKind::Model | TokenKind::For | TokenKind::In => {
                format!("the keyword `{}`", self.text(token.span))
            }
            _ => format!("`{}`", self.text(token.span)),
        };
        // Something missing at the end of a line is reported there, not at the start of the next.
        let span = if token.starts_line && self.at > 0 { self.behind() } else { token.span };
        let label = if span == token.span { "here".to_string() } else { "after this".to_string() };
        let diagnostic = Diagnostic::error(format!("expected {wanted}, found {found}"), span).label(label);
        let diagnostic = match token.kind {
            TokenKind::Arrow if self.ahead(1).span.start == token.span.end => {
                diagnostic.hint("`<-` is the assignment operator; to compare with a negative number, write `< -1`")
            }
            TokenKind::Assign => diagnostic.hint("to compare, write `==`"),
            TokenKind::Var | TokenKind::Data | TokenKind::Model | TokenKind::For | TokenKind::In => {
                diagnostic.hint("this is a keyword; use another name")
            }
            _ => diagnostic,
        };
        self.report(diagnostic)
    }

    pub fn expect(&mut self, kind: TokenKind, wanted: &str) -> Read<Token> {
        self.accept(kind).ok_or_else(|| self.unexpected(wanted))
    }

    /// Expects a closing token.
    pub fn close(&mut self, kind: TokenKind, sign: &str, open: Span) -> Read<Token> {
        if let Some(token) = self.accept(kind) {
            return Ok(token);
        }
        let stop = self.unexpected(sign);
        if let Some(last) = self.diagnostics.last_mut() {
            last.related.push(Related { span: open, label: "to close this".into() });
        }
        Err(stop)
    }

    /// Runs `inner` one level deeper, unless that is too deep.
    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEPTH {
            let span = self.peek().span;
            return Err(self.report(
                Diagnostic::error(format!("nested more than {DEPTH} levels deep"), span)
                    .label("here")
                    .hint("define a part of it in a separate relation"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }
}
