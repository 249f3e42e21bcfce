//! Vital signs and results of tests in the sentences and tables of a patient, each with its place (MTDiag, figure 6).

use std::collections::BTreeMap;
use std::ops::Range;

use super::patterns;
use super::story::{ReadText, Texts, slice};
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
    /// The column of one patient of a series.
    CASE_COLUMN = r"^(?:case|patient)\s*(?:no\.?\s*|#\s*)?(?P<number>\d{1,2})\b";
    /// The column of another person.
    OF_RELATIVE = r"\b(?:mother|father|brother|sister|son|daughter|wife|husband|twin|sibling|controls?|donor)\b";
    /// Hours after admission, at the end of a head.
    HOURS = r"(?:^|\s)(?P<hours>\d{1,2})\s*(?:h|hours?)$";
    AT_ADMISSION = r"\b(?:admission|arrival|presentation)\b";
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
        number: Option<u32>,
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
        let rows = rows(table);
        let n_head = rows.iter().take_while(|row| is_head(row)).count().max(1);
        let heads = heads(&rows, n_head);
        let names: Vec<&str> = heads.iter().map(|head| own_head(head, number)).collect();
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
            // Under one head over two columns a group stands before the name of the test.
            let group = columns.as_ref().map(|columns| columns.test).filter(|test| {
                let is_filled = cells.get(test + 1).is_some_and(|cell| !cell.trim().is_empty());
                is_filled && heads.get(*test).is_some_and(|head| !head.is_empty() && heads.get(test + 1) == Some(head))
            });
            if let Some(group) = group {
                cells.swap(group, group + 1);
            }
            let place = |column: usize| {
                let column = match group {
                    Some(group) if column == group => group + 1,
                    Some(group) if column == group + 1 => group,
                    _ => column,
                };
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
                test.day = heads.get(value).and_then(|head| hours_as_day(head)).or(test.day);
                if test.day.is_none()
                    && heads.get(value).is_some_and(|head| AT_ADMISSION.is_match(head))
                    && !is_later(value)
                {
                    test.day = Some(0.0);
                }
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

/// Whether a row is one of the head: all of its words are; a row of values can have a head of its own.
fn is_head(row: &Row<'_>) -> bool {
    let mut cells = row.iter().flatten().filter(|(cell, _)| !cell.text.trim().is_empty()).peekable();
    cells.peek().is_some() && cells.all(|(cell, _)| cell.is_header)
}

/// The head of a column as it is read: in a series the patient's own column holds the results, and another person's is nothing.
fn own_head(head: &str, number: Option<u32>) -> &str {
    let case = CASE_COLUMN.captures(head).and_then(|captures| captures.name("number")?.as_str().parse::<u32>().ok());
    match (case, number) {
        (Some(case), Some(number)) if case == number => "Result",
        (Some(_), _) => "another person",
        _ if OF_RELATIVE.is_match(head) => "another person",
        _ => head,
    }
}

/// Days after admission of a head such as "Day of admission 12 hours".
fn hours_as_day(head: &str) -> Option<f64> {
    let is_of_course = AT_ADMISSION.is_match(head) || LATER.is_match(head);
    let hours = HOURS.captures(head).filter(|_| is_of_course)?;
    hours.name("hours")?.as_str().parse::<f64>().ok().map(|hours| hours / 24.0)
}

/// Columns of results of another day than the first one's, which their heads name.
fn other_days(names: &[&str], columns: &results::Columns) -> Vec<usize> {
    let known = [Some(columns.test), Some(columns.value), columns.unit, columns.reference];
    let day = |name: &str| hours_as_day(name).or_else(|| dates::day(name));
    let first = names.get(columns.value).and_then(|name| day(name));
    let is_other = |(column, name): &(usize, &&str)| {
        !known.contains(&Some(*column))
            && !OF_RELATIVE.is_match(name)
            && day(name).is_some_and(|day| Some(day) != first)
    };
    names.iter().enumerate().filter(is_other).map(|(column, _)| column).collect()
}

/// The cells of a table by row and column, each with its bytes in the text of the table; a spanning cell stands in its first
/// place alone. Cells that overlap in a broken table are left out.
fn rows(table: &Table) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<u32, Row<'_>> = BTreeMap::new();
    let (_, places) = table.to_placed_text();
    for (cell, place) in table.cells.iter().zip(places) {
        let position = cell.column as usize;
        if position < MAX_COLUMNS {
            let cells = rows.entry(cell.row).or_default();
            if cells.len() <= position {
                cells.resize(position + 1, None);
            }
            if let Some(slot) = cells.get_mut(position)
                && (!place.is_empty() || cell.text.is_empty())
            {
                *slot = Some((cell, place));
            }
        }
    }
    rows.into_values().collect()
}
