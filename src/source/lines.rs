//! Files of one record a line: cutting them at line ends, and reading lines of bounded length.

use crate::record::raw::{Cut, Piece, RawFile, RawSource, ShardLimits, Slice};
use crate::record::{Hash, RecordId};
use crate::store::raw;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{self, BufRead};

/// One raw line without its line end, the byte-order mark of the file and the `\r` of a CRLF.
#[derive(Debug, PartialEq, Eq)]
pub enum RawLine<'a> {
    Text(&'a [u8]),
    /// Longer than the cap; it was not kept in memory.
    TooLong {
        bytes: u64,
        sha256: Hash,
    },
}

impl RawLine<'_> {
    /// Hash of the bytes of the line.
    pub fn sha256(&self) -> Hash {
        match self {
            Self::Text(bytes) => Hash::of(bytes),
            Self::TooLong { sha256, .. } => sha256.clone(),
        }
    }
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// From 1.
    pub line: u64,
    /// First byte of the line, and the first byte after its line end.
    pub start: u64,
    pub end: u64,
}

/// Reads lines of at most `cap` bytes; longer ones are hashed and skipped.
pub struct LineReader<R> {
    input: R,
    cap: usize,
    offset: u64,
    line: u64,
    buffer: Vec<u8>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: BufRead> LineReader<R> {
    /// `offset` and `line` say where in the file `input` begins.
    pub fn new(input: R, offset: u64, line: u64, cap: usize) -> Self {
        Self { input, cap, offset, line, buffer: Vec::new() }
    }

    /// The next line that is not blank.
    pub fn next_line(&mut self) -> io::Result<Option<(Position, RawLine<'_>)>> {
        loop {
            let start = self.offset;
            let line = self.line;
            let Some(long) = self.fill()? else { return Ok(None) };
            self.line += 1;
            let position = Position { line, start, end: self.offset };
            if let Some((bytes, sha256)) = long {
                return Ok(Some((position, RawLine::TooLong { bytes, sha256 })));
            }
            if start == 0 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some((position, RawLine::Text(&self.buffer))));
            }
        }
    }

    /// Reads one line into the buffer; `Some(Some(…))` when it was too long, `None` at the end.
    fn fill(&mut self) -> io::Result<Option<Option<(u64, Hash)>>> {
        self.buffer.clear();
        let start = self.offset;
        let mut hasher: Option<Sha256> = None;
        let mut carriage_return = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            let (content, n_used) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (chunk.get(..end).unwrap_or_default(), end + 1),
                None => (chunk, chunk.len()),
            };
            let ended = n_used > content.len();
            if hasher.is_none() && self.buffer.len() + content.len() > self.cap + BYTE_ORDER_MARK.len() + 1 {
                let mut long = Sha256::new();
                long.update(&self.buffer);
                hasher = Some(long);
                self.buffer.clear();
            }
            match &mut hasher {
                // A `\r` belongs to the line end only when it is the last byte, so it waits here.
                Some(hasher) => {
                    if carriage_return && !content.is_empty() {
                        hasher.update(b"\r");
                        carriage_return = false;
                    }
                    match content.strip_suffix(b"\r") {
                        Some(content) => {
                            hasher.update(content);
                            carriage_return = true;
                        }
                        None => hasher.update(content),
                    }
                }
                None => self.buffer.extend_from_slice(content),
            }
            self.input.consume(n_used);
            self.offset += n_used as u64;
            if ended {
                break;
            }
        }
        if self.offset == start {
            return Ok(None);
        }
        if let Some(hasher) = hasher {
            return Ok(Some(Some((self.offset - start, Hash::from_digest(hasher.finalize().into())))));
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        if self.buffer.len() > self.cap + if start == 0 { BYTE_ORDER_MARK.len() } else { 0 } {
            let hash = Hash::of(&self.buffer);
            return Ok(Some(Some((self.offset - start, hash))));
        }
        Ok(Some(None))
    }
}

/// Divides the files of a source at line ends. `identify` gives the id of a line without regard to repeats.
///
/// One pass. Memory: 16 bytes and a count for each record.
pub fn cut(
    source: &RawSource,
    limits: ShardLimits,
    cap: usize,
    identify: impl Fn(&RawFile, Position, &RawLine<'_>) -> anyhow::Result<RecordId>,
) -> anyhow::Result<Cut> {
    let mut planner = CutPlanner::new(limits);
    for file in &source.files {
        if planner.is_full() {
            break;
        }
        let mut lines = LineReader::new(raw::open(file, 0)?, 0, 1, cap);
        while let Some((position, line)) = next(&mut lines, file)? {
            planner.add(file, position, &identify(file, position, &line)?);
            if planner.is_full() {
                break;
            }
        }
    }
    Ok(planner.finish())
}

/// Reads the lines of one slice, each with its occurrence (2 for the second of one id, …).
pub fn read(
    source: &RawSource,
    slice: &Slice,
    cap: usize,
    mut visit: impl FnMut(&RawFile, Position, &RawLine<'_>, u32) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for piece in &slice.pieces {
        let file = file_of(source, piece)?;
        let mut lines = LineReader::new(raw::open(file, piece.start)?, piece.start, piece.first_line, cap);
        while let Some((position, line)) = next(&mut lines, file)? {
            if position.start >= piece.end {
                break;
            }
            let occurrence = piece.repeats.get(&position.line).copied().unwrap_or(1);
            visit(file, position, &line, occurrence)?;
        }
    }
    Ok(())
}

pub(super) fn file_of<'a>(source: &'a RawSource, piece: &Piece) -> anyhow::Result<&'a RawFile> {
    source
        .files
        .iter()
        .find(|file| file.path == piece.file)
        .ok_or_else(|| anyhow::anyhow!("{} is not a file of source `{}`", piece.file, source.name))
}

fn next<'a, R: BufRead>(
    lines: &'a mut LineReader<R>,
    file: &RawFile,
) -> anyhow::Result<Option<(Position, RawLine<'a>)>> {
    lines.next_line().map_err(|error| crate::error::input(format!("cannot read {}: {error}", file.path)))
}

/// Collects records into slices and counts ids; shared by the formats that are cut in one pass.
pub(super) struct CutPlanner {
    limits: ShardLimits,
    cut: Cut,
    slice: Slice,
    slice_records: u64,
    slice_bytes: u64,
    n_records: u64,
    /// First 16 bytes of the id's hash: at 10⁸ records a collision has a chance of 10⁻²³.
    seen: HashMap<[u8; 16], u32>,
}

impl CutPlanner {
    pub(super) fn new(limits: ShardLimits) -> Self {
        Self {
            limits,
            cut: Cut::default(),
            slice: Slice::default(),
            slice_records: 0,
            slice_bytes: 0,
            n_records: 0,
            seen: HashMap::new(),
        }
    }

    /// `--limit` is reached.
    pub(super) fn is_full(&self) -> bool {
        self.limits.limit.is_some_and(|limit| self.n_records >= limit)
    }

    pub(super) fn add(&mut self, file: &RawFile, position: Position, id: &RecordId) {
        let bytes = position.end - position.start;
        if self.slice_records > 0
            && (self.slice_records >= self.limits.records || self.slice_bytes + bytes > self.limits.bytes)
        {
            self.close_slice();
        }
        let mut key = [0u8; 16];
        key.copy_from_slice(&Sha256::digest(id.as_str().as_bytes())[..16]);
        let occurrence = self.seen.entry(key).and_modify(|n| *n += 1).or_insert(1);
        let same_file = self.slice.pieces.last().is_some_and(|piece| piece.file == file.path);
        if !same_file {
            self.slice.pieces.push(Piece {
                file: file.path.clone(),
                start: position.start,
                end: position.end,
                first_line: position.line,
                n_records: 0,
                repeats: std::collections::BTreeMap::new(),
            });
        }
        if let Some(piece) = self.slice.pieces.last_mut() {
            piece.end = position.end;
            piece.n_records += 1;
            if *occurrence > 1 {
                piece.repeats.insert(position.line, *occurrence);
            }
        }
        self.slice_records += 1;
        self.slice_bytes += bytes;
        self.n_records += 1;
    }

    fn close_slice(&mut self) {
        self.cut.slices.push(std::mem::take(&mut self.slice));
        self.slice_records = 0;
        self.slice_bytes = 0;
    }

    pub(super) fn finish(mut self) -> Cut {
        if self.slice_records > 0 {
            self.close_slice();
        }
        self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], cap: usize, capacity: usize) -> Vec<(u64, u64, u64, String)> {
        let mut reader = LineReader::new(io::BufReader::with_capacity(capacity, bytes), 0, 1, cap);
        let mut found = Vec::new();
        while let Some((position, line)) = reader.next_line().unwrap() {
            let text = match line {
                RawLine::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                RawLine::TooLong { bytes, sha256 } => format!("long {bytes} {}", sha256.short()),
            };
            found.push((position.line, position.start, position.end, text));
        }
        found
    }

    #[test]
    fn line_ends_marks_and_blank_lines() {
        let bytes = b"\xef\xbb\xbfone\r\n\n  \ntwo\r\nthree";
        for capacity in [1, 2, 3, 64] {
            let found = lines(bytes, 100, capacity);
            let expected = [(1, 0, 8, "one"), (4, 12, 17, "two"), (5, 17, 22, "three")];
            assert_eq!(found, expected.map(|(line, start, end, text)| (line, start, end, text.to_owned())).to_vec());
        }
    }

    #[test]
    fn long_lines_are_hashed_without_keeping_them_and_hash_alike_at_every_buffer_size() {
        let long = vec![b'x'; 5000];
        let bytes = [b"short\n", &long[..], b"\r\nafter"].concat();
        let expected = format!("long 5002 {}", Hash::of(&long).short());
        for capacity in [1, 7, 64, 5001, 8192] {
            let found: Vec<String> = lines(&bytes, 100, capacity).into_iter().map(|line| line.3).collect();
            assert_eq!(found, ["short".to_owned(), expected.clone(), "after".to_owned()]);
        }
    }

    #[test]
    fn the_cap_is_inclusive() {
        assert_eq!(lines(b"abc\nabcd\n", 3, 64)[0].3, "abc");
        assert!(lines(b"abc\nabcd\n", 3, 64)[1].3.starts_with("long 5"));
    }

    proptest::proptest! {
        /// Whatever the limits, the pieces cover every record once and in order.
        #[test]
        fn slices_cover_all_records(sizes in proptest::collection::vec(0usize..40, 0..60), records in 1u64..9, bytes in 1u64..200) {
            let folder = tempfile::tempdir().unwrap();
            let mut files = Vec::new();
            let mut expected = Vec::new();
            for (n, chunk) in sizes.chunks(20).enumerate() {
                let path = format!("s/{n}.jsonl");
                let text: String = chunk.iter().enumerate().map(|(row, size)| format!("{n}-{row}{}\n", "x".repeat(*size))).collect();
                expected.extend(text.lines().map(str::to_owned));
                let readable = folder.path().join(n.to_string());
                std::fs::write(&readable, &text).unwrap();
                files.push(RawFile { path, sha256: Hash::of(text.as_bytes()), bytes: text.len() as u64, readable });
            }
            let source = RawSource { name: "s".into(), rights: crate::record::Rights::unknown(), files };
            let limits = ShardLimits { records, bytes, limit: None };
            let cut = cut(&source, limits, 1000, |_, _, line| Ok(RecordId::from_raw_hash("s", &line.sha256()))).unwrap();
            let mut found = Vec::new();
            for slice in &cut.slices {
                let before = found.len();
                read(&source, slice, 1000, |_, _, line, _| {
                    if let RawLine::Text(text) = line { found.push(String::from_utf8(text.to_vec()).unwrap()); }
                    Ok(())
                }).unwrap();
                let n = (found.len() - before) as u64;
                proptest::prop_assert!(n >= 1 && n <= records);
                proptest::prop_assert_eq!(n, slice.pieces.iter().map(|piece| piece.n_records).sum::<u64>());
            }
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
