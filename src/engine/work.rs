//! The shards of one node: what they need, running one, committing it.

use super::events::{Event, EventSink};
use super::plan::{NodePlan, State};
use super::session::Session;
use super::stream::{SelectedRow, Upstream, record_ids};
use crate::dag::Node;
use crate::error::{Fault, Panics, input, usage};
use crate::record::raw::{Cut, RawSource, ShardLimits};
use crate::record::{RecordId, to_batch};
use crate::stage::{AnyStage, Extras, MODEL_REASONS, PortKind, Shape, SideInputs, StageContext, StageDef, Stream};
use crate::store::manifest::to_json;
use crate::store::shard::{self, ShardContent};
use crate::store::{fs, raw, read_json};
use anyhow::{Context, ensure};
use arrow::array::RecordBatch;
use std::collections::BTreeMap;
use std::path::Path;

/// Who runs a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds the lock, and removes what a killed process left.
    Coordinator,
    /// One of many; leaves other workers' folders alone.
    Worker,
}

/// A node that is being run.
pub struct NodeWork<'a> {
    pub session: &'a Session,
    pub index: usize,
    pub node: &'a Node,
    pub stage: &'a AnyStage,
    pub upstream: Upstream<'a>,
    pub build_dir: &'a Path,
    /// For a reader: its source with readable files, and how they are divided.
    reading: Option<(RawSource, Cut)>,
    pub n_shards: u32,
    sides: SideInputs,
}

impl<'a> NodeWork<'a> {
    /// Everything that the shards of a node need; for a reader the cut, made once and kept.
    pub fn prepare(
        session: &'a Session,
        index: usize,
        plan: &'a NodePlan,
        plans: &'a [NodePlan],
        role: Role,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<Self> {
        let node = session.node(index)?;
        let build_dir = plan.build_dir.as_deref().context("a node that runs has a build folder")?;
        let stage = session.stage(index)?;
        fs::create_dir(build_dir)?;
        if role == Role::Coordinator {
            shard::remove_temporary(build_dir)?;
        }
        let upstream = Upstream { session, plans };
        let (reading, n_shards) = match stage {
            AnyStage::Reader(reader) => {
                let found = session.source_of(node)?;
                let config = session.graph.sources.get(&found.raw.name).context("a source without configuration")?;
                let mut source = found.raw.clone();
                let (workspace, limit) = (&session.workspace, config.max_unpacked_bytes);
                for file in &mut source.files {
                    let path = workspace.raw.join(&file.path);
                    file.readable =
                        raw::readable(workspace, &path, &file.path, &file.sha256, limit, reader.unpacks_zip())?;
                    file.readable = raw::as_lines(workspace, file, |form| reader.converts(form))?;
                }
                let path = build_dir.join("cut.json");
                let cut = match read_json::<Cut>(&path)? {
                    Some(cut) => cut,
                    None => {
                        events.take(&Event::NodePhase { node: node.name.clone(), phase: "dividing files" });
                        let limits = ShardLimits {
                            records: session.graph.shard_records,
                            bytes: session.graph.shard_bytes,
                            limit: session.limit,
                        };
                        let cut = catch_panic(session, node.stage, || reader.cut(&source, limits))?;
                        fs::write_atomic(&path, &to_json(&cut)?)?;
                        cut
                    }
                };
                if cut.slices.is_empty() {
                    let files: Vec<&str> = source.files.iter().map(|file| file.path.as_str()).collect();
                    return Err(input(format!("there is no record in {}", files.join(", "))));
                }
                let n_shards = u32::try_from(cut.slices.len())?;
                (Some((source, cut)), n_shards)
            }
            _ => (None, upstream.n_input_shards(index)?),
        };
        Ok(Self {
            session,
            index,
            node,
            stage,
            upstream,
            build_dir,
            reading,
            n_shards,
            sides: upstream.side_inputs(index)?,
        })
    }

    /// Where the work of one input shard goes.
    pub fn target(&self, index: u32) -> std::path::PathBuf {
        if matches!(self.stage, AnyStage::Table(_)) {
            shard::columns_dir(self.build_dir, index)
        } else {
            shard::shard_dir(self.build_dir, index)
        }
    }

    /// Removes the shards of a model node whose accepted replies have changed, or whose unanswered calls can be asked
    /// again, so that they are made again.
    pub fn remove_outdated_shards(&self) -> anyhow::Result<()> {
        if !matches!(self.stage, AnyStage::Model(_)) {
            return Ok(());
        }
        for index in 0..self.n_shards {
            let folder = self.target(index);
            let Some((manifest, _)) = shard::read_manifest(&folder)? else { continue };
            if !self.session.changed_replies(&manifest.replies, &manifest.failed_calls)?.is_empty() {
                // `stage.json` first: it says that every shard is there.
                fs::remove_file(&self.build_dir.join("stage.json"))?;
                let trash = fs::temporary_beside(&folder);
                std::fs::rename(&folder, &trash).with_context(|| format!("renaming {}", folder.display()))?;
                fs::remove_dir(&trash)?;
            }
        }
        Ok(())
    }

    /// Runs and commits one shard; gives its rows.
    pub fn run_shard(&self, index: u32) -> anyhow::Result<u64> {
        catch_panic(self.session, self.node.stage, || self.make_shard(index))
    }

    fn make_shard(&self, index: u32) -> anyhow::Result<u64> {
        let context = StageContext {
            pipeline: &self.session.graph.pipeline,
            node: &self.node.name,
            media: &self.upstream,
            sides: &self.sides,
        };
        let read = || self.upstream.read_input(self.index, index, None);
        let output = match self.stage {
            AnyStage::Reader(reader) => {
                let (source, cut) = self.reading.as_ref().context("a reader without a source")?;
                let slice = cut.slices.get(index as usize).context("a slice that is not there")?;
                reader.read(&self.node.name, source, slice)?
            }
            AnyStage::Record(stage) => stage.run(&read()?, &context)?,
            AnyStage::Filter(stage) => stage.run(&read()?, &context)?,
            AnyStage::Model(stage) => stage.run(&read()?, self.session.service_of(self.node), &context)?,
            AnyStage::Table(stage) => {
                let columns = stage.columns(&read()?, index)?;
                let rows = columns.num_rows() as u64;
                let content = ShardContent { part: Some(&columns), ..ShardContent::default() };
                shard::commit(&self.session.workspace, &self.target(index), content)?;
                return Ok(rows);
            }
        };
        let part = match output.stream {
            Stream::Records(batch) => batch,
            Stream::Selected(rows) => {
                let input = self.upstream.read_input(self.index, index, Some(&["record_id"]))?;
                let ids = record_ids(&input)?;
                let selected = rows.into_iter().map(|row| {
                    let id = ids.get(row as usize).context("a selected row that is not there")?;
                    Ok(SelectedRow { record_id: RecordId::parse(id), row })
                });
                to_batch(&selected.collect::<anyhow::Result<Vec<_>>>()?)?
            }
        };
        let rows = part.num_rows() as u64;
        self.commit(&self.target(index), &part, output.extras)?;
        Ok(rows)
    }

    /// Commits a shard after checking that it holds only what its stage declares.
    pub fn commit(&self, target: &Path, part: &RecordBatch, extras: Extras) -> anyhow::Result<()> {
        let stage = self.node.stage;
        for row in &extras.ledger {
            let reason = row.reason.as_str();
            let of_calls = stage.shape == Shape::Model && MODEL_REASONS.contains(&reason);
            let declared = of_calls || stage.reasons.contains(&reason);
            ensure!(declared, "stage {} gave the reason `{}`, which it does not declare", stage.name, row.reason);
        }
        let mut sides = BTreeMap::new();
        for (port, side) in &extras.sides {
            let declared = stage.outputs.iter().find(|output| output.name == *port && output.kind == PortKind::Side);
            let row = declared.with_context(|| format!("stage {} has no side port `{port}`", stage.name))?.row;
            ensure!(
                row.name == side.row_name,
                "side port `{port}` of stage {} takes `{}`, not `{}`",
                stage.name,
                row.name,
                side.row_name
            );
            sides.insert(*port, &side.batch);
        }
        let content = ShardContent {
            part: Some(part),
            ledger: &extras.ledger,
            sides,
            media: extras.media,
            raw_media: extras.raw_media,
            counts: extras.counts,
            replies: extras.replies,
            failed_calls: extras.failed_calls,
        };
        shard::commit(&self.session.workspace, target, content).map(drop)
    }
}

/// A panic of a stage is an error of its node, not the end of the process.
pub(super) fn catch_panic<T>(
    session: &Session,
    stage: &StageDef,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let panics = if session.has_credentialed() { Panics::PlaceOnly } else { Panics::Shown };
    // As the one message of a stage that panics: an error of ours comes through as it is.
    crate::error::catch_panic(panics, || Ok(work()))
        .unwrap_or_else(|panic| Err(anyhow::anyhow!("stage {} {panic}", stage.name)))
}

impl Session {
    /// One shard of one node, for a cluster's worker: needs no lock. Everything above is committed.
    pub fn run_shard(&self, name: &str, index: u32) -> anyhow::Result<u64> {
        let node = self.find_node(name)?;
        let plans = self.plan()?;
        let plan = plans.get(node).context("a node that is not planned")?;
        match plan.state {
            State::Fresh => return Ok(0),
            State::Pending | State::Absent => {
                return Err(usage(format!("node {name} cannot run: {}", plan.why.join(", "))));
            }
            State::Stale | State::Missing => {}
        }
        let work = NodeWork::prepare(self, node, plan, &plans, Role::Worker, &mut ())?;
        ensure!(index < work.n_shards, Fault::Usage(format!("node {name} has {} shards", work.n_shards)));
        if work.target(index).is_dir() {
            return Ok(0);
        }
        work.run_shard(index)
    }
}
