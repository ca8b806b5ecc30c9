//! Scalar expressions, each stored once.
//!
//! Equal expressions are one node, constants are folded, and a few algebraic rules do what a person would do by hand:
//! log(exp x) is x, the log of a logistic is a softplus, sums of sums become one sum with like terms collected. A likelihood of
//! a thousand equal observations then costs one node, and a plate reduces to its sufficient statistics.

use super::operation::{Binary, Ternary, Unary};
use hashbrown::HashTable;
use std::collections::BTreeMap;

/// A scalar expression of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(pub(crate) u32);

/// An interned list of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct List(pub(crate) u32);

/// What an expression is made of. Operands always come first, so the order of the arena is topological.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Constant(f64),
    /// A latent, by number.
    Leaf(u32),
    /// Σ weights · list + constant; the list is sorted and has no constants or repeats.
    Linear {
        list: List,
        weights: u32,
        constant: f64,
    },
    Unary(Unary, Expr),
    Binary(Binary, Expr, Expr),
    Ternary(Ternary, Expr, Expr, Expr),
    /// list\[index − 1\]; NaN if the index is out of range.
    Select {
        index: Expr,
        list: List,
    },
    /// log Σ exp list.
    LogSumExp {
        list: List,
    },
    /// log Σ exp(a + b). Others have the same list of a; the list of b is followed by exp b, which only evaluation reads.
    LogProduct {
        a: List,
        b: List,
    },
}

/// What is known about an expression's values without evaluating it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// ≥ 0 wherever it is defined.
    pub(crate) nonnegative: bool,
    /// > 0 wherever it is defined.
    pub(crate) positive: bool,
    /// An integer.
    pub(crate) whole: bool,
    /// ≤ 1 wherever it is defined.
    pub(crate) at_most_one: bool,
}

/// All expressions of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expressions {
    nodes: Vec<Node>,
    known: Vec<Known>,
    weights: Vec<f64>,
    lists: Vec<(u32, u32)>,
    members: Vec<Expr>,
    index: HashTable<u32>,
    list_index: HashTable<u32>,
    /// The log determinants of matrices that are inverses of others.
    pub(super) log_determinants: BTreeMap<Vec<Expr>, Expr>,
    /// Scratch space for the terms of a sum.
    pub(super) collected: Vec<(Expr, f64)>,
}

fn mix(hash: u64, x: u64) -> u64 {
    (hash.rotate_left(5) ^ x).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// hashbrown takes its bucket from the low bits and its tag from the high ones.
fn finish(hash: u64) -> u64 {
    hash ^ (hash >> 32)
}

impl Expressions {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, e: Expr) -> Node {
        self.nodes[e.0 as usize]
    }

    pub(crate) fn known(&self, e: Expr) -> Known {
        self.known[e.0 as usize]
    }

    pub(crate) fn list(&self, list: List) -> &[Expr] {
        let (first, len) = self.lists[list.0 as usize];
        &self.members[first as usize..(first + len) as usize]
    }

    /// The weights of a linear node's terms.
    pub(crate) fn weights(&self, list: List, weights: u32) -> &[f64] {
        let len = self.lists[list.0 as usize].1;
        &self.weights[weights as usize..(weights + len) as usize]
    }

    /// The value of a constant.
    pub(crate) fn value(&self, e: Expr) -> Option<f64> {
        match self.node(e) {
            Node::Constant(x) => Some(x),
            _ => None,
        }
    }

    /// Calls `f` with every operand.
    pub(crate) fn operands(&self, e: Expr, mut f: impl FnMut(Expr)) {
        match self.node(e) {
            Node::Constant(_) | Node::Leaf(_) => {}
            Node::Linear { list, .. } | Node::LogSumExp { list } => self.list(list).iter().copied().for_each(f),
            Node::LogProduct { a, b } => self.list(a).iter().chain(self.list(b)).copied().for_each(f),
            Node::Unary(_, a) => f(a),
            Node::Binary(_, a, b) => {
                f(a);
                f(b);
            }
            Node::Ternary(_, a, b, c) => {
                f(a);
                f(b);
                f(c);
            }
            Node::Select { index, list } => {
                f(index);
                self.list(list).iter().copied().for_each(f);
            }
        }
    }

    /// Which expressions the roots are made of, including the roots.
    pub(crate) fn reach(&self, roots: &[Expr]) -> Vec<bool> {
        let mut reached = vec![false; self.len()];
        for root in roots {
            reached[root.0 as usize] = true;
        }
        for i in (0..self.len()).rev() {
            if reached[i] {
                self.operands(Expr(i as u32), |e| reached[e.0 as usize] = true);
            }
        }
        reached
    }

    fn hash_list(members: &[Expr]) -> u64 {
        finish(members.iter().fold(members.len() as u64, |h, e| mix(h, u64::from(e.0))))
    }

    pub(super) fn intern_list(&mut self, members: &[Expr]) -> List {
        let hash = Self::hash_list(members);
        let (lists, pool) = (&self.lists, &self.members);
        let at = |l: u32| {
            let (first, len) = lists[l as usize];
            &pool[first as usize..(first + len) as usize]
        };
        if let Some(&found) = self.list_index.find(hash, |&l| at(l) == members) {
            return List(found);
        }
        let id = self.lists.len() as u32;
        self.lists.push((self.members.len() as u32, members.len() as u32));
        self.members.extend_from_slice(members);
        let (lists, pool) = (&self.lists, &self.members);
        self.list_index.insert_unique(hash, id, |&l| {
            let (first, len) = lists[l as usize];
            Self::hash_list(&pool[first as usize..(first + len) as usize])
        });
        List(id)
    }

    fn hash_node(node: &Node, weights: &[f64]) -> u64 {
        let hash = match *node {
            Node::Constant(x) => mix(1, x.to_bits()),
            Node::Leaf(i) => mix(2, u64::from(i)),
            Node::Linear { list, constant, .. } => {
                let hash = mix(mix(3, u64::from(list.0)), constant.to_bits());
                weights.iter().fold(hash, |h, w| mix(h, w.to_bits()))
            }
            Node::Unary(f, a) => mix(mix(4, f as u64), u64::from(a.0)),
            Node::Binary(f, a, b) => mix(mix(mix(5, f as u64), u64::from(a.0)), u64::from(b.0)),
            Node::Ternary(f, a, b, c) => [a, b, c].iter().fold(mix(6, f as u64), |h, e| mix(h, u64::from(e.0))),
            Node::Select { index, list } => mix(mix(7, u64::from(index.0)), u64::from(list.0)),
            Node::LogSumExp { list } => mix(8, u64::from(list.0)),
            Node::LogProduct { a, b } => mix(mix(9, u64::from(a.0)), u64::from(b.0)),
        };
        finish(hash)
    }

    fn weights_of(&self, node: &Node) -> &[f64] {
        match *node {
            Node::Linear { list, weights, .. } => self.weights(list, weights),
            _ => &[],
        }
    }

    /// The sum of these terms, sorted and without repeats.
    pub(super) fn intern_linear(&mut self, terms: &[(Expr, f64)], constant: f64, known: Known) -> Expr {
        let members: Vec<Expr> = terms.iter().map(|t| t.0).collect();
        let list = self.intern_list(&members);
        let weights = self.weights.len() as u32;
        self.weights.extend(terms.iter().map(|t| t.1));
        self.intern(Node::Linear { list, weights, constant }, known)
    }

    /// The expression for this node, new or existing. The weights of a linear node must be the last ones of the pool; they are
    /// removed again if the node already exists.
    pub(super) fn intern(&mut self, node: Node, known: Known) -> Expr {
        let hash = Self::hash_node(&node, self.weights_of(&node));
        let same = |&other: &u32| match (node, self.nodes[other as usize]) {
            (Node::Constant(a), Node::Constant(b)) => a.to_bits() == b.to_bits(),
            (Node::Leaf(a), Node::Leaf(b)) => a == b,
            (Node::Linear { list, constant, .. }, Node::Linear { list: other_list, constant: other_constant, .. }) => {
                list == other_list
                    && constant.to_bits() == other_constant.to_bits()
                    && self.weights_of(&node) == self.weights_of(&self.nodes[other as usize])
            }
            (Node::Unary(f, a), Node::Unary(g, b)) => f == g && a == b,
            (Node::Binary(f, a, b), Node::Binary(g, c, d)) => f == g && a == c && b == d,
            (Node::Ternary(f, a, b, c), Node::Ternary(g, d, e, h)) => f == g && (a, b, c) == (d, e, h),
            (Node::Select { index, list }, Node::Select { index: i, list: l }) => index == i && list == l,
            (Node::LogSumExp { list }, Node::LogSumExp { list: l }) => list == l,
            (Node::LogProduct { a, b }, Node::LogProduct { a: c, b: d }) => (a, b) == (c, d),
            _ => false,
        };
        if let Some(&found) = self.index.find(hash, same) {
            if let Node::Linear { weights, .. } = node {
                self.weights.truncate(weights as usize);
            }
            return Expr(found);
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(node);
        self.known.push(known);
        let (nodes, lists, pool) = (&self.nodes, &self.lists, &self.weights);
        self.index.insert_unique(hash, id, |&n| {
            let node = &nodes[n as usize];
            let weights = match *node {
                Node::Linear { list, weights, .. } => {
                    &pool[weights as usize..(weights + lists[list.0 as usize].1) as usize]
                }
                _ => &[],
            };
            Self::hash_node(node, weights)
        });
        Expr(id)
    }
}
