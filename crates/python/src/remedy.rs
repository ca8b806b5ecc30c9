//! Remedies, worded for the Python package.

use hyperprior::diagnostics::Remedy;

/// A remedy as advice that names the arguments of `fit`.
pub fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::MoreTime => "allow more time (budget)".to_owned(),
        Remedy::MoreSteps { steps: Some(steps) } => format!("take more steps (steps={steps})"),
        Remedy::MoreSteps { steps: None } => "take more steps".to_owned(),
        Remedy::DefaultSteps => "leave out the argument steps".to_owned(),
        Remedy::OtherMethod { suggested } if suggested.is_empty() => "try another method".to_owned(),
        Remedy::OtherMethod { suggested } => {
            let quoted: Vec<String> = suggested.iter().map(|name| format!("\"{name}\"")).collect();
            format!("try method={}", quoted.join(" or "))
        }
        Remedy::MoreRestarts => "use more restarts".to_owned(),
        Remedy::CorrectDraws => "leave out the argument correct".to_owned(),
        Remedy::Marginalise => "marginalise them where possible (eliminate)".to_owned(),
        Remedy::RefitWithout => "fit again without them to be sure".to_owned(),
        other => format!("{other:?}"),
    }
}
