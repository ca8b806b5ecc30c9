//! The state shared by the passes of lowering: arrays, graph builder, instances of relations, and diagnostics.

use super::array::ArrayState;
use super::ir::{Block, Relation};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Dialect, Span};
use hyperprior_graph::{Expr, GraphBuilder};
use std::collections::{HashMap, HashSet};

/// Something cannot be lowered; the reason has been reported.
#[derive(Debug)]
pub(super) struct Failed;
pub(super) type Lowered<T> = Result<T, Failed>;

/// The most elements or loop steps. More is a typing error, and would use up all memory.
pub(super) const LIMIT: usize = 20_000_000;

/// The values of the loop counters, and the relation.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub relation: Option<usize>,
    pub counters: Vec<i64>,
}

/// A relation at given values of its counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub relation: u32,
    /// Offset of its counters in the common store.
    pub counters: u32,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    New,
    /// Waiting for its dependencies.
    Open,
    Done,
    Failed,
}

pub(super) struct Engine<'a> {
    pub block: &'a Block,
    pub dialect: Dialect,
    pub arrays: Vec<ArrayState<'a>>,
    pub builder: GraphBuilder,
    pub instances: Vec<Instance>,
    pub counters: Vec<i64>,
    pub states: Vec<State>,
    /// OpenBUGS dialect: the instance that defines the value of an element that also has a distribution.
    pub transforms: HashMap<(usize, usize), u32>,
    pub transformed: HashMap<(usize, usize), Expr>,
    /// Standardised noise that one value is made of, by array and place, until that value is lowered.
    pub noise: HashSet<(usize, usize)>,
    /// The counters of the loops that are being unrolled.
    pub loops: Vec<&'a str>,
    pub diagnostics: Vec<Diagnostic>,
    reported: HashSet<(Span, &'static str)>,
    /// Whether loops are still being unrolled; until then only the data are known.
    pub unrolling: bool,
    /// Whether failures are not reported, because something is only tried.
    pub quiet: bool,
    /// Whether deterministic elements are named in the graph.
    pub naming: bool,
    pub observed: usize,
    pub latent: usize,
    /// Elements that have a distribution and are observed, by array and place.
    pub observations: Vec<(usize, usize)>,
    /// The file and line of each relation; empty if messages do not need them.
    pub places: Vec<String>,
}

impl<'a> Engine<'a> {
    pub fn new(block: &'a Block, arrays: Vec<ArrayState<'a>>, dialect: Dialect, naming: bool) -> Self {
        Self {
            block,
            dialect,
            arrays,
            builder: GraphBuilder::new(),
            instances: Vec::new(),
            counters: Vec::new(),
            states: Vec::new(),
            transforms: HashMap::new(),
            transformed: HashMap::new(),
            noise: HashSet::new(),
            loops: Vec::new(),
            diagnostics: Vec::new(),
            reported: HashSet::new(),
            unrolling: true,
            quiet: false,
            naming,
            observed: 0,
            latent: 0,
            observations: Vec::new(),
            places: Vec::new(),
        }
    }

    pub fn relation(&self, number: usize) -> &'a Relation {
        &self.block.relations[number]
    }

    /// The frame of an instance.
    pub fn frame(&self, instance: u32) -> Frame {
        let Instance { relation, counters } = self.instances[instance as usize];
        let depth = self.relation(relation as usize).counters.len();
        let start = counters as usize;
        Frame { relation: Some(relation as usize), counters: self.counters[start..start + depth].to_vec() }
    }

    /// Reports a failure of one kind at one place once, even if a loop repeats it.
    pub fn fail(&mut self, kind: &'static str, frame: &Frame, diagnostic: Diagnostic) -> Failed {
        let fresh = diagnostic.span.is_none_or(|span| self.reported.insert((span, kind)));
        if !self.quiet && fresh {
            let mut diagnostic = diagnostic;
            let counters = self.counters_text(frame);
            if !counters.is_empty() {
                diagnostic.label = match diagnostic.label.as_str() {
                    "" => format!("for {counters}"),
                    label => format!("{label}, for {counters}"),
                };
            }
            self.diagnostics.push(diagnostic);
        } else if self.quiet
            && fresh
            && let Some(span) = diagnostic.span
        {
            // Only tried, so it may be reported later.
            self.reported.remove(&(span, kind));
        }
        Failed
    }

    /// The counters of a frame: `i = 3, j = 1`.
    fn counters_text(&self, frame: &Frame) -> String {
        let text = |name: &str, value: &i64| format!("{name} = {value}");
        let texts: Vec<String> = match frame.relation {
            Some(relation) => {
                self.relation(relation).counters.iter().zip(&frame.counters).map(|(n, v)| text(n, v)).collect()
            }
            None => self.loops.iter().zip(&frame.counters).map(|(n, v)| text(n, v)).collect(),
        };
        texts.join(", ")
    }
}
