//! Adam (Kingma and Ba, 2015) over lanes.

use hyperprior_math::simd::{Simd, prelude::*};
use hyperprior_math::simd_fn;
use hyperprior_math::single::Lanes;
use hyperprior_math::single::simd::{load, splat};

const FIRST: f32 = 0.9;
const SECOND: f32 = 0.99;
const TINY: f32 = 1e-7;

/// The size of a step relative to the first, when this share of the steps is done: constant for half of them, then decaying along a
/// half cosine.
pub(crate) fn falling(done: f32) -> f32 {
    if done < 0.5 { 1.0 } else { (0.5 * (1.0 + (std::f32::consts::PI * (2.0 * done - 1.0).min(1.0)).cos())).max(LEAST) }
}

/// The least share.
const LEAST: f32 = 0.02;

/// Which second moments normalise the steps of a vector, and the sizes of the steps. The first `own` vectors are normalised by
/// their own moments, those beyond by the moments of the first `by` in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) own: usize,
    pub(crate) by: usize,
    pub(crate) size: f32,
    pub(crate) size_beyond: f32,
}

impl Units {
    /// Every vector by its own moments.
    pub(crate) fn own(len: usize, size: f32) -> Self {
        Self { own: len, by: len, size, size_beyond: size }
    }
}

#[inline(always)]
fn ascend_kernel<S: Simd>(
    s: S,
    at: &mut [Lanes],
    gradient: &[Lanes],
    [first, second]: [&mut [Lanes]; 2],
    number: u32,
    units: Units,
) {
    let number = number.min(10_000) as i32;
    let (one, two) = (1.0 / (1.0 - FIRST.powi(number)), 1.0 / (1.0 - SECOND.powi(number)));
    let zero = splat(s, 0.0);
    for i in 0..at.len() {
        let g = load(s, &gradient[i].0);
        let g = g.abs().simd_lt(splat(s, f32::INFINITY)).select(g, zero);
        let m = load(s, &first[i].0);
        let m = (g - m).mul_add(splat(s, 1.0 - FIRST), m);
        m.store_slice(&mut first[i].0);
        let (by, size) = if i < units.own { (i, units.size) } else { ((i - units.own) % units.by, units.size_beyond) };
        let mut v = load(s, &second[by].0);
        if by == i {
            v = g.mul_add(g, -v).mul_add(splat(s, 1.0 - SECOND), v);
            v.store_slice(&mut second[i].0);
        }
        let step = m * (size * one) / ((v * two).sqrt() + TINY);
        (load(s, &at[i].0) + step).store_slice(&mut at[i].0);
    }
}

simd_fn!(
    /// One step up a gradient, given the moments of the earlier ones and the number of the step, from 1.
    pub(crate) fn ascend(
        at: &mut [Lanes],
        gradient: &[Lanes],
        moments: [&mut [Lanes]; 2],
        number: u32,
        units: Units,
    ) = ascend_kernel
);

/// The moments of one set of parameters.
#[derive(Clone, Debug)]
pub(crate) struct Adam {
    first: Vec<Lanes>,
    second: Vec<Lanes>,
    number: u32,
}

impl Adam {
    pub(crate) fn new(len: usize) -> Self {
        Self { first: vec![Lanes::default(); len], second: vec![Lanes::default(); len], number: 0 }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn set_number(&mut self, number: u32) {
        self.number = number;
    }

    pub(crate) fn arrays(&self) -> [&[Lanes]; 2] {
        [&self.first, &self.second]
    }

    pub(crate) fn arrays_mut(&mut self) -> [&mut [Lanes]; 2] {
        [&mut self.first, &mut self.second]
    }

    pub(crate) fn ascend(&mut self, at: &mut [Lanes], gradient: &[Lanes], size: f32) {
        self.number += 1;
        let units = Units::own(at.len(), size);
        ascend(at, gradient, [&mut self.first, &mut self.second], self.number, units);
    }
}
