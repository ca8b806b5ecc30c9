//! Deep exponential families on text.
//!
//! [`corpus`] reads and splits the counts, and has a built-in corpus. [`Training`] fits the layers, [`heldout`] measures how well
//! held-out words are predicted, and [`topics`] describes the latents by their words. [`Trained`] is a saved model for new
//! documents.
//!
//! ```
//! let bible = hyperprior_def::corpus::bible();
//! assert_eq!(bible.documents_len(), 1189);
//! assert_eq!(bible.names()[0], "Genesis 1");
//! ```

mod activity;
mod adam;
mod annealed;
mod burst;
mod checkpoint;
pub mod corpus;
mod device;
mod document;
pub mod error;
mod estimate;
mod expected;
mod forecast;
mod gain;
pub mod heldout;
mod infer;
mod kernel;
mod local;
mod memory;
mod minibatch;
mod natural;
mod network;
mod settings;
mod shape;
pub mod topics;
mod train;
mod trained;
mod weights;

pub use activity::Activity;
pub use burst::WordCounts;
pub use corpus::Corpus;
pub use device::Device;
pub use document::DocumentModel;
pub use error::{Error, Result};
pub use gain::Gain;
pub use infer::Inferred;
pub use local::Method;
pub use settings::Settings;
pub use shape::{Family, Layer, Shape};
pub use topics::Topics;
pub use train::{Candidate, Choice, Epoch, Training};
pub use trained::Trained;
pub use weights::{LayerWeights, TermPrior, TermWeights, WeightPosterior};

/// The book's samples, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../book/src/topics.md")]
    mod topics {}
}
