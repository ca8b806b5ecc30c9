//! The subcommands.

pub mod demo;
pub mod reproduce;
