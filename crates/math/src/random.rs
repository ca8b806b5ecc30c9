//! Random streams, one per (seed, step, datum, draw), so that results do not depend on which thread drew what.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The random stream of one draw.
pub type Stream = ChaCha8Rng;

/// The stream of draw `draw` of datum `datum` at optimisation step `step` of the run with seed `seed`.
///
/// ChaCha8 is keyed by (seed, step, datum) and counts from the draw's own nonce, so that any stream can be made
/// without making the others.
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

/// Fills row `s` of `noise` with standard normals from `streams[s]`, for every draw.
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

/// Fills `noise` with scrambled Sobol points sent through the normal quantile: a quasi-random sample of N(0, I).
///
/// Draw `s` is point `first + s` of the sequence. Where there are more numbers than the sequence has dimensions (256)
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
