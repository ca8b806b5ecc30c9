//! Draws between bounds that have little probability, by inverting the cumulative density.

use super::distribution::Distribution;
use super::draw::draw_log_weights;
use super::expression::{Expr, Expressions};
use super::support::{End, Span};
use hyperprior_math::random::Stream;
use rand::RngExt;

/// A density this far below its maximum, in nats, is negligible.
const NEGLIGIBLE: f64 = 40.0;
/// The number of cells of each grid, and the decades that the logarithmic ones span.
const CELLS: usize = 200;
const DECADES: f64 = 12.0;
/// The most values of a discrete distribution that are enumerated.
const VALUES_MAX: f64 = 1e5;

/// A distribution whose parameters are numbers.
struct Fixed {
    arena: Expressions,
    distribution: Distribution,
}

impl Fixed {
    fn log_density(&mut self, x: f64) -> f64 {
        let x = self.arena.constant(x);
        let log = self.arena.log_density(&self.distribution, x, false);
        self.arena.value(log).filter(|log| !log.is_nan()).unwrap_or(f64::NEG_INFINITY)
    }
}

/// A draw from a distribution between bounds; nothing if it has no mass there that can be found.
///
/// The distribution must be unimodal or the bounds finite, so that a density that has fallen from its maximum stays low.
pub(super) fn draw_inverted(
    distribution: &Distribution,
    [low, high]: [f64; 2],
    value: &dyn Fn(&Expr) -> f64,
    rng: &mut Stream,
) -> Option<f64> {
    let mut fixed = Fixed { arena: Expressions::default(), distribution: distribution.clone() };
    fixed.distribution.each_parameter(|e| *e = fixed.arena.constant(value(e)));
    let u: f64 = rng.random();
    if distribution.is_discrete() {
        let (least, greatest) = fixed.arena.range(&fixed.distribution);
        return invert_counts(&mut fixed, low.max(least).ceil(), high.min(greatest).floor(), u);
    }
    let number = |end: Option<End>| match end {
        Some(End::Number(x)) => Some(x),
        _ => None,
    };
    let Span { lower, upper } = fixed.arena.span(&fixed.distribution, None);
    let (low, high) = (number(lower).map_or(low, |x| low.max(x)), number(upper).map_or(high, |x| high.min(x)));
    if !(low < high) {
        return None;
    }
    // Distances from a finite end, towards the other one.
    let (from, sign) = if low.is_finite() { (low, 1.0) } else { (high, -1.0) };
    let length = if high - low < f64::INFINITY { high - low } else { reach(&mut fixed, from, sign)? };
    let mut at: Vec<f64> = (0..=CELLS).map(|k| k as f64 / CELLS as f64).collect();
    for k in 0..CELLS {
        let near = 10.0_f64.powf(-DECADES * (k + 1) as f64 / CELLS as f64);
        at.extend([near, 1.0 - near]);
    }
    at.sort_by(f64::total_cmp);
    at.dedup();
    let points: Vec<(f64, f64)> = at
        .into_iter()
        .map(|t| (t * length, fixed.log_density(from + sign * t * length)))
        .filter(|(_, log)| log.is_finite())
        .collect();
    invert_cells(&points, u).map(|distance| from + sign * distance)
}

/// How far from an end the density becomes negligible.
fn reach(fixed: &mut Fixed, from: f64, sign: f64) -> Option<f64> {
    let mut distance = 1e-9 * from.abs().max(1.0);
    let mut top = f64::NEG_INFINITY;
    while distance < f64::MAX / 4.0 {
        let log = fixed.log_density(from + sign * distance);
        top = top.max(log);
        if log < top - NEGLIGIBLE {
            return Some(distance);
        }
        distance *= 2.0;
    }
    None
}

/// Inverts the integral of a density whose logarithm is linear between points.
fn invert_cells(points: &[(f64, f64)], u: f64) -> Option<f64> {
    let top = points.iter().fold(f64::NEG_INFINITY, |top, (_, log)| top.max(*log));
    let masses = || {
        points.windows(2).map(|pair| {
            let ((x, a), (y, b)) = (pair[0], pair[1]);
            let slope = b - a;
            let mean = if slope.abs() < 1e-8 { 1.0 + 0.5 * slope } else { slope.exp_m1() / slope };
            (y - x) * (a - top).exp() * mean
        })
    };
    let mut left = u * masses().sum::<f64>();
    for (pair, mass) in points.windows(2).zip(masses()) {
        if left < mass {
            let ((x, a), (y, b)) = (pair[0], pair[1]);
            let (share, slope) = (left / mass, b - a);
            let along = if slope.abs() < 1e-8 { share } else { (share * slope.exp_m1()).ln_1p() / slope };
            return Some(x + (y - x) * along);
        }
        left -= mass;
    }
    points.last().map(|(x, _)| *x)
}

/// Inverts the sum of the probabilities of these counts.
fn invert_counts(fixed: &mut Fixed, low: f64, high: f64, u: f64) -> Option<f64> {
    if !(low <= high) || low.is_infinite() {
        return None;
    }
    let is_short = high - low < VALUES_MAX;
    let mut logs: Vec<f64> = Vec::new();
    let mut top = f64::NEG_INFINITY;
    for k in 0..=(high - low).min(VALUES_MAX) as usize {
        let log = fixed.log_density(low + k as f64);
        top = top.max(log);
        logs.push(log);
        if !is_short && log < top - NEGLIGIBLE {
            break;
        }
    }
    if top == f64::NEG_INFINITY || logs.len() as f64 > VALUES_MAX {
        return None;
    }
    Some(low + draw_log_weights(&mut logs, u) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;

    const DRAWS: usize = 1000;

    /// Draws between bounds, sorted.
    fn draws(make: impl Fn(&[Expr]) -> Distribution, parameters: &[f64], bounds: [f64; 2]) -> Vec<f64> {
        let mut arena = Expressions::default();
        let made: Vec<Expr> = parameters.iter().map(|x| arena.constant(*x)).collect();
        let distribution = make(&made);
        let mut rng = stream(1, 0, 0, 0);
        let value = |e: &Expr| arena.value(*e).unwrap();
        let mut drawn: Vec<f64> =
            (0..DRAWS).map(|_| draw_inverted(&distribution, bounds, &value, &mut rng).unwrap()).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    /// Kolmogorov's distance between draws and a cumulative probability, times the root of their number.
    fn distance(drawn: &[f64], cumulative: impl Fn(f64) -> f64) -> f64 {
        let n = drawn.len() as f64;
        let off = |(k, x): (usize, &f64)| ((k as f64 + 0.5) / n - cumulative(*x)).abs();
        drawn.iter().enumerate().map(off).fold(0.0, f64::max) * n.sqrt()
    }

    #[test]
    fn tails_of_continuous_distributions() {
        // The tail of an exponential is an exponential.
        let drawn = draws(|p| Distribution::Exponential { rate: p[0] }, &[2.0], [50.0, f64::INFINITY]);
        assert!(distance(&drawn, |x| -f64::exp_m1(-2.0 * (x - 50.0))) < 1.7);
        // Far out, P(|t| > x) of a Cauchy is 2/(π x).
        let cauchy = |p: &[Expr]| Distribution::StudentT { mean: p[0], precision: p[1], df: p[1] };
        let drawn = draws(cauchy, &[0.0, 1.0], [f64::NEG_INFINITY, -1e6]);
        assert!(distance(&drawn, |x| -1e6 / x) < 1.7);
        // A beta (1, 3) has 1 − F(x) = (1 − x)³.
        let beta = |p: &[Expr]| Distribution::Beta { a: p[0], b: p[1] };
        let drawn = draws(beta, &[1.0, 3.0], [0.999, 2.0]);
        assert!(distance(&drawn, |x| 1.0 - ((1.0 - x) / 0.001).powi(3)) < 1.7);
        // A normal beyond 8: the mean excess is φ(8)/Φ(−8) − 8 = 0.12107.
        let normal = |p: &[Expr]| Distribution::Normal { mean: p[0], precision: p[1] };
        let drawn = draws(normal, &[0.0, 1.0], [8.0, f64::INFINITY]);
        let mean = drawn.iter().sum::<f64>() / DRAWS as f64 - 8.0;
        assert!((mean - 0.12107).abs() < 5.0 * 0.12 / (DRAWS as f64).sqrt(), "{mean}");
    }

    #[test]
    fn tails_of_counts() {
        // Far above its rate, a Poisson falls nearly geometrically: compared with its own terms.
        let drawn = draws(|p| Distribution::Poisson { rate: p[0] }, &[5.0], [60.0, f64::INFINITY]);
        let mut terms = vec![1.0_f64];
        for k in 61..90 {
            terms.push(terms[terms.len() - 1] * 5.0 / f64::from(k));
        }
        let total: f64 = terms.iter().sum();
        for (k, term) in terms.iter().enumerate().take(3) {
            let share = drawn.iter().filter(|x| **x == 60.0 + k as f64).count() as f64 / DRAWS as f64;
            let p = term / total;
            assert!((share - p).abs() < 5.0 * (p / DRAWS as f64).sqrt(), "{k}: {share} {p}");
        }
    }

    #[test]
    fn nothing_lies_between_bounds_outside_the_support() {
        let mut arena = Expressions::default();
        let one = arena.constant(1.0);
        let value = |_: &Expr| 1.0;
        let mut rng = stream(1, 0, 0, 0);
        assert_eq!(draw_inverted(&Distribution::Exponential { rate: one }, [-3.0, -2.0], &value, &mut rng), None);
        assert_eq!(draw_inverted(&Distribution::Bernoulli { p: one }, [2.0, 9.0], &value, &mut rng), None);
    }
}
