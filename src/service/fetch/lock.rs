//! What a source's raw folder was fetched as: `fetch.lock.json`; and the lock that keeps a second fetch out.

use crate::error::{input, usage};
use crate::record::Hash;
use crate::store::fs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

pub use crate::store::raw::{FETCH_HELD as HELD_NAME, FETCH_LOCK as FILE_NAME};

/// One file as it was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    pub url: String,
    pub sha256: Hash,
    pub bytes: u64,
    /// As the server wrote them, to ask later whether the file has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// As the service says it of the file, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
    /// As the service says it of the work that the file belongs to; absent where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The day on which these bytes came, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<String>,
}

/// `{"format": 1, "files": {path: Locked}}`, sorted by path; the same files give the same bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    files: BTreeMap<String, Locked>,
}

const FORMAT: u32 = 1;

/// The lock file of one folder. Files that a plan no longer names stay in it.
pub struct LockFile {
    path: PathBuf,
    content: Content,
    saved: bool,
}

impl LockFile {
    /// Reads the lock file; empty when there is none.
    ///
    /// # Errors
    /// A damaged lock file, or one of a newer casemill.
    pub fn load(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE_NAME);
        if !path.exists() {
            return Ok(Self { path, content: Content { format: FORMAT, files: BTreeMap::new() }, saved: true });
        }
        let content: Content = serde_json::from_str(&fs::read_text(&path)?).map_err(|error| {
            input(format!("{} is damaged ({error}); remove it to fetch whatever the servers have now", path.display()))
        })?;
        if content.format != FORMAT {
            return Err(usage(format!("{} has format {}, not {FORMAT}", path.display(), content.format)));
        }
        Ok(Self { path, content, saved: true })
    }

    pub fn get(&self, path: &str) -> Option<&Locked> {
        self.content.files.get(path)
    }

    /// Notes a file; [`Self::save`] writes it down. The day of bytes that were there before stays.
    pub fn insert(&mut self, path: &str, mut locked: Locked) {
        if let Some(before) = self.content.files.get(path)
            && before.sha256 == locked.sha256
            && before.url == locked.url
        {
            locked.fetched = before.fetched.clone();
        }
        if self.content.files.get(path) != Some(&locked) {
            self.content.files.insert(path.to_owned(), locked);
            self.saved = false;
        }
    }

    /// Writes the lock file in one step, if there is anything new.
    pub fn save(&mut self) -> anyhow::Result<()> {
        if self.saved {
            return Ok(());
        }
        let mut text = serde_json::to_string_pretty(&self.content)?;
        text.push('\n');
        fs::write_atomic(&self.path, text.as_bytes())?;
        self.saved = true;
        Ok(())
    }
}

/// Held while a fetch writes into a folder; the system lets go of it when the process ends, however it ends.
pub struct Held {
    _file: File,
}

impl Held {
    /// Takes the folder, which exists.
    ///
    /// # Errors
    /// When another fetch holds it.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(HELD_NAME);
        let (file, ours) = fs::try_lock(&path)?;
        if !ours {
            return Err(usage(format!("another fetch writes into {}: wait for it", folder.display())));
        }
        Ok(Self { _file: file })
    }
}
