//! Goodness of fit: does a sample come from the distribution it should?

/// The p-value of the Kolmogorov–Smirnov test that `sample` has the continuous distribution function `cdf`.
///
/// Uses the limiting distribution with Stephens's correction, accurate to a few per cent of p from 20 draws on.
///
/// ```
/// let even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
/// let p = hyperprior_testkit::goodness::kolmogorov_smirnov(&even, |x| x);
/// let p_wrong = hyperprior_testkit::goodness::kolmogorov_smirnov(&even, |x| x * x);
/// assert!(p > 0.99 && p_wrong < 1e-3);
/// ```
///
/// # Panics
/// If the sample is empty or holds NaN.
pub fn kolmogorov_smirnov(sample: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    assert!(!sample.is_empty() && sample.iter().all(|x| !x.is_nan()), "a sample of numbers is needed");
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let distance = sorted
        .iter()
        .enumerate()
        .map(|(i, &x)| (cdf(x) - i as f64 / n).max((i + 1) as f64 / n - cdf(x)))
        .fold(0.0, f64::max);
    kolmogorov_tail((n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance)
}

/// P(K > x) for the Kolmogorov distribution: an alternating series for large x, its theta transform for small x.
fn kolmogorov_tail(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.0 {
        let sum: f64 = (1..20).map(|k| (-f64::from((2 * k - 1) * (2 * k - 1)) * PI * PI / (8.0 * x * x)).exp()).sum();
        return 1.0 - (2.0 * PI).sqrt() / x * sum;
    }
    let term = |k: i32| (-2.0 * f64::from(k * k) * x * x).exp() * if k % 2 == 1 { 2.0 } else { -2.0 };
    (1..20).map(term).sum()
}

/// The p-value of Pearson's χ² test of `n` draws, of which `observed[i]` fell in cell i with probability `probabilities[i]`.
///
/// Draws and probability outside the cells form one more cell. Neighbouring cells are merged until each expects at least
/// five draws.
///
/// ```
/// use hyperprior_testkit::goodness::chi_square;
/// assert!(chi_square(&[50, 50], &[0.5, 0.5], 100) > 0.99);
/// assert!(chi_square(&[90, 10], &[0.5, 0.5], 100) < 1e-10);
/// ```
///
/// # Panics
/// If the lengths differ, more draws were observed than made, or fewer than two cells remain after merging.
pub fn chi_square(observed: &[u64], probabilities: &[f64], n: u64) -> f64 {
    assert_eq!(observed.len(), probabilities.len(), "a probability for every cell");
    let seen: u64 = observed.iter().sum();
    assert!(seen <= n, "{seen} draws observed of {n}");
    let left_out = (n - seen, (1.0 - probabilities.iter().sum::<f64>()).max(0.0));
    let cells = observed.iter().copied().zip(probabilities.iter().copied()).chain([left_out]);

    let mut merged: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (count, probability) in cells {
        open.0 += count as f64;
        open.1 += probability * n as f64;
        if open.1 >= 5.0 {
            merged.push(std::mem::take(&mut open));
        }
    }
    // The remaining cell expects too few draws on its own.
    if let Some(last) = merged.last_mut() {
        last.0 += open.0;
        last.1 += open.1;
    }
    assert!(merged.len() >= 2, "fewer than two cells expect five draws; draw more");
    let statistic: f64 = merged.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    upper_gamma(0.5 * (merged.len() - 1) as f64, 0.5 * statistic)
}

/// Q(a, x), the upper tail of Gamma(a, 1), by the power series below the mean and Lentz's continued fraction above it.
///
/// Written independently of `hyperprior-math`, on which this crate must not depend.
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut k) = (1.0 / a, 0.0, a);
        while term > 1e-17 * sum {
            sum += term;
            k += 1.0;
            term *= x / k;
        }
        return 1.0 - front * sum;
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for k in 1..10_000 {
        let k = f64::from(k);
        let numerator = -k * (k - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_match_tables() {
        // Kolmogorov's 5 % and 1 % points, χ² with 1 and 10 degrees of freedom at their 5 % points.
        assert!((kolmogorov_tail(1.358_10) - 0.05).abs() < 1e-5);
        assert!((kolmogorov_tail(1.627_62) - 0.01).abs() < 1e-5);
        assert!((kolmogorov_tail(1.0 - 1e-12) - kolmogorov_tail(1.0)).abs() < 1e-10);
        assert!((upper_gamma(0.5, 0.5 * 3.841_459) - 0.05).abs() < 1e-6);
        assert!((upper_gamma(5.0, 0.5 * 18.307_038) - 0.05).abs() < 1e-6);
        assert!((upper_gamma(5.0, 0.5 * 2.0) - 0.996_340_153_172_656).abs() < 1e-12);
    }

    #[test]
    fn small_cells_are_merged_and_the_rest_counts() {
        let p = chi_square(&[40, 40, 1, 1], &[0.4, 0.4, 0.01, 0.01], 100);
        assert!(p > 0.5, "{p}");
        assert!(chi_square(&[10, 10], &[0.4, 0.4], 100) < 1e-6);
    }
}
