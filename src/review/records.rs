//! Records value by value: each goes out with its vignette, its values and what is known of them, and comes back as an
//! annotator left it (MedRoundsQA, 3.1 and appendix G: correct, add what the vignette says, take out what it does not say, and
//! flag the case when in doubt).
//!
//! An annotator is shown the record as it was extracted, also when others have corrected it already, so that several annotators
//! of one record work independently. `base_sha256` ([`base_hash`]) tells which extraction that was.

use super::{add_lines, draw, exits_of, node_of_stage, resource_file, write_lines};
use crate::config::suggestion;
use crate::engine::Session;
use crate::engine::stream::Upstream;
use crate::error::{input, usage};
use crate::record::correction::{
    CorrectedRecord, CorrectedValue, RecordAgreement, Tally, agreement, base_hash, effective, in_one_line, n_common,
    parse_corrections, plain_values, tally,
};
use crate::record::model::JudgementRow;
use crate::record::slots::{Fidelity, Grounding, Slot, SlotRecord, SlotValue};
use crate::record::{Access, Hash, RecordId, from_batch};
use crate::source::edited::{self, FileRow, Table, guarded, unguarded};
use crate::stage::apply_corrections::{self, CONTEXT, CORRECTIONS};
use crate::stage::ask::JUDGEMENTS;
use crate::stage::coerce::MissingWords;
use crate::stage::extract_slots::Placing;
use crate::stage::score_fidelity;
use crate::store::fs;
use crate::text::context::ContextRules;
use crate::text::strict_json::kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Phrases of a record by slot, in the order of Table 6.
pub type Phrases = BTreeMap<Slot, Vec<String>>;

/// One record for an annotator. `annotator`, `corrected`, `unsure` and `comment` are to be filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordItem {
    pub record_id: RecordId,
    /// The vignette with the question asked.
    pub stem: String,
    /// From the source's keyed answer.
    pub diagnosis: String,
    /// As it was extracted.
    pub record: Phrases,
    /// Where the vignette has each value.
    pub spans: Vec<ItemSpan>,
    /// Values that the vignette does not support, and why: what is left of these is taken out, or flagged, by the build.
    pub unsupported: Vec<String>,
    /// As the build scored the record, with the corrections it has; null if it did not, or dropped it.
    pub fidelity: Option<Fidelity>,
    /// What a judge said; null if none was asked.
    pub judgement: Option<ItemJudgement>,
    /// Why the build drops the record for its fidelity: `node: reason: detail`.
    pub dropped: Option<String>,
    pub flags: Vec<String>,
    /// `file:line`
    pub place: String,
    /// Which extraction this is: leave it as it is.
    pub base_sha256: Hash,
    /// A name or a code; empty: not done yet.
    pub annotator: String,
    /// The record as it should be: at first as it was extracted, with every slot.
    pub corrected: Phrases,
    /// Whether somebody else should look at the case.
    pub unsure: bool,
    pub comment: String,
}

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemSpan {
    pub slot: Slot,
    pub value: String,
    /// In Unicode scalar values of the stem, the end excluded; null where the stem does not have it.
    pub start: Option<u32>,
    pub end: Option<u32>,
    pub grounding: Grounding,
}

/// What a judge said of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemJudgement {
    /// 1 to 5.
    pub score: String,
    pub reason: String,
}

pub struct RecordExportOptions {
    /// So many records; `None` for all.
    pub sample: Option<usize>,
    /// Draws another sample.
    pub seed: u64,
}

/// What the fidelity node says of records, of those it drops too.
#[derive(Default)]
struct Scored {
    of_kept: BTreeMap<RecordId, (Option<Fidelity>, Vec<String>)>,
    judgements: BTreeMap<RecordId, ItemJudgement>,
    dropped: BTreeMap<RecordId, String>,
}

/// What annotators see: the records that reach the node which applies corrections. Sorted by id; a sample stays the same when
/// records are added.
///
/// # Errors
/// Usage errors if the pipeline applies no corrections, or the nodes before are not built.
pub fn export(session: &Session, options: &RecordExportOptions) -> anyhow::Result<Vec<RecordItem>> {
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let gate = gate(session)?;
    let rules = context_rules(session, gate)?;
    let scored = scored(session, &upstream, gate)?;
    let mut ids = Vec::new();
    for_each_record(session, &upstream, gate, |record| {
        ids.push((record.record_id, ()));
        Ok(())
    })?;
    let n = options.sample.unwrap_or(ids.len());
    let wanted: BTreeSet<RecordId> = draw(ids, n, options.seed).into_iter().map(|(id, ())| id).collect();
    let mut items = Vec::with_capacity(wanted.len());
    for_each_record(session, &upstream, gate, |record| {
        if wanted.contains(&record.record_id) {
            items.push(item(record, &rules, &scored)?);
        }
        Ok(())
    })?;
    items.sort_by(|one, other| one.record_id.cmp(&other.record_id));
    Ok(items)
}

fn item(record: SlotRecord, rules: &ContextRules, scored: &Scored) -> anyhow::Result<RecordItem> {
    let base_sha256 = base_hash(&record.stem, &plain_values(&record.slots))?;
    let mut phrases = Phrases::new();
    let mut placing = Placing::new(&record.stem, rules);
    for value in &record.slots {
        phrases.entry(value.slot).or_default().push(value.value.clone());
        // An extractor's place, or none: then it is looked for as its first occurrence.
        placing.add(value.slot, &value.value, value.span.as_ref().map(|span| span.start..span.end))?;
    }
    let (judged, _) = placing.finish();
    let mut corrected = phrases.clone();
    for slot in fillable() {
        corrected.entry(slot).or_default();
    }
    let of_kept = scored.of_kept.get(&record.record_id);
    Ok(RecordItem {
        record: phrases,
        spans: judged.iter().map(span).collect(),
        unsupported: judged.iter().filter_map(SlotValue::why_unsupported).collect(),
        fidelity: of_kept.and_then(|(fidelity, _)| fidelity.clone()),
        judgement: scored.judgements.get(&record.record_id).cloned(),
        dropped: scored.dropped.get(&record.record_id).cloned(),
        flags: of_kept.map_or(record.flags, |(_, flags)| flags.clone()),
        place: format!("{}:{}", record.provenance.file, record.provenance.line),
        record_id: record.record_id,
        stem: record.stem,
        diagnosis: record.ground_truth_diagnosis,
        base_sha256,
        annotator: String::new(),
        corrected,
        unsure: false,
        comment: String::new(),
    })
}

fn span(value: &SlotValue) -> ItemSpan {
    ItemSpan {
        slot: value.slot,
        value: value.value.clone(),
        start: value.span.as_ref().map(|span| span.start),
        end: value.span.as_ref().map(|span| span.end),
        grounding: value.grounding,
    }
}

/// The slots that annotators fill: the diagnosis is the source's.
fn fillable() -> impl Iterator<Item = Slot> {
    Slot::ALL.into_iter().filter(|slot| *slot != Slot::GroundTruthDiagnosis)
}

/// The node that applies corrections.
fn gate(session: &Session) -> anyhow::Result<usize> {
    node_of_stage(session, apply_corrections::STAGE.name, "corrections would change nothing")
}

fn context_rules(session: &Session, gate: usize) -> anyhow::Result<ContextRules> {
    let (_, name) = resource_file(session, gate, CONTEXT)?;
    ContextRules::parse(session.resource_text(gate, CONTEXT)?).map_err(|error| usage(format!("{name}: {error}")))
}

/// Every record that reaches a node.
fn for_each_record(
    session: &Session,
    upstream: &Upstream<'_>,
    node: usize,
    mut visit: impl FnMut(SlotRecord) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for input in session.node(node)?.stream_inputs().filter(|input| !session.absent.contains_key(input)) {
        if upstream.plans.get(input).is_none_or(|plan| plan.manifest.is_none()) {
            let name = &session.node(input)?.name;
            return Err(usage(format!(
                "node {name} is not built: run casemill build {} --to {name} first",
                session.graph.pipeline
            )));
        }
    }
    for index in 0..upstream.n_input_shards(node)? {
        from_batch::<SlotRecord>(&upstream.read_input(node, index, None)?)?.into_iter().try_for_each(&mut visit)?;
    }
    Ok(())
}

/// What the fidelity node below the gate says, as far as it is built.
fn scored(session: &Session, upstream: &Upstream<'_>, gate: usize) -> anyhow::Result<Scored> {
    #[derive(Deserialize)]
    struct Kept {
        record_id: RecordId,
        fidelity: Option<Fidelity>,
        flags: Vec<String>,
    }
    let mut scored = Scored::default();
    let is_below = |node: &usize| session.graph.ancestors(*node).contains(&gate);
    let mut nodes = (0..session.graph.nodes.len()).filter(|node| {
        session.graph.nodes.get(*node).is_some_and(|node| node.stage.name == score_fidelity::STAGE.name)
    });
    let Some(node) = nodes.find(is_below) else { return Ok(scored) };
    let Some(manifest) = upstream.plans.get(node).and_then(|plan| plan.manifest.as_deref()) else { return Ok(scored) };
    for index in 0..manifest.n_stream_shards {
        let batch = upstream.read_stream(node, index, Some(&["record_id", "fidelity", "flags"]))?;
        let rows = from_batch::<Kept>(&batch)?;
        scored.of_kept.extend(rows.into_iter().map(|row| (row.record_id, (row.fidelity, row.flags))));
    }
    upstream.for_each_side(node, JUDGEMENTS, |batch| {
        let rows = from_batch::<JudgementRow>(&batch)?.into_iter().filter(|row| row.answered);
        let judged = rows.map(|row| (row.record_id, ItemJudgement { score: row.verdict, reason: row.reason }));
        scored.judgements.extend(judged);
        Ok(())
    })?;
    scored.dropped.extend(exits_of(session, upstream, node)?);
    Ok(scored)
}

/// Columns of a CSV file before and after one for each of [`fillable`].
const COLUMNS_BEFORE: [&str; 3] = ["record_id", "stem", "diagnosis"];
const COLUMNS_AFTER: [&str; 10] =
    [ANNOTATOR, UNSURE, COMMENT, "unsupported", "fidelity", "judgement", "dropped", "flags", "place", BASE];

const ANNOTATOR: &str = "annotator";
const CORRECTED: &str = "corrected";
const UNSURE: &str = "unsure";
const COMMENT: &str = "comment";
const BASE: &str = "base_sha256";

/// Items as CSV, for spreadsheets: a row for each record, a column for each slot, a line of the field for each value. Text that
/// a spreadsheet would run as a formula gets an apostrophe before it. Places are left out.
pub fn to_csv(items: &[RecordItem]) -> anyhow::Result<Vec<u8>> {
    let columns = COLUMNS_BEFORE.into_iter().chain(fillable().map(Slot::as_str)).chain(COLUMNS_AFTER);
    let rows = items.iter().map(|item| {
        let before = [item.record_id.as_str(), &item.stem, &item.diagnosis].map(guarded);
        let slots = fillable().map(|slot| {
            let values = item.corrected.get(&slot).map(Vec::as_slice).unwrap_or_default();
            values.iter().map(|value| guarded(&in_one_line(value))).collect::<Vec<_>>().join("\n")
        });
        let judgement = item.judgement.as_ref().map(|judgement| format!("{}: {}", judgement.score, judgement.reason));
        let fidelity = item.fidelity.as_ref().map(|fidelity| fidelity.score.to_string());
        let after = [
            item.annotator.as_str(),
            if item.unsure { "yes" } else { "" },
            &item.comment,
            &item.unsupported.join("\n"),
            &fidelity.unwrap_or_default(),
            &judgement.unwrap_or_default(),
            item.dropped.as_deref().unwrap_or_default(),
            &item.flags.join("\n"),
            &item.place,
            item.base_sha256.as_str(),
        ]
        .map(guarded);
        before.into_iter().chain(slots).chain(after).collect()
    });
    edited::to_csv(columns, rows)
}

/// What an import of records changed, and how far annotators agree. Annotators' numbers are over all that the file holds of this
/// build; values are compared in the form for matching.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordImportSummary {
    pub file: PathBuf,
    /// Rows with an annotator in the files given.
    pub n_read: u64,
    /// Rows without one, as they were exported.
    pub n_not_done: u64,
    /// Of the rows read, those that were not in the file before.
    pub n_new: u64,
    /// Rows read whose annotator was shown another extraction, or another vignette, than the present one.
    pub n_on_other_base: u64,
    /// Records of the build that somebody corrected or confirmed.
    pub n_records: u64,
    /// Records in the file that do not reach this part of the build any more.
    pub n_not_in_build: u64,
    /// Values in the rows read that their vignettes do not support.
    pub n_unsupported: u64,
    /// The first of these: `record_id: slot, value and why`.
    pub unsupported: Vec<String>,
    /// Records in the file from sources that ask for credentials: the file quotes them.
    pub n_credentialed: u64,
    pub annotators: Vec<AnnotatorSummary>,
    pub agreement: Vec<RecordAgreement>,
}

/// What one annotator did, against what is extracted at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnnotatorSummary {
    pub annotator: String,
    pub n_records: u64,
    /// Of these, records with the extractor's values.
    pub n_as_extracted: u64,
    pub n_unsure: u64,
    /// Values of the extractor that stayed.
    pub n_confirmed: u64,
    pub n_added: u64,
    pub n_removed: u64,
    /// Values that were put in another slot; neither added nor removed.
    pub n_moved: u64,
}

/// Unsupported values that are named.
const MAX_NAMED: usize = 5;

/// A record as it is extracted at present.
struct Present {
    stem: String,
    values: Vec<CorrectedValue>,
    base: Hash,
    access: Access,
}

/// Adds the records of files to the resource of the pipeline. Nothing is written when any file has a fault.
///
/// # Errors
/// Input errors with file and line; usage errors as of [`export`].
pub fn import(session: &Session, files: &[PathBuf]) -> anyhow::Result<RecordImportSummary> {
    let gate = gate(session)?;
    let (target, resource) = resource_file(session, gate, CORRECTIONS)?;
    let mut lines =
        parse_corrections(&fs::read_text(&target)?).map_err(|error| usage(format!("{resource}: {error}")))?;
    let tables = files.iter().map(|file| edited::read(file)).collect::<anyhow::Result<Vec<Table>>>()?;
    let named = tables.iter().flat_map(|table| &table.rows).map(|row| RecordId::parse(row.text("record_id")));
    let present = present(session, gate, named.chain(lines.iter().map(|line| line.record_id.clone())).collect())?;
    let (mut given, mut n_not_done) = (Vec::new(), 0);
    for table in &tables {
        check_columns(table)?;
        for row in &table.rows {
            match read_row(table, row, &present)? {
                Some(correction) => given.push(correction),
                None => n_not_done += 1,
            }
        }
    }
    let rules = context_rules(session, gate)?;
    let (mut n_on_other_base, mut wrong) = (0, Vec::new());
    for correction in &given {
        let Some(now) = present.get(&correction.record_id) else { continue };
        n_on_other_base += u64::from(now.base != correction.base_sha256);
        let mut placing = Placing::new(&now.stem, &rules);
        for value in &correction.values {
            placing.add(value.slot, &value.value, None)?;
        }
        let (values, _) = placing.finish();
        wrong.extend(
            values.iter().filter_map(SlotValue::why_unsupported).map(|why| format!("{}: {why}", correction.record_id)),
        );
    }
    let n_read = given.len() as u64;
    let n_new = add_lines(&mut lines, given, |line| (line.record_id.clone(), line.annotator.clone()));
    // Within a record the order of import stays: the last one can be the one that counts.
    lines.sort_by(|one, other| one.record_id.cmp(&other.record_id));
    if n_new > 0 {
        write_lines(&target, &lines)?;
    }
    let mut corrections = effective(lines);
    let n_all = corrections.len();
    corrections.retain(|id, _| present.contains_key(id));
    let mut annotators: BTreeMap<&str, AnnotatorSummary> = BTreeMap::new();
    for correction in corrections.values().flatten() {
        let Some(now) = present.get(&correction.record_id) else { continue };
        let summary = annotators.entry(&correction.annotator).or_default();
        summary.annotator.clone_from(&correction.annotator);
        summary.count(correction, &now.values);
    }
    Ok(RecordImportSummary {
        file: target,
        n_read,
        n_not_done,
        n_new,
        n_on_other_base,
        n_records: corrections.len() as u64,
        n_not_in_build: (n_all - corrections.len()) as u64,
        n_unsupported: wrong.len() as u64,
        unsupported: wrong.into_iter().take(MAX_NAMED).collect(),
        n_credentialed: present
            .iter()
            .filter(|(id, now)| corrections.contains_key(*id) && now.access == Access::Credentialed)
            .count() as u64,
        annotators: annotators.into_values().collect(),
        agreement: agreement(&corrections),
    })
}

impl AnnotatorSummary {
    fn count(&mut self, correction: &CorrectedRecord, extracted: &[CorrectedValue]) {
        let (before, after) = (tally(extracted), tally(&correction.values));
        let n_confirmed = n_common(&before, &after);
        let by_form = |these: &Tally, others: &Tally| {
            let mut left: BTreeMap<String, usize> = BTreeMap::new();
            for (form, n) in these {
                let n = n.saturating_sub(*others.get(form).unwrap_or(&0));
                if n > 0 {
                    *left.entry(form.1.clone()).or_default() += n;
                }
            }
            left
        };
        let (removed, added) = (by_form(&before, &after), by_form(&after, &before));
        let n_moved: usize = removed.iter().map(|(form, n)| *n.min(added.get(form).unwrap_or(&0))).sum();
        self.n_records += 1;
        self.n_as_extracted += u64::from(before == after);
        self.n_unsure += u64::from(correction.unsure);
        self.n_confirmed += n_confirmed as u64;
        self.n_moved += n_moved as u64;
        self.n_added += (added.values().sum::<usize>() - n_moved) as u64;
        self.n_removed += (removed.values().sum::<usize>() - n_moved) as u64;
    }
}

/// The records with these ids that reach the gate.
fn present(session: &Session, gate: usize, wanted: BTreeSet<RecordId>) -> anyhow::Result<BTreeMap<RecordId, Present>> {
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let mut present = BTreeMap::new();
    for_each_record(session, &upstream, gate, |record| {
        if wanted.contains(&record.record_id) {
            let values = plain_values(&record.slots);
            let base = base_hash(&record.stem, &values)?;
            let access = record.provenance.rights.access;
            present.insert(record.record_id, Present { stem: record.stem, values, base, access });
        }
        Ok(())
    })?;
    Ok(present)
}

/// A CSV file must have every column that was exported: a slot whose column was taken out is not an empty slot.
fn check_columns(table: &Table) -> anyhow::Result<()> {
    let Some(columns) = &table.columns else { return Ok(()) };
    let all: Vec<&str> = COLUMNS_BEFORE.into_iter().chain(fillable().map(Slot::as_str)).chain(COLUMNS_AFTER).collect();
    let name = &table.name;
    if let Some(unknown) = columns.iter().find(|column| !all.contains(&column.as_str())) {
        let known = suggestion(unknown, all.iter().copied());
        return Err(input(format!(
            "{name}:1: the column `{unknown}` is no slot and no other column of an export{known}"
        )));
    }
    // Only these are read.
    let read = ["record_id", "stem", ANNOTATOR, UNSURE, COMMENT, BASE].into_iter().chain(fillable().map(Slot::as_str));
    for column in read {
        if !columns.iter().any(|found| found == column) {
            return Err(input(format!("{name}:1: the column `{column}` is missing")));
        }
    }
    Ok(())
}

/// What a row says; `None` if it is as it was exported and names no annotator.
fn read_row(
    table: &Table,
    row: &FileRow,
    present: &BTreeMap<RecordId, Present>,
) -> anyhow::Result<Option<CorrectedRecord>> {
    let wrong = |field: &str, message: String| input(format!("{}:{}: {field}: {message}", table.name, row.line));
    let record_id = RecordId::parse(row.text("record_id"));
    let Some(now) = present.get(&record_id) else {
        return Err(wrong("record_id", format!("`{record_id}` is no record that can be corrected in this build")));
    };
    let base_sha256 = Hash::parse(row.text(BASE));
    if base_sha256.to_bytes().is_none() {
        return Err(wrong(BASE, "is not what was exported: 64 hexadecimal digits".to_owned()));
    }
    let fault = |(field, message): (String, String)| wrong(&field, message);
    let values = if table.columns.is_some() { Ok(csv_values(row, now)) } else { json_values(row, now) };
    let values = values.map_err(fault)?;
    let unsure = match row.fields.get(UNSURE) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(unsure)) => *unsure,
        Some(Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "" | "false" | "no" | "0" => false,
            "true" | "yes" | "1" | "x" => true,
            _ => return Err(wrong(UNSURE, format!("`{text}` is not one of yes, no, and nothing"))),
        },
        Some(other) => return Err(wrong(UNSURE, format!("{} where true or false is expected", kind(other)))),
    };
    for field in [ANNOTATOR, COMMENT, "stem"] {
        if let Some(other) = row.fields.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            return Err(wrong(field, format!("{} where a text is expected", kind(other))));
        }
    }
    let comment = Some(row.text(COMMENT).to_owned()).filter(|comment| !comment.is_empty());
    let annotator = row.text(ANNOTATOR).to_owned();
    if annotator.is_empty() {
        let is_untouched = base_hash(row.text("stem"), &values)? == base_sha256 && !unsure && comment.is_none();
        if is_untouched {
            return Ok(None);
        }
        let message = "is missing, and the row is not as it was exported; write a name or a code".to_owned();
        return Err(wrong(ANNOTATOR, message));
    }
    Ok(Some(CorrectedRecord { record_id, annotator, base_sha256, values, unsure, comment }))
}

/// The values of the slot columns. Line breaks divide values.
fn csv_values(row: &FileRow, now: &Present) -> Vec<CorrectedValue> {
    let mut values = Vec::new();
    for slot in fillable() {
        let field = row.fields.get(slot.as_str()).and_then(Value::as_str).unwrap_or_default();
        let mut extracted: Vec<&str> =
            now.values.iter().filter(|value| value.slot == slot).map(|value| value.value.as_str()).collect();
        for line in field.lines() {
            let text = unguarded(line.trim()).trim();
            // A line of a field has lost the line breaks and repeated blanks of what was extracted.
            let found = extracted.iter().position(|value| in_one_line(value) == in_one_line(text));
            match found {
                Some(position) => values.push(value(slot, extracted.remove(position))),
                None if is_missing(text) => {}
                None => values.push(value(slot, text)),
            }
        }
    }
    values
}

/// The values under `corrected`: slot → list of texts, or null.
///
/// # Errors
/// The field, and what is wrong with it.
fn json_values(row: &FileRow, now: &Present) -> Result<Vec<CorrectedValue>, (String, String)> {
    let here = |message: String| (CORRECTED.to_owned(), message);
    let corrected = match row.fields.get(CORRECTED) {
        Some(Value::Object(corrected)) => corrected,
        Some(other) => return Err(here(format!("{} where an object is expected", kind(other)))),
        None => return Err(here("is missing".to_owned())),
    };
    let mut values = Vec::new();
    for (name, list) in corrected {
        let in_slot = |message: String| (format!("{CORRECTED}.{name}"), message);
        let slot = Slot::parse(name);
        let list = match list {
            Value::Array(list) => list.as_slice(),
            Value::Null => &[],
            other => return Err(in_slot(format!("{} where a list of texts is expected", kind(other)))),
        };
        let Some(slot) = slot else {
            return Err(here(format!("`{name}` is no slot{}", suggestion(name, fillable().map(Slot::as_str)))));
        };
        for phrase in list {
            let Value::String(text) = phrase else {
                return Err(in_slot(format!("{} where a text is expected", kind(phrase))));
            };
            let is_extracted = now.values.iter().any(|value| value.slot == slot && value.value == *text);
            let text = if is_extracted { text.as_str() } else { text.trim() };
            if is_missing(text) && !is_extracted {
                continue;
            }
            if slot == Slot::GroundTruthDiagnosis {
                let message =
                    "is the source's answer and no value of the record; if it is wrong, set unsure and comment on it";
                return Err(in_slot(message.to_owned()));
            }
            values.push(value(slot, text));
        }
    }
    values.sort_by_key(|value| value.slot);
    Ok(values)
}

fn value(slot: Slot, text: &str) -> CorrectedValue {
    CorrectedValue { slot, value: text.to_owned() }
}

/// Appendix G writes NA where the vignette has nothing. A vignette can say "none".
fn is_missing(text: &str) -> bool {
    MissingWords::default().keeping("none").holds(text)
}
