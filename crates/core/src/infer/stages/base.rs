//! Where tempering starts: a mixture of simple distributions, wider than the draws and than other places that may have mass.

use crate::diagnostics::convergence::moments;
use crate::model::{Latents, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use hyperprior_math::special::ln_gamma;
use hyperprior_math::vector::log_sum_exp_columns;
use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};
use std::f64::consts::PI;

/// How much wider than the values it is made from a component is: its continuous latents by a factor, and its discrete latents by a share
/// of an even distribution over the whole range.
#[derive(Clone, Copy)]
struct Widening {
    factor: f64,
    even: f64,
}

/// Of the component that covers everything, and of single places.
const OF_ALL: Widening = Widening { factor: 1.5, even: 0.5 };
const OF_PLACE: Widening = Widening { factor: 1.2, even: 0.1 };
/// The longest range of a discrete latent.
const RANGE_MAX: f64 = 1024.0;
/// Places are the same if no latent's means differ by more than this, in standard deviations of the draws, and no standard deviation by
/// more than this factor. No standard deviation is smaller than a share of that of the draws.
const APART: f64 = 1.25;
const SCALE_MIN: f64 = 0.1;
const WIDTHS_APART: f64 = 3.0;
/// How many times the variance of the draws a count has.
const COUNT_WIDER: f64 = 4.0;

/// The distribution of one latent.
enum Factor {
    Normal {
        location: f64,
        scale: f64,
        log_norm: f64,
    },
    /// The log probabilities of integers from `lower` upwards.
    Table {
        lower: f64,
        log_p: Vec<f64>,
    },
    /// A negative binomial count: a Poisson whose rate has a gamma distribution.
    Count {
        mean: f64,
        size: f64,
    },
}

/// Independent latents: the log weight of a component, and its factors.
struct Component {
    log_weight: f64,
    each: Vec<Factor>,
}

/// A mixture of products.
pub(super) struct Base {
    components: Vec<Component>,
}

impl Base {
    /// Half of it is as wide as the draws and all places together, and wider; the rest are the places, each with a component of its own.
    /// Nothing if a latent's range is too long.
    pub(super) fn new(latents: &Latents, u: &Batch, places: &[Batch]) -> Option<Self> {
        let all = |i: usize| -> Vec<&[f64]> {
            std::iter::once(u.column(i)).chain(places.iter().map(|place| place.column(i))).collect()
        };
        let scales: Vec<f64> = (0..latents.len()).map(|i| moments(u.column(i)).1.sqrt().max(SCALE_MIN)).collect();
        let widest = product(latents, (&scales, OF_ALL), all)?;
        let places = distinct(latents, &scales, u, places);
        let half = if places.is_empty() { 0.0 } else { 0.5_f64.ln() };
        let mut components = vec![Component { log_weight: half, each: widest }];
        let log_weight = half - (places.len() as f64).ln();
        for place in places {
            components.push(Component {
                log_weight,
                each: product(latents, (&scales, OF_PLACE), |i| vec![place.column(i)])?,
            });
        }
        Some(Self { components })
    }

    /// out\[k, s\] = the log weight of component k and its log density at draw s.
    fn log_components(&self, u: &Batch) -> Batch {
        let mut out = Batch::zeros(self.components.len(), u.draws_len());
        for (k, component) in self.components.iter().enumerate() {
            let out = out.column_mut(k);
            out.fill(component.log_weight);
            for (i, factor) in component.each.iter().enumerate() {
                factor.add_log_density(u.column(i), out);
            }
        }
        out
    }

    /// out\[s\] = the log density of draw s.
    pub(super) fn log_density(&self, u: &Batch, out: &mut [f64]) {
        log_sum_exp_columns(self.log_components(u).as_slice(), out);
    }

    /// out\[s\] = the log density of draw s, d_u\[i, s\] = its derivative along a continuous latent.
    pub(super) fn log_density_gradient(&self, u: &Batch, out: &mut [f64], d_u: &mut Batch) {
        let of_components = self.log_components(u);
        log_sum_exp_columns(of_components.as_slice(), out);
        d_u.as_mut_slice().fill(0.0);
        for (k, component) in self.components.iter().enumerate() {
            let shares: Vec<f64> = of_components.column(k).iter().zip(&*out).map(|(x, all)| (x - all).exp()).collect();
            for (i, factor) in component.each.iter().enumerate() {
                let Factor::Normal { location, scale, .. } = factor else { continue };
                let precision = 1.0 / (scale * scale);
                for ((d, x), share) in d_u.column_mut(i).iter_mut().zip(u.column(i)).zip(&shares) {
                    *d -= share * precision * (x - location);
                }
            }
        }
    }

    /// out\[v, s\] = the log density of draw s with latent `i` at values\[v\].
    pub(super) fn log_conditional(&self, i: usize, u: &Batch, values: &[f64], out: &mut Batch) {
        let mut without = self.log_components(u);
        let mut own = vec![0.0; u.draws_len()];
        for (k, component) in self.components.iter().enumerate() {
            own.fill(0.0);
            component.each[i].add_log_density(u.column(i), &mut own);
            without.column_mut(k).iter_mut().zip(&own).for_each(|(without, own)| *without -= own);
        }
        let mut of_components = without.clone();
        for (v, value) in values.iter().enumerate() {
            for (k, component) in self.components.iter().enumerate() {
                let mut own = [0.0];
                component.each[i].add_log_density(&[*value], &mut own);
                let columns = of_components.column_mut(k).iter_mut().zip(without.column(k));
                columns.for_each(|(to, without)| *to = without + own[0]);
            }
            log_sum_exp_columns(of_components.as_slice(), out.column_mut(v));
        }
    }

    /// A draw of every latent.
    pub(super) fn draw(&self, rng: &mut Stream, mut to: impl FnMut(usize, f64)) {
        let mut left: f64 = rng.random();
        let drawn = self.components.iter().find(|component| {
            left -= component.log_weight.exp();
            left < 0.0
        });
        let component = drawn.unwrap_or(&self.components[0]);
        component.each.iter().enumerate().for_each(|(i, factor)| to(i, factor.draw(rng)));
    }
}

/// The places that differ from the draws and from those before them.
fn distinct<'a>(latents: &Latents, scales: &[f64], u: &'a Batch, places: &'a [Batch]) -> Vec<&'a Batch> {
    let differ = |a: &Batch, b: &Batch| {
        (0..latents.len()).any(|i| {
            let [(mean, variance), (other, as_wide)] = [a, b].map(|place| moments(place.column(i)));
            let [variance, as_wide] = [variance, as_wide].map(|variance| variance.max((SCALE_MIN * scales[i]).powi(2)));
            let ratio = (variance / as_wide).max(as_wide / variance);
            let has_other_width = !latents.support(i).is_discrete() && ratio > WIDTHS_APART * WIDTHS_APART;
            (mean - other).abs() > APART * scales[i] || has_other_width
        })
    };
    let mut kept: Vec<&Batch> = vec![u];
    for place in places {
        if kept.iter().all(|other| differ(place, other)) {
            kept.push(place);
        }
    }
    kept.split_off(1)
}

/// The factors of a component that covers these groups of values of each latent.
fn product<'a>(
    latents: &Latents,
    (scales, wider): (&[f64], Widening),
    groups: impl Fn(usize) -> Vec<&'a [f64]>,
) -> Option<Vec<Factor>> {
    (0..latents.len()).map(|i| Factor::new(latents.support(i), (SCALE_MIN * scales[i], wider), &groups(i))).collect()
}

impl Factor {
    /// As wide as these groups of values together, each with the same weight, and wider. Nothing if the range is too long.
    fn new(support: Support, (least_scale, wider): (f64, Widening), groups: &[&[f64]]) -> Option<Self> {
        let even = |f: &dyn Fn(f64, f64) -> f64| {
            let of = |group: &&[f64]| {
                let (mean, variance) = moments(group);
                f(mean, variance)
            };
            groups.iter().map(of).sum::<f64>() / groups.len() as f64
        };
        let mean = even(&|mean, _| mean);
        // The first group are the draws, if there are several.
        let least = groups.first().map_or(0.0, |group| moments(group).1);
        let variance = even(&|other, variance| variance + (other - mean).powi(2)).max(least);
        match support {
            Support::Integers { lower, upper } if upper - lower < RANGE_MAX => {
                Some(table(lower, upper, groups, wider.even))
            }
            Support::Integers { .. } => None,
            Support::Counts => {
                let mean = mean + 0.5;
                let variance = COUNT_WIDER * variance.max(mean);
                Some(Self::Count { mean, size: mean * mean / (variance - mean) })
            }
            _ => {
                let scale = wider.factor * variance.sqrt().max(least_scale);
                Some(Self::Normal { location: mean, scale, log_norm: -0.5 * (2.0 * PI).ln() - scale.ln() })
            }
        }
    }

    /// Adds the log probability or density of each value.
    fn add_log_density(&self, x: &[f64], out: &mut [f64]) {
        let each = out.iter_mut().zip(x);
        match self {
            Self::Normal { location, scale, log_norm } => {
                let half_precision = 0.5 / (scale * scale);
                each.for_each(|(out, x)| *out += log_norm - half_precision * (x - location) * (x - location));
            }
            Self::Table { lower, log_p } => each.for_each(|(out, x)| {
                let at = x - lower;
                *out += if at >= 0.0 && at < log_p.len() as f64 { log_p[at as usize] } else { f64::NEG_INFINITY };
            }),
            Self::Count { mean, size } => {
                let (stop, go) = ((size / (size + mean)).ln(), (mean / (size + mean)).ln());
                each.for_each(|(out, x)| {
                    *out += ln_gamma(x + size) - ln_gamma(*size) - ln_gamma(x + 1.0) + size * stop + x * go;
                });
            }
        }
    }

    fn draw(&self, rng: &mut Stream) -> f64 {
        match self {
            Self::Normal { location, scale, .. } => {
                let normal: f64 = StandardNormal.sample(rng);
                location + scale * normal
            }
            Self::Table { lower, log_p } => {
                let mut left: f64 = rng.random();
                let at = log_p.iter().position(|log_p| {
                    left -= log_p.exp();
                    left < 0.0
                });
                lower + at.unwrap_or(log_p.len() - 1) as f64
            }
            Self::Count { mean, size } => {
                let rate = Gamma::new(*size, mean / size).map_or(*mean, |gamma| gamma.sample(rng));
                Poisson::new(rate.max(1e-12)).map_or(0.0, |poisson| poisson.sample(rng))
            }
        }
    }
}

/// The shares of values, made more even.
fn table(lower: f64, upper: f64, columns: &[&[f64]], even: f64) -> Factor {
    let len = (upper - lower) as usize + 1;
    let mut shares = vec![even / len as f64; len];
    for column in columns {
        let each = (1.0 - even) / (columns.len() * column.len()) as f64;
        for x in *column {
            shares[((x - lower).max(0.0) as usize).min(len - 1)] += each;
        }
    }
    Factor::Table { lower, log_p: shares.into_iter().map(f64::ln).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use hyperprior_testkit::mean::assert_mean;

    fn base() -> Base {
        let latents = Latents::new()
            .scalar("x", Support::Real)
            .and_then(|l| l.scalar("k", Support::Integers { lower: 2.0, upper: 4.0 }))
            .and_then(|l| l.scalar("n", Support::Counts))
            .unwrap();
        let u = Batch::from_columns(vec![1.0, 3.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 0.0, 7.0, 4.0, 1.0], 4);
        let place = Batch::from_columns(vec![8.0, 9.0, 3.0, 4.0, 2.0, 12.0], 2);
        Base::new(&latents, &u, &[place]).unwrap()
    }

    /// The marginal density of a latent.
    fn density(base: &Base, i: usize, x: f64) -> f64 {
        let of = |component: &Component| {
            let mut log_density = [component.log_weight];
            component.each[i].add_log_density(&[x], &mut log_density);
            log_density[0].exp()
        };
        base.components.iter().map(of).sum()
    }

    /// Catches a density that is not that of the draws, latent by latent.
    #[test]
    fn draws_follow_the_density() {
        let base = base();
        let mut columns = vec![Vec::new(); 3];
        for s in 0..200_000 {
            base.draw(&mut stream(3, 0, 0, s), |i, x| columns[i].push(x));
        }
        let share = |i: usize, f: &dyn Fn(f64) -> bool| -> Vec<f64> {
            columns[i].iter().map(|x| f64::from(u8::from(f(*x)))).collect()
        };
        for (i, values) in [(1, [2.0, 3.0, 4.0]), (2, [0.0, 3.0, 12.0])] {
            values.iter().for_each(|x| assert_mean(&share(i, &|y| y == *x), density(&base, i, *x), 0.01));
        }
        for end in [-6.0, 0.0, 2.0, 8.0] {
            let middle = |k: i32| end - 2.0 + (f64::from(k) + 0.5) * 1e-3;
            let mass: f64 = (0..2000).map(|k| density(&base, 0, middle(k)) * 1e-3).sum();
            assert_mean(&share(0, &|x| (end - 2.0..end).contains(&x)), mass, 0.01);
        }
    }

    #[test]
    fn values_outside_the_range_are_impossible() {
        assert_eq!([1.0, 5.0].map(|x| density(&base(), 1, x)), [0.0, 0.0]);
    }
}
