//! Columns of many rows made of few values: each value is written once and taken as often as it stands. A reader whose records are
//! put together of prepared parts makes its batch this way; it is the same batch as [`super::to_batch`] would make of the records.

use super::{Row, to_batch};
use anyhow::{Context, ensure};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
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
        let first = vec![0; n];
        let columns = batch.columns().iter().map(|column| taken(column, &first)).collect::<Result<_, _>>()?;
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
        taken(&array_of(&self.values, field)?, &self.indices)
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

/// The values at these indices. As [`take`], which for lists copies one list at a time, and most of these are empty.
fn taken(array: &ArrayRef, indices: &[u32]) -> anyhow::Result<ArrayRef> {
    let nulls = |of: &dyn Array| {
        let nulls = of.nulls().filter(|nulls| nulls.null_count() > 0)?;
        Some(indices.iter().map(|index| nulls.is_valid(*index as usize)).collect::<NullBuffer>())
    };
    if let Some(of) = array.as_struct_opt() {
        let columns = of.columns().iter().map(|column| taken(column, indices)).collect::<Result<Vec<_>, _>>()?;
        return Ok(Arc::new(StructArray::try_new(of.fields().clone(), columns, nulls(of))?));
    }
    let (DataType::List(element), Some(of)) = (array.data_type(), array.as_list_opt::<i32>()) else {
        return Ok(take(array, &UInt32Array::from(indices.to_vec()), None)?);
    };
    let mut elements: Vec<u32> = Vec::new();
    let mut lengths = Vec::with_capacity(indices.len());
    for index in indices {
        let offsets = of.value_offsets();
        let bound = |at: usize| -> anyhow::Result<u32> { Ok(u32::try_from(*offsets.get(at).context("an index")?)?) };
        let (start, end) = (bound(*index as usize)?, bound(*index as usize + 1)?);
        elements.extend(start..end);
        lengths.push((end - start) as usize);
    }
    let elements = if elements.is_empty() {
        arrow::array::new_empty_array(element.data_type())
    } else {
        taken(of.values(), &elements)?
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, elements, nulls(of))?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::vector::PatientVector;
    use crate::stage::testing::patient;
    use proptest::prelude::*;

    proptest! {
        /// Rows that are taken are the rows themselves.
        #[test]
        fn what_is_taken_is_what_was_there(indices in proptest::collection::vec(0usize..3, 0..12)) {
            let mut patients = [patient("1"), patient("2"), patient("3")];
            patients[1].presentation.symptoms.clear();
            patients[1].ground_truth.primary.icd10 = None;
            patients[2].flags = vec!["a".to_owned(), "b".to_owned()];
            let mut of: Taken<PatientVector> = Taken::default();
            patients.iter().for_each(|patient| { of.add(patient.clone()); });
            of.indices = indices.iter().map(|index| *index as u32).collect();
            let schema = super::super::arrow_schema::<PatientVector>().unwrap();
            let field = Field::new("item", DataType::Struct(schema.fields().clone()), false);
            let array = of.array(&field).unwrap();
            let rows: Vec<PatientVector> = indices.iter().map(|index| patients[*index].clone()).collect();
            let expected = to_batch(&rows).unwrap();
            for (found, expected) in array.as_struct().columns().iter().zip(expected.columns()) {
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_column_of_another_type_or_length_is_refused() {
        let mut columns = Columns::repeat(&patient("1"), 2).unwrap();
        let three: ArrayRef = Arc::new(UInt32Array::from(vec![1, 2, 3]));
        for path in ["record_id", "provenance.line", "nothing", "provenance.nothing", "record_id.nothing"] {
            assert!(columns.set(path, three.clone()).is_err(), "{path}");
        }
        assert_eq!(columns.finish().unwrap(), to_batch(&[patient("1"), patient("1")]).unwrap());
    }
}
