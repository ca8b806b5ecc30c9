//! Data as one JSON object: numbers, booleans, nested arrays in row-major order, `null` for a missing value.

use super::{Array, Data, DataError};
use serde_json::Value;

pub(super) fn read(text: &str) -> Result<Data, DataError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // The message repeats the place at its end.
        let message = message.split(" at line ").next().unwrap_or(&message).to_string();
        let remedy = if text.contains("NaN") || text.contains("NA") {
            "a missing value is written `null`".into()
        } else {
            "the file must be one JSON object, such as {\"N\": 2, \"y\": [1, 0]}".to_string()
        };
        DataError::Syntax { line: error.line(), column: error.column(), message, remedy }
    })?;
    let Value::Object(members) = value else {
        return Err(DataError::at(
            text,
            text.len() - text.trim_start().len(),
            format!("expected an object of named values, found {}", kind(&value)),
            "give each variable its name: {\"y\": …}",
        ));
    };
    let mut data = Data::default();
    for (name, value) in members {
        let mut array = Array { shape: shape_of(&value), values: Vec::new() };
        fill(&name, &value, &mut array, &mut Vec::new())?;
        data.arrays.insert(name, array);
    }
    Ok(data)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The shape that the first element at every level speaks of; `fill` holds the others to it.
fn shape_of(mut value: &Value) -> Vec<usize> {
    let mut shape = Vec::new();
    while let Value::Array(elements) = value {
        shape.push(elements.len());
        match elements.first() {
            Some(first) => value = first,
            None => break,
        }
    }
    shape
}

fn fill(name: &str, value: &Value, array: &mut Array, place: &mut Vec<usize>) -> Result<(), DataError> {
    let depth = place.len();
    let written = || place.iter().map(|i| format!("[{}]", i + 1)).collect::<String>();
    let elements = match value {
        Value::Array(elements) => elements,
        _ if depth != array.shape.len() => {
            return Err(DataError::value(
                name,
                written(),
                format!("expected an array of {}, found {}", array.shape[depth], kind(value)),
                "every element of an array must have the same shape",
            ));
        }
        Value::Null => {
            array.values.push(f64::NAN);
            return Ok(());
        }
        Value::Bool(yes) => {
            array.values.push(f64::from(u8::from(*yes)));
            return Ok(());
        }
        Value::Number(number) => {
            array.values.push(number.as_f64().unwrap_or(f64::NAN));
            return Ok(());
        }
        Value::String(text) if text == "NA" || text == "NaN" => {
            return Err(DataError::value(name, written(), "a missing value in quotes", "write null"));
        }
        Value::String(_) | Value::Object(_) => {
            return Err(DataError::value(
                name,
                written(),
                format!("expected a number, found {}", kind(value)),
                "data are numbers; code text as 1, 2, …",
            ));
        }
    };
    match array.shape.get(depth) {
        Some(&length) if length == elements.len() => {}
        Some(&length) => {
            return Err(DataError::value(
                name,
                written(),
                format!("a ragged array: {} elements where its neighbours have {length}", elements.len()),
                "fill the short ones with null",
            ));
        }
        None => {
            return Err(DataError::value(
                name,
                written(),
                "an array where its neighbours are numbers",
                "every element of an array must have the same shape",
            ));
        }
    }
    for (i, element) in elements.iter().enumerate() {
        place.push(i);
        fill(name, element, array, place)?;
        place.pop();
    }
    Ok(())
}
