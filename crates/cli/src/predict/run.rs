//! What a run of `fit` left behind, read back: its settings and its draws.

use crate::command::input::Input;
use crate::error::CliError;
use crate::fit::Config;
use crate::output::read_draws;
use hyperprior::Batch;
use hyperprior::posterior::Draws;
use hyperprior_bugs::predict::{Lacking, spread};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A run directory.
pub struct FittedRun {
    path: PathBuf,
    config: Config,
    draws: Draws,
}

impl FittedRun {
    /// Reads the settings and the draws.
    pub fn read(path: &Path) -> Result<Self, CliError> {
        let not = |reason: String| CliError::NotAFit { path: path.to_owned(), reason };
        let config = path.join("config.toml");
        let text = std::fs::read_to_string(&config)
            .map_err(|e| not(format!("config.toml cannot be read ({e}); name a folder that `fit --out` wrote")))?;
        let config: Config = toml::from_str(&text).map_err(|e| {
            not(format!("config.toml is not that of a fit ({}); name a folder that `fit --out` wrote", e.message()))
        })?;
        let file = path.join("draws.parquet");
        if !file.exists() {
            return Err(not("it has no draws.parquet; run `hyperprior fit` with --out again".to_owned()));
        }
        let draws = read_draws(&file)
            .map_err(|e| not(format!("draws.parquet cannot be read ({e}); run `hyperprior fit` with --out again")))?;
        // Weighted draws are told as they count.
        let draws = if draws.log_weights().is_some() { draws.resampled() } else { draws };
        Ok(Self { path: path.to_owned(), config, draws })
    }

    /// The model of the run with other data, or with its own.
    pub fn input(&self, data: Option<&[PathBuf]>) -> Input {
        let own = self.config.input.clone();
        let data = data.map_or(own.data, <[PathBuf]>::to_vec);
        Input { data, init: None, eliminate: "auto".to_owned(), ..own }
    }

    /// How many draws the run has.
    pub fn draws_len(&self) -> usize {
        self.draws.len()
    }

    /// So many draws of these latents, a column each: spread evenly over those of the run, or all of them over and over.
    pub fn draws(&self, names: &[String], len: usize) -> Result<Batch, CliError> {
        let places: HashMap<&str, usize> =
            self.draws.names().into_iter().enumerate().map(|(i, name)| (name, i)).collect();
        let column = |name: &str| places.get(name).map(|i| self.draws.column(*i));
        spread(names, (self.draws.len(), len), column).map_err(|Lacking { name }| {
            let why = match self.config.monitor.as_str() {
                "" => String::new(),
                monitor => format!(": it was run with --monitor {monitor}"),
            };
            CliError::Lacking(format!(
                "the run in `{}` kept no draws of `{name}`{why}. Fit again without --monitor, or with `{name}` among its \
                 names; or leave it out of --carry, and it is drawn from its law",
                self.path.display()
            ))
        })
    }
}
