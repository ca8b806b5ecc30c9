//! Topics: the latents of a trained model, described by their words.
//!
//! A latent k of the lowest layer adds z_k E W_vk to the rate of term v. Its words are the terms with the largest E W_vk / Σ_v E
//! W_vk, and it explains Σ_v E W_vk · mean E z_k of the mean length of a document. A latent above is described by the latents of
//! the layer below that it raises most; its words are theirs, weighted.

use crate::activity::Activity;
use crate::burst::mean_length;
use crate::corpus::Corpus;
use crate::train::Training;
use serde::Serialize;

/// A term and its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Word {
    /// The term.
    pub word: String,
    /// Its share of the topic's total rate.
    pub share: f64,
}

/// A latent of the lowest layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topic {
    /// Its rank among the topics, from 1; the one that explains most comes first.
    pub number: usize,
    /// Its index in the model, from 0.
    pub latent: usize,
    /// The share of all words that it explains.
    pub share: f64,
    /// Its words, the largest share first.
    pub words: Vec<Word>,
}

/// A topic of the layer below that a latent raises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Use {
    /// The topic's number.
    pub number: usize,
    /// The mean weight, above 0.
    pub weight: f64,
}

/// A latent of a layer above the lowest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Theme {
    /// Its rank among the themes of its layer, from 1; the one whose activity adds most words comes first.
    pub number: usize,
    /// Its index in the model, from 0.
    pub latent: usize,
    /// Its mean activity in a document; in a Gaussian layer the mean of |E z|.
    pub activity: f64,
    /// The latents of the layer below that it raises most, the largest weight first.
    pub uses: Vec<Use>,
    /// Its words through these, the largest share first.
    pub words: Vec<Word>,
}

/// Every latent, described by its words.
///
/// ```
/// use hyperprior_def::{Activity, Family, Layer, Settings, Topics, Training, corpus};
///
/// let bible = corpus::bible().subset(&[0, 1, 2, 3]);
/// let layers = vec![Layer { family: Family::Poisson, width: 3 }];
/// let mut training = Training::new(&bible, &Settings::default().layers(layers)).unwrap();
/// training.run_epoch().unwrap();
/// let topics = Topics::new(&training, &bible, &Activity::new(&training, &bible), 5);
/// assert_eq!((topics.topics.len(), topics.topics[0].words.len()), (3, 5));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topics {
    /// The share of all words that the background explains.
    pub background_share: f64,
    /// The lowest layer.
    pub topics: Vec<Topic>,
    /// The layers above it, from below.
    pub themes: Vec<Vec<Theme>>,
}

/// The number of topics below that describe a theme.
const USES: usize = 4;

/// The rates of the terms for a unit of each latent of a layer, and the latents ranked by the words they explain.
struct Ranked {
    rates: Vec<Vec<f64>>,
    order: Vec<usize>,
}

impl Topics {
    /// From the current state of a training on `corpus`, with up to `words_len` words for each latent.
    pub fn new(training: &Training, corpus: &Corpus, activity: &Activity, words_len: usize) -> Self {
        let (weights, vocabulary) = (training.terms(), corpus.vocabulary());
        // The expected counts.
        let rate = |v: usize, k: usize| f64::from(weights.mean(v, k)) * mean_length(training.bursts(), v);
        let rates: Vec<Vec<f64>> =
            (0..weights.width()).map(|k| (0..weights.terms_len()).map(|v| rate(v, k)).collect()).collect();
        let mut ranked = Ranked::new(rates, activity.means(0));
        let length = corpus.tokens_len() as f64 / corpus.documents_len() as f64;
        let topic = |(place, latent): (usize, &usize)| Topic {
            number: place + 1,
            latent: *latent,
            share: explained(&ranked.rates[*latent], activity.means(0)[*latent]) / length,
            words: words(&ranked.rates[*latent], vocabulary, words_len),
        };
        let topics = ranked.order.iter().enumerate().map(topic).collect();
        let mut themes = Vec::new();
        for (layer, layer_weights) in training.layer_weights().iter().enumerate().filter(|(_, b)| b.parents_len() > 0) {
            let uses: Vec<Vec<(usize, f64)>> = (0..layer_weights.parents_len())
                .map(|parent| used(&ranked.order, &|child| f64::from(layer_weights.mean(parent, child))))
                .collect();
            let below = ranked;
            let sizes = activity.sizes(layer + 1);
            ranked = Ranked::new(uses.iter().map(|uses| below.reached(uses)).collect(), sizes);
            let theme = |(place, latent): (usize, &usize)| Theme {
                number: place + 1,
                latent: *latent,
                activity: sizes[*latent],
                uses: uses[*latent].iter().map(|(place, weight)| Use { number: place + 1, weight: *weight }).collect(),
                words: words(&ranked.rates[*latent], vocabulary, words_len),
            };
            themes.push(ranked.order.iter().enumerate().map(theme).collect());
        }
        Self { background_share: training.background_share(), topics, themes }
    }
}

impl Ranked {
    fn new(rates: Vec<Vec<f64>>, means: &[f64]) -> Self {
        let explained: Vec<f64> = rates.iter().zip(means).map(|(rates, mean)| explained(rates, *mean)).collect();
        Self { order: descending(&explained), rates }
    }

    /// The rates of these latents, weighted.
    fn reached(&self, uses: &[(usize, f64)]) -> Vec<f64> {
        let mut rates = vec![0.0; self.rates.first().map_or(0, Vec::len)];
        for (place, weight) in uses {
            rates.iter_mut().zip(&self.rates[self.order[*place]]).for_each(|(sum, rate)| *sum += weight * rate);
        }
        rates
    }
}

/// The words of a document that a latent of this mean activity explains.
fn explained(rates: &[f64], mean: f64) -> f64 {
    mean * rates.iter().sum::<f64>()
}

/// The latents below that are raised most: their ranks, and their weights.
fn used(order: &[usize], weight: &dyn Fn(usize) -> f64) -> Vec<(usize, f64)> {
    let weights: Vec<f64> = order.iter().map(|latent| weight(*latent)).collect();
    let positive = descending(&weights).into_iter().filter(|place| weights[*place] > 0.0);
    positive.take(USES).map(|place| (place, weights[place])).collect()
}

pub(crate) fn words(rates: &[f64], vocabulary: &[String], len: usize) -> Vec<Word> {
    let total: f64 = rates.iter().sum();
    let positive = descending(rates).into_iter().filter(|v| rates[*v] > 0.0);
    positive.take(len).map(|v| Word { word: vocabulary[v].clone(), share: rates[v] / total }).collect()
}

/// The indices of the values, the largest value first; ties in their original order.
pub(crate) fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::shape::{Family, Layer};
    use std::collections::HashSet;

    const SKY: [&str; 4] = ["cloud", "moon", "star", "sun"];
    const TABLE: [&str; 4] = ["bread", "oil", "salt", "wine"];

    /// Forty documents about the sky and twenty about the table.
    fn corpus() -> Corpus {
        let vocabulary: Vec<String> = SKY.iter().chain(&TABLE).map(|word| (*word).to_owned()).collect();
        let documents = 60_u32;
        let starts = (0..=documents as usize).map(|d| 4 * d).collect();
        let first = |d: u32| if d % 3 == 2 { 4 } else { 0 };
        let terms = (0..documents).flat_map(|d| (0..4).map(move |v| first(d) + v)).collect();
        let counts = (0..documents).flat_map(|d| (0..4).map(move |v| 2.0 + ((d + v) % 5) as f32)).collect();
        let names = (0..documents).map(|d| d.to_string()).collect();
        Corpus::new(starts, terms, counts, names, vocabulary).expect("a corpus")
    }

    fn trained(corpus: &Corpus, widths: &[usize]) -> (Topics, Vec<(f32, f32)>, Vec<Vec<f32>>) {
        let layers = widths.iter().map(|width| Layer { family: Family::Poisson, width: *width }).collect();
        let settings = Settings { layers, epochs: 40, batch: 20, ..Settings::default() };
        let mut training = Training::new(corpus, &settings).expect("settings");
        (0..settings.epochs).for_each(|_| {
            training.run_epoch().expect("an epoch");
        });
        let topics = Topics::new(&training, corpus, &Activity::new(&training, corpus), 4);
        let lowest = topics.topics[0].latent;
        let of_word = |word: &Word| corpus.vocabulary().iter().position(|term| *term == word.word).expect("a term");
        let words = &topics.topics[0].words;
        let weights = words.iter().map(|w| (training.terms().mean(of_word(w), lowest), training.terms().sum(lowest)));
        let layer_weights = &training.layer_weights()[0];
        let rows = (0..layer_weights.parents_len()).map(|p| (0..widths[0]).map(|c| layer_weights.mean(p, c)).collect());
        (topics.clone(), weights.collect(), rows.collect())
    }

    /// Catches words of the wrong latent, shares of the wrong sum, and an order that is not by share.
    #[test]
    fn topics_separate_words_that_never_occur_together() {
        let corpus = corpus();
        let (found, weights, _) = trained(&corpus, &[4]);
        assert!(found.themes.is_empty());
        let of = |topic: &Topic| -> HashSet<bool> {
            topic.words.iter().take(3).map(|word| SKY.contains(&word.word.as_str())).collect()
        };
        for topic in found.topics.iter().filter(|topic| topic.share > 0.1) {
            assert_eq!(of(topic).len(), 1, "{topic:?}");
        }
        let of_sky: f64 = found.topics.iter().filter(|t| of(t).contains(&true)).map(|t| t.share).sum();
        let total: f64 = found.topics.iter().map(|topic| topic.share).sum::<f64>() + found.background_share;
        assert!((total - 1.0).abs() < 0.1, "the shares sum to {total}");
        assert!(of_sky > 0.4, "two thirds of the words are about the sky: {of_sky}");
        for (i, topic) in found.topics.iter().enumerate() {
            assert_eq!(topic.number, i + 1);
            assert!(topic.words.is_sorted_by(|a, b| a.share >= b.share));
        }
        assert!(found.topics.is_sorted_by(|a, b| a.share >= b.share));
        let latents: HashSet<usize> = found.topics.iter().map(|topic| topic.latent).collect();
        assert_eq!(latents.len(), 4);
        for (word, (weight, sum)) in found.topics[0].words.iter().zip(weights) {
            assert!((word.share - f64::from(weight / sum)).abs() < 1e-5, "{word:?}");
        }
    }

    /// Catches transposed weights, numbers that do not follow the order below, and negative weights.
    #[test]
    fn themes_name_what_they_raise() {
        let corpus = corpus();
        let (found, _, rows) = trained(&corpus, &[5, 2, 1]);
        assert_eq!(found.themes.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        for theme in &found.themes[0] {
            let row = &rows[theme.latent];
            let positive = row.iter().filter(|weight| **weight > 0.0).count();
            assert_eq!(theme.uses.len(), positive.min(USES));
            assert!(theme.uses.is_sorted_by(|a, b| a.weight >= b.weight));
            for used in &theme.uses {
                assert_eq!(used.weight, f64::from(row[found.topics[used.number - 1].latent]));
            }
            let shares: f64 = theme.words.iter().map(|word| word.share).sum();
            assert!(theme.uses.is_empty() || (0.5..1.0 + 1e-9).contains(&shares), "{theme:?}");
        }
        assert!(found.themes[1][0].uses.iter().all(|used| (1..=2).contains(&used.number)));
    }
}
