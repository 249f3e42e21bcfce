//! `medrounds`: slot records to cases, and what must hold between the rows of one.

use super::case::{CaseContext, CaseRows, CaseTable, CaseType, ConvertedCase, finish};
use super::views;
use crate::record::release::{CorrectionRow, RunRow, SlotRow, TextRow};
use crate::record::slots::{Change, Correction, Grounding, MedroundsCase, ModelRuns, Slot, SlotRecord};
use crate::record::{Hash, Record, RowType, from_batch};
use arrow::array::RecordBatch;
use serde_json::Value;
use std::collections::BTreeMap;

pub const CASE_TYPE: CaseType = CaseType {
    record: "slot_record",
    case: RowType::of::<MedroundsCase>(),
    tables: &[
        CaseTable::of::<SlotRow>(SLOTS),
        CaseTable::of::<TextRow>(TEXTS),
        CaseTable::of::<RunRow>(RUNS),
        CaseTable::of::<CorrectionRow>(CORRECTIONS),
    ],
    views: &views::FILES,
    convert: convert_slot_records,
    lines,
    faults,
    media: None,
    citation: None,
};

const SLOTS: &str = "slots";
pub const TEXTS: &str = "texts";
pub const RUNS: &str = "runs";
const CORRECTIONS: &str = "corrections";

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
    let (flags, review_state) = context.review_of(record.record_id(), &record.flags);
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
        review_state,
        case_hash: String::new(),
    };
    let texts = vec![TextRow { case_id, text_id: crate::stage::extract_slots::STEM.to_owned(), text: record.stem }];
    let mut rows = CaseRows { case: serde_json::to_value(case)?, tables: BTreeMap::new() };
    rows.put(SLOTS, &slots)?;
    rows.put(TEXTS, &texts)?;
    rows.put(RUNS, &runs)?;
    rows.put(CORRECTIONS, &corrections)?;
    finish(&CASE_TYPE, record.record_id, record.provenance, rows)
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
            ..row(run.sample, super::case::COMPLETE, &run.call)
        });
        rows.extend(complete);
        rows.extend(of_model.failed.iter().map(|failed| row(failed.sample, &failed.reason, &failed.call)));
    }
    rows.sort_by(|one, other| (&one.model, one.sample).cmp(&(&other.model, other.sample)));
    rows
}

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

fn lines(rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    Ok(views::lines(&rows.case, &rows.table(SLOTS)?, &rows.table(TEXTS)?)?.into())
}

/// Every slot value is what its text says at its place.
fn faults(id: &str, rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let case = &rows.case;
    let texts: Vec<TextRow> = rows.table(TEXTS)?;
    let slots: Vec<SlotRow> = rows.table(SLOTS)?;
    // Under the setting `unsupported = "flag"` nothing is taken out, and the case says that something should have been.
    let flags = case.get("flags").and_then(Value::as_array);
    let may_be_unsupported = flags.is_some_and(|flags| flags.contains(&"unsupported_values".into()))
        && case.get("n_rejected_values").and_then(Value::as_u64) == Some(0);
    for slot in slots.iter().filter(|slot| slot.grounding.is_grounded() || !may_be_unsupported) {
        let name = slot.slot.as_str();
        let (Some(text_id), Some(start), Some(end)) = (&slot.text_id, slot.start, slot.end) else {
            faults.push(format!("slots.parquet: {id} {name}: a value without a place in a text"));
            continue;
        };
        let Some(text) = texts.iter().find(|text| text.text_id == *text_id) else {
            faults.push(format!(
                "slots.parquet: {id} {name} points into text `{text_id}`, which is not in texts.parquet"
            ));
            continue;
        };
        let copied: String = text.text.chars().skip(start as usize).take(end.saturating_sub(start) as usize).collect();
        let is_supported = match slot.grounding {
            Grounding::Exact => copied == slot.value,
            Grounding::Normalised | Grounding::Fuzzy => !copied.is_empty(),
            Grounding::Contradicted | Grounding::NotFound => false,
        };
        if !is_supported {
            faults.push(format!("slots.parquet: {id} {name}: the text at {start}..{end} is not the value"));
        }
    }
    Ok(faults)
}
