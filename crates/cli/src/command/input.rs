//! The model file and data of `fit`, `predict` and `check`: read and compiled.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::marginalise::{self, MarginaliseError};
use hyperprior_bugs::{Compiled, Data, Diagnostic, Dialect, Options, compile, render};
use hyperprior_graph::{Graph, Marginalise};
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The model file, its data and how to compile them.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
pub struct Input {
    /// Model file, in BUGS
    pub model: PathBuf,
    /// Data file: JSON, R dump or CSV, by its extension (.json, .R, .csv); may be given several times
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
    /// Starting values: JSON or R dump
    #[arg(long, value_name = "FILE")]
    pub init: Option<PathBuf>,
    /// Dialect to follow where JAGS and OpenBUGS differ
    #[arg(long, value_enum, default_value_t, value_name = "DIALECT")]
    pub dialect: Reading,
    /// Discrete latents to marginalise exactly: auto, none, or names separated by commas
    #[arg(long, default_value = "auto", value_name = "WHICH")]
    pub eliminate: String,
}

/// The dialect of BUGS.
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
    /// The model's name: that of its file, or of its folder if the file is called `model`.
    pub fn name(&self) -> String {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let own = stem(&self.model).unwrap_or_default();
        let folder = self.model.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        match folder {
            Some(folder) if own == "model" => folder,
            _ => own,
        }
    }

    /// A checksum of the model, the data and the starting values.
    pub fn fingerprint(&self) -> Result<String, CliError> {
        let mut hasher = crc32fast::Hasher::new();
        for path in std::iter::once(&self.model).chain(&self.data).chain(&self.init) {
            let bytes = std::fs::read(path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
        }
        Ok(format!("{:08x}", hasher.finalize()))
    }

    /// Reads and compiles; also returns the names in the data. Warnings go to standard error, unless `quiet`.
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

    /// Reads the files. Notes go to standard error, unless `quiet`.
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

    /// The dialect of BUGS.
    pub fn dialect(&self) -> Dialect {
        match self.dialect {
            Reading::Jags => Dialect::Jags,
            Reading::Openbugs => Dialect::OpenBugs,
        }
    }

    /// What to marginalise in a graph.
    pub fn marginalise(&self, graph: &Graph) -> Result<Marginalise, CliError> {
        marginalise::parse(&self.eliminate, graph).map_err(|error| match error {
            MarginaliseError::Engine(error) => error.into(),
            error => CliError::Usage(format!("--eliminate: {error}")),
        })
    }
}

/// A model file with its data, read but not compiled.
#[derive(Debug)]
pub struct Read {
    /// The program.
    pub source: String,
    /// Its data.
    pub data: Data,
    /// Compiler options.
    pub options: Options,
    /// The file's name in messages.
    shown: String,
}

impl Read {
    fn render(&self, diagnostics: &[Diagnostic]) -> String {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        render(diagnostics, &self.shown, &self.source, colour)
    }

    /// The diagnostics as an error.
    pub fn refused(&self, diagnostics: &[Diagnostic]) -> CliError {
        CliError::Program(self.render(diagnostics))
    }
}

fn text(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|reason| CliError::Read { path: path.to_owned(), reason })
}

fn numbers(path: &Path) -> Result<Data, CliError> {
    let wrong = |error| CliError::Data { path: path.to_owned(), error };
    // Report a missing file before an unknown extension.
    let text = text(path)?;
    read(&text, Format::of_path(path).map_err(wrong)?).map_err(wrong)
}
