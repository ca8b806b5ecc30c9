//! A saved model: it equals the trained one, its bounds are below and near the exact evidence, and it reads documents with its own
//! vocabulary.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior::{Batch, Model};
use hyperprior_def::corpus::{FixedVocabulary, FixedVocabularyCorpus, Format, ReadSettings};
use hyperprior_def::heldout::{FitSettings, Holdout, Measured, Predictor};
use hyperprior_def::{Corpus, DocumentModel, Error, Family, Layer, Method, Settings, Trained, Training, WordCounts};
use hyperprior_math::random::stream;
use rand::RngExt;
use std::path::{Path, PathBuf};

/// Documents about one or two of four topics, each with five terms of its own.
fn made(documents: usize) -> Corpus {
    let mut rng = stream(7, 0, 0, 0);
    let (mut starts, mut terms, mut counts) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..documents {
        let topics: Vec<u32> = (0..2).map(|_| rng.random_range(0..4)).collect();
        for _ in 0..30 {
            terms.push(5 * topics[rng.random_range(0..2)] + rng.random_range(0..5));
            counts.push(1.0);
        }
        starts.push(terms.len());
    }
    let names = (0..documents).map(|d| d.to_string()).collect();
    Corpus::new(starts, terms, counts, names, (0..20).map(|v| format!("w{v}")).collect()).unwrap()
}

fn trained<'a>(corpus: &'a Corpus, layers: &[(Family, usize)], method: Method) -> (Training<'a>, Vec<u8>) {
    trained_on(corpus, layers, method, WordCounts::Poisson)
}

fn trained_on<'a>(
    corpus: &'a Corpus,
    layers: &[(Family, usize)],
    method: Method,
    words: WordCounts,
) -> (Training<'a>, Vec<u8>) {
    let layers = layers.iter().map(|(family, width)| Layer { family: *family, width: *width }).collect();
    let settings = Settings::default().layers(layers).method(method).words(words).epochs(80).batch(40);
    let mut training = Training::new(corpus, &settings).unwrap();
    (0..settings.epochs).for_each(|_| {
        training.run_epoch().unwrap();
    });
    let mut file = Vec::new();
    training.save_model(None, &mut file).unwrap();
    (training, file)
}

#[test]
fn a_model_is_read_as_it_was_written() {
    let corpus = made(80);
    let (poisson, bursty) = (WordCounts::Poisson, WordCounts::NegativeBinomial);
    for (method, words) in [(Method::Hvm, poisson), (Method::MeanField, poisson), (Method::MeanField, bursty)] {
        let layers = [(Family::Gamma, 6), (Family::Bernoulli, 2), (Family::Gaussian, 2)];
        let (training, file) = trained_on(&corpus, &layers, method, words);
        let read = Trained::load(file.as_slice()).unwrap();
        assert_eq!((read.epoch(), read.settings(), read.vocabulary()), (80, training.settings(), corpus.vocabulary()));
        let settings = FitSettings::default();
        let of_training = Predictor::new(&training, settings).unwrap().infer(&corpus, 0..9);
        let of_file = Predictor::of_trained(&read, settings, training.settings().seed).unwrap();
        assert_eq!(of_file.infer(&corpus, 0..9), of_training);
        assert_eq!(of_file.infer(&corpus, 4..6), of_training[4..6]);
        let mut latents = read.order().to_vec();
        latents.sort_unstable();
        assert_eq!(latents, [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn files_that_are_not_models_are_refused() {
    let corpus = made(40);
    let (training, file) = trained(&corpus, &[(Family::Poisson, 3)], Method::MeanField);
    let reason = |bytes: &[u8]| match Trained::load(bytes) {
        Err(Error::Model { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    };
    assert_eq!(reason(&file[..file.len() - 1]), "it ends too early");
    assert_eq!(reason(b"not a model at all, only words"), "it is not a file of this kind");
    let mut checkpoint = Vec::new();
    training.save(&mut checkpoint).unwrap();
    assert_eq!(reason(&checkpoint), "it is not a file of this kind");
    let later = String::from_utf8_lossy(&file[..26]).replace('1', "2").into_bytes();
    assert_eq!(reason(&[&later, &file[26..]].concat()), "it was written by another version");
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 4;
        reason(&damaged);
    }
}

/// Σ_z p(x, z) over every configuration of a few binary latents. Catches a term of a document's bound that is left out or counted
/// twice, such as the background or the factorials: the smallest of these is larger than the allowed gap.
#[test]
fn the_bound_of_a_whole_document_is_below_the_evidence_and_near_it() {
    below_and_near(WordCounts::Poisson);
    below_and_near(WordCounts::NegativeBinomial);
}

fn below_and_near(words: WordCounts) {
    let corpus = made(80);
    let layers = [(Family::Bernoulli, 4), (Family::Bernoulli, 2)];
    let (_, file) = trained_on(&corpus, &layers, Method::MeanField, words);
    let read = Trained::load(file.as_slice()).unwrap();
    let settings = FitSettings::default().steps(400).size(0.1).draws(8);
    let states = 1 << 6;
    let columns = (0..6).flat_map(|i| (0..states).map(move |s| f64::from(u8::from(s >> i & 1 == 1)))).collect();
    let z = Batch::from_columns(columns, states);
    let evidence = |d: usize| {
        let mut model = DocumentModel::new(read.shape(), read.terms(), read.layer_weights(), corpus.document(d));
        if words == WordCounts::NegativeBinomial {
            let bursts: Vec<f32> = corpus.document(d).0.iter().map(|term| read.bursts()[*term as usize]).collect();
            model = model.bursty(&bursts);
        }
        let mut logs = vec![0.0; states];
        model.log_joint(&z, &mut logs).unwrap();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
    };
    let mut gaps = Vec::new();
    for seed in 1..5 {
        let found = Predictor::of_trained(&read, settings, seed).unwrap().infer(&corpus, 0..80);
        gaps.extend(found.iter().enumerate().map(|(d, found)| evidence(d) - found.bound));
    }
    let len = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / len;
    // The error of draws, and of documents that differ.
    let error = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / (len - 1.0) / len).sqrt();
    assert!(mean > -5.0 * error && mean < 0.25, "{mean} {error}");
    assert!(5.0 * error + 0.25 < read.terms().background_sum(), "{error} {}", read.terms().background_sum());
}

/// Every document is about at most two topics, each with five terms of its own: the latents that have learnt a topic must explain
/// its words and no others.
#[test]
fn words_are_explained_by_their_topics() {
    let corpus = made(80);
    let (_, file) = trained(&corpus, &[(Family::Poisson, 8)], Method::MeanField);
    let read = Trained::load(file.as_slice()).unwrap();
    let found = Predictor::of_trained(&read, FitSettings::default(), 1).unwrap().infer(&corpus, 0..20);
    let topic = |k: usize| read.words(k, 1)[0].word[1..].parse::<usize>().unwrap() / 5;
    for (d, found) in found.iter().enumerate() {
        let (terms, counts) = corpus.document(d);
        let mut shares = [0.0; 4];
        for (k, share) in read.shares(&found.activations[0], (terms, counts)).into_iter().enumerate() {
            shares[topic(k)] += share;
        }
        let mut exact = [0.0; 4];
        for (term, count) in terms.iter().zip(counts) {
            exact[*term as usize / 5] += f64::from(*count) / 30.0;
        }
        let far = shares.iter().zip(exact).map(|(share, exact)| (share - exact).abs()).fold(0.0, f64::max);
        assert!(far < 0.1, "document {d}: {shares:?} {exact:?}");
    }
    assert_eq!(read.shares(&found[0].activations[0], (&[], &[])), [0.0; 8]);
}

/// Catches random numbers that depend on the range, and a document that is measured twice or not at all.
#[test]
fn documents_are_measured_in_any_ranges() {
    let corpus = made(50);
    let (training, _) = trained(&corpus, &[(Family::Poisson, 5)], Method::Hvm);
    let predictor = Predictor::new(&training, FitSettings::default().steps(20)).unwrap();
    for holdout in [Holdout::Types, Holdout::Tokens] {
        let mut measured = Measured::default();
        for range in [0..7, 7..8, 8..50] {
            predictor.measure(&corpus, holdout, range, &mut measured).unwrap();
        }
        assert_eq!(measured.heldout(), predictor.heldout(&corpus, holdout).unwrap());
    }
}

/// A temporary file of a test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path, settings: &ReadSettings) -> hyperprior_def::Result<FixedVocabularyCorpus> {
    let vocabulary = ["Moon", "sun", "wine", "the"].map(str::to_owned);
    FixedVocabulary { vocabulary: &vocabulary, path: Path::new("run/model") }.read(path, settings)
}

fn documents(corpus: &Corpus) -> Vec<Vec<(u32, f32)>> {
    let one = |d| {
        let (terms, counts) = corpus.document(d);
        terms.iter().copied().zip(counts.iter().copied()).collect()
    };
    (0..corpus.documents_len()).map(one).collect()
}

/// Text: words in any case, stop words inside and outside the vocabulary, unknown words, and documents without known words.
#[test]
fn words_are_looked_up() {
    let text = "The MOON and the moon and bread!\n\nbread and oil of a\nwine, Sun; wine\n";
    let found = read(&file("documents.txt", text), &ReadSettings::default()).unwrap();
    let expected = vec![vec![(0, 2.0), (3, 2.0)], vec![], vec![], vec![(1, 1.0), (2, 2.0)]];
    assert_eq!(documents(&found.corpus), expected);
    // Bread twice and oil, but neither stop words nor `a`.
    assert_eq!(found.unknown_len, 3);
    assert_eq!(found.corpus.names(), ["1", "2", "3", "4"]);
}

#[test]
fn counts_refer_to_the_vocabulary() {
    let text = "2 0:1 3:2\n0\n1 1:4\n";
    let found = read(&file("documents.ldac", text), &ReadSettings::default()).unwrap();
    assert_eq!(documents(&found.corpus), vec![vec![(0, 1.0), (3, 2.0)], vec![], vec![(1, 4.0)]]);
    // With a vocabulary of their own.
    let vocabulary = Some(file("documents.vocab", "sun\nbread\nmoon\nTHE\n"));
    let found = read(&file("documents.ldac", text), &ReadSettings::default().vocabulary(vocabulary)).unwrap();
    assert_eq!(documents(&found.corpus), vec![vec![(1, 1.0), (3, 2.0)], vec![], vec![]]);
    assert_eq!(found.unknown_len, 4);
    // Documents without words keep their positions.
    let found = read(&file("documents.uci", "3\n4\n1\n2 4 1\n"), &ReadSettings::default()).unwrap();
    assert_eq!(documents(&found.corpus), vec![vec![], vec![(3, 1.0)], vec![]]);
}

#[test]
fn unreadable_files_have_messages() {
    let cases = [
        (file("large.ldac", "1 0:1\n2 1:1 4:1\n"), "large.ldac: line 2, column 7: term 4, but `run/model` has 4 terms"),
        (file("other.uci", "1\n9\n1\n1 9 1\n"), "the header says 9 terms, but `run/model` has 4"),
        (file("many.uci", "4000000000\n4\n1\n1 1 1\n"), "4000000000 documents, but only 1 have words"),
        (file("foreign.txt", "pain et huile\n"), "no document has a word that `run/model` knows"),
        (file("nothing.txt", ""), "no document has a word in it"),
        (file("nothing.ldac", "0\n"), "no document has a word in it"),
    ];
    for (path, hint) in cases {
        let said = read(&path, &ReadSettings::default()).unwrap_err().to_string();
        assert!(said.contains(hint), "{said}");
    }
    let settings = ReadSettings::default().format(Format::Folder);
    assert!(read(&file("no-folder.txt", "sun\n"), &settings).is_err());
}
