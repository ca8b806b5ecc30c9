//! The seed and output options that the studies share.

use clap::Args;
use std::path::PathBuf;

/// The seed and the output.
#[derive(Debug, Args)]
pub struct Output {
    /// Random seed: same seed, same numbers
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder for the pictures
    #[arg(long, default_value = "hyperprior-pictures", value_name = "DIR")]
    pub out: PathBuf,
    /// Draw no pictures
    #[arg(long)]
    pub no_pictures: bool,
    /// Print JSON to standard output, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Show no progress bar and no messages
    #[arg(long)]
    pub quiet: bool,
}
