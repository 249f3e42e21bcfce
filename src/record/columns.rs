//! Columns of many rows made of few values: each value is written once and taken as often as it stands. A reader whose records are
//! put together of prepared parts makes its batch this way; it is the same batch as [`super::to_batch`] would make of the records.

use super::{Row, to_batch};
use anyhow::{Context, ensure};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use arrow::record_batch::RecordBatch;
use serde::Serialize;
use std::sync::Arc;

/// Rows that begin as copies of one, and get columns of their own.
pub struct Columns {
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
}

impl Columns {
    /// `n` times the same row.
    pub fn repeat<T: Row>(row: &T, n: usize) -> anyhow::Result<Self> {
        let batch = to_batch(std::slice::from_ref(row))?;
        let first = UInt32Array::from(vec![0; n]);
        let columns = batch.columns().iter().map(|column| take(column, &first, None)).collect::<Result<_, _>>()?;
        Ok(Self { schema: batch.schema(), columns })
    }

    /// The declared field at a path of names, such as `facts.antecedents`.
    pub fn field(&self, path: &str) -> anyhow::Result<FieldRef> {
        let mut names = path.split('.');
        let first = names.next().unwrap_or_default();
        let column = self.schema.fields().iter().find(|field| field.name() == first);
        let mut field = Arc::clone(column.with_context(|| format!("no column `{first}`"))?);
        for name in names {
            field = child_of(&field, name)?;
        }
        Ok(field)
    }

    /// Puts a column in the place of the one at a path.
    ///
    /// # Errors
    /// If there is none, or if it has another type or length.
    pub fn set(&mut self, path: &str, array: ArrayRef) -> anyhow::Result<()> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let index = self.schema.index_of(first)?;
        let column = self.columns.get_mut(index).with_context(|| format!("no column `{first}`"))?;
        *column = replaced(column, rest, array).with_context(|| format!("column `{path}`"))?;
        Ok(())
    }

    pub fn finish(self) -> anyhow::Result<RecordBatch> {
        Ok(RecordBatch::try_new(self.schema, self.columns)?)
    }
}

fn child_of(field: &Field, name: &str) -> anyhow::Result<FieldRef> {
    let DataType::Struct(children) = field.data_type() else { anyhow::bail!("`{}` is no struct", field.name()) };
    let child = children.iter().find(|child| child.name() == name);
    Ok(Arc::clone(child.with_context(|| format!("`{}` has no field `{name}`", field.name()))?))
}

/// A column with another array at a path below it.
pub fn replaced(column: &ArrayRef, path: Option<&str>, array: ArrayRef) -> anyhow::Result<ArrayRef> {
    let Some(path) = path else {
        ensure!(
            column.data_type() == array.data_type() && column.len() == array.len(),
            "{} rows of {} in the place of {} of {}",
            array.len(),
            array.data_type(),
            column.len(),
            column.data_type()
        );
        return Ok(array);
    };
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let of = column.as_struct_opt().with_context(|| format!("`{path}` is in no struct"))?;
    let (fields, mut columns, nulls) = of.clone().into_parts();
    let index = fields.iter().position(|field| field.name() == first).with_context(|| format!("no field `{first}`"))?;
    let child = columns.get_mut(index).with_context(|| format!("no field `{first}`"))?;
    *child = replaced(child, rest, array)?;
    Ok(Arc::new(StructArray::try_new(fields, columns, nulls)?))
}

/// Different values, and which of them stand one after the other.
#[derive(Clone, Debug)]
pub struct Taken<T> {
    pub values: Vec<T>,
    pub indices: Vec<u32>,
}

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Self { values: Vec::new(), indices: Vec::new() }
    }
}

impl<T: Serialize> Taken<T> {
    /// Adds a value that does not stand here yet, and gives its index.
    pub fn add(&mut self, value: T) -> u32 {
        self.values.push(value);
        u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
    }

    /// The values as they stand, in the type of a declared field.
    pub fn array(self, field: &Field) -> anyhow::Result<ArrayRef> {
        let values = array_of(&self.values, field)?;
        Ok(take(&values, &UInt32Array::from(self.indices), None)?)
    }
}

/// Lists one after the other.
#[derive(Clone, Debug)]
pub struct TakenLists<T> {
    pub taken: Taken<T>,
    lengths: Vec<usize>,
    n_closed: usize,
}

impl<T> Default for TakenLists<T> {
    fn default() -> Self {
        Self { taken: Taken::default(), lengths: Vec::new(), n_closed: 0 }
    }
}

impl<T: Serialize> TakenLists<T> {
    pub fn push(&mut self, index: u32) {
        self.taken.indices.push(index);
    }

    /// Ends the list of a row.
    pub fn close(&mut self) {
        self.lengths.push(self.taken.indices.len() - self.n_closed);
        self.n_closed = self.taken.indices.len();
    }

    /// The lists, in the type of a declared field. `change` may change the elements, all rows' one after the other.
    pub fn array(
        self,
        field: &Field,
        change: impl FnOnce(ArrayRef) -> anyhow::Result<ArrayRef>,
    ) -> anyhow::Result<ArrayRef> {
        let DataType::List(element) = field.data_type() else { anyhow::bail!("`{}` is no list", field.name()) };
        let elements = change(self.taken.array(element)?)?;
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, elements, None)?))
    }
}

/// Values as an array of the type of a declared field.
pub fn array_of<T: Serialize>(values: &[T], field: &Field) -> anyhow::Result<ArrayRef> {
    let fields: [FieldRef; 1] = [Arc::new(field.clone().with_name("item"))];
    if values.is_empty() {
        return Ok(arrow::array::new_empty_array(field.data_type()));
    }
    let arrays = serde_arrow::to_arrow(&fields, serde_arrow::utils::Items(values))?;
    arrays.into_iter().next().context("one array for one field")
}
