//! The files of a topics run.

use super::summary::TopicsReport;
use crate::error::CliError;
use crate::render::html;
use crate::run_dir::{Columns, RunDirectory, SAVE_EVERY, WriteError, read_config};
use hyperprior_def::corpus::ReadSettings;
use hyperprior_def::topics::Topic;
use hyperprior_def::{Device, Settings};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything needed to repeat a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The version of hyperprior.
    pub version: String,
    /// The file or folder, or `bible`.
    pub corpus: PathBuf,
    /// The share of held-out documents.
    pub heldout: f64,
    /// The number of words to show per topic.
    pub words: usize,
    /// Seconds between checkpoints.
    #[serde(default = "save_every")]
    pub save_every: f64,
    /// Where the model is trained.
    #[serde(default)]
    pub device: Device,
    /// The settings for reading the corpus; none for `bible`.
    pub read: Option<ReadSettings>,
    /// The settings of the training.
    pub train: Settings,
}

/// For runs of earlier versions.
fn save_every() -> f64 {
    SAVE_EVERY
}

impl Config {
    /// Reads the configuration of an earlier run.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        read_config(folder, "a topics run")
    }
}

/// Writes all files. Columns are in the order of the topics.
pub fn write(run: &RunDirectory, report: &TopicsReport) -> Result<(), WriteError> {
    activations(run, report)?;
    let weights = report.training.terms();
    let columns = by_topic(report, &|topic| (0..weights.terms_len()).map(|v| weights.mean(v, topic.latent)).collect());
    let rows = report.train.vocabulary();
    run.columns_parquet("weights.parquet", &Columns { key: "term", rows, labels: None, columns: &columns })?;
    run.model(|file| report.training.save_model(Some(&report.topics), file))?;
    run.trace(["epoch", "objective"], &report.trace)?;
    run.json("topics.json", &report.topics)?;
    let summary = report.summary();
    html::write(run, &summary, None)?;
    // Last: its existence means that the run is complete.
    run.summary(&summary)?;
    Ok(())
}

/// `activations.csv`: the documents in the order of the corpus; of the held-out ones, those that were evaluated.
fn activations(run: &RunDirectory, report: &TopicsReport) -> Result<(), WriteError> {
    let [train, test] = report.places;
    let trained = train.iter().enumerate().map(|(d, place)| (*place, "train", report.activity.document(d, 0)));
    let heldout = test.iter().zip(&report.heldout.activity).map(|(place, own)| (*place, "heldout", own.as_slice()));
    let mut documents: Vec<(usize, &str, &[f32])> = trained.chain(heldout).collect();
    documents.sort_unstable_by_key(|document| document.0);
    let rows: Vec<String> = documents.iter().map(|document| report.corpus.names()[document.0].clone()).collect();
    let parts: Vec<&str> = documents.iter().map(|document| document.1).collect();
    let columns = by_topic(report, &|topic| documents.iter().map(|document| document.2[topic.latent]).collect());
    let labels = Some((PART, parts.as_slice()));
    run.columns_csv(ACTIVATIONS, &Columns { key: "document", rows: &rows, labels, columns: &columns })?;
    Ok(())
}

/// The file with the topics of each document, and the column that says whether a document was used in training.
pub const ACTIVATIONS: &str = "activations.csv";
pub const PART: &str = "part";

fn by_topic(report: &TopicsReport, column: &dyn Fn(&Topic) -> Vec<f32>) -> Vec<(String, Vec<f32>)> {
    report.topics.topics.iter().map(|topic| (format!("topic{}", topic.number), column(topic))).collect()
}
