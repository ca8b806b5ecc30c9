//! The pictures of a study: the true posterior with each approximation, and the paper's illustration of the idea.

use super::{Outcome, Target};
use crate::error::CliError;
use crate::parts::PriorChoice;
use crate::render::figure::{self, Axis, Group, Heatmap, Origin, Palette, Panel, Point, Scatter, ScatterPanel};
use hyperprior::exact::Posterior;
use hyperprior::math::batch::Batch;
use hyperprior::math::family::{Family, Gamma};
use hyperprior::math::random::{Stream, standard_normals, stream};
use hyperprior::targets::CountTarget;
use std::path::{Path, PathBuf};

/// Draws the target's picture: truth, mean-field, and the hierarchical models.
pub fn draw(
    target: Target,
    posterior: &Posterior,
    outcomes: &[Outcome],
    folder: &Path,
) -> Result<Vec<PathBuf>, CliError> {
    let truth: Vec<f64> = posterior.log_joint.iter().map(|l| (l - posterior.log_evidence).exp()).collect();
    let columns = [("True posterior".to_owned(), "by enumeration".to_owned(), &truth)]
        .into_iter()
        .chain(outcomes.iter().map(|o| (title(o), format!("KL {:.4}", o.row.kl), &o.marginal.probability)));
    let (name, heatmap) = match target {
        Target::Counts(_) => {
            let len = posterior.grid.values(0).len();
            let shown = shown_len(&truth, len);
            let panels = columns.map(|(t, s, p)| Panel::square(t, s, shown, corner(p, len, shown))).collect();
            let heatmap = Heatmap {
                title: format!("Two correlated counts: {}", target.describe()),
                caption: caption(target).to_owned(),
                x_label: "z₁".to_owned(),
                y_label: "z₂".to_owned(),
                value_label: "probability".to_owned(),
                palette: Palette::SequentialSquareRoot,
                panels,
                ..Heatmap::default()
            };
            (format!("correlated-poisson-{}", target.name()), heatmap)
        }
        Target::Ring(_) => {
            let panels = columns
                .map(|(t, s, p)| Panel::square(t, s, super::SPINS, correlations(&posterior.grid.states(), p)))
                .collect();
            let heatmap = Heatmap {
                title: format!("Coupled spins: {}", target.describe()),
                caption: "E[sᵢ sⱼ] − E[sᵢ] E[sⱼ]: the covariance of each pair of spins.".to_owned(),
                x_label: "i".to_owned(),
                y_label: "j".to_owned(),
                value_label: "covariance".to_owned(),
                palette: Palette::Diverging,
                limit: Some(1.0),
                origin: Origin::TopLeft,
                first_index: 1,
                panels,
                ..Heatmap::default()
            };
            (format!("ising-{}", target.name()), heatmap)
        }
    };
    Ok(figure::write(&heatmap.svg(), &folder.join(name))?.to_vec())
}

fn caption(target: Target) -> &'static str {
    match target {
        // The negative control.
        Target::Counts(CountTarget::E) => "Narrower than any Poisson: no prior on Poisson factors can help here.",
        _ => "Mean-field covers one mode; a prior on its parameters keeps the dependence.",
    }
}

fn title(outcome: &Outcome) -> String {
    match outcome.method.parts.prior {
        PriorChoice::Delta => "Mean-field".to_owned(),
        _ => format!("HVM, r: {}", outcome.row.recursive),
    }
}

/// The side of the corner of the grid that has all but a thousandth of the probability.
fn shown_len(probability: &[f64], len: usize) -> usize {
    (1..len)
        .find(|&shown| corner(probability, len, shown).iter().sum::<f64>() > 0.999)
        .map_or(len, |shown| (shown + 1).min(len))
}

/// The corner of a square table.
fn corner(values: &[f64], len: usize, shown: usize) -> Vec<f64> {
    values.chunks_exact(len).take(shown).flat_map(|row| &row[..shown]).copied().collect()
}

/// The covariance of every pair of spins.
fn correlations(states: &Batch, probability: &[f64]) -> Vec<f64> {
    let n = states.columns_len();
    let spin = |i: usize, s: usize| 2.0 * states.get(i, s) - 1.0;
    let mean = |f: &dyn Fn(usize) -> f64| (0..probability.len()).map(|s| probability[s] * f(s)).sum::<f64>();
    let means: Vec<f64> = (0..n).map(|i| mean(&|s| spin(i, s))).collect();
    (0..n * n).map(|e| (e / n, e % n)).map(|(i, j)| mean(&|s| spin(i, s) * spin(j, s)) - means[i] * means[j]).collect()
}

/// The paper's second figure: λ from a Gaussian with a full covariance, z from gammas with those parameters; a draw has the same
/// colour in both panels.
pub fn gaussian_gamma(seed: u64, folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    const DRAWS: usize = 1500;
    const CORRELATION: f64 = 0.85;
    let mut streams: Vec<Stream> = (0..DRAWS as u64).map(|s| stream(seed, 0, 0, s)).collect();
    let mut eps = Batch::zeros(2, DRAWS);
    standard_normals(&mut streams, &mut eps);
    // λ_i is the log of the shape; the rate is 1.
    let mut lambda = Batch::zeros(4, DRAWS);
    for s in 0..DRAWS {
        let (a, b) = (eps.get(0, s), eps.get(1, s));
        lambda.set(0, s, 1.0 + 0.8 * a);
        lambda.set(2, s, 1.0 + 0.8 * (CORRELATION * a + (1.0 - CORRELATION * CORRELATION).sqrt() * b));
    }
    let mut z = Batch::zeros(2, DRAWS);
    for i in 0..2 {
        Gamma.sample(lambda.columns(2 * i..2 * i + 2), &mut streams, z.column_mut(i));
    }
    let group = |s: usize| match (lambda.get(0, s), lambda.get(2, s)) {
        (a, b) if a > 1.4 && b > 1.4 => Group::Red,
        (a, b) if a < 0.6 && b < 0.6 => Group::Blue,
        _ => Group::Grey,
    };
    let points =
        |x: &[f64], y: &[f64]| (0..DRAWS).map(|s| Point { x: x[s], y: y[s], group: group(s) }).collect::<Vec<Point>>();
    let scatter = Scatter {
        title: "A Gaussian prior on the parameters of gamma latents".to_owned(),
        caption: "The z are independent given λ, but dependent on average because the λ are.".to_owned(),
        legend: vec![
            (Group::Red, "both λ large".to_owned()),
            (Group::Blue, "both λ small".to_owned()),
            (Group::Grey, "all others".to_owned()),
        ],
        panels: vec![
            ScatterPanel {
                title: "(a) q(λ; θ): Normal".to_owned(),
                subtitle: format!("correlation {CORRELATION}"),
                x: Axis::linear("λ₁"),
                y: Axis::linear("λ₂"),
                points: points(lambda.column(0), lambda.column(2)),
                ..ScatterPanel::default()
            },
            ScatterPanel {
                title: "(b) Π q(zᵢ | λᵢ): Gamma".to_owned(),
                subtitle: "shape e^λ, rate 1".to_owned(),
                x: Axis { range: Some((1e-3, 100.0)), ..Axis::log("z₁") },
                y: Axis { range: Some((1e-3, 100.0)), ..Axis::log("z₂") },
                points: points(z.column(0), z.column(1)),
                ..ScatterPanel::default()
            },
        ],
    };
    Ok(figure::write(&scatter.svg(), &folder.join("gaussian-gamma"))?.to_vec())
}

/// The list of the pictures written.
pub fn announce(written: &[PathBuf]) -> String {
    let names: Vec<String> = written.iter().map(|p| format!("  {}", p.display())).collect();
    format!("Pictures:\n{}", names.join("\n"))
}
