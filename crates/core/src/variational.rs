//! The variational model: a likelihood, a prior and a recursive approximation that fit together.

use crate::error::{Error, Result};
use crate::likelihood::{Factor, Likelihood, MeanField};
use crate::model::{Latents, Model, Support};
use crate::prior::{Atoms, Covariance, Density, Mixture, Prior};
use crate::recursive::{InverseFlow, MadeFor, Recursive, Responsibilities, SameAsPrior, Space, Surroundings};
use hyperprior_math::family::{Binomial, BinomialError, Family, Mixed, MixedError, Poisson};
use std::sync::Arc;

/// The triple (q(z | λ), q(λ; θ), r(λ | z; φ)): every method is such a combination.
///
/// ```
/// use hyperprior::{Variational, likelihood::MeanField, model::{Latents, Support}};
/// use hyperprior::prior::{Covariance, Gaussian};
/// use hyperprior::recursive::{InverseFlow, Space};
///
/// let latents = Latents::new().vector("z", 4, Support::BINARY)?;
/// let likelihood = MeanField::for_latents(&latents)?;
/// let prior = Gaussian::new(4, Covariance::Full)?;
/// let recursive = InverseFlow::factorised(&likelihood, 1, Space::Noise);
/// let q = Variational::new(likelihood, prior, recursive)?;
/// assert_eq!(q.theta_len(), 4 + 10);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct Variational {
    likelihood: Arc<dyn Likelihood>,
    prior: Box<dyn Prior>,
    recursive: Box<dyn Recursive>,
}

impl Variational {
    /// Combines the three.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the reason if they do not fit together.
    pub fn new(
        likelihood: impl Likelihood + 'static,
        prior: impl Prior + 'static,
        recursive: impl Recursive + 'static,
    ) -> Result<Self> {
        Self::from_parts(Arc::new(likelihood), Box::new(prior), Box::new(recursive))
    }

    /// Combines three parts chosen at run time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_parts(
        likelihood: Arc<dyn Likelihood>,
        prior: Box<dyn Prior>,
        recursive: Box<dyn Recursive>,
    ) -> Result<Self> {
        let mismatch = |first: String, second: String, reason: String| Err(Error::Mismatch { first, second, reason });
        let (of_prior, of_likelihood) = (prior.lambda_len(), likelihood.lambda_len());
        if of_prior != of_likelihood {
            return mismatch(
                format!("the prior `{}`", prior.name()),
                "the likelihood".to_owned(),
                format!("one is over {of_prior} parameters, the other over {of_likelihood}; make them equal"),
            );
        }
        recursive.check(&*prior, &*likelihood)?;
        let covered = of_likelihood - likelihood.point_mass_len();
        if !prior.has_density() && density(&*likelihood, &*recursive) != Density::Unneeded {
            let another = "use a Gaussian, a mixture or a flow";
            let (second, reason) = if covered == 0 {
                let reason = "point masses take their entropy from the density of λ, and this prior has none";
                ("the likelihood".to_owned(), format!("{reason}; {another}"))
            } else if recursive.space() == Space::Lambda {
                let second = format!("the recursive approximation `{}`", recursive.name());
                (second, format!("this prior has no density of λ; put the approximation on the noise, or {another}"))
            } else {
                let reason =
                    "point masses combined with other latents need the density of their λ, and this prior has none";
                ("the likelihood".to_owned(), format!("{reason}; use a Gaussian or a mixture, or a flow with r on λ"))
            };
            return mismatch(format!("the prior `{}`", prior.name()), second, reason);
        }
        if let Some(made_for) = recursive.made_for() {
            let found = MadeFor::parts(&*prior, &*likelihood);
            if !made_for.fits(found) {
                return mismatch(
                    format!("the recursive approximation `{}`", recursive.name()),
                    "the other two".to_owned(),
                    format!("it was made for {made_for}, they have {found}; build it from them"),
                );
            }
        }
        let mixed = covered > 0 && likelihood.point_mass_len() > 0;
        if mixed && recursive.space() == Space::Noise && !prior.has_leading_density() {
            return mismatch(
                format!("the prior `{}`", prior.name()),
                format!("the recursive approximation `{}` on the noise", recursive.name()),
                "with point masses this prior needs an approximation on λ".to_owned(),
            );
        }
        Ok(Self { likelihood, prior, recursive })
    }

    /// A mixture of `components_len` members, each independent over the latents, in the form that leaves the least to r.
    ///
    /// - All latents discrete: λ is marginalised. Counts get Poissons mixed over Gaussian log rates ([`Mixed`], by quadrature),
    ///   ranges of up to 64 values any distribution, longer ones mixed binomials; q(z) is a finite sum and the bound is exact.
    /// - All continuous: a mixture of Gaussians over point masses, whose density is known, so the bound is exact too.
    /// - Both: a mixture of Gaussians over all parameters, with a learned r for the discrete ones.
    ///
    /// ```
    /// use hyperprior::{Variational, model::{Latents, Support}};
    /// let counts = Latents::new().vector("z", 2, Support::Counts)?;
    /// assert_eq!(Variational::mixture(&counts, 3)?.recursive().name(), "responsibilities");
    /// # Ok::<(), hyperprior::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyModel`], or [`Error::BadPart`] for a support that no factor covers or no components.
    pub fn mixture(latents: &Latents, components_len: usize) -> Result<Self> {
        let is_discrete = |i: usize| latents.support(i).is_discrete();
        if (0..latents.len()).all(is_discrete) {
            let factor = |i: usize| match latents.support(i) {
                Support::Counts => mixed(Poisson),
                Support::Integers { lower: 0.0, upper } if upper >= 64.0 => {
                    let bad = |e: BinomialError| Error::BadPart { part: "a mixture".to_owned(), reason: e.to_string() };
                    mixed(Binomial::new(upper as u64).map_err(bad)?)
                }
                support => Factor::for_support(support),
            };
            let likelihood = MeanField::new((0..latents.len()).map(factor).collect::<Result<_>>()?)?;
            let prior = Atoms::new(likelihood.lambda_len(), components_len)?;
            return Self::new(likelihood, prior, Responsibilities);
        }
        let likelihood = MeanField::for_latents(latents)?;
        let prior = Mixture::new(likelihood.lambda_len(), components_len, Covariance::Diagonal)?;
        if likelihood.lambda_len() == likelihood.point_mass_len() {
            return Self::new(likelihood, prior, SameAsPrior);
        }
        let recursive = InverseFlow::factorised(&likelihood, components_len, Space::Noise);
        Self::new(likelihood, prior, recursive)
    }

    /// Mean-field: a point λ, for which no r is needed.
    pub fn mean_field(likelihood: impl Likelihood + 'static) -> Self {
        Self::point(Arc::new(likelihood))
    }

    /// The mean-field model with the same likelihood.
    pub fn to_mean_field(&self) -> Self {
        Self::point(Arc::clone(&self.likelihood))
    }

    fn point(likelihood: Arc<dyn Likelihood>) -> Self {
        let prior = Box::new(crate::prior::Delta { lambda_len: likelihood.lambda_len() });
        Self { likelihood, prior, recursive: Box::new(SameAsPrior) }
    }

    /// q(z | λ).
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// q(λ; θ).
    pub fn prior(&self) -> &dyn Prior {
        &*self.prior
    }

    /// r(λ | z; φ).
    pub fn recursive(&self) -> &dyn Recursive {
        &*self.recursive
    }

    /// The names of the likelihood's factors, of the prior and of r.
    pub(crate) fn part_names(&self) -> [String; 3] {
        let mut factors: Vec<&str> = Vec::new();
        for i in 0..self.likelihood.latents_len() {
            let name = self.likelihood.factor_name(i);
            if !factors.contains(&name) {
                factors.push(name);
            }
        }
        [factors.join(" and "), self.prior.name(), self.recursive.name()]
    }

    /// The length of θ.
    pub fn theta_len(&self) -> usize {
        self.prior.parameters_len()
    }

    /// The length of φ.
    pub fn phi_len(&self) -> usize {
        self.recursive.parameters_len()
    }

    /// Whether any latent is random given λ, so that there is something for r to approximate.
    pub fn has_recursion(&self) -> bool {
        self.likelihood.lambda_len() > self.likelihood.point_mass_len()
    }

    /// Which density of λ the bound needs.
    pub fn density(&self) -> Density {
        density(&*self.likelihood, &*self.recursive)
    }

    /// The surroundings of r for component `k`.
    pub fn surroundings<'a>(&'a self, theta: &'a [f64], phi: &'a [f64], k: usize) -> Surroundings<'a> {
        Surroundings { theta, phi, prior: &*self.prior, likelihood: &*self.likelihood, component: k }
    }

    /// Checks that θ and φ have the lengths that this model needs.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with both lengths.
    pub fn check_parameters(&self, theta: &[f64], phi: &[f64]) -> Result<()> {
        for (name, found, expected) in [("θ", theta.len(), self.theta_len()), ("φ", phi.len(), self.phi_len())] {
            if found != expected {
                return Err(Error::Mismatch {
                    first: name.to_owned(),
                    second: "the variational model".to_owned(),
                    reason: format!("one has {found} numbers, the other needs {expected}"),
                });
            }
        }
        Ok(())
    }

    /// Checks that it fits this model: a factor for every latent, each within the latent's support, and a model gradient if
    /// draws are differentiated.
    ///
    /// # Errors
    /// [`Error::EmptyModel`] or [`Error::Mismatch`].
    pub fn check(&self, model: &dyn Model) -> Result<()> {
        let latents = model.latents();
        if latents.is_empty() {
            return Err(Error::EmptyModel);
        }
        let mismatch =
            |first: String, reason: String| Err(Error::Mismatch { first, second: "the model".to_owned(), reason });
        if self.likelihood.latents_len() != latents.len() {
            let reason = format!(
                "it has factors for {} latents, the model has {}",
                self.likelihood.latents_len(),
                latents.len()
            );
            return mismatch("the likelihood".to_owned(), reason);
        }
        for i in 0..latents.len() {
            let factor = format!("the factor `{}` of {}", self.likelihood.factor_name(i), latents.name(i));
            let (own, latent) = (self.likelihood.support(i), latents.support(i));
            if !self.likelihood.is_within(i, &latent) {
                let covers = match self.likelihood.kind(i) {
                    crate::likelihood::Kind::PointMass => "its map leaves the support".to_owned(),
                    _ => format!("it covers {own:?}"),
                };
                return mismatch(factor, format!("{covers}; the latent's support is {latent:?}"));
            }
            if self.likelihood.kind(i) != crate::likelihood::Kind::Sampled && model.gradient().is_none() {
                let reason = "its draws are differentiated, and the model has no gradient; give it one".to_owned();
                return mismatch(factor, reason);
            }
        }
        Ok(())
    }
}

/// The number of quadrature nodes for a Gaussian prior on a factor's parameter.
const NODES: usize = 15;

/// A factor whose parameter has a Gaussian prior, marginalised.
fn mixed<F: Family + 'static>(family: F) -> Result<Factor> {
    let bad = |e: MixedError| Error::BadPart { part: "a mixture".to_owned(), reason: e.to_string() };
    Ok(Factor::Family(Box::new(Mixed::new(family, NODES).map_err(bad)?)))
}

/// Which density of λ the bound needs.
fn density(likelihood: &dyn Likelihood, recursive: &dyn Recursive) -> Density {
    let has_recursion = likelihood.lambda_len() > likelihood.point_mass_len();
    match (has_recursion, recursive.space(), likelihood.point_mass_len()) {
        (false, _, _) | (true, Space::Lambda, _) => Density::Whole,
        (true, Space::Noise, 0) => Density::Unneeded,
        (true, Space::Noise, given) => Density::Leading(given),
    }
}
