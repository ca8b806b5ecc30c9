//! A diagnostic as data: what was found, how serious it is, and what can be done about it.

use super::finding::Finding;
use serde::{Deserialize, Serialize};

/// A diagnostic of a fit or of results computed from it.
///
/// ```
/// use hyperprior::diagnostics::{Diagnostic, Finding, Remedy, Severity};
/// let found = Finding::HighKhat { khat: 0.9, limit: 0.7, is_moved: false, is_confirmed: false };
/// let diagnostic = Diagnostic::new(Severity::MeansOnly, found, vec![Remedy::OtherMethod { suggested: Vec::new() }]);
/// assert_eq!(diagnostic.finding.to_string(), "k̂ = 0.90 is above 0.70: the approximation misses part of the posterior");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What was found: its code and its evidence.
    #[serde(flatten)]
    pub finding: Finding,
    /// How serious it is.
    pub severity: Severity,
    /// What can be done about it, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

/// What can be trusted. See [`Severity`].
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

/// How serious a diagnostic is.
///
/// ```
/// use hyperprior::diagnostics::{Severity, Verdict};
/// assert!(Severity::Note < Severity::Distrust);
/// assert_eq!(Severity::MeansOnly.verdict(), Verdict::MeansOnly);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// For information; the verdict does not depend on it.
    Note,
    /// Spreads and quantiles may be wrong.
    MeansOnly,
    /// Means may be wrong too.
    Distrust,
}

/// What can be done about a finding. Each front end words these in its own terms. See [`Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Remedy {
    /// Allow more time.
    MoreTime,
    /// Take more steps, such as this many.
    MoreSteps {
        /// The suggested number, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steps: Option<u64>,
    },
    /// Leave the number of steps to the stopping rule.
    DefaultSteps,
    /// Use another method.
    OtherMethod {
        /// Methods that are likely to do better.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggested: Vec<String>,
    },
    /// Fit from more starts.
    MoreRestarts,
    /// Correct the draws of the approximation.
    CorrectDraws,
    /// Marginalise these latents.
    Marginalise,
    /// Fit again without the observations concerned.
    RefitWithout,
}

impl Diagnostic {
    /// A diagnostic with these parts.
    pub fn new(severity: Severity, finding: Finding, remedies: Vec<Remedy>) -> Self {
        Self { finding, severity, remedies }
    }

    /// The finding as a sentence without its full stop, followed by the remedies as a front end words them.
    pub fn worded(&self, remedy: &dyn Fn(&Remedy) -> String) -> String {
        match self.remedies.as_slice() {
            [] => self.finding.to_string(),
            remedies => {
                let words: Vec<String> = remedies.iter().map(remedy).collect();
                format!("{}. {}", self.finding, capitalised(&words.join(", or ")))
            }
        }
    }
}

/// The text with a capital first letter.
#[doc(hidden)]
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl Severity {
    /// What can still be trusted.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Note => Verdict::Trust,
            Self::MeansOnly => Verdict::MeansOnly,
            Self::Distrust => Verdict::Distrust,
        }
    }
}
