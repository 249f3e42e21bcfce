//! Running nodes: shards on threads, each committed on its own, `stage.json` last.

use super::events::{Event, EventSink};
use super::plan::{NodePlan, State};
use super::session::Session;
use super::stream::lock;
use super::work::{NodeWork, Role};
use crate::dag::Node;
use crate::error::{Fault, usage};
use crate::record::ledger::total_counts;
use crate::stage::{AnyStage, CallCounts, Shape};
use crate::store::manifest::{CurrentFile, StageManifest, to_json};
use crate::store::{fs, read_json};
use anyhow::Context;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

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

impl Session {
    /// Builds what is not fresh. The caller holds the lock.
    pub fn build(&self, options: &BuildOptions, events: &mut dyn EventSink) -> anyhow::Result<BuildSummary> {
        events.take(&Event::BuildStarted { pipeline: self.graph.pipeline.clone(), jobs: options.jobs });
        self.source_events().iter().for_each(|event| events.take(event));
        let wanted = self.wanted(options)?;
        let forced = options.force.as_deref().map(|name| self.find_node(name)).transpose()?;
        let first = self.plan()?;
        // Settings and resources of everything that may run make sense before anything runs.
        for (index, plan) in first.iter().enumerate() {
            let runs = forced == Some(index) || !matches!(plan.state, State::Fresh | State::Absent);
            if wanted.contains(&index) && runs {
                self.stage(index)?;
            }
        }
        let mut summary = BuildSummary::default();
        let mut plans: Vec<NodePlan> = Vec::new();
        for index in 0..self.graph.nodes.len() {
            // As long as nothing ran, nothing changed.
            let known = first.get(index).filter(|_| summary.n_run == 0).cloned();
            let mut plan = known.map_or_else(|| self.plan_node(index, &plans), Ok)?;
            let node = self.node(index)?;
            if forced == Some(index)
                && let Some(folder) = plan.build_dir.as_deref().filter(|folder| folder.is_dir())
            {
                self.forget(index, folder)?;
                plan = self.plan_node(index, &plans)?;
            }
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
        if summary.n_run > 0 {
            for overlap in self.overlaps(&plans)? {
                events.take(&Event::Overlap(overlap));
            }
        }
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

    /// Removes a build of a node, so that it runs again.
    fn forget(&self, index: usize, folder: &Path) -> anyhow::Result<()> {
        // Renamed first: a build folder is whole or not there.
        let trash = fs::temporary_beside(folder);
        std::fs::rename(folder, &trash).with_context(|| format!("renaming {}", folder.display()))?;
        fs::remove_dir(&trash)?;
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
        let counted_before = self.service_of(node).map(|service| service.counts()).unwrap_or_default();
        let work = NodeWork::prepare(self, index, plan, plans, Role::Coordinator, events)?;
        work.remove_outdated_shards()?;
        let controls = work.ask_controls(events)?;
        let decided = if matches!(work.stage, AnyStage::Table(_)) {
            self.run_shards(&work, &counted_before, options, events)?;
            interrupted(options)?;
            events.take(&Event::NodePhase { node: node.name.clone(), phase: "deciding" });
            Some(work.decide()?)
        } else {
            self.run_shards(&work, &counted_before, options, events)?;
            None
        };
        let manifest = work.finish(decided, controls, events)?;
        self.write_current(node, plan)?;
        Ok(manifest)
    }

    /// Runs the shards that are not there yet, on threads.
    fn run_shards(
        &self,
        work: &NodeWork<'_>,
        counted_before: &CallCounts,
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
            loop {
                let result = match receiver.recv_timeout(CALLS_SHOWN) {
                    Ok(result) => result,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.show_calls(work.node, counted_before, false, events);
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                };
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
        self.show_calls(work.node, counted_before, true, events);
        if let Some(error) = first_error {
            return Err(error);
        }
        interrupted(options)
    }

    /// The calls of a node since it started, those of its control questions included.
    fn show_calls(&self, node: &Node, before: &CallCounts, last: bool, events: &mut dyn EventSink) {
        if node.stage.shape == Shape::Model
            && let Some(service) = self.service_of(node)
        {
            let counts = service.counts().since(before);
            events.take(&Event::Calls { node: node.name.clone(), counts, last });
        }
    }
}

/// How often a sink hears of the calls of a running node.
const CALLS_SHOWN: Duration = Duration::from_secs(1);

fn interrupted(options: &BuildOptions) -> anyhow::Result<()> {
    if options.interrupted.load(Ordering::Relaxed) { Err(Fault::Interrupted.into()) } else { Ok(()) }
}
