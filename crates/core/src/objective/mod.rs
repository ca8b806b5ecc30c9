//! The objective: the hierarchical ELBO, and related bounds that show how far the approximation is from the posterior and how much
//! of the gap is due to r.
//!
//! With (z, λ_0) ~ q and λ_1..J ~ r(λ | z), write a_j = log q(z | λ_j) + log q(λ_j) − log r(λ_j | z). Then
//!
//! - E[log p − a_0] is the hierarchical ELBO (`eq:full-objective`), a lower bound on the ELBO of q(z);
//! - E[log p − log q(z | λ_0)] is the conditional-entropy bound, which r = prior gives;
//! - E[log p − log mean(e^a_0, …, e^a_J)] is a lower bound that rises with J (J = 0 is the hierarchical ELBO);
//! - E[log p − log mean(e^a_1, …, e^a_J)] is an upper bound that falls with J (J = 1 is the paper's alternative bound). It
//!   is for reporting; maximising it would be meaningless.
//!
//! For any normalised r, E[e^(log p − a_0)] = p(x), the evidence. [`evaluate`] estimates them all.
//!
//! [`annealed`] and [`annealed_upper`] bound log p(x) itself from both sides, with a Markov chain between q and p as part of the
//! hierarchy; [`HamiltonianAnnealing`] does so for continuous latents, and can be maximised.

mod annealed;
mod average;
mod draws;
mod elbo;
pub(crate) mod hamiltonian;
mod importance;
mod integrand;
mod strata;

pub use annealed::{Annealed, AnnealedSettings, annealed, annealed_upper};
pub use draws::Draws;
pub(crate) use draws::covered_by;
pub use elbo::{BoundSettings, Bounds, evaluate};
pub use hamiltonian::HamiltonianAnnealing;
pub use integrand::Pass;
pub(crate) use integrand::{Summed, needs_gradient};
pub use strata::Estimate;
