//! DDXPlus: synthetic patients with a pathology, a ranked differential and coded evidences (MTDiag, 3.2 and 4.1.1).
//!
//! A folder holds one release: both tables and the patients of its splits. What a token means is looked up in the tables;
//! what is not in them is an error of its row. `look_up` finds everything by borrowed references, `record` makes the
//! PatientVector of it.

pub mod codes;
pub mod columns;
pub mod french;
pub mod literal;
pub mod record;
pub mod release;
pub mod rows;
pub mod tables;
pub mod wording;

use super::RowFault;
use super::lines::CutPlanner;
use crate::error::input;
use crate::record::RecordId;
use crate::record::raw::{Cut, RawFile, RawSource, ShardLimits};
use crate::store::raw;
use codes::Codes;
use french::FrenchNames;
use release::{ConditionNames, Release};
use rows::PatientFile;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use tables::{Language, Tables};
use wording::WordingRules;

pub use release::{Listed, LookedUp};
pub use rows::PatientRow;

/// Why a row does not become a record.
pub const REASONS: &[&str] = &[
    "row_too_long",
    "encoding",
    "invalid_csv",
    "field_count",
    "invalid_json",
    "invalid_utf8",
    "duplicate_key",
    "not_an_object",
    "missing_field",
    "wrong_type",
    "invalid_age",
    "invalid_sex",
    "unknown_pathology",
    "invalid_literal",
    "invalid_probability",
    "unknown_evidence",
    "unknown_value",
    "value_of_binary",
    "missing_value",
    "initial_not_listed",
];

fn quarantine(reason: &'static str, detail: impl Into<String>) -> RowFault {
    RowFault::quarantine(reason, detail)
}

/// What is needed beside the files of a release: the resources of the stage.
#[derive(Debug)]
pub struct Resources {
    pub wording: WordingRules,
    pub codes: Codes,
    pub french: FrenchNames,
}

/// The files of one release.
#[derive(Debug)]
pub struct ReleaseFiles<'a> {
    /// Folder below the raw folder, for messages.
    pub folder: String,
    pub evidences: &'a RawFile,
    pub conditions: &'a RawFile,
    pub patients: Vec<&'a RawFile>,
}

const EVIDENCES: &str = "release_evidences.json";
const CONDITIONS: &str = "release_conditions.json";
/// Names of splits, as words in names of files.
const SPLITS: [&str; 3] = ["train", "validate", "test"];
/// Longest table that is read, in bytes.
const LONGEST_TABLE: u64 = 64 << 20;

/// The name of a patient file without what says how it is packed.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zip")).unwrap_or(name);
    name.strip_suffix(".csv").or_else(|| name.strip_suffix(".parquet")).unwrap_or(name)
}

/// The split that a name tells; none where it tells none, or several.
pub fn split_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let words: BTreeSet<&str> = stem(name).split(|character: char| !character.is_alphanumeric()).collect();
    let mut found = SPLITS.into_iter().filter(|split| words.contains(split));
    found.next().filter(|_| found.next().is_none())
}

/// Sorts the files of a source into releases, by folder.
///
/// # Errors
/// Patients without both tables, a file that is neither, and the same patients in two forms.
pub fn releases(source: &RawSource) -> anyhow::Result<Vec<ReleaseFiles<'_>>> {
    let mut folders: BTreeMap<&str, Vec<(&str, &RawFile)>> = BTreeMap::new();
    for file in &source.files {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        folders.entry(folder).or_default().push((name, file));
    }
    let mut releases = Vec::new();
    for (folder, files) in folders {
        let table = |wanted: &str| files.iter().find(|(name, _)| *name == wanted).map(|(_, file)| *file);
        let mut stems = BTreeMap::new();
        let mut patients = Vec::new();
        for (name, file) in files.iter().filter(|(name, _)| ![EVIDENCES, CONDITIONS].contains(name)) {
            if name.ends_with(".json") {
                return Err(input(format!(
                    "{}: it is neither {EVIDENCES} nor {CONDITIONS}, and patients are CSV or Parquet",
                    file.path
                )));
            }
            if let Some(other) = stems.insert(stem(name), &file.path) {
                return Err(input(format!("{other} and {} are the same patients in two forms; keep one", file.path)));
            }
            patients.push(*file);
        }
        if patients.is_empty() {
            continue;
        }
        let need = |wanted: &str| {
            let message = || format!("{folder} has patients but no {wanted}: a release is read with its own tables");
            table(wanted).ok_or_else(|| input(message()))
        };
        releases.push(ReleaseFiles {
            folder: folder.to_owned(),
            evidences: need(EVIDENCES)?,
            conditions: need(CONDITIONS)?,
            patients,
        });
    }
    Ok(releases)
}

fn read_whole(file: &RawFile) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = raw::open(file, 0)?.take(LONGEST_TABLE + 1).read_to_end(&mut bytes);
    read.map_err(|error| input(format!("cannot read {}: {error}", file.path)))?;
    if bytes.len() as u64 > LONGEST_TABLE {
        return Err(input(format!("{}: the table is longer than {LONGEST_TABLE} bytes", file.path)));
    }
    Ok(bytes)
}

impl ReleaseFiles<'_> {
    /// Reads and checks the tables, finds the language, and prepares all that rows are looked up in.
    pub fn load(&self, resources: &Resources, limits: RowLimits) -> anyhow::Result<Release> {
        let (evidences, conditions) = (read_whole(self.evidences)?, read_whole(self.conditions)?);
        let tables =
            Tables::parse((&self.evidences.path, &evidences), (&self.conditions.path, &conditions), &resources.codes)?;
        let names = ConditionNames::new(&tables);
        let language = self.language(&names, limits)?.unwrap_or(Language::English);
        Ok(Release::new(tables, names, language, resources, limits))
    }

    /// The language of the first row whose pathology has another name in the other one.
    fn language(&self, names: &ConditionNames, limits: RowLimits) -> anyhow::Result<Option<Language>> {
        for file in &self.patients {
            let mut rows = PatientFile::open(file, None, limits.max_row_bytes)?;
            let form = rows.form();
            while let Some((_, line)) = rows.next_row(file)? {
                let language =
                    form.row(&line, limits.max_row_bytes).ok().and_then(|row| names.language(row.pathology.as_ref()));
                if language.is_some() {
                    return Ok(language);
                }
            }
        }
        Ok(None)
    }
}

/// Divides the patients of a source at row borders, and finds repeated rows. One pass; 16 bytes and a count for each row.
///
/// # Errors
/// A header of another form, a quote that is not closed, and a release that mixes names of both languages.
pub fn cut(
    source: &RawSource,
    limits: ShardLimits,
    cap: usize,
    load: impl Fn(&ReleaseFiles<'_>) -> anyhow::Result<Arc<Release>>,
) -> anyhow::Result<Cut> {
    let mut planner = CutPlanner::new(limits);
    for files in releases(source)? {
        let release = load(&files)?;
        for file in &files.patients {
            if planner.is_full() {
                break;
            }
            let mut rows = PatientFile::open(file, None, cap)?;
            let form = rows.form();
            while let Some((position, line)) = rows.next_row(file)? {
                let id = match form.row(&line, cap) {
                    Ok(row) => {
                        if let Some(other) = release.other_language(&row.pathology) {
                            return Err(mixed(&files, file, position.line, &row.pathology, other, release.language));
                        }
                        release.identify(&source.name, &row)
                    }
                    Err(_) => RecordId::from_raw_hash(&source.name, &line.sha256()),
                };
                planner.add(file, position, &id);
                if planner.is_full() {
                    break;
                }
            }
        }
    }
    Ok(planner.finish())
}

fn mixed(
    files: &ReleaseFiles<'_>,
    file: &RawFile,
    line: u64,
    pathology: &str,
    other: Language,
    language: Language,
) -> anyhow::Error {
    input(format!(
        "{}:{line}: `{pathology}` is {} and the first patients of {} are {}: each language needs a folder of its own, with its tables",
        file.path,
        other.name(),
        if files.folder.is_empty() { "the folder" } else { &files.folder },
        language.name()
    ))
}

/// Caps on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimits {
    pub max_row_bytes: usize,
    /// Entries of one list.
    pub max_list_items: usize,
}

impl Default for RowLimits {
    fn default() -> Self {
        Self { max_row_bytes: 1 << 20, max_list_items: 4096 }
    }
}

#[cfg(test)]
mod tests;
