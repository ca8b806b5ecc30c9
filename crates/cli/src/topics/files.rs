//! The files of a run.

use super::summary::TopicsReport;
use crate::error::CliError;
use crate::render::html;
use crate::run_dir::{Columns, RunDirectory, WriteError, read_config};
use hyperprior_def::Settings;
use hyperprior_def::corpus::ReadSettings;
use hyperprior_def::topics::Topic;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything that is needed to repeat a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Of this program.
    pub version: String,
    /// The file or folder, or `bible`.
    pub corpus: PathBuf,
    /// The share of documents that were set aside.
    pub heldout: f64,
    /// How many words a topic is report by.
    pub words: usize,
    /// How the corpus was read; nothing for `bible`.
    pub read: Option<ReadSettings>,
    /// How it was trained on.
    pub train: Settings,
}

impl Config {
    /// Of a run that was begun before.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        read_config(folder, "a run of topics")
    }
}

/// Writes all of them. Columns stand in the order of the topics.
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
    // Last, since whoever waits for a run waits for this one.
    run.summary(&summary)?;
    Ok(())
}

/// `activations.csv`: the documents in the order of the corpus; of those set aside the ones that were measured.
fn activations(run: &RunDirectory, report: &TopicsReport) -> Result<(), WriteError> {
    let [train, test] = report.places;
    let learnt = train.iter().enumerate().map(|(d, place)| (*place, "train", report.activity.document(d, 0)));
    let aside = test.iter().zip(&report.aside.activity).map(|(place, own)| (*place, "heldout", own.as_slice()));
    let mut documents: Vec<(usize, &str, &[f32])> = learnt.chain(aside).collect();
    documents.sort_unstable_by_key(|document| document.0);
    let rows: Vec<String> = documents.iter().map(|document| report.corpus.names()[document.0].clone()).collect();
    let parts: Vec<&str> = documents.iter().map(|document| document.1).collect();
    let columns = by_topic(report, &|topic| documents.iter().map(|document| document.2[topic.latent]).collect());
    let labels = Some((PART, parts.as_slice()));
    run.columns_csv(ACTIVATIONS, &Columns { key: "document", rows: &rows, labels, columns: &columns })?;
    Ok(())
}

/// The file of a document's topics, and the column that says where the document is from.
pub const ACTIVATIONS: &str = "activations.csv";
pub const PART: &str = "part";

fn by_topic(report: &TopicsReport, column: &dyn Fn(&Topic) -> Vec<f32>) -> Vec<(String, Vec<f32>)> {
    report.topics.topics.iter().map(|topic| (format!("topic{}", topic.number), column(topic))).collect()
}
