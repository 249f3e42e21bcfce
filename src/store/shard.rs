//! Shards: a folder written beside, synced and renamed once.

use super::fs::{self, Commit};
use super::manifest::{ShardFile, ShardManifest, ShardSummary, to_json};
use super::{Workspace, parquet, read_json};
use crate::record::ledger::{LedgerRow, SourceCounts};
use crate::record::{Hash, to_batch};
use anyhow::Context;
use arrow::array::RecordBatch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const PART: &str = "part.parquet";
pub const LEDGER: &str = "ledger.parquet";

pub fn side_file(port: &str) -> String {
    format!("side-{port}.parquet")
}

/// `shard-00000`
pub fn shard_dir(build: &Path, index: u32) -> PathBuf {
    build.join(format!("shard-{index:05}"))
}

/// The shard folders that are there, in order.
pub fn shard_dirs(build: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let names = fs::list(build)?.into_iter().filter(|name| name.starts_with("shard-"));
    Ok(names.map(|name| build.join(name)).collect())
}

/// `columns-00000`: what a table node collects before it decides.
pub fn columns_dir(build: &Path, index: u32) -> PathBuf {
    build.join(format!("columns-{index:05}"))
}

/// What goes into one shard folder.
#[derive(Default)]
pub struct ShardContent<'a> {
    pub part: Option<&'a RecordBatch>,
    pub ledger: &'a [LedgerRow],
    pub sides: BTreeMap<&'a str, &'a RecordBatch>,
    pub media: BTreeMap<Hash, Vec<u8>>,
    pub raw_media: BTreeMap<Hash, String>,
    pub counts: SourceCounts,
    pub replies: BTreeMap<Hash, Hash>,
    pub failed_calls: BTreeMap<Hash, String>,
}

/// Writes and commits a shard. If it exists, the work is discarded.
pub fn commit(workspace: &Workspace, target: &Path, content: ShardContent<'_>) -> anyhow::Result<Commit> {
    for (hash, bytes) in &content.media {
        let path = workspace.media_path(hash);
        if !path.is_file() {
            if let Some(parent) = path.parent() {
                fs::create_dir(parent)?;
            }
            fs::write_atomic(&path, bytes)?;
        }
    }
    let temporary = fs::temporary_beside(target);
    fs::create_dir(&temporary)?;
    let commit = write_files(&temporary, content).and_then(|()| fs::commit_dir(&temporary, target));
    if commit.is_err() {
        // Best effort: the name is temporary and will be removed by the next coordinator.
        let _ = fs::remove_dir(&temporary);
    }
    commit.with_context(|| format!("committing {}", target.display()))
}

fn write_files(folder: &Path, content: ShardContent<'_>) -> anyhow::Result<()> {
    let mut files = BTreeMap::new();
    let mut write = |name: String, batch: &RecordBatch| -> anyhow::Result<()> {
        let (sha256, bytes) = parquet::write_new(&folder.join(&name), batch)?;
        files.insert(name, ShardFile { sha256, bytes, rows: batch.num_rows() as u64 });
        Ok(())
    };
    if let Some(part) = content.part {
        write(PART.to_owned(), part)?;
    }
    if !content.ledger.is_empty() {
        write(LEDGER.to_owned(), &to_batch(content.ledger)?)?;
    }
    for (port, batch) in &content.sides {
        write(side_file(port), batch)?;
    }
    let manifest = ShardManifest {
        files,
        counts: content.counts,
        media: content.media.iter().map(|(hash, bytes)| (hash.to_string(), bytes.len() as u64)).collect(),
        raw_media: content.raw_media.into_iter().map(|(hash, path)| (hash.to_string(), path)).collect(),
        replies: content.replies,
        failed_calls: content.failed_calls,
    };
    fs::write_new(&folder.join("shard.json"), &to_json(&manifest)?)
}

/// The manifest of a committed shard and its summary; `None` when the shard is not there.
pub fn read_manifest(folder: &Path) -> anyhow::Result<Option<(ShardManifest, ShardSummary)>> {
    let path = folder.join("shard.json");
    let Some(manifest) = read_json::<ShardManifest>(&path)? else { return Ok(None) };
    let summary = ShardSummary {
        hash: Hash::of(&to_json(&manifest)?),
        rows: manifest.rows(PART),
        bytes: manifest.files.values().map(|file| file.bytes).sum(),
    };
    Ok(Some((manifest, summary)))
}

/// Removes what an interrupted process left behind in a folder. Only for the holder of the lock.
pub fn remove_temporary(folder: &Path) -> anyhow::Result<()> {
    for name in fs::list(folder)? {
        if name.starts_with(fs::TEMPORARY) {
            let path = folder.join(&name);
            if path.is_dir() {
                fs::remove_dir(&path)?;
            } else {
                std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
    }
    Ok(())
}
