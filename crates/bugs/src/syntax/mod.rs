//! From text to tree: the lexer, the parser, and the tree itself.

pub mod ast;
mod cursor;
mod expression;
mod lexer;
mod parser;
mod relation;
mod span;

pub use parser::{Parsed, parse};
pub use span::Span;

/// Whose reading of the language to follow where two readings exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// JAGS 4: `1:N-1` is `(1:N) - 1`, and an element has one relation.
    #[default]
    Jags,
    /// OpenBUGS: `1:N-1` is `1:(N-1)`, `y <- f(data)` beside `y ~ …` transforms the data, and `C(,)` censors.
    OpenBugs,
}
