//! CSV (RFC 4180) cut at record borders, not at line ends.

use super::RowFault;
use crate::error::input;
use crate::record::raw::RawFile;

/// A record border scanner that tells quoted line breaks from record ends.
///
/// Only quotes and line ends matter for borders; fields are read by the `csv` crate.
pub struct BorderScanner {
    quoted: bool,
    /// The last byte was a quote inside a quoted field: the next one decides whether it closed it.
    pending_quote: bool,
    at_field_start: bool,
    line: u64,
    record_line: u64,
}

impl Default for BorderScanner {
    fn default() -> Self {
        Self { quoted: false, pending_quote: false, at_field_start: true, line: 1, record_line: 1 }
    }
}

impl BorderScanner {
    /// Takes one byte; `Some(line)` when it ends the record that began on that line.
    pub fn push(&mut self, byte: u8) -> Option<u64> {
        let was_start = std::mem::replace(&mut self.at_field_start, false);
        if self.quoted && self.pending_quote {
            self.pending_quote = false;
            if byte == b'"' {
                return None;
            }
            self.quoted = false;
        } else if self.quoted {
            match byte {
                b'"' => self.pending_quote = true,
                b'\n' => self.line += 1,
                _ => {}
            }
            return None;
        }
        match byte {
            b'"' if was_start => self.quoted = true,
            b',' => self.at_field_start = true,
            b'\n' => {
                self.line += 1;
                self.at_field_start = true;
                return Some(std::mem::replace(&mut self.record_line, self.line));
            }
            _ => {}
        }
        None
    }

    /// The line on which an open quote began its record, if the input ended inside one.
    pub fn open_quote(&self) -> Option<u64> {
        (self.quoted && !self.pending_quote).then_some(self.record_line)
    }
}

/// One CSV record: `None` for an empty field without quotes, `Some("")` for a quoted empty one.
pub type Fields = Vec<Option<String>>;

/// A CSV file in memory with its header; for tables of bounded size.
#[derive(Debug, PartialEq, Eq)]
pub struct CsvTable {
    pub header: Vec<String>,
    /// Line of the first byte and the fields, or why there are none.
    pub rows: Vec<(u64, Result<Fields, RowFault>)>,
}

/// Reads CSV bytes: the byte-order mark is removed, every row must have as many fields as the header.
///
/// # Errors
/// No header, a header that is not UTF-8 or names a column twice, and an unclosed quote, which would
/// swallow the rest of the file: it stops with the line on which its record began.
pub fn read_table(file: &RawFile, bytes: &[u8]) -> anyhow::Result<CsvTable> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
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
        return Err(input(format!(
            "{}:{line}: a quote in the record that begins here is never closed; everything after it would be read as one field",
            file.path
        )));
    }
    if start < bytes.len() {
        records.push((scanner.record_line, bytes.get(start..).unwrap_or_default()));
    }
    let mut records = records.into_iter().filter(|(_, record)| !record.trim_ascii().is_empty());
    let (line, first) = records.next().ok_or_else(|| input(format!("{}: is empty", file.path)))?;
    let header = fields(first).map_err(|fault| input(format!("{}:{line}: {}", file.path, fault.detail)))?;
    let header: Vec<String> = header.into_iter().map(Option::unwrap_or_default).collect();
    for (position, name) in header.iter().enumerate() {
        if header.iter().take(position).any(|earlier| earlier == name) {
            return Err(input(format!("{}:{line}: the column `{name}` stands twice in the header", file.path)));
        }
    }
    let rows = records
        .map(|(line, record)| {
            let row = fields(record).and_then(|row| {
                if row.len() == header.len() {
                    return Ok(row);
                }
                Err(RowFault::quarantine(
                    "field_count",
                    format!("{} fields where the header has {}", row.len(), header.len()),
                ))
            });
            (line, row)
        })
        .collect();
    Ok(CsvTable { header, rows })
}

fn fields(record: &[u8]) -> Result<Fields, RowFault> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record);
    let mut row = csv::StringRecord::new();
    match reader.read_record(&mut row) {
        Ok(true) => {}
        Ok(false) => return Ok(Vec::new()),
        Err(error) => {
            let reason =
                if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) { "invalid_utf8" } else { "invalid_csv" };
            return Err(RowFault::quarantine(reason, error.to_string()));
        }
    }
    // The csv crate does not tell `` from `""`; the raw bytes do.
    let quoted = quoted_empty(record);
    Ok(row
        .iter()
        .enumerate()
        .map(|(position, text)| (!text.is_empty() || quoted.contains(&position)).then(|| text.to_owned()))
        .collect())
}

/// Positions of the fields that are written `""`.
fn quoted_empty(record: &[u8]) -> Vec<usize> {
    let mut positions = Vec::new();
    let (mut field, mut start) = (0, 0);
    let mut scanner = BorderScanner::default();
    for (position, byte) in record.iter().enumerate() {
        scanner.push(*byte);
        if scanner.at_field_start {
            if record.get(start..position).unwrap_or_default().trim_ascii_end() == b"\"\"" {
                positions.push(field);
            }
            field += 1;
            start = position + 1;
        }
    }
    if record.get(start..) == Some(b"\"\"") {
        positions.push(field);
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Hash;

    fn read(text: &str) -> anyhow::Result<CsvTable> {
        let file = RawFile { path: "s/a.csv".into(), sha256: Hash::of(b""), bytes: 0, readable: "a".into() };
        read_table(&file, text.as_bytes())
    }

    fn some(texts: &[&str]) -> Fields {
        texts.iter().map(|text| Some((*text).to_owned())).collect()
    }

    /// Case csv-01: byte-order mark, a line break inside quotes, an unclosed quote.
    #[test]
    fn csv_01_marks_quotes_and_open_quotes() {
        let error = read("\u{feff}id,text\n1,\"two\nlines\"\n2,\"open\n3,x\n").unwrap_err();
        assert_eq!(crate::error::code_of(&error), crate::error::Code::Input);
        assert!(error.to_string().starts_with("s/a.csv:4:"), "{error}");

        let table = read("\u{feff}id,text\r\n1,\"two\nlines\"\r\n2,\"a \"\"b\"\", c\"\r\n3\r\n4,x,y\r\n5,x").unwrap();
        assert_eq!(table.header, ["id", "text"]);
        let faults: Vec<_> =
            table.rows.iter().map(|(line, row)| (*line, row.as_ref().map_err(|fault| fault.reason))).collect();
        assert_eq!(
            faults,
            [
                (2, Ok(&some(&["1", "two\nlines"]))),
                (4, Ok(&some(&["2", "a \"b\", c"]))),
                (5, Err("field_count")),
                (6, Err("field_count")),
                (7, Ok(&some(&["5", "x"]))),
            ]
        );
    }

    #[test]
    fn empty_and_quoted_empty_differ() {
        let table = read("a,b,c\n,\"\",x\n\"\",,\"\"\n").unwrap();
        assert_eq!(table.rows[0].1, Ok(vec![None, Some(String::new()), Some("x".into())]));
        assert_eq!(table.rows[1].1, Ok(vec![Some(String::new()), None, Some(String::new())]));
    }

    proptest::proptest! {
        /// What the csv crate writes comes back, whatever is in the fields.
        #[test]
        fn written_tables_come_back(rows in proptest::collection::vec(proptest::collection::vec("[a-z\",\r\n é]{0,8}", 3), 1..8)) {
            let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
            writer.write_record(["x", "y", "z"]).unwrap();
            for row in &rows { writer.write_record(row).unwrap(); }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let table = read(&text).unwrap();
            let found: Vec<Fields> = table.rows.into_iter().map(|(_, row)| row.unwrap()).collect();
            let expected: Vec<Fields> = rows.iter().map(|row| row.iter().cloned().map(Some).collect()).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
