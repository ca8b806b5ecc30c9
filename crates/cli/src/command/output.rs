//! What every command that fits methods is asked about its seed and its output.

use clap::Args;
use std::path::PathBuf;

/// The seed, and where results go.
#[derive(Debug, Args)]
pub struct Output {
    /// The random seed
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    pub seed: u64,
    /// Where the pictures go
    #[arg(long, default_value = "hyperprior-pictures", value_name = "DIR")]
    pub out: PathBuf,
    /// Draw no pictures
    #[arg(long)]
    pub no_pictures: bool,
    /// Print JSON on standard output, and nothing else there
    #[arg(long)]
    pub json: bool,
    /// No progress bar, no messages
    #[arg(long)]
    pub quiet: bool,
}
