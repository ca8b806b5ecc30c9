//! What long work leaves behind so that it can go on after it was broken off: the pieces that are finished, and the one that is
//! under way.
//!
//! The pieces come in the same order whenever the same work is done with the same seed. So what is finished is not done again, and
//! what was under way goes on from its last state to the same numbers.

use crate::error::{Error, Result};
use crate::fit::Observer;
use hyperprior_math::batch::Batch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    finished: Vec<Vec<u8>>,
    under_way: Option<Vec<u8>>,
}

impl Pages {
    /// As bytes.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] where there are more than fit.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode(self)
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] where they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode(bytes)
    }
}

/// Writes pages to where they last; what it returns is why it could not.
pub type Save = Box<dyn FnMut(&Pages) -> std::result::Result<(), String> + Send>;

/// Keeps pages while work is done.
///
/// ```
/// use hyperprior::journal::{Journal, Pages};
/// use std::time::Duration;
/// let journal = Journal::new(Pages::default(), Duration::from_secs(20), Box::new(|_| Ok(())));
/// assert_eq!(journal.pages(), &Pages::default());
/// ```
pub struct Journal {
    pages: Pages,
    /// Finished pieces that were come past again.
    passed: usize,
    every: Duration,
    last: Instant,
    is_closed: bool,
    save: Save,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Journal").field("finished", &self.pages.finished.len()).field("passed", &self.passed).finish()
    }
}

/// A batch as it is written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Columns {
    draws_len: usize,
    columns_len: usize,
    numbers: Vec<f64>,
}

impl Columns {
    pub(crate) fn of(batch: &Batch) -> Self {
        let (draws_len, columns_len) = (batch.draws_len(), batch.columns_len());
        Self { draws_len, columns_len, numbers: batch.as_slice().to_vec() }
    }

    pub(crate) fn batch(&self) -> Result<Batch> {
        if self.draws_len.checked_mul(self.columns_len) != Some(self.numbers.len()) {
            return Err(Error::Checkpoint { reason: "it is damaged".to_owned() });
        }
        let mut batch = Batch::zeros(self.columns_len, self.draws_len);
        batch.as_mut_slice().copy_from_slice(&self.numbers);
        Ok(batch)
    }
}

/// How a piece of work begins.
pub(crate) enum Begun<S> {
    /// It was not done before.
    New,
    /// It was broken off in this state.
    UnderWay(S),
    /// It was finished, and this came of it.
    Finished(S),
}

impl Journal {
    /// Goes on from these pages, and saves them no more often than `every`.
    pub fn new(pages: Pages, every: Duration, save: Save) -> Self {
        Self { pages, passed: 0, every, last: Instant::now(), is_closed: false, save }
    }

    /// What is written down.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    fn write(&mut self) -> Result<()> {
        self.last = Instant::now();
        (self.save)(&self.pages).map_err(|reason| Error::Checkpoint { reason })
    }
}

fn encode(state: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(state).map_err(|error| Error::Checkpoint { reason: error.to_string() })
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S> {
    let bad = || Error::Checkpoint { reason: "it does not go with this work".to_owned() };
    match postcard::take_from_bytes(bytes) {
        Ok((state, [])) => Ok(state),
        _ => Err(bad()),
    }
}

/// Begins the next piece of work.
pub(crate) fn begin<S: DeserializeOwned>(observer: &mut dyn Observer) -> Result<Begun<S>> {
    let Some(journal) = observer.journal().filter(|journal| !journal.is_closed) else { return Ok(Begun::New) };
    if let Some(bytes) = journal.pages.finished.get(journal.passed) {
        let state = decode(bytes)?;
        journal.passed += 1;
        return Ok(Begun::Finished(state));
    }
    match &journal.pages.under_way {
        Some(bytes) => Ok(Begun::UnderWay(decode(bytes)?)),
        None => Ok(Begun::New),
    }
}

/// Keeps the state of the piece that is under way, where it is time to.
pub(crate) fn keep<S: Serialize>(observer: &mut dyn Observer, state: impl FnOnce() -> S) -> Result<()> {
    match observer.journal() {
        Some(journal) if !journal.is_closed && journal.last.elapsed() >= journal.every => {
            journal.pages.under_way = Some(encode(&state())?);
            journal.write()
        }
        _ => Ok(()),
    }
}

/// Keeps the state of a piece that is broken off. What comes after it is done with what there is, and not written down.
pub(crate) fn stop<S: Serialize>(observer: &mut dyn Observer, state: impl FnOnce() -> S) -> Result<()> {
    match observer.journal() {
        Some(journal) if !journal.is_closed => {
            journal.pages.under_way = Some(encode(&state())?);
            journal.is_closed = true;
            journal.write()
        }
        _ => Ok(()),
    }
}

/// Keeps what came of a piece that is finished.
pub(crate) fn finish<S: Serialize>(observer: &mut dyn Observer, state: impl FnOnce() -> S) -> Result<()> {
    match observer.journal() {
        Some(journal) if !journal.is_closed => {
            journal.pages.finished.push(encode(&state())?);
            journal.pages.under_way = None;
            journal.passed += 1;
            if journal.last.elapsed() >= journal.every { journal.write() } else { Ok(()) }
        }
        _ => Ok(()),
    }
}
