//! The report of a calibration, as text and as JSON.

use crate::render::terminal::table;
use hyperprior::diagnostics::Verdict;
use hyperprior::diagnostics::calibration::{Assessed, Shape};
use hyperprior::posterior::ranges;
use serde::Serialize;

/// The largest number of rows shown.
const ROWS: usize = 20;
/// Bars from 0 to twice the expected height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fewer fits than this reveal only gross errors.
const FEW: usize = 50;

/// The number of fits with each verdict.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Verdicts {
    trust: usize,
    means_only: usize,
    distrust: usize,
}

impl Verdicts {
    /// Counts a verdict.
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Trust => &mut self.trust,
            Verdict::MeansOnly => &mut self.means_only,
            Verdict::Distrust => &mut self.distrust,
        } += 1;
    }
}

/// The results of a calibration.
#[derive(Debug, Serialize)]
pub struct Calibrated {
    /// The model's name.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The requested method.
    pub method: String,
    /// The number of rounds requested.
    pub rounds: usize,
    /// The number of rounds done.
    pub done: usize,
    /// The number of rounds fitted.
    pub fitted: usize,
    /// The number of rounds whose fit failed.
    pub failed: usize,
    /// The error of the first of these.
    pub failure: Option<String>,
    /// The number of rounds whose simulated data are not finite.
    pub unsimulated: usize,
    /// The number of draws among which true values are ranked.
    pub draws: usize,
    /// The familywise error rate.
    pub level: f64,
    /// The number of fits with each verdict.
    pub verdicts: Verdicts,
    /// Quantities without a value in some rounds.
    pub not_ranked: Vec<String>,
    /// The quantities, the worst first.
    pub quantities: Vec<Assessed>,
}

impl Calibrated {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}: {} of {} simulated data sets fitted by {}; true values ranked among {} draws each\n",
            self.model, self.fitted, self.rounds, self.method, self.draws
        );
        if self.fitted > 0 {
            let share = |count: usize| format!("{:.0} %", 100.0 * count as f64 / self.fitted as f64);
            let Verdicts { trust, means_only, distrust } = self.verdicts;
            out += &format!(
                "verdicts of the fits: trust {}, means only {}, distrust {}\n",
                share(trust),
                share(means_only),
                share(distrust)
            );
        }
        if let Some(failure) = &self.failure {
            out += &format!("{} failed, the first with: {failure}\n", fits(self.failed));
        }
        if self.unsimulated > 0 {
            out += &format!(
                "{} excluded: simulated values are not finite, because the priors are too wide\n",
                rounds(self.unsimulated)
            );
        }
        if !self.not_ranked.is_empty() {
            let names = ranges::line(self.not_ranked.iter().map(String::as_str));
            out += &format!("not ranked, because some rounds have no value: {names}\n");
        }
        if self.quantities.is_empty() {
            return out + "\nNothing could be ranked.\n";
        }
        out.push('\n');
        let header = ["name", "ranks", "50 % coverage", "90 % coverage", "mean rank", "p", "adjusted p", ""];
        let rows: Vec<Vec<String>> = self.quantities.iter().take(ROWS).map(|one| self.row(one)).collect();
        out += &table::render(&header, &rows);
        if self.quantities.len() > ROWS {
            out += &format!("… and {} more, each at least as close to uniform\n", self.quantities.len() - ROWS);
        }
        out + "\n" + &self.conclusion()
    }

    fn row(&self, one: &Assessed) -> Vec<String> {
        let percent = |x: f64| format!("{:.0} %", 100.0 * x);
        let shape = if one.shape == Shape::Uniform { String::new() } else { one.shape.to_string() };
        vec![
            one.name.clone(),
            bars(&one.histogram),
            percent(one.coverage[0]),
            percent(one.coverage[1]),
            format!("{:.2}", one.mean_rank),
            probability(one.p),
            probability(one.adjusted),
            shape,
        ]
    }

    /// The overall conclusion.
    pub fn conclusion(&self) -> String {
        let wrong: Vec<&Assessed> = self.quantities.iter().filter(|one| one.shape != Shape::Uniform).collect();
        if wrong.is_empty() {
            let few = if self.fitted < FEW { ". So few rounds reveal only gross errors; use more" } else { "" };
            return format!(
                "Calibrated, as far as {} can show: all ranks are consistent with uniform ({} tested, at a familywise level of \
                 {}){few}.\n",
                fits(self.fitted),
                quantities(self.quantities.len()),
                self.level
            );
        }
        let mut out = String::new();
        let shapes = [Shape::TooNarrow, Shape::TooWide, Shape::BiasedLow, Shape::BiasedHigh, Shape::Other];
        for shape in shapes {
            let of_shape: Vec<&str> =
                wrong.iter().filter(|one| one.shape == shape).map(|one| one.name.as_str()).collect();
            if of_shape.is_empty() {
                continue;
            }
            let meaning = match shape {
                Shape::TooNarrow => "Intervals are too narrow: true values lie outside them too often",
                Shape::TooWide => "Intervals are too wide: true values lie near their middle too often",
                Shape::BiasedLow => "Biased low: draws lie below the true value too often",
                Shape::BiasedHigh => "Biased high: draws lie above the true value too often",
                _ => "Not calibrated, though neither too narrow, too wide nor biased; see the ranks",
            };
            out += &format!("{meaning}: {}.\n", ranges::line(of_shape));
        }
        let right = self.quantities.len() - wrong.len();
        if right > 0 {
            let is = if right == 1 { "is" } else { "are" };
            out += &format!("The other {} {is} consistent with uniform.\n", quantities(right));
        }
        out
    }
}

/// A bar for each tenth; the highest is twice the expected height.
fn bars(histogram: &[usize]) -> String {
    let expected = histogram.iter().sum::<usize>() as f64 / histogram.len() as f64;
    let bar = |count: &usize| {
        let height = *count as f64 / (2.0 * expected) * BARS.len() as f64;
        BARS[(height as usize).min(BARS.len() - 1)]
    };
    histogram.iter().map(bar).collect()
}

fn probability(p: f64) -> String {
    if p < 1e-12 {
        "0.000".to_owned()
    } else if p < 1e-3 {
        format!("{p:.0e}")
    } else {
        format!("{p:.3}")
    }
}

fn fits(count: usize) -> String {
    if count == 1 { "1 fit".to_owned() } else { format!("{count} fits") }
}

fn rounds(count: usize) -> String {
    if count == 1 { "1 round is".to_owned() } else { format!("{count} rounds are") }
}

fn quantities(count: usize) -> String {
    if count == 1 { "1 quantity".to_owned() } else { format!("{count} quantities") }
}
