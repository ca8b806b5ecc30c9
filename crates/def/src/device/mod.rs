//! Where documents are fitted during training: on the processor, or on a GPU.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "without_cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
mod kernels;

pub(crate) use cuda::CudaTraining;

use crate::burst::WordCounts;
use crate::error::{Error, Result};
use crate::local::Method;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::weights::LayerWeights;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where documents are fitted during training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Device {
    /// The processor's cores.
    #[default]
    Cpu,
    /// The GPU with this number, through CUDA.
    Cuda(usize),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        match (text, number) {
            ("cpu", _) => Ok(Self::Cpu),
            ("cuda", _) => Ok(Self::Cuda(0)),
            (_, Some(number)) => Ok(Self::Cuda(number)),
            _ => Err(Error::BadSetting {
                field: "device",
                value: text.to_owned(),
                reason: "use cpu, cuda, or cuda:N for the GPU with the number N",
            }),
        }
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl TryFrom<String> for Device {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// What a minibatch needs beside what is on the device.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "nothing runs on a device"))]
pub(crate) struct DeviceStep<'a> {
    pub(crate) batch: &'a [usize],
    pub(crate) layer_weights: &'a [LayerWeights],
    /// The number of the minibatch, the documents' step size, the share by which the statistics of the weights move, and how sharp
    /// they are.
    pub(crate) step: u64,
    pub(crate) size: f32,
    pub(crate) forgetting: f32,
    pub(crate) sharpness: f32,
}

/// Whether a GPU can train this.
fn check(settings: &Settings, shape: &Shape) -> Result<()> {
    let refuse = |what: &str| Err(Error::Device { reason: format!("{what} cannot be trained on a GPU") });
    if settings.amortize.is_some() {
        return refuse("an inference network");
    }
    if settings.words != WordCounts::Poisson {
        return refuse("negative binomial words");
    }
    if shape.is_continuous() {
        return refuse("a layer of gamma or Gaussian latents");
    }
    // What adds dependence at the end trains as mean-field does.
    let is_mean_field = [0.0, 1.0].iter().all(|done| settings.method.at(*done, false) == Method::MeanField);
    if !is_mean_field || shape.lambda_len() > shape.tiles_len() {
        return refuse(&format!("the method {}", settings.method));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Family, Layer};

    #[test]
    fn devices_are_read_as_they_are_written() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse::<Device>().ok(), Some(device));
        }
        assert!("gpu".parse::<Device>().is_err() && "cuda:x".parse::<Device>().is_err());
    }

    #[test]
    fn what_a_gpu_cannot_train_is_refused_by_name() {
        let of = |settings: Settings| {
            let shape = Shape::with(&settings.layers, settings.method.is_conway_maxwell());
            shape.and_then(|shape| check(&settings, &shape)).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let gamma = vec![Layer { family: Family::Gamma, width: 5 }];
        assert_eq!(of(Settings::default()), "");
        assert_eq!(of(Settings::default().method(Method::MeanField)), "");
        assert!(of(Settings::default().layers(gamma)).contains("gamma"));
        assert!(of(Settings::default().words(WordCounts::NegativeBinomial)).contains("negative binomial"));
        assert!(of(Settings::default().amortize(8)).contains("network"));
        for method in [Method::Mixture(4), Method::Flow(2, 10), Method::ConwayMaxwell] {
            assert!(of(Settings::default().method(method)).contains(&method.to_string()));
        }
    }
}
