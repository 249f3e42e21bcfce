//! Which files hold the same questions: train and test splits, and sources, that overlap.

use super::plan::NodePlan;
use super::session::Session;
use super::stream::Upstream;
use crate::record::ledger::DuplicateRow;
use crate::record::{Row, from_batch};
use crate::stage::PortKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Records of one file that were removed for records of another, or of the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap {
    pub node: String,
    pub kept_file: String,
    pub removed_file: String,
    pub n_removed: u64,
}

impl Session {
    /// Counts over the duplicates of all committed nodes, in the order of nodes and files.
    pub fn overlaps(&self, plans: &[NodePlan]) -> anyhow::Result<Vec<Overlap>> {
        let upstream = Upstream { session: self, plans };
        let mut overlaps = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if plans.get(index).is_none_or(|plan| plan.manifest.is_none()) {
                continue;
            }
            let is_duplicates =
                |port: &&crate::stage::Port| port.kind == PortKind::Side && port.row.name == DuplicateRow::NAME;
            for port in node.stage.outputs.iter().filter(is_duplicates) {
                let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
                upstream.for_each_side(index, port.name, |batch| {
                    for row in from_batch::<DuplicateRow>(&batch)? {
                        *counts.entry((file_of(&row.kept_at), file_of(&row.removed_from))).or_default() += 1;
                    }
                    Ok(())
                })?;
                overlaps.extend(counts.into_iter().map(|((kept_file, removed_file), n_removed)| Overlap {
                    node: node.name.clone(),
                    kept_file,
                    removed_file,
                    n_removed,
                }));
            }
        }
        Ok(overlaps)
    }
}

/// The file of a `file:line`.
fn file_of(place: &str) -> String {
    place.rsplit_once(':').map_or(place, |(file, _)| file).to_owned()
}
