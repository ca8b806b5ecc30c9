//! Stands in for CUDA where the program was built without it.

use super::{DeviceStep, check};
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::shape::Shape;
use crate::weights::TermWeights;
use hyperprior_math::single::Lanes;

/// There is none.
#[derive(Debug)]
pub(crate) enum CudaTraining {}

impl CudaTraining {
    pub(crate) fn new(
        _number: usize,
        _corpus: &Corpus,
        shape: &Shape,
        settings: &Settings,
        _terms: &TermWeights,
        _local: &[Lanes],
    ) -> Result<Self> {
        check(settings, shape)?;
        Err(Error::Device { reason: "this program was built without the feature `cuda`".to_owned() })
    }

    pub(crate) fn run_batch(&mut self, _step: &DeviceStep) -> Result<(f64, Vec<Vec<Lanes>>)> {
        match *self {}
    }

    pub(crate) fn download(&mut self, _terms: &mut TermWeights, _local: &mut [Lanes]) -> Result<()> {
        match *self {}
    }
}
