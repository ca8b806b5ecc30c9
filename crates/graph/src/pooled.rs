//! A tape shared by several threads, each with its own workspace.

use super::tape::{Tape, Workspace};
use std::sync::{Mutex, PoisonError};

/// A tape, and workspaces that can be reused.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) tape: Tape,
    waiting: Mutex<Vec<Workspace>>,
}

impl Pooled {
    pub(super) fn new(tape: Tape) -> Self {
        Self { tape, waiting: Mutex::new(Vec::new()) }
    }

    pub(super) fn take(&self) -> Workspace {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        waiting.unwrap_or_else(|| Workspace::new(&self.tape))
    }

    pub(super) fn give(&self, workspace: Workspace) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}
