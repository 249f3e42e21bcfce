//! Raw files as readers see them.

use super::{Hash, Rights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A raw file of a source, hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// Below the raw folder, with forward slashes.
    pub path: String,
    pub sha256: Hash,
    pub bytes: u64,
    /// Readable bytes: the file itself, or its unpacked copy in the cache.
    pub readable: PathBuf,
}

/// The files of one source and what may be done with them.
#[derive(Clone, Debug)]
pub struct RawSource {
    pub name: String,
    pub rights: Rights,
    pub files: Vec<RawFile>,
}

/// Where shards end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLimits {
    pub records: u64,
    /// Of raw input, unpacked.
    pub bytes: u64,
    /// `--limit`: only so many raw records.
    pub limit: Option<u64>,
}

/// How a reader divided its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    pub slices: Vec<Slice>,
}

/// The raw input of one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    pub pieces: Vec<Piece>,
}

/// A run of whole raw records of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// [`RawFile::path`].
    pub file: String,
    /// Bytes from the start of the (unpacked) file; `end` is exclusive.
    pub start: u64,
    pub end: u64,
    /// Line of `start`, from 1.
    pub first_line: u64,
    pub n_records: u64,
    /// Line → occurrence, for records whose id came up before: 2 for the second, …
    pub repeats: BTreeMap<u64, u32>,
}
