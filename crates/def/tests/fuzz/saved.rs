//! Checkpoints and models on disk: changed as they are, and changed with a valid checksum, so that the code behind the checksum is
//! reached.

use super::{Corpus as Inputs, target};
use crc32fast::Hasher;
use hyperprior_def::heldout::{FitSettings, Predictor};
use hyperprior_def::{Corpus, Error, Family, Layer, Method, Settings, Trained, Training};

const WORDS: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "\"poisson\"",
    "\"gaussian\"",
    "\"bernoulli\"",
    "\"gamma\"",
    "\"width\":4096",
    "\"width\":0",
    "\"mixture:8\"",
    "\"flow:64,64\"",
    "\"low-rank:16\"",
    "\"amortize\":4096",
    "\"tight\"",
    "{\"family\":\"poisson\",\"width\":4096},",
    "\"ash\",",
    "\"log-normal\"",
];

pub fn made() -> Corpus {
    let starts = vec![0, 2, 4, 5, 8];
    let terms = vec![0, 3, 1, 2, 4, 0, 1, 3];
    let counts = vec![2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0];
    let list = |text: &str| text.split(' ').map(str::to_owned).collect();
    Corpus::new(starts, terms, counts, list("a b c d"), list("ash elm fir oak yew")).unwrap()
}

/// A few trainings of every kind, each as a checkpoint and as a model.
pub fn files(corpus: &Corpus) -> [Vec<Vec<u8>>; 2] {
    let layer = |family, width| Layer { family, width };
    let kinds = [
        (vec![layer(Family::Poisson, 3)], Method::MeanField, None),
        (vec![layer(Family::Poisson, 3), layer(Family::Gamma, 2)], Method::LowRank(1), None),
        (vec![layer(Family::Bernoulli, 2), layer(Family::Gaussian, 2)], Method::Mixture(2), Some(3)),
        (vec![layer(Family::Poisson, 2)], Method::ConwayMaxwell, None),
        (vec![layer(Family::Gamma, 2)], Method::Flow(1, 1), None),
    ];
    let mut files = [Vec::new(), Vec::new()];
    for (layers, method, amortize) in kinds {
        let settings = Settings::default().layers(layers).method(method).amortize(amortize).epochs(2).batch(3);
        let mut training = Training::new(corpus, &settings).unwrap();
        training.run_epoch().unwrap();
        let [mut checkpoint, mut model] = [Vec::new(), Vec::new()];
        training.save(&mut checkpoint).unwrap();
        training.save_model(None, &mut model).unwrap();
        files[0].push(checkpoint);
        files[1].push(model);
    }
    files
}

/// A file without its format line, length and checksum: its head, a newline, and its numbers.
fn opened(file: &[u8]) -> Vec<u8> {
    let first = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let len = u64::from_le_bytes(file[first..first + 8].try_into().unwrap()) as usize;
    let head = &file[first + 8..first + 8 + len];
    [head, b"\n", &file[first + 8 + len..file.len() - 4]].concat()
}

/// The file with this head and these numbers, and a valid checksum.
fn with_checksum(format: &str, input: &[u8]) -> Vec<u8> {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let numbers = input.get(end + 1..).unwrap_or_default();
    let mut file = [format.as_bytes(), &(end as u64).to_le_bytes(), &input[..end], numbers].concat();
    let mut hasher = Hasher::new();
    hasher.update(&file);
    file.extend(hasher.finalize().to_le_bytes());
    file
}

fn load_training(corpus: &Corpus, file: &[u8]) {
    match Training::load(corpus, file) {
        // Every step asked for is taken, which could take for ever.
        Ok(mut training) if training.settings().local_steps < 100 => {
            training.run_epoch().unwrap();
        }
        Ok(_) => {}
        Err(Error::Checkpoint { reason }) => assert!(!reason.is_empty()),
        Err(error) => panic!("{error}"),
    }
}

fn load_model(corpus: &Corpus, file: &[u8]) {
    match Trained::load(file) {
        Ok(trained) => {
            let is_same_size = trained.vocabulary().len() == corpus.terms_len();
            let settings = FitSettings::default().steps(2);
            if let Some(predictor) = Predictor::of_trained(&trained, settings, 1).ok().filter(|_| is_same_size) {
                predictor.infer(corpus, 0..1);
            }
        }
        Err(Error::Model { reason }) => assert!(!reason.is_empty()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn checkpoint() {
    let corpus = made();
    let inputs = Inputs { inputs: files(&corpus)[0].clone() };
    target("saved::checkpoint", inputs, "checkpoint", &WORDS, 3000, &|input| load_training(&corpus, input));
}

#[test]
fn model() {
    let corpus = made();
    let inputs = Inputs { inputs: files(&corpus)[1].clone() };
    target("saved::model", inputs, "model", &WORDS, 3000, &|input| load_model(&corpus, input));
}

#[test]
fn checkpoint_with_checksum() {
    let corpus = made();
    let inputs = Inputs { inputs: files(&corpus)[0].iter().map(|file| opened(file)).collect() };
    let run = |input: &[u8]| load_training(&corpus, &with_checksum("hyperprior topics 1\n", input));
    target("saved::checkpoint_with_checksum", inputs, "checkpoint_with_checksum", &WORDS, 3000, &run);
}

#[test]
fn model_with_checksum() {
    let corpus = made();
    let inputs = Inputs { inputs: files(&corpus)[1].iter().map(|file| opened(file)).collect() };
    let run = |input: &[u8]| load_model(&corpus, &with_checksum("hyperprior topics model 1\n", input));
    target("saved::model_with_checksum", inputs, "model_with_checksum", &WORDS, 3000, &run);
}

/// Opening a file and adding the checksum again gives the same file: otherwise nothing behind the checksum is ever reached.
#[test]
fn a_checksum_is_restored() {
    let [checkpoints, models] = files(&made());
    for (format, files) in [("hyperprior topics 1\n", checkpoints), ("hyperprior topics model 1\n", models)] {
        files.iter().for_each(|file| assert!(with_checksum(format, &opened(file)) == *file));
    }
}

/// Found by fuzzing: a head with impossible settings was reported as a user's mistake, and one with very many layers exhausted the
/// memory. Both are now reported as damaged files.
#[test]
fn impossible_settings_are_damage() {
    let corpus = made();
    let [checkpoints, models] = files(&corpus);
    let wide = "{\"family\":\"poisson\",\"width\":4096},".repeat(2000);
    for change in [("\"width\":3", "\"width\":0"), ("\"layers\":[", &format!("\"layers\":[{wide}")[..])] {
        let changed = |file: &[u8]| {
            let opened = opened(file);
            let end = opened.iter().position(|byte| *byte == b'\n').unwrap();
            let head = String::from_utf8(opened[..end].to_vec()).unwrap();
            assert!(head.contains(change.0), "{head}");
            [head.replacen(change.0, change.1, 1).as_bytes(), &opened[end..]].concat()
        };
        let checkpoint = with_checksum("hyperprior topics 1\n", &changed(&checkpoints[0]));
        let refused = Training::load(&corpus, checkpoint.as_slice()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Checkpoint { reason: "its settings are damaged" }), "{refused}");
        let model = with_checksum("hyperprior topics model 1\n", &changed(&models[0]));
        let refused = Trained::load(model.as_slice()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Model { reason: "its settings are damaged" }), "{refused}");
    }
}
