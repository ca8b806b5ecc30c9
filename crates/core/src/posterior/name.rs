//! The names of array elements in BUGS notation: `mu`, `beta[1]`, `z[3,2]`.

/// The name of an element, split into array and indices.
///
/// ```
/// use hyperprior::posterior::ElementName;
/// let element = ElementName::parse("z[3,2]");
/// assert_eq!((element.array, &element.indices[..]), ("z", &[3, 2][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementName<'a> {
    /// The name of the array, or of a scalar.
    pub array: &'a str,
    /// The indices, counted from one; empty for a scalar.
    pub indices: Vec<u64>,
}

impl<'a> ElementName<'a> {
    /// Splits a name; one that is not in the form of an element is that of a scalar.
    pub fn parse(name: &'a str) -> Self {
        let indices = |inside: &str| inside.split(',').map(|i| i.trim().parse().ok()).collect::<Option<Vec<u64>>>();
        match name.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            Some((array, inside)) => match indices(inside) {
                Some(indices) => Self { array, indices },
                None => Self { array: name, indices: Vec::new() },
            },
            None => Self { array: name, indices: Vec::new() },
        }
    }
}

/// The candidate with the smallest edit distance from `name`, if it is close enough to be a misspelling.
pub(super) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters, but at least one: `mu` for `nu`.
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance between two words, ignoring case.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_those_of_scalars() {
        for name in ["mu", "a[]", "a[x]", "a[1", "log(p[1])"] {
            assert_eq!(ElementName::parse(name), ElementName { array: name, indices: vec![] });
        }
        assert_eq!(ElementName::parse("a.b[12, 3]"), ElementName { array: "a.b", indices: vec![12, 3] });
    }

    #[test]
    fn edits_is_the_levenshtein_distance() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("Beta", "beta"), 0);
    }

    #[test]
    fn only_close_names_are_suggested() {
        let names = ["alpha", "beta", "mu"];
        assert_eq!(closest("betta", names), Some("beta"));
        assert_eq!(closest("nu", names), Some("mu"));
        assert_eq!(closest("sigma", names), None);
    }
}
