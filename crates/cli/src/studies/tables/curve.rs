//! The perplexity and the bound against the number of optimisation steps per document: tables and a plot.

use super::grid::{Entry, Section};
use super::heading::heading;
use super::numbers::{AVERAGED, MEASURES, Measure, PLUG_IN, Point};
use super::plan::{Cell, Plan};
use crate::error::CliError;
use crate::render::figure::{self, Axis, Group, Scatter, ScatterPanel};
use hyperprior_def::{Family, Method};
use std::path::{Path, PathBuf};

/// A measure shown for each point, and its value.
type Shown = (&'static Measure, fn(&Point) -> f64);

/// The bound on the visible halves.
const VISIBLE: usize = 2;

const SHOWN: [Shown; 3] = [
    (&MEASURES[PLUG_IN], |point| point.heldout_perplexity),
    (&MEASURES[AVERAGED], |point| point.heldout_perplexity_averaged),
    (&MEASURES[VISIBLE], |point| point.elbo_visible),
];

/// A table for each measure: a row for each number of steps, and a column for each family and method.
pub fn sections(plan: &Plan, points: &[Point]) -> Vec<Section> {
    let Some(first) = points.first() else { return Vec::new() };
    let curves = plan.curves();
    let section = |(measure, of): &Shown| {
        let column = |cell: &Cell| format!("{} {}", cell.family, heading(cell.method));
        let header = ["steps".to_owned()].into_iter().chain(curves.iter().map(column)).collect();
        let row = |steps: &u32| {
            let at = |cell: &Cell| points.iter().find(|point| point.cell == *cell && point.steps == *steps);
            let entries =
                curves.iter().map(|cell| at(cell).map_or_else(|| "–".to_owned(), |point| measure.show(of(point))));
            [steps.to_string()].into_iter().chain(entries).map(Entry::plain).collect()
        };
        Section {
            title: format!(
                "{} against test-time steps: layers {}, seed {}, {} documents",
                what(measure),
                first.cell.layers,
                first.cell.seed,
                first.documents
            ),
            header,
            rows: plan.curve.iter().map(row).collect(),
            notes: Vec::new(),
        }
    };
    SHOWN.iter().map(section).collect()
}

/// The title of a curve.
fn what(measure: &Measure) -> &'static str {
    match measure.name {
        "heldout_perplexity" => "Perplexity of hidden word types (plug-in)",
        "heldout_perplexity_averaged" => "Perplexity of hidden word types (averaged)",
        _ => "Bound per word on the visible halves",
    }
}

/// Plots the perplexity of hidden types and the bound, with a column of panels for each family.
pub fn draw(plan: &Plan, points: &[Point], folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let Some(first) = points.first() else { return Ok(Vec::new()) };
    let panel = |(measure, of): &Shown, family: &Family| ScatterPanel {
        title: format!("{family} {}", first.cell.layers),
        subtitle: what(measure).to_owned(),
        x: Axis::log("steps"),
        y: Axis::linear(if measure.is_log { "nats per word" } else { "perplexity" }),
        points: points
            .iter()
            .filter(|point| point.cell.family == *family)
            .map(|point| figure::Point { x: point.steps.into(), y: of(point), group: group(point.cell.method) })
            .collect(),
        is_joined: true,
    };
    let of_all = |shown| plan.families.iter().map(move |family| panel(shown, family));
    let methods = plan.methods.iter().map(|method| (group(*method), heading(*method)));
    let figure = Scatter {
        title: "Perplexity and bound against the number of steps".to_owned(),
        caption: format!(
            "Each point is a separate fit, whose step size shrinks in the second half; {} documents, half of the word types hidden.",
            first.documents
        ),
        legend: methods.collect(),
        panels: [&SHOWN[0], &SHOWN[2]].into_iter().flat_map(of_all).collect(),
    };
    Ok(figure::write(&figure.svg(), &folder.join("curve"))?.to_vec())
}

fn group(method: Method) -> Group {
    match method {
        Method::Hvm => Group::Red,
        Method::MeanField => Group::Blue,
        _ => Group::Grey,
    }
}
