//! Functions of vectors and matrices.

use super::engine::{Engine, Frame, LIMIT, Lowered};
use super::names::Builtin;
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;
use hyperprior_graph::{Expr, Function};

/// The most random numbers that can be sorted; each pair needs a comparison.
const SORTED: usize = 200;

impl Engine<'_> {
    pub fn builtin(&mut self, function: Builtin, mut values: Vec<Value>, span: Span, frame: &Frame) -> Lowered<Value> {
        let empty = values.iter().any(|v| v.elements().is_empty());
        if empty && !matches!(function, Builtin::Sum | Builtin::Product | Builtin::Combine | Builtin::InnerProduct) {
            let diagnostic = Diagnostic::error("this function needs at least one number", span)
                .label("the vector is empty")
                .hint("check the range: `a:b` is empty if b is below a");
            return Err(self.fail("empty", frame, diagnostic));
        }
        if !matches!(
            function,
            Builtin::LogDeterminant
                | Builtin::Inverse
                | Builtin::Cholesky
                | Builtin::Transpose
                | Builtin::NormalProbability
                | Builtin::Log10
        ) {
            // The others are functions of vectors, with the elements of a matrix in column-major order.
            values = values.into_iter().map(as_vector).collect();
        }
        let scalar = match function {
            Builtin::Sum => self.builder.sum(&flatten(values)),
            Builtin::Product => self.builder.product(&flatten(values)),
            Builtin::Min => self.builder.call(Function::Min, &flatten(values)),
            Builtin::Max => self.builder.call(Function::Max, &flatten(values)),
            Builtin::Mean => self.mean(values[0].elements()),
            Builtin::Sd => {
                let variance = self.variance(values[0].elements(), span, frame)?;
                self.builder.call(Function::Sqrt, &[variance])
            }
            Builtin::InnerProduct => {
                if values[0].elements().len() != values[1].elements().len() {
                    let found = (values[0].describe(), values[1].describe());
                    let hint = "both must have the same number of elements; check the indices";
                    return Err(self.mismatch("inprod needs two vectors of the same length", found, hint, span, frame));
                }
                self.builder.inner_product(values[0].elements(), values[1].elements())
            }
            Builtin::LogDeterminant => {
                let n = self.order_of("logdet", &values[0], span, frame)?;
                self.builder.log_determinant(values[0].elements(), n)
            }
            Builtin::Inverse => {
                let n = self.order_of("inverse", &values[0], span, frame)?;
                let inverse = self.builder.inverse(values[0].elements(), n);
                return Ok(Value::new(vec![n, n], inverse));
            }
            Builtin::Cholesky => {
                let n = self.order_of("chol", &values[0], span, frame)?;
                let factor = self.builder.cholesky(values[0].elements(), n);
                return Ok(Value::new(vec![n, n], factor));
            }
            Builtin::Log10 => {
                let log = self.elementwise(Function::Log, &values, span, frame)?;
                let unit = Value::Scalar(self.builder.constant(std::f64::consts::LOG10_E));
                return self.elementwise(Function::Multiply, &[log, unit], span, frame);
            }
            Builtin::Transpose => return self.transpose(&values[0], span, frame),
            Builtin::Combine => return Ok(Value::vector(flatten(values))),
            Builtin::Repeat => return self.repeat(&values, span, frame),
            Builtin::Sort => return self.sort(values.swap_remove(0).into_elements(), span, frame),
            Builtin::Rank if values.len() == 1 => return self.rank(values[0].elements(), span, frame),
            Builtin::Rank => {
                let ranks = self.rank(values[0].elements(), span, frame)?;
                self.pick(&ranks, &values[1], span, frame)?
            }
            Builtin::Ranked => {
                let sorted = self.sort(values[0].elements().to_vec(), span, frame)?;
                self.pick(&sorted, &values[1], span, frame)?
            }
            Builtin::Order => return self.order(values[0].elements(), span, frame),
            Builtin::Interpolate => self.interpolate(&values, span, frame)?,
            Builtin::NormalProbability => return self.normal_probability(&values, span, frame),
            // These depend only on shapes, or are elementwise, and are handled elsewhere.
            Builtin::Length | Builtin::Dimension | Builtin::Elementwise(_) => return Ok(values.swap_remove(0)),
        };
        Ok(Value::Scalar(scalar))
    }

    fn mismatch(
        &mut self,
        message: &str,
        found: (String, String),
        hint: &str,
        span: Span,
        frame: &Frame,
    ) -> super::engine::Failed {
        let diagnostic = Diagnostic::error(message, span).label(format!("{} and {}", found.0, found.1)).hint(hint);
        self.fail("shapes", frame, diagnostic)
    }

    fn mean(&mut self, x: &[Expr]) -> Expr {
        let total = self.builder.sum(x);
        let count = self.builder.constant(x.len() as f64);
        self.builder.call(Function::Divide, &[total, count])
    }

    fn variance(&mut self, x: &[Expr], span: Span, frame: &Frame) -> Lowered<Expr> {
        if x.len() < 2 {
            let diagnostic = Diagnostic::error("a single number has no standard deviation", span)
                .label("sd needs at least two numbers")
                .hint("use a whole vector, such as `sd(x[])`");
            return Err(self.fail("empty", frame, diagnostic));
        }
        let mean = self.mean(x);
        let two = self.builder.constant(2.0);
        let squares: Vec<Expr> = x
            .iter()
            .map(|&e| {
                let deviation = self.builder.call(Function::Subtract, &[e, mean]);
                self.builder.call(Function::Power, &[deviation, two])
            })
            .collect();
        let total = self.builder.sum(&squares);
        let degrees = self.builder.constant((x.len() - 1) as f64);
        Ok(self.builder.call(Function::Divide, &[total, degrees]))
    }

    /// The order of a square matrix.
    fn order_of(&mut self, name: &str, matrix: &Value, span: Span, frame: &Frame) -> Lowered<usize> {
        match matrix.shape() {
            [] => Ok(1),
            [n, m] if n == m => Ok(*n),
            _ => {
                let diagnostic = Diagnostic::error(format!("{name} needs a square matrix"), span)
                    .label(format!("this is {}", matrix.describe()))
                    .hint("check its extents and its indices");
                Err(self.fail("shapes", frame, diagnostic))
            }
        }
    }

    fn transpose(&mut self, matrix: &Value, span: Span, frame: &Frame) -> Lowered<Value> {
        let (rows, columns) = match *matrix.shape() {
            [] => return Ok(matrix.clone()),
            [n] => return Ok(Value::new(vec![1, n], matrix.elements().to_vec())),
            [rows, columns] => (rows, columns),
            _ => {
                let diagnostic = Diagnostic::error("t needs a matrix", span)
                    .label(format!("this is {}", matrix.describe()))
                    .hint("select a matrix of the array with an index, such as `x[i, , ]`");
                return Err(self.fail("shapes", frame, diagnostic));
            }
        };
        let x = matrix.elements();
        let turned = (0..columns).flat_map(|j| (0..rows).map(move |i| x[i * columns + j])).collect();
        Ok(Value::new(vec![columns, rows], turned))
    }

    /// A vector on the left is a row, on the right a column.
    pub fn matrix_product(&mut self, left: &Value, right: &Value, span: Span, frame: &Frame) -> Lowered<Value> {
        let (rows, inner) = match *left.shape() {
            [] => (1, 1),
            [n] => (1, n),
            [n, m] => (n, m),
            _ => (0, 0),
        };
        let (inner_right, columns) = match *right.shape() {
            [] => (1, 1),
            // A column; after another column, a row: the outer product.
            [n] if n != inner && inner == 1 => (1, n),
            [n] => (n, 1),
            [n, m] => (n, m),
            _ => (usize::MAX, 0),
        };
        if inner != inner_right {
            let found = (left.describe(), right.describe());
            let hint = "the left must have as many columns as the right has rows; `t(…)` transposes a matrix";
            return Err(self.mismatch("these cannot be multiplied as matrices", found, hint, span, frame));
        }
        let (a, b) = (left.elements(), right.elements());
        let mut elements = Vec::with_capacity(rows * columns);
        let mut column = Vec::with_capacity(inner);
        for i in 0..rows {
            for j in 0..columns {
                column.clear();
                column.extend((0..inner).map(|k| b[k * columns + j]));
                elements.push(self.builder.inner_product(&a[i * inner..(i + 1) * inner], &column));
            }
        }
        let shape = [rows, columns].into_iter().filter(|&n| n != 1).collect();
        Ok(Value::new(shape, elements))
    }

    fn repeat(&mut self, values: &[Value], span: Span, frame: &Frame) -> Lowered<Value> {
        let times: Vec<Option<f64>> = values[1].elements().iter().map(|e| self.builder.value(*e)).collect();
        let x = values[0].elements();
        let times: Option<Vec<usize>> = times
            .into_iter()
            .map(|t| t.filter(|t| *t >= 0.0 && t.fract() == 0.0 && *t <= LIMIT as f64).map(|t| t as usize))
            .collect();
        let total = |times: &[usize]| times.iter().fold(0_usize, |a, &b| a.saturating_add(b));
        let repeated = match times.as_deref() {
            Some([n]) if n.saturating_mul(x.len()) <= LIMIT => Some(x.repeat(*n)),
            Some(each) if each.len() == x.len() && total(each) <= LIMIT => {
                Some(x.iter().zip(each).flat_map(|(e, &n)| std::iter::repeat_n(*e, n)).collect())
            }
            _ => None,
        };
        repeated.map(Value::vector).ok_or_else(|| {
            let diagnostic = Diagnostic::error("rep takes a vector and a known count", span)
                .label("the count must be one whole number, or one for each element")
                .hint("take the count from the data, such as `rep(x[], n)`");
            self.fail("shapes", frame, diagnostic)
        })
    }

    fn constants(&self, x: &[Expr]) -> Option<Vec<f64>> {
        x.iter().map(|e| self.builder.value(*e)).collect()
    }

    fn too_many(&mut self, name: &str, count: usize, span: Span, frame: &Frame) -> Lowered<()> {
        if count <= SORTED {
            return Ok(());
        }
        let diagnostic = Diagnostic::error(format!("{name} of {count} random numbers"), span)
            .label(format!("at most {SORTED} are supported"));
        Err(self.fail("large", frame, diagnostic))
    }

    /// The element at a known place.
    fn pick(&mut self, from: &Value, place: &Value, span: Span, frame: &Frame) -> Lowered<Expr> {
        let place = match self.constants(place.elements()).as_deref() {
            Some([x]) if x.fract() == 0.0 && (1.0..=from.elements().len() as f64).contains(x) => Some(*x as usize),
            _ => None,
        };
        place.map(|place| from.elements()[place - 1]).ok_or_else(|| {
            let count = from.elements().len();
            let diagnostic = Diagnostic::error(format!("the second argument must be a number from 1 to {count}"), span)
                .label("a vector and a known place in it");
            self.fail("shapes", frame, diagnostic)
        })
    }

    /// Odd–even transposition sort: n rounds of comparisons, each a minimum and a maximum.
    fn sort(&mut self, mut x: Vec<Expr>, span: Span, frame: &Frame) -> Lowered<Value> {
        if let Some(mut numbers) = self.constants(&x) {
            numbers.sort_by(f64::total_cmp);
            return Ok(Value::vector(numbers.into_iter().map(|v| self.builder.constant(v)).collect()));
        }
        self.too_many("sort", x.len(), span, frame)?;
        for round in 0..x.len() {
            for i in (round % 2..x.len() - 1).step_by(2) {
                let pair = [x[i], x[i + 1]];
                x[i] = self.builder.call(Function::Min, &pair);
                x[i + 1] = self.builder.call(Function::Max, &pair);
            }
        }
        Ok(Value::vector(x))
    }

    /// Ranks from 1; of equal elements, the earlier has the lower rank.
    fn rank(&mut self, x: &[Expr], span: Span, frame: &Frame) -> Lowered<Value> {
        if let Some(numbers) = self.constants(x) {
            let mut ranks = vec![0.0; x.len()];
            for (place, i) in ordered(&numbers).into_iter().enumerate() {
                ranks[i] = (place + 1) as f64;
            }
            return Ok(Value::vector(ranks.into_iter().map(|r| self.builder.constant(r)).collect()));
        }
        self.too_many("rank", x.len(), span, frame)?;
        let one = self.builder.constant(1.0);
        let ranks = (0..x.len()).map(|i| {
            let mut terms = vec![one];
            for j in (0..x.len()).filter(|&j| j != i) {
                let function = if j < i { Function::LessEqual } else { Function::Less };
                terms.push(self.builder.call(function, &[x[j], x[i]]));
            }
            self.builder.sum(&terms)
        });
        Ok(Value::vector(ranks.collect()))
    }

    /// The element of each rank.
    fn order(&mut self, x: &[Expr], span: Span, frame: &Frame) -> Lowered<Value> {
        if let Some(numbers) = self.constants(x) {
            let order = ordered(&numbers).into_iter().map(|i| self.builder.constant((i + 1) as f64));
            return Ok(Value::vector(order.collect()));
        }
        let ranks = self.rank(x, span, frame)?.into_elements();
        let numbers: Vec<Expr> = (1..=x.len()).map(|i| self.builder.constant(i as f64)).collect();
        let order = numbers.iter().map(|&place| {
            let is_here: Vec<Expr> =
                ranks.iter().map(|&rank| self.builder.call(Function::Equal, &[rank, place])).collect();
            self.builder.inner_product(&numbers, &is_here)
        });
        Ok(Value::vector(order.collect()))
    }

    /// y₁ + Σ slopeₖ · (x clamped to the knots k and k + 1, minus knot k); constant outside the knots.
    fn interpolate(&mut self, values: &[Value], span: Span, frame: &Frame) -> Lowered<Expr> {
        let [Value::Scalar(at), knots, heights] = values else {
            let found = (values[0].describe(), values[1].describe());
            let hint = "write interp.lin(x, knots[], heights[]), for one x at a time";
            return Err(self.mismatch("interp.lin takes a number and two vectors", found, hint, span, frame));
        };
        let numbers = self.constants(knots.elements());
        let rising = numbers.as_ref().is_some_and(|x| x.windows(2).all(|pair| pair[0] < pair[1]));
        if !rising || knots.elements().len() != heights.elements().len() {
            let diagnostic = Diagnostic::error("interp.lin needs known knots in increasing order", span)
                .label("interp.lin(x, knots[], heights[])")
                .hint("take the knots from the data, in increasing order, with one height for each");
            return Err(self.fail("shapes", frame, diagnostic));
        }
        let (x, y) = (knots.elements(), heights.elements());
        let mut terms = vec![y[0]];
        for k in 0..x.len() - 1 {
            let rise = self.builder.call(Function::Subtract, &[y[k + 1], y[k]]);
            let run = self.builder.call(Function::Subtract, &[x[k + 1], x[k]]);
            let slope = self.builder.call(Function::Divide, &[rise, run]);
            let above = self.builder.call(Function::Max, &[*at, x[k]]);
            let within = self.builder.call(Function::Min, &[above, x[k + 1]]);
            let way = self.builder.call(Function::Subtract, &[within, x[k]]);
            terms.push(self.builder.call(Function::Multiply, &[slope, way]));
        }
        Ok(self.builder.sum(&terms))
    }

    /// pnorm(x, mean, precision) = Φ((x − mean) · √precision).
    fn normal_probability(&mut self, values: &[Value], span: Span, frame: &Frame) -> Lowered<Value> {
        let centred = self.elementwise(Function::Subtract, &[values[0].clone(), values[1].clone()], span, frame)?;
        let scale = self.elementwise(Function::Sqrt, &[values[2].clone()], span, frame)?;
        let scaled = self.elementwise(Function::Multiply, &[centred, scale], span, frame)?;
        self.elementwise(Function::Phi, &[scaled], span, frame)
    }
}

fn as_vector(value: Value) -> Value {
    match value {
        Value::Array(ref shape, _) if shape.len() > 1 => Value::vector(value.into_vector()),
        _ => value,
    }
}

fn flatten(values: Vec<Value>) -> Vec<Expr> {
    values.into_iter().flat_map(Value::into_elements).collect()
}

/// The positions of the numbers, from smallest to largest.
fn ordered(numbers: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    order
}
