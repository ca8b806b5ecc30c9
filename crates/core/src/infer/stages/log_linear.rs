//! A density between two nodes between which its log is linear.

/// ∫ exp of the line from a to b over the unit interval. It is computed from the higher end, where nothing overflows.
pub(super) fn mass(a: f64, b: f64) -> f64 {
    let d = (b - a).abs();
    // (1 − e⁻ᵈ) / d, which is 1 − d / 2 near 0.
    let ratio = if d < 1e-6 { 1.0 - 0.5 * d } else { -(-d).exp_m1() / d };
    a.max(b).exp() * ratio
}

/// The same from the exponentials at both ends, up to the same factor as they.
pub(super) fn mass_of([a, b]: [f64; 2], [exp_a, exp_b]: [f64; 2]) -> f64 {
    let d = b - a;
    // The difference of nearly equal numbers would lose digits.
    if d.abs() < 1e-3 { 0.5 * (exp_a + exp_b) * (1.0 - d * d / 12.0) } else { (exp_b - exp_a) / d }
}

/// The place in the unit interval that has this mass on its left, and this on its right.
pub(super) fn place(a: f64, b: f64, [left, right]: [f64; 2]) -> f64 {
    let (d, part) = ((b - a).abs(), if b <= a { left } else { right });
    let scaled = part.max(0.0) / a.max(b).exp();
    let t = if d < 1e-6 { scaled } else { -(-d * scaled).max(-1.0).ln_1p() / d };
    let t = if t < 1.0 { t } else { 1.0 };
    if b <= a { t } else { 1.0 - t }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches digits lost where the line is nearly flat, and a wrong series there.
    #[test]
    fn exponentials_have_the_same_mass() {
        for (a, b) in
            [(0.3_f64, -1.2_f64), (0.5, 0.5), (0.5, 0.5 + 9e-4), (2.0, 2.0 + 1e-8), (-1.0, -1.0011), (-700.0, 3.0)]
        {
            let of = mass_of([a, b], [a.exp(), b.exp()]);
            assert!((of / mass(a, b) - 1.0).abs() < 2e-13, "{a} {b}");
        }
    }

    /// Catches a wrong sign of the slope and a wrong end: the mass up to a place is that of the line cut off there.
    #[test]
    fn places_have_their_mass() {
        for (a, b) in [(0.3, -1.2), (-1.2, 0.3), (0.5, 0.5), (2.0, 2.0 + 1e-8), (-700.0, 3.0)] {
            let total = mass(a, b);
            for share in [0.0, 0.1, 0.5, 0.99, 1.0] {
                let t = place(a, b, [share * total, (1.0 - share) * total]);
                assert!((0.0..=1.0).contains(&t), "{t}");
                assert!((t * mass(a, a + t * (b - a)) - share * total).abs() < 1e-7 * total, "{a} {b} {share}");
            }
        }
    }
}
