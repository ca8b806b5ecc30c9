//! What a person, or a program, is told of a calibration.

use crate::names;
use crate::table;
use hyperprior::infer::Verdict;
use hyperprior::posterior::calibration::{Assessed, Shape};
use serde::Serialize;

/// Rows that are shown.
const ROWS: usize = 20;
/// Bars from nothing to twice what is expected.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fewer fits than this can show gross faults alone.
const FEW: usize = 50;

/// How many fits have each verdict.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Verdicts {
    trust: usize,
    means_only: usize,
    distrust: usize,
}

impl Verdicts {
    /// One more.
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Trust => &mut self.trust,
            Verdict::MeansOnly => &mut self.means_only,
            Verdict::Distrust => &mut self.distrust,
        } += 1;
    }
}

/// What a calibration found.
#[derive(Debug, Serialize)]
pub struct Calibrated {
    /// The model's name.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The method that was asked for.
    pub method: String,
    /// The rounds that were asked for.
    pub rounds: usize,
    /// Those that were done.
    pub done: usize,
    /// Those that were fitted.
    pub fitted: usize,
    /// Those whose fit failed.
    pub failed: usize,
    /// What the first of them said.
    pub failure: Option<String>,
    /// Those whose simulated data are not finite.
    pub unsimulated: usize,
    /// Draws that truths are ranked among.
    pub draws: usize,
    /// The probability that anything is called wrong where everything is right.
    pub level: f64,
    /// How many fits have each verdict.
    pub verdicts: Verdicts,
    /// What has no value in some rounds.
    pub left_out: Vec<String>,
    /// The quantities, the worst first.
    pub quantities: Vec<Assessed>,
}

impl Calibrated {
    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}: {} of {} rounds of simulated data fitted by {}; truths ranked among {} draws each\n",
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
                "{} left out: simulated values are not finite numbers, as priors far too wide make them\n",
                rounds(self.unsimulated)
            );
        }
        if !self.left_out.is_empty() {
            let names = names::line(self.left_out.iter().map(String::as_str));
            out += &format!("not ranked, since some rounds have no value of it: {names}\n");
        }
        if self.quantities.is_empty() {
            return out + "\nNothing could be ranked.\n";
        }
        out.push('\n');
        let header = ["name", "ranks", "50 % holds", "90 % holds", "mean rank", "p", "p of all", ""];
        let rows: Vec<Vec<String>> = self.quantities.iter().take(ROWS).map(|one| self.row(one)).collect();
        out += &table::render(&header, &rows);
        if self.quantities.len() > ROWS {
            out += &format!("… and {} more, each at least as near to uniform\n", self.quantities.len() - ROWS);
        }
        out + "\n" + &self.conclusion()
    }

    fn row(&self, one: &Assessed) -> Vec<String> {
        let percent = |x: f64| format!("{:.0} %", 100.0 * x);
        let said = if one.shape == Shape::Uniform { String::new() } else { one.shape.to_string() };
        vec![
            one.name.clone(),
            bars(&one.histogram),
            percent(one.coverage[0]),
            percent(one.coverage[1]),
            format!("{:.2}", one.mean_rank),
            probability(one.p),
            probability(one.adjusted),
            said,
        ]
    }

    /// What all of it comes to.
    pub fn conclusion(&self) -> String {
        let wrong: Vec<&Assessed> = self.quantities.iter().filter(|one| one.shape != Shape::Uniform).collect();
        if wrong.is_empty() {
            let few = if self.fitted < FEW { ". So few rounds show gross faults alone: ask for more" } else { "" };
            return format!(
                "Calibrated, as far as {} can tell: no ranks are farther from uniform than chance makes them ({} looked at; \
                 level {} for all together){few}.\n",
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
                Shape::TooNarrow => "Intervals are too narrow: truths lie outside them more often than they promise",
                Shape::TooWide => "Intervals are too wide: truths lie in their middle more often than they promise",
                Shape::BiasedLow => "Biased low: what is found lies below the truth too often",
                Shape::BiasedHigh => "Biased high: what is found lies above the truth too often",
                _ => "Not calibrated, in a way that is neither width nor bias: see the ranks",
            };
            out += &format!("{meaning}: {}.\n", names::line(of_shape));
        }
        let right = self.quantities.len() - wrong.len();
        if right > 0 {
            let is = if right == 1 { "is" } else { "are" };
            out += &format!("The other {} {is} as near to uniform as chance makes them.\n", quantities(right));
        }
        out
    }
}

/// The share of each tenth, twice what is expected being the highest bar.
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
