//! Reads `topics.json`, `activations.csv` and `summary.json` of a topics run for a report.

use crate::error::CliError;
use crate::render::html::read::{Run, number, rows};
use hyperprior_def::Choice;
use serde::Deserialize;

/// The part of `summary.json` that a report shows.
#[derive(Debug, Deserialize)]
pub struct Summary {
    pub corpus: String,
    #[serde(default)]
    pub families: Vec<String>,
    #[serde(default)]
    pub layers: Vec<u64>,
    #[serde(default)]
    pub method: String,
    pub choice: Option<Choice>,
    pub dependent_documents: Option<u64>,
    #[serde(default)]
    pub weights: String,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub documents: u64,
    #[serde(default)]
    pub terms: u64,
    #[serde(default)]
    pub tokens: u64,
    #[serde(default)]
    pub heldout_documents: u64,
    #[serde(default)]
    pub epochs: u64,
    #[serde(default)]
    pub elbo: Option<f64>,
    #[serde(default)]
    pub heldout_perplexity: Option<f64>,
    #[serde(default)]
    pub unigram_perplexity: Option<f64>,
    #[serde(default)]
    pub completion_perplexity: Option<f64>,
    #[serde(default)]
    pub completion_unigram_perplexity: Option<f64>,
    #[serde(default)]
    pub wall_seconds: Option<f64>,
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// `topics.json`.
#[derive(Debug, Deserialize)]
pub struct Topics {
    #[serde(default)]
    pub background_share: f64,
    /// The bottom layer.
    pub topics: Vec<Latent>,
    /// The layers above, lowest first.
    #[serde(default)]
    pub themes: Vec<Vec<Latent>>,
}

/// A latent of any layer.
#[derive(Debug, Deserialize)]
pub struct Latent {
    /// The share of all words, for the bottom layer.
    #[serde(default)]
    pub share: Option<f64>,
    /// The mean activity, for the layers above.
    #[serde(default)]
    pub activity: Option<f64>,
    #[serde(default)]
    pub uses: Vec<Use>,
    #[serde(default)]
    pub words: Vec<Word>,
}

/// A latent that one in the layer above raises.
#[derive(Debug, Deserialize)]
pub struct Use {
    /// Its number, from 1.
    pub number: usize,
    #[serde(default)]
    pub weight: f64,
}

/// A word of a latent.
#[derive(Debug, Deserialize)]
pub struct Word {
    pub word: String,
    #[serde(default)]
    pub share: f64,
}

/// `activations.csv`: the documents, with the activity of each topic in the bottom layer.
#[derive(Debug, Default, PartialEq)]
pub struct Documents {
    pub names: Vec<String>,
    /// Whether each is held out.
    pub is_heldout: Vec<bool>,
    /// A row for each document; unknown values are 0.
    pub activity: Vec<Vec<f32>>,
}

/// `summary.json`.
pub fn summary(run: &Run) -> Result<Summary, CliError> {
    serde_json::from_value(run.summary.clone()).map_err(|error| run.refused("summary.json", error.to_string()))
}

/// `topics.json`.
pub fn topics(run: &Run) -> Result<Topics, CliError> {
    let text = run.text("topics.json")?.ok_or_else(|| run.refused("topics.json", "it is missing"))?;
    let topics: Topics = serde_json::from_str(&text).map_err(|error| run.refused("topics.json", error.to_string()))?;
    let mut below = topics.topics.len();
    for layer in &topics.themes {
        let mut uses = layer.iter().flat_map(|latent| &latent.uses);
        if let Some(missing) = uses.find(|used| !(1..=below).contains(&used.number)) {
            return Err(run.refused("topics.json", format!("there is no topic {} below", missing.number)));
        }
        below = layer.len();
    }
    Ok(topics)
}

/// `activations.csv`; no documents if it is missing.
pub fn documents(run: &Run, topics_len: usize) -> Result<Documents, CliError> {
    let text = run.text("activations.csv")?.unwrap_or_default();
    parsed(&text, topics_len).map_err(|reason| run.refused("activations.csv", reason))
}

fn parsed(text: &str, topics_len: usize) -> Result<Documents, String> {
    let mut rows = rows(text);
    let Some(header) = rows.next() else { return Ok(Documents::default()) };
    let has_part = header.get(1).is_some_and(|name| name == "part");
    let first = if has_part { 2 } else { 1 };
    if header.len() != first + topics_len {
        return Err(format!("it has {} columns, not {}", header.len(), first + topics_len));
    }
    let mut documents = Documents::default();
    for (line, row) in rows.enumerate() {
        let [name, rest @ ..] = row.as_slice() else { continue };
        if row.len() != header.len() {
            return Err(format!("line {} has {} fields, not {}", line + 2, row.len(), header.len()));
        }
        let known = |field: &String| Some(number(field) as f32).filter(|x| x.is_finite()).unwrap_or(0.0);
        documents.names.push(name.clone());
        documents.is_heldout.push(has_part && rest[0] == "heldout");
        documents.activity.push(row[first..].iter().map(known).collect());
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_their_parts_and_activity() {
        let documents =
            parsed("document,part,topic1,topic2\n\"Song, 1\",train,0.5,2.0\nb,heldout,,1e-7\n", 2).expect("documents");
        assert_eq!(documents.names, ["Song, 1", "b"]);
        assert_eq!(documents.is_heldout, [false, true]);
        assert_eq!(documents.activity, [[0.5, 2.0], [0.0, 1e-7]]);
        assert!(parsed("document,part,topic1\n", 2).is_err());
        assert!(parsed("document,topic1\na,1,2\n", 1).expect_err("a long line").contains("line 2"));
        assert_eq!(parsed("", 2).expect("nothing"), Documents::default());
    }
}
