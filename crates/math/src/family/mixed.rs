//! A family of one parameter with a Gaussian prior on that parameter, marginalised.

use super::{Family, Support, WINDOW_LIMIT, cover_windows, map_information, parameters, sample_draws};
use crate::quadrature::gauss_hermite;
use crate::random::Stream;
use rand::RngExt;

/// Limits of ln σ: below, the prior is a point; above, only the middle node is within the ±700 that the families allow.
const LOG_SIGMA_LIMITS: (f64, f64) = (-20.0, 6.5);

/// Nodes with a smaller weight are left out: they would widen every window and change no result.
const SMALLEST_WEIGHT: f64 = 1e-16;

/// The largest number of nodes.
const LARGEST_NODES_LEN: usize = 128;

/// The information is summed over up to this many values.
const SUMMED_VALUES_LEN: f64 = 16_384.0;

/// No node's information counts as more than this, so that squares of slopes times it are finite.
const LARGEST_INFORMATION: f64 = 1e150;

/// How many draws are processed together, in buffers on the stack.
const BLOCK_LEN: usize = 64;

/// Why a [`Mixed`] could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MixedError {
    /// The prior is on a single parameter.
    #[error("{family} has {len} parameters; only a family with one can be mixed over it")]
    NotOneParameter {
        /// The family's name.
        family: &'static str,
        /// How many parameters it has.
        len: usize,
    },
    /// A mixture of densities would be fine, but sampling and windows are not implemented for it.
    #[error("{family} is continuous; only families of whole numbers can be mixed")]
    Continuous {
        /// The family's name.
        family: &'static str,
    },
    /// A rule needs at least one node, and hundreds do not improve it.
    #[error("a mixture needs between 1 and {LARGEST_NODES_LEN} nodes, not {len}; about 15 is usual")]
    NodesLen {
        /// The requested number.
        len: usize,
    },
}

/// A family F of one parameter η ~ N(μ, σ²), with η marginalised by a Gauss–Hermite rule: λ = (μ, ln σ) and
/// q(z | λ) = Σₙ wₙ F(z; μ + σ xₙ).
///
/// Density, score, sampler and window are exactly those of this finite mixture, not of the integral that it approximates.
/// Over the Poisson it is a Poisson with log-normal rates, over the Bernoulli the logistic-normal. It marginalises a
/// diagonal Gaussian variational prior over such factors, so that no r is needed.
///
/// ln σ is clamped to −20 … 6.5, and nodes with weight below 1e-16 are left out. A density costs a density of F per node.
///
/// ```
/// use hyperprior_math::family::{Family, Mixed, Poisson};
/// let mixed = Mixed::new(Poisson, 15)?;
/// let (mut wide, mut narrow) = ([0.0], [0.0]);
/// mixed.log_density(&[1.0, 0.0], &[30.0], &mut wide);
/// Poisson.log_density(&[1.0], &[30.0], &mut narrow);
/// assert!(wide[0] > narrow[0] + 10.0);
/// # Ok::<(), hyperprior_math::family::MixedError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed<F> {
    family: F,
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl<F: Family> Mixed<F> {
    /// The mixture of `family` over `nodes_len` nodes.
    ///
    /// # Errors
    /// If the family has more than one parameter or is continuous, or if there are no nodes or more than 128.
    pub fn new(family: F, nodes_len: usize) -> Result<Self, MixedError> {
        if family.parameters_len() != 1 {
            return Err(MixedError::NotOneParameter { family: family.name(), len: family.parameters_len() });
        }
        if !family.support().is_discrete() {
            return Err(MixedError::Continuous { family: family.name() });
        }
        if !(1..=LARGEST_NODES_LEN).contains(&nodes_len) {
            return Err(MixedError::NodesLen { len: nodes_len });
        }
        let rule = gauss_hermite(nodes_len);
        let kept = rule.nodes.into_iter().zip(rule.weights).filter(|(_, weight)| *weight >= SMALLEST_WEIGHT);
        let (nodes, mut weights): (Vec<f64>, Vec<f64>) = kept.unzip();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        Ok(Self { family, nodes, weights })
    }

    /// The mixed family.
    pub fn family(&self) -> &F {
        &self.family
    }

    /// How many nodes are kept.
    pub fn nodes_len(&self) -> usize {
        self.nodes.len()
    }

    /// Each node's weight, its distance σ xₙ from μ, and its parameter.
    fn mixands(&self, [mu, log_sigma]: [f64; 2]) -> impl Iterator<Item = (f64, f64, f64)> {
        let sigma = sigma(log_sigma);
        self.nodes.iter().zip(&self.weights).map(move |(x, weight)| (*weight, sigma * x, mu + sigma * x))
    }

    /// The nodes' own windows, in order.
    fn windows(&self, lambda: [f64; 2]) -> ([(f64, f64); LARGEST_NODES_LEN], usize) {
        let mut windows = [(0.0, 0.0); LARGEST_NODES_LEN];
        let mut len = 0;
        for window in self.mixands(lambda).filter_map(|(_, _, eta)| self.family.window(&[eta])) {
            windows[len] = window;
            len += 1;
        }
        windows[..len].sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        (windows, len)
    }

    /// The information of z and the node together, Σₙ wₙ I_F(ηₙ) (1, σxₙ)(1, σxₙ)ᵀ.
    fn information_with_node(&self, lambda: [f64; 2]) -> [[f64; 2]; 2] {
        let mut sums = [0.0; 3];
        for (weight, slope, eta) in self.mixands(lambda) {
            let mut information = [0.0];
            self.family.information(&[eta], &mut information);
            for (sum, factor) in sums.iter_mut().zip([1.0, slope, slope * slope]) {
                *sum += weight * information[0].min(LARGEST_INFORMATION) * factor;
            }
        }
        [[sums[0], sums[1]], [sums[1], sums[2]]]
    }

    /// The mean of the squared score over the nodes' windows, each value once.
    fn summed_information(&self, lambda: [f64; 2], windows: &[(f64, f64)]) -> [[f64; 2]; 2] {
        let mut sums = [0.0; 3];
        let mut block = Block::new();
        let mut next = 0.0_f64;
        for &(lower, upper) in windows {
            next = next.max(lower);
            while next <= upper {
                let len = BLOCK_LEN.min((upper - next) as usize + 1);
                block.load(len, |i| (lambda, next + i as f64));
                block.density(self);
                block.score(self);
                for i in 0..len {
                    let (probability, [d_mu, d_log_sigma]) = (block.log_density[i].exp(), block.score[i]);
                    if probability > 0.0 {
                        sums[0] += probability * d_mu * d_mu;
                        sums[1] += probability * d_mu * d_log_sigma;
                        sums[2] += probability * d_log_sigma * d_log_sigma;
                    }
                }
                next += len as f64;
            }
        }
        [[sums[0], sums[1]], [sums[1], sums[2]]]
    }
}

fn sigma(log_sigma: f64) -> f64 {
    log_sigma.clamp(LOG_SIGMA_LIMITS.0, LOG_SIGMA_LIMITS.1).exp()
}

/// Up to [`BLOCK_LEN`] draws with the values computed for them.
struct Block {
    len: usize,
    mu: [f64; BLOCK_LEN],
    sigma: [f64; BLOCK_LEN],
    z: [f64; BLOCK_LEN],
    /// log q(z | λ).
    log_density: [f64; BLOCK_LEN],
    /// ∂ log q / ∂(μ, ln σ).
    score: [[f64; 2]; BLOCK_LEN],
    /// The parameter of the current node, and F's log density there.
    eta: [f64; BLOCK_LEN],
    log_mixand: [f64; BLOCK_LEN],
}

impl Block {
    fn new() -> Self {
        let zeros = [0.0; BLOCK_LEN];
        Self {
            len: 0,
            mu: zeros,
            sigma: zeros,
            z: zeros,
            log_density: zeros,
            score: [[0.0; 2]; BLOCK_LEN],
            eta: zeros,
            log_mixand: zeros,
        }
    }

    /// Takes the λ and z of `len` draws.
    fn load(&mut self, len: usize, draw: impl Fn(usize) -> ([f64; 2], f64)) {
        self.len = len;
        for i in 0..len {
            let ([mu, log_sigma], z) = draw(i);
            (self.mu[i], self.sigma[i], self.z[i]) = (mu, sigma(log_sigma), z);
        }
    }

    /// `log_mixand` = log wₙ + log F(z; μ + σ xₙ).
    fn visit<F: Family>(&mut self, mixed: &Mixed<F>, n: usize) {
        let len = self.len;
        for i in 0..len {
            self.eta[i] = self.mu[i] + self.sigma[i] * mixed.nodes[n];
        }
        mixed.family.log_density(&self.eta[..len], &self.z[..len], &mut self.log_mixand[..len]);
        let log_weight = mixed.weights[n].ln();
        self.log_mixand[..len].iter_mut().for_each(|log_mixand| *log_mixand += log_weight);
    }

    /// `log_density` by a running log-sum over the nodes: the largest term so far, and the sum in units of it.
    fn density<F: Family>(&mut self, mixed: &Mixed<F>) {
        let len = self.len;
        let (mut largest, mut sum) = ([f64::NEG_INFINITY; BLOCK_LEN], [0.0; BLOCK_LEN]);
        for n in 0..mixed.nodes.len() {
            self.visit(mixed, n);
            for i in 0..len {
                let term = self.log_mixand[i];
                if term > largest[i] {
                    sum[i] = sum[i] * (largest[i] - term).exp() + 1.0;
                    largest[i] = term;
                } else if term != f64::NEG_INFINITY {
                    sum[i] += (term - largest[i]).exp();
                }
            }
        }
        for i in 0..len {
            self.log_density[i] = largest[i] + sum[i].ln();
        }
    }

    /// `score` by F's own: Σₙ ρₙ ∂ log F(z; ηₙ)/∂η · (1, σ xₙ), where ρₙ is the probability of node n given z.
    fn score<F: Family>(&mut self, mixed: &Mixed<F>) {
        let len = self.len;
        self.score[..len].fill([0.0; 2]);
        for n in 0..mixed.nodes.len() {
            self.visit(mixed, n);
            let (mut responsibility, mut weighted) = ([0.0; BLOCK_LEN], [0.0; BLOCK_LEN]);
            for i in 0..len {
                responsibility[i] = (self.log_mixand[i] - self.log_density[i]).exp();
            }
            mixed.family.score(&self.eta[..len], &self.z[..len], &responsibility[..len], &mut weighted[..len]);
            for i in 0..len {
                self.score[i][0] += weighted[i];
                self.score[i][1] += weighted[i] * self.sigma[i] * mixed.nodes[n];
            }
        }
    }
}

impl<F: Family> Family for Mixed<F> {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn parameters_len(&self) -> usize {
        2
    }

    fn support(&self) -> Support {
        self.family.support()
    }

    fn log_density(&self, lambda: &[f64], z: &[f64], out: &mut [f64]) {
        let mut block = Block::new();
        for (b, out) in out.chunks_mut(BLOCK_LEN).enumerate() {
            let first = b * BLOCK_LEN;
            block.load(out.len(), |i| (parameters(lambda, first + i), z[first + i]));
            block.density(self);
            out.copy_from_slice(&block.log_density[..out.len()]);
        }
    }

    fn score(&self, lambda: &[f64], z: &[f64], signal: &[f64], d_lambda: &mut [f64]) {
        let draws_len = z.len();
        let mut block = Block::new();
        for first in (0..draws_len).step_by(BLOCK_LEN) {
            block.load(BLOCK_LEN.min(draws_len - first), |i| (parameters(lambda, first + i), z[first + i]));
            block.density(self);
            block.score(self);
            for i in (0..block.len).filter(|i| signal[first + i] != 0.0) {
                for (p, score) in block.score[i].into_iter().enumerate() {
                    d_lambda[p * draws_len + first + i] += signal[first + i] * score;
                }
            }
        }
    }

    /// The node first, then F at it.
    fn sample(&self, lambda: &[f64], streams: &mut [Stream], z: &mut [f64]) {
        sample_draws(lambda, streams, z, |lambda, rng| {
            let mut left = rng.random::<f64>();
            // Rounding may leave some weight after the last node; the last node takes it.
            let last = self.mixands(lambda).last();
            let drawn = self.mixands(lambda).find(|(weight, ..)| {
                left -= weight;
                left < 0.0
            });
            let mut z = [f64::NAN];
            if let Some((.., eta)) = drawn.or(last) {
                self.family.sample(&[eta], std::slice::from_mut(rng), &mut z);
            }
            z[0]
        });
    }

    /// The sum over the nodes' windows if those have at most 16,384 values. If they have more, the information of z and the
    /// node together, an upper bound that is attained where the windows do not overlap.
    fn information(&self, lambda: &[f64], out: &mut [f64]) {
        map_information(lambda, out, |lambda| {
            let (windows, len) = self.windows(lambda);
            let values_len: f64 = windows[..len].iter().map(|(lower, upper)| upper - lower + 1.0).sum();
            // A window that ends at the limit is incomplete.
            let whole = windows[..len].iter().all(|(_, upper)| *upper < WINDOW_LIMIT);
            if whole && values_len <= SUMMED_VALUES_LEN {
                self.summed_information(lambda, &windows[..len])
            } else {
                self.information_with_node(lambda)
            }
        });
    }

    /// F's own start, with σ = e⁻²: F, a little wider.
    fn start_at(&self, z: f64, out: &mut [f64]) {
        self.family.start_at(z, &mut out[..1]);
        out[1] = -2.0;
    }

    /// From the lowest to the highest value that any node needs.
    fn window(&self, lambda: &[f64]) -> Option<(f64, f64)> {
        self.family.window(&lambda[..0])?;
        Some(cover_windows(lambda, |lambda| {
            let (windows, len) = self.windows(lambda);
            (windows[0].0, windows[..len].iter().fold(0.0, |upper, window| window.1.max(upper)))
        }))
    }
}
