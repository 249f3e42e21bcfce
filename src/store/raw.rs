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

/// How a raw file is packed, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zip,
}

fn packing(path: &Path, unpacks_zip: bool) -> io::Result<Packing> {
    let mut magic = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut magic)?;
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        b"PK\x03\x04" | b"PK\x05\x06" if unpacks_zip => Packing::Zip,
        _ => Packing::None,
    })
}

/// Gives the readable form of a raw file: itself, or for gzip, and for zip where the reader wants it (both found by content, not
/// by name), its unpacked copy in the cache, named by the hash of the packed file.
///
/// # Errors
/// A truncated or damaged packed file, one that unpacks to more than `limit` bytes, and a zip that does not hold exactly one
/// file, in the clear and under a safe name.
pub fn readable(
    workspace: &Workspace,
    path: &Path,
    shown: &str,
    sha256: &Hash,
    limit: u64,
    unpacks_zip: bool,
) -> anyhow::Result<PathBuf> {
    let packing = packing(path, unpacks_zip).map_err(|error| input(format!("cannot read {shown}: {error}")))?;
    if packing == Packing::None {
        return Ok(path.to_owned());
    }
    let target = workspace.unpacked_path(sha256);
    if target.is_file() {
        return Ok(target);
    }
    write_cached(&target, |out| match packing {
        Packing::Zip => unpack_zip(path, shown, out, limit),
        Packing::Gzip | Packing::None => unpack(path, shown, out, limit),
    })?;
    Ok(target)
}

/// Gives a table (CSV, Parquet, JSON array) of a form that the reader wants converted as lines: a converted copy in the cache,
/// named by the hash of the raw file. Any other file is given as it is.
pub fn as_lines(
    workspace: &Workspace,
    file: &RawFile,
    converts: impl Fn(tables::Form) -> bool,
) -> anyhow::Result<PathBuf> {
    let form = tables::form(&file.path, &file.readable)
        .map_err(|error| input(format!("cannot read {}: {error:#}", file.path)))?;
    if form == tables::Form::Lines || !converts(form) {
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
            return Err(too_large(shown, limit));
        }
        out.write_all(chunk)?;
    }
    Ok(())
}

/// The one file in a zip.
fn unpack_zip(packed: &Path, shown: &str, out: &mut impl Write, limit: u64) -> anyhow::Result<()> {
    let file = File::open(packed).map_err(|error| input(format!("cannot read {shown}: {error}")))?;
    let damaged = |error: &dyn std::fmt::Display| {
        input(format!("{shown}: the zip file is damaged or cut off: {error}; fetch the file again"))
    };
    let mut archive = zip::ZipArchive::new(BufReader::with_capacity(1 << 18, file)).map_err(|error| damaged(&error))?;
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|error| damaged(&error))?;
        if member.is_dir() {
            continue;
        }
        let name = member.name().map_err(|error| damaged(&error))?.into_owned();
        if member.enclosed_name().is_none() || !member.is_file() {
            return Err(input(format!(
                "{shown}: the member `{}` of the zip is a link or has an unsafe name",
                name.escape_debug()
            )));
        }
        if member.encrypted() {
            return Err(input(format!("{shown}: the member `{name}` of the zip is encrypted; unpack it yourself")));
        }
        members.push((index, name));
    }
    let index = match members.as_slice() {
        [(index, _)] => *index,
        [] => return Err(input(format!("{shown}: the zip holds no file"))),
        several => {
            let names: Vec<&str> = several.iter().take(4).map(|(_, name)| name.as_str()).collect();
            return Err(input(format!(
                "{shown}: the zip holds {} files ({}{}), and it is read when it holds one: unpack it yourself",
                several.len(),
                names.join(", "),
                if several.len() > names.len() { ", …" } else { "" }
            )));
        }
    };
    let mut member = archive.by_index(index).map_err(|error| damaged(&error))?;
    let mut buffer = vec![0u8; 1 << 18];
    let mut n_bytes = 0u64;
    loop {
        let n = match member.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(damaged(&error)),
        };
        n_bytes += n as u64;
        if n_bytes > limit {
            return Err(too_large(shown, limit));
        }
        out.write_all(buffer.get(..n).unwrap_or_default())?;
    }
}

fn too_large(shown: &str, limit: u64) -> anyhow::Error {
    input(format!(
        "{shown}: it unpacks to more than {limit} bytes; raise `max_unpacked_bytes` of the source if that is right"
    ))
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

    fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, bytes) in members {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_zip_of_one_file_is_unpacked_and_any_other_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = |bytes: &[u8], limit: u64| -> Result<Vec<u8>, String> {
            let path = folder.path().join("a.zip");
            std::fs::write(&path, bytes).unwrap();
            let mut out = Vec::new();
            unpack_zip(&path, "d/a.zip", &mut out, limit).map(|()| out).map_err(|error| error.to_string())
        };
        let text = b"AGE,SEX\n".repeat(1000);
        let good = zipped(&[("release_train_patients", &text)]);
        assert_eq!(unpacked(&good, 8000), Ok(text.clone()));
        assert!(unpacked(&good, 7999).unwrap_err().contains("more than 7999 bytes"));
        assert!(unpacked(&good[..good.len() / 2], 8000).unwrap_err().contains("damaged or cut off"));
        let mut changed = good.clone();
        changed[60] ^= 0x55;
        assert!(unpacked(&changed, 8000).unwrap_err().contains("damaged"));
        assert!(unpacked(&zipped(&[("a", b"1"), ("b", b"2")]), 8000).unwrap_err().contains("2 files (a, b)"));
        assert!(unpacked(&zipped(&[("../a", b"1")]), 8000).unwrap_err().contains("unsafe name"));
        assert!(unpacked(&zipped(&[]), 8000).unwrap_err().contains("no file"));
        // The flag of encryption, in the entry of the central directory.
        let mut encrypted = zipped(&[("a", b"1")]);
        for mark in [&b"PK\x03\x04"[..], b"PK\x01\x02"] {
            let at = encrypted.windows(4).position(|window| window == mark).unwrap();
            encrypted[at + if mark[2] == 3 { 6 } else { 8 }] |= 1;
        }
        assert!(unpacked(&encrypted, 8000).unwrap_err().contains("encrypted"));
    }
}
