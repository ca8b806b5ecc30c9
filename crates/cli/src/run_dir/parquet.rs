//! Draws as a Parquet file: one row group, with 64-bit integers for discrete scalars and doubles for the others.

use super::csv::LOG_WEIGHT;
use hyperprior::Batch;
use hyperprior::posterior::{Column, Draws, Kind};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Writes the whole file.
pub fn draws(out: &mut (impl Write + Send), draws: &Draws) -> io::Result<()> {
    encode(out, draws).map_err(from_disk)
}

/// Reads draws back.
pub fn read(path: &Path) -> Result<Draws, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let (columns, values, log_weights) = decode(file).map_err(|e| e.to_string())?;
    let draws = Draws::new(columns, values).map_err(|e| e.to_string())?;
    match log_weights {
        Some(log_weights) => draws.weighted(log_weights).map_err(|e| e.to_string()),
        None => Ok(draws),
    }
}

type Decoded = (Vec<Column>, Batch, Option<Vec<f64>>);

fn decode(file: File) -> Result<Decoded, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let (mut columns, mut values, mut log_weights) = (Vec::new(), Vec::new(), None);
    let mut len = 0;
    for (c, of_schema) in schema.columns().iter().enumerate() {
        let (mut own, mut is_discrete) = (Vec::new(), false);
        for group in 0..reader.num_row_groups() {
            let rows = reader.get_row_group(group)?;
            let rows_len = usize::try_from(rows.metadata().num_rows()).unwrap_or(0);
            match rows.get_column_reader(c)? {
                ColumnReader::DoubleColumnReader(mut column) => {
                    column.read_records(rows_len, None, None, &mut own)?;
                }
                ColumnReader::Int64ColumnReader(mut column) => {
                    let mut whole = Vec::new();
                    column.read_records(rows_len, None, None, &mut whole)?;
                    own.extend(whole.into_iter().map(|x| x as f64));
                    is_discrete = true;
                }
                _ => return Err(ParquetError::General(format!("column `{}` is not numeric", of_schema.name()))),
            }
        }
        if c > 0 && own.len() != len {
            return Err(ParquetError::General(format!(
                "column `{}` has {} rows, not {len}",
                of_schema.name(),
                own.len()
            )));
        }
        len = own.len();
        match of_schema.name() {
            LOG_WEIGHT => log_weights = Some(own),
            name => {
                columns.push(if is_discrete { Column::discrete(name) } else { Column::continuous(name) });
                values.extend(own);
            }
        }
    }
    Ok((columns, Batch::from_columns(values, len), log_weights))
}

/// The underlying I/O error, so that the message can suggest a remedy.
pub fn from_disk(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

/// The name and version of the writer.
pub fn created_by() -> String {
    concat!("hyperprior ", env!("CARGO_PKG_VERSION")).to_owned()
}

fn encode(out: &mut (impl Write + Send), draws: &Draws) -> Result<(), ParquetError> {
    let schema = Arc::new(schema(draws)?);
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties(draws)))?;
    let mut rows = writer.next_row_group()?;
    for (i, column) in draws.columns().iter().enumerate() {
        let Some(mut chunk) = rows.next_column()? else { break };
        let x = draws.column(i);
        match column.kind {
            Kind::Discrete => {
                let whole: Vec<i64> = x.iter().map(|x| *x as i64).collect();
                chunk.typed::<Int64Type>().write_batch(&whole, None, None)?
            }
            Kind::Continuous => chunk.typed::<DoubleType>().write_batch(x, None, None)?,
        };
        chunk.close()?;
    }
    if let (Some(log_weights), Some(mut chunk)) = (draws.log_weights(), rows.next_column()?) {
        chunk.typed::<DoubleType>().write_batch(log_weights, None, None)?;
        chunk.close()?;
    }
    rows.close()?;
    writer.close()?;
    Ok(())
}

fn schema(draws: &Draws) -> Result<Type, ParquetError> {
    let field = |name: &str, physical| {
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        field.build().map(Arc::new)
    };
    let physical = |kind| match kind {
        Kind::Discrete => Physical::INT64,
        Kind::Continuous => Physical::DOUBLE,
    };
    let mut fields = draws.columns().iter().map(|c| field(&c.name, physical(c.kind))).collect::<Result<Vec<_>, _>>()?;
    if draws.log_weights().is_some() {
        fields.push(field(LOG_WEIGHT, Physical::DOUBLE)?);
    }
    Type::group_type_builder("draws").with_fields(fields).build()
}

/// Discrete columns repeat their values, so a dictionary packs each into a few bits; doubles are stored plain.
fn properties(draws: &Draws) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(created_by())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false);
    for column in draws.columns().iter().filter(|column| column.kind == Kind::Discrete) {
        let path = ColumnPath::new(vec![column.name.clone()]);
        properties = properties.set_column_dictionary_enabled(path, true);
    }
    properties.build()
}
