//! Data as one JSON object: numbers, booleans, nested arrays in row-major order, `null` for a missing value.
//!
//! The text is read straight into arrays, without a tree in between, so that errors have their place in the file.

use super::arrays::{Array, Data};
use super::error::DataError;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

pub(super) fn read(text: &str) -> Result<Data, DataError> {
    let mut reading = Reading::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = Object(&mut reading).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    let Err(error) = result else { return Ok(reading.data) };
    let (message, remedy) = reading.fault.unwrap_or_else(|| {
        let message = error.to_string();
        // The message repeats the place at its end.
        let message = message.split(" at line ").next().unwrap_or(&message).to_string();
        let remedy = if text.contains("NaN") || text.contains("NA") {
            "a missing value is written `null`"
        } else {
            "the file must be one JSON object, such as {\"N\": 2, \"y\": [1, 0]}"
        };
        (message, remedy)
    });
    Err(DataError::Syntax { line: error.line().max(1), column: error.column().max(1), message, remedy: remedy.into() })
}

/// The data so far, and the array that is being filled.
#[derive(Default)]
struct Reading {
    data: Data,
    name: String,
    /// The length at each depth, as its first array has it; none while that one is open.
    shape: Vec<Option<usize>>,
    /// The depth of the numbers, once there is one.
    rank: Option<usize>,
    values: Vec<f64>,
    place: Vec<usize>,
    /// What is wrong, and what to do.
    fault: Option<(String, &'static str)>,
}

impl Reading {
    fn fail<E: Error>(&mut self, message: impl fmt::Display, remedy: &'static str) -> E {
        let indices: String = self.place.iter().map(|i| format!("[{}]", i + 1)).collect();
        self.fault = Some((format!("`{}{indices}`: {message}", self.name), remedy));
        E::custom("fault")
    }

    fn push<E: Error>(&mut self, x: f64) -> Result<(), E> {
        let depth = self.place.len();
        if self.rank.unwrap_or(self.shape.len()) != depth {
            return Err(self.fail("this is a number, but its neighbours are arrays", SAME_SHAPE));
        }
        self.rank = Some(depth);
        self.values.push(x);
        Ok(())
    }
}

const SAME_SHAPE: &str = "every element of an array must have the same shape";

/// The whole file.
struct Object<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of named values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let reading = self.0;
        while let Some(name) = members.next_key::<String>()? {
            reading.name = name;
            reading.shape.clear();
            reading.rank = None;
            if reading.data.arrays.contains_key(&reading.name) {
                return Err(reading.fail("this name already has a value", "remove one of the two"));
            }
            members.next_value_seed(Element(reading))?;
            let shape = reading.shape.iter().map(|n| n.unwrap_or(0)).collect();
            let values = std::mem::take(&mut reading.values);
            reading.data.arrays.insert(std::mem::take(&mut reading.name), Array { shape, values });
        }
        Ok(())
    }
}

/// A number or an array.
struct Element<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number, null or an array")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.push(f64::NAN)
    }

    fn visit_bool<E: Error>(self, yes: bool) -> Result<(), E> {
        self.0.push(f64::from(u8::from(yes)))
    }

    fn visit_i64<E: Error>(self, x: i64) -> Result<(), E> {
        self.0.push(x as f64)
    }

    fn visit_u64<E: Error>(self, x: u64) -> Result<(), E> {
        self.0.push(x as f64)
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<(), E> {
        self.0.push(x)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let missing = matches!(text, "NA" | "NaN" | "nan");
        let remedy =
            if missing { "a missing value is written null" } else { "data are numbers; code text as 1, 2, …" };
        Err(self.0.fail("expected a number, found text", remedy))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.0.fail("expected a number, found an object", "give each variable its own name"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let reading = self.0;
        let depth = reading.place.len();
        if reading.rank.is_some_and(|rank| rank <= depth) {
            return Err(reading.fail("this is an array, but its neighbours are numbers", SAME_SHAPE));
        }
        if reading.shape.len() == depth {
            reading.shape.push(None);
        }
        let mut count = 0;
        reading.place.push(0);
        while elements.next_element_seed(Element(reading))?.is_some() {
            count += 1;
            reading.place[depth] = count;
        }
        reading.place.pop();
        match reading.shape[depth] {
            Some(length) if length != count => {
                let message = format!("ragged array: {count} elements, but its neighbours have {length}");
                Err(reading.fail(message, "fill the short ones with null"))
            }
            _ => {
                reading.shape[depth] = Some(count);
                Ok(())
            }
        }
    }
}
