//! The subcommands.

pub mod compare;
pub mod demo;
pub mod fit;
mod input;
mod output;
pub mod reproduce;
