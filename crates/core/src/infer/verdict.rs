//! How far a fit is to be trusted, and why not further.

use super::candidate::Restarts;
use super::moves::DRIFT;
use super::run::{Correct, Inferred, OVERSAMPLED};
use serde::{Deserialize, Serialize};

/// What may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Means, spreads and probabilities.
    Trust,
    /// Means alone.
    MeansOnly,
    /// Nothing.
    Distrust,
}

/// Something that stands against believing a fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The most that it leaves to believe.
    pub verdict: Verdict,
    /// What it is, and what to try.
    pub reason: String,
}

/// A place that draws of the posterior should have come to, and did not.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Its share of the posterior, as the search has it.
    pub share: f64,
    /// The share of the draws that are there.
    pub drawn: f64,
    /// Where it is: the model's latents.
    pub z: Vec<f64>,
}

/// Above this the importance weights have no mean.
const NO_MEAN: f64 = 1.0;
/// Draws that are worth fewer independent ones than this say too little about a posterior's shape.
const WORTH_MIN: f64 = 400.0;
/// Draws that are not corrected are nearly those of the posterior where their weights leave this share of them.
const EVEN_MIN: f64 = 0.8;
/// Above this the means that different fits give a latent are apart.
const RHAT_MAX: f64 = 1.1;
/// A share of impossible draws that says that the approximation lies elsewhere.
const DROPPED_MAX: f64 = 0.05;

impl Inferred {
    /// What may be believed of it.
    pub fn verdict(&self) -> Verdict {
        self.doubts().first().map_or(Verdict::Trust, |doubt| doubt.verdict)
    }

    /// What stands against believing it, the gravest first.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = self.doubts_of_the_fit();
        doubts.extend(self.doubts_of_the_draws());
        doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.verdict));
        doubts
    }

    fn doubts_of_the_fit(&self) -> Vec<Doubt> {
        let (step, steps) = (self.fitted.history.len(), self.fitted.planned);
        let (verdict, reason) = match self.has_settled {
            _ if self.fitted.stopped => {
                let reason = "the draws are of the approximation as it stood then";
                (Verdict::Distrust, format!("the fit was stopped at step {step} of {steps}: {reason}"))
            }
            Some(false) if self.within.is_some() => {
                let reason = "the bound was still rising when the budget was spent; give it more seconds (--budget)";
                (Verdict::Distrust, reason.to_owned())
            }
            Some(false) => {
                let more = steps.saturating_mul(2);
                let reason = format!("the bound was still rising; give it more steps (--steps {more})");
                (Verdict::Distrust, reason)
            }
            None if self.within.is_some() => {
                let reason = format!(
                    "the budget was spent after {step} steps, too few to tell whether the bound had settled; give it more seconds \
                     (--budget)"
                );
                (Verdict::MeansOnly, reason)
            }
            None => {
                let reason =
                    format!("{step} steps are too few to tell whether the bound had settled; leave --steps out");
                (Verdict::MeansOnly, reason)
            }
            Some(true) => return Vec::new(),
        };
        vec![Doubt { verdict, reason }]
    }

    fn doubts_of_the_draws(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let mut doubt = |verdict, reason: String| doubts.push(Doubt { verdict, reason });
        if !self.fitted.stopped && self.moved.is_some_and(|moved| moved.stopped) {
            let reason = "the moves of the draws were stopped before they had forgotten where they were";
            doubt(Verdict::MeansOnly, reason.to_owned());
        }
        if self.is_stopped && !self.fitted.stopped {
            let reason = "it was stopped before larger approximations or other starts had been tried";
            doubt(Verdict::MeansOnly, reason.to_owned());
        }
        if let Some(left) = &self.left_out {
            let other = if self.rungs.is_empty() { "auto or mixture:8" } else { "mixture:16" };
            doubt(
                Verdict::Distrust,
                format!(
                    "the search found a place with about {:.0} % of the posterior where only {:.0} % of the draws are: a mode is \
                     left out. Try --method {other}",
                    100.0 * left.share,
                    100.0 * left.drawn
                ),
            );
        }
        if let Some(Restarts { rhat: Some(rhat), latent, .. }) = &self.restarts
            && *rhat > RHAT_MAX
        {
            doubt(
                Verdict::MeansOnly,
                format!(
                    "fits from different starts disagree: R̂ = {rhat:.2} for {latent}, though their bounds are alike. Try another \
                     --method, such as mixture:16, or more --restarts"
                ),
            );
        }
        let (k, limit) = (self.tail.khat, self.tail.limit);
        if !(k <= limit) {
            let verdict = if k <= NO_MEAN { Verdict::MeansOnly } else { Verdict::Distrust };
            let moved = match self.correct {
                Correct::Moves => {
                    "; the draws were moved towards it afterwards, which mends shapes but not the shares of modes that \
                     are far apart"
                }
                _ => "",
            };
            doubt(
                verdict,
                format!(
                    "k̂ = {k:.2} is above {limit:.2}: the approximation leaves out part of the posterior{moved}. Try \
                     another --method, or more --steps"
                ),
            );
        }
        let even = self.tail.ess / (self.z.draws_len() * OVERSAMPLED) as f64;
        if self.correct == Correct::Nothing && even < EVEN_MIN && k <= limit {
            doubt(
                Verdict::MeansOnly,
                format!(
                    "the draws are the approximation's own, and the weights that would correct them leave {:.0} % of their number. \
                     Leave --correct out",
                    100.0 * even
                ),
            );
        }
        let worth = self.worth();
        if worth < WORTH_MIN.min(0.5 * self.z.draws_len() as f64) {
            doubt(
                Verdict::MeansOnly,
                format!(
                    "the draws are worth no more than {worth:.0} independent ones, since few of the approximation's have \
                     nearly all the weight and moves lead nowhere else. Try another --method"
                ),
            );
        }
        let dropped = self.bounds.dropped as f64 / self.bounds.drawn.max(1) as f64;
        if dropped > DROPPED_MAX {
            doubt(
                Verdict::MeansOnly,
                format!("{:.0} % of the approximation's draws are impossible in the model", 100.0 * dropped),
            );
        }
        if let Some(latent) =
            self.moved.filter(|moved| moved.drift > DRIFT && !moved.stopped).and(self.drifting.as_ref())
        {
            doubt(
                Verdict::MeansOnly,
                format!(
                    "the moves were still drawing out the tails of {latent} when they ended: the posterior reaches farther than the \
                     approximation. Try another --method"
                ),
            );
        }
        doubts
    }
}
