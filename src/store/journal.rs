//! An append-only file of JSON lines that survives a crash in the middle of an append.

use super::failpoint::{self, Outcome};
use super::fs::{self, Operation};
use anyhow::Context;
use serde::{Serialize, de::DeserializeOwned};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What opening found at the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    Clean,
    /// The last line was whole but had no line end; it got one.
    Completed,
    /// The last line was torn; so many bytes were cut off.
    Cut(u64),
}

/// An open journal. Opening repairs the end before anything is appended.
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// Longest line that is taken as an entry.
const LINE_LIMIT: usize = 64 << 20;

impl Journal {
    /// Opens or creates the journal and reads its entries.
    ///
    /// # Errors
    /// A line that is not an entry and is not the last one: the file was damaged by something else
    /// than a crash, and nothing is appended to it.
    pub fn open<T: DeserializeOwned>(path: &Path) -> anyhow::Result<(Self, Vec<T>, Tail)> {
        if let Some(parent) = path.parent() {
            fs::create_dir(parent)?;
        }
        let context = || format!("opening {}", path.display());
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(context)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(context)?;
        let mut entries = Vec::new();
        let mut tail = Tail::Clean;
        let mut start = 0;
        let mut n_line = 0u64;
        while start < bytes.len() {
            n_line += 1;
            let rest = bytes.get(start..).unwrap_or_default();
            let (line, next) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => (rest.get(..end).unwrap_or_default(), Some(start + end + 1)),
                None => (rest, None),
            };
            let entry = if line.len() > LINE_LIMIT { None } else { serde_json::from_slice(line).ok() };
            match (entry, next) {
                (Some(entry), Some(next)) => {
                    entries.push(entry);
                    start = next;
                }
                (Some(entry), None) => {
                    entries.push(entry);
                    file.write_all(b"\n").and_then(|()| file.sync_all()).with_context(context)?;
                    tail = Tail::Completed;
                    break;
                }
                (None, None) => {
                    file.set_len(start as u64).and_then(|()| file.sync_all()).with_context(context)?;
                    tail = Tail::Cut(line.len() as u64);
                    break;
                }
                (None, Some(_)) => {
                    anyhow::bail!(
                        "{}:{n_line}: not an entry of this journal; the file was changed by hand or damaged, restore or remove it",
                        path.display()
                    )
                }
            }
        }
        file.seek(SeekFrom::End(0)).with_context(context)?;
        Ok((Self { file, path: path.to_owned() }, entries, tail))
    }

    /// Appends one entry as one line, in one write, and syncs it.
    pub fn append<T: Serialize>(&mut self, entry: &T) -> anyhow::Result<()> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Appends entries with one sync at the end.
    pub fn append_all<T: Serialize>(&mut self, entries: &[T]) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        let mut write = || -> std::io::Result<()> {
            if let Outcome::TearAndDie = failpoint::check(Operation::Write)? {
                self.file.write_all(lines.get(..lines.len() / 2).unwrap_or_default())?;
                failpoint::die();
            }
            self.file.write_all(&lines)?;
            failpoint::check(Operation::Fsync)?;
            self.file.sync_all()
        };
        Ok(write().map_err(|error| fs::explain("appending to", &self.path, &error))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Entry {
        id: u32,
    }

    fn ids(path: &Path) -> (Vec<u32>, Tail) {
        let (_, entries, tail) = Journal::open::<Entry>(path).unwrap();
        (entries.into_iter().map(|entry| entry.id).collect(), tail)
    }

    /// Case rep-04: half a line at the end of the log.
    #[test]
    fn rep_04_a_torn_last_line_is_cut_and_a_whole_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{\"id\":1}\n{\"id\":2}\n{\"id\":3,\"x").unwrap();
        let (mut journal, entries, tail) = Journal::open::<Entry>(&path).unwrap();
        assert_eq!((entries.len(), tail), (2, Tail::Cut(10)));
        // Entry 3 is asked for once more, since its line was torn, and only that one.
        let done: Vec<u32> = entries.iter().map(|entry| entry.id).collect();
        for id in [1, 2, 3].into_iter().filter(|id| !done.contains(id)) {
            journal.append(&Entry { id }).unwrap();
        }
        drop(journal);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");

        std::fs::write(&path, "{\"id\":1}\n{\"id\":2}").unwrap();
        assert_eq!(ids(&path), (vec![1, 2], Tail::Completed));
        assert_eq!(ids(&path), (vec![1, 2], Tail::Clean));
    }

    #[test]
    fn rep_04_a_bad_line_in_the_middle_stops() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{\"id\":1}\n{\"id\":2,{\"id\":3}\n{\"id\":4}\n").unwrap();
        let error = Journal::open::<Entry>(&path).err().unwrap().to_string();
        assert!(error.contains("log.jsonl:2"), "{error}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("{\"id\":2,{"), "nothing was changed");
    }

    proptest::proptest! {
        /// Whatever byte a crash cut at, opening keeps every whole line and appending goes on after it.
        #[test]
        fn any_cut_is_repaired(n in 1u32..6, cut in 0usize..80) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log.jsonl");
            let (mut journal, _, _) = Journal::open::<Entry>(&path).unwrap();
            journal.append_all(&(0..n).map(|id| Entry { id }).collect::<Vec<_>>()).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let cut = cut.min(bytes.len());
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let (mut journal, entries, _) = Journal::open::<Entry>(&path).unwrap();
            proptest::prop_assert!(entries.len() == whole || entries.len() == whole + 1);
            journal.append(&Entry { id: 99 }).unwrap();
            let (found, tail) = ids(&path);
            proptest::prop_assert_eq!(found.len(), entries.len() + 1);
            proptest::prop_assert_eq!(tail, Tail::Clean);
        }
    }
}
