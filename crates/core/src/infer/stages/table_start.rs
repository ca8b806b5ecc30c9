//! Where the tables of discrete latents start.

use crate::likelihood::Likelihood;
use crate::model::Support;
use crate::prior::Start;
use hyperprior_math::batch::Batch;

/// The initial spread of a table's parameters.
const NARROW: f64 = 0.05;

/// Starts latents that have a table at the chains' frequencies, in every component: one chain at one value says little about a
/// component's table.
pub(in crate::infer) fn share_tables(start: &mut Start, chains: &Batch, likelihood: &dyn Likelihood) {
    for i in 0..likelihood.latents_len() {
        let range = likelihood.lambda_range(i);
        let Support::Integers { lower: 0.0, upper } = likelihood.support(i) else { continue };
        // A table's parameters are the logits of all values but the first.
        if range.len() < 2 || range.len() != upper as usize {
            continue;
        }
        let mut counts = vec![0.5_f64; range.len() + 1];
        for z in chains.column(i) {
            counts[*z as usize] += 1.0;
        }
        for (location, scale) in start.locations.iter_mut().zip(&mut start.scales) {
            for (v, at) in range.clone().enumerate() {
                location[at] = (counts[v + 1] / counts[0]).ln();
                scale[at] = NARROW;
            }
        }
        start.covariances.fill(None);
    }
}
