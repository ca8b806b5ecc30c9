//! Many small posteriors, each with a prior and a recursive approximation of its own, in single precision.
//!
//! The parts of [`prior`](crate::prior) and [`recursive`](crate::recursive) serve one posterior with many draws. A collection
//! of documents is the other case: thousands of posteriors, few draws each, and parameters that are read and written once a
//! step. There the time is the memory's, so the kernels here fuse what is done with a parameter while it is at hand, keep to
//! `f32` and put latents in lanes ([`math::single`](crate::math::single)).

mod flow_pair;

pub use flow_pair::{Cotangents, FlowPair, Work, count_features};
