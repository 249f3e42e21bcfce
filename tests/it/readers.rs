//! Tables as readers of other languages see them: pyarrow, polars for Python, DuckDB (`readers.py`).

use crate::support::{Scratch, medqa_line, repository};
use arrow::datatypes::{DataType, Schema};
use casemill::record::slots::MedroundsCase;
use casemill::record::{ROW_TYPES, Row, RowType, from_batch, to_batch};
use casemill::release::freeze;
use casemill::release::medrounds::CASE_TYPE;
use casemill::store::parquet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A table: its name, what its rows are declared to be, its files in order.
struct Table {
    name: String,
    declared: RowType,
    files: Vec<PathBuf>,
}

/// A Python with the packages of `requirements.txt`; `scripts/test-python.sh` makes one.
pub fn python() -> Option<PathBuf> {
    let mut candidates: Vec<PathBuf> =
        std::env::var_os("CASEMILL_TEST_PYTHON").map(PathBuf::from).into_iter().collect();
    if candidates.is_empty() {
        candidates.push(repository().join("target/python/bin/python"));
        candidates
            .extend(std::env::var_os("CARGO_TARGET_DIR").map(|folder| Path::new(&folder).join("python/bin/python")));
    }
    let works = |python: &PathBuf| {
        let mut command = Command::new(python);
        command
            .args(["-c", "import duckdb, pandas, polars, pyarrow"])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let found = candidates.iter().find(|python| works(python)).cloned();
    if found.is_none() {
        let reason = format!(
            "no Python with pyarrow, polars, pandas and duckdb at {candidates:?}; scripts/test-python.sh FOLDER makes one, CASEMILL_TEST_PYTHON names its bin/python"
        );
        assert!(std::env::var("CASEMILL_REQUIRE_PYTHON").as_deref() != Ok("1"), "{reason}");
        eprintln!("other readers are skipped: {reason}");
    }
    found
}

/// A type as `readers.py` writes it; what a release must not hold has no name there.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 => "string".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::UInt32 => "uint32".to_owned(),
        DataType::UInt64 => "uint64".to_owned(),
        DataType::Int32 => "int32".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::List(element) => {
            assert_eq!(element.name(), "element");
            format!("list<{}>", type_name(element.data_type()))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{}: {}", field.name(), type_name(field.data_type())));
            format!("struct<{}>", fields.collect::<Vec<_>>().join(", "))
        }
        other => panic!("{other} is not a type that every reader has"),
    }
}

fn columns(schema: &Schema) -> Vec<(String, String)> {
    schema.fields().iter().map(|field| (field.name().clone(), type_name(field.data_type()))).collect()
}

/// Every file has the declared columns; every reader sees them and the same rows, the files of a table merged.
fn check_tables(tables: &[Table]) {
    let mut asked = Map::new();
    for table in tables {
        assert!(!table.files.is_empty(), "{}: no file", table.name);
        let declared = (table.declared.arrow_schema)().expect("declared columns");
        for file in &table.files {
            let found = parquet::schema(file).expect("columns");
            assert_eq!(found.fields(), declared.fields(), "{}", file.display());
            assert!(found.metadata().is_empty(), "{}: {:?}", file.display(), found.metadata());
        }
        asked.insert(table.name.clone(), json!(table.files));
    }
    let Some(python) = python() else { return };
    let script = repository().join("tests/it/readers.py");
    let output = Command::new(python).arg(script).arg(Value::Object(asked).to_string()).output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON of readers.py");
    for table in tables {
        let expected_columns = json!(columns(&(table.declared.arrow_schema)().expect("declared columns")));
        let batches = table.files.iter().map(|file| parquet::read(file).expect("a table"));
        let expected_rows: Vec<Value> = batches.flat_map(|batch| from_batch::<Value>(&batch).expect("rows")).collect();
        for reader in ["pyarrow", "polars", "duckdb"] {
            let seen = &seen[&table.name];
            assert_eq!(seen["schema"][reader], expected_columns, "{} in {reader}", table.name);
            assert!(seen["rows"][reader] == json!(expected_rows), "rows of {} in {reader}", table.name);
        }
    }
}

fn declared(name: &str) -> RowType {
    *ROW_TYPES.iter().find(|row_type| row_type.name == name).expect("a row type")
}

/// The part files of a node's only build.
fn parts(scratch: &Scratch, node: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for build in std::fs::read_dir(scratch.path("data/work/medrounds").join(node)).expect("builds") {
        let build = build.expect("a build").path();
        for shard in std::fs::read_dir(&build).into_iter().flatten() {
            let part = shard.expect("a shard").path().join("part.parquet");
            files.extend(part.is_file().then_some(part));
        }
    }
    files.sort_unstable();
    files
}

/// A column that is empty in one shard keeps its declared type, so that shards merge.
#[test]
fn par_01_a_column_without_values_keeps_its_type() {
    let scratch = Scratch::empty();
    let pipeline = scratch.read("pipelines/medrounds.toml");
    scratch.write("pipelines/medrounds.toml", format!("{pipeline}\n[shards]\nrecords = 3\n"));
    let without_exam = |n| medqa_line(n).replace("\"step1\"", "null") + "\n";
    let lines: String = (0..3).map(without_exam).chain((3..6).map(|n| medqa_line(n) + "\n")).collect();
    scratch.write("raw/medqa/own.jsonl", lines);
    scratch.release_sums("1");
    let questions = parts(&scratch, "ingest_medqa");
    assert_eq!(questions.len(), 2, "{questions:?}");
    let exams = |file: &PathBuf| -> Vec<Value> {
        let rows: Vec<Value> = from_batch(&parquet::read(file).expect("a part")).expect("rows");
        rows.into_iter().map(|row| row["exam"].clone()).collect()
    };
    assert_eq!(exams(&questions[0]), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(exams(&questions[1]), ["step1", "step1", "step1"]);
    let records = parts(&scratch, "extract_slots");
    assert_eq!(records.len(), 2, "{records:?}");

    // A release of cases none of which has an exam beside one where all have.
    let alone = |lines: &str, name: &str| {
        let scratch = Scratch::empty();
        scratch.write("raw/medqa/own.jsonl", lines);
        scratch.release_sums(name);
        scratch
    };
    let (nulls, values) = (alone(&without_exam(7), "nulls"), alone(&medqa_line(8), "values"));
    let case = "cases/part-00000.parquet";
    check_tables(&[
        Table { name: "question".into(), declared: declared("question"), files: questions },
        Table { name: "slot_record".into(), declared: declared("slot_record"), files: records },
        Table {
            name: "cases".into(),
            declared: RowType::of::<MedroundsCase>(),
            files: vec![
                nulls.path("data/release/medrounds-nulls").join(case),
                values.path("data/release/medrounds-values").join(case),
            ],
        },
    ]);
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Finding {
    code: String,
    value: Option<String>,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Patient {
    id: String,
    findings: Vec<Finding>,
    flag: Option<bool>,
    kind: Kind,
}

/// Unit enums are plain text in files.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
enum Kind {
    Inpatient,
    Outpatient,
}

impl Row for Patient {
    const NAME: &'static str = "patient";
    const TITLE: &'static str = "A row with a list of structs.";
}

/// Names and types are those that every reader has, and all see the same values.
#[test]
fn par_02_every_reader_sees_the_declared_types() {
    let scratch = Scratch::with_sample();
    let full = vec![
        Patient {
            id: "é𝛽".into(),
            findings: vec![
                Finding { code: "x".into(), value: Some(String::new()) },
                Finding { code: "y".into(), value: None },
            ],
            flag: Some(true),
            kind: Kind::Inpatient,
        },
        Patient { id: String::new(), findings: Vec::new(), flag: Some(false), kind: Kind::Outpatient },
    ];
    let bare = vec![Patient { id: "b".into(), findings: Vec::new(), flag: None, kind: Kind::Outpatient }];
    let files = ["full", "bare", "none"].map(|name| scratch.path(&format!("{name}.parquet")));
    for (file, rows) in files.iter().zip([full, bare, Vec::new()]) {
        parquet::write_new(file, &to_batch(&rows).expect("a batch")).expect("a table");
    }
    let patient = RowType::of::<Patient>();
    let expected = [
        ("id", "string"),
        ("findings", "list<struct<code: string, value: string>>"),
        ("flag", "bool"),
        ("kind", "string"),
    ];
    let found = columns(&(patient.arrow_schema)().expect("declared columns"));
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind.to_owned())));

    scratch.release_sums("1");
    let release = scratch.path("data/release/medrounds-1");
    let mut tables = vec![Table { name: "patient".into(), declared: patient, files: files.to_vec() }];
    for (name, declared) in freeze::tables(&CASE_TYPE) {
        tables.push(Table { files: vec![release.join(&name)], name, declared });
    }
    let cases = release.join("cases/part-00000.parquet");
    tables.push(Table { name: "cases".into(), declared: RowType::of::<MedroundsCase>(), files: vec![cases] });
    assert_eq!(tables.len(), 10);
    check_tables(&tables);
}
