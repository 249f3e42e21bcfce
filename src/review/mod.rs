//! `casemill review`: what needs a person goes out as JSON Lines or CSV, and comes back as a resource of the pipeline, so that
//! importing it runs only what depends on it again. There are two loops: decisions whether a question stays
//! ([`decisions`], the last part of the filter of MedRoundsQA, 3.1), and records corrected value by value ([`records`], its
//! manual revision and appendix G).

pub mod decisions;
pub mod records;

use crate::engine::Session;
use crate::engine::stream::Upstream;
use crate::error::usage;
use crate::record::ledger::LedgerRow;
use crate::record::{Hash, RecordId, from_batch};
use crate::store::{fs, parquet, shard};
use anyhow::Context;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The node of a stage.
///
/// # Errors
/// The pipeline has none: a usage error that says what would be in vain.
fn node_of_stage(session: &Session, stage: &str, in_vain: &str) -> anyhow::Result<usize> {
    session
        .graph
        .nodes
        .iter()
        .position(|node| node.stage.name == stage)
        .ok_or_else(|| usage(format!("pipeline {} has no node of stage {stage}, so {in_vain}", session.graph.pipeline)))
}

/// The file of a resource that a node reads, and its name in the pipeline.
fn resource_file(session: &Session, node: usize, resource: &str) -> anyhow::Result<(PathBuf, String)> {
    let name = session.node(node)?.resources.get(resource).context("a stage has the resources it declares")?;
    Ok((session.project.pipelines_dir().join(name), name.to_owned()))
}

/// Records that a node dropped, with the reason and what decided.
fn exits_of(session: &Session, upstream: &Upstream<'_>, node: usize) -> anyhow::Result<Vec<(RecordId, String)>> {
    let mut exits = Vec::new();
    let Some(folder) = upstream.plans.get(node).and_then(|plan| plan.build_dir.as_deref()) else { return Ok(exits) };
    for folder in shard::shard_dirs(folder)? {
        let path = folder.join(shard::LEDGER);
        if path.is_file() {
            let rows = from_batch::<LedgerRow>(&parquet::read(&path)?)?;
            let name = &session.node(node)?.name;
            exits
                .extend(rows.into_iter().map(|row| (row.record_id, format!("{name}: {}: {}", row.reason, row.detail))));
        }
    }
    Ok(exits)
}

/// The `n` candidates whose hash with the seed is least: the same ones when others are added or removed.
fn draw<T: Ord>(candidates: Vec<(RecordId, T)>, n: usize, seed: u64) -> Vec<(RecordId, T)> {
    let mut ranked: Vec<(Hash, (RecordId, T))> = candidates
        .into_iter()
        .map(|candidate| (Hash::of(format!("{seed} {}", candidate.0).as_bytes()), candidate))
        .collect();
    ranked.sort();
    ranked.into_iter().take(n).map(|(_, candidate)| candidate).collect()
}

/// Adds lines to those of a file, in their order, and counts the added. A line that is there is not added again, but the last
/// one of each key (who said it, and of what) is then the last of this key in the file: somebody can return to an earlier
/// opinion, and importing the same lines twice changes nothing.
fn add_lines<T: PartialEq, K: Ord>(stored: &mut Vec<T>, given: Vec<T>, key: impl Fn(&T) -> K) -> u64 {
    let mut places: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (place, line) in stored.iter().enumerate() {
        places.entry(key(line)).or_default().push(place);
    }
    let last: BTreeMap<K, usize> = given.iter().enumerate().map(|(place, line)| (key(line), place)).collect();
    let mut n_new = 0;
    for (place, line) in given.into_iter().enumerate() {
        let is_last = last.get(&key(&line)) == Some(&place);
        let known = places.entry(key(&line)).or_default();
        let is_line = |place: &usize| stored.get(*place) == Some(&line);
        let is_there = if is_last { known.last().is_some_and(is_line) } else { known.iter().any(is_line) };
        if !is_there {
            known.push(stored.len());
            stored.push(line);
            n_new += 1;
        }
    }
    n_new
}

/// Writes the lines of a file of decisions or corrections.
fn write_lines<T: Serialize>(path: &Path, lines: &[T]) -> anyhow::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    fs::write_atomic(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_counts_and_the_same_lines_change_nothing() {
        let mut stored = vec![("ann", 1), ("ben", 1)];
        let mut add = |given: &[(&'static str, u32)]| {
            let n_new = add_lines(&mut stored, given.to_vec(), |line| line.0);
            (n_new, stored.len())
        };
        assert_eq!(add(&[("ann", 1), ("ben", 1)]), (0, 2));
        assert_eq!(add(&[("ann", 2), ("ann", 3)]), (2, 4));
        assert_eq!(add(&[("ann", 2), ("ann", 3)]), (0, 4));
        // Back to the first opinion.
        assert_eq!(add(&[("ann", 1)]), (1, 5));
        assert_eq!(add(&[("ann", 1)]), (0, 5));
        assert_eq!(add(&[("eve", 2), ("eve", 1), ("eve", 2)]), (3, 8));
        assert_eq!(add(&[("eve", 2), ("eve", 1), ("eve", 2)]), (0, 8));
    }
}
