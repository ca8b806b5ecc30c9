//! Whatever the text, there is a model or there are errors, never a panic.

use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Array, Data, Dialect, Options, compile, parse, render};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Models that compile with [`data`], and that between them use every part of the language.
const MODELS: [&str; 6] = [
    "model {\n  for (i in 1:N) {\n    y[i] ~ dnorm(mu[i], tau) # a comment\n    mu[i] <- a + b * x[i]\n  }\n  a ~ dnorm(0, 0.01)\n  \
     b ~ dnorm(0, 0.01) T(0,)\n  tau ~ dgamma(1, 1)\n  sigma <- 1 / sqrt(tau)\n}\n",
    "var p[3], theta[K, 3], m[2, 2];\ndata { for (i in 1:N) { z[i] <- step(x[i]) } }\nmodel {\n  c ~ dcat(p[])\n  p[1:3] ~ ddirch(ones[])\n  \
     for (k in 1:K) { theta[k, 1:3] ~ ddirch(ones[]) }\n  w ~ dcat(theta[1 + s, ])\n  s ~ dbern(0.5)\n  m[,] ~ dwish(R[,], 3)\n  \
     v <- inverse(m) d <- logdet(m[,])\n  for (i in 1:N) { z[i] ~ dbern(q[c]) }\n  for (j in 1:3) { q[j] ~ dbeta(1, 1) }\n}\n",
    "model { x.hat[1] ~ dnorm(0, 1); for (t in 2:N) { x.hat[t] ~ dnorm(x.hat[t - 1], 1) }\n logit(p) <- x.hat[N] ^ 2 - -1\n \
     n ~ dbin(p, 10) u ~ dunif(-1, 1) e <- ifelse(u > 0 && !(n == 3) || u <= -0.5, exp(u), 1) }",
    "model { for (i in 1:N) { cens[i] ~ dinterval(t[i], x[i]) t[i] ~ dweib(r, exp(b)) }\n r ~ dexp(1) b ~ dt(0, 1, 4) I(-3, 3) }",
    "model { b[1:2] ~ dmnorm(zero[], R[,]) s <- inprod(b[], zero[]) + sum(x[1:2]) + mean(x) + sd(x[]) + max(b[1], 0)\n \
     g <- R[,] %*% b[1:2] h <- t(R[,]) r <- sort(x) k <- rank(x[]) l <- length(x) dd <- dim(R) }",
    "model { /* nested */ for (i in 1:2) { for (j in i:2) { a[i, j] ~ dnorm(0, 1) } } a[2, 1] <- a[1, 2] z ~ dcat(ones[]) y2 ~ \
     dnorm(a[k1, k2], 1) k1 ~ dcat(zero2[]) k2 ~ dcat(zero2[]) }",
];

const DATA: [(Format, &str); 4] = [
    (
        Format::Json,
        r#"{"N": 3, "y": [1.5, null, -2e3], "m": [[1, 2], [3, 4]], "b": true, "deep": [[[1], [2]], [[3], [4]]]}"#,
    ),
    (
        Format::RDump,
        "N <- 3L\n`y` <- c(1.5, NA, -2e3, 4:6)\n\"m\" <-\nstructure(c(1, 2, 3, 4), .Dim = as.integer(c(2, 2)))\n# end\nr <- rep(1, 3)",
    ),
    (Format::RDump, "list(N = 3, y = c(1, NA), m = structure(.Data = c(1, 2, 3, 4, 5, 6), .Dim = c(2, 3)))"),
    (Format::Csv, "y,group,x\n1,a,0.5\nNA,b,\n\"3\",\"a\",-1e3\n"),
];

fn data() -> Data {
    Data::default()
        .with("N", Array::scalar(3.0))
        .with("K", Array::scalar(2.0))
        .with("x", Array::vector(vec![0.5, -1.0, 2.0]))
        .with("y", Array::vector(vec![1.0, f64::NAN, 0.5]))
        .with("cens", Array::vector(vec![1.0, 0.0, 1.0]))
        .with("ones", Array::vector(vec![1.0; 3]))
        .with("zero", Array::vector(vec![0.0; 2]))
        .with("zero2", Array::vector(vec![1.0; 2]))
        .with("R", Array { shape: vec![2, 2], values: vec![1.0, 0.0, 0.0, 1.0] })
}

/// Arrays of any small shape with values that are likely to be refused.
fn any_array() -> impl Strategy<Value = Array> {
    let value = prop::sample::select(vec![
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        -1.0,
        -0.0,
        1e300,
        -1e300,
        1e-300,
        1e15,
        4_294_967_296.0,
        f64::NAN,
        2.5,
        7.0,
    ]);
    (prop::collection::vec(0..4_usize, 0..4), prop::collection::vec(value, 64)).prop_map(|(shape, mut values)| {
        values.truncate(shape.iter().product());
        Array { shape, values }
    })
}

/// Parses, compiles and draws what is wrong.
fn whole_way(source: &str) {
    whole_way_with(source, &data());
}

fn whole_way_with(source: &str, data: &Data) {
    for dialect in [Dialect::Jags, Dialect::OpenBugs] {
        let parsed = parse(source, dialect);
        render(&parsed.diagnostics, "model", source, false);
        let found = match compile(source, "model", data, &Options { dialect, init: Some(data.clone()), file: None }) {
            Ok(compiled) => {
                // Whether the data are possible is for the model to say; it must not panic either.
                let _ = compiled.graph.model();
                compiled.warnings
            }
            Err(errors) => {
                assert!(!errors.is_empty(), "an error without a word: {source}");
                assert!(!errors.iter().any(|e| e.message.contains("the reason was lost")), "a lost reason: {source}");
                errors
            }
        };
        render(&found, "model", source, false);
    }
}

/// A text with pieces taken out, doubled, or replaced by pieces of the language.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "~",
        "<-",
        "=",
        "-",
        "+",
        "*",
        "/",
        "^",
        "!",
        "1",
        "0",
        "-1",
        "1e9",
        "N",
        "x",
        "y",
        "x[",
        "T(",
        "for (i in ",
        "1:N",
        "model",
        "data",
        "var",
        "NA",
        "c(",
        "\n",
        " ",
        ";",
        "#",
        "%*%",
        "sum(",
        "\u{2212}",
        "é",
        "structure(",
        ".Dim",
        "\"",
        "`",
        "null",
        "\r\n",
        "dnorm(",
        "length(",
        "10000000000",
    ];
    let edit = (any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(pieces.to_vec()), any::<bool>());
    prop::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut characters: Vec<char> = text.chars().collect();
        for (place, length, piece, put_in) in edits {
            let start = place.index(characters.len() + 1);
            let end = (start + length).min(characters.len());
            let inserted: Vec<char> = if put_in { piece.chars().collect() } else { Vec::new() };
            characters.splice(start..end, inserted);
        }
        characters.into_iter().collect()
    })
}

#[test]
fn the_models_compile() {
    for source in MODELS {
        if let Err(errors) = compile(source, "model", &data(), &Options::default()) {
            panic!("{}", render(&errors, "model", source, false));
        }
    }
}

#[test]
fn every_beginning_of_a_text() {
    for source in MODELS {
        for end in (0..source.len()).filter(|&end| source.is_char_boundary(end)) {
            whole_way(&source[..end]);
        }
    }
    for (format, text) in DATA {
        for end in 0..text.len() {
            let _ = read(&text[..end], format);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        whole_way(&text);
        whole_way(&format!("model {{ {text} }}"));
        for format in [Format::Json, Format::RDump, Format::Csv] {
            let _ = read(&text, format);
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        whole_way(&text);
        for format in [Format::Json, Format::RDump, Format::Csv] {
            let _ = read(&text, format);
        }
    }

    #[test]
    fn a_changed_model(source in prop::sample::select(MODELS.to_vec()).prop_flat_map(mutated)) {
        whole_way(&source);
    }

    #[test]
    fn a_model_with_any_data(
        source in prop::sample::select(MODELS.to_vec()),
        changes in prop::collection::vec((prop::sample::select(vec!["N", "K", "x", "y", "cens", "ones", "zero", "zero2", "R", "b"]), any_array()), 1..4),
    ) {
        let changed = changes.into_iter().fold(data(), |data, (name, array)| data.with(name, array));
        whole_way_with(source, &changed);
    }

    #[test]
    fn changed_data((format, text) in prop::sample::select(DATA.to_vec()).prop_flat_map(|(f, t)| (Just(f), mutated(t)))) {
        let _ = read(&text, format);
    }

    #[test]
    fn a_model_of_any_tokens(tokens in prop::collection::vec(prop::sample::select(vec![
        "x", "y", "N", "i", "[", "]", "(", ")", "{", "}", ",", ":", "~", "<-", "+", "-", "*", "^", "1", "2", "0.5", "for (i in 1:3) {",
        "dnorm(", "dcat(", "sum(", "mean(", "log(", "T(", "x[i]", "y[i]", "x[]", "R[,]", "z ~ dnorm(0, 1)", "%*%", "ddirch(", "dmnorm(",
    ]), 0..40)) {
        whole_way(&format!("model {{ {} }}", tokens.join(" ")));
    }
}
