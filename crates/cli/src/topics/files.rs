//! The files of a run.

use super::told::Told;
use crate::error::CliError;
use crate::output::{Columns, RunDirectory, WriteError};
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
    /// How many words a topic is told by.
    pub words: usize,
    /// How the corpus was read; nothing for `bible`.
    pub read: Option<ReadSettings>,
    /// How it was trained on.
    pub train: Settings,
}

impl Config {
    /// Of a run that was begun before.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join("config.toml");
        let text = std::fs::read_to_string(&path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
        toml::from_str(&text).map_err(|error| {
            let said = error.message();
            CliError::Usage(format!("{}: this is not the configuration of a run of topics: {said}", path.display()))
        })
    }
}

/// Writes all of them. Columns stand in the order of the topics.
pub fn write(run: &RunDirectory, told: &Told) -> Result<(), WriteError> {
    let named = |column: &dyn Fn(&Topic) -> Vec<f32>| -> Vec<(String, Vec<f32>)> {
        told.topics.topics.iter().map(|topic| (format!("topic{}", topic.number), column(topic))).collect()
    };
    let (weights, activity) = (told.training.terms(), &told.activity);
    let of_document = |d: usize, topic: &Topic| activity.document(d, 0)[topic.latent];
    let activations =
        named(&|topic| (0..activity.documents_len()).map(|document| of_document(document, topic)).collect());
    let rows = told.train.names();
    run.columns_csv("activations.csv", &Columns { key: "document", rows, columns: &activations })?;
    let weights = named(&|topic| (0..weights.terms_len()).map(|v| weights.mean(v, topic.latent)).collect());
    let rows = told.train.vocabulary();
    run.columns_parquet("weights.parquet", &Columns { key: "term", rows, columns: &weights })?;
    run.trace(["epoch", "objective"], &told.trace)?;
    run.json("topics.json", &told.topics)?;
    // Last, since whoever waits for a run waits for this one.
    run.summary(&told.summary())?;
    Ok(())
}
