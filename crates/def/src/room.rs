//! Whether there is memory for a training or a model, asked before anything is made: a program that is refused memory half way ends
//! without a word.

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::shape::Shape;
use crate::visit::CHUNK;
use hyperprior_math::single::{Lanes, lanes_len};

/// Arrays of the weights between layers, their draws and their steps; and of everything else that has moments.
const BETWEEN: usize = 8;
const MOMENTS: usize = 3;

/// Asks for as much as so many terms and documents take, and gives it back.
///
/// # Errors
/// [`Error::BadSetting`] where the system does not have it.
pub(crate) fn is_there(settings: &Settings, shape: &Shape, terms_len: usize, documents_len: usize) -> Result<()> {
    let mut trial: Vec<Lanes> = Vec::new();
    let needed = needed(settings, shape, terms_len, documents_len);
    needed.and_then(|lanes| trial.try_reserve_exact(lanes).ok()).ok_or_else(|| {
        let widths: Vec<String> = shape.layers().iter().map(|layer| layer.width.to_string()).collect();
        let value = if widths.len() > 20 { format!("{} layers", widths.len()) } else { widths.join(",") };
        let reason = "this takes more memory than there is; use fewer or narrower layers";
        Error::BadSetting { field: "layers", value, reason }
    })
}

/// About how many vectors of lanes that is; nothing where no machine has so many.
fn needed(settings: &Settings, shape: &Shape, terms_len: usize, documents_len: usize) -> Option<usize> {
    let visits = settings.batch.min(documents_len).div_ceil(CHUNK);
    let own = settings.method.parameters_len(shape);
    let product = |a: usize, b: usize| a.checked_mul(b);
    let mut between = 0_usize;
    for l in 0..shape.layers().len() {
        between = between.checked_add(product(shape.above(l).1 + 1, shape.tiles(l).len())?)?;
    }
    let terms = product(MOMENTS * terms_len, shape.tiles(0).len())?;
    let documents = match settings.amortize {
        None => product(MOMENTS * documents_len, own)?,
        Some(units) => {
            let words = product(MOMENTS * terms_len, lanes_len(units))?;
            words.checked_add(product(MOMENTS + visits, product(units + 1, own)?)?)?
        }
    };
    terms.checked_add(documents)?.checked_add(product(between, BETWEEN + visits)?)
}
