//! What a person reads about a finished fit.

use crate::error::CliError;
use crate::names;
use crate::render::{self, sparkline, two_figures};
use hyperprior::bound::Estimate;
use hyperprior::infer::{Correct, Doubt, Inferred, Method, Restarts, Verdict};
use hyperprior::model::graph::{Quantity, Role};
use hyperprior::posterior::{Draws, ElementName, Kind, Monitor, Summary};
use hyperprior_bugs::fit::Source;
use hyperprior_bugs::told::{Response, Told};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Characters that the course of the bound takes, and the fewest steps that make one.
const TRACE: usize = 40;
const TRACE_MIN: usize = 100;

/// The whole report. `chosen` says that what is shown was asked for by name.
pub fn report(told: &Told, chosen: bool) -> Result<String, CliError> {
    let mut out = model(told);
    out.push('\n');
    lines(&mut out, &plan(told));
    out.push('\n');
    lines(&mut out, &bounds(told));
    let _ = writeln!(out, "\n{}", verdict(told));
    // The reason of the verdict is the first of the warnings.
    for warning in told.warnings().iter().skip(usize::from(told.verdict() != Verdict::Trust)) {
        let _ = writeln!(out, "Warning: {warning}.");
    }
    let shown = if chosen { told.summaries.clone() } else { ordered(told) };
    let _ = write!(
        out,
        "\n{}",
        render::parameters_with(&shown, render::ROWS, told.response.as_ref().and_then(Response::sds))
    );
    let discrete = discrete(told, &shown, chosen)?;
    if !discrete.is_empty() {
        let _ = write!(out, "\n{discrete}");
    }
    Ok(out)
}

/// What may be believed, and why.
fn verdict(told: &Told) -> String {
    let doubts = told.doubts();
    let Some(Doubt { verdict, reason }) = doubts.first() else {
        return match told.inferred() {
            Some(_) => "Verdict: trust. The bound had settled, and k̂ is below its limit.".to_owned(),
            None => "Verdict: trust. Nothing was approximated.".to_owned(),
        };
    };
    let word = match verdict {
        Verdict::Trust => "trust",
        Verdict::MeansOnly => "means only; do not rely on spreads, tails and probabilities",
        Verdict::Distrust => "distrust; do not rely on these numbers",
    };
    format!("Verdict: {word}. The reason: {reason}.")
}

/// The summaries with parameters first, then discrete latents, then what is calculated; arrays stay together.
fn ordered(told: &Told) -> Vec<Summary> {
    let rank = |q: &Quantity| match (q.is_latent, q.is_discrete) {
        (true, false) => 0,
        (true, true) => 1,
        (false, _) => 2,
    };
    let mut ranks: HashMap<&str, u8> = HashMap::new();
    for quantity in told.quantities {
        let of_array = ranks.entry(ElementName::parse(&quantity.name).array).or_insert(u8::MAX);
        *of_array = rank(quantity).min(*of_array);
    }
    let mut summaries = told.summaries.clone();
    summaries.sort_by_key(|s| ranks.get(ElementName::parse(&s.name).array).copied());
    summaries
}

/// One line on the model.
fn model(told: &Told) -> String {
    let of_kind = |is_discrete: bool| told.outline.iter().filter(move |o| o.is_discrete == is_discrete);
    let kind = |word: &str, is_discrete: bool| match of_kind(is_discrete).count() {
        0 => None,
        len => Some(format!("{len} {word} ({})", names::line(of_kind(is_discrete).map(|o| o.name.as_str())))),
    };
    let kinds: Vec<String> = [kind("discrete", true), kind("continuous", false)].into_iter().flatten().collect();
    let observed = match told.observed {
        0 => "nothing observed".to_owned(),
        1 => "1 observed node".to_owned(),
        n => format!("{n} observed nodes"),
    };
    format!("{}: {observed}; latents: {}\n", told.name, kinds.join(", "))
}

pub(super) type Lines = Vec<(&'static str, String)>;

pub(super) fn lines(out: &mut String, lines: &Lines) {
    // The hat of k̂ stands above its letter.
    let len = |label: &str| label.chars().filter(|c| *c != '\u{302}').count();
    let width = lines.iter().map(|(label, _)| len(label)).max().unwrap_or(0);
    for (label, text) in lines {
        let pad = " ".repeat(width - len(label));
        let _ = writeln!(out, "{label}{pad}  {text}");
    }
}

/// What was done with each latent, and with what.
fn plan(told: &Told) -> Lines {
    let mut lines = Lines::new();
    let mut role = |label, role| {
        let names = names::line(told.latents(role));
        if !names.is_empty() {
            lines.push((label, names));
        }
    };
    role("summed out", Role::SummedOut);
    role("from its law", Role::FromLaw);
    role("fitted", Role::Fitted);
    let Some(inferred) = told.inferred() else {
        let how = match (&told.posterior.source, told.latents(Role::SummedOut).next()) {
            (Source::Prior, _) => "nothing is observed: these are draws from the prior",
            (_, None) => "no observation depends on the latents: these are draws from their laws",
            _ => "exact: nothing is left to approximate, these are draws from the posterior itself",
        };
        lines.push(("method", how.to_owned()));
        return lines;
    };
    let used = inferred.method.to_string();
    lines.push((
        "method",
        match told.settings.method {
            asked if asked == inferred.method => used,
            Method::Auto => format!("{used}, chosen by auto"),
            asked => format!("{used}, which {asked} comes to for these latents"),
        },
    ));
    let [likelihood, prior, recursive] = &inferred.parts;
    lines.push(("likelihood", likelihood.clone()));
    lines.push(("prior", prior.clone()));
    let is_exact = gap(told).is_none();
    lines.push(("r", if is_exact { "none needed: the bound is exact".to_owned() } else { recursive.clone() }));
    let of_kind = |(plan, latents): (String, Vec<String>)| {
        format!("{plan} ({})", names::line(latents.iter().map(String::as_str)))
    };
    lines.push(("gradient", told.gradients().into_iter().map(of_kind).collect::<Vec<_>>().join(", ")));
    lines.extend(course(inferred));
    let correction = match (told.settings.correct, &inferred.moved) {
        (Correct::Moves, Some(moved)) => {
            let accepted = moved.accepted.map(|share| format!(", of which {:.0} % were accepted", 100.0 * share));
            let plural = if moved.rounds == 1 { "" } else { "s" };
            format!("resampled by weight, then {} move{plural} each{}", moved.rounds, accepted.unwrap_or_default())
        }
        (Correct::Nothing, _) => "the approximation's own".to_owned(),
        _ => "resampled by weight".to_owned(),
    };
    lines.push(("draws", correction));
    lines
}

/// How the fits went: what was tried, when the last one ended and why, and whether others from elsewhere agree.
fn course(inferred: &Inferred) -> Lines {
    let mut lines = Lines::new();
    if inferred.rungs.len() > 1 {
        let tried = inferred.rungs.iter().map(|r| format!("{} ({:.3}, k̂ {:.2})", r.method, r.elbo, r.khat));
        lines.push(("tried", tried.collect::<Vec<_>>().join(", ")));
    }
    let fitted = &inferred.fitted;
    let steps = match fitted.rounds.as_slice() {
        [] => format!("{} step{}", fitted.steps, if fitted.steps == 1 { "" } else { "s" }),
        [.., last] => {
            let halved = match fitted.rounds.len() - 1 {
                0 => String::new(),
                1 => ", their size halved once".to_owned(),
                n => format!(", their size halved {n} times"),
            };
            let most = if fitted.steps == fitted.planned { ", the most it takes" } else { "" };
            format!(
                "{} steps{most}{halved}: R̂ {:.2} over windows, {:.3} nats to gain, gradient's signal to noise {} → {}",
                fitted.steps,
                last.rhat,
                last.to_gain,
                two_figures(fitted.rounds[0].signal[0]),
                two_figures(last.signal[1]),
            )
        }
    };
    let dropped = match fitted.dropped {
        0.0 => String::new(),
        share => format!("; {:.1} % of the draws were impossible", 100.0 * share),
    };
    lines.push(("fit", steps + &dropped));
    if let Some(within) = &inferred.within {
        let fits = match within.steps.len() {
            1 => "1 fit".to_owned(),
            n => format!("{n} fits"),
        };
        let steps = inferred.steps;
        lines.push((
            "budget",
            format!("spent after {fits} of {steps} steps in all; what could be left out was left out"),
        ));
    }
    if fitted.history.len() >= TRACE_MIN {
        let course = sparkline(&fitted.history, TRACE, 1.0);
        // A line that is flat says nothing.
        if course.contains('▁') {
            lines.push(("trace", format!("{course} of the bound")));
        }
    }
    if let Some(Restarts { elbo, rhat, latent }) = &inferred.restarts {
        let bounds = elbo.iter().map(|elbo| format!("{elbo:.3}")).collect::<Vec<_>>().join(", ");
        let agreement = match rhat {
            Some(rhat) => format!("R̂ {rhat:.3} at most ({latent})"),
            None => "none came as high".to_owned(),
        };
        lines.push(("restarts", format!("{agreement}; bounds {bounds}")));
    }
    lines
}

/// The upper bound, where r leaves a gap at all.
fn gap(told: &Told) -> Option<Estimate> {
    let bounds = &told.inferred()?.bounds;
    bounds.upper.filter(|upper| (upper.value - bounds.elbo.value).abs() > 1e-9 * upper.value.abs().max(1.0))
}

/// The bound, the evidence, and how far to trust them.
fn bounds(told: &Told) -> Lines {
    let (elbo, evidence) = told.elbo();
    let Some(inferred) = told.inferred() else {
        return vec![("log evidence", format!("{:.4}, exactly", evidence.log))];
    };
    let upper = match gap(told) {
        Some(upper) => format!(", at most {:.3} ± {:.3} with a perfect r", upper.value, upper.standard_error),
        None => String::new(),
    };
    let tail = inferred.tail;
    let log_evidence = match told.is_evidence_good() {
        true => format!("{:.3} ± {:.3}", evidence.log, evidence.standard_error),
        false => format!("at least {:.3}, by an estimate that is not to be trusted", evidence.log),
    };
    let verdict = if tail.is_good() { "below" } else { "above" };
    vec![
        ("bound", format!("{:.3} ± {:.3}{upper}", elbo.value, elbo.standard_error)),
        ("log evidence", log_evidence),
        ("k̂", format!("{:.2}, {verdict} its limit of {:.2}", tail.khat, tail.limit)),
    ]
}

/// The discrete section. Joint configurations are of latents: what is calculated from them says the same again.
fn discrete(told: &Told, summaries: &[Summary], chosen: bool) -> Result<String, CliError> {
    let draws = &told.posterior.draws;
    if !told.has_discrete() {
        return Ok(String::new());
    }
    let latents: Vec<Monitor> = told
        .quantities
        .iter()
        .filter(|q| q.is_discrete && q.is_latent)
        .map(|q| Monitor::parse(&q.name))
        .collect::<Result<_, _>>()
        .map_err(hyperprior::posterior::DrawsError::from)?;
    let own: Draws = if chosen || latents.is_empty() { draws.clone() } else { draws.select(&latents)? };
    let shown: Vec<_> = summaries.iter().filter(|s| s.kind == Kind::Discrete).cloned().collect();
    Ok(render::discrete(&own, &shown, render::ROWS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperprior::fit::Quiet;
    use hyperprior::infer::InferSettings;
    use hyperprior::model::graph::Eliminate;
    use hyperprior_bugs::fit::Task;
    use hyperprior_bugs::{Array, Data, Options, compile};

    /// A bound that rises to the end vetoes trust, whatever k̂ says, and a large k̂ does in its own two steps.
    #[test]
    fn the_gravest_doubt_is_the_verdict() {
        let data = Data::default().with("y", Array::scalar(7.0));
        let model = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }";
        let compiled = compile(model, "coin", &data, &Options::default()).expect("a model");
        let task = Task::new(compiled.graph, &Eliminate::Auto, &[]).expect("a task");
        let settings = InferSettings { steps: Some(200), draws: 1000, ..InferSettings::default() };
        let posterior = task.run(&settings, &mut Quiet).expect("a posterior");
        let said = |settled: bool, khat: Option<f64>, memory: f64| {
            let mut posterior = posterior.clone();
            if let Source::Approximate(inferred) = &mut posterior.source {
                inferred.has_settled = Some(settled);
                if let Some(khat) = khat {
                    inferred.tail.khat = khat;
                    inferred.tail.ess = 10.0;
                }
                inferred.moved.as_mut().expect("moves").memory = memory;
            }
            let told = Told::new(("coin".to_owned(), 1, vec![]), &task, settings.clone(), &posterior, 0.0);
            let ess = told.summaries[0].ess;
            (told.verdict(), report(&told, false).expect("a report"), ess)
        };
        let (verdict, text, _) = said(true, None, 0.0);
        assert_eq!(verdict, Verdict::Trust, "{text}");
        assert!(text.contains("\nVerdict: trust. The bound had settled"), "{text}");
        assert!(text.contains("log evidence  -2."), "{text}");
        let (verdict, text, _) = said(false, None, 0.0);
        assert_eq!(verdict, Verdict::Distrust, "{text}");
        let reason = "The reason: the bound was still rising; give it more steps (--steps 400).";
        assert!(text.find(reason).expect(&text) < text.find("\nname ").expect(&text), "{text}");
        assert!(text.contains("log evidence  at least -2."), "{text}");
        let (verdict, text, ess) = said(true, Some(0.8), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::MeansOnly, 10.0), "{text}");
        assert!(text.contains("Verdict: means only") && text.contains("log evidence  at least -2."), "{text}");
        // Few draws have all the weight, and moves do not part them; or they do.
        let (verdict, text, ess) = said(true, Some(0.5), 1.0);
        assert_eq!((verdict, ess.round()), (Verdict::MeansOnly, 10.0), "{text}");
        assert!(text.contains("The reason: the draws are worth no more than 10 independent ones"), "{text}");
        assert_eq!(said(true, Some(0.5), 0.1).0, Verdict::Trust);
        let (verdict, text, _) = said(false, Some(1.2), 0.0);
        assert_eq!(verdict, Verdict::Distrust);
        assert!(text.contains(reason) && text.contains("\nWarning: k̂ = 1.20 is above"), "{text}");
    }
}
