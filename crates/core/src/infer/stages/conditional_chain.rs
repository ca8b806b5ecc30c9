//! The distributions of latents that are coupled in chains, given a few others: the states of a time series.
//!
//! If neighbours in a chain share a product only, and each has terms of its own, log p = Σ fₜ(xₜ) − Σ bₜ xₜ xₜ₊₁, as for a Gaussian walk or
//! autoregression that is observed in any way. The fₜ follow from a few dozen gradients at which all states are moved, and the bₜ from the
//! curvature. On grids of one spacing the products are a convolution with a normal kernel, so that a forward pass integrates out every
//! state, and a backward pass draws them. The importance weights of the draws betray a chain that is not of this kind.

use super::conditional_grid::integrated;
use super::conditional_laplace::{Conditional, Parts};
use super::log_linear::place;
use crate::error::Result;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::vector::{self, dot};
use rand::RngExt;

/// The distance of the nodes in standard deviations of the state that varies least given its neighbours, and how far they reach on either
/// side of a mode, in standard deviations.
const APART: f64 = 0.45;
const REACH: f64 = 5.0;
/// The most nodes on either side.
const SIDE_MAX: usize = 400;
/// At the ends of its grid the density of a state must have fallen by this many nats.
const FALLEN: f64 = 9.0;
/// How much wider the grids of a chain get that do not cover its densities, and how often.
const WIDER: f64 = 1.4;
const WIDENED: usize = 3;
/// The nats below the highest node at which a node does not matter.
const NEGLIGIBLE: f64 = 30.0;
/// The most nats by which the terms of a state may rise above those at its mode.
const RISE_MAX: f64 = 600.0;

/// The members of a chain in order, and the places of the entries of the curvature that link them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    members: Vec<usize>,
    links: Vec<usize>,
}

/// So many latents as chains; `None` if one is linked with more than two others, or if some form a circle. A link is the place of its
/// entry and its two ends.
fn paths(len: usize, links: impl Iterator<Item = (usize, [usize; 2])>) -> Option<Vec<Path>> {
    let mut near: Vec<Vec<(usize, usize)>> = vec![Vec::new(); len];
    for (at, [i, j]) in links {
        near[i].push((j, at));
        near[j].push((i, at));
    }
    if near.iter().any(|near| near.len() > 2) {
        return None;
    }
    let (mut is_taken, mut paths) = (vec![false; len], Vec::new());
    for first in 0..len {
        if is_taken[first] || near[first].len() == 2 {
            continue;
        }
        let (mut path, mut last) = (Path { members: vec![first], links: Vec::new() }, first);
        is_taken[first] = true;
        while let Some((next, at)) = near[last].iter().find(|(next, _)| !is_taken[*next]) {
            path.members.push(*next);
            path.links.push(*at);
            is_taken[*next] = true;
            last = *next;
        }
        paths.push(path);
    }
    (!is_taken.contains(&false)).then_some(paths)
}

/// The others that some latents describe as chains, if they are coupled as such.
pub(super) fn paths_of(parts: &Parts) -> Option<Vec<Path>> {
    paths(parts.others.len(), parts.curvature.links()).filter(|_| !parts.curvature.is_diagonal())
}

/// The densities of latents in chains.
pub(super) struct ConditionalChains {
    /// The log integral of the density, relative to that at the modes.
    pub(super) log_integral: f64,
    chains: Vec<Chain>,
}

impl ConditionalChains {
    /// The densities around the modes. `None` if one is not covered by a grid that is several times as wide either.
    pub(super) fn new(parts: &Parts, one: &Conditional, paths: &[Path]) -> Result<Option<Self>> {
        let point = Batch::from_columns(one.point.clone(), 1);
        let entries = parts.curvature.at(parts.model, &parts.others, &point)?.pop().flatten();
        let Some(entries) = entries else { return Ok(None) };
        let diagonal = |member: usize| entries[parts.curvature.diagonal(member)];
        let placed = |path: &Path| {
            let own: Vec<f64> = path.members.iter().map(|member| diagonal(*member)).collect();
            let latents = path.members.iter().map(|member| parts.others[*member]).collect();
            Chain::placed(latents, &own, path.links.iter().map(|at| entries[*at]).collect())
        };
        let Some(mut chains) = paths.iter().map(placed).collect::<Option<Vec<Chain>>>() else { return Ok(None) };
        for _ in 0..=WIDENED {
            if chains.iter().any(|chain| chain.sides.iter().any(|side| *side > SIDE_MAX)) {
                break;
            }
            let Some(slopes) = slopes(parts, &one.point, &chains)? else { break };
            let (mut log_integral, mut is_covered) = (0.0, true);
            for (chain, slopes) in chains.iter_mut().zip(&slopes) {
                let Some((own, covers)) = chain.pass(slopes) else { return Ok(None) };
                log_integral += own;
                if !covers {
                    is_covered = false;
                    chain.sides.iter_mut().for_each(|side| *side = (*side as f64 * WIDER).ceil() as usize);
                }
            }
            if is_covered {
                return Ok(Some(Self { log_integral, chains }));
            }
        }
        Ok(None)
    }

    /// Draws the latents around their modes in `z`, each number with its mirror image; adds the negative log densities to `energy`.
    pub(super) fn draw(&self, rng: &mut Stream, z: &mut Batch, energy: &mut [f64]) {
        self.chains.iter().for_each(|chain| chain.draw(rng, z, energy));
    }
}

/// The slopes of each fₜ at the nodes of its grid, for each state of each chain.
fn slopes(parts: &Parts, point: &[f64], chains: &[Chain]) -> Result<Option<Vec<Vec<Vec<f64>>>>> {
    let Some(gradient) = parts.model.gradient() else { return Ok(None) };
    let most = chains.iter().flat_map(|chain| &chain.sides).copied().max().unwrap_or(0);
    let len = 2 * most + 1;
    let (mut z, mut d_z, mut log_p) = (Batch::zeros(point.len(), len), Batch::zeros(point.len(), len), vec![0.0; len]);
    (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
    // Where the grid of one state has ended, it stays while others move on.
    let moved = |chain: &Chain, t: usize, k: usize| {
        let side = chain.sides[t] as f64;
        (k as f64 - most as f64).clamp(-side, side) * chain.step
    };
    for chain in chains {
        for (t, i) in chain.latents.iter().enumerate() {
            z.column_mut(*i).iter_mut().enumerate().for_each(|(k, x)| *x = point[*i] + moved(chain, t, k));
        }
    }
    gradient.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let of_state = |chain: &Chain, t: usize| {
        let of_node = |k: usize| {
            let before = if t > 0 { chain.links[t - 1] * moved(chain, t - 1, k) } else { 0.0 };
            let after = chain.links.get(t).map_or(0.0, |link| link * moved(chain, t + 1, k));
            d_z.get(chain.latents[t], k) + before + after
        };
        (most - chain.sides[t]..=most + chain.sides[t]).map(of_node).collect()
    };
    Ok(Some(chains.iter().map(|chain| (0..chain.latents.len()).map(|t| of_state(chain, t)).collect()).collect()))
}

/// One chain on its grid: the states with their links bₜ, the distance of the nodes, and how many are on either side of each mode.
struct Chain {
    latents: Vec<usize>,
    links: Vec<f64>,
    step: f64,
    sides: Vec<usize>,
    /// How far the terms of each state rise above those at its mode, once its links are normal kernels.
    rises: Vec<f64>,
    /// For each state, the log density at the nodes of the states up to it, with those before it integrated out.
    log_forward: Vec<Vec<f64>>,
}

impl Chain {
    /// A chain with this curvature; `None` if that is not of a maximum.
    fn placed(latents: Vec<usize>, own: &[f64], links: Vec<f64>) -> Option<Self> {
        let n = own.len();
        let (mut left, mut right) = (own.to_vec(), own.to_vec());
        for t in 1..n {
            left[t] -= links[t - 1] * links[t - 1] / left[t - 1];
            right[n - 1 - t] -= links[n - 1 - t] * links[n - 1 - t] / right[n - t];
        }
        let marginal: Vec<f64> = (0..n).map(|t| left[t] + right[t] - own[t]).collect();
        if ![&left, &right, &marginal].iter().all(|all| all.iter().all(|x| x.is_finite() && *x > 0.0)) {
            return None;
        }
        let step = APART / own.iter().copied().fold(0.0, f64::max).sqrt();
        let sides = marginal.iter().map(|precision| (REACH / (precision.sqrt() * step)).ceil() as usize).collect();
        Some(Self { latents, links, step, sides, rises: Vec::new(), log_forward: Vec::new() })
    }

    /// The number of nodes after which the link after a state does not matter, however far the terms of the two states rise.
    fn band(&self, t: usize) -> usize {
        let most = self.sides[t] + self.sides[t + 1];
        let nats = NEGLIGIBLE + self.rises[t] + self.rises[t + 1];
        ((2.0 * nats / self.links[t].abs()).sqrt() / self.step).min(most as f64) as usize
    }

    /// The kernel of the link after a state, and whether the neighbours have the same sign.
    fn kernel(&self, t: usize) -> (Vec<f64>, bool) {
        let (band, half) = (self.band(t), 0.5 * self.links[t].abs() * self.step * self.step);
        let log_kernel: Vec<f64> = (0..=2 * band).map(|k| -half * (k as f64 - band as f64).powi(2)).collect();
        let mut kernel = vec![0.0; log_kernel.len()];
        vector::exp(&log_kernel, &mut kernel);
        (kernel, self.links[t] < 0.0)
    }

    /// Integrates out the states one after another, and returns the log integral and whether the grids cover the densities. `None` if the
    /// integral is not finite.
    fn pass(&mut self, slopes: &[Vec<f64>]) -> Option<(f64, bool)> {
        let n = self.latents.len();
        let mut log_integral = n as f64 * self.step.ln();
        // −b x y = |b| (x² + y²) / 2 − |b| (x ± y)² / 2: the first part belongs to the states.
        let own = |t: usize| {
            let mut log_f = vec![0.0; slopes[t].len()];
            integrated(&slopes[t], self.step, &mut log_f);
            let links = if t > 0 { self.links[t - 1].abs() } else { 0.0 } + self.links.get(t).map_or(0.0, |b| b.abs());
            let away = |k: usize| (k as f64 - self.sides[t] as f64) * self.step;
            log_f.iter_mut().enumerate().for_each(|(k, f)| *f += 0.5 * links * away(k).powi(2));
            let top = largest(&log_f);
            log_f.iter_mut().for_each(|f| *f -= top);
            let mut f = vec![0.0; log_f.len()];
            vector::exp(&log_f, &mut f);
            (f, top)
        };
        let (f, rises): (Vec<Vec<f64>>, Vec<f64>) = (0..n).map(own).unzip();
        // What is large at one end of a grid must not leave nothing at the mode.
        if rises.iter().any(|rise| !(*rise <= RISE_MAX)) {
            return None;
        }
        log_integral += rises.iter().sum::<f64>();
        self.rises = rises;
        let kernels: Vec<(Vec<f64>, bool)> = (0..n - 1).map(|t| self.kernel(t)).collect();
        let mut forward = vec![f[0].clone()];
        for t in 1..n {
            let mut next = vec![0.0; f[t].len()];
            convolve(&kernels[t - 1], &forward[t - 1], &mut next);
            next.iter_mut().zip(&f[t]).for_each(|(x, f)| *x *= f);
            log_integral += scaled(&mut next)?;
            forward.push(next);
        }
        log_integral += forward[n - 1].iter().sum::<f64>().ln();
        let mut covers = true;
        let mut after = vec![1.0; f[n - 1].len()];
        for t in (0..n).rev() {
            let density = |k: usize| forward[t][k] * after[k];
            let limit = (-FALLEN).exp() * (0..after.len()).map(density).fold(0.0, f64::max);
            covers &= limit > 0.0 && density(0).max(density(after.len() - 1)) <= limit;
            if t > 0 {
                after.iter_mut().zip(&f[t]).for_each(|(x, f)| *x *= f);
                let mut before = vec![0.0; f[t - 1].len()];
                convolve(&kernels[t - 1], &after, &mut before);
                scaled(&mut before)?;
                after = before;
            }
        }
        self.log_forward = f;
        self.log_forward.iter_mut().zip(&forward).for_each(|(to, from)| vector::ln(from, to));
        log_integral.is_finite().then_some((log_integral, covers))
    }

    /// Draws the last state, and then each one given the next.
    fn draw(&self, rng: &mut Stream, z: &mut Batch, energy: &mut [f64]) {
        let mut next = vec![0.0; energy.len()];
        let mut line = Line::default();
        for t in (0..self.latents.len()).rev() {
            let column = z.column_mut(self.latents[t]);
            let side = self.sides[t] as f64;
            let link = self.links.get(t).copied().unwrap_or(0.0);
            let half = 0.5 * link.abs() * self.step * self.step;
            let forward = &self.log_forward[t];
            let band = if t < self.links.len() { self.band(t).max(1) } else { forward.len() };
            let mut u = 0.0;
            for (s, next) in next.iter_mut().enumerate() {
                u = if s % 2 == 0 { rng.random() } else { 1.0 - u };
                // The place of the next state, or of its mirror image, on this grid.
                let to = side + if link < 0.0 { *next } else { -*next } / self.step;
                let first = (to.max(0.0) as usize).saturating_sub(band).min(forward.len() - 2);
                let nodes = forward.iter().enumerate().skip(first).take(2 * band + 2);
                line.log_density.clear();
                line.log_density.extend(nodes.map(|(k, x)| x - half * (k as f64 - to).powi(2)));
                let (at, log_q) = line.quantile(u);
                *next = (first as f64 + at - side) * self.step;
                column[s] += *next;
                energy[s] += self.step.ln() - log_q;
            }
        }
    }
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(f64::NEG_INFINITY, |top, x| if *x > top { *x } else { top })
}

/// Divides numbers by their largest, and returns its log. `None` if one is not finite.
fn scaled(x: &mut [f64]) -> Option<f64> {
    let top = largest(x);
    x.iter_mut().for_each(|x| *x /= top);
    Some(top.ln()).filter(|top| top.is_finite() && x.iter().all(|x| x.is_finite()))
}

/// The sums of these numbers times the kernel at their distances from each node, or from its mirror image. The nodes are around the same
/// middle.
fn convolve((kernel, is_same_sign): &(Vec<f64>, bool), x: &[f64], out: &mut [f64]) {
    let (band, last) = (kernel.len() / 2, out.len() - 1);
    for (j, out) in out.iter_mut().enumerate() {
        // The place of this node among the numbers, which begin at `last / 2`.
        let at = x.len() / 2 + if *is_same_sign { j } else { last - j };
        let from = at.saturating_sub(band).max(last / 2);
        let to = (at + band + 1).min(last / 2 + x.len());
        let is_within = from < to;
        *out = if is_within {
            dot(&kernel[from + band - at..to + band - at], &x[from - last / 2..to - last / 2])
        } else {
            0.0
        };
    }
}

/// A density on nodes at distances of 1, between which its log is linear.
#[derive(Default)]
struct Line {
    log_density: Vec<f64>,
    density: Vec<f64>,
    below: Vec<f64>,
}

impl Line {
    /// The place with this share of the mass below it, and the log density there.
    fn quantile(&mut self, u: f64) -> (f64, f64) {
        let Self { log_density, density, below } = self;
        let top = largest(log_density);
        let matters = |x: &f64| *x > top - NEGLIGIBLE;
        let first = log_density.iter().position(matters).unwrap_or(0);
        let last = log_density.iter().rposition(matters).unwrap_or(0).max(first + 1).min(log_density.len() - 1);
        let first = first.min(last - 1);
        let log_density = &log_density[first..=last];
        below.clear();
        below.extend(log_density.iter().map(|x| x - top));
        density.resize(log_density.len(), 0.0);
        vector::exp(below, density);
        below.clear();
        below.push(0.0);
        let mut total = 0.0;
        for k in 1..density.len() {
            let (rise, mean) = (log_density[k] - log_density[k - 1], 0.5 * (density[k] + density[k - 1]));
            total += match rise.abs() {
                rise if rise < 1e-4 => mean,
                rise if rise.is_finite() => (density[k] - density[k - 1]).abs() / rise,
                _ => 0.0,
            };
            below.push(total);
        }
        let mass = u * total;
        let k = below.partition_point(|x| *x <= mass).clamp(1, density.len() - 1) - 1;
        let (a, b) = (log_density[k] - top, log_density[k + 1] - top);
        let t = place(a, b, [mass - below[k], below[k + 1] - mass]);
        ((first + k) as f64 + t, a + t * (b - a) - total.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sparse_curvature::SparseCurvature;
    use super::super::test_models::{Coupled, of_normal};
    use super::*;
    use crate::model::Model;
    use hyperprior_math::random::stream;

    /// The chains of all latents but the first few, with the first at these values, and draws with their log weights.
    fn drawn(model: &Coupled, theta: &[f64], len: usize) -> (f64, Batch, Vec<f64>) {
        let n = model.latents().len();
        let (first, others): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| *i < theta.len());
        let curvature = SparseCurvature::of_few(model, &others).expect("a curvature");
        let parts = Parts::at(model, (first, others), curvature, vec![0.0; n]);
        let one = parts.conditionals(&[theta.to_vec()]).expect("no fault").remove(0).expect("a mode");
        let paths = paths_of(&parts).expect("chains");
        let chains = ConditionalChains::new(&parts, &one, &paths).expect("no fault").expect("covered");
        let (mut z, mut log_weights, mut energy) = (Batch::zeros(n, len), vec![0.0; len], vec![0.0; len]);
        (0..n).for_each(|i| z.column_mut(i).fill(one.point[i]));
        chains.draw(&mut stream(1, 0, 0, 0), &mut z, &mut energy);
        model.log_joint(&z, &mut log_weights).expect("no fault");
        let log_integral = one.log_p + chains.log_integral;
        log_weights.iter_mut().zip(energy).for_each(|(w, energy)| *w += energy - log_integral);
        (log_integral, z, log_weights)
    }

    fn moments(x: &[f64]) -> (f64, f64) {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64)
    }

    /// Catches a wrong constant, a wrong kernel and a wrong density of the draws: three log rates, against sums over all three.
    #[test]
    fn a_chain_is_integrated_out() {
        let walk = Coupled::walk(3);
        let (log_integral, z, log_weights) = drawn(&walk, &[0.7], 20_000);
        let (step, side) = (0.2, 50);
        let at = |k: usize| step * (k as f64 - f64::from(side) * 0.7);
        let all: Vec<[f64; 3]> = (0..75_usize.pow(3)).map(|k| [at(k % 75), at(k / 75 % 75), at(k / 75 / 75)]).collect();
        let mut points = Batch::zeros(4, all.len());
        points.column_mut(0).fill(0.7);
        for (k, x) in all.iter().enumerate() {
            (0..3).for_each(|i| points.set(i + 1, k, x[i]));
        }
        let mut log_p = vec![0.0; all.len()];
        walk.log_joint(&points, &mut log_p).expect("no fault");
        let sum = |f: &dyn Fn(&[f64; 3]) -> f64| -> f64 {
            all.iter().zip(&log_p).map(|(x, log_p)| (log_p - log_integral).exp() * f(x) * step.powi(3)).sum()
        };
        assert!(sum(&|_| 1.0).ln().abs() < 1e-4, "{}", sum(&|_| 1.0).ln());
        let means = [0, 1, 2].map(|i| sum(&|x| x[i]));
        for i in 0..3 {
            let (mean, (own, own_variance)) = (means[i], moments(z.column(i + 1)));
            let variance = sum(&|x| (x[i] - mean).powi(2));
            assert!((own - mean).abs() < 0.03 * variance.sqrt(), "{own} {mean}");
            assert!((own_variance / variance - 1.0).abs() < 0.05, "{own_variance} {variance}");
        }
        assert!(log_weights.iter().all(|w| w.abs() < 0.2) && moments(&log_weights).1 < 1e-3, "{log_weights:?}");
        // Neighbours depend on each other.
        let expected = sum(&|x| (x[0] - means[0]) * (x[1] - means[1]));
        let product = |s: usize| (z.get(1, s) - means[0]) * (z.get(2, s) - means[1]);
        let own = (0..20_000).map(product).sum::<f64>() / 20_000.0;
        assert!((own / expected - 1.0).abs() < 0.1, "{own} {expected}");
    }

    /// Catches a wrong sign of the kernel: two that are negatively correlated.
    #[test]
    fn neighbours_may_have_opposite_signs() {
        let (exact, (mean, variance)) = of_normal(2);
        let (log_integral, z, log_weights) = drawn(&Coupled::normal(2), &[], 20_000);
        assert!((log_integral - exact).abs() < 1e-6, "{log_integral} {exact}");
        let (own, own_variance) = moments(z.column(1));
        assert!((own - mean).abs() < 0.02 && (own_variance / variance - 1.0).abs() < 0.05, "{own} {own_variance}");
        assert!(log_weights.iter().all(|w| w.abs() < 0.1));
    }

    /// Catches a kernel that is cut off where a state's own terms rise: a state that varies much less given its neighbour than by itself.
    #[test]
    fn a_steep_regression_is_covered() {
        let (log_integral, z, log_weights) = drawn(&Coupled::steep(), &[], 20_000);
        assert!((log_integral - (2.0 * std::f64::consts::PI).ln()).abs() < 1e-4, "{log_integral}");
        let (mean, variance) = moments(z.column(1));
        assert!(mean.abs() < 0.1 && (variance / 10.0 - 1.0).abs() < 0.05, "{mean} {variance}");
        assert!(log_weights.iter().all(|w| w.abs() < 0.3));
    }

    /// Catches a circle or a branch that is taken for a chain, and members out of order.
    #[test]
    fn chains_have_two_ends() {
        let found = paths(5, [(7, [3, 1]), (8, [1, 4])].into_iter()).expect("chains");
        let path = |members: &[usize], links: &[usize]| Path { members: members.to_vec(), links: links.to_vec() };
        assert_eq!(found, [path(&[0], &[]), path(&[2], &[]), path(&[3, 1, 4], &[7, 8])]);
        assert_eq!(paths(3, [(0, [0, 1]), (1, [1, 2]), (2, [2, 0])].into_iter()), None);
        assert_eq!(paths(4, [(0, [0, 1]), (1, [0, 2]), (2, [0, 3])].into_iter()), None);
    }
}
