//! The only code that touches the file system: atomic writes, Parquet, manifests, raw files.
//!
//! ```text
//! <data>/work/format.json  .lock
//! <data>/work/<pipeline>/<node>/current.json
//! <data>/work/<pipeline>/<node>/<fingerprint>/{cut.json, columns-00000/, shard-00000/, stage.json}
//! <data>/work/<pipeline>/runs/<time>.jsonl
//! <data>/media/ab/abcd…        derived media by hash
//! <data>/cache/raw-hashes.jsonl  unpacked/<hash>
//! <data>/replies/                replies of models, by class of access; see [`replies`]
//! <data>/release/<pipeline>-<version>/
//! ```

pub mod archive;
pub mod clean;
pub mod failpoint;
pub mod fs;
pub mod journal;
pub mod manifest;
pub mod parquet;
pub mod raw;
pub mod replies;
pub mod shard;

use crate::error::usage;
use crate::record::Hash;
use anyhow::Context;
use manifest::{FormatFile, STORE_FORMAT};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The raw and data folders of one run.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub raw: PathBuf,
    pub data: PathBuf,
}

impl Workspace {
    pub fn work_dir(&self) -> PathBuf {
        self.data.join("work")
    }

    pub fn pipeline_dir(&self, pipeline: &str) -> PathBuf {
        self.work_dir().join(pipeline)
    }

    pub fn node_dir(&self, pipeline: &str, node: &str) -> PathBuf {
        self.pipeline_dir(pipeline).join(node)
    }

    pub fn build_dir(&self, pipeline: &str, node: &str, fingerprint: &Hash) -> PathBuf {
        self.node_dir(pipeline, node).join(fingerprint.short())
    }

    pub fn cache_dir(&self) -> PathBuf {
        self.data.join("cache")
    }

    /// Beside `work` and `cache`: it is input data, and nothing removes it.
    pub fn replies_dir(&self) -> PathBuf {
        self.data.join("replies")
    }

    pub fn unpacked_path(&self, sha256: &Hash) -> PathBuf {
        self.cache_dir().join("unpacked").join(sha256.as_str())
    }

    pub fn media_path(&self, sha256: &Hash) -> PathBuf {
        let name = sha256.as_str();
        self.data.join("media").join(name.get(..2).unwrap_or_default()).join(name)
    }

    pub fn release_dir(&self) -> PathBuf {
        self.data.join("release")
    }

    /// Refuses a store that a newer casemill wrote; a missing one is fine.
    pub fn check_format(&self) -> anyhow::Result<()> {
        let path = self.work_dir().join("format.json");
        if !path.exists() {
            return Ok(());
        }
        let text = fs::read_text(&path)?;
        let format: FormatFile =
            serde_json::from_str(&text).with_context(|| format!("{} is not a format file", path.display()))?;
        if format.store_format > STORE_FORMAT {
            return Err(usage(format!(
                "{} was written by a newer casemill (store format {}, this one knows {STORE_FORMAT}): use that version, or another --data folder",
                self.work_dir().display(),
                format.store_format
            )));
        }
        Ok(())
    }

    /// Makes the folders, writes the format and takes the lock.
    pub fn lock(&self, purpose: &str) -> anyhow::Result<Lock> {
        fs::create_dir(&self.work_dir())?;
        self.check_format()?;
        let path = self.work_dir().join(".lock");
        let (mut file, ours) = fs::try_lock(&path)?;
        if !ours {
            let mut holder = String::new();
            // Who holds it is a courtesy; the refusal stands without it.
            let _ = Read::by_ref(&mut file).take(1000).read_to_string(&mut holder);
            return Err(usage(format!(
                "another casemill works on {} ({}): wait for it, or use another --data folder",
                self.data.display(),
                holder.trim()
            )));
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{purpose}, process {}", std::process::id()))
            .map_err(|error| fs::explain("writing", &path, &error))?;
        let format = self.work_dir().join("format.json");
        if !format.exists() {
            fs::write_atomic(&format, &manifest::to_json(&FormatFile { store_format: STORE_FORMAT })?)?;
        }
        Ok(Lock { _file: file })
    }
}

/// Held while a coordinator works; the system lets go of it when the process ends, however it ends.
pub struct Lock {
    _file: File,
}

/// Reads a JSON file of ours; `None` when it is not there.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_text(path)?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("{} is damaged; remove its folder and build again", path.display()))
}
