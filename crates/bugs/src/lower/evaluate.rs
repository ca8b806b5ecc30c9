//! Evaluates an expression at given counters to expressions of the graph.

use super::engine::{Engine, Failed, Frame, LIMIT, Lowered};
use super::ir::{Node, NodeKind, Reference};
use super::locate::{Axis, flats, shape};
use super::names::Builtin;
use super::value::Value;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;
use hyperprior_graph::{Expr, Function};

/// The most elements of a table that random indices select from.
const TABLE: usize = 1_000_000;

impl<'a> Engine<'a> {
    pub fn eval(&mut self, node: &'a Node, frame: &Frame) -> Lowered<Value> {
        match &node.kind {
            NodeKind::Number(x) => Ok(Value::Scalar(self.builder.constant(*x))),
            NodeKind::Counter(depth) => Ok(Value::Scalar(self.builder.constant(frame.counters[*depth] as f64))),
            NodeKind::Reference(reference) => self.reference(reference, frame),
            NodeKind::Call { function: Builtin::Elementwise(function), arguments } => {
                let values = self.eval_all(arguments, frame)?;
                self.elementwise(*function, &values, node.span, frame)
            }
            NodeKind::Call { function: Builtin::Length, arguments } => {
                let shape = self.shape_of_argument(&arguments[0], frame)?;
                let length = shape.iter().product::<usize>();
                Ok(Value::Scalar(self.builder.constant(length as f64)))
            }
            NodeKind::Call { function: Builtin::Dimension, arguments } => {
                let mut shape = self.shape_of_argument(&arguments[0], frame)?;
                if shape.is_empty() {
                    shape.push(1);
                }
                Ok(Value::vector(shape.iter().map(|&n| self.builder.constant(n as f64)).collect()))
            }
            NodeKind::Call { function, arguments } => {
                let values = self.eval_all(arguments, frame)?;
                self.builtin(*function, values, node.span, frame)
            }
            NodeKind::Sum(terms) => self.sum(terms, node.span, frame),
            NodeKind::Product(factors) => self
                .fold(factors, node.span, frame, |divides| if divides { Function::Divide } else { Function::Multiply }),
            NodeKind::Logic { function, operands } => {
                let mut total = self.eval(&operands[0], frame)?;
                for operand in &operands[1..] {
                    let next = self.eval(operand, frame)?;
                    total = self.elementwise(*function, &[total, next], node.span, frame)?;
                }
                Ok(total)
            }
            NodeKind::MatrixProduct(factors) => {
                let mut total = self.eval(&factors[0], frame)?;
                for factor in &factors[1..] {
                    let next = self.eval(factor, frame)?;
                    total = self.matrix_product(&total, &next, node.span, frame)?;
                }
                Ok(total)
            }
            NodeKind::Range { from, to } => {
                let from = self.whole_number(from, frame)?;
                let to = self.whole_number(to, frame)?;
                if to.saturating_sub(from) >= LIMIT as i64 {
                    let diagnostic = Diagnostic::error(format!("a range of more than {LIMIT} numbers"), node.span)
                        .label(format!("from {from} to {to}"))
                        .hint("check the ends: this would use up all memory");
                    return Err(self.fail("large", frame, diagnostic));
                }
                Ok(Value::vector((from..=to).map(|i| self.builder.constant(i as f64)).collect()))
            }
        }
    }

    fn eval_all(&mut self, nodes: &'a [Node], frame: &Frame) -> Lowered<Vec<Value>> {
        nodes.iter().map(|node| self.eval(node, frame)).collect()
    }

    /// A whole number that must already be known.
    pub fn whole_number(&mut self, node: &'a Node, frame: &Frame) -> Lowered<i64> {
        if let Some(i) = self.integer(node, frame) {
            return Ok(i);
        }
        let value = self.eval(node, frame)?;
        let found = match value.elements() {
            [e] => self.builder.value(*e),
            _ => None,
        };
        match found {
            Some(x) if x.fract() == 0.0 && x.abs() < 1e15 => Ok(x as i64),
            Some(x) => {
                let diagnostic = Diagnostic::error(format!("{x} is not a whole number"), node.span).label("here");
                Err(self.fail("whole", frame, diagnostic.hint("the ends of a range must be whole numbers")))
            }
            None => {
                let diagnostic = Diagnostic::error("the end of a range must be a known number", node.span)
                    .label(if value.shape().is_empty() { "this is random" } else { "this is not a single number" })
                    .hint("take it from the data, or calculate it from the data alone");
                Err(self.fail("whole", frame, diagnostic))
            }
        }
    }

    fn sum(&mut self, terms: &'a [(bool, Node)], span: Span, frame: &Frame) -> Lowered<Value> {
        let mut scalars = Vec::with_capacity(terms.len());
        for (k, (minus, term)) in terms.iter().enumerate() {
            match self.eval(term, frame)? {
                Value::Scalar(e) if *minus => scalars.push(self.builder.call(Function::Negate, &[e])),
                Value::Scalar(e) => scalars.push(e),
                first @ Value::Array(..) => {
                    // From the first array on, add term by term.
                    let mut total =
                        if *minus { self.elementwise(Function::Negate, &[first], span, frame)? } else { first };
                    if !scalars.is_empty() {
                        let before = Value::Scalar(self.builder.sum(&scalars));
                        total = self.elementwise(Function::Add, &[before, total], span, frame)?;
                    }
                    for (minus, term) in &terms[k + 1..] {
                        let next = self.eval(term, frame)?;
                        let function = if *minus { Function::Subtract } else { Function::Add };
                        total = self.elementwise(function, &[total, next], span, frame)?;
                    }
                    return Ok(total);
                }
            }
        }
        Ok(Value::Scalar(self.builder.sum(&scalars)))
    }

    fn fold(
        &mut self,
        operands: &'a [(bool, Node)],
        span: Span,
        frame: &Frame,
        function: impl Fn(bool) -> Function,
    ) -> Lowered<Value> {
        let mut total = self.eval(&operands[0].1, frame)?;
        for (turned, operand) in &operands[1..] {
            let next = self.eval(operand, frame)?;
            total = self.elementwise(function(*turned), &[total, next], span, frame)?;
        }
        Ok(total)
    }

    /// An elementwise function; scalars are repeated for every element.
    pub fn elementwise(&mut self, function: Function, values: &[Value], span: Span, frame: &Frame) -> Lowered<Value> {
        let mut arguments: Vec<Expr> = Vec::with_capacity(values.len());
        let Some(first) = values.iter().find(|v| matches!(v, Value::Array(..))) else {
            arguments.extend(values.iter().map(|v| v.elements()[0]));
            return Ok(Value::Scalar(self.call(function, &arguments)));
        };
        let shape = first.shape().to_vec();
        if let Some(other) = values.iter().find(|v| matches!(v, Value::Array(..)) && v.shape() != shape) {
            let message = format!("{} and {} cannot be combined", first.describe(), other.describe());
            let diagnostic = Diagnostic::error(message, span)
                .label("element by element")
                .hint("both must have the same extents, or one must be a single number");
            return Err(self.fail("shapes", frame, diagnostic));
        }
        let count = first.elements().len();
        let mut elements = Vec::with_capacity(count);
        for k in 0..count {
            arguments.clear();
            arguments.extend(values.iter().map(|v| match v {
                Value::Scalar(e) => *e,
                Value::Array(_, elements) => elements[k],
            }));
            elements.push(self.call(function, &arguments));
        }
        Ok(Value::new(shape, elements))
    }

    /// A function of scalars. Zero times anything is zero, as in JAGS: models rely on 0 · log 0 being 0.
    pub fn call(&mut self, function: Function, arguments: &[Expr]) -> Expr {
        let zero = |e: &Expr| self.builder.value(*e) == Some(0.0);
        if function == Function::Multiply && arguments.iter().any(zero) {
            return self.builder.constant(0.0);
        }
        self.builder.call(function, arguments)
    }

    fn reference(&mut self, reference: &'a Reference, frame: &Frame) -> Lowered<Value> {
        if let Some(flat) = self.direct(reference, frame) {
            return self.element(reference.array, flat, reference.span, frame).map(Value::Scalar);
        }
        if let Some(x) = self.arrays[reference.array].early {
            return Ok(Value::Scalar(self.builder.constant(x)));
        }
        let axes = self.locate(reference, frame)?;
        let extent = self.arrays[reference.array].extent.clone().unwrap_or_default();
        if axes.iter().any(Axis::is_random) {
            return self.select(reference, axes, &extent, frame);
        }
        let elements: Lowered<Vec<Expr>> = flats(&axes, &extent)
            .into_iter()
            .map(|flat| self.element(reference.array, flat, reference.span, frame))
            .collect();
        Ok(Value::new(shape(&axes), elements?))
    }

    /// Elements selected by random indices: for each combination of the other indices, one choice from a table.
    fn select(&mut self, reference: &'a Reference, axes: Vec<Axis>, extent: &[usize], frame: &Frame) -> Lowered<Value> {
        let mut indices = Vec::new();
        let mut choices: usize = 1;
        for (axis, &n) in axes.iter().zip(extent) {
            if let Axis::Random(index) = axis {
                indices.push((*index, n));
                choices = choices.saturating_mul(n);
            }
        }
        if choices > TABLE {
            let message = format!("random indices select from {choices} elements");
            let diagnostic = Diagnostic::error(message, reference.span)
                .label("too many")
                .hint(format!("at most {TABLE} are supported; select from a part of the array with a range"));
            return Err(self.fail("large", frame, diagnostic));
        }
        // Several indices become one index into the flattened table.
        let index = match indices[..] {
            [(only, _)] => only,
            _ => self.builder.table_index(&indices),
        };
        let random_flats = random_offsets(&axes, extent);
        let fixed_flats = fixed_offsets(&axes, extent);
        let mut elements = Vec::with_capacity(fixed_flats.len());
        for fixed in fixed_flats {
            let table: Lowered<Vec<Expr>> = random_flats
                .iter()
                .map(|random| self.element(reference.array, fixed + random, reference.span, frame))
                .collect();
            elements.push(self.builder.select(index, &table?));
        }
        Ok(Value::new(shape(&axes), elements))
    }

    /// The expression of an element that is used in a calculation.
    fn element(&mut self, array: usize, flat: usize, span: Span, frame: &Frame) -> Lowered<Expr> {
        let state = &self.arrays[array];
        state.mark(flat);
        if let Some(Some(e)) = state.values.get(flat) {
            return Ok(*e);
        }
        if let Some(x) = state.early.or_else(|| state.datum(flat).filter(|_| self.unrolling)) {
            return Ok(self.builder.constant(x));
        }
        if state.definition(flat).is_some() {
            // Its relation has failed, or is not lowered yet while something is only tried.
            return Err(Failed);
        }
        if let Some(x) = state.datum(flat) {
            return Ok(self.builder.constant(x));
        }
        let name = state.element_name(flat);
        let diagnostic = if state.data.is_some() {
            Diagnostic::error(format!("`{name}` is missing (NA) in the data, but is used in a calculation"), span)
                .label("a missing value")
                .hint(format!("give `{name}` a value in the data, or a distribution with `~` in the model"))
        } else {
            Diagnostic::error(format!("`{name}` is used, but never defined"), span)
                .label("no relation defines this element")
                .hint(format!("define `{name}` with `<-` or `~`, or change the loop or the index"))
        };
        Err(self.fail("undefined", frame, diagnostic))
    }
}

/// Flat positions of all combinations of the random axes, with the other axes at 0.
fn random_offsets(axes: &[Axis], extent: &[usize]) -> Vec<usize> {
    offsets(axes, extent, true)
}

/// Flat positions of all combinations of the other axes, with the random axes at 0.
fn fixed_offsets(axes: &[Axis], extent: &[usize]) -> Vec<usize> {
    offsets(axes, extent, false)
}

fn offsets(axes: &[Axis], extent: &[usize], random: bool) -> Vec<usize> {
    let kept: Vec<Axis> = axes
        .iter()
        .zip(extent)
        .map(|(axis, &n)| match axis {
            Axis::Random(_) if random => Axis::Span(0, n),
            Axis::One(i) if !random => Axis::One(*i),
            Axis::Span(start, count) if !random => Axis::Span(*start, *count),
            Axis::Many(indices) if !random => Axis::Many(indices.clone()),
            _ => Axis::One(0),
        })
        .collect();
    flats(&kept, extent)
}
