//! Exact marginalisation of Gaussian latents.
//!
//! Some latents x are Gaussian given the others, as the effects of a linear model are given the variances. Their integral is known: from the
//! gradient and the curvature at any point. If the others are a few continuous latents θ and discrete latents with few states, the marginal
//! density of θ is exact too, and θ is drawn by adaptive importance sampling. If the discrete latents have too many states to sum over,
//! chains move them and θ. Then every draw of x is exact.

use super::adaptive_importance::{Proposal, effective};
use super::ascent::{ASCENTS, Starts, scatter};
use super::exact_conditional::ExactConditional;
use super::gaussian_division::Division;
use super::integration_summary::{Integrated, IntegrationSummary};
use super::line_density::{LineDensity, Wanted};
use super::quadrature_draws::{joined_levels, levels};
use super::resample::{MIDDLE, systematic};
use crate::diagnostics::psis::VARIANCE_KHAT_MAX;
use crate::error::{Error, Result};
use crate::exact::Grid;
use crate::infer::method::Method;
use crate::infer::parts::Parts;
use crate::infer::result::{ess_min, resampled_ess};
use crate::infer::settings::{Correction, InferSettings};
use crate::model::{Latents, Model};
use crate::objective::Estimate;
use crate::session::Session;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Purpose, Stream, shuffled, stream};
use hyperprior_math::special::{log_sum_exp, normal_quantile};

/// The values of θ that a run is expected to take, and the most work for all, in additions.
const EXPECTED: usize = 3500;
const WORK_MAX: f64 = 2e10;
/// The tolerance of a line, the rounds in which it gets nodes, the levels that are joined into one between the ends, at how many of them the
/// density is compared, and the least share of these that is effective.
const TOLERANCE: f64 = 3e-5;
const LINE_ROUNDS: usize = 60;
const JOINED: usize = 4;
const COMPARED_ON_LINE: usize = 64;
const EVEN_ON_LINE: f64 = 0.99;
/// The draws whose density is compared, and the largest error in nats.
const COMPARED: usize = 64;
const ERROR_MAX: f64 = 1e-3;
/// The number of the random streams of levels.
const LEVELS_STREAM: u64 = 3000;
/// What keys of permutations differ by, from seed to seed.
const KEYS: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether [`integrated`] may suit a model: all but a few of its latents are Gaussian given the others, and it would not take too much work.
pub fn may_integrate(model: &dyn Model) -> bool {
    Marginal::new(model).is_some()
}

/// Draws from a posterior after exact marginalisation of the latents that are Gaussian given the others; nothing if the model does not say
/// that there are any, if too many others are left, if the settings ask for a certain approximation, or if the importance weights of the
/// others are uneven.
///
/// # Errors
/// Errors of the model, and [`Error::Stopped`] if the observer stops it.
pub fn integrated<'s>(
    model: &dyn Model,
    starts: &Starts,
    settings: &InferSettings,
    session: impl Into<Session<'s>>,
) -> Result<Option<Integrated>> {
    if !settings.may_integrate() {
        return Ok(None);
    }
    let Some(mut marginal) = Marginal::new(model) else { return Ok(None) };
    let session = &mut session.into();
    if marginal.division.states.is_none() {
        return marginal.chains(starts, settings, session);
    }
    let Some(points) = marginal.points(starts, settings.seed)? else { return Ok(None) };
    if marginal.division.theta.is_empty() {
        let log_evidence = Estimate { value: marginal.log_marginals(&[Vec::new()])?[0], standard_error: 0.0 };
        let all = Weighted { thetas: vec![Vec::new()], log_weights: vec![0.0] };
        return marginal.draws(&all, (log_evidence, 0), None, settings);
    }
    let Some(places) = marginal.search(&points, settings.seed, session)? else { return Ok(None) };
    marginal.centre_at(&places[0].mean)?;
    if marginal.division.theta.len() == 1
        && let Some(found) = marginal.on_line(&places, &points, settings)?
    {
        return Ok(Some(found));
    }
    marginal.learn_and_draw(places, points, settings, session)
}

impl InferSettings {
    /// Whether latents may be integrated out instead of approximated: if nothing that concerns approximations was asked for.
    pub fn may_integrate(&self) -> bool {
        let is_free = self.is_free() && self.parts == Parts::default() && self.importance.is_none();
        is_free && self.method == Method::Auto && self.restarts.is_none() && self.correct == Correction::default()
    }
}

/// Values of θ with their log weights.
pub(super) struct Weighted {
    pub(super) thetas: Vec<Vec<f64>>,
    pub(super) log_weights: Vec<f64>,
}

/// Values of θ with their log marginal densities.
pub(super) struct Points {
    pub(super) thetas: Vec<Vec<f64>>,
    pub(super) log_p: Vec<f64>,
}

/// The marginal density of θ.
pub(super) struct Marginal<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) division: Division,
    grid: Batch,
    pub(super) conditional: ExactConditional<'a>,
}

impl<'a> Marginal<'a> {
    /// `None` if there is no such division, or if it would take too much work.
    pub(super) fn new(model: &'a dyn Model) -> Option<Self> {
        let mut division = Division::of(model)?;
        let conditional = ExactConditional::new(model, division.gaussian.clone())?;
        let values = if division.theta.is_empty() { 1 } else { EXPECTED };
        let can_sum = |states: &usize| (values * states) as f64 * conditional.work() <= WORK_MAX;
        division.states = division.states.filter(can_sum);
        if division.states.is_none() && !division.suits_chains(conditional.work()) {
            return None;
        }
        let latents = model.latents();
        let of_discrete = Latents::scalars(division.discrete.iter().map(|i| (latents.name(*i), latents.support(*i))));
        let grid = match division.states {
            Some(states) if states > 1 => Grid::new(&of_discrete.ok()?, 0).ok()?.states(),
            _ => Batch::zeros(division.discrete.len(), 1),
        };
        Some(Self { model, division, grid, conditional })
    }

    /// The work of one value of θ, in all states that are summed over.
    pub(super) fn work(&self) -> f64 {
        self.division.states.unwrap_or(1) as f64 * self.conditional.work()
    }

    /// Sets θ and the discrete latents of a point.
    fn place(&self, theta: &[f64], state: usize, point: &mut [f64]) {
        self.division.theta.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
        self.division.discrete.iter().enumerate().for_each(|(d, i)| point[*i] = self.grid.get(d, state));
    }

    /// Values of θ that are possible, by the starts of a fit; the Gaussian latents are moved from where they are there. `None` if there are
    /// none.
    fn points(&mut self, starts: &Starts, seed: u64) -> Result<Option<Points>> {
        let mut streams: Vec<Stream> =
            (0..ASCENTS as u64).map(|s| stream(seed, Purpose::GaussianMarginal.step(), 0, s)).collect();
        let begun = match scatter(self.model, starts, 0, &mut streams) {
            Err(Error::NotFinite { .. }) => return Ok(None),
            begun => begun?,
        };
        self.conditional.move_to((0..begun.columns_len()).map(|i| begun.get(i, 0)).collect());
        let of = |z: &Batch| -> Vec<Vec<f64>> {
            (0..z.draws_len()).map(|s| self.division.theta.iter().map(|i| z.get(*i, s)).collect()).collect()
        };
        let mut thetas = of(&begun);
        starts.points.iter().for_each(|z| thetas.extend(of(z)));
        // Once more from where the Gaussian latents are, with steps of the size of their scales.
        for _ in 0..2 {
            let log_p = self.log_marginals(&thetas)?;
            let Some(best) = best_of(&log_p) else { return Ok(None) };
            self.centre_at(&thetas[best])?;
        }
        let log_p = self.log_marginals(&thetas)?;
        Ok(Some(Points { thetas, log_p }))
    }

    /// Moves the Gaussian latents from where they are given θ, in the most probable state.
    fn centre_at(&mut self, theta: &[f64]) -> Result<()> {
        let states = self.log_masses(&[theta.to_vec()])?;
        let Some(state) = best_of(&states) else { return Ok(()) };
        let (theta_at, discrete, grid) = (&self.division.theta, &self.division.discrete, &self.grid);
        self.conditional.centre_at(&|point| {
            theta_at.iter().zip(theta).for_each(|(i, x)| point[*i] = *x);
            discrete.iter().enumerate().for_each(|(d, i)| point[*i] = grid.get(d, state));
        })
    }

    /// The log of the integral over the Gaussian latents for each θ and each state of the discrete latents.
    fn log_masses(&self, thetas: &[Vec<f64>]) -> Result<Vec<f64>> {
        let states = self.division.states.unwrap_or(1);
        self.conditional
            .log_masses(thetas.len() * states, &|job, point| self.place(&thetas[job / states], job % states, point))
    }

    /// The log marginal density of each θ; −∞ where it is zero, not a number where it could not be found.
    pub(super) fn log_marginals(&self, thetas: &[Vec<f64>]) -> Result<Vec<f64>> {
        let sum = |of_states: &[f64]| {
            if of_states.iter().any(|x| x.is_nan()) { f64::NAN } else { log_sum_exp(of_states) }
        };
        Ok(self.log_masses(thetas)?.chunks(self.division.states.unwrap_or(1)).map(sum).collect())
    }

    /// One θ by adaptive quadrature on its line. `None` if that does not cover it.
    fn on_line(&self, places: &[Proposal], points: &Points, settings: &InferSettings) -> Result<Option<Integrated>> {
        let known: Vec<f64> = places.iter().map(|place| place.mean[0]).collect();
        let mut line = LineDensity::new(places[0].mean[0], places[0].scale[0], TOLERANCE);
        line.add(points.thetas.iter().map(|theta| theta[0]).zip(points.log_p.iter().copied()));
        let (mut nodes, mut len) = (line.first(&known), 0);
        let at = |nodes: &[f64]| self.log_marginals(&nodes.iter().map(|x| vec![*x]).collect::<Vec<_>>());
        for round in 0.. {
            len += nodes.len();
            let log_p = at(&nodes)?;
            line.add(nodes.iter().copied().zip(log_p));
            match line.wanted() {
                Wanted::Nodes(wanted) if round < LINE_ROUNDS => nodes = wanted,
                Wanted::Nothing => break,
                _ => return Ok(None),
            }
        }
        let log_evidence = line.log_integral();
        let Some(distribution) = line.normalised() else { return Ok(None) };
        let some: Vec<(f64, f64)> =
            (0..COMPARED_ON_LINE).map(|k| distribution.quantile((k as f64 + 0.5) / COMPARED_ON_LINE as f64)).collect();
        let log_p = at(&some.iter().map(|(x, _)| *x).collect::<Vec<_>>())?;
        let weights: Vec<f64> = log_p.iter().zip(&some).map(|(log_p, (_, log_q))| log_p - log_q).collect();
        if !(effective(&weights) > EVEN_ON_LINE * COMPARED_ON_LINE as f64) {
            return Ok(None);
        }
        let levels = joined_levels(settings.draws, JOINED, settings.seed, LEVELS_STREAM);
        let (thetas, log_weights) = levels
            .into_iter()
            .map(|(level, count)| (vec![distribution.quantile(level).0], (count as f64).ln()))
            .unzip();
        let log_evidence = Estimate { value: log_evidence, standard_error: 0.0 };
        self.draws(&Weighted { thetas, log_weights }, (log_evidence, len), None, settings)
    }

    /// Draws of θ by these weights, and of all other latents given θ. `None` if they are too few, or if their density is not that of the
    /// model after all.
    pub(super) fn draws(
        &self,
        Weighted { thetas, log_weights }: &Weighted,
        (log_evidence, values): (Estimate, usize),
        of_weights: Option<(f64, f64)>,
        settings: &InferSettings,
    ) -> Result<Option<Integrated>> {
        let len = settings.draws;
        let ess = of_weights.map_or(len as f64, |(_, ess)| resampled_ess(len, ess, 1.0));
        if ess < ess_min(len) || !log_evidence.value.is_finite() {
            return Ok(None);
        }
        let chosen: Vec<usize> = systematic(log_weights, log_sum_exp(log_weights), len, MIDDLE).collect();
        let Some(states) = self.states(thetas, &chosen, settings.seed)? else { return Ok(None) };
        let place = |s: usize, point: &mut [f64]| self.place(&thetas[chosen[s]], states[s], point);
        let Some(z) = self.completed(&place, settings)? else { return Ok(None) };
        let summary = IntegrationSummary {
            states: self.division.states,
            values,
            khat: of_weights.map(|(khat, _)| khat),
            ..self.summary(ess)
        };
        Ok(Some(Integrated { z, log_evidence, summary }))
    }

    /// A summary to be completed.
    pub(super) fn summary(&self, ess: f64) -> IntegrationSummary {
        let latents = self.model.latents();
        IntegrationSummary {
            gaussian: self.division.gaussian.len(),
            states: None,
            conditioned: self.division.theta.iter().map(|i| latents.name(*i)).collect(),
            values: 0,
            khat: None,
            chains: None,
            khat_limit: VARIANCE_KHAT_MAX,
            ess,
        }
    }

    /// Draws of all latents, whose others these are: the Gaussian ones are a Latin hypercube, so that every one has all levels. `None` if
    /// some could not be found, or if their density is not that of the model after all.
    pub(super) fn completed(
        &self,
        place: &(dyn Fn(usize, &mut [f64]) + Sync),
        settings: &InferSettings,
    ) -> Result<Option<Batch>> {
        let len = settings.draws;
        let quantiles: Vec<f64> = (0..len).map(|k| normal_quantile((k as f64 + 0.5) / len as f64)).collect();
        let key = settings.seed.wrapping_mul(KEYS);
        let normal =
            |k: usize, s: usize| quantiles[shuffled(s as u64, len as u64, key.wrapping_add(k as u64)) as usize];
        let Some((z, expected)) = self.conditional.draws(len, place, &normal)? else { return Ok(None) };
        Ok(self.is_density(&z, &expected)?.then_some(z))
    }

    /// States of the discrete latents given these θ. `None` if their probabilities cannot be found.
    fn states(&self, thetas: &[Vec<f64>], chosen: &[usize], seed: u64) -> Result<Option<Vec<usize>>> {
        let Some(states) = self.division.states.filter(|states| *states > 1) else {
            return Ok(Some(vec![0; chosen.len()]));
        };
        let groups: Vec<&[usize]> = chosen.chunk_by(|a, b| a == b).collect();
        let distinct: Vec<Vec<f64>> = groups.iter().map(|same| thetas[same[0]].clone()).collect();
        let log_masses = self.log_masses(&distinct)?;
        if log_masses.iter().any(|log| log.is_nan()) {
            return Ok(None);
        }
        let mut levels = levels(chosen.len(), seed, LEVELS_STREAM + 1).into_iter();
        let mut drawn = Vec::with_capacity(chosen.len());
        for (same, log_masses) in groups.iter().zip(log_masses.chunks(states)) {
            let log_marginal = log_sum_exp(log_masses);
            let last = log_masses.iter().rposition(|log_mass| log_mass.is_finite()).unwrap_or(0);
            for mut left in levels.by_ref().take(same.len()) {
                let below = log_masses.iter().position(|log_mass| {
                    left -= (log_mass - log_marginal).exp();
                    left < 0.0
                });
                drawn.push(below.unwrap_or(last));
            }
        }
        Ok(Some(drawn))
    }

    /// Whether the log density of some draws is as expected: if it were not quadratic, or rounding had spoiled it, it would not be.
    fn is_density(&self, z: &Batch, expected: &[f64]) -> Result<bool> {
        let len = z.draws_len().min(COMPARED);
        let number = |k: usize| k * z.draws_len() / len;
        let mut some = Batch::zeros(z.columns_len(), len);
        for i in 0..z.columns_len() {
            some.column_mut(i).iter_mut().enumerate().for_each(|(k, x)| *x = z.get(i, number(k)));
        }
        let mut log_p = vec![0.0; len];
        self.model.log_joint(&some, &mut log_p)?;
        Ok(log_p.iter().enumerate().all(|(k, log_p)| (log_p - expected[number(k)]).abs() < ERROR_MAX))
    }
}

/// The place of the largest number that is finite.
pub(super) fn best_of(values: &[f64]) -> Option<usize> {
    (0..values.len()).filter(|s| values[*s].is_finite()).max_by(|a, b| values[*a].total_cmp(&values[*b]))
}
