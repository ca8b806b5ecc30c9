//! Labels that switch and labels that only seem to, each case with five seeds.

use super::*;
use crate::posterior::Column;
use hyperprior_math::batch::Batch;
use hyperprior_math::random::{Stream, stream};
use rand::RngExt as _;

const DRAWS: usize = 1000;
const SEEDS: std::ops::Range<u64> = 0..5;

/// Draws of `columns_len` labels, each draw written by `fill`.
fn drawn(seed: u64, columns_len: usize, fill: impl Fn(&mut Stream, &mut [usize])) -> Draws {
    let mut values = Batch::zeros(columns_len, DRAWS);
    let mut z = vec![0; columns_len];
    for s in 0..DRAWS {
        fill(&mut stream(seed, 0, 0, s as u64), &mut z);
        for (i, z) in z.iter().enumerate() {
            values.set(i, s, *z as f64);
        }
    }
    let columns = (1..=columns_len).map(|i| Column::discrete(format!("z[{i}]"))).collect();
    Draws::new(columns, values).unwrap()
}

fn labels(draws: &Draws) -> Vec<Vec<i64>> {
    label_switching(draws).into_iter().flat_map(|found| found.labels).collect()
}

/// Element i is in cluster `i % k` of a labelling, or with probability `astray` in a random one.
fn clusters(random: &mut Stream, z: &mut [usize], labelling: &[usize], astray: f64) {
    for (i, z) in z.iter_mut().enumerate() {
        let k = labelling.len();
        *z = if random.random_bool(astray) { random.random_range(1..=k) } else { labelling[i % k] };
    }
}

fn shuffled(random: &mut Stream, k: usize) -> Vec<usize> {
    let mut labelling: Vec<usize> = (1..=k).collect();
    for i in (1..k).rev() {
        labelling.swap(i, random.random_range(0..=i));
    }
    labelling
}

#[test]
fn switched_labels_are_detected() {
    for (seed, (k, astray)) in SEEDS.flat_map(|seed| [(2, 0.0), (2, 0.3), (3, 0.2), (6, 0.1)].map(|case| (seed, case)))
    {
        let draws = drawn(seed, 24, |random, z| {
            let labelling = shuffled(random, k);
            clusters(random, z, &labelling, astray);
        });
        assert_eq!(labels(&draws), [(1..=k as i64).collect::<Vec<_>>()], "{k} labels, {astray} astray");
    }
}

#[test]
fn modes_of_unequal_weight_are_detected_too() {
    let draws = drawn(2, 20, |random, z| {
        let labelling = if random.random_bool(0.6) { [1, 2] } else { [2, 1] };
        clusters(random, z, &labelling, 0.1);
    });
    assert_eq!(labels(&draws), [[1, 2]]);
}

#[test]
fn only_the_labels_that_switch_are_named() {
    // Component 2 keeps its label; 1 and 3 swap theirs.
    let draws = drawn(3, 30, |random, z| {
        let labelling = if random.random_bool(0.5) { [1, 2, 3] } else { [3, 2, 1] };
        clusters(random, z, &labelling, 0.1);
    });
    let found = label_switching(&draws);
    assert_eq!(found[0].labels, [[1, 3]]);
    let said = found[0].to_string();
    assert!(said.starts_with("the labels 1 and 3 of `z[1]` to `z[30]` (30 variables) change places"), "{said}");
    assert!(said.contains("order the components"), "{said}");
}

#[test]
fn importance_weights_can_undo_the_switching() {
    let draws = drawn(4, 20, |random, z| {
        let labelling = shuffled(random, 2);
        clusters(random, z, &labelling, 0.1);
    });
    assert_eq!(labels(&draws), [[1, 2]]);
    // Element 1 has label 1 in every draw with weight.
    let logs = draws.column(0).iter().map(|z| if *z == 1.0 { 0.0 } else { f64::NEG_INFINITY }).collect();
    assert_eq!(labels(&draws.weighted(logs).unwrap()), [[0_i64; 0]; 0]);
}

/// Cases without label switching, by name.
fn innocent(seed: u64) -> Vec<(&'static str, Draws)> {
    let label = |random: &mut Stream, k: usize| random.random_range(1..=k);
    vec![
        (
            "labels about which nothing is known",
            drawn(11 + 100 * seed, 40, |random, z| z.iter_mut().for_each(|z| *z = label(random, 3))),
        ),
        ("well separated clusters", drawn(12 + 100 * seed, 40, |random, z| clusters(random, z, &[1, 2, 3], 0.1))),
        ("poorly separated clusters", drawn(13 + 100 * seed, 40, |random, z| clusters(random, z, &[1, 2], 0.6))),
        (
            "a change point",
            drawn(14 + 100 * seed, 30, |random, z| {
                let change = random.random_range(1..30);
                z.iter_mut().enumerate().for_each(|(i, z)| *z = if i < change { 1 } else { 2 });
            }),
        ),
        (
            "a walk among ordered states",
            drawn(15 + 100 * seed, 30, |random, z| {
                z[0] = label(random, 4);
                for i in 1..z.len() {
                    let step = random.random_range(0..10_u32);
                    z[i] = if step < 2 {
                        (z[i - 1] + 1).min(4)
                    } else if step < 4 {
                        (z[i - 1] - 1).max(1)
                    } else {
                        z[i - 1]
                    };
                }
            }),
        ),
        (
            "a few dependent labels among many independent ones",
            drawn(16 + 100 * seed, 40, |random, z| {
                z.iter_mut().for_each(|z| *z = label(random, 2));
                (0..3).for_each(|i| z[i] = z[3]);
            }),
        ),
        ("two copies", drawn(17 + 100 * seed, 2, |random, z| z.fill(label(random, 2)))),
        (
            "counts with a common rate",
            drawn(18 + 100 * seed, 20, |random, z| {
                let n = random.random_range(1..12);
                z.iter_mut().for_each(|z| *z = 1 + random.random_range(0..=n));
            }),
        ),
        (
            "unused labels of a truncated mixture",
            drawn(19 + 100 * seed, 20, |random, z| {
                clusters(random, z, &[1, 2], 0.05);
                if random.random_bool(0.02) {
                    z[0] = random.random_range(3..=10);
                }
            }),
        ),
    ]
}

#[test]
fn cases_without_switching_are_not_reported() {
    for (what, draws) in SEEDS.flat_map(innocent) {
        assert_eq!(labels(&draws), Vec::<Vec<i64>>::new(), "{what}");
    }
}

#[test]
fn arrays_without_labels_are_ignored() {
    // Values 0 and 1: two clusters that swap, but 0 is not a label.
    let flips: Vec<f64> = (0..4).flat_map(|_| (0..DRAWS).map(|s| (s % 2) as f64)).collect();
    let columns = (1..=4).map(|i| Column::discrete(format!("on[{i}]"))).collect();
    assert_eq!(label_switching(&Draws::new(columns, Batch::from_columns(flips, DRAWS)).unwrap()), []);
    let reals = (1..=4).map(|i| Column::continuous(format!("x[{i}]"))).collect();
    assert_eq!(label_switching(&Draws::new(reals, Batch::zeros(4, DRAWS)).unwrap()), []);
}
