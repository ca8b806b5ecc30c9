//! Selects the words of a text that become terms, and the documents that are kept.

use super::{Counter, TextSettings};
use crate::corpus::builder::Counts;
use crate::corpus::warning::Warning;
use crate::error::{Error, Result};
use std::path::Path;

impl Counter {
    /// The counts and the vocabulary within the limits; terms are in alphabetical order.
    pub fn limited(
        self,
        path: &Path,
        settings: &TextSettings,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Counts, Vec<String>)> {
        let counts = self.builder.counts();
        let mut words: Vec<(String, u32)> = self.numbers.into_iter().collect();
        words.sort_unstable();
        let empty = |message: String, remedy: &str| {
            Err(Error::Empty { path: path.to_path_buf(), message, remedy: remedy.to_string() })
        };
        if words.is_empty() {
            return empty("no document has a word other than stop words".into(), NO_WORDS);
        }
        let mut is_term = frequent(&counts, &words, settings);
        let mut keep = Vec::with_capacity(counts.documents_len());
        let (mut short, mut long) = (0, 0);
        for d in 0..counts.documents_len() {
            let (terms, of_terms) = counts.document(d);
            let tokens_len = terms.iter().zip(of_terms).filter(|(term, _)| is_term[**term as usize]);
            let tokens_len = tokens_len.map(|(_, &count)| count as usize).sum::<usize>();
            let is_short = tokens_len < settings.shortest_document;
            let is_long = settings.longest_document.is_some_and(|longest| tokens_len > longest);
            short += usize::from(is_short && tokens_len > 0);
            long += usize::from(is_long);
            keep.push(!is_short && !is_long);
        }
        let kept_len = keep.iter().filter(|keep| **keep).count();
        if !is_term.contains(&true) {
            let message = format!("none of the {} words is in enough but not too many documents", words.len());
            return empty(
                message,
                "lower the smallest number of documents of a word, or raise its largest share of documents",
            );
        }
        if kept_len == 0 {
            let message = format!("none of the {} documents is within the length limits", counts.seen_len);
            return empty(message, "lower the smallest length of a document, or raise the largest");
        }
        // Terms that only occur in documents that are left out are left out too.
        let mut is_used = vec![false; is_term.len()];
        for d in (0..keep.len()).filter(|&d| keep[d]) {
            counts.document(d).0.iter().for_each(|&term| is_used[term as usize] = true);
        }
        is_term.iter_mut().zip(is_used).for_each(|(is_term, is_used)| *is_term &= is_used);

        let seen = words.len();
        let mut number = vec![u32::MAX; seen];
        let mut vocabulary = Vec::new();
        for (word, old) in words {
            if is_term[old as usize] {
                number[old as usize] = vocabulary.len() as u32;
                vocabulary.push(word);
            }
        }
        warnings.push(Warning::Vocabulary { kept: vocabulary.len(), seen });
        let dropped = counts.seen_len - kept_len - short - long;
        if dropped > 0 {
            warnings.push(Warning::EmptyDocuments { dropped, seen: counts.seen_len });
        }
        if short + long > 0 {
            warnings.push(Warning::DocumentLength { short, long, seen: counts.seen_len });
        }
        Ok((renumbered(&counts, &keep, &number), vocabulary))
    }
}

const NO_WORDS: &str = "check that this is the right file, and that the stop words are in its language";

/// Whether each word is in enough but not too many documents, and among the most frequent.
fn frequent(counts: &Counts, words: &[(String, u32)], settings: &TextSettings) -> Vec<bool> {
    let mut documents = vec![0_usize; words.len()];
    counts.terms.iter().for_each(|&term| documents[term as usize] += 1);
    let most = (settings.largest_share * counts.documents_len() as f64).ceil() as usize;
    let mut kept: Vec<u32> = words.iter().map(|word| word.1).collect();
    kept.retain(|&old| (settings.least_documents..=most).contains(&documents[old as usize]));
    if let Some(most_terms) = settings.most_terms {
        // The sort is stable, so ties are broken alphabetically.
        kept.sort_by_key(|&old| std::cmp::Reverse(documents[old as usize]));
        kept.truncate(most_terms);
    }
    let mut is_term = vec![false; words.len()];
    kept.into_iter().for_each(|old| is_term[old as usize] = true);
    is_term
}

/// The documents that are kept, with their terms renumbered.
fn renumbered(counts: &Counts, keep: &[bool], number: &[u32]) -> Counts {
    let mut new = Counts { starts: vec![0], seen_len: counts.seen_len, ..Counts::default() };
    let mut document = Vec::new();
    for d in (0..keep.len()).filter(|&d| keep[d]) {
        let (terms, of_terms) = counts.document(d);
        let renumbered = terms.iter().map(|&old| number[old as usize]).zip(of_terms.iter().copied());
        document.clear();
        document.extend(renumbered.filter(|pair| pair.0 != u32::MAX));
        document.sort_unstable_by_key(|pair: &(u32, f32)| pair.0);
        new.terms.extend(document.iter().map(|pair| pair.0));
        new.counts.extend(document.iter().map(|pair| pair.1));
        new.starts.push(new.terms.len());
        new.numbers.push(counts.numbers[d]);
    }
    new
}
