//! Files that people edit: JSON Lines and CSV, one row for each record.

use crate::error::input;
use crate::source::csv::{BorderScanner, check_header, fields, open_quote};
use crate::store::fs;
use crate::text::strict_json;
use serde_json::{Map, Value};
use std::path::Path;

/// A file that was read.
pub struct Table {
    /// Its path, for messages.
    pub name: String,
    /// The columns of a CSV file, each once; `None` for JSON Lines.
    pub columns: Option<Vec<String>>,
    pub rows: Vec<FileRow>,
}

pub struct FileRow {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// By name; all are text in a CSV file, where an empty field is left out.
    pub fields: Map<String, Value>,
    is_guarded: bool,
}

impl FileRow {
    /// A text without the white space around it, and without what [`guarded`] put before it in a CSV file; empty if there is
    /// no text.
    pub fn text(&self, field: &str) -> &str {
        let text = self.fields.get(field).and_then(Value::as_str).unwrap_or_default().trim();
        if self.is_guarded { unguarded(text) } else { text }
    }
}

/// Reads a file: CSV if its name ends in `.csv`, else JSON Lines.
///
/// # Errors
/// Input errors with file and line: it cannot be read, is not UTF-8, a line is no JSON object or has a key twice, a record of a
/// CSV file has not the fields of its header.
pub fn read(path: &Path) -> anyhow::Result<Table> {
    let name = path.display().to_string();
    let bytes = fs::read_limited(path, fs::MANIFEST_LIMIT).map_err(|error| input(format!("{error:#}")))?;
    parse(name, &bytes)
}

/// The same of bytes that were read.
pub fn parse(name: String, bytes: &[u8]) -> anyhow::Result<Table> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if name.to_lowercase().ends_with(".csv") { read_csv(name, bytes) } else { read_json(name, bytes) }
}

fn read_json(name: String, bytes: &[u8]) -> anyhow::Result<Table> {
    let text = std::str::from_utf8(bytes).map_err(|_| input(format!("{name} is not UTF-8 text")))?;
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        match strict_json::parse_value(text) {
            Ok(Value::Object(fields)) => rows.push(FileRow { line, fields, is_guarded: false }),
            Ok(other) => {
                let kind = strict_json::kind(&other);
                return Err(input(format!("{name}:{line}: {kind} where an object is expected")));
            }
            Err(error) => {
                let error = error.to_string().replace(" at line 1 column ", " at column ");
                return Err(input(format!("{name}:{line}: {error}")));
            }
        }
    }
    Ok(Table { name, columns: None, rows })
}

fn read_csv(name: String, bytes: &[u8]) -> anyhow::Result<Table> {
    let mut scanner = BorderScanner::default();
    let mut records = Vec::new();
    let mut start = 0;
    for (position, byte) in bytes.iter().enumerate() {
        if let Some(line) = scanner.push(*byte) {
            records.push((line, bytes.get(start..=position).unwrap_or_default()));
            start = position + 1;
        }
    }
    if let Some(line) = scanner.open_quote() {
        return Err(open_quote(&name, line));
    }
    records.push((scanner.record_line(), bytes.get(start..).unwrap_or_default()));
    let mut records = records.into_iter().filter(|(_, record)| !record.trim_ascii().is_empty());
    let (line, first) = records.next().ok_or_else(|| input(format!("{name} is empty")))?;
    let read =
        |line: u64, record: &[u8]| fields(record).map_err(|fault| input(format!("{name}:{line}: {}", fault.detail)));
    let columns = check_header(&name, line, read(line, first)?)?;
    let mut rows = Vec::new();
    for (line, record) in records {
        let row = read(line, record)?;
        if row.len() != columns.len() {
            return Err(input(format!("{name}:{line}: {} fields where the header has {}", row.len(), columns.len())));
        }
        let fields = columns.iter().cloned().zip(row);
        let fields = fields.filter_map(|(column, value)| Some((column, Value::String(value?)))).collect();
        rows.push(FileRow { line, fields, is_guarded: true });
    }
    Ok(Table { name, columns: Some(columns), rows })
}

/// A CSV file for spreadsheets. Every field must be [`guarded`].
pub fn to_csv<'a>(
    columns: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns)?;
    for row in rows {
        writer.write_record(row)?;
    }
    Ok(writer.into_inner()?)
}

/// Text that a spreadsheet would run as a formula with an apostrophe before it; other text as it is.
pub fn guarded(text: &str) -> String {
    if looks_like_formula(text) { format!("'{text}") } else { text.to_owned() }
}

/// The text that was [`guarded`].
pub fn unguarded(text: &str) -> &str {
    text.strip_prefix('\'').filter(|rest| looks_like_formula(rest)).unwrap_or(text)
}

/// Apostrophes before a formula count, so that guarded text can be told from text that was so before.
fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn formulas_are_guarded_and_come_back() {
        assert_eq!(guarded("=1+1"), "'=1+1");
        assert_eq!(guarded("fever - mild"), "fever - mild");
        for text in ["=1", "'=1", "''=1", "'quoted'", "", "'", "-3 mmol/L", "+", "@a"] {
            assert_eq!(unguarded(&guarded(text)), text);
            assert!(!guarded(text).starts_with(['=', '+', '-', '@']), "{text}");
        }
    }

    #[test]
    fn faults_have_their_line() {
        let mut text = String::new();
        for bytes in ["{\"a\":1,\"a\":2}", "\n[1]", "{}\n{\"a\":"] {
            let error = read_json("f.jsonl".to_owned(), bytes.as_bytes()).err().unwrap();
            text += &format!("{error}\n");
        }
        for bytes in ["a,a\n", "a,b\n\n1\n", "a,b\n1,\"2\n", ""] {
            text += &format!("{}\n", read_csv("f.csv".to_owned(), bytes.as_bytes()).err().unwrap());
        }
        expect![[r#"
            f.jsonl:1: duplicate key `a` at column 10
            f.jsonl:2: an array where an object is expected
            f.jsonl:2: EOF while parsing a value at column 5
            f.csv:1: the column `a` stands twice in the header
            f.csv:3: 1 fields where the header has 2
            f.csv:2: a quote in the record that begins here is never closed; everything after it would be read as one field
            f.csv is empty
        "#]].assert_eq(&text);
    }

    #[test]
    fn csv_rows_come_back() {
        let bytes =
            to_csv(["a", "b"], [vec!["x\ny".to_owned(), guarded("=\"1\"")], vec![String::new(), "é".to_owned()]]);
        let bytes = bytes.unwrap();
        let table = read_csv("f.csv".to_owned(), &bytes).unwrap();
        assert_eq!(table.columns.unwrap(), ["a", "b"]);
        let rows: Vec<_> = table.rows.iter().map(|row| (row.line, row.text("a"), row.text("b"))).collect();
        assert_eq!(rows, [(2, "x\ny", "=\"1\""), (4, "", "é")]);
    }
}
