//! Builds sorted counts from those of a file, document by document.

use super::number::COUNT_MAX;

/// Sorted counts, with the number of each document in its file.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub starts: Vec<usize>,
    pub terms: Vec<u32>,
    pub counts: Vec<f32>,
    /// The number, from 0, of each document that was kept.
    pub numbers: Vec<usize>,
    /// The number of documents in the file, including empty ones.
    pub seen_len: usize,
}

impl Counts {
    pub fn documents_len(&self) -> usize {
        self.numbers.len()
    }

    pub fn document(&self, d: usize) -> (&[u32], &[f32]) {
        let range = self.starts[d]..self.starts[d + 1];
        (&self.terms[range.clone()], &self.counts[range])
    }
}

/// Fills [`Counts`].
pub(super) struct Builder {
    built: Counts,
    keeps_empty: bool,
    unsorted: Vec<(u32, f32)>,
}

impl Builder {
    /// A builder that leaves out empty documents.
    pub fn new() -> Self {
        let built = Counts { starts: vec![0], ..Counts::default() };
        Self { built, keeps_empty: false, unsorted: Vec::new() }
    }

    /// A builder that keeps them.
    pub fn keeping_empty() -> Self {
        Self { keeps_empty: true, ..Self::new() }
    }

    /// Adds to the current document.
    pub fn push(&mut self, term: u32, count: f32) {
        self.built.terms.push(term);
        self.built.counts.push(count);
    }

    /// Ends the current document.
    ///
    /// # Errors
    /// The term whose counts add up to more than the largest count.
    pub fn finish(&mut self) -> Result<(), u32> {
        let start = self.built.starts[self.built.starts.len() - 1];
        if !self.built.terms[start..].is_sorted_by(|a, b| a < b) {
            self.sort(start)?;
        }
        if self.keeps_empty || self.built.terms.len() > start {
            self.built.numbers.push(self.built.seen_len);
            self.built.starts.push(self.built.terms.len());
        }
        self.built.seen_len += 1;
        Ok(())
    }

    /// Sorts the document that begins at `start` and adds up repeated terms.
    fn sort(&mut self, start: usize) -> Result<(), u32> {
        let Counts { terms, counts, .. } = &mut self.built;
        self.unsorted.clear();
        self.unsorted.extend(terms.drain(start..).zip(counts.drain(start..)));
        self.unsorted.sort_unstable_by_key(|pair| pair.0);
        for same in self.unsorted.chunk_by(|a, b| a.0 == b.0) {
            let sum: f64 = same.iter().map(|pair| f64::from(pair.1)).sum();
            if sum > COUNT_MAX {
                return Err(same[0].0);
            }
            terms.push(same[0].0);
            counts.push(sum as f32);
        }
        Ok(())
    }

    /// Sets the number of the next document; those in between are empty and left out.
    pub fn skip_to(&mut self, number: usize) {
        self.built.seen_len = number;
    }

    /// The counts.
    pub fn counts(mut self) -> Counts {
        self.built.terms.shrink_to_fit();
        self.built.counts.shrink_to_fit();
        self.built
    }
}
