//! The picture of a comparison: a bar per method, for its KL if known and otherwise for its bound.

use super::{Comparison, Outcome};
use crate::error::CliError;
use crate::render::figure::{self, Axis, Bar, Bars, Strength};
use crate::render::terminal::table;
use std::path::{Path, PathBuf};

/// Draws the comparison.
pub fn draw(comparison: &Comparison, outcomes: &[Outcome], folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let has_kl = outcomes.iter().any(|o| o.row.kl.is_some() || o.kl_bounds.is_some());
    let target = comparison.target;
    let bars = Bars {
        title: format!("{}: {}", target.name(), target.describe(comparison.coupling)),
        caption: caption(outcomes, has_kl),
        axis: if has_kl { Axis::log("KL(q ‖ p), nats") } else { Axis::linear("nats below the best bound") },
        bars: outcomes.iter().map(|o| if has_kl { kl_bar(o) } else { bound_bar(o, outcomes) }).collect(),
    };
    Ok(figure::write(&bars.svg(), &folder.join(format!("compare-{}", target.name())))?.to_vec())
}

fn caption(outcomes: &[Outcome], has_kl: bool) -> String {
    if !has_kl {
        return "How far each method's bound is below the best one; the evidence is unknown.".to_owned();
    }
    let mut caption = "Divergence from the true posterior on a logarithmic axis: shorter is better.".to_owned();
    if outcomes.iter().any(|o| o.kl_bounds.is_some()) {
        caption.push_str(" Pale bars are upper bounds, not integrated over λ.");
    }
    caption
}

fn kl_bar(outcome: &Outcome) -> Bar {
    let (value, text, strength) = match (outcome.row.kl, outcome.kl_bounds) {
        (Some(kl), _) => (Some(kl), table::divergence(kl), Strength::Full),
        (None, Some((_, most))) => (Some(most), format!("≤ {most:.4}"), Strength::Pale),
        (None, None) => (None, absent(outcome), Strength::Full),
    };
    Bar { label: outcome.row.method.clone(), value, text, strength }
}

fn bound_bar(outcome: &Outcome, outcomes: &[Outcome]) -> Bar {
    let best = outcomes.iter().filter_map(|o| o.row.elbo).fold(f64::NEG_INFINITY, f64::max);
    let (value, text) = match (outcome.row.elbo, outcome.row.elbo_standard_error) {
        (Some(elbo), Some(error)) => (Some(best - elbo), format!("ELBO {elbo:.3} ± {error:.3}").replace('-', "−")),
        _ => (None, absent(outcome)),
    };
    Bar { label: outcome.row.method.clone(), value, text, strength: Strength::Full }
}

fn absent(outcome: &Outcome) -> String {
    outcome.row.reason.clone().unwrap_or_default()
}
