//! From the last record of a pipeline to the rows of its case.

use crate::record::difficulty::DifficultyRow;
use crate::record::release::{CorrectionRow, RunRow, SlotRow, TextRow};
use crate::record::slots::{Change, Correction, MedroundsCase, ModelRuns, Slot, SlotRecord};
use crate::record::{Hash, Provenance, Record, RecordId, RowType, from_batch};
use anyhow::Context;
use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The rows of one case. `case` is a row of the pipeline's case type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRows {
    pub case: Value,
    pub slots: Vec<SlotRow>,
    pub texts: Vec<TextRow>,
    pub runs: Vec<RunRow>,
    pub corrections: Vec<CorrectionRow>,
}

/// A record type that can become a case.
pub struct CaseType {
    /// Type of the records of the pipeline's last node.
    pub record: &'static str,
    /// Type of the rows of `cases/*.parquet`.
    pub case: RowType,
    pub convert: fn(&RecordBatch, &CaseContext<'_>) -> anyhow::Result<Vec<ConvertedCase>>,
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

/// Every record type that can become a case.
pub const CASE_TYPES: &[CaseType] =
    &[CaseType { record: "slot_record", case: RowType::of::<MedroundsCase>(), convert: convert_slot_records }];

fn convert_slot_records(batch: &RecordBatch, context: &CaseContext<'_>) -> anyhow::Result<Vec<ConvertedCase>> {
    from_batch::<SlotRecord>(batch)?.into_iter().map(|record| convert_slot_record(record, context)).collect()
}

fn convert_slot_record(record: SlotRecord, context: &CaseContext<'_>) -> anyhow::Result<ConvertedCase> {
    let case_id = record.record_id.case_id(context.pipeline);
    let mut ordinals: BTreeMap<_, u32> = BTreeMap::new();
    let mut slots = Vec::with_capacity(record.slots.len());
    for value in &record.slots {
        let ordinal = ordinals.entry(value.slot).or_default();
        slots.push(SlotRow {
            case_id: case_id.clone(),
            slot: value.slot,
            ordinal: *ordinal,
            value: value.value.clone(),
            normalised: value.normalised.clone(),
            text_id: value.span.as_ref().map(|span| span.text_id.clone()),
            start: value.span.as_ref().map(|span| span.start),
            end: value.span.as_ref().map(|span| span.end),
            grounding: value.grounding,
            distance: value.distance,
            conflict: value.conflict,
            moved_from: value.moved_from,
            names_diagnosis: value.names_diagnosis,
        });
        *ordinal += 1;
    }
    let (start, end) = (record.question.start as usize, record.question.end as usize);
    let question: String = record.stem.chars().skip(start).take(end.saturating_sub(start)).collect();
    let mut flags = record.flags.clone();
    let review = context.review.get(record.record_id()).map(Vec::as_slice).unwrap_or_default();
    flags.extend_from_slice(review);
    flags.sort_unstable();
    flags.dedup();
    let difficulty = context.difficulty.get(record.record_id());
    let runs = run_rows(&case_id, &record.runs);
    let corrections = correction_rows(&case_id, &record.corrections);
    let case = MedroundsCase {
        case_id: case_id.clone(),
        parent_id: None,
        source: record.provenance.source.clone(),
        licence: record.provenance.rights.licence.clone(),
        access: record.provenance.rights.access,
        question,
        options: record.options,
        answer_key: record.answer_key,
        answer_text: record.answer_text,
        ground_truth_diagnosis: record.ground_truth_diagnosis,
        exam: record.exam,
        subject: record.subject,
        made_by: record.made_by,
        replies: record.replies,
        specialty: record.specialty.as_ref().map(|specialty| specialty.name.clone()),
        specialty_confident: record.specialty.as_ref().map(|specialty| specialty.confident),
        specialty_by_rules: record.specialty.as_ref().and_then(|specialty| specialty.by_rules.clone()),
        specialty_evidence: record.specialty.map(|specialty| specialty.evidence).unwrap_or_default(),
        fidelity: record.fidelity,
        judgement: record.judgement,
        difficulty: difficulty.and_then(|row| row.band),
        difficulty_score: difficulty.and_then(|row| row.score),
        difficulty_signals: difficulty.and_then(|row| row.signals),
        difficulty_scaled: difficulty.and_then(|row| row.scaled),
        difficulty_missing: difficulty.map(|row| row.missing.clone()).unwrap_or_default(),
        n_rejected_values: u32::try_from(record.rejected.len())?,
        subsets: Vec::new(),
        flags,
        review_state: if review.is_empty() { "none" } else { "pending" }.to_owned(),
        case_hash: String::new(),
    };
    let texts = vec![TextRow { case_id, text_id: crate::stage::extract_slots::STEM.to_owned(), text: record.stem }];
    let mut case = serde_json::to_value(case)?;
    let mut rows = CaseRows { case: Value::Null, slots, texts, runs, corrections };
    let hash = case_hash(&case, &rows)?;
    if let Some(field) = case.get_mut("case_hash") {
        *field = Value::String(hash.to_string());
    }
    rows.case = case;
    Ok(ConvertedCase { record_id: record.record_id, provenance: record.provenance, rows })
}

/// What a case hash is computed from.
#[derive(Serialize)]
struct CaseDocument<'a> {
    case: serde_json::Map<String, Value>,
    slots: &'a [SlotRow],
    texts: &'a [TextRow],
    runs: &'a [RunRow],
    corrections: &'a [CorrectionRow],
}

/// Every answer and every failed call of a record, by model, then by sample.
fn run_rows(case_id: &str, of_models: &[ModelRuns]) -> Vec<RunRow> {
    let mut rows = Vec::new();
    for of_model in of_models {
        let row = |sample: u32, state: &str, call: &Hash| RunRow {
            case_id: case_id.to_owned(),
            model: of_model.model.clone(),
            by: of_model.by.clone(),
            sample,
            state: state.to_owned(),
            n_steps: None,
            answer: None,
            confidence: None,
            call: call.clone(),
        };
        let complete = of_model.runs.iter().map(|run| RunRow {
            n_steps: Some(run.n_steps),
            answer: Some(run.answer.clone()),
            confidence: Some(run.confidence),
            ..row(run.sample, COMPLETE, &run.call)
        });
        rows.extend(complete);
        rows.extend(of_model.failed.iter().map(|failed| row(failed.sample, &failed.reason, &failed.call)));
    }
    rows.sort_by(|one, other| (&one.model, one.sample).cmp(&(&other.model, other.sample)));
    rows
}

/// The state of a run with an answer.
pub const COMPLETE: &str = "complete";

/// What reviewers changed of a record, numbered in each slot.
fn correction_rows(case_id: &str, corrections: &[Correction]) -> Vec<CorrectionRow> {
    let mut rows: Vec<CorrectionRow> = corrections
        .iter()
        .map(|Correction { change, slot, value }| CorrectionRow {
            case_id: case_id.to_owned(),
            slot: *slot,
            change: *change,
            ordinal: 0,
            value: value.clone(),
        })
        .collect();
    rows.sort_by_key(|row| (row.slot, row.change));
    let mut ordinals: BTreeMap<(Slot, Change), u32> = BTreeMap::new();
    for row in &mut rows {
        let next = ordinals.entry((row.slot, row.change)).or_default();
        row.ordinal = *next;
        *next += 1;
    }
    rows
}

/// SHA-256 of the canonical JSON of a case: its row without `case_hash`, `review_state` and `subsets` (which cases are drawn
/// depends on the other cases), its slots, texts, runs and corrections. File, line, raw hash and snapshot stand in `provenance.parquet` and are not in it.
pub fn case_hash(case: &Value, rows: &CaseRows) -> anyhow::Result<Hash> {
    let mut case = case.as_object().context("a case is an object")?.clone();
    case.remove("case_hash");
    case.remove("review_state");
    case.remove("subsets");
    let CaseRows { slots, texts, runs, corrections, .. } = rows;
    Hash::of_json(&CaseDocument { case, slots, texts, runs, corrections })
}
