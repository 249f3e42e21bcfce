//! Reading and writing Parquet with fixed settings. No other module writes it.

use super::fs::{self, NewFile};
use crate::error::{Panics, catch_panic};
use anyhow::Context;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Part of the store format: another value gives other bytes.
const CREATED_BY: &str = "casemill";

fn options() -> anyhow::Result<ArrowWriterOptions> {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(CREATED_BY.to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // One batch is one row group.
        .set_max_row_group_row_count(None)
        .build();
    // Without the embedded Arrow schema the types follow from the Parquet types alone, for every reader.
    Ok(ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true))
}

/// One batch as the bytes of one Parquet file with one row group.
pub fn encode(batch: &RecordBatch) -> anyhow::Result<Vec<u8>> {
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options()?)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

/// A table written batch by batch, each batch one row group. For release files, whose row groups
/// are cut by content, never by threads.
pub struct TableWriter {
    writer: Option<ArrowWriter<NewFile>>,
    n_rows: u64,
}

impl TableWriter {
    pub fn create(path: &Path, schema: &SchemaRef) -> anyhow::Result<Self> {
        let writer = ArrowWriter::try_new_with_options(NewFile::create(path)?, schema.clone(), options()?)?;
        Ok(Self { writer: Some(writer), n_rows: 0 })
    }

    pub fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let writer = self.writer.as_mut().context("the table is closed")?;
        writer.write(batch)?;
        writer.flush()?;
        self.n_rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Finishes the file and gives the number of its rows.
    pub fn close(mut self) -> anyhow::Result<u64> {
        let writer = self.writer.take().context("the table is closed")?;
        writer.into_inner()?.sync()?;
        Ok(self.n_rows)
    }
}

fn open(path: &Path) -> anyhow::Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    // The library can panic on damaged bytes (it divides by counts that the file gives).
    let metadata = catch_panic(Panics::Quiet, || Ok(ArrowReaderMetadata::load(&file, options)?))
        .with_context(|| format!("{} is not a readable Parquet file", path.display()))?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
}

/// The schema that a file declares.
pub fn schema(path: &Path) -> anyhow::Result<SchemaRef> {
    Ok(open(path)?.schema().clone())
}

/// Number of rows that a file declares.
pub fn n_rows(path: &Path) -> anyhow::Result<u64> {
    let n = open(path)?.metadata().file_metadata().num_rows();
    u64::try_from(n).with_context(|| format!("{} declares {n} rows", path.display()))
}

/// A whole file as one batch: for parts, which are bounded by the shard size.
pub fn read(path: &Path) -> anyhow::Result<RecordBatch> {
    read_projected(path, None)
}

/// The named top-level columns of a file as one batch.
pub fn read_columns(path: &Path, columns: &[&str]) -> anyhow::Result<RecordBatch> {
    read_projected(path, Some(columns))
}

fn read_projected(path: &Path, columns: Option<&[&str]>) -> anyhow::Result<RecordBatch> {
    let mut batches = Vec::new();
    let mut schema = None;
    for_each_batch(path, columns, |batch| {
        schema.get_or_insert_with(|| batch.schema());
        batches.push(batch);
        Ok(())
    })?;
    match schema {
        Some(schema) => Ok(arrow::compute::concat_batches(&schema, &batches)?),
        None => {
            let full = self::schema(path)?;
            let fields =
                full.fields().iter().filter(|field| columns.is_none_or(|names| names.contains(&field.name().as_str())));
            Ok(RecordBatch::new_empty(Arc::new(arrow::datatypes::Schema::new(fields.cloned().collect::<Vec<_>>()))))
        }
    }
}

/// Number of row groups that a file declares.
pub fn n_row_groups(path: &Path) -> anyhow::Result<usize> {
    Ok(open(path)?.metadata().num_row_groups())
}

/// One row group as one batch.
pub fn read_row_group(path: &Path, group: usize) -> anyhow::Result<RecordBatch> {
    read_group(path, group, None)
}

/// Reads a file row group by row group.
pub fn for_each_batch(
    path: &Path,
    columns: Option<&[&str]>,
    mut visit: impl FnMut(RecordBatch) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for group in 0..n_row_groups(path)? {
        visit(read_group(path, group, columns)?)?;
    }
    Ok(())
}

fn read_group(path: &Path, group: usize, columns: Option<&[&str]>) -> anyhow::Result<RecordBatch> {
    let mut builder = open(path)?;
    let rows = usize::try_from(builder.metadata().row_group(group).num_rows()).unwrap_or(0);
    if let Some(names) = columns {
        let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
        builder = builder.with_projection(mask);
    }
    let read = || {
        let reader = builder.with_row_groups(vec![group]).with_batch_size(rows.clamp(1, 1 << 20)).build()?;
        let schema = arrow::array::RecordBatchReader::schema(&reader);
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        Ok(arrow::compute::concat_batches(&schema, &batches)?)
    };
    catch_panic(Panics::Quiet, read).with_context(|| format!("{} cannot be read: it is damaged", path.display()))
}

/// Writes one batch as a new file in a folder that is still temporary; gives its bytes' hash and length.
pub fn write_new(path: &Path, batch: &RecordBatch) -> anyhow::Result<(crate::record::Hash, u64)> {
    let bytes = encode(batch)?;
    fs::write_new(path, &bytes)?;
    Ok((crate::record::Hash::of(&bytes), bytes.len() as u64))
}

/// Part files as one lazy polars frame, in the order given: for table stages.
pub fn scan(paths: &[std::path::PathBuf]) -> anyhow::Result<polars::prelude::LazyFrame> {
    use polars::prelude::{LazyFrame, PlRefPath, ScanArgsParquet};
    let paths = paths.iter().map(|path| Ok(PlRefPath::try_from_path(path)?)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(LazyFrame::scan_parquet_files(paths.into(), ScanArgsParquet::default())?)
}
