//! The value of an expression while it is lowered: a number, or an array of numbers.

use hyperprior::model::graph::Expr;

#[derive(Debug, Clone)]
pub(super) enum Value {
    Scalar(Expr),
    /// Extents and elements, row-major.
    Array(Vec<usize>, Vec<Expr>),
}

impl Value {
    /// An array; one element is a number whatever the extents.
    pub fn new(shape: Vec<usize>, mut elements: Vec<Expr>) -> Self {
        match (elements.len(), elements.pop()) {
            (1, Some(only)) => Self::Scalar(only),
            (_, Some(last)) => {
                elements.push(last);
                Self::Array(shape, elements)
            }
            (_, None) => Self::Array(shape, elements),
        }
    }

    pub fn vector(elements: Vec<Expr>) -> Self {
        Self::new(vec![elements.len()], elements)
    }

    pub fn elements(&self) -> &[Expr] {
        match self {
            Self::Scalar(e) => std::slice::from_ref(e),
            Self::Array(_, elements) => elements,
        }
    }

    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Scalar(_) => &[],
            Self::Array(shape, _) => shape,
        }
    }

    pub fn into_elements(self) -> Vec<Expr> {
        match self {
            Self::Scalar(e) => vec![e],
            Self::Array(_, elements) => elements,
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        describe(self.shape())
    }
}

/// A shape in words.
pub(super) fn describe(shape: &[usize]) -> String {
    match shape {
        [] => "a number".to_string(),
        [n] => format!("a vector of {n}"),
        [n, m] => format!("a {n} by {m} matrix"),
        more => format!("an array of {more:?}"),
    }
}
