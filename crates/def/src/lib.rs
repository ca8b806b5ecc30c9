//! Deep exponential families on text.
//!
//! [`corpus`] holds the counts: who reads them, how they are split, and one corpus that is always there.
//!
//! ```
//! let bible = hyperprior_def::corpus::bible();
//! assert_eq!(bible.documents_len(), 1189);
//! assert_eq!(bible.names()[0], "Genesis 1");
//! ```

pub mod corpus;
pub mod error;

pub use corpus::Corpus;
pub use error::{Error, Result};
