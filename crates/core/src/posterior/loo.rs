//! The predictive accuracy of a model, from its log likelihoods in draws of the posterior: leave-one-out cross-validation by
//! Pareto-smoothed importance sampling (PSIS-LOO; Vehtari, Gelman and Gabry, 2017) and WAIC (Watanabe, 2010).
//!
//! elpd = Σᵢ log p(yᵢ | y₋ᵢ), where 1/p(yᵢ | y₋ᵢ) is the posterior mean of 1/p(yᵢ | z): weighting draws by 1/p(yᵢ | z) removes the
//! observation, and the largest weights are smoothed. k̂ shows whether the weights are reliable.

use crate::diagnostics::psis::psis;
use crate::objective::Estimate;
use hyperprior_math::batch::Batch;
use rayon::prelude::*;

/// WAIC is unreliable if the contribution of a unit to p_waic is above this.
pub const WAIC_LIMIT: f64 = 0.4;

/// What is left out at a time: one observation, or several that cannot be separated.
///
/// ```
/// use hyperprior::posterior::Unit;
/// let unit = Unit { name: "y[1]".to_owned(), observations_len: 1, is_independent: true };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name of its first observation.
    pub name: String,
    /// The number of its observations; a vector counts as one.
    pub observations_len: usize,
    /// Whether it is independent of all other observations given a draw.
    pub is_independent: bool,
}

/// The result of leaving out one unit. See [`Loo`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LooUnit {
    /// log p(yᵢ | y₋ᵢ).
    pub elpd: f64,
    /// k̂ of the importance weights.
    pub khat: f64,
    /// How much better the unit is predicted when it is among the data.
    pub p_loo: f64,
    /// The variance of its log likelihood over the draws.
    pub p_waic: f64,
}

/// Leave-one-out cross-validation.
///
/// ```
/// use hyperprior::Batch;
/// use hyperprior::posterior::Loo;
///
/// // Two observations that every draw predicts equally well: leaving one out changes nothing.
/// let loo = Loo::new(&Batch::from_columns([vec![-1.0; 100], vec![-3.0; 100]].concat(), 100));
/// assert!((loo.elpd.value + 4.0).abs() < 1e-12 && loo.p_loo.abs() < 1e-12);
/// assert!((loo.elpd.standard_error - 2.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loo {
    /// Σᵢ log p(yᵢ | y₋ᵢ), and its standard error over the units.
    pub elpd: Estimate,
    /// The effective number of parameters: how much better the data are predicted when they are used for fitting.
    pub p_loo: f64,
    /// The largest k̂ at which this many draws are reliable.
    pub limit: f64,
    /// The units, in order.
    pub units: Vec<LooUnit>,
    /// The widely applicable information criterion; it is valid if units are independent given a draw.
    pub waic: Waic,
}

/// The widely applicable information criterion. See [`Loo`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Waic {
    /// Σᵢ log E p(yᵢ | z) − p_waic, and its standard error over the units.
    pub elpd: Estimate,
    /// The sum of the variances of the log likelihoods.
    pub p_waic: f64,
    /// The number of units whose variance is above [`WAIC_LIMIT`].
    pub above: usize,
}

impl Loo {
    /// From the log likelihoods of units (a column each) in equally weighted draws of the posterior. Draws in which a unit's log
    /// likelihood is NaN are ignored for that unit.
    pub fn new(log_likelihood: &Batch) -> Self {
        let of_unit = |u: usize| of_unit(log_likelihood.column(u));
        let found: Vec<(LooUnit, f64, f64)> = (0..log_likelihood.columns_len()).into_par_iter().map(of_unit).collect();
        let units: Vec<LooUnit> = found.iter().map(|(unit, ..)| *unit).collect();
        let waic: Vec<f64> = found.iter().map(|(unit, lpd, _)| lpd - unit.p_waic).collect();
        Self {
            elpd: total(&units.iter().map(|u| u.elpd).collect::<Vec<_>>()),
            p_loo: units.iter().map(|u| u.p_loo).sum(),
            limit: found.first().map_or(f64::NAN, |(.., limit)| *limit),
            waic: Waic {
                elpd: total(&waic),
                p_waic: units.iter().map(|u| u.p_waic).sum(),
                above: units.iter().filter(|u| !(u.p_waic <= WAIC_LIMIT)).count(),
            },
            units,
        }
    }

    /// The indices of the units whose k̂ is above the limit, the worst first.
    pub fn above(&self) -> Vec<usize> {
        let mut above: Vec<usize> = (0..self.units.len()).filter(|u| !(self.units[*u].khat <= self.limit)).collect();
        above.sort_by(|a, b| self.units[*b].khat.total_cmp(&self.units[*a].khat));
        above
    }
}

/// The expected log predictive density of held-out observations, Σᵢ log p(yᵢ), with its standard error, and its terms: the log of
/// the mean likelihood of each, from log likelihoods (a column each) in draws.
///
/// ```
/// use hyperprior::{Batch, posterior::elpd};
/// let (total, terms) = elpd(&Batch::from_columns(vec![-1.0, -1.0, -3.0, -3.0], 2));
/// assert_eq!((total.value, terms), (-4.0, vec![-1.0, -3.0]));
/// ```
pub fn elpd(log_likelihood: &Batch) -> (Estimate, Vec<f64>) {
    let units: Vec<f64> = (0..log_likelihood.columns_len()).map(|u| log_mean(log_likelihood.column(u))).collect();
    (total(&units), units)
}

/// A unit, its log mean likelihood and the limit of k̂.
fn of_unit(log_likelihood: &[f64]) -> (LooUnit, f64, f64) {
    let known: Vec<f64> = log_likelihood.iter().copied().filter(|x| !x.is_nan()).collect();
    let lpd = log_mean(&known);
    let mut weights: Vec<f64> = known.iter().map(|x| -x).collect();
    let tail = psis(&mut weights);
    // A draw in which the unit is impossible would have all the weight.
    let khat = if known.contains(&f64::NEG_INFINITY) { f64::INFINITY } else { tail.khat };
    let weighted: Vec<f64> = weights.iter().zip(&known).filter(|(w, _)| w.is_finite()).map(|(w, x)| w + x).collect();
    let elpd = if weighted.is_empty() { f64::NAN } else { log_mean(&weighted) + (weighted.len() as f64).ln() };
    let (_, variance) = moments(&known);
    (LooUnit { elpd, khat, p_loo: lpd - elpd, p_waic: variance }, lpd, tail.limit)
}

/// log of the mean of e^x.
fn log_mean(x: &[f64]) -> f64 {
    hyperprior_math::special::log_sum_exp(x) - (x.len() as f64).ln()
}

/// Mean and variance, with Bessel's correction.
fn moments(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (mean, x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0))
}

/// The sum over units, with the standard error for units drawn from a population.
fn total(units: &[f64]) -> Estimate {
    let (_, variance) = moments(units);
    Estimate { value: units.iter().sum(), standard_error: (units.len() as f64 * variance).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};
    use std::f64::consts::PI;

    fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
        -0.5 * ((x - mean).powi(2) / variance + (2.0 * PI * variance).ln())
    }

    /// y ~ N(μ, 1), μ ~ N(0, 100): p(yᵢ | y₋ᵢ) is a normal. Draws of the posterior are exact and independent, so the error of an
    /// observation's elpd is about its p_loo/√S; a standard deviation of ln p over draws of at most 1.5 gives .03 with 4,000.
    #[test]
    fn a_conjugate_normal_has_its_exact_leave_one_out_densities() {
        let y = [0.3, -1.1, 0.8, 2.2, 0.1, -0.4, 1.5, 0.9];
        let posterior = |y: &[f64]| {
            let precision = 0.01 + y.len() as f64;
            (y.iter().sum::<f64>() / precision, 1.0 / precision)
        };
        let (mean, variance) = posterior(&y);
        let draws: Vec<f64> = (0..4000)
            .map(|s| {
                let e: f64 = StandardNormal.sample(&mut stream(3, 0, 0, s));
                mean + variance.sqrt() * e
            })
            .collect();
        let columns: Vec<f64> = y.iter().flat_map(|y| draws.iter().map(|mu| log_normal(*y, *mu, 1.0))).collect();
        let loo = Loo::new(&Batch::from_columns(columns, draws.len()));
        let mut exact = 0.0;
        for (i, unit) in loo.units.iter().enumerate() {
            let others: Vec<f64> = y.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, y)| *y).collect();
            let (mean, variance) = posterior(&others);
            let own = log_normal(y[i], mean, variance + 1.0);
            exact += own;
            assert!((unit.elpd - own).abs() < 0.03, "{i}: {} for {own}", unit.elpd);
            assert!(unit.khat < loo.limit, "{}", unit.khat);
        }
        assert!((loo.elpd.value - exact).abs() < 0.06, "{} for {exact}", loo.elpd.value);
        // log p(y | y) by the posterior with all data; the loss from leaving out is p_loo.
        let within: f64 = y.iter().map(|y| log_normal(*y, mean, variance + 1.0)).sum();
        assert!((loo.p_loo - (within - exact)).abs() < 0.06, "{} for {}", loo.p_loo, within - exact);
        // Var ln N(y; μ, 1) under the posterior N(m, v): v (y − m)² + v²/2.
        let variances: f64 = y.iter().map(|y| variance * (y - mean).powi(2) + variance * variance / 2.0).sum();
        assert!((loo.waic.p_waic / variances - 1.0).abs() < 0.1, "{} for {variances}", loo.waic.p_waic);
        assert!((loo.waic.elpd.value - (within - variances)).abs() < 0.1);
        let share = |u: &LooUnit| u.elpd;
        let mean = loo.units.iter().map(share).sum::<f64>() / 8.0;
        let spread: f64 = loo.units.iter().map(|u| (u.elpd - mean).powi(2)).sum();
        assert!((loo.elpd.standard_error - (8.0 * spread / 7.0).sqrt()).abs() < 1e-12);
    }

    /// An outlier that is improbable in most draws: k̂ shows that its weights are unreliable, and p_waic that WAIC is.
    #[test]
    fn an_influential_observation_is_reported() {
        let draws: Vec<f64> = (0..2000).map(|s| StandardNormal.sample(&mut stream(5, 0, 0, s))).collect();
        // 1/p is e^(μ²/8) times a constant, a tail of shape ¼; and e^((4 − μ)²), which has no mean.
        let column = |y: f64, variance: f64| draws.iter().map(|mu| log_normal(y, *mu, variance)).collect::<Vec<_>>();
        let loo = Loo::new(&Batch::from_columns([column(0.0, 4.0), column(4.0, 0.5)].concat(), draws.len()));
        assert_eq!(loo.above(), [1], "{:?}", loo.units);
        assert_eq!(loo.waic.above, 1, "{:?}", loo.units);
        let mut impossible = column(0.0, 4.0);
        impossible[7] = f64::NEG_INFINITY;
        impossible[8] = f64::NAN;
        let loo = Loo::new(&Batch::from_columns(impossible, draws.len()));
        assert_eq!((loo.units[0].khat, loo.above()), (f64::INFINITY, vec![0]));
        assert!(loo.units[0].elpd.is_finite() && loo.elpd.standard_error.is_nan());
    }
}
