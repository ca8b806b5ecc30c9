//! Every combination of a few discrete values, so that an expectation is an exact sum.

/// All points whose coordinate i is one of `values[i]`, the last coordinate fastest.
///
/// ```
/// let states = hyperprior_testkit::enumerate::product(&[vec![0.0, 1.0], vec![0.0, 1.0, 2.0]]);
/// assert_eq!(states.len(), 6);
/// assert_eq!(states[4], [1.0, 1.0]);
/// ```
pub fn product(values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut points = vec![Vec::new()];
    for values in values {
        points = points
            .iter()
            .flat_map(|point| values.iter().map(move |value| [point.as_slice(), &[*value]].concat()))
            .collect();
    }
    points
}

/// The whole numbers from 0 to `last`.
///
/// ```
/// assert_eq!(hyperprior_testkit::enumerate::counts(2), [0.0, 1.0, 2.0]);
/// ```
pub fn counts(last: u32) -> Vec<f64> {
    (0..=last).map(f64::from).collect()
}
