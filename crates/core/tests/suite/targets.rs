//! The targets compared with independent sums and integrals: evidence, gradients, and the feature that each one has.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::fit::{FitSettings, Quiet, StartSettings, fit};
use hyperprior::infer::{Correction, InferSettings, Method, Starts, infer};
use hyperprior::likelihood::MeanField;
use hyperprior::math::family::{ConwayMaxwell, Family, Mixed, Poisson};
use hyperprior::math::special::{HALF_LN_2_PI, log_sum_exp};
use hyperprior::targets::{
    Banana, CorrelatedCounts, CountTarget, Coupling, Funnel, GaussianMixture, Ising, LogisticRegression, Switchboard,
};
use hyperprior::{Batch, Error, Model, Variational, check, exact};
use hyperprior_testkit::enumerate::{counts, product};
use hyperprior_testkit::finite_difference::{assert_close, gradient};
use hyperprior_testkit::quadrature::Rule;

fn log_joint(model: &dyn Model, z: &[f64]) -> f64 {
    let mut out = [f64::NAN];
    model.log_joint(&Batch::from_columns(z.to_vec(), 1), &mut out).unwrap();
    out[0]
}

fn continuous() -> Vec<(&'static str, Box<dyn Model>)> {
    vec![
        ("banana", Box::new(Banana::new())),
        ("funnel", Box::new(Funnel::default())),
        ("mixture", Box::new(GaussianMixture::new())),
        ("regression", Box::new(LogisticRegression::new())),
    ]
}

/// Catches locals or conditionals without a field, a neighbour or a strength.
#[test]
fn the_capabilities_of_every_target_agree_with_its_log_joint() {
    let discrete: Vec<Box<dyn Model>> = vec![
        Box::new(Ising::ring(8, 0.5).unwrap()),
        Box::new(Ising::grid(3, 4, 0.4, false).unwrap()),
        Box::new(Ising::grid(3, 4, 0.4, true).unwrap()),
        Box::new(Switchboard::new()),
        Box::new(CorrelatedCounts::new(CountTarget::C)),
    ];
    for model in discrete {
        let report = check(&*model, 5).unwrap();
        assert!(report.conditionals && report.finite == report.tried, "{report:?}");
    }
    for (name, model) in continuous() {
        let report = check(&*model, 5).unwrap();
        assert!(report.gradient && report.finite == report.tried, "{name}: {report:?}");
    }
}

/// Catches a derivative with an error that `check` does not detect, and a value that is not the log joint.
#[test]
fn gradients_are_those_of_the_log_joint() {
    for (name, model) in continuous() {
        let latents_len = model.latents().len();
        for shift in [-1.3, 0.2, 1.7] {
            let z: Vec<f64> = (0..latents_len).map(|i| shift * (1.0 - 0.4 * i as f64)).collect();
            let (mut value, mut d_z) = ([f64::NAN], Batch::zeros(latents_len, 1));
            let capability = model.gradient().unwrap();
            capability.log_joint_gradient(&Batch::from_columns(z.clone(), 1), &mut value, &mut d_z).unwrap();
            assert_eq!(value[0], log_joint(&*model, &z), "{name}");
            assert_close(d_z.as_slice(), &gradient(|z| log_joint(&*model, z), &z, 1e-2), 1e-8, 1e-9);
        }
    }
}

/// Catches a missing constant, and moments other than the documented ones.
#[test]
fn the_banana_has_evidence_one_and_no_correlation() {
    let model = Banana::new();
    let along = Rule::line(-9.0, 9.0, 0.05);
    let across = Rule::line(-6.0, 90.0, 0.05);
    let mut sums = [0.0; 4];
    for z1 in &along.points {
        for z2 in &across.points {
            let mass = 0.05 * 0.05 * log_joint(&model, &[z1[0], z2[0]]).exp();
            let values = [1.0, z2[0], z1[0] * z2[0], z2[0] * z2[0]];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += mass * value);
        }
    }
    // var z_2 = ½² + var z_1² = 2.25.
    assert_close(&sums, &[1.0, 0.0, 0.0, 2.25], 1e-10, 1e-10);
}

/// Catches a weight at the wrong corner.
#[test]
fn the_mixture_has_evidence_one_and_the_weight_of_each_corner() {
    let model = GaussianMixture::new();
    let axis: Vec<f64> = Rule::line(-12.0, 12.0, 0.25).points.concat();
    let mut quadrants = [0.0; 4];
    for z in product(&[axis.clone(), axis]) {
        let mass = 0.0625 * log_joint(&model, &z).exp();
        // Grid points on the axes belong to two quadrants and count half.
        for (quadrant, (corner, _)) in quadrants.iter_mut().zip(GaussianMixture::COMPONENTS) {
            let share = |i: usize| if z[i] == 0.0 { 0.5 } else { f64::from(z[i] * corner[i] > 0.0) };
            *quadrant += mass * share(0) * share(1);
        }
    }
    assert_close(&[quadrants.iter().sum()], &[1.0], 1e-12, 0.0);
    // A corner is three standard deviations from the axes.
    assert_close(&quadrants, &GaussianMixture::COMPONENTS.map(|(_, weight)| weight), 0.0, 2e-3);
}

/// Catches a scale e^v instead of e^(v/2), and a normaliser without v.
#[test]
fn the_funnel_has_evidence_one_and_x_has_the_scale_that_v_sets() {
    let model = Funnel::new(2).unwrap();
    // With x = e^{v/2} t the integrand is smooth in both.
    let (outer, inner) = (Rule::line(-27.0, 27.0, 0.5), Rule::line(-9.0, 9.0, 0.25));
    let [mass, square] = [0, 2].map(|power| {
        outer.integrate(|v| {
            let scale = (0.5 * v[0]).exp();
            inner.integrate(|t| scale * log_joint(&model, &[v[0], scale * t[0]]).exp() * (scale * t[0]).powi(power))
        })
    });
    // E x² = E e^v = e^{9/2}.
    assert_close(&[mass, square], &[1.0, 4.5_f64.exp()], 1e-9, 0.0);
    assert!(matches!(Funnel::new(1), Err(Error::BadLatent { .. })));
}

/// Catches data that were not simulated from the coefficients, and a prior that is not normalised.
#[test]
fn the_regression_recovers_the_coefficients_that_simulated_its_data() {
    let model = LogisticRegression::new();
    assert_eq!(model.rows().len(), 100);
    let at_zero = -100.0 * 2.0_f64.ln() - 5.0 * (2.0_f64.ln() + HALF_LN_2_PI);
    assert_close(&[log_joint(&model, &[0.0; 5])], &[at_zero], 1e-13, 0.0);

    let mut beta = vec![0.0; 5];
    for _ in 0..2000 {
        let slope = gradient(|z| log_joint(&model, z), &beta, 1e-2);
        beta.iter_mut().zip(slope).for_each(|(b, d)| *b += 0.03 * d);
    }
    // A standard error is about 0.3.
    for (beta, truth) in beta.iter().zip(LogisticRegression::TRUTH) {
        assert!((beta - truth).abs() < 1.0, "{beta} for {truth}");
    }
}

/// Catches an edge that is missing, doubled, or crosses a free boundary, by comparison with sums over rows and columns.
#[test]
fn the_evidence_of_a_small_grid_is_the_sum_over_its_states() {
    let coupling = 0.4;
    for periodic in [false, true] {
        let model = Ising::grid(3, 3, coupling, periodic).unwrap();
        assert_eq!(model.couplings().len(), if periodic { 18 } else { 12 });
        let log_terms: Vec<f64> = (0..1 << 9)
            .map(|state: u32| {
                let s = |row: u32, column: u32| if state >> (3 * row + column) & 1 == 1 { 1.0 } else { -1.0 };
                let line = |a: f64, b: f64, c: f64| a * b + b * c + if periodic { c * a } else { 0.0 };
                let rows: f64 = (0..3).map(|r| line(s(r, 0), s(r, 1), s(r, 2))).sum();
                let columns: f64 = (0..3).map(|c| line(s(0, c), s(1, c), s(2, c))).sum();
                coupling * (rows + columns)
            })
            .collect();
        let found = exact::posterior(&model, 1).unwrap().log_evidence;
        assert_close(&[found], &[log_sum_exp(&log_terms)], 1e-13, 0.0);
    }
}

/// Catches a grid with the wrong neighbours, by the divergence of mean-field from it: 1.518 with a free boundary, 1.014 without.
#[test]
fn mean_field_has_the_documented_divergence_from_a_grid() {
    for (periodic, expected) in [(false, 1.518), (true, 1.014)] {
        let model = Ising::grid(4, 4, 0.4, periodic).unwrap();
        let mut mean = vec![0.9; 16];
        let pull = |mean: &[f64], i: usize| -> f64 {
            let joined = |c: &Coupling| match c.spins {
                (a, b) if a == i => c.strength * mean[b],
                (a, b) if b == i => c.strength * mean[a],
                _ => 0.0,
            };
            model.couplings().iter().map(joined).sum()
        };
        for _ in 0..500 {
            mean = (0..16).map(|i| pull(&mean, i).tanh()).collect();
        }
        let energy: f64 = model.couplings().iter().map(|c| c.strength * mean[c.spins.0] * mean[c.spins.1]).sum();
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let entropies: f64 = mean.iter().map(|m| entropy(0.5 * (1.0 + m)) + entropy(0.5 * (1.0 - m))).sum();
        let kl = exact::posterior(&model, 1).unwrap().log_evidence - energy - entropies;
        assert_close(&[kl], &[expected], 0.0, 6e-4);
    }
}

#[test]
fn invalid_graphs_are_refused() {
    let said = |model: hyperprior::Result<Ising>| model.unwrap_err().to_string();
    assert!(said(Ising::grid(2, 3, 0.1, true)).contains("at least 3 rows"));
    assert!(said(Ising::grid(usize::MAX, 3, 0.1, false)).contains("too large"));
    assert!(said(Ising::new(2, vec![(0, 2)], 0.1)).contains("0–2"));
    assert!(said(Ising::new(2, vec![(0, 1)], f64::NAN)).contains("finite"));
    assert!(said(Ising::with_fields(Vec::new(), vec![0.0, f64::INFINITY])).contains("field of spin 1"));
    assert!(matches!(Ising::grid(0, 3, 0.1, false), Err(Error::EmptyModel)));
}

/// Catches groups that are not coupled within, a mode without probability, and groups that are independent; the evidence is
/// computed by a transfer matrix of 16 states around the ring of five groups.
#[test]
fn the_switchboard_has_a_mode_per_setting_of_its_switches() {
    let model = Switchboard::new();
    let posterior = exact::posterior(&model, 1).unwrap();

    let (fields, couplings) = (model.ising().fields(), model.ising().couplings());
    let states = product(&vec![counts(1); 4]);
    let spin = |z: f64| 2.0 * z - 1.0;
    let mut passed: Vec<Vec<f64>> = (0..16).map(|i| (0..16).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for group in 0..5 {
        // From a state of this group to a state of the next: the energy of this group, and the coupling between the two.
        let step = |from: &[f64], to: &[f64]| {
            let ring: f64 = (0..4).map(|i| spin(from[i]) * spin(from[(i + 1) % 4])).sum();
            let field: f64 = from.iter().map(|z| fields[4 * group] * spin(*z)).sum();
            (ring + field + couplings[5 * group + 4].strength * spin(from[3]) * spin(to[0])).exp()
        };
        let multiply = |row: &Vec<f64>| -> Vec<f64> {
            states.iter().map(|to| row.iter().zip(&states).map(|(p, from)| p * step(from, to)).sum()).collect()
        };
        passed = passed.iter().map(multiply).collect();
    }
    let trace: f64 = (0..16).map(|i| passed[i][i]).sum();
    assert_close(&[posterior.log_evidence], &[trace.ln()], 1e-12, 0.0);

    let z = posterior.grid.states();
    let (mut settings, mut whole) = ([0.0; 32], 0.0);
    for (s, log_joint) in posterior.log_joint.iter().enumerate() {
        let ups: Vec<f64> = (0..5).map(|g| (4 * g..4 * g + 4).map(|i| z.get(i, s)).sum()).collect();
        let mass = (log_joint - posterior.log_evidence).exp();
        if ups.iter().all(|up| *up == 0.0 || *up == 4.0) {
            settings[ups.iter().fold(0, |code, up| 2 * code + usize::from(*up == 4.0))] += mass;
            whole += mass;
        }
    }
    settings.iter_mut().for_each(|mass| *mass /= whole);
    // A group is all up or all down nine times in ten, so all five are more often than not.
    assert!(whole > 0.55, "{whole}");
    let (least, most) = settings.iter().fold((1.0_f64, 0.0_f64), |(l, m), p| (l.min(*p), m.max(*p)));
    assert!(least > 0.005 && most < 0.15, "from {least} to {most}");
    let up = |test: &dyn Fn(usize) -> bool| (0..32).filter(|code| test(*code)).map(|code| settings[code]).sum::<f64>();
    let (first, second) = (up(&|code| code & 16 != 0), up(&|code| code & 8 != 0));
    let excess = up(&|code| code & 24 == 24) - first * second;
    assert!(excess > 0.03, "the first two groups are dependent: {excess}");
    assert!((first - second).abs() > 0.1, "and have different probabilities: {first} and {second}");
}

/// KL(q ‖ p) of a fitted mean-field model with this family on both counts.
fn mean_field_kl(target: CountTarget, family: impl Family + Clone + 'static) -> f64 {
    let model = CorrelatedCounts::new(target);
    let q = Variational::mean_field(MeanField::of(family, 2).unwrap());
    let start = StartSettings::single();
    let settings = FitSettings::default().steps(300).step_size(0.1).start(start);
    let fitted = fit(&model, &q, &settings, &mut Quiet).unwrap();
    let posterior = exact::posterior(&model, 63).unwrap();
    exact::marginal(&q, &fitted.theta, &posterior, 1).kl
}

/// The purpose of the other families of counts. Catches a dispersion that cannot be learned: no mixture of Poissons gets closer
/// to E than 4.1625, and on C products of over-dispersed counts reach about .4, while Poissons stay at .78.
#[test]
fn families_with_a_dispersion_parameter_fit_better() {
    let table = |upper| ConwayMaxwell::new(upper).unwrap();
    let narrow = mean_field_kl(CountTarget::E, table(40));
    assert!(narrow < 2.0, "{narrow}");
    let [poisson, conway_maxwell, mixed] = [
        mean_field_kl(CountTarget::C, Poisson),
        mean_field_kl(CountTarget::C, table(63)),
        mean_field_kl(CountTarget::C, Mixed::new(Poisson, 9).unwrap()),
    ];
    assert_close(&[poisson], &[0.78247], 0.0, 1e-3);
    assert!(conway_maxwell < 0.45 && mixed < 0.45, "{conway_maxwell} {mixed}");
}

/// Catches an r by mode and curvature for binary latents, which leaves more than two nats, and draws that are weighed without fresh λ's:
/// the bound is near the log evidence, and the weights have a variance.
#[test]
fn a_hierarchical_model_of_spins_is_tight() {
    let settings = InferSettings::default().method(Method::Hvm).correct(Correction::None).restarts(1);
    for (model, gap) in [(Ising::ring(8, 0.5).unwrap(), 0.05), (Ising::grid(3, 3, 0.4, false).unwrap(), 0.05)] {
        let log_evidence = exact::posterior(&model, 1).unwrap().log_evidence;
        let found = infer(&model, &Starts::default(), &settings, &mut Quiet).unwrap();
        assert_eq!(found.parts[1..], ["gaussian (full)".to_owned(), "mixture-EP".to_owned()]);
        let bound = found.bounds.importance_lower.value;
        assert!((log_evidence - gap..log_evidence + 0.01).contains(&bound), "{bound} under {log_evidence}");
        assert!(found.psis.khat < 0.5, "{:?}", found.psis);
    }
}
