//! `mtdiag`: patient vectors to cases, what a patient may tell, and what must hold between the rows of one.
//!
//! `views/patients.jsonl` has one line a case: everything outside `gold` may be told to whoever plays the patient; `turn_0` is the
//! first utterance (MTDiag, sections 3 and 4.4). Names that a closed world denies stand in `cases/*.parquet` alone: they are most
//! of a line, and a function of the source's table.

use super::case::{CaseContext, CaseRows, CaseTable, CaseType, ConvertedCase, finish, text_rows};
use super::media::cited;
use crate::record::release::{CitationRow, TextRow};
use crate::record::slots::Span;
use crate::record::vector::{
    Dataset, Diagnosis, Finding, MtdiagCase, Negation, PatientVector, ProvenanceTier, SymptomPresentation,
};
use crate::record::{Record, RowType, from_batch};
use anyhow::Context;
use arrow::array::RecordBatch;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const CASE_TYPE: CaseType = CaseType {
    record: "patient_vector",
    case: RowType::of::<MtdiagCase>(),
    tables: &[CaseTable::of::<TextRow>(TEXTS)],
    views: &["views/patients.jsonl"],
    convert: convert_all,
    lines,
    faults,
    media: None,
    citation: Some(citation),
};

const TEXTS: &str = "texts";

fn convert_all(batch: &RecordBatch, context: &CaseContext<'_>) -> anyhow::Result<Vec<ConvertedCase>> {
    from_batch::<PatientVector>(batch)?.into_iter().map(|record| convert(record, context)).collect()
}

fn convert(record: PatientVector, context: &CaseContext<'_>) -> anyhow::Result<ConvertedCase> {
    let case_id = record.record_id.case_id(context.pipeline);
    let (flags, review_state) = context.review_of(record.record_id(), &record.flags);
    let hash = case_id.rsplit('-').next().unwrap_or_default();
    let case = MtdiagCase {
        mtdiag_id: format!("{}-{}-{hash}", context.pipeline, record.origin.dataset.as_str()),
        case_id: case_id.clone(),
        parent_id: None,
        source: record.provenance.source.clone(),
        licence: record.provenance.rights.licence.clone(),
        access: record.provenance.rights.access,
        origin: record.origin,
        ground_truth: record.ground_truth,
        facts: record.facts,
        presentation: record.presentation,
        citation: record.citation,
        made_by: record.made_by,
        replies: record.replies,
        subsets: Vec::new(),
        flags,
        review_state,
        case_hash: String::new(),
    };
    let texts = text_rows(&case_id, record.texts);
    let mut rows = CaseRows { case: serde_json::to_value(case)?, tables: BTreeMap::new() };
    rows.put(TEXTS, &texts)?;
    finish(&CASE_TYPE, record.record_id, record.provenance, rows)
}

fn parse(case: &Value) -> anyhow::Result<MtdiagCase> {
    use serde::Deserialize;
    MtdiagCase::deserialize(case).context("a case of mtdiag")
}

/// What to name with a case; of a dataset that is named as a whole, its source.
fn citation(case: &Value) -> anyhow::Result<Option<CitationRow>> {
    let case = parse(case)?;
    let changes = "text selected and turned into a structured patient";
    Ok(case.citation.map(|citation| cited(case.case_id, citation, case.licence, changes)))
}

/// A value without the offsets into texts, without what is not known, and without the terms that a closed world denies.
fn shown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for hidden in ["spans", "absent_symptoms", "absent_antecedents"] {
                fields.remove(hidden);
            }
            fields.values_mut().for_each(shown);
            fields.retain(|_, value| !is_empty(value));
        }
        Value::Array(values) => values.iter_mut().for_each(shown),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn lines(rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let case = parse(&rows.case)?;
    let utterance =
        |one: &SymptomPresentation| one.symptom.statement.clone().unwrap_or_else(|| one.symptom.name.clone());
    let turn_0: Vec<String> = case.presentation.chief_complaint.iter().map(utterance).collect();
    let mut told = json!({ "symptoms": case.presentation.symptoms, "facts": case.facts });
    shown(&mut told);
    let mut gold = serde_json::to_value(&case.ground_truth)?;
    shown(&mut gold);
    let line = json!({
        "case_id": case.case_id,
        "mtdiag_id": case.mtdiag_id,
        "dataset": case.origin.dataset,
        "stratum": case.origin.stratum,
        "language": case.origin.language,
        "turn_0": turn_0,
        "closed_world": case.presentation.absent_symptoms.is_some(),
        "patient": told,
        "gold": gold,
    });
    Ok(vec![serde_json::to_string(&line)?])
}

/// Every span of a case with the name of its place.
fn spans(case: &MtdiagCase) -> Vec<(&'static str, &Span)> {
    let mut all: Vec<(&'static str, &Span)> = Vec::new();
    let truth = std::iter::once(&case.ground_truth.primary).chain(&case.ground_truth.secondary);
    all.extend(truth.flat_map(|diagnosis| &diagnosis.spans).map(|span| ("ground_truth", span)));
    let presentation = &case.presentation;
    let symptoms = presentation.chief_complaint.iter().chain(&presentation.symptoms);
    all.extend(symptoms.flat_map(|one| &one.symptom.spans).map(|span| ("presentation", span)));
    let facts = &case.facts;
    let relatives = facts.family_history.iter().flat_map(|relative| &relative.findings);
    all.extend(facts.antecedents.iter().chain(relatives).flat_map(|one| &one.spans).map(|span| ("history", span)));
    all.extend(facts.demographics.spans.iter().map(|span| ("demographics", span)));
    all.extend(facts.vitals.iter().flat_map(|one| &one.spans).map(|span| ("vitals", span)));
    all.extend(facts.tests.iter().flat_map(|one| &one.spans).map(|span| ("tests", span)));
    all.extend(facts.narrative.iter().flat_map(|one| &one.spans).map(|span| ("narrative", span)));
    all.extend(facts.medications.iter().flat_map(|one| &one.spans).map(|span| ("medications", span)));
    all
}

/// Spans lie in their texts, the chief complaint is a symptom or antecedent, and the differential is ranked.
fn faults(id: &str, rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let case = parse(&rows.case)?;
    let texts: Vec<TextRow> = rows.table(TEXTS)?;
    let lengths: BTreeMap<&str, usize> =
        texts.iter().map(|row| (row.text_id.as_str(), row.text.chars().count())).collect();
    let mut faults = Vec::new();
    for (name, span) in spans(&case) {
        let length = lengths.get(span.text_id.as_str());
        if span.start >= span.end || length.is_none_or(|length| span.end as usize > *length) {
            faults.push(format!(
                "cases: {id} {name}: a span at {}..{} of text `{}`, which is not in texts.parquet",
                span.start, span.end, span.text_id
            ));
        }
    }
    let truth = &case.ground_truth;
    if truth.primary.label.trim().is_empty() {
        faults.push(format!("cases: {id}: no primary diagnosis"));
    }
    if case.presentation.chief_complaint.is_empty() {
        faults.push(format!("cases: {id}: no chief complaint"));
    }
    let symptoms = case.presentation.symptoms.iter().map(|one| &one.symptom);
    let relatives = case.facts.family_history.iter().flat_map(|relative| &relative.findings);
    let known: Vec<&Finding> = symptoms.chain(&case.facts.antecedents).chain(relatives).collect();
    for complaint in &case.presentation.chief_complaint {
        let symptom = &complaint.symptom;
        if !known.iter().any(|one| one.name == symptom.name && one.code == symptom.code) {
            faults.push(format!("cases: {id}: the complaint `{}` is none of the findings", symptom.name));
        }
        if symptom.negation != Negation::Present {
            faults.push(format!("cases: {id}: the complaint `{}` is not present", symptom.name));
        }
    }
    let mut before = f64::INFINITY;
    for (rank, entry) in (1u32..).zip(&truth.differential) {
        let probability = entry.probability.unwrap_or(before);
        if entry.rank != rank || probability > before {
            faults.push(format!("cases: {id}: entry {rank} of the differential is out of order"));
        }
        before = probability;
    }
    let is_of_dataset = |diagnosis: &Diagnosis| match diagnosis.provenance_tier {
        ProvenanceTier::DdxplusGold => case.origin.dataset == Dataset::Ddxplus,
        ProvenanceTier::AjcrGold => case.origin.dataset == Dataset::Ajcr,
        ProvenanceTier::MimicDischarge | ProvenanceTier::MimicEdPrelim => case.origin.dataset == Dataset::Mimic,
    };
    if !std::iter::once(&truth.primary).chain(&truth.secondary).all(is_of_dataset) {
        faults.push(format!("cases: {id}: a diagnosis has the tier of another dataset"));
    }
    Ok(faults)
}
