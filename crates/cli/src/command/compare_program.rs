//! `hyperprior compare MODEL`: approximations of the posterior of a model in BUGS.

use super::input::{Input, Reading};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::render::terminal::table;
use crate::studies::compare::program::{METHODS, ProgramComparison, ProgramRow, Reference};
use hyperprior::diagnostics::Verdict;
use hyperprior::infer::Method;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// What was asked for.
pub struct CompareProgram {
    /// The model file, its data and starting values.
    pub files: (PathBuf, Vec<PathBuf>, Option<PathBuf>),
    /// Which latents to marginalise.
    pub eliminate: String,
    /// The methods; empty for all.
    pub methods: Vec<Method>,
    /// The seed.
    pub seed: u64,
    /// Whether to print JSON, and whether to show no progress.
    pub json: bool,
    pub quiet: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    model: &'a str,
    seed: u64,
    reference: Option<&'a Reference>,
    rows: &'a [ProgramRow],
}

impl CompareProgram {
    /// Runs the command.
    pub fn run(self) -> Result<(), CliError> {
        let (model, data, init) = self.files;
        let input = Input { model, data, init, dialect: Reading::default(), eliminate: self.eliminate };
        let name = input.name();
        let methods = if self.methods.is_empty() { METHODS.to_vec() } else { self.methods };
        let comparison = ProgramComparison { input, methods, seed: self.seed, quiet: self.quiet };
        let (mut reference, mut rows) = (None, Vec::new());
        let stop = StopFlag::on_signals();
        let result = comparison.run(&stop, |found| reference = Some(found), |row| rows.push(row));
        // After an error, show the rows that were computed.
        let mut out = std::io::stdout().lock();
        if self.json {
            let report = Report { model: &name, seed: self.seed, reference: reference.as_ref(), rows: &rows };
            serde_json::to_writer(&mut out, &report)?;
            writeln!(out)?;
        } else if let Some(reference) = &reference {
            write!(out, "{}", text(&name, reference, &rows))?;
        }
        result
    }
}

fn text(name: &str, reference: &Reference, rows: &[ProgramRow]) -> String {
    let Reference { verdict, log_evidence, log_evidence_standard_error, quantities, seconds, .. } = reference;
    let verdict = match verdict {
        Verdict::Trust => "trust",
        Verdict::MeansOnly => "means only",
        _ => "distrust, so do not rely on the comparison",
    };
    let mut out = format!(
        "{name} — fit with the defaults: {verdict}, log evidence {log_evidence:.3} ± {log_evidence_standard_error:.3}, {seconds:.1} s\n\n"
    );
    let right = format!("right, of {quantities}");
    let header = ["method", "prior", "r", "ELBO ≥", "ELBO ≤", "k̂", &right, "worst mean, in sd", "worst sd", "seconds"];
    let cells: Vec<Vec<String>> = rows.iter().filter(|row| row.reason.is_none()).map(cells).collect();
    if !cells.is_empty() {
        out += &table::render(&header, &cells);
        out += "\nA quantity is right if its mean is within 0.1 standard deviations of the fit with the defaults, and its standard \
                deviation within 15 %. No draws are corrected here.\n";
    }
    for row in rows {
        if let Some(reason) = &row.reason {
            out += &format!("{} does not apply: {reason}\n", row.method);
        }
    }
    out
}

fn cells(row: &ProgramRow) -> Vec<String> {
    let number = |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |x| format!("{x:.digits$}"));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
    vec![
        row.method.clone(),
        text(&row.prior),
        text(&row.recursive),
        format!("{} ± {}", number(row.elbo, 3), number(row.elbo_standard_error, 3)),
        number(row.elbo_upper, 3),
        number(row.khat, 2),
        row.right.map_or_else(|| "–".to_owned(), |right| right.to_string()),
        number(row.worst_mean, 2),
        row.worst_sd.map_or_else(|| "–".to_owned(), |worst| format!("{:.0} %", 100.0 * worst)),
        number(row.seconds, 1),
    ]
}
