//! A whole gradient step: every component, split into blocks of draws that run in parallel.
//!
//! The blocks and their random streams depend on the settings alone, and their results are added in order, so the numbers
//! are the same for any number of threads.

use super::switches::Flips;
use super::three_terms::Backward;
use super::{GradientSettings, Plan, plan};
use crate::error::{Error, Result};
use crate::likelihood::Kind;
use crate::model::{Model, describe};
use crate::objective::Pass;
use crate::recursive::Space;
use crate::variational::Variational;
use hyperprior_math::random::{Stream, stream};
use hyperprior_math::vector::add_scaled;
use rayon::prelude::*;

/// Draws per block: two vectors of eight, small enough that a few dozen draws keep several threads busy.
const BLOCK: usize = 16;

/// A stochastic estimate of the bound from a gradient step. See [`GradientEngine`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The mean integrand. If draws were invalid, it is the bound of q restricted to the others: their mean plus the log of their
    /// share.
    pub elbo: f64,
    /// How many draws were invalid because their integrand was not finite.
    pub dropped: usize,
    /// How many draws there were.
    pub drawn: usize,
}

#[derive(Debug)]
struct Block {
    component: usize,
    first_draw: usize,
    pass: Pass,
    flips: Flips,
    streams: Vec<Stream>,
    weight: Vec<f64>,
    d_theta: Vec<f64>,
    d_phi: Vec<f64>,
    sum: f64,
    dropped: usize,
    failure: Option<Error>,
}

/// The working memory of gradient steps.
///
/// ```
/// use hyperprior::gradient::{GradientEngine, GradientSettings};
/// use hyperprior::{Model, Variational, likelihood::MeanField, targets::Ising};
/// let model = Ising::ring(4, 0.5)?;
/// let q = Variational::mean_field(MeanField::for_latents(model.latents())?);
/// let mut engine = GradientEngine::new(&model, &q, &GradientSettings::default())?;
/// let mut d_theta = [0.0; 4];
/// let estimate = engine.step(&model, &q, (1, 0), (&[0.5; 4], &[]), (&mut d_theta, &mut []))?;
/// assert!(estimate.elbo.is_finite() && d_theta.iter().all(|d| d.is_finite()));
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct GradientEngine {
    settings: GradientSettings,
    plans: Vec<Plan>,
    blocks: Vec<Block>,
    log_pi: Vec<f64>,
    values: Vec<f64>,
    dropped: Vec<usize>,
}

impl GradientEngine {
    /// For this model and variational model.
    ///
    /// # Errors
    /// As [`GradientSettings::check`], [`Variational::check`] and [`plan`].
    pub fn new(model: &dyn Model, q: &Variational, settings: &GradientSettings) -> Result<Self> {
        settings.check()?;
        q.check(model)?;
        let plans = plan(model, q, settings)?;
        if settings.importance > 0 {
            check_importance(q, &plans)?;
        }
        // A block holds whole groups, and whole pairs of groups if noises come in pairs.
        let unit = settings.replicates * if settings.antithetic { 2 } else { 1 };
        let block_len = BLOCK.div_ceil(unit) * unit;
        let components_len = q.prior().components_len();
        let mut blocks = Vec::new();
        for component in 0..components_len {
            for first_draw in (0..settings.draws).step_by(block_len) {
                let len = block_len.min(settings.draws - first_draw);
                blocks.push(Block {
                    component,
                    first_draw,
                    pass: Pass::default(),
                    flips: Flips::default(),
                    streams: vec![stream(0, 0, 0, 0); len],
                    weight: vec![0.0; len],
                    d_theta: vec![0.0; q.theta_len()],
                    d_phi: vec![0.0; q.phi_len()],
                    sum: 0.0,
                    dropped: 0,
                    failure: None,
                });
            }
        }
        Ok(Self {
            settings: settings.clone(),
            plans,
            blocks,
            log_pi: vec![0.0; components_len],
            values: vec![0.0; components_len],
            dropped: vec![0; components_len],
        })
    }

    /// The estimator of each latent.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Estimates the bound and writes its gradient along θ and φ.
    ///
    /// # Errors
    /// Errors of the model, and [`Error::NotFinite`] if no draw is finite.
    pub fn step(
        &mut self,
        model: &dyn Model,
        q: &Variational,
        (seed, step): (u64, u64),
        (theta, phi): (&[f64], &[f64]),
        (d_theta, d_phi): (&mut [f64], &mut [f64]),
    ) -> Result<Estimate> {
        q.prior().log_weights(theta, &mut self.log_pi);
        let (settings, plans, log_pi) = (&self.settings, &self.plans, &self.log_pi);
        let run = |block: &mut Block| {
            block.failure = block.run(model, q, (seed, step), (theta, phi), plans, settings, log_pi).err();
        };
        if rayon::current_num_threads() == 1 || self.blocks.len() == 1 {
            self.blocks.iter_mut().for_each(run);
        } else {
            self.blocks.par_iter_mut().for_each(run);
        }
        if let Some(failure) = self.blocks.iter_mut().find_map(|b| b.failure.take()) {
            return Err(failure);
        }
        self.dropped.fill(0);
        self.values.fill(0.0);
        for block in &self.blocks {
            self.dropped[block.component] += block.dropped;
            self.values[block.component] += block.sum;
        }
        let (drawn, dropped) = (self.settings.draws * self.values.len(), self.dropped.iter().sum());
        if dropped == drawn {
            return Err(self.not_finite(model, step));
        }
        let elbo = self.restricted_bound(dropped);
        let mut worst = f64::INFINITY;
        for (value, dropped) in self.values.iter_mut().zip(&self.dropped) {
            *value /= (self.settings.draws - dropped) as f64;
            worst = if *value < worst { *value } else { worst };
        }
        d_theta.fill(0.0);
        d_phi.fill(0.0);
        for block in &self.blocks {
            let kept = self.settings.draws - self.dropped[block.component];
            if kept > 0 {
                // The valid draws of a component stand for all of its draws.
                let scale = self.settings.draws as f64 / kept as f64;
                add_scaled(scale, &block.d_theta, d_theta);
                add_scaled(scale, &block.d_phi, d_phi);
            }
        }
        for value in &mut self.values {
            // A component without a valid draw counts as worse than any other.
            if !value.is_finite() {
                *value = worst - 10.0;
            }
        }
        q.prior().weights_pullback(theta, &self.values, d_theta);
        Ok(Estimate { elbo, dropped, drawn })
    }

    /// E[f | A] + ln q(A) for the valid draws A, from the sums of each component.
    fn restricted_bound(&self, dropped: usize) -> f64 {
        let draws = self.settings.draws as f64;
        let sum: f64 = self.log_pi.iter().zip(&self.values).map(|(p, sum)| p.exp() * (sum / draws)).sum();
        if dropped == 0 {
            return sum;
        }
        let kept =
            self.log_pi.iter().zip(&self.dropped).map(|(p, dropped)| p.exp() * (draws - *dropped as f64) / draws);
        let share: f64 = kept.sum();
        sum / share + share.ln()
    }

    /// The error that names the first draw that is not finite.
    pub(crate) fn not_finite(&self, model: &dyn Model, step: u64) -> Error {
        let example = self.blocks.iter().find_map(|b| {
            let s = b.pass.integrand.iter().position(|f| !f.is_finite())?;
            Some(describe(model, &b.pass.draws.z, s, b.pass.log_p[s]))
        });
        Error::NotFinite {
            step,
            dropped: self.blocks.iter().map(|b| b.dropped).sum(),
            drawn: self.blocks.iter().map(|b| b.weight.len()).sum(),
            example: example.unwrap_or_default(),
        }
    }
}

/// Checks that the gradient of the importance-weighted bound is known; see the derivation in [`super`].
fn check_importance(q: &Variational, plans: &[Plan]) -> Result<()> {
    let (likelihood, recursive) = (q.likelihood(), q.recursive());
    let mismatch = |second: String, reason: &str| {
        let first = "importance-weighted training".to_owned();
        Err(Error::Mismatch { first, second, reason: reason.to_owned() })
    };
    let has = |kind: Kind| (0..likelihood.latents_len()).any(|i| likelihood.kind(i) == kind);
    let r = || format!("the recursive approximation `{}`", recursive.name());
    if recursive.space() == Space::Lambda {
        return mismatch(r(), "it needs an approximation on the noise");
    }
    if has(Kind::Pathwise) && recursive.depends_on_z() {
        let reason = "the fresh draws would move with the draws of continuous factors; use r = prior, or point masses";
        return mismatch(r(), reason);
    }
    if has(Kind::PointMass) && q.prior().components_len() > 1 {
        let reason = "with point masses it needs a prior of one component, such as one Gaussian";
        return mismatch(format!("the prior `{}`", q.prior().name()), reason);
    }
    if plans.iter().any(|plan| !matches!(plan, Plan::Score | Plan::Path)) {
        let reason = "it needs the score of every discrete latent; use the score estimator";
        return mismatch("the gradient estimator".to_owned(), reason);
    }
    Ok(())
}

impl Block {
    fn run(
        &mut self,
        model: &dyn Model,
        q: &Variational,
        (seed, step): (u64, u64),
        (theta, phi): (&[f64], &[f64]),
        plans: &[Plan],
        settings: &GradientSettings,
        log_pi: &[f64],
    ) -> Result<()> {
        for (s, rng) in self.streams.iter_mut().enumerate() {
            *rng = stream(seed, step, self.component as u64, (self.first_draw + s) as u64);
        }
        self.pass.draw(q, theta, self.component, &mut self.streams, settings.replicates, settings.antithetic);
        if plans.contains(&Plan::DisArm) {
            self.pass.couple(q, plans);
        }
        self.pass.forward(model, q, theta, phi)?;
        if settings.importance > 0 {
            self.pass.tighten(q, (theta, phi), &mut self.streams, settings.importance);
        }
        let share = log_pi[self.component].exp() / settings.draws as f64;
        (self.sum, self.dropped) = (0.0, 0);
        for (w, f) in self.weight.iter_mut().zip(&self.pass.integrand) {
            if f.is_finite() {
                *w = share;
                self.sum += f;
            } else {
                *w = 0.0;
                self.dropped += 1;
            }
        }
        self.d_theta.fill(0.0);
        self.d_phi.fill(0.0);
        if self.dropped == self.weight.len() {
            return Ok(());
        }
        self.flips.add(&self.pass, model, q, (theta, phi), settings, &self.weight, &mut self.d_theta)?;
        let (d_theta, d_phi) = (&mut self.d_theta, &mut self.d_phi);
        let backward = Backward { model, q, theta, phi, plans, settings, weight: &self.weight };
        self.pass.backward(backward, d_theta, d_phi)
    }
}
