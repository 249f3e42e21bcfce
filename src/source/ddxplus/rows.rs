//! Rows of patient files as slices of the file: CSV (RFC 4180) by its header, or JSON Lines into which a Parquet file was
//! converted. Quoted fields may hold line ends; a record of bounded length is in memory at a time.

use super::quarantine;
use crate::error::input;
use crate::record::Hash;
use crate::record::raw::RawFile;
use crate::source::RowFault;
use crate::source::lines::{LineReader, Position, RawLine};
use crate::store::raw;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;

/// The columns of a patient file.
pub const COLUMNS: [&str; 6] = ["AGE", "DIFFERENTIAL_DIAGNOSIS", "SEX", "PATHOLOGY", "EVIDENCES", "INITIAL_EVIDENCE"];

/// One patient as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatientRow<'a> {
    pub age: Cow<'a, str>,
    pub differential: Cow<'a, str>,
    pub sex: Cow<'a, str>,
    pub pathology: Cow<'a, str>,
    pub evidences: Cow<'a, str>,
    pub initial_evidence: Cow<'a, str>,
}

/// Where the columns stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// For each field of a record which of [`COLUMNS`] it is.
    columns: Vec<Option<usize>>,
}

impl Header {
    /// Reads the header of a patient file. Further columns are allowed, other names for these are not.
    ///
    /// # Errors
    /// A header without one of the columns, or with one twice; the message has file, line and header.
    pub fn parse(file: &str, line: u64, record: &[u8]) -> anyhow::Result<Self> {
        let fields = crate::source::csv::fields(record)
            .map_err(|fault| input(format!("{file}:{line}: the header cannot be read: {}", fault.detail)))?;
        let names = crate::source::csv::check_header(file, line, fields)?;
        let missing: Vec<&str> =
            COLUMNS.into_iter().filter(|column| !names.iter().any(|name| name == column)).collect();
        if !missing.is_empty() {
            let shown = crate::text::excerpt(&names.join(","), 200);
            return Err(input(format!(
                "{file}:{line}: the header is `{shown}`, without {}; patients of DDXPlus have the columns {}. A file with other names is not read, since nothing says that they mean the same",
                missing.join(", "),
                COLUMNS.join(",")
            )));
        }
        let columns = names.iter().map(|name| COLUMNS.iter().position(|column| column == name)).collect();
        Ok(Self { columns })
    }

    /// The fields of one record, borrowed where no quote is doubled.
    pub fn row<'a>(&self, record: &'a [u8]) -> Result<PatientRow<'a>, RowFault> {
        let text = std::str::from_utf8(record).map_err(|error| {
            quarantine("encoding", format!("not UTF-8 at byte {} of the record", error.valid_up_to() + 1))
        })?;
        let mut row = PatientRow::default();
        let mut rest = Some(text);
        let mut n_fields = 0;
        while let Some(text) = rest {
            let (field, after) = field(text, n_fields)?;
            if let Some(Some(column)) = self.columns.get(n_fields) {
                let slot = match column {
                    0 => &mut row.age,
                    1 => &mut row.differential,
                    2 => &mut row.sex,
                    3 => &mut row.pathology,
                    4 => &mut row.evidences,
                    _ => &mut row.initial_evidence,
                };
                *slot = field;
            }
            n_fields += 1;
            rest = after;
        }
        if n_fields != self.columns.len() {
            let detail = format!("{n_fields} fields where the header has {}", self.columns.len());
            return Err(quarantine("field_count", detail));
        }
        Ok(row)
    }
}

/// The first field of a text and what stands behind its comma.
fn field(text: &str, position: usize) -> Result<(Cow<'_, str>, Option<&str>), RowFault> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Ok(match text.split_once(',') {
            Some((field, after)) => (Cow::Borrowed(field), Some(after)),
            None => (Cow::Borrowed(text), None),
        });
    };
    let mut owned: Option<String> = None;
    let mut rest = quoted;
    loop {
        let Some((piece, after)) = find(rest.as_bytes(), b'"').and_then(|end| rest.split_at_checked(end)) else {
            return Err(quarantine("invalid_csv", format!("the quote of field {} is not closed", position + 1)));
        };
        let after = after.get(1..).unwrap_or_default();
        if let Some(next) = after.strip_prefix('"') {
            let text = owned.get_or_insert_default();
            text.push_str(piece);
            text.push('"');
            rest = next;
            continue;
        }
        let field = match owned {
            None => Cow::Borrowed(piece),
            Some(mut text) => {
                text.push_str(piece);
                Cow::Owned(text)
            }
        };
        return match after.strip_prefix(',') {
            Some(after) => Ok((field, Some(after))),
            None if after.is_empty() => Ok((field, None)),
            None => {
                let detail = format!("field {} goes on behind its closing quote", position + 1);
                Err(quarantine("invalid_csv", detail))
            }
        };
    }
}

/// The position of a byte, eight at a time.
fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    find_either(bytes, wanted, wanted)
}

/// The first position of one of two bytes, eight at a time.
fn find_either(bytes: &[u8], one: u8, other: u8) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (ones, others) = (u64::from(one) * LOW, u64::from(other) * LOW);
    // A byte of `word ^ pattern` is zero where the byte is the wanted one; the lowest marked byte is exact.
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let mut chunks = bytes.chunks_exact(8);
    let mut start = 0;
    for chunk in chunks.by_ref() {
        let mut word = [0u8; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let marks = zeros(word ^ ones) | zeros(word ^ others);
        if marks != 0 {
            return Some(start + (marks.trailing_zeros() / 8) as usize);
        }
        start += 8;
    }
    let rest = chunks.remainder().iter().position(|byte| *byte == one || *byte == other);
    rest.map(|position| start + position)
}

/// Where the scan of a record stands.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    /// Bytes of the record that are scanned.
    at: usize,
    quoted: bool,
    /// Line ends within quotes.
    inner_lines: u64,
}

impl Scan {
    /// Goes on to the end of the record: the bytes up to and with its line end; none if more bytes are needed.
    fn find_end(&mut self, record: &[u8], is_all: bool) -> Option<usize> {
        loop {
            let rest = record.get(self.at..).unwrap_or_default();
            let Some(offset) = find_either(rest, b'"', b'\n') else {
                self.at = record.len();
                return None;
            };
            let position = self.at + offset;
            let byte = record.get(position);
            if byte == Some(&b'\n') {
                self.at = position + 1;
                if !self.quoted {
                    return Some(self.at);
                }
                self.inner_lines += 1;
            } else if !self.quoted {
                // A quote opens a field only at its start.
                let before = position.checked_sub(1).and_then(|before| record.get(before));
                self.quoted = before.is_none_or(|before| *before == b',');
                self.at = position + 1;
            } else {
                match record.get(position + 1) {
                    Some(b'"') => self.at = position + 2,
                    None if !is_all => {
                        self.at = position;
                        return None;
                    }
                    _ => {
                        self.quoted = false;
                        self.at = position + 1;
                    }
                }
            }
        }
    }
}

/// A record in the buffer of its reader.
enum Found {
    Short(Range<usize>),
    Long { bytes: u64, sha256: Hash },
}

struct FoundAt {
    position: Position,
    record: Found,
}

/// Reads the records of a CSV file as slices; those longer than `cap` bytes are hashed and skipped.
pub struct RecordReader<R> {
    input: R,
    cap: usize,
    buffer: Vec<u8>,
    /// The bytes of the buffer that are not read yet.
    start: usize,
    end: usize,
    at_end: bool,
    offset: u64,
    line: u64,
    open_quote: Option<u64>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: Read> RecordReader<R> {
    /// `offset` and `line` say where in the file `input` begins.
    pub fn new(input: R, offset: u64, line: u64, cap: usize) -> Self {
        Self::with_capacity(1 << 18, input, offset, line, cap)
    }

    fn with_capacity(capacity: usize, input: R, offset: u64, line: u64, cap: usize) -> Self {
        let buffer = vec![0; capacity.max(2)];
        Self { input, cap, buffer, start: 0, end: 0, at_end: false, offset, line, open_quote: None }
    }

    /// The next record that is not blank, without its line end.
    pub fn next_record(&mut self) -> io::Result<Option<(Position, RawLine<'_>)>> {
        Ok(self.advance()?.map(|found| (found.position, self.bytes_of(found.record))))
    }

    fn bytes_of(&self, record: Found) -> RawLine<'_> {
        match record {
            Found::Short(range) => RawLine::Text(self.buffer.get(range).unwrap_or_default()),
            Found::Long { bytes, sha256 } => RawLine::TooLong { bytes, sha256 },
        }
    }

    fn advance(&mut self) -> io::Result<Option<FoundAt>> {
        loop {
            let (start, line) = (self.offset, self.line);
            let mut scan = Scan::default();
            let mut long: Option<(Sha256, u64)> = None;
            let length = loop {
                let record = self.buffer.get(self.start..self.end).unwrap_or_default();
                match scan.find_end(record, self.at_end) {
                    Some(length) => break length,
                    None if self.at_end => {
                        if scan.quoted {
                            self.open_quote = Some(line);
                        }
                        break record.len();
                    }
                    None => {
                        if record.len() > self.cap + BYTE_ORDER_MARK.len() + 2 {
                            self.skip_scanned(&mut scan, &mut long);
                        }
                        self.fill()?;
                    }
                }
            };
            if length == 0 && long.is_none() {
                return Ok(None);
            }
            let mut range = self.start..self.start + length;
            self.start = range.end;
            self.offset += length as u64 + long.as_ref().map_or(0, |(_, bytes)| *bytes);
            let position = Position { line, start, end: self.offset };
            let record = self.buffer.get(range.clone()).unwrap_or_default();
            self.line += scan.inner_lines + u64::from(record.ends_with(b"\n") && !scan.quoted);
            let content = record.strip_suffix(b"\n").unwrap_or(record);
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            range.end = range.start + content.len();
            if start == 0 && long.is_none() && content.starts_with(BYTE_ORDER_MARK) {
                range.start += BYTE_ORDER_MARK.len();
            }
            let content = self.buffer.get(range.clone()).unwrap_or_default();
            let sha256 = match long {
                Some((mut hasher, _)) => {
                    hasher.update(content);
                    Some(Hash::from_digest(hasher.finalize().into()))
                }
                None => (content.len() > self.cap).then(|| Hash::of(content)),
            };
            let record = match sha256 {
                Some(sha256) => Found::Long { bytes: position.end - start, sha256 },
                None if content.trim_ascii().is_empty() => continue,
                None => Found::Short(range),
            };
            return Ok(Some(FoundAt { position, record }));
        }
    }

    /// Hashes what is scanned of a record that is too long, and forgets it; its last bytes stay, which the end needs.
    fn skip_scanned(&mut self, scan: &mut Scan, long: &mut Option<(Sha256, u64)>) {
        const KEPT: usize = 3;
        let n = scan.at.saturating_sub(KEPT);
        let bytes = self.buffer.get(self.start..self.start + n).unwrap_or_default();
        let (hasher, skipped) = long.get_or_insert_with(|| (Sha256::new(), 0));
        hasher.update(bytes);
        *skipped += n as u64;
        self.start += n;
        scan.at -= n;
    }

    /// More bytes behind those that are there.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

/// A patient file, opened at some record.
pub enum PatientFile {
    Csv {
        header: Header,
        records: RecordReader<File>,
    },
    /// A converted Parquet file.
    Lines(LineReader<BufReader<File>>),
}

/// How rows of an opened file are to be read.
#[derive(Clone, Debug)]
pub enum RowForm {
    Csv(Header),
    Lines,
}

impl PatientFile {
    /// Opens a file at its first record, or at one that the cut found.
    pub fn open(file: &RawFile, at: Option<(u64, u64)>, cap: usize) -> anyhow::Result<Self> {
        let mut first = [0u8; 1];
        let mut start = raw::open(file, 0)?;
        let is_json = matches!(start.read(&mut first), Ok(1)) && first == *b"{";
        if is_json {
            let (offset, line) = at.unwrap_or((0, 1));
            return Ok(Self::Lines(LineReader::new(raw::open(file, offset)?, offset, line, cap)));
        }
        let mut records = RecordReader::new(raw::open(file, 0)?.into_inner(), 0, 1, cap);
        let header = match records.next_record().map_err(|error| unreadable(file, &error))? {
            Some((position, RawLine::Text(record))) => Header::parse(&file.path, position.line, record)?,
            Some((position, RawLine::TooLong { .. })) => {
                return Err(input(format!("{}:{}: the header is longer than {cap} bytes", file.path, position.line)));
            }
            None => return Err(input(format!("{}: the file is empty, without even a header", file.path))),
        };
        if let Some((offset, line)) = at {
            records = RecordReader::new(raw::open(file, offset)?.into_inner(), offset, line, cap);
        }
        Ok(Self::Csv { header, records })
    }

    /// How the rows of this file are read.
    pub fn form(&self) -> RowForm {
        match self {
            Self::Csv { header, .. } => RowForm::Csv(header.clone()),
            Self::Lines(_) => RowForm::Lines,
        }
    }

    /// The next row.
    ///
    /// # Errors
    /// A file that cannot be read, and a quote that is never closed.
    pub fn next_row(&mut self, file: &RawFile) -> anyhow::Result<Option<(Position, RawLine<'_>)>> {
        match self {
            Self::Csv { records, .. } => {
                let found = records.advance().map_err(|error| unreadable(file, &error))?;
                if let Some(line) = records.open_quote {
                    return Err(crate::source::csv::open_quote(&file.path, line));
                }
                Ok(found.map(|found| (found.position, records.bytes_of(found.record))))
            }
            Self::Lines(lines) => lines.next_line().map_err(|error| unreadable(file, &error)),
        }
    }
}

fn unreadable(file: &RawFile, error: &io::Error) -> anyhow::Error {
    input(format!("cannot read {}: {error}", file.path))
}

impl RowForm {
    /// The fields of one raw row.
    pub fn row<'a>(&self, line: &'a RawLine<'_>, cap: usize) -> Result<PatientRow<'a>, RowFault> {
        let bytes = match line {
            RawLine::Text(bytes) => bytes,
            RawLine::TooLong { bytes, .. } => {
                let detail = format!("{bytes} bytes, more than the {cap} allowed by max_row_bytes");
                return Err(quarantine("row_too_long", detail));
            }
        };
        match self {
            Self::Csv(header) => header.row(bytes),
            Self::Lines => converted_row(bytes),
        }
    }
}

/// A row of a Parquet file: texts as in CSV, numbers, or lists with their elements.
fn converted_row(bytes: &[u8]) -> Result<PatientRow<'static>, RowFault> {
    let mut object = crate::source::strict_json::parse_object(bytes)?;
    let [age, differential, sex, pathology, evidences, initial_evidence] =
        COLUMNS.map(|column| cell(&mut object, column));
    Ok(PatientRow {
        age: age?,
        differential: differential?,
        sex: sex?,
        pathology: pathology?,
        evidences: evidences?,
        initial_evidence: initial_evidence?,
    })
}

fn cell(object: &mut Map<String, Value>, column: &str) -> Result<Cow<'static, str>, RowFault> {
    match object.remove(column) {
        Some(Value::String(text)) => Ok(Cow::Owned(text)),
        // A list of JSON is a literal of Python as well.
        Some(value @ (Value::Number(_) | Value::Array(_))) => Ok(Cow::Owned(value.to_string())),
        Some(other) => {
            let kind = crate::text::strict_json::kind(&other);
            Err(quarantine("wrong_type", format!("`{column}` must be a text, a number or a list, not {kind}")))
        }
        None => Err(quarantine("missing_field", format!("`{column}` is missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::csv::BorderScanner;

    fn records(bytes: &[u8], cap: usize, capacity: usize) -> Vec<(u64, u64, u64, String)> {
        let mut reader = RecordReader::with_capacity(capacity, bytes, 0, 1, cap);
        let mut found = Vec::new();
        while let Some((position, record)) = reader.next_record().unwrap() {
            let text = match record {
                RawLine::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                RawLine::TooLong { bytes, sha256 } => format!("long {bytes} {}", sha256.short()),
            };
            found.push((position.line, position.start, position.end, text));
        }
        found
    }

    fn header() -> Header {
        Header::parse("d/a.csv", 1, COLUMNS.join(",").as_bytes()).unwrap()
    }

    #[test]
    fn records_keep_their_lines_and_bytes_whatever_the_buffer_holds() {
        let bytes = b"\xef\xbb\xbfa,b\r\n1,\"two\nlines\"\"\"\n\n \r\n3,x\"y";
        for capacity in [2, 3, 5, 64] {
            let expected = [(1, 0, 8, "a,b"), (2, 8, 24, "1,\"two\nlines\"\"\""), (6, 28, 33, "3,x\"y")];
            let expected = expected.map(|(line, start, end, text)| (line, start, end, text.to_owned()));
            assert_eq!(records(bytes, 100, capacity), expected, "{capacity}");
        }
    }

    #[test]
    fn long_records_are_hashed_and_not_kept() {
        let long = [b"\"", vec![b'x'; 5000].as_slice(), b"\n,\""].concat();
        let bytes = [b"short\n", long.as_slice(), b"\r\nafter"].concat();
        let expected = format!("long {} {}", long.len() + 2, Hash::of(&long).short());
        for capacity in [2, 64, 5001, 1 << 16] {
            let found: Vec<String> = records(&bytes, 100, capacity).into_iter().map(|record| record.3).collect();
            assert_eq!(found, ["short".to_owned(), expected.clone(), "after".to_owned()], "{capacity}");
        }
        // A line of 64 MB without an end takes no more memory than the cap.
        let endless = io::Read::take(io::repeat(b'x'), 64 << 20);
        let mut reader = RecordReader::new(endless, 0, 1, 1000);
        assert!(
            matches!(reader.next_record().unwrap(), Some((_, RawLine::TooLong { bytes, .. })) if bytes == 64 << 20)
        );
        assert!(reader.buffer.len() < 1 << 20);
    }

    #[test]
    fn fields_are_borrowed_and_faults_are_named() {
        let header = header();
        let row = header.row(b"3,\"[['a, b', 1.0]]\",F,\"x \"\"y\"\"\",,E_1").unwrap();
        assert_eq!(row.differential, "[['a, b', 1.0]]");
        assert!(matches!(row.differential, Cow::Borrowed(_)));
        assert_eq!(
            (row.pathology.as_ref(), row.evidences.as_ref(), row.initial_evidence.as_ref()),
            ("x \"y\"", "", "E_1")
        );
        for (record, reason) in [
            (&b"1,2,3"[..], "field_count"),
            (b"1,2,3,4,5,6,7", "field_count"),
            (b"1,2,3,4,5,\"6", "invalid_csv"),
            (b"1,\"2\"x,3,4,5,6", "invalid_csv"),
            (b"1,\xff,3,4,5,6", "encoding"),
        ] {
            assert_eq!(header.row(record).unwrap_err().reason, reason);
        }
        let error = Header::parse("d/a.csv", 1, b"age,top5_diagnoses,sex,diagnosis,features,feature_id").unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("d/a.csv:1: the header is `age,top5_diagnoses,"), "{error}");
    }

    proptest::proptest! {
        /// Borders are those of the scanner that goes byte by byte, for any bytes and buffer.
        #[test]
        fn borders_are_those_of_the_scanner(bytes in "[a\",\n\r]{0,60}", capacity in 2usize..40) {
            let bytes = bytes.as_bytes();
            let mut scanner = BorderScanner::default();
            let (mut expected, mut start) = (Vec::new(), 0);
            for (position, byte) in bytes.iter().enumerate() {
                if let Some(line) = scanner.push(*byte) {
                    expected.push((line, start as u64, position as u64 + 1));
                    start = position + 1;
                }
            }
            if start < bytes.len() {
                expected.push((scanner.record_line(), start as u64, bytes.len() as u64));
            }
            let is_blank = |start: u64, end: u64| bytes[start as usize..end as usize].trim_ascii().is_empty();
            expected.retain(|(_, start, end)| !is_blank(*start, *end));
            let found: Vec<_> = records(bytes, 1000, capacity).into_iter().map(|(line, start, end, _)| (line, start, end)).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
