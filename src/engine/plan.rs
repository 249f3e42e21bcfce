//! What would run, and why. Reads manifests only.

use super::session::Session;
use crate::dag::Node;
use crate::record::Hash;
use crate::stage::{NO_REPLY, Shape};
use crate::store::manifest::{Components, CurrentFile, InputHash, STORE_FORMAT, StageManifest};
use crate::store::{fs, read_json};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether a node has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Fresh,
    /// Was built from something else.
    Stale,
    /// Was never built.
    Missing,
    /// A node above it has to run first.
    Pending,
    /// Left out: its source is not there.
    Absent,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
            Self::Missing => "missing",
            Self::Pending => "pending",
            Self::Absent => "absent",
        }
    }
}

/// The plan for one node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    pub state: State,
    /// What changed, or what is waited for.
    pub why: Vec<String>,
    /// Known once every input is committed.
    pub components: Option<Components>,
    pub build_dir: Option<PathBuf>,
    /// Of a fresh node.
    pub manifest: Option<Arc<StageManifest>>,
}

impl Session {
    /// The plan of every node, in order.
    pub fn plan(&self) -> anyhow::Result<Vec<NodePlan>> {
        let mut plans: Vec<NodePlan> = Vec::with_capacity(self.graph.nodes.len());
        for index in 0..self.graph.nodes.len() {
            let plan = self.plan_node(index, &plans)?;
            plans.push(plan);
        }
        Ok(plans)
    }

    /// The plan of one node, given those of the nodes before it.
    pub fn plan_node(&self, index: usize, plans: &[NodePlan]) -> anyhow::Result<NodePlan> {
        let node = self.node(index)?;
        let without =
            |state, why: Vec<String>| NodePlan { state, why, components: None, build_dir: None, manifest: None };
        if let Some(why) = self.absent.get(&index) {
            return Ok(without(State::Absent, vec![why.clone()]));
        }
        let waiting: Vec<String> = node
            .all_inputs()
            .into_iter()
            .filter(|input| plans.get(*input).is_none_or(|plan| !matches!(plan.state, State::Fresh | State::Absent)))
            .filter_map(|input| self.graph.nodes.get(input))
            .map(|input| format!("waits for {}", input.name))
            .collect();
        if !waiting.is_empty() {
            return Ok(without(State::Pending, waiting));
        }
        let components = self.components(index, node, plans)?;
        let build_dir = self.workspace.build_dir(&self.graph.pipeline, &node.name, &components.fingerprint()?);
        let manifest: Option<StageManifest> = read_json(&build_dir.join("stage.json"))?;
        if let Some(manifest) = manifest {
            let why = self.changed_replies(&manifest.replies, &manifest.failed_calls)?;
            let state = if why.is_empty() { State::Fresh } else { State::Stale };
            let manifest = why.is_empty().then(|| Arc::new(manifest));
            return Ok(NodePlan { state, why, components: Some(components), build_dir: Some(build_dir), manifest });
        }
        let mut why = match self.last_components(node)? {
            Some(last) => components.changes_since(&last),
            None => vec!["never built".to_owned()],
        };
        let state = if why.first().is_some_and(|first| first == "never built") { State::Missing } else { State::Stale };
        if why.is_empty() {
            why.push("its last build is gone".to_owned());
        }
        let n_done = fs::list(&build_dir)?.iter().filter(|name| name.starts_with("shard-")).count();
        if n_done > 0 {
            why.push(format!("{n_done} shards of it are done"));
        }
        Ok(NodePlan { state, why, components: Some(components), build_dir: Some(build_dir), manifest: None })
    }

    /// What the node was last built from, as far as its manifest is still there.
    fn last_components(&self, node: &Node) -> anyhow::Result<Option<Components>> {
        let folder = self.workspace.node_dir(&self.graph.pipeline, &node.name);
        let Some(current) = read_json::<CurrentFile>(&folder.join("current.json"))? else { return Ok(None) };
        let path = self.workspace.build_dir(&self.graph.pipeline, &node.name, &current.fingerprint).join("stage.json");
        Ok(read_json::<StageManifest>(&path)?.map(|manifest| manifest.components))
    }

    /// Why a committed node or shard is stale although its fingerprint is the same.
    pub(super) fn changed_replies(
        &self,
        replies: &BTreeMap<Hash, Hash>,
        failed_calls: &BTreeMap<Hash, String>,
    ) -> anyhow::Result<Vec<String>> {
        let Some(service) = &self.service else { return Ok(Vec::new()) };
        let mut n_changed = 0;
        for (key, hash) in replies {
            n_changed += u64::from(service.stored(key)?.as_ref() != Some(hash));
        }
        let mut n_unanswered = 0;
        for (key, reason) in failed_calls {
            if service.stored(key)?.is_some() {
                n_changed += 1;
            } else if reason == NO_REPLY && service.may_ask() {
                n_unanswered += 1;
            }
        }
        let mut why = Vec::new();
        if n_changed > 0 {
            why.push(format!("{n_changed} accepted replies changed"));
        }
        if n_unanswered > 0 {
            why.push(format!("{n_unanswered} calls have no answer yet"));
        }
        Ok(why)
    }

    fn components(&self, index: usize, node: &Node, plans: &[NodePlan]) -> anyhow::Result<Components> {
        let mut schemas = BTreeMap::new();
        for port in node.stage.inputs.iter().chain(node.stage.outputs) {
            schemas.insert(format!("{}:{}", port.row.name, port.name), port.row.hash()?);
        }
        let settings = node
            .settings
            .iter()
            .map(|(key, value)| Ok((key.clone(), serde_json::to_value(value)?)))
            .collect::<anyhow::Result<_>>()?;
        let mut engine = BTreeMap::from([
            ("shard_records".to_owned(), self.graph.shard_records.into()),
            ("shard_bytes".to_owned(), self.graph.shard_bytes.into()),
        ]);
        if node.stage.shape == Shape::Model {
            // `off` swaps models for rules before fingerprinting; all other modes share one fingerprint.
            match self.service_of(node) {
                None => drop(engine.insert("models".to_owned(), "off".into())),
                Some(service) => {
                    for model in (node.stage.settings.models)(&node.settings) {
                        engine.insert(format!("models.{model}"), service.identity(&model)?);
                    }
                }
            }
        }
        let mut raw = BTreeMap::new();
        if node.source.is_some() {
            let source = self.source_of(node)?;
            for file in source.raw.files.iter().chain(&source.rights_file) {
                raw.insert(file.path.clone(), file.sha256.clone());
            }
            if let Some(name) = &node.source
                && let Some(config) = self.graph.sources.get(name)
            {
                engine.insert("format".to_owned(), config.format.clone().into());
                for (name, value) in &config.options {
                    engine.insert(format!("options.{name}"), serde_json::to_value(value)?);
                }
            }
        }
        let mut inputs = BTreeMap::new();
        for (port, links) in &node.inputs {
            let mut hashes = Vec::new();
            for link in links {
                let Some(manifest) = plans.get(link.node).and_then(|plan| plan.manifest.as_ref()) else { continue };
                hashes.push(InputHash { node: manifest.node.clone(), hash: manifest.output_hash.clone() });
            }
            inputs.insert((*port).to_owned(), hashes);
        }
        Ok(Components {
            store_format: STORE_FORMAT,
            stage: node.stage.name.to_owned(),
            revision: node.stage.revision,
            schemas,
            settings,
            engine,
            limit: self.limit,
            raw,
            inputs,
            resources: self.resource_hashes(index),
        })
    }
}
