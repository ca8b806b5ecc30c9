//! Deep exponential families on text.
//!
//! [`corpus`] holds the counts: who reads them, how they are split, and one corpus that is always there. [`Training`] fits the
//! layers, [`heldout`] says how well hidden words are foretold, and [`topics`] tells the latents by their words. [`Trained`] is what
//! is kept of a training, for documents that come later.
//!
//! ```
//! let bible = hyperprior_def::corpus::bible();
//! assert_eq!(bible.documents_len(), 1189);
//! assert_eq!(bible.names()[0], "Genesis 1");
//! ```

mod activity;
mod adam;
mod checkpoint;
pub mod corpus;
mod document;
pub mod error;
mod estimate;
#[cfg(test)]
mod estimate_law;
pub mod heldout;
mod infer;
mod kernel;
mod local;
mod natural;
mod network;
mod room;
mod settings;
mod shape;
pub mod topics;
mod train;
mod trained;
mod visit;
mod weights;

pub use activity::Activity;
pub use corpus::Corpus;
pub use document::DocumentModel;
pub use error::{Error, Result};
pub use infer::Inferred;
pub use local::Method;
pub use settings::Settings;
pub use shape::{Family, Layer, Shape};
pub use topics::Topics;
pub use train::{Epoch, Training};
pub use trained::Trained;
pub use weights::{Belief, Between, TermPrior, TermWeights};

/// The book's samples, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../book/src/topics.md")]
    mod topics {}
}
