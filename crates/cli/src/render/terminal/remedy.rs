//! Remedies, worded with the options of the command line.

use hyperprior::diagnostics::Remedy;

/// The remedy as an imperative.
pub fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::MoreTime => "allow more time (--budget)".to_owned(),
        Remedy::MoreSteps { steps: Some(steps) } => format!("take more steps (--steps {steps})"),
        Remedy::MoreSteps { steps: None } => "take more --steps".to_owned(),
        Remedy::DefaultSteps => "leave out --steps".to_owned(),
        Remedy::OtherMethod { suggested } if suggested.is_empty() => "try another --method".to_owned(),
        Remedy::OtherMethod { suggested } => format!("try --method {}", suggested.join(" or ")),
        Remedy::MoreRestarts => "use more --restarts".to_owned(),
        Remedy::CorrectDraws => "leave out --correct".to_owned(),
        Remedy::Marginalise => "marginalise them if possible (--eliminate)".to_owned(),
        Remedy::RefitWithout => "fit again without them to be sure".to_owned(),
        other => format!("{other:?}"),
    }
}
