//! The report of a fit, for every kind of model: a BUGS program, a factor graph or a function.

mod fit_report;
mod heavy_tails;
mod predictive;
mod schema;

pub use fit_report::{About, FitReport, Latent, Monitored, Role};
pub use predictive::{LooReport, Predictive, TAIL_MIN};
pub use schema::{
    Elbo, Estimator, Evidence, FitHistory, FitSummary, LinearResponseSummary, LooSummary, Plan, SCHEMA, WaicSummary,
    Worst,
};
