//! Whether questions stay: what needs a person's decision, and a sample of what rules decided.

use super::{add_lines, draw, exits_of, node_of_stage, resource_file, write_lines};
use crate::engine::Session;
use crate::engine::stream::{Upstream, record_ids};
use crate::error::{input, usage};
use crate::record::decision::{Agreement, Choice, ReviewDecision, agreement, effective, parse_decisions};
use crate::record::ledger::ReviewRow;
use crate::record::question::AnsweredQuestion;
use crate::record::{RecordId, Row, from_batch};
use crate::source::edited::{self, guarded};
use crate::stage::PortKind;
use crate::store::fs;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The stage that reads decisions, and its resource.
const STAGE: &str = "apply_decisions";
const RESOURCE: &str = "decisions";
const FILTER: &str = "filter_vignette";

/// One question for a reviewer. `decision`, `reviewer` and `comment` are to be filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReviewItem {
    pub record_id: RecordId,
    /// `undecided`: a node asks for a decision. `sample_kept`, `sample_dropped`: drawn to check the rules.
    pub why: String,
    /// What the node that asks found, or why the rules dropped it.
    pub detail: String,
    /// Records that it conflicts with.
    pub related: String,
    pub stem: String,
    /// `A. …` a line each.
    pub options: String,
    pub answer: String,
    /// `file:line`
    pub place: String,
    /// keep, drop or unsure
    pub decision: String,
    pub reviewer: String,
    pub comment: String,
}

pub struct ExportOptions {
    /// Records of each kind that are drawn from the decided ones.
    pub sample: usize,
    /// Draws another sample.
    pub seed: u64,
}

/// What reviewers see: every undecided record that is still in the stream, and a sample of the kept and of those that
/// the filter before dropped. Sorted by id; a sample stays the same when records are added.
pub fn export(session: &Session, options: &ExportOptions) -> anyhow::Result<Vec<ReviewItem>> {
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let gate = gate(session)?;
    let filter = rules(session, gate)?;
    if plans.get(filter).is_none_or(|plan| plan.manifest.is_none()) {
        let name = &session.node(filter)?.name;
        return Err(usage(format!(
            "node {name} is not built: run casemill build {} --to {name} first",
            session.graph.pipeline
        )));
    }
    let mut kept = BTreeSet::new();
    for index in 0..upstream.n_input_shards(gate)? {
        kept.extend(
            record_ids(&upstream.read_input(gate, index, Some(&["record_id"]))?)?.iter().map(|id| RecordId::parse(id)),
        );
    }
    let mut wanted: BTreeMap<RecordId, (String, Vec<String>, BTreeSet<RecordId>)> = BTreeMap::new();
    for index in 0..session.graph.nodes.len() {
        let node = session.node(index)?;
        for port in
            node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side && port.row.name == ReviewRow::NAME)
        {
            if plans.get(index).is_none_or(|plan| plan.manifest.is_none()) {
                continue;
            }
            upstream.for_each_side(index, port.name, |batch| {
                for row in from_batch::<ReviewRow>(&batch)?.into_iter().filter(|row| kept.contains(&row.record_id)) {
                    let entry = wanted
                        .entry(row.record_id)
                        .or_insert_with(|| ("undecided".to_owned(), Vec::new(), BTreeSet::new()));
                    entry.1.push(format!("{}: {}: {}", node.name, row.reason, row.detail));
                    entry.2.extend(row.related);
                }
                Ok(())
            })?;
        }
    }
    let dropped = exits_of(session, &upstream, filter)?;
    let decided = kept.iter().filter(|id| !wanted.contains_key(*id)).map(|id| (id.clone(), String::new())).collect();
    for (kind, candidates) in [("sample_kept", decided), ("sample_dropped", dropped)] {
        for (id, detail) in draw(candidates, options.sample, options.seed) {
            wanted.insert(id, (kind.to_owned(), vec![detail], BTreeSet::new()));
        }
    }
    let mut items = Vec::with_capacity(wanted.len());
    for index in 0..upstream.n_input_shards(filter)? {
        for record in from_batch::<AnsweredQuestion>(&upstream.read_input(filter, index, None)?)? {
            if let Some((why, details, related)) = wanted.remove(&record.record_id) {
                items.push(item(record, why, &details, &related));
            }
        }
    }
    items.sort_by(|one, other| one.record_id.cmp(&other.record_id));
    Ok(items)
}

fn item(record: AnsweredQuestion, why: String, details: &[String], related: &BTreeSet<RecordId>) -> ReviewItem {
    let options: Vec<String> = record.options.iter().map(|option| format!("{}. {}", option.key, option.text)).collect();
    ReviewItem {
        place: format!("{}:{}", record.provenance.file, record.provenance.line),
        record_id: record.record_id,
        why,
        detail: details.join("\n"),
        related: related.iter().map(RecordId::as_str).collect::<Vec<_>>().join(" "),
        stem: record.stem,
        options: options.join("\n"),
        answer: record.answer_text,
        decision: String::new(),
        reviewer: String::new(),
        comment: String::new(),
    }
}

/// The node that applies decisions.
fn gate(session: &Session) -> anyhow::Result<usize> {
    node_of_stage(session, STAGE, "decisions would change nothing")
}

/// The node whose rules reviewers check: the nearest vignette filter above the gate.
fn rules(session: &Session, gate: usize) -> anyhow::Result<usize> {
    let above = session.graph.ancestors(gate);
    let filter = above
        .into_iter()
        .rev()
        .find(|index| session.graph.nodes.get(*index).is_some_and(|node| node.stage.name == FILTER));
    filter.ok_or_else(|| {
        usage(format!("pipeline {} has no node of stage {FILTER} for reviewers to check", session.graph.pipeline))
    })
}

/// Items as CSV, for spreadsheets. Text that a spreadsheet would run as a formula gets an apostrophe before it.
pub fn to_csv(items: &[ReviewItem]) -> anyhow::Result<Vec<u8>> {
    let row = |item: &ReviewItem| {
        [
            item.record_id.as_str(),
            &item.why,
            &item.detail,
            &item.related,
            &item.stem,
            &item.options,
            &item.answer,
            &item.place,
            &item.decision,
            &item.reviewer,
            &item.comment,
        ]
        .map(guarded)
        .to_vec()
    };
    edited::to_csv(COLUMNS, items.iter().map(row))
}

const COLUMNS: [&str; 11] =
    ["record_id", "why", "detail", "related", "stem", "options", "answer", "place", "decision", "reviewer", "comment"];

/// What an import changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportSummary {
    pub file: PathBuf,
    /// Rows with a decision in the files given.
    pub n_read: u64,
    /// Of these, decisions that were not in the file before.
    pub n_new: u64,
    pub n_records: u64,
    pub n_disputed: u64,
    /// Records that the filter dropped and every reviewer would keep: the rules should change.
    pub n_dropped_but_wanted: u64,
    pub agreement: Vec<Agreement>,
}

/// Adds the decisions of files to the resource of the pipeline. Nothing is written when any file has a fault.
pub fn import(session: &Session, files: &[PathBuf]) -> anyhow::Result<ImportSummary> {
    let gate = gate(session)?;
    let (target, resource) = resource_file(session, gate, RESOURCE)?;
    let mut decisions =
        parse_decisions(&fs::read_text(&target)?).map_err(|error| usage(format!("{resource}: {error}")))?;
    let known = known_ids(session, gate)?;
    let mut given = Vec::new();
    for file in files {
        given.extend(read_decisions(file, &known)?);
    }
    let n_read = given.len() as u64;
    let n_new = add_lines(&mut decisions, given, |line| (line.record_id.clone(), line.reviewer.clone()));
    let choices = effective(&decisions);
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let filter = rules(session, gate)?;
    let dropped: BTreeSet<RecordId> = exits_of(session, &upstream, filter)?.into_iter().map(|(id, _)| id).collect();
    let all =
        |id: &RecordId, wanted: Choice| choices.get(id).is_some_and(|by| by.values().all(|choice| *choice == wanted));
    let n_disputed = choices.keys().filter(|id| !all(id, Choice::Keep) && !all(id, Choice::Drop)).count() as u64;
    let summary = ImportSummary {
        file: target.clone(),
        n_read,
        n_new,
        n_records: choices.len() as u64,
        n_disputed,
        n_dropped_but_wanted: dropped.iter().filter(|id| all(id, Choice::Keep)).count() as u64,
        agreement: agreement(&choices),
    };
    if summary.n_new > 0 {
        // By record, then reviewer; what a reviewer said first stays first.
        decisions.sort_by(|one, other| (&one.record_id, &one.reviewer).cmp(&(&other.record_id, &other.reviewer)));
        write_lines(&target, &decisions)?;
    }
    Ok(summary)
}

/// Ids that can be decided on: what reaches the filter before the gate.
fn known_ids(session: &Session, gate: usize) -> anyhow::Result<BTreeSet<RecordId>> {
    let plans = session.plan()?;
    let upstream = Upstream { session, plans: &plans };
    let filter = rules(session, gate)?;
    let mut known = BTreeSet::new();
    for index in 0..upstream.n_input_shards(filter)? {
        known.extend(
            record_ids(&upstream.read_input(filter, index, Some(&["record_id"]))?)?
                .iter()
                .map(|id| RecordId::parse(id)),
        );
    }
    Ok(known)
}

/// Rows with a decision; rows without one are not decided yet.
fn read_decisions(path: &Path, known: &BTreeSet<RecordId>) -> anyhow::Result<Vec<ReviewDecision>> {
    let table = edited::read(path)?;
    let mut decisions = Vec::new();
    for row in &table.rows {
        if row.text("decision").is_empty() {
            continue;
        }
        let wrong = |message: String| input(format!("{}:{}: {message}", table.name, row.line));
        let decision = Choice::parse(row.text("decision"))
            .ok_or_else(|| wrong(format!("decision: `{}` is not one of keep, drop, unsure", row.text("decision"))))?;
        if row.text("reviewer").is_empty() {
            return Err(wrong("reviewer: is missing; write a name or a code".to_owned()));
        }
        let record_id = RecordId::parse(row.text("record_id"));
        if !known.contains(&record_id) {
            return Err(wrong(format!("record_id: `{record_id}` is no record that can be decided on in this build")));
        }
        let comment = Some(row.text("comment").to_owned()).filter(|comment| !comment.is_empty());
        decisions.push(ReviewDecision { record_id, reviewer: row.text("reviewer").to_owned(), decision, comment });
    }
    Ok(decisions)
}
