//! Pareto-smoothed importance weights (Vehtari, Simpson, Gelman, Yao and Gabry, 2024) and k̂, the shape of their tail.
//!
//! The generalised Pareto distribution is fitted by the empirical Bayes estimate of Zhang and Stephens (2009), with the weak prior
//! on k of the PSIS paper.

/// The diagnostics of Pareto-smoothed importance weights. See [`psis`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Psis {
    /// k̂, the shape of the tail of the weights; above 1 they have no mean.
    pub khat: f64,
    /// The largest k̂ at which this many weights are reliable: min(1 − 1/log₁₀ S, 0.7).
    pub limit: f64,
    /// The effective sample size after weighting.
    pub ess: f64,
}

impl Psis {
    /// Whether the weights are reliable.
    pub fn is_good(&self) -> bool {
        self.khat <= self.limit
    }
}

/// With fewer weights than this in the tail, its shape cannot be estimated.
const TAIL_MIN: usize = 5;

/// Smooths the largest log weights in place and normalises all of them so that their exponentials sum to one. Weights that are not
/// finite become −∞.
///
/// ```
/// use hyperprior::diagnostics::psis::psis;
/// let mut log_weights: Vec<f64> = (0..1000).map(|s| f64::from(s % 10) / 10.0).collect();
/// let found = psis(&mut log_weights);
/// assert!(found.is_good() && found.ess > 900.0);
/// assert!((log_weights.iter().map(|w| w.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
/// ```
pub fn psis(log_weights: &mut [f64]) -> Psis {
    let n = log_weights.len();
    for w in log_weights.iter_mut() {
        if !w.is_finite() {
            *w = f64::NEG_INFINITY;
        }
    }
    let limit = (1.0 - 1.0 / (n.max(2) as f64).log10()).clamp(0.0, 0.7);
    let top = log_weights.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    if top == f64::NEG_INFINITY {
        return Psis { khat: f64::INFINITY, limit, ess: 0.0 };
    }
    log_weights.iter_mut().for_each(|w| *w -= top);
    let tail_len = (0.2 * n as f64).min(3.0 * (n as f64).sqrt()).ceil() as usize;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| log_weights[*a].total_cmp(&log_weights[*b]));
    let mut khat = f64::INFINITY;
    if tail_len >= TAIL_MIN && tail_len < n {
        let tail = &order[n - tail_len..];
        let cut = log_weights[order[n - tail_len - 1]].exp();
        let excess: Vec<f64> = tail.iter().map(|i| log_weights[*i].exp() - cut).collect();
        if excess[tail_len - 1] > 1e-12 * cut.max(f64::MIN_POSITIVE) {
            let (k, sigma) = fit(&excess);
            // The largest of n draws from a tail of shape k is about n^k times the mean. Bounded weights, such as those of a
            // Gaussian for a slightly skewed posterior, can look like a tail just above the cut although they have none.
            let mean = log_weights.iter().map(|w| w.exp()).sum::<f64>() / n as f64;
            let reached = (1.0 - mean.ln()) / (n as f64).ln();
            let (k, sigma) = if k > reached { (reached, sigma) } else { (k, sigma) };
            khat = k;
            if k.is_finite() {
                for (j, i) in tail.iter().enumerate() {
                    let p = (j as f64 + 0.5) / tail_len as f64;
                    log_weights[*i] = (cut + quantile(p, k, sigma)).ln().min(0.0);
                }
            }
        } else {
            // All are equal: there is no tail.
            khat = f64::NEG_INFINITY;
        }
    }
    let top = log_weights.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let total = top + log_weights.iter().map(|w| (w - top).exp()).sum::<f64>().ln();
    log_weights.iter_mut().for_each(|w| *w -= total);
    let ess = 1.0 / log_weights.iter().map(|w| (2.0 * w).exp()).sum::<f64>();
    Psis { khat, limit, ess }
}

fn quantile(p: f64, k: f64, sigma: f64) -> f64 {
    if k.abs() < 1e-12 { -sigma * (-p).ln_1p() } else { sigma * (-k * (-p).ln_1p()).exp_m1() / k }
}

/// The shape and scale of a generalised Pareto distribution, from a sample in increasing order.
fn fit(x: &[f64]) -> (f64, f64) {
    let n = x.len();
    let candidates = 30 + (n as f64).sqrt() as usize;
    let quartile = x[(n as f64 / 4.0 + 0.5) as usize - 1].max(f64::MIN_POSITIVE);
    let theta: Vec<f64> = (1..=candidates)
        .map(|j| 1.0 / x[n - 1] + (1.0 - (candidates as f64 / (j as f64 - 0.5)).sqrt()) / (3.0 * quartile))
        .collect();
    let shape = |theta: f64| x.iter().map(|x| (-theta * x).ln_1p()).sum::<f64>() / n as f64;
    let likelihood: Vec<f64> = theta
        .iter()
        .map(|t| {
            let k = shape(*t);
            n as f64 * ((-t / k).ln() - k - 1.0)
        })
        .collect();
    let weight = |j: usize| 1.0 / likelihood.iter().map(|l| (l - likelihood[j]).exp()).sum::<f64>();
    let mean: f64 = (0..candidates).map(|j| theta[j] * weight(j)).sum();
    let k = shape(mean);
    let sigma = -k / mean;
    // The prior counts as ten observations of k = ½.
    ((n as f64 * k + 5.0) / (n as f64 + 10.0), sigma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand::RngExt;

    /// Weights with a Pareto tail of known shape: k̂ is close to it. The standard error of k from the 300 largest of 10,000 is
    /// about (1 + k)/√300 = .1.
    #[test]
    fn khat_is_close_to_the_shape_of_a_known_tail() {
        for (k, low, high) in [(0.3, 0.05, 0.55), (0.8, 0.5, 1.1)] {
            let mut rng = stream(5, 0, 0, 0);
            let mut weights: Vec<f64> = (0..10_000).map(|_| -k * rng.random::<f64>().ln()).collect();
            let found = psis(&mut weights);
            assert!(found.khat > low && found.khat < high, "{} for {k}", found.khat);
            let total: f64 = weights.iter().map(|w| w.exp()).sum();
            assert!((total - 1.0).abs() < 1e-12);
        }
    }

    /// e^(c (z³ − 3z)) under a normal, cut at two standard deviations: bounded weights whose tail starts where they pile up.
    #[test]
    fn bounded_weights_have_no_tail() {
        let mut rng = stream(8, 0, 0, 0);
        let mut weights: Vec<f64> = (0..4000)
            .map(|_| {
                let z = (12.0_f64.sqrt() * (rng.random::<f64>() - 0.5)).clamp(-2.0, 2.0);
                0.1 * (z.powi(3) - 3.0 * z)
            })
            .collect();
        let found = psis(&mut weights);
        assert!(found.khat < 0.3, "{}", found.khat);
        assert!(found.ess > 3500.0);
    }

    #[test]
    fn equal_weights_stay_equal_and_impossible_draws_have_no_weight() {
        let mut weights = vec![-3.0; 1000];
        weights[7] = f64::NEG_INFINITY;
        weights[8] = f64::NAN;
        let found = psis(&mut weights);
        assert!(found.khat < 0.0);
        assert!((found.ess - 998.0).abs() < 1e-6);
        assert_eq!(weights[7].exp() + weights[8].exp(), 0.0);
        assert!(psis(&mut [f64::NAN; 50]).khat > 1.0);
    }
}
