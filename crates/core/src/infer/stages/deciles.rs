//! Whether two samples have the same marginals.

use hyperprior_math::batch::Batch;
use rayon::prelude::*;

/// Samples agree if their distribution functions differ by at most this.
const SAME: f64 = 0.05;

/// Whether two samples have the same deciles: the largest difference between their distribution functions there.
pub(in crate::infer) fn have_same_deciles(one: &Batch, other: &Batch) -> bool {
    (0..one.columns_len()).into_par_iter().all(|i| {
        let [mut one, mut other] = [one.column(i).to_vec(), other.column(i).to_vec()];
        one.sort_by(f64::total_cmp);
        other.sort_by(f64::total_cmp);
        let share = |x: &[f64], at: f64| x.partition_point(|x| *x <= at) as f64 / x.len() as f64;
        (1..10).all(|k| {
            let at = other[k * other.len() / 10];
            (share(&one, at) - share(&other, at)).abs() <= SAME
        })
    })
}
