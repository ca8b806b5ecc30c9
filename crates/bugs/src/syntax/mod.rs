//! From text to a syntax tree: the lexer, the parser, and the tree.

pub mod ast;
mod cursor;
mod dialect;
mod expression;
mod foreign;
mod lexer;
mod parser;
mod relation;

pub use crate::span::Span;
pub use dialect::Dialect;
pub use parser::{Parsed, parse};
