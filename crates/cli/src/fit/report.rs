//! The report of a fit as text.

use crate::error::CliError;
use crate::render::terminal::{self, remedy, sparkline};
use hyperprior::diagnostics::{Verdict, capitalised};
use hyperprior::infer::{
    Correction, Inferred, IntegrationSummary, Method, QuadratureSummary, Restarts, Source, Whitening,
};
use hyperprior::objective::{Annealed, Estimate};
use hyperprior::posterior::{Draws, ElementName, Kind, Monitor, Summary, ranges};
use hyperprior::report::{Estimator, FitReport, Latent, LinearResponseSummary, Monitored, Role};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The width of the trace of the ELBO in characters, and the fewest steps for which it is shown.
const TRACE: usize = 40;
const TRACE_MIN: usize = 100;

/// The whole report. `chosen` says that the quantities were selected by name.
pub fn text(report: &FitReport, chosen: bool) -> Result<String, CliError> {
    let mut out = model(report);
    out.push('\n');
    lines(&mut out, &plan(report));
    out.push('\n');
    lines(&mut out, &bounds(report));
    let _ = writeln!(out, "\n{}", verdict(report));
    // The first warning is the reason for the verdict.
    for warning in report.diagnostics().iter().skip(usize::from(report.verdict() != Verdict::Trust)) {
        let _ = writeln!(out, "Warning: {}.", warning.worded(&remedy));
    }
    let shown = if chosen { report.summaries.clone() } else { ordered(report) };
    let _ = write!(
        out,
        "\n{}",
        terminal::parameters_with(
            &shown,
            terminal::ROWS,
            report.linear_response.as_ref().and_then(LinearResponseSummary::sds)
        )
    );
    let discrete = discrete(report, &shown, chosen)?;
    if !discrete.is_empty() {
        let _ = write!(out, "\n{discrete}");
    }
    Ok(out)
}

/// The verdict, with its reason.
fn verdict(report: &FitReport) -> String {
    let reason = report.reason(&remedy);
    match report.verdict() {
        Verdict::Trust => format!("Verdict: trust. {}.", capitalised(&reason)),
        Verdict::MeansOnly => {
            format!(
                "Verdict: means only; do not rely on standard deviations, tails or probabilities. Reason: {reason}."
            )
        }
        Verdict::Distrust => format!("Verdict: distrust; do not rely on these numbers. Reason: {reason}."),
    }
}

/// The summaries: continuous latents, then discrete latents, then computed quantities; arrays stay together.
fn ordered(report: &FitReport) -> Vec<Summary> {
    let rank = |q: &Monitored| match (q.is_latent, q.is_discrete) {
        (true, false) => 0,
        (true, true) => 1,
        (false, _) => 2,
    };
    let mut ranks: HashMap<&str, u8> = HashMap::new();
    for quantity in &report.about.monitored {
        let of_array = ranks.entry(ElementName::parse(&quantity.name).array).or_insert(u8::MAX);
        *of_array = rank(quantity).min(*of_array);
    }
    let mut summaries = report.summaries.clone();
    summaries.sort_by_key(|s| ranks.get(ElementName::parse(&s.name).array).copied());
    summaries
}

/// One line on the model.
fn model(report: &FitReport) -> String {
    let of_kind = |is_discrete: bool| report.about.latents.iter().filter(move |o| o.is_discrete == is_discrete);
    let kind = |word: &str, is_discrete: bool| match of_kind(is_discrete).count() {
        0 => None,
        len => Some(format!("{len} {word} ({})", ranges::line(of_kind(is_discrete).map(|o| o.name.as_str())))),
    };
    let kinds: Vec<String> = [kind("discrete", true), kind("continuous", false)].into_iter().flatten().collect();
    let observed = match report.about.observed {
        0 => "nothing observed".to_owned(),
        1 => "1 observed node".to_owned(),
        n => format!("{n} observed nodes"),
    };
    format!("{}: {observed}; latents: {}\n", report.about.name, kinds.join(", "))
}

pub(super) type Lines = Vec<(&'static str, String)>;

pub(super) fn lines(out: &mut String, lines: &Lines) {
    // The hat of k̂ has no width of its own.
    let len = |label: &str| label.chars().filter(|c| *c != '\u{302}').count();
    let width = lines.iter().map(|(label, _)| len(label)).max().unwrap_or(0);
    for (label, text) in lines {
        let pad = " ".repeat(width - len(label));
        let _ = writeln!(out, "{label}{pad}  {text}");
    }
}

/// What was done with each latent, and the method.
fn plan(report: &FitReport) -> Lines {
    let mut lines = Lines::new();
    let mut role = |label, role| {
        let names = ranges::line(report.latents(role));
        if !names.is_empty() {
            lines.push((label, names));
        }
    };
    role("marginalised", Role::Marginalised);
    role("prior only", Role::PriorOnly);
    if let Some(found) = report.integration() {
        lines.extend(by_integration(report, found));
        return lines;
    }
    role("fitted", Role::Fitted);
    let mut partly = report.centring();
    let standardised = partly.remove("0.0").unwrap_or_default();
    let names = |names: &[String]| ranges::line(names.iter().map(String::as_str));
    let mut centring = Vec::new();
    if !standardised.is_empty() {
        centring.push(format!("{} standardised", names(&standardised)));
    }
    if let (Some((least, _)), Some((most, _))) = (partly.first_key_value(), partly.last_key_value()) {
        let degree = if least == most { least.clone() } else { format!("{least} to {most}") };
        let own = |latent: &Latent| latent.centring.is_some() && !standardised.contains(&latent.name);
        let all: Vec<String> = report.about.latents.iter().filter(|one| own(one)).map(|one| one.name.clone()).collect();
        centring.push(format!("{} in part, to degrees of {degree}", names(&all)));
    }
    if !centring.is_empty() {
        lines.push(("centring", centring.join(", ")));
    }
    let Some(inferred) = report.inferred() else {
        let how = match (&report.posterior.source, report.latents(Role::Marginalised).next()) {
            (Source::Prior, _) => "none: nothing is observed, so these are draws from the prior",
            (_, None) => "none: no observation depends on the latents, so these are draws from their priors",
            _ => "exact: every latent was marginalised, so these are draws from the posterior itself",
        };
        lines.push(("method", how.to_owned()));
        return lines;
    };
    let used = inferred.method.to_string();
    lines.push((
        "method",
        match report.settings.method {
            asked if asked == inferred.method => used,
            Method::Auto => format!("{used}, chosen by auto"),
            asked => format!("{used} ({asked} was requested)"),
        },
    ));
    let [likelihood, prior, recursive] = &inferred.parts;
    lines.push(("likelihood", likelihood.clone()));
    lines.push(("prior", prior.clone()));
    let is_exact = gap(report).is_none();
    lines.push(("r", if is_exact { "not needed: the bound is exact".to_owned() } else { recursive.clone() }));
    let of_kind = |(plan, latents): (String, Vec<String>)| {
        format!("{plan} ({})", ranges::line(latents.iter().map(String::as_str)))
    };
    lines.push(("gradient", report.gradients().into_iter().map(of_kind).collect::<Vec<_>>().join(", ")));
    lines.extend(fit_history(inferred));
    let correction = match (report.settings.correct, &inferred.moved) {
        _ if let Some(found) = inferred.quadrature => by_quadrature(found),
        _ if let Some(smc) = inferred.particles() => format!(
            "{} particles of tempered SMC through {} temperatures, {} islands: bulk ESS {:.0}, tail ESS {:.0}",
            smc.particles, smc.temperatures, smc.islands, smc.ess_bulk, smc.ess_tail
        ),
        _ if let Some(nuts) = inferred.nuts.as_ref().filter(|nuts| nuts.is_used) => format!(
            "{} NUTS chains of {} draws after {} of warm-up: R̂ {:.3}, bulk ESS {:.0}, tail ESS {:.0}",
            nuts.chains, nuts.draws, nuts.warm_up, nuts.rhat, nuts.ess_bulk, nuts.ess_tail
        ),
        (Correction::ResampleMove, Some(summary)) => {
            let accepted = summary.accepted.map(|share| format!(" ({:.0} % accepted)", 100.0 * share));
            let plural = if summary.moves == 1 { "" } else { "s" };
            format!("resampled, then {} MCMC move{plural} each{}", summary.moves, accepted.unwrap_or_default())
        }
        (Correction::None, _) => "uncorrected".to_owned(),
        _ => "resampled".to_owned(),
    };
    lines.push(("draws", correction));
    lines
}

/// How latents that are Gaussian given the others were integrated out.
fn by_integration(report: &FitReport, found: &IntegrationSummary) -> Lines {
    let discrete = report.discrete_latents();
    let is_other = |name: &&str| discrete.contains(name) || found.conditioned.iter().any(|other| other == name);
    let (others, gaussian): (Vec<&str>, Vec<&str>) = report.latents(Role::Fitted).partition(is_other);
    let mut lines = vec![("Gaussian", format!("{}, given the others", ranges::line(gaussian)))];
    if !others.is_empty() {
        lines.push(("others", ranges::line(others)));
    }
    let over_states = match found.states {
        None | Some(1) => String::new(),
        Some(states) => format!(", and sums over {states} states of the discrete latents"),
    };
    let mut how = format!("integrated: exact integrals of the Gaussian latents{over_states}");
    let _ = match (found.khat, found.conditioned.is_empty()) {
        _ if let Some(chains) = &found.chains => {
            write!(how, "; the others by {} chains of {} sweeps", chains.chains, chains.sweeps)
        }
        (Some(_), _) => write!(how, "; the others by importance sampling of {} values", found.values),
        (None, false) => write!(how, "; the other by adaptive quadrature with {} nodes", found.values),
        (None, true) => Ok(()),
    };
    lines.push(("method", how));
    lines
}

/// How latents were integrated out by quadrature.
fn by_quadrature(found: QuadratureSummary) -> String {
    let QuadratureSummary { integrated, conditioned, is_gaussian, is_exact, .. } = found;
    let how = if is_exact { "" } else { " by importance sampling" };
    match is_gaussian {
        true => format!(
            "by adaptive quadrature{how} over {conditioned} latents; the other {integrated} are Gaussian given these"
        ),
        false if is_exact => "by adaptive quadrature over every latent".to_owned(),
        false => format!("by adaptive quadrature over {integrated} latents, given {conditioned} others{how}"),
    }
}

/// The history of the fits: the candidates, when and why the last one ended, and whether restarts agree.
fn fit_history(inferred: &Inferred) -> Lines {
    let mut lines = Lines::new();
    if inferred.candidates.len() > 1 {
        let candidates = inferred.candidates.iter().map(|r| format!("{} ({:.3}, k̂ {:.2})", r.method, r.elbo, r.khat));
        lines.push(("candidates", candidates.collect::<Vec<_>>().join(", ")));
    }
    let fitted = &inferred.fitted;
    let steps = match fitted.stages.as_slice() {
        [] if matches!(inferred.whitening, Whitening::Sparse(_)) => "by Newton's method".to_owned(),
        [] => format!("{} step{}", fitted.steps, if fitted.steps == 1 { "" } else { "s" }),
        [.., last] => {
            let halved = match fitted.stages.len() - 1 {
                0 => String::new(),
                1 => ", step size halved once".to_owned(),
                n => format!(", step size halved {n} times"),
            };
            let most = if fitted.steps == fitted.planned { " (the maximum)" } else { "" };
            format!(
                "{} steps{most}{halved}: R̂ {:.2} over windows, expected gain {:.3} nats",
                fitted.steps, last.rhat, last.expected_gain,
            )
        }
    };
    let invalid = match fitted.dropped {
        0.0 => String::new(),
        share => format!("; {:.1} % of the draws were invalid", 100.0 * share),
    };
    lines.push(("fit", steps + &invalid));
    if let Some(record) = &inferred.budget_record {
        let fits = match record.steps.len() {
            1 => "1 fit".to_owned(),
            n => format!("{n} fits"),
        };
        let steps = inferred.steps;
        lines.push(("budget", format!("spent after {fits} with {steps} steps in all; optional work was skipped")));
    }
    if fitted.history.len() >= TRACE_MIN {
        let trace = sparkline(&fitted.history, TRACE, 1.0);
        // A flat line says nothing.
        if trace.contains('▁') {
            lines.push(("trace", format!("{trace} ELBO")));
        }
    }
    if let Some(Restarts { elbo, rhat, latent, .. }) = &inferred.restarts {
        let bounds = elbo.iter().map(|elbo| format!("{elbo:.3}")).collect::<Vec<_>>().join(", ");
        let agreement = match rhat {
            Some(rhat) => format!("largest R̂ {rhat:.3} ({latent})"),
            None => "no other fit came close".to_owned(),
        };
        lines.push(("restarts", format!("{agreement}; ELBOs {bounds}")));
    }
    lines
}

/// The upper bound, if r leaves a gap.
fn gap(report: &FitReport) -> Option<Estimate> {
    let bounds = &report.inferred()?.bounds;
    bounds.upper.filter(|upper| (upper.value - bounds.importance_lower.value).abs() > 1e-9 * upper.value.abs().max(1.0))
}

/// The ELBO, the evidence and k̂.
fn bounds(report: &FitReport) -> Lines {
    let (elbo, evidence) = report.bounds();
    if let Some(IntegrationSummary { khat: Some(khat), khat_limit, ess, .. }) = report.integration() {
        let log_evidence = format!("{:.3} ± {:.3}", evidence.log, evidence.standard_error);
        let khat = format!("{khat:.2}, below its limit of {khat_limit:.2}; effective sample size {ess:.0}");
        return vec![("log evidence", log_evidence), ("k̂", khat)];
    }
    if let Some(IntegrationSummary { chains: Some(chains), .. }) = report.integration() {
        let log_evidence = format!("{:.3} ± {:.3}", evidence.log, evidence.standard_error);
        let of_chains = format!(
            "{:.3}; effective sample size {:.0}, of tails {:.0}",
            chains.rhat, chains.ess_bulk, chains.ess_tail
        );
        return vec![("log evidence", log_evidence), ("R̂", of_chains)];
    }
    let Some(inferred) = report.inferred() else {
        let by = if evidence.by == Estimator::Quadrature { "quadrature" } else { "exact" };
        return vec![("log evidence", format!("{:.4} ({by})", evidence.log))];
    };
    let upper = match gap(report) {
        Some(upper) => format!(", at most {:.3} ± {:.3} with a perfect r", upper.value, upper.standard_error),
        None => String::new(),
    };
    let tail = inferred.psis;
    let log_evidence = match report.is_evidence_good() {
        true if inferred.bridge.is_some() => {
            format!("{:.3} ± {:.3} (bridge sampling)", evidence.log, evidence.standard_error)
        }
        true => format!("{:.3} ± {:.3}", evidence.log, evidence.standard_error),
        false => format!("at least {:.3} (the estimate is unreliable)", evidence.log),
    };
    let verdict = if tail.is_good() { "below" } else { "above" };
    let mut lines = vec![("ELBO", format!("{:.3} ± {:.3}{upper}", elbo.value, elbo.standard_error))];
    if let Some(Annealed { temperatures, lower, .. }) = &inferred.annealed {
        let bound = format!("log evidence at least {:.3} ± {:.3}", lower.value, lower.standard_error);
        let plural = if *temperatures == 1 { "" } else { "s" };
        lines.push(("annealed", format!("{bound} with {temperatures} temperature{plural}")));
    }
    lines.push(("log evidence", log_evidence));
    lines.push(("k̂", format!("{:.2}, {verdict} its limit of {:.2}", tail.khat, tail.limit)));
    lines
}

/// The discrete section. Joint configurations are of latents only, since computed quantities follow from them.
fn discrete(report: &FitReport, summaries: &[Summary], chosen: bool) -> Result<String, CliError> {
    let draws = &report.posterior.draws;
    if !report.has_discrete() {
        return Ok(String::new());
    }
    let latents: Vec<Monitor> = report
        .about
        .monitored
        .iter()
        .filter(|q| q.is_discrete && q.is_latent)
        .map(|q| Monitor::parse(&q.name))
        .collect::<Result<_, _>>()
        .map_err(hyperprior::posterior::DrawsError::from)?;
    let own: Draws = if chosen || latents.is_empty() { draws.clone() } else { draws.select(&latents)? };
    let shown: Vec<_> = summaries.iter().filter(|s| s.kind == Kind::Discrete).cloned().collect();
    Ok(terminal::discrete(&own, &shown, terminal::ROWS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior::fit::Quiet;
    use hyperprior::infer::InferSettings;
    use hyperprior_bugs::{Array, Data, Options, compile};
    use hyperprior_graph::Marginalise;
    use hyperprior_graph::fit::Task;

    /// A bound that still rises at the end vetoes trust for any k̂; a large k̂ does so in two degrees.
    #[test]
    fn the_most_serious_diagnostic_decides_the_verdict() {
        let data = Data::default().with("y", Array::scalar(7.0));
        let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
        let compiled = compile(model, "coin", &data, &Options::default()).expect("a model");
        let task = Task::new(compiled.graph, &Marginalise::Auto, &[]).expect("a task");
        let settings = InferSettings::default().steps(200).draws(1000);
        let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
        let said = |converged: bool, khat: Option<f64>, memory: f64| {
            let mut posterior = posterior.clone();
            if let Source::Approximate(inferred) = &mut posterior.source {
                inferred.has_converged = Some(converged);
                if let Some(khat) = khat {
                    inferred.psis.khat = khat;
                    inferred.psis.ess = 10.0;
                }
                inferred.moved.as_mut().expect("moves").memory = memory;
            }
            let report = task.report(("coin".to_owned(), 1, vec![]), settings.clone(), &posterior, 0.0);
            let ess = report.summaries[0].ess;
            (report.verdict(), text(&report, false).expect("a report"), ess)
        };
        let (verdict, text, _) = said(true, None, 0.0);
        assert_eq!(verdict, Verdict::Trust, "{text}");
        assert!(text.contains("\nVerdict: trust. The ELBO had converged"), "{text}");
        assert!(text.contains("log evidence  -2."), "{text}");
        let (verdict, text, _) = said(false, None, 0.0);
        assert_eq!(verdict, Verdict::Distrust, "{text}");
        let reason = "Reason: the ELBO was still rising when the fit ended. Take more steps (--steps 400).";
        assert!(text.find(reason).expect(&text) < text.find("\nname ").expect(&text), "{text}");
        assert!(text.contains("log evidence  at least -2."), "{text}");
        let (verdict, text, ess) = said(true, Some(0.8), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::Distrust, 10.0), "{text}");
        assert!(text.contains("Verdict: distrust") && text.contains("log evidence  at least -2."), "{text}");
        // A few draws have all the weight, and the moves do not mix; then, they do.
        let (verdict, text, ess) = said(true, Some(0.5), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::Distrust, 10.0), "{text}");
        assert!(text.contains("Reason: the effective sample size is 10"), "{text}");
        assert_eq!(said(true, Some(0.5), 0.1).0, Verdict::Trust);
        let (verdict, text, _) = said(false, Some(1.2), 0.0);
        assert_eq!(verdict, Verdict::Distrust);
        assert!(text.contains(reason) && text.contains("\nWarning: k̂ = 1.20 is above"), "{text}");
    }
}
