//! A model file with its data: what `fit`, `predict` and `check` are given, read and compiled.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use hyperprior::model::graph::{Eliminate, Graph};
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::eliminate::{EliminateError, eliminate};
use hyperprior_bugs::{Compiled, Data, Diagnostic, Dialect, Options, compile, render};
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The model and what it is given.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

    /// A number that two different models, or two different data, hardly share.
    pub fn fingerprint(&self) -> Result<String, CliError> {
        let mut hasher = crc32fast::Hasher::new();
        for path in std::iter::once(&self.model).chain(&self.data).chain(&self.init) {
            let bytes = std::fs::read(path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
        Ok(format!("{:08x}", hasher.finalize()))
    }

    /// Reads and compiles. What is worth knowing goes to standard error, unless `quiet`. With the names that are
    /// in the data.
    pub fn compile(&self, quiet: bool) -> Result<(Compiled, Vec<String>), CliError> {
        let read = self.read(quiet)?;
        match compile(&read.source, &self.name(), &read.data, &read.options) {
            Ok(compiled) => {
                if !quiet && !compiled.warnings.is_empty() {
                    eprint!("{}", read.render(&compiled.warnings));
                }
                Ok((compiled, read.data.arrays.into_keys().collect()))
            }
            Err(diagnostics) => Err(read.refused(&diagnostics)),
        }
    }

    /// Reads the files. What their readers noted goes to standard error, unless `quiet`.
    pub fn read(&self, quiet: bool) -> Result<Read, CliError> {
        let source = text(&self.model)?;
        let mut data = Data::default();
        for path in &self.data {
            let own = numbers(path)?.read_from(&path.display().to_string());
            data.merge(own).map_err(|error| CliError::Data { path: path.clone(), error })?;
        }
        let init = self.init.as_deref().map(numbers).transpose()?;
        let dialect = self.dialect();
        if !quiet {
            let of_init = init.iter().flat_map(|init| &init.notes);
            data.notes.iter().chain(of_init).for_each(|note| eprintln!("Note: {note}"));
        }
        let shown = self.model.display().to_string();
        let options = Options { dialect, init, file: Some(shown.clone()) };
        Ok(Read { source, data, options, shown })
    }

    /// The model's text.
    pub fn source(&self) -> Result<String, CliError> {
        text(&self.model)
    }

    /// Whose reading of the language.
    pub fn dialect(&self) -> Dialect {
        match self.dialect {
            Reading::Jags => Dialect::Jags,
            Reading::Openbugs => Dialect::OpenBugs,
        }
    }

    /// What is to be summed out of a graph.
    pub fn eliminate(&self, graph: &Graph) -> Result<Eliminate, CliError> {
        eliminate(&self.eliminate, graph).map_err(|error| match error {
            EliminateError::Engine(error) => error.into(),
            error => CliError::Usage(format!("--eliminate: {error}")),
        })
    }
}

/// A model file with its data, read and not yet compiled.
#[derive(Debug)]
pub struct Read {
    /// The program.
    pub source: String,
    /// Its data.
    pub data: Data,
    /// How to compile it.
    pub options: Options,
    /// What the program is called in messages.
    shown: String,
}

impl Read {
    fn render(&self, diagnostics: &[Diagnostic]) -> String {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        render(diagnostics, &self.shown, &self.source, colour)
    }

    /// The error that these diagnostics are.
    pub fn refused(&self, diagnostics: &[Diagnostic]) -> CliError {
        CliError::Program(self.render(diagnostics))
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
