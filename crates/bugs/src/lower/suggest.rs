//! Suggestions for unknown names.

use super::names::distribution;

const DISTRIBUTIONS: &[&str] = &[
    "dbern",
    "dbin",
    "dcat",
    "dpois",
    "dnegbin",
    "dgeom",
    "dhyper",
    "dbetabin",
    "dnorm",
    "dlnorm",
    "dgamma",
    "dinvgamma",
    "dexp",
    "dchisqr",
    "dbeta",
    "dunif",
    "dt",
    "dhalfcauchy",
    "ddexp",
    "dlogis",
    "dweib",
    "dpar",
    "dgen.gamma",
    "df",
    "dinterval",
    "dflat",
    "dmulti",
    "ddirch",
    "dmnorm",
    "dmt",
    "dwish",
];

const FUNCTIONS: &[&str] = &[
    "abs",
    "exp",
    "log",
    "log10",
    "sqrt",
    "step",
    "logit",
    "ilogit",
    "probit",
    "phi",
    "cloglog",
    "icloglog",
    "round",
    "trunc",
    "logfact",
    "loggam",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "equals",
    "pow",
    "ifelse",
    "sum",
    "prod",
    "mean",
    "sd",
    "min",
    "max",
    "inprod",
    "inverse",
    "chol",
    "logdet",
    "length",
    "dim",
    "sort",
    "rank",
    "order",
    "rep",
    "interp.lin",
    "pnorm",
];

/// Workarounds for distributions of JAGS or OpenBUGS that are not supported.
pub(super) fn unsupported_distribution(name: &str) -> Option<&'static str> {
    Some(match name {
        "dsum" | "dround" => "give the sum a distribution, such as dpois or dnorm",
        "dnormmix" => "draw the component with `z ~ dcat(p[])`, and write `y ~ dnorm(mu[z], tau[z])`",
        "dloglik" => "use zeros: `zero ~ dpois(C - loglik)`, with zero = 0 in the data and C larger than any loglik",
        "dnchisqr" | "dnt" | "dgev" | "dgpar" => "express it with a supported distribution",
        "dscaled.gamma" | "dscaled.wishart" => "put the prior on the standard deviation: `sigma ~ dt(0, 1, 4) T(0,)`",
        "car.normal" | "car.proper" | "car.l1" | "mv.car" => "write out the precision matrix and use dmnorm",
        "dorder.logit" | "dordered.logit" | "dordered.probit" => "write out the cumulative probabilities and use dcat",
        "dmvt" => "write dmt(mean[], precision[,], degrees)",
        _ => return None,
    })
}

/// The hint for an unknown distribution.
pub(super) fn distribution_hint(name: &str) -> String {
    let bare: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let stem = bare.strip_prefix(['d', 'r']).filter(|stem| stem.len() > 3).unwrap_or(&bare);
    let meant = match stem {
        "normal" | "gaussian" | "gauss" => "dnorm(mean, precision)",
        "bernoulli" => "dbern(p)",
        "binomial" => "dbin(p, n)",
        "categorical" | "multinoulli" => "dcat(p[])",
        "poisson" => "dpois(rate)",
        "negbinomial" | "negativebinomial" | "negbinom" => "dnegbin(p, r)",
        "geometric" => "dgeom(p)",
        "lognormal" | "lognorm" => "dlnorm(mean, precision)",
        "exponential" => "dexp(rate)",
        "uniform" => "dunif(lower, upper)",
        "student" | "studentt" => "dt(mean, precision, degrees)",
        "cauchy" => "dt(location, 1 / scale^2, 1)",
        "halfcauchy" => "dhalfcauchy(scale)",
        "halft" | "halfstudent" | "halfstudentt" => "dt(0, 1 / scale^2, degrees) T(0,)",
        "truncnorm" | "truncnormal" | "tnorm" => "dnorm(mean, precision) T(lower, upper)",
        "halfnormal" | "halfnorm" => "dnorm(0, precision) T(0,)",
        "laplace" | "doubleexponential" => "ddexp(mean, rate)",
        "logistic" => "dlogis(mean, rate)",
        "pareto" => "dpar(shape, lower)",
        "dirichlet" => "ddirch(alpha[])",
        "multinomial" => "dmulti(p[], n)",
        "multivariatenormal" | "mvnorm" | "mvnormal" | "multinormal" => "dmnorm(mean[], precision[,])",
        "wishart" => "dwish(scale[,], degrees)",
        "inversegamma" | "invgamma" | "igamma" => "dinvgamma(shape, scale)",
        "invchisq" | "invchisqr" | "inversechisq" => "dinvgamma(degrees / 2, 0.5)",
        "invwish" | "invwishart" | "inversewishart" | "iwish" => {
            let draw = "`Omega[1:k, 1:k] ~ dwish(R[,], degrees)`";
            return format!("draw the inverse, {draw}, and define `Sigma[1:k, 1:k] <- inverse(Omega[,])`");
        }
        "constraint" => return "write `one ~ dbern(step(a - b))`, with one = 1 in the data".into(),
        _ => match name.strip_prefix('r').map(|rest| format!("d{rest}")) {
            Some(density) if distribution(&density).is_some() => return format!("did you mean `{density}`?"),
            _ => {
                let with_d = format!("d{name}");
                if distribution(&with_d).is_some() {
                    return format!("did you mean `{with_d}`?");
                }
                return match nearest(name, DISTRIBUTIONS.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "the distributions are dnorm, dgamma, dbeta, dbern, dbin, dpois, dcat and others".into(),
                };
            }
        },
    };
    format!("did you mean `{meant}`?")
}

/// The hint for an unknown function.
pub(super) fn function_hint(name: &str) -> String {
    let meant = match name {
        "ln" => "log(x)",
        "power" => "pow(x, y)",
        "inv.logit" | "invlogit" | "inv_logit" | "expit" | "plogis" | "sigmoid" | "logistic" => "ilogit(x)",
        "Phi" => "phi(x)",
        "qnorm" => "probit(p)",
        "if.else" | "if_else" | "iif" => "ifelse(condition, yes, no)",
        "dot" | "inner" | "dot_product" => "inprod(a[], b[])",
        "factorial" => "exp(logfact(x))",
        "gamma" => "exp(loggam(x))",
        // trunc rounds towards zero.
        "floor" => "trunc(x) - (x < trunc(x))",
        "ceiling" | "ceil" => "trunc(x) + (x > trunc(x))",
        "log2" => "log(x) / log(2)",
        "log1p" => "log(1 + x)",
        "expm1" => "exp(x) - 1",
        "cholesky" => "chol(m[,])",
        "solve" | "inv" => "inverse(m[,])",
        "average" => "mean(x[])",
        "nrow" | "ncol" => "dim(x)",
        "std" | "stdev" => "sd(x[])",
        "cut" => return "`cut` is not supported: it has no joint distribution".into(),
        "seq" => return "write the integers as a range, `1:n`".into(),
        _ => {
            return match nearest(name, FUNCTIONS.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "if it is a variable, put its indices in brackets: `x[i]`".into(),
            };
        }
    };
    format!("did you mean `{meant}`?")
}

/// The nearest name among `known`, if it is close enough to be a typing error.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .filter(|other| *other != name)
        .map(|other| {
            let same_letters = other.eq_ignore_ascii_case(name);
            (if same_letters { 0 } else { distance(name, other) }, other)
        })
        .filter(|(d, other)| *d <= allowed && *d < other.chars().count())
        .min()
        .map(|(_, other)| other)
}

/// The number of insertions, deletions, substitutions and transpositions between two names.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    rows[a.len()][b.len()]
}

/// Whether a name suggests a standard deviation or a variance.
pub(super) fn suggests_spread(name: &str) -> bool {
    name.to_ascii_lowercase().split(['.', '_']).any(|word| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        matches!(word, "sd" | "sigma" | "sig" | "std" | "stdev" | "stddev" | "variance" | "sigmasq" | "sds")
    })
}
