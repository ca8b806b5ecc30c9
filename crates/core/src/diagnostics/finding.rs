//! What diagnostics find, and how each is said.

use super::exchangeable::Exchangeable;
use super::label_switching::LabelSwitching;
use crate::json::nullable;
use crate::model::CommonFault;
use crate::posterior::Statistic;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was found, with its evidence. The text explains it without naming options of a front end. See [`Diagnostic`](super::Diagnostic).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the sentences of `Display` say what each number is")]
pub enum Finding {
    /// The posterior is improper along these latents, which have flat priors.
    ImproperPosterior { latents: Vec<String> },
    /// The fit was stopped before its end.
    FitStopped { step: u64, steps: u64 },
    /// The bound had not converged.
    ElboRising { is_budget_spent: bool },
    /// Too few steps to judge convergence.
    TooFewSteps { steps: u64, is_budget_spent: bool },
    /// The MCMC moves were stopped.
    MovesStopped,
    /// Model selection or restarts were stopped.
    SelectionStopped,
    /// The mode search found a mode that the draws miss.
    MissedMode {
        #[serde(deserialize_with = "nullable")]
        share: f64,
        #[serde(deserialize_with = "nullable")]
        drawn: f64,
    },
    /// The draws miss a tail of a latent.
    MissedTail {
        latent: String,
        #[serde(deserialize_with = "nullable")]
        share: f64,
        #[serde(deserialize_with = "nullable")]
        drawn: f64,
    },
    /// The draws miss rare values of a latent that determine its standard deviation.
    MissedSpread {
        latent: String,
        #[serde(deserialize_with = "nullable")]
        wider: f64,
    },
    /// Fits from different starts have different means.
    RestartsDisagree {
        #[serde(deserialize_with = "nullable")]
        rhat: f64,
        latent: String,
    },
    /// The importance weights are unreliable.
    HighKhat {
        #[serde(deserialize_with = "nullable")]
        khat: f64,
        #[serde(deserialize_with = "nullable")]
        limit: f64,
        is_moved: bool,
        is_confirmed: bool,
    },
    /// The draws are uncorrected, and their weights are uneven.
    UnevenWeights {
        #[serde(deserialize_with = "nullable")]
        share: f64,
    },
    /// The effective sample size is low.
    LowEffectiveSampleSize {
        #[serde(deserialize_with = "nullable")]
        ess: f64,
    },
    /// Many draws of the approximation are impossible in the model.
    InvalidShare {
        #[serde(deserialize_with = "nullable")]
        share: f64,
    },
    /// Chains from overdispersed starts have another mean.
    SuperchainsDiffer {
        latent: String,
        #[serde(deserialize_with = "nullable")]
        shift: f64,
    },
    /// Chains from overdispersed starts have another spread.
    SuperchainsWider {
        latent: String,
        #[serde(deserialize_with = "nullable")]
        spread: f64,
    },
    /// Most chains from overdispersed starts ended elsewhere.
    SuperchainsAway { away: usize, of: usize },
    /// Chains from overdispersed starts still depend on their starts.
    SuperchainsApart {
        #[serde(deserialize_with = "nullable")]
        rhat: f64,
        latent: String,
    },
    /// The draws are those of chains that have not mixed.
    ChainsNotMixed {
        #[serde(deserialize_with = "nullable")]
        rhat: f64,
        latent: String,
        #[serde(deserialize_with = "nullable")]
        ess: f64,
        #[serde(deserialize_with = "nullable")]
        divergent: f64,
    },
    /// Long chains from overdispersed starts have not converged.
    ChainsDisagree {
        #[serde(deserialize_with = "nullable")]
        rhat: f64,
        latent: String,
        #[serde(deserialize_with = "nullable")]
        divergent: f64,
    },
    /// Quantities whose tails are so heavy that their standard deviations are uncertain: how many of how many; and the worst of them,
    /// with its Pareto shape and the Monte Carlo error of its standard deviation, as a share of it.
    HeavyTails {
        heavy: usize,
        of: usize,
        name: String,
        #[serde(deserialize_with = "nullable")]
        shape: f64,
        #[serde(deserialize_with = "nullable")]
        sd_error: f64,
    },
    /// The moves were still widening the tails.
    WideningTails { latent: String },
    /// Some draws of the approximation are impossible in the model.
    InvalidDraws { invalid: usize, drawn: usize, fault: Option<CommonFault> },
    /// There is no linear response.
    NoLinearResponse { reason: String },
    /// The labels of a mixture switch.
    LabelSwitching(LabelSwitching),
    /// The order of components means nothing.
    ExchangeableComponents(Exchangeable),
    /// The data could not be replicated.
    NotReplicated { reason: String },
    /// A statistic of the data is extreme among its replications.
    ExtremeStatistic {
        array: String,
        statistic: Statistic,
        is_above: bool,
        #[serde(deserialize_with = "nullable")]
        tail: f64,
    },
    /// PSIS-LOO is unreliable for some observations.
    LooHighKhat {
        above: usize,
        units: usize,
        #[serde(deserialize_with = "nullable")]
        limit: f64,
    },
    /// WAIC is unreliable.
    WaicUnreliable {
        above: usize,
        units: usize,
        #[serde(deserialize_with = "nullable")]
        limit: f64,
    },
    /// Some observations are left out together.
    LooGrouped { names: Vec<String> },
    /// Some likelihoods are conditional on drawn discrete latents.
    LooConditional { names: Vec<String> },
}

impl fmt::Display for Finding {
    /// Long because it has one sentence for every finding.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        // Chains that do not move have an R̂ without meaning.
        let rounded = |rhat: f64| if rhat <= 100.0 { format!("{rhat:.2}") } else { "above 100".to_owned() };
        match self {
            Self::ImproperPosterior { latents } => {
                let names = match latents.len() {
                    0..=6 => latents.join(", "),
                    len => format!("{} and {} others", latents[..5].join(", "), len - 5),
                };
                write!(
                    f,
                    "the posterior is improper: the data do not determine {names}, and flat priors leave it so. Proper priors are needed"
                )
            }
            Self::FitStopped { step, steps } => {
                write!(
                    f,
                    "the fit was stopped at step {step} of {steps}; the draws come from the approximation at that step"
                )
            }
            Self::ElboRising { is_budget_spent: true } => {
                f.write_str("the ELBO was still rising when the time budget ran out")
            }
            Self::ElboRising { is_budget_spent: false } => f.write_str("the ELBO was still rising when the fit ended"),
            Self::TooFewSteps { steps, is_budget_spent: true } => {
                write!(f, "the time budget ran out after {steps} steps, too few to judge convergence")
            }
            Self::TooFewSteps { steps, is_budget_spent: false } => {
                write!(f, "{steps} steps are too few to judge convergence")
            }
            Self::MovesStopped => f.write_str("the MCMC moves were stopped before the draws had mixed"),
            Self::SelectionStopped => {
                f.write_str("the run was stopped before larger approximations or restarts had been tried")
            }
            Self::MissedMode { share, drawn } => write!(
                f,
                "the search found a region with about {:.0} % of the posterior, but only {:.0} % of the draws are there",
                percent(*share),
                percent(*drawn)
            ),
            Self::MissedTail { latent, share, drawn } => write!(
                f,
                "a tail of {latent} has about {:.0} % of the posterior, but only {:.1} % of the draws are there",
                percent(*share),
                percent(*drawn)
            ),
            Self::MissedSpread { latent, wider } => write!(
                f,
                "{latent} has rare values that the draws miss; with them its standard deviation would be about {wider:.1} times as large"
            ),
            Self::RestartsDisagree { rhat, latent } => {
                write!(
                    f,
                    "fits from different starts disagree about {latent} (R̂ = {rhat:.3}), although their ELBOs are close"
                )
            }
            Self::HighKhat { khat, limit, is_confirmed: true, .. } => write!(
                f,
                "k̂ = {khat:.2} is above {limit:.2}: the tails of the approximation are too light; the draws no longer depend on them"
            ),
            Self::HighKhat { khat, limit, is_moved, .. } => {
                write!(f, "k̂ = {khat:.2} is above {limit:.2}: the approximation misses part of the posterior")?;
                if *is_moved {
                    f.write_str("; the MCMC moves correct shapes, but not the weights of modes that are far apart")?;
                }
                Ok(())
            }
            Self::UnevenWeights { share } => write!(
                f,
                "the draws are uncorrected, and importance weighting would leave {:.0} % of them effective",
                percent(*share)
            ),
            Self::LowEffectiveSampleSize { ess } => write!(
                f,
                "the effective sample size is {ess:.0}: a few draws dominate the importance weights and the MCMC moves do not mix"
            ),
            Self::InvalidShare { share } => {
                write!(f, "{:.0} % of the approximation's draws are impossible in the model", percent(*share))
            }
            Self::SuperchainsDiffer { latent, shift } => write!(
                f,
                "chains from overdispersed starts have a mean of {latent} that is {shift:.1} standard deviations away from that of \
                 the draws"
            ),
            Self::SuperchainsWider { latent, spread } => write!(
                f,
                "chains from overdispersed starts have a variance of {latent} that differs by {:.0} % from that of the draws",
                percent(*spread)
            ),
            Self::SuperchainsAway { away, of } => {
                write!(
                    f,
                    "{away} of {of} groups of chains from overdispersed starts did not come to where the draws are"
                )
            }
            Self::SuperchainsApart { rhat, latent } => {
                write!(f, "chains from overdispersed starts have not mixed (nested R̂ {} of {latent})", rounded(*rhat))
            }
            Self::ChainsNotMixed { rhat, latent, ess, divergent } => write!(
                f,
                "the chains of the No-U-Turn sampler have not mixed (R̂ {} of {latent}, bulk ESS {ess:.0}, {:.0} % of the transitions \
                 divergent)",
                rounded(*rhat),
                percent(*divergent)
            ),
            Self::ChainsDisagree { rhat, latent, divergent } => write!(
                f,
                "chains of the No-U-Turn sampler do not confirm the draws (R̂ {} of {latent}, {:.0} % of the transitions \
                 divergent)",
                rounded(*rhat),
                percent(*divergent)
            ),
            Self::HeavyTails { heavy, of, name, shape, sd_error } => write!(
                f,
                "{heavy} of {of} quantities have tails so heavy that their standard deviations are uncertain ({name}: Pareto shape \
                 {shape:.2}, Monte Carlo error of the standard deviation {:.0} %); use their quantiles",
                percent(*sd_error)
            ),
            Self::WideningTails { latent } => {
                write!(f, "the tails of {latent} were still widening when the MCMC moves stopped")
            }
            Self::InvalidDraws { invalid, drawn, fault } => {
                write!(
                    f,
                    "{invalid} of {drawn} draws of the approximation are impossible in the model; the ELBO is that of the approximation without them"
                )?;
                match fault {
                    Some(CommonFault { fault, count, of }) if count == of => {
                        write!(f, ". The cause is {}, such as {}", fault.factor, fault.reason)
                    }
                    Some(CommonFault { fault, count, of }) => {
                        write!(
                            f,
                            ". In {count} of {of} examined, the cause is {}, such as {}",
                            fault.factor, fault.reason
                        )
                    }
                    None => Ok(()),
                }
            }
            Self::NoLinearResponse { reason } => write!(f, "there is no linear response: {reason}"),
            Self::LabelSwitching(found) => write!(f, "{found}"),
            Self::ExchangeableComponents(found) => write!(f, "{found}"),
            Self::NotReplicated { reason } => write!(f, "the data could not be resimulated: {reason}"),
            Self::ExtremeStatistic { array, statistic, is_above, tail } => write!(
                f,
                "the {statistic} of `{array}` is {} nearly all replicated data sets (tail probability {tail:.4}): the model does \
                 not reproduce this feature of the data",
                if *is_above { "above" } else { "below" }
            ),
            Self::LooHighKhat { above, units, limit } => write!(
                f,
                "{above} of {units} observations have k̂ above {limit:.2}: they are so influential that PSIS-LOO is unreliable for \
                 them"
            ),
            Self::WaicUnreliable { above, units, limit } => {
                write!(f, "{above} of {units} observations add more than {limit} to p_waic: prefer elpd_loo")
            }
            Self::LooGrouped { names } => write!(
                f,
                "observations that share too many marginalised latents are left out together: {}",
                names.join(", ")
            ),
            Self::LooConditional { names } => write!(
                f,
                "the likelihoods are conditional on drawn values of {}, which may exclude values that the left-out observation \
                 made impossible",
                names.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_read_back_as_nan() {
        let found = Finding::HighKhat { khat: f64::INFINITY, limit: 0.7, is_moved: true, is_confirmed: false };
        let text = serde_json::to_string(&found).expect("JSON");
        let again: Finding = serde_json::from_str(&text).expect("a finding");
        assert!(matches!(again, Finding::HighKhat { khat, limit: 0.7, .. } if khat.is_nan()), "{again:?}");
    }
}
