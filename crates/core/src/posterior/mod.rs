//! What a fit leaves behind: draws of the model's variables on their own scale, and what they say.
//!
//! | question | here |
//! | --- | --- |
//! | what was drawn, and which of it is wanted | [`Draws`], [`Monitor`] |
//! | where each variable is, and how well that is known | [`summarise`] |
//! | which values of the discrete variables go together | [`top_configurations`], [`strongest_pairs`] |
//! | whether the labels of a mixture mean anything | [`label_switching`] |
//! | whether data of the model look like the data | [`check_predictive`] |
//! | how well it foretells what it has not seen | [`Loo`] |
//! | what spreads and correlations a mean-field fit leaves out | [`linear_response`] |
//! | whether intervals hold what they promise | [`calibration`] |

pub mod calibration;
mod discrete;
mod draws;
mod information;
mod labels;
mod loo;
mod monitor;
mod name;
mod predictive;
mod response;
mod summary;
mod weights;

pub use discrete::{Configuration, Configurations, top_configurations};
pub use draws::{Column, Draws, DrawsError, Kind};
pub use information::{Dependence, Dependences, PairSettings, strongest_pairs};
pub use labels::{LabelSwitching, label_switching, label_switching_among};
pub use loo::{Loo, LooUnit, WAIC_LIMIT, Waic, elpd};
pub use monitor::{Monitor, MonitorError};
pub use name::ElementName;
pub use predictive::{CheckedArray, CheckedStatistic, Statistic, check_predictive};
pub use response::{LinearResponse, PARAMETERS_MAX, ResponseSettings, linear_response};
pub use summary::{PMF_VALUES_MAX, Parameters, Summary, summarise};
pub use weights::Weights;
