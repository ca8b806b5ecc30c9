//! Temporary.
#![allow(clippy::unwrap_used, reason = "temporary")]
use hyperprior_def::heldout::{FitSettings, Hide, Predictor, unigram};
use hyperprior_def::{Activity, Corpus, Family, Layer, Method, Settings, Topics, Trained, Training};
use hyperprior_math::random::stream;
use rand::RngExt;
use std::fmt::Write;

fn made(documents: usize) -> Corpus {
    let mut rng = stream(11, 0, 0, 0);
    let (mut starts, mut terms, mut counts) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..documents {
        let topics: Vec<u32> = (0..2).map(|_| rng.random_range(0..5)).collect();
        for _ in 0..40 {
            terms.push(10 * topics[rng.random_range(0..2)] + rng.random_range(0..10));
            counts.push(1.0);
        }
        starts.push(terms.len());
    }
    let names = (0..documents).map(|d| d.to_string()).collect();
    Corpus::new(starts, terms, counts, names, (0..50).map(|v| format!("w{v}")).collect()).unwrap()
}

#[test]
fn hashes() {
    use Family::{Bernoulli, Gamma, Gaussian, Poisson};
    let corpus = made(70);
    let mut out = String::new();
    let shapes: [&[(Family, usize)]; 6] = [
        &[(Poisson, 8)],
        &[(Poisson, 18), (Poisson, 3)],
        &[(Bernoulli, 8), (Gaussian, 3)],
        &[(Gamma, 8), (Poisson, 3), (Gamma, 2)],
        &[(Poisson, 5), (Bernoulli, 4)],
        &[(Gamma, 6), (Gaussian, 2), (Bernoulli, 2)],
    ];
    for layers in shapes {
        for method in ["mean-field", "tight", "low-rank:2", "mixture:4", "flow:1,2", "hvm"] {
            for (weights, amortize) in [("gamma", None), ("log-normal", Some(5)), ("point", None)] {
                let settings = Settings {
                    layers: layers.iter().map(|(family, width)| Layer { family: *family, width: *width }).collect(),
                    method: method.parse::<Method>().unwrap(),
                    weights: weights.parse().unwrap(),
                    amortize,
                    epochs: 5,
                    batch: 23,
                    draws: if weights == "point" { 2 } else { 4 },
                    ..Settings::default()
                };
                let mut training = Training::new(&corpus, &settings).unwrap();
                (0..5).for_each(|_| {
                    training.run_epoch();
                });
                let mut file = Vec::new();
                training.save(&mut file).unwrap();
                let mut model = Vec::new();
                training.save_model(None, &mut model).unwrap();
                let trained = Trained::load(model.as_slice()).unwrap();
                let fit = FitSettings { steps: 12, ..FitSettings::default() };
                let predictor = Predictor::of_trained(&trained, fit, 3).unwrap();
                let inferred = predictor.infer(&corpus, 0..6);
                let held = [Hide::Types, Hide::Tokens].map(|h| predictor.heldout(&corpus.subset(&[1, 2, 3, 4, 5, 6, 7]), h).unwrap());
                let topics = Topics::new(&training, &corpus, &Activity::new(&training, &corpus), 4);
                let crc = |bytes: &[u8]| crc32fast::hash(bytes);
                writeln!(
                    out,
                    "{layers:?} {method} {weights}: {:08x} {:08x} {:?} {:08x} {:08x} {:08x}",
                    crc(&file),
                    crc(&model),
                    training.bound(2),
                    crc(format!("{inferred:?}").as_bytes()),
                    crc(format!("{held:?}").as_bytes()),
                    crc(format!("{topics:?}").as_bytes())
                )
                .unwrap();
            }
        }
    }
    writeln!(out, "{:?}", unigram(&corpus, &corpus, Hide::Tokens, 1)).unwrap();
    std::fs::write(std::env::var("HASH_OUT").unwrap(), out).unwrap();
}
