//! Vital signs and results of tests in the sentences and tables of a patient, each with its place (MTDiag, figure 6).

use std::collections::BTreeMap;
use std::ops::Range;

use super::patterns;
use super::story::{ReadText, Texts, article_text, slice};
use crate::clinical::{ClinicalWords, dates, results, vitals};
use crate::record::article::{Article, Cell, Table, TableContent};
use crate::record::vector::{TestResult, Vital};
use crate::staging::diagnosis::Located;
use crate::text::context::{ContextRules, Experiencer};

/// Rows of a table that are read.
const MAX_ROWS: usize = 120;
/// Most values of a patient, of vital signs and of tests each.
const MAX_VALUES: usize = 600;
/// Columns of a table that are read.
const MAX_COLUMNS: usize = 24;

patterns! {
    /// Tables that are not of the patient.
    OF_OTHERS = r"\b(?:literature|reported|review\w*|previous\w*|published|cases|studies|authors?|differential|criteria|classification)\b";
    /// Values of a later time.
    LATER = r"\b(?:after|post\w*|discharge|follow\w*|treatment|final|last|outcome|control)\b";
}

/// What was measured.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) vitals: Vec<Vital>,
    pub(super) tests: Vec<TestResult>,
}

impl Measured {
    /// Reads a stretch of running text. Of a later part of the course only tests count whose day is told.
    pub(super) fn read(
        &mut self,
        article: &Article,
        place: &Located,
        is_later: bool,
        words: &ClinicalWords,
        context: &ContextRules,
        texts: &mut Texts<'_>,
    ) {
        let Some(text) = slice(article, place).filter(|_| !self.is_full()) else { return };
        let read = ReadText::new(text.into_owned(), context);
        let is_of_patient = |range: &Range<usize>| {
            let said = read.scopes.at(&read.characters(range));
            said.experiencer == Experiencer::Patient && !said.historical
        };
        let day_of = |range: &Range<usize>| {
            let (_, sentence) = read.sentence_of(read.characters(range).start)?;
            dates::day(read.words(&sentence))
        };
        let at = |range: &Range<usize>| Located {
            text_id: place.text_id.clone(),
            start: place.start + range.start,
            end: place.start + range.end,
        };
        if !is_later {
            for (mut vital, range) in vitals::vitals_in(&read.text, words).into_iter().take(MAX_VALUES) {
                if !is_of_patient(&range) {
                    continue;
                }
                vital.day = vital.day.or_else(|| day_of(&range));
                vital.spans.extend(texts.span(&at(&range)));
                self.vitals.push(vital);
            }
        }
        for (mut test, range) in results::results_in(&read.text, words).into_iter().take(MAX_VALUES) {
            test.day = test.day.or_else(|| day_of(&range));
            if !is_of_patient(&range) || is_later && test.day.is_none() {
                continue;
            }
            test.spans.extend(texts.span(&at(&range)));
            self.tests.push(test);
        }
    }

    /// Reads a table with a head and a column of values.
    pub(super) fn read_table(
        &mut self,
        article: &Article,
        position: u32,
        words: &ClinicalWords,
        is_free: &dyn Fn(&str) -> bool,
        texts: &mut Texts<'_>,
    ) {
        let Some(table) = article.tables.get(position as usize).filter(|_| !self.is_full()) else { return };
        let caption: Vec<&str> =
            table.title.iter().chain(table.caption.iter().map(|passage| &passage.text)).map(String::as_str).collect();
        if table.content != TableContent::Grid || OF_OTHERS.is_match(&caption.join(" ")) {
            return;
        }
        let text_id = format!("t{position}");
        let Some(text) = article_text(article, &text_id) else { return };
        let rows = rows(table, &text);
        let n_head = rows.iter().take_while(|row| row.iter().flatten().any(|(cell, _)| cell.is_header)).count().max(1);
        let heads = heads(&rows, n_head);
        let names: Vec<&str> = heads.iter().map(String::as_str).collect();
        if OF_OTHERS.is_match(&names.join(" | ")) {
            return;
        }
        let columns = results::columns(&names, words);
        // Results of other days stand in columns of their own.
        let others: Vec<usize> = columns.iter().flat_map(|columns| other_days(&names, columns)).collect();
        for row in rows.iter().skip(n_head).take(MAX_ROWS) {
            let mut cells: Vec<&str> =
                row.iter().map(|cell| cell.as_ref().map_or("", |(cell, _)| cell.text.as_str())).collect();
            cells.resize(names.len().max(cells.len()), "");
            if !is_free(&cells.join(" ")) {
                continue;
            }
            let place = |column: usize| {
                let (_, range) = row.get(column)?.as_ref()?;
                Some(Located { text_id: text_id.clone(), start: range.start, end: range.end })
            };
            let is_later = |column: usize| names.get(column).is_some_and(|name| LATER.is_match(name));
            let mut is_vital = false;
            for (mut vital, column) in vitals::row(&names, &cells, words) {
                is_vital = true;
                vital.spans = place(column).and_then(|place| texts.span(&place)).into_iter().collect();
                if !vital.spans.is_empty() && !is_later(column) {
                    self.vitals.push(vital);
                }
            }
            let Some(columns) = columns.as_ref().filter(|_| !is_vital) else { continue };
            for value in std::iter::once(columns.value).chain(others.iter().copied()) {
                let (mut names, mut cells) = (names.clone(), cells.clone());
                if value != columns.value && value < cells.len() && columns.value < cells.len() {
                    names.swap(value, columns.value);
                    cells.swap(value, columns.value);
                }
                let Some(mut test) = results::row(&names, &cells, words) else { continue };
                if is_later(value) && test.day.is_none() {
                    continue;
                }
                let places = [Some(columns.test), Some(value), columns.unit, columns.reference];
                test.spans = places.into_iter().flatten().filter_map(|column| texts.span(&place(column)?)).collect();
                if !test.spans.is_empty() {
                    self.tests.push(test);
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.vitals.len().max(self.tests.len()) >= MAX_VALUES
    }

    /// Without what is told twice, in text and table or in two sentences: the first one stays.
    pub(super) fn finish(mut self) -> Self {
        let mut seen: Vec<(String, Option<u64>, Option<u64>)> = Vec::new();
        self.tests.retain(|test| {
            let key = (test.name.to_lowercase(), test.value.map(f64::to_bits), test.day.map(f64::to_bits));
            let is_new = !seen.contains(&key);
            if is_new {
                seen.push(key);
            }
            is_new
        });
        let mut seen: Vec<(crate::record::vector::VitalKind, String)> = Vec::new();
        self.vitals.retain(|vital| {
            let key = (vital.kind, vital.raw.clone());
            let is_new = !seen.contains(&key);
            if is_new {
                seen.push(key);
            }
            is_new
        });
        self
    }
}

/// A row of a table: cells by column, each with its bytes in the text of the table.
type Row<'t> = Vec<Option<(&'t Cell, Range<usize>)>>;

/// The words above each column, of all rows of the head.
fn heads(rows: &[Row<'_>], n_head: usize) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut heads = vec![String::new(); n_columns];
    for (cell, _) in rows.iter().take(n_head).flatten().flatten() {
        let first = cell.column as usize;
        for head in heads.iter_mut().skip(first).take(cell.column_span.max(1) as usize) {
            if !head.is_empty() {
                head.push(' ');
            }
            head.push_str(&cell.text);
        }
    }
    heads
}

/// Columns of results of another day than the first one's, which their heads name.
fn other_days(names: &[&str], columns: &results::Columns) -> Vec<usize> {
    let known = [Some(columns.test), Some(columns.value), columns.unit, columns.reference];
    let first = names.get(columns.value).and_then(|name| dates::day(name));
    let is_other = |(column, name): &(usize, &&str)| {
        !known.contains(&Some(*column)) && dates::day(name).is_some_and(|day| Some(day) != first)
    };
    names.iter().enumerate().filter(is_other).map(|(column, _)| column).collect()
}

/// The cells of a table by row and column, each with its bytes in the text of the table; a spanning cell stands in its first
/// place alone. Cells that overlap in a broken table are left out.
fn rows<'t>(table: &'t Table, text: &str) -> Vec<Row<'t>> {
    let mut rows: BTreeMap<u32, Row<'t>> = BTreeMap::new();
    let (mut at, mut row, mut column) = (0usize, 0, 0);
    for cell in &table.cells {
        while row < cell.row {
            at += 1;
            row += 1;
            column = 0;
        }
        while column < cell.column {
            at += 1;
            column += 1;
        }
        let end = at + cell.text.len();
        let position = cell.column as usize;
        if position < MAX_COLUMNS {
            let cells = rows.entry(cell.row).or_default();
            if cells.len() <= position {
                cells.resize(position + 1, None);
            }
            if let Some(place) = cells.get_mut(position)
                && text.get(at..end) == Some(cell.text.as_str())
            {
                *place = Some((cell, at..end));
            }
        }
        at = end;
    }
    rows.into_values().collect()
}
