//! The pairs of parameters that depend on each other most, drawn; beside those of another run, where there is one.

use super::dependence::{correlation, strongest};
use super::panel::{Two, pictures};
use crate::error::CliError;
use crate::html::escape;
use crate::render::Digits;
use hyperprior::posterior::{Dependence, Draws, Kind, Monitor};
use std::fmt::Write as _;

/// How many pairs are drawn.
const SHOWN: usize = 6;

/// Another run: what it is called, and its draws.
pub struct Beside {
    pub name: String,
    pub draws: Draws,
}

/// The section's body; nothing where there are not two parameters.
pub fn section(draws: &Draws, latents: &[Monitor], name: &str, beside: Option<&Beside>) -> Result<String, CliError> {
    if draws.columns().len() < 2 {
        return Ok(String::new());
    }
    let found = strongest(draws, latents, SHOWN)?;
    if found.pairs.is_empty() {
        return Ok("<p>No two parameters depend on each other by more than chance would have it.</p>".to_owned());
    }
    let mut out = "<p class=\"note\">The strongest pairs by mutual information, in nats; 0 is independence. The axes leave out the \
                   outermost draws, four in a thousand.</p>\n"
        .to_owned();
    if found.left_out > 0 {
        let _ = writeln!(out, "<p class=\"note\">{} pairs were not looked at, for want of time.</p>", found.left_out);
    }
    if let Some(beside) = beside {
        let [own, other] = [name, &beside.name].map(escape::text);
        let _ = writeln!(out, "<p>On the left <b>{own}</b>, on the right <b>{other}</b>, on the same axes.</p>");
    }
    let class = if beside.is_some() { "pairs beside" } else { "pairs" };
    let _ = writeln!(out, "<div class=\"{class}\">");
    for pair in &found.pairs {
        out.push_str(&figure(draws, pair, name, beside));
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

fn figure(draws: &Draws, pair: &Dependence, name: &str, beside: Option<&Beside>) -> String {
    let own = of(draws, [pair.first, pair.second]);
    let [first, second] = own.names.map(escape::text);
    let said = said(&own);
    let nats = Digits::Decimals(2).show(pair.nats);
    let caption = format!("<b>{first}</b> and <b>{second}</b> <span>{nats} nats{said}</span>");
    let Some(beside) = beside else {
        let pictures = pictures(&[own.turned()]).concat();
        return format!("<figure>{pictures}<figcaption>{caption}</figcaption></figure>\n");
    };
    let find = |name: &str| beside.draws.names().iter().position(|other| *other == name);
    let is_like = |other: &Two| {
        let is_finite = other.values.iter().all(|values| values.iter().all(|x| x.abs() < 1e150));
        other.kinds == own.kinds && is_finite
    };
    let other = own.names.map(find);
    let other = match other {
        [Some(i), Some(j)] => Some(of(&beside.draws, [i, j])).filter(is_like),
        _ => None,
    };
    let runs: Vec<Two> = [Some(own), other].into_iter().flatten().map(Two::turned).collect();
    let mut drawn = pictures(&runs).into_iter();
    let head = |name: &str| format!("<p class=\"run\">{}</p>", escape::text(name));
    let missing = || "<p class=\"note\">It has no draws of these two.</p>".to_owned();
    let left = head(name) + &drawn.next().unwrap_or_default();
    let right = head(&beside.name) + &drawn.next().unwrap_or_else(missing);
    format!("<figure><div>{left}</div><div>{right}</div><figcaption>{caption}</figcaption></figure>\n")
}

/// The correlation, where it means something.
fn said(two: &Two) -> String {
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
    fn another_run_stands_beside() {
        let own = draws(["<a>", "b"], 1.0);
        let alone = section(&own, &[], "one", None).expect("pairs");
        assert!(alone.contains("<b>&lt;a&gt;</b> and <b>b</b>") && alone.contains("correlation 0.9"), "{alone}");
        let beside = Beside { name: "two & more".to_owned(), draws: draws(["<a>", "b"], -1.0) };
        let both = section(&own, &[], "one", Some(&beside)).expect("pairs");
        assert_eq!(both.matches("<svg").count(), 2, "{both}");
        assert!(both.contains("two &amp; more"), "{both}");
        let unlike = Beside { name: "two".to_owned(), draws: draws(["<a>", "c"], -1.0) };
        let both = section(&own, &[], "one", Some(&unlike)).expect("pairs");
        assert!(both.contains("It has no draws of these two") && both.matches("<svg").count() == 1, "{both}");
    }
}
