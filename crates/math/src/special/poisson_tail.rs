//! The upper tail of a Poisson distribution, relative to its first term.

use super::{ln_gamma, ln_incomplete_gamma};

/// ln(P(X ≥ k) / P(X = k)) for X ~ Poisson(rate), with its derivative along the rate; k is a whole number, 1 or more.
///
/// It is ln Σⱼ rateʲ / ((k + 1) ⋯ (k + j)), which stays finite where both probabilities underflow: a distribution truncated
/// below keeps its density at tiny rates.
///
/// ```
/// // P(X ≥ 1) = 1 − e⁻ʳ, P(X = 1) = r e⁻ʳ
/// let [value, _] = hyperprior_math::special::ln_poisson_excess(1.0, 2.0);
/// assert!((value - (2_f64.exp_m1() / 2.0).ln()).abs() < 1e-14);
/// assert_eq!(hyperprior_math::special::ln_poisson_excess(3.0, 0.0), [0.0, 0.25]);
/// ```
pub fn ln_poisson_excess(k: f64, rate: f64) -> [f64; 2] {
    if rate.is_nan() {
        return [f64::NAN; 2];
    }
    if rate < 0.0 {
        // Not a distribution; the caller reports it.
        return [0.0, 0.0];
    }
    if rate <= k + 1.0 {
        // The terms decrease from the first, and all are positive.
        let (mut sum, mut slope, mut term, mut j) = (0.0, 0.0, 1.0 / (k + 1.0), 1.0);
        // `term` is rateʲ⁻¹ / ((k + 1) ⋯ (k + j)), so that the slope needs no division by the rate, which may be zero.
        while term * rate > 1e-17 * sum || j * term > 1e-17 * slope {
            sum += term * rate;
            slope += j * term;
            j += 1.0;
            term *= rate / (k + j);
        }
        return [sum.ln_1p(), slope / (1.0 + sum)];
    }
    let ln_first = k * rate.ln() - rate - ln_gamma(k + 1.0);
    let value = ln_incomplete_gamma(k, rate)[0] - ln_first;
    // P(X = k − 1) = P(X = k) k / rate is the derivative of the tail along the rate.
    [value, 1.0 + k / rate * (-value).exp_m1()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sums of the series with 60 digits.
    #[test]
    fn agrees_with_many_digits() {
        let cases = [
            (1.0, 1e-12, 5.000000000000417e-13),
            (2.0, 1e-9, 3.3333333336111113e-10),
            (5.0, 0.001, 0.00016667658785275336),
            (3.0, 4.0, 1.3609320817896555),
            (3.0, 4.5, 1.5888774530553142),
            (1.0, 30.0, 26.59880261833775),
            (50.0, 45.0, 1.745473719384687),
            (50.0, 60.0, 3.6723558527807993),
            (7.0, 700.0, 662.6675990157615),
        ];
        for (k, rate, exact) in cases {
            let [found, _]: [f64; 2] = ln_poisson_excess(k, rate);
            assert!((found - exact).abs() < 1e-13 * exact, "{k} {rate}: {found} against {exact}");
        }
    }

    #[test]
    fn the_slope_is_that_of_the_value() {
        for k in [1.0, 2.0, 40.0] {
            for rate in [1e-3, 0.9 * k, k + 0.9, k + 1.1, 3.0 * k + 20.0] {
                let h = 1e-5 * rate;
                let slope = (ln_poisson_excess(k, rate + h)[0] - ln_poisson_excess(k, rate - h)[0]) / (2.0 * h);
                let found = ln_poisson_excess(k, rate)[1];
                assert!((found - slope).abs() < 1e-8, "{k} {rate}: {found} against {slope}");
            }
        }
    }
}
