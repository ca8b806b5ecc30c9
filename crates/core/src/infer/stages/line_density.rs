//! A density on a line, known at nodes that are added where they matter, and log-linear between them: adaptive quadrature that can be drawn
//! from. Several modes, jumps and long tails are found as far as the first nodes give a hint of them.

use super::log_linear::{mass, place};

/// The distances of the first nodes from the guess of the middle, in units of the guess of the scale.
const FIRST: [f64; 19] =
    [0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 512.0, 1e4, 1e6];
/// The share of the mass in the last cell on each side, and the most nats between a node and the highest that count.
const BEYOND: f64 = 1e-7;
const FLOOR: f64 = 45.0;
/// The share of the mass that there may be where the density is not known.
const UNKNOWN: f64 = 1e-3;
/// The most nodes, and the farthest node in units of the guess of the scale.
const NODES_MAX: usize = 2000;
const FARTHEST: f64 = 1e9;

/// The density, not normalised.
#[derive(Clone, Debug)]
pub(super) struct LineDensity {
    middle: f64,
    scale: f64,
    /// A cell is split if its share of the mass, times the relative error, is larger.
    tolerance: f64,
    /// The nodes from left to right, with the log density there.
    nodes: Vec<(f64, f64)>,
}

/// What a density needs.
pub(super) enum Wanted {
    /// The log density at these nodes.
    Nodes(Vec<f64>),
    Nothing,
    /// It cannot be covered: a tail does not end, or it takes too many nodes.
    Other,
}

impl LineDensity {
    /// A density without nodes.
    pub(super) fn new(middle: f64, scale: f64, tolerance: f64) -> Self {
        Self { middle, scale, tolerance, nodes: Vec::new() }
    }

    /// The first nodes: around the guess of the middle, and where the density is known to be large.
    pub(super) fn first(&self, known: &[f64]) -> Vec<f64> {
        let around = |t: &f64| [self.middle - t * self.scale, self.middle + t * self.scale];
        let mut first: Vec<f64> = FIRST.iter().flat_map(around).chain(known.iter().copied()).collect();
        first.retain(|x| x.is_finite());
        first.sort_by(f64::total_cmp);
        first.dedup();
        first
    }

    /// Adds nodes. Where the log density is not a number, it is not known.
    pub(super) fn add(&mut self, found: impl Iterator<Item = (f64, f64)>) {
        self.nodes.extend(found);
        self.nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.nodes.dedup_by(|a, b| a.0 == b.0);
    }

    /// The highest node.
    pub(super) fn best(&self) -> f64 {
        self.nodes.iter().copied().fold((self.middle, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a }).0
    }

    fn top(&self) -> f64 {
        self.nodes.iter().map(|node| node.1).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The log density at the nodes relative to the highest, but not less than the floor; and the masses of the cells.
    fn cells(&self) -> (Vec<f64>, Vec<f64>) {
        let top = self.top();
        // Not a number counts as the floor.
        let heights: Vec<f64> = self.nodes.iter().map(|node| (node.1 - top).max(-FLOOR)).collect();
        let width = |k: usize| self.nodes[k + 1].0 - self.nodes[k].0;
        let masses = (0..heights.len() - 1).map(|k| width(k) * mass(heights[k], heights[k + 1])).collect();
        (heights, masses)
    }

    /// The nodes that are wanted next.
    pub(super) fn wanted(&self) -> Wanted {
        let top = self.top();
        if top == f64::NEG_INFINITY {
            // Nowhere, or not known.
            return if self.nodes.iter().any(|node| node.1.is_nan()) { Wanted::Other } else { Wanted::Nothing };
        }
        if top == f64::INFINITY || !(3..=NODES_MAX).contains(&self.nodes.len()) {
            return Wanted::Other;
        }
        let (heights, masses) = self.cells();
        let (total, last) = (masses.iter().sum::<f64>(), self.nodes.len() - 1);
        let mut wanted = Vec::new();
        for (end, next) in [(0, 1), (last, last - 1)] {
            // Without the floor. The cells beyond would each be twice as wide.
            let (width, heights) = (self.nodes[end].0 - self.nodes[next].0, [end, next].map(|k| self.nodes[k].1 - top));
            if width.abs() * mass(heights[0], heights[1]) > BEYOND * total || heights[0] > heights[1] {
                wanted.push(self.middle + 2.0 * (self.nodes[end].0 - self.middle));
            }
        }
        if wanted.iter().any(|x| (x - self.middle).abs() > FARTHEST * self.scale) {
            return Wanted::Other;
        }
        let width = |k: usize| self.nodes[k + 1].0 - self.nodes[k].0;
        let slope = |k: usize| (heights[k + 1] - heights[k]) / width(k);
        // The second derivative at a node inside.
        let bend = |k: usize| {
            if k == 0 || k == last { 0.0 } else { 2.0 * (slope(k) - slope(k - 1)).abs() / (width(k) + width(k - 1)) }
        };
        for (k, chord) in masses.iter().enumerate() {
            // The mean error of a line through two points of a parabola; at a jump, all that may be above the line.
            let error = bend(k).max(bend(k + 1)) * width(k).powi(2) / 12.0;
            let above = width(k) * heights[k].max(heights[k + 1]).exp() - chord;
            let error = (chord * -(-error).exp_m1()).max((chord * error.exp_m1()).min(above));
            let (a, b) = (self.nodes[k].0, self.nodes[k + 1].0);
            let middle = a + 0.5 * (b - a);
            let is_wanted = error > self.tolerance * total || self.hidden(k, top) - chord > self.tolerance * total;
            if is_wanted && a < middle && middle < b {
                wanted.push(middle);
            }
        }
        match wanted.is_empty() {
            true if self.is_unknown(&heights, total) => Wanted::Other,
            true => Wanted::Nothing,
            false => Wanted::Nodes(wanted),
        }
    }

    /// Whether the density is not known where there may be mass, judged by the slope of the cell before.
    fn is_unknown(&self, heights: &[f64], total: f64) -> bool {
        let last = heights.len() - 1;
        let is_known = |k: usize| !self.nodes[k].1.is_nan();
        let beyond = |known: usize, before: Option<usize>| {
            let before = before.filter(|k| is_known(*k));
            let fall =
                before.map_or(0.0, |k| (heights[k] - heights[known]) / (self.nodes[k].0 - self.nodes[known].0).abs());
            // Without a fall there is no limit.
            heights[known] > -FLOOR && heights[known].exp() / fall.max(0.0) > UNKNOWN * total
        };
        (0..=last).filter(|k| !is_known(*k)).any(|k| {
            let left = (1..=last).contains(&k) && is_known(k - 1) && beyond(k - 1, k.checked_sub(2));
            let right = k < last && is_known(k + 1) && beyond(k + 1, (k + 2 <= last).then_some(k + 2));
            left || right
        })
    }

    /// The mass that a cell may have, relative to the highest node, judged by the cells next to it. The flanks of a narrow mode are low where
    /// no node is near it, but they are steep. If the density is log-concave there, it is below the lines through the two nodes on either
    /// side. If it is not, as in a valley between two modes, it may still rise like one of these lines.
    fn hidden(&self, k: usize, top: f64) -> f64 {
        let last = self.nodes.len() - 1;
        let width = |k: usize| self.nodes[k + 1].0 - self.nodes[k].0;
        let flank = |k: usize| (self.nodes[k + 1].1 - self.nodes[k].1) / width(k);
        let (a, b, width) = (self.nodes[k].1 - top, self.nodes[k + 1].1 - top, width(k));
        let from_left = (k > 0).then(|| flank(k - 1) * width);
        let from_right = (k + 1 < last).then(|| flank(k + 1) * width);
        let is_convex = |j: usize| flank(j) > flank(j - 1);
        let near = k.saturating_sub(1).max(1)..(k + 3).min(last);
        let alone = if from_left.is_none() || from_right.is_none() || near.into_iter().any(is_convex) {
            let left = from_left.map_or(0.0, |slope| mass(a, a + slope));
            let right = from_right.map_or(0.0, |slope| mass(b, b - slope));
            // Not a number where there is no density next to the cell.
            left.max(right)
        } else {
            0.0
        };
        let both = match (from_left, from_right) {
            (Some(left), Some(right)) => hull([a, b], [left, right]),
            _ => 0.0,
        };
        width * alone.max(both)
    }

    /// The log of the integral.
    pub(super) fn log_integral(&self) -> f64 {
        let top = self.top();
        if top == f64::NEG_INFINITY { top } else { top + self.cells().1.iter().sum::<f64>().ln() }
    }

    /// The distribution; `None` if the density is 0 at all nodes.
    pub(super) fn normalised(&self) -> Option<LineDistribution> {
        if self.top() == f64::NEG_INFINITY {
            return None;
        }
        let (mut heights, masses) = self.cells();
        let total: f64 = masses.iter().sum();
        let mut below = vec![0.0];
        below.extend(masses.iter().scan(0.0, |sum, mass| {
            *sum += mass / total;
            Some(*sum)
        }));
        heights.iter_mut().for_each(|x| *x -= total.ln());
        Some(LineDistribution { nodes: self.nodes.iter().map(|node| node.0).collect(), heights, below })
    }
}

/// ∫ exp of the lower of two lines over the unit interval: one from the left end, one from the right end, with these slopes.
fn hull([a, b]: [f64; 2], [from_left, from_right]: [f64; 2]) -> f64 {
    // The lines meet where a + from_left t = b − from_right (1 − t).
    let t = (b - from_right - a) / (from_left - from_right);
    if from_left > from_right && (0.0..1.0).contains(&t) {
        let peak = a + from_left * t;
        return t * mass(a, peak) + (1.0 - t) * mass(peak, b);
    }
    0.0
}

/// A distribution whose density is log-linear between nodes.
#[derive(Clone, Debug)]
pub(super) struct LineDistribution {
    nodes: Vec<f64>,
    /// The log density at the nodes.
    heights: Vec<f64>,
    /// The distribution function there.
    below: Vec<f64>,
}

impl LineDistribution {
    /// The log density.
    pub(super) fn log_density(&self, x: f64) -> f64 {
        let k = self.nodes.partition_point(|node| *node <= x);
        if k == 0 || k == self.nodes.len() {
            return f64::NEG_INFINITY;
        }
        let t = (x - self.nodes[k - 1]) / (self.nodes[k] - self.nodes[k - 1]);
        self.heights[k - 1] + t * (self.heights[k] - self.heights[k - 1])
    }

    /// The quantile, and the log density there.
    pub(super) fn quantile(&self, p: f64) -> (f64, f64) {
        let k = self.below.partition_point(|below| *below <= p).clamp(1, self.nodes.len() - 1) - 1;
        let (a, b, width) = (self.heights[k], self.heights[k + 1], self.nodes[k + 1] - self.nodes[k]);
        let t = place(a, b, [(p - self.below[k]) / width, (self.below[k + 1] - p) / width]);
        (self.nodes[k] + t * width, a + t * (b - a))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;

    /// The density with these nodes added until nothing is wanted, and how many evaluations that took; `None` if it cannot be covered.
    fn refined(log_p: impl Fn(f64) -> f64, known: &[f64]) -> Option<(LineDensity, usize)> {
        let mut density = LineDensity::new(0.0, 1.0, 2e-5);
        density.add(density.first(known).into_iter().map(|x| (x, log_p(x))));
        loop {
            match density.wanted() {
                Wanted::Nodes(nodes) => density.add(nodes.into_iter().map(|x| (x, log_p(x)))),
                Wanted::Nothing => return Some((density.clone(), density.nodes.len())),
                Wanted::Other => return None,
            }
        }
    }

    const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_7;

    /// Catches a wrong rule for splits and a wrong middle: normal densities far from the guess, of other widths, and with jumps.
    #[test]
    fn integrals_are_exact_wherever_the_density_is() {
        for (mean, sd) in [(0.0, 1.0), (0.4, 0.01), (-30.0, 0.2), (1000.0, 50.0), (2.0, 1e-4)] {
            let normal = |x: f64| 3.0 - 0.5 * ((x - mean) / sd).powi(2) - sd.ln() - HALF_LN_2_PI;
            let (density, nodes) = refined(normal, &[]).unwrap();
            assert!((density.log_integral() - 3.0).abs() < 2e-3 && nodes < 250, "{mean} {sd}: {nodes}");
        }
        // Uniform on [1, 1.3] over a low background.
        let step = |x: f64| if (1.0..1.3).contains(&x) { 0.0 } else { -4.0 - 0.5 * x * x };
        let (density, nodes) = refined(step, &[]).unwrap();
        let background = (2.0 * std::f64::consts::PI).sqrt() - 0.3 * (-0.66_f64).exp();
        let exact = (0.3 + (-4.0_f64).exp() * background).ln();
        assert!((density.log_integral() - exact).abs() < 1e-3 && nodes < 300, "{nodes}");
        // A narrow mode that only its place gives away.
        let two = |x: f64| {
            let part = |mean: f64, sd: f64| (-0.5 * ((x - mean) / sd).powi(2)).exp() / sd;
            (0.5 * part(0.0, 1.0) + 0.5 * part(20.2, 1e-3)).max(1e-300).ln() - HALF_LN_2_PI
        };
        assert!((refined(two, &[20.2]).unwrap().0.log_integral()).abs() < 2e-3);
        // Two narrow modes between the first nodes, of which the flanks are all that can be seen.
        for (at, middle) in
            [(0.41, 0.0), (0.73, 0.0), (1.23, 0.0), (5.1, 0.0), (0.41, 0.13), (0.73, -0.41), (1.23, 0.71)]
        {
            let wells = |x: f64| -0.5 * (((x - middle).powi(2) - at * at) / 0.005).powi(2);
            let exact = (2.0 * 0.005 / (2.0 * at)).ln() + HALF_LN_2_PI;
            let found = refined(wells, &[]).unwrap().0.log_integral();
            assert!((found - exact).abs() < 5e-3, "{at}: {found} {exact}");
        }
        // Modes of which one is found first, at any distance; and at a place between nodes.
        let pair = |x: f64, at: [f64; 2], sd: f64| {
            let logs = at.map(|at| -0.5 * ((x - at) / sd).powi(2) - sd.ln() - HALF_LN_2_PI - 2.0_f64.ln());
            logs[0].max(logs[1]) + (-(logs[0] - logs[1]).abs()).exp().ln_1p()
        };
        for far in [9.0, 56.0, 70.0, 80.0, 100.0] {
            let found = refined(|x| pair(x, [0.0, far], 1.0), &[]).unwrap().0.log_integral();
            assert!(found.abs() < 5e-3, "{far}: {found}");
        }
        for k in 0..60 {
            let at = [0.37 * f64::from(k) % 3.1 - 1.5, 0.53 * f64::from(k) % 2.9 - 1.4];
            for sd in [0.02, 0.001] {
                let found = refined(|x| pair(x, at, sd), &[]).unwrap().0.log_integral();
                assert!(found.abs() < 5e-3, "{at:?} {sd}: {found}");
            }
        }
        // A small part that is a hundred thousand times as wide.
        let slab =
            |x: f64| ((0.99 * (-0.5 * x * x).exp()) + 1e-8 * (-0.5 * (x * 1e-6).powi(2)).exp()).ln() - HALF_LN_2_PI;
        assert!(refined(slab, &[]).unwrap().0.log_integral().abs() < 2e-3);
        // A density that is not known where it is high.
        assert!(refined(|x| if x > 1.0 { f64::NAN } else { -0.5 * x * x }, &[]).is_none());
        assert!(refined(|x| if x > 9.0 { f64::NAN } else { -0.5 * x * x }, &[]).is_some());
        // Beyond 2.5 there is 0.6 % of the mass, beyond 4.5 hardly any, and in a gap it may be large.
        assert!(refined(|x| if x > 2.5 { f64::NAN } else { -0.5 * x * x }, &[]).is_none());
        assert!(refined(|x| if x > 4.5 { f64::NAN } else { -0.5 * x * x }, &[]).is_some());
        assert!(refined(|x| if (-1.2..0.8).contains(&x) { f64::NAN } else { -0.5 * x * x }, &[]).is_none());
        // Long tails, and one that does not end.
        let cauchy = |x: f64| -(x * x).ln_1p() - std::f64::consts::PI.ln();
        assert!(refined(cauchy, &[]).unwrap().0.log_integral().abs() < 2e-3);
        assert!(refined(|x| -(x * x).ln_1p().sqrt(), &[]).is_none());
    }

    /// Catches quantiles of the wrong cell and densities of the wrong scale: the quantiles of a mixture are where its distribution function
    /// says, and the weights against its density are nearly 1.
    #[test]
    fn quantiles_are_those_of_the_density() {
        let logistic = |x: f64, at: f64, scale: f64| {
            let t = (x - at) / scale;
            (1.0 / (1.0 + (-t).exp()), (-t.abs()).exp() / ((1.0 + (-t.abs()).exp()).powi(2) * scale))
        };
        let both = |x: f64| (logistic(x, -3.0, 0.5), logistic(x, 4.0, 0.1));
        let log_p = |x: f64| {
            let (a, b) = both(x);
            7.0 + (0.3 * a.1 + 0.7 * b.1).ln()
        };
        let (density, _) = refined(log_p, &[]).unwrap();
        let distribution = density.normalised().unwrap();
        for k in 0..1000 {
            let p = (f64::from(k) + 0.5) / 1000.0;
            let (x, log_q) = distribution.quantile(p);
            let (a, b) = both(x);
            assert!((0.3 * a.0 + 0.7 * b.0 - p).abs() < 1e-3, "{p}: {x}");
            assert!((log_p(x) - 7.0 - log_q).abs() < 0.02, "{p}: {x}");
            assert!((distribution.log_density(x) - log_q).abs() < 1e-9, "{p}: {x}");
        }
    }
}
