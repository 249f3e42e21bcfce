//! One helper per stage boundary: settings and records in, a readable account out.

use super::*;
use crate::record::article::ArticleRecord;
use crate::record::question::{AnswerOption, AnsweredQuestion, Question};
use crate::record::slots::{Slot, SlotRecord, SlotValue, Span};
use crate::record::vector::{
    CasePresentation, Dataset, Diagnosis, Finding, GroundTruth, Negation, Origin, PatientFacts, PatientVector,
    SymptomPresentation,
};
use crate::record::{Hash, Provenance, Record, RecordId, Rights, from_batch, to_batch};
use crate::source::jats;
use expect_test::Expect;
use std::collections::BTreeMap;
use std::fmt::Write;

pub fn provenance(line: u64) -> Provenance {
    Provenance { source: "t".into(), file: "t/f".into(), line, raw_sha256: Hash::of(b""), rights: Rights::unknown() }
}

pub fn question(id: &str, answer: &str, options: &[&str]) -> Question {
    let options: Vec<AnswerOption> =
        options.iter().zip('A'..).map(|(text, key)| AnswerOption { key: key.into(), text: (*text).into() }).collect();
    let key = options
        .iter()
        .find(|option| option.text == answer)
        .map(|option| option.key.clone())
        .expect("the answer is an option");
    Question {
        record_id: RecordId::native("t", id),
        provenance: provenance(id.parse().unwrap_or(1)),
        stem: "A man with pain. Diagnosis?".into(),
        options,
        answer_key: Some(key),
        answer_text: answer.into(),
        exam: None,
        subject: None,
        flags: Vec::new(),
    }
}

pub fn answered(id: &str, answer: &str, options: &[&str]) -> AnsweredQuestion {
    let question = question(id, answer, options);
    AnsweredQuestion {
        record_id: question.record_id,
        provenance: question.provenance,
        stem: question.stem,
        options: question.options,
        answer_key: question.answer_key,
        answer_text: question.answer_text.clone(),
        ground_truth_diagnosis: question.answer_text,
        exam: None,
        subject: None,
        flags: Vec::new(),
        made_by: Vec::new(),
        replies: Vec::new(),
    }
}

/// A patient with pneumonia who comes with a cough.
pub fn patient(id: &str) -> PatientVector {
    let cough =
        Finding { name: "cough".into(), code: Some("E_1".into()), negation: Negation::Present, ..Finding::default() };
    let cough = SymptomPresentation { symptom: cough, ..SymptomPresentation::default() };
    PatientVector {
        record_id: RecordId::native("t", id),
        provenance: provenance(id.parse().unwrap_or(1)),
        origin: Origin { dataset: Dataset::Ddxplus, stratum: None, native_id: None, language: "en".into() },
        ground_truth: GroundTruth {
            primary: Diagnosis { label: "Pneumonia".into(), icd10: Some("J18.9".into()), ..Diagnosis::default() },
            ..GroundTruth::default()
        },
        facts: PatientFacts::default(),
        presentation: CasePresentation {
            chief_complaint: vec![cough.clone()],
            symptoms: vec![cough],
            absent_symptoms: None,
        },
        texts: Vec::new(),
        citation: None,
        made_by: Vec::new(),
        replies: Vec::new(),
        flags: Vec::new(),
    }
}

/// A record with values that point at the first place where the stem holds them; nowhere else without one.
pub fn slot_record(id: &str, stem: &str, values: &[(Slot, &str)]) -> SlotRecord {
    let question = answered(id, "Measles", &["Measles", "Mumps"]);
    let slots = values.iter().map(|(slot, value)| {
        let at = stem.find(value).map(|at| stem[..at].chars().count() as u32);
        let span =
            at.map(|start| Span { text_id: "stem".to_owned(), start, end: start + value.chars().count() as u32 });
        SlotValue {
            span: span.clone(),
            ..SlotValue::copied(*slot, (*value).to_owned(), Span { text_id: "stem".to_owned(), start: 0, end: 1 })
        }
    });
    let end = stem.chars().count() as u32;
    SlotRecord {
        record_id: question.record_id,
        provenance: question.provenance,
        stem: stem.to_owned(),
        question: Span { text_id: "stem".to_owned(), start: end, end },
        options: question.options,
        answer_key: question.answer_key,
        answer_text: question.answer_text,
        ground_truth_diagnosis: question.ground_truth_diagnosis,
        exam: None,
        subject: None,
        flags: Vec::new(),
        slots: slots.collect(),
        rejected: Vec::new(),
        fidelity: None,
        specialty: None,
        extracted: Vec::new(),
        corrections: Vec::new(),
        judgement: None,
        runs: Vec::new(),
        made_by: Vec::new(),
        replies: Vec::new(),
    }
}

/// A case report with this title and body.
pub fn article_record(id: &str, title: &str, body: &str) -> ArticleRecord {
    let xml = format!(
        "<article article-type=\"case-report\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"><front><article-meta><title-group>\
         <article-title>{title}</article-title></title-group></article-meta></front><body>{body}</body></article>"
    );
    ArticleRecord {
        record_id: RecordId::native("t", id),
        provenance: provenance(id.parse().unwrap_or(1)),
        specialty: None,
        version: None,
        files: Vec::new(),
        images: Vec::new(),
        patient: None,
        listed_diagnoses: Vec::new(),
        made_by: Vec::new(),
        replies: Vec::new(),
        flags: Vec::new(),
        article: jats::read(xml.as_bytes(), jats::Limits::default()).expect("an article"),
    }
}

struct NoMedia;

impl MediaStore for NoMedia {
    fn path(&self, media: &MediaRef) -> anyhow::Result<std::path::PathBuf> {
        anyhow::bail!("no media {}", media.0)
    }
}

fn build(stage: &StageDef, settings: &str, resources: &[(&str, &str)]) -> AnyStage {
    let given: toml::Table = toml::from_str(settings).expect("settings are TOML");
    let settings = (stage.settings.complete)(given).expect("settings fit");
    let mut files = Resources::default();
    for (name, text) in resources {
        files.insert(name, name, text.as_bytes().to_vec());
    }
    (stage.build)(&StageArguments { settings, resources: &files, format: None, source_options: toml::Table::new() })
        .expect("the stage builds")
}

/// Runs a record stage, or a model stage without a model, over records: one line each, in order of exit, kept ones as `show` gives them.
pub fn check<I: Record, O: Record>(
    stage: &StageDef,
    settings: &str,
    input: &[I],
    show: impl Fn(&O) -> String,
    expected: Expect,
) {
    check_with(stage, settings, &[], input, show, expected);
}

pub fn check_with<I: Record, O: Record>(
    stage: &StageDef,
    settings: &str,
    resources: &[(&str, &str)],
    input: &[I],
    show: impl Fn(&O) -> String,
    expected: Expect,
) {
    let built = build(stage, settings, resources);
    let context = StageContext { pipeline: "test", node: stage.name, media: &NoMedia, sides: &SideInputs::default() };
    let output = match &built {
        AnyStage::Record(runner) => runner.run(&to_batch(input).unwrap(), &context).unwrap(),
        AnyStage::Model(runner) => runner.run(&to_batch(input).unwrap(), None, &context).unwrap(),
        _ => panic!("not a stage of records"),
    };
    let mut text = String::new();
    for row in &output.extras.ledger {
        assert!(stage.reasons.contains(&row.reason.as_str()), "{} is not declared", row.reason);
        writeln!(text, "{} {} {}: {}", row.exit.as_str(), row.record_id, row.reason, row.detail).unwrap();
    }
    let Stream::Records(batch) = &output.stream else { panic!("a record stage emits records") };
    for record in from_batch::<O>(batch).unwrap() {
        writeln!(text, "keep {} {}", record.record_id(), show(&record)).unwrap();
    }
    expected.assert_eq(&text);
}

/// Runs a filter over records: one line each, in order.
pub fn check_filter<I: Record>(
    stage: &StageDef,
    settings: &str,
    resources: &[(&str, &str)],
    input: &[I],
    expected: Expect,
) {
    let built = build(stage, settings, resources);
    let context = StageContext { pipeline: "test", node: stage.name, media: &NoMedia, sides: &SideInputs::default() };
    let AnyStage::Filter(runner) = &built else { panic!("not a filter") };
    let output = runner.run(&to_batch(input).unwrap(), &context).unwrap();
    let Stream::Selected(selected) = output.stream else { panic!("a filter selects") };
    let mut exits = output.extras.ledger.iter();
    let mut text = String::new();
    for (row, record) in (0u32..).zip(input) {
        if selected.contains(&row) {
            writeln!(text, "keep {}", record.record_id()).unwrap();
        } else {
            let exit = exits.next().expect("a record that is not kept is in the ledger");
            writeln!(text, "{} {} {}: {}", exit.exit.as_str(), exit.record_id, exit.reason, exit.detail).unwrap();
        }
    }
    expected.assert_eq(&text);
}

/// The verdicts of a table stage, and its side rows.
fn run_table<I: Record>(stage: &StageDef, settings: &str, input: &[I]) -> (Vec<Decision>, Emitted) {
    let AnyStage::Table(runner) = build(stage, settings, &[]) else { panic!("not a table stage") };
    let columns = runner.columns(&to_batch(input).unwrap(), 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns.parquet");
    crate::store::parquet::write_new(&path, &columns).unwrap();
    let mut sides = SideEmitter::default();
    let decisions = runner.decide(crate::store::parquet::scan(&[path]).unwrap(), &mut sides).unwrap();
    (decisions, sides.finish().unwrap())
}

/// The verdicts of a table stage.
pub fn decide_table<I: Record>(stage: &StageDef, settings: &str, input: &[I]) -> Vec<Decision> {
    run_table(stage, settings, input).0
}

/// Runs a table stage over records: verdicts in id order, then side rows.
pub fn check_table<I: Record>(stage: &StageDef, settings: &str, input: &[I], expected: Expect) {
    let (decisions, emitted) = run_table(stage, settings, input);
    let mut lines = BTreeMap::new();
    for decision in decisions {
        let line = match decision.verdict.exit() {
            None => format!("keep {}", decision.record_id),
            Some((exit, cause)) => {
                format!("{} {} {}: {}", exit.as_str(), decision.record_id, cause.reason, cause.detail)
            }
        };
        assert!(lines.insert(decision.record_id, line).is_none(), "one verdict for each id");
    }
    let mut text: String = lines.into_values().map(|line| line + "\n").collect();
    for (port, side) in emitted.sides {
        let mut rows: Vec<serde_json::Value> = from_batch(&side.batch).unwrap();
        rows.sort_by_key(|row| row["record_id"].to_string());
        for row in rows {
            writeln!(text, "{port} {} {row}", row["record_id"].as_str().unwrap_or_default()).unwrap();
        }
    }
    expected.assert_eq(&text);
}
