//! Latents x that are Gaussian given others: their exact distribution given these, for many values of the others at once.
//!
//! The gradient of a quadratic is linear, so that the gradients at a point and where each group of uncoupled latents is moved tell
//! everything, without iteration: log p(x) = log p(x₀) + gᵀ(x − x₀) − ½ (x − x₀)ᵀP(x − x₀) has its mean at x₀ + P⁻¹g, and the integral
//! p(x₀) e^(½ gᵀP⁻¹g) (2π)^(n/2) |P|^(−½).

use super::sparse_curvature::SparseCurvature;
use crate::error::Result;
use crate::model::{Gradient, Model, Quadratic};
use hyperprior_math::batch::Batch;
use hyperprior_math::simd::LANES;
use hyperprior_math::sparse_many::SparseMany;
use hyperprior_math::special::HALF_LN_2_PI;
use rayon::prelude::*;

/// Points whose gradients are evaluated together, and how many of these groups share their working memory.
const TOGETHER: usize = 16;
const GROUPS: usize = 8;
/// With a larger quadratic form the sum of large numbers of opposite signs is not accurate: the base is too far away.
const FAR: f64 = 1e8;
/// The work of an entry of a factor, and of a latent, beside the gradients, in additions.
const PLACING: f64 = 2.0;

/// The exact distribution of Gaussian latents given the others.
pub(super) struct ExactConditional<'a> {
    model: &'a dyn Model,
    gaussian: Vec<usize>,
    curvature: SparseCurvature,
    many: SparseMany,
    /// The coefficients, if the model knows them, and where its entries are in the pattern. The Gaussian latents of the base are zero then.
    known: Option<(Box<dyn Quadratic>, Vec<usize>)>,
    /// The point from which the Gaussian latents are moved, and how far each.
    base: Vec<f64>,
    steps: Vec<f64>,
}

/// What eight conditionals need.
struct Room {
    points: Batch,
    d_points: Batch,
    log_p: Vec<f64>,
    entries: Vec<f64>,
    factors: Vec<f64>,
    x: Vec<f64>,
    /// Of the known coefficients.
    linear: Batch,
    known_entries: Batch,
}

/// The conditionals of eight points: the logs of their integrals (−∞ where the density is zero, not a number where they could not be
/// found), P^½ times how far the means are from the base, and the factors.
pub(super) struct Eight<'a> {
    pub(super) log_mass: [f64; LANES],
    log_diagonals: [f64; LANES],
    scaled: &'a [f64],
    factors: &'a [f64],
}

impl<'a> ExactConditional<'a> {
    /// `None` if the model has no gradient, or if the factors are not sparse.
    pub(super) fn new(model: &'a dyn Model, gaussian: Vec<usize>) -> Option<Self> {
        model.gradient()?;
        let curvature = SparseCurvature::of_few(model, &gaussian)?;
        let many = SparseMany::new(curvature.pattern())?;
        let (base, steps) = (vec![0.0; model.latents().len()], vec![1.0; gaussian.len()]);
        let mut own = Self { model, gaussian, curvature, many, known: None, base, steps };
        let known = model.quadratic(&own.gaussian).filter(|known| (known.work() as f64) < own.work_of_gradients());
        own.known = known.and_then(|known| {
            let pattern = own.curvature.pattern();
            let place = |[j, i]: &[u32; 2]| pattern.column(*j as usize).find(|at| pattern.rows()[*at] == *i as usize);
            let places = known.pairs().iter().map(place).collect::<Option<_>>()?;
            Some((known, places))
        });
        Some(own)
    }

    fn work_of_gradients(&self) -> f64 {
        (1 + self.curvature.probes_len()) as f64 * 3.0 * self.model.joint_work() as f64
    }

    /// The work of a point, in additions.
    pub(super) fn work(&self) -> f64 {
        let coefficients =
            self.known.as_ref().map_or_else(|| self.work_of_gradients(), |(known, _)| known.work() as f64);
        coefficients + PLACING * (self.many.work() + self.gaussian.len()) as f64
    }

    /// Moves the base there.
    pub(super) fn move_to(&mut self, mut base: Vec<f64>) {
        if self.known.is_some() {
            self.gaussian.iter().for_each(|i| base[*i] = 0.0);
        }
        self.base = base;
    }

    /// Moves the base to the mean of the Gaussian latents given the others here, and makes the steps as long as their scales.
    pub(super) fn centre_at(&mut self, place: &dyn Fn(&mut [f64])) -> Result<()> {
        let (mut mean, mut scales) = (self.base.clone(), Vec::new());
        let set = |_: usize, point: &mut [f64]| place(point);
        self.each(1, &set, &mut |_, eight| {
            if eight.log_mass[0].is_finite() {
                let mut x = vec![0.0; self.gaussian.len() * LANES];
                scales = eight.scales(self);
                eight.add_draw(self, &[], &mut x);
                self.gaussian.iter().enumerate().for_each(|(k, i)| mean[*i] = x[k * LANES]);
            }
        })?;
        if mean.iter().chain(&scales).all(|x| x.is_finite()) && !scales.is_empty() {
            self.move_to(mean);
            self.steps = scales;
        }
        Ok(())
    }

    /// The logs of the integrals over the Gaussian latents at so many points; `place` sets the others of the point with a number.
    pub(super) fn log_masses(&self, len: usize, place: &(dyn Fn(usize, &mut [f64]) + Sync)) -> Result<Vec<f64>> {
        let mut out = vec![0.0; len];
        // The same points are evaluated together, however many groups there are.
        let groups = len.div_ceil(TOGETHER * rayon::current_num_threads()).clamp(1, GROUPS);
        out.par_chunks_mut(TOGETHER * groups).enumerate().try_for_each(|(number, out)| {
            let first = number * TOGETHER * groups;
            let own_len = out.len();
            self.each(own_len, &|s, point| place(first + s, point), &mut |s, eight| {
                out[s..].iter_mut().zip(eight.log_mass).for_each(|(out, log)| *out = log);
            })
        })?;
        Ok(out)
    }

    /// Draws of all latents at so many points, with the log densities that they should have. `normal` gives the standard normal numbers
    /// for a Gaussian latent and a point. `None` if some could not be found.
    pub(super) fn draws(
        &self,
        len: usize,
        place: &(dyn Fn(usize, &mut [f64]) + Sync),
        normal: &(dyn Fn(usize, usize) -> f64 + Sync),
    ) -> Result<Option<(Batch, Vec<f64>)>> {
        let (n, size) = (self.base.len(), TOGETHER * GROUPS);
        let firsts: Vec<usize> = (0..len).step_by(size).collect();
        let of = |first: &usize| -> Result<(Batch, Vec<f64>)> {
            let own_len = size.min(len - first);
            let (mut z, mut log_p) = (Batch::zeros(n, own_len), vec![f64::NAN; own_len]);
            let (mut x, mut point) = (vec![0.0; self.gaussian.len() * LANES], self.base.clone());
            self.each(own_len, &|s, point| place(first + s, point), &mut |s, eight| {
                let own = LANES.min(own_len - s);
                let mut squared = [0.0; LANES];
                for k in 0..self.gaussian.len() {
                    for lane in 0..own {
                        let e = normal(k, first + s + lane);
                        x[k * LANES + lane] = e;
                        squared[lane] += e * e;
                    }
                }
                let noise = x.clone();
                let constant = self.gaussian.len() as f64 * HALF_LN_2_PI;
                eight.add_draw(self, &noise, &mut x);
                for lane in 0..own {
                    // The log density of x given the others, and the integral over x.
                    let log_x = eight.log_diagonals[lane] - constant - 0.5 * squared[lane];
                    log_p[s + lane] = eight.log_mass[lane] + log_x;
                    point.copy_from_slice(&self.base);
                    place(first + s + lane, &mut point);
                    (0..n).for_each(|i| z.set(i, s + lane, point[i]));
                    self.gaussian.iter().enumerate().for_each(|(k, i)| z.set(*i, s + lane, x[k * LANES + lane]));
                }
            })?;
            Ok((z, log_p))
        };
        let parts: Vec<(Batch, Vec<f64>)> = firsts.par_iter().map(of).collect::<Result<_>>()?;
        let mut z = Batch::zeros(n, len);
        for i in 0..n {
            for (first, (part, _)) in firsts.iter().zip(&parts) {
                z.column_mut(i)[*first..first + part.draws_len()].copy_from_slice(part.column(i));
            }
        }
        let log_p: Vec<f64> = parts.into_iter().flat_map(|(_, log_p)| log_p).collect();
        Ok(log_p.iter().all(|log| log.is_finite()).then_some((z, log_p)))
    }

    /// Calls `then` with the number of the first of every eight points, and their conditionals.
    fn each(&self, len: usize, place: &dyn Fn(usize, &mut [f64]), then: &mut dyn FnMut(usize, Eight)) -> Result<()> {
        let Some(gradient) = self.model.gradient() else { return Ok(()) };
        let (n, together) = (self.base.len(), TOGETHER.min(len));
        let entries_len = self.curvature.pattern().entries_len() * LANES;
        let mut room = Room {
            points: Batch::zeros(n, together),
            d_points: Batch::zeros(n, together),
            log_p: vec![0.0; together],
            entries: vec![0.0; entries_len * together.div_ceil(LANES)],
            factors: vec![0.0; self.many.factors_len()],
            x: vec![0.0; self.gaussian.len() * LANES],
            linear: Batch::zeros(if self.known.is_some() { self.gaussian.len() } else { 0 }, together),
            known_entries: Batch::zeros(self.known.as_ref().map_or(0, |(_, places)| places.len()), together),
        };
        let mut point = self.base.clone();
        for first in (0..len).step_by(together) {
            for s in 0..together {
                // The last group is filled up with copies of its last point.
                point.copy_from_slice(&self.base);
                place((first + s).min(len - 1), &mut point);
                (0..n).for_each(|i| room.points.set(i, s, point[i]));
            }
            let mut is_known =
                self.coefficients(&mut room, entries_len) && !room.log_p.iter().any(|log_p| log_p.is_nan());
            if !is_known {
                self.by_gradients(gradient, &mut room)?;
            }
            let blocks = (len - first).min(together).div_ceil(LANES);
            for block in 0..blocks {
                let (s, of_block) = (block * LANES, block * entries_len..(block + 1) * entries_len);
                self.many.factorise(&room.entries[of_block.clone()], &mut room.factors);
                let mut squared = self.scaled_steps(&room.d_points, s, &room.factors, &mut room.x);
                let own_len = LANES.min(together - s);
                let is_far = |squared: &[f64; LANES]| squared[..own_len].iter().any(|squared| *squared > FAR);
                if is_known && is_far(&squared) {
                    is_known = false;
                    self.by_gradients(gradient, &mut room)?;
                    self.many.factorise(&room.entries[of_block], &mut room.factors);
                    squared = self.scaled_steps(&room.d_points, s, &room.factors, &mut room.x);
                }
                let is_possible: Vec<bool> = room.log_p[s..s + own_len].iter().map(|log_p| log_p.is_finite()).collect();
                if is_far(&squared) {
                    squared = self.beside_the_means(gradient, &mut room, s)?;
                }
                let Room { log_p, factors, x, .. } = &room;
                let log_diagonals = self.many.log_diagonals(factors);
                let constant = self.gaussian.len() as f64 * HALF_LN_2_PI;
                let mut log_mass = [f64::NEG_INFINITY; LANES];
                for lane in (0..own_len).filter(|lane| is_possible[*lane]) {
                    let log = log_p[s + lane] + 0.5 * squared[lane] + constant - log_diagonals[lane];
                    // An infinite integral is not known, and neither is one that rounding decides.
                    log_mass[lane] = if log.is_finite() && squared[lane] <= FAR { log } else { f64::NAN };
                }
                then(first + s, Eight { log_mass, log_diagonals, scaled: x, factors });
            }
        }
        Ok(())
    }
}

impl ExactConditional<'_> {
    /// Log joint, gradient and curvature at these points by the coefficients that are known; whether there are any.
    fn coefficients(&self, room: &mut Room, entries_len: usize) -> bool {
        let Some((known, places)) = &self.known else { return false };
        let Room { points, d_points, log_p, entries, linear, known_entries, .. } = room;
        known.coefficients(points, log_p, linear, known_entries);
        self.gaussian.iter().enumerate().for_each(|(k, i)| d_points.column_mut(*i).copy_from_slice(linear.column(k)));
        entries.fill(0.0);
        for (k, at) in places.iter().enumerate() {
            for (block, values) in known_entries.column(k).chunks(LANES).enumerate() {
                entries[block * entries_len + at * LANES..][..values.len()].copy_from_slice(values);
            }
        }
        true
    }

    /// The same by gradients.
    fn by_gradients(&self, gradient: &dyn Gradient, room: &mut Room) -> Result<()> {
        let Room { points, d_points, log_p, entries, .. } = room;
        gradient.log_joint_gradient(points, log_p, d_points)?;
        self.curvature.of_quadratic(gradient, &self.gaussian, (points, d_points), &self.steps, entries)
    }

    /// L⁻¹g of the eight points from `s` on, and its squared length, once more: by gradients at their means, from which they are moved now.
    fn beside_the_means(&self, gradient: &dyn Gradient, room: &mut Room, s: usize) -> Result<[f64; LANES]> {
        let Room { points, d_points, log_p, factors, x, .. } = room;
        self.many.solve_transpose(factors, x);
        for (k, i) in self.gaussian.iter().enumerate() {
            let own = points.column_mut(*i)[s..].iter_mut().zip(&x[k * LANES..(k + 1) * LANES]);
            own.for_each(|(point, step)| *point += step);
        }
        gradient.log_joint_gradient(points, log_p, d_points)?;
        let squared = self.scaled_steps(d_points, s, factors, x);
        // As from the base.
        let mut away: Vec<f64> = x.clone();
        self.many.solve_transpose(factors, &mut away);
        for (k, i) in self.gaussian.iter().enumerate() {
            let point = &points.column(*i)[s..];
            let own = away[k * LANES..(k + 1) * LANES].iter_mut().zip(point);
            own.for_each(|(away, point)| *away += point - self.base[*i]);
        }
        self.many.transpose_multiply(factors, &mut away);
        x.copy_from_slice(&away);
        Ok(squared)
    }

    /// L⁻¹g of eight points, and its squared length.
    fn scaled_steps(&self, d_points: &Batch, s: usize, factors: &[f64], x: &mut [f64]) -> [f64; LANES] {
        for (k, i) in self.gaussian.iter().enumerate() {
            let own = &d_points.column(*i)[s..];
            let own_len = own.len().min(LANES);
            x[k * LANES..][..own_len].copy_from_slice(&own[..own_len]);
        }
        self.many.solve(factors, x);
        let mut squared = [0.0; LANES];
        for x in x.chunks_exact(LANES) {
            squared.iter_mut().zip(x).for_each(|(squared, x)| *squared += x * x);
        }
        squared
    }
}

impl Eight<'_> {
    /// The standard deviations of the Gaussian latents of the first point given each other, or about that.
    fn scales(&self, of: &ExactConditional) -> Vec<f64> {
        let mut one = vec![1.0; of.gaussian.len() * LANES];
        of.many.solve_transpose(self.factors, &mut one);
        let size = |x: &f64| if x.is_finite() && *x != 0.0 { x.abs() } else { 1.0 };
        one.iter().step_by(LANES).map(size).collect()
    }

    /// Writes draws of the Gaussian latents, eight side by side, made of standard normal numbers; without these, the means.
    fn add_draw(&self, of: &ExactConditional, normals: &[f64], x: &mut [f64]) {
        x.copy_from_slice(self.scaled);
        x.iter_mut().zip(normals).for_each(|(x, normal)| *x += normal);
        of.many.solve_transpose(self.factors, x);
        for (k, i) in of.gaussian.iter().enumerate() {
            x[k * LANES..(k + 1) * LANES].iter_mut().for_each(|x| *x += of.base[*i]);
        }
    }
}
