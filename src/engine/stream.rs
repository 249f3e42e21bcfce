//! Reading what nodes pass on. A node that only selects holds rows of its input; the records
//! themselves are read from the nearest node above that made them.

use super::plan::NodePlan;
use super::session::Session;
use crate::record::{RecordId, Row};
use crate::stage::{MediaRef, MediaStore, PortKind, Shape, SideInput, SideInputs};
use crate::store::{manifest::StageManifest, parquet, shard};
use anyhow::{Context, ensure};
use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::UInt32Type;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A row of a filter's part: a record of the input shard that stays.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SelectedRow {
    pub record_id: RecordId,
    /// Row in the input shard, from 0.
    pub row: u32,
}

impl Row for SelectedRow {
    const NAME: &'static str = "selected";
    const TITLE: &'static str = "A record that a filter passes on.";
}

/// A row of a table node's part: a record that stays, and where it is. Sorted by id, cut like records.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    pub record_id: RecordId,
    /// Shard of the node's input stream.
    pub shard: u32,
    pub row: u32,
}

impl Row for TableRow {
    const NAME: &'static str = "table_selected";
    const TITLE: &'static str = "A record that a table stage passes on.";
}

/// Tables that are read whole once for each node and then shared by its shards.
#[derive(Default)]
pub struct Caches {
    selections: Mutex<BTreeMap<usize, Arc<Vec<Vec<u32>>>>>,
    sides: Mutex<BTreeMap<(usize, &'static str), Arc<SideInput>>>,
    raw_media: Mutex<Option<Arc<BTreeMap<String, String>>>>,
}

/// What a node's inputs are read from: the plans of all nodes before it, committed.
#[derive(Clone, Copy)]
pub struct Upstream<'a> {
    pub session: &'a Session,
    pub plans: &'a [NodePlan],
}

impl Upstream<'_> {
    fn committed(&self, node: usize) -> anyhow::Result<(&StageManifest, &PathBuf)> {
        let plan = self.plans.get(node).context("a node that is not planned")?;
        match (&plan.manifest, &plan.build_dir) {
            (Some(manifest), Some(folder)) => Ok((manifest, folder)),
            _ => anyhow::bail!("node {} is not built", self.session.node(node)?.name),
        }
    }

    /// Number of shards that a node reads.
    pub fn n_input_shards(&self, node: usize) -> anyhow::Result<u32> {
        let mut total = 0;
        for input in self.present_inputs(node)? {
            total += self.committed(input)?.0.n_stream_shards;
        }
        Ok(total)
    }

    fn present_inputs(&self, node: usize) -> anyhow::Result<Vec<usize>> {
        Ok(self.session.node(node)?.stream_inputs().filter(|input| !self.session.absent.contains_key(input)).collect())
    }

    /// Records of one input shard of a node: the shards of its inputs, one node after the other.
    pub fn read_input(&self, node: usize, index: u32, columns: Option<&[&str]>) -> anyhow::Result<RecordBatch> {
        let mut before = 0;
        for input in self.present_inputs(node)? {
            let n = self.committed(input)?.0.n_stream_shards;
            if index < before + n {
                return self.read_stream(input, index - before, columns);
            }
            before += n;
        }
        anyhow::bail!(
            "node {} has {before} input shards, shard {index} is not among them",
            self.session.node(node)?.name
        )
    }

    /// Records of one shard that a committed node passes on.
    pub fn read_stream(&self, node: usize, index: u32, columns: Option<&[&str]>) -> anyhow::Result<RecordBatch> {
        let (_, folder) = self.committed(node)?;
        match self.session.node(node)?.stage.shape {
            Shape::Reader | Shape::Record | Shape::Model => {
                let path = shard::shard_dir(folder, index).join(shard::PART);
                match columns {
                    Some(columns) => parquet::read_columns(&path, columns),
                    None => parquet::read(&path),
                }
            }
            Shape::Filter => {
                let path = shard::shard_dir(folder, index).join(shard::PART);
                let rows = parquet::read_columns(&path, &["row"])?;
                let rows = rows.column(0).as_primitive_opt::<UInt32Type>().context("rows of a selection are u32")?;
                take(&self.read_input(node, index, columns)?, rows)
            }
            Shape::Table => {
                let selection = self.selection(node)?;
                let rows = selection.get(index as usize).map(Vec::as_slice).unwrap_or_default();
                take(&self.read_input(node, index, columns)?, &UInt32Array::from(rows.to_vec()))
            }
        }
    }

    /// What a table node passes on of each input shard: its rows, ascending.
    fn selection(&self, node: usize) -> anyhow::Result<Arc<Vec<Vec<u32>>>> {
        let mut cache = lock(&self.session.caches.selections);
        if let Some(selection) = cache.get(&node) {
            return Ok(selection.clone());
        }
        let (manifest, folder) = self.committed(node)?;
        let mut selection = vec![Vec::new(); manifest.n_stream_shards as usize];
        for index in 0..manifest.shards.len() {
            let batch = parquet::read_columns(
                &shard::shard_dir(folder, u32::try_from(index)?).join(shard::PART),
                &["shard", "row"],
            )?;
            let column = |name: &str| {
                batch
                    .column_by_name(name)
                    .and_then(|column| column.as_primitive_opt::<UInt32Type>())
                    .context("a selection column is missing")
            };
            for (shard, row) in column("shard")?.values().iter().zip(column("row")?.values()) {
                selection.get_mut(*shard as usize).context("a selected row of a shard that is not there")?.push(*row);
            }
        }
        selection.iter_mut().for_each(|rows| rows.sort_unstable());
        let selection = Arc::new(selection);
        cache.insert(node, selection.clone());
        Ok(selection)
    }

    /// The side tables at a node's input ports.
    pub fn side_inputs(&self, node: usize) -> anyhow::Result<SideInputs> {
        let mut inputs = SideInputs::default();
        let config = self.session.node(node)?;
        for port in config.stage.inputs.iter().filter(|port| port.kind == PortKind::Side) {
            let Some(link) = config.inputs.get(port.name).and_then(|links| links.first()) else { continue };
            if self.session.absent.contains_key(&link.node) {
                continue;
            }
            inputs.tables.insert(port.name, self.side_table(link.node, link.port)?);
        }
        Ok(inputs)
    }

    fn side_table(&self, node: usize, port: &'static str) -> anyhow::Result<Arc<SideInput>> {
        let mut cache = lock(&self.session.caches.sides);
        if let Some(table) = cache.get(&(node, port)) {
            return Ok(table.clone());
        }
        let schema = {
            let stage = self.session.node(node)?.stage;
            let output =
                stage.outputs.iter().find(|output| output.name == port).context("a side port that is not there")?;
            (output.row.arrow_schema)()?
        };
        let mut batches = Vec::new();
        self.for_each_side(node, port, |batch| {
            batches.push(batch);
            Ok(())
        })?;
        let batch = arrow::compute::concat_batches(&schema, &batches)?;
        let mut rows_of: BTreeMap<RecordId, Vec<u32>> = BTreeMap::new();
        for (row, id) in (0u32..).zip(record_ids(&batch)?) {
            rows_of.entry(RecordId::parse(&id)).or_default().push(row);
        }
        let table = Arc::new(SideInput { batch, rows_of });
        cache.insert((node, port), table.clone());
        Ok(table)
    }

    /// Every shard of a side table, in order.
    pub fn for_each_side(
        &self,
        node: usize,
        port: &str,
        mut visit: impl FnMut(RecordBatch) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (manifest, folder) = self.committed(node)?;
        for index in 0..manifest.shards.len() {
            let path = shard::shard_dir(folder, u32::try_from(index)?).join(shard::side_file(port));
            if path.is_file() {
                visit(parquet::read(&path)?)?;
            }
        }
        Ok(())
    }

    /// Hash → raw path, for raw media that any committed node names.
    fn raw_media(&self) -> anyhow::Result<Arc<BTreeMap<String, String>>> {
        let mut cache = lock(&self.session.caches.raw_media);
        if let Some(index) = cache.as_ref() {
            return Ok(index.clone());
        }
        let mut index = BTreeMap::new();
        for plan in self.plans {
            let (Some(manifest), Some(folder)) = (&plan.manifest, &plan.build_dir) else { continue };
            for shard in 0..manifest.shards.len() {
                if let Some((shard, _)) = shard::read_manifest(&shard::shard_dir(folder, u32::try_from(shard)?))? {
                    index.extend(shard.raw_media);
                }
            }
        }
        let index = Arc::new(index);
        *cache = Some(index.clone());
        Ok(index)
    }
}

impl MediaStore for Upstream<'_> {
    fn path(&self, media: &MediaRef) -> anyhow::Result<PathBuf> {
        let derived = self.session.workspace.media_path(&media.0);
        if derived.is_file() {
            return Ok(derived);
        }
        let index = self.raw_media()?;
        let path = index.get(media.0.as_str()).with_context(|| format!("no node made or named media {}", media.0))?;
        Ok(self.session.workspace.raw.join(path))
    }
}

impl Session {
    /// Forgets cached tables of nodes that are about to change.
    pub(super) fn forget_caches(&self, node: usize) {
        lock(&self.caches.selections).remove(&node);
        lock(&self.caches.sides).retain(|(owner, _), _| *owner != node);
        *lock(&self.caches.raw_media) = None;
    }
}

/// A poisoned lock means that another thread panicked; what it guards is a cache, still whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn take(batch: &RecordBatch, rows: &UInt32Array) -> anyhow::Result<RecordBatch> {
    let n = u32::try_from(batch.num_rows())?;
    ensure!(rows.values().iter().all(|row| *row < n), "a selection points behind the end of its shard");
    if rows.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    Ok(arrow::compute::take_record_batch(batch, rows)?)
}

/// The `record_id` column of a batch.
pub fn record_ids(batch: &RecordBatch) -> anyhow::Result<Vec<String>> {
    let column = batch.column_by_name("record_id").context("rows without record_id")?;
    let column = column.as_string_opt::<i32>().context("record_id is not text")?;
    Ok(column.iter().map(|id| id.unwrap_or_default().to_owned()).collect())
}
