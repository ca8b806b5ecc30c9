//! Plots of the pairs of parameters with the strongest dependence, optionally compared with a reference run.

use super::dependence::{correlation, strongest};
use super::panel::{Two, pictures};
use crate::error::CliError;
use crate::render::html::escape;
use crate::render::terminal::Digits;
use hyperprior::posterior::{Dependence, Draws, Kind, Monitor};
use std::fmt::Write as _;

/// The number of pairs shown.
const SHOWN: usize = 6;

/// A run to compare with: its name and its draws.
pub struct Reference {
    pub name: String,
    pub draws: Draws,
}

/// The section's body; empty if there are fewer than two parameters.
pub fn section(
    draws: &Draws,
    latents: &[Monitor],
    name: &str,
    reference: Option<&Reference>,
) -> Result<String, CliError> {
    if draws.columns().len() < 2 {
        return Ok(String::new());
    }
    let found = strongest(draws, latents, SHOWN)?;
    if found.pairs.is_empty() {
        return Ok("<p>No pair of parameters shows dependence beyond chance.</p>".to_owned());
    }
    let mut out =
        "<p class=\"note\">The strongest pairs by mutual information in nats; 0 means independence. The axes omit the \
                   outermost 0.4 % of the draws.</p>\n"
            .to_owned();
    if found.skipped > 0 {
        let _ = writeln!(out, "<p class=\"note\">{} pairs were not examined, to save time.</p>", found.skipped);
    }
    if let Some(reference) = reference {
        let [own, other] = [name, &reference.name].map(escape::text);
        let _ = writeln!(out, "<p>Left: <b>{own}</b>. Right: <b>{other}</b>. The axes are the same.</p>");
    }
    let class = if reference.is_some() { "pairs compared" } else { "pairs" };
    let _ = writeln!(out, "<div class=\"{class}\">");
    for pair in &found.pairs {
        out.push_str(&figure(draws, pair, name, reference));
    }
    out.push_str("</div>");
    Ok(out)
}

fn of<'a>(draws: &'a Draws, [i, j]: [usize; 2]) -> Two<'a> {
    let columns = draws.columns();
    Two {
        names: [&columns[i].name, &columns[j].name],
        kinds: [columns[i].kind, columns[j].kind],
        values: [draws.column(i), draws.column(j)],
    }
}

fn figure(draws: &Draws, pair: &Dependence, name: &str, reference: Option<&Reference>) -> String {
    let own = of(draws, [pair.first, pair.second]);
    let [first, second] = own.names.map(escape::text);
    let correlation = correlation_text(&own);
    let nats = Digits::Decimals(2).show(pair.nats);
    let caption = format!("<b>{first}</b> and <b>{second}</b> <span>{nats} nats{correlation}</span>");
    let Some(reference) = reference else {
        let pictures = pictures(&[own.turned()]).concat();
        return format!("<figure>{pictures}<figcaption>{caption}</figcaption></figure>\n");
    };
    let find = |name: &str| reference.draws.names().iter().position(|other| *other == name);
    let is_comparable = |other: &Two| {
        let is_finite = other.values.iter().all(|values| values.iter().all(|x| x.abs() < 1e150));
        other.kinds == own.kinds && is_finite
    };
    let other = own.names.map(find);
    let other = match other {
        [Some(i), Some(j)] => Some(of(&reference.draws, [i, j])).filter(is_comparable),
        _ => None,
    };
    let runs: Vec<Two> = [Some(own), other].into_iter().flatten().map(Two::turned).collect();
    let mut drawn = pictures(&runs).into_iter();
    let head = |name: &str| format!("<p class=\"run\">{}</p>", escape::text(name));
    let missing = || "<p class=\"note\">This run has no draws of the two.</p>".to_owned();
    let left = head(name) + &drawn.next().unwrap_or_default();
    let right = head(&reference.name) + &drawn.next().unwrap_or_else(missing);
    format!("<figure><div>{left}</div><div>{right}</div><figcaption>{caption}</figcaption></figure>\n")
}

/// The correlation, if both are continuous.
fn correlation_text(two: &Two) -> String {
    if two.kinds != [Kind::Continuous; 2] {
        return String::new();
    }
    let r = correlation(two.values[0], two.values[1]);
    format!(", correlation {}", Digits::Decimals(2).show(r).replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior::Batch;
    use hyperprior::posterior::Column;

    fn draws(names: [&str; 2], sign: f64) -> Draws {
        let x: Vec<f64> = (0..500).map(|i| f64::from(i * 7 % 500)).collect();
        let y: Vec<f64> = x.iter().enumerate().map(|(i, x)| sign * x + (i % 9) as f64 * 12.0).collect();
        let columns = names.map(Column::continuous).to_vec();
        Draws::new(columns, Batch::from_columns([x, y].concat(), 500)).expect("draws")
    }

    #[test]
    fn a_reference_run_is_compared() {
        let own = draws(["<a>", "b"], 1.0);
        let alone = section(&own, &[], "one", None).expect("pairs");
        assert!(alone.contains("<b>&lt;a&gt;</b> and <b>b</b>") && alone.contains("correlation 0.9"), "{alone}");
        let reference = Reference { name: "two & more".to_owned(), draws: draws(["<a>", "b"], -1.0) };
        let both = section(&own, &[], "one", Some(&reference)).expect("pairs");
        assert_eq!(both.matches("<svg").count(), 2, "{both}");
        assert!(both.contains("two &amp; more"), "{both}");
        let different = Reference { name: "two".to_owned(), draws: draws(["<a>", "c"], -1.0) };
        let both = section(&own, &[], "one", Some(&different)).expect("pairs");
        assert!(both.contains("This run has no draws of the two") && both.matches("<svg").count() == 1, "{both}");
    }
}
