//! One step over a whole corpus with 32 draws of each document's latents, as four times eight: `batch DOCS VOCAB DOCUMENTS`, layers of
//! 50, 25 and 10 counts. Prints seconds on the clock, step by step.

use hyperprior_bench_def::corpus;
use hyperprior_def::{Family, Layer, Method, Settings, Training};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const WIDTHS: [usize; 3] = [50, 25, 10];
const STEPS: u32 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [docs, vocabulary, documents] = &arguments[..] else {
        return Err("usage: batch DOCS VOCAB DOCUMENTS".into());
    };
    let all = corpus(Path::new(docs), Path::new(vocabulary))?;
    let corpus = all.subset(&(0..documents.parse::<usize>()?.min(all.documents_len())).collect::<Vec<_>>());
    for method in ["mean-field", "flow"] {
        let settings = Settings::default().layers(WIDTHS.map(|width| Layer { family: Family::Poisson, width }).to_vec()).method(method.parse::<Method>()?).epochs(STEPS).batch(corpus.documents_len()).draws(8).local_steps(4);
        let mut training = Training::new(&corpus, &settings)?;
        let step = |training: &mut Training| {
            let start = Instant::now();
            training.run_epoch().expect("an epoch");
            start.elapsed().as_secs_f64()
        };
        let spent: Vec<f64> = (0..STEPS).map(|_| step(&mut training)).collect();
        let (documents, nonzeros) = (corpus.documents_len(), corpus.nonzeros_len());
        println!("{documents} documents, {nonzeros} nonzeros, {method}: {spent:.3?} s a step of 32 draws");
    }
    Ok(())
}
