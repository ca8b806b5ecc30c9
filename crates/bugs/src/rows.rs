//! The arrays of a program that belong to the rows of its data: those drawn in a loop in which a response is also drawn.
//!
//! Two loops are alike if they are the same loop, or if their ranges have the same end, as `1:n` and `2:n`. A plain number as the
//! end does not count: two loops over `1:2` may run over different things.

use crate::syntax::ast::{Expression, ExpressionKind, Relation};
use crate::syntax::{Dialect, Span, parse};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What identifies a loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loop {
    /// Its place in the program.
    At(Span),
    /// The end of its range, as it is written.
    Until(String),
}

/// The arrays that have a distribution in a loop in which one of `responses` also has one, including the responses.
///
/// ```
/// use hyperprior_bugs::{Dialect, rows};
///
/// let program = "model { for (i in 1:n) { z[i] ~ dbern(p) y[i] ~ dnorm(mu[z[i] + 1], 1) } p ~ dunif(0, 1)
///                for (k in 1:2) { mu[k] ~ dnorm(0, 0.1) } }";
/// let found = rows(program, Dialect::Jags, &["y"]);
/// assert_eq!(found.into_iter().collect::<Vec<_>>(), ["y", "z"]);
/// ```
pub fn rows(source: &str, dialect: Dialect, responses: &[&str]) -> BTreeSet<String> {
    let program = parse(source, dialect).program;
    let mut loops: BTreeMap<String, BTreeSet<Loop>> = BTreeMap::new();
    collect(source, &program.model, &mut Vec::new(), &mut loops);
    let responses: HashSet<&str> = responses.iter().copied().collect();
    let of_responses: BTreeSet<&Loop> =
        loops.iter().filter(|(array, _)| responses.contains(array.as_str())).flat_map(|(_, own)| own).collect();
    let is_row = |own: &BTreeSet<Loop>| own.iter().any(|one| of_responses.contains(one));
    loops.iter().filter(|(_, own)| is_row(own)).map(|(array, _)| array.clone()).collect()
}

fn collect(source: &str, relations: &[Relation], around: &mut Vec<Loop>, loops: &mut BTreeMap<String, BTreeSet<Loop>>) {
    for relation in relations {
        match relation {
            Relation::For(inner) => {
                let len = around.len();
                around.push(Loop::At(inner.span));
                around.extend(end(source, &inner.range).map(Loop::Until));
                collect(source, &inner.body, around, loops);
                around.truncate(len);
            }
            Relation::Stochastic(r) => {
                loops.entry(r.target.name.text.clone()).or_default().extend(around.iter().cloned());
            }
            Relation::Deterministic(_) => {}
        }
    }
}

/// The end of a range without spaces, unless it is a number.
fn end(source: &str, range: &Expression) -> Option<String> {
    let last = match &range.kind {
        ExpressionKind::Range { to, .. } => to,
        _ => range,
    };
    let text = source.get(last.span.start..last.span.end)?;
    let is_number = matches!(last.kind, ExpressionKind::Number(_));
    (!is_number).then(|| text.chars().filter(|c| !c.is_whitespace()).collect())
}

#[cfg(test)]
mod tests {
    use super::rows;
    use crate::syntax::Dialect;

    fn found(source: &str) -> Vec<String> {
        rows(&format!("model {{ {source} }}"), Dialect::Jags, &["y"]).into_iter().collect()
    }

    #[test]
    fn loops_with_the_same_end_are_alike() {
        let chain =
            "z[1] ~ dcat(p0[]) for (t in 2:n) { z[t] ~ dcat(A[z[t - 1], ]) } for (t in 1:n) { y[t] ~ dpois(l[z[t]]) }
                     for (j in 1:K) { l[j] ~ dgamma(1, 1) }";
        assert_eq!(found(chain), ["y", "z"]);
        let nested = "for (i in 1:I) { a[i] ~ dnorm(0, 1) for (j in 1:J) { y[i, j] ~ dnorm(a[i], 1) } } \
                      for (j in 1 : J) { b[j] ~ dnorm(0, 1) } mu ~ dnorm(0, 1)";
        assert_eq!(found(nested), ["a", "b", "y"]);
    }

    #[test]
    fn numeric_ends_do_not_identify_a_loop() {
        assert_eq!(found("for (i in 1:2) { y[i] ~ dnorm(m[i], 1) } for (k in 1:2) { m[k] ~ dnorm(0, 1) }"), ["y"]);
        assert_eq!(found("for (i in 1:2) { y[i] ~ dnorm(m[i], 1) m[i] ~ dnorm(0, 1) }"), ["m", "y"]);
        assert_eq!(found("m ~ dnorm(0, 1)"), Vec::<String>::new());
    }
}
