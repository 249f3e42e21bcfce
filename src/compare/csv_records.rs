//! Reading records from CSV.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::rc::Rc;

use super::references::{KEYS, MAX_LINE_BYTES, Problem, ReadError, Row, Sets, Source};
use super::references::{io_fault, key_of, put, slot_of, split_of, value_of};
use super::{CaseSlots, RecordSet};
use crate::record::slots::Slot;

/// Reads CSV: one key column (`question_sha256`, `case_id`, `record_id` or `id`), one column for each slot that is
/// given, and `split` if there is one. Every cell is one value; the offsets of JSONL have no counterpart.
///
/// # Errors
/// The first fault of the file. Nothing is skipped.
pub fn read_csv(reader: impl Read, source: Source<'_>) -> Result<RecordSet, ReadError> {
    let progress = Rc::new(RefCell::new(Progress::default()));
    let watched = Watched { inner: reader, progress: Rc::clone(&progress) };
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(watched);
    let columns = rows.headers().map_err(|error| source.fault(Some(1), csv_problem(&error)))?;
    let columns = columns.iter().map(CsvColumn::of).collect::<Result<Vec<_>, _>>();
    let columns = columns.and_then(|columns| CsvColumn::check(&columns).map(|()| columns));
    let columns = columns.map_err(|problem| source.fault(Some(1), problem))?;
    let mut sets = Sets::default();
    let mut record = csv::StringRecord::new();
    loop {
        progress.borrow_mut().budget = MAX_LINE_BYTES;
        let begin = rows.position().byte();
        let outcome = rows.read_record(&mut record);
        let line = progress.borrow_mut().line_from(begin);
        let fault = |problem| source.fault(line, problem);
        if !outcome.map_err(|error| fault(csv_problem(&error)))? {
            break;
        }
        let row = csv_row(&columns, &record).map_err(fault)?;
        sets.add(row, source).map_err(fault)?;
    }
    // Without an extractor column there is one set, and none has failed before.
    sets.finish(source).map(|mut sets| sets.swap_remove(0))
}

/// What a column of CSV is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CsvColumn {
    /// By its place among [`KEYS`].
    Key(usize),
    /// A key of any kind.
    Id,
    Split,
    Slot(Slot),
}

impl CsvColumn {
    fn of(name: &str) -> Result<Self, Problem> {
        // The library removes a byte-order mark at the very start; spreadsheets also write one inside the quotes.
        let name = name.trim_start_matches('\u{feff}').trim();
        if let Some(place) = KEYS.iter().position(|key| *key == name) {
            return Ok(Self::Key(place));
        }
        match name {
            "id" => Ok(Self::Id),
            "split" => Ok(Self::Split),
            _ => slot_of(name).map(Self::Slot),
        }
    }

    fn check(columns: &[Self]) -> Result<(), Problem> {
        if !columns.iter().any(|column| matches!(column, Self::Key(_) | Self::Id)) {
            return Err(Problem::NoKey);
        }
        let place_of_twin = (1..columns.len()).find(|place| columns[..*place].contains(&columns[*place]));
        match place_of_twin {
            Some(place) => Err(Problem::Csv(format!("column {} repeats an earlier one; keep one of them", place + 1))),
            None => Ok(()),
        }
    }
}

fn csv_row(columns: &[CsvColumn], record: &csv::StringRecord) -> Result<Row, Problem> {
    let mut row = Row { keys: Vec::new(), split: None, extractor: None, slots: CaseSlots::new() };
    let mut keys = BTreeMap::new();
    for (column, cell) in columns.iter().zip(record) {
        match column {
            CsvColumn::Key(place) => keys.extend(key_of(KEYS[*place], cell)?.map(|key| (*place, key))),
            CsvColumn::Id => keys.extend(key_of("id", cell)?.map(|key| (KEYS.len(), key))),
            CsvColumn::Split => row.split = split_of(cell)?,
            CsvColumn::Slot(slot) => put(*slot, value_of(cell).into_iter().collect(), &mut row.slots)?,
        }
    }
    row.keys.extend(keys.into_values());
    if row.keys.is_empty() { Err(Problem::NoKey) } else { Ok(row) }
}

/// What has been read so far. The library counts lines too, but gives a record the line on which the one before it
/// ended if that is followed by CR and LF, or by blank lines.
struct Progress {
    /// How many bytes may still be read for the present record. An open quote would otherwise make one record of the
    /// rest of the file.
    budget: usize,
    n_bytes: u64,
    line: u64,
    is_line_empty: bool,
    /// The first byte of every line that is not blank, with its number, from the present record on.
    begins: VecDeque<(u64, u64)>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { budget: MAX_LINE_BYTES, n_bytes: 0, line: 1, is_line_empty: true, begins: VecDeque::new() }
    }
}

impl Progress {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.line += 1;
                self.is_line_empty = true;
            } else if self.is_line_empty && *byte != b'\r' {
                self.is_line_empty = false;
                self.begins.push_back((self.n_bytes, self.line));
            }
            self.n_bytes += 1;
        }
        self.budget = self.budget.saturating_sub(bytes.len());
    }

    /// The line of the first record that does not begin before a byte; none at the end.
    fn line_from(&mut self, byte: u64) -> Option<u64> {
        while self.begins.front().is_some_and(|(begin, _)| *begin < byte) {
            self.begins.pop_front();
        }
        self.begins.front().map(|(_, line)| *line)
    }
}

/// A reader that keeps [`Progress`] and fails when its budget is used up.
struct Watched<R> {
    inner: R,
    progress: Rc<RefCell<Progress>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut progress = self.progress.borrow_mut();
        if progress.budget == 0 {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "record too long"));
        }
        let n_bytes = self.inner.read(buffer)?;
        progress.add(&buffer[..n_bytes]);
        Ok(n_bytes)
    }
}

fn csv_problem(error: &csv::Error) -> Problem {
    match error.kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => Problem::LongLine,
        csv::ErrorKind::Io(error) => io_fault(error),
        csv::ErrorKind::Utf8 { .. } => Problem::NotUtf8,
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Problem::Csv(format!("{len} cells where the header has {expected_len}; quote cells that hold commas"))
        }
        _ => Problem::Csv(error.to_string()),
    }
}
