//! Numbers with only their significant digits.

use hyperprior::objective::Estimate;

/// The format of a row's numbers: to three significant figures of their spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// This many decimals.
    Decimals(usize),
    /// Scientific notation.
    Powers,
}

impl Digits {
    /// For numbers around `centre` that vary by `spread`.
    pub fn new(centre: f64, spread: f64) -> Self {
        // Without a known spread, four figures.
        let (size, figures) = if spread > 0.0 && spread.is_finite() { (spread, 2) } else { (centre.abs(), 3) };
        if size == 0.0 || !size.is_finite() {
            return Self::Decimals(2);
        }
        let decimals = figures - size.log10().floor() as i32;
        if decimals > 6 || centre.abs().max(size) >= 1e7 {
            Self::Powers
        } else {
            Self::Decimals(decimals.max(0) as usize)
        }
    }

    /// A number; `–` for NaN.
    pub fn show(self, x: f64) -> String {
        match self {
            _ if x.is_nan() => "–".to_owned(),
            _ if x.is_infinite() => if x > 0.0 { "∞" } else { "-∞" }.to_owned(),
            Self::Powers => format!("{x:.3e}"),
            Self::Decimals(decimals) => {
                let text = format!("{x:.decimals$}");
                // No minus sign before a zero.
                match text.strip_prefix('-') {
                    Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
                    _ => text,
                }
            }
        }
    }
}

/// Two significant figures, for a standard error.
pub fn two_figures(x: f64) -> String {
    if x > 0.0 && x.is_finite() {
        let decimals = 1 - x.log10().floor() as i32;
        if (0..=7).contains(&decimals) { format!("{x:.0$}", decimals as usize) } else { format!("{x:.1e}") }
    } else {
        Digits::Decimals(0).show(x)
    }
}

/// A number with its standard error, if known, both to two significant figures of the error.
pub fn estimate(estimate: Estimate) -> String {
    let Estimate { value, standard_error } = estimate;
    if !(standard_error > 0.0 && standard_error.is_finite()) {
        return Digits::new(value, 0.0).show(value);
    }
    let digits = match Digits::new(value, standard_error) {
        Digits::Decimals(decimals) => Digits::Decimals(decimals.saturating_sub(1)),
        Digits::Powers => Digits::Powers,
    };
    format!("{} ± {}", digits.show(value), two_figures(standard_error))
}

/// A probability; `–` for 0.
pub fn probability(p: f64) -> String {
    if p > 0.0 { format!("{p:.3}") } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_has_two_figures_of_its_error() {
        let shown = |value, standard_error| estimate(Estimate { value, standard_error });
        assert_eq!(shown(-172.273, 8.13), "-172.3 ± 8.1");
        assert_eq!(shown(-206.51, 14.2), "-207 ± 14");
        assert_eq!(shown(-0.8765, f64::NAN), "-0.8765");
        assert_eq!(shown(-37.894, 0.43), "-37.89 ± 0.43");
    }

    #[test]
    fn digits_follow_the_spread() {
        let shown = |x: f64, sd: f64| Digits::new(x, sd).show(x);
        assert_eq!(shown(1.234567, 0.1), "1.235");
        assert_eq!(shown(1.234567, 0.0321), "1.2346");
        assert_eq!(shown(123.4567, 45.6), "123.5");
        assert_eq!(shown(98765.4, 1234.0), "98765");
        assert_eq!(shown(-0.0001, 1.0), "0.00");
        assert_eq!(shown(3.0, 0.0), "3.000");
        assert_eq!(shown(0.0, 0.0), "0.00");
        assert_eq!(shown(2e-8, 1e-8), "2.000e-8");
        assert_eq!(shown(6.02e23, 1e20), "6.020e23");
        assert_eq!(shown(f64::NAN, 1.0), "–");
        assert_eq!(shown(f64::NEG_INFINITY, f64::NAN), "-∞");
    }

    #[test]
    fn errors_have_two_figures() {
        assert_eq!([0.01234, 1.26, 0.0, f64::NAN].map(two_figures), ["0.012", "1.3", "0", "–"]);
        assert_eq!(two_figures(1234.0), "1.2e3");
    }
}
