//! Which latents are independent of each other given few others: a small vertex cover of the graph of coupled latents.

use crate::model::Model;

/// Few latents so that no two others are coupled, by taking the one that is coupled with most again and again; and the others.
pub(super) fn divided(model: &dyn Model) -> (Vec<usize>, Vec<usize>) {
    let n = model.latents().len();
    let mut is_coupled = vec![false; n * n];
    match model.coupled() {
        Some(pairs) => {
            for [i, j] in pairs.iter().map(|pair| pair.map(|i| i as usize)).filter(|[i, j]| i != j) {
                is_coupled[i * n + j] = true;
                is_coupled[j * n + i] = true;
            }
        }
        None => (0..n * n).for_each(|at| is_coupled[at] = at / n != at % n),
    }
    let mut is_outer = vec![false; n];
    loop {
        let degree = |i: usize| (0..n).filter(|j| !is_outer[*j] && is_coupled[i * n + j]).count();
        let inner: Vec<usize> = (0..n).filter(|i| !is_outer[*i]).collect();
        match inner.iter().map(|i| (degree(*i), *i)).max() {
            Some((1.., most)) => is_outer[most] = true,
            _ => return ((0..n).filter(|i| is_outer[*i]).collect(), inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::stages::test_models::Coupled;

    #[test]
    fn what_describes_the_others_is_taken_first() {
        assert_eq!(divided(&Coupled::effects(5)), (vec![0], vec![1, 2, 3, 4, 5]));
        assert_eq!(divided(&Coupled::squares(3)), (vec![], vec![0, 1, 2]));
        assert_eq!(divided(&Coupled::normal(3)).1.len(), 1);
    }

    /// Catches a coupled pair among the rest: in a walk every other latent is taken, and the one that all are coupled with.
    #[test]
    fn no_two_of_the_others_are_coupled() {
        let walk = Coupled::walk(9);
        let (few, others) = divided(&walk);
        let is_other = |i: u32| others.contains(&(i as usize));
        assert!(
            walk.coupled().is_some_and(|pairs| pairs.iter().all(|[i, j]| i == j || !(is_other(*i) && is_other(*j))))
        );
        assert!(few.contains(&0) && few.len() <= 6, "{few:?}");
    }
}
