//! The functions that a model may use.

use super::expression::{Expr, Expressions};
use super::operation::{Binary, Unary};
use std::ops::RangeInclusive;

/// A function of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Power,
    Exp,
    Log,
    Sqrt,
    Abs,
    /// 1 if the argument is ≥ 0, else 0.
    Step,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Not,
    /// The second argument if the first is not 0, else the third.
    IfElse,
    Logit,
    InverseLogit,
    Probit,
    Phi,
    CLogLog,
    InverseCLogLog,
    Round,
    Trunc,
    Min,
    Max,
    LogFactorial,
    LogGamma,
    Sin,
    Cos,
    Tan,
    ArcSin,
    ArcCos,
    ArcTan,
    SinH,
    CosH,
    TanH,
    ArcSinH,
    ArcCosH,
    ArcTanH,
}

impl Function {
    /// How many arguments it takes.
    pub fn arity(self) -> RangeInclusive<usize> {
        match self {
            Self::Add
            | Self::Subtract
            | Self::Multiply
            | Self::Divide
            | Self::Power
            | Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessEqual
            | Self::Greater
            | Self::GreaterEqual
            | Self::And
            | Self::Or => 2..=2,
            Self::IfElse => 3..=3,
            Self::Min | Self::Max => 1..=usize::MAX,
            _ => 1..=1,
        }
    }
}

/// The operation of a function of one argument that has its own.
fn unary(f: Function) -> Option<Unary> {
    match f {
        Function::Exp => Some(Unary::Exp),
        Function::Log => Some(Unary::Log),
        Function::Sqrt => Some(Unary::Sqrt),
        Function::Abs => Some(Unary::Abs),
        Function::Step => Some(Unary::Step),
        Function::InverseLogit => Some(Unary::Sigmoid),
        Function::Probit => Some(Unary::Probit),
        Function::Phi => Some(Unary::Phi),
        Function::Round => Some(Unary::Round),
        Function::Trunc => Some(Unary::Trunc),
        Function::LogGamma => Some(Unary::LogGamma),
        Function::Not => Some(Unary::IsZero),
        Function::Sin => Some(Unary::Sin),
        Function::Cos => Some(Unary::Cos),
        Function::Tan => Some(Unary::Tan),
        Function::ArcSin => Some(Unary::ArcSin),
        Function::ArcCos => Some(Unary::ArcCos),
        Function::ArcTan => Some(Unary::ArcTan),
        Function::SinH => Some(Unary::SinH),
        Function::CosH => Some(Unary::CosH),
        Function::TanH => Some(Unary::TanH),
        Function::ArcSinH => Some(Unary::ArcSinH),
        Function::ArcCosH => Some(Unary::ArcCosH),
        Function::ArcTanH => Some(Unary::ArcTanH),
        _ => None,
    }
}

impl Expressions {
    /// The function of these arguments, of which there must be as many as it takes. One arm per function.
    pub(crate) fn call(&mut self, f: Function, x: &[Expr]) -> Expr {
        if let Some(unary) = unary(f) {
            return self.unary(unary, x[0]);
        }
        match f {
            Function::Add => self.add(x[0], x[1]),
            Function::Subtract => self.subtract(x[0], x[1]),
            Function::Multiply => self.multiply(x[0], x[1]),
            Function::Divide => self.divide(x[0], x[1]),
            Function::Negate => self.scale(x[0], -1.0),
            Function::Power => self.power(x[0], x[1]),
            Function::Equal => self.is_equal(x[0], x[1]),
            Function::NotEqual => {
                let equal = self.is_equal(x[0], x[1]);
                self.complement(equal)
            }
            Function::GreaterEqual => self.is_at_least(x[0], x[1]),
            Function::LessEqual => self.is_at_least(x[1], x[0]),
            Function::Less => {
                let other = self.is_at_least(x[0], x[1]);
                self.complement(other)
            }
            Function::Greater => {
                let other = self.is_at_least(x[1], x[0]);
                self.complement(other)
            }
            Function::And => {
                let (a, b) = (self.is_not_zero(x[0]), self.is_not_zero(x[1]));
                self.multiply(a, b)
            }
            Function::Or => {
                let (a, b) = (self.unary(Unary::IsZero, x[0]), self.unary(Unary::IsZero, x[1]));
                let neither = self.multiply(a, b);
                self.complement(neither)
            }
            Function::IfElse => self.choose(x[0], x[1], x[2]),
            Function::Logit => self.logit(x[0]),
            Function::CLogLog => {
                let other = self.complement(x[0]);
                let log = self.unary(Unary::Log, other);
                let negative = self.scale(log, -1.0);
                self.unary(Unary::Log, negative)
            }
            Function::InverseCLogLog => {
                let hazard = self.unary(Unary::Exp, x[0]);
                let negative = self.scale(hazard, -1.0);
                let survival = self.unary(Unary::Exp, negative);
                self.complement(survival)
            }
            Function::LogFactorial => {
                let next = self.linear(&[(x[0], 1.0)], 1.0);
                self.unary(Unary::LogGamma, next)
            }
            Function::Min | Function::Max => {
                let pick = if f == Function::Min { Binary::Min } else { Binary::Max };
                x[1..].iter().fold(x[0], |a, b| self.binary(pick, a, *b))
            }
            // All other functions are unary and handled above.
            _ => x[0],
        }
    }

    fn is_equal(&mut self, a: Expr, b: Expr) -> Expr {
        let difference = self.subtract(a, b);
        self.unary(Unary::IsZero, difference)
    }

    /// 1 if a ≥ b, else 0.
    fn is_at_least(&mut self, a: Expr, b: Expr) -> Expr {
        let difference = self.subtract(a, b);
        self.unary(Unary::Step, difference)
    }

    fn is_not_zero(&mut self, a: Expr) -> Expr {
        let zero = self.unary(Unary::IsZero, a);
        self.complement(zero)
    }
}
