//! Draws of the model's variables on their own scale, and what can be computed from them.
//!
//! | question | here |
//! | --- | --- |
//! | which variables were drawn, and which to report | [`Draws`], [`Monitor`] |
//! | mean, standard deviation and quantiles of each variable | [`summarise`] |
//! | which values of discrete variables occur together | [`top_configurations`], [`strongest_pairs`] |
//! | how well the model predicts new data | [`Loo`], [`elpd`] |
//! | whether replicated data resemble the data | [`PpcArray`] |
//! | standard deviations and correlations that a mean-field fit misses | [`linear_response`] |

mod configurations;
mod draws;
mod linear_response;
mod loo;
mod monitor;
mod mutual_information;
mod name;
mod predictive;
pub mod ranges;
mod summary;
mod weights;

pub use configurations::{Configuration, Configurations, top_configurations};
pub use draws::{Column, Draws, DrawsError, Kind};
pub use linear_response::{LinearResponse, LinearResponseSettings, PARAMETERS_MAX, linear_response};
pub use loo::{Loo, LooUnit, Unit, WAIC_LIMIT, Waic, elpd};
pub use monitor::{Monitor, MonitorError};
pub use mutual_information::{Dependence, Dependences, PairSettings, strongest_pairs};
pub use name::ElementName;
pub use predictive::{PpcArray, PpcStatistic, Statistic, tail_probability};
pub use summary::{PMF_VALUES_MAX, Parameters, Summary, summarise};
pub use weights::Weights;
