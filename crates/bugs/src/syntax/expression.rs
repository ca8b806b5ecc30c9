//! Expressions, by precedence climbing.
//!
//! From loosest to tightest: `||`, `&&`, `!`, comparisons (which do not chain), `+ -`, `* /`, `%*%`, `:`, unary `-`, `^` (from
//! the right). In the OpenBUGS dialect `:` is looser than `+ -`.

use super::ast::{Expression, ExpressionKind, Operator, Variable};
use super::cursor::{Parser, Read};
use super::dialect::Dialect;
use super::lexer::TokenKind;
use crate::diagnostic::Diagnostic;
use crate::span::Span;

const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const RANGE_OPENBUGS: u8 = 5;
const SUM: u8 = 6;
const PRODUCT: u8 = 7;
const SPECIAL: u8 = 8;
const RANGE: u8 = 9;
const NEGATION: u8 = 10;
const POWER: u8 = 11;

impl Parser<'_> {
    pub fn expression(&mut self) -> Read<Expression> {
        self.climb(0)
    }

    /// The operator that comes next, with its precedence; none for `:`.
    fn operator(&mut self) -> Read<Option<(u8, Option<Operator>)>> {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::Or => (1, Operator::Or),
            TokenKind::And => (2, Operator::And),
            TokenKind::Less => (COMPARISON, Operator::Less),
            TokenKind::LessEqual => (COMPARISON, Operator::LessEqual),
            TokenKind::Greater => (COMPARISON, Operator::Greater),
            TokenKind::GreaterEqual => (COMPARISON, Operator::GreaterEqual),
            TokenKind::Equal => (COMPARISON, Operator::Equal),
            TokenKind::NotEqual => (COMPARISON, Operator::NotEqual),
            TokenKind::Plus => (SUM, Operator::Add),
            TokenKind::Minus => (SUM, Operator::Subtract),
            TokenKind::Star => (PRODUCT, Operator::Multiply),
            TokenKind::Slash => (PRODUCT, Operator::Divide),
            TokenKind::Caret => (POWER, Operator::Power),
            TokenKind::Special if self.text(token.span) == "%*%" => (SPECIAL, Operator::MatrixMultiply),
            TokenKind::Special => {
                let message = format!("there is no operator `{}`", self.text(token.span));
                return Err(self.report(
                    Diagnostic::error(message, token.span)
                        .label("unknown operator")
                        .hint("the product of matrices is `%*%`; a remainder is `a - b * trunc(a / b)`"),
                ));
            }
            TokenKind::Colon if self.dialect == Dialect::OpenBugs => return Ok(Some((RANGE_OPENBUGS, None))),
            TokenKind::Colon => return Ok(Some((RANGE, None))),
            _ => return Ok(None),
        };
        Ok(Some((found.0, Some(found.1))))
    }

    /// An expression whose operators all bind at least as tightly as `least`.
    fn climb(&mut self, least: u8) -> Read<Expression> {
        self.deeper(|parser| {
            let mut left = parser.prefix()?;
            // Whether the left side is a range without parentheses, and the precedence of its chain, if that can be extended.
            let mut bare_range = false;
            let mut chain = None;
            while let Some((precedence, operator)) = parser.operator()? {
                if precedence < least {
                    break;
                }
                let sign = parser.next().span;
                if bare_range && matches!(precedence, SUM | PRODUCT) {
                    parser.warn_of_range(&left, sign);
                }
                bare_range = false;
                let Some(operator) = operator else {
                    let to = parser.climb(precedence + 1)?;
                    let span = left.span.to(to.span);
                    let kind = ExpressionKind::Range { from: Box::new(left), to: Box::new(to) };
                    left = Expression { kind, span };
                    (bare_range, chain) = (precedence == RANGE, None);
                    continue;
                };
                // Powers are right-associative, everything else is left-associative.
                let right = parser.climb(if precedence == POWER { POWER } else { precedence + 1 })?;
                let span = left.span.to(right.span);
                left = match left.kind {
                    ExpressionKind::Chain { first, mut rest } if chain == Some(precedence) => {
                        rest.push((operator, right));
                        Expression { kind: ExpressionKind::Chain { first, rest }, span }
                    }
                    kind => {
                        let operand = Box::new(Expression { kind, span: left.span });
                        let kind = if matches!(precedence, POWER | COMPARISON) {
                            ExpressionKind::Binary { operator, left: operand, right: Box::new(right) }
                        } else {
                            ExpressionKind::Chain { first: operand, rest: vec![(operator, right)] }
                        };
                        Expression { kind, span }
                    }
                };
                chain = Some(precedence);
                if precedence == COMPARISON
                    && let Some((COMPARISON, _)) = parser.operator()?
                {
                    let second = parser.peek().span;
                    return Err(parser.report(
                        Diagnostic::error("comparisons cannot be chained", second)
                            .label("a second comparison")
                            .related(sign, "after this one")
                            .hint("join them with `&&`: `a < b && b < c`"),
                    ));
                }
            }
            Ok(left)
        })
    }

    fn warn_of_range(&mut self, range: &Expression, sign: Span) {
        let ExpressionKind::Range { from, to } = &range.kind else { return };
        let (from, to, sign_text) = (self.text(from.span), self.text(to.span), self.text(sign));
        let message = format!("`{from}:{to} {sign_text} …` means `({from}:{to}) {sign_text} …`");
        let hint = format!("write `{from}:({to} {sign_text} …)`, or put parentheses around the range if you mean it");
        self.diagnostics.push(
            Diagnostic::warning(message, range.span.to(sign)).label("`:` binds tighter than `+ - * /`").hint(hint),
        );
    }

    /// An operand with its prefix operators.
    fn prefix(&mut self) -> Read<Expression> {
        let token = self.peek();
        match token.kind {
            TokenKind::Minus => {
                self.next();
                let inner = self.climb(NEGATION)?;
                let span = token.span.to(inner.span);
                Ok(Expression { kind: ExpressionKind::Negate(Box::new(inner)), span })
            }
            TokenKind::Plus => {
                self.next();
                self.climb(NEGATION)
            }
            TokenKind::Bang => {
                self.next();
                let inner = self.climb(NOT)?;
                let span = token.span.to(inner.span);
                Ok(Expression { kind: ExpressionKind::Not(Box::new(inner)), span })
            }
            TokenKind::OpenParen => {
                self.next();
                let inner = self.expression()?;
                let close = self.close(TokenKind::CloseParen, "`)`", token.span)?;
                Ok(Expression { kind: inner.kind, span: token.span.to(close.span) })
            }
            TokenKind::Number(value) => {
                self.next();
                Ok(Expression { kind: ExpressionKind::Number(value), span: token.span })
            }
            TokenKind::Name if self.ahead(1).kind == TokenKind::OpenParen => {
                self.next();
                let function = self.name_of(token);
                let open = self.next();
                let arguments = self.arguments(open.span)?;
                let span = token.span.to(self.behind());
                Ok(Expression { kind: ExpressionKind::Call { function, arguments }, span })
            }
            TokenKind::Name => {
                let variable = self.variable()?;
                let span = variable.span;
                Ok(Expression { kind: ExpressionKind::Variable(variable), span })
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// The arguments of a call, and the closing parenthesis.
    pub fn arguments(&mut self, open: Span) -> Read<Vec<Expression>> {
        let mut arguments = Vec::new();
        if self.accept(TokenKind::CloseParen).is_some() {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.accept(TokenKind::Comma).is_none() {
                break;
            }
        }
        self.close(TokenKind::CloseParen, "`,` or `)`", open)?;
        Ok(arguments)
    }

    pub fn variable(&mut self) -> Read<Variable> {
        let token = self.expect(TokenKind::Name, "a variable")?;
        let name = self.name_of(token);
        let Some(open) = self.accept(TokenKind::OpenBracket) else {
            return Ok(Variable { name, indices: None, span: token.span });
        };
        let mut indices = Vec::new();
        loop {
            match self.peek().kind {
                TokenKind::Comma | TokenKind::CloseBracket => indices.push(None),
                _ => indices.push(Some(self.expression()?)),
            }
            if self.accept(TokenKind::Comma).is_none() {
                break;
            }
        }
        let close = self.close(TokenKind::CloseBracket, "`,` or `]`", open.span)?;
        Ok(Variable { name, indices: Some(indices), span: token.span.to(close.span) })
    }
}
