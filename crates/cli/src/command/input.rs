//! A model file with its data: what `fit` and `check` are given, read and compiled.

use crate::error::CliError;
use crate::names;
use clap::{Args, ValueEnum};
use hyperprior::model::graph::{Eliminate, Graph};
use hyperprior::posterior::{ElementName, Monitor};
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Compiled, Data, Dialect, Options, compile, render};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The model and what it is given.
#[derive(Debug, Args)]
pub struct Input {
    /// The model, in BUGS
    pub model: PathBuf,
    /// Its data, as JSON, as an R dump or as CSV (by the file's ending: .json, .R, .csv); may be given several times
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
    /// Starting values, as JSON or as an R dump
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,
    /// Whose reading of the language to follow where two exist
    #[arg(long, value_enum, default_value_t, value_name = "WHOSE")]
    pub dialect: Reading,
    /// Which discrete latents are summed out exactly: auto, none, or names separated by commas
    #[arg(long, default_value = "auto", value_name = "WHICH")]
    pub eliminate: String,
}

/// Whose reading of the language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reading {
    /// JAGS 4
    #[default]
    Jags,
    /// OpenBUGS
    Openbugs,
}

impl Input {
    /// What the model is called: its file's name, or its folder's where the file's says nothing.
    pub fn name(&self) -> String {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let own = stem(&self.model).unwrap_or_default();
        let folder = self.model.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        match folder {
            Some(folder) if own == "model" => folder,
            _ => own,
        }
    }

    /// Reads and compiles. What is worth knowing goes to standard error, unless `quiet`.
    pub fn compile(&self, quiet: bool) -> Result<Compiled, CliError> {
        let source = text(&self.model)?;
        let mut data = Data::default();
        for path in &self.data {
            let own = numbers(path)?;
            data.merge(own).map_err(|error| CliError::Data { path: path.clone(), error })?;
        }
        let init = self.init.as_deref().map(numbers).transpose()?;
        let dialect = match self.dialect {
            Reading::Jags => Dialect::Jags,
            Reading::Openbugs => Dialect::OpenBugs,
        };
        let shown = self.model.display().to_string();
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if !quiet {
            let of_init = init.iter().flat_map(|init| &init.notes);
            data.notes.iter().chain(of_init).for_each(|note| eprintln!("Note: {note}"));
        }
        match compile(&source, &self.name(), &data, &Options { dialect, init }) {
            Ok(compiled) => {
                if !quiet && !compiled.warnings.is_empty() {
                    eprint!("{}", render(&compiled.warnings, &shown, &source, colour));
                }
                Ok(compiled)
            }
            Err(diagnostics) => Err(CliError::Program(render(&diagnostics, &shown, &source, colour))),
        }
    }

    /// What is to be summed out of a graph.
    pub fn eliminate(&self, graph: &Graph) -> Result<Eliminate, CliError> {
        match self.eliminate.as_str() {
            "auto" => return Ok(Eliminate::Auto),
            "none" => return Ok(Eliminate::Nothing),
            _ => {}
        }
        let wanted: Vec<String> = Monitor::parse_list(&self.eliminate)
            .map_err(|e| CliError::Usage(format!("--eliminate: {e}")))?
            .iter()
            .map(ToString::to_string)
            .collect();
        for name in &wanted {
            if !graph.latent_names().any(|latent| latent == name || ElementName::parse(latent).array == name) {
                return Err(CliError::Usage(format!(
                    "--eliminate: there is no latent `{name}`; there are: {}",
                    names::line(graph.latent_names())
                )));
            }
        }
        Ok(Eliminate::Named(wanted))
    }
}

fn text(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|reason| CliError::Read { path: path.to_owned(), reason })
}

fn numbers(path: &Path) -> Result<Data, CliError> {
    let wrong = |error| CliError::Data { path: path.to_owned(), error };
    // A file that is not there is not there, whatever its ending.
    let text = text(path)?;
    read(&text, Format::of_path(path).map_err(wrong)?).map_err(wrong)
}
