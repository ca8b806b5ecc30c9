//! The stopping rule of a fit.
//!
//! Steps of one size are taken until the parameters are stationary: they fluctuate about one place, and their mean is better than
//! any of them. Then the step size is halved, as long as that is expected to improve the bound. This follows Welandawe, Andersen,
//! Vehtari and Huggins (2022), with a different estimate of the gain: the fluctuation costs the bound a measured number of nats,
//! and the windows show what share of it the mean of the iterates keeps.

use crate::json::{nullable, nullable_pair};
use serde::{Deserialize, Serialize};

/// When a fit ends.
///
/// ```
/// use hyperprior::fit::{FitSettings, StoppingRule};
/// let stopping = StoppingRule { accuracy: 0.1, is_patient: true };
/// let settings = FitSettings::default().steps(10_000).stopping(stopping);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppingRule {
    /// The fit ends once the expected gain is below this many nats.
    pub accuracy: f64,
    /// Whether to wait for a bound that is still rising; if not, the fit ends soon, to be repeated in better coordinates.
    pub is_patient: bool,
}

/// A stage of a fit with a stopping rule: steps of one size. See [`Fitted::stages`](super::Fitted::stages).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StepSizeStage {
    /// The step size.
    #[serde(deserialize_with = "nullable")]
    pub size: f64,
    /// The number of steps.
    pub steps: u64,
    /// R̂ of the parameters over windows of the last steps: close to one if they are stationary.
    #[serde(deserialize_with = "nullable")]
    pub rhat: f64,
    /// The standard error of the mean of the iterates, a root mean square over the parameters.
    #[serde(deserialize_with = "nullable")]
    pub mcse: f64,
    /// The bound at that mean.
    #[serde(deserialize_with = "nullable")]
    pub elbo: f64,
    /// The expected gain from more or smaller steps, in nats.
    #[serde(deserialize_with = "nullable")]
    pub expected_gain: f64,
    /// The signal-to-noise ratio of the gradient, in the first window and over the last ones.
    #[serde(deserialize_with = "nullable_pair")]
    pub signal: [f64; 2],
    /// Whether the bound had stopped rising; `None` if there were too few steps to tell.
    pub has_converged: Option<bool>,
}

/// The steps of the shortest window.
const SHORTEST: u64 = 25;
/// The maximum number of windows; after that they are merged in pairs.
const KEPT: usize = 8;
/// The number of most recent windows that are examined.
const LAST: usize = 4;
/// The numbers of windows at which they are examined.
const LOOKS: [usize; 2] = [6, KEPT];
/// Stationary parameters have an R̂ below this.
const RHAT_MAX: f64 = 1.1;
/// A bound that rises by more nats than this, beyond its standard error, has not converged.
pub(crate) const RISE_MAX: f64 = 0.5;
/// An impatient fit stops waiting for a rising bound after this many steps.
const SOON: u64 = 400;
/// After this many steps it is enough that the bound no longer rises.
const LATE: u64 = 800;
/// The maximum number of stages.
const STAGES: usize = 6;

/// Sums over some steps of differences from the stage's origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Window {
    len: u64,
    theta: Vec<f64>,
    squares: Vec<f64>,
    phi: Vec<f64>,
    gradient: Vec<f64>,
    /// Σ‖g‖².
    power: f64,
    /// The mean of the bound, and the sum of squares about it, since the bound may be far from zero.
    elbo: f64,
    elbo_squares: f64,
}

impl Window {
    fn new(theta_len: usize, phi_len: usize) -> Self {
        let [theta, squares, gradient] = [(); 3].map(|()| vec![0.0; theta_len]);
        Self { len: 0, theta, squares, gradient, phi: vec![0.0; phi_len], power: 0.0, elbo: 0.0, elbo_squares: 0.0 }
    }

    fn join(&mut self, other: &Self) {
        let (own, others) = (self.len as f64, other.len as f64);
        let apart = other.elbo - self.elbo;
        self.elbo += apart * others / (own + others);
        self.elbo_squares += other.elbo_squares + apart * apart * own * others / (own + others);
        self.len += other.len;
        self.power += other.power;
        add(&mut self.theta, &other.theta);
        add(&mut self.squares, &other.squares);
        add(&mut self.phi, &other.phi);
        add(&mut self.gradient, &other.gradient);
    }

    /// The signal-to-noise ratio of the gradient, √(‖E g‖² / E‖g − E g‖²), with the contribution of noise to ‖E g‖² removed.
    fn signal(&self) -> f64 {
        let n = self.len as f64;
        let mean: f64 = self.gradient.iter().map(|g| (g / n).powi(2)).sum();
        let noise = (self.power / n - mean) * n / (n - 1.0).max(1.0);
        if noise > 0.0 { ((mean - noise / n).max(0.0) / noise).sqrt() } else { 0.0 }
    }

    /// The mean of the bound, and the variance of that mean.
    fn bound(&self) -> (f64, f64) {
        let n = self.len as f64;
        (self.elbo, self.elbo_squares / (n - 1.0).max(1.0) / n)
    }
}

fn add(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// What the last windows show.
struct Look {
    rhat: f64,
    mcse: f64,
    /// The share of the fluctuation's variance that the mean keeps.
    kept: f64,
    /// The gain of the bound from the older half of the windows to the newer, and twice its standard error.
    rise: f64,
    error: f64,
    /// The number of windows of the stage.
    windows_len: usize,
    /// The mean of the bound.
    elbo: f64,
    signal: f64,
}

impl Look {
    /// The remaining gain if the distance from the limit falls as 1/t and the bound gained `rise` from the older half of the last
    /// windows to the newer: `rise` over the difference of 1/t between their midpoints, with t = 1 now.
    fn left(&self, rise: f64) -> f64 {
        let w = self.windows_len as f64;
        rise * (w - 3.0) * (w - 1.0) / (2.0 * w)
    }

    /// Whether the bound no longer rises or falls, after this many steps of one size.
    fn has_converged(&self, steps: u64) -> Option<bool> {
        let is_stationary = self.rhat <= RHAT_MAX;
        if !is_stationary && steps < SOON {
            return None;
        }
        let travelled = self.rise.abs() - 1.5 * self.error;
        Some(travelled.max(if is_stationary { travelled } else { self.left(travelled) }) <= RISE_MAX)
    }
}

/// The state of the stopping rule during a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoppingState {
    origin: [Vec<f64>; 2],
    windows: Vec<Window>,
    current: Window,
    window_len: u64,
    /// The steps of this stage.
    steps: u64,
    first_signal: Option<f64>,
    pub(super) done: Vec<StepSizeStage>,
}

/// A step as the stopping rule sees it.
pub(super) struct Step<'a> {
    pub(super) theta: &'a [f64],
    pub(super) phi: &'a [f64],
    pub(super) gradient: &'a [f64],
    pub(super) elbo: f64,
}

impl StoppingState {
    pub(super) fn new(theta: &[f64], phi: &[f64]) -> Self {
        Self {
            origin: [theta.to_vec(), phi.to_vec()],
            windows: Vec::new(),
            current: Window::new(theta.len(), phi.len()),
            window_len: SHORTEST,
            steps: 0,
            first_signal: None,
            done: Vec::new(),
        }
    }

    /// The current step size, given that of the first stage.
    pub(super) fn step_size(&self, first: f64) -> f64 {
        first * 0.5_f64.powi(self.done.len() as i32)
    }

    /// Adds a step; returns whether it is time to examine the windows.
    pub(super) fn push(&mut self, step: &Step) -> bool {
        let (window, [theta, phi]) = (&mut self.current, &self.origin);
        for (i, (x, origin)) in step.theta.iter().zip(theta).enumerate() {
            let x = x - origin;
            window.theta[i] += x;
            window.squares[i] += x * x;
        }
        for (sum, (x, origin)) in window.phi.iter_mut().zip(step.phi.iter().zip(phi)) {
            *sum += x - origin;
        }
        add(&mut window.gradient, step.gradient);
        window.power += step.gradient.iter().map(|g| g * g).sum::<f64>();
        window.len += 1;
        let away = step.elbo - window.elbo;
        window.elbo += away / window.len as f64;
        window.elbo_squares += away * (step.elbo - window.elbo);
        self.steps += 1;
        if window.len < self.window_len {
            return false;
        }
        self.first_signal.get_or_insert(window.signal());
        let fresh = Window::new(step.theta.len(), step.phi.len());
        if self.windows.len() == KEPT {
            self.halve();
            // The current window is now half full.
            return false;
        }
        self.windows.push(std::mem::replace(&mut self.current, fresh));
        LOOKS.contains(&self.windows.len())
    }

    fn halve(&mut self) {
        let mut joined: Vec<Window> = Vec::with_capacity(KEPT);
        for (k, window) in std::mem::take(&mut self.windows).into_iter().enumerate() {
            match joined.last_mut() {
                Some(last) if k % 2 == 1 => last.join(&window),
                _ => joined.push(window),
            }
        }
        self.windows = joined;
        self.window_len *= 2;
    }

    /// Whether the stage ends here.
    pub(super) fn is_stage_over(&self, rule: &StoppingRule) -> bool {
        let Some(look) = self.look() else { return false };
        let is_stationary = look.rhat <= RHAT_MAX && look.rise - look.error <= rule.accuracy;
        // Parameters that do not affect the bound may never become stationary.
        let is_flat = self.steps >= LATE && look.left(look.rise.abs() + look.error) <= rule.accuracy;
        let is_hopeless = !rule.is_patient && self.steps >= SOON && look.rise > RISE_MAX + 1.5 * look.error;
        is_stationary || is_flat || is_hopeless
    }

    /// Whether the fit ends after its last stage.
    pub(super) fn is_end(&self, rule: &StoppingRule) -> bool {
        let is_hopeless = |stage: &StepSizeStage| !rule.is_patient && stage.has_converged == Some(false);
        self.done.len() == STAGES
            || self.done.last().is_some_and(|stage| stage.expected_gain <= rule.accuracy || is_hopeless(stage))
    }

    fn look(&self) -> Option<Look> {
        let last = self.windows.last_chunk::<LAST>()?;
        let (k, len) = (LAST as f64, self.window_len as f64);
        let (mut between_to_within, mut errors, mut kept, mut moving) = (0.0, 0.0, 0.0, 0.0_f64);
        for i in 0..self.origin[0].len() {
            let means = last.each_ref().map(|w| w.theta[i] / len);
            let mean = means.iter().sum::<f64>() / k;
            let between = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (k - 1.0);
            let square = |w: &Window, m: f64| (w.squares[i] - len * m * m).max(0.0) / (len - 1.0);
            let within = last.iter().zip(means).map(|(w, m)| square(w, m)).sum::<f64>() / k;
            if !(within > 0.0) {
                continue;
            }
            moving += 1.0;
            between_to_within += between / within;
            errors += between / k;
            kept += between / k / (within + between);
        }
        let moving = moving.max(1.0);
        let (before, now) = (joined(&last[..LAST / 2]), joined(&last[LAST / 2..]));
        let ((before, before_error), (now, now_error)) = (before.bound(), now.bound());
        let (rise, error) = (now - before, 2.0 * (before_error + now_error).sqrt());
        let all = joined(last);
        Some(Look {
            rhat: ((len - 1.0) / len + between_to_within / moving).sqrt(),
            mcse: (errors / moving).sqrt(),
            kept: kept / moving,
            rise,
            error,
            windows_len: self.windows.len(),
            elbo: all.bound().0,
            signal: all.signal(),
        })
    }

    /// The mean of the last iterates; `None` if there are too few.
    pub(super) fn mean(&self) -> Option<[Vec<f64>; 2]> {
        let all = joined(self.windows.last_chunk::<LAST>()?);
        let about =
            |origin: &[f64], sums: &[f64]| origin.iter().zip(sums).map(|(o, s)| o + s / all.len as f64).collect();
        Some([about(&self.origin[0], &all.theta), about(&self.origin[1], &all.phi)])
    }

    /// Whether the parameters are stationary, so that their mean is better than any of the iterates.
    pub(super) fn is_stationary(&self) -> bool {
        self.look().is_some_and(|look| look.rhat <= RHAT_MAX)
    }

    /// Ends the stage at parameters with this bound, from which the next one begins.
    pub(super) fn close(&mut self, size: f64, elbo: f64, [theta, phi]: [&[f64]; 2]) {
        let Some(look) = self.look() else { return };
        let fluctuation = (elbo - look.elbo).max(0.0);
        let gained = self.done.last().map_or(0.0, |last| (elbo - last.elbo).max(0.0));
        let is_first = self.done.is_empty();
        // Half the step size halves the cost of the fluctuation, and also the bias of the mean where the bound is not quadratic.
        // After the first stage only the fluctuation is known.
        let smaller = (fluctuation * look.kept).max(if is_first { fluctuation * SKEW } else { gained });
        // Before the parameters are stationary, the cost of their fluctuation is not known.
        let is_travelling = look.rhat > RHAT_MAX;
        let expected_gain = smaller.max(look.left(look.rise + if is_travelling { look.error } else { -look.error }));
        self.done.push(StepSizeStage {
            size,
            steps: self.steps,
            rhat: look.rhat,
            mcse: look.mcse,
            elbo,
            expected_gain,
            signal: [self.first_signal.unwrap_or(0.0), look.signal],
            has_converged: look.has_converged(self.steps),
        });
        *self = Self { done: std::mem::take(&mut self.done), ..Self::new(theta, phi) };
    }
}

/// The bias of the mean as a share of the cost of the fluctuation, until a second stage measures it.
const SKEW: f64 = 0.1;

fn joined(windows: &[Window]) -> Window {
    let mut all = windows[0].clone();
    windows[1..].iter().for_each(|window| all.join(window));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    const RULE: StoppingRule = StoppingRule { accuracy: 0.1, is_patient: true };

    /// Maximises −½ Σ (θ − goal)² with noisy gradients for one stage; returns the state of the stopping rule and the bound at the
    /// mean.
    fn ascend(goal: f64, size: f64, most: u64) -> (StoppingState, f64) {
        let (mut theta, mut rng) = (vec![0.0; 6], stream(3, 0, 0, 0));
        let mut stopping = StoppingState::new(&theta, &[]);
        let bound = |theta: &[f64]| -0.5 * theta.iter().map(|x| (x - goal).powi(2)).sum::<f64>();
        for _ in 0..most {
            let noise: Vec<f64> = (0..6).map(|_| StandardNormal.sample(&mut rng)).collect();
            let gradient: Vec<f64> = theta.iter().zip(&noise).map(|(x, n)| goal - x + n).collect();
            theta.iter_mut().zip(&gradient).for_each(|(x, g)| *x += size * g);
            let elbo = bound(&theta);
            if stopping.push(&Step { theta: &theta, phi: &[], gradient: &gradient, elbo })
                && stopping.is_stage_over(&RULE)
            {
                break;
            }
        }
        let [mean, _] = stopping.mean().expect("windows");
        let elbo = bound(&mean);
        stopping.close(size, elbo, [&mean, &[]]);
        (stopping, elbo)
    }

    #[test]
    fn a_stage_ends_when_the_parameters_are_stationary() {
        let (stopping, elbo) = ascend(3.0, 0.2, 10_000);
        let stage = stopping.done[0];
        assert!(stage.steps <= 600 && stage.rhat <= RHAT_MAX && stage.has_converged == Some(true), "{stage:?}");
        // The last windows are stationary: the gradient had a signal at first and has none now.
        assert!(stage.signal[0] > 0.2 && stage.signal[1] < 0.1, "{stage:?}");
        // The fluctuation costs ½ · 6 · size/(2 − size) ≈ 0.33 nats. The mean of N steps has an error of 1/√N, which costs ½ · 6/N.
        let kept = 0.5 * stage.steps as f64;
        assert!(elbo > -9.0 / kept, "{elbo}");
        assert!((0.5..2.0).contains(&(stage.mcse * kept.sqrt())), "{stage:?}");
        assert!((0.001..0.05).contains(&stage.expected_gain), "{stage:?}");
        assert!(stopping.is_end(&RULE));
    }

    #[test]
    fn a_stage_does_not_end_while_the_parameters_travel() {
        let (stopping, _) = ascend(100.0, 0.0005, 1000);
        let stage = stopping.done[0];
        assert!(stage.steps == 1000 && stage.rhat > 1.5 && stage.has_converged == Some(false), "{stage:?}");
        assert!(stage.expected_gain > 1.0 && !stopping.is_end(&RULE), "{stage:?}");
        let impatient = StoppingRule { is_patient: false, ..RULE };
        assert!(stopping.is_end(&impatient));
    }

    #[test]
    fn an_extreme_first_bound_costs_no_precision() {
        let mut stopping = StoppingState::new(&[0.0], &[]);
        for i in 0..200 {
            let elbo = if i == 0 { -1e12 } else { f64::from(i % 2) };
            stopping.push(&Step { theta: &[f64::from(i % 3)], phi: &[], gradient: &[1.0], elbo });
        }
        let look = stopping.look().expect("windows");
        assert!((look.elbo - 0.5).abs() < 0.01 && look.rise.abs() < 0.05 && look.error < 0.3, "{}", look.error);
    }

    #[test]
    fn the_remaining_gain_is_extrapolated_as_one_over_t() {
        // 1/t from 0.625 to 0.875 with eight windows.
        let look = |windows_len| Look {
            rhat: 1.0,
            mcse: 0.0,
            kept: 0.0,
            rise: 0.0,
            error: 0.0,
            windows_len,
            elbo: 0.0,
            signal: 0.0,
        };
        for (windows_len, older, newer) in [(8, 0.625, 0.875), (6, 0.5, 5.0 / 6.0), (5, 0.4, 0.8)] {
            let rise = 1.0 / older - 1.0 / newer;
            assert!((look(windows_len).left(rise) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn windows_double_in_length() {
        let mut stopping = StoppingState::new(&[0.0], &[]);
        let looks: Vec<u64> = (1..=1000)
            .filter(|i| stopping.push(&Step { theta: &[*i as f64], phi: &[], gradient: &[1.0], elbo: 0.0 }))
            .collect();
        assert_eq!(looks, [150, 200, 300, 400, 600, 800]);
        // Five windows of two hundred steps each, of which the last four count.
        assert_eq!(stopping.windows.len(), 5);
        assert_eq!(stopping.mean(), Some([vec![600.5], vec![]]));
    }
}
