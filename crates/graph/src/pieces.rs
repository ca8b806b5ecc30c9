//! The connected pieces of a graph: terms that share marginalised latents.

use super::expression::{Expr, Expressions};
use super::marginalise::{Table, Tail, marginalise_one};
use std::collections::HashSet;

/// Terms that share marginalised latents.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// The places of the latents in the elimination order.
    pub(super) latents: Vec<usize>,
    pub(super) terms: Vec<usize>,
    /// The terms that are observations.
    pub(super) observed: Vec<usize>,
}

/// The pieces, and the piece of each term. `of_latent` has the terms that contain each latent.
pub(super) fn pieces(of_latent: &[Vec<u32>], terms_len: usize) -> (Vec<Piece>, Vec<Option<usize>>) {
    let mut of_term: Vec<Vec<usize>> = vec![Vec::new(); terms_len];
    for (k, terms) in of_latent.iter().enumerate() {
        terms.iter().for_each(|t| of_term[*t as usize].push(k));
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut piece_of = vec![None; terms_len];
    let mut is_taken = vec![false; of_latent.len()];
    for first in 0..of_latent.len() {
        if std::mem::replace(&mut is_taken[first], true) {
            continue;
        }
        let (mut piece, mut stack) = (Piece::default(), vec![first]);
        while let Some(k) = stack.pop() {
            piece.latents.push(k);
            for &t in &of_latent[k] {
                if piece_of[t as usize].replace(pieces.len()).is_none() {
                    piece.terms.push(t as usize);
                }
                stack.extend(of_term[t as usize].iter().filter(|k| !std::mem::replace(&mut is_taken[**k], true)));
            }
        }
        piece.latents.sort_unstable();
        piece.terms.sort_unstable();
        pieces.push(piece);
    }
    (pieces, piece_of)
}

/// How many table entries it takes to marginalise the latents of a piece.
pub(super) fn entries_len(piece: &Piece, of_latent: &[Vec<u32>], sizes: &[f64]) -> f64 {
    let mut scopes: Vec<Vec<usize>> = vec![Vec::new(); piece.terms.len()];
    for &k in &piece.latents {
        for t in &of_latent[k] {
            if let Ok(at) = piece.terms.binary_search(&(*t as usize)) {
                scopes[at].push(k);
            }
        }
    }
    let mut entries = 0.0;
    for &k in &piece.latents {
        let (own, rest): (Vec<_>, Vec<_>) = scopes.into_iter().partition(|scope| scope.contains(&k));
        let mut scope: Vec<usize> = own.into_iter().flatten().collect();
        scope.sort_unstable();
        scope.dedup();
        entries += scope.iter().map(|k| sizes[*k]).product::<f64>();
        scope.retain(|s| *s != k);
        scopes = rest;
        scopes.push(scope);
    }
    entries
}

/// The log of a piece with its latents marginalised, without some of its terms.
pub(super) fn log_marginal(
    arena: &mut Expressions,
    tables: &[Option<Table>],
    piece: &Piece,
    without: &[usize],
    domains: &[(f64, usize)],
    counts: &[Option<u32>],
    tails: &mut Vec<Tail>,
) -> Expr {
    let taken = piece.terms.iter().filter(|t| without.binary_search(t).is_err());
    let mut open: Vec<Table> = taken.filter_map(|t| tables[*t].clone()).collect();
    let (mut total, mut met) = (Vec::new(), HashSet::new());
    for &k in &piece.latents {
        let (own, rest): (Vec<Table>, Vec<Table>) = open.into_iter().partition(|table| table.scope.contains(&k));
        open = rest;
        let (_, marginal) = marginalise_one(arena, own, k, domains, counts[k], tails, &mut met);
        if marginal.scope.is_empty() {
            total.extend(marginal.entries.into_iter().map(|e| (e, 1.0)));
        } else {
            open.push(marginal);
        }
    }
    arena.linear(&total, 0.0)
}
