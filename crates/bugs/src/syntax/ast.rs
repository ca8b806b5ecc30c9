//! The syntax tree of a program. Only the grammar has been checked.

use crate::span::Span;

/// A program: `var … data { … } model { … }`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// The arrays of the `var` block.
    pub declarations: Vec<Declaration>,
    /// The `data` block, which is run once before the model.
    pub data: Vec<Relation>,
    /// The `model` block.
    pub model: Vec<Relation>,
}

/// A name and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// An array of the `var` block: `x[N, 3]`, or `x` for a scalar.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The array's name.
    pub name: Name,
    /// Its extents, which may use data.
    pub extents: Vec<Expression>,
    /// The whole declaration.
    pub span: Span,
}

/// A statement of a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// `for (i in 1:N) { … }`
    For(For),
    /// `x <- …`
    Deterministic(Deterministic),
    /// `x ~ …`
    Stochastic(Stochastic),
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct For {
    /// The counter's name.
    pub counter: Name,
    /// The integers that it runs over.
    pub range: Expression,
    /// The repeated relations.
    pub body: Vec<Relation>,
    /// From `for` to the closing parenthesis of its head.
    pub span: Span,
}

/// A definition by value.
#[derive(Debug, Clone, PartialEq)]
pub struct Deterministic {
    /// The link function on the left, if there is one.
    pub link: Option<Link>,
    /// The variable that is defined.
    pub target: Variable,
    /// Its value, or that of its link function.
    pub value: Expression,
    /// The whole relation.
    pub span: Span,
}

/// A link function on the left of a definition: `logit(p) <- …` defines p as the inverse of the right side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// `log(p)`
    Log,
    /// `logit(p)`
    Logit,
    /// `probit(p)`
    Probit,
    /// `cloglog(p)`
    CLogLog,
}

impl Link {
    /// The link function of that name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "log" => Some(Self::Log),
            "logit" => Some(Self::Logit),
            "probit" => Some(Self::Probit),
            "cloglog" => Some(Self::CLogLog),
            _ => None,
        }
    }
}

/// A definition by distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Stochastic {
    /// The variable that is drawn.
    pub target: Variable,
    /// The distribution's name.
    pub distribution: Name,
    /// Its parameters.
    pub parameters: Vec<Expression>,
    /// `T(,)`, `I(,)` or `C(,)`.
    pub restriction: Option<Restriction>,
    /// The whole relation.
    pub span: Span,
}

/// An interval after a distribution that restricts its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Restriction {
    /// The kind.
    pub kind: RestrictionKind,
    /// The lower bound; none for −∞.
    pub lower: Option<Expression>,
    /// The upper bound; none for ∞.
    pub upper: Option<Expression>,
    /// The whole restriction.
    pub span: Span,
}

/// The three ways of restricting a value to an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestrictionKind {
    /// `T(,)`: the distribution is truncated and renormalised.
    Truncation,
    /// `I(,)`: the classic notation, which may mean either of the other two.
    Interval,
    /// `C(,)`: the value is censored; the distribution is not renormalised.
    Censoring,
}

/// A variable with its indices: `x`, `x[i]`, `x[i, 2:4]`, `x[, j]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// The array's name.
    pub name: Name,
    /// The indices; none without brackets. An empty index selects the whole extent.
    pub indices: Option<Vec<Option<Expression>>>,
    /// The whole reference.
    pub span: Span,
}

/// An expression and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// The expression.
    pub kind: ExpressionKind,
    /// Its place, including the parentheses around it.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// A number.
    Number(f64),
    /// A variable, a part of an array or a loop counter.
    Variable(Variable),
    /// A function call.
    Call {
        /// The function's name.
        function: Name,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
    /// `-x`
    Negate(Box<Expression>),
    /// `!x`
    Not(Box<Expression>),
    /// Operands joined from left to right by operators of one precedence: `a + b - c`. They are stored in one level, so that a
    /// sum of a thousand terms is not a tree a thousand deep.
    Chain {
        /// The leftmost operand.
        first: Box<Expression>,
        /// The operators and the operands to their right.
        rest: Vec<(Operator, Expression)>,
    },
    /// A power or a comparison.
    Binary {
        /// The operator.
        operator: Operator,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// `from:to`
    Range {
        /// The first integer.
        from: Box<Expression>,
        /// The last.
        to: Box<Expression>,
    },
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    MatrixMultiply,
    Power,
}
