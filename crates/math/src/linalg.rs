//! Triangular matrices: shared by all draws (a Gaussian's scale), or one small one per draw (a posterior's curvature).
//!
//! A lower triangle is packed row by row: entry (i, j), j ≤ i, is at i(i+1)/2 + j. faer factorises single matrices. Loops
//! over draws are written here with the draws innermost: a library would take a stack of small matrices one by one, these
//! loops take eight draws at a time.

use crate::simd::{LANES, Simd, V, load, prelude::*, splat, store};

/// The index of entry (i, j) in a packed lower triangle.
pub const fn packed(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

/// How many entries the packed lower triangle of an n × n matrix has.
pub const fn packed_len(n: usize) -> usize {
    n * (n + 1) / 2
}

/// The packed lower Cholesky factor of a symmetric matrix given row by row; `None` if it is not positive definite.
///
/// ```
/// let l = hyperprior_math::linalg::cholesky(&[4.0, 2.0, 2.0, 5.0], 2).unwrap();
/// assert_eq!(l, [2.0, 1.0, 2.0]);
/// ```
pub fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let a = faer::Mat::from_fn(n, n, |i, j| matrix[i * n + j]);
    let factor = a.llt(faer::Side::Lower).ok()?;
    let l = factor.L();
    Some((0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| l[(i, j)]).collect())
}

/// The first `count` principal directions of a symmetric matrix (given row by row), each as long as the root of its
/// eigenvalue, the largest first; `None` if the matrix is not finite.
pub fn principal_directions(matrix: &[f64], n: usize, count: usize) -> Option<Vec<Vec<f64>>> {
    let a = faer::Mat::from_fn(n, n, |i, j| matrix[i * n + j]);
    let eigen = a.self_adjoint_eigen(faer::Side::Lower).ok()?;
    let (vectors, values) = (eigen.U(), eigen.S());
    let direction = |k: usize| (0..n).map(|i| vectors[(i, k)] * values[k].max(0.0).sqrt()).collect();
    Some((0..n).rev().take(count).map(direction).collect())
}

#[inline(always)]
fn lower_multiply_kernel<S: Simd>(s: S, l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for i in 0..n {
        let row = &l[packed(i, 0)..=packed(i, i)];
        let out = &mut out[i * draws_len..(i + 1) * draws_len];
        for at in (0..draws_len).step_by(LANES) {
            let mut sum = load(s, out, at, 0.0);
            for (j, l) in row.iter().enumerate() {
                sum = splat(s, *l).mul_add(load(s, &x[j * draws_len..(j + 1) * draws_len], at, 0.0), sum);
            }
            store(sum, out, at);
        }
    }
}
crate::simd_fn!(
    /// out += L x for every draw.
    pub fn lower_multiply(l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize) = lower_multiply_kernel
);

#[inline(always)]
fn lower_transpose_multiply_kernel<S: Simd>(s: S, l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for i in 0..n {
        let row = &l[packed(i, 0)..=packed(i, i)];
        let x = &x[i * draws_len..(i + 1) * draws_len];
        for at in (0..draws_len).step_by(LANES) {
            let x = load(s, x, at, 0.0);
            for (j, l) in row.iter().enumerate() {
                let out = &mut out[j * draws_len..(j + 1) * draws_len];
                store(splat(s, *l).mul_add(x, load(s, out, at, 0.0)), out, at);
            }
        }
    }
}
crate::simd_fn!(
    /// out += Lᵀ x for every draw.
    pub fn lower_transpose_multiply(l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize)
        = lower_transpose_multiply_kernel
);

#[inline(always)]
fn lower_outer_kernel<S: Simd>(s: S, x: &[f64], y: &[f64], d_l: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for i in 0..n {
        let x = &x[i * draws_len..(i + 1) * draws_len];
        for (j, d) in d_l[packed(i, 0)..=packed(i, i)].iter_mut().enumerate() {
            let y = &y[j * draws_len..(j + 1) * draws_len];
            let mut sum = splat(s, 0.0);
            for at in (0..draws_len).step_by(LANES) {
                sum = load(s, x, at, 0.0).mul_add(load(s, y, at, 0.0), sum);
            }
            *d += sum.reduce_sum();
        }
    }
}
crate::simd_fn!(
    /// d_l(i, j) += Σ_s x_i y_j: the pullback of L in L y, given the cotangent x of the product.
    pub fn lower_outer(x: &[f64], y: &[f64], d_l: &mut [f64], draws_len: usize) = lower_outer_kernel
);

#[inline(always)]
fn lower_solve_kernel<S: Simd>(s: S, l: &[f64], x: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for i in 0..n {
        let row = &l[packed(i, 0)..=packed(i, i)];
        let (done, rest) = x.split_at_mut(i * draws_len);
        for at in (0..draws_len).step_by(LANES) {
            let mut sum = load(s, &rest[..draws_len], at, 0.0);
            for (j, l) in row[..i].iter().enumerate() {
                sum = splat(s, -*l).mul_add(load(s, &done[j * draws_len..(j + 1) * draws_len], at, 0.0), sum);
            }
            store(sum / row[i], &mut rest[..draws_len], at);
        }
    }
}
crate::simd_fn!(
    /// x ← L⁻¹ x for every draw.
    pub fn lower_solve(l: &[f64], x: &mut [f64], draws_len: usize) = lower_solve_kernel
);

#[inline(always)]
fn lower_transpose_solve_kernel<S: Simd>(s: S, l: &[f64], x: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for i in (0..n).rev() {
        let row = &l[packed(i, 0)..=packed(i, i)];
        let (above, rest) = x.split_at_mut(i * draws_len);
        for at in (0..draws_len).step_by(LANES) {
            let value = load(s, &rest[..draws_len], at, 0.0) / row[i];
            store(value, &mut rest[..draws_len], at);
            for (j, l) in row[..i].iter().enumerate() {
                let out = &mut above[j * draws_len..(j + 1) * draws_len];
                store(splat(s, -*l).mul_add(value, load(s, out, at, 0.0)), out, at);
            }
        }
    }
}
crate::simd_fn!(
    /// x ← L⁻ᵀ x for every draw.
    pub fn lower_transpose_solve(l: &[f64], x: &mut [f64], draws_len: usize) = lower_transpose_solve_kernel
);

#[inline(always)]
fn entry<S: Simd>(s: S, a: &[f64], at: usize, index: usize, draws_len: usize) -> V<S> {
    load(s, &a[index * draws_len..(index + 1) * draws_len], at, 1.0)
}

#[inline(always)]
fn cholesky_each_kernel<S: Simd>(s: S, a: &mut [f64], n: usize, draws_len: usize) {
    for at in (0..draws_len).step_by(LANES) {
        for i in 0..n {
            for j in 0..=i {
                let mut sum = entry(s, a, at, packed(i, j), draws_len);
                for k in 0..j {
                    let (x, y) = (entry(s, a, at, packed(i, k), draws_len), entry(s, a, at, packed(j, k), draws_len));
                    sum = (-x).mul_add(y, sum);
                }
                let value = if i == j { sum.sqrt() } else { sum / entry(s, a, at, packed(j, j), draws_len) };
                store(value, &mut a[packed(i, j) * draws_len..(packed(i, j) + 1) * draws_len], at);
            }
        }
    }
}
crate::simd_fn!(
    /// Replaces each draw's packed lower triangle by its Cholesky factor; NaN where that draw's matrix is not positive
    /// definite. Entry (i, j) of draw s is at `packed(i, j) · draws_len + s`.
    pub fn cholesky_each(a: &mut [f64], n: usize, draws_len: usize) = cholesky_each_kernel
);

#[inline(always)]
fn lower_solve_each_kernel<S: Simd>(s: S, l: &[f64], x: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for at in (0..draws_len).step_by(LANES) {
        for i in 0..n {
            let mut sum = entry(s, x, at, i, draws_len);
            for j in 0..i {
                sum = (-entry(s, l, at, packed(i, j), draws_len)).mul_add(entry(s, x, at, j, draws_len), sum);
            }
            let value = sum / entry(s, l, at, packed(i, i), draws_len);
            store(value, &mut x[i * draws_len..(i + 1) * draws_len], at);
        }
    }
}
crate::simd_fn!(
    /// x ← L⁻¹ x with each draw's own L.
    pub fn lower_solve_each(l: &[f64], x: &mut [f64], draws_len: usize) = lower_solve_each_kernel
);

#[inline(always)]
fn lower_transpose_solve_each_kernel<S: Simd>(s: S, l: &[f64], x: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for at in (0..draws_len).step_by(LANES) {
        for i in (0..n).rev() {
            let mut sum = entry(s, x, at, i, draws_len);
            for j in i + 1..n {
                sum = (-entry(s, l, at, packed(j, i), draws_len)).mul_add(entry(s, x, at, j, draws_len), sum);
            }
            let value = sum / entry(s, l, at, packed(i, i), draws_len);
            store(value, &mut x[i * draws_len..(i + 1) * draws_len], at);
        }
    }
}
crate::simd_fn!(
    /// x ← L⁻ᵀ x with each draw's own L.
    pub fn lower_transpose_solve_each(l: &[f64], x: &mut [f64], draws_len: usize) = lower_transpose_solve_each_kernel
);

#[inline(always)]
fn lower_inverse_squares_each_kernel<S: Simd>(s: S, l: &[f64], work: &mut [f64], out: &mut [f64], draws_len: usize) {
    let n = out.len() / draws_len;
    for at in (0..draws_len).step_by(LANES) {
        for column in 0..n {
            // L x = the unit vector: nothing above its one.
            let mut squares = splat(s, 0.0);
            for i in column..n {
                let mut sum = splat(s, f64::from(u8::from(i == column)));
                for j in column..i {
                    sum = (-entry(s, l, at, packed(i, j), draws_len)).mul_add(entry(s, work, at, j, draws_len), sum);
                }
                let value = sum / entry(s, l, at, packed(i, i), draws_len);
                store(value, &mut work[i * draws_len..(i + 1) * draws_len], at);
                squares = value.mul_add(value, squares);
            }
            store(squares, &mut out[column * draws_len..(column + 1) * draws_len], at);
        }
    }
}
crate::simd_fn!(
    /// out = the diagonal of (L Lᵀ)⁻¹ with each draw's own L; `work` is as long as `out`.
    pub fn lower_inverse_squares_each(l: &[f64], work: &mut [f64], out: &mut [f64], draws_len: usize)
        = lower_inverse_squares_each_kernel
);

#[inline(always)]
fn lower_transpose_multiply_each_kernel<S: Simd>(s: S, l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize) {
    let n = x.len() / draws_len;
    for at in (0..draws_len).step_by(LANES) {
        for i in 0..n {
            let mut sum = splat(s, 0.0);
            for j in i..n {
                sum = entry(s, l, at, packed(j, i), draws_len).mul_add(entry(s, x, at, j, draws_len), sum);
            }
            store(sum, &mut out[i * draws_len..(i + 1) * draws_len], at);
        }
    }
}
crate::simd_fn!(
    /// out = Lᵀ x with each draw's own L.
    pub fn lower_transpose_multiply_each(l: &[f64], x: &[f64], out: &mut [f64], draws_len: usize)
        = lower_transpose_multiply_each_kernel
);

#[cfg(test)]
mod tests {
    use super::*;

    /// A 3 × 3 factor per draw, and numbers to multiply by it.
    fn each(draws_len: usize) -> (Vec<f64>, Vec<f64>) {
        let l = |s: usize| [1.5, 0.2, 2.0 + 0.1 * s as f64, -0.4, 0.3, 0.9];
        let mut columns = vec![0.0; 6 * draws_len];
        let mut x = vec![0.0; 3 * draws_len];
        for s in 0..draws_len {
            for (e, v) in l(s).iter().enumerate() {
                columns[e * draws_len + s] = *v;
            }
            for i in 0..3 {
                x[i * draws_len + s] = (i + 1) as f64 - 0.3 * s as f64;
            }
        }
        (columns, x)
    }

    fn close(a: &[f64], b: &[f64]) {
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-12, "{a} against {b}");
        }
    }

    #[test]
    fn shared_and_per_draw_routines_agree_and_invert_each_other() {
        for draws_len in [1, 5, 8, 11] {
            let (l, x) = each(draws_len);
            let mut y = x.clone();
            lower_solve_each(&l, &mut y, draws_len);
            for s in 0..draws_len {
                let shared: Vec<f64> = (0..6).map(|e| l[e * draws_len + s]).collect();
                let mut one: Vec<f64> = (0..3).map(|i| x[i * draws_len + s]).collect();
                let mut back = vec![0.0; 3];
                lower_solve(&shared, &mut one, 1);
                close(&one, &(0..3).map(|i| y[i * draws_len + s]).collect::<Vec<_>>());
                lower_multiply(&shared, &one, &mut back, 1);
                close(&back, &(0..3).map(|i| x[i * draws_len + s]).collect::<Vec<_>>());
                let mut transposed = vec![0.0; 3];
                lower_transpose_multiply(&shared, &one, &mut transposed, 1);
                lower_transpose_solve(&shared, &mut transposed, 1);
                close(&transposed, &one);
            }
            let mut product = vec![0.0; 3 * draws_len];
            lower_transpose_multiply_each(&l, &x, &mut product, draws_len);
            lower_transpose_solve_each(&l, &mut product, draws_len);
            close(&product, &x);
            // Catches a column of the inverse that starts at the wrong row: entry j is |L⁻¹ eⱼ|².
            let (mut work, mut diagonal) = (vec![0.0; 3 * draws_len], vec![0.0; 3 * draws_len]);
            lower_inverse_squares_each(&l, &mut work, &mut diagonal, draws_len);
            for j in 0..3 {
                let mut unit = vec![0.0; 3 * draws_len];
                unit[j * draws_len..(j + 1) * draws_len].fill(1.0);
                lower_solve_each(&l, &mut unit, draws_len);
                let squares: Vec<f64> =
                    (0..draws_len).map(|s| (0..3).map(|i| unit[i * draws_len + s].powi(2)).sum()).collect();
                close(&diagonal[j * draws_len..(j + 1) * draws_len], &squares);
            }
        }
    }

    #[test]
    fn the_cholesky_of_every_draw_is_faers() {
        let draws_len = 3;
        let (l, _) = each(draws_len);
        let mut packed_a = vec![0.0; 6 * draws_len];
        for s in 0..draws_len {
            let at = |i: usize, j: usize| if j <= i { l[packed(i, j) * draws_len + s] } else { 0.0 };
            let a: Vec<f64> = (0..9).map(|e| (0..3).map(|k| at(e / 3, k) * at(e % 3, k)).sum()).collect();
            for i in 0..3 {
                for j in 0..=i {
                    packed_a[packed(i, j) * draws_len + s] = a[i * 3 + j];
                }
            }
            close(&cholesky(&a, 3).unwrap(), &(0..6).map(|e| l[e * draws_len + s]).collect::<Vec<_>>());
        }
        cholesky_each(&mut packed_a, 3, draws_len);
        close(&packed_a, &l);
        assert_eq!(cholesky(&[1.0, 2.0, 2.0, 1.0], 2), None);
    }

    #[test]
    fn the_outer_product_is_the_pullback_of_the_product() {
        let draws_len = 11;
        let (_, x) = each(draws_len);
        let y: Vec<f64> = x.iter().map(|v| v * v - 1.0).collect();
        let mut d_l = vec![0.0; 6];
        lower_outer(&x, &y, &mut d_l, draws_len);
        for i in 0..3 {
            for j in 0..=i {
                let sum: f64 = (0..draws_len).map(|s| x[i * draws_len + s] * y[j * draws_len + s]).sum();
                assert!((d_l[packed(i, j)] - sum).abs() < 1e-12);
            }
        }
    }
}
