//! Running nodes: shards on threads, each committed on its own, `stage.json` last.

use super::events::{Event, EventSink};
use super::plan::{NodePlan, State};
use super::session::Session;
use super::stream::{SelectedRow, TableRow, Upstream, lock, record_ids};
use crate::dag::Node;
use crate::error::{Fault, input, usage};
use crate::record::ledger::{Counts, Exit, LedgerRow, SourceCounts, add_counts, total_counts};
use crate::record::raw::{Cut, RawSource, ShardLimits};
use crate::record::{Hash, RecordId, from_batch, to_batch};
use crate::stage::{AnyStage, Cause, Decision, EngineColumns, PortKind, SideBatch, SideEmitter, StageContext, Stream};
use crate::store::manifest::{CurrentFile, StageManifest, to_json};
use crate::store::shard::{self, ShardContent};
use crate::store::{fs, parquet, raw, read_json};
use anyhow::{Context, bail, ensure};
use arrow::array::{RecordBatch, UInt32Array};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// How to run. None of it changes an output byte.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    pub jobs: usize,
    /// This node and everything above it.
    pub to: Option<String>,
    /// This node alone; what it reads must be fresh.
    pub only: Option<String>,
    /// Run this node even if it is fresh.
    pub force: Option<String>,
    /// Set by Ctrl-C: running shards finish, no new one starts.
    pub interrupted: Arc<AtomicBool>,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct BuildSummary {
    pub n_run: usize,
    pub n_fresh: usize,
    /// In all nodes of the build that were planned, fresh ones included.
    pub n_quarantined: u64,
}

/// The engine's own columns of a table, for the ledger.
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

impl Session {
    /// Builds what is not fresh. The caller holds the lock.
    pub fn build(&self, options: &BuildOptions, events: &mut dyn EventSink) -> anyhow::Result<BuildSummary> {
        events.take(&Event::BuildStarted { pipeline: self.graph.pipeline.clone(), jobs: options.jobs });
        self.source_events().iter().for_each(|event| events.take(event));
        let wanted = self.wanted(options)?;
        if let Some(name) = &options.force {
            self.forget(self.find_node(name)?)?;
        }
        let first = self.plan()?;
        // Settings and resources of everything that may run make sense before anything runs.
        for (index, plan) in first.iter().enumerate() {
            if wanted.contains(&index) && !matches!(plan.state, State::Fresh | State::Absent) {
                self.stage(index)?;
            }
        }
        let mut summary = BuildSummary::default();
        let mut plans: Vec<NodePlan> = Vec::new();
        for index in 0..self.graph.nodes.len() {
            let mut plan = self.plan_node(index, &plans)?;
            let node = self.node(index)?;
            if wanted.contains(&index) {
                match plan.state {
                    State::Fresh => {
                        summary.n_fresh += 1;
                        self.write_current(node, &plan)?;
                        events.take(&Event::NodeFresh { node: node.name.clone() });
                    }
                    State::Absent => {
                        events.take(&Event::NodeAbsent { node: node.name.clone(), why: plan.why.join("; ") })
                    }
                    State::Pending => {
                        return Err(usage(format!(
                            "node {} {}; build without --only, or with --to {}",
                            node.name,
                            plan.why.join(", "),
                            node.name
                        )));
                    }
                    State::Stale | State::Missing => {
                        let manifest = match self.run_node(index, &plan, &plans, options, events) {
                            Ok(manifest) => manifest,
                            Err(error) => {
                                if matches!(error.downcast_ref::<Fault>(), Some(Fault::Interrupted)) {
                                    events.take(&Event::Interrupted);
                                } else {
                                    events.take(&Event::NodeFailed {
                                        node: node.name.clone(),
                                        error: format!("{error:#}"),
                                    });
                                }
                                return Err(error.context(format!("node {}", node.name)));
                            }
                        };
                        plan.state = State::Fresh;
                        plan.manifest = Some(Arc::new(manifest));
                        summary.n_run += 1;
                    }
                }
                if let Some(manifest) = &plan.manifest {
                    summary.n_quarantined += total_counts(&manifest.counts).n_quarantined();
                }
            }
            plans.push(plan);
        }
        lock(&self.hashes).save()?;
        events.take(&Event::BuildFinished {
            n_run: summary.n_run,
            n_fresh: summary.n_fresh,
            n_quarantined: summary.n_quarantined,
        });
        Ok(summary)
    }

    fn wanted(&self, options: &BuildOptions) -> anyhow::Result<BTreeSet<usize>> {
        match (&options.to, &options.only) {
            (Some(_), Some(_)) => Err(usage("--to and --only exclude each other")),
            (Some(name), None) => Ok(self.graph.ancestors(self.find_node(name)?)),
            (None, Some(name)) => Ok(BTreeSet::from([self.find_node(name)?])),
            (None, None) => Ok((0..self.graph.nodes.len()).collect()),
        }
    }

    /// Removes the last build of a node, so that it runs again.
    fn forget(&self, index: usize) -> anyhow::Result<()> {
        let plans = self.plan()?;
        if let Some(folder) = plans.get(index).and_then(|plan| plan.build_dir.as_ref()).filter(|folder| folder.is_dir())
        {
            // Renamed first: a build folder is whole or not there.
            let trash = fs::temporary_beside(folder);
            std::fs::rename(folder, &trash).with_context(|| format!("renaming {}", folder.display()))?;
            fs::remove_dir(&trash)?;
        }
        self.forget_caches(index);
        Ok(())
    }

    fn write_current(&self, node: &Node, plan: &NodePlan) -> anyhow::Result<()> {
        let Some(components) = &plan.components else { return Ok(()) };
        let current = CurrentFile { fingerprint: components.fingerprint()? };
        let path = self.workspace.node_dir(&self.graph.pipeline, &node.name).join("current.json");
        if read_json::<CurrentFile>(&path)?.is_none_or(|old| old.fingerprint != current.fingerprint) {
            fs::write_atomic(&path, &to_json(&current)?)?;
        }
        Ok(())
    }

    fn run_node(
        &self,
        index: usize,
        plan: &NodePlan,
        plans: &[NodePlan],
        options: &BuildOptions,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<StageManifest> {
        let node = self.node(index)?;
        events.take(&Event::NodeStarted { node: node.name.clone(), stage: node.stage.name, why: plan.why.clone() });
        self.forget_caches(index);
        let work = self.prepare(index, plan, plans, true, events)?;
        let decided = if matches!(work.stage, AnyStage::Table(_)) {
            self.run_shards(&work, options, events)?;
            interrupted(options)?;
            events.take(&Event::NodePhase { node: node.name.clone(), phase: "deciding" });
            Some(self.decide(&work)?)
        } else {
            self.run_shards(&work, options, events)?;
            None
        };
        let manifest = self.finish_node(&work, decided, events)?;
        self.write_current(node, plan)?;
        Ok(manifest)
    }

    /// Everything that the shards of a node need; for a reader the cut, made once and kept.
    ///
    /// A `coordinator`, which holds the lock, also removes what a killed process left; a worker leaves
    /// other workers' folders alone.
    fn prepare<'a>(
        &'a self,
        index: usize,
        plan: &'a NodePlan,
        plans: &'a [NodePlan],
        coordinator: bool,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<NodeWork<'a>> {
        let node = self.node(index)?;
        let build_dir = plan.build_dir.as_deref().context("a node that runs has a build folder")?;
        let stage = self.stage(index)?;
        fs::create_dir(build_dir)?;
        if coordinator {
            shard::remove_temporary(build_dir)?;
        }
        let upstream = Upstream { session: self, plans };
        let (reading, n_shards) = match stage {
            AnyStage::Reader(reader) => {
                let found = self.source_of(node)?;
                let config = self.graph.sources.get(&found.raw.name).context("a source without configuration")?;
                let mut source = found.raw.clone();
                for file in &mut source.files {
                    let path = self.workspace.raw.join(&file.path);
                    file.readable =
                        raw::readable(&self.workspace, &path, &file.path, &file.sha256, config.max_unpacked_bytes)?;
                }
                let path = build_dir.join("cut.json");
                let cut = match read_json::<Cut>(&path)? {
                    Some(cut) => cut,
                    None => {
                        events.take(&Event::NodePhase { node: node.name.clone(), phase: "dividing files" });
                        let limits = ShardLimits {
                            records: self.graph.shard_records,
                            bytes: self.graph.shard_bytes,
                            limit: self.limit,
                        };
                        let cut = reader.cut(&source, limits)?;
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
        Ok(NodeWork {
            session: self,
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

    /// Runs the shards that are not there yet, on threads.
    fn run_shards(
        &self,
        work: &NodeWork<'_>,
        options: &BuildOptions,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<()> {
        let missing: Vec<u32> = (0..work.n_shards).filter(|index| !work.target(*index).is_dir()).collect();
        let n_done = work.n_shards - u32::try_from(missing.len())?;
        events.take(&Event::ShardsPlanned { node: work.node.name.clone(), n_shards: work.n_shards, n_done });
        let next = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel::<anyhow::Result<(u32, u64)>>();
        let worker = |sender: mpsc::Sender<anyhow::Result<(u32, u64)>>| {
            while !stop.load(Ordering::Relaxed) && !options.interrupted.load(Ordering::Relaxed) {
                let Some(index) = missing.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { break };
                let result = work.run_shard(index).with_context(|| format!("shard {index}")).map(|rows| (index, rows));
                let failed = result.is_err();
                // The receiver lives as long as the scope.
                let _ = sender.send(result);
                if failed {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
        };
        let mut first_error = None;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..options.jobs.max(1).min(missing.len()))
                .map(|_| {
                    let sender = sender.clone();
                    let worker = &worker;
                    scope.spawn(move || worker(sender))
                })
                .collect();
            drop(sender);
            for result in receiver {
                match result {
                    Ok((index, rows)) => events.take(&Event::ShardFinished {
                        node: work.node.name.clone(),
                        index,
                        rows,
                        n_shards: work.n_shards,
                    }),
                    Err(error) => {
                        first_error.get_or_insert(error);
                    }
                }
            }
            for thread in threads {
                if thread.join().is_err() {
                    first_error.get_or_insert(anyhow::anyhow!("a worker thread panicked; see the message above"));
                }
            }
        });
        if let Some(error) = first_error {
            return Err(error);
        }
        interrupted(options)
    }

    /// The second half of a table node: every id exactly once, then parts sorted by id.
    fn decide(&self, work: &NodeWork<'_>) -> anyhow::Result<u32> {
        let AnyStage::Table(stage) = work.stage else { bail!("only a table stage decides") };
        let mut rows: Vec<EngineRow> = Vec::new();
        let mut paths = Vec::new();
        for index in 0..work.n_shards {
            let path = work.target(index).join(shard::PART);
            let columns = [
                EngineColumns::RECORD_ID,
                EngineColumns::SHARD,
                EngineColumns::ROW,
                EngineColumns::SOURCE,
                EngineColumns::FILE,
                EngineColumns::LINE,
                EngineColumns::RAW_SHA256,
            ];
            rows.extend(from_batch::<EngineRow>(&parquet::read_columns(&path, &columns)?)?);
            paths.push(path);
        }
        rows.sort_by(|one, other| one.record_id.cmp(&other.record_id));
        if let Some(pair) =
            rows.windows(2).find(|pair| matches!(pair, [one, other] if one.record_id == other.record_id))
        {
            bail!(
                "the id {} comes twice in the stream of node {}",
                pair.first().map_or("", |row| row.record_id.as_str()),
                work.node.name
            );
        }
        let mut sides = SideEmitter::default();
        let mut decisions = if rows.is_empty() {
            Vec::new()
        } else {
            stage.decide(crate::store::parquet::scan(&paths)?, &mut sides)?
        };
        decisions.sort_by(|one, other| one.record_id.cmp(&other.record_id));
        let same = decisions.len() == rows.len()
            && decisions.iter().zip(&rows).all(|(decision, row)| decision.record_id == row.record_id);
        ensure!(
            same,
            "stage {} decided {} ids of {}, or some twice",
            work.node.stage.name,
            decisions.len(),
            rows.len()
        );
        let (sides, media) = sides.finish()?;
        let chunk = usize::try_from(self.graph.shard_records)?;
        let n_shards = u32::try_from(rows.len().div_ceil(chunk))?;
        let firsts: Vec<&RecordId> = rows.iter().step_by(chunk).map(|row| &row.record_id).collect();
        let side_chunks = sides
            .iter()
            .map(|(port, side)| Ok((*port, side.row_name, divide(&side.batch, &firsts)?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut media = Some(media);
        for (index, (rows, decisions)) in (0u32..).zip(rows.chunks(chunk).zip(decisions.chunks(chunk))) {
            let target = shard::shard_dir(work.build_dir, index);
            if target.is_dir() {
                continue;
            }
            let mut output = decided_shard(&work.node.name, rows, decisions)?;
            for (port, row_name, batches) in &side_chunks {
                if let Some(batch) = batches.get(index as usize).filter(|batch| batch.num_rows() > 0) {
                    output.sides.insert(port, SideBatch { row_name, batch: batch.clone() });
                }
            }
            output.media = media.take().unwrap_or_default();
            work.commit(
                &target,
                &to_batch(&output.kept)?,
                output.ledger,
                output.sides,
                output.media,
                BTreeMap::new(),
                output.counts,
                BTreeMap::new(),
            )?;
        }
        Ok(n_shards)
    }

    /// Counts, limits, then `stage.json`.
    fn finish_node(
        &self,
        work: &NodeWork<'_>,
        decided: Option<u32>,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<StageManifest> {
        let node = work.node;
        let n_shards = decided.unwrap_or(work.n_shards);
        let mut counts = SourceCounts::new();
        let mut shards = Vec::new();
        let mut sides: BTreeMap<String, u64> = BTreeMap::new();
        let mut replies = BTreeMap::new();
        for index in 0..n_shards {
            let folder = shard::shard_dir(work.build_dir, index);
            let (manifest, summary) =
                shard::read_manifest(&folder)?.with_context(|| format!("{} is gone", folder.display()))?;
            add_counts(&mut counts, &manifest.counts);
            for port in node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side) {
                *sides.entry(port.name.to_owned()).or_default() += manifest.rows(&shard::side_file(port.name));
            }
            replies.extend(manifest.replies);
            shards.push(summary);
        }
        self.check_limits(work, &counts)?;
        let parts: Vec<&str> = shards.iter().map(|shard| shard.hash.as_str()).collect();
        let mut below = Vec::new();
        if node.stage.shape.only_selects() {
            for input in node.stream_inputs() {
                if let Some(manifest) = work.upstream.plans.get(input).and_then(|plan| plan.manifest.as_ref()) {
                    below.push(manifest.output_hash.to_string());
                }
            }
        }
        let plan = self.plan_node(work.index, work.upstream.plans)?;
        let components = plan.components.context("a node that ran has components")?;
        let manifest = StageManifest {
            node: node.name.clone(),
            fingerprint: components.fingerprint()?,
            components,
            output_hash: Hash::of_json(&(parts, below))?,
            counts,
            n_stream_shards: work.n_shards,
            sides,
            replies,
            shards,
        };
        ensure!(
            work.build_dir.ends_with(manifest.fingerprint.short()),
            "the inputs of node {} changed while it ran; build again",
            node.name
        );
        fs::write_atomic(&work.build_dir.join("stage.json"), &to_json(&manifest)?)?;
        events.take(&Event::NodeFinished {
            node: node.name.clone(),
            counts: manifest.counts.clone(),
            n_shards,
            bytes: manifest.shards.iter().map(|shard| shard.bytes).sum(),
        });
        Ok(manifest)
    }

    /// A node that lost more of a source than declared is not committed; its ledger stays.
    fn check_limits(&self, work: &NodeWork<'_>, counts: &SourceCounts) -> anyhow::Result<()> {
        let mut complaints = Vec::new();
        for (source, counts) in counts {
            ensure!(counts.is_conserved(), "node {} lost count of source {source}: {counts:?}", work.node.name);
            let n_out = counts.n_in + counts.n_split;
            let limits = work.node.limits;
            for (what, key, n, limit) in [
                ("quarantined", "max_quarantined", counts.n_quarantined(), limits.max_quarantined),
                ("lost", "max_loss", counts.n_quarantined() + counts.n_dropped(), limits.max_loss),
            ] {
                let share = n as f64 / (n_out.max(1)) as f64;
                if share > limit {
                    complaints.push(format!(
                        "{what} {n} of {n_out} records of source {source} ({:.1} %, {key} is {:.1} %): {}",
                        share * 100.0,
                        limit * 100.0,
                        show_reasons(counts)
                    ));
                }
            }
        }
        if complaints.is_empty() {
            return Ok(());
        }
        let example = self
            .first_exit(work)?
            .map(|row| format!("; for one of them: casemill explain {} {}", self.graph.pipeline, row.record_id))
            .unwrap_or_default();
        Err(input(format!(
            "it is not committed: {}; raise the limit under [nodes.{}] in {} if that is right{example}",
            complaints.join("; "),
            work.node.name,
            self.graph.file
        )))
    }

    fn first_exit(&self, work: &NodeWork<'_>) -> anyhow::Result<Option<LedgerRow>> {
        for index in 0..work.n_shards {
            let path = shard::shard_dir(work.build_dir, index).join(shard::LEDGER);
            if path.is_file() {
                return Ok(from_batch::<LedgerRow>(&parquet::read(&path)?)?.into_iter().next());
            }
        }
        Ok(None)
    }

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
        let work = self.prepare(node, plan, &plans, false, &mut ())?;
        ensure!(index < work.n_shards, Fault::Usage(format!("node {name} has {} shards", work.n_shards)));
        if work.target(index).is_dir() {
            return Ok(0);
        }
        work.run_shard(index)
    }
}

/// A node that is being run.
struct NodeWork<'a> {
    session: &'a Session,
    index: usize,
    node: &'a Node,
    stage: &'a AnyStage,
    upstream: Upstream<'a>,
    build_dir: &'a Path,
    /// For a reader: its source with readable files, and how they are divided.
    reading: Option<(RawSource, Cut)>,
    n_shards: u32,
    sides: crate::stage::SideInputs,
}

impl NodeWork<'_> {
    /// Where the work of one input shard goes.
    fn target(&self, index: u32) -> std::path::PathBuf {
        if matches!(self.stage, AnyStage::Table(_)) {
            shard::columns_dir(self.build_dir, index)
        } else {
            shard::shard_dir(self.build_dir, index)
        }
    }

    /// Runs and commits one shard; gives its rows.
    fn run_shard(&self, index: u32) -> anyhow::Result<u64> {
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
            AnyStage::Model(stage) => stage.run(&read()?, self.session.service.as_deref(), &context)?,
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
        self.commit(
            &self.target(index),
            &part,
            output.ledger,
            output.sides,
            output.media,
            output.raw_media,
            output.counts,
            output.replies,
        )?;
        Ok(rows)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a shard, each from another place")]
    fn commit(
        &self,
        target: &Path,
        part: &RecordBatch,
        ledger: Vec<LedgerRow>,
        sides: BTreeMap<&'static str, SideBatch>,
        media: BTreeMap<Hash, Vec<u8>>,
        raw_media: BTreeMap<Hash, String>,
        counts: SourceCounts,
        replies: BTreeMap<Hash, Hash>,
    ) -> anyhow::Result<()> {
        let stage = self.node.stage;
        for row in &ledger {
            ensure!(
                stage.reasons.contains(&row.reason.as_str()),
                "stage {} gave the reason `{}`, which it does not declare",
                stage.name,
                row.reason
            );
        }
        let mut batches = BTreeMap::new();
        for (port, side) in &sides {
            let declared = stage.outputs.iter().find(|output| output.name == *port && output.kind == PortKind::Side);
            let declared = declared.with_context(|| format!("stage {} has no side port `{port}`", stage.name))?;
            ensure!(
                declared.row.name == side.row_name,
                "side port `{port}` of stage {} takes `{}`, not `{}`",
                stage.name,
                declared.row.name,
                side.row_name
            );
            batches.insert(*port, &side.batch);
        }
        let content =
            ShardContent { part: Some(part), ledger: &ledger, sides: batches, media, raw_media, counts, replies };
        shard::commit(&self.session.workspace, target, content).map(drop)
    }
}

struct DecidedShard {
    kept: Vec<TableRow>,
    ledger: Vec<LedgerRow>,
    counts: SourceCounts,
    sides: BTreeMap<&'static str, SideBatch>,
    media: BTreeMap<Hash, Vec<u8>>,
}

fn decided_shard(node: &str, rows: &[EngineRow], decisions: &[Decision]) -> anyhow::Result<DecidedShard> {
    let mut shard = DecidedShard {
        kept: Vec::new(),
        ledger: Vec::new(),
        counts: SourceCounts::new(),
        sides: BTreeMap::new(),
        media: BTreeMap::new(),
    };
    for (row, decision) in rows.iter().zip(decisions) {
        let counts: &mut Counts = shard.counts.entry(row.source.clone()).or_default();
        counts.n_in += 1;
        match decision.verdict.clone().exit() {
            None => {
                counts.kept += 1;
                shard.kept.push(TableRow { record_id: row.record_id.clone(), shard: row.shard, row: row.row });
            }
            Some((exit, cause)) => {
                counts.exit(exit, cause.reason);
                shard.ledger.push(ledger_row(node, row, exit, cause));
            }
        }
    }
    Ok(shard)
}

fn ledger_row(node: &str, row: &EngineRow, exit: Exit, cause: Cause) -> LedgerRow {
    LedgerRow {
        record_id: row.record_id.clone(),
        source: row.source.clone(),
        node: node.to_owned(),
        exit,
        reason: cause.reason.to_owned(),
        detail: cause.detail,
        file: row.file.clone(),
        line: row.line,
        raw_sha256: row.raw_sha256.clone(),
    }
}

/// Divides side rows, sorted by id, at the first ids of the shards.
fn divide(batch: &RecordBatch, firsts: &[&RecordId]) -> anyhow::Result<Vec<RecordBatch>> {
    let ids = record_ids(batch)?;
    let mut order: Vec<(&str, u32)> = ids.iter().map(String::as_str).zip(0u32..).collect();
    order.sort_unstable();
    let mut divided = Vec::with_capacity(firsts.len());
    for index in 0..firsts.len() {
        let after = |id: &str| firsts.get(index + 1).is_some_and(|next| id >= next.as_str());
        let before = |id: &str| index > 0 && firsts.get(index).is_some_and(|first| id < first.as_str());
        let rows = order.iter().filter(|(id, _)| !before(id) && !after(id)).map(|(_, row)| *row);
        divided.push(arrow::compute::take_record_batch(batch, &UInt32Array::from_iter_values(rows))?);
    }
    Ok(divided)
}

fn interrupted(options: &BuildOptions) -> anyhow::Result<()> {
    if options.interrupted.load(Ordering::Relaxed) { Err(Fault::Interrupted.into()) } else { Ok(()) }
}

/// `option_keys 1, invalid_json 2`
pub fn show_reasons(counts: &Counts) -> String {
    let reasons = counts.quarantined.iter().chain(&counts.dropped);
    reasons.map(|(reason, n)| format!("{reason} {n}")).collect::<Vec<_>>().join(", ")
}
