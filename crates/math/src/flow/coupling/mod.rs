//! Coupling flows: each layer keeps some of the numbers, and these determine how the others are transformed.
//!
//! Layer l: y_kept = x_kept and y_i = bend(x_i; network(x_kept)_i) for the moved i, so that the Jacobian is triangular,
//! log|det ∂y/∂x| = Σ_i log ∂y_i/∂x_i, and the inverse is as cheap as the map. A layer costs O(d · hidden) per draw.

mod affine;
mod spline;

use super::Flow;
use crate::batch::Batch;
use crate::network::Mlp;
use crate::random::Stream;
use crate::scratch::Scratch;
use crate::vector;
use std::ops::Range;

/// How a layer transforms a number, given the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// Stretched and shifted: y = x eˢ + t, |s| < 2 (RealNVP).
    Affine,
    /// A monotone rational-quadratic spline on \[−5, 5\], the identity outside (neural spline flows).
    Spline {
        /// The number of pieces; with zero or one it is the identity.
        bins: usize,
    },
}

/// A chain of coupling layers over `len` numbers; layer by layer its parameters are those of a network with one hidden
/// layer.
///
/// The first layer keeps the numbers with an even index, the second the odd ones, the third the first half, the fourth the
/// second half; then the cycle repeats. After four layers every number has been transformed twice, each time given other
/// numbers. With one number alone nothing is kept, and the networks are just their biases.
///
/// ```
/// use hyperprior_math::{batch::Batch, flow::{Bend, Coupling, Flow}, random::stream, scratch::Scratch};
/// let flow = Coupling { len: 3, layers_len: 4, hidden_len: 8, bend: Bend::Spline { bins: 6 } };
/// let mut parameters = vec![0.0; flow.parameters_len()];
/// flow.identity(&mut stream(1, 0, 0, 0), &mut parameters);
/// let mut x = Batch::from_columns(vec![0.3, -0.7, 1.1], 1);
/// flow.forward(&parameters, &mut x, &mut [0.0], &mut Scratch::default());
/// assert_eq!(x.as_slice(), [0.3, -0.7, 1.1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coupling {
    /// How many numbers are transformed.
    pub len: usize,
    /// How many layers there are.
    pub layers_len: usize,
    /// The length of each network's hidden layer.
    pub hidden_len: usize,
    /// How the layers transform a number.
    pub bend: Bend,
}

impl Bend {
    /// How many columns define one number's transformation, its shape.
    fn columns_len(self) -> usize {
        match self {
            Self::Affine => affine::COLUMNS,
            Self::Spline { bins } => spline::columns_len(bins.max(1)),
        }
    }

    /// Turns the network's output for one number into its shape.
    fn prepare(self, shape: &mut [f64], draws_len: usize) {
        match self {
            Self::Affine => affine::prepare(shape, draws_len),
            Self::Spline { .. } => spline::prepare(shape, draws_len),
        }
    }

    fn forward(self, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
        match self {
            Self::Affine => affine::forward(shape, x, log_det),
            Self::Spline { .. } => spline::forward(shape, x, log_det),
        }
    }

    fn invert(self, shape: &[f64], x: &mut [f64], log_det: &mut [f64]) {
        match self {
            Self::Affine => affine::invert(shape, x, log_det),
            Self::Spline { .. } => spline::invert(shape, x, log_det),
        }
    }

    fn pullback(self, shape: &[f64], x: &[f64], d_x: &mut [f64], d_log_det: &[f64], d_shape: &mut [f64]) {
        match self {
            Self::Affine => affine::pullback(shape, x, d_x, d_log_det, d_shape),
            Self::Spline { .. } => spline::pullback(shape, x, d_x, d_log_det, d_shape),
        }
    }
}

impl Coupling {
    fn is_kept(&self, l: usize, i: usize) -> bool {
        let half = self.len / 2;
        self.len > 1
            && match l % 4 {
                0 => i.is_multiple_of(2),
                1 => !i.is_multiple_of(2),
                2 => i < half,
                _ => i >= half,
            }
    }

    fn kept(&self, l: usize) -> impl Iterator<Item = usize> + use<> {
        let flow = *self;
        (0..flow.len).filter(move |&i| flow.is_kept(l, i))
    }

    fn moved(&self, l: usize) -> impl Iterator<Item = usize> + use<> {
        let flow = *self;
        (0..flow.len).filter(move |&i| !flow.is_kept(l, i))
    }

    fn moved_len(&self, l: usize) -> usize {
        self.moved(l).count()
    }

    fn network(&self, l: usize) -> Mlp<[usize; 3]> {
        let moved_len = self.moved_len(l);
        let kept_len = self.len - moved_len;
        // Without inputs a hidden layer would only add biases to biases.
        let hidden_len = if kept_len == 0 { 0 } else { self.hidden_len };
        Mlp::new([kept_len, hidden_len, moved_len * self.bend.columns_len()])
    }

    /// The parameters of layer `l`.
    fn layer(&self, l: usize) -> Range<usize> {
        // There are only four kinds of layer, each with its own network size.
        let end = |l: usize| (0..4).map(|kind| (l + 3 - kind) / 4 * self.network(kind).parameters_len()).sum();
        end(l)..end(l + 1)
    }

    /// The shapes of the numbers that layer `l` transforms, end to end, with the network's input and hidden layer.
    fn shapes(
        &self,
        l: usize,
        parameters: &[f64],
        x: &Batch,
        kept: &mut [f64],
        hidden: &mut [f64],
        shapes: &mut [f64],
    ) {
        let draws_len = x.draws_len();
        self.gather(l, x, kept);
        self.network(l).forward(&parameters[self.layer(l)], draws_len, kept, hidden, shapes);
        for shape in shapes.chunks_exact_mut(self.shape_len(draws_len)) {
            self.bend.prepare(shape, draws_len);
        }
    }

    fn gather(&self, l: usize, x: &Batch, kept: &mut [f64]) {
        for (i, column) in self.kept(l).zip(kept.chunks_exact_mut(x.draws_len().max(1))) {
            column.copy_from_slice(x.column(i));
        }
    }

    /// The length of one number's shape; never 0, so that chunks of this length are valid.
    fn shape_len(&self, draws_len: usize) -> usize {
        (self.bend.columns_len() * draws_len).max(1)
    }

    /// Layer by layer in the given order, runs `each` on every transformed number: its shape, its draws, log_det.
    fn run(
        &self,
        layers: impl Iterator<Item = usize>,
        parameters: &[f64],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
        each: impl Fn(&[f64], &mut [f64], &mut [f64]),
    ) {
        let draws_len = x.draws_len();
        let mut kept = scratch.take(self.len * draws_len);
        let mut hidden = scratch.take(self.hidden_len * draws_len);
        let mut shapes = scratch.take(self.len * self.bend.columns_len() * draws_len);
        for l in layers {
            let network = self.network(l);
            let shapes = &mut shapes[..network.output_len() * draws_len];
            let hidden = &mut hidden[..network.hidden_len() * draws_len];
            self.shapes(l, parameters, x, &mut kept[..network.input_len() * draws_len], hidden, shapes);
            for (i, shape) in self.moved(l).zip(shapes.chunks_exact(self.shape_len(draws_len))) {
                each(shape, x.column_mut(i), log_det);
            }
        }
        scratch.give(shapes);
        scratch.give(hidden);
        scratch.give(kept);
    }

    /// How many columns of a tape layer `l` fills: the inputs of the transformed numbers, the hidden layer, the shapes.
    fn tape_len(&self, l: usize) -> [usize; 3] {
        let network = self.network(l);
        [self.moved_len(l), network.hidden_len(), network.output_len()]
    }
}

impl Flow for Coupling {
    fn name(&self) -> String {
        match self.bend {
            Bend::Affine => format!("affine coupling flow of {}", self.layers_len),
            Bend::Spline { bins } => format!("spline coupling flow of {} ({bins} bins)", self.layers_len),
        }
    }

    fn numbers_len(&self) -> usize {
        self.len
    }

    fn parameters_len(&self) -> usize {
        self.layer(self.layers_len).start
    }

    /// The networks' last layers are zero, so that the map is the identity; the layers before them are not, so that a fit can
    /// leave it.
    fn identity(&self, rng: &mut Stream, parameters: &mut [f64]) {
        for l in 0..self.layers_len {
            self.network(l).initialize(0.0, rng, &mut parameters[self.layer(l)]);
        }
    }

    fn forward(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], scratch: &mut Scratch) {
        let each = |shape: &[f64], x: &mut [f64], log_det: &mut [f64]| self.bend.forward(shape, x, log_det);
        self.run(0..self.layers_len, parameters, x, log_det, scratch, each);
    }

    fn pullback(
        &self,
        parameters: &[f64],
        x: &mut Batch,
        d_x: &mut Batch,
        d_log_det: &[f64],
        d_parameters: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let draws_len = x.draws_len();
        let tape_len: usize = (0..self.layers_len).flat_map(|l| self.tape_len(l)).sum();
        let mut tape = scratch.take(tape_len * draws_len);
        let mut kept = scratch.take(self.len * draws_len);
        let mut log_det = scratch.take(draws_len);
        let mut end = 0;
        for l in 0..self.layers_len {
            let start = end;
            let lens = self.tape_len(l).map(|len| len * draws_len);
            end += lens.iter().sum::<usize>();
            let (moved, rest) = tape[start..end].split_at_mut(lens[0]);
            let (hidden, shapes) = rest.split_at_mut(lens[1]);
            let kept = &mut kept[..self.network(l).input_len() * draws_len];
            self.shapes(l, parameters, x, kept, hidden, shapes);
            let columns = moved.chunks_exact_mut(draws_len.max(1)).zip(shapes.chunks_exact(self.shape_len(draws_len)));
            for (i, (column, shape)) in self.moved(l).zip(columns) {
                column.copy_from_slice(x.column(i));
                self.bend.forward(shape, x.column_mut(i), &mut log_det);
            }
        }

        let mut d_kept = scratch.take(self.len * draws_len);
        let mut d_shapes = scratch.take(self.len * self.bend.columns_len() * draws_len);
        for l in (0..self.layers_len).rev() {
            let network = self.network(l);
            let lens = self.tape_len(l).map(|len| len * draws_len);
            let start = end - lens.iter().sum::<usize>();
            let (moved, rest) = tape[start..end].split_at(lens[0]);
            let (hidden, shapes) = rest.split_at(lens[1]);
            end = start;
            let d_shapes = &mut d_shapes[..lens[2]];
            let shape_len = self.shape_len(draws_len);
            let shapes = shapes.chunks_exact(shape_len).zip(d_shapes.chunks_exact_mut(shape_len));
            let columns = moved.chunks_exact(draws_len.max(1)).zip(shapes);
            for (i, (column, (shape, d_shape))) in self.moved(l).zip(columns) {
                x.column_mut(i).copy_from_slice(column);
                self.bend.pullback(shape, column, d_x.column_mut(i), d_log_det, d_shape);
            }
            let kept_len = network.input_len() * draws_len;
            let (kept, d_kept) = (&mut kept[..kept_len], &mut d_kept[..kept_len]);
            self.gather(l, x, kept);
            d_kept.fill(0.0);
            let (layer, d_layer) = (&parameters[self.layer(l)], &mut d_parameters[self.layer(l)]);
            network.pullback(layer, draws_len, kept, hidden, d_shapes, d_layer, d_kept, scratch);
            for (i, column) in self.kept(l).zip(d_kept.chunks_exact(draws_len.max(1))) {
                vector::add_scaled(1.0, column, d_x.column_mut(i));
            }
        }
        scratch.give(d_shapes);
        scratch.give(d_kept);
        scratch.give(log_det);
        scratch.give(kept);
        scratch.give(tape);
    }

    fn invert(&self, parameters: &[f64], x: &mut Batch, log_det: &mut [f64], scratch: &mut Scratch) {
        let each = |shape: &[f64], x: &mut [f64], log_det: &mut [f64]| self.bend.invert(shape, x, log_det);
        self.run((0..self.layers_len).rev(), parameters, x, log_det, scratch, each);
    }
}
