//! hyperprior turns a probabilistic model into a posterior that keeps the dependence between the hidden variables.
//!
//! It implements *Hierarchical Variational Models* (Ranganath, Tran and Blei, 2016). A person states a [`Model`]; a
//! [`Variational`] model is put together from a likelihood q(z | λ), a prior q(λ; θ) and a recursive approximation
//! r(λ | z; φ); [`fit`] maximises the hierarchical ELBO over θ and φ.
//!
//! | in the paper | here |
//! | --- | --- |
//! | p(x, z) | [`model`] |
//! | q(z \| λ), `eq:mean-field` | [`likelihood`] |
//! | q(λ; θ), `eq:mixed-mf` | [`prior`] |
//! | r(λ \| z; φ), `eq:entropy-bound`, `eq:r-base-dist` | [`recursive`] |
//! | the hierarchical ELBO, `eq:full-objective`, and the bounds of the appendix | [`bound`] |
//! | the gradients, `eq:score-grad`, `eq:grad-mf`, `eq:first-gradient`, `eq:r-grad` | [`gradient`] |
//! | RMSProp with Nesterov momentum | [`optimizer`] |
//! | Algorithm 1 | [`fit`] |
//! | N data with latents of their own, minibatches, inference networks | [`plate`] |
//! | a prior and an r for each of many documents | [`many`] |
//! | from a model to draws of its posterior | [`infer`] |
//! | draws, and what they say | [`posterior`] |
//! | work that was broken off, and goes on | [`journal`], [`sealed`] |

pub mod bound;
pub mod error;
pub mod exact;
pub mod fit;
pub mod gradient;
pub mod infer;
pub mod journal;
pub mod likelihood;
pub mod many;
pub mod model;
pub mod optimizer;
pub mod plate;
pub mod posterior;
pub mod prior;
pub mod recursive;
pub mod sealed;
pub mod targets;
mod variational;

pub use error::{Error, Result};
pub use hyperprior_math as math;
pub use hyperprior_math::batch::Batch;
pub use model::{Model, check};
pub use variational::Variational;

/// The book's and the README's samples, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../book/src/fit.md")]
    mod fit {}
    #[doc = include_str!("../../../book/src/your-own-model.md")]
    mod your_own_model {}
    #[doc = include_str!("../../../book/src/composing.md")]
    mod composing {}
    #[doc = include_str!("../../../book/src/minibatches.md")]
    mod plates {}
}
