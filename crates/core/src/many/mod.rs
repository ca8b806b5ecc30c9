//! Many small posteriors, each with its own prior and recursive approximation, in single precision.
//!
//! The parts in [`prior`](crate::prior) and [`recursive`](crate::recursive) are for one posterior with many draws. A collection
//! of documents is the other case: thousands of posteriors, few draws each, and parameters that are read and written once per
//! step. This is limited by memory bandwidth, so the kernels here fuse all operations on a parameter, use `f32` and put latents
//! in lanes ([`math::single`](crate::math::single)).

mod flow_pair;

pub use flow_pair::{Cotangents, FlowPair, Work, count_features};
