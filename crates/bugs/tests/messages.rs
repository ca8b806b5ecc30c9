//! Every message in full: text, place and hint.

use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Data, Dialect, Options, compile, render};

/// The messages about a model with data as an R dump.
fn messages(source: &str, data: &str, options: &Options) -> String {
    let data = read(data, Format::RDump).unwrap_or_else(|e| panic!("{e}"));
    match compile(source, "model.bug", &data, options) {
        Ok(compiled) => format!("compiled\n{}", render(&compiled.warnings, "model.bug", source, false)),
        Err(errors) => render(&errors, "model.bug", source, false),
    }
}

/// A separate test for each message, so that a changed message does not hide another.
macro_rules! messages {
    ($($name:ident: $source:expr, $data:expr;)*) => {$(
        #[test]
        fn $name() {
            let message = messages($source, $data, &Options::default());
            insta::assert_snapshot!(message);
        }
    )*};
}

// Syntax errors.
messages! {
    a_parenthesis_is_missing: "model {\n  theta ~ dbeta(1, 1\n  y ~ dbin(theta, 10)\n}\n", "y <- 7";
    a_comma_is_missing: "model {\n  y ~ dbin(theta 10)\n  theta ~ dbeta(1, 1)\n}\n", "y <- 7";
    a_bracket_is_missing: "model { x[1 <- 3 }", "";
    a_brace_is_missing: "model {\n  for (i in 1:2) {\n    x[i] ~ dnorm(0, 1)\n}\n", "";
    an_operand_is_missing: "model {\n  a <- 2 +\n}\n", "";
    a_sign_is_missing: "model { x dnorm(0, 1) }", "";
    several_errors_at_once: "model {\n  a ~ dnorm(0, 1\n  b <- 2 * * 3\n  c ~ dgamma(1, 1)\n  d[ <- 4\n}\n", "";
    no_model: "theta ~ dbeta(1, 1)", "";
    an_empty_file: "", "";
    an_empty_model: "model { }", "";
    text_after_the_model: "model { x ~ dnorm(0, 1) }\nlist(y = 3)", "";
    one_brace_too_many: "model { x ~ dnorm(0, 1) } }", "";
    an_old_header: "model leuk;\nconst N = 42;\n{ x ~ dnorm(0, 1) }", "";
    a_character_of_an_editor: "model { x <- 3 \u{2212} 2 }", "";
    text_in_quotes: "model { x <- \"a\" }", "";
    a_comment_that_is_hardly_open: "model { /*/ x <- 3 */ x ~ dnorm(0, 1) } /*/", "";
    a_program_for_stan: "data {\n  int<lower=0> N;\n  vector[N] y;\n}\nparameters {\n  real mu;\n  real<lower=0> sigma;\n}\n\
        model {\n  y ~ normal(mu, sigma);\n}\n", "N <- 1";
    a_program_for_stan_in_short: "model { real<lower=0> sigma; y ~ normal(0, sigma); }", "y <- 1";
    a_program_for_pymc: "import pymc as pm\nwith pm.Model() as model:\n    mu = pm.Normal(\"mu\", 0, 1)\n", "";
    a_comment_about_stan: "# import pymc; parameters {\nmodel { x ~ dnorm(0, 1 }", "";
    an_open_comment: "model { x ~ dnorm(0, 1) } /* to be done", "";
    a_branch: "model {\n  if (x > 0) { y <- 1 }\n  x ~ dnorm(0, 1)\n}\n", "";
    a_link_with_a_distribution: "model { log(x) ~ dnorm(0, 1) }", "";
    an_inverse_link_on_the_left: "model { ilogit(p) <- x x ~ dnorm(0, 1) }", "";
    a_comparison_of_three: "model { x <- 1 < 2 < 3 }", "";
    a_comparison_that_assigns: "model { x <- ifelse(a <-1, 2, 3) a ~ dnorm(0, 1) }", "";
    an_unknown_operator: "model { x <- 7 %% 2 }", "";
    a_keyword_as_a_name: "model { data ~ dnorm(0, 1) }", "";
    a_range_that_surprises: "model {\n  for (i in 1:N-1) {\n    x[i + 1] ~ dnorm(0, 1)\n  }\n}\n", "N <- 3";
    censoring_of_openbugs: "model { x ~ dnorm(0, 1) C(0, ) }", "";
}

// Unknown names.
messages! {
    a_distribution_in_other_words: "model {\n  x ~ dnormal(0, 1)\n  y ~ bernoulli(0.5)\n  z ~ rgamma(1, 1)\n}\n", "";
    a_distribution_with_a_slip: "model { x ~ dnrom(0, 1) y ~ dpios(3) }", "";
    a_distribution_from_nowhere: "model { x ~ quux(0, 1) }", "";
    a_half_cauchy: "model { x ~ dhalfcauchy(25) }", "";
    a_half_cauchy_with_a_scale_of_zero: "model { x ~ dhalfcauchy(0) }", "";
    a_half_cauchy_with_a_location: "model { x ~ dhalfcauchy(0, 2) }", "";
    distributions_of_other_programs: "model {\n  a ~ dhalfnorm(1)\n  b ~ dhalft(1, 3)\n  c ~ dinv.gamma(1, 1)\n  d ~ dinvchisq(3)\n  \
        E[1:2, 1:2] ~ dinvwish(R, 3)\n  f ~ dconstraint(a > b)\n  g ~ dtruncnorm(0, 1)\n}\n", "R <- 1";
    a_distribution_that_is_not_supported: "model { y ~ dnormmix(m, t, p) }", "m <- c(1, 2)\nt <- c(1, 1)\np <- c(1, 1)";
    a_function_as_a_distribution: "model { x ~ exp(3) }", "";
    a_distribution_as_a_function: "model { x <- dnorm(0, 1) }", "";
    a_function_in_other_words: "model { x <- ln(3) y <- invlogit(2) }", "";
    a_function_with_a_slip: "model { x <- sqr(3) }", "";
    a_variable_as_a_function: "model { y <- x(1) x[1] ~ dnorm(0, 1) }", "";
    too_many_parameters: "model { x ~ dnorm(0, 1, 2) }", "";
    no_parameters: "model { x ~ dpois() }", "";
    too_many_arguments: "model { x <- exp(1, 2) y <- ifelse(1) }", "";
    a_standard_deviation: "model {\n  y ~ dnorm(mu, sigma)\n  mu ~ dnorm(0, 1)\n  sigma ~ dunif(0, 10)\n}\n", "y <- 1";
    an_undefined_variable: "model { y ~ dnorm(mu, 1) }", "y <- 1";
    an_undefined_variable_with_a_slip: "model { y ~ dnorm(alhpa, 1) alpha ~ dnorm(0, 1) }", "y <- 1";
    another_case: "model { for (i in 1:n) { y[i] ~ dnorm(0, 1) } }", "N <- 2\ny <- c(1, 2)";
    length_of_an_expression: "model { x <- length(1 + y) y ~ dnorm(0, 1) }", "";
}

// Errors with the data.
messages! {
    an_index_out_of_range: "model {\n  for (i in 1:3) {\n    y[i] ~ dnorm(x[i], 1)\n  }\n}\n", "x <- c(1, 2)\ny <- c(1, 2, 3)";
    an_index_of_zero: "model {\n  for (i in 1:3) {\n    y[i] ~ dnorm(mu[i - 1], 1)\n    mu[i] ~ dnorm(0, 1)\n  }\n}\n", "y <- c(1, 2, 3)";
    a_zero_on_the_left: "model { for (i in 0:2) { x[i] ~ dnorm(0, 1) } }", "";
    an_index_that_is_not_whole: "model { y ~ dnorm(x[3 / 2], 1) }", "x <- c(1, 2)\ny <- 1";
    an_undefined_element: "model {\n  for (i in 1:3) {\n    y[i] ~ dnorm(mu[i], 1)\n  }\n  mu[1] ~ dnorm(0, 1)\n  mu[3] ~ dnorm(0, 1)\n}\n", "y <- c(1, 2, 3)";
    too_few_indices: "model { y ~ dnorm(x[1], 1) }", "x <- structure(1:4, .Dim = c(2, 2))\ny <- 1";
    indices_that_differ: "model { x[1] ~ dnorm(0, 1) x[1, 2] ~ dnorm(0, 1) }", "";
    defined_twice: "model {\n  mu ~ dnorm(0, 1)\n  mu <- 3\n}\n", "";
    defined_twice_by_a_loop: "model {\n  for (i in 1:3) {\n    mu ~ dnorm(0, i)\n  }\n}\n", "";
    defined_twice_in_part: "model {\n  for (i in 1:3) {\n    mu[i] ~ dnorm(0, 1)\n  }\n  mu[2] ~ dnorm(0, 2)\n}\n", "";
    a_cycle: "model {\n  a ~ dnorm(b, 1)\n  b <- c + 1\n  c ~ dgamma(a, 1)\n}\n", "";
    a_cycle_of_observations: "model {\n  y[1] ~ dnorm(y[2], 1)\n  y[2] ~ dnorm(y[1], 1)\n}\n", "y <- c(1, 2)";
    a_cycle_of_one: "model { x ~ dnorm(x, 1) }", "";
    a_loop_that_is_random: "model { for (i in 1:n) { x[i] ~ dnorm(0, 1) } n ~ dpois(3) }", "";
    a_loop_that_is_calculated: "model { for (i in 1:m[1]) { x[i] ~ dnorm(0, 1) } m[1] <- 3 }", "";
    a_loop_without_end: "model { for (i in 1:N) { x[i] ~ dnorm(0, 1) } }", "N <- 1000000000000";
    a_loop_to_a_fraction: "model { for (i in 1:N) { x[i] ~ dnorm(0, 1) } }", "N <- 2.5";
    a_loop_to_a_missing_number: "model { for (i in 1:N) { x[i] ~ dnorm(0, 1) } }", "N <- NA";
    a_random_index_on_the_left: "model { x[k] ~ dnorm(0, 1) k ~ dcat(p[]) }", "p <- c(1, 1)";
    an_empty_index_on_the_left: "model { x[] ~ ddirch(a[]) }", "a <- c(1, 1)";
    an_array_without_end: "model { x[1000000, 1000000] ~ dnorm(0, 1) }", "";
    a_missing_covariate: "model {\n  for (i in 1:3) {\n    y[i] ~ dnorm(b * x[i], 1)\n  }\n  b ~ dnorm(0, 1)\n}\n", "x <- c(1, NA, 3)\ny <- c(1, 2, 3)";
    a_calculated_node_with_data: "model { mu <- a + 1 a ~ dnorm(0, 1) }", "mu <- 3";
    a_vector_observed_in_part: "model { x[1:2] ~ dmulti(p[], 5) }", "x <- c(2, NA)\np <- c(0.5, 0.5)";
    a_declaration_against_the_data: "var y[3];\nmodel { for (i in 1:3) { y[i] ~ dnorm(0, 1) } }", "y <- c(1, 2)";
    a_declaration_of_nothing: "var y[N];\nmodel { y[1] ~ dnorm(0, 1) }", "N <- 0";
    an_impossible_observation: "model {\n  for (i in 1:3) {\n    y[i] ~ dpois(2)\n  }\n}\n", "y <- c(1, 2.5, 3)";
    sides_of_different_size: "model { x[1:3] <- a[1:2] y ~ dnorm(x[1], 1) }", "a <- c(1, 2)\ny <- 1";
    a_matrix_that_is_turned: "model { x[1:2, 1:3] <- m[1:3, 1:2] y ~ dnorm(x[1, 1], 1) }", "m <- structure(1:6, .Dim = c(3, 2))\ny <- 1";
    a_matrix_of_a_vector: "model { x[1:2, 1:3] <- v[] y ~ dnorm(x[1, 1], 1) }", "v <- 1:6\ny <- 1";
    a_vector_of_a_matrix: "model { x[1:6] <- m[,] y ~ dnorm(x[1], 1) }", "m <- structure(1:6, .Dim = c(3, 2))\ny <- 1";
    a_declared_matrix_that_is_turned: "var x[2, 3];\nmodel { x <- m y ~ dnorm(x[1, 1], 1) }", "m <- structure(1:6, .Dim = c(3, 2))\ny <- 1";
    a_number_for_a_vector: "model { x[1:2] <- 3 y ~ dnorm(x[1], 1) }", "y <- 1";
    a_vector_with_a_matrix_distribution: "model { x[1:4] ~ dwish(R[,], 3) }", "R <- structure(c(2, 0.5, 0.5, 1), .Dim = c(2, 2))";
    a_matrix_with_a_vector_distribution: "model { x[1:2, 1:2] ~ ddirch(a[]) }", "a <- c(1, 1, 1, 1)";
    vectors_of_different_size: "model { x[1:3] <- a[] + b[] }", "a <- c(1, 2, 3)\nb <- c(1, 2)";
    a_vector_with_a_scalar_distribution: "model { x[1:3] ~ dnorm(0, 1) }", "";
    a_vector_as_a_parameter: "model { x ~ dnorm(a[], 1) }", "a <- c(1, 2)";
    a_vector_of_the_wrong_length: "model { x[1:3] ~ ddirch(a[]) }", "a <- c(1, 2)";
    a_matrix_of_the_wrong_order: "model { x[1:2] ~ dmnorm(a[], R[,]) }", "a <- c(1, 2)\nR <- structure(1:9, .Dim = c(3, 3))";
    a_matrix_as_weights: "model { x ~ dcat(R[,]) }", "R <- structure(1:9, .Dim = c(3, 3))";
    a_product_of_the_wrong_shapes: "model { x <- a[] %*% R[,] }", "a <- c(1, 2)\nR <- structure(1:9, .Dim = c(3, 3))";
    an_inner_product_of_different_lengths: "model { x <- inprod(a[], b[]) }", "a <- c(1, 2)\nb <- c(1, 2, 3)";
    an_inverse_of_no_square: "model { x <- logdet(m[,]) }", "m <- structure(1:6, .Dim = c(3, 2))";
    an_array_that_is_turned: "model { x[1:2, 1:2] <- t(w[,,]) }", "w <- structure(1:8, .Dim = c(2, 2, 2))";
    a_random_count_of_copies: "model { x[1:3] <- rep(1, n) n ~ dpois(3) }", "";
    a_function_of_nothing: "model { x <- mean(a[3:2]) }", "a <- c(1, 2, 3)";
    a_range_to_a_random_end: "model { x <- sum(a[1:n]) n ~ dcat(a[]) }", "a <- c(1, 2, 3)";
    a_range_without_end: "model { x <- sum(1:1000000000) }", "";
    a_truncated_vector: "model { x[1:2] ~ ddirch(a[]) T(0, 1) }", "a <- c(1, 1)";
    an_interval_with_random_parameters: "model { x ~ dnorm(mu, 1) I(0, ) mu ~ dnorm(0, 1) }", "";
    conditioning_in_a_data_block: "data { mu ~ dnorm(0, 1)\n  y ~ dnorm(mu, 1) }\nmodel { x ~ dnorm(mu, 1) }", "y <- 1";
    no_number_in_a_data_block: "data {\n  z <- log(y)\n}\nmodel { x ~ dnorm(z, 1) }", "y <- -1";
    an_error_in_a_data_block: "data { for (i in 1:2) { z[i] <- y[i + 1] } }\nmodel { x ~ dnorm(z[1], 1) }", "y <- c(1, 2)";
}

// Warnings and notes.
messages! {
    more_data_than_the_loop_reads: "model {\n  mu ~ dnorm(0, 1)\n  for (i in 1:3) {\n    y[i] ~ dnorm(mu + x[i] + w[i, 1], 1)\n  }\n}\n",
        "y <- c(1, 2, 3, 4, 5)\nx <- c(1, 2, 3, 4, 5, 6)\nw <- structure(1:10, .Dim = c(5, 2))";
    a_triangle_of_data: "model { p ~ dbeta(1, 1) for (i in 1:2) { for (j in (i + 1):3) { y[i, j] ~ dbern(p) } } }",
        "y <- structure(c(0, 1, 1, 1, 0, 0, 1, 0, 0), .Dim = c(3, 3))";
    data_that_others_lag_behind: "model {\n  y[1] ~ dnorm(0, 1)\n  for (i in 1:2) {\n    y[i + 1] ~ dnorm(x[i] * a + y[i], 1)\n  }\n  a ~ dnorm(0, 1)\n}\n",
        "y <- c(1, 2, 3, NA)\nx <- c(1, 2, 3)";
    unused_data: "model { y ~ dnorm(mu, 1) mu ~ dnorm(0, 1) }", "y <- 1\nx <- 2";
    data_by_another_name: "model { y ~ dnorm(mu, 1) mu ~ dnorm(0, 1) }", "Y <- 1";
    only_predicted: "model { y ~ dnorm(mu, 1) mu ~ dnorm(0, 1) y.new ~ dnorm(mu, 1) }", "y <- 1";
}

fn with_init(source: &str, data: &str, init: &str) -> String {
    let init = read(init, Format::RDump).unwrap_or_else(|e| panic!("{e}"));
    messages(source, data, &Options { init: Some(init), ..Options::default() })
}

#[test]
fn starting_values_without_a_latent() {
    let model = "model { mu ~ dnorm(0, 1) s <- mu + 1 y ~ dnorm(s, 1) }";
    let message = with_init(model, "y <- 1", "nu <- 1\ns <- 2\nmu <- 3\ny <- NA");
    insta::assert_snapshot!(message);
}

#[test]
fn too_many_starting_values() {
    let message = with_init("model { mu ~ dnorm(0, 1) y ~ dnorm(mu, 1) }", "y <- 1", "mu <- c(1, 2)");
    insta::assert_snapshot!(message);
}

#[test]
fn a_random_transformation_of_data() {
    let options = Options { dialect: Dialect::OpenBugs, ..Options::default() };
    let message = messages("model { z <- mu + y\n z ~ dnorm(mu, 1)\n mu ~ dnorm(0, 1) }", "y <- 1", &options);
    insta::assert_snapshot!(message);
}

#[test]
fn a_distribution_that_the_dialects_disagree_on() {
    let options = Options { dialect: Dialect::OpenBugs, ..Options::default() };
    let message = messages("model { x ~ dhyper(3, 4, 5, 1) }", "x <- 1", &options);
    insta::assert_snapshot!(message);
}

#[test]
fn colour_only_when_asked() {
    let source = "model { x ~ dnorm(0, }";
    let errors = compile(source, "model.bug", &Data::default(), &Options::default()).unwrap_err();
    assert!(render(&errors, "model.bug", source, true).contains('\u{1b}'));
    assert!(!render(&errors, "model.bug", source, false).contains('\u{1b}'));
}
