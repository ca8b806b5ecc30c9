//! The exact text of tables and sections.

use super::{ROWS, configurations, dependence, discrete, parameters};
use hyperprior::Batch;
use hyperprior::posterior::{Column, Configurations, Dependence, Dependences, Draws, summarise, top_configurations};

fn made(columns: Vec<Column>, values: &[Vec<f64>]) -> Draws {
    Draws::new(columns, Batch::from_columns(values.concat(), values[0].len())).unwrap()
}

/// `count` draws of each value.
fn repeated(values: &[(f64, usize)]) -> Vec<f64> {
    values.iter().flat_map(|(x, count)| std::iter::repeat_n(*x, *count)).collect()
}

#[test]
fn the_table_of_summaries() {
    let columns = vec![Column::continuous("beta[1]"), Column::discrete("z[2]"), Column::continuous("rate")];
    let beta: Vec<f64> = (0..101).map(|s| f64::from(s) / 50.0 - 1.0).collect();
    let z = repeated(&[(1.0, 80), (2.0, 21)]);
    let rate: Vec<f64> = (0..101).map(|s| 12345.0 + f64::from(s)).collect();
    let draws = made(columns, &[beta, z, rate]);
    let expected = "\
name        mean     sd       5%   median      95%   mcse  ess
───────  ───────  ─────  ───────  ───────  ───────  ─────  ───
beta[1]    0.000  0.586   -0.909    0.000    0.909  0.058  101
z[2]       1.208  0.408        1        1        2  0.041  101
rate     12395.0   29.3  12349.5  12395.0  12440.5    2.9  101
";
    assert_eq!(parameters(&summarise(&draws), 40), expected);
}

#[test]
fn a_long_table_is_cut_and_says_so() {
    let columns = (1..=1000).map(|i| Column::continuous(format!("x[{i}]"))).chain([Column::continuous("mu")]).collect();
    let text = parameters(&summarise(&made(columns, &vec![vec![0.0, 1.0]; 1001])), ROWS);
    assert_eq!(text.lines().count(), 2 + ROWS + 1);
    let tail: Vec<&str> = text.lines().rev().take(3).collect();
    assert_eq!(tail[0], "… and 961 more; select with --monitor NAME, save all with --out DIR");
    assert!(tail[1].starts_with("mu ") && tail[2].starts_with("x[39] "), "{text}");
}

#[test]
fn constant_variables_have_one_line() {
    let columns = ["z[1]", "z[2]", "z[3]", "z[4]", "z[5]"].map(Column::discrete).to_vec();
    let constant = |x: f64| vec![x; 4];
    let draws = made(columns, &[constant(1.0), constant(1.0), vec![0.0, 1.0, 1.0, 0.0], constant(0.0), constant(1.0)]);
    let summaries = summarise(&draws);
    let said = parameters(&summaries, ROWS);
    assert!(said.ends_with("\n\nz[1:2], z[5]: 1 in every draw\nz[4]: 0 in every draw\n"), "{said}");
    assert_eq!(said.lines().count(), 2 + 1 + 1 + 2, "{said}");
    assert_eq!(parameters(&summaries[..2], ROWS), "z[1:2]: 1 in every draw\n");
    let said = discrete(&draws, &summaries, ROWS).unwrap();
    assert!(said.contains("z[3]  0.500  0.500") && !said.contains("z[1]  "), "{said}");
}

#[test]
fn the_discrete_section() {
    let columns =
        vec![Column::discrete("z[1]"), Column::continuous("mu"), Column::discrete("z[2]"), Column::discrete("on")];
    // z[1] and z[2] agree except in a tenth of the draws; `on` is an independent coin.
    let z1 = repeated(&[(1.0, 100), (2.0, 100)]);
    let z2 = repeated(&[(1.0, 90), (2.0, 110)]);
    let on: Vec<f64> = (0..200).map(|s| f64::from(s % 2)).collect();
    let draws = made(columns, &[z1, vec![0.5; 200], z2, on]);
    let expected = "\
P(·)      1      2
────  ─────  ─────
z[1]  0.500  0.500
z[2]  0.450  0.550

P(·)      0      1
────  ─────  ─────
on    0.500  0.500

Most probable of 6 joint configurations of 3 discrete variables:
  0.250  z = 2 2; on = 0
  0.250  z = 2 2; on = 1
  0.225  z = 1 1; on = 0
  0.225  z = 1 1; on = 1
  0.025  z = 1 2; on = 0
  0.025  the other

Strongest dependence between discrete variables (mutual information in nats):
variable  variable   nats
────────  ────────  ─────
z[1]      z[2]      0.526
";
    assert_eq!(discrete(&draws, &summarise(&draws), 40).unwrap(), expected);
}

#[test]
fn interleaved_elements_are_shown_by_array() {
    let columns = ["z[1]", "y[1]", "z[2]", "y[2]"].map(Column::discrete).to_vec();
    let draws = made(columns, &[vec![1.0; 9], vec![2.0; 9], vec![3.0; 9], vec![4.0; 9]]);
    let said = discrete(&draws, &summarise(&draws), ROWS).unwrap();
    assert!(said.contains("  1.000  z = 1 3; y = 2 4\n"), "{said}");
}

#[test]
fn without_discrete_variables_the_section_is_empty() {
    let draws = made(vec![Column::continuous("mu")], &[vec![0.0, 1.0]]);
    assert_eq!(discrete(&draws, &summarise(&draws), 40).unwrap(), "");
}

#[test]
fn many_values_are_listed() {
    let n: Vec<f64> = (0..66).flat_map(|s| repeated(&[(f64::from(s % 11), 1 + s as usize % 11)])).collect();
    let draws = made(vec![Column::discrete("n")], &[n]);
    let expected = "n: 10 (0.167), 9 (0.152), 8 (0.136), 7 (0.121), 6 (0.106), 5 (0.091) and 5 more values\n";
    assert_eq!(discrete(&draws, &summarise(&draws), 40).unwrap(), expected);
}

#[test]
fn configurations_of_many_variables_are_shown_by_their_differences() {
    let columns: Vec<Column> = (1..=50).map(|i| Column::discrete(format!("z[{i}]"))).collect();
    let every: Vec<usize> = (0..50).collect();
    let mut values = vec![vec![1.0; 10]; 50];
    values[2][7..].copy_from_slice(&[2.0; 3]);
    values[49][7..].copy_from_slice(&[0.0, 0.0, 5.0]);
    let draws = made(columns.clone(), &values);
    let found = top_configurations(&draws, &every, 5).unwrap();
    let expected = format!(
        "Most probable of 3 joint configurations of 50 discrete variables:\n  0.700  z ={} … and 10 more\n  0.200  the \
         same except z[3] = 2, z[50] = 0\n  0.100  the other\n",
        " 1".repeat(40)
    );
    assert_eq!(configurations::configurations(&draws, &found), expected);

    let scattered = made(columns, &vec![(0..10).map(f64::from).collect(); 50]);
    let found: Configurations = top_configurations(&scattered, &every, 5).unwrap();
    let said = configurations::configurations(&scattered, &found);
    assert_eq!(said, "No joint configuration of the 50 discrete variables was drawn twice.\n");
}

#[test]
fn binned_variables_and_skipped_pairs_are_noted() {
    let draws = made(vec![Column::discrete("a"), Column::discrete("b")], &vec![vec![0.0, 1.0]; 2]);
    let pairs = vec![Dependence { first: 0, second: 1, nats: 0.25 }];
    let said = dependence::dependence(&draws, &Dependences { pairs, pairs_len: 10, left_out_len: 4, grouped: vec![1] });
    assert!(said.contains("Variables with many values are binned"), "{said}");
    assert!(said.ends_with("4 of 10 pairs, those that vary least, were not examined.\n"), "{said}");
    let none = Dependences { pairs: vec![], pairs_len: 1, left_out_len: 0, grouped: vec![1] };
    let said = dependence::dependence(&draws, &none);
    assert_eq!(said, "No pair of discrete variables shows dependence beyond chance.\n");
}
