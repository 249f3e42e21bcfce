//! `casemill agreement`: opens the files, prints how far people and a column of a release agree.

use super::{Global, print};
use anyhow::Context;
use arrow::array::AsArray;
use arrow::datatypes::DataType;
use casemill::compare::labels::{self, Cases, Labels, Scale};
use casemill::config::suggestion;
use casemill::error::{Code, input, usage};
use casemill::record::release::TextRow;
use casemill::record::slots::Judgement;
use casemill::record::{Hash, from_batch};
use casemill::store::{fs, parquet};
use clap::Args;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct AgreementArguments {
    /// What people say: JSONL or CSV with case_id, record_id or question_sha256, label, and annotator if there are several
    labels: PathBuf,
    /// Folder of a release
    records: PathBuf,
    /// The column of its cases: difficulty (easy, medium, hard), judgement (1 to 5), or another one that holds text, such as
    /// specialty
    #[arg(long, default_value = DIFFICULTY, value_name = "NAME")]
    column: String,
}

/// Largest file of labels.
const FILE_LIMIT: u64 = 256 << 20;

const DIFFICULTY: &str = "difficulty";
const JUDGEMENT: &str = "judgement";
const SPECIALTY: &str = "specialty";
const CASE_ID: &str = "case_id";

pub(super) fn run(global: &Global, arguments: &AgreementArguments) -> anyhow::Result<Code> {
    let file = arguments.labels.display().to_string();
    let ending = arguments.labels.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    if !["csv", "jsonl"].contains(&ending.as_str()) {
        return Err(usage(format!("{file}: labels stand in a .jsonl or a .csv file")));
    }
    let cases = read_cases(&arguments.records, &arguments.column)?;
    let bytes = fs::read_limited(&arguments.labels, FILE_LIMIT).map_err(|error| input(format!("{error:#}")))?;
    let labels = Labels::read(&file, &bytes)?;
    let found = labels::compare(&labels, &cases)?;
    print(global, &serde_json::to_value(&found)?, || labels::text(&found))?;
    Ok(Code::Done)
}

/// One column of the cases of a release.
fn read_cases(release: &Path, column: &str) -> anyhow::Result<Cases> {
    let folder = release.join("cases");
    if !folder.is_dir() {
        return Err(usage(format!("{}: is not the folder of a release: it has no cases/", release.display())));
    }
    let mut values = BTreeMap::new();
    for file in fs::list(&folder)?.iter().filter(|name| name.ends_with(".parquet")) {
        let path = folder.join(file);
        read_column(&path, column, &mut values)?;
    }
    if values.is_empty() {
        return Err(input(format!("{}: has no cases", release.display())));
    }
    let mut stems: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let texts = release.join("texts.parquet");
    parquet::for_each_batch(&texts, None, |batch| {
        for row in from_batch::<TextRow>(&batch)? {
            stems.entry(Hash::of(row.text.as_bytes()).to_string()).or_default().insert(row.case_id);
        }
        Ok(())
    })
    .map_err(|error| input(format!("{}: {error:#}", texts.display())))?;
    let scale = match column {
        DIFFICULTY => Scale::difficulty(),
        JUDGEMENT => Scale::judgement(),
        SPECIALTY => Scale::specialty(),
        _ => Scale::of_values(values.values().flatten().cloned()),
    };
    let name = release.file_name().map_or_else(|| release.display().to_string(), |name| name.to_string_lossy().into());
    Ok(Cases { name, column: column.to_owned(), scale, values, stems })
}

/// Adds a column of a part of the cases, by case id.
fn read_column(path: &Path, column: &str, values: &mut BTreeMap<String, Option<String>>) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Judged {
        case_id: String,
        judgement: Option<Judgement>,
    }
    let damaged = |error: anyhow::Error| input(format!("{}: {error:#}", path.display()));
    let schema = parquet::schema(path).map_err(damaged)?;
    let fields = schema.fields().iter();
    let known: Vec<&str> = fields
        .filter(|field| *field.data_type() == DataType::Utf8 || field.name() == JUDGEMENT)
        .map(|field| field.name().as_str())
        .filter(|name| *name != CASE_ID)
        .collect();
    if !known.contains(&column) {
        let is_there = schema.field_with_name(column).is_ok();
        let what = if is_there { "holds no text" } else { "is not there" };
        return Err(usage(format!("--column {column}: {what}{}", suggestion(column, known))));
    }
    parquet::for_each_batch(path, Some(&[CASE_ID, column]), |batch| {
        if column == JUDGEMENT {
            for case in from_batch::<Judged>(&batch)? {
                values.insert(case.case_id, case.judgement.map(|judgement| judgement.score.to_string()));
            }
            return Ok(());
        }
        let texts = |name: &str| {
            let array = batch.column_by_name(name).and_then(|array| array.as_string_opt::<i32>());
            array.with_context(|| format!("its column {name} holds no text"))
        };
        for (id, value) in texts(CASE_ID)?.iter().zip(texts(column)?.iter()) {
            values.insert(id.context("a case without case_id")?.to_owned(), value.map(str::to_owned));
        }
        Ok(())
    })
    .map_err(damaged)
}
