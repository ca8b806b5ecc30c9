//! hyperprior approximates the posterior of a probabilistic model with discrete and continuous latent variables, and keeps the
//! dependence between them. It implements *Hierarchical Variational Models* (Ranganath, Tran and Blei, 2016), corrects the
//! approximation by importance sampling and MCMC moves, and reports how far the result can be trusted.
//!
//! # From a model to a summary
//!
//! A [`Model`] needs only its latent variables and its log density; [`infer`](infer::infer) does the rest.
//!
//! ```
//! use hyperprior::infer::{InferSettings, Starts, infer};
//! use hyperprior::model::{Latents, Support};
//! use hyperprior::posterior::{Column, Draws, summarise};
//! use hyperprior::{Batch, Model, Quiet, diagnostics::Verdict};
//!
//! /// k is 0 or 1, x ~ N(3k, 1), and y = 2 was observed from N(x, 1).
//! struct Shifted(Latents);
//!
//! impl Model for Shifted {
//!     fn latents(&self) -> &Latents {
//!         &self.0
//!     }
//!     fn log_joint(&self, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
//!         for (s, out) in out.iter_mut().enumerate() {
//!             let (k, x) = (z.get(0, s), z.get(1, s));
//!             *out = -0.5 * (x - 3.0 * k).powi(2) - 0.5 * (2.0 - x).powi(2);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let model = Shifted(Latents::new().scalar("k", Support::BINARY)?.scalar("x", Support::Real)?);
//! let inferred = infer(&model, &Starts::default(), &InferSettings::default(), &mut Quiet)?;
//!
//! let draws = Draws::new(vec![Column::discrete("k"), Column::continuous("x")], inferred.z.clone())?;
//! let summaries = summarise(&draws);
//! assert!((summaries[0].mean - 0.68).abs() < 0.05); // P(k = 1 | y)
//! assert!((summaries[1].mean - 2.02).abs() < 0.1); // E[x | y]
//! assert_eq!(inferred.verdict(), Verdict::Trust);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From the paper to the modules
//!
//! To choose the approximation yourself, combine a likelihood q(z | λ), a prior q(λ; θ) and a recursive approximation
//! r(λ | z; φ) into a [`Variational`] model. [`fit`](fit::fit) maximises the hierarchical ELBO over θ and φ.
//!
//! | in the paper | here |
//! | --- | --- |
//! | p(x, z) | [`model`] |
//! | q(z \| λ), `eq:mean-field` | [`likelihood`] |
//! | q(λ; θ), `eq:mixed-mf` | [`prior`] |
//! | r(λ \| z; φ), `eq:entropy-bound`, `eq:r-base-dist` | [`recursive`] |
//! | the hierarchical ELBO, `eq:full-objective`, and the bounds of the appendix; annealed bounds | [`objective`] |
//! | the gradients, `eq:score-grad`, `eq:grad-mf`, `eq:first-gradient`, `eq:r-grad` | [`gradient`] |
//! | RMSProp with Nesterov momentum | [`optimizer`] |
//! | Algorithm 1 | [`fit`] |
//! | data with local latents, minibatches, inference networks | [`plate`] |
//! | a prior and an r for each of many documents | [`many`] |
//! | from a model to draws of its posterior | [`infer`] |
//! | draws, summaries and predictive accuracy | [`posterior`] |
//! | how far the draws can be trusted | [`diagnostics`] |
//! | the report of a fit, `summary.json` | [`report`] |
//! | exact answers for small models, and test problems | [`exact`], [`targets`] |
//! | observers, budgets and checkpoints of long computations | [`session`], [`observer`], [`checkpoint`] |

pub mod checkpoint;
pub mod diagnostics;
pub mod error;
pub mod exact;
pub mod fit;
mod gibbs;
pub mod gradient;
pub mod infer;
mod json;
pub mod likelihood;
pub mod many;
pub mod model;
pub mod objective;
pub mod observer;
pub mod optimizer;
pub mod plate;
pub mod posterior;
pub mod prior;
pub mod recursive;
pub mod report;
pub mod session;
mod setters;
pub mod targets;
mod variational;

pub use error::{Error, Result};
pub use hyperprior_math as math;
pub use hyperprior_math::batch::Batch;
pub use model::{Model, check};
pub use observer::{Observer, Quiet};
pub use session::{Budget, Session};
pub use variational::Variational;

/// The code samples of the book and the README, compiled and run as doctests.
#[cfg(doctest)]
mod samples {
    #[doc = include_str!("../../../book/src/your-own-model.md")]
    mod your_own_model {}
    #[doc = include_str!("../../../book/src/composing.md")]
    mod composing {}
    #[doc = include_str!("../../../book/src/minibatches.md")]
    mod minibatches {}
}
