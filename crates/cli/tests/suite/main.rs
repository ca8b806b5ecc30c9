//! Tests that run the command, one module for each subject.

mod check;
#[cfg(unix)]
mod checkpoints;
mod command;
mod compare;
mod fit;
mod impossible_data;
mod linear_response;
mod predict;
mod report;
mod reproduce;
mod sbc;
mod support;
mod tables;
mod topics;
mod topics_infer;
