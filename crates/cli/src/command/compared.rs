//! What `hyperprior compare` compares: a target with a known answer or a model file, and the methods for each.

use super::fit;
use crate::error::CliError;
use crate::studies::compare::{Method, Target};
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error, ValueEnum};
use hyperprior::infer;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A posterior.
#[derive(Clone, Debug)]
pub enum Subject {
    /// One of the built-in targets.
    Target(Target),
    /// That of a model in BUGS.
    Program(PathBuf),
}

/// A method for one of them.
#[derive(Clone, Debug)]
pub enum Compared {
    /// A row of the paper's table.
    OfTarget(Method),
    /// A method of `fit`.
    OfProgram(infer::Method),
}

/// The methods for model files.
const OF_PROGRAMS: [(&str, &str); 7] = [
    ("mean-field", "For a model file: independent latents"),
    ("full-rank", "For a model file: one Gaussian"),
    ("low-rank:R", "For a model file: a Gaussian of rank R"),
    ("mixture:K", "For a model file: K Gaussians"),
    ("flow:L", "For a model file: a flow of L layers"),
    ("copula:R", "For a model file: a copula of rank R"),
    ("hvm", "For a model file: a joint mixture over the parameters of all latents"),
];

impl Compared {
    /// The methods for targets, if there are no others.
    pub fn of_targets(all: &[Self]) -> Result<Vec<Method>, CliError> {
        let one = |method: &Self| match method {
            Self::OfTarget(method) => Ok(*method),
            Self::OfProgram(method) => {
                let names: Vec<String> = Method::value_variants().iter().map(|method| method.name()).collect();
                let message = format!("{method} is a method for a model file; for a target use {}", names.join(", "));
                Err(CliError::Usage(message))
            }
        };
        all.iter().map(one).collect()
    }

    /// The methods for model files, if there are no others.
    pub fn of_programs(all: &[Self]) -> Result<Vec<infer::Method>, CliError> {
        let one = |method: &Self| match method {
            Self::OfProgram(method) => Ok(*method),
            Self::OfTarget(method) => {
                let names = OF_PROGRAMS.map(|(name, _)| name).join(", ");
                let name = method.name();
                Err(CliError::Usage(format!("{name} is a method for targets; for a model file use {names}")))
            }
        };
        all.iter().map(one).collect()
    }
}

/// Reads the name of a target or of a file.
#[derive(Clone)]
pub struct SubjectParser;

impl TypedValueParser for SubjectParser {
    type Value = Subject;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Subject, Error> {
        let path = Path::new(value);
        if path.is_file() || path.extension().is_some() || path.components().count() > 1 {
            return Ok(Subject::Program(path.to_owned()));
        }
        EnumValueParser::<Target>::new().parse_ref(command, arg, value).map(Subject::Target)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let targets: Vec<PossibleValue> = EnumValueParser::<Target>::new().possible_values()?.collect();
        let file = PossibleValue::new("FILE").help("A model file, in BUGS, with its --data");
        Some(Box::new(targets.into_iter().chain([file])))
    }
}

/// Reads the name of a method: those of targets have no number.
#[derive(Clone)]
pub struct ComparedParser;

impl TypedValueParser for ComparedParser {
    type Value = Compared;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Compared, Error> {
        let of_target = EnumValueParser::<Method>::new().parse_ref(command, arg, value).map(Compared::OfTarget);
        let text = value.to_string_lossy();
        match fit::method(&text) {
            Ok(infer::Method::Auto | infer::Method::Nuts) => Err(Error::raw(
                ErrorKind::InvalidValue,
                format!("{text} is not an approximation to compare; the defaults of `fit` are compared with anyway\n"),
            )
            .with_cmd(command)),
            Ok(method) => Ok(Compared::OfProgram(method)),
            Err(_) => of_target,
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let of_targets: Vec<PossibleValue> = EnumValueParser::<Method>::new().possible_values()?.collect();
        let of_programs = OF_PROGRAMS.map(|(name, help)| PossibleValue::new(name).help(help));
        Some(Box::new(of_targets.into_iter().chain(of_programs)))
    }
}
