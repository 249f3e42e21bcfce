//! Removing what nobody needs any more: builds that are not a node's last, temporary names, unpacked copies.

use super::manifest::CurrentFile;
use super::{Workspace, fs, read_json};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Removes, or only lists, what can go; gives each path and its bytes. The caller holds the lock.
///
/// Kept: the last build of every node, releases, derived media, stored replies, the cache of raw hashes.
pub fn clean(
    workspace: &Workspace,
    older_than: Option<Duration>,
    dry_run: bool,
) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let mut candidates = Vec::new();
    for pipeline in fs::list(&workspace.work_dir())? {
        let pipeline_dir = workspace.pipeline_dir(&pipeline);
        if !pipeline_dir.is_dir() {
            continue;
        }
        for node in fs::list(&pipeline_dir)? {
            let node_dir = pipeline_dir.join(&node);
            if node == "runs" {
                // Run logs go by age alone.
                if older_than.is_some() {
                    candidates.extend(fs::list(&node_dir)?.into_iter().map(|name| node_dir.join(name)));
                }
                continue;
            }
            if !node_dir.is_dir() {
                continue;
            }
            let current: Option<CurrentFile> = read_json(&node_dir.join("current.json"))?;
            let current = current.map(|current| current.fingerprint.short().to_owned());
            for build in fs::list(&node_dir)? {
                if build != "current.json" && Some(&build) != current.as_ref() {
                    candidates.push(node_dir.join(build));
                }
            }
        }
    }
    for folder in [workspace.cache_dir().join("unpacked"), workspace.release_dir()] {
        for name in fs::list(&folder)? {
            if name.starts_with(fs::TEMPORARY) || folder.ends_with("unpacked") {
                candidates.push(folder.join(name));
            }
        }
    }
    let mut removed = Vec::new();
    for path in candidates {
        if older_than.is_some_and(|age| !is_older(&path, age)) {
            continue;
        }
        let bytes = size(&path)?;
        if !dry_run {
            if path.is_dir() {
                fs::remove_dir(&path)?;
            } else {
                std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
        removed.push((path, bytes));
    }
    Ok(removed)
}

fn is_older(path: &Path, age: Duration) -> bool {
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok()).is_some_and(|since| since >= age)
}

fn size(path: &Path) -> anyhow::Result<u64> {
    let metadata = std::fs::symlink_metadata(path).with_context(|| format!("reading {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut total = 0;
    for name in fs::list(path)? {
        total += size(&path.join(name))?;
    }
    Ok(total)
}
