//! The verdict on a fit, and the diagnostics behind it.

use super::diagnostic::{Diagnostic, Remedy, Severity, Verdict};
use super::finding::Finding;
use super::psis::VARIANCE_KHAT_MAX;
use crate::infer::{
    Correction, DIVERGENT_MAX, ESS_MEANS, ESS_MIN, Inferred, MissedTail, NutsSummary, OVERSAMPLED, RHAT_MAX, Restarts,
    SHIFT_MAX, SPREAD_MAX, SUPERCHAINS, Superchains, TAIL_DRIFT_MAX, ess_min,
};

/// Above this the importance weights have no mean.
const NO_MEAN: f64 = 1.0;
/// Uncorrected draws are close to the posterior if importance weighting leaves this share of them effective.
const EVEN_MIN: f64 = 0.8;
/// Above this, the means of a latent differ between fits: those of two by more than a fifth of a standard deviation.
const RESTARTS_RHAT_MAX: f64 = 1.01;
/// Draws with a larger correlation with where they started may still have the shares of modes that the approximation gave them.
const MEMORY_MAX: f64 = 0.15;
/// With a larger share of impossible draws, the approximation does not match the posterior.
const INVALID_MAX: f64 = 0.05;

impl Inferred {
    /// How far the draws can be trusted.
    pub fn verdict(&self) -> Verdict {
        self.diagnostics().first().map_or(Verdict::Trust, |found| found.severity.verdict())
    }

    /// What a verdict of trust rests on.
    pub fn basis(&self) -> String {
        let basis = if let Some(found) = self.quadrature {
            if found.is_exact {
                "every latent was integrated out by adaptive quadrature"
            } else {
                "all latents but a few were integrated out by adaptive quadrature, and k̂ of the others is below its limit"
            }
        } else if self.particles().is_some() {
            "independent islands of tempered sequential Monte Carlo agree"
        } else if self.long_chains().is_some() {
            "chains of the No-U-Turn sampler from overdispersed starts agree"
        } else if self.is_importance_sampled() {
            "the importance weights of a learnt mixture have a variance (k̂ is at most 0.5), and chains from overdispersed starts ended \
             where it has draws"
        } else if self.is_confirmed() {
            "the ELBO had converged, the draws have mixed, and chains from overdispersed starts joined them"
        } else {
            "the ELBO had converged, and k̂ is below its limit"
        };
        basis.to_owned()
    }

    /// The diagnostics behind the verdict, the most serious first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.of_the_fit().into_iter().collect();
        if self.is_replaced() {
            // The draws no longer depend on the approximation.
            found.iter_mut().for_each(|one| one.severity = Severity::Note);
        }
        if !self.improper.is_empty() {
            let finding = Finding::ImproperPosterior { latents: self.improper.clone() };
            found.insert(0, Diagnostic::new(Severity::Distrust, finding, Vec::new()));
        }
        self.of_the_search(&mut found);
        self.of_the_draws(&mut found);
        found.sort_by_key(|found| std::cmp::Reverse(found.severity));
        found
    }

    /// Whether particles or long chains agree, so that the draws are theirs or confirmed by them.
    fn is_replaced(&self) -> bool {
        self.particles().is_some() || self.long_chains().is_some()
    }

    /// Whether the draws have mixed and superchains agree with them, so that they no longer depend on the approximation.
    fn is_confirmed(&self) -> bool {
        self.quadrature.is_some() || self.is_replaced() || self.have_mixed()
    }

    /// Whether the weights of a learnt mixture have a variance, and the search knows no mode from one ascent alone. Such weights know the
    /// shares of modes that chains do not move between.
    fn is_importance_sampled(&self) -> bool {
        let is_known = self.psis.khat <= VARIANCE_KHAT_MAX && self.modes_once == 0;
        self.learnt.is_some() && is_known && !self.is_replaced() && self.quadrature.is_none()
    }

    /// Whether the draws depend little on where they started.
    fn have_forgotten(&self) -> bool {
        self.moved.is_some_and(|moved| moved.memory <= MEMORY_MAX)
    }

    /// Whether the moves of the approximation's draws were enough, by what the superchains say.
    fn have_mixed(&self) -> bool {
        let is_joined = |found: &Superchains| found.agrees() && found.have_joined();
        self.have_forgotten() && self.superchains.as_ref().is_some_and(is_joined)
    }

    /// The share of the approximation's draws that are impossible.
    fn invalid_share(&self) -> f64 {
        self.bounds.dropped as f64 / self.bounds.drawn.max(1) as f64
    }

    fn of_the_fit(&self) -> Option<Diagnostic> {
        let (step, steps) = (self.fitted.history.len() as u64, self.fitted.planned);
        let is_budget_spent = self.budget_record.is_some();
        let (severity, finding, remedy) = match self.has_converged {
            _ if self.fitted.stopped => {
                return Some(Diagnostic::new(Severity::Distrust, Finding::FitStopped { step, steps }, Vec::new()));
            }
            Some(true) => return None,
            // An approximation that was not fitted because hardly any of its draws are possible, which is reported.
            None if steps == 1 && self.invalid_share() > INVALID_MAX => return None,
            Some(false) => {
                let more = Remedy::MoreSteps { steps: Some(steps.saturating_mul(2)) };
                (Severity::Distrust, Finding::ElboRising { is_budget_spent }, more)
            }
            None => (Severity::MeansOnly, Finding::TooFewSteps { steps: step, is_budget_spent }, Remedy::DefaultSteps),
        };
        let remedy = if is_budget_spent { Remedy::MoreTime } else { remedy };
        Some(Diagnostic::new(severity, finding, vec![remedy]))
    }

    fn of_the_search(&self, found: &mut Vec<Diagnostic>) {
        let mut add = |severity, finding, remedies| found.push(Diagnostic::new(severity, finding, remedies));
        if !self.fitted.stopped && self.moved.is_some_and(|moved| moved.stopped) {
            add(Severity::MeansOnly, Finding::MovesStopped, Vec::new());
        }
        if self.is_stopped && !self.fitted.stopped {
            add(Severity::MeansOnly, Finding::SelectionStopped, Vec::new());
        }
        if let Some(missed) = &self.missed_mode {
            let suggested: &[&str] = if self.candidates.is_empty() { &["auto", "mixture:8"] } else { &["mixture:16"] };
            let finding = Finding::MissedMode { share: missed.share, drawn: missed.drawn };
            add(Severity::Distrust, finding, vec![other_method(suggested)]);
        }
        if let Some(MissedTail { latent, share, drawn, is_large, wider }) = self.missed_tail.clone() {
            let (severity, finding) = match is_large {
                true => (Severity::Distrust, Finding::MissedTail { latent, share, drawn }),
                false => (Severity::MeansOnly, Finding::MissedSpread { latent, wider }),
            };
            add(severity, finding, Vec::new());
        }
        if let Some(Restarts { rhat: Some(rhat), latent, .. }) = &self.restarts
            && *rhat > RESTARTS_RHAT_MAX
        {
            let finding = Finding::RestartsDisagree { rhat: *rhat, latent: latent.clone() };
            let severity = if self.is_confirmed() { Severity::Note } else { Severity::Distrust };
            add(severity, finding, vec![other_method(&["mixture:16"]), Remedy::MoreRestarts]);
        }
    }

    fn of_the_draws(&self, found: &mut Vec<Diagnostic>) {
        let mut add = |severity, finding, remedies| found.push(Diagnostic::new(severity, finding, remedies));
        let (khat, limit) = (self.psis.khat, self.psis.limit);
        if !(khat <= limit) {
            // Once the draws have forgotten where they started, k̂ tells about the approximation only.
            let is_confirmed = self.is_confirmed();
            let severity = match self.correct {
                _ if is_confirmed => Severity::Note,
                Correction::None | Correction::Resample if khat <= NO_MEAN => Severity::MeansOnly,
                _ => Severity::Distrust,
            };
            let is_moved = self.correct == Correction::ResampleMove;
            let remedies = vec![other_method(&[]), Remedy::MoreSteps { steps: None }];
            let remedies = if is_confirmed { Vec::new() } else { remedies };
            add(severity, Finding::HighKhat { khat, limit, is_moved, is_confirmed }, remedies);
        }
        let share = self.psis.ess / (self.z.draws_len() * OVERSAMPLED) as f64;
        if self.correct == Correction::None && share < EVEN_MIN && khat <= limit {
            add(Severity::MeansOnly, Finding::UnevenWeights { share }, vec![Remedy::CorrectDraws]);
        }
        let ess = self.effective_sample_size();
        if ess < ess_min(self.z.draws_len()) {
            let severity = if ess < ESS_MEANS { Severity::Distrust } else { Severity::MeansOnly };
            add(severity, Finding::LowEffectiveSampleSize { ess }, vec![other_method(&[])]);
        }
        let share = self.invalid_share();
        if share > INVALID_MAX {
            let severity = if self.is_confirmed() { Severity::Note } else { Severity::MeansOnly };
            add(severity, Finding::InvalidShare { share }, Vec::new());
        }
        if let Some(nuts) =
            self.nuts.as_ref().filter(|nuts| !nuts.stopped && !nuts.is_used && self.particles().is_none())
        {
            // Chains that are nearly done and agree with the draws confirm them; those of a poor approximation only if the chains know
            // the tails.
            let is_near = nuts.rhat <= RHAT_MAX;
            let is_enough = khat <= limit || nuts.ess_tail >= ESS_MIN;
            let NutsSummary { rhat, latent, divergent, .. } = nuts.clone();
            if divergent > DIVERGENT_MAX || !(is_near && is_enough && nuts.agrees) {
                let severity = if is_near && nuts.agrees { Severity::MeansOnly } else { Severity::Distrust };
                add(severity, Finding::ChainsDisagree { rhat, latent, divergent }, Vec::new());
            }
        }
        if let Some(nuts) = self.nuts.as_ref().filter(|nuts| nuts.is_used && !nuts.has_converged()) {
            let NutsSummary { rhat, latent, ess_bulk, divergent, .. } = nuts.clone();
            let is_near = rhat <= RHAT_MAX && ess_bulk >= ESS_MEANS && divergent <= DIVERGENT_MAX;
            let severity = if is_near { Severity::MeansOnly } else { Severity::Distrust };
            add(severity, Finding::ChainsNotMixed { rhat, latent, ess: ess_bulk, divergent }, Vec::new());
        }
        if self.is_replaced() {
            return self.of_replaced_draws(&mut add);
        }
        if let Some(chains) = &self.superchains {
            of_superchains(&self.comparable(chains), &mut add);
            // Draws that are all in one of two places have forgotten their starts and know nothing of the other place.
            if self.have_forgotten() && !chains.have_joined() {
                let (rhat, latent) = (chains.joined_rhat, chains.slowest.clone());
                add(
                    Severity::Distrust,
                    Finding::SuperchainsApart { rhat, latent },
                    vec![other_method(&["mixture:16"])],
                );
            }
        }
        let is_widening = self.moved.is_some_and(|moved| moved.drift > TAIL_DRIFT_MAX && !moved.stopped);
        if let Some(latent) = self.drifting.clone().filter(|_| is_widening) {
            let is_shared = self.superchains.as_ref().is_some_and(Superchains::agrees);
            let severity = if is_shared { Severity::MeansOnly } else { Severity::Distrust };
            add(severity, Finding::WideningTails { latent }, vec![other_method(&[])]);
        }
    }

    /// What superchains can tell. Those that are still where they started have other shares of the modes than particles or importance
    /// weights, which know better.
    fn comparable(&self, chains: &Superchains) -> Superchains {
        let is_known = self.particles().is_some() || self.is_importance_sampled();
        match is_known && !chains.have_joined() {
            true => Superchains { shift: 0.0, spread: 0.0, away: 0, ..chains.clone() },
            false => chains.clone(),
        }
    }

    /// Of draws that are those of long chains or particles, or are confirmed by them.
    fn of_replaced_draws(&self, add: &mut impl FnMut(Severity, Finding, Vec<Remedy>)) {
        let of_chains = self.long_chains().filter(|nuts| nuts.is_used).map(|nuts| nuts.ess_tail);
        let of_tails = self.particles().map(|smc| smc.ess_tail).or(of_chains);
        if let Some(ess) = of_tails.filter(|ess| *ess < ESS_MIN) {
            add(Severity::MeansOnly, Finding::LowEffectiveSampleSize { ess }, vec![other_method(&[])]);
        }
        match &self.superchains {
            Some(chains) if self.particles().is_some() => {
                of_superchains(&Superchains { away: 0, ..self.comparable(chains) }, add);
            }
            Some(Superchains { missed: Some(missed), .. }) => {
                let finding = Finding::MissedMode { share: missed.share, drawn: missed.drawn };
                add(Severity::Distrust, finding, vec![other_method(&["mixture:16"])]);
            }
            _ => {}
        }
    }
}

/// What superchains found.
fn of_superchains(chains: &Superchains, add: &mut impl FnMut(Severity, Finding, Vec<Remedy>)) {
    if let Some(missed) = &chains.missed {
        let finding = Finding::MissedMode { share: missed.share, drawn: missed.drawn };
        add(Severity::Distrust, finding, vec![other_method(&["mixture:16"])]);
    }
    if chains.shift > SHIFT_MAX {
        let finding = Finding::SuperchainsDiffer { latent: chains.shifted.clone(), shift: chains.shift };
        add(Severity::Distrust, finding, vec![other_method(&["mixture:16"])]);
    } else if chains.spread > SPREAD_MAX {
        let finding = Finding::SuperchainsWider { latent: chains.spreading.clone(), spread: chains.spread };
        add(Severity::MeansOnly, finding, vec![other_method(&["mixture:16"])]);
    } else if chains.missed.is_none() && chains.strays() {
        let finding = Finding::SuperchainsAway { away: chains.away, of: SUPERCHAINS };
        add(Severity::MeansOnly, finding, vec![other_method(&["mixture:16"])]);
    }
}

fn other_method(suggested: &[&str]) -> Remedy {
    Remedy::OtherMethod { suggested: suggested.iter().map(|&name| name.to_owned()).collect() }
}
