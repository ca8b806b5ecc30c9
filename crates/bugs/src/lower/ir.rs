//! A block with resolved names: variables are numbers of arrays, counters are loop depths, functions are known.

use super::names::{Builtin, Family};
use crate::syntax::Span;
use crate::syntax::ast::{Link, RestrictionKind};
use hyperprior_graph::Function;

/// A block, ready to be unrolled.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub statements: Vec<Statement>,
    pub relations: Vec<Relation>,
}

#[derive(Debug)]
pub(super) enum Statement {
    Loop {
        counter: String,
        range: Node,
        body: Vec<Statement>,
    },
    /// A relation by its number.
    Relation(usize),
}

#[derive(Debug)]
pub(super) struct Relation {
    pub target: Reference,
    pub kind: Kind,
    pub span: Span,
    /// The counters of the loops around it, from the outside in.
    pub counters: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Value { link: Option<Link>, value: Node },
    Distribution { family: Family, parameters: Vec<Node>, restriction: Option<Restriction> },
}

#[derive(Debug)]
pub(super) struct Restriction {
    pub kind: RestrictionKind,
    pub lower: Option<Node>,
    pub upper: Option<Node>,
    pub span: Span,
}

/// A part of an array.
#[derive(Debug)]
pub(super) struct Reference {
    pub array: usize,
    pub indices: Option<Vec<Option<Node>>>,
    pub span: Span,
}

/// An expression.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: NodeKind,
    pub span: Span,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Number(f64),
    /// The counter of the loop at that depth.
    Counter(usize),
    Reference(Reference),
    Call {
        function: Builtin,
        arguments: Vec<Node>,
    },
    /// Terms, each with whether it is subtracted.
    Sum(Vec<(bool, Node)>),
    /// Factors, each with whether it divides.
    Product(Vec<(bool, Node)>),
    /// `a && b && …` or `a || b || …`.
    Logic {
        function: Function,
        operands: Vec<Node>,
    },
    MatrixProduct(Vec<Node>),
    Range {
        from: Box<Node>,
        to: Box<Node>,
    },
}
