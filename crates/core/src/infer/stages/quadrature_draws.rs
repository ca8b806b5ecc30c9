//! Draws of posteriors by adaptive quadrature, with importance weights.

use super::adaptive_importance::{Kernels, Proposal, effective, tempered};
use super::line_density::{LineDensity, LineDistribution};
use super::nested_laplace::{Nested, wider};
use super::quadrature::{DRAWN, KEPT, LEARNT, LINES_MAX, Quadrature, Seen};
use crate::diagnostics::psis::psis;
use crate::error::Result;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, stream};
use hyperprior_math::special::log_sum_exp;
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

/// The most rounds in which the distribution of θ is learnt, the share of the values that must be effective then, and how often the kernels
/// are improved.
const LEARNING_ROUNDS: u64 = 10;
const EVEN: f64 = 0.2;
const ATTEMPTS: u64 = 4;
/// The number of the random streams of values of θ that are kept, and of levels.
const KEPT_STREAM: u64 = 100;
const LEVELS_STREAM: u64 = 200;
/// The draws at which the density is compared, with at most one θ and with more; by how many nats the posterior may be higher, on lines and
/// with importance sampling, whose density is not as close; and at how many draws.
const CHECKED: [usize; 2] = [512, 64];
const HIGHER: [f64; 2] = [1.0, 4.0];
const HIGHER_MAX: usize = 2;
/// The nats below the highest point, but for one for each latent, at which there is no mass.
const NEGLIGIBLE: f64 = 40.0;

/// Draws, if they cover the posterior.
pub(in crate::infer) enum Drawn {
    Draws(Nested),
    /// These points are not covered.
    Missed(Vec<Vec<f64>>),
    /// Some latents cannot be integrated out.
    Failed,
}

/// A point with a value of θ, or that value, and the log density from which it was drawn.
type Valued = (Vec<f64>, f64);

/// The distribution from which θ is drawn: of the first of one or two, or of all.
enum Outer {
    /// There is no θ: the others have these densities.
    None(Vec<LineDistribution>),
    Line(LineDistribution),
    Kernels(Kernels),
}

/// `len` numbers between 0 and 1 in random order, one in each of as many intervals: with these for each latent, the draws are a Latin
/// hypercube, and worth more than independent ones.
fn levels(len: usize, seed: u64, number: u64) -> Vec<f64> {
    let mut rng = stream(seed, Purpose::Quadrature.step(), LEVELS_STREAM, number);
    let mut levels: Vec<f64> = (0..len).map(|k| (k as f64 + rng.random::<f64>()) / len as f64).collect();
    levels.shuffle(&mut rng);
    levels
}

impl Quadrature<'_> {
    /// The middle of all latents.
    fn middle(&self) -> Vec<f64> {
        self.places.iter().map(|place| place.middle).collect()
    }

    /// About `len` draws of all latents with their importance weights.
    pub(in crate::infer) fn draws(&self, len: usize, seed: u64) -> Result<Drawn> {
        let found = match self.outer.len() {
            0 => self.inner(&self.middle())?.and_then(|inner| {
                let lines = inner.densities.iter().map(LineDensity::normalised).collect::<Option<Vec<_>>>()?;
                Some((vec![(self.middle(), 0.0)], Outer::None(lines)))
            }),
            1..=LINES_MAX => self.on_lines(len, seed)?,
            _ => self.by_importance(seed)?,
        };
        let Some((thetas, outer)) = found else { return Ok(Drawn::Failed) };
        let each = len.div_ceil(thetas.len());
        let levels: Vec<Vec<f64>> =
            (0..self.inner.len() as u64).map(|j| levels(each * thetas.len(), seed, j)).collect();
        let of_theta = |(number, (point, log_q)): (usize, &Valued)| {
            let Some(inner) = self.inner(point)? else { return Ok(None) };
            let lines: Vec<Option<LineDistribution>> = inner.densities.iter().map(LineDensity::normalised).collect();
            let (mut z, mut energy) = (Batch::zeros(point.len(), each), vec![-log_q; each]);
            (0..point.len()).for_each(|i| z.column_mut(i).fill(point[i]));
            for (j, (i, line)) in self.inner.iter().zip(lines).enumerate() {
                let Some(line) = line else { return Ok(None) };
                for ((x, energy), p) in z.column_mut(*i).iter_mut().zip(&mut energy).zip(&levels[j][number * each..]) {
                    let (at, log_q) = line.quantile(*p);
                    *x = at;
                    *energy -= log_q;
                }
            }
            let mut log_weights = vec![0.0; each];
            self.model.log_joint(&z, &mut log_weights)?;
            log_weights.iter_mut().zip(&energy).for_each(|(w, energy)| *w += energy);
            Ok(Some((z, log_weights, inner.log_integral() - log_q)))
        };
        let drawn: Vec<Option<(Batch, Vec<f64>, f64)>> =
            thetas.par_iter().enumerate().map(of_theta).collect::<Result<_>>()?;
        let Some(drawn) = drawn.into_iter().collect::<Option<Vec<_>>>() else { return Ok(Drawn::Failed) };
        let nested = Nested::joined(drawn, if self.is_on_lines() { 1 } else { each });
        let log_evidence = log_sum_exp(&nested.log_weights) - (nested.log_weights.len() as f64).ln();
        let higher = self.higher(&outer, log_evidence)?;
        Ok(if higher.is_empty() { Drawn::Draws(nested) } else { Drawn::Missed(higher) })
    }

    /// The points at which the posterior is higher than these draws say, as it is at a mode that was missed: among the draws that were seen,
    /// the ends of chains, and the modes.
    fn higher(&self, outer: &Outer, log_evidence: f64) -> Result<Vec<Vec<f64>>> {
        let Seen { z, chains, modes, .. } = &self.seen;
        let checked = if self.outer.len() < 2 { CHECKED[0] } else { CHECKED[1] };
        let of = |seen: &Batch, most: usize| -> Vec<Vec<f64>> {
            let len = seen.draws_len().min(most);
            let point = |k: usize| (0..seen.columns_len()).map(|i| seen.get(i, k * seen.draws_len() / len)).collect();
            (0..len).map(point).collect()
        };
        let mut points = of(modes, usize::MAX);
        chains.iter().for_each(|chains| points.extend(of(chains, usize::MAX)));
        let draws_from = points.len();
        points.extend(of(z, checked));
        let log_p: Vec<f64> = points.par_iter().map(|point| self.log_joint(point)).collect::<Result<_>>()?;
        let top = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let limit = log_evidence + if self.is_on_lines() { HIGHER[0] } else { HIGHER[1] };
        let is_higher = |(point, log_p): (&Vec<f64>, f64)| {
            // Far below there is no mass.
            if !(log_p > top - NEGLIGIBLE - self.places.len() as f64) {
                return Ok(false);
            }
            Ok(self.log_density(outer, point)?.is_none_or(|log_q| log_p - log_q > limit))
        };
        let is: Vec<bool> = points.par_iter().zip(log_p).map(is_higher).collect::<Result<_>>()?;
        // Each of many lines may err a little at a jump.
        let is_tolerated = !is[..draws_from].contains(&true) && is.iter().filter(|is| **is).count() <= HIGHER_MAX;
        let higher = points.into_iter().zip(is).filter_map(|(point, is)| is.then_some(point)).collect();
        Ok(if is_tolerated { Vec::new() } else { higher })
    }

    /// The log density of the draws at a point; `None` if it cannot be found.
    fn log_density(&self, outer: &Outer, point: &[f64]) -> Result<Option<f64>> {
        let mut log_q = match outer {
            Outer::None(lines) => {
                let own = self.inner.iter().zip(lines).map(|(i, line)| line.log_density(point[*i]));
                return Ok(Some(own.sum()));
            }
            Outer::Line(first) => first.log_density(point[self.outer[0]]),
            Outer::Kernels(kernels) => kernels.log_density(&self.outer.iter().map(|i| point[*i]).collect::<Vec<_>>()),
        };
        let mut base = point.to_vec();
        self.inner.iter().for_each(|i| base[*i] = self.places[*i].middle);
        if let (Outer::Line(_), Some(second)) = (outer, self.outer.get(1)) {
            let Some(line) = self.outer(1, &base)?.and_then(|density| density.normalised()) else { return Ok(None) };
            log_q += line.log_density(point[*second]);
        }
        let Some(inner) = self.inner(&base)? else { return Ok(None) };
        for (i, density) in self.inner.iter().zip(&inner.densities) {
            let Some(line) = density.normalised() else { return Ok(None) };
            log_q += line.log_density(point[*i]);
        }
        Ok(Some(log_q))
    }

    /// Values of one or two θ, with the log densities from which they were drawn.
    fn on_lines(&self, len: usize, seed: u64) -> Result<Option<(Vec<Valued>, Outer)>> {
        let Some(first) = self.outer(0, &self.middle())?.and_then(|density| density.normalised()) else {
            return Ok(None);
        };
        let (most, each) = DRAWN[self.outer.len() - 1];
        let strata = len.div_ceil(each).min(most);
        let of_first = levels(strata, seed, self.inner.len() as u64);
        let of_second = levels(strata * each, seed, self.inner.len() as u64 + 1);
        let of_stratum = |number: usize| {
            let (x, log_q) = first.quantile(of_first[number]);
            let mut point = self.middle();
            point[self.outer[0]] = x;
            let Some(second) = self.outer.get(1) else { return Ok(Some(vec![(point, log_q)])) };
            let Some(line) = self.outer(1, &point)?.and_then(|density| density.normalised()) else { return Ok(None) };
            let one = |p: &f64| {
                let (x, log_own) = line.quantile(*p);
                let mut point = point.clone();
                point[*second] = x;
                (point, log_q + log_own)
            };
            Ok(Some(of_second[number * each..(number + 1) * each].iter().map(one).collect()))
        };
        let found: Vec<Option<Vec<Valued>>> = (0..strata).into_par_iter().map(of_stratum).collect::<Result<_>>()?;
        Ok(found.into_iter().collect::<Option<Vec<_>>>().map(|found| (found.concat(), Outer::Line(first))))
    }

    /// Values of many θ by adaptive importance sampling, with the log densities from which they were drawn.
    fn by_importance(&self, seed: u64) -> Result<Option<(Vec<Valued>, Outer)>> {
        let k = self.outer.len();
        let own = |s: usize| self.outer.iter().map(|i| self.seen.z.get(*i, s)).collect::<Vec<f64>>();
        let thetas: Vec<Vec<f64>> = (0..self.seen.z.draws_len()).map(own).collect();
        let Some(mut proposal) = Proposal::of(&thetas, &vec![0.0; thetas.len()], wider(0, k)) else { return Ok(None) };
        type Draw<'a> = &'a dyn Fn(&mut Stream) -> Valued;
        let drawn = |draw: Draw, len: usize, number: u64| -> Vec<Valued> {
            (0..len as u64).map(|s| draw(&mut stream(seed, Purpose::Quadrature.step(), number, s))).collect()
        };
        let at = |theta: &[f64]| {
            let mut point = self.middle();
            self.outer.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
            point
        };
        let weighed = |found: &[Valued]| -> Result<Option<Vec<f64>>> {
            let weight = |(theta, log_q): &Valued| Ok(self.log_marginal(k, &at(theta))?.map(|m| m - log_q));
            let weights: Vec<Option<f64>> = found.par_iter().map(weight).collect::<Result<_>>()?;
            Ok(weights.into_iter().collect())
        };
        let mut kernels: Option<Kernels> = None;
        for number in 0..LEARNING_ROUNDS {
            let found = drawn(&|rng| proposal.draw(rng), LEARNT, number);
            let Some(weights) = weighed(&found)? else { return Ok(None) };
            let even = effective(&weights) / LEARNT as f64;
            let (weights, _) = tempered(&weights, 3.0 * k as f64 + 8.0);
            let thetas: Vec<Vec<f64>> = found.into_iter().map(|(theta, _)| theta).collect();
            let Some(next) = Proposal::of(&thetas, &weights, wider(0, k)) else { return Ok(None) };
            if even > EVEN {
                kernels = Kernels::of(&thetas, &weights, next);
                break;
            }
            proposal = next;
        }
        for attempt in 0..ATTEMPTS {
            let Some(from) = kernels else { return Ok(None) };
            let found = drawn(&|rng| from.draw(rng), KEPT, KEPT_STREAM + attempt);
            let Some(mut weights) = weighed(&found)? else { return Ok(None) };
            let thetas: Vec<Vec<f64>> = found.iter().map(|(theta, _)| theta.clone()).collect();
            // With more kernels where the weights are large.
            kernels =
                Proposal::of(&thetas, &weights, wider(0, k)).and_then(|wide| Kernels::of(&thetas, &weights, wide));
            if psis(&mut weights).is_good() {
                let found = found.into_iter().map(|(theta, log_q)| (at(&theta), log_q)).collect();
                return Ok(Some((found, Outer::Kernels(from))));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
mod tests {
    use super::*;
    use crate::diagnostics::convergence::moments;
    use crate::infer::stages::test_models::Coupled;
    use crate::model::Model;

    /// Draws from far too narrow an approximation of the posterior.
    fn near(n: usize) -> Batch {
        let column = |i: usize| (0..100).map(move |s| 0.3 + 0.1 * f64::from((s * (7 + 2 * i as u32)) % 100) / 100.0);
        Batch::from_columns((0..n).flat_map(column).collect(), 100)
    }

    /// The log evidence, and the mean and the variance of each latent.
    fn by_quadrature(model: &dyn Model) -> (f64, Vec<(f64, f64)>) {
        let z = near(model.latents().len());
        let none = Batch::zeros(z.columns_len(), 0);
        let seen = Seen { z: &z, chains: None, modes: &none, ends: &none };
        let quadrature = Quadrature::new(model, seen, f64::INFINITY).unwrap();
        let Drawn::Draws(nested) = quadrature.draws(16_384, 1).unwrap() else { panic!("no draws") };
        let len = nested.log_weights.len() as f64;
        assert!(effective(&nested.log_weights) > 0.9 * len, "{}", effective(&nested.log_weights) / len);
        let of = |i: usize| moments(nested.z.column(i));
        (log_sum_exp(&nested.log_weights) - len.ln(), (0..z.columns_len()).map(of).collect())
    }

    /// The same on a regular grid of one or two latents.
    fn on_grid(model: &dyn Model, from: f64, to: f64) -> (f64, Vec<(f64, f64)>) {
        let (n, nodes, len) = (model.latents().len(), 1500_usize, 1500_usize.pow(model.latents().len() as u32));
        let step = (to - from) / nodes as f64;
        let value = |i: usize, s: usize| from + step * (((s / nodes.pow(i as u32)) % nodes) as f64 + 0.5);
        let z = Batch::from_columns((0..n).flat_map(|i| (0..len).map(move |s| value(i, s))).collect(), len);
        let mut log_p = vec![0.0; len];
        model.log_joint(&z, &mut log_p).unwrap();
        let log_sum = log_sum_exp(&log_p);
        let moment = |i: usize, f: &dyn Fn(f64) -> f64| -> f64 {
            z.column(i).iter().zip(&log_p).map(|(x, w)| (w - log_sum).exp() * f(*x)).sum()
        };
        let of = |i: usize| {
            let mean = moment(i, &|x| x);
            (mean, moment(i, &|x| (x - mean).powi(2)))
        };
        (log_sum + n as f64 * step.ln(), (0..n).map(of).collect())
    }

    fn assert_same(found: &(f64, Vec<(f64, f64)>), exact: &(f64, Vec<(f64, f64)>)) {
        assert!((found.0 - exact.0).abs() < 0.01, "{} {}", found.0, exact.0);
        for (found, exact) in found.1.iter().zip(&exact.1) {
            // Of 16,384 draws; those of θ are better than independent ones.
            assert!((found.0 - exact.0).abs() < 0.03 * exact.1.sqrt(), "{found:?} {exact:?}");
            assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{found:?} {exact:?}");
        }
    }

    /// Catches a missing mode, a wrong constant of the integral and a wrong density of θ: two coupled latents with two modes each, along a
    /// hyperbola.
    #[test]
    fn two_coupled_latents_are_those_on_a_grid() {
        let product = Coupled::product();
        assert_same(&by_quadrature(&product), &on_grid(&product, -9.0, 9.0));
    }

    /// Catches parts that are not independent, or counted twice: many latents of one kind have the integral of one to that power.
    #[test]
    fn independent_latents_have_their_own_densities() {
        let (evidence, moments) = on_grid(&Coupled::squares(1), -6.0, 6.0);
        let exact = (12.0 * evidence, vec![moments[0]; 12]);
        assert_same(&by_quadrature(&Coupled::squares(12)), &exact);
    }

    /// The log integral, the mean and the variance of normal latents, by the formula of Sherman and Morrison.
    fn of_normal(n: usize) -> (f64, (f64, f64)) {
        let determinant = 1.0 + 0.5 * n as f64;
        let log_integral = 0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() - determinant.ln());
        (log_integral, (0.7, 1.0 - 0.5 / determinant))
    }

    /// Catches a wrong recursion: three latents of which every two are coupled.
    #[test]
    fn three_coupled_latents_are_integrated_in_turn() {
        let (log_integral, moments) = of_normal(3);
        assert_same(&by_quadrature(&Coupled::normal(3)), &(log_integral, vec![moments; 3]));
    }

    /// Catches a wrong density of the proposal: with four, three are drawn by importance sampling.
    #[test]
    fn many_coupled_latents_are_drawn_by_importance_sampling() {
        let model = Coupled::normal(4);
        let z = near(4);
        let none = Batch::zeros(4, 0);
        let seen = Seen { z: &z, chains: None, modes: &none, ends: &none };
        let quadrature = Quadrature::new(&model, seen, f64::INFINITY).unwrap();
        assert_eq!(quadrature.size(), [3, 1]);
        let Drawn::Draws(nested) = quadrature.draws(16_384, 1).unwrap() else { panic!("no draws") };
        let (log_sum, (log_integral, (mean, variance))) = (log_sum_exp(&nested.log_weights), of_normal(4));
        // Of some 600 effective values of θ.
        assert!((log_sum - (nested.log_weights.len() as f64).ln() - log_integral).abs() < 0.15);
        for i in 0..4 {
            let weighted = |f: &dyn Fn(f64) -> f64| -> f64 {
                nested.z.column(i).iter().zip(&nested.log_weights).map(|(x, w)| (w - log_sum).exp() * f(*x)).sum()
            };
            let own = weighted(&|x| x);
            assert!((own - mean).abs() < 0.2 * variance.sqrt(), "{own} {mean}");
            assert!((weighted(&|x| (x - own).powi(2)) / variance - 1.0).abs() < 0.3);
        }
    }
}
