//! From a model to draws of its posterior.
//!
//! [`infer`] searches for modes ([`mode_search`]), fits approximations in [whitened](WhitenedModel) coordinates and keeps the best,
//! weights its draws by Pareto-smoothed importance sampling, resamples them, and applies [MCMC moves](mcmc_moves) to each.

mod budget;
mod derived;
mod improved;
mod integrated;
mod long_chains;
mod method;
mod moved_draws;
mod parts;
mod pipeline;
mod posterior;
mod result;
mod settings;
mod stages;
mod tempering;

pub use method::{Method, MethodError};
pub use parts::{LikelihoodPart, PartError, Parts, PriorPart, RecursivePart};
pub use pipeline::infer;
pub use posterior::{Posterior, Source};
pub use result::{
    CandidateSummary, Inferred, MissedMode, MissedTail, MoveSummary, NutsSummary, QuadratureSummary, Restarts,
    SmcSummary, Superchains,
};
pub(crate) use result::{DIVERGENT_MAX, ESS_MEANS, ESS_MIN, RHAT_MAX, SHIFT_MAX, SPREAD_MAX, SUPERCHAINS, ess_min};
pub use settings::{BudgetRecord, Correction, DRAWS_MIN, InferSettings, SIZE_MAX};
pub use stages::ascent::{Starts, ascend};
pub use stages::enumeration::{Enumerated, enumerated};
pub use stages::gaussian_division::STATES_MAX;
pub use stages::gaussian_marginal::{integrated, may_integrate};
pub use stages::integration_summary::{CollapsedSummary, Integrated, IntegrationSummary};
pub use stages::missed_tail::log_marginal;
pub use stages::mode_by_mass::mode_by_mass;
pub use stages::pathfinder::{Mode, ModeSearch, gaussian_at, mode_search};
pub use stages::resample::OVERSAMPLED;
pub(crate) use stages::resample_move::TAIL_DRIFT_MAX;
pub use stages::resample_move::{MoveSchedule, mcmc_moves};
pub use stages::whitened::WhitenedModel;
pub use stages::whitening::Whitening;
