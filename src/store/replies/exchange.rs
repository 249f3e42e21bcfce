//! Replies as one file: JSON lines, packed if the name ends in `.zst`.

use super::*;

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

impl ReplyStore {
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

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
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
