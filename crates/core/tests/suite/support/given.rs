//! A prior and a recursive approximation given by formulas of one draw, for textbook examples.

use hyperprior::Batch;
use hyperprior::math::random::Stream;
use hyperprior::math::scratch::Scratch;
use hyperprior::prior::PriorPass;
use hyperprior::prior::{Density, Prior, Start};
use hyperprior::recursive::RecursivePass;
use hyperprior::recursive::{Cache, Known, Recursive, Space, Surroundings};

type OfLambda = dyn Fn(&[f64]) -> f64 + Send + Sync;
type OfLambdaAndZ = dyn Fn(&[f64], &[f64]) -> f64 + Send + Sync;

fn draw(batch: &Batch, s: usize) -> Vec<f64> {
    (0..batch.columns_len()).map(|i| batch.get(i, s)).collect()
}

/// q(λ) by its log density; λ is passed as noise, so that a test can choose it.
pub struct GivenPrior {
    pub lambda_len: usize,
    pub log_density: Box<OfLambda>,
}

impl std::fmt::Debug for GivenPrior {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("GivenPrior")
    }
}

impl Prior for GivenPrior {
    fn name(&self) -> String {
        "given".to_owned()
    }

    fn lambda_len(&self) -> usize {
        self.lambda_len
    }

    fn parameters_len(&self) -> usize {
        0
    }

    fn transform(&self, pass: PriorPass, lambda: &mut Batch, log_q: &mut [f64], scratch: &mut Scratch) {
        let PriorPass { theta, eps, density, .. } = pass;
        lambda.copy_from(eps);
        if density == Density::Whole {
            self.log_density(theta, lambda, log_q, scratch);
        }
    }

    fn pullback(
        &self,
        _pass: PriorPass,
        _lambda: &Batch,
        _d_lambda: &Batch,
        _d_log_q: &[f64],
        _d_theta: &mut [f64],
        _scratch: &mut Scratch,
    ) {
    }

    fn log_density(&self, _theta: &[f64], lambda: &Batch, out: &mut [f64], _scratch: &mut Scratch) {
        for (s, out) in out.iter_mut().enumerate() {
            *out = (self.log_density)(&draw(lambda, s));
        }
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _theta: &mut [f64]) {}
}

/// r(λ | z) by its log density; only the bound can be computed.
pub struct GivenRecursive(pub Box<OfLambdaAndZ>);

impl std::fmt::Debug for GivenRecursive {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("GivenRecursive")
    }
}

impl Recursive for GivenRecursive {
    fn name(&self) -> String {
        "given".to_owned()
    }

    fn space(&self) -> Space {
        Space::Lambda
    }

    fn parameters_len(&self) -> usize {
        0
    }

    fn is_local(&self) -> bool {
        false
    }

    fn prepare(&self, _at: Surroundings, _x: &Batch, z: &Batch, prepared: &mut Cache, _scratch: &mut Scratch) {
        prepared.reserve(1)[0].copy_from(z);
    }

    fn forward(
        &self,
        _at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        _cache: &mut Cache,
        _scratch: &mut Scratch,
    ) {
        for (s, out) in out.iter_mut().enumerate() {
            *out = (self.0)(&draw(x, s), &draw(&prepared.batches[0], s));
        }
    }

    fn local(&self, _at: Surroundings, _i: usize, _known: Known, _out: &mut [f64]) {
        unreachable!("only the bound is computed");
    }

    fn conditional(&self, _pass: RecursivePass, _i: usize, _values: &[f64], _out: &mut Batch, _scratch: &mut Scratch) {
        unreachable!("only the bound is computed");
    }

    fn pullback(
        &self,
        _pass: RecursivePass,
        _d_log_r: &[f64],
        _d_x: &mut Batch,
        _d_z: &mut Batch,
        _d_phi: &mut [f64],
        _scratch: &mut Scratch,
    ) {
        unreachable!("only the bound is computed");
    }

    fn sample(
        &self,
        _at: Surroundings,
        _prepared: &Cache,
        _streams: &mut [Stream],
        _x: &mut Batch,
        _components: &mut [usize],
        _scratch: &mut Scratch,
    ) {
        unreachable!("only the bound is computed");
    }

    fn initialize(&self, _start: &Start, _rng: &mut Stream, _phi: &mut [f64]) {}
}
