//! The subcommands.

pub mod compare;
pub mod demo;
pub mod reproduce;
