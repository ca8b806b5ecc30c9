//! The table of parameters: rows as data for the page's script, which shows, sorts and filters them.

use super::density::{Sorted, likeliest};
use crate::error::CliError;
use crate::render::html::escape;
use crate::render::html::page::Page;
use crate::render::terminal::{Digits, two_figures};
use hyperprior::posterior::{Draws, ElementName, Kind, Summary};
use hyperprior::report::{FitSummary, LinearResponseSummary};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashMap;

/// The largest size of all rows in bytes; later rows are omitted, with a note.
const BYTES_MAX: usize = 1_600_000;
/// The number of rows made in parallel.
const CHUNK: usize = 256;
/// Elements of an array share a scale if it is at most this many times as wide as that of the median element.
const SHARED_MAX: f64 = 8.0;

/// The data for the script.
#[derive(Serialize)]
struct Data {
    columns: Vec<&'static str>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// The formatted numbers.
    cells: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Shape>,
}

/// The plot of a row.
#[derive(Serialize)]
struct Shape {
    /// The heights, by [`Sorted::letters`].
    heights: String,
    /// Whether they are bars.
    bars: bool,
    /// The places of the 5 % quantile, the median and the 95 % quantile, in thousandths of the width.
    marks: [i64; 3],
    /// A description of the plot.
    label: String,
}

/// Adds the section and its script.
pub fn add(page: &mut Page, summary: &FitSummary, draws: Option<&Draws>) -> Result<(), CliError> {
    let names = in_order(summary, draws);
    if names.is_empty() {
        return Ok(());
    }
    let corrected = summary.linear_response.as_ref().and_then(LinearResponseSummary::sds).filter(|sd| !sd.is_empty());
    let mut columns = vec!["mean", "sd", "5%", "median", "95%", "mcse", "ess"];
    if corrected.is_some() {
        columns.insert(2, "sd (corrected)");
    }
    let scales = scales(draws);
    let by_name: HashMap<&str, &Summary> = summary.parameters.0.iter().map(|s| (s.name.as_str(), s)).collect();
    let row = |name: &&str| {
        let parameter = *by_name.get(*name)?;
        let sorted =
            draws.zip(scales.get(name)).and_then(|(draws, scale)| Some((of(draws, scale.column)?, scale.range)));
        let is_discrete = parameter.pmf.is_some() || sorted.as_ref().is_some_and(|(s, _)| s.kind == Kind::Discrete);
        let mut cells = cells(parameter, is_discrete);
        if let Some(corrected) = corrected {
            let sd = corrected.get(*name).copied().flatten().unwrap_or(f64::NAN);
            cells.insert(2, Digits::new(parameter.mean, parameter.sd).show(sd));
        }
        let shape = sorted.map(|(sorted, range)| shape(&sorted, range, parameter));
        Some(Row { name: (*name).to_owned(), cells, shape })
    };
    let (mut rows, mut bytes) = (Vec::new(), 0);
    'all: for chunk in names.chunks(CHUNK) {
        let made: Vec<Row> = chunk.par_iter().filter_map(row).collect();
        for row in made {
            bytes += escape::json(&row)?.len() + 1;
            if bytes > BYTES_MAX {
                break 'all;
            }
            rows.push(row);
        }
    }
    let more = match names.len() - rows.len() {
        0 => String::new(),
        left => format!("<p class=\"note\">{left} more parameters are in summary.json.</p>"),
    };
    page.section("parameters", "Parameters", format!("{FRAME}{more}"));
    page.script("parameters-data", &escape::json(&Data { columns, rows })?, include_str!("../assets/table.js"));
    Ok(())
}

/// The frame that the script fills.
const FRAME: &str = "\
<div class=\"tools\"><label for=\"filter\">Filter by name</label> <input id=\"filter\" type=\"search\" autocomplete=\"off\" \
spellcheck=\"false\"> <span id=\"count\" role=\"status\" aria-live=\"polite\"></span></div>
<div class=\"scroll\" role=\"region\" aria-label=\"Parameters\" tabindex=\"0\"><table id=\"table\"><thead></thead><tbody></tbody></table></div>
<p class=\"more\"><button type=\"button\" id=\"more\" hidden></button> <button type=\"button\" id=\"all\" hidden></button></p>
<p class=\"note\">The line below a density is the 90 % interval, the dot the median; for discrete parameters, bars show the \
probabilities of the values. Elements of an array share a scale if that keeps each of them visible. mcse is the Monte Carlo standard \
error of the mean.</p>
<noscript><p class=\"note\">The table needs JavaScript; the numbers are in summary.json.</p></noscript>\n";

/// Continuous parameters first, in the order of the draws; without draws, by name.
fn in_order<'a>(summary: &'a FitSummary, draws: Option<&'a Draws>) -> Vec<&'a str> {
    let Some(draws) = draws else {
        let mut names: Vec<&str> = summary.parameters.0.iter().map(|s| s.name.as_str()).collect();
        names.sort_by_cached_key(|name| {
            let element = ElementName::parse(name);
            (element.array.to_owned(), element.indices)
        });
        return names;
    };
    let arrays = draws.arrays().into_iter().flat_map(|(_, columns)| columns);
    let mut columns: Vec<usize> = arrays.collect();
    columns.sort_by_key(|i| draws.columns()[*i].kind == Kind::Discrete);
    columns.into_iter().map(|i| draws.columns()[i].name.as_str()).collect()
}

fn cells(parameter: &Summary, is_discrete: bool) -> Vec<String> {
    let digits = Digits::new(parameter.mean, parameter.sd);
    let quantile = |x: f64| if is_discrete { Digits::Decimals(0).show(x) } else { digits.show(x) };
    vec![
        digits.show(parameter.mean),
        digits.show(parameter.sd),
        quantile(parameter.q05),
        quantile(parameter.median),
        quantile(parameter.q95),
        two_figures(parameter.mcse),
        Digits::Decimals(0).show(parameter.ess),
    ]
}

/// A column and the range over which its shape is drawn.
struct Scale {
    column: usize,
    range: (f64, f64),
}

fn of(draws: &Draws, column: usize) -> Option<Sorted> {
    Sorted::new(draws.column(column), draws.columns()[column].kind)
}

/// The scales by name. Rows sort their draws again later, since keeping all sorted draws would be a second copy of them.
fn scales(draws: Option<&Draws>) -> HashMap<&str, Scale> {
    let Some(draws) = draws else { return HashMap::new() };
    let range = |column: usize| of(draws, column).map(|sorted| Scale { column, range: sorted.range() });
    let mut scales: Vec<Scale> = (0..draws.columns().len()).into_par_iter().filter_map(range).collect();
    let key = |scale: &Scale| {
        let column = &draws.columns()[scale.column];
        (ElementName::parse(&column.name).array, column.kind == Kind::Discrete)
    };
    let mut of_array: HashMap<(&str, bool), Vec<(f64, f64)>> = HashMap::new();
    for scale in &scales {
        of_array.entry(key(scale)).or_default().push(scale.range);
    }
    let shared: HashMap<(&str, bool), Option<(f64, f64)>> =
        of_array.into_iter().map(|(key, ranges)| (key, shared(&ranges))).collect();
    for scale in &mut scales {
        scale.range = shared[&key(scale)].unwrap_or(scale.range);
    }
    scales.into_iter().map(|scale| (draws.columns()[scale.column].name.as_str(), scale)).collect()
}

/// The range of all, unless it would make the median element too small to see.
fn shared(ranges: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut widths: Vec<f64> = ranges.iter().map(|(low, high)| high - low).collect();
    widths.sort_by(f64::total_cmp);
    let all = ranges.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), r| (l.min(r.0), h.max(r.1)));
    let usual = widths[widths.len() / 2].max(1.0_f64.min(widths[widths.len() - 1]));
    (all.1 - all.0 <= SHARED_MAX * usual).then_some(all)
}

fn shape(sorted: &Sorted, (low, high): (f64, f64), parameter: &Summary) -> Shape {
    let bars = sorted.kind == Kind::Discrete;
    // A bar is centred on its value.
    let (low_edge, high_edge) = if bars { (low - 0.5, high + 0.5) } else { (low, high) };
    let place = |x: f64| {
        let share = if high_edge > low_edge { (x - low_edge) / (high_edge - low_edge) } else { 0.5 };
        if share.is_nan() { 500 } else { (1000.0 * share.clamp(0.0, 1.0)) as i64 }
    };
    let label = match &parameter.pmf {
        Some(pmf) => likeliest(pmf),
        None => {
            let digits = Digits::new(parameter.mean, parameter.sd);
            format!("shown from {} to {}", digits.show(low), digits.show(high))
        }
    };
    let marks = [parameter.q05, parameter.median, parameter.q95].map(place);
    Shape { heights: sorted.letters((low, high)), bars, marks, label }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior::Batch;
    use hyperprior::posterior::Column;

    #[test]
    fn a_scale_is_shared_if_all_stay_visible() {
        assert_eq!(shared(&[(0.0, 1.0), (0.5, 2.0)]), Some((0.0, 2.0)));
        assert_eq!(shared(&[(0.0, 1.0), (100.0, 101.0)]), None);
        assert_eq!(shared(&[(3.0, 3.0)]), Some((3.0, 3.0)));
        // Constant labels share the scale of the others.
        assert_eq!(shared(&[(1.0, 1.0), (2.0, 2.0), (1.0, 2.0)]), Some((1.0, 2.0)));
    }

    fn summary(names: &[&str]) -> FitSummary {
        let of = |name: &&str| {
            (name.to_string(), serde_json::json!({"mean": 1.0, "sd": 1.0, "q05": 0.0, "median": 1.0, "q95": 2.0}))
        };
        let parameters: serde_json::Map<_, _> = names.iter().map(of).collect();
        let summary = serde_json::json!({"model": "m", "method": "hvm", "parameters": parameters});
        serde_json::from_value(summary).expect("a summary")
    }

    #[test]
    fn names_are_data_and_continuous_ones_come_first() {
        let names = ["z</script>", "b"];
        let columns = vec![Column::discrete(names[0]), Column::continuous(names[1])];
        let draws = Draws::new(columns, Batch::from_columns(vec![1.0, 2.0, 2.0, 0.5, 0.25, 1.5], 3)).expect("draws");
        let mut page = Page::new("m", "");
        add(&mut page, &summary(&names), Some(&draws)).expect("a table");
        let html = page.html();
        let first = html.find("\"name\":\"b\"").expect("b");
        let second = html.find("\"name\":\"z\\u003c/script\\u003e\"").expect("z");
        assert!(first < second);
        // One for the data and one for the script.
        assert_eq!(html.matches("</script>").count(), 2);
    }

    #[test]
    fn omitted_rows_are_noted() {
        let long = "x".repeat(400_000);
        let names: Vec<String> = (0..6).map(|i| format!("{long}{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut page = Page::new("m", "");
        add(&mut page, &summary(&names), None).expect("a table");
        let html = page.html();
        assert!(html.len() < 2_000_000 && html.contains(">3 more parameters are in summary.json"), "{}", html.len());
    }
}
