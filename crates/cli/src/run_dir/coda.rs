//! Draws in CODA format: one file of all values, column by column, and an index of the columns.

use hyperprior::posterior::{Draws, Kind};
use std::io::{self, Write};

/// `name first last`: the lines of each column in the chain, counted from one.
pub fn index(out: &mut impl Write, draws: &Draws) -> io::Result<()> {
    for (i, name) in draws.names().iter().enumerate() {
        writeln!(out, "{name} {} {}", i * draws.len() + 1, (i + 1) * draws.len())?;
    }
    Ok(())
}

/// `iteration  value`.
pub fn chain(out: &mut impl Write, draws: &Draws) -> io::Result<()> {
    for (i, column) in draws.columns().iter().enumerate() {
        for (s, x) in draws.column(i).iter().enumerate() {
            match column.kind {
                Kind::Discrete => writeln!(out, "{}  {}", s + 1, *x as i64)?,
                Kind::Continuous => writeln!(out, "{}  {x:?}", s + 1)?,
            }
        }
    }
    Ok(())
}
