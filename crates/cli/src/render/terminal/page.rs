//! The rows of a long table that are shown: some of every array, so that a long one does not hide the others.

use hyperprior::posterior::ElementName;
use std::collections::HashMap;

/// At most `rows_max` of the named rows, in order; if there are more, the same number of each array.
pub fn rows(names: &[&str], rows_max: usize) -> Vec<usize> {
    if names.len() <= rows_max {
        return (0..names.len()).collect();
    }
    let arrays: Vec<&str> = names.iter().map(|name| ElementName::parse(name).array).collect();
    let mut lens: HashMap<&str, usize> = HashMap::new();
    arrays.iter().for_each(|array| *lens.entry(array).or_default() += 1);
    let shown = |share: usize| lens.values().map(|len| (*len).min(share)).sum::<usize>();
    // With more arrays than rows: one element of each of the first.
    let share = (1..=names.len()).take_while(|share| shown(*share) <= rows_max).last().unwrap_or(1);
    let mut taken: HashMap<&str, usize> = HashMap::new();
    let is_taken = |i: &usize| {
        let taken = taken.entry(arrays[*i]).or_default();
        *taken += 1;
        *taken <= share
    };
    (0..names.len()).filter(is_taken).take(rows_max).collect()
}

/// The line below a table that was cut; empty otherwise.
pub fn remainder(len: usize, shown_len: usize) -> String {
    match len - shown_len {
        0 => String::new(),
        more => format!("… and {more} more; select with --monitor NAME, save all with --out DIR\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_array_has_its_share() {
        let names: Vec<String> = (1..=100)
            .map(|i| format!("z[{i}]"))
            .chain(["mu".to_owned(), "b[1]".to_owned(), "b[2]".to_owned()])
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = |rows_max| rows(&names, rows_max).iter().map(|i| names[*i]).collect::<Vec<_>>();
        assert_eq!(shown(6), ["z[1]", "z[2]", "z[3]", "mu", "b[1]", "b[2]"]);
        assert_eq!(shown(4), ["z[1]", "mu", "b[1]"]);
        assert_eq!(shown(2), ["z[1]", "mu"]);
        assert_eq!(shown(103).len(), 103);
    }
}
