//! The whole life of one record: where it was read, what each node made of it, and why it left.

use super::plan::State;
use super::session::Session;
use super::stream::{Upstream, record_ids};
use crate::error::usage;
use crate::record::ledger::LedgerRow;
use crate::record::{RecordId, from_batch};
use crate::stage::{PortKind, Shape};
use crate::store::{parquet, shard};
use arrow::array::{RecordBatch, UInt32Array};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// What a node did with a record.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub node: String,
    pub stage: String,
    pub record_id: RecordId,
    /// `read`, `kept`, `changed`, `split`, `dropped`, `quarantined`.
    pub outcome: String,
    pub reason: Option<String>,
    /// The number or text that decided.
    pub detail: Option<String>,
    /// Fields that the node added or changed, with their new values.
    pub changes: Map<String, Value>,
    /// Side rows about the record: (port, row).
    pub side_rows: Vec<(String, Value)>,
}

/// The life of a record.
#[derive(Clone, Debug, Serialize)]
pub struct Life {
    pub record_id: RecordId,
    pub case_id: String,
    /// `file:line` below the raw folder.
    pub place: Option<String>,
    pub raw_sha256: Option<String>,
    pub steps: Vec<Step>,
    /// Nodes without a build to look into.
    pub not_built: Vec<String>,
}

impl Session {
    /// Finds records by record id, case id, or `file:line`, in what is built so far.
    pub fn explain(&self, asked: &str) -> anyhow::Result<Vec<Life>> {
        let plans = self.plan()?;
        let upstream = Upstream { session: self, plans: &plans };
        let ids = self.resolve(asked, &upstream)?;
        if ids.is_empty() {
            let built: Vec<&str> = self
                .graph
                .nodes
                .iter()
                .zip(&plans)
                .filter(|(_, plan)| plan.build_dir.as_ref().is_some_and(|folder| folder.is_dir()))
                .map(|(node, _)| node.name.as_str())
                .collect();
            return Err(usage(format!(
                "no record `{asked}` in pipeline {} (looked into: {}); give a record id such as medqa:0123456789abcdef, a case id, or file:line such as medqa/test.jsonl:17",
                self.graph.pipeline,
                if built.is_empty() { "nothing is built yet".to_owned() } else { built.join(", ") }
            )));
        }
        ids.iter().map(|id| self.life(id, &upstream)).collect()
    }

    /// Ids of the raw records meant.
    fn resolve(&self, asked: &str, upstream: &Upstream<'_>) -> anyhow::Result<BTreeSet<RecordId>> {
        let pipeline = &self.graph.pipeline;
        let place = asked.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u64>().ok()?)));
        let mut found = BTreeSet::new();
        for (index, plan) in upstream.plans.iter().enumerate() {
            let Some(folder) = plan.build_dir.as_deref() else { continue };
            let node = self.node(index)?;
            // After an interruption later shards may be there without earlier ones.
            for folder in shard::shard_dirs(folder)? {
                for row in ledger(&folder)? {
                    let meant = row.record_id.as_str() == asked
                        || row.record_id.case_id(pipeline) == asked
                        || place.is_some_and(|(file, line)| row.file == file && row.line == line);
                    if meant {
                        found.insert(row.record_id);
                    }
                }
                if node.stage.shape.only_selects() {
                    continue;
                }
                let path = folder.join(shard::PART);
                let ids = record_ids(&parquet::read_columns(&path, &["record_id"])?)?;
                for id in ids.iter().map(|id| RecordId::parse(id)) {
                    if id.as_str() == asked || id.case_id(pipeline) == asked {
                        found.insert(id);
                    }
                }
                if let Some((file, line)) = place
                    && node.stage.shape == Shape::Reader
                    && self.sources.values().any(|source| source.raw.files.iter().any(|raw| raw.path == file))
                {
                    let records: Vec<Value> = from_batch(&parquet::read_columns(&path, &["record_id", "provenance"])?)?;
                    for record in records {
                        let provenance = record.get("provenance");
                        let at = |key: &str| provenance.and_then(|provenance| provenance.get(key));
                        if at("file").and_then(Value::as_str) == Some(file)
                            && at("line").and_then(Value::as_u64) == Some(line)
                        {
                            found.extend(record.get("record_id").and_then(Value::as_str).map(RecordId::parse));
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    fn life(&self, id: &RecordId, upstream: &Upstream<'_>) -> anyhow::Result<Life> {
        let mut life = Life {
            record_id: id.clone(),
            case_id: id.case_id(&self.graph.pipeline),
            place: None,
            raw_sha256: None,
            steps: Vec::new(),
            not_built: Vec::new(),
        };
        let mut known = Map::new();
        for (index, plan) in upstream.plans.iter().enumerate() {
            let node = self.node(index)?;
            let Some(folder) = plan.build_dir.as_deref().filter(|folder| folder.is_dir()) else {
                if plan.state != State::Absent {
                    life.not_built.push(node.name.clone());
                }
                continue;
            };
            let mut steps = Vec::new();
            // After an interruption later shards may be there without earlier ones.
            for folder in shard::shard_dirs(folder)? {
                for row in ledger(&folder)?.into_iter().filter(|row| is_same_life(&row.record_id, id)) {
                    life.place.get_or_insert_with(|| format!("{}:{}", row.file, row.line));
                    life.raw_sha256.get_or_insert_with(|| row.raw_sha256.to_string());
                    steps.push(self.step(
                        index,
                        row.record_id,
                        row.exit.as_str(),
                        Some(row.reason),
                        Some(row.detail),
                    )?);
                }
                for (record_id, record) in records(&folder, id, node.stage.shape.only_selects())? {
                    let mut step =
                        self.step(index, record_id.clone(), outcome(node.stage.shape, &record_id, id), None, None)?;
                    if let Some(record) = record {
                        if let Some(provenance) = record.get("provenance") {
                            let text = |key: &str| {
                                provenance
                                    .get(key)
                                    .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                                    .unwrap_or_default()
                            };
                            life.place.get_or_insert_with(|| format!("{}:{}", text("file"), text("line")));
                            life.raw_sha256.get_or_insert_with(|| text("raw_sha256"));
                        }
                        for (key, value) in record {
                            if known.get(&key) != Some(&value) {
                                known.insert(key.clone(), value.clone());
                                step.changes.insert(key, value);
                            }
                        }
                        if step.changes.is_empty() {
                            step.outcome = "kept".to_owned();
                        }
                    }
                    steps.push(step);
                }
                for port in node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side) {
                    let path = folder.join(shard::side_file(port.name));
                    if !path.is_file() {
                        continue;
                    }
                    for row in from_batch::<Value>(&parquet::read(&path)?)? {
                        let names = row
                            .as_object()
                            .is_some_and(|row| row.values().any(|value| value.as_str() == Some(id.as_str())));
                        if names {
                            match steps.last_mut() {
                                Some(step) => step.side_rows.push((port.name.to_owned(), row)),
                                None => {
                                    let mut step = self.step(index, id.clone(), "named", None, None)?;
                                    step.side_rows.push((port.name.to_owned(), row));
                                    steps.push(step);
                                }
                            }
                        }
                    }
                }
            }
            // A side table may name the record in another shard than the one that decided about it.
            merge_named(&mut steps);
            life.steps.append(&mut steps);
        }
        Ok(life)
    }

    fn step(
        &self,
        index: usize,
        record_id: RecordId,
        outcome: &str,
        reason: Option<String>,
        detail: Option<String>,
    ) -> anyhow::Result<Step> {
        let node = self.node(index)?;
        Ok(Step {
            node: node.name.clone(),
            stage: node.stage.name.to_owned(),
            record_id,
            outcome: outcome.to_owned(),
            reason,
            detail,
            changes: Map::new(),
            side_rows: Vec::new(),
        })
    }
}

fn outcome(shape: Shape, found: &RecordId, asked: &RecordId) -> &'static str {
    match shape {
        Shape::Reader => "read",
        Shape::Filter | Shape::Table => "kept",
        Shape::Record | Shape::Model if found != asked && found.as_str().len() > asked.as_str().len() => "split",
        Shape::Record | Shape::Model => "changed",
    }
}

fn merge_named(steps: &mut Vec<Step>) {
    if steps.iter().any(|step| step.outcome != "named") {
        let named: Vec<Step> = steps.extract_if(.., |step| step.outcome == "named").collect();
        if let Some(step) = steps.first_mut() {
            step.side_rows.extend(named.into_iter().flat_map(|named| named.side_rows));
        }
    }
}

fn ledger(folder: &Path) -> anyhow::Result<Vec<LedgerRow>> {
    let path = folder.join(shard::LEDGER);
    if path.is_file() { from_batch(&parquet::read(&path)?) } else { Ok(Vec::new()) }
}

/// An id, and the record where more than ids are stored.
type FoundRecord = (RecordId, Option<Map<String, Value>>);

/// The records of a shard that are the asked one, its children or its parents; without content where only ids are stored.
fn records(folder: &Path, id: &RecordId, only_ids: bool) -> anyhow::Result<Vec<FoundRecord>> {
    let path = folder.join(shard::PART);
    let ids = record_ids(&parquet::read_columns(&path, &["record_id"])?)?;
    let rows: Vec<u32> = ids
        .iter()
        .zip(0u32..)
        .filter(|(found, _)| is_same_life(&RecordId::parse(found), id))
        .map(|(_, row)| row)
        .collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    if only_ids {
        return Ok(rows
            .iter()
            .filter_map(|row| ids.get(*row as usize))
            .map(|found| (RecordId::parse(found), None))
            .collect());
    }
    let batch: RecordBatch = arrow::compute::take_record_batch(&parquet::read(&path)?, &UInt32Array::from(rows))?;
    let records: Vec<Map<String, Value>> = from_batch(&batch)?;
    Ok(records
        .into_iter()
        .map(|record| {
            (RecordId::parse(record.get("record_id").and_then(Value::as_str).unwrap_or_default()), Some(record))
        })
        .collect())
}

/// Equal, or one is made from the other by splitting (`_1`, `_2`, …).
fn is_same_life(one: &RecordId, other: &RecordId) -> bool {
    let (short, long) = if one.as_str().len() <= other.as_str().len() { (one, other) } else { (other, one) };
    long.as_str().strip_prefix(short.as_str()).is_some_and(|rest| {
        rest.is_empty()
            || (rest.starts_with('_')
                && rest
                    .split('_')
                    .skip(1)
                    .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_parents_share_a_life() {
        let same = |one: &str, other: &str| is_same_life(&RecordId::parse(one), &RecordId::parse(other));
        assert!(same("s:a", "s:a") && same("s:a", "s:a_1") && same("s:a_2_1", "s:a"));
        assert!(!same("s:a", "s:ab") && !same("s:a", "s:a~2") && !same("s:a_1", "s:a_2") && !same("s:a", "s:a_x"));
    }
}
