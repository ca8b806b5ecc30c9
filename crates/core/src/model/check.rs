//! Checks a user's model: do its capabilities agree with its log joint?

use super::{Latents, Model, Support};
use crate::error::{Error, Result};
use hyperprior_math::batch::Batch;
use hyperprior_math::random::stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// The result of [`check`]. See there for an example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// How many of the points had a finite log joint.
    pub finite: usize,
    /// How many points were tried.
    pub tried: usize,
    /// Whether the model has locals; they agreed.
    pub locals: bool,
    /// Whether the model has conditionals; they agreed.
    pub conditionals: bool,
    /// Whether the model has a gradient; it agreed.
    pub gradient: bool,
}

/// Checks a model at random points: the locality of its locals, its conditionals against its log joint, its gradient
/// against central differences.
///
/// ```
/// use hyperprior::{check, targets::Ising};
/// let report = check(&Ising::ring(4, 0.5)?, 1)?;
/// assert!(report.locals && report.conditionals && !report.gradient);
/// # Ok::<(), hyperprior::Error>(())
/// ```
///
/// # Errors
/// [`Error::EmptyModel`], [`Error::NotFinite`] if no point has a finite density, and [`Error::Capability`] with the
/// latent and both numbers if a capability disagrees.
pub fn check(model: &dyn Model, seed: u64) -> Result<CheckReport> {
    const POINTS: usize = 64;
    let latents = model.latents();
    if latents.is_empty() {
        return Err(Error::EmptyModel);
    }
    let z = random_points(latents, POINTS, seed);
    let mut log_p = vec![0.0; POINTS];
    model.log_joint(&z, &mut log_p)?;
    let finite = log_p.iter().filter(|v| v.is_finite()).count();
    if finite == 0 {
        return Err(Error::NotFinite {
            step: 0,
            dropped: POINTS,
            drawn: POINTS,
            example: describe(model, &z, 0, log_p[0]),
        });
    }
    let mut report =
        CheckReport { finite, tried: POINTS, locals: false, conditionals: false, gradient: model.gradient().is_some() };
    for i in 0..latents.len() {
        let mut moved = z.clone();
        for s in 0..POINTS {
            let mut rng = stream(seed, 1, i as u64, s as u64);
            moved.set(i, s, random_value(latents.support(i), &mut rng));
        }
        let mut log_p_moved = vec![0.0; POINTS];
        model.log_joint(&moved, &mut log_p_moved)?;
        report.locals |= check_locals(model, i, (&z, &log_p), (&moved, &log_p_moved))?;
        report.conditionals |= check_conditionals(model, i, (&z, &log_p), (&moved, &log_p_moved))?;
    }
    if report.gradient {
        check_gradient(model, &z, &log_p)?;
    }
    Ok(report)
}

/// Points at which a model is likely to be defined: standard normal on the line, uniform over finite supports.
pub fn random_points(latents: &Latents, len: usize, seed: u64) -> Batch {
    let mut z = Batch::zeros(latents.len(), len);
    for s in 0..len {
        let mut rng = stream(seed, 0, 0, s as u64);
        for i in 0..latents.len() {
            z.set(i, s, random_value(latents.support(i), &mut rng));
        }
    }
    z
}

/// A moderate value in the support, which a model is likely to allow.
fn random_value(support: Support, rng: &mut impl rand::Rng) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    match support {
        Support::Positive => normal.exp(),
        Support::UnitInterval => 1.0 / (1.0 + normal.exp()),
        Support::Integers { lower, upper } => {
            let width = (upper - lower).min(1e9) as u64;
            lower + rng.random_range(0..=width) as f64
        }
        Support::Counts => (1.5 + normal).exp().floor(),
        _ => normal,
    }
}

fn agree(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

type Point<'a> = (&'a Batch, &'a [f64]);

fn check_locals(model: &dyn Model, i: usize, from: Point, to: Point) -> Result<bool> {
    let Some(locals) = model.locals() else { return Ok(false) };
    let points = from.1.len();
    let (mut a, mut b) = (Batch::zeros(from.0.columns_len(), points), Batch::zeros(from.0.columns_len(), points));
    locals.log_local(from.0, &mut a)?;
    locals.log_local(to.0, &mut b)?;
    compare(model, "locals", i, from, to, |s| b.get(i, s) - a.get(i, s))
}

fn check_conditionals(model: &dyn Model, i: usize, from: Point, to: Point) -> Result<bool> {
    let Some(conditionals) = model.conditionals() else { return Ok(false) };
    if !model.latents().support(i).is_discrete() {
        return Ok(false);
    }
    let points = from.1.len();
    let mut out = Batch::zeros(2, points);
    for s in 0..points {
        // Each draw has its own pair of values, so the batch is evaluated once per draw.
        let values = [from.0.get(i, s), to.0.get(i, s)];
        conditionals.log_conditional(i, from.0, &values, &mut out)?;
        let difference = out.get(1, s) - out.get(0, s);
        compare(model, "conditionals", i, (from.0, &from.1[s..=s]), (to.0, &to.1[s..=s]), |_| difference)?;
    }
    Ok(true)
}

/// Compares the change of a capability with the change of the log joint, wherever both ends are finite.
fn compare(
    model: &dyn Model,
    capability: &'static str,
    i: usize,
    from: Point,
    to: Point,
    change: impl Fn(usize) -> f64,
) -> Result<bool> {
    for s in 0..from.1.len() {
        let expected = to.1[s] - from.1[s];
        let found = change(s);
        if expected.is_finite() && !agree(found, expected, 1e-8 * (1.0 + from.1[s].abs())) {
            let (latent, point) = (model.latents().name(i), place(model.latents(), from.0, s));
            return Err(Error::Capability { capability, latent, found, expected, point });
        }
    }
    Ok(true)
}

/// The steps of the central differences, relative to the size of a coordinate, and the least size. The first is accurate for most
/// models; the others are tried where it disagrees with the gradient.
const STEPS: [(f64, f64); 7] =
    [(1e-5, 1e-3), (1e-4, 1e-3), (1e-6, 1e-3), (1e-5, 1.0), (1e-4, 1.0), (1e-3, 1.0), (1e-2, 1.0)];

/// The length of a step at a coordinate.
fn length((step, least): (f64, f64), at: f64) -> f64 {
    step * at.abs().clamp(least, 1e3)
}

fn check_gradient(model: &dyn Model, z: &Batch, log_p: &[f64]) -> Result<()> {
    let Some(gradient) = model.gradient() else { return Ok(()) };
    let points = log_p.len();
    let mut value = vec![0.0; points];
    let mut d_z = Batch::zeros(z.columns_len(), points);
    gradient.log_joint_gradient(z, &mut value, &mut d_z)?;
    for i in (0..z.columns_len()).filter(|&i| !model.latents().support(i).is_discrete()) {
        let mut best = disagreements(model, (z, log_p), i, STEPS[0], &d_z)?;
        // Next to where the density is 0 there is nothing to compare with.
        best.iter_mut().filter(|(expected, _)| !expected.is_finite()).for_each(|(_, error)| *error = 0.0);
        for step in &STEPS[1..] {
            if best.iter().all(|(_, error)| *error <= 1.0) {
                break;
            }
            for (best, other) in best.iter_mut().zip(disagreements(model, (z, log_p), i, *step, &d_z)?) {
                if other.1 < best.1 {
                    *best = other;
                }
            }
        }
        if let Some(s) = best.iter().position(|(_, error)| *error > 1.0) {
            return Err(Error::Capability {
                capability: "gradient",
                latent: model.latents().name(i),
                found: d_z.get(i, s),
                expected: best[s].0,
                point: place(model.latents(), z, s),
            });
        }
    }
    Ok(())
}

/// The central difference in coordinate `i` at each point, and its distance from the gradient in units of what is allowed.
fn disagreements(model: &dyn Model, at: Point, i: usize, step: (f64, f64), d_z: &Batch) -> Result<Vec<(f64, f64)>> {
    let (z, log_p) = at;
    let (mut up, mut down) = (vec![0.0; log_p.len()], vec![0.0; log_p.len()]);
    let mut moved = z.clone();
    let steps: Vec<f64> = z.column(i).iter().map(|v| length(step, *v)).collect();
    for (m, h) in moved.column_mut(i).iter_mut().zip(&steps) {
        *m += h;
    }
    model.log_joint(&moved, &mut up)?;
    for (m, h) in moved.column_mut(i).iter_mut().zip(&steps) {
        *m -= 2.0 * h;
    }
    model.log_joint(&moved, &mut down)?;
    let disagreement = |s: usize| {
        let (found, expected) = (d_z.get(i, s), (up[s] - down[s]) / (2.0 * steps[s]));
        // A smaller step than the first may not excuse more.
        let rounding = 1e-13 * (1.0 + log_p[s].abs()) / steps[s].max(length(STEPS[0], z.get(i, s)));
        let allowed = (1e-4 + rounding) * (1.0 + found.abs().max(expected.abs()));
        let error = (found - expected).abs() / allowed;
        (expected, if error.is_finite() { error } else { f64::INFINITY })
    };
    Ok((0..log_p.len()).map(disagreement).collect())
}

/// Describes a draw for messages: the factor at fault if the model knows it, otherwise the first few latents with their values
/// and the log density.
pub(crate) fn describe(model: &dyn Model, z: &Batch, s: usize, log_p: f64) -> String {
    if let Some(fault) = model.fault(z, s) {
        return fault.reason;
    }
    format!("{} gives {log_p}", place(model.latents(), z, s))
}

/// The first few latents of a draw with their values.
fn place(latents: &Latents, z: &Batch, s: usize) -> String {
    let shown = latents.len().min(6);
    let mut words: Vec<String> = (0..shown).map(|i| format!("{} = {:.4}", latents.name(i), z.get(i, s))).collect();
    if shown < latents.len() {
        words.push("…".to_owned());
    }
    words.join(", ")
}
