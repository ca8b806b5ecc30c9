//! The table of summaries, as in JAGS and Stan.

use super::number::{Digits, two_figures};
use super::page;
use super::table::render;
use hyperprior::posterior::{ElementName, Kind, Summary, ranges};
use std::collections::{BTreeMap, HashMap};

/// A row per scalar, at most `rows_max`, with a line for the number of rows omitted; constant discrete scalars are listed below the
/// table instead.
///
/// `corrected` has corrected standard deviations of some of them, for a column next to `sd`.
pub fn table(summaries: &[Summary], rows_max: usize, corrected: Option<&BTreeMap<String, Option<f64>>>) -> String {
    let (constant, summaries): (Vec<&Summary>, Vec<&Summary>) =
        summaries.iter().partition(|s| constant_value(s).is_some());
    let constant = constants(&constant);
    if summaries.is_empty() && !constant.is_empty() {
        return constant;
    }
    let names: Vec<&str> = summaries.iter().map(|s| s.name.as_str()).collect();
    let shown = page::rows(&names, rows_max);
    let mut cells: Vec<Vec<String>> = shown.iter().map(|i| cells(summaries[*i])).collect();
    let mut header = vec!["name", "mean", "sd", "5%", "median", "95%", "mcse", "ess"];
    if let Some(corrected) = corrected {
        header.insert(3, "sd (corrected)");
        for (i, cells) in shown.iter().zip(&mut cells) {
            let s = summaries[*i];
            let sd = corrected.get(&s.name).copied().flatten().unwrap_or(f64::NAN);
            cells.insert(3, Digits::new(s.mean, s.sd).show(sd));
        }
    }
    render(&header, &cells)
        + &page::remainder(summaries.len(), shown.len())
        + if constant.is_empty() { "" } else { "\n" }
        + &constant
}

/// The value of a discrete variable that is the same in every draw.
pub fn constant_value(s: &Summary) -> Option<i64> {
    let pmf = s.pmf.as_ref().filter(|pmf| pmf.len() == 1)?;
    pmf.keys().next().copied()
}

/// `z[1:32]: 1 in every draw`, a line for each array and value.
fn constants(summaries: &[&Summary]) -> String {
    type Line<'a> = ((&'a str, Option<i64>), Vec<&'a str>);
    let mut lines: Vec<Line> = Vec::new();
    let mut known = HashMap::new();
    for summary in summaries {
        let key = (ElementName::parse(&summary.name).array, constant_value(summary));
        let line = *known.entry(key).or_insert_with(|| {
            lines.push((key, Vec::new()));
            lines.len() - 1
        });
        lines[line].1.push(&summary.name);
    }
    let line = |((_, value), of): ((&str, Option<i64>), Vec<&str>)| {
        format!("{}: {} in every draw\n", ranges::line(of), value.unwrap_or_default())
    };
    lines.into_iter().map(line).collect()
}

fn cells(s: &Summary) -> Vec<String> {
    let digits = Digits::new(s.mean, s.sd);
    // The quantiles of a discrete variable are integers.
    let quantile = |x: f64| if s.kind == Kind::Discrete { Digits::Decimals(0).show(x) } else { digits.show(x) };
    vec![
        s.name.clone(),
        digits.show(s.mean),
        digits.show(s.sd),
        quantile(s.q05),
        quantile(s.median),
        quantile(s.q95),
        two_figures(s.mcse),
        Digits::Decimals(0).show(s.ess),
    ]
}
