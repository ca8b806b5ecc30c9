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

/// A method by its name, which may mean one for targets, one for model files or both (`mixture`, `copula`).
#[derive(Clone, Debug)]
pub struct Compared {
    name: String,
    /// A row of the paper's table.
    of_target: Option<Method>,
    /// A method of `fit`.
    of_program: Option<infer::Method>,
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
    /// The methods for targets, if each has one.
    pub fn of_targets(all: &[Self]) -> Result<Vec<Method>, CliError> {
        let names = || Method::value_variants().iter().map(|method| method.name()).collect();
        all.iter()
            .map(|method| method.of_target.ok_or_else(|| method.refused("a model file", "a target", names())))
            .collect()
    }

    /// The methods for model files, if each has one.
    pub fn of_programs(all: &[Self]) -> Result<Vec<infer::Method>, CliError> {
        let names = || OF_PROGRAMS.iter().map(|(name, _)| (*name).to_owned()).collect();
        all.iter()
            .map(|method| method.of_program.ok_or_else(|| method.refused("a target", "a model file", names())))
            .collect()
    }

    fn refused(&self, its: &str, other: &str, names: Vec<String>) -> CliError {
        let (name, names) = (&self.name, names.join(", "));
        CliError::Usage(format!("{name} is a method for {its}; for {other} use {names}"))
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
        let of_target = EnumValueParser::<Method>::new().parse_ref(command, arg, value);
        let name = value.to_string_lossy().into_owned();
        let of_program = match fit::method(&name) {
            Ok(infer::Method::Auto | infer::Method::Nuts) => {
                return Err(Error::raw(
                    ErrorKind::InvalidValue,
                    format!(
                        "{name} is not an approximation to compare; the defaults of `fit` are compared with anyway\n"
                    ),
                )
                .with_cmd(command));
            }
            Ok(method) => Some(method),
            Err(_) => None,
        };
        match (of_target, of_program) {
            (Err(error), None) => Err(error),
            (of_target, of_program) => Ok(Compared { name, of_target: of_target.ok(), of_program }),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let of_targets: Vec<PossibleValue> = EnumValueParser::<Method>::new().possible_values()?.collect();
        let of_programs = OF_PROGRAMS.map(|(name, help)| PossibleValue::new(name).help(help));
        Some(Box::new(of_targets.into_iter().chain(of_programs)))
    }
}
