//! Families q(z | λ) of one variable in unconstrained parameters λ, evaluated over a column of draws.
//!
//! Every family takes its parameters as neighbouring columns (`lambda[p * draws_len + s]` is parameter p of draw s), so
//! that a slice of a [`Batch`](crate::batch::Batch) can be passed unchanged.

mod bernoulli;
mod beta;
mod binomial;
mod categorical;
mod conway_maxwell;
mod gamma;
mod geometric;
mod log_normal;
mod mixed;
mod negative_binomial;
mod normal;
mod poisson;
mod truncated_poisson;

pub use bernoulli::Bernoulli;
pub use beta::Beta;
pub use binomial::{Binomial, BinomialError};
pub use categorical::{Categorical, CategoricalError};
pub use conway_maxwell::{ConwayMaxwell, ConwayMaxwellError};
pub use gamma::Gamma;
pub use geometric::Geometric;
pub use log_normal::LogNormal;
pub use mixed::{Mixed, MixedError};
pub use negative_binomial::NegativeBinomial;
pub use normal::Normal;
pub use poisson::Poisson;
pub use truncated_poisson::TruncatedPoisson;

use crate::random::Stream;

/// The set of values a variable can take.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Support {
    /// Every real number.
    Real,
    /// Real numbers above zero.
    Positive,
    /// Real numbers strictly between zero and one.
    UnitInterval,
    /// Whole numbers from `lower` to `upper`, both included.
    Integers {
        /// The smallest value.
        lower: f64,
        /// The largest value.
        upper: f64,
    },
    /// Whole numbers from zero up.
    Counts,
}

impl Support {
    /// Zero or one.
    pub const BINARY: Self = Self::Integers { lower: 0.0, upper: 1.0 };

    /// Whether the values are whole numbers.
    pub fn is_discrete(&self) -> bool {
        matches!(self, Self::Integers { .. } | Self::Counts)
    }

    /// Whether every value is one of the other's.
    pub fn is_within(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Integers { lower, upper }, Self::Integers { lower: low, upper: high }) => {
                low <= lower && upper <= high
            }
            (Self::Integers { lower, .. }, Self::Counts) => lower >= 0.0,
            (Self::Positive | Self::UnitInterval, Self::Real) | (Self::UnitInterval, Self::Positive) => true,
            (own, other) => own == other,
        }
    }

    /// Whether `z` is one of the values.
    pub fn contains(&self, z: f64) -> bool {
        match *self {
            Self::Real => z.is_finite(),
            Self::Positive => z > 0.0 && z.is_finite(),
            Self::UnitInterval => z > 0.0 && z < 1.0,
            Self::Integers { lower, upper } => z >= lower && z <= upper && z.fract() == 0.0,
            Self::Counts => z >= 0.0 && z.is_finite() && z.fract() == 0.0,
        }
    }

    /// The value nearest to `z`; if `z` is not a number, a value in the middle.
    fn nearest(&self, z: f64) -> f64 {
        match *self {
            Self::Real if z.is_nan() => 0.0,
            Self::Real => z.clamp(f64::MIN, f64::MAX),
            Self::Positive if z.is_nan() => 1.0,
            Self::Positive => z.clamp(f64::MIN_POSITIVE, f64::MAX),
            Self::UnitInterval if z.is_nan() => 0.5,
            Self::UnitInterval => z.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0),
            Self::Integers { lower, upper } if z.is_nan() => (0.5 * (lower + upper)).floor(),
            Self::Integers { lower, upper } => z.round().clamp(lower, upper),
            Self::Counts if z.is_nan() => 1.0,
            Self::Counts => z.round().clamp(0.0, f64::MAX),
        }
    }
}

/// A family q(z | λ) of one variable.
///
/// `lambda` holds [`parameters_len`](Self::parameters_len) columns, `z` one; all have as many draws as `z`.
pub trait Family: std::fmt::Debug + Send + Sync {
    /// The family's name, in lower case with dashes.
    fn name(&self) -> &'static str;

    /// How many unconstrained parameters it has.
    fn parameters_len(&self) -> usize;

    /// The values of z.
    fn support(&self) -> Support;

    /// out\[s\] = log q(z_s | λ_s); −∞ where z_s is outside the support.
    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]);

    /// d_lambda\[p, s\] += signal\[s\] · ∂ log q(z_s | λ_s) / ∂λ_p: the score, weighted by a learning signal.
    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]);

    /// out\[v, s\] = log q(values\[v\] | λ_s): a table over values, for families whose normaliser is expensive. `z` is scratch
    /// space for a column.
    fn log_densities(&self, lambda: &[f64], values: &[f64], z: &mut [f64], out: &mut [f64]) {
        for (value, out) in values.iter().zip(out.chunks_exact_mut(z.len())) {
            z.fill(*value);
            self.log_density(lambda, z, out);
        }
    }

    /// d_lambda\[p, s\] += Σ_v signal\[v, s\] · ∂ log q(values\[v\] | λ_s) / ∂λ_p, with the same scratch space.
    fn scores(&self, lambda: &[f64], values: &[f64], z: &mut [f64], signal: &[f64], d_lambda: &mut [f64]) {
        for (value, signal) in values.iter().zip(signal.chunks_exact(z.len())) {
            z.fill(*value);
            self.score(lambda, z, signal, d_lambda);
        }
    }

    /// z\[s\] ~ q(· | λ_s), drawn from `streams[s]`.
    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]);

    /// out\[p · P + q, s\] = the Fisher information E\[∂_p log q · ∂_q log q\] at λ_s, P = `parameters_len`.
    fn information(&self, lambda: &[f64], out: &mut [f64]);

    /// The parameters of a member centred at `z`, neither sharp nor flat: a place for a fit to start.
    fn start_at(&self, z: f64, out: &mut [f64]);

    /// For discrete families: the smallest and largest value that any of the draws needs so that less than 1e-14 of its
    /// probability is left out. `None` for continuous families.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        let _ = lambda;
        None
    }

    /// If ∂E\[f(z)\]/∂λ = rate · E\[f(z + 1) − f(z)\] for this family, writes the rate and returns true.
    fn difference_rate(&self, lambda: &[f64], out: &mut [f64]) -> bool {
        let _ = (lambda, out);
        false
    }

    /// Whether z can be differentiated along λ at fixed noise; if so [`pathwise`](Self::pathwise) and
    /// [`d_log_density_d_z`](Self::d_log_density_d_z) work.
    fn is_pathwise(&self) -> bool {
        false
    }

    /// d_lambda\[p, s\] += d_z\[s\] · ∂z_s/∂λ_p with the noise behind z_s held fixed, by z's own transformation or by
    /// implicit differentiation, ∂z/∂λ = −(∂F/∂λ) / q for the distribution function F.
    ///
    /// # Panics
    /// If the family is not [pathwise](Self::is_pathwise).
    fn pathwise(&self, lambda: &[f64], z: &[f64], d_z: &[f64], d_lambda: &mut [f64]) {
        let _ = (lambda, z, d_z, d_lambda);
        panic!("{} has no pathwise derivative", self.name());
    }

    /// out\[s\] = ∂ log q(z_s | λ_s) / ∂z.
    ///
    /// # Panics
    /// If the family is not [pathwise](Self::is_pathwise).
    fn d_log_density_d_z(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        let _ = (lambda, z, out);
        panic!("{} is not differentiable in z", self.name());
    }
}

/// Log rates, log scales and logits are clamped to ±700, where e^λ and e^(−λ) are both finite.
const LOG_LIMIT: f64 = 700.0;

/// Log shapes of the gamma and the beta are clamped to ±300, where the square of a shape is finite too.
const LOG_SHAPE_LIMIT: f64 = 300.0;

/// No window ends above this, so that a sum over it stays finite; a window cut here leaves out more than promised.
const WINDOW_LIMIT: f64 = 1e7;

/// −ln 5e-15: with each tail of a window below e^−this, less than 1e-14 is left out in all.
const WINDOW_DEPTH: f64 = 32.93;

/// e^λ, with λ clamped to ±[`LOG_LIMIT`].
fn exp_bounded(lambda: f64) -> f64 {
    lambda.clamp(-LOG_LIMIT, LOG_LIMIT).exp()
}

/// e^λ for a log shape, clamped to ±[`LOG_SHAPE_LIMIT`].
fn shape(lambda: f64) -> f64 {
    lambda.clamp(-LOG_SHAPE_LIMIT, LOG_SHAPE_LIMIT).exp()
}

/// The P parameters of draw `s`.
fn parameters<const P: usize>(lambda: &[f64], s: usize) -> [f64; P] {
    let draws_len = lambda.len() / P;
    std::array::from_fn(|p| lambda[p * draws_len + s])
}

/// out\[s\] = f(λ_s, z_s) where z_s is in the support, `elsewhere` where it is not.
fn map_draws<const P: usize>(
    support: Support,
    elsewhere: f64,
    lambda: &[f64],
    z: &[f64],
    out: &mut [f64],
    f: impl Fn([f64; P], f64) -> f64,
) {
    for (s, (out, &z)) in out.iter_mut().zip(z).enumerate() {
        *out = if support.contains(z) { f(parameters(lambda, s), z) } else { elsewhere };
    }
}

/// d_lambda\[p, s\] += weight\[s\] · f(λ_s, z_s)\[p\]. A draw with weight zero adds nothing, whatever f would be there.
fn add_weighted<const P: usize>(
    lambda: &[f64],
    z: &[f64],
    weight: &[f64],
    d_lambda: &mut [f64],
    f: impl Fn([f64; P], f64) -> [f64; P],
) {
    let draws_len = z.len();
    for s in 0..draws_len {
        if weight[s] == 0.0 {
            continue;
        }
        for (p, derivative) in f(parameters(lambda, s), z[s]).into_iter().enumerate() {
            d_lambda[p * draws_len + s] += weight[s] * derivative;
        }
    }
}

/// z\[s\] = f(λ_s, streams\[s\]), or NaN where a parameter is not a number.
fn sample_draws<const P: usize>(
    lambda: &[f64],
    streams: &mut [Stream],
    z: &mut [f64],
    f: impl Fn([f64; P], &mut Stream) -> f64,
) {
    for (s, (z, rng)) in z.iter_mut().zip(streams).enumerate() {
        let lambda: [f64; P] = parameters(lambda, s);
        *z = if lambda.iter().any(|l| l.is_nan()) { f64::NAN } else { f(lambda, rng) };
    }
}

/// out\[p · P + q, s\] = f(λ_s)\[p\]\[q\].
fn map_information<const P: usize>(lambda: &[f64], out: &mut [f64], f: impl Fn([f64; P]) -> [[f64; P]; P]) {
    let draws_len = lambda.len() / P;
    for s in 0..draws_len {
        for (entry, value) in f(parameters(lambda, s)).into_iter().flatten().enumerate() {
            out[entry * draws_len + s] = value;
        }
    }
}

/// The smallest window that covers every draw's own, kept below [`WINDOW_LIMIT`]. A draw whose parameters are NaN needs no
/// window.
fn cover_windows<const P: usize>(lambda: &[f64], f: impl Fn([f64; P]) -> (f64, f64)) -> (f64, f64) {
    let windows = (0..lambda.len() / P)
        .map(|s| parameters(lambda, s))
        .filter(|lambda: &[f64; P]| lambda.iter().all(|l| !l.is_nan()))
        .map(f);
    let (lower, upper) = windows.fold((f64::INFINITY, 0.0_f64), |(l, u), (lower, upper)| (l.min(lower), u.max(upper)));
    (lower.clamp(0.0, WINDOW_LIMIT).min(upper), upper.min(WINDOW_LIMIT))
}

/// The whole numbers within Bernstein's bound of the mean: a variable with this variance, whose summands stay within 1
/// of their means, is further than t out on one side with probability below exp(−t² / (2 (variance + t/3))).
fn bernstein_window(mean: f64, variance: f64) -> (f64, f64) {
    let third = WINDOW_DEPTH / 3.0;
    let reach = third + (third * third + 2.0 * WINDOW_DEPTH * variance).sqrt();
    ((mean - reach).floor().max(0.0), (mean + reach).ceil())
}
