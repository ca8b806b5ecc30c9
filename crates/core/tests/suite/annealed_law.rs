//! Annealed bounds compared with exact numbers: with finitely many λ and z, every path of the chain is enumerated from the densities alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::{Small, coin_and_die, coins, count, moves, numbers, priors, recursives, variational};
use hyperprior::likelihood::MeanField;
use hyperprior::math::random::stream;
use hyperprior::math::special::log_sum_exp;
use hyperprior::model::{Model, Support};
use hyperprior::objective::{AnnealedSettings, BoundSettings, Estimate, Pass, annealed, annealed_upper, evaluate};
use hyperprior::prior::{Atoms, Covariance, Delta, FactorialMixture, Gaussian, Mixture, Start};
use hyperprior::recursive::{
    GaussianFit, HierarchicalRecursive, MixtureGaussian, Responsibilities, SameAsPrior, Space,
};
use hyperprior::{Batch, Variational, exact};
use hyperprior_testkit::enumerate::product;
use hyperprior_testkit::mean::MeanTest;

/// All states (λ, z) of a model and an approximation with finitely many of both, with their log densities.
struct States {
    /// The values of z.
    z: Vec<Vec<f64>>,
    log_q: Vec<f64>,
    log_p: Vec<f64>,
    log_r: Vec<f64>,
}

/// Probabilities of the states, or of their successors row by row.
type Matrix = Vec<Vec<f64>>;

impl States {
    /// State number `x · z_len + z` has the x-th λ.
    fn new(model: &dyn Model, q: &Variational, (theta, phi): (&[f64], &[f64])) -> Self {
        let grid = exact::Grid::new(model.latents(), 1).unwrap();
        let z = product(&(0..model.latents().len()).map(|i| grid.values(i).to_vec()).collect::<Vec<_>>());
        let switches = product(&vec![vec![0.0, 1.0]; q.prior().switches_len()]);
        let mut states = Self { z, log_q: Vec::new(), log_p: Vec::new(), log_r: Vec::new() };
        for k in 0..q.prior().components_len() {
            for switches in &switches {
                let mut eps = Batch::zeros(switches.len(), states.z.len());
                (0..switches.len()).for_each(|m| eps.column_mut(m).fill(switches[m]));
                let mut pass = Pass::default();
                pass.set(q, theta, k, &eps, &grid.states());
                pass.forward(model, q, theta, phi).unwrap();
                for s in 0..states.z.len() {
                    let log_q: f64 = (0..pass.log_q.columns_len()).map(|i| pass.log_q.get(i, s)).sum();
                    states.log_q.push(log_q + pass.log_prior[s]);
                }
                states.log_p.extend(&pass.log_p);
                states.log_r.extend(&pass.log_r);
            }
        }
        states
    }

    fn len(&self) -> usize {
        self.log_q.len()
    }

    /// log p + log r − log q.
    fn ratio(&self, s: usize) -> f64 {
        self.log_p[s] + self.log_r[s] - self.log_q[s]
    }

    /// q(z, λ), and the posterior times r.
    fn ends(&self) -> [Vec<f64>; 2] {
        let target: Vec<f64> = self.log_p.iter().zip(&self.log_r).map(|(p, r)| p + r).collect();
        let total = log_sum_exp(&target);
        [self.log_q.iter().map(|q| q.exp()).collect(), target.iter().map(|p| (p - total).exp()).collect()]
    }

    fn log_pi(&self, t: f64, s: usize) -> f64 {
        (1.0 - t) * self.log_q[s] + t * (self.log_p[s] + self.log_r[s])
    }

    /// λ′ ~ r, accepted with the ratio of π_t(λ′ | z) r(λ | z) to π_t(λ | z) r(λ′ | z).
    fn refresh(&self, t: f64) -> Matrix {
        let z_len = self.z.len();
        let mut moves = vec![vec![0.0; self.len()]; self.len()];
        for s in 0..self.len() {
            for to in (s % z_len..self.len()).step_by(z_len) {
                let ratio = self.log_pi(t, to) + self.log_r[s] - self.log_pi(t, s) - self.log_r[to];
                let chance = self.log_r[to].exp() * ratio.min(0.0).exp();
                moves[s][to] += chance;
                moves[s][s] += self.log_r[to].exp() - chance;
            }
        }
        moves
    }

    /// z_i from its conditional under π_t.
    fn gibbs(&self, t: f64, i: usize) -> Matrix {
        let z_len = self.z.len();
        let is_near = |a: usize, b: usize| {
            a / z_len == b / z_len
                && (0..self.z[0].len()).all(|j| j == i || self.z[a % z_len][j] == self.z[b % z_len][j])
        };
        let row = |s: usize| {
            let near: Vec<usize> = (0..self.len()).filter(|to| is_near(s, *to)).collect();
            let total = log_sum_exp(&near.iter().map(|to| self.log_pi(t, *to)).collect::<Vec<_>>());
            let mut row = vec![0.0; self.len()];
            near.iter().for_each(|to| row[*to] = (self.log_pi(t, *to) - total).exp());
            row
        };
        (0..self.len()).map(row).collect()
    }

    /// The move at temperature t, and its reversal.
    fn moves(&self, t: f64) -> [Matrix; 2] {
        let mut steps = vec![self.refresh(t)];
        steps.extend((0..self.z[0].len()).map(|i| self.gibbs(t, i)));
        let all = |steps: &mut dyn Iterator<Item = &Matrix>| {
            let first = steps.next().unwrap().clone();
            steps.fold(first, |product, step| multiply(&product, step))
        };
        [all(&mut steps.iter()), all(&mut steps.iter().rev())]
    }

    /// Σ over all paths of their probability times `f(log w)`, from `start` through moves that are numbered as they follow each other.
    fn sum(&self, start: &[f64], moves: &[Matrix], f: &dyn Fn(f64) -> f64) -> f64 {
        let temperatures = (moves.len() + 1) as f64;
        self.onwards(start, moves, 0.0, &|log_w| f(log_w / temperatures))
    }

    fn onwards(&self, from: &[f64], moves: &[Matrix], log_w: f64, f: &dyn Fn(f64) -> f64) -> f64 {
        let onwards = |s: usize| {
            let log_w = log_w + self.ratio(s);
            match moves.split_first() {
                None => f(log_w),
                Some((next, rest)) => self.onwards(&next[s], rest, log_w, f),
            }
        };
        (0..self.len()).filter(|s| from[*s] > 0.0).map(|s| from[s] * onwards(s)).sum()
    }

    /// E\[log w\] from q and from the posterior, and log E\[w\] and −log E\[1/w\], with K temperatures.
    fn bounds(&self, temperatures: usize) -> [f64; 4] {
        let at = |number: usize| self.moves(number as f64 / temperatures as f64);
        let forward: Vec<Matrix> = (1..temperatures).map(|number| at(number)[0].clone()).collect();
        let backward: Vec<Matrix> = (1..temperatures).rev().map(|number| at(number)[1].clone()).collect();
        let [q, target] = self.ends();
        [
            self.sum(&q, &forward, &|log_w| log_w),
            self.sum(&target, &backward, &|log_w| log_w),
            self.sum(&q, &forward, &f64::exp).ln(),
            -self.sum(&target, &backward, &|log_w| (-log_w).exp()).ln(),
        ]
    }
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    let entry = |row: &[f64], j: usize| row.iter().zip(b).map(|(x, y)| x * y[j]).sum();
    a.iter().map(|row| (0..row.len()).map(|j| entry(row, j)).collect()).collect()
}

/// Three coins, each of which wants to be like or unlike the next.
fn three_coins([a, b, c]: [f64; 3], fields: [f64; 3]) -> Small {
    Small::new(&[Support::BINARY; 3], move |z| {
        let unlike = |i: usize, j: usize| (z[i] - z[j]).abs();
        let alone: f64 = fields.iter().zip(z).map(|(field, z)| field * z).sum();
        a * unlike(0, 1) + b * unlike(1, 2) + c * unlike(2, 0) + alone - 0.8
    })
}

type Case = (&'static str, Small, Variational, Vec<f64>, Vec<f64>);

/// Finitely many λ: points, the second of which makes the order of a scan matter, two atoms with r = prior and with exact responsibilities, and two switches with a learnt r that is not exact.
fn cases() -> Vec<Case> {
    let point = {
        let q = Variational::mean_field(MeanField::for_latents(coin_and_die().latents()).unwrap());
        ("a point", coin_and_die(), q, vec![0.4, -0.3, 0.2], vec![])
    };
    let ordered = {
        let model = three_coins([2.6, -0.4, -2.6], [0.1, 0.4, 1.4]);
        let q = Variational::mean_field(MeanField::for_latents(model.latents()).unwrap());
        ("a point of three coins", model, q, vec![-2.9, 0.1, 1.3], vec![])
    };
    let atoms = |name, exact: bool| {
        let model = coins();
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let prior = Atoms::new(2, 2).unwrap();
        let q = if exact {
            Variational::new(likelihood, prior, Responsibilities)
        } else {
            Variational::new(likelihood, prior, SameAsPrior)
        };
        let q = q.unwrap();
        let theta = numbers(q.theta_len(), 1.0, 3);
        (name, model, q, theta, vec![])
    };
    let switches = {
        let model = three_coins([1.3, 0.9, -0.7], [0.4, 0.0, 0.0]);
        let likelihood = MeanField::for_latents(model.latents()).unwrap();
        let prior = FactorialMixture::new(Delta { lambda_len: 3 }, 2).unwrap();
        let r = HierarchicalRecursive::new(&likelihood, &prior);
        let q = Variational::new(likelihood, prior, r).unwrap();
        let (theta, phi) = (numbers(q.theta_len(), 0.9, 5), numbers(q.phi_len(), 0.7, 6));
        ("switches", model, q, theta, phi)
    };
    vec![point, ordered, atoms("atoms, r = prior", false), atoms("atoms, exact r", true), switches]
}

fn close(found: Estimate, exact: f64, detectable: f64) {
    MeanTest { mean: found.value, standard_error: found.standard_error }.assert(exact, detectable);
}

/// Catches a move that does not leave its density invariant (in this file's own enumeration, on which the other tests rest), and a backward
/// move that is not the reversal of the forward one.
#[test]
fn every_move_leaves_its_density_invariant_and_is_reversed() {
    for (name, model, q, theta, phi) in &cases() {
        let states = States::new(model, q, (theta, phi));
        for t in [0.25, 0.5, 0.8] {
            let log_pi: Vec<f64> = (0..states.len()).map(|s| states.log_pi(t, s)).collect();
            let total = log_sum_exp(&log_pi);
            let pi: Vec<f64> = log_pi.iter().map(|log_pi| (log_pi - total).exp()).collect();
            let [forward, backward] = states.moves(t);
            for s in 0..states.len() {
                let after: f64 = (0..states.len()).map(|from| pi[from] * forward[from][s]).sum();
                assert!((after - pi[s]).abs() < 1e-14, "{name}, t = {t}: {after} {}", pi[s]);
                for to in 0..states.len() {
                    let (there, back) = (pi[s] * forward[s][to], pi[to] * backward[to][s]);
                    assert!((there - back).abs() < 1e-14, "{name}, t = {t}");
                }
            }
        }
    }
}

/// Catches weights that are not those of the path: over all paths the mean of w is p(x) and that of 1/w is 1/p(x), for any q and r. The
/// bounds lie on their sides and get closer as K grows.
#[test]
fn over_all_paths_the_weights_are_unbiased_and_the_bounds_close_in() {
    for (name, model, q, theta, phi) in &cases() {
        let states = States::new(model, q, (theta, phi));
        let log_evidence = exact::posterior(model, 1).unwrap().log_evidence;
        let mut gaps = [f64::INFINITY; 2];
        for temperatures in [1, 2, 4] {
            // Of many states there are too many paths.
            if temperatures == 4 && states.len() > 8 {
                continue;
            }
            let [lower, upper, mean, harmonic] = states.bounds(temperatures);
            assert!((mean - log_evidence).abs() < 1e-12, "{name}: {mean} {log_evidence}");
            assert!((harmonic - log_evidence).abs() < 1e-12, "{name}: {harmonic} {log_evidence}");
            assert!(0.0 < log_evidence - lower && log_evidence - lower < gaps[0], "{name}: {lower} {log_evidence}");
            assert!(0.0 < upper - log_evidence && upper - log_evidence < gaps[1], "{name}: {upper} {log_evidence}");
            gaps = [log_evidence - lower, upper - log_evidence];
        }
    }
}

/// Catches, in the chains themselves: a scan that ignores log r or log q, or has the wrong power; a proposal of λ that is always accepted; a
/// backward move in the order of the forward one; weights of the wrong temperature. The estimates are those of the enumerated paths.
#[test]
fn the_estimates_are_those_of_the_enumerated_paths() {
    for (_, model, q, theta, phi) in &cases() {
        let states = States::new(model, q, (theta, phi));
        let posterior = exact::posterior(model, 1).unwrap();
        for temperatures in [1, 2, 3] {
            let [lower, upper, ..] = states.bounds(temperatures);
            // The more spread out the weights are, the more draws.
            let draws = if model.latents().len() > 2 { 300_000 } else { 100_000 };
            let settings = AnnealedSettings::default().temperatures(temperatures).draws(draws).seed(3);
            let found = annealed(model, q, (theta, phi), &settings).unwrap();
            close(found.lower, lower, 0.02);
            close(found.log_evidence, posterior.log_evidence, 0.08);
            let z = posterior.sample(draws, &mut stream(8, 0, 0, 0));
            close(annealed_upper(model, q, (theta, phi), &z, &settings).unwrap(), upper, 0.02);
        }
    }
}

/// Catches a bound with one temperature that is not the hierarchical ELBO, for continuous λ too.
#[test]
fn with_one_temperature_the_bound_is_the_hierarchical_elbo() {
    let model = coins();
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let prior = Mixture::new(2, 2, Covariance::Full).unwrap();
    let r = MixtureGaussian::new(&likelihood, &prior, GaussianFit::Laplace, Space::Noise).unwrap();
    let q = Variational::new(likelihood, prior, r).unwrap();
    let theta = numbers(q.theta_len(), 0.6, 9);
    let one = AnnealedSettings::default().temperatures(1).draws(100_000);
    let found = annealed(&model, &q, (&theta, &[]), &one).unwrap();
    let elbo = evaluate(&model, &q, (&theta, &[]), &BoundSettings::default().draws(400_000).samples(0)).unwrap().elbo;
    let (found, error) = (found.lower, elbo.standard_error);
    let standard_error = found.standard_error.hypot(error);
    MeanTest { mean: found.value - elbo.value, standard_error }.assert(0.0, 0.02);
}

/// Catches a λ, a component or a density that is not carried along with its draw: for every prior and every approximation that fit two coins,
/// the mean weight is the evidence, and the bound lies between the hierarchical ELBO and it.
#[test]
fn the_mean_weight_is_the_evidence_for_every_prior_and_recursive_approximation() {
    let model = coins();
    let log_evidence = exact::posterior(&model, 1).unwrap().log_evidence;
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let settings = AnnealedSettings::default().temperatures(2).draws(10_000).seed(5);
    for (p, prior) in priors(2).iter().enumerate() {
        let theta = moves(prior.parameters_len(), 0.4, 30 + p as u64);
        for r in 0..recursives(&likelihood, &**prior, &theta).len() {
            let recursive = recursives(&likelihood, &**prior, &theta).swap_remove(r);
            let q = variational(model.latents(), priors(2).swap_remove(p), recursive);
            // On λ, r must be narrower than the prior: if it is wider than q(λ), the weights have infinite variance.
            let mut phi = vec![0.0; q.phi_len()];
            q.recursive().initialize(&Start::at(vec![0.0; 2], 0.4), &mut stream(1, 0, 0, 0), &mut phi);
            phi.iter_mut().zip(numbers(q.phi_len(), 0.15, 50 + r as u64)).for_each(|(phi, x)| *phi += x);
            let label = format!("{} × {}", q.prior().name(), q.recursive().name());
            let found = annealed(&model, &q, (&theta, &phi), &settings).unwrap();
            let off = (found.log_evidence.value - log_evidence).abs() / found.log_evidence.standard_error;
            assert!(off < 5.0, "{label}: {off} standard errors from {log_evidence}: {found:?}");
            close(found.log_evidence, log_evidence, 0.3);
            let elbo = evaluate(&model, &q, (&theta, &phi), &BoundSettings::default().samples(0)).unwrap().elbo;
            assert!(found.lower.value > elbo.value && found.lower.value < log_evidence, "{label}: {found:?} {elbo:?}");
        }
    }
}

/// Catches draws of a long support that lose their own λ on the way: a scan passes the draws with the same block or table on together.
#[test]
fn counts_are_annealed() {
    let model = count();
    let posterior = exact::posterior(&model, 200).unwrap();
    let likelihood = MeanField::for_latents(model.latents()).unwrap();
    let prior = Gaussian::new(1, Covariance::Full).unwrap();
    let r = MixtureGaussian::new(&likelihood, &prior, GaussianFit::Laplace, Space::Noise).unwrap();
    let q = Variational::new(likelihood, prior, r).unwrap();
    let theta = [1.6, -0.4];
    let settings = AnnealedSettings::default().temperatures(6).draws(8000).seed(2);
    let found = annealed(&model, &q, (&theta, &[]), &settings).unwrap();
    close(found.log_evidence, posterior.log_evidence, 0.1);
    let z = posterior.sample(8000, &mut stream(4, 0, 0, 0));
    let upper = annealed_upper(&model, &q, (&theta, &[]), &z, &settings).unwrap();
    let elbo = evaluate(&model, &q, (&theta, &[]), &BoundSettings::default().samples(0)).unwrap().elbo;
    assert!(elbo.value + 0.05 < found.lower.value, "{elbo:?} {found:?}");
    assert!(found.lower.value < posterior.log_evidence && posterior.log_evidence < upper.value, "{found:?} {upper:?}");
}

/// Catches impossible draws that are left out of the bound instead of counted.
#[test]
fn impossible_draws_count_as_zero() {
    let model = Small::new(&[Support::BINARY; 2], |z| if z[0] + z[1] == 2.0 { f64::NEG_INFINITY } else { -1.0 });
    let q = variational(model.latents(), Box::new(Gaussian::new(2, Covariance::Full).unwrap()), Box::new(SameAsPrior));
    let settings = AnnealedSettings::default().temperatures(3).draws(20_000);
    let found = annealed(&model, &q, (&[0.0; 5], &[]), &settings).unwrap();
    assert!(found.dropped > 0, "some draws are impossible");
    // A quarter of the draws is impossible; if they were ignored, the estimate would be too high by 0.29.
    close(found.log_evidence, 3.0_f64.ln() - 1.0, 0.1);
    assert!(found.lower.value < 3.0_f64.ln() - 1.0);
}

/// Same seed, same numbers on any number of threads; and settings and latents that do not work are refused with what to do.
#[test]
fn threads_do_not_matter_and_errors_say_what_to_do() {
    let (_, model, q, theta, phi) = cases().swap_remove(4);
    let settings = AnnealedSettings::default().temperatures(3).draws(300);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| annealed(&model, &q, (&theta, &phi), &settings).unwrap())
    };
    assert_eq!(on(1), on(4));
    let error = annealed(&model, &q, (&theta, &phi), &settings.clone().temperatures(0)).unwrap_err().to_string();
    assert!(error.contains("`temperatures` = 0"), "{error}");
    let line = Small::new(&[Support::Real], |z| -0.5 * z[0] * z[0]).with_gradient(|z, d| d[0] = -z[0]);
    let q = Variational::mean_field(MeanField::for_latents(line.latents()).unwrap());
    let error = annealed(&line, &q, (&[0.0], &[]), &settings).unwrap_err().to_string();
    assert!(error.contains("all latents must be discrete") && error.contains("z0"), "{error}");
}
