//! The factor of a model that makes a draw impossible, or leaves its density undefined.

use serde::{Deserialize, Serialize};

/// A factor at fault. See [`CommonFault`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its name, with indices from one.
    pub factor: String,
    /// Its value, its distribution with the parameters at that draw, and where the model states it:
    /// `log density −∞ at y[17] = 3 ~ dpois(mu[17] = 0), model.bug:12`.
    pub reason: String,
}

/// The factor at fault in most of several impossible draws.
///
/// ```
/// use hyperprior::model::{CommonFault, Fault};
/// let fault = |factor: &str| Fault { factor: factor.to_owned(), reason: "log density −∞".to_owned() };
/// let common = CommonFault::among(vec![fault("y[1]"), fault("y[2]"), fault("y[1]")]).expect("there are faults");
/// assert_eq!((common.fault.factor.as_str(), common.count, common.of), ("y[1]", 2, 3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommonFault {
    /// The factor, at the first of those draws.
    pub fault: Fault,
    /// In how many of the examined draws it is at fault.
    pub count: usize,
    /// How many draws were examined.
    pub of: usize,
}

impl CommonFault {
    /// The most frequent factor; the first of them if several are tied.
    pub fn among(faults: Vec<Fault>) -> Option<Self> {
        let of = faults.len();
        let mut counted: Vec<(Fault, usize)> = Vec::new();
        for fault in faults {
            match counted.iter_mut().find(|(known, _)| known.factor == fault.factor) {
                Some((_, count)) => *count += 1,
                None => counted.push((fault, 1)),
            }
        }
        let most = counted.iter().map(|(_, count)| *count).max()?;
        counted.into_iter().find(|(_, count)| *count == most).map(|(fault, count)| Self { fault, count, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_factor_is_reported_as_it_first_occurred() {
        let fault = |factor: &str, reason: &str| Fault { factor: factor.to_owned(), reason: reason.to_owned() };
        let faults = vec![fault("a", "1"), fault("b", "2"), fault("b", "3"), fault("c", "4")];
        let common = CommonFault::among(faults).expect("faults");
        assert_eq!((common.fault.reason.as_str(), common.count, common.of), ("2", 2, 4));
        assert_eq!(CommonFault::among(Vec::new()), None);
    }
}
