//! CSV (RFC 4180): where records end, and their fields. Files become lines in [`super::tables`].

use super::RowFault;
use crate::error::input;

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

    /// The line on which the record being scanned began.
    pub fn record_line(&self) -> u64 {
        self.record_line
    }

    /// The line on which an open quote began its record, if the input ended inside one.
    pub fn open_quote(&self) -> Option<u64> {
        (self.quoted && !self.pending_quote).then_some(self.record_line)
    }
}

/// One CSV record: `None` for an empty field without quotes, `Some("")` for a quoted empty one.
pub type Fields = Vec<Option<String>>;

/// The error for a quote that swallows the rest of the file.
pub fn open_quote(name: &str, line: u64) -> anyhow::Error {
    input(format!(
        "{name}:{line}: a quote in the record that begins here is never closed; everything after it would be read as one field"
    ))
}

/// Column names: each once.
pub fn check_header(name: &str, line: u64, header: Fields) -> anyhow::Result<Vec<String>> {
    let header: Vec<String> = header.into_iter().map(Option::unwrap_or_default).collect();
    for (position, column) in header.iter().enumerate() {
        if header.iter().take(position).any(|earlier| earlier == column) {
            return Err(input(format!("{name}:{line}: the column `{column}` stands twice in the header")));
        }
    }
    Ok(header)
}

/// The fields of one record, its line end included.
pub fn fields(record: &[u8]) -> Result<Fields, RowFault> {
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
    if record.get(start..).unwrap_or_default().trim_ascii_end() == b"\"\"" {
        positions.push(field);
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_quoted_empty_differ() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(fields(b",\"\",x\n"), Ok(vec![None, some(""), some("x")]));
        assert_eq!(fields(b"\"\",,\"\"\r\n"), Ok(vec![some(""), None, some("")]));
        assert_eq!(fields(b"2,\"a \"\"b\"\", c\"\n"), Ok(vec![some("2"), some("a \"b\", c")]));
    }

    proptest::proptest! {
        /// What the csv crate writes is cut and read back, whatever is in the fields.
        #[test]
        fn written_records_come_back(rows in proptest::collection::vec(proptest::collection::vec("[a-z\",\r\n é]{0,8}", 3), 1..8)) {
            let mut writer = csv::WriterBuilder::new().quote_style(csv::QuoteStyle::Always).from_writer(Vec::new());
            for row in &rows { writer.write_record(row).unwrap(); }
            let bytes = writer.into_inner().unwrap();
            let mut scanner = BorderScanner::default();
            let mut found = Vec::new();
            let mut start = 0;
            for (position, byte) in bytes.iter().enumerate() {
                if scanner.push(*byte).is_some() {
                    found.push(fields(&bytes[start..=position]).unwrap());
                    start = position + 1;
                }
            }
            let expected: Vec<Fields> = rows.iter().map(|row| row.iter().cloned().map(Some).collect()).collect();
            proptest::prop_assert_eq!(found, expected);
            proptest::prop_assert_eq!(scanner.open_quote(), None);
        }
    }
}
