//! The factor of a model that makes a draw impossible, or leaves its density undefined.

use serde::{Deserialize, Serialize};

/// A factor at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Its name, with indices from one.
    pub factor: String,
    /// Its value, its law with the parameters at that draw, and where the model states it:
    /// `log density −∞ at y[17] = 3 ~ dpois(mu[17] = 0), model.bug:12`.
    pub reason: String,
}

/// The factor that most of some draws fell to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonFault {
    /// The factor, at the first of those draws.
    pub fault: Fault,
    /// How many of the draws that were looked at fell to it.
    pub count: usize,
    /// How many were looked at.
    pub of: usize,
}

impl CommonFault {
    /// The factor that occurs most often; of several that do, the one that came first.
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
    fn the_factor_that_occurs_most_often_is_told_as_it_first_occurred() {
        let fault = |factor: &str, reason: &str| Fault { factor: factor.to_owned(), reason: reason.to_owned() };
        let faults = vec![fault("a", "1"), fault("b", "2"), fault("b", "3"), fault("c", "4")];
        let common = CommonFault::among(faults).expect("faults");
        assert_eq!((common.fault.reason.as_str(), common.count, common.of), ("2", 2, 4));
        assert_eq!(CommonFault::among(Vec::new()), None);
    }
}
