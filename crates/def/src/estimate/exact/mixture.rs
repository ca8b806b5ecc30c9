//! With a mixture r is exact, so the bound is that of the mixture itself: E[ln p(x, z) − ln Σ w_i q(z | λ_i)], summed over all z.

use super::{CONTINUOUS, CONWAY_MAXWELL, Lambda, Place, case_of, states};
use crate::estimate::{Estimator, Wanted};
use crate::local::Method;
use crate::shape::Family;
use crate::weights::{LayerWeights, WeightPosterior};
use hyperprior_math::random::stream;
use hyperprior_math::single::Lanes;
use hyperprior_math::special::ln_factorial;

#[test]
fn mixtures_have_the_exact_gradient() {
    use Family::{Bernoulli, Poisson};
    let discrete: [&[(Family, usize)]; 3] =
        [&[(Bernoulli, 3), (Bernoulli, 3)], &[(Poisson, 2), (Poisson, 2)], &[(Poisson, 2), (Bernoulli, 2)]];
    let conway_maxwell = CONWAY_MAXWELL.into_iter().map(|layers| (layers, true));
    for (layers, is_conway_maxwell) in
        discrete.into_iter().chain(CONTINUOUS).map(|layers| (layers, false)).chain(conway_maxwell)
    {
        let (method, points) = (Method::Mixture(2), 2);
        let mut case = case_of(layers, method, WeightPosterior::Gamma, is_conway_maxwell);
        let len = case.shape.lambda_len();
        case.parameters[points * len].0[..points].copy_from_slice(&[0.3, -0.4]);
        // The log density of a mixture is less smooth than the other integrands, so it needs more nodes.
        let states = states(&case.shape, 12, 64);
        let point = |parameters: &[Lanes], i: usize| -> Vec<Lambda> {
            case.read(|tile, lane| f64::from(parameters[i * len + tile].0[lane]))
        };
        let weights = |parameters: &[Lanes]| -> Vec<f64> {
            let all: Vec<f64> = parameters[points * len].0[..points].iter().map(|a| f64::from(*a).exp()).collect();
            all.iter().map(|w| w / all.iter().sum::<f64>()).collect()
        };
        let bound = |parameters: &[Lanes]| -> f64 {
            let weights = weights(parameters);
            let lambdas: Vec<Vec<Lambda>> = (0..points).map(|i| point(parameters, i)).collect();
            let of_point = |i: usize| -> f64 {
                let (z, probable): (Vec<_>, Vec<_>) = states.iter().map(|state| case.z(state, &lambdas[i])).unzip();
                let one = |((z, probable), log_p): ((&Vec<f64>, &f64), &f64)| {
                    let q: f64 = (0..points).map(|i| weights[i] * case.log_q(z, &lambdas[i]).exp()).sum();
                    probable * (log_p - q.ln())
                };
                z.iter().zip(&probable).zip(&case.log_p(&z)).map(one).sum()
            };
            (0..points).map(|i| weights[i] * of_point(i)).sum()
        };
        let links: Vec<_> = case.layer_weights.iter().map(LayerWeights::link).collect();
        let mut estimator = Estimator::new(&case.shape, method);
        estimator.draw(&case.shape, &case.parameters, points, &mut stream(5, 0, 0, 0));
        let (mut value, mut level) = (0.0, vec![0.0; points]);
        let mut gradient = vec![[0.0_f64; 16]; case.parameters.len()];
        let lambdas: Vec<Vec<Lambda>> = (0..points).map(|i| point(&case.parameters, i)).collect();
        let weights = weights(&case.parameters);
        for state in &states {
            let drawn: Vec<(Vec<f64>, f64)> = lambdas.iter().map(|lambda| case.z(state, lambda)).collect();
            drawn.iter().enumerate().for_each(|(i, (z, _))| case.put(z, i, &mut estimator));
            estimator.follow(&case.shape, points);
            // Both points have the same state; each is weighted by its own probability of it.
            estimator.shares[..points].fill(1.0);
            estimator.evaluate(&case.given(&links), &case.parameters, points, Wanted::Gradient);
            for i in 0..points {
                let weight = drawn[i].1;
                let own = f64::from(estimator.level()[i]);
                level[i] += weight * own;
                value += weights[i] * weight * (own - weights[i].ln());
                for at in i * len..(i + 1) * len {
                    let own = estimator.gradient[at].0;
                    gradient[at].iter_mut().zip(own).for_each(|(sum, own)| *sum += weight * f64::from(own));
                }
            }
        }
        let factorials: f64 = case.words.1.iter().map(|x| ln_factorial(f64::from(*x))).sum();
        let constant = factorials + case.terms.background_sum();
        let exact = bound(&case.parameters) + constant;
        assert!((value - exact).abs() < 2e-5 * exact.abs().max(1.0), "the bound is {exact}, not {value}");
        let moved = |at: usize, lane: usize, h: f32| {
            let mut parameters = case.parameters.clone();
            parameters[at].0[lane] += h;
            (bound(&parameters), f64::from(parameters[at].0[lane]))
        };
        let slope = |at: usize, lane: usize| {
            let (up, down) = (moved(at, lane, 2e-3), moved(at, lane, -2e-3));
            (up.0 - down.0) / (up.1 - down.1)
        };
        for i in 0..points {
            for Place { family, tile, lane, scale } in case.places() {
                for at in [tile].into_iter().chain(scale).map(|at| i * len + at) {
                    let (found, difference) = (weights[i] * gradient[at][lane], slope(at, lane));
                    let far = (found - difference).abs();
                    assert!(
                        far < 2e-4 * difference.abs().max(1.0),
                        "{layers:?}: {family}, point {i}, vector {at}, lane {lane}: {found}, not {difference}"
                    );
                }
            }
            // Along ln w_i: w_i (level_i − ln w_i − the bound).
            let found = weights[i] * (level[i] - weights[i].ln() - value);
            let difference = slope(points * len, i);
            assert!((found - difference).abs() < 2e-4 * difference.abs().max(1.0), "weight {i}: {found}, {difference}");
        }
    }
}
