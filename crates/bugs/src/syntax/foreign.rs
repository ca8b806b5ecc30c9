//! Recognises programs in the languages of Stan and PyMC.

use crate::diagnostic::Diagnostic;
use crate::span::Span;

const STAN: &str = "BUGS has no declarations, a normal has a precision, and a vector is drawn in a loop: \
    `model { for (i in 1:N) { y[i] ~ dnorm(mu, pow(sigma, -2)) } … }`; a log density in Python goes to `hyperprior.Function`";
const PYMC: &str = "write the model in BUGS, `model { mu ~ dnorm(0, 1) … }`, or give its log density to Python's \
    `hyperprior.Function`";

/// An error that names the language, if the source is not BUGS but a language that is known. Only for sources with errors: the
/// search is for words that a program in BUGS could use as names.
pub(super) fn foreign(source: &str) -> Option<Diagnostic> {
    let error = |language: &str, (at, len): (usize, usize), hint: &str| {
        let message = format!("this is a program for {language}; hyperprior reads BUGS");
        Diagnostic::error(message, Span::new(at, at + len)).label(format!("not BUGS, but {language}")).hint(hint)
    };
    if let Some(at) = words(source, &["import pymc", "from pymc", "pm.Model(", "pymc.Model("]) {
        return Some(error("PyMC", at, PYMC));
    }
    let block = ["parameters", "transformed parameters", "transformed data", "generated quantities"];
    let block = block.iter().find_map(|name| block_of(source, name));
    let typed =
        ["real<lower", "real<upper", "int<lower", "int<upper", "vector<lower", "vector[", "matrix[", "simplex["];
    let stan = block.or_else(|| words(source, &typed));
    stan.map(|at| error("Stan", at, STAN))
}

/// The first of these texts that begins a word outside a comment, as place and length.
fn words(source: &str, texts: &[&str]) -> Option<(usize, usize)> {
    let found = texts.iter().filter_map(|text| {
        let all = source.match_indices(text).filter(|(at, _)| begins(source, *at));
        all.map(|(at, _)| (at, text.len())).next()
    });
    found.min()
}

/// The place of a block with this name: the name, then `{`.
fn block_of(source: &str, name: &str) -> Option<(usize, usize)> {
    let mut all = source.match_indices(name).map(|(at, _)| at).filter(|at| begins(source, *at));
    let at = all.find(|at| source[at + name.len()..].trim_start().starts_with('{'))?;
    Some((at, name.len()))
}

/// Whether a word of the program begins here, not inside another word or a comment.
fn begins(source: &str, at: usize) -> bool {
    let before = &source[..at];
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    let inside = before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_');
    !inside && !line.contains('#') && !line.contains("//")
}
