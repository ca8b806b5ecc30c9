//! One gradient step over a minibatch.
//!
//! The globals are drawn first. Given those draws, every datum of the batch is a separate model, evaluated in parallel; the
//! contributions of the data and their derivatives along the globals are summed in the batch's order, multiplied by N/B, and
//! passed to the globals as their log joint. Random streams are keyed by datum, so that a datum's draws do not depend on the
//! rest of the batch.

use super::guide::{Guide, Rows};
use super::{Datum, Given, PlateModel};
use crate::error::{Error, Result};
use crate::gradient::{Backward, Estimate, Estimator, GradientSettings, Plan, plan};
use crate::likelihood::Kind;
use crate::model::describe;
use crate::objective::Pass;
use crate::variational::Variational;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use hyperprior_math::scratch::Scratch;
use hyperprior_math::vector::add_scaled;
use rayon::prelude::*;

/// How many data a thread takes at a time; fixed, so that sums do not depend on the threads.
const SHARE: usize = 8;

/// The stream of the globals; those of the data are numbered from 1.
const GLOBALS: u64 = 0;

/// All learned parameters. See [`PlateModel`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlateParameters {
    /// The globals' θ and φ.
    pub globals: (Vec<f64>, Vec<f64>),
    /// Those of the guide: rows of (θ_n, φ_n), or the shared row and the network.
    pub locals: Vec<f64>,
}

/// A gradient: as [`PlateParameters`], except that for a table it has a row for each datum of the batch, in its order. See
/// [`PlateEngine`].
pub type PlateGradient = PlateParameters;

/// The working memory of a share of the batch.
#[derive(Debug)]
struct Worker {
    pass: Pass,
    streams: Vec<Stream>,
    weight: Vec<f64>,
    row: Vec<f64>,
    d_row: Vec<f64>,
    hidden: Vec<f64>,
    log_p: Vec<f64>,
    d_z: Batch,
    d_datum: Batch,
    /// Σ over the share of each draw's contribution, and of its derivative along the globals.
    value: Vec<f64>,
    d_globals: Batch,
    d_locals: Vec<f64>,
    dropped: usize,
    scratch: Scratch,
    failure: Option<Error>,
}

/// The working memory of steps over a plate. [`PlateFit`](super::PlateFit) runs them. See [`PlateModel`].
#[derive(Debug)]
pub struct PlateEngine<'a> {
    globals: Option<&'a Variational>,
    locals: &'a Variational,
    rows: Rows,
    settings: GradientSettings,
    plans: Vec<Plan>,
    global_plans: Vec<Plan>,
    workers: Vec<Worker>,
    pass: Pass,
    streams: Vec<Stream>,
}

impl<'a> PlateEngine<'a> {
    /// For this model, with a variational model for the globals (if there are any) and one for the latents of a datum.
    ///
    /// # Errors
    /// As [`GradientSettings::check`] and [`Variational::check`], and [`Error::Mismatch`] if a prior is a mixture or has switches,
    /// which plates do not support, or if the model has no gradient and needs one.
    pub fn new(
        model: &dyn PlateModel,
        globals: Option<&'a Variational>,
        locals: &'a Variational,
        guide: &Guide,
        settings: &GradientSettings,
    ) -> Result<Self> {
        settings.check()?;
        let mismatch = |first: &str, reason: &str| {
            let second = "the plate".to_owned();
            Err(Error::Mismatch { first: first.to_owned(), second, reason: reason.to_owned() })
        };
        let none = Batch::zeros(model.globals().len(), 0);
        let datum = Datum { plate: model, n: 0, globals: &none };
        locals.check(&datum)?;
        if settings.importance > 0 || settings.estimator == Estimator::DisArm {
            let reason = "a plate supports neither importance weights nor paired draws; use another estimator";
            return mismatch("the settings", reason);
        }
        // Every draw of the globals has its own draws of the data's latents.
        let settings = GradientSettings { replicates: 1, ..settings.clone() };
        let plans = plan(&datum, locals, &settings)?;
        let mut global_plans = Vec::new();
        match globals {
            None if !model.globals().is_empty() => return mismatch("the globals", "they have no variational model"),
            None => {}
            Some(q) => {
                let given = Given { latents: model.globals(), log_joint: &[], d_globals: &none };
                q.check(&given)?;
                let score = GradientSettings { estimator: Estimator::Score, ..settings.clone() };
                global_plans = plan(&given, q, &score)?;
                let is_continuous = |i: usize| q.likelihood().kind(i) != Kind::Sampled;
                if (0..model.globals().len()).any(is_continuous) && !model.has_gradient() {
                    return mismatch("the globals", "some are continuous, and the model has no gradient; give it one");
                }
            }
        }
        for q in globals.iter().copied().chain([locals]) {
            if q.prior().components_len() > 1 || q.prior().switches_len() > 0 {
                let reason =
                    "a plate does not support mixtures or switches; use a Gaussian, a flow or a hierarchical prior";
                return mismatch(&format!("the prior `{}`", q.prior().name()), reason);
            }
        }
        let features_len = if model.data_len() > 0 { model.features(0).len() } else { 0 };
        let rows = Rows::new(guide, model.data_len(), features_len, locals.theta_len() + locals.phi_len());
        Ok(Self {
            globals,
            locals,
            rows,
            settings,
            plans,
            global_plans,
            workers: Vec::new(),
            pass: Pass::default(),
            streams: Vec::new(),
        })
    }

    fn check(&self, model: &dyn PlateModel, batch: &[usize], at: &PlateParameters) -> Result<()> {
        let lens = self.globals.map_or((0, 0), |q| (q.theta_len(), q.phi_len()));
        let found = (at.globals.0.len(), at.globals.1.len(), at.locals.len());
        let expected = (lens.0, lens.1, self.rows.parameters_len());
        let missing = batch.iter().find(|n| **n >= model.data_len());
        let reason = match missing {
            Some(n) => format!("there is no datum {}; there are {}", n + 1, model.data_len()),
            None if found != expected => format!("they have {found:?} numbers, it needs {expected:?}"),
            None => return Ok(()),
        };
        Err(Error::Mismatch { first: "the parameters".to_owned(), second: "the plate".to_owned(), reason })
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The estimator of each latent of a datum.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Estimates the bound of the whole plate from the data in `batch`, and writes its gradient. The same (seed, step) gives the
    /// same random numbers.
    ///
    /// # Errors
    /// Errors of the model, [`Error::NotFinite`] if no draw of a datum or of the globals is finite, and [`Error::Mismatch`] for
    /// parameters of the wrong length or data that do not exist.
    pub fn step(
        &mut self,
        model: &dyn PlateModel,
        batch: &[usize],
        (seed, step): (u64, u64),
        at: &PlateParameters,
        gradient: &mut PlateGradient,
    ) -> Result<Estimate> {
        self.check(model, batch, at)?;
        let draws_len = self.settings.draws;
        let scale = model.data_len() as f64 / batch.len().max(1) as f64;
        self.streams.clear();
        self.streams.extend((0..draws_len).map(|s| stream(seed, step, GLOBALS, s as u64)));
        let none = Batch::zeros(0, draws_len);
        let betas = match self.globals {
            Some(q) => {
                self.pass.draw(q, &at.globals.0, 0, &mut self.streams, 1, self.settings.antithetic);
                &self.pass.draws.z
            }
            None => &none,
        };
        let shares = batch.len().div_ceil(SHARE);
        let gradient_len = self.rows.gradient_len(SHARE);
        self.workers.resize_with(self.workers.len().max(shares), || Worker::new(draws_len, gradient_len));
        let (rows, q, plans, settings) = (&self.rows, self.locals, &self.plans, &self.settings);
        self.workers[..shares].par_iter_mut().zip(batch.par_chunks(SHARE)).for_each(|(worker, share)| {
            let result = worker.run(model, q, rows, share, betas, (seed, step), &at.locals, plans, settings, scale);
            worker.failure = result.err();
        });
        if let Some(failure) = self.workers[..shares].iter_mut().find_map(|worker| worker.failure.take()) {
            return Err(failure);
        }
        // The data's contribution to each draw, in the batch's order.
        let mut log_joint = vec![0.0; draws_len];
        let mut d_globals = Batch::zeros(betas.columns_len(), draws_len);
        model.log_globals(betas, &mut log_joint, &mut d_globals)?;
        gradient.locals.clear();
        gradient.locals.resize(self.rows.gradient_len(batch.len()), 0.0);
        let mut dropped = 0;
        for (w, worker) in self.workers[..shares].iter().enumerate() {
            add_scaled(scale, &worker.value, &mut log_joint);
            add_scaled(scale, worker.d_globals.as_slice(), d_globals.as_mut_slice());
            dropped += worker.dropped;
            match &self.rows {
                Rows::Table { row_len, .. } => {
                    let len = batch[w * SHARE..].len().min(SHARE) * row_len;
                    gradient.locals[w * SHARE * row_len..][..len].copy_from_slice(&worker.d_locals[..len]);
                }
                Rows::Network { .. } => add_scaled(1.0, &worker.d_locals, &mut gradient.locals),
            }
        }
        let drawn = draws_len * batch.len();
        let Some(q) = self.globals else {
            let elbo = log_joint.iter().sum::<f64>() / draws_len as f64;
            return Ok(Estimate { elbo, dropped, drawn });
        };
        let given = Given { latents: model.globals(), log_joint: &log_joint, d_globals: &d_globals };
        let (theta, phi) = (&at.globals.0, &at.globals.1);
        self.pass.forward(&given, q, theta, phi)?;
        let finite = |f: &f64| f.is_finite();
        let kept = self.pass.integrand.iter().filter(|f| finite(f)).count() as f64;
        if kept == 0.0 {
            let example = describe(&given, &self.pass.draws.z, 0, self.pass.log_p[0]);
            return Err(Error::NotFinite { step, dropped: draws_len, drawn: draws_len, example });
        }
        let weight: Vec<f64> = self.pass.integrand.iter().map(|f| if finite(f) { 1.0 / kept } else { 0.0 }).collect();
        let (d_theta, d_phi) = (&mut gradient.globals.0, &mut gradient.globals.1);
        for (d, len) in [(&mut *d_theta, q.theta_len()), (&mut *d_phi, q.phi_len())] {
            d.clear();
            d.resize(len, 0.0);
        }
        let plans = &self.global_plans;
        let backward = Backward { model: &given, q, theta, phi, plans, settings: &self.settings, weight: &weight };
        self.pass.backward(backward, d_theta, d_phi)?;
        let mean: f64 = self.pass.integrand.iter().zip(&weight).filter(|(_, w)| **w > 0.0).map(|(f, w)| f * w).sum();
        Ok(Estimate { elbo: mean + (kept / draws_len as f64).ln(), dropped, drawn })
    }
}

impl Worker {
    fn new(draws_len: usize, gradient_len: usize) -> Self {
        Self {
            pass: Pass::default(),
            streams: Vec::with_capacity(draws_len),
            weight: vec![0.0; draws_len],
            row: Vec::new(),
            d_row: Vec::new(),
            hidden: Vec::new(),
            log_p: vec![0.0; draws_len],
            d_z: Batch::default(),
            d_datum: Batch::default(),
            value: vec![0.0; draws_len],
            d_globals: Batch::default(),
            d_locals: vec![0.0; gradient_len],
            dropped: 0,
            scratch: Scratch::default(),
            failure: None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is shared by all data, and this block's share of them")]
    fn run(
        &mut self,
        model: &dyn PlateModel,
        q: &Variational,
        rows: &Rows,
        share: &[usize],
        betas: &Batch,
        (seed, step): (u64, u64),
        parameters: &[f64],
        plans: &[Plan],
        settings: &GradientSettings,
        scale: f64,
    ) -> Result<()> {
        let draws_len = self.value.len();
        self.value.fill(0.0);
        self.d_globals.reset(betas.columns_len(), draws_len);
        self.d_locals.fill(0.0);
        self.dropped = 0;
        for (place, &n) in share.iter().enumerate() {
            let datum = Datum { plate: model, n, globals: betas };
            self.streams.clear();
            self.streams.extend((0..draws_len).map(|s| stream(seed, step, n as u64 + 1, s as u64)));
            self.row.resize(rows.row_len(), 0.0);
            rows.read(parameters, n, model.features(n), &mut self.hidden, &mut self.row);
            let (theta, phi) = self.row.split_at(q.theta_len());
            self.pass.draw(q, theta, 0, &mut self.streams, 1, settings.antithetic);
            self.pass.forward(&datum, q, theta, phi)?;
            let integrand = &self.pass.integrand;
            let kept = integrand.iter().filter(|f| f.is_finite()).count();
            self.dropped += draws_len - kept;
            if kept == 0 {
                let example = describe(&datum, &self.pass.draws.z, 0, self.pass.log_p[0]);
                let example = format!("datum {}: {example}", n + 1);
                return Err(Error::NotFinite { step, dropped: draws_len, drawn: draws_len, example });
            }
            // A draw that is impossible for this datum is replaced by the mean of the others, so that the globals keep the
            // information in the rest of the data. With the log of the share kept, it is the bound of the restricted q; with globals,
            // approximately.
            let share = (kept as f64 / draws_len as f64).ln();
            let mean = integrand.iter().filter(|f| f.is_finite()).sum::<f64>() / kept as f64;
            for ((w, f), value) in self.weight.iter_mut().zip(integrand).zip(&mut self.value) {
                *w = if f.is_finite() { scale / kept as f64 } else { 0.0 };
                *value += if f.is_finite() { *f } else { mean } + share;
            }
            if betas.columns_len() > 0 && model.has_gradient() {
                self.d_datum.reset(betas.columns_len(), draws_len);
                self.d_z.reset(q.likelihood().latents_len(), draws_len);
                let (z, d_z) = (&self.pass.draws.z, &mut self.d_z);
                model.log_datum_gradient(n, betas, z, &mut self.log_p, &mut self.d_datum, d_z)?;
                for i in 0..betas.columns_len() {
                    let d_datum = self.d_datum.column(i).iter().zip(&self.weight);
                    for (to, (d, w)) in self.d_globals.column_mut(i).iter_mut().zip(d_datum) {
                        *to += if *w == 0.0 { 0.0 } else { *d };
                    }
                }
            }
            self.d_row.clear();
            self.d_row.resize(rows.row_len(), 0.0);
            let (d_theta, d_phi) = self.d_row.split_at_mut(q.theta_len());
            let backward = Backward { model: &datum, q, theta, phi, plans, settings, weight: &self.weight };
            self.pass.backward(backward, d_theta, d_phi)?;
            let (features, hidden) = (model.features(n), &self.hidden);
            let d_locals = &mut self.d_locals;
            rows.pullback(parameters, place, features, hidden, &self.d_row, d_locals, &mut self.scratch);
        }
        Ok(())
    }
}
