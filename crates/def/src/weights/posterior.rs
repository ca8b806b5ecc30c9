//! The kinds of approximate posterior that a weight can have.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The approximate posterior of a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightPosterior {
    /// A gamma distribution for the words' weights, a Gaussian for those between layers.
    #[default]
    Gamma,
    /// A log-normal distribution for the words' weights, a Gaussian for those between layers.
    LogNormal,
    /// A point estimate.
    Point,
}

impl FromStr for WeightPosterior {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "gamma" => Ok(Self::Gamma),
            "log-normal" => Ok(Self::LogNormal),
            "point" => Ok(Self::Point),
            _ => Err(Error::BadSetting {
                field: "weights",
                value: text.to_owned(),
                reason: "use gamma, log-normal or point",
            }),
        }
    }
}

impl fmt::Display for WeightPosterior {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Gamma => "gamma",
            Self::LogNormal => "log-normal",
            Self::Point => "point",
        })
    }
}
