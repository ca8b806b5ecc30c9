//! The data of the explorer: every latent with its words, what it uses and is used by, and where it is most active.

use super::read::{Documents, Latent, Topics};
use serde::Serialize;
use std::borrow::Cow;

/// Documents that a topic is shown with.
const DOCUMENTS: usize = 8;
/// Topics that a document is shown with.
const TOPICS: usize = 6;
/// With more documents than this, only those are kept that some topic is shown with.
const ALL_MAX: usize = 3000;
/// Letters of a document's name, and of a word.
const NAME_MAX: usize = 100;
/// A topic that has less of a document than this is not said to be in it.
const SHARE_MIN: f64 = 0.005;

/// What the script is given. Places count from 0; layer 0 is the one next to the words.
#[derive(Serialize)]
pub struct Explorer {
    layers: Vec<Vec<Node>>,
    documents: Vec<Document>,
}

#[derive(Serialize)]
struct Node {
    /// The share of all words, or the mean activity above the lowest layer.
    size: f64,
    /// Word and share.
    words: Vec<(String, f64)>,
    /// Those below that it raises, and by what weight.
    children: Vec<(usize, f64)>,
    /// Those above that raise it.
    parents: Vec<(usize, f64)>,
    /// Documents that it is most active in, and how active.
    documents: Vec<(usize, f64)>,
}

#[derive(Serialize)]
struct Document {
    name: String,
    aside: bool,
    /// Topics of the lowest layer, and their shares of what all topics say.
    topics: Vec<(usize, f64)>,
}

impl Explorer {
    /// Of a run's topics and documents.
    pub fn new(topics: &Topics, documents: &Documents) -> Self {
        let layers: Vec<&[Latent]> =
            [topics.topics.as_slice()].into_iter().chain(topics.themes.iter().map(Vec::as_slice)).collect();
        let mut activity = Cow::Borrowed(&documents.activity);
        let mut nodes: Vec<Vec<Node>> = Vec::new();
        for (layer, latents) in layers.iter().enumerate() {
            if layer > 0 {
                activity = Cow::Owned(raised(&activity, latents));
            }
            let above = layers.get(layer + 1).copied().unwrap_or_default();
            nodes.push(
                latents.iter().enumerate().map(|(place, latent)| node(latent, place, above, &activity)).collect(),
            );
        }
        let words = words_of(topics, documents);
        let kept = kept(&nodes, documents.names.len());
        let mut places = vec![0; documents.names.len()];
        kept.iter().enumerate().for_each(|(place, d)| places[*d] = place);
        for (place, _) in nodes.iter_mut().flatten().flat_map(|node| &mut node.documents) {
            *place = places[*place];
        }
        let document = |d: usize| Document {
            name: cut(&documents.names[d]),
            aside: documents.is_aside[d],
            topics: shares(&documents.activity[d], &words),
        };
        Self { layers: nodes, documents: kept.into_iter().map(document).collect() }
    }
}

fn node(latent: &Latent, place: usize, above: &[Latent], activity: &[Vec<f32>]) -> Node {
    let uses = |parent: &Latent| parent.uses.iter().find(|used| used.number == place + 1).map(|used| used.weight);
    let of_documents: Vec<f64> = activity.iter().map(|row| f64::from(row[place])).collect();
    let documents = largest(&of_documents, DOCUMENTS);
    Node {
        size: rounded(latent.share.or(latent.activity).unwrap_or(0.0)),
        words: latent.words.iter().map(|word| (cut(&word.word), rounded(word.share))).collect(),
        children: latent.uses.iter().map(|used| (used.number - 1, rounded(used.weight))).collect(),
        parents: above.iter().enumerate().filter_map(|(p, parent)| Some((p, rounded(uses(parent)?)))).collect(),
        documents: documents.into_iter().map(|(d, active)| (d, rounded(active))).collect(),
    }
}

/// Of latents above the lowest, what they raise says where they are active: the run keeps no activity of their own.
fn raised(below: &[Vec<f32>], latents: &[Latent]) -> Vec<Vec<f32>> {
    let of =
        |row: &[f32], latent: &Latent| latent.uses.iter().map(|used| used.weight as f32 * row[used.number - 1]).sum();
    below.iter().map(|row| latents.iter().map(|latent| of(row, latent)).collect()).collect()
}

/// How many words a unit of each topic accounts for, up to a factor: its share over its mean activity.
fn words_of(topics: &Topics, documents: &Documents) -> Vec<f64> {
    let learnt: Vec<&Vec<f32>> =
        documents.activity.iter().zip(&documents.is_aside).filter(|(_, a)| !**a).map(|(row, _)| row).collect();
    let mean = |k: usize| learnt.iter().map(|row| f64::from(row[k])).sum::<f64>() / learnt.len().max(1) as f64;
    let of = |(k, topic): (usize, &Latent)| {
        let mean = mean(k);
        if mean > 0.0 { topic.share.unwrap_or(0.0) / mean } else { 0.0 }
    };
    topics.topics.iter().enumerate().map(of).collect()
}

/// The topics that say most of a document.
fn shares(activity: &[f32], words: &[f64]) -> Vec<(usize, f64)> {
    let said: Vec<f64> = activity.iter().zip(words).map(|(z, words)| f64::from(*z) * words).collect();
    let total: f64 = said.iter().sum();
    let shares = largest(&said, TOPICS).into_iter().map(|(k, said)| (k, rounded(said / total)));
    shares.filter(|(_, share)| *share >= SHARE_MIN).collect()
}

/// The places of the largest positive values, with the values.
fn largest(values: &[f64], len: usize) -> Vec<(usize, f64)> {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| values[*i] > 0.0).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    order.into_iter().take(len).map(|i| (i, values[i])).collect()
}

/// All documents, or those that some latent is shown with, in their order.
fn kept(nodes: &[Vec<Node>], len: usize) -> Vec<usize> {
    if len <= ALL_MAX {
        return (0..len).collect();
    }
    let mut kept: Vec<usize> = nodes.iter().flatten().flat_map(|node| node.documents.iter().map(|(d, _)| *d)).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Three figures are more than can be seen.
fn rounded(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(0.0)
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn explorer(documents_len: usize) -> Value {
        let topics: Topics = serde_json::from_value(json!({
            "background_share": 0.0,
            "topics": [
                {"share": 0.6, "words": [{"word": "sun", "share": 0.5}]},
                {"share": 0.4, "words": [{"word": "salt", "share": 0.5}]},
            ],
            "themes": [[{"activity": 2.0, "uses": [{"number": 2, "weight": 3.0}, {"number": 1, "weight": 0.5}], "words": []}]],
        }))
        .expect("topics");
        let documents = Documents {
            names: (0..documents_len).map(|d| format!("d{d}")).collect(),
            is_aside: (0..documents_len).map(|d| d == 2).collect(),
            // The means over those learnt from are 2 and 1: a unit of the topics is .3 and .4 of the words.
            activity: (0..documents_len).map(|d| [[3.0, 0.0], [1.0, 2.0], [4.0, 4.0]][d.min(2)].to_vec()).collect(),
        };
        serde_json::to_value(Explorer::new(&topics, &documents)).expect("data")
    }

    #[test]
    fn a_document_has_the_shares_of_its_topics() {
        let found = explorer(3);
        assert_eq!(found["documents"][0]["topics"], json!([[0, 1.0]]));
        // .3 × 1 against .4 × 2.
        assert_eq!(found["documents"][1]["topics"], json!([[1, 0.7273], [0, 0.2727]]));
        assert_eq!(found["documents"][2]["aside"], json!(true));
    }

    #[test]
    fn a_topic_has_its_parents_and_its_documents() {
        let found = explorer(3);
        assert_eq!(found["layers"][0][1]["parents"], json!([[0, 3.0]]));
        assert_eq!(found["layers"][0][1]["documents"], json!([[2, 4.0], [1, 2.0]]));
        assert_eq!(found["layers"][1][0]["children"], json!([[1, 3.0], [0, 0.5]]));
        // 3 × 4 + .5 × 4, 3 × 2 + .5 × 1, .5 × 3.
        assert_eq!(found["layers"][1][0]["documents"], json!([[2, 14.0], [1, 6.5], [0, 1.5]]));
    }

    #[test]
    fn of_many_documents_those_are_kept_that_are_shown() {
        let found = explorer(5000);
        let documents = found["documents"].as_array().expect("documents");
        assert!(documents.len() <= 3 * DOCUMENTS, "{}", documents.len());
        let most = found["layers"][0][0]["documents"][0][0].as_u64().expect("a place") as usize;
        assert_eq!(documents[most]["name"], json!("d2"));
    }
}
