//! What models said, counted: the first thing to look at when a judge is new.

use crate::dag::Node;
use crate::record::Row;
use crate::record::from_batch;
use crate::record::model::JudgementRow;
use crate::stage::PortKind;
use crate::store::{parquet, shard};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What one model said to one question about the records of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    pub node: String,
    pub question: String,
    /// `provider/model`
    pub model: String,
    /// The name of the model whose answers are judged; null where records are.
    pub about: Option<String>,
    pub n: u64,
    /// Answers by what they say.
    pub said: BTreeMap<String, u64>,
    /// Calls without an answer, by reason.
    pub unanswered: BTreeMap<String, u64>,
}

/// The judgements of a node, counted; none if its stage has no judges.
pub fn verdicts(node: &Node, build_dir: &Path, n_shards: u32) -> anyhow::Result<Vec<VerdictCounts>> {
    let mut counted: BTreeMap<(String, String, Option<String>), VerdictCounts> = BTreeMap::new();
    for_each(node, build_dir, n_shards, |row| {
        let key = (row.question.clone(), row.model.clone(), row.about.clone());
        let counts = counted.entry(key).or_insert_with(|| VerdictCounts {
            node: node.name.clone(),
            question: row.question,
            model: row.model,
            about: row.about,
            n: 0,
            said: BTreeMap::new(),
            unanswered: BTreeMap::new(),
        });
        counts.n += 1;
        let place = if row.answered { &mut counts.said } else { &mut counts.unanswered };
        *place.entry(row.verdict).or_default() += 1;
        Ok(())
    })?;
    Ok(counted.into_values().collect())
}

/// Every judgement of a node, in the order of its shards.
pub fn for_each(
    node: &Node,
    build_dir: &Path,
    n_shards: u32,
    mut visit: impl FnMut(JudgementRow) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let ports =
        node.stage.outputs.iter().filter(|port| port.kind == PortKind::Side && port.row.name == JudgementRow::NAME);
    for port in ports {
        for index in 0..n_shards {
            let path = shard::shard_dir(build_dir, index).join(shard::side_file(port.name));
            if path.is_file() {
                from_batch::<JudgementRow>(&parquet::read(&path)?)?.into_iter().try_for_each(&mut visit)?;
            }
        }
    }
    Ok(())
}
