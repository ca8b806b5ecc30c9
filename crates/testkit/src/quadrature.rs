//! Integrals over the real line by the trapezoid rule.
//!
//! For a smooth integrand that decays at both ends even steps are as good as a Gauss rule: with step h and an integrand
//! analytic within ±a of the real line, the error is of order e^(−2πa/h) plus the mass beyond the ends. A logistic
//! function has a = π: with h = ¼ that is e^−79.

use crate::enumerate::product;

/// Points with their weights: ∫ f(x) dx ≈ Σ weight · f(point).
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The points, each with one number per dimension.
    pub points: Vec<Vec<f64>>,
    /// The weights.
    pub weights: Vec<f64>,
}

impl Rule {
    /// Even steps of length `step` from `from` to `to`.
    ///
    /// ```
    /// let rule = hyperprior_testkit::quadrature::Rule::line(-9.0, 9.0, 0.5);
    /// let integral = rule.integrate(|x| (-0.5 * x[0] * x[0]).exp());
    /// assert!((integral - (2.0 * std::f64::consts::PI).sqrt()).abs() < 1e-14);
    /// ```
    pub fn line(from: f64, to: f64, step: f64) -> Self {
        let steps = ((to - from) / step).round() as u32;
        let points: Vec<Vec<f64>> = (0..=steps).map(|i| vec![from + step * f64::from(i)]).collect();
        Self { weights: vec![step; points.len()], points }
    }

    /// The expectation over `dimensions` standard normals: steps of `step` out to ±9, beyond which lies a mass of 2e-19.
    ///
    /// ```
    /// let rule = hyperprior_testkit::quadrature::Rule::normal(2, 0.5);
    /// assert!((rule.integrate(|x| (x[0] * x[1]).powi(2)) - 1.0).abs() < 1e-13);
    /// ```
    pub fn normal(dimensions: usize, step: f64) -> Self {
        let line = Self::line(-9.0, 9.0, step);
        let axis: Vec<f64> = line.points.iter().map(|x| x[0]).collect();
        let density = |x: &f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let points = product(&vec![axis; dimensions]);
        let weights = points.iter().map(|x| x.iter().map(|x| step * density(x)).product()).collect();
        Self { points, weights }
    }

    /// Σ weight · f(point).
    pub fn integrate(&self, mut f: impl FnMut(&[f64]) -> f64) -> f64 {
        self.points.iter().zip(&self.weights).map(|(point, weight)| weight * f(point)).sum()
    }
}
