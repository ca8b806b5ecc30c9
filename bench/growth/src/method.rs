//! The methods whose growth is measured, all over the same Poisson factors.

use hyperprior::likelihood::MeanField;
use hyperprior::model::Model;
use hyperprior::prior::{Copula, Covariance, Gaussian, LowRank, PlanarFlow, SinhArcsinh};
use hyperprior::recursive::{InverseFlow, Space};
use hyperprior::{Result, Variational};
use hyperprior_bench_scaling::{Counts, Stepper};

/// The rank of what is of low rank.
const RANK: usize = 2;
/// Layers of the prior's flow and of the inverse flow.
const FLOW: usize = 2;
const INVERSE: usize = 10;

/// A method.
#[derive(Clone, Copy)]
pub enum Method {
    /// A point.
    MeanField,
    /// A Gaussian with a full covariance and a factorised r.
    FullRank,
    /// A copula of low rank with sinh-arcsinh marginals and a factorised r.
    Copula,
    /// A planar flow with an inverse flow.
    Flow,
    /// A Gaussian of low rank with a factorised r.
    LowRank,
}

impl Method {
    pub const ALL: [Self; 5] = [Self::MeanField, Self::FullRank, Self::Copula, Self::Flow, Self::LowRank];

    pub fn name(self) -> &'static str {
        match self {
            Self::MeanField => "mean-field",
            Self::FullRank => "full-rank Gaussian",
            Self::Copula => "copula of rank 2",
            Self::Flow => "planar flow of 2, inverse flow of 10",
            Self::LowRank => "Gaussian of rank 2",
        }
    }

    /// What the paper's first table says of the method, time and storage alike; it has no row for low rank.
    pub fn cost(self) -> &'static str {
        match self {
            Self::MeanField => "O(d), BBVI",
            Self::FullRank => "O(d²), DSVI",
            Self::Copula => "O(d²), copula VI",
            Self::Flow => "O(Kd), HVM with a flow",
            Self::LowRank => "not in the table",
        }
    }

    /// The largest size that is measured: a full-rank Gaussian has 5·10⁹ parameters at 10⁵.
    pub fn largest(self) -> usize {
        match self {
            Self::FullRank => 10_000,
            _ => 100_000,
        }
    }

    /// A fit of the method over `d` counts, ready to take steps.
    pub fn stepper(self, d: usize) -> Result<Stepper> {
        let model = Counts::new(d)?;
        let likelihood = MeanField::for_latents(model.latents())?;
        let factorised = InverseFlow::factorised(&likelihood, 1, Space::Noise);
        let q = match self {
            Self::MeanField => Variational::mean_field(likelihood),
            Self::FullRank => Variational::new(likelihood, Gaussian::new(d, Covariance::Full)?, factorised)?,
            Self::Copula => Variational::new(likelihood, Copula::of(SinhArcsinh, d, RANK)?, factorised)?,
            Self::Flow => {
                let inverse = InverseFlow::new(&likelihood, 1, INVERSE, Space::Lambda);
                Variational::new(likelihood, PlanarFlow::new(d, FLOW)?, inverse)?
            }
            Self::LowRank => Variational::new(likelihood, LowRank::new(d, RANK)?, factorised)?,
        };
        Stepper::over(model, q)
    }
}
