//! Hidden words: trains one layer of counts as `hyperprior topics` does by default, and writes the same split for scikit-learn.
//!
//! `heldout DOCS VOCAB LATENTS FOLDER [SEED]` writes `train.ldac` and, of the documents set aside, `types_seen.ldac`,
//! `types_hidden.ldac`, `tokens_seen.ldac` and `tokens_hidden.ldac`; then it prints perplexities and seconds.

use hyperprior_bench_def::corpus;
use hyperprior_def::corpus::{Document, hold_out_tokens, hold_out_types};
use hyperprior_def::heldout::{FitSettings, Holdout, Predictor, unigram};
use hyperprior_def::{Corpus, Family, Layer, Method, Settings, Training};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// The shares that `hyperprior topics` sets aside: of the documents, and of the words of each of them.
const ASIDE: f64 = 0.1;
const HIDDEN: f64 = 0.5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (docs, vocabulary, latents, folder, seed) = match &arguments[..] {
        [docs, vocabulary, latents, folder] => (docs, vocabulary, latents, folder, 1),
        [docs, vocabulary, latents, folder, seed] => (docs, vocabulary, latents, folder, seed.parse()?),
        _ => return Err("usage: heldout DOCS VOCAB LATENTS FOLDER [SEED]".into()),
    };
    let all = corpus(Path::new(docs), Path::new(vocabulary))?;
    let (train, test) = all.split(ASIDE, seed)?;
    let (train, test) = (all.subset(&train), all.subset(&test));
    export(&train, &test, Path::new(folder), seed)?;
    println!("{} documents to train on, {} set aside", train.documents_len(), test.documents_len());
    println!("| method | seconds | types: plug-in | averaged | tokens: plug-in | averaged |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let [types, tokens] = [Holdout::Types, Holdout::Tokens].map(|hide| unigram(&train, &test, hide, seed));
    println!("| unigram | | {:.1} | | {:.1} | |", types?, tokens?);
    for method in [Method::MeanField, Method::Hvm] {
        let settings = Settings::default().layers(vec![Layer { family: Family::Poisson, width: latents.parse()? }]).method(method).seed(seed);
        let began = Instant::now();
        let mut training = Training::new(&train, &settings)?;
        (0..settings.epochs).for_each(|_| {
            training.run_epoch().expect("an epoch");
        });
        let seconds = began.elapsed().as_secs_f64();
        let predictor = Predictor::new(&training, FitSettings::default())?;
        let [types, tokens] = [Holdout::Types, Holdout::Tokens].map(|hide| predictor.heldout(&test, hide));
        let (types, tokens) = (types?, tokens?);
        println!(
            "| {method} | {seconds:.0} | {:.1} | {:.1} | {:.1} | {:.1} |",
            types.perplexity, types.perplexity_averaged, tokens.perplexity, tokens.perplexity_averaged
        );
    }
    Ok(())
}

/// A hiding of `hyperprior_def::corpus`.
type Hiding = fn((&[u32], &[f32]), f64, u64, u64) -> Result<(Document, Document), hyperprior_def::Error>;

fn export(train: &Corpus, test: &Corpus, folder: &Path, seed: u64) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let open = |name: String| File::create(folder.join(name)).map(BufWriter::new);
    train.write_ldac(&mut open("train.ldac".to_owned())?)?;
    std::fs::write(folder.join("terms_len.txt"), train.terms_len().to_string())?;
    for (name, hide) in [("types", hold_out_types as Hiding), ("tokens", hold_out_tokens as Hiding)] {
        let (mut seen, mut hidden) = (open(format!("{name}_seen.ldac"))?, open(format!("{name}_hidden.ldac"))?);
        for d in 0..test.documents_len() {
            let parts = hide(test.document(d), HIDDEN, seed, d as u64)?;
            line(&mut seen, &parts.0)?;
            line(&mut hidden, &parts.1)?;
        }
    }
    Ok(())
}

fn line(out: &mut impl Write, document: &Document) -> std::io::Result<()> {
    write!(out, "{}", document.terms.len())?;
    document.terms.iter().zip(&document.counts).try_for_each(|(term, count)| write!(out, " {term}:{count}"))?;
    writeln!(out)
}
