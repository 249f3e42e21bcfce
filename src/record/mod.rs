//! Typed records that cross stages. One struct per record type; the Arrow schema and the JSON
//! Schema both come from the struct, never from data.

/// Makes a struct with the fields `record_id` and `provenance` a [`Record`].
macro_rules! record_by_fields {
    ($name:ty) => {
        impl $crate::record::Record for $name {
            fn record_id(&self) -> &$crate::record::RecordId {
                &self.record_id
            }

            fn set_record_id(&mut self, id: $crate::record::RecordId) {
                self.record_id = id;
            }

            fn provenance(&self) -> &$crate::record::Provenance {
                &self.provenance
            }
        }
    };
}

pub mod article;
pub mod columns;
pub mod correction;
pub mod decision;
pub mod difficulty;
pub mod id;
pub mod ledger;
pub mod licence;
pub mod model;
pub mod provenance;
pub mod question;
pub mod raw;
pub mod release;
pub mod slots;
pub mod staged;
pub mod vector;

use anyhow::Context;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_arrow::schema::{SchemaLike, TracingOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use id::{Hash, RecordId, canonical_json};
pub use provenance::{Access, LlmEgress, Provenance, Rights};

/// A row of a table: fields are scalars, strings, unit enums, lists and structs of these.
/// `Option` means "unknown"; it is never nested.
pub trait Row: Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static {
    /// `snake_case` name, also the name of the schema file.
    const NAME: &'static str;
    /// Raised when a field is added, removed or changes its meaning.
    const VERSION: u32 = 1;
    /// One line for the schema file.
    const TITLE: &'static str;
}

/// A row that moves through the pipeline under an id.
pub trait Record: Row {
    fn record_id(&self) -> &RecordId;
    fn set_record_id(&mut self, id: RecordId);
    fn provenance(&self) -> &Provenance;
}

/// What the engine, `schema` and `verify` need to know of a row type without its Rust type.
#[derive(Clone, Copy)]
pub struct RowType {
    pub name: &'static str,
    pub version: u32,
    pub arrow_schema: fn() -> anyhow::Result<SchemaRef>,
    pub json_schema: fn() -> serde_json::Value,
}

impl RowType {
    pub const fn of<T: Row>() -> Self {
        Self { name: T::NAME, version: T::VERSION, arrow_schema: arrow_schema::<T>, json_schema: json_schema::<T> }
    }

    /// `question.v1.json`
    pub fn file_name(&self) -> String {
        format!("{}.v{}.json", self.name, self.version)
    }

    /// Identifies the shape of the rows: the hash of the JSON Schema. Computed once in a process.
    pub fn hash(&self) -> anyhow::Result<Hash> {
        static KNOWN: Mutex<BTreeMap<(&'static str, usize), Hash>> = Mutex::new(BTreeMap::new());
        // Two types of one name (a test's and ours) are told apart by their schema functions.
        let key = (self.name, self.json_schema as usize);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = known.get(&key) {
            return Ok(hash.clone());
        }
        let hash = Hash::of_json(&(self.json_schema)())?;
        known.insert(key, hash.clone());
        Ok(hash)
    }
}

impl std::fmt::Debug for RowType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.v{}", self.name, self.version)
    }
}

/// Every row type that leaves a stage or stands in a release; `casemill schema` writes these.
pub const ROW_TYPES: &[RowType] = &[
    RowType::of::<article::ArticleRecord>(),
    RowType::of::<staged::StagedCase>(),
    RowType::of::<question::Question>(),
    RowType::of::<question::AnsweredQuestion>(),
    RowType::of::<slots::SlotRecord>(),
    RowType::of::<slots::MedroundsCase>(),
    RowType::of::<ledger::LedgerRow>(),
    RowType::of::<ledger::ReviewRow>(),
    RowType::of::<ledger::DuplicateRow>(),
    RowType::of::<model::JudgementRow>(),
    RowType::of::<difficulty::DifficultyRow>(),
    RowType::of::<slots::GroundingRow>(),
    RowType::of::<decision::ReviewDecision>(),
    RowType::of::<correction::CorrectedRecord>(),
    RowType::of::<release::SlotRow>(),
    RowType::of::<release::TextRow>(),
    RowType::of::<release::ProvenanceRow>(),
    RowType::of::<release::ReleaseLedgerRow>(),
    RowType::of::<release::ReleaseReviewRow>(),
    RowType::of::<release::ReleaseJudgementRow>(),
    RowType::of::<release::RunRow>(),
    RowType::of::<release::CorrectionRow>(),
    RowType::of::<release::MediaRow>(),
    RowType::of::<staged::ClinmmCase>(),
    RowType::of::<vector::PatientVector>(),
    RowType::of::<vector::MtdiagCase>(),
];

/// The declared Arrow schema of a row type: plain UTF-8, list elements named `element`, unit enums
/// as text. It depends on the type alone.
pub fn arrow_schema<T: Row>() -> anyhow::Result<SchemaRef> {
    let options = TracingOptions::default()
        .sequence_as_large_list(false)
        .strings_as_large_utf8(false)
        .string_dictionary_encoding(false)
        .enums_without_data_as_strings(true);
    let fields =
        Vec::<FieldRef>::from_type::<T>(options).with_context(|| format!("declaring the columns of `{}`", T::NAME))?;
    Ok(Arc::new(Schema::new(fields.iter().map(|field| plain(field)).collect::<Vec<_>>())))
}

/// Unit enums are traced as dictionaries; readers of other languages get plain text.
fn plain(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::List(element) => DataType::List(Arc::new(plain(element))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| plain(field)).collect()),
        other => other.clone(),
    };
    Field::new(field.name(), data_type, field.is_nullable())
}

/// The JSON Schema of a row type, with its title and file name.
pub fn json_schema<T: Row>() -> serde_json::Value {
    let mut schema = schemars::schema_for!(T);
    schema.insert("title".to_owned(), T::NAME.into());
    schema.insert("$id".to_owned(), format!("{}.v{}.json", T::NAME, T::VERSION).into());
    if schema.get("description").is_none() {
        schema.insert("description".to_owned(), T::TITLE.into());
    }
    schema.to_value()
}

/// Rows to one Arrow batch of the declared schema. Zero rows give a batch with zero rows.
pub fn to_batch<T: Row>(rows: &[T]) -> anyhow::Result<RecordBatch> {
    to_batch_as(rows, &arrow_schema::<T>()?).with_context(|| format!("writing {} `{}` rows", rows.len(), T::NAME))
}

/// Rows of any serialisable type to one batch of a given schema.
pub fn to_batch_as<T: Serialize>(rows: &[T], schema: &SchemaRef) -> anyhow::Result<RecordBatch> {
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    let batch = serde_arrow::to_record_batch(&fields, &rows)?;
    // serde_arrow builds its own schema object; ours is the declared one.
    Ok(RecordBatch::try_new(schema.clone(), batch.columns().to_vec())?)
}

/// One Arrow batch to rows.
pub fn from_batch<T: DeserializeOwned>(batch: &RecordBatch) -> anyhow::Result<Vec<T>> {
    if batch.num_rows() == 0 {
        return Ok(Vec::new());
    }
    Ok(serde_arrow::from_record_batch(batch)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn row_types_have_unique_well_formed_names_and_stable_schemas() {
        let mut names = BTreeSet::new();
        for row_type in ROW_TYPES {
            assert!(row_type.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", row_type.name);
            assert!(names.insert(row_type.name), "{} twice", row_type.name);
            let schema = (row_type.arrow_schema)().unwrap();
            assert!(!schema.fields().is_empty());
            let text = format!("{schema:?}");
            assert!(
                !text.contains("LargeUtf8")
                    && !text.contains("LargeList")
                    && !text.contains("Dictionary")
                    && !text.contains("Null,"),
                "{text}"
            );
            assert!((row_type.json_schema)().get("properties").is_some());
        }
    }
}
