//! The mean-field likelihood: one factor per latent, each from its own family or a point mass.

use super::{Kind, Likelihood};
use crate::error::{Error, Result};
use crate::likelihood::PathwisePass;
use crate::model::{Latents, Support};
use hyperprior_math::batch::Batch;
use hyperprior_math::bijector::Bijector;
use hyperprior_math::family::{self, Family};
use hyperprior_math::random::Stream;
use hyperprior_math::scratch::Scratch;
use std::ops::Range;

/// One latent's factor.
///
/// ```
/// use hyperprior::likelihood::{Factor, Likelihood, MeanField};
/// use hyperprior::math::{bijector::Bijector, family::Bernoulli};
/// let factors = vec![Factor::Family(Box::new(Bernoulli)), Factor::PointMass(Bijector::Exp)];
/// assert_eq!(MeanField::new(factors)?.latents_len(), 2);
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub enum Factor {
    /// q(z_i | λ_i) from a family.
    Family(Box<dyn Family>),
    /// z_i = T(λ_i), with T onto the latent's support.
    PointMass(Bijector),
}

impl Factor {
    /// The default factor of a support: Bernoulli or categorical for small ranges, binomial for long ones from zero, Poisson for
    /// counts, a point mass for continuous latents.
    ///
    /// # Errors
    /// [`Error::BadPart`] for a support that no factor covers.
    pub fn for_support(support: Support) -> Result<Self> {
        let bad = |reason: String| Error::BadPart { part: "the mean-field likelihood".to_owned(), reason };
        let family: Box<dyn Family> = match support {
            Support::BINARY => Box::new(family::Bernoulli),
            Support::Counts => Box::new(family::Poisson),
            Support::Integers { lower, upper } if lower == 0.0 && upper < 64.0 => {
                Box::new(family::Categorical::new(upper as usize + 1).map_err(|e| bad(e.to_string()))?)
            }
            Support::Integers { lower: 0.0, upper } => {
                Box::new(family::Binomial::new(upper as u64).map_err(|e| bad(e.to_string()))?)
            }
            other => {
                return Bijector::for_support(other).map(Self::PointMass).ok_or_else(|| {
                    bad(format!("no factor covers the support {other:?}; whole numbers must start at 0"))
                });
            }
        };
        Ok(Self::Family(family))
    }

    fn parameters_len(&self) -> usize {
        match self {
            Self::Family(family) => family.parameters_len(),
            Self::PointMass(_) => 1,
        }
    }
}

/// q(z | λ) = Π_i q(z_i | λ_i) (`eq:mean-field`), families mixed as the model needs.
///
/// ```
/// use hyperprior::likelihood::{Likelihood, MeanField};
/// use hyperprior::model::{Latents, Support};
/// let latents = Latents::new().vector("z", 2, Support::Counts)?.scalar("mu", Support::Real)?;
/// let q = MeanField::for_latents(&latents)?;
/// assert_eq!(q.factor_name(0), "poisson");
/// assert_eq!(q.lambda_range(2), 0..1); // the point mass comes first
/// # Ok::<(), hyperprior::Error>(())
/// ```
#[derive(Debug)]
pub struct MeanField {
    factors: Vec<Factor>,
    offsets: Vec<usize>,
    lambda_len: usize,
    point_mass_len: usize,
}

impl MeanField {
    /// One factor per latent, in the model's order.
    ///
    /// # Errors
    /// [`Error::EmptyModel`] if there are none.
    pub fn new(factors: Vec<Factor>) -> Result<Self> {
        if factors.is_empty() {
            return Err(Error::EmptyModel);
        }
        let mut offsets = vec![0; factors.len()];
        let mut lambda_len = 0;
        let mut point_mass_len = 0;
        for point_mass in [true, false] {
            for (factor, offset) in factors.iter().zip(&mut offsets) {
                if matches!(factor, Factor::PointMass(_)) == point_mass {
                    *offset = lambda_len;
                    lambda_len += factor.parameters_len();
                }
            }
            if point_mass {
                point_mass_len = lambda_len;
            }
        }
        Ok(Self { factors, offsets, lambda_len, point_mass_len })
    }

    /// The default factor of every latent.
    ///
    /// # Errors
    /// [`Error::EmptyModel`], or [`Error::BadPart`] for a support that no factor covers.
    pub fn for_latents(latents: &Latents) -> Result<Self> {
        Self::new((0..latents.len()).map(|i| Factor::for_support(latents.support(i))).collect::<Result<_>>()?)
    }

    /// The same family for every latent.
    ///
    /// # Errors
    /// [`Error::EmptyModel`] if `len` is 0.
    pub fn of<F: Family + Clone + 'static>(family: F, len: usize) -> Result<Self> {
        Self::new((0..len).map(|_| Factor::Family(Box::new(family.clone()))).collect())
    }
}

impl Likelihood for MeanField {
    fn latents_len(&self) -> usize {
        self.factors.len()
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn point_mass_len(&self) -> usize {
        self.point_mass_len
    }

    fn lambda_range(&self, i: usize) -> Range<usize> {
        self.offsets[i]..self.offsets[i] + self.factors[i].parameters_len()
    }

    fn support(&self, i: usize) -> Support {
        match &self.factors[i] {
            Factor::Family(family) => family.support(),
            Factor::PointMass(_) => Support::Real,
        }
    }

    fn is_within(&self, i: usize, support: &Support) -> bool {
        match &self.factors[i] {
            Factor::Family(family) => family.support().is_within(support),
            Factor::PointMass(bijector) => bijector.is_within(support),
        }
    }

    fn kind(&self, i: usize) -> Kind {
        match &self.factors[i] {
            Factor::PointMass(_) => Kind::PointMass,
            Factor::Family(family) if family.is_pathwise() => Kind::Pathwise,
            Factor::Family(_) => Kind::Sampled,
        }
    }

    fn sample(&self, lambda: &Batch, streams: &mut [Stream], z: &mut Batch, _scratch: &mut Scratch) {
        for (i, factor) in self.factors.iter().enumerate() {
            let lambda = lambda.columns(self.lambda_range(i));
            match factor {
                Factor::Family(family) => family.sample(lambda, streams, z.column_mut(i)),
                Factor::PointMass(bijector) => bijector.forward(lambda, z.column_mut(i)),
            }
        }
    }

    fn log_density(&self, lambda: &Batch, z: &Batch, out: &mut Batch, _scratch: &mut Scratch) {
        for i in 0..self.factors.len() {
            self.log_density_of(i, lambda, z.column(i), out.column_mut(i));
        }
    }

    fn log_density_of(&self, i: usize, lambda: &Batch, z_i: &[f64], out: &mut [f64]) {
        let lambda = lambda.columns(self.lambda_range(i));
        match &self.factors[i] {
            Factor::Family(family) => family.log_density(lambda, z_i, out),
            Factor::PointMass(bijector) => {
                bijector.log_derivative(lambda, out);
                for o in out {
                    *o = -*o;
                }
            }
        }
    }

    fn score(&self, i: usize, lambda: &Batch, z_i: &[f64], signal: &[f64], d_lambda: &mut Batch) {
        if let Factor::Family(family) = &self.factors[i] {
            let range = self.lambda_range(i);
            family.score(lambda.columns(range.clone()), z_i, signal, d_lambda.columns_mut(range));
        }
    }

    fn log_densities_of(&self, i: usize, lambda: &Batch, values: &[f64], z_i: &mut [f64], out: &mut Batch) {
        if let Factor::Family(family) = &self.factors[i] {
            let columns = out.columns_mut(0..values.len());
            family.log_densities(lambda.columns(self.lambda_range(i)), values, z_i, columns);
        }
    }

    fn scores(&self, i: usize, lambda: &Batch, values: &[f64], z_i: &mut [f64], signal: &Batch, d_lambda: &mut Batch) {
        if let Factor::Family(family) = &self.factors[i] {
            let (range, signal) = (self.lambda_range(i), signal.columns(0..values.len()));
            family.scores(lambda.columns(range.clone()), values, z_i, signal, d_lambda.columns_mut(range));
        }
    }

    fn window(&self, i: usize, lambda: &Batch) -> Option<(f64, f64)> {
        match &self.factors[i] {
            Factor::Family(family) => family.window(lambda.columns(self.lambda_range(i))),
            Factor::PointMass(_) => None,
        }
    }

    fn difference_rate(&self, i: usize, lambda: &Batch, out: &mut [f64]) -> bool {
        match &self.factors[i] {
            Factor::Family(family) => family.difference_rate(lambda.columns(self.lambda_range(i)), out),
            Factor::PointMass(_) => false,
        }
    }

    fn pathwise(&self, i: usize, lambda: &Batch, pass: PathwisePass, d_lambda: &mut Batch, scratch: &mut Scratch) {
        let PathwisePass { z: z_i, d_z, weight } = pass;
        let range = self.lambda_range(i);
        let (lambda, d_lambda) = (lambda.columns(range.clone()), d_lambda.columns_mut(range));
        match &self.factors[i] {
            Factor::Family(family) => {
                let mut total = scratch.take(z_i.len());
                family.d_log_density_d_z(lambda, z_i, &mut total);
                for ((t, d), w) in total.iter_mut().zip(d_z).zip(weight) {
                    // An invalid draw has weight 0 and is left out even if its derivative is not finite.
                    *t = if *w == 0.0 { 0.0 } else { d - w * *t };
                }
                family.pathwise(lambda, z_i, &total, d_lambda);
                scratch.give(total);
            }
            Factor::PointMass(bijector) => bijector.pullback(lambda, d_z, weight, d_lambda),
        }
    }

    fn d_log_density_d_z(&self, i: usize, lambda: &Batch, z_i: &[f64], out: &mut [f64]) {
        if let Factor::Family(family) = &self.factors[i]
            && family.is_pathwise()
        {
            family.d_log_density_d_z(lambda.columns(self.lambda_range(i)), z_i, out);
        }
    }

    fn information(&self, i: usize, lambda: &Batch, out: &mut [f64]) {
        if let Factor::Family(family) = &self.factors[i] {
            family.information(lambda.columns(self.lambda_range(i)), out);
        }
    }

    fn start_at(&self, i: usize, z: f64, out: &mut [f64]) {
        match &self.factors[i] {
            Factor::Family(family) => family.start_at(z, out),
            Factor::PointMass(bijector) => bijector.inverse(&[z], out),
        }
    }

    fn factor_name(&self, i: usize) -> &'static str {
        match &self.factors[i] {
            Factor::Family(family) => family.name(),
            Factor::PointMass(_) => "point mass",
        }
    }
}
