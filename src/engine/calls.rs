//! The calls of model nodes without sending them: what they will cost, what they say, and which replies a build was made
//! from.

use super::controls;
use super::plan::NodePlan;
use super::session::Session;
use super::stream::Upstream;
use crate::config::ModelConfig;
use crate::dag::{Node, RULES};
use crate::error::usage;
use crate::record::{Hash, RecordId};
use crate::service::model::Models;
use crate::service::model::call_key;
use crate::service::model::estimate::{Estimate, TokenCounter};
use crate::service::model::governance::Cleared;
use crate::stage::{AnyStage, Ask, Call, ModelService, Shape, StageContext};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the cost of a model node.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeCost {
    /// Its input is there: calls are counted one by one.
    Known { estimates: Vec<Estimate> },
    /// Its input has to be built first.
    InputNotBuilt { node: String, waits_for: Vec<String> },
}

impl Session {
    /// Model nodes that ask a model in this session, in order.
    pub fn asking_nodes(&self) -> Vec<usize> {
        let asks = |index: &usize| {
            self.graph.nodes.get(*index).is_some_and(|node| {
                node.stage.shape == Shape::Model && !self.absent.contains_key(index) && self.service_of(node).is_some()
            })
        };
        (0..self.graph.nodes.len()).filter(asks).collect()
    }

    /// The models, or how to get them.
    pub fn need_models(&self) -> anyhow::Result<&Models> {
        self.models.as_deref().ok_or_else(|| usage("this needs models: give --llm live, record or replay"))
    }

    /// Names of the nodes that this one reads and that have no build.
    fn inputs_not_built(&self, node: &Node, plans: &[NodePlan]) -> Vec<String> {
        node.all_inputs()
            .into_iter()
            .filter(|input| !self.absent.contains_key(input))
            .filter(|input| plans.get(*input).is_none_or(|plan| plan.manifest.is_none()))
            .filter_map(|input| self.graph.nodes.get(input))
            .map(|input| input.name.clone())
            .collect()
    }

    /// Every call of a node whose input is built, record by record.
    pub fn each_call(
        &self,
        index: usize,
        plans: &[NodePlan],
        take: &mut dyn FnMut(Ask) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let node = self.node(index)?;
        let AnyStage::Model(stage) = self.stage(index)? else {
            return Err(usage(format!("node {} asks no model: it is a {}", node.name, node.stage.shape.as_str())));
        };
        if let Some(name) = self.inputs_not_built(node, plans).first() {
            return Err(usage(format!("node {name} is not built: casemill build {} --to {name}", self.graph.pipeline)));
        }
        let upstream = Upstream { session: self, plans };
        let sides = upstream.side_inputs(index)?;
        let context =
            StageContext { pipeline: &self.graph.pipeline, node: &node.name, media: &upstream, sides: &sides };
        for control in stage.controls()? {
            let name = format!("{}-{}", control.call.model, control.name);
            take(controls::ask(&self.graph.pipeline, &node.name, &name, control.call))?;
        }
        for shard in 0..upstream.n_input_shards(index)? {
            let batch = upstream.read_input(index, shard, None)?;
            stage.each_ask(&batch, &context, take)?;
        }
        Ok(())
    }

    /// What the model nodes will cost. Nothing is sent.
    pub fn costs(&self, plans: &[NodePlan]) -> anyhow::Result<Vec<NodeCost>> {
        let models = self.need_models()?;
        let mut costs = Vec::new();
        for index in self.asking_nodes() {
            let node = self.node(index)?;
            let waits_for = self.inputs_not_built(node, plans);
            if !waits_for.is_empty() {
                costs.push(NodeCost::InputNotBuilt { node: node.name.clone(), waits_for });
                continue;
            }
            let mean = models.store().mean_output_tokens(&self.graph.pipeline, &node.name)?;
            let mut counters: BTreeMap<String, TokenCounter> = BTreeMap::new();
            let mut estimates: BTreeMap<String, Estimate> = BTreeMap::new();
            self.each_call(index, plans, &mut |ask| {
                let model = self.model_config(&ask.call)?;
                let name = &ask.call.model;
                let estimate = estimates.entry(name.clone()).or_insert_with(|| Estimate {
                    node: node.name.clone(),
                    model: name.clone(),
                    ..Estimate::default()
                });
                estimate.calls += 1;
                if Cleared::check(model, &ask).is_err() {
                    estimate.refused += 1;
                } else if models.asks_anew() || models.stored(&call_key(model, &ask.call)?)?.is_none() {
                    let counter = counters.entry(name.clone()).or_insert_with(|| TokenCounter::of(model));
                    estimate.add(model, counter.call(&ask.call), mean);
                } else {
                    estimate.stored += 1;
                }
                Ok(())
            })?;
            costs.push(NodeCost::Known { estimates: estimates.into_values().collect() });
        }
        Ok(costs)
    }

    fn model_config(&self, call: &Call) -> anyhow::Result<&ModelConfig> {
        self.graph.models.get(&call.model).with_context(|| format!("there is no model `{}`", call.model))
    }

    /// The calls that a node makes for one record.
    pub fn calls_of_record(&self, index: usize, id: &str) -> anyhow::Result<Vec<(Call, Option<Hash>)>> {
        let node = self.node(index)?;
        if node.stage.shape == Shape::Model && node.models(&self.graph.models).is_empty() {
            return Err(usage(format!("node {} asks no model: its settings name none, or `{RULES}`", node.name)));
        }
        let plans = self.plan()?;
        let mut found = Vec::new();
        self.each_call(index, &plans, &mut |ask| {
            let record_id = &ask.origin.record_id;
            if record_id.as_str() == id || record_id.case_id(&self.graph.pipeline) == id {
                let key = self.graph.models.get(&ask.call.model).map(|model| call_key(model, &ask.call)).transpose()?;
                found.push((ask.call, key));
            }
            Ok(())
        })?;
        if found.is_empty() {
            return Err(usage(format!(
                "record {id} does not reach node {}; casemill explain {} {id} shows where it went",
                node.name, self.graph.pipeline
            )));
        }
        Ok(found)
    }

    /// Keys of all calls whose replies, accepted or not, the present build was made from.
    pub fn reply_keys(&self, plans: &[NodePlan]) -> BTreeSet<Hash> {
        let manifests = plans.iter().filter_map(|plan| plan.manifest.as_ref());
        manifests.flat_map(|manifest| manifest.replies.keys().chain(manifest.failed_calls.keys()).cloned()).collect()
    }

    /// The calls of one record at every model node that is built, with what they cost, for `explain`.
    pub fn calls_in_life(&self, id: &RecordId) -> anyhow::Result<Vec<crate::store::replies::Spending>> {
        match &self.models {
            Some(models) => models.store().spending(&self.graph.pipeline, Some(id.as_str())),
            None => Ok(Vec::new()),
        }
    }
}
