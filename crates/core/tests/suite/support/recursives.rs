//! Recursive approximations that wrap another: fixed in θ, or without locality.

use hyperprior::likelihood::Likelihood;
use hyperprior::math::random::Stream;
use hyperprior::math::scratch::Scratch;
use hyperprior::prior::{Prior, Start};
use hyperprior::recursive::RecursivePass;
use hyperprior::recursive::{Cache, Known, Recursive, Space, Surroundings};
use hyperprior::{Batch, Result};

/// An approximation at a fixed θ, as the gradient treats the analytic ones.
#[derive(Debug)]
pub struct Frozen {
    pub inner: Box<dyn Recursive>,
    pub theta: Vec<f64>,
}

impl Frozen {
    fn at<'a>(&'a self, at: Surroundings<'a>) -> Surroundings<'a> {
        Surroundings { theta: &self.theta, ..at }
    }
}

/// An approximation that does not split into terms of single latents.
#[derive(Debug)]
pub struct Joint(pub Box<dyn Recursive>);

/// Where [`Joint`] stores log r, beyond the batches of the inner approximation.
const LOG_R: usize = 12;

/// Delegates all methods except those given to the inner approximation.
macro_rules! delegate {
    ($type:ty, $inner:ident, $is_local:expr, |$this:ident, $at:ident| $surroundings:expr, $forward:item, $local:item) => {
        impl Recursive for $type {
            fn name(&self) -> String {
                self.$inner().name()
            }
            fn space(&self) -> Space {
                self.$inner().space()
            }
            fn parameters_len(&self) -> usize {
                self.$inner().parameters_len()
            }
            fn is_local(&self) -> bool {
                let f: fn(&dyn Recursive) -> bool = $is_local;
                f(self.$inner())
            }
            fn check(&self, prior: &dyn Prior, likelihood: &dyn Likelihood) -> Result<()> {
                self.$inner().check(prior, likelihood)
            }
            fn prepare(&self, $at: Surroundings, x: &Batch, z: &Batch, prepared: &mut Cache, scratch: &mut Scratch) {
                let $this = self;
                $this.$inner().prepare($surroundings, x, z, prepared, scratch);
            }
            $forward
            $local
            fn conditional(&self, pass: RecursivePass, i: usize, values: &[f64], out: &mut Batch, scratch: &mut Scratch) {
        let RecursivePass { at: $at, x, z, known } = pass;
                let $this = self;
                $this.$inner().conditional(RecursivePass { at: $surroundings, x, z, known }, i, values, out, scratch);
            }
            fn pullback(&self, pass: RecursivePass, d_log_r: &[f64], d_x: &mut Batch, d_z: &mut Batch, d_phi: &mut [f64], scratch: &mut Scratch) {
        let RecursivePass { at: $at, x, z, known } = pass;
                let $this = self;
                $this.$inner().pullback(RecursivePass { at: $surroundings, x, z, known }, d_log_r, d_x, d_z, d_phi, scratch);
            }
            fn sample(
                &self,
                $at: Surroundings,
                prepared: &Cache,
                streams: &mut [Stream],
                x: &mut Batch,
                components: &mut [usize],
                scratch: &mut Scratch,
            ) {
                let $this = self;
                $this.$inner().sample($surroundings, prepared, streams, x, components, scratch);
            }
            fn initialize(&self, start: &Start, rng: &mut Stream, phi: &mut [f64]) {
                self.$inner().initialize(start, rng, phi);
            }
        }
    };
}

impl Frozen {
    fn inner(&self) -> &dyn Recursive {
        &*self.inner
    }
}

delegate!(
    Frozen,
    inner,
    |inner| inner.is_local(),
    |this, at| this.at(at),
    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    ) {
        self.inner.forward(self.at(at), x, prepared, out, cache, scratch);
    },
    fn local(&self, at: Surroundings, i: usize, known: Known, out: &mut [f64]) {
        self.inner.local(self.at(at), i, known, out);
    }
);

impl Joint {
    fn inner(&self) -> &dyn Recursive {
        &*self.0
    }
}

delegate!(
    Joint,
    inner,
    |_| false,
    |_this, at| at,
    fn forward(
        &self,
        at: Surroundings,
        x: &Batch,
        prepared: &Cache,
        out: &mut [f64],
        cache: &mut Cache,
        scratch: &mut Scratch,
    ) {
        self.0.forward(at, x, prepared, out, cache, scratch);
        let log_r = &mut cache.reserve(LOG_R + 1)[LOG_R];
        log_r.reshape(1, out.len());
        log_r.as_mut_slice().copy_from_slice(out);
    },
    fn local(&self, _at: Surroundings, _i: usize, known: Known, out: &mut [f64]) {
        out.copy_from_slice(known.cache.batches[LOG_R].as_slice());
    }
);
