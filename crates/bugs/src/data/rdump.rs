//! Data as an R dump: `NAME <- value` one after another, or one `list(name = value, …)` as OpenBUGS writes it.

use super::arrays::{Array, Data};
use super::error::DataError;
use super::rvalue::Reader;

pub(super) fn read(text: &str) -> Result<Data, DataError> {
    let mut reader = Reader::new(text);
    let mut data = Data::default();
    reader.blanks();
    if reader.accept_word("list") {
        reader.expect('(')?;
        reader.blanks();
        if reader.accept(')') {
            return Ok(data);
        }
        loop {
            member(&mut reader, &mut data, "=", Reader::list_value)?;
            reader.blanks();
            if reader.accept(')') {
                break;
            }
            reader.expect(',')?;
        }
        reader.blanks();
        reader.accept(';');
        reader.blanks();
        if !reader.at_end() {
            return Err(reader.error("text after the list", "put all the data into one list"));
        }
        return Ok(data);
    }
    while !reader.at_end() {
        member(&mut reader, &mut data, "<-", Reader::dump_value)?;
        reader.blanks();
        while reader.accept(';') {
            reader.blanks();
        }
    }
    Ok(data)
}

fn member<'a>(
    reader: &mut Reader<'a>,
    data: &mut Data,
    sign: &str,
    value: fn(&mut Reader<'a>) -> Result<Array, DataError>,
) -> Result<(), DataError> {
    reader.blanks();
    let at = reader.at;
    let name = reader.name()?;
    reader.blanks();
    if !reader.accept_text(sign) && !reader.accept('=') {
        let message = format!("expected `{sign}` after `{name}`");
        return Err(reader.error(&message, "each value is written `name <- value`"));
    }
    if name.starts_with(".RNG.") {
        // Files of starting values may choose a random number generator for JAGS; this is ignored.
        return reader.skip_setting();
    }
    let array = value(reader)?;
    if data.arrays.insert(name.clone(), array).is_some() {
        reader.at = at;
        return Err(reader.error(&format!("`{name}` already has a value"), "remove one of the two"));
    }
    Ok(())
}
