//! Draws and traces as comma-separated values (RFC 4180, but with bare line feeds).

use hyperprior::posterior::{Draws, Kind};
use std::borrow::Cow;
use std::io::{self, Write};

/// The column that holds the logarithms of importance weights; no BUGS name begins with a dot.
pub const LOG_WEIGHT: &str = ".log_weight";

/// A header of names, then a line per draw.
pub fn draws(out: &mut impl Write, draws: &Draws) -> io::Result<()> {
    let weight_name = draws.log_weights().map(|_| LOG_WEIGHT);
    let names: Vec<Cow<'_, str>> = draws.names().into_iter().chain(weight_name).map(quoted).collect();
    writeln!(out, "{}", names.join(","))?;
    for s in 0..draws.len() {
        let mut separator = "";
        for (i, column) in draws.columns().iter().enumerate() {
            let x = draws.column(i)[s];
            match column.kind {
                Kind::Discrete => write!(out, "{separator}{}", x as i64)?,
                // The shortest text that parses to the same number.
                Kind::Continuous => write!(out, "{separator}{x:?}")?,
            }
            separator = ",";
        }
        if let Some(log_weights) = draws.log_weights() {
            write!(out, "{separator}{:?}", log_weights[s])?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Two columns: a counter, such as steps, and a value at each.
pub fn trace(out: &mut impl Write, [counter, value]: [&str; 2], points: &[(u64, f64)]) -> io::Result<()> {
    writeln!(out, "{counter},{value}")?;
    points.iter().try_for_each(|(at, value)| writeln!(out, "{at},{value:?}"))
}

/// A field, quoted if necessary.
pub fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}
