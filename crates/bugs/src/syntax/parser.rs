//! From tokens to blocks and relations, going on after an error at the next relation.

use super::ast::{
    Declaration, Deterministic, Expression, For, Link, Name, Program, Relation, Restriction, RestrictionKind,
    Stochastic, Variable,
};
use super::lexer::{Token, TokenKind, lex};
use super::{Dialect, Span};
use crate::diagnostic::Diagnostic;

/// A program as far as it could be read, and what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The relations that could be read.
    pub program: Program,
    /// Errors and warnings in the order of the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. It never fails: what cannot be read is reported and left out.
pub fn parse(source: &str, dialect: Dialect) -> Parsed {
    let (tokens, diagnostics) = lex(source);
    let mut parser = Parser { source, tokens, at: 0, diagnostics, dialect, depth: 0 };
    let program = parser.program();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span);
    Parsed { program, diagnostics }
}

/// The relation at hand cannot be read; why has been reported.
pub(super) struct Stop;
pub(super) type Read<T> = Result<T, Stop>;

/// How deep loops and expressions may be nested: far beyond what people write, well within the stack.
const DEPTH: usize = 100;

pub(super) struct Parser<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token>,
    pub at: usize,
    pub diagnostics: Vec<Diagnostic>,
    pub dialect: Dialect,
    depth: usize,
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

    /// The end of what has been read.
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

    /// Reports that something else was expected than what comes next.
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
        // What is missing at the end of a line is missing there, not at the head of the next.
        let span = if token.starts_line && self.at > 0 { self.behind() } else { token.span };
        let label = if span == token.span { "here".to_string() } else { "after this".to_string() };
        let diagnostic = Diagnostic::error(format!("expected {wanted}, found {found}"), span).label(label);
        let diagnostic = match token.kind {
            TokenKind::Arrow if self.ahead(1).span.start == token.span.end => {
                diagnostic.hint("`<-` is one sign; to compare with a negative number, write `< -1`")
            }
            TokenKind::Assign => diagnostic.hint("to compare, write `==`"),
            TokenKind::Var | TokenKind::Data | TokenKind::Model | TokenKind::For | TokenKind::In => {
                diagnostic.hint("the language keeps this word for itself; use another name")
            }
            _ => diagnostic,
        };
        self.report(diagnostic)
    }

    pub fn expect(&mut self, kind: TokenKind, wanted: &str) -> Read<Token> {
        self.accept(kind).ok_or_else(|| self.unexpected(wanted))
    }

    /// Expects what closes something that was opened.
    pub fn close(&mut self, kind: TokenKind, sign: &str, open: Span) -> Read<Token> {
        if let Some(token) = self.accept(kind) {
            return Ok(token);
        }
        let stop = self.unexpected(sign);
        if let Some(last) = self.diagnostics.last_mut() {
            last.related.push(crate::diagnostic::Related { span: open, label: "to close this".into() });
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
                    .hint("give a name to a part of it, in a relation of its own"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

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
                    .label("`model name;` opened a program then")
                    .hint("write `model {` and `}` around the relations; constants and data come from the data file"),
            );
            return program;
        }
        if let Ok(relations) = self.block() {
            program.model = relations;
            if program.model.is_empty() && self.diagnostics.is_empty() {
                self.report(
                    Diagnostic::error("the model block is empty", keyword.span)
                        .label("no relation in it")
                        .hint("state at least one relation, such as `theta ~ dbeta(1, 1)`"),
                );
            }
            let rest = self.peek();
            if rest.kind != TokenKind::End {
                let diagnostic = Diagnostic::error("there is text after the model block", rest.span).label("here");
                let hint = match rest.kind {
                    TokenKind::CloseBrace => "there is one `}` too many",
                    TokenKind::Data | TokenKind::Var => "the order is `var`, `data`, `model`",
                    _ => "data and starting values go into files of their own",
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

    /// `{ relation … }`, going on at the next relation after an error.
    fn block(&mut self) -> Read<Vec<Relation>> {
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
                        Diagnostic::error("a block that is never closed", open.span)
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

    /// Whether a relation begins at the token: `for (`, `name ~`, `name[…] <-`, `link(…) <-`, at the head of a line.
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
        // Brackets within brackets: the last of those that close.
        while self.ahead(count + 1).kind == close {
            count += 1;
        }
        matches!(self.ahead(count + 1).kind, TokenKind::Tilde | TokenKind::Arrow | TokenKind::Assign)
    }

    fn relation(&mut self) -> Read<Relation> {
        let first = self.peek();
        match first.kind {
            TokenKind::For => self.for_loop(),
            TokenKind::Name if self.ahead(1).kind == TokenKind::OpenParen => self.linked(),
            TokenKind::Name => {
                let target = self.variable()?;
                match self.peek().kind {
                    TokenKind::Tilde => self.stochastic(target),
                    TokenKind::Arrow | TokenKind::Assign => {
                        self.next();
                        let value = self.expression()?;
                        let span = first.span.to(value.span);
                        self.end_of_relation()?;
                        Ok(Relation::Deterministic(Deterministic { link: None, target, value, span }))
                    }
                    _ => Err(self.unexpected("`~` or `<-`")),
                }
            }
            _ => Err(self.unexpected("a relation")),
        }
    }

    /// After a relation comes `;`, a new relation or the end of the block.
    fn end_of_relation(&mut self) -> Read<()> {
        match self.peek().kind {
            TokenKind::Semicolon => {
                self.next();
                Ok(())
            }
            TokenKind::Name | TokenKind::For | TokenKind::CloseBrace | TokenKind::End => Ok(()),
            _ => Err(self.unexpected("an operator or the next relation")),
        }
    }

    fn for_loop(&mut self) -> Read<Relation> {
        let keyword = self.next();
        let open = self.expect(TokenKind::OpenParen, "`(` after `for`")?;
        let token = self.expect(TokenKind::Name, "the name of a counter")?;
        let counter = self.name_of(token);
        self.expect(TokenKind::In, "`in`")?;
        let range = self.expression()?;
        let close = self.close(TokenKind::CloseParen, "`)`", open.span)?;
        let body = self.block()?;
        Ok(Relation::For(For { counter, range, body, span: keyword.span.to(close.span) }))
    }

    /// `logit(p[i]) <- …`
    fn linked(&mut self) -> Read<Relation> {
        let token = self.next();
        let name = self.name_of(token);
        let Some(link) = Link::of(&name.text) else {
            let hint = match name.text.as_str() {
                "if" | "while" | "repeat" => {
                    "the language has no branches; use `ifelse(condition, yes, no)` or `step(x)`"
                }
                "ilogit" | "exp" | "phi" | "icloglog" => "name the link, not its inverse: logit, log, probit, cloglog",
                _ => "on the left there may be a variable, or log, logit, probit or cloglog of one",
            };
            return Err(self.report(
                Diagnostic::error(format!("`{}` cannot stand on the left", name.text), name.span)
                    .label("not a link function")
                    .hint(hint),
            ));
        };
        let open = self.next();
        let target = self.variable()?;
        self.close(TokenKind::CloseParen, "`)`", open.span)?;
        if self.peek().kind == TokenKind::Tilde {
            let hint = match link {
                Link::Log => "for a normal logarithm, write `x ~ dlnorm(mean, precision)`",
                _ => "give the distribution to a variable of its own, and define this one from it with `<-`",
            };
            let span = token.span.to(self.behind());
            return Err(self.report(
                Diagnostic::error("a function of a variable cannot have a distribution", span)
                    .label("only a variable may stand before `~`")
                    .hint(hint),
            ));
        }
        if !matches!(self.peek().kind, TokenKind::Arrow | TokenKind::Assign) {
            return Err(self.unexpected("`<-`"));
        }
        self.next();
        let value = self.expression()?;
        let span = token.span.to(value.span);
        self.end_of_relation()?;
        Ok(Relation::Deterministic(Deterministic { link: Some(link), target, value, span }))
    }

    fn stochastic(&mut self, target: Variable) -> Read<Relation> {
        self.next();
        let token = self.expect(TokenKind::Name, "a distribution")?;
        let distribution = self.name_of(token);
        let open = self.expect(TokenKind::OpenParen, "`(` and the distribution's parameters")?;
        let parameters = self.arguments(open.span)?;
        let restriction = self.restriction()?;
        let span = target.span.to(self.behind());
        self.end_of_relation()?;
        Ok(Relation::Stochastic(Stochastic { target, distribution, parameters, restriction, span }))
    }

    fn restriction(&mut self) -> Read<Option<Restriction>> {
        let token = self.peek();
        if token.kind != TokenKind::Name || self.ahead(1).kind != TokenKind::OpenParen {
            return Ok(None);
        }
        let kind = match self.text(token.span) {
            "T" => RestrictionKind::Truncation,
            "I" => RestrictionKind::Interval,
            "C" if self.dialect == Dialect::OpenBugs => RestrictionKind::Censoring,
            "C" => {
                return Err(self.report(
                    Diagnostic::error("`C(,)` is not in the JAGS dialect", token.span)
                        .label("censoring as OpenBUGS writes it")
                        .hint("use the OpenBUGS dialect, or say `is.censored ~ dinterval(t, cut)`"),
                ));
            }
            _ => return Ok(None),
        };
        self.next();
        let open = self.next();
        let lower = self.bound()?;
        self.expect(TokenKind::Comma, "`,` between the two bounds")?;
        let upper = self.bound()?;
        let close = self.close(TokenKind::CloseParen, "`)`", open.span)?;
        Ok(Some(Restriction { kind, lower, upper, span: token.span.to(close.span) }))
    }

    fn bound(&mut self) -> Read<Option<Expression>> {
        match self.peek().kind {
            TokenKind::Comma | TokenKind::CloseParen => Ok(None),
            _ => self.expression().map(Some),
        }
    }
}
