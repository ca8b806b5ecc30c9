//! The subcommands.

pub mod check;
pub mod compare;
mod compare_program;
mod compared;
pub mod demo;
pub mod fit;
mod infer;
pub mod input;
mod output;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod rerun;
pub mod resume;
pub mod shell;
pub mod tables;
pub mod topics;
