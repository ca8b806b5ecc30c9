//! When a fit ends by itself.
//!
//! Steps of one size are taken until the parameters no longer travel but tremble about one place; their mean is better than any of
//! them. Then the steps are halved, for as long as that promises a better bound. This follows Welandawe, Andersen, Vehtari and Huggins
//! (2022), with the promise estimated in another way: trembling costs the bound a number of nats that is measured, and the mean of the
//! steps keeps a share of it that their windows tell.

use serde::{Deserialize, Serialize};

/// When to end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// The nats that the bound may still have to gain.
    pub accuracy: f64,
    /// Whether a bound that is still rising is waited for; if not, the fit ends soon, to be taken up in better units.
    pub is_patient: bool,
}

/// What steps of one size came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Their size.
    pub size: f64,
    /// How many they were.
    pub steps: u64,
    /// R̂ of the parameters over windows of the last of them: near one where they tremble about one place.
    pub rhat: f64,
    /// The standard error of the parameters' mean, over all of them.
    pub mcse: f64,
    /// The bound at that mean.
    pub elbo: f64,
    /// What more steps or smaller ones may still gain, in nats.
    pub to_gain: f64,
    /// The gradient's mean over its standard deviation, in the first window and over the last ones.
    pub signal: [f64; 2],
    /// Whether the bound no longer rose; nothing where there were too few steps to tell.
    pub is_settled: Option<bool>,
}

/// Steps in the shortest window.
const SHORTEST: u64 = 25;
/// Windows that are kept at most; then two and two become one.
const KEPT: usize = 8;
/// The last ones, which are looked at.
const LAST: usize = 4;
/// How many there are when they are looked at.
const LOOKS: [usize; 2] = [6, KEPT];
/// Parameters that tremble about one place have an R̂ below this.
const RHAT_MAX: f64 = 1.1;
/// A bound that rises by more nats than this, standard errors aside, has not settled.
pub(crate) const RISE_MAX: f64 = 0.5;
/// Steps after which a rising bound is left by who is not patient.
const SOON: u64 = 400;
/// Steps after which a bound that no longer rises is enough.
const LATE: u64 = 800;
/// Rounds at most.
const ROUNDS: usize = 6;

/// Sums over some steps, of differences from the round's origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Window {
    len: u64,
    theta: Vec<f64>,
    squares: Vec<f64>,
    phi: Vec<f64>,
    gradient: Vec<f64>,
    /// Σ‖g‖².
    power: f64,
    /// The bound's mean, and the sum of squares about it: its level may be far from zero.
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

    /// The gradient's mean over its standard deviation: √(‖E g‖² / E‖g − E g‖²), what noise adds to the first taken away.
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

/// What the last windows tell.
struct Look {
    rhat: f64,
    mcse: f64,
    /// The share of the trembling's variance that the mean keeps.
    kept: f64,
    /// What the bound gained from the older half of them to the newer, and twice its standard error.
    rise: f64,
    error: f64,
    /// Windows of the round.
    windows_len: usize,
    /// The mean of the bound.
    elbo: f64,
    signal: f64,
}

impl Look {
    /// What is left of a gain that fades with the number of steps as 1/t, where it was that much from the older half of the last
    /// windows to the newer: 1 over 1/t at the two middles, less each other, with t = 1 now.
    fn left(&self, rise: f64) -> f64 {
        let w = self.windows_len as f64;
        rise * (w - 3.0) * (w - 1.0) / (2.0 * w)
    }

    /// Whether the bound no longer rises or falls, after so many steps of one size.
    fn is_settled(&self, steps: u64) -> Option<bool> {
        let trembles = self.rhat <= RHAT_MAX;
        if !trembles && steps < SOON {
            return None;
        }
        let travelled = self.rise.abs() - 1.5 * self.error;
        Some(travelled.max(if trembles { travelled } else { self.left(travelled) }) <= RISE_MAX)
    }
}

/// The rounds of a fit under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Rounds {
    origin: [Vec<f64>; 2],
    windows: Vec<Window>,
    current: Window,
    window_len: u64,
    /// Steps of this round.
    steps: u64,
    first_signal: Option<f64>,
    pub(super) done: Vec<Round>,
}

/// A step as the rounds see it.
pub(super) struct Step<'a> {
    pub(super) theta: &'a [f64],
    pub(super) phi: &'a [f64],
    pub(super) gradient: &'a [f64],
    pub(super) elbo: f64,
}

impl Rounds {
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

    /// The size of the steps, of which the first round's is given.
    pub(super) fn size(&self, first: f64) -> f64 {
        first * 0.5_f64.powi(self.done.len() as i32)
    }

    /// Takes a step in, and says whether it is time for a look.
    pub(super) fn take(&mut self, step: &Step) -> bool {
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
            // What is under way is then half a window.
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

    /// Whether the round is to end.
    pub(super) fn is_over(&self, ending: &Ending) -> bool {
        let Some(look) = self.look() else { return false };
        let trembles = look.rhat <= RHAT_MAX && look.rise - look.error <= ending.accuracy;
        // Parameters that the bound does not depend on may travel for ever.
        let is_flat = self.steps >= LATE && look.left(look.rise.abs() + look.error) <= ending.accuracy;
        let is_hopeless = !ending.is_patient && self.steps >= SOON && look.rise > RISE_MAX + 1.5 * look.error;
        trembles || is_flat || is_hopeless
    }

    /// Whether the fit is, after its last round.
    pub(super) fn is_end(&self, ending: &Ending) -> bool {
        let is_hopeless = |round: &Round| !ending.is_patient && round.is_settled == Some(false);
        self.done.len() == ROUNDS
            || self.done.last().is_some_and(|round| round.to_gain <= ending.accuracy || is_hopeless(round))
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

    /// The mean of the last steps; nothing where they are too few.
    pub(super) fn mean(&self) -> Option<[Vec<f64>; 2]> {
        let all = joined(self.windows.last_chunk::<LAST>()?);
        let about =
            |origin: &[f64], sums: &[f64]| origin.iter().zip(sums).map(|(o, s)| o + s / all.len as f64).collect();
        Some([about(&self.origin[0], &all.theta), about(&self.origin[1], &all.phi)])
    }

    /// Whether the parameters tremble about one place, so that their mean is better than any of them.
    pub(super) fn trembles(&self) -> bool {
        self.look().is_some_and(|look| look.rhat <= RHAT_MAX)
    }

    /// Ends the round at a mean with this bound; the next one begins there.
    pub(super) fn close(&mut self, size: f64, elbo: f64, [theta, phi]: [&[f64]; 2]) {
        let Some(look) = self.look() else { return };
        let trembling = (elbo - look.elbo).max(0.0);
        let gained = self.done.last().map_or(0.0, |last| (elbo - last.elbo).max(0.0));
        let is_first = self.done.is_empty();
        // Half a step means half the trembling, and what the mean is off by because the bound is not a parabola halves with it. Of
        // the first round only its trembling is known.
        let smaller = (trembling * look.kept).max(if is_first { trembling * SKEW } else { gained });
        // Parameters that still travel say nothing of what their trembling costs.
        let is_on_its_way = look.rhat > RHAT_MAX;
        let to_gain = smaller.max(look.left(look.rise + if is_on_its_way { look.error } else { -look.error }));
        self.done.push(Round {
            size,
            steps: self.steps,
            rhat: look.rhat,
            mcse: look.mcse,
            elbo,
            to_gain,
            signal: [self.first_signal.unwrap_or(0.0), look.signal],
            is_settled: look.is_settled(self.steps),
        });
        *self = Self { done: std::mem::take(&mut self.done), ..Self::new(theta, phi) };
    }
}

/// The share of the trembling's cost that the mean may be off by, until a second round tells.
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

    const ENDING: Ending = Ending { accuracy: 0.1, is_patient: true };

    /// Climbs −½ Σ (θ − goal)² with noisy gradients, for as long as one round lasts; gives the rounds, and the
    /// bound at the mean.
    fn climb(goal: f64, size: f64, most: u64) -> (Rounds, f64) {
        let (mut theta, mut rng) = (vec![0.0; 6], stream(3, 0, 0, 0));
        let mut rounds = Rounds::new(&theta, &[]);
        let bound = |theta: &[f64]| -0.5 * theta.iter().map(|x| (x - goal).powi(2)).sum::<f64>();
        for _ in 0..most {
            let noise: Vec<f64> = (0..6).map(|_| StandardNormal.sample(&mut rng)).collect();
            let gradient: Vec<f64> = theta.iter().zip(&noise).map(|(x, n)| goal - x + n).collect();
            theta.iter_mut().zip(&gradient).for_each(|(x, g)| *x += size * g);
            let elbo = bound(&theta);
            if rounds.take(&Step { theta: &theta, phi: &[], gradient: &gradient, elbo }) && rounds.is_over(&ENDING) {
                break;
            }
        }
        let [mean, _] = rounds.mean().expect("windows");
        let elbo = bound(&mean);
        rounds.close(size, elbo, [&mean, &[]]);
        (rounds, elbo)
    }

    #[test]
    fn steps_end_when_they_tremble_about_one_place() {
        let (rounds, elbo) = climb(3.0, 0.2, 10_000);
        let round = rounds.done[0];
        assert!(round.steps <= 600 && round.rhat <= RHAT_MAX && round.is_settled == Some(true), "{round:?}");
        // The way there is behind the last windows: the gradient had a signal at first and has none now.
        assert!(round.signal[0] > 0.2 && round.signal[1] < 0.1, "{round:?}");
        // Trembling costs ½ · 6 · size/(2 − size) ≈ 0.33 nats. The mean of N steps is off by 1/√N, which costs ½ · 6/N.
        let kept = 0.5 * round.steps as f64;
        assert!(elbo > -9.0 / kept, "{elbo}");
        assert!((0.5..2.0).contains(&(round.mcse * kept.sqrt())), "{round:?}");
        assert!((0.001..0.05).contains(&round.to_gain), "{round:?}");
        assert!(rounds.is_end(&ENDING));
    }

    #[test]
    fn steps_that_travel_do_not_end() {
        let (rounds, _) = climb(100.0, 0.0005, 1000);
        let round = rounds.done[0];
        assert!(round.steps == 1000 && round.rhat > 1.5 && round.is_settled == Some(false), "{round:?}");
        assert!(round.to_gain > 1.0 && !rounds.is_end(&ENDING), "{round:?}");
        let hasty = Ending { is_patient: false, ..ENDING };
        assert!(rounds.is_end(&hasty));
    }

    #[test]
    fn a_first_bound_that_is_far_away_costs_no_digits() {
        let mut rounds = Rounds::new(&[0.0], &[]);
        for i in 0..200 {
            let elbo = if i == 0 { -1e12 } else { f64::from(i % 2) };
            rounds.take(&Step { theta: &[f64::from(i % 3)], phi: &[], gradient: &[1.0], elbo });
        }
        let look = rounds.look().expect("windows");
        assert!((look.elbo - 0.5).abs() < 0.01 && look.rise.abs() < 0.05 && look.error < 0.3, "{}", look.error);
    }

    #[test]
    fn what_is_left_of_a_fading_gain() {
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
    fn windows_double() {
        let mut rounds = Rounds::new(&[0.0], &[]);
        let looks: Vec<u64> = (1..=1000)
            .filter(|i| rounds.take(&Step { theta: &[*i as f64], phi: &[], gradient: &[1.0], elbo: 0.0 }))
            .collect();
        assert_eq!(looks, [150, 200, 300, 400, 600, 800]);
        // Five windows of two hundred steps each, of which the last four count.
        assert_eq!(rounds.windows.len(), 5);
        assert_eq!(rounds.mean(), Some([vec![600.5], vec![]]));
    }
}
