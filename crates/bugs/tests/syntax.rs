//! Precedence, names that are also functions, and recovery after errors.

use hyperprior_bugs::syntax::ast::{Expression, ExpressionKind, Operator, Relation};
use hyperprior_bugs::{Dialect, Severity, parse};

/// An expression with every grouping in parentheses.
fn grouped(e: &Expression) -> String {
    let sign = |operator: &Operator| match operator {
        Operator::Or => "||",
        Operator::And => "&&",
        Operator::Less => "<",
        Operator::LessEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterEqual => ">=",
        Operator::Equal => "==",
        Operator::NotEqual => "!=",
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::MatrixMultiply => "%*%",
        Operator::Power => "^",
    };
    match &e.kind {
        ExpressionKind::Number(x) => x.to_string(),
        ExpressionKind::Variable(v) => match &v.indices {
            None => v.name.text.clone(),
            Some(indices) => {
                let inner: Vec<String> = indices.iter().map(|i| i.as_ref().map_or(String::new(), grouped)).collect();
                format!("{}[{}]", v.name.text, inner.join(","))
            }
        },
        ExpressionKind::Call { function, arguments } => {
            format!("{}({})", function.text, arguments.iter().map(grouped).collect::<Vec<_>>().join(","))
        }
        ExpressionKind::Negate(inner) => format!("(-{})", grouped(inner)),
        ExpressionKind::Not(inner) => format!("(!{})", grouped(inner)),
        ExpressionKind::Chain { first, rest } => rest
            .iter()
            .fold(grouped(first), |left, (operator, right)| format!("({left} {} {})", sign(operator), grouped(right))),
        ExpressionKind::Binary { operator, left, right } => {
            format!("({} {} {})", grouped(left), sign(operator), grouped(right))
        }
        ExpressionKind::Range { from, to } => format!("({}:{})", grouped(from), grouped(to)),
    }
}

fn read(expression: &str, dialect: Dialect) -> String {
    let parsed = parse(&format!("model {{ x <- {expression} }}"), dialect);
    let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{expression}: {errors:?}");
    match &parsed.program.model[0] {
        Relation::Deterministic(relation) => grouped(&relation.value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_group_as_in_jags() {
    for (written, meant) in [
        ("-2^2", "(-(2 ^ 2))"),
        ("2^3^2", "(2 ^ (3 ^ 2))"),
        ("2^-1", "(2 ^ (-1))"),
        ("2**3", "(2 ^ 3)"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c", "((a / b) * c)"),
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("-1:3", "((-1):3)"),
        ("1:N-1", "((1:N) - 1)"),
        ("1:(N-1)", "(1:(N - 1))"),
        ("2*1:3", "(2 * (1:3))"),
        ("a %*% b * c", "((a %*% b) * c)"),
        ("!a == b && c || d", "(((!(a == b)) && c) || d)"),
        ("a + b < c * d", "((a + b) < (c * d))"),
        ("-a * b", "((-a) * b)"),
        ("- - a", "(-(-a))"),
        ("(a + b) + c", "((a + b) + c)"),
        ("a + (b + c)", "(a + (b + c))"),
        ("x[i, , 2:3]", "x[i,,(2:3)]"),
        ("1.5e-3 + .5 + 1. + 2E2", "(((0.0015 + 0.5) + 1) + 200)"),
    ] {
        assert_eq!(read(written, Dialect::Jags), meant, "{written}");
    }
}

#[test]
fn openbugs_ends_a_range_after_the_sum() {
    assert_eq!(read("1:N-1", Dialect::OpenBugs), "(1:(N - 1))");
    assert_eq!(read("1:N*2", Dialect::OpenBugs), "(1:(N * 2))");
}

#[test]
fn a_surprising_range_is_a_warning_in_jags_only() {
    let warnings = |source: &str, dialect| parse(source, dialect).diagnostics.len();
    let surprising = "model { for (i in 1:N-1) { x[i] <- 1 } }";
    assert_eq!(warnings(surprising, Dialect::Jags), 1);
    assert_eq!(warnings(surprising, Dialect::OpenBugs), 0);
    assert_eq!(warnings("model { for (i in 1:(N-1)) { x[i] <- 1 } }", Dialect::Jags), 0);
    assert_eq!(warnings("model { for (i in (1:N)-1) { x[i+1] <- 1 } }", Dialect::Jags), 0);
}

#[test]
fn a_name_is_a_function_only_before_a_parenthesis() {
    assert_eq!(read("mean + mean(x[]) + T + c[1] + pi", Dialect::Jags), "((((mean + mean(x[])) + T) + c[1]) + pi)");
    assert_eq!(read("mean (x)", Dialect::Jags), "mean(x)");
    let parsed = parse("model { x ~ dnorm(0, T) T(0, T) y <- T }", Dialect::Jags);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert_eq!(parsed.program.model.len(), 2);
}

#[test]
fn statements_need_no_separator() {
    let source = "# a comment\nvar x[N], y;\ndata { N <- 3; }\nmodel{ for(i in 1 : N){ x[i]~dnorm(0,1)y2[i]<-x[i] ; }\
                  /* two\nlines */ logit(p) = 0 }# no line end";
    let parsed = parse(source, Dialect::Jags);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert_eq!(parsed.program.declarations.len(), 2);
    assert_eq!(parsed.program.data.len(), 1);
    assert_eq!(parsed.program.model.len(), 2);
}

#[test]
fn several_errors_are_found_in_one_run() {
    let source = "model {\n a ~ dnorm(0, 1\n b <- 2 +\n c ~ dgamma(1, 1)\n d <- )\n for (i in 1:3) {\n e[i] <- *\n f[i] <- 1\n }\n}";
    let parsed = parse(source, Dialect::Jags);
    assert_eq!(parsed.diagnostics.len(), 4, "{:?}", parsed.diagnostics);
    // Line 3 continues on line 4 as `b <- 2 + c`; the error is the `~` after it.
    assert_eq!(parsed.program.model.len(), 1);
}

#[test]
fn a_long_sum_does_not_overflow_the_stack() {
    let source = format!("model {{ x <- {} }}", vec!["a"; 100_000].join(" + "));
    assert!(parse(&source, Dialect::Jags).diagnostics.is_empty());
}

#[test]
fn excessive_nesting_is_an_error() {
    for open in ["(", "-", "!", "f(", "x[", "2^"] {
        let source = format!("model {{ x <- {} 1 }}", open.repeat(100_000));
        assert!(!parse(&source, Dialect::Jags).diagnostics.is_empty());
    }
    let source = format!("model {}", "{ for (i in 1:2) ".repeat(100_000));
    assert!(!parse(&source, Dialect::Jags).diagnostics.is_empty());
}
