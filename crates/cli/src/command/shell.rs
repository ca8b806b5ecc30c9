//! `hyperprior completions` and `hyperprior man`: shell completions and manual pages.

use crate::error::CliError;
use crate::run_dir::WriteError;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;

/// Print a shell completion script.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hyperprior completions bash > ~/.local/share/bash-completion/completions/hyperprior
  hyperprior completions zsh > ~/.zfunc/_hyperprior
  hyperprior completions fish > ~/.config/fish/completions/hyperprior.fish")]
pub struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    /// Prints the script for a command.
    pub fn run<C: CommandFactory>(self) -> Result<(), CliError> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "hyperprior", &mut text);
        Ok(std::io::stdout().lock().write_all(&text)?)
    }
}

/// Print the manual page, or write one page per command to a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hyperprior man | man -l -
  hyperprior man --out ~/.local/share/man/man1")]
pub struct Man {
    /// Folder for one page per command [default: print the main page]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of a command.
    pub fn run<C: CommandFactory>(self) -> Result<(), CliError> {
        let Some(out) = self.out else {
            let mut text = Vec::new();
            clap_mangen::Man::new(C::command()).render(&mut text)?;
            return Ok(std::io::stdout().lock().write_all(&text)?);
        };
        let unwritable = |reason| WriteError::Folder { path: out.clone(), reason };
        std::fs::create_dir_all(&out).map_err(unwritable)?;
        Ok(clap_mangen::generate_to(C::command(), &out).map_err(unwritable)?)
    }
}
