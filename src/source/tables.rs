//! Tables and arrays as lines: CSV, Parquet and JSON arrays are turned once into one JSON object a line, so that the same
//! code cuts and reads them. Blank lines keep the line numbers of the original: a row stands on the line that its record
//! begins on (in Parquet, line n is row n).

use super::csv::{BorderScanner, fields};
use crate::error::input;
use crate::store::parquet;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// Version of what is written here; part of the names of converted files.
pub const REVISION: u32 = 1;

/// The form of a file, by its name and first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Lines,
    Csv,
    Parquet,
    JsonArray,
}

/// Finds the form of a file: by content where that is certain, by name for CSV.
pub fn form(name: &str, readable: &Path) -> anyhow::Result<Form> {
    let mut start = Vec::new();
    std::fs::File::open(readable)?.take(4096).read_to_end(&mut start)?;
    if start.starts_with(b"PAR1") {
        return Ok(Form::Parquet);
    }
    if name.ends_with(".csv") || name.ends_with(".csv.gz") {
        return Ok(Form::Csv);
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    Ok(if text.trim_ascii_start().starts_with(b"[") && name.ends_with(".json") { Form::JsonArray } else { Form::Lines })
}

/// Writes a table as lines. `name` is for messages.
pub fn write_lines(form: Form, name: &str, readable: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    match form {
        Form::Lines => anyhow::bail!("{name} has lines already"),
        Form::Csv => csv_lines(name, &mut BufReader::with_capacity(1 << 18, std::fs::File::open(readable)?), out),
        Form::Parquet => parquet_lines(readable, out),
        Form::JsonArray => {
            array_lines(name, &mut BufReader::with_capacity(1 << 18, std::fs::File::open(readable)?), out)
        }
    }
}

/// Longest record of a table, in bytes.
const RECORD_LIMIT: usize = 64 << 20;

fn csv_lines(name: &str, bytes: &mut dyn BufRead, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut scanner = BorderScanner::default();
    let mut record = Vec::new();
    let mut header: Option<Vec<String>> = None;
    let mut written = 0;
    let mut finish = |line: u64, record: &mut Vec<u8>| -> anyhow::Result<()> {
        if line == 1 && record.starts_with(b"\xef\xbb\xbf") {
            record.drain(..3);
        }
        if !record.trim_ascii().is_empty() {
            pad(out, &mut written, line)?;
            match &header {
                None => {
                    header = Some(csv_header(name, line, record)?);
                    out.write_all(b"\n")?;
                }
                Some(header) => {
                    serde_json::to_writer(&mut *out, &csv_row(header, record))?;
                    out.write_all(b"\n")?;
                }
            }
            written += 1;
        }
        record.clear();
        Ok(())
    };
    for byte in bytes.bytes() {
        let byte = byte?;
        record.push(byte);
        anyhow::ensure!(
            record.len() <= RECORD_LIMIT,
            input(format!("{name}: a record is longer than {RECORD_LIMIT} bytes"))
        );
        if let Some(line) = scanner.push(byte) {
            finish(line, &mut record)?;
        }
    }
    if let Some(line) = scanner.open_quote() {
        return Err(super::csv::open_quote(name, line));
    }
    finish(scanner.record_line(), &mut record)
}

fn csv_header(name: &str, line: u64, record: &[u8]) -> anyhow::Result<Vec<String>> {
    let header = fields(record).map_err(|fault| input(format!("{name}:{line}: {}", fault.detail)))?;
    super::csv::check_header(name, line, header)
}

/// A row as an object: an empty field is null, a quoted empty one is "". A row that cannot be read says why under `#fault`.
fn csv_row(header: &[String], record: &[u8]) -> Map<String, Value> {
    let mut row = Map::new();
    match fields(record) {
        Ok(fields) if fields.len() == header.len() => {
            for (name, value) in header.iter().zip(fields) {
                row.insert(name.clone(), value.map_or(Value::Null, Value::String));
            }
        }
        Ok(fields) => {
            let detail = format!("{} fields where the header has {}", fields.len(), header.len());
            row.insert(FAULT.to_owned(), serde_json::json!(["field_count", detail, String::from_utf8_lossy(record)]));
        }
        Err(fault) => {
            row.insert(
                FAULT.to_owned(),
                serde_json::json!([fault.reason, fault.detail, String::from_utf8_lossy(record)]),
            );
        }
    }
    row
}

/// Key under which a converted row says why it could not be read: `[reason, detail, text of the record]`.
pub const FAULT: &str = "#fault";

fn parquet_lines(readable: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    parquet::for_each_batch(readable, None, |batch| {
        for row in crate::record::from_batch::<Map<String, Value>>(&batch)? {
            serde_json::to_writer(&mut *out, &row)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Elements of the outermost array, each on the line it begins on; line breaks inside become blanks.
fn array_lines(name: &str, bytes: &mut dyn BufRead, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut element: Vec<u8> = Vec::new();
    let (mut depth, mut quoted, mut escaped) = (0u32, false, false);
    let (mut line, mut first_line, mut written) = (1u64, 1u64, 0u64);
    for byte in bytes.bytes() {
        let byte = byte?;
        if byte == b'\n' {
            line += 1;
        }
        if quoted {
            element.push(byte);
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' => quoted = true,
                _ => {}
            }
            let ends = (byte == b',' && depth == 1) || (byte == b']' && depth == 0);
            if ends {
                if !element.trim_ascii().is_empty() {
                    pad(out, &mut written, first_line)?;
                    out.write_all(&element)?;
                    out.write_all(b"\n")?;
                    written += 1;
                }
                element.clear();
            } else if !(depth == 1 && byte == b'[' && element.is_empty())
                && !(element.is_empty() && (byte.is_ascii_whitespace() || depth == 0))
            {
                if element.is_empty() {
                    first_line = line;
                }
                element.push(if byte == b'\n' || byte == b'\r' { b' ' } else { byte });
            }
        }
        anyhow::ensure!(
            element.len() <= RECORD_LIMIT,
            input(format!("{name}: an element is longer than {RECORD_LIMIT} bytes"))
        );
    }
    if depth > 0 || quoted {
        return Err(input(format!("{name}: the array is not closed: the file is cut off; fetch it again")));
    }
    Ok(())
}

/// Blank lines up to `line`; two records on one line get lines of their own.
fn pad(out: &mut dyn Write, written: &mut u64, line: u64) -> std::io::Result<()> {
    while *written + 1 < line {
        out.write_all(b"\n")?;
        *written += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// Case csv-01: byte-order mark, a line break inside quotes, field counts, an unclosed quote.
    #[test]
    fn csv_01_keeps_the_lines_of_its_records() {
        let mut out = Vec::new();
        let text = "\u{feff}id,text\r\n1,\"two\nlines\"\r\n2,\r\n3\r\n4,\"\"";
        csv_lines("s/a.csv", &mut text.as_bytes(), &mut out).unwrap();
        expect![[r##"

            {"id":"1","text":"two\nlines"}

            {"id":"2","text":null}
            {"#fault":["field_count","1 fields where the header has 2","3\r\n"]}
            {"id":"4","text":""}
        "##]]
        .assert_eq(&String::from_utf8(out).unwrap());
        let text = "\u{feff}id,text\n1,\"two\nlines\"\n2,\"open\n3,x\n";
        let error = csv_lines("s/a.csv", &mut text.as_bytes(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("s/a.csv:4:"), "{error}");
        assert_eq!(crate::error::code_of(&error), crate::error::Code::Input);
    }

    #[test]
    fn arrays_become_lines() {
        let mut out = Vec::new();
        let text = "[\n {\"a\": \"x, ]\\\" [\",\n  \"b\": [1, 2]},\n\n {\"a\": 2}, {\"a\": 3}\n]\n";
        array_lines("s/a.json", &mut text.as_bytes(), &mut out).unwrap();
        expect![[r#"

            {"a": "x, ]\" [",   "b": [1, 2]}


            {"a": 2}
            {"a": 3} 
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
        assert!(array_lines("s/a.json", &mut "[{\"a\": 1}, {\"a\"".as_bytes(), &mut Vec::new()).is_err());
    }
}
