//! Tempered sequential Monte Carlo against known shares and integrals.

use super::base::Base;
use super::smc::{Bridged, SmcPlan, TemperedRun, tempered_smc};
use super::tempered::Tempered;
use super::test_models::{Coupled, narrow, of_normal};
use super::whitened::WhitenedModel;
use super::whitening::Whitening;
use crate::model::{Model, check};
use crate::observer::Quiet;
use crate::session::Session;
use crate::targets::{Ising, Switchboard};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The model in its own coordinates.
fn unwhitened(model: &dyn Model) -> WhitenedModel<'_, dyn Model + '_> {
    let n = (0..model.latents().len()).filter(|i| !model.latents().support(*i).is_discrete()).count();
    WhitenedModel::new(model, vec![0.0; n], Whitening::Diagonal(vec![1.0; n]))
}

fn run(model: &dyn Model, u: &Batch, places: &[Batch], seed: u64) -> Bridged {
    let plan = SmcPlan { u, places, draws: 2000, work_max: f64::INFINITY, seed };
    match tempered_smc(&unwhitened(model), plan, &mut Session::new(&mut Quiet)).unwrap() {
        TemperedRun::Bridged(bridged) => bridged,
        _ => panic!("no particle reached the posterior"),
    }
}

/// Draws of every latent by a function of a random stream.
fn filled(n: usize, len: usize, mut f: impl FnMut(&mut Stream) -> f64) -> Batch {
    let mut out = Batch::zeros(n, len);
    for s in 0..len {
        let mut rng = stream(9, 0, 0, s as u64);
        (0..n).for_each(|i| out.set(i, s, f(&mut rng)));
    }
    out
}

/// Whether errors, in their standard errors, are of the size that these promise.
fn assert_calibrated(errors: &[f64]) {
    let rms = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
    assert!((0.5..1.7).contains(&rms), "{rms}: {errors:?}");
}

/// Catches shares of modes that are not those of the posterior: half of the mass is in a narrow mode, where chains would not go.
#[test]
fn modes_have_their_shares_of_the_mass() {
    let n = 5;
    let model = Coupled::normal_and_narrow(n);
    let (log_integral, _) = of_normal(n);
    let (centre, sd) = narrow(n);
    let u = filled(n, 200, |rng| 0.7 + Distribution::<f64>::sample(&StandardNormal, rng));
    let mut place = filled(n, 16, |rng| sd * Distribution::<f64>::sample(&StandardNormal, rng));
    (0..n).for_each(|i| place.column_mut(i).iter_mut().for_each(|x| *x += centre[i]));
    let (mut of_evidence, mut of_share) = (Vec::new(), Vec::new());
    for seed in 0..12 {
        let Bridged { u, log_evidence, summary } = run(&model, &u, std::slice::from_ref(&place), seed);
        of_evidence.push((log_evidence.value - log_integral - 2.0_f64.ln()) / log_evidence.standard_error);
        let is_near = |s: usize| (0..n).all(|i| (u.get(i, s) - centre[i]).abs() < 6.0 * sd);
        let share = (0..u.draws_len()).filter(|s| is_near(*s)).count() as f64 / u.draws_len() as f64;
        of_share.push((share - 0.5) / (0.25 / summary.ess_bulk).sqrt());
        assert!(summary.is_stationary && summary.ess_bulk > 100.0, "{summary:?}");
    }
    assert_calibrated(&of_evidence);
    assert_calibrated(&of_share);
}

/// Catches a wrong conditional at some temperature: the evidence of spins is known, and both signs are as probable.
#[test]
fn discrete_latents_are_tempered() {
    let (n, coupling) = (12, 0.9_f64);
    let model = Ising::ring(n, coupling).unwrap();
    // The trace of the transfer matrix.
    let exact = ((2.0 * coupling.cosh()).powi(n as i32) + (2.0 * coupling.sinh()).powi(n as i32)).ln();
    let [up, down] = [1.0, 0.0].map(|spin| filled(n, 50, |_| spin));
    let mut errors = Vec::new();
    for seed in 0..12 {
        let found = run(&model, &up, std::slice::from_ref(&down), seed);
        errors.push((found.log_evidence.value - exact) / found.log_evidence.standard_error);
        let mean = found.u.column(3).iter().sum::<f64>() / found.u.draws_len() as f64;
        assert!((mean - 0.5).abs() < 4.0 * (0.25 / found.summary.ess_bulk).sqrt(), "{mean} {:?}", found.summary);
    }
    assert_calibrated(&errors);
}

/// Catches gradients and conditionals that are not those of the tempered density.
#[test]
fn a_tempered_model_is_consistent() {
    let models: [&dyn Model; 2] = [&Switchboard::new(), &Coupled::normal(3)];
    for model in models {
        let u = filled(model.latents().len(), 20, |rng| f64::from(u8::from(rng.random::<f64>() < 0.5)));
        let base = Base::new(model.latents(), &u, std::slice::from_ref(&u)).unwrap();
        for power in [0.01, 0.4, 1.0] {
            check(&Tempered { model, base: &base, power }, 5).unwrap();
        }
    }
}
