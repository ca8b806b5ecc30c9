//! Values that are impossible in the model, in a difference of log densities.

/// How far, in nats, an impossible value counts as below the best possible one, about the range of a double: an infinite signal
/// would give no direction to follow.
pub(super) const IMPOSSIBLE: f64 = 700.0;

/// A difference between two values, one of which may be impossible.
pub(super) fn possible(difference: f64) -> f64 {
    if difference.is_infinite() { IMPOSSIBLE.copysign(difference) } else { difference }
}
