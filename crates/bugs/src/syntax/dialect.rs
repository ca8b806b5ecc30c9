//! The two dialects of the language.

/// Which dialect to follow where JAGS and OpenBUGS differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// JAGS 4: `1:N-1` is `(1:N) - 1`, and an element has one relation.
    #[default]
    Jags,
    /// OpenBUGS: `1:N-1` is `1:(N-1)`, `y <- f(data)` together with `y ~ …` transforms the data, and `C(,)` censors.
    OpenBugs,
}
