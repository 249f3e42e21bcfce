//! The primitive operations every write goes through. A finished name never shows half a file:
//! bytes are written beside, synced, then renamed once.

use super::failpoint::{self, Outcome};
use anyhow::Context;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Write,
    Fsync,
    Rename,
}

impl Operation {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "create" => Some(Self::Create),
            "write" => Some(Self::Write),
            "fsync" => Some(Self::Fsync),
            "rename" => Some(Self::Rename),
            _ => None,
        }
    }
}

/// Prefix of names that are still being written; anything that begins so may be deleted by the
/// coordinator, which holds the lock.
pub const TEMPORARY: &str = "tmp-";

/// A name beside `target` that no other process or thread uses.
pub fn temporary_beside(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    target.with_file_name(format!("{TEMPORARY}{}-{n}-{name}", std::process::id()))
}

/// The same error with what was done to which path and, when the disk is full, what to do about it.
pub fn explain(doing: &str, path: &Path, error: &io::Error) -> io::Error {
    let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let advice = if full { " (free space and run the same command again: finished shards are kept)" } else { "" };
    io::Error::new(error.kind(), format!("{doing} {}{advice}: {error}", path.display()))
}

pub fn create_dir(path: &Path) -> anyhow::Result<()> {
    let created = failpoint::check(Operation::Create).and_then(|_| fs::create_dir_all(path));
    Ok(created.map_err(|error| explain("creating folder", path, &error))?)
}

/// A new file, written piece by piece. Only for names inside a temporary folder, or temporary themselves.
/// Its errors name it.
pub struct NewFile {
    file: File,
    path: PathBuf,
}

impl NewFile {
    pub fn create(path: &Path) -> io::Result<Self> {
        let created = failpoint::check(Operation::Create).and_then(|_| File::create(path));
        let file = created.map_err(|error| explain("creating", path, &error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// After this the bytes survive a crash of the system.
    pub fn sync(self) -> io::Result<()> {
        let synced = failpoint::check(Operation::Fsync).and_then(|_| self.file.sync_all());
        synced.map_err(|error| explain("syncing", &self.path, &error))
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Outcome::TearAndDie = failpoint::check(Operation::Write)? {
            self.file.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
            failpoint::die();
        }
        self.file.write(bytes)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_some(bytes).map_err(|error| explain("writing", &self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A new text file, written line by line and synced at the end.
pub struct LineWriter(io::BufWriter<NewFile>);

impl LineWriter {
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(io::BufWriter::new(NewFile::create(path)?)))
    }

    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        self.0.write_all(text.as_bytes())?;
        Ok(self.0.write_all(b"\n")?)
    }

    pub fn close(self) -> anyhow::Result<()> {
        let file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(file.sync()?)
    }
}

/// Writes a new file and syncs it. Only for names inside a temporary folder, or temporary themselves.
pub fn write_new(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes)?;
    Ok(file.sync()?)
}

pub fn sync_dir(path: &Path) -> anyhow::Result<()> {
    let synced = failpoint::check(Operation::Fsync).and_then(|_| File::open(path)).and_then(|folder| folder.sync_all());
    Ok(synced.map_err(|error| explain("syncing folder", path, &error))?)
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = failpoint::check(Operation::Rename).and_then(|_| fs::rename(from, to));
    renamed.map_err(|error| explain("renaming to", to, &error))
}

/// Puts `bytes` under `path` in one step: readers see the old file or the new one.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let temporary = temporary_beside(path);
    let result =
        write_new(&temporary, bytes).and_then(|()| Ok(rename(&temporary, path)?)).and_then(|()| match path.parent() {
            // A bare file name stands in the current folder.
            Some(parent) if parent.as_os_str().is_empty() => sync_dir(Path::new(".")),
            Some(parent) => sync_dir(parent),
            None => Ok(()),
        });
    if result.is_err() {
        // Best effort: the name is temporary, `clean` and the next coordinator remove it too.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// What became of a finished temporary folder.
#[derive(Debug, PartialEq, Eq)]
pub enum Commit {
    Renamed,
    /// Somebody else had finished the same work; ours was discarded.
    Existed,
}

/// Gives a temporary folder, whose files are synced, its final name. If the name exists, the folder
/// is removed instead: equal work was finished before.
pub fn commit_dir(temporary: &Path, target: &Path) -> anyhow::Result<Commit> {
    sync_dir(temporary)?;
    let outcome = match rename(temporary, target) {
        Ok(()) => Commit::Renamed,
        Err(_) if target.is_dir() => {
            remove_dir(temporary)?;
            return Ok(Commit::Existed);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(parent) = target.parent() {
        sync_dir(parent)?;
    }
    Ok(outcome)
}

/// Opens a file, made if it is not there, and locks it if nobody else has; says whether it is ours. The system lets go of a
/// lock when the process ends, however it ends.
pub fn try_lock(path: &Path) -> anyhow::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok((file, true)),
        Err(TryLockError::WouldBlock) => Ok((file, false)),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
    }
}

/// Removes a folder and all below it; no error when it is not there.
pub fn remove_dir(path: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a file; no error when it is not there.
pub fn remove_file(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Reads a whole file of at most `limit` bytes; the limit is checked before and while reading.
pub fn read_limited(path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let context = || format!("reading {}", path.display());
    let file = File::open(path).with_context(context)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).with_context(context)?;
    if bytes.len() as u64 > limit {
        anyhow::bail!("{} is larger than the {limit} bytes allowed for it", path.display());
    }
    Ok(bytes)
}

/// Largest manifest or configuration file that is read into memory.
pub const MANIFEST_LIMIT: u64 = 256 << 20;

pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let bytes = read_limited(path, MANIFEST_LIMIT)?;
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{} is not UTF-8 text", path.display()))
}

/// Names in a folder, sorted; empty when the folder is not there.
pub fn list(path: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("listing {}", path.display())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("listing {}", path.display()))?;
        match entry.file_name().into_string() {
            Ok(name) => names.push(name),
            Err(name) => anyhow::bail!("{}: the file name {} is not UTF-8; rename it", path.display(), name.display()),
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_folder_wins_over_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("shard");
        for (text, expected) in [("one", Commit::Renamed), ("two", Commit::Existed)] {
            let temporary = temporary_beside(&target);
            create_dir(&temporary).unwrap();
            write_new(&temporary.join("part"), text.as_bytes()).unwrap();
            assert_eq!(commit_dir(&temporary, &target).unwrap(), expected);
        }
        assert_eq!(read_text(&target.join("part")).unwrap(), "one");
        assert_eq!(list(folder.path()).unwrap(), ["shard"]);
    }

    #[test]
    fn large_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write_atomic(&path, b"12345").unwrap();
        assert!(read_limited(&path, 4).is_err());
        assert_eq!(read_limited(&path, 5).unwrap(), b"12345");
    }
}
