//! Relations: loops, definitions and distributions.

use super::ast::{Deterministic, Expression, For, Link, Relation, Restriction, RestrictionKind, Stochastic, Variable};
use super::cursor::{Parser, Read};
use super::dialect::Dialect;
use super::lexer::TokenKind;
use crate::diagnostic::Diagnostic;

impl Parser<'_> {
    pub fn relation(&mut self) -> Read<Relation> {
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
                "ilogit" | "exp" | "phi" | "icloglog" => "use the link, not its inverse: logit, log, probit, cloglog",
                _ => "the left side must be a variable, or log, logit, probit or cloglog of one",
            };
            return Err(self.report(
                Diagnostic::error(format!("`{}` cannot be on the left side", name.text), name.span)
                    .label("not a link function")
                    .hint(hint),
            ));
        };
        let open = self.next();
        let target = self.variable()?;
        self.close(TokenKind::CloseParen, "`)`", open.span)?;
        if self.peek().kind == TokenKind::Tilde {
            let hint = match link {
                Link::Log => "if the logarithm is normal, write `x ~ dlnorm(mean, precision)`",
                _ => "give the distribution to another variable, and define this one from it with `<-`",
            };
            let span = token.span.to(self.behind());
            return Err(self.report(
                Diagnostic::error("a function of a variable cannot have a distribution", span)
                    .label("only a variable may come before `~`")
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
                        .label("OpenBUGS notation for censoring")
                        .hint("use the OpenBUGS dialect, or write `is.censored ~ dinterval(t, cut)`"),
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
