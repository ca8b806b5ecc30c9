//! Named rows with columns of numbers, as CSV or Parquet.

use super::csv::quoted;
use super::parquet::{created_by, from_disk};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// A table with a name for each row; every column has one number per row.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    /// The heading of the names.
    pub key: &'a str,
    /// The names.
    pub rows: &'a [String],
    /// A second column of text, with its heading.
    pub labels: Option<(&'a str, &'a [&'a str])>,
    /// The columns, with their headings; NaN means unknown.
    pub columns: &'a [(String, Vec<f32>)],
}

/// A header, then a line per row.
pub fn csv(out: &mut impl Write, table: &Columns) -> io::Result<()> {
    let label = table.labels.map(|(label, _)| label);
    let header = [table.key].into_iter().chain(label).chain(table.columns.iter().map(|(name, _)| name.as_str()));
    writeln!(out, "{}", header.map(quoted).collect::<Vec<_>>().join(","))?;
    for (i, row) in table.rows.iter().enumerate() {
        write!(out, "{}", quoted(row))?;
        if let Some((_, labels)) = table.labels {
            write!(out, ",{}", quoted(labels[i]))?;
        }
        for (_, column) in table.columns {
            // The shortest text that parses to the same number; empty if unknown.
            if column[i].is_nan() { write!(out, ",")? } else { write!(out, ",{:?}", column[i])? }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A Parquet file with one row group: the names as text, then 32-bit floats.
pub fn parquet(out: &mut (impl Write + Send), table: &Columns) -> io::Result<()> {
    encode(out, table).map_err(from_disk)
}

fn encode(out: &mut (impl Write + Send), table: &Columns) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_created_by(created_by()).set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema(table)?), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    if let Some(mut chunk) = group.next_column()? {
        let names: Vec<ByteArray> = table.rows.iter().map(|row| row.as_str().into()).collect();
        chunk.typed::<ByteArrayType>().write_batch(&names, None, None)?;
        chunk.close()?;
    }
    for (_, column) in table.columns {
        let Some(mut chunk) = group.next_column()? else { break };
        chunk.typed::<FloatType>().write_batch(column, None, None)?;
        chunk.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn schema(table: &Columns) -> Result<Type, ParquetError> {
    let field = |name: &str, physical, logical| {
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        field.with_logical_type(logical).build().map(Arc::new)
    };
    let key = [field(table.key, Physical::BYTE_ARRAY, Some(LogicalType::String))];
    let columns = table.columns.iter().map(|(name, _)| field(name, Physical::FLOAT, None));
    let fields = key.into_iter().chain(columns).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("table").with_fields(fields).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn rows_have_their_names_and_numbers() {
        let rows = ["Song of Solomon 1".to_owned(), "a \"word\", quoted".to_owned()];
        let columns = [("topic1".to_owned(), vec![0.5, 1e-7]), ("topic2".to_owned(), vec![0.0, 3.25])];
        let table = Columns { key: "document", rows: &rows, labels: None, columns: &columns };
        let mut text = Vec::new();
        csv(&mut text, &table).expect("text");
        let expected = "document,topic1,topic2\nSong of Solomon 1,0.5,0.0\n\"a \"\"word\"\", quoted\",1e-7,3.25\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);

        let unknown = [("topic1".to_owned(), vec![0.5, f32::NAN])];
        let labelled = Columns { labels: Some(("part", &["train", "heldout"])), columns: &unknown, ..table };
        let mut text = Vec::new();
        csv(&mut text, &labelled).expect("text");
        let expected = "document,part,topic1\nSong of Solomon 1,train,0.5\n\"a \"\"word\"\", quoted\",heldout,\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);

        let path = std::env::temp_dir().join(format!("hyperprior-columns-{}.parquet", std::process::id()));
        parquet(&mut std::fs::File::create(&path).expect("a file"), &table).expect("a table");
        let read = SerializedFileReader::new(std::fs::File::open(&path).expect("a file")).expect("Parquet");
        let found: Vec<String> =
            read.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
        let _ = std::fs::remove_file(&path);
        assert!(found[0].contains("Song of Solomon 1") && found[0].contains("topic1: 0.5"), "{found:?}");
        assert!(found[1].contains("topic2: 3.25"), "{found:?}");
        assert_eq!(found.len(), 2);
    }
}
