//! The time of a minibatch on a device, with a made-up corpus: `device cpu|cuda[:N] [TOPICS TERMS WORDS DRAWS]`.

#![allow(clippy::print_stdout, reason = "its output is the times")]

use hyperprior_def::{Corpus, Device, Family, Layer, Method, Settings, Training};
use std::time::Instant;

/// A pseudo-random number below `below`.
fn next(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn made_up(documents: usize, terms: u64, words: usize) -> Corpus {
    let mut state = 1;
    let (mut starts, mut all, mut counts) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..documents {
        let mut own = std::collections::BTreeSet::new();
        while own.len() < words {
            // Frequent terms first.
            let (a, b) = (next(&mut state, terms), next(&mut state, terms));
            own.insert((a * b / terms) as u32);
        }
        counts.extend(own.iter().map(|_| [1.0, 1.0, 1.0, 2.0][next(&mut state, 4) as usize]));
        all.extend(own);
        starts.push(all.len());
    }
    let names = (0..documents).map(|d| d.to_string()).collect();
    let vocabulary = (0..terms).map(|v| format!("term{v}")).collect();
    Corpus::new(starts, all, counts, names, vocabulary).expect("a corpus")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let device: Device = arguments.first().map_or("cpu", String::as_str).parse()?;
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |x| x.parse::<usize>());
    let (topics, terms, words, draws) = (number(1, 100)?, number(2, 8000)?, number(3, 110)?, number(4, 8)?);
    println!("{device}: {topics} topics, {terms} terms, {words} words a document, {draws} draws");
    println!("{:>9}  {:>14}  {:>14}", "documents", "minibatch, ms", "local step, ms");
    for documents in [256, 4096, 32_768] {
        let batches = 16;
        let corpus = made_up(documents * batches, terms as u64, words);
        let settings = Settings::default()
            .layers(vec![Layer { family: Family::Poisson, width: topics }])
            .method(Method::MeanField)
            .draws(draws)
            .batch(documents)
            .epochs(1000);
        let mut of = [0.0; 2];
        for (milliseconds, local_steps) in of.iter_mut().zip([1, 11]) {
            let mut training = Training::new(&corpus, &settings.clone().local_steps(local_steps))?;
            training.use_device(device)?;
            training.run_epoch()?;
            let began = Instant::now();
            let epochs = 3;
            for _ in 0..epochs {
                training.run_epoch()?;
            }
            *milliseconds = began.elapsed().as_secs_f64() * 1e3 / (epochs * batches) as f64;
        }
        println!("{documents:>9}  {:>14.3}  {:>14.3}", of[0], (of[1] - of[0]) / 10.0);
    }
    Ok(())
}
