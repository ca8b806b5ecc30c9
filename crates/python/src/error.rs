//! Errors as Python has them.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use std::fmt::Display;

pyo3::create_exception!(
    hyperprior,
    Error,
    PyValueError,
    "What is wrong with a model, its data or the settings, and what to do about it."
);

/// Anything that was said, as an exception.
pub fn said(error: impl Display) -> PyErr {
    Error::new_err(in_python(&error.to_string()))
}

/// Options of the command as arguments: `--step-size 0.1` is `step_size=0.1` here.
pub fn in_python(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, after) = rest.split_at(at);
        let option = &after[2..];
        let len = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
        let begins = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '-');
        out.push_str(before);
        if len == 0 || !begins {
            out.push_str("--");
            rest = option;
            continue;
        }
        out.push_str(&option[..len].replace('-', "_"));
        rest = &option[len..];
        // What follows is its value where it looks like one.
        let value = rest.strip_prefix(' ').filter(|value| value.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(value) = value {
            out.push('=');
            rest = value;
        }
    }
    out + rest
}
