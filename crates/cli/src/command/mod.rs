//! The subcommands.

pub mod compare;
pub mod demo;
mod output;
pub mod reproduce;
