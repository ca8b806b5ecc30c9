//! What the passes of the lowering share: the arrays, the graph's builder, the instances of relations, and the reports.

use super::array::ArrayState;
use super::ir::{Block, Relation};
use crate::diagnostic::Diagnostic;
use crate::syntax::{Dialect, Span};
use hyperprior::model::graph::{Expr, GraphBuilder};
use std::collections::{HashMap, HashSet};

/// Something cannot be lowered; why has been reported, here or where it began.
#[derive(Debug)]
pub(super) struct Failed;
pub(super) type Lowered<T> = Result<T, Failed>;

/// More elements or steps of loops than this is a slip of the pen, and would take all memory.
pub(super) const LIMIT: usize = 20_000_000;

/// The values of the counters, and the relation that they are for.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub relation: Option<usize>,
    pub counters: Vec<i64>,
}

/// A relation at given values of its counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instance {
    pub relation: u32,
    /// Where its counters begin in the common store.
    pub counters: u32,
}

/// How far an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    New,
    /// It waits for what it depends on.
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
    /// Elements of the OpenBUGS dialect that are defined by value beside their distribution: which instance does it.
    pub transforms: HashMap<(usize, usize), u32>,
    pub transformed: HashMap<(usize, usize), Expr>,
    /// The counters of the loops that are being unrolled.
    pub loops: Vec<&'a str>,
    pub diagnostics: Vec<Diagnostic>,
    reported: HashSet<(Span, &'static str)>,
    /// Whether loops are still being unrolled, when what is given is known, and nothing else.
    pub unrolling: bool,
    /// Whether failures are kept to itself: something is only tried.
    pub quiet: bool,
    /// Whether deterministic elements get their names in the graph.
    pub naming: bool,
    pub observed: usize,
    pub latent: usize,
    /// Elements that have a distribution and are observed, by array and place.
    pub observations: Vec<(usize, usize)>,
    /// The file and the line of each relation; empty where messages need none.
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

    /// Reports a failure of one kind at one place, once: a loop would repeat it a thousand times.
    pub fn fail(&mut self, kind: &'static str, frame: &Frame, diagnostic: Diagnostic) -> Failed {
        let fresh = diagnostic.span.is_none_or(|span| self.reported.insert((span, kind)));
        if !self.quiet && fresh {
            let mut diagnostic = diagnostic;
            let counters = self.counters_text(frame);
            if !counters.is_empty() {
                diagnostic.label = match diagnostic.label.as_str() {
                    "" => format!("where {counters}"),
                    label => format!("{label}, where {counters}"),
                };
            }
            self.diagnostics.push(diagnostic);
        } else if self.quiet
            && fresh
            && let Some(span) = diagnostic.span
        {
            // Only tried: what was not reported may be reported later.
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
