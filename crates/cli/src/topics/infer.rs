//! Infers the topics of new documents with the model of a run.

use super::inference::Inference;
use super::input::NewDocuments;
use super::{Config, NewDocumentTopics, Watch, in_batches};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::run_dir::{MODEL, RunDirectory};
use hyperprior_def::heldout::Predictor;
use hyperprior_def::{Error, Trained};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

impl Inference {
    /// Runs the inference.
    pub fn run(self, documents: &NewDocuments) -> Result<(), CliError> {
        let began = Instant::now();
        let stop = StopFlag::on_signals_after_results();
        let watch = Watch::new(0, self.quiet);
        watch.documents("reading", 0);
        let trained = load(&self.run)?;
        let predictor = Predictor::of_trained(&trained, self.fit, self.seed)?;
        let known = documents.read(&trained, &self.run.join(MODEL))?;
        known.warnings.iter().for_each(|note| watch.note(&note.to_string()));
        let out = self.out.as_deref().map(folder).transpose()?;
        let corpus = &known.corpus;
        let mut inferred = NewDocumentTopics {
            inference: &self,
            name: documents.name(),
            trained: &trained,
            corpus,
            unknown_len: known.unknown_len,
            found: Vec::new(),
            wall_seconds: 0.0,
        };
        inferred.notes().iter().for_each(|note| watch.note(note));
        watch.documents("documents", corpus.documents_len());
        for batch in in_batches(corpus.documents_len()) {
            inferred.add(predictor.infer(corpus, batch.clone()));
            stop.mark_results();
            watch.done(batch.end);
            if stop.is_raised() {
                break;
            }
        }
        inferred.wall_seconds = began.elapsed().as_secs_f64();
        watch.finish();
        let written = out.as_ref().map_or(Ok(()), |out| inferred.write(out));
        let printed = self.print(&inferred, out.as_ref().filter(|_| written.is_ok()));
        written.map_err(|error| CliError::NotSaved { error, again: None })?;
        printed?;
        match inferred.found.len() {
            done if done < corpus.documents_len() => {
                Err(CliError::StoppedInference { done, documents: corpus.documents_len() })
            }
            _ => Ok(()),
        }
    }

    fn print(&self, inferred: &NewDocumentTopics, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &inferred.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", inferred.report())?;
            if let Some(run) = run {
                writeln!(out, "\nTopics of all documents: {}", run.path().display())?;
            }
        }
        Ok(out.flush()?)
    }
}

/// The output folder. It must not be a topics run, whose files would be lost.
fn folder(path: &Path) -> Result<RunDirectory, CliError> {
    if path.join(MODEL).exists() {
        return Err(CliError::Usage(format!(
            "--out {} is the folder of a run, whose activations.csv and summary.json would be overwritten; choose another folder",
            path.display()
        )));
    }
    Ok(RunDirectory::create(path)?)
}

/// The model of a run.
fn load(run: &Path) -> Result<Trained, CliError> {
    let path = run.join(MODEL);
    match File::open(&path) {
        Ok(file) => Trained::load(BufReader::new(file)).map_err(|error| match error {
            error @ Error::Model { .. } => CliError::Model { path, error },
            error => error.into(),
        }),
        Err(_) if run.is_file() => Err(CliError::NotARun {
            path: run.to_owned(),
            reason: "it is a file; give the folder written by `hyperprior topics … --out` first, then the documents",
        }),
        Err(reason) if reason.kind() == ErrorKind::NotFound && run.is_dir() => {
            let reason = match Config::read(run) {
                Ok(_) => {
                    "its training has not been saved yet; wait for its first epochs, or train again if it was made by an earlier \
                     version of hyperprior"
                }
                Err(_) => "it has no file `model`; name a folder written by `hyperprior topics … --out`",
            };
            Err(CliError::NotARun { path: run.to_owned(), reason })
        }
        Err(reason) if reason.kind() == ErrorKind::NotFound => Err(CliError::Read { path: run.to_owned(), reason }),
        Err(reason) => Err(CliError::Read { path, reason }),
    }
}
