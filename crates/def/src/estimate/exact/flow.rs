//! With flows r is not held fixed: the mean of the gradient over z is the central difference of the bound, at the same noise.

use super::{case, states};
use crate::estimate::{Estimator, Wanted};
use crate::local::Method;
use crate::shape::Family;
use crate::weights::{LayerWeights, WeightPosterior};
use hyperprior_math::random::stream;
use hyperprior_math::single::Lanes;

#[test]
fn flows_have_the_exact_gradient() {
    use Family::{Bernoulli, Gamma, Gaussian, Poisson};
    let continuous = [&[(Gamma, 1), (Gaussian, 1)], &[(Poisson, 1), (Gamma, 1)]];
    for layers in [&[(Bernoulli, 3), (Bernoulli, 2)], &[(Poisson, 2), (Bernoulli, 2)]].into_iter().chain(continuous) {
        let method = Method::Flow(2, 3);
        let case = case(layers, method, WeightPosterior::Gamma);
        let states = states(&case.shape, 12, 24);
        let links: Vec<_> = case.layer_weights.iter().map(LayerWeights::link).collect();
        let run = |parameters: &[Lanes]| -> (f64, Vec<[f64; 16]>) {
            let mut estimator = Estimator::new(&case.shape, method);
            estimator.draw(&case.shape, parameters, 1, &mut stream(5, 0, 0, 0));
            let lambda = case.read(|tile, lane| f64::from(estimator.lambda[tile].0[0][lane]));
            let (mut value, mut gradient) = (0.0, vec![[0.0; 16]; parameters.len()]);
            for state in &states {
                // Evaluating the flows changes λ, so it is drawn again.
                estimator.draw(&case.shape, parameters, 1, &mut stream(5, 0, 0, 0));
                let (z, weight) = case.z(state, &lambda);
                case.put(&z, 0, &mut estimator);
                let one = estimator.evaluate(&case.given(&links), parameters, 1, Wanted::Gradient);
                value += weight * f64::from(one);
                for (sum, own) in gradient.iter_mut().zip(&estimator.gradient) {
                    sum.iter_mut().zip(own.0).for_each(|(sum, own)| *sum += weight * f64::from(own));
                }
            }
            (value, gradient)
        };
        let (_, gradient) = run(&case.parameters);
        let mut moved = 0;
        for at in 0..case.parameters.len() {
            for lane in 0..16 {
                let value = |h: f32| {
                    let mut parameters = case.parameters.clone();
                    parameters[at].0[lane] += h;
                    run(&parameters).0
                };
                let found = gradient[at][lane];
                // Empty lanes must have no gradient; of the others, checking some is enough.
                // The masks of μ and s, and of the log scales of the flow.
                let mask = [case.shape.lambda_mask(), case.shape.mask()].concat();
                if mask.get(at).is_some_and(|mask| mask.0[lane] == 0.0) {
                    assert_eq!(found, 0.0, "vector {at}, lane {lane}");
                }
                if found.abs() < 1e-3 || (at >= case.shape.lambda_len() && (at + lane) % 3 != 0) {
                    continue;
                }
                moved += 1;
                // A layer bends sharply if its direction is short, so the difference is extrapolated to a step of zero.
                let central = |h: f32| (value(h) - value(-h)) / (2.0 * f64::from(h));
                let difference = (4.0 * central(0.002) - central(0.004)) / 3.0;
                let far = (found - difference).abs();
                // Values near 10 in single precision leave about 2e-3 of noise in the difference.
                assert!(far < 3e-3 + 4e-3 * difference.abs(), "vector {at}, lane {lane}: {found}, not {difference}");
            }
        }
        assert!(moved > 12, "{moved}");
    }
}
