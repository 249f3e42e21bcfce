//! The raw folder: finding, hashing, unpacking and opening the files of a source.

use super::Workspace;
use super::fs::{self, NewFile};
use super::journal::Journal;
use crate::error::input;
use crate::record::Hash;
use crate::record::raw::RawFile;
use crate::source::tables;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A line of `cache/raw-hashes.jsonl`: a file's identity on this machine and its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CachedHash {
    path: PathBuf,
    bytes: u64,
    mtime_ns: i128,
    inode: u64,
    sha256: Hash,
}

/// (path, size, mtime, inode) → SHA-256, so that unchanged files are not read again.
pub struct RawHashes {
    path: PathBuf,
    known: BTreeMap<PathBuf, CachedHash>,
    fresh: Vec<CachedHash>,
}

impl RawHashes {
    /// Reads the cache. A torn last line, as a crash leaves it, is skipped; [`Self::save`] repairs it.
    pub fn load(workspace: &Workspace) -> Self {
        let path = workspace.cache_dir().join("raw-hashes.jsonl");
        let text = std::fs::read(&path).unwrap_or_default();
        let entries =
            text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<CachedHash>(line).ok());
        let known = entries.map(|entry| (entry.path.clone(), entry)).collect();
        Self { path, known, fresh: Vec::new() }
    }

    /// The hash and size of a raw file.
    pub fn hash(&mut self, path: &Path, shown: &str) -> anyhow::Result<(Hash, u64)> {
        let metadata = std::fs::metadata(path).map_err(|error| input(format!("cannot read {shown}: {error}")))?;
        if !metadata.is_file() {
            // Opening a pipe would wait for a writer.
            return Err(input(format!("cannot read {shown}: it is not a regular file")));
        }
        let key = std::path::absolute(path)?;
        let mtime_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        if let Some(known) = self.known.get(&key)
            && (known.bytes, known.mtime_ns, known.inode) == (metadata.len(), mtime_ns, metadata.ino())
        {
            return Ok((known.sha256.clone(), known.bytes));
        }
        let (sha256, bytes) = hash_file(path).map_err(|error| input(format!("cannot read {shown}: {error:#}")))?;
        let entry = CachedHash { path: key.clone(), bytes, mtime_ns, inode: metadata.ino(), sha256: sha256.clone() };
        // Only what the size and time from before the reading still describe may be remembered.
        if bytes == metadata.len() {
            self.fresh.push(entry.clone());
            self.known.insert(key, entry);
        }
        Ok((sha256, bytes))
    }

    /// Appends what was hashed anew. Only for the holder of the lock.
    pub fn save(&mut self) -> anyhow::Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        let mut journal = match Journal::open::<CachedHash>(&self.path) {
            Ok((journal, _, _)) => journal,
            Err(error) if error.downcast_ref::<io::Error>().is_some() => return Err(error),
            // A damaged cache is worth nothing: start it again.
            Err(_) => {
                std::fs::remove_file(&self.path).with_context(|| format!("removing {}", self.path.display()))?;
                Journal::open::<CachedHash>(&self.path)?.0
            }
        };
        journal.append_all(&std::mem::take(&mut self.fresh))
    }
}

/// SHA-256 and length of a file, read in pieces.
pub fn hash_file(path: &Path) -> anyhow::Result<(Hash, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; 1 << 18];
    let mut total = 0u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                total += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((Hash::from_digest(hasher.finalize().into()), total))
}

/// Opens the readable bytes of a raw file at an offset.
pub fn open(file: &RawFile, start: u64) -> anyhow::Result<BufReader<File>> {
    let open = || -> io::Result<BufReader<File>> {
        let mut readable = File::open(&file.readable)?;
        readable.seek(SeekFrom::Start(start))?;
        Ok(BufReader::with_capacity(1 << 18, readable))
    };
    open().map_err(|error| input(format!("cannot read {}: {error}", file.path)))
}

/// Names in a source's folder that match one of the patterns, sorted: `*` stands for any characters but `/`, so `*/*` means
/// every file in every folder below. Folders are none of them.
pub fn matching(folder: &Path, patterns: &[String]) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let deepest = patterns.iter().map(|pattern| pattern.matches('/').count()).max().unwrap_or_default();
    list_matching(folder, "", deepest, patterns, &mut found)?;
    found.sort_unstable();
    Ok(found)
}

fn list_matching(
    folder: &Path,
    prefix: &str,
    deeper: usize,
    patterns: &[String],
    found: &mut Vec<String>,
) -> anyhow::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(input(format!("cannot read {}: {error}", folder.display()))),
    };
    for entry in entries {
        let entry = entry.map_err(|error| input(format!("cannot read {}: {error}", folder.display())))?;
        // A name that is not UTF-8 matches no pattern; `fs::list` reports it.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_name_of_fetch(&name) {
            continue;
        }
        let shown = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(|error| input(format!("cannot read {shown}: {error}")))?;
        // A link that leads nowhere stays in the list: reading it gives an error that names it.
        if kind.is_dir() || (kind.is_symlink() && entry.path().is_dir()) {
            if deeper > 0 {
                list_matching(&entry.path(), &format!("{shown}/"), deeper - 1, patterns, found)?;
            }
        } else if patterns.iter().any(|pattern| matches_path(pattern, &shown)) {
            found.push(shown);
        }
    }
    Ok(())
}

/// Part by part, so that a `*` never stands for a `/`.
fn matches_path(pattern: &str, path: &str) -> bool {
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if matches(pattern, part) => {}
            _ => return false,
        }
    }
}

/// What `casemill sources fetch` writes beside the files: where they came from, that it is at work, and files that are not
/// complete.
pub const FETCH_LOCK: &str = "fetch.lock.json";
pub const FETCH_HELD: &str = ".fetch.lock";
pub const FETCH_PART: &str = ".part";
pub const FETCH_PART_STATE: &str = ".part.json";

/// Whether a name in a raw folder is one that a fetch writes for itself.
pub fn is_name_of_fetch(name: &str) -> bool {
    name == FETCH_LOCK || name == FETCH_HELD || name.ends_with(FETCH_PART) || name.ends_with(FETCH_PART_STATE)
}

fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn is_gzip(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}

/// Gives the readable form of a raw file: itself, or for gzip (found by content, not by name) its
/// unpacked copy in the cache, named by the hash of the packed file.
///
/// # Errors
/// A truncated or damaged gzip file, and one that unpacks to more than `limit` bytes.
pub fn readable(workspace: &Workspace, path: &Path, shown: &str, sha256: &Hash, limit: u64) -> anyhow::Result<PathBuf> {
    if !is_gzip(path).map_err(|error| input(format!("cannot read {shown}: {error}")))? {
        return Ok(path.to_owned());
    }
    let target = workspace.unpacked_path(sha256);
    if target.is_file() {
        return Ok(target);
    }
    write_cached(&target, |out| unpack(path, shown, out, limit))?;
    Ok(target)
}

/// Gives a table (CSV, Parquet, JSON array) as lines: a converted copy in the cache, named by the hash of the raw file.
/// A file that has lines is given as it is.
pub fn as_lines(workspace: &Workspace, file: &RawFile) -> anyhow::Result<PathBuf> {
    let form = tables::form(&file.path, &file.readable)
        .map_err(|error| input(format!("cannot read {}: {error:#}", file.path)))?;
    if form == tables::Form::Lines {
        return Ok(file.readable.clone());
    }
    let packed = workspace.unpacked_path(&file.sha256);
    let target = packed.with_file_name(format!("{}-lines{}", file.sha256, tables::REVISION));
    if target.is_file() {
        return Ok(target);
    }
    write_cached(&target, |out| tables::write_lines(form, &file.path, &file.readable, out))
        .with_context(|| format!("reading {}", file.path))?;
    Ok(target)
}

/// Makes a copy in the cache. Renaming over an equal file is harmless: the name is the hash of what it is a copy of.
fn write_cached(
    target: &Path,
    write: impl FnOnce(&mut io::BufWriter<NewFile>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    target.parent().map_or(Ok(()), fs::create_dir)?;
    let temporary = fs::temporary_beside(target);
    let result = || -> anyhow::Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 18, NewFile::create(&temporary)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
        Ok(fs::rename(&temporary, target)?)
    };
    let result = result();
    if result.is_err() {
        // Best effort: the name is temporary, `clean` removes it too.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// Only what is wrong with the packed file is a fault of the input; a disk that is full is not.
fn unpack(packed: &Path, shown: &str, out: &mut impl Write, limit: u64) -> anyhow::Result<()> {
    let packed = File::open(packed).map_err(|error| input(format!("cannot read {shown}: {error}")))?;
    let mut decoder = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 18, packed));
    let mut buffer = vec![0u8; 1 << 18];
    let (mut n_bytes, mut n_lines) = (0u64, 0u64);
    loop {
        let n = match decoder.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(input(format!(
                    "{shown}: the gzip file is cut off: it ends after {n_lines} whole lines ({n_bytes} bytes unpacked); fetch the file again"
                )));
            }
            Err(error) => {
                return Err(input(format!(
                    "{shown}: the gzip file is damaged after {n_lines} whole lines ({n_bytes} bytes unpacked): {error}; fetch the file again"
                )));
            }
        };
        let chunk = buffer.get(..n).unwrap_or_default();
        n_bytes += n as u64;
        n_lines += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        if n_bytes > limit {
            return Err(input(format!(
                "{shown}: it unpacks to more than {limit} bytes; raise `max_unpacked_bytes` of the source if that is right"
            )));
        }
        out.write_all(chunk)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*.jsonl", "test.jsonl", true),
            ("*.jsonl", "test.jsonl.gz", false),
            ("test.jsonl", "test.jsonl", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxc", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        for (pattern, path, expected) in [
            ("*/*", "PMC1.1/a.xml", true),
            ("*/*", "a.xml", false),
            ("*", "PMC1.1/a.xml", false),
            ("*/*.xml", "a/b/c.xml", false),
        ] {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
