//! From the last record of a pipeline to the rows of its case.

use super::media::{ATTRIBUTION, ATTRIBUTION_HEADER, RECIPES, attribution, recipes};
use super::{clinmm, medrounds, mtdiag};
use crate::record::difficulty::DifficultyRow;
use crate::record::release::{CitationRow, MediaRow, TextRow};
use crate::record::staged::SourceText;
use crate::record::{Access, Hash, Provenance, RecordId, Row, RowType};
use anyhow::Context;
use arrow::array::RecordBatch;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The rows of one case: itself, as a row of the pipeline's case type, and those of its tables, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRows {
    pub case: Value,
    pub tables: BTreeMap<String, Vec<Value>>,
}

impl CaseRows {
    /// The rows of one table as what they are; none if it is not there.
    pub fn table<R: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Vec<R>> {
        let rows = self.tables.get(name).map(Vec::as_slice).unwrap_or_default();
        rows.iter().map(R::deserialize).collect::<Result<_, _>>().with_context(|| format!("rows of `{name}`"))
    }

    pub fn put<R: Row>(&mut self, name: &str, rows: &[R]) -> anyhow::Result<()> {
        let rows = rows.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        self.tables.insert(name.to_owned(), rows);
        Ok(())
    }
}

/// A table of a release with rows for each case, sorted by its id: `<name>.parquet`.
pub struct CaseTable {
    pub name: &'static str,
    pub row: RowType,
}

impl CaseTable {
    pub const fn of<R: Row>(name: &'static str) -> Self {
        Self { name, row: RowType::of::<R>() }
    }

    pub fn file(&self) -> String {
        format!("{}.parquet", self.name)
    }
}

/// The images of a case.
pub type MediaOf = fn(&Value) -> anyhow::Result<Vec<CaseMedia>>;

/// What to name with a case.
pub type CitationOf = fn(&Value) -> anyhow::Result<Option<CitationRow>>;

/// Makes cases of a batch of records.
pub type Convert = fn(&RecordBatch, &CaseContext<'_>) -> anyhow::Result<Vec<ConvertedCase>>;

/// A record type that can become a case.
pub struct CaseType {
    /// Type of the records of the pipeline's last node.
    pub record: &'static str,
    /// Type of the rows of `cases/*.parquet`.
    pub case: RowType,
    /// Tables that are part of a case and of its hash.
    pub tables: &'static [CaseTable],
    /// Files of its views, below the release folder.
    pub views: &'static [&'static str],
    pub convert: Convert,
    /// The lines of a case in its views.
    pub lines: fn(&CaseRows) -> anyhow::Result<Vec<String>>,
    /// What is wrong between the rows of a case, beyond what schemas say; for `verify`.
    pub faults: fn(&str, &CaseRows) -> anyhow::Result<Vec<String>>,
    /// The images of a case, where its type has some; `media.parquet`, `media/` and `recipes/media.jsonl` are made of it.
    pub media: Option<MediaOf>,
    /// What to name when a case is passed on, where that is not its source as a whole; `ATTRIBUTION.csv` is made of it.
    pub citation: Option<CitationOf>,
}

/// Name of the table of media, which is not in the case hash: what a release may hold depends on its profile.
pub const MEDIA: &str = "media";
pub const MEDIA_TABLE: CaseTable = CaseTable::of::<MediaRow>(MEDIA);

/// A file of lines that are functions of the rows of each case, in the order of cases.
pub struct LineFile {
    /// Below the release folder.
    pub name: &'static str,
    pub header: Option<&'static str>,
}

impl CaseType {
    pub fn line_files(&self) -> Vec<LineFile> {
        let mut files: Vec<LineFile> = self.views.iter().map(|name| LineFile { name, header: None }).collect();
        if self.media.is_some() {
            files.push(LineFile { name: RECIPES, header: None });
        }
        if self.citation.is_some() {
            files.push(LineFile { name: ATTRIBUTION, header: Some(ATTRIBUTION_HEADER) });
        }
        files
    }

    /// The lines of a case in each of [`Self::line_files`].
    pub fn lines_of(&self, rows: &CaseRows) -> anyhow::Result<Vec<Vec<String>>> {
        let mut lines: Vec<Vec<String>> = (self.lines)(rows)?.into_iter().map(|line| vec![line]).collect();
        if self.media.is_some() {
            lines.push(recipes(self, rows)?);
        }
        if let Some(citation) = self.citation {
            lines.push(citation(&rows.case)?.map(attribution).transpose()?.into_iter().collect());
        }
        Ok(lines)
    }

    /// All tables with rows for each case.
    pub fn all_tables(&self) -> impl Iterator<Item = &CaseTable> {
        self.tables.iter().chain(self.media.map(|_| &MEDIA_TABLE))
    }
}

/// An image of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseMedia {
    pub image_id: String,
    /// Of the published file.
    pub sha256: Hash,
    /// Of the picture that is shown: the file itself, or what was made of it.
    pub shown: Hash,
    /// Extension of the picture that is shown.
    pub extension: String,
    pub width: u32,
    pub height: u32,
    /// SPDX expression.
    pub licence: String,
    pub access: Access,
    pub attribution: Option<String>,
    /// Where the published file is found again.
    pub place: String,
}

pub struct ConvertedCase {
    pub record_id: RecordId,
    pub provenance: Provenance,
    pub rows: CaseRows,
}

/// What a case needs beyond its record.
pub struct CaseContext<'a> {
    pub pipeline: &'a str,
    /// Reasons for which records wait for a person.
    pub review: &'a BTreeMap<RecordId, Vec<String>>,
    /// How difficult the records of the build are, as far as it was estimated.
    pub difficulty: &'a BTreeMap<RecordId, DifficultyRow>,
}

impl CaseContext<'_> {
    /// Flags of a record with the reasons for which it waits for a person, and the state of its review.
    pub fn review_of(&self, id: &RecordId, flags: &[String]) -> (Vec<String>, String) {
        let review = self.review.get(id).map(Vec::as_slice).unwrap_or_default();
        let mut all = flags.to_vec();
        all.extend_from_slice(review);
        all.sort_unstable();
        all.dedup();
        (all, if review.is_empty() { "none" } else { "pending" }.to_owned())
    }
}

/// Every record type that can become a case.
pub const CASE_TYPES: &[CaseType] = &[clinmm::CASE_TYPE, medrounds::CASE_TYPE, mtdiag::CASE_TYPE];

/// The texts that a case points into, as rows sorted by their id.
pub(super) fn text_rows(case_id: &str, texts: Vec<SourceText>) -> Vec<TextRow> {
    let row = |text: SourceText| TextRow { case_id: case_id.to_owned(), text_id: text.text_id, text: text.text };
    let mut rows: Vec<TextRow> = texts.into_iter().map(row).collect();
    rows.sort_by(|one, other| one.text_id.cmp(&other.text_id));
    rows
}

/// The state of a run with an answer.
pub const COMPLETE: &str = "complete";

/// Puts the hash of a case into its row.
pub fn finish(
    case_type: &CaseType,
    record_id: RecordId,
    provenance: Provenance,
    mut rows: CaseRows,
) -> anyhow::Result<ConvertedCase> {
    let hash = case_hash(case_type, &rows)?;
    if let Some(field) = rows.case.get_mut("case_hash") {
        *field = Value::String(hash.to_string());
    }
    Ok(ConvertedCase { record_id, provenance, rows })
}

/// SHA-256 of the canonical JSON of a case: its row without `case_hash`, `review_state` and `subsets` (which cases are drawn
/// depends on the other cases), and the tables of its type. File, line, raw hash and snapshot stand in `provenance.parquet`
/// and are not in it, nor is what a profile lets into the release.
pub fn case_hash(case_type: &CaseType, rows: &CaseRows) -> anyhow::Result<Hash> {
    let mut case = rows.case.as_object().context("a case is an object")?.clone();
    for field in ["case_hash", "review_state", "subsets"] {
        case.remove(field);
    }
    let mut document = Map::new();
    document.insert("case".to_owned(), Value::Object(case));
    for table in case_type.tables {
        let rows = rows.tables.get(table.name).cloned().unwrap_or_default();
        document.insert(table.name.to_owned(), Value::Array(rows));
    }
    Hash::of_json(&document)
}
