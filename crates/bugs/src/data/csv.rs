//! Data as a table: a header, and a vector for each column.

use super::arrays::{Array, Data};
use super::error::DataError;

pub(super) fn read(text: &str) -> Result<Data, DataError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let failed = |error: csv::Error| {
        let line = error.position().map_or(1, |p| p.line() as usize);
        let message = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} fields, but the header has {expected_len}")
            }
            _ => error.to_string(),
        };
        DataError::Syntax { line, column: 1, message, remedy: "every line must have one field for each column".into() }
    };
    let header: Vec<String> = reader.headers().map_err(failed)?.iter().map(str::to_string).collect();
    if header.iter().all(String::is_empty) {
        return Err(DataError::at(text, 0, "no header", "the first line must name the columns"));
    }
    for (i, name) in header.iter().enumerate() {
        if header[..i].contains(name) {
            let message = format!("two columns are called `{name}`");
            return Err(DataError::at(text, 0, message, "give each column its own name"));
        }
    }
    let mut columns = vec![Vec::new(); header.len()];
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        for (column, field) in columns.iter_mut().zip(&record) {
            column.push((line, field.to_string()));
        }
    }
    let mut data = Data::default();
    for (i, (name, fields)) in header.into_iter().zip(columns).enumerate() {
        // Tables written by R have a first column of row names without a header.
        if name.is_empty() {
            data.notes.push(format!("column {} has no name and was left out", i + 1));
            continue;
        }
        let values = column(&name, &fields, &mut data.notes)?;
        data.arrays.insert(name, Array::vector(values));
    }
    Ok(data)
}

fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "NaN" | "nan")
}

fn number(field: &str) -> Option<f64> {
    match field {
        "TRUE" | "True" | "true" => Some(1.0),
        "FALSE" | "False" | "false" => Some(0.0),
        // The standard parser accepts `inf` and `nan`; here they are text.
        _ if field.starts_with(|c: char| c.is_ascii_alphabetic()) => None,
        _ => field.parse().ok().filter(|x: &f64| x.is_finite()),
    }
}

/// Numbers are used as they are, text is coded as 1, 2, … in alphabetical order, and a mixture of the two is an error.
fn column(name: &str, fields: &[(usize, String)], notes: &mut Vec<String>) -> Result<Vec<f64>, DataError> {
    let present = || fields.iter().filter(|(_, field)| !is_missing(field));
    let numeric = present().filter(|(_, field)| number(field).is_some()).count();
    if numeric == 0 && present().next().is_some() {
        let mut levels: Vec<&str> = present().map(|(_, field)| field.as_str()).collect();
        levels.sort_unstable();
        levels.dedup();
        let shown: Vec<String> = levels.iter().take(10).enumerate().map(|(i, l)| format!("{} = {l}", i + 1)).collect();
        let more = if levels.len() > 10 { ", …" } else { "" };
        notes.push(format!("column `{name}` is text, coded by level: {}{more}", shown.join(", ")));
        let code = |field: &String| levels.binary_search(&field.as_str()).map_or(f64::NAN, |i| (i + 1) as f64);
        return Ok(fields.iter().map(|(_, field)| if is_missing(field) { f64::NAN } else { code(field) }).collect());
    }
    fields
        .iter()
        .map(|(line, field)| {
            if is_missing(field) {
                return Ok(f64::NAN);
            }
            number(field).ok_or_else(|| {
                let message = format!("`{field}` among the numbers");
                DataError::value(name, format!(" (line {line})"), message, "write NA, or leave a missing value empty")
            })
        })
        .collect()
}
