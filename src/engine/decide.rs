//! The second half of a table node: one verdict for every id, then parts sorted by id.

use super::stream::{TableRow, record_ids};
use super::work::{NodeWork, catch_panic};
use crate::record::ledger::{LedgerRow, SourceCounts};
use crate::record::{Hash, RecordId, from_batch, to_batch};
use crate::stage::{AnyStage, Decision, EngineColumns, Extras, SideBatch, SideEmitter};
use crate::store::{parquet, shard};
use anyhow::{Context, bail, ensure};
use arrow::array::{RecordBatch, UInt32Array};
use serde::{Deserialize, Serialize};

/// The engine's own columns of a table ([`EngineColumns`]): what the ledger and the selection need.
#[derive(Deserialize, Serialize)]
struct EngineRow {
    #[serde(rename = "_record_id")]
    record_id: RecordId,
    #[serde(rename = "_shard")]
    shard: u32,
    #[serde(rename = "_row")]
    row: u32,
    #[serde(rename = "_source")]
    source: String,
    #[serde(rename = "_file")]
    file: String,
    #[serde(rename = "_line")]
    line: u64,
    #[serde(rename = "_raw_sha256")]
    raw_sha256: Hash,
}

impl NodeWork<'_> {
    /// Decides and commits the parts; gives their number. Parts that are there already are left alone.
    pub fn decide(&self) -> anyhow::Result<u32> {
        let AnyStage::Table(stage) = self.stage else { bail!("only a table stage decides") };
        let (rows, paths) = self.engine_rows()?;
        let mut sides = SideEmitter::default();
        let mut decisions = Vec::new();
        if !rows.is_empty() {
            let table = parquet::scan(&paths)?;
            decisions = catch_panic(self.session, self.node.stage, || stage.decide(table, &mut sides))?;
        }
        decisions.sort_by(|one, other| one.record_id.cmp(&other.record_id));
        check_decisions(&rows, &decisions).with_context(|| format!("stage {}", self.node.stage.name))?;

        let emitted = sides.finish()?;
        let mut media = emitted.media;
        let chunk = usize::try_from(self.session.graph.shard_records)?;
        let firsts: Vec<&RecordId> = rows.iter().step_by(chunk).map(|row| &row.record_id).collect();
        let mut sides = Vec::new();
        for (port, side) in &emitted.sides {
            sides.push((*port, side.row_name, divide(&side.batch, &firsts)?));
        }
        let n_shards = u32::try_from(firsts.len())?;
        for (index, (rows, decisions)) in (0u32..).zip(rows.chunks(chunk).zip(decisions.chunks(chunk))) {
            // Media of a table belong to no record in particular: they go with the first part.
            let media = std::mem::take(&mut media);
            let target = shard::shard_dir(self.build_dir, index);
            if target.is_dir() {
                continue;
            }
            let (kept, mut extras) = decided_shard(&self.node.name, rows, decisions);
            for (port, row_name, batches) in &sides {
                if let Some(batch) = batches.get(index as usize).filter(|batch| batch.num_rows() > 0) {
                    extras.sides.insert(port, SideBatch { row_name, batch: batch.clone() });
                }
            }
            extras.media = media;
            self.commit(&target, &to_batch(&kept)?, extras)?;
        }
        Ok(n_shards)
    }

    /// Every row of the collected columns, sorted by id, each id once; and the files they are in.
    fn engine_rows(&self) -> anyhow::Result<(Vec<EngineRow>, Vec<std::path::PathBuf>)> {
        let columns = [
            EngineColumns::RECORD_ID,
            EngineColumns::SHARD,
            EngineColumns::ROW,
            EngineColumns::SOURCE,
            EngineColumns::FILE,
            EngineColumns::LINE,
            EngineColumns::RAW_SHA256,
        ];
        let mut rows: Vec<EngineRow> = Vec::new();
        let mut paths = Vec::new();
        for index in 0..self.n_shards {
            let path = self.target(index).join(shard::PART);
            rows.extend(from_batch::<EngineRow>(&parquet::read_columns(&path, &columns)?)?);
            paths.push(path);
        }
        rows.sort_by(|one, other| one.record_id.cmp(&other.record_id));
        for pair in rows.windows(2) {
            if let [one, other] = pair
                && one.record_id == other.record_id
            {
                bail!("the id {} comes twice in the stream of node {}", one.record_id, self.node.name);
            }
        }
        Ok((rows, paths))
    }
}

/// Every id is decided exactly once; both are sorted by id.
fn check_decisions(rows: &[EngineRow], decisions: &[Decision]) -> anyhow::Result<()> {
    for pair in decisions.windows(2) {
        if let [one, other] = pair {
            ensure!(one.record_id != other.record_id, "it decided {} twice", one.record_id);
        }
    }
    let mut given = rows.iter().map(|row| &row.record_id);
    for decision in decisions {
        match given.next() {
            Some(id) if *id == decision.record_id => {}
            Some(id) if *id < decision.record_id => bail!("it did not decide {id}"),
            _ => bail!("it decided {}, which it was not given", decision.record_id),
        }
    }
    given.next().map_or(Ok(()), |id| bail!("it did not decide {id}"))
}

/// The rows that stay, and the ledger and counts of the others.
fn decided_shard(node: &str, rows: &[EngineRow], decisions: &[Decision]) -> (Vec<TableRow>, Extras) {
    let mut kept = Vec::new();
    let mut ledger = Vec::new();
    let mut by_source = SourceCounts::new();
    for (row, decision) in rows.iter().zip(decisions) {
        let counts = by_source.entry(row.source.clone()).or_default();
        counts.n_in += 1;
        match decision.verdict.clone().exit() {
            None => {
                counts.kept += 1;
                kept.push(TableRow { record_id: row.record_id.clone(), shard: row.shard, row: row.row });
            }
            Some((exit, cause)) => {
                counts.exit(exit, cause.reason);
                ledger.push(LedgerRow {
                    record_id: row.record_id.clone(),
                    source: row.source.clone(),
                    node: node.to_owned(),
                    exit,
                    reason: cause.reason.to_owned(),
                    detail: cause.detail,
                    file: row.file.clone(),
                    line: row.line,
                    raw_sha256: row.raw_sha256.clone(),
                });
            }
        }
    }
    (kept, Extras { ledger, counts: by_source, ..Extras::default() })
}

/// Side rows, sorted by id and then as emitted, divided at the first ids of the parts.
fn divide(batch: &RecordBatch, firsts: &[&RecordId]) -> anyhow::Result<Vec<RecordBatch>> {
    let ids = record_ids(batch)?;
    let mut order: Vec<(&str, u32)> = ids.iter().map(String::as_str).zip(0u32..).collect();
    order.sort_unstable();
    let mut divided = Vec::with_capacity(firsts.len());
    let mut rest = order.as_slice();
    for index in 0..firsts.len() {
        let end = match firsts.get(index + 1) {
            Some(next) => rest.partition_point(|(id, _)| *id < next.as_str()),
            None => rest.len(),
        };
        let (part, after) = rest.split_at(end);
        let rows = UInt32Array::from_iter_values(part.iter().map(|(_, row)| *row));
        divided.push(arrow::compute::take_record_batch(batch, &rows)?);
        rest = after;
    }
    Ok(divided)
}
