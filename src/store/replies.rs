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

/// A line of an exported file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: Hash,
    accepted: bool,
    access: String,
    model: String,
    status: u16,
    input_tokens: u64,
    output_tokens: u64,
    sha256: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Where the bytes are no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    pub added: u64,
    pub known: u64,
    /// Their call has another accepted reply here.
    pub kept_ours: u64,
}

enum Job {
    Sent(Sent, oneshot::Sender<Result<i64, String>>),
    Finished(Shelf, i64, Finished, oneshot::Sender<Result<i64, String>>),
    Accept(Shelf, Hash, i64, oneshot::Sender<Result<i64, String>>),
    Stop,
}

pub struct ReplyStore {
    folder: PathBuf,
    writer: OnceLock<Result<Writer, String>>,
    readers: Mutex<BTreeMap<Shelf, Vec<Connection>>>,
}

struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: Option<std::thread::JoinHandle<()>>,
    run_file: PathBuf,
    /// Locked: others see by it that this process lives.
    _run: File,
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

    /// Writes all replies to the given calls as one file of JSON lines, packed if its name ends in `.zst`; the order and
    /// the bytes depend on the replies alone. `may_leave` says which classes may be in it.
    pub fn export(
        &self,
        keys: impl IntoIterator<Item = Hash>,
        may_leave: impl Fn(Shelf) -> bool,
        path: &Path,
    ) -> anyhow::Result<(u64, u64)> {
        let (mut n_written, mut n_held_back) = (0, 0);
        let temporary = fs::temporary_beside(path);
        let write = || -> anyhow::Result<()> {
            let file = File::create_new(&temporary).with_context(|| format!("creating {}", temporary.display()))?;
            let mut out = Packed::new(file, is_packed(path))?;
            let mut keys: Vec<Hash> = keys.into_iter().collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                for shelf in Shelf::ALL {
                    let lines = self.lines(shelf, &key)?;
                    if !may_leave(shelf) {
                        n_held_back += lines.len() as u64;
                        continue;
                    }
                    for line in lines {
                        let mut bytes = serde_json::to_vec(&line)?;
                        bytes.push(b'\n');
                        out.write_all(&bytes)?;
                        n_written += 1;
                    }
                }
            }
            out.finish()?;
            std::fs::rename(&temporary, path).with_context(|| format!("renaming to {}", path.display()))?;
            Ok(())
        };
        let result = write();
        if result.is_err() {
            // Best effort: the name is temporary.
            let _ = std::fs::remove_file(&temporary);
        }
        result.map(|()| (n_written, n_held_back))
    }

    fn lines(&self, shelf: Shelf, key: &Hash) -> anyhow::Result<Vec<Line>> {
        let bytes = bytes_of(key)?;
        let lines = self.read(shelf, |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT accepted, model, status, input_tokens, output_tokens, sha256, body FROM requests
                 WHERE key = ?1 AND body IS NOT NULL ORDER BY id",
            )?;
            let rows = statement.query_map([bytes], |row| {
                let (body, body_base64) = match String::from_utf8(row.get(6)?) {
                    Ok(text) => (Some(text), None),
                    Err(error) => (None, Some(BASE64.encode(error.as_bytes()))),
                };
                Ok(Line {
                    key: key.clone(),
                    accepted: row.get(0)?,
                    access: shelf.as_str().to_owned(),
                    model: row.get(1)?,
                    status: row.get(2)?,
                    input_tokens: row.get(3)?,
                    output_tokens: row.get(4)?,
                    sha256: Hash::from_digest(row.get(5)?),
                    body,
                    body_base64,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<Line>>>()
        })?;
        Ok(lines.unwrap_or_default())
    }

    /// Adds the replies of an exported file, all or none. A call that has another accepted reply here keeps it unless
    /// `replace`.
    pub fn import(&self, path: &Path, replace: bool) -> anyhow::Result<Imported> {
        let mut imported = Imported::default();
        fs::create_dir(&self.folder)?;
        let mut connections: BTreeMap<Shelf, Connection> = BTreeMap::new();
        read_export(path, &mut |reply| {
            let connection = match connections.entry(reply.shelf) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let connection = open(&self.folder.join(reply.shelf.file()), true)?;
                    connection.execute_batch("BEGIN IMMEDIATE")?;
                    entry.insert(connection)
                }
            };
            import_reply(connection, &reply, replace, &mut imported)
        })?;
        for connection in connections.into_values() {
            connection.execute_batch("COMMIT")?;
        }
        Ok(imported)
    }
}

/// A reply of an exported file.
pub struct ExportedReply {
    pub shelf: Shelf,
    pub key: Hash,
    pub accepted: bool,
    pub model: String,
    pub status: u16,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub sha256: Hash,
    pub body: Vec<u8>,
}

/// Reads an exported file line by line. Every reply has the hash that its line gives.
pub fn read_export(path: &Path, take: &mut dyn FnMut(ExportedReply) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let reader: Box<dyn Read> = if is_packed(path) { Box::new(zstd::Decoder::new(file)?) } else { Box::new(file) };
    let mut reader = BufReader::new(reader);
    let mut number = 0u64;
    loop {
        number += 1;
        let place = || format!("{} line {number}", path.display());
        let mut bytes = Vec::new();
        let n = Read::by_ref(&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut bytes).with_context(place)?;
        if n == 0 {
            return Ok(());
        }
        ensure!(bytes.last() == Some(&b'\n'), "{}: it is cut, or longer than {LONGEST_LINE} bytes", place());
        let line: Line = serde_json::from_slice(&bytes).with_context(place)?;
        let shelf = Shelf::ALL.into_iter().find(|shelf| shelf.as_str() == line.access);
        let shelf = shelf.with_context(|| format!("{}: unknown access `{}`", place(), line.access))?;
        let body = match (line.body, line.body_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => BASE64.decode(text).with_context(place)?,
            _ => anyhow::bail!("{}: needs `body` or `body_base64`", place()),
        };
        ensure!(Hash::of(&body) == line.sha256, "{}: the reply does not have the hash that the line gives", place());
        take(ExportedReply {
            shelf,
            key: line.key,
            accepted: line.accepted,
            model: line.model,
            status: line.status,
            input_tokens: line.input_tokens,
            output_tokens: line.output_tokens,
            sha256: line.sha256,
            body,
        })
        .with_context(place)?;
    }
}

fn import_reply(
    connection: &Connection,
    reply: &ExportedReply,
    replace: bool,
    imported: &mut Imported,
) -> anyhow::Result<()> {
    let (key, sha256) = (bytes_of(&reply.key)?, bytes_of(&reply.sha256)?);
    let known: Option<i64> = connection
        .prepare_cached("SELECT id FROM requests WHERE key = ?1 AND sha256 = ?2")?
        .query_row(params![key, sha256], |row| row.get(0))
        .optional()?;
    let ours: Option<[u8; 32]> = connection
        .prepare_cached("SELECT sha256 FROM requests WHERE key = ?1 AND accepted = 1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    if ours.is_some_and(|ours| ours != sha256) && !replace {
        imported.kept_ours += 1;
        return Ok(());
    }
    if let Some(id) = known.filter(|_| !(replace && reply.accepted)) {
        if reply.accepted {
            accept(connection, &key, id)?;
        }
        imported.known += 1;
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO requests (key, run, pipeline, node, record_id, model, structured, max_tokens, state, detail,
             status, started_ms, latency_ms, input_tokens, output_tokens, cost, sha256, body, accepted)
             VALUES (?1, 'import', '', '', '', ?2, '', 0, 'complete', '', ?3, 0, 0, ?4, ?5, 0, ?6, ?7, 0)",
        )?
        .execute(params![
            key,
            reply.model,
            reply.status,
            reply.input_tokens,
            reply.output_tokens,
            sha256,
            reply.body
        ])?;
    if reply.accepted {
        accept(connection, &key, connection.last_insert_rowid())?;
    }
    imported.added += 1;
    Ok(())
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

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
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

impl Writer {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir(folder)?;
        mark_lost(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", now.as_nanos(), std::process::id());
        let run_file = folder.join(format!("{run}.run"));
        let file = File::create_new(&run_file).with_context(|| format!("creating {}", run_file.display()))?;
        file.lock().with_context(|| format!("locking {}", run_file.display()))?;
        let (jobs, receiver) = mpsc::channel();
        let folder = folder.to_owned();
        let thread = std::thread::Builder::new()
            .name("replies".to_owned())
            .spawn(move || write_jobs(&folder, &run, &receiver))
            .context("starting the thread that writes replies")?;
        Ok(Self { jobs, thread: Some(thread), run_file, _run: file })
    }
}

impl Drop for ReplyStore {
    fn drop(&mut self) {
        let Some(Ok(mut writer)) = self.writer.take() else { return };
        // Either the thread takes it, or it has ended already.
        let _ = writer.jobs.send(Job::Stop);
        if let Some(thread) = writer.thread.take() {
            let _ = thread.join();
        }
        // Left behind it does no harm: the next process sees that nobody holds it.
        let _ = std::fs::remove_file(&writer.run_file);
    }
}

/// Requests that a process sent that ended since may have been paid for: they are marked, and stay counted.
fn mark_lost(folder: &Path) -> anyhow::Result<()> {
    for name in fs::list(folder)? {
        let Some(run) = name.strip_suffix(".run") else { continue };
        let path = folder.join(&name);
        // Another process may have removed it meanwhile.
        let Ok(file) = File::open(&path) else { continue };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        for shelf in Shelf::ALL {
            let path = folder.join(shelf.file());
            if path.is_file() {
                open(&path, true)?
                    .execute("UPDATE requests SET state = 'lost' WHERE run = ?1 AND state = 'sent'", [run])
                    .with_context(|| format!("writing {}", path.display()))?;
            }
        }
        // Best effort: another process may do the same.
        let _ = std::fs::remove_file(&path);
    }
    Ok(())
}

fn write_jobs(folder: &Path, run: &str, jobs: &mpsc::Receiver<Job>) {
    let mut connections: BTreeMap<Shelf, Connection> = BTreeMap::new();
    let mut stopping = false;
    while !stopping {
        let Ok(first) = jobs.recv() else { return };
        let mut by_shelf: BTreeMap<Shelf, Vec<Job>> = BTreeMap::new();
        for job in std::iter::once(first).chain(jobs.try_iter().take(GROUP)) {
            match &job {
                Job::Sent(sent, _) => by_shelf.entry(sent.shelf).or_default().push(job),
                Job::Finished(shelf, ..) | Job::Accept(shelf, ..) => by_shelf.entry(*shelf).or_default().push(job),
                Job::Stop => stopping = true,
            }
        }
        for (shelf, jobs) in by_shelf {
            write_group(folder, run, shelf, jobs, &mut connections);
        }
    }
}

/// Commits jobs together, then tells those who wait. If the commit fails all of them failed.
fn write_group(folder: &Path, run: &str, shelf: Shelf, jobs: Vec<Job>, connections: &mut BTreeMap<Shelf, Connection>) {
    let mut work = || -> anyhow::Result<Vec<i64>> {
        let connection = match connections.entry(shelf) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(open(&folder.join(shelf.file()), true)?),
        };
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let ids = jobs.iter().map(|job| write_job(&transaction, run, job)).collect::<rusqlite::Result<Vec<i64>>>()?;
        transaction.commit()?;
        Ok(ids)
    };
    let result = work().map_err(|error| format!("{error:#}"));
    for (position, job) in jobs.into_iter().enumerate() {
        let (Job::Sent(_, done) | Job::Finished(_, _, _, done) | Job::Accept(_, _, _, done)) = job else { continue };
        let answer = match &result {
            Ok(ids) => Ok(ids.get(position).copied().unwrap_or_default()),
            Err(error) => Err(error.clone()),
        };
        // One who no longer waits need not know.
        let _ = done.send(answer);
    }
}

fn write_job(transaction: &Transaction<'_>, run: &str, job: &Job) -> rusqlite::Result<i64> {
    match job {
        Job::Sent(sent, _) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let key = sent.key.to_bytes().unwrap_or_default();
            transaction
                .prepare_cached(
                    "INSERT INTO requests (key, run, pipeline, node, record_id, model, structured, max_tokens, state,
                     detail, started_ms, latency_ms, input_tokens, output_tokens, cost)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'sent', '', ?9, 0, 0, 0, ?10)",
                )?
                .execute(params![
                    key,
                    run,
                    sent.pipeline,
                    sent.node,
                    sent.record_id,
                    sent.model,
                    sent.structured,
                    sent.max_tokens,
                    i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
                    sent.cost_at_most,
                ])?;
            Ok(transaction.last_insert_rowid())
        }
        Job::Finished(_, id, finished, _) => {
            let sha256 = finished.body.as_ref().and_then(|body| Hash::of(body).to_bytes());
            transaction
                .prepare_cached(
                    "UPDATE requests SET state = ?2, detail = ?3, status = ?4, latency_ms = ?5, input_tokens = ?6,
                     output_tokens = ?7, cost = ?8, sha256 = ?9, body = ?10 WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    finished.state.as_str(),
                    finished.detail,
                    finished.status,
                    finished.latency_ms,
                    finished.input_tokens,
                    finished.output_tokens,
                    finished.cost,
                    sha256,
                    finished.body,
                ])?;
            Ok(*id)
        }
        Job::Accept(_, key, id, _) => {
            accept(transaction, &key.to_bytes().unwrap_or_default(), *id)?;
            Ok(*id)
        }
        Job::Stop => Ok(0),
    }
}

/// A file that may be packed.
enum Packed {
    Plain(std::io::BufWriter<File>),
    Zstd(Box<zstd::Encoder<'static, File>>),
}

impl Packed {
    fn new(file: File, packed: bool) -> std::io::Result<Self> {
        Ok(if packed {
            Self::Zstd(Box::new(zstd::Encoder::new(file, 9)?))
        } else {
            Self::Plain(std::io::BufWriter::new(file))
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        let file = match self {
            Self::Plain(file) => file.into_inner().map_err(std::io::IntoInnerError::into_error)?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.sync_all()
    }
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
