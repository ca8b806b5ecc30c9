//! The table of summaries, as people know it from JAGS and Stan.

use super::number::{Digits, two_figures};
use super::page;
use crate::table::render;
use hyperprior::posterior::{Kind, Summary};

/// A row per scalar, at most `rows_max`, with a line that says what was left out.
pub fn table(summaries: &[Summary], rows_max: usize) -> String {
    let names: Vec<&str> = summaries.iter().map(|s| s.name.as_str()).collect();
    let shown = page::rows(&names, rows_max);
    let cells: Vec<Vec<String>> = shown.iter().map(|i| cells(&summaries[*i])).collect();
    render(&["name", "mean", "sd", "5%", "median", "95%", "mcse", "ess"], &cells)
        + &page::remainder(summaries.len(), shown.len())
}

fn cells(s: &Summary) -> Vec<String> {
    let digits = Digits::new(s.mean, s.sd);
    // The quantiles of a discrete variable are whole numbers.
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
