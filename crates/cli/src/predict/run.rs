//! The settings and draws of a run of `fit`, read from its folder.

use crate::command::input::Input;
use crate::error::CliError;
use crate::fit::Config;
use crate::run_dir::read_draws;
use hyperprior::Batch;
use hyperprior::posterior::Draws;
use hyperprior_bugs::predict::{MissingDraws, spread};
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
            .map_err(|e| not(format!("config.toml cannot be read ({e}); name a folder written by `fit --out`")))?;
        let config: Config = toml::from_str(&text).map_err(|e| {
            not(format!("config.toml does not describe a fit ({}); name a folder written by `fit --out`", e.message()))
        })?;
        let file = path.join("draws.parquet");
        if !file.exists() {
            return Err(not("it has no draws.parquet; run `hyperprior fit` with --out again".to_owned()));
        }
        let draws = read_draws(&file)
            .map_err(|e| not(format!("draws.parquet cannot be read ({e}); run `hyperprior fit` with --out again")))?;
        // Weighted draws become unweighted ones.
        let draws = if draws.log_weights().is_some() { draws.resampled() } else { draws };
        Ok(Self { path: path.to_owned(), config, draws })
    }

    /// The model of the run with new data, or with the run's own.
    pub fn input(&self, data: Option<&[PathBuf]>) -> Input {
        let own = self.config.input.clone();
        let data = data.map_or(own.data, <[PathBuf]>::to_vec);
        Input { data, init: None, eliminate: "auto".to_owned(), ..own }
    }

    /// The number of draws.
    pub fn draws_len(&self) -> usize {
        self.draws.len()
    }

    /// `len` draws of these latents, a column each: spread evenly over the run's draws, or repeating them.
    pub fn draws(&self, names: &[String], len: usize) -> Result<Batch, CliError> {
        let places: HashMap<&str, usize> =
            self.draws.names().into_iter().enumerate().map(|(i, name)| (name, i)).collect();
        let column = |name: &str| places.get(name).map(|i| self.draws.column(*i));
        spread(names, (self.draws.len(), len), column).map_err(|MissingDraws { name }| {
            let why = match self.config.monitor.as_str() {
                "" => String::new(),
                monitor => format!(": it was run with --monitor {monitor}"),
            };
            CliError::MissingDraws(format!(
                "the run in `{}` has no draws of `{name}`{why}. Fit again without --monitor or with `{name}` in it, or leave \
                 `{name}` out of --reuse to resimulate it",
                self.path.display()
            ))
        })
    }
}
