//! Random streams, one per (seed, step, datum, draw), so that results do not depend on how work is split over threads.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The random stream of one draw.
pub type Stream = ChaCha8Rng;

/// The random streams that are not those of an optimisation step. Each purpose has a step number of its own, counted down from the
/// largest, so that no two purposes share random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
#[non_exhaustive]
pub enum Purpose {
    /// Estimates of the bounds.
    Bounds = u64::MAX,
    /// The start of θ and φ.
    Start = u64::MAX - 1,
    /// Tempered chains before a fit.
    Temper = u64::MAX - 2,
    /// Latents that are marginalised or drawn from their priors.
    Complete = u64::MAX - 3,
    /// The mode search.
    ModeSearch = u64::MAX - 4,
    /// Draws of an approximation.
    Draws = u64::MAX - 5,
    /// MCMC moves.
    Moves = u64::MAX - 6,
    /// Linear response.
    LinearResponse = u64::MAX - 7,
    /// Simulation-based calibration.
    Calibration = u64::MAX - 8,
    /// Points at which a model's factors are searched for faults.
    Faults = u64::MAX - 9,
    /// The start of a plate's guide.
    PlateStart = u64::MAX - 10,
    /// The minibatches of a plate.
    PlateMinibatch = u64::MAX - 11,
    /// Superchains, which check the draws.
    Superchains = u64::MAX - 12,
    /// Chains of the No-U-Turn sampler.
    Nuts = u64::MAX - 13,
    /// The fit of the degrees of centring.
    Centring = u64::MAX - 14,
    /// The fit of a Gaussian by Newton's method.
    VariationalNewton = u64::MAX - 15,
    /// Nested Laplace approximations.
    NestedLaplace = u64::MAX - 16,
    /// Adaptive quadrature.
    Quadrature = u64::MAX - 17,
    /// Tempered sequential Monte Carlo.
    Tempering = u64::MAX - 18,
    /// Mixture population Monte Carlo.
    MixtureImportance = u64::MAX - 19,
    /// Exact marginalisation of Gaussian latents.
    GaussianMarginal = u64::MAX - 20,
    /// Annealed bounds.
    AnnealedBounds = u64::MAX - 21,
    /// Points at which a symmetry of a model is looked for.
    Symmetry = u64::MAX - 22,
}

impl Purpose {
    /// Its step number.
    pub const fn step(self) -> u64 {
        self as u64
    }
}

/// The random streams of a training on text. It shares no run with a fit, so that its numbers need not differ from those of [`Purpose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
#[non_exhaustive]
pub enum TextPurpose {
    /// The weights.
    Weights = u64::MAX,
    /// The order of the documents.
    DocumentOrder = u64::MAX - 1,
    /// The start of the documents.
    DocumentStart = u64::MAX - 2,
    /// Held-out documents.
    HeldOut = u64::MAX - 3,
    /// The bound.
    Bound = u64::MAX - 4,
    /// The dependence that is added at the end.
    Dependence = u64::MAX - 5,
    /// The inference network.
    Network = u64::MAX - 6,
    /// Annealed importance sampling of held-out documents.
    Annealing = u64::MAX - 7,
}

impl TextPurpose {
    /// Its step number.
    pub const fn step(self) -> u64 {
        self as u64
    }
}

/// The stream of draw `draw` of datum `datum` at optimisation step `step` of the run with seed `seed`.
///
/// ChaCha8 is keyed by (seed, step, datum) and uses the draw as nonce, so that any stream can be created without creating
/// the others.
///
/// ```
/// use hyperprior_math::random::stream;
/// use rand::RngExt;
/// let a: u64 = stream(1, 2, 0, 3).random();
/// let b: u64 = stream(1, 2, 0, 3).random();
/// let c: u64 = stream(1, 2, 0, 4).random();
/// assert_eq!(a, b);
/// assert_ne!(a, c);
/// ```
pub fn stream(seed: u64, step: u64, datum: u64, draw: u64) -> Stream {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&step.to_le_bytes());
    key[16..24].copy_from_slice(&datum.to_le_bytes());
    key[24..].copy_from_slice(b"hyprprio");
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(draw);
    rng
}

/// The place of `i` in a random permutation of 0, …, n − 1, one for each key: a small Feistel cipher, repeated until the result
/// is below n.
pub fn shuffled(i: u64, n: u64, key: u64) -> u64 {
    let half = (64 - (n - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut x = i;
    loop {
        let (mut left, mut right) = (x >> half, x & mask);
        for round in 0..4 {
            let mut mixed = (right ^ (key << 3) ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (left, right) = (right, left ^ ((mixed >> 32) & mask));
        }
        x = (left << half) | right;
        if x < n {
            return x;
        }
    }
}

/// Fills draw `s` of `noise` with standard normals from `streams[s]`, for every s.
pub fn standard_normals(streams: &mut [Stream], noise: &mut crate::batch::Batch) {
    let (n, draws_len) = (noise.columns_len(), noise.draws_len());
    assert_eq!(streams.len(), draws_len, "one stream per draw");
    let data = noise.as_mut_slice();
    for (s, rng) in streams.iter_mut().enumerate() {
        for i in 0..n {
            data[i * draws_len + s] = StandardNormal.sample(rng);
        }
    }
}

/// Fills `noise` with the normal quantiles of scrambled Sobol points: a quasi-random sample of N(0, I).
///
/// Draw `s` is point `first + s` of the sequence. If there are more numbers than the sequence has dimensions (256),
/// the rest come from an ordinary stream, so the result is always a sample of N(0, I).
pub fn quasi_normals(seed: u32, first: u32, noise: &mut crate::batch::Batch) {
    const POINTS: u32 = 1 << 16;
    let (n, draws_len) = (noise.columns_len(), noise.draws_len());
    let low = n.min(sobol_burley::NUM_DIMENSIONS as usize);
    for s in 0..draws_len {
        let index = first + s as u32;
        let scramble = seed.wrapping_mul(0x9e37_79b9).wrapping_add(index / POINTS);
        for i in 0..low {
            let u = f64::from(sobol_burley::sample(index % POINTS, i as u32, scramble));
            // The points lie on a grid of 2⁻²⁴; half a cell in keeps the quantile finite.
            noise.set(i, s, crate::special::normal_quantile(u + 0.5 / 16_777_216.0));
        }
        if low < n {
            let mut rng = stream(u64::from(seed), 0x5b0, 0, u64::from(index));
            for i in low..n {
                noise.set(i, s, StandardNormal.sample(&mut rng));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shuffled;

    #[test]
    fn shuffling_is_a_permutation_that_differs_by_key() {
        for n in [1, 2, 7, 64, 1000] {
            let orders: Vec<Vec<u64>> = (0..3).map(|key| (0..n).map(|i| shuffled(i, n, key)).collect()).collect();
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            }
            if n > 100 {
                let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a == b).count();
                assert!(same(&orders[0], &orders[1]) < 10 && same(&orders[1], &orders[2]) < 10);
            }
        }
    }
}
