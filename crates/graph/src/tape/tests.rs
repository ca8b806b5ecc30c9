use super::{TILE, Tape, Workspace};
use crate::expression::{Expr, Expressions, Known};
use crate::operation::{Binary, Unary};
use hyperprior_math::batch::Batch;

/// The logs of two sums of two products, as products of a matrix and a vector or as sums of exponentials.
fn sums(arena: &mut Expressions, is_product: bool) -> Vec<Expr> {
    let leaves: Vec<Expr> = (0..6).map(|l| arena.leaf(l, Known::default())).collect();
    // The rows of a chain are functions, not latents.
    let logs: Vec<Expr> = leaves.iter().map(|e| arena.linear(&[(*e, 2.0)], 0.5)).collect();
    let (a, b) = logs.split_at(2);
    let sum = |arena: &mut Expressions, b: &[Expr]| {
        if is_product {
            return arena.log_product(a, b);
        }
        let terms: Vec<Expr> = a.iter().zip(b).map(|(a, b)| arena.linear(&[(*a, 1.0), (*b, 1.0)], 0.0)).collect();
        arena.log_sum_exp(&terms)
    };
    b.chunks_exact(2).map(|b| sum(arena, b)).collect()
}

/// The total of two functions of the sums, and its derivatives.
fn evaluated(is_product: bool, z: &Batch) -> Vec<f64> {
    let mut arena = Expressions::default();
    let sums = sums(&mut arena, is_product);
    let square = arena.unary(Unary::Square, sums[1]);
    gradient(&Tape::new(&arena, &[(sums[0], 1.0), (square, -0.5)], &[], |l| l, false), z)
}

/// The total of a tape of six latents, and then its derivatives.
fn gradient(tape: &Tape, z: &Batch) -> Vec<f64> {
    let mut workspace = Workspace::new(tape);
    tape.load(z, 0, &mut workspace);
    tape.forward(&mut workspace);
    let (value, total) = (tape.total(&workspace), tape.backward(&mut workspace));
    assert_eq!(value, total);
    let mut d_z = Batch::zeros(6, TILE);
    tape.store(&workspace, 0, &mut d_z);
    [&total[..], d_z.as_slice()].concat()
}

fn assert_near(found: &[f64], expected: &[f64]) {
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{x} is not {y}");
    }
}

fn ordinary(l: usize, i: usize) -> f64 {
    ((l * 7 + i * 3) % 11) as f64 / 4.0 - 1.2
}

fn extreme(l: usize, i: usize) -> f64 {
    match (i, l) {
        // Each of the first factors meets a second one that is impossibly small.
        (3, 0 | 3) | (4, 1 | 2) => -450.0,
        (5, 0 | 1) => -700.0,
        (6, 2..) => 400.0,
        // The exponential of the second is zero, and what it meets is large.
        (8, 1) => -380.0,
        (8, 2) => -200.0,
        (8, 3) => 220.0,
        (7, 0) => f64::NEG_INFINITY,
        _ => ordinary(l, i),
    }
}

/// Catches a sum of products that loses terms too small for a number: their logarithms are ordinary numbers, and with other values
/// of the latents they are all that there is.
#[test]
fn a_product_is_a_sum_of_exponentials() {
    for value in [ordinary as fn(usize, usize) -> f64, extreme] {
        let columns = (0..6).flat_map(|l| (0..TILE).map(move |i| value(l, i))).collect();
        let z = Batch::from_columns(columns, TILE);
        assert_near(&evaluated(true, &z), &evaluated(false, &z));
    }
}

/// Catches products that are left out of a function of sums or counted twice: some are in the total as well, one in two sums, and one
/// factor is zero.
#[test]
fn products_within_functions_of_sums() {
    let mut arena = Expressions::default();
    let leaves: Vec<Expr> = (0..6).map(|l| arena.leaf(l, Known::default())).collect();
    let mut product = |i: usize, j: usize| arena.binary(Binary::Multiply, leaves[i], leaves[j]);
    let (own, also, shared) = (product(0, 1), product(2, 3), product(0, 3));
    let first = arena.linear(&[(own, 1.5), (also, -1.0), (leaves[4], 0.5)], 0.2);
    let second = arena.linear(&[(shared, 2.0), (leaves[5], 1.0)], 0.0);
    let third = arena.linear(&[(shared, 1.0), (leaves[1], -1.0)], 1.0);
    // a (x − b), as in item response models.
    let difference = arena.linear(&[(leaves[2], 1.0), (leaves[5], -1.0)], 0.0);
    let fourth = arena.binary(Binary::Multiply, leaves[4], difference);
    let k = arena.unary(Unary::Softplus, fourth);
    let f = |arena: &mut Expressions| {
        [(Unary::Softplus, first), (Unary::Square, second), (Unary::Sin, third)].map(|(f, e)| arena.unary(f, e))
    };
    let [f, g, h] = f(&mut arena);
    let roots = [(f, -1.0), (g, 0.3), (h, 2.0), (also, 0.7), (k, -1.0), (fourth, 1.0)];
    let columns = (0..6).flat_map(|l| (0..TILE).map(move |i| if (l, i) == (0, 4) { 0.0 } else { ordinary(l, i) }));
    let z = Batch::from_columns(columns.collect(), TILE);
    let of = |apart: bool| gradient(&Tape::new(&arena, &roots, &[], |l| l, apart), &z);
    assert_near(&of(false), &of(true));
}

/// Catches numbers left from an earlier tile, or lanes that are not evaluated: fewer draws than a tile have the same numbers to the last
/// digit, in a workspace that has seen others.
#[test]
fn fewer_draws_than_a_tile_are_evaluated_alike() {
    let mut arena = Expressions::default();
    let mut roots: Vec<(Expr, f64)> =
        [true, false].iter().flat_map(|is| sums(&mut arena, *is)).map(|e| (e, 0.7)).collect();
    let leaves: Vec<Expr> = (0..6).map(|l| arena.leaf(l, Known::default())).collect();
    let product = arena.binary(Binary::Multiply, leaves[0], leaves[1]);
    let sum = arena.linear(&[(product, 1.5), (leaves[4], 0.5)], 0.2);
    let base = arena.unary(Unary::Exp, leaves[3]);
    for f in [Unary::Exp, Unary::Softplus, Unary::Square, Unary::Sin, Unary::Sigmoid, Unary::Abs] {
        let of_leaf = arena.unary(f, leaves[2]);
        roots.extend([(arena.unary(f, sum), 0.3), (arena.binary(Binary::Power, base, of_leaf), 0.1)]);
    }
    let tape = Tape::new(&arena, &roots, &[product, sum], |l| l, false);
    let columns =
        |value: fn(usize, usize) -> f64, len: usize| (0..6).flat_map(|l| (0..len).map(move |i| value(l, i))).collect();
    let whole = gradient(&tape, &Batch::from_columns(columns(ordinary, TILE), TILE));
    let mut workspace = Workspace::new(&tape);
    for len in [TILE, 1, 8, 9, TILE - 1] {
        // The first tile leaves what is extreme behind.
        let values = if len == TILE { extreme } else { ordinary };
        tape.load(&Batch::from_columns(columns(values, len), len), 0, &mut workspace);
        tape.forward(&mut workspace);
        let (value, total) = (tape.total(&workspace), tape.backward(&mut workspace));
        let mut d_z = Batch::zeros(6, len);
        tape.store(&workspace, 0, &mut d_z);
        if len < TILE {
            let own = (0..6).flat_map(|l| d_z.column(l).iter().zip(&whole[TILE * (1 + l)..]));
            let totals = value.iter().zip(&total).take(len).zip(&whole);
            assert!(
                totals.into_iter().all(|((a, b), c)| a == c && b == c) && own.into_iter().all(|(a, b)| a == b),
                "{len}"
            );
        }
    }
}
