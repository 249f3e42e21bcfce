//! Laboratory results in running text and in rows of tables (PatientVector, MTDiag B.5).

use super::fixed;
use super::numbers::{comparator, goes_on, number};
use super::prose::{Interval, Subject, brackets, interval, named};
use super::units::{leading, ucum};
use super::words::Analyte;
use super::{ClinicalWords, dates};
use crate::record::vector::TestResult;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Marks that a laboratory puts beside values out of range, on either side of the number.
static FLAGS: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        r"^\s*(?:[*†‡↑↓▲▼⬆⬇]+\s*|(?:HH?|LL?)\s+)?(?<value>.*?)(?:\s*[*†‡↑↓▲▼⬆⬇]+|\s*[(\[]?\b(?:HH?|LL?|",
        r"(?i:high|low|elevated|decreased|increased|normal))\b[)\]]?|\s*[(\[][*†‡↑↓]+[)\]])?\s*$",
    ))
});

/// A number with what stands around it.
struct Value {
    comparator: Option<&'static str>,
    number: f64,
    end: usize,
}

/// Comparator and number at the beginning of a text. A minus sign counts for analytes that may be negative.
fn value(text: &str, analyte: &Analyte) -> Option<Value> {
    let (comparator, start) = comparator(text).map_or((None, 0), |(sign, length)| (Some(sign), length));
    let rest = text.get(start..)?;
    let unsigned = if analyte.is_signed { rest.strip_prefix(['-', '−', '–']) } else { None };
    let (number, length) = number(unsigned.unwrap_or(rest))?;
    let sign_length = unsigned.map_or(0, |unsigned| rest.len() - unsigned.len());
    let number = if sign_length > 0 { -number } else { number };
    Some(Value { comparator, number, end: start + sign_length + length })
}

/// Where a reference range stands, and what it says.
struct Reference {
    text: Range<usize>,
    low: Option<f64>,
    high: Option<f64>,
    unit: Option<String>,
    end: usize,
}

/// A reference range at the beginning of a text: "(reference range, 130–170)", ", normal <5", "(3.5–5.1)". Without a
/// word for it only round brackets that hold nothing but a range count: others are citations or the value in another
/// unit.
fn reference(text: &str, words: &ClinicalWords) -> Option<Reference> {
    let with = |found: Interval, from: usize, end: usize| Reference {
        text: from..from + found.end,
        low: found.low,
        high: found.high,
        unit: found.unit,
        end,
    };
    if let Some((open, inside, end)) = brackets(text) {
        let from = end - 1 - inside.len();
        let past = words.prose.past_reference_words(inside);
        let body = inside.get(past.unwrap_or(0)..)?;
        let found =
            interval(body, words).filter(|found| body.get(found.end..).is_some_and(|rest| rest.trim().is_empty()));
        return match (past, found) {
            (None, Some(found)) if open == '(' => Some(with(trimmed(found, body), from + lead(body), end)),
            (None, _) => None,
            (Some(past), Some(found)) => Some(with(trimmed(found, body), from + past + lead(body), end)),
            (Some(_), None) if inside.contains(|c: char| c.is_ascii_digit()) => {
                let from = from + lead(inside);
                let text = from..from + inside.trim().len();
                Some(Reference { text, low: None, high: None, unit: None, end })
            }
            _ => None,
        };
    }
    let past_comma = text.trim_start().strip_prefix([',', ';'])?;
    let from = text.len() - past_comma.len();
    let past = words.prose.past_reference_words(past_comma)?;
    let body = past_comma.get(past..)?;
    let found = interval(body, words)?;
    let end = from + past + found.end;
    Some(with(trimmed(found, body), from + past + lead(body), end))
}

fn lead(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The end of an interval counted from its first character.
fn trimmed(found: Interval, body: &str) -> Interval {
    Interval { end: found.end.saturating_sub(lead(body)), ..found }
}

fn set_reference(result: &mut TestResult, text: &str, found: &Reference, unit: Option<&str>) {
    result.reference_text = text.get(found.text.clone()).map(str::to_owned);
    // Limits in another unit than the value are no limits of it.
    if found.unit.is_none() || found.unit.as_deref() == unit {
        (result.reference_low, result.reference_high) = (found.low, found.high);
    }
}

/// Results named in running text, in its order: "haemoglobin was 104 g/L (reference range, 130–170)". The range reaches
/// from the name to the end of value, unit and reference; name, value_text, unit and reference_text are stretches of
/// it. The name has the word for its specimen with it ("urine sodium"). `day` and `spans` are left for the caller.
///
/// Taken are analytes of the lexicon with a number and, where the analyte has units, one of them. Not taken: ranges,
/// changes ("from 1.2 to 3.4"), goals ("keep potassium >4"), values shared out by "respectively", units alone.
pub fn results_in(text: &str, words: &ClinicalWords) -> Vec<(TestResult, Range<usize>)> {
    let mut found = Vec::new();
    for name in named(text, words) {
        let Subject::Analyte(index) = name.mention.subject else { continue };
        let Some(analyte) = words.analytes.get(index).filter(|_| !name.is_shared) else { continue };
        let start = words.prose.with_specimen(text, name.mention.range.start);
        if words.prose.is_refused(text, start) {
            continue;
        }
        let Some((mut result, length)) = result_behind(name.after, index, analyte, words) else { continue };
        text.get(start..name.mention.range.end).unwrap_or_default().clone_into(&mut result.name);
        found.push((result, start..name.mention.range.end + length));
    }
    found
}

/// What stands behind the name of an analyte, and the length of it.
fn result_behind(after: &str, index: usize, analyte: &Analyte, words: &ClinicalWords) -> Option<(TestResult, usize)> {
    let mut result = TestResult::default();
    let mut at = 0;
    let mut early_reference = None;
    // "C-reactive protein (CRP) 62 mg/L", "haemoglobin (normal range, 130–170 g/L) was 104 g/L"
    if let Some((_, inside, length)) = brackets(after)
        && number(inside.trim_start()).is_none()
        && comparator(inside.trim_start()).is_none()
    {
        let (abbreviation, range) = inside.split_once([';', ',']).unwrap_or((inside, ""));
        let reads = |text: &str| words.prose.past_reference_words(text).is_some();
        let is_same =
            words.names.find(abbreviation).first().map(|inner| inner.subject) == Some(Subject::Analyte(index));
        let is_letters = abbreviation.len() <= 10 && abbreviation.chars().all(|c| c.is_alphabetic() || c == '-');
        let is_abbreviation = is_same || is_letters && !words.prose.names_specimen(abbreviation);
        if reads(inside) {
            early_reference = reference(after, words);
        } else if is_abbreviation && (range.is_empty() || reads(range)) {
            if !range.is_empty() {
                let comma = length - 2 - range.len();
                let shifted = after.get(comma..length - 1)?;
                early_reference = reference(shifted, words)
                    .map(|found| Reference { text: found.text.start + comma..found.text.end + comma, ..found });
            }
        } else {
            return None;
        }
        at = length;
    }
    at += words.prose.past_connectives(after.get(at..)?);
    let value_start = at;
    let value = value(after.get(at..)?, analyte)?;
    at += value.end;
    let (mut end, mut unit) = (at, None);
    match leading(after.get(at..)?, words) {
        Some((fitting, length)) if analyte.units.contains(&fitting) => {
            end = at + length;
            result.unit = after.get(at..end).map(|unit| unit.trim().to_owned());
            unit = Some(fitting);
        }
        Some(_) => return None,
        None => {
            let may_be_bare = analyte.units.is_empty() || analyte.is_unit_optional;
            let is_within = (analyte.low..=analyte.high).contains(&value.number);
            let rest = after.get(at..)?;
            let has_reference = reference(rest, words).is_some();
            if !may_be_bare || !is_within || !(words.prose.may_end(rest) || has_reference) {
                return None;
            }
        }
    }
    if goes_on(after.get(end..)?) {
        return None;
    }
    result.value_text = after.get(value_start..at).map(|text| text.trim().to_owned());
    result.value = Some(value.number);
    result.comparator = value.comparator.map(str::to_owned);
    let rest = after.get(end..)?;
    if let Some(found) = early_reference {
        set_reference(&mut result, after, &found, unit.as_deref());
    } else if let Some(found) = reference(rest, words) {
        set_reference(&mut result, rest, &found, unit.as_deref());
        end += found.end;
    }
    Some((result, end))
}

// Tables -------------------------------------------------------------------------------------------------------------

/// Which columns of a table hold what, by the words of its headers. Indices into the row of headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Names of tests.
    pub test: usize,
    /// Results; the first such column where there are several, as in a course over days.
    pub value: usize,
    pub unit: Option<usize>,
    pub reference: Option<usize>,
}

/// The columns of a table of results; None where names or values cannot be told. A header without words in front of all
/// others is that of the names.
pub fn columns<S: AsRef<str>>(headers: &[S], words: &ClinicalWords) -> Option<Columns> {
    let lexicon = &words.columns;
    let (mut test, mut unit, mut reference) = (None, None, None);
    let mut values = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let header = header.as_ref().to_lowercase();
        let plain: String =
            header.chars().map(|c| if c.is_alphanumeric() || matches!(c, '\'' | '’') { c } else { ' ' }).collect();
        let listed: Vec<&str> = plain.split_whitespace().collect();
        let has = |list: &[String]| {
            list.iter().any(|entry| entry.split(' ').eq(listed.iter().copied()))
                || list.iter().any(|entry| listed.contains(&entry.as_str()))
        };
        let whole = listed.join(" ");
        if lexicon.unit.contains(&whole) {
            unit.get_or_insert(index);
        } else if has(&lexicon.reference) {
            reference.get_or_insert(index);
        } else if has(&lexicon.value) || dates::day(&header).is_some() {
            values.push(index);
        } else if has(&lexicon.test) || (listed.is_empty() && index == 0) {
            test.get_or_insert(index);
        }
    }
    // "Laboratory values | On admission | Reference"
    if test.is_none() && values.len() > 1 && values.first() == Some(&0) {
        test = Some(0);
        values.remove(0);
    }
    Some(Columns { test: test?, value: *values.first()?, unit, reference })
}

/// What the first cell of a row says: a name, perhaps with its unit and reference.
pub(super) struct NamedCell<'t> {
    pub(super) subject: Subject,
    pub(super) name: &'t str,
    pub(super) unit: Option<&'t str>,
    pub(super) reference: Option<&'t str>,
}

/// Reads "Haemoglobin (g/L)", "WBC count, ×10⁹/L", "Urine sodium", "AST (SGOT)". None if anything else stands there.
pub(super) fn named_cell<'t>(cell: &'t str, words: &ClinicalWords) -> Option<NamedCell<'t>> {
    let mentions = words.names.find(cell);
    let first = mentions.first().filter(|first| first.subject != Subject::Decoy)?;
    let start = words.prose.with_specimen(cell, first.range.start);
    if !cell.get(..start)?.trim().is_empty() {
        return None;
    }
    let name = cell.get(start..first.range.end)?;
    let mut named = NamedCell { subject: first.subject, name, unit: None, reference: None };
    let mut rest = cell.get(first.range.end..)?;
    for _ in 0..4 {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(named);
        }
        let part = if let Some((_, inside, end)) = brackets(rest) {
            rest = rest.get(end..)?;
            inside.trim()
        } else if let Some(listed) = rest.strip_prefix([',', ';', ':']) {
            let end = listed.find(['(', ';']).unwrap_or(listed.len());
            rest = listed.get(end..)?;
            listed.get(..end)?.trim()
        } else {
            // "count", "level"; or a unit without a sign before
            let signs = rest.find(['(', '[', ',', ';', ':']).unwrap_or(rest.len());
            let past = words.prose.past_connectives(&format!(" {}", rest.get(..signs)?)).saturating_sub(1);
            if past > 0 {
                rest = rest.get(past..)?;
                continue;
            }
            std::mem::take(&mut rest)
        };
        let is_letters = part.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | ' ' | '+'));
        if part.is_empty() {
        } else if ucum(part, words).is_some() {
            named.unit.get_or_insert(part);
        } else if words.prose.past_reference_words(part).is_some() || interval(part, words).is_some() {
            named.reference.get_or_insert(part);
        } else if words.names.find(part).first().map(|inner| inner.subject) == Some(named.subject) {
        } else if !is_letters || part.len() > 12 || words.prose.names_specimen(part) {
            return None;
        }
    }
    rest.trim().is_empty().then_some(named)
}

/// A value cell without the marks of the laboratory.
pub(super) fn without_flags(cell: &str) -> &str {
    let cell = cell.trim();
    FLAGS.captures(cell).and_then(|found| found.name("value")).map_or(cell, |value| value.as_str().trim())
}

/// One row of a table of results. Flags beside the value (`H`, `L`, `↑`, `*`) are left out of everything. `day` is what
/// the value column's header says ("On admission" is 0). A unit may stand in its column, behind the name, behind the
/// value or in the value's header; a table may do without. None for a row without an analyte of the lexicon, without a
/// number, or with a unit that does not fit the analyte.
pub fn row<S: AsRef<str>>(headers: &[S], cells: &[S], words: &ClinicalWords) -> Option<TestResult> {
    let columns = columns(headers, words)?;
    let cell = |index: usize| cells.get(index).map_or("", |cell| cell.as_ref().trim());
    let named = named_cell(cell(columns.test), words)?;
    let Subject::Analyte(index) = named.subject else { return None };
    let analyte = words.analytes.get(index)?;
    let header = headers.get(columns.value).map_or("", |header| header.as_ref());
    let is_dash = |text: &str| text.chars().all(|c| !c.is_alphanumeric() && !matches!(c, '%' | '/'));
    let of_header =
        header.find(['(', '[']).and_then(|at| brackets(header.get(at..)?)).map(|(_, inside, _)| inside.trim());
    let of_header = of_header.filter(|unit| ucum(unit, words).is_some());
    let of_column = columns.unit.map(cell).filter(|unit| !is_dash(unit));
    let mut unit = of_column.or(named.unit).or(of_header);
    let fits = |unit: &str| ucum(unit, words).is_some_and(|unit| analyte.units.contains(&unit));
    if unit.is_some_and(|unit| !fits(unit)) {
        return None;
    }
    let written = cell(columns.value);
    // "104 L" is low, "0.4 L/L" a unit: what fits the analyte goes first.
    let read = |text: &str| {
        let value = value(text, analyte)?;
        let rest = text.get(value.end..)?.trim();
        let is_clear = rest.is_empty() || fits(rest) && unit.is_none_or(|unit| ucum(unit, words) == ucum(rest, words));
        is_clear.then_some((value, rest.to_owned()))
    };
    let (text, (value, rest)) =
        [written, without_flags(written)].into_iter().find_map(|text| Some((text, read(text)?)))?;
    if unit.is_none() && !rest.is_empty() {
        unit = text.get(value.end..).map(str::trim);
    }
    if unit.is_none() && !(analyte.low..=analyte.high).contains(&value.number) {
        return None;
    }
    let mut result = TestResult {
        name: named.name.to_owned(),
        value: Some(value.number),
        comparator: value.comparator.map(str::to_owned),
        value_text: text.get(..value.end).map(str::to_owned),
        unit: unit.map(str::to_owned),
        day: dates::day(header),
        ..TestResult::default()
    };
    let range = columns
        .reference
        .map(cell)
        .filter(|text| !is_dash(text) || text.contains(char::is_numeric))
        .or(named.reference);
    if let Some(range) = range.filter(|range| !range.is_empty()) {
        result.reference_text = Some(range.to_owned());
        let past = words.prose.past_reference_words(range).unwrap_or(0);
        let body = range.get(past..).unwrap_or_default();
        let found =
            interval(body, words).filter(|found| body.get(found.end..).is_some_and(|rest| rest.trim().is_empty()));
        if let Some(found) = found
            && (found.unit.is_none() || unit.is_none() || found.unit == unit.and_then(|unit| ucum(unit, words)))
        {
            (result.reference_low, result.reference_high) = (found.low, found.high);
        }
    }
    Some(result)
}
