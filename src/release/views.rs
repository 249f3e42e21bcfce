//! One case, four views: for single-turn and interactive use of the same case (MedRoundsQA, 3.6, 4.1 and I.1).
//!
//! | file | what a solver gets | and `gold` |
//! |---|---|---|
//! | `views/mcq.jsonl` | vignette, question, options | key, answer, diagnosis |
//! | `views/open.jsonl` | vignette, question | diagnosis |
//! | `views/record.jsonl` | the 24-slot record | diagnosis |
//! | `views/interactive.jsonl` | `chart_blurb` for the doctor; the record for the simulated patient | diagnosis |
//!
//! Everything outside `gold` may be shown. A record is one string for each slot, values parted by a comma, `"NA"` where there is
//! none; Past-Medication is a list. The blurb is Medical-Examination and additional_notes without any value that names the
//! diagnosis.

use crate::record::Hash;
use crate::record::model::field::SLOTS;
use crate::record::release::{SlotRow, TextRow};
use crate::record::slots::Slot;
use anyhow::Context;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The files of the views, below the release folder.
pub const FILES: [&str; 4] = ["views/interactive.jsonl", "views/mcq.jsonl", "views/open.jsonl", "views/record.jsonl"];

/// One line of a view.
#[derive(Serialize)]
struct Line<'a, T> {
    case_id: &'a str,
    /// SHA-256 of the whole stem: by it a record is found again in its source.
    question_sha256: &'a Hash,
    #[serde(flatten)]
    shown: T,
    gold: Value,
}

/// The lines of a case, one for each of [`FILES`], without line ends.
///
/// # Errors
/// The rows are not those of a case: a field or the text is missing.
pub fn lines(case: &Value, slots: &[SlotRow], texts: &[TextRow]) -> anyhow::Result<[String; 4]> {
    let field = |name: &str| case.get(name).cloned().unwrap_or_default();
    let case_id = case.get("case_id").and_then(Value::as_str).context("a case without case_id")?;
    let stem = texts.first().context("a case without text")?;
    let question = case.get("question").and_then(Value::as_str).context("a case without question")?;
    let question_sha256 = Hash::of(stem.text.as_bytes());
    let vignette = vignette(&stem.text, question);
    let diagnosis = json!({ "ground_truth_diagnosis": field("ground_truth_diagnosis") });
    let mut key = diagnosis.clone();
    for name in ["answer_key", "answer_text"] {
        if let Some(key) = key.as_object_mut() {
            key.insert(name.to_owned(), field(name));
        }
    }
    let line = |shown: Value, gold: &Value| -> anyhow::Result<String> {
        let line = Line { case_id, question_sha256: &question_sha256, shown, gold: gold.clone() };
        Ok(serde_json::to_string(&line)?)
    };
    let record = record(slots);
    let report: Map<String, Value> = record.clone();
    Ok([
        line(json!({ "chart_blurb": chart_blurb(slots), "patient_report": report }), &diagnosis)?,
        line(json!({ "vignette": vignette, "question": question, "options": field("options") }), &key)?,
        line(json!({ "vignette": vignette, "question": question }), &diagnosis)?,
        line(json!({ "extractor": extractor(case), "specialty": field("specialty"), "record": record }), &diagnosis)?,
    ])
}

/// Who made the record: the last in the list, since reviewers come after an extractor.
fn extractor(case: &Value) -> Value {
    let entries = case.get("made_by").and_then(Value::as_array).into_iter().flatten();
    let mut of_slots = entries.filter(|entry| entry.get("field").and_then(Value::as_str) == Some(SLOTS));
    of_slots.next_back().and_then(|entry| entry.get("by")).cloned().unwrap_or_default()
}

/// The stem without the question it ends in.
fn vignette<'a>(stem: &'a str, question: &str) -> &'a str {
    match stem.rfind(question) {
        Some(at) if !question.is_empty() => stem.get(..at).unwrap_or(stem).trim_end(),
        _ => stem,
    }
}

/// The record as the paper's appendix E.4 prints it, without the diagnosis.
pub fn record(slots: &[SlotRow]) -> Map<String, Value> {
    let mut record = Map::new();
    for slot in Slot::ALL {
        if slot == Slot::GroundTruthDiagnosis {
            continue;
        }
        let values: Vec<&str> = slots.iter().filter(|row| row.slot == slot).map(SlotRow::shown).collect();
        let shown = if slot == Slot::PastMedication {
            json!(values)
        } else if values.is_empty() {
            json!("NA")
        } else {
            json!(values.join(", "))
        };
        record.insert(slot.as_str().to_owned(), shown);
    }
    record
}

/// Findings and notes for the doctor of a simulated consultation, `"NA"` if there are none.
pub fn chart_blurb(slots: &[SlotRow]) -> String {
    let of = |slot: Slot| slots.iter().filter(move |row| row.slot == slot && !row.names_diagnosis).map(SlotRow::shown);
    let blurb: Vec<&str> = of(Slot::MedicalExamination).chain(of(Slot::AdditionalNotes)).collect();
    if blurb.is_empty() { "NA".to_owned() } else { blurb.join("; ") }
}
