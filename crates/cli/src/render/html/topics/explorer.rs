//! The data of the topic explorer: every latent with its words, the latents that it raises or is raised by, and its documents.

use super::read::{Documents, Latent, Topics};
use serde::Serialize;
use std::borrow::Cow;

/// Documents shown per topic.
const DOCUMENTS: usize = 8;
/// Topics shown per document.
const TOPICS: usize = 6;
/// With more documents than this, only those shown with some topic are kept.
const ALL_MAX: usize = 3000;
/// The largest number of characters in a document's name or a word.
const NAME_MAX: usize = 100;
/// Topics with a smaller share of a document are not shown.
const SHARE_MIN: f64 = 0.005;

/// The data for the script. Places count from 0; layer 0 is the bottom layer.
#[derive(Serialize)]
pub struct Explorer {
    layers: Vec<Vec<Node>>,
    documents: Vec<Document>,
}

#[derive(Serialize)]
struct Node {
    /// The share of all words, or the mean activity above the bottom layer.
    size: f64,
    /// Word and share.
    words: Vec<(String, f64)>,
    /// The latents that it raises in the layer below, with their weights.
    children: Vec<(usize, f64)>,
    /// The latents that raise it in the layer above, with their weights.
    parents: Vec<(usize, f64)>,
    /// The documents in which it is most active, with its activity.
    documents: Vec<(usize, f64)>,
}

#[derive(Serialize)]
struct Document {
    name: String,
    heldout: bool,
    /// Topics of the bottom layer, with their shares among all topics.
    topics: Vec<(usize, f64)>,
}

impl Explorer {
    /// The data for a run's topics and documents.
    pub fn new(topics: &Topics, documents: &Documents) -> Self {
        let layers: Vec<&[Latent]> =
            [topics.topics.as_slice()].into_iter().chain(topics.themes.iter().map(Vec::as_slice)).collect();
        let mut activity = Cow::Borrowed(&documents.activity);
        let mut nodes: Vec<Vec<Node>> = Vec::new();
        for (layer, latents) in layers.iter().enumerate() {
            if layer > 0 {
                activity = Cow::Owned(upper_activity(&activity, latents));
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
            heldout: documents.is_heldout[d],
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

/// The activity of latents above the bottom layer, from those that they raise: the run does not save theirs.
fn upper_activity(below: &[Vec<f32>], latents: &[Latent]) -> Vec<Vec<f32>> {
    let of =
        |row: &[f32], latent: &Latent| latent.uses.iter().map(|used| used.weight as f32 * row[used.number - 1]).sum();
    below.iter().map(|row| latents.iter().map(|latent| of(row, latent)).collect()).collect()
}

/// The words per unit of each topic, up to a factor: its share over its mean activity.
fn words_of(topics: &Topics, documents: &Documents) -> Vec<f64> {
    let trained: Vec<&Vec<f32>> =
        documents.activity.iter().zip(&documents.is_heldout).filter(|(_, h)| !**h).map(|(row, _)| row).collect();
    let mean = |k: usize| trained.iter().map(|row| f64::from(row[k])).sum::<f64>() / trained.len().max(1) as f64;
    let of = |(k, topic): (usize, &Latent)| {
        let mean = mean(k);
        if mean > 0.0 { topic.share.unwrap_or(0.0) / mean } else { 0.0 }
    };
    topics.topics.iter().enumerate().map(of).collect()
}

/// The topics with the largest shares of a document.
fn shares(activity: &[f32], words: &[f64]) -> Vec<(usize, f64)> {
    let own: Vec<f64> = activity.iter().zip(words).map(|(z, words)| f64::from(*z) * words).collect();
    let total: f64 = own.iter().sum();
    let shares = largest(&own, TOPICS).into_iter().map(|(k, own)| (k, rounded(own / total)));
    shares.filter(|(_, share)| *share >= SHARE_MIN).collect()
}

/// The places of the largest positive values, with the values.
fn largest(values: &[f64], len: usize) -> Vec<(usize, f64)> {
    let mut order: Vec<usize> = (0..values.len()).filter(|i| values[*i] > 0.0).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    order.into_iter().take(len).map(|i| (i, values[i])).collect()
}

/// All documents, or those shown with some latent, in order.
fn kept(nodes: &[Vec<Node>], len: usize) -> Vec<usize> {
    if len <= ALL_MAX {
        return (0..len).collect();
    }
    let mut kept: Vec<usize> = nodes.iter().flatten().flat_map(|node| node.documents.iter().map(|(d, _)| *d)).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Four significant figures are enough.
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
            is_heldout: (0..documents_len).map(|d| d == 2).collect(),
            // The means over the training documents are 2 and 1: a unit of the topics is .3 and .4 of the words.
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
        assert_eq!(found["documents"][2]["heldout"], json!(true));
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
    fn of_many_documents_only_those_shown_are_kept() {
        let found = explorer(5000);
        let documents = found["documents"].as_array().expect("documents");
        assert!(documents.len() <= 3 * DOCUMENTS, "{}", documents.len());
        let most = found["layers"][0][0]["documents"][0][0].as_u64().expect("a place") as usize;
        assert_eq!(documents[most]["name"], json!("d2"));
    }
}
