//! The store of replies: every request to a model and what came back, by the key of the call. It never expires, all
//! pipelines share it, and several processes may write it at once.
//!
//! ```text
//! <data>/replies/{open,registered,credentialed}.sqlite   one file per class of access
//! <data>/replies/<run>.run                               locked as long as a process that sends lives
//! ```
//!
//! One row is one request that was sent. It is written before the request leaves, so that after a crash it is known what
//! may have been paid for without an answer, and completed when the answer is there. A row with a body is never changed
//! but for its mark `accepted`, which at most one row of a key has. Rows are committed by one thread in groups, each
//! synced to disk before anybody is told.

mod exchange;
mod writer;

pub use exchange::{ExportedReply, Imported, read_export};

use super::fs;
use crate::record::{Access, Hash};
use anyhow::{Context, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use writer::{Job, Writer};

/// Version of the tables, in SQLite's `user_version`.
const TABLES: i64 = 1;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(60);

/// Requests committed together.
const GROUP: usize = 512;

/// Longest line of an exported file.
const LONGEST_LINE: u64 = 64 << 20;

/// Replies by who may hold their source: each class has a file of its own, so that one can be given away alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shelf {
    Open,
    Registered,
    Credentialed,
}

impl Shelf {
    pub const ALL: [Self; 3] = [Self::Open, Self::Registered, Self::Credentialed];

    /// Unknown access is closed.
    pub fn of(access: Access) -> Self {
        match access {
            Access::Open => Self::Open,
            Access::Registered => Self::Registered,
            Access::Credentialed | Access::Unknown => Self::Credentialed,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Registered => "registered",
            Self::Credentialed => "credentialed",
        }
    }

    fn file(self) -> String {
        format!("{}.sqlite", self.as_str())
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyState {
    /// The model came to its end. Whether it fits its schema is decided whenever it is read.
    Complete,
    /// Cut by a token limit.
    Truncated,
    /// By the model or a filter.
    Refused,
    /// Without text.
    Empty,
    /// Not what the protocol says.
    Invalid,
    /// No reply: the connection, the time or the server failed.
    Failed,
    /// Sent, and nothing is known since.
    Sent,
    /// Sent by a process that ended before an answer came: it may have been paid for.
    Lost,
}

impl ReplyState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Empty => "empty",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::Sent => "sent",
            Self::Lost => "lost",
        }
    }
}

/// A request that is about to leave.
#[derive(Clone, Debug)]
pub struct Sent {
    pub shelf: Shelf,
    pub key: Hash,
    pub pipeline: String,
    pub node: String,
    pub record_id: String,
    /// `provider/model`
    pub model: String,
    pub structured: &'static str,
    pub max_tokens: u32,
    /// What it will cost at most.
    pub cost_at_most: f64,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Finished {
    pub state: ReplyState,
    pub detail: String,
    pub status: Option<u16>,
    pub latency_ms: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: f64,
    /// The bytes of the reply; none for a failed request.
    pub body: Option<Vec<u8>>,
}

/// A reply of the store.
#[derive(Clone, Debug)]
pub struct StoredReply {
    pub id: i64,
    pub accepted: bool,
    pub status: u16,
    pub sha256: Hash,
    pub body: Vec<u8>,
    pub model: String,
    pub latency_ms: u64,
    pub cost: f64,
}

/// What requests of one node cost so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spending {
    pub node: String,
    pub requests: u64,
    /// By [`ReplyState`].
    pub by_state: BTreeMap<String, u64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Failed and lost requests included; lost ones with what they cost at most.
    pub cost: f64,
}

pub struct ReplyStore {
    folder: PathBuf,
    writer: OnceLock<Result<Writer, String>>,
    readers: Mutex<BTreeMap<Shelf, Vec<Connection>>>,
}

impl ReplyStore {
    /// Nothing is opened or made before it is needed.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, writer: OnceLock::new(), readers: Mutex::new(BTreeMap::new()) }
    }

    /// Replies to a call, the newest first. Requests without an answer are left out.
    pub fn replies(&self, shelf: Shelf, key: &Hash) -> anyhow::Result<Vec<StoredReply>> {
        let key = bytes_of(key)?;
        let found = self.read(shelf, |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, accepted, status, sha256, body, model, latency_ms, cost FROM requests
                 WHERE key = ?1 AND body IS NOT NULL ORDER BY id DESC",
            )?;
            let rows = statement.query_map([key], |row| {
                Ok(StoredReply {
                    id: row.get(0)?,
                    accepted: row.get(1)?,
                    status: row.get(2)?,
                    sha256: Hash::from_digest(row.get(3)?),
                    body: row.get(4)?,
                    model: row.get(5)?,
                    latency_ms: row.get(6)?,
                    cost: row.get(7)?,
                })
            })?;
            rows.collect()
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The hash of the accepted reply to a call, of whatever class.
    pub fn accepted(&self, key: &Hash) -> anyhow::Result<Option<Hash>> {
        let key = bytes_of(key)?;
        for shelf in Shelf::ALL {
            let found: Option<Option<[u8; 32]>> = self.read(shelf, |connection| {
                let mut statement =
                    connection.prepare_cached("SELECT sha256 FROM requests WHERE key = ?1 AND accepted = 1")?;
                statement.query_row([key], |row| row.get(0)).optional()
            })?;
            if let Some(digest) = found.flatten() {
                return Ok(Some(Hash::from_digest(digest)));
            }
        }
        Ok(None)
    }

    /// What a pipeline's nodes have spent; for one record alone if it is given.
    pub fn spending(&self, pipeline: &str, record_id: Option<&str>) -> anyhow::Result<Vec<Spending>> {
        let mut by_node: BTreeMap<String, Spending> = BTreeMap::new();
        for shelf in Shelf::ALL {
            self.read(shelf, |connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT node, state, count(*), sum(input_tokens), sum(output_tokens), sum(cost) FROM requests
                     WHERE pipeline = ?1 AND (?2 IS NULL OR record_id = ?2) GROUP BY node, state ORDER BY node, state",
                )?;
                let mut rows = statement.query(params![pipeline, record_id])?;
                while let Some(row) = rows.next()? {
                    let node: String = row.get(0)?;
                    let spending =
                        by_node.entry(node.clone()).or_insert_with(|| Spending { node, ..Spending::default() });
                    let n: u64 = row.get(2)?;
                    spending.requests += n;
                    *spending.by_state.entry(row.get(1)?).or_default() += n;
                    spending.input_tokens += row.get::<_, u64>(3)?;
                    spending.output_tokens += row.get::<_, u64>(4)?;
                    spending.cost += row.get::<_, f64>(5)?;
                }
                Ok(())
            })?;
        }
        Ok(by_node.into_values().collect())
    }

    /// Mean output tokens of the complete replies of a node, for estimates.
    pub fn mean_output_tokens(&self, pipeline: &str, node: &str) -> anyhow::Result<Option<f64>> {
        let (mut n, mut sum) = (0u64, 0u64);
        for shelf in Shelf::ALL {
            let row: Option<(u64, u64)> = self.read(shelf, |connection| {
                connection
                    .prepare_cached(
                        "SELECT count(*), coalesce(sum(output_tokens), 0) FROM requests
                         WHERE pipeline = ?1 AND node = ?2 AND state = 'complete'",
                    )?
                    .query_row([pipeline, node], |row| Ok((row.get(0)?, row.get(1)?)))
            })?;
            let (more, tokens) = row.unwrap_or_default();
            n += more;
            sum += tokens;
        }
        Ok((n > 0).then(|| sum as f64 / n as f64))
    }

    /// Writes that a request leaves now; gives its row. Comes back when the row is on disk.
    pub async fn sent(&self, sent: Sent) -> anyhow::Result<i64> {
        self.job(|done| Job::Sent(sent, done)).await
    }

    /// Writes how a request ended. Comes back when the reply is on disk.
    pub async fn finished(&self, shelf: Shelf, id: i64, finished: Finished) -> anyhow::Result<()> {
        self.job(|done| Job::Finished(shelf, id, finished, done)).await.map(drop)
    }

    /// Makes a reply the accepted one of its call.
    pub async fn accept(&self, shelf: Shelf, key: &Hash, id: i64) -> anyhow::Result<()> {
        let key = key.clone();
        self.job(|done| Job::Accept(shelf, key, id, done)).await.map(drop)
    }

    async fn job(&self, make: impl FnOnce(oneshot::Sender<Result<i64, String>>) -> Job) -> anyhow::Result<i64> {
        let writer = self.writer()?;
        let (sender, receiver) = oneshot::channel();
        let gone = || anyhow!("the store of replies at {} cannot be written any more", self.folder.display());
        writer.jobs.send(make(sender)).map_err(|_| gone())?;
        let result = receiver.await.map_err(|_| gone())?;
        result.map_err(|error| anyhow!("writing the store of replies at {}: {error}", self.folder.display()))
    }

    fn writer(&self) -> anyhow::Result<&Writer> {
        let writer = self.writer.get_or_init(|| Writer::start(&self.folder).map_err(|error| format!("{error:#}")));
        writer.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// Runs a query; `None` where nothing of this class was ever stored.
    fn read<T>(
        &self,
        shelf: Shelf,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let path = self.folder.join(shelf.file());
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).entry(shelf).or_default().pop();
        let connection = match kept {
            Some(connection) => connection,
            None if !path.is_file() => return Ok(None),
            None => {
                let connection = open(&path, false)?;
                if version(&connection)? == 0 {
                    // Its tables are about to be made.
                    return Ok(None);
                }
                connection
            }
        };
        let result = query(&connection).with_context(|| format!("reading {}", path.display()))?;
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).entry(shelf).or_default().push(connection);
        Ok(Some(result))
    }
}

fn accept(connection: &Connection, key: &[u8; 32], id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE requests SET accepted = 0 WHERE key = ?1 AND accepted = 1 AND id <> ?2")?
        .execute(params![key, id])?;
    connection.prepare_cached("UPDATE requests SET accepted = 1 WHERE id = ?1")?.execute([id])?;
    Ok(())
}

fn bytes_of(hash: &Hash) -> anyhow::Result<[u8; 32]> {
    hash.to_bytes().with_context(|| format!("`{hash}` is no SHA-256"))
}

/// Readers and the writer do not wait for each other; the file remembers it. SQLite does not wait for its turn here by
/// itself.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let end = std::time::Instant::now() + BUSY;
    loop {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && std::time::Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Version of the tables of a file; 0 as long as it has none.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Opens a file of the store; `create` makes it and its tables.
fn open(path: &Path, create: bool) -> anyhow::Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let work = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        if create {
            write_ahead(&connection)?;
        }
        Ok(connection)
    };
    let connection = work().with_context(|| format!("opening {}", path.display()))?;
    let version = version(&connection)?;
    ensure!(
        version <= TABLES,
        "{} was written by a newer casemill: use that version, or another --data folder",
        path.display()
    );
    if create && version == 0 {
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 CREATE TABLE IF NOT EXISTS requests (
                   id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, run TEXT NOT NULL, pipeline TEXT NOT NULL,
                   node TEXT NOT NULL, record_id TEXT NOT NULL, model TEXT NOT NULL, structured TEXT NOT NULL,
                   max_tokens INTEGER NOT NULL, state TEXT NOT NULL, detail TEXT NOT NULL, status INTEGER,
                   started_ms INTEGER NOT NULL, latency_ms INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
                   output_tokens INTEGER NOT NULL, cost REAL NOT NULL, sha256 BLOB, body BLOB,
                   accepted INTEGER NOT NULL DEFAULT 0) STRICT;
                 CREATE INDEX IF NOT EXISTS requests_by_key ON requests (key, id);
                 CREATE UNIQUE INDEX IF NOT EXISTS one_accepted ON requests (key) WHERE accepted = 1;
                 CREATE INDEX IF NOT EXISTS requests_by_node ON requests (pipeline, node, state);
                 CREATE INDEX IF NOT EXISTS requests_on_their_way ON requests (run) WHERE state = 'sent';
                 PRAGMA user_version = {TABLES};
                 COMMIT;"
            ))
            .with_context(|| format!("making the tables of {}", path.display()))?;
    }
    Ok(connection)
}

#[cfg(test)]
mod tests;
