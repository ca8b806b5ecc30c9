//! The estimator against enumeration: its mean over z is the derivative of the bound, at any noise.

use crate::document::DocumentModel;
use crate::estimate::{Estimator, Wanted};
use crate::kernel::words::Words;
use crate::local::Method;
use crate::shape::{Family, Layer, Shape};
use crate::weights::{Belief, Between, TermPrior, TermWeights};
use hyperprior::many::FlowPair;
use hyperprior::{Batch, Model};
use hyperprior_math::random::stream;
use hyperprior_math::single::{LANES, Lanes};
use hyperprior_math::special::{ln_factorial, sigmoid, softplus};

struct Case {
    shape: Shape,
    terms: TermWeights,
    between: Vec<Between>,
    words: (Vec<u32>, Vec<f32>),
    parameters: Vec<Lanes>,
}

fn case(layers: &[(Family, usize)], method: Method, belief: Belief) -> Case {
    let layers: Vec<Layer> = layers.iter().map(|(family, width)| Layer { family: *family, width: *width }).collect();
    let shape = Shape::new(&layers).expect("a shape");
    let mut rng = stream(3, 0, 0, 0);
    let mean = |v: usize, k: usize| 0.3 + 0.5 * ((3 * v + 5 * k) % 7) as f32 / 7.0;
    let background = [0.2, 0.1, 0.3, 0.2];
    let terms = TermWeights::new(belief, TermPrior::default(), layers[0].width, &mean, &background, 4.0);
    let between = Between::all(&shape, belief, 0.4, &mut rng);
    let mut parameters = vec![Lanes::default(); method.parameters_len(&shape)];
    method.start(&shape, 0.35, &mut rng, &mut parameters);
    // Far enough from mean-field for dependence to matter.
    let n = shape.tiles_len();
    if let Method::Flow(flow, inverse) = method {
        // r sees z: all rows of its base but the first are random.
        let first = FlowPair::new(n * LANES, flow, inverse).theta_len();
        for (i, lanes) in parameters[first + n..first + 6 * n].iter_mut().enumerate() {
            for (lane, x) in lanes.0.iter_mut().enumerate() {
                *x += 0.4 * (1.0 + 3.0 * i as f32 + 7.0 * lane as f32).sin() * shape.mask()[i % n].0[lane];
            }
        }
    }
    if let Method::LowRank(_) = method {
        parameters[n..].iter_mut().for_each(|lanes| lanes.0.iter_mut().for_each(|x| *x *= 30.0));
    }
    Case { shape, terms, between, words: (vec![0, 2, 3], vec![2.0, 1.0, 3.0]), parameters }
}

/// Every z with nearly all of the mass, as values of all latents.
fn states(shape: &Shape, most: usize) -> Vec<Vec<f64>> {
    let mut states = vec![vec![]];
    for layer in shape.layers() {
        let values = if layer.family == Family::Bernoulli { 2 } else { most };
        for _ in 0..layer.width {
            states = states
                .into_iter()
                .flat_map(|state: Vec<f64>| (0..values).map(move |v| [state.clone(), vec![v as f64]].concat()))
                .collect();
        }
    }
    states
}

impl Case {
    fn families(&self) -> Vec<(Family, usize, usize)> {
        let layers = self.shape.layers().iter().enumerate();
        layers
            .flat_map(|(l, layer)| (0..layer.width).map(move |k| (layer.family, l, k)))
            .map(|(family, l, k)| {
                let (tile, lane) = self.shape.place(l, k);
                (family, tile, lane)
            })
            .collect()
    }

    /// ln q(z | λ).
    fn log_q(&self, z: &[f64], lambda: &[f64]) -> f64 {
        let one = |((family, ..), (z, l)): (&(Family, usize, usize), (&f64, &f64))| match family {
            Family::Poisson => {
                let rate = softplus(*l) + 1e-4;
                z * rate.ln() - rate - ln_factorial(*z)
            }
            Family::Bernoulli => z * l - softplus(*l),
        };
        self.families().iter().zip(z.iter().zip(lambda)).map(one).sum()
    }

    /// λ at a noise.
    fn lambda(&self, parameters: &[Lanes], eps: &[f32]) -> Vec<f64> {
        let n = self.shape.tiles_len();
        let at = |(_, tile, lane): &(Family, usize, usize)| {
            let noise =
                eps.iter().enumerate().map(|(r, e)| f64::from(*e) * f64::from(parameters[(r + 1) * n + tile].0[*lane]));
            f64::from(parameters[*tile].0[*lane]) + noise.sum::<f64>()
        };
        self.families().iter().map(at).collect()
    }

    /// ln r(ε | z) − ln q(ε), with r at these parameters, by its definition.
    fn log_ratio(&self, parameters: &[Lanes], eps: &[f32], z: &[f64]) -> f64 {
        let (rank, n) = (eps.len(), self.shape.tiles_len());
        if rank == 0 {
            return 0.0;
        }
        let mu = self.lambda(parameters, &vec![0.0; rank]);
        let families = self.families();
        let u = |i: usize, r: usize| f64::from(parameters[(r + 1) * n + families[i].1].0[families[i].2]);
        // Of ln q(z | μ + U ε) + ln N(ε) at ε = 0: the gradient, and minus the curvature with its mean over z.
        let (mut g, mut p) = (vec![0.0; rank], vec![0.0; rank * rank]);
        for i in 0..mu.len() {
            let (mean, slope) = match families[i].0 {
                Family::Poisson => (softplus(mu[i]) + 1e-4, sigmoid(mu[i])),
                Family::Bernoulli => (sigmoid(mu[i]), sigmoid(mu[i]) * (1.0 - sigmoid(mu[i]))),
            };
            let (pull, bend) = match families[i].0 {
                Family::Poisson => (slope / mean, slope * slope / mean),
                Family::Bernoulli => (1.0, slope),
            };
            for r in 0..rank {
                g[r] += u(i, r) * pull * (z[i] - mean);
                for t in 0..rank {
                    p[r * rank + t] += u(i, r) * bend * u(i, t);
                }
            }
        }
        (0..rank).for_each(|r| p[r * rank + r] += 1.0);
        assert_eq!(rank, 2, "the inverse below is of two by two");
        let det = p[0] * p[3] - p[1] * p[2];
        let m = [(p[3] * g[0] - p[1] * g[1]) / det, (p[0] * g[1] - p[2] * g[0]) / det];
        let off = [f64::from(eps[0]) - m[0], f64::from(eps[1]) - m[1]];
        let distance = p[0] * off[0] * off[0] + 2.0 * p[1] * off[0] * off[1] + p[3] * off[1] * off[1];
        let squares: f64 = eps.iter().map(|e| f64::from(*e).powi(2)).sum();
        0.5 * det.ln() - 0.5 * distance + 0.5 * squares
    }
}

/// Fixes the noise, enumerates z: the mean of the estimator's gradient is the central difference of the bound with r held, and
/// the mean of its values is the bound.
fn check(layers: &[(Family, usize)], method: Method, belief: Belief, most: usize) {
    let case = case(layers, method, belief);
    let model = DocumentModel::new(&case.shape, &case.terms, &case.between, (&case.words.0, &case.words.1));
    let states = states(&case.shape, most);
    let mut log_p = vec![0.0; states.len()];
    let mut z = Batch::zeros(case.shape.latents_len(), states.len());
    for (s, state) in states.iter().enumerate() {
        state.iter().enumerate().for_each(|(i, x)| z.set(i, s, *x));
    }
    model.log_joint(&z, &mut log_p).expect("a density");
    let mut estimator = Estimator::new(&case.shape, method);
    estimator.draw(&case.shape, &case.parameters, 1, &mut stream(5, 0, 0, 0));
    let eps: Vec<f32> = estimator.noise().iter().map(|e| e[0]).collect();
    let bound = |parameters: &[Lanes]| -> f64 {
        let lambda = case.lambda(parameters, &eps);
        let one = |(state, log_p): (&Vec<f64>, &f64)| {
            let log_q = case.log_q(state, &lambda);
            log_q.exp() * (log_p - log_q + case.log_ratio(&case.parameters, &eps, state))
        };
        states.iter().zip(&log_p).map(one).sum()
    };
    let lambda = case.lambda(&case.parameters, &eps);
    let words = Words { terms: &case.words.0, counts: &case.words.1 };
    let links: Vec<_> = case.between.iter().map(Between::link).collect();
    let mut gradient = vec![[0.0_f64; 16]; case.parameters.len()];
    let mut value = 0.0;
    for state in &states {
        let weight = case.log_q(state, &lambda).exp();
        for ((_, tile, lane), x) in case.families().iter().zip(state) {
            estimator.z[*tile].0[0][*lane] = *x as f32;
        }
        let one =
            estimator.evaluate(&case.shape, &words, &case.terms.seen(), &links, &case.parameters, 1, Wanted::Gradient);
        value += weight * f64::from(one);
        for (sum, own) in gradient.iter_mut().zip(&estimator.gradient) {
            sum.iter_mut().zip(own.0).for_each(|(sum, own)| *sum += weight * f64::from(own));
        }
    }
    let factorials: f64 = case.words.1.iter().map(|x| ln_factorial(f64::from(*x))).sum();
    let exact = bound(&case.parameters) + factorials + case.terms.background_sum();
    assert!((value - exact).abs() < 2e-5 * exact.abs().max(1.0), "the bound is {exact}, not {value}");
    let n = case.shape.tiles_len();
    for (_, tile, lane) in case.families() {
        for row in 0..case.parameters.len() / n {
            let at = row * n + tile;
            let moved = |h: f32| {
                let mut parameters = case.parameters.clone();
                parameters[at].0[lane] += h;
                (bound(&parameters), f64::from(parameters[at].0[lane]))
            };
            let (up, down) = (moved(2e-3), moved(-2e-3));
            let difference = (up.0 - down.0) / (up.1 - down.1);
            let found = gradient[at][lane];
            let far = (found - difference).abs();
            assert!(
                far < 2e-4 * difference.abs().max(1.0),
                "row {row}, tile {tile}, lane {lane}: {found}, not {difference}"
            );
        }
    }
}

#[test]
fn binary_layers_have_the_exact_gradient() {
    use Family::Bernoulli;
    check(&[(Bernoulli, 3), (Bernoulli, 3)], Method::MeanField, Belief::Gamma, 2);
    check(&[(Bernoulli, 3), (Bernoulli, 3)], Method::LowRank(2), Belief::Point, 2);
}

#[test]
fn counts_have_the_exact_gradient() {
    use Family::Poisson;
    check(&[(Poisson, 3)], Method::MeanField, Belief::LogNormal, 12);
    check(&[(Poisson, 2), (Poisson, 2)], Method::MeanField, Belief::Gamma, 12);
    check(&[(Poisson, 2), (Poisson, 2)], Method::LowRank(2), Belief::Gamma, 12);
}

#[test]
fn layers_of_both_kinds_have_the_exact_gradient() {
    use Family::{Bernoulli, Poisson};
    check(&[(Poisson, 2), (Bernoulli, 3)], Method::LowRank(2), Belief::Gamma, 12);
    check(&[(Bernoulli, 3), (Poisson, 2)], Method::LowRank(2), Belief::Point, 12);
}

/// With flows r is not held: the mean of the gradient over z is the central difference of the bound, at the same noise.
#[test]
fn flows_have_the_exact_gradient() {
    use Family::{Bernoulli, Poisson};
    for layers in [[(Bernoulli, 3), (Bernoulli, 2)], [(Poisson, 2), (Bernoulli, 2)]] {
        let method = Method::Flow(2, 3);
        let case = case(&layers, method, Belief::Gamma);
        let states = states(&case.shape, 12);
        let words = Words { terms: &case.words.0, counts: &case.words.1 };
        let links: Vec<_> = case.between.iter().map(Between::link).collect();
        let run = |parameters: &[Lanes]| -> (f64, Vec<[f64; 16]>) {
            let mut estimator = Estimator::new(&case.shape, method);
            estimator.draw(&case.shape, parameters, 1, &mut stream(5, 0, 0, 0));
            let families = case.families();
            let lambda: Vec<f64> =
                families.iter().map(|(_, tile, lane)| f64::from(estimator.lambda[*tile].0[0][*lane])).collect();
            let (mut value, mut gradient) = (0.0, vec![[0.0; 16]; parameters.len()]);
            for state in &states {
                // The flows leave λ behind where they went to.
                estimator.draw(&case.shape, parameters, 1, &mut stream(5, 0, 0, 0));
                for ((_, tile, lane), x) in families.iter().zip(state) {
                    estimator.z[*tile].0[0][*lane] = *x as f32;
                }
                let weight = case.log_q(state, &lambda).exp();
                let one = estimator.evaluate(
                    &case.shape,
                    &words,
                    &case.terms.seen(),
                    &links,
                    parameters,
                    1,
                    Wanted::Gradient,
                );
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
                // Empty lanes must stay where they are; of the others, some are enough.
                let is_latent = case.shape.mask()[at % case.shape.tiles_len()].0[lane] > 0.0;
                if !is_latent && at < 2 * case.shape.tiles_len() {
                    assert_eq!(found, 0.0, "vector {at}, lane {lane}");
                }
                if found.abs() < 1e-3 || (at + lane) % 3 != 0 {
                    continue;
                }
                moved += 1;
                // A layer's bend is sharp where its direction is short: extrapolated to no step at all.
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

#[test]
fn a_document_is_a_model() {
    use Family::{Bernoulli, Poisson};
    for layers in [[(Poisson, 3), (Bernoulli, 2)], [(Bernoulli, 3), (Poisson, 2)]] {
        let case = case(&layers, Method::MeanField, Belief::Gamma);
        let model = DocumentModel::new(&case.shape, &case.terms, &case.between, (&case.words.0, &case.words.1));
        hyperprior::check(&model, 4).expect("the locality law and the conditionals");
    }
}

/// With a mixture r is exact, so the bound is that of the mixture itself: E[ln p(x, z) − ln Σ w_i q(z | λ_i)], summed over all z.
#[test]
fn mixtures_have_the_exact_gradient() {
    use Family::{Bernoulli, Poisson};
    for layers in [[(Bernoulli, 3), (Bernoulli, 3)], [(Poisson, 2), (Poisson, 2)], [(Poisson, 2), (Bernoulli, 2)]] {
        let (method, points) = (Method::Mixture(2), 2);
        let mut case = case(&layers, method, Belief::Gamma);
        let n = case.shape.tiles_len();
        case.parameters[points * n].0[..points].copy_from_slice(&[0.3, -0.4]);
        let model = DocumentModel::new(&case.shape, &case.terms, &case.between, (&case.words.0, &case.words.1));
        let states = states(&case.shape, 12);
        let mut log_p = vec![0.0; states.len()];
        let mut z = Batch::zeros(case.shape.latents_len(), states.len());
        for (s, state) in states.iter().enumerate() {
            state.iter().enumerate().for_each(|(i, x)| z.set(i, s, *x));
        }
        model.log_joint(&z, &mut log_p).expect("a density");
        let families = case.families();
        let point = |parameters: &[Lanes], i: usize| -> Vec<f64> {
            families.iter().map(|(_, tile, lane)| f64::from(parameters[i * n + tile].0[*lane])).collect()
        };
        let weights = |parameters: &[Lanes]| -> Vec<f64> {
            let all: Vec<f64> = parameters[points * n].0[..points].iter().map(|a| f64::from(*a).exp()).collect();
            all.iter().map(|w| w / all.iter().sum::<f64>()).collect()
        };
        let bound = |parameters: &[Lanes]| -> f64 {
            let weights = weights(parameters);
            let one = |(state, log_p): (&Vec<f64>, &f64)| {
                let parts = (0..points).map(|i| weights[i] * case.log_q(state, &point(parameters, i)).exp());
                let q: f64 = parts.sum();
                q * (log_p - q.ln())
            };
            states.iter().zip(&log_p).map(one).sum()
        };
        let words = Words { terms: &case.words.0, counts: &case.words.1 };
        let links: Vec<_> = case.between.iter().map(Between::link).collect();
        let mut estimator = Estimator::new(&case.shape, method);
        estimator.draw(&case.shape, &case.parameters, points, &mut stream(5, 0, 0, 0));
        let (mut value, mut level) = (0.0, vec![0.0; points]);
        let mut gradient = vec![[0.0_f64; 16]; case.parameters.len()];
        let lambdas: Vec<Vec<f64>> = (0..points).map(|i| point(&case.parameters, i)).collect();
        let weights = weights(&case.parameters);
        for state in &states {
            for ((_, tile, lane), x) in families.iter().zip(state) {
                (0..points).for_each(|i| estimator.z[*tile].0[i][*lane] = *x as f32);
            }
            // Both points have the same draw: each is weighted with its own probability of it.
            estimator.shares[..points].fill(1.0);
            estimator.evaluate(
                &case.shape,
                &words,
                &case.terms.seen(),
                &links,
                &case.parameters,
                points,
                Wanted::Gradient,
            );
            for i in 0..points {
                let weight = case.log_q(state, &lambdas[i]).exp();
                let own = f64::from(estimator.level()[i]);
                level[i] += weight * own;
                value += weights[i] * weight * (own - weights[i].ln());
                for at in i * n..(i + 1) * n {
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
            for (_, tile, lane) in &families {
                let (found, difference) = (weights[i] * gradient[i * n + tile][*lane], slope(i * n + tile, *lane));
                let far = (found - difference).abs();
                assert!(far < 2e-4 * difference.abs().max(1.0), "point {i}, {tile}, {lane}: {found}, not {difference}");
            }
            // Along ln w_i: w_i (level_i − ln w_i − the bound).
            let found = weights[i] * (level[i] - weights[i].ln() - value);
            let difference = slope(points * n, i);
            assert!((found - difference).abs() < 2e-4 * difference.abs().max(1.0), "weight {i}: {found}, {difference}");
        }
    }
}
