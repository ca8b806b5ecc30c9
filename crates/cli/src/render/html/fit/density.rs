//! The shape of a scalar's posterior: a smoothed density, or the probability of each value.

use hyperprior::posterior::Kind;
use std::collections::BTreeMap;

/// Points of a density.
pub const POINTS: usize = 40;
/// If a discrete variable has a wider range of values than this, each bar covers several values.
const BARS_MAX: f64 = 40.0;
/// Cells for binning the draws before smoothing.
const CELLS: usize = 256;
/// The share of the draws outside the plot on either side.
const OUTSIDE: f64 = 0.0025;
/// Heights are encoded as one of these letters.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A scalar's draws, sorted.
pub struct Sorted {
    values: Vec<f64>,
    pub kind: Kind,
}

impl Sorted {
    /// Sorts the draws; `None` unless all are finite.
    pub fn new(draws: &[f64], kind: Kind) -> Option<Self> {
        // The limit keeps differences representable.
        if draws.is_empty() || !draws.iter().all(|x| x.abs() < 1e150) {
            return None;
        }
        let mut values = draws.to_vec();
        values.sort_by(f64::total_cmp);
        Some(Self { values, kind })
    }

    fn quantile(&self, p: f64) -> f64 {
        let place = p * (self.values.len() - 1) as f64;
        let (below, share) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(self.values.len() - 1);
        self.values[below] + share * (self.values[above] - self.values[below])
    }

    /// The range shown: nearly all draws of a continuous variable, all draws of a discrete one.
    pub fn range(&self) -> (f64, f64) {
        match self.kind {
            Kind::Discrete => (self.quantile(0.0), self.quantile(1.0)),
            Kind::Continuous => (self.quantile(OUTSIDE), self.quantile(1.0 - OUTSIDE)),
        }
    }

    /// Silverman's bandwidth, from the smaller of two measures of spread, so that outliers do not oversmooth.
    fn bandwidth(&self) -> f64 {
        let len = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / len;
        let sd = (self.values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / len).sqrt();
        let quartiles = (self.quantile(0.75) - self.quantile(0.25)) / 1.349;
        let spread = if quartiles > 0.0 { sd.min(quartiles) } else { sd };
        0.9 * spread * len.powf(-0.2)
    }

    /// The density at `points` places from `low` to `high`, relative to its largest value.
    pub fn density(&self, (low, high): (f64, f64), points: usize) -> Vec<f64> {
        let step = (high - low) / (points - 1).max(1) as f64;
        let bandwidth = self.bandwidth().max(0.4 * step);
        if !(bandwidth > 0.0) {
            return vec![1.0; points];
        }
        // Bin first: a kernel for every draw would take as long as the fit.
        let (from, to) = (low - 4.0 * bandwidth, high + 4.0 * bandwidth);
        let width = (to - from) / CELLS as f64;
        let mut counts = vec![0.0; CELLS];
        for x in self.values.iter().filter(|x| (from..to).contains(*x)) {
            counts[(((x - from) / width) as usize).min(CELLS - 1)] += 1.0;
        }
        let at = |x: f64| -> f64 {
            let kernel = |(cell, count): (usize, &f64)| {
                let u = (x - from - (cell as f64 + 0.5) * width) / bandwidth;
                count * (-0.5 * u * u).exp()
            };
            counts.iter().enumerate().map(kernel).sum()
        };
        relative((0..points).map(|i| at(low + i as f64 * step)).collect())
    }

    /// The heights of bars from `low` to `high`, relative to the highest; one bar per value if there is space.
    fn bars(&self, (low, high): (f64, f64)) -> Vec<f64> {
        let values = high - low + 1.0;
        let of_bar = (values / BARS_MAX).ceil().max(1.0);
        let mut bars = vec![0.0; (values / of_bar).ceil() as usize];
        let last = bars.len() - 1;
        for x in self.values.iter().filter(|x| (low..=high).contains(*x)) {
            let place = ((x - low) / of_bar) as usize;
            bars[place.min(last)] += 1.0;
        }
        relative(bars)
    }

    /// The shape over a range, a letter for each height.
    pub fn letters(&self, range: (f64, f64)) -> String {
        let heights = match self.kind {
            Kind::Discrete => self.bars(range),
            Kind::Continuous => self.density(range, POINTS),
        };
        let top = LETTERS.len() as f64 - 1.0;
        // Round up, so that anything above 0 is visible.
        let letter = |height: &f64| if *height > 0.0 { (height * top).ceil() } else { 0.0 } as usize;
        heights.iter().map(|height| char::from(LETTERS[letter(height).min(LETTERS.len() - 1)])).collect()
    }
}

fn relative(mut heights: Vec<f64>) -> Vec<f64> {
    let top = heights.iter().copied().fold(0.0, f64::max);
    if top > 0.0 {
        heights.iter_mut().for_each(|height| *height /= top);
    }
    heights
}

/// The most probable values of a discrete variable, as text.
pub fn likeliest(pmf: &BTreeMap<i64, f64>) -> String {
    const SHOWN: usize = 5;
    let mut values: Vec<(&i64, &f64)> = pmf.iter().collect();
    values.sort_by(|a, b| b.1.total_cmp(a.1));
    let mut text: Vec<String> = values.iter().take(SHOWN).map(|(value, p)| format!("{value} ({p:.3})")).collect();
    if values.len() > SHOWN {
        text.push(format!("{} more", values.len() - SHOWN));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::special::normal_quantile;

    /// The quantiles of a normal distribution give its density, with the right mode.
    #[test]
    fn the_density_matches_the_draws() {
        let draws: Vec<f64> = (0..4000).map(|i| 2.0 + 3.0 * normal_quantile((i as f64 + 0.5) / 4000.0)).collect();
        let sorted = Sorted::new(&draws, Kind::Continuous).expect("finite draws");
        let density = sorted.density((-4.0, 8.0), 13);
        for (i, height) in density.iter().enumerate() {
            let u = (i as f64 - 6.0) / 3.0;
            let exact = (-0.5 * u * u).exp();
            assert!((height - exact).abs() < 0.03, "at {u}: {height} for {exact}");
        }
        let letters = sorted.letters(sorted.range());
        // At the edge, 2.81 standard deviations out, the density is .0195 of its largest: the second of 63 steps.
        assert_eq!((letters.len(), &letters[..1]), (POINTS, "C"), "{letters}");
        assert!(letters.contains('/'), "{letters}");
    }

    #[test]
    fn bars_are_probabilities() {
        let draws = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0];
        let sorted = Sorted::new(&draws, Kind::Discrete).expect("finite draws");
        assert_eq!(sorted.bars((0.0, 4.0)), [0.0, 1.0, 0.5, 0.0, 0.5]);
        assert_eq!(sorted.letters((1.0, 4.0)), "/gAg");
        let wide: Vec<f64> = (0..100).map(f64::from).collect();
        let bars = Sorted::new(&wide, Kind::Discrete).expect("finite draws").bars((0.0, 99.0));
        assert_eq!((bars.len(), bars[0], bars[33]), (34, 1.0, 1.0 / 3.0));
    }

    /// Neither a single value nor a non-finite one is an error.
    #[test]
    fn degenerate_draws_have_a_shape_or_none() {
        let sorted = Sorted::new(&[2.0; 9], Kind::Continuous).expect("finite draws");
        assert!(sorted.density((2.0, 2.0), 5).iter().all(|height| *height == 1.0));
        let far = Sorted::new(&[-1e140, 0.0, 1e140], Kind::Discrete).expect("finite draws");
        assert_eq!(far.letters(far.range()).len(), 40);
        assert!(Sorted::new(&[1.0, f64::NAN], Kind::Continuous).is_none());
        assert!(Sorted::new(&[], Kind::Continuous).is_none());
    }

    #[test]
    fn the_likeliest_values_come_first() {
        let pmf = BTreeMap::from([(1, 0.25), (2, 0.5), (7, 0.25)]);
        assert_eq!(likeliest(&pmf), "2 (0.500), 1 (0.250), 7 (0.250)");
    }
}
