//! Monitors, which select the variables to report: `beta`, `beta[2]`, `beta[1:3]`, `z[,2]`.

use super::name::{ElementName, closest};
use std::collections::HashSet;
use std::fmt;
use thiserror::Error;

/// Why a monitor selects nothing. See [`Monitor`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The text is not a name with indices.
    #[error("`{text}` cannot be selected: {reason}; write `beta`, `beta[2]`, `beta[1:3]` or `z[,2]`")]
    Syntax {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No variable has that name.
    #[error("there is no variable `{name}`{}; there are: {known}", did_you_mean(suggestion.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// The closest existing name.
        suggestion: Option<String>,
        /// The existing names.
        known: String,
    },
    /// The array exists, but not the element.
    #[error("`{array}` has no element `{monitor}`: its {len} go from `{first}` to `{last}`")]
    NoElement {
        /// The monitor as given.
        monitor: String,
        /// The array's name.
        array: String,
        /// The number of elements that were drawn.
        len: usize,
        /// The first of them.
        first: String,
        /// The last of them.
        last: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// A selection of variables: a name, optionally with a range for each index.
///
/// ```
/// use hyperprior::posterior::{ElementName, Monitor};
/// let monitor = Monitor::parse("beta[1:3]")?;
/// assert!(monitor.selects(&ElementName::parse("beta[2]")));
/// assert!(!monitor.selects(&ElementName::parse("beta[4]")));
/// # Ok::<(), hyperprior::posterior::MonitorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    text: String,
    array: String,
    /// First and last index, both included; `None` selects the whole array.
    ranges: Option<Vec<(u64, u64)>>,
}

impl Monitor {
    /// Parses a monitor.
    ///
    /// # Errors
    /// [`MonitorError::Syntax`]
    pub fn parse(text: &str) -> Result<Self, MonitorError> {
        let text = text.trim();
        let fail = |reason| MonitorError::Syntax { text: text.to_owned(), reason };
        let (array, ranges) = match text.split_once('[') {
            None => (text, None),
            Some((array, rest)) => {
                let inside = rest.strip_suffix(']').ok_or_else(|| fail("it has no closing bracket at its end"))?;
                let ranges = inside.split(',').map(|index| range(index).map_err(fail)).collect::<Result<_, _>>()?;
                (array.trim(), Some(ranges))
            }
        };
        if array.is_empty() || array.contains(']') {
            return Err(fail("it has no name before its indices"));
        }
        Ok(Self { text: text.to_owned(), array: array.to_owned(), ranges })
    }

    /// Parses several monitors, separated by commas or spaces outside brackets: `mu, z[3,2]`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_list(text: &str) -> Result<Vec<Self>, MonitorError> {
        let mut depth = 0_i32;
        let separates = |c: char| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth <= 0 && (c == ',' || c.is_whitespace())
        };
        text.split(separates).filter(|part| !part.is_empty()).map(Self::parse).collect()
    }

    /// Whether an element is selected.
    pub fn selects(&self, element: &ElementName<'_>) -> bool {
        element.array == self.array
            && self.ranges.as_ref().is_none_or(|ranges| {
                ranges.len() == element.indices.len()
                    && ranges.iter().zip(&element.indices).all(|((from, to), i)| from <= i && i <= to)
            })
    }

    /// The indices of the selected `names`, in order.
    ///
    /// A range may extend beyond the array, since observed elements of an array have no draws.
    ///
    /// # Errors
    /// [`MonitorError::Unknown`] or [`MonitorError::NoElement`] if none is selected.
    pub fn places(&self, names: &[&str]) -> Result<Vec<usize>, MonitorError> {
        // A name that is not in BUGS notation can still be selected verbatim.
        if let Some(place) = names.iter().position(|name| *name == self.text) {
            return Ok(vec![place]);
        }
        let elements: Vec<ElementName<'_>> = names.iter().map(|name| ElementName::parse(name)).collect();
        let places: Vec<usize> = (0..names.len()).filter(|i| self.selects(&elements[*i])).collect();
        if !places.is_empty() {
            return Ok(places);
        }
        let of_array: Vec<&str> =
            elements.iter().zip(names).filter(|(e, _)| e.array == self.array).map(|(_, name)| *name).collect();
        Err(match (of_array.first(), of_array.last()) {
            (Some(first), Some(last)) => MonitorError::NoElement {
                monitor: self.text.clone(),
                array: self.array.clone(),
                len: of_array.len(),
                first: (*first).to_owned(),
                last: (*last).to_owned(),
            },
            _ => self.unknown(&elements),
        })
    }

    fn unknown(&self, elements: &[ElementName<'_>]) -> MonitorError {
        const SHOWN: usize = 12;
        let mut seen = HashSet::new();
        let arrays: Vec<&str> = elements.iter().map(|e| e.array).filter(|array| seen.insert(*array)).collect();
        let more = if arrays.len() > SHOWN { format!(" and {} more", arrays.len() - SHOWN) } else { String::new() };
        MonitorError::Unknown {
            name: self.array.clone(),
            suggestion: closest(&self.array, arrays.iter().copied()).map(str::to_owned),
            known: arrays[..arrays.len().min(SHOWN)].join(", ") + &more,
        }
    }
}

impl fmt::Display for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `2`, `1:3`, or empty for every index.
fn range(index: &str) -> Result<(u64, u64), &'static str> {
    let whole = |text: &str| match text.trim().parse() {
        Ok(i) if i >= 1 => Ok(i),
        _ => Err("an index is not a whole number of at least 1"),
    };
    match index.split_once(':') {
        _ if index.trim().is_empty() => Ok((1, u64::MAX)),
        None => whole(index).map(|i| (i, i)),
        Some((from, to)) => match (whole(from)?, whole(to)?) {
            (from, to) if from <= to => Ok((from, to)),
            _ => Err("a range ends before it begins"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 7] = ["mu", "beta[1]", "beta[2]", "beta[3]", "z[1,1]", "z[1,2]", "z[2,2]"];

    fn places(text: &str) -> Result<Vec<usize>, MonitorError> {
        Monitor::parse(text)?.places(&NAMES)
    }

    #[test]
    fn names_elements_and_ranges_are_selected() {
        for (text, expected) in [
            ("mu", &[0][..]),
            ("beta", &[1, 2, 3]),
            ("beta[2]", &[2]),
            (" beta[ 2 : 9 ] ", &[2, 3]),
            ("z[,2]", &[5, 6]),
            ("z[1,1:2]", &[4, 5]),
        ] {
            assert_eq!(places(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn errors_name_what_is_missing() {
        let said = |text| places(text).unwrap_err().to_string();
        assert_eq!(said("betta[1]"), "there is no variable `betta` (did you mean `beta`?); there are: mu, beta, z");
        assert_eq!(said("gamma"), "there is no variable `gamma`; there are: mu, beta, z");
        assert_eq!(said("beta[4]"), "`beta` has no element `beta[4]`: its 3 go from `beta[1]` to `beta[3]`");
        assert!(said("z[1]").contains("from `z[1,1]` to `z[2,2]`"));
        for text in ["beta[1", "[1]", "beta[0]", "beta[3:1]", "beta[x]", ""] {
            assert!(matches!(places(text), Err(MonitorError::Syntax { .. })), "{text}");
        }
    }

    #[test]
    fn lists_are_split_outside_brackets() {
        let texts: Vec<String> =
            Monitor::parse_list("mu, z[1, 2] beta").unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["mu", "z[1, 2]", "beta"]);
    }
}
