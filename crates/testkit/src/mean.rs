//! A test of a mean that bounds both error rates.

/// The mean of a sample and its standard error.
///
/// ```
/// use hyperprior_testkit::mean::MeanTest;
/// let test = MeanTest::new(&[1.0, 2.0, 3.0]);
/// assert_eq!(test.mean, 2.0);
/// assert!((test.standard_error - (1.0f64 / 3.0).sqrt()).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTest {
    /// The mean of the sample.
    pub mean: f64,
    /// Its standard error: the sample's standard deviation over the root of its length.
    pub standard_error: f64,
}

impl MeanTest {
    /// The mean and standard error of independent `samples`.
    ///
    /// # Panics
    /// If there are fewer than two.
    pub fn new(samples: &[f64]) -> Self {
        assert!(samples.len() > 1, "a standard error needs at least two samples");
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, standard_error: (variance / n).sqrt() }
    }

    /// Asserts that the mean is within 5 standard errors of `exact`, a band that a correct sample leaves with
    /// probability below 1e-6, and that the band is narrower than `detectable`, the error that the test must detect.
    ///
    /// # Panics
    /// If either fails.
    #[track_caller]
    pub fn assert(&self, exact: f64, detectable: f64) {
        let Self { mean, standard_error } = *self;
        let band = 5.0 * standard_error;
        assert!(
            band < detectable,
            "the band of {band:e} is too wide to detect an error of {detectable:e}; take more samples"
        );
        assert!(
            (mean - exact).abs() < band,
            "mean {mean:e} is {:.1} standard errors of {standard_error:e} from {exact:e}",
            (mean - exact).abs() / standard_error
        );
    }
}

/// [`MeanTest::assert`] on a sample.
///
/// # Panics
/// Unless |mean − exact| < 5 standard errors < `detectable`.
///
/// ```
/// let samples: Vec<f64> = (0..1000).map(|i| f64::from(i % 10)).collect();
/// hyperprior_testkit::mean::assert_mean(&samples, 4.5, 0.5);
/// ```
#[track_caller]
pub fn assert_mean(samples: &[f64], exact: f64, detectable: f64) {
    MeanTest::new(samples).assert(exact, detectable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "standard errors")]
    fn a_wrong_mean_fails() {
        assert_mean(&[1.0, 1.1, 0.9, 1.0, 1.05, 0.95], 0.0, 0.5);
    }

    #[test]
    #[should_panic(expected = "take more samples")]
    fn a_test_without_power_fails() {
        assert_mean(&[1.0, -1.0, 0.5], 0.0, 0.1);
    }
}
