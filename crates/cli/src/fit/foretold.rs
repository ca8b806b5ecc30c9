//! What a fit foretells, on paper: data of its own beside the data, and each observation from all others.

use super::report::lines;
use crate::render::{Digits, estimate};
use crate::table;
use hyperprior::bound::Estimate;
use hyperprior::posterior::CheckedArray;
use hyperprior_bugs::told::{Foretold, LeftOut, TAIL_MIN};
use std::fmt::Write as _;

/// For people; empty where nothing was asked for.
pub fn text(foretold: &Foretold) -> String {
    let mut out = String::new();
    if let Some(arrays) = &foretold.predictive {
        let _ = write!(out, "\nData that the model gives, beside the data:\n\n{}", predictive(arrays));
    }
    if let Some(loo) = &foretold.loo {
        let _ = write!(out, "\n{}", left_out(loo));
    }
    let warnings = foretold.warnings();
    if !warnings.is_empty() {
        out.push('\n');
    }
    warnings.iter().for_each(|warning| out.push_str(&format!("Warning: {warning}.\n")));
    out
}

fn predictive(arrays: &[CheckedArray]) -> String {
    let rows: Vec<Vec<String>> = arrays
        .iter()
        .flat_map(|array| array.statistics.iter().map(move |s| (array, s)))
        .map(|(array, s)| {
            let digits = Digits::new(s.mean, (s.q95 - s.q05) / 3.0);
            let cells = [s.data, s.mean, s.q05, s.q95].map(|x| digits.show(x));
            [array.array.clone(), s.statistic.to_string()].into_iter().chain(cells).chain([tail(s.tail)]).collect()
        })
        .collect();
    table::render(&["name", "statistic", "data", "model", "5%", "95%", "tail"], &rows)
}

fn tail(p: f64) -> String {
    if p < TAIL_MIN { format!("{p:.4}") } else { format!("{p:.2}") }
}

fn left_out(loo: &LeftOut) -> String {
    let plural = if loo.units == 1 { "" } else { "s" };
    let what = if loo.joined.is_empty() { "observation" } else { "unit" };
    let mut out = format!("Each of {} {what}{plural}, foretold from all others:\n\n", loo.units);
    let khat = match loo.khat_above {
        0 => format!("below its limit of {:.2} for all", loo.khat_limit),
        above => {
            let worst: Vec<String> = loo.worst.iter().map(|w| format!("{} ({:.2})", w.name, w.khat)).collect();
            let more = if above > worst.len() { ", …" } else { "" };
            format!("above its limit of {:.2} for {above}: {}{more}", loo.khat_limit, worst.join(", "))
        }
    };
    let mut rows = vec![("elpd_loo", estimate(loo.elpd)), ("p_loo", format!("{:.2}", loo.p_loo)), ("k̂", khat)];
    match &loo.waic {
        Some(waic) => {
            let elpd = Estimate { value: waic.elpd_waic, standard_error: waic.elpd_waic_standard_error };
            rows.push(("elpd_waic", estimate(elpd)));
            rows.push(("p_waic", format!("{:.2}", waic.p_waic)));
        }
        None => {
            let reason = "none: observations share latents that were summed out, and WAIC needs independent ones";
            rows.push(("elpd_waic", reason.to_owned()));
        }
    }
    if !loo.set_aside.is_empty() {
        rows.push(("set aside", loo.set_aside.join(", ")));
    }
    lines(&mut out, &rows);
    out
}
