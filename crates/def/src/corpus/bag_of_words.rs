//! The corpus: bag-of-words counts with the names of documents and terms.

use super::builder::{self, Builder};
use super::holdout::check_share;
use super::number::COUNT_MAX;
use crate::error::{Error, Result};
use hyperprior_math::random::stream;
use rand::seq::SliceRandom;
use std::collections::HashSet;

/// The random streams of this module, in place of the step numbers of a fit.
const SPLIT_STREAM: u64 = 0x0073_706c_6974;
const SHUFFLE_STREAM: u64 = 0x7368_7566;

/// The counts of terms in documents, with the names of both.
///
/// The counts are stored document by document. Within a document the terms are distinct and ascending, and every count is a whole
/// number above 0.
///
/// ```
/// use hyperprior_def::Corpus;
///
/// let names = vec!["first".to_string(), "second".to_string()];
/// let vocabulary = ["light", "water", "earth"].map(String::from).to_vec();
/// let corpus = Corpus::new(vec![0, 3, 4], vec![2, 0, 2, 1], vec![1.0, 2.0, 3.0, 1.0], names, vocabulary).unwrap();
/// assert_eq!(corpus.document(0), (&[0, 2][..], &[2.0, 4.0][..]));
/// assert_eq!(corpus.tokens_len(), 7);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    starts: Vec<usize>,
    terms: Vec<u32>,
    counts: Vec<f32>,
    names: Vec<String>,
    vocabulary: Vec<String>,
}

impl Corpus {
    /// A corpus from its parts: document `d` has the terms and counts from `starts[d]` up to `starts[d + 1]`.
    ///
    /// Terms may come in any order; repeated counts of a term in a document are added.
    ///
    /// # Errors
    /// [`Error::BadCorpus`] if the lengths do not agree, a term is not in the vocabulary, a count is not a whole number above 0, or
    /// the vocabulary has a term twice.
    pub fn new(
        starts: Vec<usize>,
        terms: Vec<u32>,
        counts: Vec<f32>,
        names: Vec<String>,
        vocabulary: Vec<String>,
    ) -> Result<Self> {
        let bad = |message: String, remedy| Err(Error::BadCorpus { message, remedy });
        if terms.len() != counts.len() {
            let message = format!("{} terms with {} counts", terms.len(), counts.len());
            return bad(message, "give each term one count");
        }
        let ascends = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if starts.first() != Some(&0) || starts.last() != Some(&terms.len()) || !ascends {
            let message = format!("the starts do not run from 0 up to {}", terms.len());
            return bad(message, "give the start of each document, and the end of the last");
        }
        if names.len() + 1 != starts.len() {
            let message = format!("{} names for {} documents", names.len(), starts.len() - 1);
            return bad(message, "give each document one name");
        }
        if vocabulary.len() >= u32::MAX as usize {
            return bad(format!("{} terms in the vocabulary", vocabulary.len()), "leave out the rarest");
        }
        let mut seen = HashSet::with_capacity(vocabulary.len());
        if let Some(term) = vocabulary.iter().find(|term| !seen.insert(term.as_str())) {
            return bad(format!("`{term}` is in the vocabulary twice"), "name each term once");
        }
        let mut builder = Builder::keeping_empty();
        for d in 0..names.len() {
            for (&term, &count) in terms[starts[d]..starts[d + 1]].iter().zip(&counts[starts[d]..starts[d + 1]]) {
                if term as usize >= vocabulary.len() {
                    let message =
                        format!("document {d} has term {term}, but the vocabulary has {} terms", vocabulary.len());
                    return bad(message, "number terms from 0");
                }
                if !(count >= 1.0 && f64::from(count) <= COUNT_MAX && count.fract() == 0.0) {
                    let message = format!("document {d} has a count of {count} for term {term}");
                    return bad(message, "a count is a whole number from 1 to 16777216");
                }
                builder.push(term, count);
            }
            if let Err(term) = builder.finish() {
                let message = format!("document {d} has a count of more than 16777216 for term {term}");
                return bad(message, "a count is a whole number from 1 to 16777216");
            }
        }
        Ok(Self::from_counts(builder.counts(), names, vocabulary))
    }

    /// A corpus from counts that a builder has sorted.
    pub(super) fn from_counts(counts: builder::Counts, names: Vec<String>, vocabulary: Vec<String>) -> Self {
        let builder::Counts { starts, terms, counts, .. } = counts;
        Self { starts, terms, counts, names, vocabulary }
    }

    /// The number of documents.
    pub fn documents_len(&self) -> usize {
        self.names.len()
    }

    /// The number of terms in the vocabulary.
    pub fn terms_len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The number of pairs of a document and a term in it.
    pub fn nonzeros_len(&self) -> usize {
        self.terms.len()
    }

    /// The number of tokens in all documents.
    pub fn tokens_len(&self) -> u64 {
        self.counts.iter().map(|&count| count as u64).sum()
    }

    /// The terms of document `d`, ascending, and the count of each.
    ///
    /// # Panics
    /// There is no document `d`.
    pub fn document(&self, d: usize) -> (&[u32], &[f32]) {
        let range = self.starts[d]..self.starts[d + 1];
        (&self.terms[range.clone()], &self.counts[range])
    }

    /// The start of each document in [`Corpus::terms`] and [`Corpus::counts`], and the end of the last.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The terms of every document, one document after another.
    pub fn terms(&self) -> &[u32] {
        &self.terms
    }

    /// The counts that go with [`Corpus::terms`].
    pub fn counts(&self) -> &[f32] {
        &self.counts
    }

    /// The documents' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The terms' names.
    pub fn vocabulary(&self) -> &[String] {
        &self.vocabulary
    }

    /// The corpus of these documents, in this order, over the same vocabulary.
    ///
    /// # Panics
    /// There is no such document.
    pub fn subset(&self, documents: &[usize]) -> Self {
        let nonzeros_len = documents.iter().map(|&d| self.document(d).0.len()).sum();
        let mut starts = Vec::with_capacity(documents.len() + 1);
        let (mut terms, mut counts) = (Vec::with_capacity(nonzeros_len), Vec::with_capacity(nonzeros_len));
        starts.push(0);
        for &d in documents {
            let document = self.document(d);
            terms.extend_from_slice(document.0);
            counts.extend_from_slice(document.1);
            starts.push(terms.len());
        }
        let names = documents.iter().map(|&d| self.names[d].clone()).collect();
        Self { starts, terms, counts, names, vocabulary: self.vocabulary.clone() }
    }

    /// The same documents in an order that depends on the seed alone.
    pub fn shuffled(&self, seed: u64) -> Self {
        self.subset(&self.order(seed, SHUFFLE_STREAM))
    }

    /// Holds out a share of the documents: the indices of the training and of the held-out documents, both ascending.
    ///
    /// ```
    /// let (train, test) = hyperprior_def::corpus::bible().split(0.1, 1).unwrap();
    /// assert_eq!((train.len(), test.len()), (1070, 119));
    /// ```
    ///
    /// # Errors
    /// [`Error::BadSetting`] if `share` is not between 0 and 1.
    pub fn split(&self, share: f64, seed: u64) -> Result<(Vec<usize>, Vec<usize>)> {
        check_share(share)?;
        let mut test = self.order(seed, SPLIT_STREAM);
        let test_len = (share * test.len() as f64).round() as usize;
        let mut train = test.split_off(test_len);
        train.sort_unstable();
        test.sort_unstable();
        Ok((train, test))
    }

    fn order(&self, seed: u64, purpose: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.documents_len()).collect();
        order.shuffle(&mut stream(seed, purpose, 0, 0));
        order
    }
}
