//! The time between the checkpoints of a run.

use crate::error::CliError;
use std::time::Duration;

/// The default: at most this much work is lost when a run is killed.
const DEFAULT: Duration = Duration::from_secs(20);
/// The environment variable that overrides it, in seconds.
const VARIABLE: &str = "HYPERPRIOR_SAVE_SECONDS";

/// The time between checkpoints.
pub fn interval() -> Result<Duration, CliError> {
    match std::env::var(VARIABLE) {
        Ok(text) => parsed(&text),
        Err(_) => Ok(DEFAULT),
    }
}

fn parsed(text: &str) -> Result<Duration, CliError> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| CliError::Usage(format!("{VARIABLE} = {text}: write a number of seconds, 0 or more")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_not_negative() {
        assert_eq!(parsed("0.5").ok(), Some(Duration::from_millis(500)));
        for text in ["", "soon", "-1", "inf", "nan"] {
            assert!(parsed(text).is_err_and(|error| error.to_string().contains("HYPERPRIOR_SAVE_SECONDS")), "{text}");
        }
    }
}
