//! Plates: models of N data that share global latents, each datum with its own local latents, fitted by minibatches.
//!
//! log p(x, β, z) = log p(β) + Σ_n log p(x_n, z_n | β). The variational model is q(β) Π_n q(z_n), where q(β) and every q(z_n) are
//! [`Variational`](crate::Variational) models, hierarchical or not. The parameters of q(z_n) are rows of a table, or the output
//! of an inference network for datum n ([`Guide`]). A step uses B data drawn without replacement and weights each by N/B, so
//! that its gradient is unbiased for the whole data set.
//!
//! Given a draw of β, a datum is an ordinary [`Model`]; given the data's contributions to each draw, so are the globals.

mod engine;
mod fit;
mod guide;

pub use engine::{PlateEngine, PlateGradient, PlateParameters};
pub use fit::{PlateFit, PlateSettings};
pub use guide::Guide;

use crate::error::Result;
use crate::model::{Conditionals, Gradient, Latents, Model};
use hyperprior_math::batch::Batch;

/// A model with a plate. Draws come in batches: draw s of a datum belongs to draw s of the globals.
///
/// ```
/// use hyperprior::model::{Latents, Support};
/// use hyperprior::plate::{Guide, PlateFit, PlateModel, PlateSettings};
/// use hyperprior::{Batch, Quiet, Variational, likelihood::MeanField, prior::Start};
///
/// /// Each x_n comes from N(0, 1) or N(3, 1); which of the two is its latent.
/// struct Clusters {
///     globals: Latents,
///     locals: Latents,
///     data: Vec<f64>,
/// }
/// impl PlateModel for Clusters {
///     fn globals(&self) -> &Latents {
///         &self.globals
///     }
///     fn locals(&self) -> &Latents {
///         &self.locals
///     }
///     fn data_len(&self) -> usize {
///         self.data.len()
///     }
///     fn log_datum(&self, n: usize, _globals: &Batch, z: &Batch, out: &mut [f64]) -> hyperprior::Result<()> {
///         for (out, z) in out.iter_mut().zip(z.column(0)) {
///             *out = -0.5 * (self.data[n] - 3.0 * z).powi(2);
///         }
///         Ok(())
///     }
/// }
///
/// let locals = Latents::new().scalar("label", Support::BINARY)?;
/// let q = Variational::mean_field(MeanField::for_latents(&locals)?);
/// let model = Clusters { globals: Latents::new(), locals, data: vec![-0.2, 3.4, 2.8] };
/// let settings = PlateSettings::default().epochs(200).step_size(0.1);
/// let start = Start::at(vec![0.0], 1.0);
/// let mut fit = PlateFit::init(&model, (None, &q), &Guide::Table, &settings, (&start, &start))?;
/// let _ = fit.run(&mut Quiet)?;
/// assert!(fit.row(0)[0] < 0.0 && fit.row(1)[0] > 0.0); // the logits of the labels
/// # Ok::<(), hyperprior::Error>(())
/// ```
pub trait PlateModel: Send + Sync {
    /// The latents that all data share; there may be none.
    fn globals(&self) -> &Latents;

    /// The latents that each datum has.
    fn locals(&self) -> &Latents;

    /// N.
    fn data_len(&self) -> usize;

    /// The inputs of an inference network for datum `n`; the same length for every datum.
    fn features(&self, n: usize) -> &[f64] {
        let _ = n;
        &[]
    }

    /// out\[s\] = log p(β_s), and d_globals = its derivative along the continuous globals.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_globals(&self, globals: &Batch, out: &mut [f64], d_globals: &mut Batch) -> Result<()> {
        let _ = (globals, d_globals);
        out.fill(0.0);
        Ok(())
    }

    /// out\[s\] = log p(x_n, z_s | β_s).
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_datum(&self, n: usize, globals: &Batch, z: &Batch, out: &mut [f64]) -> Result<()>;

    /// Whether [`log_datum_gradient`](Self::log_datum_gradient) works; needed for continuous globals and locals.
    fn has_gradient(&self) -> bool {
        false
    }

    /// [`log_datum`](Self::log_datum) and its derivatives along continuous globals and locals.
    ///
    /// # Errors
    /// As [`Model::log_joint`].
    fn log_datum_gradient(
        &self,
        n: usize,
        globals: &Batch,
        z: &Batch,
        out: &mut [f64],
        d_globals: &mut Batch,
        d_z: &mut Batch,
    ) -> Result<()> {
        let _ = (d_globals, d_z);
        self.log_datum(n, globals, z, out)
    }

    /// Whether a datum's discrete latents may be set to other values one at a time; if so, gradients use local expectation. This
    /// costs one [`log_datum`](Self::log_datum) for every value.
    fn has_conditionals(&self) -> bool {
        true
    }
}

/// One datum, given draws of the globals: an ordinary model.
pub(crate) struct Datum<'a> {
    pub(crate) plate: &'a dyn PlateModel,
    pub(crate) n: usize,
    pub(crate) globals: &'a Batch,
}

impl Model for Datum<'_> {
    fn latents(&self) -> &Latents {
        self.plate.locals()
    }

    fn log_joint(&self, z: &Batch, out: &mut [f64]) -> Result<()> {
        self.plate.log_datum(self.n, self.globals, z, out)
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        self.plate.has_gradient().then_some(self)
    }

    fn conditionals(&self) -> Option<&dyn Conditionals> {
        self.plate.has_conditionals().then_some(self)
    }
}

impl Gradient for Datum<'_> {
    fn log_joint_gradient(&self, z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        let mut unused = Batch::zeros(self.globals.columns_len(), z.draws_len());
        self.plate.log_datum_gradient(self.n, self.globals, z, out, &mut unused, d_z)
    }
}

impl Conditionals for Datum<'_> {
    fn log_conditional(&self, i: usize, z: &Batch, values: &[f64], out: &mut Batch) -> Result<()> {
        let mut moved = z.clone();
        for (v, value) in values.iter().enumerate() {
            moved.column_mut(i).fill(*value);
            self.plate.log_datum(self.n, self.globals, &moved, out.column_mut(v))?;
        }
        Ok(())
    }
}

/// The globals, given the data's contributions to each draw.
pub(crate) struct Given<'a> {
    pub(crate) latents: &'a Latents,
    pub(crate) log_joint: &'a [f64],
    pub(crate) d_globals: &'a Batch,
}

impl Model for Given<'_> {
    fn latents(&self) -> &Latents {
        self.latents
    }

    fn log_joint(&self, _z: &Batch, out: &mut [f64]) -> Result<()> {
        out.copy_from_slice(self.log_joint);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Gradient> {
        Some(self)
    }
}

impl Gradient for Given<'_> {
    fn log_joint_gradient(&self, _z: &Batch, out: &mut [f64], d_z: &mut Batch) -> Result<()> {
        out.copy_from_slice(self.log_joint);
        d_z.copy_from(self.d_globals);
        Ok(())
    }
}
