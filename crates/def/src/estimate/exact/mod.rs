//! Compares the estimator with enumeration: at any noise, its mean over z is the derivative of the bound. Means over continuous
//! latents are computed by quadrature.

mod annealed;
mod bursts;
mod flow;
mod mixture;

use crate::burst::{Tokens, constant};
use crate::document::DocumentModel;
use crate::estimate::{Estimator, Given, Wanted};
use crate::kernel::layer::Link;
use crate::kernel::words::Words;
use crate::local::Method;
use crate::shape::{Family, Layer, Shape};
use crate::weights::{LayerWeights, TermPrior, TermWeights, WeightPosterior};
use hyperprior::many::FlowPair;
use hyperprior::{Batch, Model};
use hyperprior_math::quadrature::gauss_hermite;
use hyperprior_math::random::stream;
use hyperprior_math::single::{LANES, Lanes};
use hyperprior_math::special::{HALF_LN_2_PI, ln_factorial, sigmoid, softplus};

#[derive(Clone)]
struct Case {
    shape: Shape,
    terms: TermWeights,
    layer_weights: Vec<LayerWeights>,
    words: (Vec<u32>, Vec<f32>),
    /// The words one by one, and δ of every term, if they come in bursts.
    bursty: Option<(Tokens, Vec<f32>)>,
    parameters: Vec<Lanes>,
}

fn case(layers: &[(Family, usize)], method: Method, posterior: WeightPosterior) -> Case {
    case_of(layers, method, posterior, false)
}

fn case_of(layers: &[(Family, usize)], method: Method, posterior: WeightPosterior, is_conway_maxwell: bool) -> Case {
    let layers: Vec<Layer> = layers.iter().map(|(family, width)| Layer { family: *family, width: *width }).collect();
    let shape = Shape::with(&layers, is_conway_maxwell).expect("a shape");
    let mut rng = stream(3, 0, 0, 0);
    let mean = |v: usize, k: usize| 0.3 + 0.5 * ((3 * v + 5 * k) % 7) as f32 / 7.0;
    let background = [0.2, 0.1, 0.3, 0.2];
    let terms = TermWeights::new(posterior, TermPrior::default(), layers[0].width, &mean, &background, 4.0);
    let layer_weights = LayerWeights::all(&shape, posterior, 0.4, 0.7, &mut rng);
    let mut parameters = vec![Lanes::default(); method.parameters_len(&shape)];
    method.start(&shape, 0.35, &mut rng, &mut parameters);
    method.spread(&shape, &mut rng, &mut parameters);
    // Far enough from mean-field for dependence to matter.
    let n = shape.lambda_len();
    if let Method::Flow(flow, inverse) = method {
        // r sees z: all rows of its base but the first are random.
        let tiles = shape.tiles_len();
        let first = FlowPair::new(tiles * LANES, flow, inverse).theta_len() + n - tiles;
        for (i, lanes) in parameters[first + tiles..first + 6 * tiles].iter_mut().enumerate() {
            for (lane, x) in lanes.0.iter_mut().enumerate() {
                *x += 0.4 * (1.0 + 3.0 * i as f32 + 7.0 * lane as f32).sin() * shape.mask()[i % tiles].0[lane];
            }
        }
    }
    if let Method::LowRank(_) = method {
        parameters[n..].iter_mut().for_each(|lanes| lanes.0.iter_mut().for_each(|x| *x *= 30.0));
    }
    // Different scales for every point of a mixture.
    let points = method.points_len();
    for (i, lanes) in (0..points).flat_map(|i| (i * n + shape.tiles_len()..(i + 1) * n).map(move |at| (i, at))) {
        for (lane, x) in parameters[lanes].0.iter_mut().enumerate() {
            let more = 0.3 * (1.0 + 2.0 * i as f32 + 3.0 * lanes as f32 + 5.0 * lane as f32).sin();
            // These Conway–Maxwell counts are narrower than a Poisson.
            *x = (more + if is_conway_maxwell { 0.6 } else { -0.6 }) * shape.lambda_mask()[lanes % n].0[lane];
        }
    }
    let words = (vec![0, 2, 3], vec![2.0, 1.0, 3.0]);
    Case { shape, terms, layer_weights, words, bursty: None, parameters }
}

/// A value for each discrete latent and a quadrature node for each continuous one, with the weight of the nodes.
struct State {
    at: Vec<f64>,
    weight: f64,
}

/// States with nearly all of the mass, with `nodes` nodes for each continuous latent.
fn states(shape: &Shape, most: usize, nodes: usize) -> Vec<State> {
    let rule = gauss_hermite(nodes);
    let mut states = vec![State { at: vec![], weight: 1.0 }];
    for layer in shape.layers() {
        let values: Vec<(f64, f64)> = match layer.family {
            Family::Bernoulli => vec![(0.0, 1.0), (1.0, 1.0)],
            Family::Poisson => (0..most).map(|v| (v as f64, 1.0)).collect(),
            Family::Gamma | Family::Gaussian => rule.nodes.iter().copied().zip(rule.weights.iter().copied()).collect(),
        };
        for _ in 0..layer.width {
            let one = |state: &State, (value, weight): (f64, f64)| State {
                at: [state.at.as_slice(), &[value]].concat(),
                weight: state.weight * weight,
            };
            states = states.iter().flat_map(|state| values.iter().map(|value| one(state, *value))).collect();
        }
    }
    states
}

/// A latent, and the positions of it and its scale in λ.
#[derive(Clone, Copy)]
struct Place {
    family: Family,
    tile: usize,
    lane: usize,
    scale: Option<usize>,
}

/// λ of a latent: its location, and the logarithm of its scale.
type Lambda = (f64, f64);

impl Case {
    fn given<'a>(&'a self, links: &'a [Link<'a>]) -> Given<'a> {
        let words = match &self.bursty {
            Some((tokens, bursts)) => tokens.words(0, bursts),
            None => Words::of((&self.words.0, &self.words.1)),
        };
        Given { shape: &self.shape, words, seen: self.terms.seen(), links }
    }

    fn places(&self) -> Vec<Place> {
        let layers = self.shape.layers().iter().enumerate();
        layers
            .flat_map(|(l, layer)| (0..layer.width).map(move |k| (layer.family, l, k)))
            .map(|(family, l, k)| {
                let (tile, lane) = self.shape.place(l, k);
                let first = self.shape.tiles(l).start;
                let scale = (!self.shape.scales(l).is_empty()).then(|| self.shape.scales(l).start + tile - first);
                Place { family, tile, lane, scale }
            })
            .collect()
    }

    /// z of a state, and its probability.
    fn z(&self, state: &State, lambda: &[Lambda]) -> (Vec<f64>, f64) {
        let mut weight = state.weight;
        let one = |(place, (at, (l, s))): (&Place, (&f64, &Lambda))| match place.family {
            Family::Gamma => (l + s.exp() * at).exp(),
            Family::Gaussian => l + s.exp() * at,
            Family::Poisson | Family::Bernoulli => {
                weight *= log_factor(place, *at, (*l, *s)).exp();
                *at
            }
        };
        let z = self.places().iter().zip(state.at.iter().zip(lambda)).map(one).collect();
        (z, weight)
    }

    /// ln q(z | λ).
    fn log_q(&self, z: &[f64], lambda: &[Lambda]) -> f64 {
        let latents = self.places().into_iter().zip(z.iter().zip(lambda));
        latents.map(|(place, (z, lambda))| log_factor(&place, *z, *lambda)).sum()
    }

    fn log_p(&self, z: &[Vec<f64>]) -> Vec<f64> {
        let mut model =
            DocumentModel::new(&self.shape, &self.terms, &self.layer_weights, (&self.words.0, &self.words.1));
        if let Some((_, bursts)) = &self.bursty {
            let own: Vec<f32> = self.words.0.iter().map(|term| bursts[*term as usize]).collect();
            model = model.bursty(&own);
        }
        let mut batch = Batch::zeros(self.shape.latents_len(), z.len());
        for (s, z) in z.iter().enumerate() {
            z.iter().enumerate().for_each(|(i, x)| batch.set(i, s, *x));
        }
        let mut log_p = vec![0.0; z.len()];
        model.log_joint(&batch, &mut log_p).expect("a density");
        log_p
    }

    /// Sets a draw of the estimator.
    fn put(&self, z: &[f64], draw: usize, estimator: &mut Estimator) {
        for (place, x) in self.places().iter().zip(z) {
            estimator.z[place.tile].0[draw][place.lane] = *x as f32;
        }
    }

    /// λ from its numbers.
    fn read(&self, number: impl Fn(usize, usize) -> f64) -> Vec<Lambda> {
        let one =
            |place: Place| (number(place.tile, place.lane), place.scale.map_or(0.0, |scale| number(scale, place.lane)));
        self.places().into_iter().map(one).collect()
    }

    /// λ at noise `eps`.
    fn lambda(&self, parameters: &[Lanes], eps: &[f32]) -> Vec<Lambda> {
        let mu = self.read(|tile, lane| f64::from(parameters[tile].0[lane]));
        let noise =
            |i: usize| eps.iter().enumerate().map(|(r, e)| f64::from(*e) * self.row(parameters, i, r)).sum::<f64>();
        mu.into_iter().enumerate().map(|(i, (l, s))| (l + noise(i), s)).collect()
    }

    /// A latent's entry in a row of U, in units of its scale if it is continuous.
    fn row(&self, parameters: &[Lanes], i: usize, r: usize) -> f64 {
        let (n, len, place) = (self.shape.tiles_len(), self.shape.lambda_len(), self.places()[i]);
        let own = place.scale.filter(|_| place.family.is_continuous());
        let scale = own.map_or(1.0, |scale| f64::from(parameters[scale].0[place.lane]).exp());
        scale * f64::from(parameters[len + r * n + place.tile].0[place.lane])
    }

    /// ln r(ε | z) − ln q(ε) by definition, with r at these parameters.
    fn log_ratio(&self, parameters: &[Lanes], eps: &[f32], z: &[f64]) -> f64 {
        let rank = eps.len();
        if rank == 0 {
            return 0.0;
        }
        let mu = self.lambda(parameters, &vec![0.0; rank]);
        let places = self.places();
        let u = |i: usize, r: usize| self.row(parameters, i, r);
        // The gradient of ln q(z | μ + U ε) + ln N(ε) at ε = 0, and minus the mean over z of its curvature.
        let (mut g, mut p) = (vec![0.0; rank], vec![0.0; rank * rank]);
        for i in 0..mu.len() {
            let (l, s) = mu[i];
            // ∂ ln q(z)/∂λ, and minus the mean over z of its derivative.
            let (pull, bend) = match places[i].family {
                Family::Poisson if places[i].scale.is_some() => {
                    let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
                        (0..40).map(f64::from).map(|z| log_factor(&places[i], z, mu[i]).exp() * f(z)).sum()
                    };
                    let mean = moment(&|z| z);
                    (s.exp() * (z[i] - mean), (2.0 * s).exp() * moment(&|z| (z - mean).powi(2)))
                }
                Family::Poisson => {
                    let (mean, slope) = (softplus(l) + 1e-4, sigmoid(l));
                    (slope / mean * (z[i] - mean), slope * slope / mean)
                }
                Family::Bernoulli => (z[i] - sigmoid(l), sigmoid(l) * (1.0 - sigmoid(l))),
                Family::Gamma => ((z[i].ln() - l) * (-2.0 * s).exp(), (-2.0 * s).exp()),
                Family::Gaussian => ((z[i] - l) * (-2.0 * s).exp(), (-2.0 * s).exp()),
            };
            for r in 0..rank {
                g[r] += u(i, r) * pull;
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

    /// The bound at other parameters with r held fixed, at noise `eps`.
    fn bound(&self, states: &[State], parameters: &[Lanes], eps: &[f32]) -> f64 {
        let lambda = self.lambda(parameters, eps);
        let (z, weights): (Vec<_>, Vec<_>) = states.iter().map(|state| self.z(state, &lambda)).unzip();
        let one = |((z, weight), log_p): ((&Vec<f64>, &f64), &f64)| {
            weight * (log_p - self.log_q(z, &lambda) + self.log_ratio(&self.parameters, eps, z))
        };
        z.iter().zip(&weights).zip(&self.log_p(&z)).map(one).sum()
    }
}

/// ln q of one latent.
fn log_factor(place: &Place, z: f64, (l, s): Lambda) -> f64 {
    let normal = |y: f64| -0.5 * ((y - l) / s.exp()).powi(2) - s - HALF_LN_2_PI;
    match place.family {
        Family::Poisson if place.scale.is_some() => {
            let log = |z: f64| s.exp() * (l * z - ln_factorial(z));
            log(z) - (0..40).map(|z| log(f64::from(z)).exp()).sum::<f64>().ln()
        }
        Family::Poisson => {
            let rate = softplus(l) + 1e-4;
            z * rate.ln() - rate - ln_factorial(z)
        }
        Family::Bernoulli => z * l - softplus(l),
        Family::Gamma => normal(z.ln()) - z.ln(),
        Family::Gaussian => normal(z),
    }
}

/// Fixes the noise and enumerates z: the mean of the estimator's gradient is the central difference of the bound with r held fixed,
/// also along the weights between layers, and the mean of its values is the bound.
fn check(layers: &[(Family, usize)], method: Method, posterior: WeightPosterior, most: usize) {
    check_case(case(layers, method, posterior), method, most);
}

fn check_case(case: Case, method: Method, most: usize) {
    let layers = case.shape.layers();
    let states = states(&case.shape, most, 24);
    let mut estimator = Estimator::new(&case.shape, method);
    estimator.draw(&case.shape, &case.parameters, 1, &mut stream(5, 0, 0, 0));
    let eps: Vec<f32> = estimator.noise().iter().map(|e| e[0]).collect();
    let bound = |parameters: &[Lanes]| case.bound(&states, parameters, &eps);
    let lambda = case.lambda(&case.parameters, &eps);
    let links: Vec<_> = case.layer_weights.iter().map(LayerWeights::link).collect();
    let mut gradient = vec![[0.0_f64; 16]; case.parameters.len()];
    let mut d_layer_weights: Vec<Vec<[f64; 16]>> =
        case.layer_weights.iter().map(|b| vec![[0.0; 16]; b.len()]).collect();
    let mut value = 0.0;
    for state in &states {
        let (z, weight) = case.z(state, &lambda);
        case.put(&z, 0, &mut estimator);
        estimator.follow(&case.shape, 1);
        let one = estimator.evaluate(&case.given(&links), &case.parameters, 1, Wanted::Gradient);
        value += weight * f64::from(one);
        let mut own: Vec<Vec<Lanes>> = case.layer_weights.iter().map(|b| vec![Lanes::default(); b.len()]).collect();
        estimator.layer_weights_gradient(&case.shape, 1, &mut own);
        let sums = gradient.iter_mut().chain(d_layer_weights.iter_mut().flatten());
        for (sum, own) in sums.zip(estimator.gradient.iter().chain(own.iter().flatten())) {
            sum.iter_mut().zip(own.0).for_each(|(sum, own)| *sum += weight * f64::from(own));
        }
    }
    let bursts = case.bursty.as_ref().map_or(&[][..], |(_, bursts)| bursts);
    let of_words = constant(bursts, (&case.words.0, &case.words.1));
    let exact = bound(&case.parameters) - of_words + case.terms.background_sum();
    assert!((value - exact).abs() < 2e-5 * exact.abs().max(1.0), "the bound is {exact}, not {value}");
    let (n, len) = (case.shape.tiles_len(), case.shape.lambda_len());
    for Place { family, tile, lane, scale } in case.places() {
        let rows = (0..eps.len()).map(|r| len + r * n + tile);
        for at in [tile].into_iter().chain(scale).chain(rows) {
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
                "{layers:?} {method}: {family}, vector {at}, lane {lane}: {found}, not {difference}"
            );
        }
    }
    for (l, d_layer_weights) in d_layer_weights.iter().enumerate() {
        for (at, lane) in
            (0..d_layer_weights.len()).flat_map(|at| (0..case.shape.layers()[l].width).map(move |k| (at, k)))
        {
            let moved = |h: f32| {
                let mut case = case.clone();
                case.layer_weights[l].means_mut()[at].0[lane] += h;
                (case.bound(&states, &case.parameters, &eps), f64::from(case.layer_weights[l].means()[at].0[lane]))
            };
            let (up, down) = (moved(2e-3), moved(-2e-3));
            let (found, difference) = (d_layer_weights[at][lane], (up.0 - down.0) / (up.1 - down.1));
            let far = (found - difference).abs();
            assert!(
                far < 2e-4 * difference.abs().max(1.0),
                "{layers:?} {method}: weights {at} above layer {l}, lane {lane}: {found}, not {difference}"
            );
        }
    }
    // Empty lanes have no gradient.
    let used: Vec<(usize, usize)> = case.places().iter().map(|place| (place.tile, place.lane)).collect();
    let empty = (0..n).flat_map(|tile| (0..LANES).map(move |lane| (tile, lane))).filter(|at| !used.contains(at));
    assert!(empty.into_iter().all(|(tile, lane)| gradient[tile][lane] == 0.0), "{layers:?} {method}");
}

#[test]
fn binary_layers_have_the_exact_gradient() {
    use Family::Bernoulli;
    check(&[(Bernoulli, 3), (Bernoulli, 3)], Method::MeanField, WeightPosterior::Gamma, 2);
    check(&[(Bernoulli, 3), (Bernoulli, 3)], Method::LowRank(2), WeightPosterior::Point, 2);
}

#[test]
fn counts_have_the_exact_gradient() {
    use Family::Poisson;
    check(&[(Poisson, 3)], Method::MeanField, WeightPosterior::LogNormal, 12);
    check(&[(Poisson, 2), (Poisson, 2)], Method::MeanField, WeightPosterior::Gamma, 12);
    check(&[(Poisson, 2), (Poisson, 2)], Method::LowRank(2), WeightPosterior::Gamma, 12);
}

#[test]
fn layers_of_both_kinds_have_the_exact_gradient() {
    use Family::{Bernoulli, Poisson};
    check(&[(Poisson, 2), (Bernoulli, 3)], Method::LowRank(2), WeightPosterior::Gamma, 12);
    check(&[(Bernoulli, 3), (Poisson, 2)], Method::LowRank(2), WeightPosterior::Point, 12);
}

/// Layers of Conway–Maxwell counts, below and above others.
const CONWAY_MAXWELL: [&[(Family, usize)]; 4] = {
    use Family::{Bernoulli, Gamma, Poisson};
    [&[(Poisson, 2)], &[(Poisson, 1), (Poisson, 1)], &[(Bernoulli, 1), (Poisson, 1)], &[(Poisson, 1), (Gamma, 1)]]
};

#[test]
fn conway_maxwell_counts_have_the_exact_gradient() {
    for layers in CONWAY_MAXWELL {
        check_case(case_of(layers, Method::ConwayMaxwell, WeightPosterior::Gamma, true), Method::ConwayMaxwell, 12);
        check_case(case_of(layers, Method::LowRank(2), WeightPosterior::Gamma, true), Method::LowRank(2), 12);
    }
}

/// Layers with continuous latents in every possible position, with layers of other families.
const CONTINUOUS: [&[(Family, usize)]; 8] = {
    use Family::{Bernoulli, Gamma, Gaussian, Poisson};
    [
        &[(Gamma, 2)],
        &[(Gamma, 1), (Gamma, 1)],
        &[(Gamma, 1), (Gaussian, 1)],
        &[(Poisson, 2), (Gamma, 1)],
        &[(Bernoulli, 2), (Gaussian, 2)],
        &[(Gamma, 1), (Poisson, 2)],
        &[(Gamma, 1), (Bernoulli, 2)],
        &[(Bernoulli, 2), (Gaussian, 1), (Bernoulli, 2)],
    ]
};

#[test]
fn continuous_layers_have_the_exact_gradient() {
    for layers in CONTINUOUS {
        check(layers, Method::MeanField, WeightPosterior::Gamma, 12);
    }
}

#[test]
fn continuous_layers_of_low_rank_have_the_exact_gradient() {
    for layers in CONTINUOUS {
        check(layers, Method::LowRank(2), WeightPosterior::Point, 12);
    }
}

#[test]
fn a_document_is_a_model() {
    use Family::{Bernoulli, Poisson};
    let discrete: [&[(Family, usize)]; 2] = [&[(Poisson, 3), (Bernoulli, 2)], &[(Bernoulli, 3), (Poisson, 2)]];
    for layers in discrete.into_iter().chain(CONTINUOUS) {
        let case = case(layers, Method::MeanField, WeightPosterior::Gamma);
        let model = DocumentModel::new(&case.shape, &case.terms, &case.layer_weights, (&case.words.0, &case.words.1));
        let report = hyperprior::check(&model, 4).expect("the locals, the conditionals and the gradient agree");
        assert_eq!((report.locals, report.gradient), (true, case.shape.is_continuous()));
    }
}
