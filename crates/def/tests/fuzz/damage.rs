//! A saved file that is cut off at any length, changed at any byte, or written by another version is refused, with the reason.

use super::saved::{files, made};
use hyperprior_def::{Corpus, Error, Trained, Training};

/// Why a checkpoint or a model is refused.
fn of_checkpoint(corpus: &Corpus, file: &[u8]) -> &'static str {
    match Training::load(corpus, file) {
        Err(Error::Checkpoint { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    }
}

fn of_model(file: &[u8]) -> &'static str {
    match Trained::load(file) {
        Err(Error::Model { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    }
}

#[test]
fn cut_off_at_every_length() {
    let corpus = made();
    let [checkpoints, models] = files(&corpus);
    for (checkpoint, model) in checkpoints.iter().zip(&models) {
        assert!((0..checkpoint.len()).all(|len| of_checkpoint(&corpus, &checkpoint[..len]) == "it ends too early"));
        assert!((0..model.len()).all(|len| of_model(&model[..len]) == "it ends too early"));
    }
}

/// One bit of every byte, a different one of the eight each time.
#[test]
fn changed_at_every_byte() {
    let corpus = made();
    let [checkpoints, models] = files(&corpus);
    let changed = |file: &[u8], at: usize| {
        let mut changed = file.to_vec();
        changed[at] ^= 1 << (at % 8);
        changed
    };
    for (checkpoint, model) in checkpoints.iter().zip(&models) {
        (0..checkpoint.len()).for_each(|at| drop(of_checkpoint(&corpus, &changed(checkpoint, at)).to_owned()));
        (0..model.len()).for_each(|at| drop(of_model(&changed(model, at)).to_owned()));
        // In the numbers only the checksum can detect a change.
        let [among, model_among] = [checkpoint, model].map(|file| file.len() - 50);
        assert_eq!(of_checkpoint(&corpus, &changed(checkpoint, among)), "it is damaged: its checksum does not match");
        assert_eq!(of_model(&changed(model, model_among)), "it is damaged: its checksum does not match");
    }
}

#[test]
fn of_another_version() {
    let corpus = made();
    let [checkpoints, models] = files(&corpus);
    let newer = |file: &[u8]| {
        let mut newer = file.to_vec();
        let end = newer.iter().position(|byte| *byte == b'\n').unwrap();
        newer[end - 1] += 1;
        newer
    };
    assert_eq!(of_checkpoint(&corpus, &newer(&checkpoints[0])), "it was written by another version");
    assert_eq!(of_model(&newer(&models[0])), "it was written by another version");
}
