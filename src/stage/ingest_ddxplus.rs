//! `ingest_ddxplus`: synthetic patients of DDXPlus to `patient_vector` records (MTDiag, 4.1.1).
//!
//! Rows are cut and read as slices of their file. A patient is known by the texts of its row and the language of its release,
//! so that equal rows of all splits have one id and its repeats.

use super::*;
use crate::record::vector::PatientVector;
use crate::record::{Hash, RecordId};
use crate::source::ddxplus::columns::PatientColumns;
use crate::source::ddxplus::release::Release;
use crate::source::ddxplus::rows::PatientFile;
use crate::source::ddxplus::{self, RowLimits, codes::Codes, french::FrenchNames, wording::WordingRules};
use crate::source::tables::Form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub const STAGE: StageDef = StageDef {
    name: "ingest_ddxplus",
    summary: "Reads patients of DDXPlus with their tables of evidences and conditions: CSV or Parquet, plain, gzip or zip",
    shape: Shape::Reader,
    revision: 1,
    inputs: &[],
    outputs: &[Port::records::<PatientVector>("records")],
    resources: &[
        ResourceDecl {
            name: "wording",
            summary: "rules that make names and statements of questions, and say what detail questions ask for, as TOML",
        },
        ResourceDecl { name: "corrections", summary: "corrected ICD-10 codes with their reasons, as TOML" },
        ResourceDecl { name: "french", summary: "French names of evidences as codes of the table, as TOML" },
    ],
    reasons: ddxplus::REASONS,
    settings: SettingsType::of::<IngestSettings>(),
    build,
};

/// Formats that this stage reads.
pub const FORMATS: &[&str] = &["ddxplus"];

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct IngestSettings {
    /// Longest row that is read, in bytes; longer ones are quarantined.
    max_row_bytes: u32,
    /// Longest list in a row, in entries; rows with longer ones are quarantined.
    max_list_items: u32,
}

impl Default for IngestSettings {
    fn default() -> Self {
        Self { max_row_bytes: 1 << 20, max_list_items: 4096 }
    }
}

impl Settings for IngestSettings {
    fn check(&self) -> Result<(), String> {
        if !(1000..=64 << 20).contains(&self.max_row_bytes) {
            return Err("max_row_bytes must be between 1000 and 67108864".to_owned());
        }
        if !(1..=1 << 20).contains(&self.max_list_items) {
            return Err("max_list_items must be between 1 and 1048576".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: IngestSettings = arguments.settings()?;
    match arguments.format {
        Some("ddxplus") => {}
        other => anyhow::bail!(
            "format `{}` is not one that ingest_ddxplus reads (known: {})",
            other.unwrap_or("none"),
            FORMATS.join(", ")
        ),
    }
    let resources = arguments.resources;
    let limits =
        RowLimits { max_row_bytes: settings.max_row_bytes as usize, max_list_items: settings.max_list_items as usize };
    let resources = ddxplus::Resources {
        wording: WordingRules::parse(resources.file("wording"), resources.text("wording")?)?,
        codes: Codes::parse(resources.file("corrections"), resources.text("corrections")?)?,
        french: FrenchNames::parse(resources.file("french"), resources.text("french")?)?,
    };
    Ok(AnyStage::reader(PatientReader { resources, limits, loaded: Mutex::default() }))
}

struct PatientReader {
    resources: ddxplus::Resources,
    limits: RowLimits,
    /// Releases that were read, by the hashes of their files: tables are read once, not for every slice.
    loaded: Mutex<BTreeMap<Vec<Hash>, Arc<Release>>>,
}

impl PatientReader {
    fn release(&self, files: &ddxplus::ReleaseFiles<'_>) -> anyhow::Result<Arc<Release>> {
        let tables = [files.evidences, files.conditions];
        let key: Vec<Hash> =
            tables.into_iter().chain(files.patients.iter().copied()).map(|file| file.sha256.clone()).collect();
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(release) = loaded.get(&key) {
            return Ok(release.clone());
        }
        let release = Arc::new(files.load(&self.resources, self.limits)?);
        loaded.insert(key, release.clone());
        Ok(release)
    }
}

impl Reader for PatientReader {
    type Out = PatientVector;

    fn converts(&self, form: Form) -> bool {
        form == Form::Parquet
    }

    fn unpacks_zip(&self) -> bool {
        true
    }

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        ddxplus::cut(source, limits, self.limits.max_row_bytes, |files| self.release(files))
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<PatientVector>) -> anyhow::Result<()> {
        let cap = self.limits.max_row_bytes;
        let releases = ddxplus::releases(source)?;
        for piece in &slice.pieces {
            let of_release =
                |files: &&ddxplus::ReleaseFiles<'_>| files.patients.iter().any(|file| file.path == piece.file);
            let files = releases
                .iter()
                .find(of_release)
                .ok_or_else(|| anyhow::anyhow!("{} is not a file of source `{}`", piece.file, source.name))?;
            let release = self.release(files)?;
            for file in files.patients.iter().filter(|file| file.path == piece.file) {
                let split = ddxplus::split_of(&file.path);
                let mut patients = PatientColumns::new(&release, &source.name, &file.path, &source.rights, split);
                let mut rows = PatientFile::open(file, Some((piece.start, piece.first_line)), cap)?;
                let form = rows.form();
                while let Some((position, line)) = rows.next_row(file)? {
                    if position.start >= piece.end {
                        break;
                    }
                    let occurrence = piece.repeats.get(&position.line).copied().unwrap_or(1);
                    let raw_sha256 = line.sha256();
                    let row = form.row(&line, cap);
                    let record_id = match &row {
                        Ok(row) => release.identify(&source.name, row),
                        Err(_) => RecordId::from_raw_hash(&source.name, &raw_sha256),
                    };
                    let record_id = record_id.occurrence(occurrence);
                    match row.and_then(|row| release.look_up(&row)) {
                        Ok(row) => patients.push(&row, &record_id, position.line, &raw_sha256),
                        Err(fault) => out.exit(RawExit {
                            record_id,
                            exit: fault.exit,
                            cause: Cause::new(fault.reason, fault.detail),
                            file: file.path.clone(),
                            line: position.line,
                            raw_sha256,
                        }),
                    }
                }
                out.keep_batch(patients.finish()?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Provenance, Rights, arrow_schema, from_batch, to_batch};
    use arrow::compute::concat_batches;
    use expect_test::expect;
    use std::fmt::Write;
    use std::path::Path;

    fn reader() -> PatientReader {
        let wording = include_str!("../../pipelines/lexicon/ddxplus.toml");
        let codes = include_str!("../../pipelines/lexicon/ddxplus_icd10.toml");
        let french = include_str!("../../pipelines/lexicon/ddxplus_french.toml");
        let resources = ddxplus::Resources {
            wording: WordingRules::parse("w", wording).unwrap(),
            codes: Codes::parse("c", codes).unwrap(),
            french: FrenchNames::parse("f", french).unwrap(),
        };
        PatientReader { resources, limits: RowLimits::default(), loaded: Mutex::default() }
    }

    /// The sample's files; its zip in another shard, so that only the CSV is read here.
    fn sample(names: &[&str]) -> RawSource {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/ddxplus");
        let files = names.iter().map(|name| {
            let readable = folder.join(name);
            let bytes = std::fs::read(&readable).unwrap();
            RawFile { path: format!("ddxplus/{name}"), sha256: Hash::of(&bytes), bytes: bytes.len() as u64, readable }
        });
        RawSource { name: "ddxplus".into(), rights: Rights::unknown(), files: files.collect() }
    }

    const SAMPLE: &[&str] = &[
        "en/release_conditions.json",
        "en/release_evidences.json",
        "en/release_test_patients.csv",
        "en/release_validate_patients.csv",
        "fr/release_conditions.json",
        "fr/release_evidences.json",
        "fr/release_test_patients.csv",
    ];

    fn read_all(source: &RawSource, records: u64) -> (Vec<PatientVector>, Vec<RawExit>) {
        let reader = reader();
        let cut = reader.cut(source, ShardLimits { records, bytes: 1 << 20, limit: None }).unwrap();
        let mut out = ReaderOutput::new();
        for slice in &cut.slices {
            reader.read(source, slice, &mut out).unwrap();
        }
        let records = out.batches.iter().flat_map(|batch| from_batch(batch).unwrap()).collect();
        (records, out.exits)
    }

    /// Awkward rows of the sample leave with their reason, or stay with a flag.
    #[test]
    fn the_sample_is_read_and_its_awkward_rows_are_told() {
        let source = sample(SAMPLE);
        let (records, exits) = read_all(&source, 4096);
        let mut account = String::new();
        for exit in &exits {
            assert!(STAGE.reasons.contains(&exit.cause.reason), "{}", exit.cause.reason);
            writeln!(account, "{}:{} {}: {}", exit.file, exit.line, exit.cause.reason, exit.cause.detail).unwrap();
        }
        for record in records.iter().filter(|record| !record.flags.is_empty()) {
            writeln!(account, "{}:{} {:?}", record.provenance.file, record.provenance.line, record.flags).unwrap();
        }
        for language in ["en", "fr"] {
            let n = records.iter().filter(|record| record.origin.language == language).count();
            writeln!(account, "{n} patients in {language}").unwrap();
        }
        expect![[r#"
            ddxplus/en/release_test_patients.csv:7 unknown_value: `E_22_@_V_999`: `V_999` is no value of `E_22`
            ddxplus/en/release_test_patients.csv:19 invalid_age: AGE is `140`, not a whole number from 0 to 130
            ddxplus/en/release_validate_patients.csv:28 initial_not_listed: INITIAL_EVIDENCE is `E_58`, which EVIDENCES do not have as present
            ddxplus/en/release_test_patients.csv:32 ["child_without_parent"]
            ddxplus/en/release_test_patients.csv:42 ["probabilities_do_not_sum"]
            ddxplus/en/release_test_patients.csv:52 ["complaint_is_antecedent", "initial_not_binary"]
            ddxplus/en/release_validate_patients.csv:9 ["pathology_not_in_differential"]
            ddxplus/en/release_validate_patients.csv:42 ["complaint_is_antecedent"]
            112 patients in en
            60 patients in fr
        "#]].assert_eq(&account);
        assert_eq!(records.len() + exits.len(), 175);
    }

    /// However the files are cut, the records are the same.
    #[test]
    fn records_do_not_depend_on_the_cut() {
        let source = sample(SAMPLE);
        let (whole, _) = read_all(&source, 4096);
        let (pieces, _) = read_all(&source, 7);
        assert!(whole == pieces);
        let n_ids: std::collections::BTreeSet<_> = whole.iter().map(|record| &record.record_id).collect();
        assert_eq!(n_ids.len(), whole.len());
    }

    /// What is written as columns is what the records are.
    #[test]
    fn columns_are_those_of_the_records() {
        let source = sample(SAMPLE);
        let reader = reader();
        let cut = reader.cut(&source, ShardLimits { records: 4096, bytes: 1 << 20, limit: None }).unwrap();
        let mut out = ReaderOutput::new();
        cut.slices.iter().for_each(|slice| reader.read(&source, slice, &mut out).unwrap());
        let mut records = Vec::new();
        for files in ddxplus::releases(&source).unwrap() {
            let release = reader.release(&files).unwrap();
            for file in &files.patients {
                let mut rows = PatientFile::open(file, None, 1 << 20).unwrap();
                let form = rows.form();
                while let Some((position, line)) = rows.next_row(file).unwrap() {
                    let Ok(row) = form.row(&line, 1 << 20) else { continue };
                    let Ok(found) = release.look_up(&row) else { continue };
                    let provenance = Provenance {
                        source: source.name.clone(),
                        file: file.path.clone(),
                        line: position.line,
                        raw_sha256: line.sha256(),
                        rights: source.rights.clone(),
                    };
                    let id = release.identify(&source.name, &row);
                    records.push(release.record(&found, id, provenance, ddxplus::split_of(&file.path)));
                }
            }
        }
        let schema = arrow_schema::<PatientVector>().unwrap();
        let (columns, rows) = (concat_batches(&schema, &out.batches).unwrap(), to_batch(&records).unwrap());
        assert!(columns.num_rows() > 100 && columns.num_rows() == rows.num_rows());
        for ((found, expected), field) in columns.columns().iter().zip(rows.columns()).zip(schema.fields()) {
            // Repeated rows have their id from the cut.
            if field.name() != "record_id" {
                assert_eq!(found, expected, "{}", field.name());
            }
        }
    }
}
