//! The value of an expression during lowering: a scalar or an array.

use hyperprior_graph::Expr;

#[derive(Debug, Clone)]
pub(super) enum Value {
    Scalar(Expr),
    /// Extents and elements, row-major.
    Array(Vec<usize>, Vec<Expr>),
}

impl Value {
    /// An array; a single element is a scalar, whatever the extents.
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

    /// The elements in column-major order, as functions of vectors use them in JAGS and R.
    pub fn into_vector(self) -> Vec<Expr> {
        match self {
            Self::Array(shape, elements) if shape.len() > 1 => by_column(&shape).map(|flat| elements[flat]).collect(),
            other => other.into_elements(),
        }
    }

    /// Its shape as text.
    pub fn describe(&self) -> String {
        describe(self.shape())
    }
}

/// The row-major positions of an array's elements, in column-major order.
fn by_column(shape: &[usize]) -> impl Iterator<Item = usize> {
    let count: usize = shape.iter().product();
    (0..count).map(move |place| {
        let (mut rest, mut flat, mut stride) = (place, 0, count);
        for &n in shape {
            stride /= n;
            flat += rest % n * stride;
            rest /= n;
        }
        flat
    })
}

/// The extents without those of length 1, which must agree if one array is defined as another.
pub(super) fn dropped(shape: &[usize]) -> impl Iterator<Item = usize> {
    shape.iter().copied().filter(|&n| n != 1)
}

/// A shape as text.
pub(super) fn describe(shape: &[usize]) -> String {
    match shape {
        [] => "a number".to_string(),
        [n] => format!("a vector of {n}"),
        [n, m] => format!("a {n} by {m} matrix"),
        more => format!("a {} array", by(more)),
    }
}

/// Extents as text: `2 by 3`.
pub(super) fn by(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join(" by ")
}
