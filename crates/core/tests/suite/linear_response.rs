//! Linear response compared with closed forms and with the change of the mean-field optimum for a tilted target.

use hyperprior::likelihood::{Factor, MeanField};
use hyperprior::model::{Conditionals, Gradient, Latents, Model, Support};
use hyperprior::posterior::{LinearResponseSettings, linear_response};
use hyperprior::prior::{Covariance, Gaussian};
use hyperprior::recursive::SameAsPrior;
use hyperprior::{Batch, Error, Result, Variational};
use hyperprior_math::family::{Bernoulli, Normal};
use hyperprior_math::special::sigmoid;

fn own(z: &Batch) -> Result<Batch> {
    Ok(z.clone())
}

/// N(m, Λ⁻¹).
struct Correlated {
    latents: Latents,
    mean: [f64; 3],
}

const PRECISION: [[f64; 3]; 3] = [[4.0, 1.9, -0.5], [1.9, 1.5, 0.2], [-0.5, 0.2, 9.0]];

impl Model for Correlated {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let x = [0, 1, 2].map(|i| z.get(i, s) - self.mean[i]);
            *out = -0.5 * (0..9).map(|e| x[e / 3] * PRECISION[e / 3][e % 3] * x[e % 3]).sum::<f64>();
        }
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for Correlated {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.log_joint(z, out)?;
        for s in 0..out.len() {
            for i in 0..3 {
                let d: f64 = (0..3).map(|j| PRECISION[i][j] * (z.get(j, s) - self.mean[j])).sum();
                d_z.set(i, s, -d);
            }
        }
        Ok(())
    }
}

/// The inverse of a 3 × 3 matrix, by cofactors.
fn inverse(m: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let minor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| minor(j, i) / determinant))
}

fn correlated() -> Result<(Correlated, Variational, Vec<f64>)> {
    let model = Correlated { latents: Latents::new().vector("z", 3, Support::Real)?, mean: [1.0, -2.0, 0.3] };
    let likelihood = MeanField::for_latents(model.latents())?;
    let q = Variational::new(likelihood, Gaussian::new(3, Covariance::Diagonal)?, SameAsPrior)?;
    // The optimum has the exact means, and the conditional variances 1 / Λ_ii.
    let theta = model.mean.into_iter().chain([0, 1, 2].map(|i| -0.5 * PRECISION[i][i].ln())).collect();
    Ok((model, q, theta))
}

#[test]
fn linear_response_recovers_the_covariance_of_a_gaussian() -> Result<()> {
    let (model, q, theta) = correlated()?;
    let response = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &own)?;
    let exact = inverse(PRECISION);
    for i in 0..3 {
        let mean_field = (1.0 / PRECISION[i][i]).sqrt();
        for j in 0..3 {
            let found = response.covariance[i * 3 + j];
            assert!((found - exact[i][j]).abs() < 1e-6, "{i}, {j}: {found} for {}", exact[i][j]);
        }
        assert!((response.means[i] - model.mean[i]).abs() < 1e-9);
        assert!(response.sd(i) > 1.001 * mean_field);
    }
    assert!(response.sd(0) > 1.5 * (1.0 / PRECISION[0][0]).sqrt(), "the test needs a strong correlation");
    Ok(())
}

/// Quantities may be any functions of the latents, such as sums.
#[test]
fn quantities_may_be_functions_of_several_latents() -> Result<()> {
    let (model, q, theta) = correlated()?;
    let sum = |z: &Batch| {
        let column = z.column(0).iter().zip(z.column(1)).map(|(a, b)| 2.0 * a + b).collect();
        Ok(Batch::from_columns(column, z.draws_len()))
    };
    let response = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &sum)?;
    let c = inverse(PRECISION);
    let exact = 4.0 * c[0][0] + 4.0 * c[0][1] + c[1][1];
    assert!((response.covariance[0] - exact).abs() < 1e-6, "{} for {exact}", response.covariance[0]);
    Ok(())
}

#[test]
fn away_from_a_maximum_there_is_no_linear_response() -> Result<()> {
    /// A density with a minimum at the approximation.
    struct Valley(Latents);
    impl Model for Valley {
        fn latents(&self) -> &Latents {
            &self.0
        }
        fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
            out.iter_mut().zip(z.column(0)).for_each(|(out, x)| *out = 2.0 * x * x - x.powi(4));
            Ok(())
        }
        fn gradient(&self) -> Option<&dyn Gradient> {
            Some(self)
        }
    }
    impl Gradient for Valley {
        fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
            self.log_joint(z, out)?;
            for s in 0..out.len() {
                let x = z.get(0, s);
                d_z.set(0, s, 4.0 * x - 4.0 * x.powi(3));
            }
            Ok(())
        }
    }
    let model = Valley(Latents::new().scalar("x", Support::Real)?);
    let q = Variational::new(
        MeanField::for_latents(model.latents())?,
        Gaussian::new(1, Covariance::Diagonal)?,
        SameAsPrior,
    )?;
    let found = linear_response(&model, &q, &[0.0, -2.0], &LinearResponseSettings::default(), &own);
    assert!(matches!(found, Err(Error::NotAnOptimum { parameters: 2 })), "{found:?}");
    Ok(())
}

/// Spins with fields and couplings: log p = h·z + Σ_{i<j} J_ij z_i z_j.
struct Spins {
    latents: Latents,
    field: Vec<f64>,
}

const COUPLING: [[f64; 4]; 4] =
    [[0.0, 1.1, -0.6, 0.3], [1.1, 0.0, 0.8, -0.9], [-0.6, 0.8, 0.0, 0.5], [0.3, -0.9, 0.5, 0.0]];

impl Spins {
    fn around(&self, i: usize, at: &dyn Fn(usize) -> f64) -> f64 {
        self.field[i] + (0..4).map(|j| COUPLING[i][j] * at(j)).sum::<f64>()
    }

    /// The means of the mean-field optimum, by its fixed-point equations.
    fn optimum(&self) -> Vec<f64> {
        let mut mean = vec![0.5; 4];
        for _ in 0..10_000 {
            for i in 0..4 {
                mean[i] = sigmoid(self.around(i, &|j| mean[j]));
            }
        }
        mean
    }
}

impl Model for Spins {
    fn latents(&self) -> &Latents {
        &self.latents
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            // Each pair is counted twice.
            let one = |i: usize| z.get(i, s) * 0.5 * (self.field[i] + self.around(i, &|j| z.get(j, s)));
            *out = (0..4).map(one).sum();
        }
        Ok(())
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }
}

impl Conditionals for Spins {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        for s in 0..z.draws_len() {
            let around = self.around(i, &|j| z.get(j, s));
            values.iter().enumerate().for_each(|(v, x)| out.set(v, s, x * around));
        }
        Ok(())
    }
}

/// The covariance of z_i and z_j is how the mean of z_i moves with the field at j.
#[test]
fn the_covariance_of_spins_is_the_derivative_of_their_fixed_points() -> Result<()> {
    let latents = Latents::new().vector("z", 4, Support::BINARY)?;
    let field = vec![0.2, -0.4, 0.1, -0.3];
    let model = Spins { latents: latents.clone(), field: field.clone() };
    let q = Variational::mean_field(MeanField::for_latents(&latents)?);
    let theta: Vec<f64> = model.optimum().into_iter().map(|m| (m / (1.0 - m)).ln()).collect();
    let response = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &own)?;
    let step = 1e-4;
    let mut largest = 0.0_f64;
    for j in 0..4 {
        let tilted = |by: f64| {
            let mut field = field.clone();
            field[j] += by;
            Spins { latents: latents.clone(), field }.optimum()
        };
        let (up, down) = (tilted(step), tilted(-step));
        for i in 0..4 {
            let exact = (up[i] - down[i]) / (2.0 * step);
            let found = response.covariance[i * 4 + j];
            assert!((found - exact).abs() < 1e-6, "{i}, {j}: {found} for {exact}");
            if i != j {
                largest = largest.max(exact.abs());
            }
        }
    }
    assert!(largest > 0.05, "the test needs dependence");
    Ok(())
}

/// x and a binary z: log p = −τ x² / 2 + a z + b x z.
struct Mixed(Latents);

const TAU: f64 = 2.0;
const A: f64 = -0.3;
const B: f64 = 1.2;

impl Model for Mixed {
    fn latents(&self) -> &Latents {
        &self.0
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        for (s, out) in out.iter_mut().enumerate() {
            let (x, z) = (z.get(0, s), z.get(1, s));
            *out = -0.5 * TAU * x * x + A * z + B * x * z;
        }
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        Some(self)
    }
}

impl Gradient for Mixed {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        self.log_joint(z, out)?;
        (0..out.len()).for_each(|s| d_z.set(0, s, B * z.get(1, s) - TAU * z.get(0, s)));
        Ok(())
    }
}

impl Conditionals for Mixed {
    fn log_conditional(&self, _: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        for s in 0..z.draws_len() {
            values.iter().enumerate().for_each(|(v, value)| out.set(v, s, value * (A + B * z.get(0, s))));
        }
        Ok(())
    }
}

/// The optimum tilted by t x + u z has μ = (b m + t) / τ and m = σ(a + b μ + u), so that with v = m (1 − m) and
/// d = 1 − v b² / τ the covariances are 1/(τ d), b v/(τ d) and v/d.
#[test]
fn a_continuous_and_a_discrete_latent_have_the_exact_covariance() -> Result<()> {
    let model = Mixed(Latents::new().scalar("x", Support::Real)?.scalar("z", Support::BINARY)?);
    let factors = vec![Factor::Family(Box::new(Normal)), Factor::Family(Box::new(Bernoulli))];
    let q = Variational::mean_field(MeanField::new(factors)?);
    let mut m = 0.5;
    for _ in 0..10_000 {
        m = sigmoid(A + B * B * m / TAU);
    }
    let theta = [B * m / TAU, -0.5 * TAU.ln(), (m / (1.0 - m)).ln()];
    let response = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &own)?;
    let v = m * (1.0 - m);
    let d = 1.0 - v * B * B / TAU;
    let exact = [1.0 / (TAU * d), B * v / (TAU * d), B * v / (TAU * d), v / d];
    for (found, exact) in response.covariance.iter().zip(exact) {
        // x and z are drawn independently, so only the frequencies of z are random, and the curvature does not depend on them.
        assert!((found - exact).abs() < 1e-6, "{found} for {exact}");
    }
    Ok(())
}

#[test]
fn approximations_other_than_mean_field_are_refused() -> Result<()> {
    let model = Mixed(Latents::new().scalar("x", Support::Real)?.scalar("z", Support::BINARY)?);
    let likelihood = MeanField::for_latents(model.latents())?;
    let q = Variational::new(likelihood, Gaussian::new(2, Covariance::Full)?, SameAsPrior)?;
    let theta = vec![0.0; q.theta_len()];
    let found = linear_response(&model, &q, &theta, &LinearResponseSettings::default(), &own);
    let error = found.map(|_| ()).expect_err("a hierarchical model").to_string();
    assert!(error.contains("it is for mean-field"), "{error}");
    Ok(())
}
