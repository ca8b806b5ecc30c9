//! A model with its data, from text to its density.

use hyperprior::Batch;
use hyperprior::model::{Model, random_points};
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Data, Dialect, Options, compile, parse, render};
use hyperprior_testkit::fuzz::Corpus;
use std::path::Path;

/// Separates a model from its data.
const MARK: &str = "=== data\n";

/// The two parts of an input. The example models come without data.
fn parts(text: &str) -> (&str, Data) {
    let (source, data) = text.split_once(MARK).unwrap_or((text, "{}"));
    let format = if data.starts_with('{') { Format::Json } else { Format::RDump };
    (source, read(data, format).unwrap_or_default())
}

/// Parses, compiles, and evaluates densities.
fn whole_way(text: &str) {
    let (source, data) = parts(text);
    for dialect in [Dialect::Jags, Dialect::OpenBugs] {
        let parsed = parse(source, dialect);
        render(&parsed.diagnostics, "model", source, false);
        let found = match compile(source, "model", &data, &Options { dialect, init: Some(data.clone()), file: None }) {
            Ok(compiled) => {
                // The data may still be impossible under the model.
                if let Ok(model) = compiled.graph.model() {
                    evaluate(&model);
                }
                compiled.warnings
            }
            Err(errors) => {
                assert!(!errors.is_empty(), "errors without a message");
                assert!(!errors.iter().any(|e| e.message.contains("for an unknown reason")), "an unknown reason");
                errors
            }
        };
        render(&found, "model", source, false);
    }
}

fn evaluate(model: &dyn Model) {
    const LEN: usize = 3;
    let points = random_points(model.latents(), LEN, 1);
    let mut log_joint = [0.0; LEN];
    if model.log_joint(&points, &mut log_joint).is_ok()
        && let Some(gradient) = model.gradient()
    {
        let mut d_z = Batch::zeros(points.columns_len(), LEN);
        let _ = gradient.log_joint_gradient(&points, &mut log_joint, &mut d_z);
    }
}

#[test]
fn changed() {
    super::target("model::changed", "model.bug", 1500, &|input| whole_way(&String::from_utf8_lossy(input)));
}

/// If the corpus did not compile, most of the compiler would not be tested.
#[test]
fn the_models_of_the_corpus_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/model");
    let inputs = Corpus::read(&folder, "").inputs;
    assert!(inputs.len() >= 6);
    for input in inputs {
        let text = String::from_utf8_lossy(&input);
        let (source, data) = parts(&text);
        if let Err(errors) = compile(source, "model", &data, &Options::default()) {
            panic!("{}", render(&errors, "model", source, false));
        }
    }
}

#[test]
fn every_beginning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/model");
    for input in Corpus::read(&folder, "").inputs {
        let text = String::from_utf8_lossy(&input);
        let (source, data) = text.split_once(MARK).unwrap_or((&text, "{}"));
        for end in (0..source.len()).filter(|&end| source.is_char_boundary(end)) {
            whole_way(&format!("{}{MARK}{data}", &source[..end]));
        }
    }
}
