//! MCMC moves leave the posterior invariant: exact draws of a known posterior have the same distribution after any number of moves. The
//! tests detect errors of 5 % in variances and in probabilities, and of 5 % of a standard deviation in means.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::support::Small;
use hyperprior::infer::{MoveSchedule, WhitenedModel, Whitening, mcmc_moves};
use hyperprior::math::random::{standard_normals, stream};
use hyperprior::math::sparse::SparsePattern;
use hyperprior::model::Support;
use hyperprior::targets::{Coupling, Ising};
use hyperprior::{Batch, Model, Quiet};
use hyperprior_testkit::enumerate::{counts, product};
use hyperprior_testkit::goodness::chi_square;
use hyperprior_testkit::mean::assert_mean;
use rand::RngExt;

/// With this many draws, five standard errors are 4.3 % of a probability of .1 and 2 % of the variance of a normal.
const DRAWS: usize = 120_000;
/// Quantiles of the standard normal, and their probabilities.
const QUANTILES: [(f64, f64); 3] = [(-1.281_551_565_544_600_4, 0.1), (0.0, 0.5), (1.281_551_565_544_600_4, 0.9)];

/// A schedule of moves, and how many draws move together. The step size is adapted to all of them, from the first move on.
const SCHEDULES: [(MoveSchedule, usize); 3] = [
    (MoveSchedule { moves: [1; 2], memory: 0.0 }, DRAWS),
    (MoveSchedule { moves: [12; 2], memory: 0.0 }, DRAWS),
    // Until the draws have mixed.
    (MoveSchedule { moves: [1, 50], memory: 0.3 }, DRAWS),
];

/// `len` standard normals in each of `columns_len` columns.
fn normals(columns_len: usize, len: usize, seed: u64) -> Batch {
    let mut streams: Vec<_> = (0..len as u64).map(|s| stream(seed, 0, 0, s)).collect();
    let mut batch = Batch::zeros(columns_len, len);
    standard_normals(&mut streams, &mut batch);
    batch
}

/// Applies `f` to every draw.
fn map(z: &Batch, f: impl Fn(&[f64]) -> Vec<f64>) -> Batch {
    let rows: Vec<Vec<f64>> = (0..z.draws_len()).map(|s| f(&draw(z, s))).collect();
    crate::support::batch(&rows)
}

fn draw(z: &Batch, s: usize) -> Vec<f64> {
    (0..z.columns_len()).map(|i| z.get(i, s)).collect()
}

/// Moves the draws, `together` of them in each call.
fn moved(
    whitened: &WhitenedModel<dyn Model>,
    z: &Batch,
    (schedule, together): &(MoveSchedule, usize),
    seed: u64,
) -> Batch {
    let u = whitened.whiten(z);
    let mut after = Batch::zeros(u.columns_len(), u.draws_len());
    for (number, first) in (0..u.draws_len()).step_by(*together).enumerate() {
        let len = (*together).min(u.draws_len() - first);
        let mut own = Batch::zeros(u.columns_len(), len);
        for i in 0..u.columns_len() {
            own.column_mut(i).copy_from_slice(&u.column(i)[first..first + len]);
        }
        let summary = mcmc_moves(whitened, &mut own, schedule, (seed, number as u64), &mut Quiet).unwrap();
        assert!(summary.moves >= schedule.moves[0]);
        for i in 0..u.columns_len() {
            after.column_mut(i)[first..first + len].copy_from_slice(own.column(i));
        }
    }
    let mut z = Batch::zeros(u.columns_len(), u.draws_len());
    whitened.restore(&after, &mut z);
    z
}

/// Asserts that the columns are independent standard normals, as far as their moments and quantiles show.
fn assert_standard(e: &Batch) {
    for i in 0..e.columns_len() {
        let x = e.column(i);
        assert_mean(x, 0.0, 0.05);
        assert_mean(&x.iter().map(|x| x * x).collect::<Vec<_>>(), 1.0, 0.05);
        for (quantile, p) in QUANTILES {
            assert_mean(&x.iter().map(|x| f64::from(*x < quantile)).collect::<Vec<_>>(), p, 0.05 * p.min(1.0 - p));
        }
        for j in 0..i {
            assert_mean(&x.iter().zip(e.column(j)).map(|(x, y)| x * y).collect::<Vec<_>>(), 0.0, 0.05);
            assert_mean(&x.iter().zip(e.column(j)).map(|(x, y)| x * x * y).collect::<Vec<_>>(), 0.0, 0.05);
        }
    }
}

/// A correlation of .9, in coordinates that are whitened poorly.
fn gaussian() -> Small {
    Small::new(&[Support::Real; 2], |z| {
        let e = gaussian_noise(z);
        -0.5 * (e[0] * e[0] + e[1] * e[1])
    })
    .with_gradient(|z, d| {
        let e = gaussian_noise(z);
        let tail = e[1] / 0.19_f64.sqrt();
        d.copy_from_slice(&[-0.5 * e[0] + 0.45 * tail, -tail]);
    })
}

/// z = (3 + 2 e₁, .9 e₁ + √.19 e₂).
fn gaussian_noise(z: &[f64]) -> Vec<f64> {
    let first = (z[0] - 3.0) / 2.0;
    vec![first, (z[1] - 0.9 * first) / 0.19_f64.sqrt()]
}

fn gaussian_draw(e: &[f64]) -> Vec<f64> {
    vec![3.0 + 2.0 * e[0], 0.9 * e[0] + 0.19_f64.sqrt() * e[1]]
}

/// A normal, bent: z = (e₁, e₂ + .7 (e₁² − 1)).
fn banana() -> Small {
    Small::new(&[Support::Real; 2], |z| {
        let e = banana_noise(z);
        -0.5 * (e[0] * e[0] + e[1] * e[1])
    })
    .with_gradient(|z, d| {
        let e = banana_noise(z);
        d.copy_from_slice(&[-e[0] + 1.4 * z[0] * e[1], -e[1]]);
    })
}

fn banana_noise(z: &[f64]) -> Vec<f64> {
    vec![z[0], z[1] - 0.7 * (z[0] * z[0] - 1.0)]
}

fn banana_draw(e: &[f64]) -> Vec<f64> {
    vec![e[0], e[1] + 0.7 * (e[0] * e[0] - 1.0)]
}

/// Catches a Hamiltonian move that accepts too much, a gradient or density that belongs to another draw, and a step size that depends on
/// the draw it moves.
#[test]
fn hamiltonian_moves_leave_a_correlated_gaussian_and_a_banana_invariant() {
    let (gaussian, banana) = (gaussian(), banana());
    for (number, schedule) in SCHEDULES.iter().enumerate() {
        let seed = number as u64 + 1;
        let e = normals(2, DRAWS, 10 + seed);
        let near = WhitenedModel::new(&gaussian as &dyn Model, vec![2.5, 0.2], Whitening::Diagonal(vec![1.5, 0.8]));
        assert_standard(&map(&moved(&near, &map(&e, gaussian_draw), schedule, seed), gaussian_noise));
        let near = WhitenedModel::new(&banana as &dyn Model, vec![0.3, 0.0], Whitening::Full(vec![1.1, 0.3, 1.2]));
        assert_standard(&map(&moved(&near, &map(&e, banana_draw), schedule, seed), banana_noise));
    }
}

/// Catches a rotation in the wrong direction, a push that is not the rest of the gradient, and a wrong order of the two: where steps are
/// split, the posterior is invariant as well, whether it is nearly the Gaussian of the coordinates or not.
#[test]
fn split_steps_leave_a_correlated_gaussian_and_a_banana_invariant() {
    let (gaussian, banana) = (gaussian(), banana());
    let sparse =
        |precision: &[f64]| Whitening::Sparse(SparsePattern::new(2, &[[0, 1]]).unwrap().cholesky(precision).unwrap());
    for (number, schedule) in SCHEDULES.iter().enumerate() {
        let seed = number as u64 + 21;
        let e = normals(2, DRAWS, 10 + seed);
        let near = WhitenedModel::new(&gaussian as &dyn Model, vec![2.5, 0.2], sparse(&[0.5, 0.2, 1.4]));
        assert_standard(&map(&moved(&near, &map(&e, gaussian_draw), schedule, seed), gaussian_noise));
        let near = WhitenedModel::new(&banana as &dyn Model, vec![0.3, 0.0], sparse(&[0.9, -0.2, 0.7]));
        assert_standard(&map(&moved(&near, &map(&e, banana_draw), schedule, seed), banana_noise));
    }
}

/// Catches adaptation that breaks invariance: the step size follows the acceptance of the draws that move together. With two of them it
/// depends on each one's own state far more than with thousands: variances were too low by 4 % with four draws.
#[test]
fn adaptation_to_few_draws_leaves_the_posterior_invariant() {
    let gaussian = gaussian();
    let near = WhitenedModel::new(&gaussian as &dyn Model, vec![2.5, 0.2], Whitening::Diagonal(vec![1.5, 0.8]));
    let draws = map(&normals(2, DRAWS, 3), gaussian_draw);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let after = pool.install(|| moved(&near, &draws, &(MoveSchedule::fixed(8), 2), 5));
    assert_standard(&map(&after, gaussian_noise));
}

/// The p-value of states being distributed like these probabilities.
fn goodness(states: &[Vec<f64>], probabilities: &[f64], z: &Batch) -> f64 {
    let mut seen = vec![0; states.len()];
    for s in 0..z.draws_len() {
        let own = draw(z, s);
        seen[states.iter().position(|state| *state == own).unwrap()] += 1;
    }
    chi_square(&seen, probabilities, z.draws_len() as u64)
}

/// A state for each draw, by inversion.
fn states_drawn(states: &[Vec<f64>], probabilities: &[f64], seed: u64) -> Batch {
    let one = |s: u64| {
        let mut left: f64 = stream(seed, 1, 0, s).random();
        let found = probabilities.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        states[found.unwrap_or(states.len() - 1)].clone()
    };
    crate::support::batch(&(0..DRAWS as u64).map(one).collect::<Vec<_>>())
}

/// Catches Gibbs sweeps with a wrong conditional, for binary and categorical latents. An error of 5 % in a probability of .1 has a χ² of
/// 30.
#[test]
fn gibbs_sweeps_leave_discrete_posteriors_invariant() {
    let couplings = [(0, 1, 0.6), (1, 2, -0.4), (2, 3, 0.5), (3, 0, 0.2)];
    let couplings = couplings.map(|(a, b, strength)| Coupling { spins: (a, b), strength }).to_vec();
    let ising = Ising::with_fields(couplings, vec![0.3, -0.2, 0.0, 0.1]).unwrap();
    let die = Support::Integers { lower: 2.0, upper: 5.0 };
    let dice =
        Small::new(&[Support::BINARY, die, die], |z| 0.4 * z[0] * z[1] - 0.3 * (z[1] - z[2]).powi(2) - 0.5 * z[0]);
    let dice_values = [counts(1), vec![2.0, 3.0, 4.0, 5.0], vec![2.0, 3.0, 4.0, 5.0]];
    let cases: [(&dyn Model, Vec<Vec<f64>>); 2] =
        [(&ising, product(&vec![counts(1); 4])), (&dice, product(&dice_values))];
    for (model, states) in cases {
        let mut log_p = vec![0.0; states.len()];
        model.log_joint(&crate::support::batch(&states), &mut log_p).unwrap();
        let total: f64 = log_p.iter().map(|p| p.exp()).sum();
        let probabilities: Vec<f64> = log_p.iter().map(|p| p.exp() / total).collect();
        let exact_draws = states_drawn(&states, &probabilities, 4);
        assert!(goodness(&states, &probabilities, &exact_draws) > 1e-4);
        let whitened = WhitenedModel::new(model, vec![], Whitening::Diagonal(vec![]));
        for moves in [1, 5] {
            let after = moved(&whitened, &exact_draws, &(MoveSchedule::fixed(moves), DRAWS), 7);
            let p = goodness(&states, &probabilities, &after);
            assert!(p > 1e-4, "{moves} moves: {p}");
            assert!(exact_draws.as_slice() != after.as_slice(), "nothing moved");
        }
    }
}

/// Catches a density or gradient that is out of date after a Gibbs sweep: a die, a normal whose location and scale depend on it, and a
/// normal that depends on the first.
#[test]
fn moves_of_mixed_latents_leave_the_posterior_invariant() {
    const P: [f64; 3] = [0.2, 0.5, 0.3];
    const PLACE: [(f64, f64); 3] = [(0.0, 1.0), (1.0, 0.5), (-0.5, 1.6)];
    let noise = |z: &[f64]| {
        let (mean, sd) = PLACE[z[0] as usize];
        vec![(z[1] - mean) / sd, z[2] - 0.8 * z[1]]
    };
    let die = Support::Integers { lower: 0.0, upper: 2.0 };
    let model = Small::new(&[die, Support::Real, Support::Real], move |z| {
        let e = noise(z);
        (P[z[0] as usize] / PLACE[z[0] as usize].1).ln() - 0.5 * (e[0] * e[0] + e[1] * e[1])
    })
    .with_gradient(move |z, d| {
        let e = noise(z);
        d.copy_from_slice(&[0.0, -e[0] / PLACE[z[0] as usize].1 + 0.8 * e[1], -e[1]]);
    });
    let near = WhitenedModel::new(&model as &dyn Model, vec![0.2, 0.1], Whitening::Diagonal(vec![1.2, 1.3]));
    let states: Vec<Vec<f64>> = (0..3).map(|v| vec![f64::from(v)]).collect();
    let dice = states_drawn(&states, &P, 8);
    let e = normals(2, DRAWS, 9);
    let rows: Vec<Vec<f64>> = (0..DRAWS)
        .map(|s| {
            let v = dice.get(0, s);
            let (mean, sd) = PLACE[v as usize];
            let x = mean + sd * e.get(0, s);
            vec![v, x, 0.8 * x + e.get(1, s)]
        })
        .collect();
    let draws = crate::support::batch(&rows);
    for (number, schedule) in SCHEDULES.iter().enumerate() {
        let after = moved(&near, &draws, schedule, 20 + number as u64);
        let p = goodness(&states, &P, &Batch::from_columns(after.column(0).to_vec(), DRAWS));
        assert!(p > 1e-4, "{schedule:?}: {p}");
        assert_standard(&map(&after, noise));
        // The scale of the first normal in each state of the die.
        for v in 0..3 {
            let own: Vec<f64> =
                (0..DRAWS).filter(|s| after.get(0, *s) == f64::from(v)).map(|s| noise(&draw(&after, s))[0]).collect();
            assert_mean(&own.iter().map(|e| e * e).collect::<Vec<_>>(), 1.0, 0.05);
        }
    }
}
