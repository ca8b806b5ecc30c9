//! Derivatives by central differences, to compare analytic ones with.

/// The gradient of `f` at `x`: central differences with steps h, h/2 and h/4 (times max(1, |xᵢ|)), extrapolated twice by
/// Richardson's rule, so that the error is of order h⁶.
///
/// With values exact to 1e-15 a step near 1e-2 gives about 1e-12.
///
/// ```
/// let gradient = hyperprior_testkit::finite_difference::gradient(|x| x[0] * x[1].exp(), &[2.0, 0.0], 1e-2);
/// hyperprior_testkit::finite_difference::assert_close(&[1.0, 2.0], &gradient, 1e-11, 0.0);
/// ```
pub fn gradient(mut f: impl FnMut(&[f64]) -> f64, x: &[f64], h: f64) -> Vec<f64> {
    let mut moved = x.to_vec();
    (0..x.len())
        .map(|i| {
            let mut slope = |step: f64| {
                let (above, below) = (x[i] + step, x[i] - step);
                moved[i] = above;
                let f_above = f(&moved);
                moved[i] = below;
                let f_below = f(&moved);
                moved[i] = x[i];
                // The difference of the rounded points, not twice the requested step.
                (f_above - f_below) / (above - below)
            };
            let h = h * x[i].abs().max(1.0);
            let (coarse, middle, fine) = (slope(h), slope(0.5 * h), slope(0.25 * h));
            let (first, second) = ((4.0 * middle - coarse) / 3.0, (4.0 * fine - middle) / 3.0);
            (16.0 * second - first) / 15.0
        })
        .collect()
}

/// Asserts |analytic − numeric| ≤ absolute + relative · max(|analytic|, |numeric|), number by number.
///
/// # Panics
/// If the lengths differ or a pair is too far apart; the message names the first such index.
#[track_caller]
pub fn assert_close(analytic: &[f64], numeric: &[f64], relative: f64, absolute: f64) {
    assert_eq!(analytic.len(), numeric.len(), "analytic and numeric derivatives differ in length");
    for (i, (&a, &n)) in analytic.iter().zip(numeric).enumerate() {
        let allowed = absolute + relative * a.abs().max(n.abs());
        // Written so that NaN fails.
        assert!(
            a == n || (a - n).abs() <= allowed,
            "index {i}: analytic {a:e}, numeric {n:e}; they differ by {:e}, allowed {allowed:e}",
            (a - n).abs()
        );
    }
}
