//! The latents that a few others θ describe, given θ: independent of each other, each with a density on a line, or Gaussian.

use super::conditional_laplace::{Conditional, Parts};
use super::line_density::{LineDensity, LineDistribution};
use hyperprior_math::batch::Batch;
use hyperprior_math::special::{HALF_LN_2_PI, normal_quantile};

/// What is known of the latents other than θ.
pub(super) enum Rest<'a> {
    /// They are independent of each other given θ.
    Independent,
    /// They are Gaussian given θ, or nearly so.
    Gaussian { parts: Box<Parts<'a>>, is_exact: bool },
}

/// The latents that are independent given θ: the log density where all others are, and each one's own.
pub(super) struct Lines {
    pub(super) log_p: f64,
    pub(super) densities: Vec<LineDensity>,
}

impl Lines {
    pub(super) fn log_integral(&self) -> f64 {
        self.log_p + self.densities.iter().map(LineDensity::log_integral).sum::<f64>()
    }

    /// Their distributions.
    pub(super) fn given(self) -> Option<Given> {
        let log_integral = self.log_integral();
        let lines = self.densities.iter().map(LineDensity::normalised).collect::<Option<Vec<_>>>()?;
        Some(Given { log_integral, kind: Kind::Independent(lines) })
    }
}

/// The distribution of the latents given θ, and the log of their integral.
pub(super) struct Given {
    pub(super) log_integral: f64,
    kind: Kind,
}

enum Kind {
    Independent(Vec<LineDistribution>),
    Gaussian(Conditional),
}

/// The log integral of a Gaussian by Laplace's method.
pub(super) fn log_integral(one: &Conditional) -> f64 {
    one.log_p + one.factor.len() as f64 * HALF_LN_2_PI - one.factor.log_diagonal()
}

impl From<Conditional> for Given {
    fn from(one: Conditional) -> Self {
        Self { log_integral: log_integral(&one), kind: Kind::Gaussian(one) }
    }
}

impl Given {
    /// Writes a draw for each set of levels, which are between 0 and 1, into the columns `inner`, and takes the log densities from `energy`.
    pub(super) fn draw(&self, inner: &[usize], levels: &[&[f64]], z: &mut Batch, energy: &mut [f64]) {
        match &self.kind {
            Kind::Independent(lines) => {
                for ((i, line), levels) in inner.iter().zip(lines).zip(levels) {
                    for ((x, energy), p) in z.column_mut(*i).iter_mut().zip(energy.iter_mut()).zip(*levels) {
                        let (at, log_q) = line.quantile(*p);
                        *x = at;
                        *energy -= log_q;
                    }
                }
            }
            Kind::Gaussian(one) => {
                let mut e = Batch::zeros(inner.len(), energy.len());
                let constant = inner.len() as f64 * HALF_LN_2_PI - one.factor.log_diagonal();
                energy.iter_mut().for_each(|energy| *energy += constant);
                for (j, levels) in levels.iter().enumerate() {
                    for ((e, energy), p) in e.column_mut(j).iter_mut().zip(energy.iter_mut()).zip(*levels) {
                        *e = normal_quantile(*p);
                        *energy += 0.5 * *e * *e;
                    }
                }
                one.factor.solve_transpose(e.as_mut_slice(), energy.len());
                for (j, i) in inner.iter().enumerate() {
                    z.column_mut(*i).iter_mut().zip(e.column(j)).for_each(|(z, e)| *z = one.point[*i] + e);
                }
            }
        }
    }

    /// The log density at a point.
    pub(super) fn log_density(&self, inner: &[usize], point: &[f64]) -> f64 {
        match &self.kind {
            Kind::Independent(lines) => inner.iter().zip(lines).map(|(i, line)| line.log_density(point[*i])).sum(),
            Kind::Gaussian(one) => {
                let mut away: Vec<f64> = inner.iter().map(|i| point[*i] - one.point[*i]).collect();
                one.factor.transpose_multiply(&mut away);
                let constant = one.factor.log_diagonal() - inner.len() as f64 * HALF_LN_2_PI;
                constant - 0.5 * away.iter().map(|x| x * x).sum::<f64>()
            }
        }
    }
}
