//! Every prior, every compatible recursive approximation, and the variational model of both.

use super::Frozen;
use hyperprior::Variational;
use hyperprior::likelihood::{Likelihood, MeanField};
use hyperprior::model::Latents;
use hyperprior::prior::{
    Atoms, Bend, Copula, CouplingFlow, Covariance, Delta, Gaussian, GaussianProcessMap, Hierarchical, LinearMap,
    LowRank, Mixture, MlpMap, NetworkPrior, PlanarFlow, Prior, SinhArcsinh,
};
use hyperprior::recursive::{
    GaussianFit, HierarchicalRecursive, InverseFlow, MixtureGaussian, Recursive, Responsibilities, SameAsPrior, Space,
};
use std::sync::Arc;

/// Every prior over `n` numbers.
pub fn priors(n: usize) -> Vec<Box<dyn Prior>> {
    vec![
        Box::new(Delta { lambda_len: n }),
        Box::new(Gaussian::new(n, Covariance::Diagonal).unwrap()),
        Box::new(Gaussian::new(n, Covariance::Full).unwrap()),
        Box::new(Mixture::new(n, 2, Covariance::Diagonal).unwrap()),
        Box::new(Mixture::new(n, 2, Covariance::Full).unwrap()),
        Box::new(PlanarFlow::new(n, 2).unwrap()),
        Box::new(CouplingFlow::new(n, 2, 3, Bend::Affine).unwrap()),
        Box::new(CouplingFlow::new(n, 2, 3, Bend::Spline { bins: 4 }).unwrap()),
        Box::new(NetworkPrior::new(MlpMap::new(n, &[4], n).unwrap()).unwrap()),
        Box::new(LowRank::new(n, n.min(2)).unwrap()),
        Box::new(Copula::of(SinhArcsinh, n, n.min(2)).unwrap()),
        Box::new(Atoms::new(n, 2).unwrap()),
        Box::new(Hierarchical::new(PlanarFlow::new(2, 1).unwrap(), LinearMap::new(n, 2)).unwrap()),
        Box::new(
            Hierarchical::new(
                Gaussian::new(1, Covariance::Diagonal).unwrap(),
                GaussianProcessMap::new(n, 1, 3).unwrap(),
            )
            .unwrap(),
        ),
    ]
}

/// Every recursive approximation that fits the likelihood and the prior, with the analytic ones fixed at `theta`.
pub fn recursives(likelihood: &dyn Likelihood, prior: &dyn Prior, theta: &[f64]) -> Vec<Box<dyn Recursive>> {
    let frozen = |inner: Box<dyn Recursive>| Box::new(Frozen { inner, theta: theta.to_vec() });
    let mut all: Vec<Box<dyn Recursive>> =
        vec![Box::new(SameAsPrior), Box::new(HierarchicalRecursive::new(likelihood, prior))];
    if prior.components_len() > 1 {
        all.push(frozen(Box::new(Responsibilities)));
    }
    for space in [Space::Noise, Space::Lambda] {
        if space == Space::Lambda && !prior.has_density() {
            continue;
        }
        for layers_len in [0, 3] {
            all.push(Box::new(InverseFlow::new(likelihood, prior.components_len(), layers_len, space)));
        }
        for fit in [GaussianFit::Laplace, GaussianFit::ExpectationPropagation] {
            // Some priors have no Gaussians, and some factors have several parameters.
            if let Ok(inner) = MixtureGaussian::new(likelihood, prior, fit, space) {
                all.push(frozen(Box::new(inner)));
            }
        }
    }
    all.retain(|r| r.check(prior, likelihood).is_ok() && (prior.has_density() || r.space() == Space::Noise));
    all
}

/// The default likelihood of these latents, with a prior and a recursive approximation.
pub fn variational(latents: &Latents, prior: Box<dyn Prior>, recursive: Box<dyn Recursive>) -> Variational {
    let likelihood = MeanField::for_latents(latents).expect("a factor for every latent");
    Variational::from_parts(Arc::new(likelihood), prior, recursive).expect("parts that fit")
}
