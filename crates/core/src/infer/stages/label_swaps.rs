//! Moves that exchange components: element j of some arrays with element k.
//!
//! The components of a mixture have the same likelihood whatever they are called, so that a posterior has a mode for every order of
//! them, or nearly the same one. Other moves hardly ever go from one to another. Latents `mu[1:K]`, `tau[1:K]`, … with as many elements
//! may be the parameters of components; which of them is not known. A move exchanges two elements in all arrays of a length, or in all
//! but one: the weights, say, which then decide whether it is accepted. It is its own inverse and preserves volume, so the ratio of the
//! densities is the probability with which it is accepted (Metropolis).

use crate::error::Result;
use crate::model::Latents;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::Stream;
use rand::RngExt;
use std::collections::BTreeMap;

/// Arrays with as many elements: the columns of each.
#[derive(Debug)]
pub(super) struct Components(Vec<Vec<Vec<usize>>>);

impl Components {
    /// All that may be parameters of components: continuous arrays with one index, of which all elements from the first on are there.
    pub(super) fn of(latents: &Latents) -> Self {
        let mut arrays: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for i in (0..latents.len()).filter(|i| !latents.support(*i).is_discrete()) {
            let name = latents.name(i);
            let index = name.split_once('[').and_then(|(array, rest)| Some((array, rest.strip_suffix(']')?)));
            if let Some((array, index)) = index
                && let Ok(index) = index.parse()
            {
                arrays.entry(array.to_owned()).or_default().push((index, i));
            }
        }
        let mut by_len: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
        for mut array in arrays.into_values() {
            array.sort_unstable();
            let is_whole = array.iter().enumerate().all(|(k, (index, _))| *index == k + 1);
            if is_whole && array.len() > 1 {
                by_len.entry(array.len()).or_default().push(array.into_iter().map(|(_, i)| i).collect());
            }
        }
        // A single array has an order that its prior or the data give it.
        Self(by_len.into_values().filter(|arrays| arrays.len() > 1).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each draw proposes to exchange two elements, for every length of arrays; returns the share accepted. `log_p` has the log densities
    /// of the draws, in the model's coordinates.
    pub(super) fn exchange(
        &self,
        z: &mut Batch,
        log_p: &mut [f64],
        rng: &mut Stream,
        log_density: &dyn Fn(&Batch, &mut [f64]) -> Result<()>,
    ) -> Result<f64> {
        let (len, mut accepted) = (z.draws_len(), 0);
        for arrays in &self.0 {
            let elements = arrays[0].len();
            let mut proposed = z.clone();
            for s in 0..len {
                let j = rng.random_range(0..elements);
                let k = (j + rng.random_range(1..elements)) % elements;
                // One of the arrays is left as it is, or none.
                let left = rng.random_range(0..=arrays.len());
                for array in arrays.iter().enumerate().filter(|(a, _)| *a != left).map(|(_, array)| array) {
                    proposed.set(array[j], s, z.get(array[k], s));
                    proposed.set(array[k], s, z.get(array[j], s));
                }
            }
            let mut log_proposed = vec![0.0; len];
            log_density(&proposed, &mut log_proposed)?;
            for s in 0..len {
                let uniform: f64 = rng.random();
                if uniform.ln() < log_proposed[s] - log_p[s] {
                    arrays.iter().flatten().for_each(|i| z.set(*i, s, proposed.get(*i, s)));
                    log_p[s] = log_proposed[s];
                    accepted += 1;
                }
            }
        }
        Ok(f64::from(accepted) / (len * self.0.len().max(1)) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Support;
    use hyperprior_math::random::stream;
    use rand_distr::{Distribution, StandardNormal};

    fn components(names: &[&str]) -> Components {
        Components::of(
            &Latents::scalars(names.iter().map(|name| ((*name).to_owned(), Support::Real))).expect("latents"),
        )
    }

    #[test]
    fn arrays_of_a_length_are_components() {
        let found =
            components(&["w[1]", "w[2]", "w[3]", "sd", "mu[1]", "mu[2]", "mu[3]", "x[2]", "x[3]", "y[1]", "y[2]"]);
        assert_eq!(found.0, [vec![vec![4, 5, 6], vec![0, 1, 2]]]);
        assert!(components(&["theta[1]", "theta[2]", "theta[3]", "mu"]).is_empty());
        assert!(components(&["a[1,1]", "a[1,2]", "b[1,1]", "b[1,2]"]).is_empty());
    }

    /// Catches moves that are accepted too often or too seldom: independent normals of different means keep these.
    #[test]
    fn exchanges_leave_the_density_invariant() {
        let names = ["a[1]", "a[2]", "a[3]", "b[1]", "b[2]", "b[3]"];
        let means = [0.0, 1.0, -0.5, 0.4, 0.0, 0.8];
        let found = components(&names);
        let log_density = |z: &Batch, out: &mut [f64]| {
            let one = |s: usize| (0..6).map(|i| -0.5 * (z.get(i, s) - means[i]).powi(2)).sum::<f64>();
            out.iter_mut().enumerate().for_each(|(s, out)| *out = one(s));
            Ok(())
        };
        let len = 40_000;
        let (mut z, mut log_p, mut rng) = (Batch::zeros(6, len), vec![0.0; len], stream(3, 0, 0, 0));
        for s in 0..len {
            (0..6).for_each(|i| z.set(i, s, means[i] + Distribution::<f64>::sample(&StandardNormal, &mut rng)));
        }
        log_density(&z, &mut log_p).expect("no fault");
        let start = z.clone();
        for _ in 0..10 {
            let share = found.exchange(&mut z, &mut log_p, &mut rng, &log_density).expect("no fault");
            assert!(share > 0.3 && share < 0.9, "{share}");
        }
        let moved = (0..len).filter(|s| z.get(0, *s) != start.get(0, *s)).count();
        assert!(moved > len / 3, "{moved}");
        for i in 0..6 {
            let column = z.column(i);
            let mean = column.iter().sum::<f64>() / len as f64;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / len as f64;
            assert!((mean - means[i]).abs() < 5.0 / (len as f64).sqrt(), "{i}: {mean}");
            assert!((variance - 1.0).abs() < 5.0 * (2.0 / len as f64).sqrt(), "{i}: {variance}");
        }
    }
}
