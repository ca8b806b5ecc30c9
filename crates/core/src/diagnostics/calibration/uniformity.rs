//! A test of uniform ranks by their distribution function, with a simultaneous band (Säilynoja, Bürkner and Vehtari, 2022).
//!
//! Of N uniform ranks among L draws, the number below k is binomial with probability k / (L + 1). The statistic is the smallest of
//! the two-sided tail probabilities over k. Its distribution is computed, not simulated: from one k to the next the counts are a
//! Markov chain of binomials, and the p-value is one minus the probability that every tail of the chain stays larger.

use hyperprior_math::special::ln_factorial;

/// The maximum number of values of k.
const PLACES: usize = 99;

/// The p-value of the hypothesis that ranks are uniform on 0, …, `draws_len`.
///
/// ```
/// use hyperprior::diagnostics::calibration::uniformity;
///
/// let even: Vec<usize> = (0..100).collect();
/// assert!(uniformity(&even, 99) > 0.99);
/// let outside: Vec<usize> = (0..100).map(|k| if k % 2 == 0 { k / 10 } else { 99 - k / 10 }).collect();
/// assert!(uniformity(&outside, 99) < 1e-9);
/// ```
pub fn uniformity(ranks: &[usize], draws_len: usize) -> f64 {
    let n = ranks.len();
    if n == 0 || draws_len == 0 {
        return 1.0;
    }
    let log_factorials: Vec<f64> = (0..=n).map(|k| ln_factorial(k as f64)).collect();
    let pmf = |n: usize, k: usize, p: f64| {
        let term = |count: usize, log_p: f64| if count == 0 { 0.0 } else { count as f64 * log_p };
        let log_ways = log_factorials[n] - log_factorials[k] - log_factorials[n - k];
        (log_ways + term(k, p.ln()) + term(n - k, (-p).ln_1p())).exp()
    };
    let places_len = PLACES.min(draws_len);
    let places: Vec<usize> = (1..=places_len).map(|i| (i * (draws_len + 1)).div_ceil(places_len + 1)).collect();
    let share = |place: usize| place as f64 / (draws_len + 1) as f64;
    let tails: Vec<Vec<f64>> = places.iter().map(|place| tails(n, &|k| pmf(n, k, share(*place)))).collect();
    let below = |place: &usize| ranks.iter().filter(|rank| *rank < place).count();
    let smallest = places.iter().zip(&tails).map(|(place, tails)| tails[below(place)]).fold(1.0, f64::min);
    // The probability that every tail is larger, not counting equal ones (up to rounding).
    let least = smallest * (1.0 + 1e-9);
    let mut inside = vec![0.0; n + 1];
    inside[0] = 1.0;
    let mut from = 0.0;
    for (place, tails) in places.iter().zip(&tails) {
        let step = (share(*place) - from) / (1.0 - from);
        let mut next = vec![0.0; n + 1];
        for (count, chance) in inside.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            for to in (count..=n).filter(|to| tails[*to] > least) {
                next[to] += chance * pmf(n - count, to - count, step);
            }
        }
        inside = next;
        from = share(*place);
    }
    (1.0 - inside.iter().sum::<f64>()).clamp(0.0, 1.0)
}

/// For each count, the smaller of the probabilities of at most and of at least as many.
fn tails(n: usize, pmf: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let all: Vec<f64> = (0..=n).map(pmf).collect();
    let mut few = all.clone();
    (1..=n).for_each(|k| few[k] += few[k - 1]);
    let mut many = all;
    (0..n).rev().for_each(|k| many[k] += many[k + 1]);
    few.into_iter().zip(many).map(|(few, many)| few.min(many)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates every configuration of four ranks among four draws: the p-value is the share of those at least as far from
    /// uniform.
    #[test]
    fn the_p_value_is_that_of_enumeration() {
        let (n, draws_len) = (4_usize, 4_usize);
        let values = draws_len + 1;
        let all: Vec<Vec<usize>> =
            (0..values.pow(n as u32)).map(|c| (0..n).map(|i| c / values.pow(i as u32) % values).collect()).collect();
        let binomial = |k: usize, p: f64| {
            let ways = [1.0, 4.0, 6.0, 4.0, 1.0][k];
            ways * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
        };
        let statistic = |ranks: &[usize]| {
            let of_place = |place: usize| {
                let p = place as f64 / values as f64;
                let count = ranks.iter().filter(|r| **r < place).count();
                let few: f64 = (0..=count).map(|k| binomial(k, p)).sum();
                let many: f64 = (count..=n).map(|k| binomial(k, p)).sum();
                few.min(many)
            };
            (1..=draws_len).map(of_place).fold(1.0, f64::min)
        };
        let statistics: Vec<f64> = all.iter().map(|ranks| statistic(ranks)).collect();
        for (ranks, own) in all.iter().zip(&statistics) {
            let as_far = statistics.iter().filter(|other| **other <= own * (1.0 + 1e-9)).count();
            let exact = as_far as f64 / all.len() as f64;
            let found = uniformity(ranks, draws_len);
            assert!((found - exact).abs() < 1e-9, "{ranks:?}: {found} for {exact}");
        }
    }

    /// With more draws than values of k, the test is still exact.
    #[test]
    fn the_test_works_with_more_draws_than_values_of_k() {
        let even: Vec<usize> = (0..50).map(|k| k * 20 + 10).collect();
        assert!(uniformity(&even, 999) > 0.99);
        assert!(uniformity(&[0; 50], 999) < 1e-12);
    }
}
