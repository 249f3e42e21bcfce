//! Committing a node: counts, limits, then `stage.json`.

use super::controls::Controls;
use super::events::{Event, EventSink};
use super::judgements::verdicts;
use super::work::NodeWork;
use crate::error::input;
use crate::record::ledger::{Counts, LedgerRow, SourceCounts, add_counts};
use crate::record::{Hash, from_batch};
use crate::stage::PortKind;
use crate::store::manifest::{StageManifest, to_json};
use crate::store::{fs, parquet, shard};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;

impl NodeWork<'_> {
    /// Counts, limits, then `stage.json`.
    pub fn finish(
        &self,
        decided: Option<u32>,
        controls: Controls,
        events: &mut dyn EventSink,
    ) -> anyhow::Result<StageManifest> {
        let node = self.node;
        let n_shards = decided.unwrap_or(self.n_shards);
        let mut counts = SourceCounts::new();
        let mut shards = Vec::new();
        let mut sides: BTreeMap<String, u64> = BTreeMap::new();
        let (mut replies, mut failed_calls) = (controls.replies, controls.failed_calls);
        for index in 0..n_shards {
            let folder = shard::shard_dir(self.build_dir, index);
            let (manifest, summary) =
                shard::read_manifest(&folder)?.with_context(|| format!("{} is gone", folder.display()))?;
            add_counts(&mut counts, &manifest.counts);
            for port in node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side) {
                *sides.entry(port.name.to_owned()).or_default() += manifest.rows(&shard::side_file(port.name));
            }
            replies.extend(manifest.replies);
            failed_calls.extend(manifest.failed_calls);
            shards.push(summary);
        }
        self.check_limits(&counts)?;
        let parts: Vec<&str> = shards.iter().map(|shard| shard.hash.as_str()).collect();
        let mut below = Vec::new();
        if node.stage.shape.only_selects() {
            for input in node.stream_inputs() {
                if let Some(manifest) = self.upstream.plans.get(input).and_then(|plan| plan.manifest.as_ref()) {
                    below.push(manifest.output_hash.to_string());
                }
            }
        }
        let plan = self.session.plan_node(self.index, self.upstream.plans)?;
        let components = plan.components.context("a node that ran has components")?;
        let manifest = StageManifest {
            node: node.name.clone(),
            fingerprint: components.fingerprint()?,
            components,
            output_hash: Hash::of_json(&(parts, below))?,
            counts,
            n_stream_shards: self.n_shards,
            sides,
            replies,
            failed_calls,
            controls: controls.answers,
            shards,
        };
        ensure!(
            self.build_dir.ends_with(manifest.fingerprint.short()),
            "the inputs of node {} changed while it ran; build again",
            node.name
        );
        fs::write_atomic(&self.build_dir.join("stage.json"), &to_json(&manifest)?)?;
        for counts in verdicts(node, self.build_dir, n_shards)? {
            events.take(&Event::Judgements(counts));
        }
        events.take(&Event::NodeFinished {
            node: node.name.clone(),
            counts: manifest.counts.clone(),
            n_shards,
            bytes: manifest.shards.iter().map(|shard| shard.bytes).sum(),
        });
        Ok(manifest)
    }

    /// A node that lost more of a source than declared is not committed; its ledger stays.
    fn check_limits(&self, counts: &SourceCounts) -> anyhow::Result<()> {
        let mut complaints = Vec::new();
        for (source, counts) in counts {
            ensure!(counts.is_conserved(), "node {} lost count of source {source}: {counts:?}", self.node.name);
            let n_out = counts.n_in + counts.n_split;
            let limits = self.node.limits;
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
            .first_exit()?
            .map(|row| format!("; for one of them: casemill explain {} {}", self.session.graph.pipeline, row.record_id))
            .unwrap_or_default();
        Err(input(format!(
            "it is not committed: {}; raise the limit under [nodes.{}] in {} if that is right{example}",
            complaints.join("; "),
            self.node.name,
            self.session.graph.file
        )))
    }

    fn first_exit(&self) -> anyhow::Result<Option<LedgerRow>> {
        for index in 0..self.n_shards {
            let path = shard::shard_dir(self.build_dir, index).join(shard::LEDGER);
            if path.is_file() {
                return Ok(from_batch::<LedgerRow>(&parquet::read(&path)?)?.into_iter().next());
            }
        }
        Ok(None)
    }
}

/// `option_keys 1, invalid_json 2`
pub fn show_reasons(counts: &Counts) -> String {
    let reasons = counts.quarantined.iter().chain(&counts.dropped);
    reasons.map(|(reason, n)| format!("{reason} {n}")).collect::<Vec<_>>().join(", ")
}
