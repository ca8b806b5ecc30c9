//! The program of a tape: its runs, the rows that they read and write, and what it adds up.

use crate::operation::{Binary, Ternary, Unary};
use std::ops::Range;

/// What the members of a run compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Weighted sums of the same rows.
    Shared {
        terms_len: u32,
    },
    /// Weighted sums, each of its own rows.
    Linear {
        terms_len: u32,
    },
    /// Weighted sums of products of two rows and of rows, each of its own ones; the products may also be in the total. Only terminals are.
    Products {
        products_len: u32,
        terms_len: u32,
    },
    Unary(Unary),
    Binary(Binary),
    Ternary(Ternary),
    /// One of the same rows, by a random index.
    Select {
        choices_len: u32,
    },
    /// If it `keeps_shares`, the rows of the terms, which nothing else reads, become each term's share of the sum.
    LogSumExp {
        terms_len: u32,
        keeps_shares: bool,
    },
    /// Logarithms of sums of products of the exponentials of the same rows with those of others, which have rows too. After the run come
    /// one row for each shared exponential and one for each sum's inverse.
    LogProduct {
        terms_len: u32,
    },
}

/// A run of like operations.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(super) kind: Kind,
    /// The rows that it writes.
    pub(super) rows: Range<u32>,
    /// Offset of its operands.
    pub(super) operands: u32,
    /// Offset of its weights: for sums, each member's weights and then its constant.
    pub(super) weights: u32,
}

impl Run {
    /// How many rows after its own it needs.
    pub(super) fn further_len(&self) -> u32 {
        match self.kind {
            Kind::LogProduct { terms_len } => terms_len + self.rows.len() as u32,
            _ => 0,
        }
    }
}

/// A program that evaluates a set of expressions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    pub(super) rows_len: u32,
    pub(super) constants: Vec<(u32, f64)>,
    /// The rows of latents, with their columns.
    pub(super) inputs: Vec<(u32, u32)>,
    pub(super) runs: Vec<Run>,
    /// The first run that depends on the varying latent.
    pub(super) varying: usize,
    pub(super) operands: Vec<u32>,
    pub(super) weights: Vec<f64>,
    /// The rows that are added up, with their weights.
    pub(super) roots: Vec<(u32, f64)>,
    /// Further summands, which have no rows.
    pub(super) terminals: Vec<Terminal>,
    /// A constant added to the total.
    pub(super) offset: f64,
    /// The rows of the outputs.
    pub(super) outputs: Vec<u32>,
}

impl Tape {
    /// How many rows a workspace has.
    pub(crate) fn rows_len(&self) -> usize {
        self.rows_len as usize
    }

    /// The approximate cost of evaluating one draw, in additions; with `varying`, only of what depends on the varying latent.
    pub(crate) fn work(&self, varying: bool) -> usize {
        let member = |kind: Kind| match kind {
            Kind::Shared { terms_len } | Kind::Linear { terms_len } => 1 + terms_len as usize / 2,
            Kind::Products { products_len, terms_len } => (1 + 2 * products_len + terms_len / 2) as usize,
            Kind::Unary(Unary::Square | Unary::Abs | Unary::Step | Unary::IsZero) => 1,
            Kind::Unary(Unary::Exp | Unary::Log | Unary::Sigmoid | Unary::Softplus | Unary::Reciprocal) => 6,
            // These are not vectorised.
            Kind::Unary(_) | Kind::Binary(Binary::XLogY | Binary::Power) => 30,
            // Nor are these: series, continued fractions and quadrature.
            Kind::Ternary(Ternary::LogBetaBelow) => 1500,
            Kind::Binary(Binary::LogPoissonExcess) => 8000,
            Kind::Binary(Binary::LogGammaBelow | Binary::LogGammaAbove) => 20_000,
            Kind::Binary(_) | Kind::Ternary(_) => 2,
            Kind::Select { .. } => 4,
            Kind::LogProduct { terms_len } => 14 + 2 * terms_len as usize,
            Kind::LogSumExp { terms_len, .. } => 6 * terms_len as usize,
        };
        let first = if varying { self.varying } else { 0 };
        let runs: usize = self.runs[first..].iter().map(|run| run.rows.len() * member(run.kind)).sum();
        runs + self.terminals.iter().map(Terminal::work).sum::<usize>()
    }

    /// How many runs there are.
    pub(crate) fn runs_len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn operands_of(&self, run: &Run) -> &[u32] {
        &self.operands[run.operands as usize..]
    }

    pub(super) fn weights_of(&self, run: &Run) -> &[f64] {
        &self.weights[run.weights as usize..]
    }
}

/// The same function of like sums, each member with a weight in the total.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// The kind of the sums.
    pub(super) kind: Kind,
    pub(super) f: Unary,
    /// Offsets of the sums' operands and weights.
    pub(super) operands: u32,
    pub(super) weights: u32,
    /// The members' weights in the total.
    pub(super) roots: Vec<f64>,
}

impl Terminal {
    /// The approximate cost of evaluating one draw, in additions.
    fn work(&self) -> usize {
        let work = match self.kind {
            Kind::Shared { terms_len } | Kind::Linear { terms_len } => terms_len as usize / 2,
            Kind::Products { products_len, terms_len } => (2 * products_len + terms_len / 2) as usize,
            _ => 0,
        };
        self.roots.len() * (8 + work)
    }
}
