//! Numbers that JSON cannot represent: NaN and infinity are written as `null` and read as NaN.

use serde::{Deserialize, Deserializer};

/// Reads a number; `null` is NaN.
pub(crate) fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    // Binary formats store every number as it is.
    if deserializer.is_human_readable() {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
    } else {
        f64::deserialize(deserializer)
    }
}

/// Reads a list of numbers; `null` is NaN.
pub(crate) fn nullables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    if deserializer.is_human_readable() {
        let numbers = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(numbers.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
    } else {
        Vec::deserialize(deserializer)
    }
}

/// Reads a pair of numbers; `null` is NaN.
pub(crate) fn nullable_pair<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 2], D::Error> {
    if deserializer.is_human_readable() {
        Ok(<[Option<f64>; 2]>::deserialize(deserializer)?.map(|x| x.unwrap_or(f64::NAN)))
    } else {
        <[f64; 2]>::deserialize(deserializer)
    }
}
