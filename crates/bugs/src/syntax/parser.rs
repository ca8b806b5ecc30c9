//! From tokens to the blocks of a program; after an error, parsing continues at the next relation.

use super::ast::{Declaration, Program, Relation};
use super::cursor::{Parser, Read, Stop};
use super::dialect::Dialect;
use super::foreign::foreign;
use super::lexer::{TokenKind, lex};
use crate::diagnostic::{Diagnostic, Severity};

/// A program as far as it could be parsed, and its errors and warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The relations that could be parsed.
    pub program: Program,
    /// Errors and warnings in the order of the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a program. It never fails: a relation that cannot be parsed is reported and left out.
pub fn parse(source: &str, dialect: Dialect) -> Parsed {
    let (tokens, diagnostics) = lex(source);
    let mut parser = Parser { source, tokens, at: 0, diagnostics, dialect, depth: 0 };
    let program = parser.program();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span);
    if let Some(error) = diagnostics.iter().any(|d| d.severity == Severity::Error).then(|| foreign(source)).flatten() {
        diagnostics = vec![error];
    }
    Parsed { program, diagnostics }
}

impl Parser<'_> {
    fn program(&mut self) -> Program {
        let mut program = Program::default();
        if self.accept(TokenKind::Var).is_some() {
            program.declarations = self.declarations();
        }
        if self.accept(TokenKind::Data).is_some() {
            program.data = self.block().unwrap_or_else(|Stop| self.skip_to_model());
        }
        let Some(keyword) = self.accept(TokenKind::Model) else {
            if self.diagnostics.is_empty() {
                let span = self.peek().span;
                self.report(
                    Diagnostic::error("there is no model block", span)
                        .label("expected `model { … }`")
                        .hint("the relations go between `model {` and `}`"),
                );
            }
            return program;
        };
        if self.peek().kind == TokenKind::Name && self.ahead(1).kind == TokenKind::Semicolon {
            let span = keyword.span.to(self.ahead(1).span);
            self.report(
                Diagnostic::error("this program is in the syntax of BUGS 0.5", span)
                    .label("old programs began with `model name;`")
                    .hint("write `model {` and `}` around the relations; constants and data come from the data file"),
            );
            return program;
        }
        if let Ok(relations) = self.block() {
            program.model = relations;
            if program.model.is_empty() && self.diagnostics.is_empty() {
                self.report(
                    Diagnostic::error("the model block is empty", keyword.span)
                        .label("it has no relations")
                        .hint("add at least one relation, such as `theta ~ dbeta(1, 1)`"),
                );
            }
            let rest = self.peek();
            if rest.kind != TokenKind::End {
                let diagnostic = Diagnostic::error("there is text after the model block", rest.span).label("here");
                let hint = match rest.kind {
                    TokenKind::CloseBrace => "there is one `}` too many",
                    TokenKind::Data | TokenKind::Var => "the order is `var`, `data`, `model`",
                    _ => "put data and starting values in separate files",
                };
                self.report(diagnostic.hint(hint));
            }
        }
        program
    }

    fn skip_to_model(&mut self) -> Vec<Relation> {
        while !matches!(self.peek().kind, TokenKind::Model | TokenKind::End) {
            self.next();
        }
        Vec::new()
    }

    fn declarations(&mut self) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        loop {
            match self.declaration() {
                Ok(declaration) => declarations.push(declaration),
                Err(Stop) => {
                    while !matches!(self.peek().kind, TokenKind::Data | TokenKind::Model | TokenKind::End) {
                        self.next();
                    }
                    return declarations;
                }
            }
            if self.accept(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.accept(TokenKind::Semicolon);
        if !matches!(self.peek().kind, TokenKind::Data | TokenKind::Model | TokenKind::End) {
            self.unexpected("`,`, `;` or a block after the declarations");
            while !matches!(self.peek().kind, TokenKind::Data | TokenKind::Model | TokenKind::End) {
                self.next();
            }
        }
        declarations
    }

    fn declaration(&mut self) -> Read<Declaration> {
        let token = self.expect(TokenKind::Name, "the name of a variable")?;
        let name = self.name_of(token);
        let mut extents = Vec::new();
        if let Some(open) = self.accept(TokenKind::OpenBracket) {
            loop {
                extents.push(self.expression()?);
                if self.accept(TokenKind::Comma).is_none() {
                    break;
                }
            }
            self.close(TokenKind::CloseBracket, "`]`", open.span)?;
        }
        Ok(Declaration { name, extents, span: token.span.to(self.behind()) })
    }

    /// `{ relation … }`; after an error, parsing continues at the next relation.
    pub fn block(&mut self) -> Read<Vec<Relation>> {
        let open = self.expect(TokenKind::OpenBrace, "`{`")?;
        let mut relations = Vec::new();
        loop {
            match self.peek().kind {
                TokenKind::CloseBrace => {
                    self.next();
                    return Ok(relations);
                }
                TokenKind::End => {
                    self.report(
                        Diagnostic::error("this block is never closed", open.span)
                            .label("this `{` has no `}`")
                            .hint("add a `}` where the block ends"),
                    );
                    return Ok(relations);
                }
                TokenKind::Semicolon => {
                    self.next();
                }
                _ => match self.deeper(Self::relation) {
                    Ok(relation) => relations.push(relation),
                    Err(Stop) => self.recover(),
                },
            }
        }
    }

    /// Skips to where the next relation seems to begin.
    fn recover(&mut self) {
        let mut braces = 0_usize;
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => return,
                TokenKind::OpenBrace => braces += 1,
                TokenKind::CloseBrace if braces == 0 => return,
                TokenKind::CloseBrace => braces -= 1,
                TokenKind::Semicolon if braces == 0 => return,
                _ if braces == 0 && self.at > 0 && self.begins_relation() => return,
                _ => {}
            }
            self.next();
        }
    }

    /// Whether a relation begins at this token: `for (`, `name ~`, `name[…] <-`, `link(…) <-`, at the start of a line.
    fn begins_relation(&self) -> bool {
        let first = self.peek();
        if !first.starts_line {
            return false;
        }
        if first.kind == TokenKind::For {
            return true;
        }
        if first.kind != TokenKind::Name {
            return false;
        }
        if matches!(self.text(first.span), "if" | "while") {
            return true;
        }
        let close = match self.ahead(1).kind {
            TokenKind::OpenBracket => TokenKind::CloseBracket,
            TokenKind::OpenParen => TokenKind::CloseParen,
            TokenKind::Tilde | TokenKind::Arrow | TokenKind::Assign => return true,
            _ => return false,
        };
        let mut count = 2;
        while self.ahead(count).kind != close {
            if self.ahead(count).starts_line {
                return false;
            }
            count += 1;
        }
        // With nested brackets, take the last closing one.
        while self.ahead(count + 1).kind == close {
            count += 1;
        }
        matches!(self.ahead(count + 1).kind, TokenKind::Tilde | TokenKind::Arrow | TokenKind::Assign)
    }
}
