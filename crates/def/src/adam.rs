//! Adam (Kingma and Ba, 2015) over lanes.

use hyperprior_math::single::{LANES, Lanes};

const FIRST: f32 = 0.9;
const SECOND: f32 = 0.99;
const TINY: f32 = 1e-7;

/// The size of a step as a share of the first, when this share of the steps is done: the same for half of them, then falling along
/// a half cosine.
pub(crate) fn falling(done: f32) -> f32 {
    if done < 0.5 { 1.0 } else { (0.5 * (1.0 + (std::f32::consts::PI * (2.0 * done - 1.0).min(1.0)).cos())).max(LEAST) }
}

/// The least share.
const LEAST: f32 = 0.02;

/// One step up a gradient, given the moments of those before it and its number, from 1. `unit` says for each vector whose second
/// moments it is measured by, its own or those of one before it, and how large its steps are in those units.
pub(crate) fn ascend(
    at: &mut [Lanes],
    gradient: &[Lanes],
    first: &mut [Lanes],
    second: &mut [Lanes],
    number: u32,
    unit: impl Fn(usize) -> (usize, f32),
) {
    let number = number.min(10_000) as i32;
    let (one, two) = (1.0 / (1.0 - FIRST.powi(number)), 1.0 / (1.0 - SECOND.powi(number)));
    for i in 0..at.len() {
        let (own, size) = unit(i);
        for lane in 0..LANES {
            let g = gradient[i].0[lane];
            let g = if g.is_finite() { g } else { 0.0 };
            let m = &mut first[i].0[lane];
            *m += (1.0 - FIRST) * (g - *m);
            if own == i {
                let v = &mut second[i].0[lane];
                *v += (1.0 - SECOND) * (g * g - *v);
            }
            at[i].0[lane] += size * (*m * one) / ((second[own].0[lane] * two).sqrt() + TINY);
        }
    }
}

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
        ascend(at, gradient, &mut self.first, &mut self.second, self.number, |i| (i, size));
    }
}
