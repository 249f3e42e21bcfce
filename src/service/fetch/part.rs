//! A file that is not complete yet: what is known of it, and how a later call goes on.

use super::*;

/// Beside a part: what it is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartState {
    pub(super) url: String,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) length: Option<u64>,
}

/// A part that can be continued.
pub(super) struct Resumed {
    pub(super) state: PartState,
    pub(super) start: u64,
    /// The `If-Range` that keeps two versions of a file from being mixed.
    pub(super) validator: String,
}

/// Whether an answer with 206 is the rest of the part.
///
/// # Errors
/// Why not; otherwise the length of the whole file, if known.
pub(super) fn continues(response: &Response, resumed: &Resumed, now: &PartState) -> Result<Option<u64>, String> {
    let range = text_of(response, &header::CONTENT_RANGE).ok_or("a part without Content-Range")?;
    let wrong = || format!("asked for the bytes from {}, got Content-Range `{range}`", resumed.start);
    let (span, total) = range.strip_prefix("bytes ").and_then(|range| range.split_once('/')).ok_or_else(wrong)?;
    let (start, end) = span.split_once('-').ok_or_else(wrong)?;
    let (start, end): (u64, u64) = start.parse().ok().zip(end.parse().ok()).ok_or_else(wrong)?;
    let total: Option<u64> = if total == "*" { None } else { Some(total.parse().map_err(|_| wrong())?) };
    let to_the_end = total.is_none_or(|total| end.checked_add(1) == Some(total));
    if start != resumed.start || !to_the_end {
        return Err(wrong());
    }
    let (known, total) = (resumed.state.length, total.or(end.checked_add(1)));
    if known.is_some() && known != total {
        return Err(wrong());
    }
    if now.etag.is_some() && resumed.state.etag.is_some() && now.etag != resumed.state.etag {
        return Err("the file changed between two parts".to_owned());
    }
    Ok(total)
}

/// `<name>.part` and `<name>.part.json`.
pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) state: PathBuf,
}

/// A part that is being written.
pub(super) struct Writing {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) hasher: Sha256,
    /// Length of the part so far.
    pub(super) bytes: u64,
}

impl Part {
    pub(super) fn new(target: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self { path: beside(FETCH_PART), state: beside(FETCH_PART_STATE) }
    }

    pub(super) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// The part, if it is one of this URL that the server can continue safely.
    pub(super) fn resume(&self, url: &str) -> anyhow::Result<Option<Resumed>> {
        let bytes = self.bytes();
        if bytes == 0 || !self.state.exists() {
            return Ok(None);
        }
        // A damaged one is as good as none.
        let text = fs::read_text(&self.state).unwrap_or_default();
        let Ok(state) = serde_json::from_str::<PartState>(&text) else { return Ok(None) };
        // A weak tag does not promise the same bytes.
        let strong = state.etag.clone().filter(|etag| !etag.starts_with("W/"));
        let Some(validator) = strong.or_else(|| state.last_modified.clone()) else { return Ok(None) };
        if state.url != url {
            return Ok(None);
        }
        // There is no range behind the last byte, so a complete part asks for that one again.
        let start = state.length.map_or(bytes, |length| bytes.min(length.saturating_sub(1)));
        Ok((start > 0).then_some(Resumed { state, start, validator }))
    }

    pub(super) fn begin(&self, state: &PartState) -> anyhow::Result<Writing> {
        // In this order no part stands beside the state of another.
        fs::remove_file(&self.path)?;
        fs::write_atomic(&self.state, &serde_json::to_vec(state)?)?;
        let file = File::create(&self.path).map_err(|error| fs::explain("creating", &self.path, &error))?;
        Ok(Writing { file, path: self.path.clone(), hasher: Sha256::new(), bytes: 0 })
    }

    /// Cuts the part to `start` bytes and goes on behind them.
    pub(super) fn go_on(&self, start: u64) -> anyhow::Result<Writing> {
        let mut hasher = Sha256::new();
        let mut open = || {
            let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            file.set_len(start)?;
            let bytes = feed(&mut hasher, &mut file)?;
            file.seek(SeekFrom::Start(bytes))?;
            Ok((file, bytes))
        };
        let (file, bytes) = open().map_err(|error: io::Error| fs::explain("opening", &self.path, &error))?;
        Ok(Writing { file, path: self.path.clone(), hasher, bytes })
    }

    pub(super) fn check(&self, kind: &FileKind) -> anyhow::Result<Result<(), Misfit>> {
        let sample = File::open(&self.path).and_then(|mut file| Sample::read(&mut file));
        Ok(kinds::check(kind, &sample.map_err(|error| fs::explain("reading", &self.path, &error))?))
    }

    /// Gives the complete and synced part its name.
    pub(super) fn place(&self, target: &Path) -> anyhow::Result<()> {
        std::fs::rename(&self.path, target).map_err(|error| fs::explain("renaming to", target, &error))?;
        if let Some(folder) = target.parent() {
            fs::sync_dir(folder)?;
        }
        fs::remove_file(&self.state)
    }

    pub(super) fn discard(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.path)?;
        fs::remove_file(&self.state)
    }
}

impl Writing {
    pub(super) fn write(&mut self, chunk: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(chunk).map_err(|error| fs::explain("writing", &self.path, &error))?;
        self.hasher.update(chunk);
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    /// After this the part survives a crash of the system.
    pub(super) fn finish(self) -> anyhow::Result<(Hash, u64)> {
        self.file.sync_all().map_err(|error| fs::explain("syncing", &self.path, &error))?;
        Ok((Hash::from_digest(self.hasher.finalize().into()), self.bytes))
    }
}
