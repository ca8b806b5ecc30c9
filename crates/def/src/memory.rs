//! Checks before any work that a training or a model fits into memory: a program that runs out of memory half way is killed without
//! a message.

use crate::error::{Error, Result};
use crate::minibatch::CHUNK;
use crate::settings::Settings;
use crate::shape::Shape;
use hyperprior_math::single::{Lanes, lanes_len};

/// Arrays of the weights between layers, with their draws and steps; and of everything else that has moments.
const LAYER_WEIGHTS: usize = 8;
const MOMENTS: usize = 3;

/// Reserves as much memory as so many terms and documents need, and releases it.
///
/// # Errors
/// [`Error::BadSetting`] if the system does not have it.
pub(crate) fn check(settings: &Settings, shape: &Shape, terms_len: usize, documents_len: usize) -> Result<()> {
    let mut trial: Vec<Lanes> = Vec::new();
    let needed = needed(settings, shape, terms_len, documents_len);
    needed.and_then(|lanes| trial.try_reserve_exact(lanes).ok()).ok_or_else(|| {
        let widths: Vec<String> = shape.layers().iter().map(|layer| layer.width.to_string()).collect();
        let value = if widths.len() > 20 { format!("{} layers", widths.len()) } else { widths.join(",") };
        let reason = "this needs more memory than there is; use fewer or narrower layers";
        Error::BadSetting { field: "layers", value, reason }
    })
}

/// Roughly how many vectors of lanes are needed; `None` if the number overflows.
fn needed(settings: &Settings, shape: &Shape, terms_len: usize, documents_len: usize) -> Option<usize> {
    let chunks = settings.batch.min(documents_len).div_ceil(CHUNK);
    let own = settings.method.parameters_len(shape);
    let product = |a: usize, b: usize| a.checked_mul(b);
    let mut layer_weights = 0_usize;
    for l in 0..shape.layers().len() {
        layer_weights = layer_weights.checked_add(product(shape.above(l).1 + 1, shape.tiles(l).len())?)?;
    }
    let terms = product(MOMENTS * terms_len, shape.tiles(0).len())?;
    let documents = match settings.amortize {
        None => product(MOMENTS * documents_len, own)?,
        Some(units) => {
            let words = product(MOMENTS * terms_len, lanes_len(units))?;
            words.checked_add(product(MOMENTS + chunks, product(units + 1, own)?)?)?
        }
    };
    terms.checked_add(documents)?.checked_add(product(layer_weights, LAYER_WEIGHTS + chunks)?)
}
