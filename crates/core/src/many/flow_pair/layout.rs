//! The parameters and working memory of a pair of flows.

use hyperprior_math::single::planar::{Bend, Planar};
use hyperprior_math::single::{DRAWS, Lanes, Tile, lanes_len, read_row, write_row};

/// How many features t(z_i) of its latent the base of a parameter uses.
pub(super) const FEATURES: usize = 2;

/// The rows of r's base: a, b₁, b₂, e, f₁, f₂ in N(a + b·t, exp(e + f·t)²).
pub(super) const BASE_ROWS: usize = 2 * (1 + FEATURES);

/// q(λ; θ) as [`PlanarFlow`](crate::prior::PlanarFlow) and r(λ | z; φ) as [`InverseFlow`](crate::recursive::InverseFlow) on
/// λ, over latents of one parameter and two features each; O(Kd).
///
/// One call processes eight draws of one posterior. A step is [`transform`](Self::transform), whose λ the caller reads to draw
/// z; [`log_r`](Self::log_r), given t(z); and [`pullback`](Self::pullback) through both. Unused draws get cotangents of zero;
/// more than eight draws take several calls that add to the same gradient.
///
/// ```
/// use hyperprior::many::FlowPair;
/// use hyperprior::math::single::{Lanes, Tile};
/// let pair = FlowPair::new(20, 0, 3);
/// let (theta, eps) = (vec![Lanes::default(); pair.theta_len()], vec![Tile::default(); pair.tiles_len()]);
/// let log_q = pair.transform(&theta, &eps, &mut pair.work());
/// assert!((log_q[0] + 20.0 * 0.918939).abs() < 1e-3); // twenty standard normals at zero
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPair {
    pub(super) flow: Planar,
    pub(super) inverse: Planar,
}

/// The working memory of one thread. See [`FlowPair`].
#[derive(Clone, Debug)]
pub struct Work {
    /// λ after [`FlowPair::transform`]; λ₀ after [`FlowPair::log_r`].
    pub(super) lambda: Vec<Tile>,
    pub(super) d_lambda: Vec<Tile>,
    /// λ₀ standardised, and the inverse of its scale.
    pub(super) standard: Vec<Tile>,
    pub(super) inverse: Vec<Tile>,
    pub(super) bends: Vec<Bend>,
    pub(super) tanh: Vec<[f32; DRAWS]>,
    pub(super) rows: Vec<Lanes>,
}

impl Work {
    /// λ after [`FlowPair::transform`].
    pub fn lambda(&self) -> &[Tile] {
        &self.lambda
    }
}

/// The cotangents of the results of a step, draw by draw. See [`FlowPair`].
#[derive(Clone, Copy, Debug)]
pub struct Cotangents<'a> {
    /// Of λ, apart from log q and log r; zero beyond the last latent.
    pub lambda: &'a [Tile],
    /// Of log q(λ).
    pub log_q: &'a [f32; DRAWS],
    /// Of log r(λ | z).
    pub log_r: &'a [f32; DRAWS],
}

impl FlowPair {
    /// A flow of `flow_len` layers and an inverse flow of `inverse_len` over `latents_len` latents.
    pub const fn new(latents_len: usize, flow_len: usize, inverse_len: usize) -> Self {
        Self {
            flow: Planar { len: latents_len, layers_len: flow_len },
            inverse: Planar { len: latents_len, layers_len: inverse_len },
        }
    }

    /// How many [`Tile`]s eight draws take.
    pub const fn tiles_len(&self) -> usize {
        lanes_len(self.flow.len)
    }

    /// How many [`Lanes`] θ takes: the rows of the base's means and log scales, then the layers.
    pub const fn theta_len(&self) -> usize {
        2 * self.tiles_len() + self.flow.parameters_len()
    }

    /// How many [`Lanes`] φ takes: the rows of the base, then the layers.
    pub const fn phi_len(&self) -> usize {
        BASE_ROWS * self.tiles_len() + self.inverse.parameters_len()
    }

    /// Working memory for a step.
    pub fn work(&self) -> Work {
        let layers_len = self.flow.layers_len + self.inverse.layers_len;
        let tiles = || vec![Tile::default(); self.tiles_len()];
        Work {
            lambda: tiles(),
            d_lambda: tiles(),
            standard: tiles(),
            inverse: tiles(),
            bends: vec![Bend::default(); layers_len],
            tanh: vec![[0.0; DRAWS]; layers_len],
            rows: vec![Lanes::default(); 2 * self.tiles_len()],
        }
    }

    /// Reads parameters in the layout of [`PlanarFlow`](crate::prior::PlanarFlow).
    pub fn read_theta(&self, numbers: &[f64], theta: &mut [Lanes]) {
        let (d, n) = (self.flow.len, self.tiles_len());
        let (base, layers) = theta.split_at_mut(2 * n);
        read_row(&numbers[..d], &mut base[..n]);
        read_row(&numbers[d..2 * d], &mut base[n..]);
        self.flow.read(&numbers[2 * d..], layers);
    }

    /// Writes θ, or a gradient along it, in that layout.
    pub fn write_theta(&self, theta: &[Lanes], numbers: &mut [f64]) {
        let (d, n) = (self.flow.len, self.tiles_len());
        let (base, layers) = theta.split_at(2 * n);
        write_row(&base[..n], &mut numbers[..d]);
        write_row(&base[n..], &mut numbers[d..2 * d]);
        self.flow.write(layers, &mut numbers[2 * d..]);
    }

    /// Reads parameters in the layout of [`InverseFlow`](crate::recursive::InverseFlow).
    pub fn read_phi(&self, numbers: &[f64], phi: &mut [Lanes]) {
        let (d, n) = (self.flow.len, self.tiles_len());
        let (layers, base) = numbers.split_at(self.inverse.layers_len * (2 * d + 1));
        self.inverse.read(layers, &mut phi[BASE_ROWS * n..]);
        let mut column = vec![0.0; d];
        for (i, row) in phi[..BASE_ROWS * n].chunks_exact_mut(n.max(1)).enumerate() {
            column.iter_mut().zip(base[i..].iter().step_by(BASE_ROWS)).for_each(|(c, b)| *c = *b);
            read_row(&column, row);
        }
    }

    /// Writes φ, or a gradient along it, in that layout.
    pub fn write_phi(&self, phi: &[Lanes], numbers: &mut [f64]) {
        let (d, n) = (self.flow.len, self.tiles_len());
        let (layers, base) = numbers.split_at_mut(self.inverse.layers_len * (2 * d + 1));
        self.inverse.write(&phi[BASE_ROWS * n..], layers);
        let mut column = vec![0.0; d];
        for (i, row) in phi[..BASE_ROWS * n].chunks_exact(n.max(1)).enumerate() {
            write_row(row, &mut column);
            base[i..].iter_mut().step_by(BASE_ROWS).zip(&column).for_each(|(b, c)| *b = *c);
        }
    }
}
