//! Vital signs and body measures in their standard units (PatientVector, MTDiag B.5).

use super::fixed;
use super::numbers::{goes_on, number};
use super::prose::{Subject, brackets, named};
use super::results::{self, NamedCell};
use super::units::{convert, leading, rounded, ucum};
use super::{ClinicalWords, dates};
use crate::record::vector::{ValueState, Vital, VitalKind};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Systolic over diastolic.
static PAIR: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"^([0-9]{1,3}(?:\.[0-9])?)\s?(?:/|∕|\bover\b)\s?([0-9]{1,3}(?:\.[0-9])?)"));
/// Two units, the larger first: "5 ft 8 in", "5'8\"", "11 stone 4 lb", "7 lb 3 oz".
static TWO_UNITS: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r#"(?x)^(?:
            (?<ft>[0-9])\s?(?:ft\b\.?|feet\b|foot\b|'|′|’)\s?(?<in>[0-9]{1,2}(?:\.[0-9])?)\s?(?:in\b|inch\b|inches\b|"|″|”|'')
            | (?<st>[0-9]{1,2})\s?(?:st|stone|stones)\s(?<st_lb>[0-9]{1,2})\s?(?:lbs?|pounds?)\b
            | (?<lb>[0-9]{1,2})\s?(?:lbs?|pounds?)\s(?<oz>[0-9]{1,2}(?:\.[0-9])?)\s?(?:oz|ounces?)\b
        )"#,
    )
});

/// The unit in which values of a kind are given, in UCUM.
pub fn standard_unit(kind: VitalKind, words: &ClinicalWords) -> &str {
    words.vitals.get(&kind).map_or("", |rule| rule.unit.as_str())
}

/// One vital sign from a number and its unit as written. `raw` is kept as given; `day` and `spans` are left for the
/// caller.
///
/// Beyond the bounds of its kind: no value, state `out_of_bounds`. An unknown or unfitting unit, or no finite number:
/// no value, state `text`. Without a unit: the one whose bounds admit the number, state `unit_inferred` (98.6 is °F);
/// no value and state `text` if several do, `out_of_bounds` if none does.
pub fn vital(kind: VitalKind, number: f64, unit: Option<&str>, raw: &str, words: &ClinicalWords) -> Vital {
    let unit = unit.map(str::trim).filter(|unit| !unit.is_empty());
    match unit {
        None => inferred(kind, number, raw, words),
        Some(unit) => match ucum(unit, words) {
            Some(unit) => measured(kind, number, &unit, raw, words),
            None => without_value(kind, ValueState::Text, raw, words),
        },
    }
}

/// A vital sign from the text of a table cell: `98.6 F`, `92`, `5'8"`, `94 %`; `unit` is that of the column, if it has
/// one. What is not a number with a unit (`refused`, `120-130`) has no value and the state `text`.
pub fn vital_of_text(kind: VitalKind, text: &str, unit: Option<&str>, words: &ClinicalWords) -> Vital {
    let raw = text.trim();
    if let Some((value, unit, end)) = two_units(kind, raw)
        && end == raw.trim_end_matches('.').len()
    {
        return converted(kind, value, unit, raw, words);
    }
    let Some((value, end)) = number(raw) else { return without_value(kind, ValueState::Text, raw, words) };
    let rest = raw.get(end..).unwrap_or_default().trim();
    if rest.is_empty() {
        return vital(kind, value, unit, raw, words);
    }
    let read = vital(kind, value, Some(rest), raw, words);
    // The unit of the cell decides; another one in the header makes neither credible.
    let of_column = unit.map(str::trim).filter(|unit| !unit.is_empty());
    if of_column.is_some_and(|unit| ucum(unit, words) != ucum(rest, words)) {
        return without_value(kind, ValueState::Text, raw, words);
    }
    read
}

/// Without a unit: state `text` where several units admit the number, since nothing says which one is meant (68 may be
/// kilograms or pounds).
fn inferred(kind: VitalKind, number: f64, raw: &str, words: &ClinicalWords) -> Vital {
    let Some(rule) = words.vitals.get(&kind).filter(|_| number.is_finite()) else {
        return without_value(kind, ValueState::Text, raw, words);
    };
    let mut admitted = rule.bare.iter().filter_map(|unit| {
        let vital = measured(kind, number, unit, raw, words);
        vital.value.is_some().then_some(vital)
    });
    match (admitted.next(), admitted.next()) {
        (Some(vital), None) => Vital { state: ValueState::UnitInferred, ..vital },
        (Some(_), Some(_)) => without_value(kind, ValueState::Text, raw, words),
        _ => without_value(kind, ValueState::OutOfBounds, raw, words),
    }
}

/// `unit` is UCUM.
fn measured(kind: VitalKind, number: f64, unit: &str, raw: &str, words: &ClinicalWords) -> Vital {
    let Some(rule) = words.vitals.get(&kind).filter(|_| number.is_finite()) else {
        return without_value(kind, ValueState::Text, raw, words);
    };
    if unit != rule.unit {
        return converted(kind, number, unit, raw, words);
    }
    if !(rule.low..=rule.high).contains(&number) {
        return without_value(kind, ValueState::OutOfBounds, raw, words);
    }
    Vital { value: Some(number), ..without_value(kind, ValueState::AsStated, raw, words) }
}

fn converted(kind: VitalKind, number: f64, unit: &str, raw: &str, words: &ClinicalWords) -> Vital {
    let rule = words.vitals.get(&kind);
    let standard = rule.and_then(|rule| Some((rule, convert(number, unit, &rule.unit)?)));
    match standard {
        None => without_value(kind, ValueState::Text, raw, words),
        Some((rule, value)) if (rule.low..=rule.high).contains(&value) => Vital {
            value: Some(rounded(value, rule.decimals)),
            ..without_value(kind, ValueState::Converted, raw, words)
        },
        Some(_) => without_value(kind, ValueState::OutOfBounds, raw, words),
    }
}

fn without_value(kind: VitalKind, state: ValueState, raw: &str, words: &ClinicalWords) -> Vital {
    let unit = standard_unit(kind, words).to_owned();
    Vital { kind, value: None, unit, raw: raw.to_owned(), state, day: None, spans: Vec::new() }
}

/// A length or mass in two units: its value in the smaller one, that unit in UCUM, and where it ends.
fn two_units(kind: VitalKind, text: &str) -> Option<(f64, &'static str, usize)> {
    let found = TWO_UNITS.captures(text)?;
    let part = |name: &str| found.name(name).and_then(|part| part.as_str().parse::<f64>().ok());
    let end = found.get(0)?.end();
    let (large, small, times, unit) = match kind {
        VitalKind::Height => (part("ft")?, part("in")?, 12.0, "[in_i]"),
        VitalKind::Weight => match part("st") {
            Some(stone) => (stone, part("st_lb")?, 14.0, "[lb_av]"),
            None => (part("lb")?, part("oz")?, 16.0, "[oz_av]"),
        },
        _ => return None,
    };
    (small < times).then_some((large * times + small, unit, end))
}

/// Systolic and diastolic pressure from `110/65` or `110/65 mmHg` (MIMIC-IV `omr`), both with the text as `raw`. None
/// for every other text. A diastolic pressure that is not below the systolic one cannot be; both are then
/// `out_of_bounds`.
pub fn blood_pressure(text: &str, words: &ClinicalWords) -> Option<[Vital; 2]> {
    let text = text.trim();
    let (pair, end) = pressures(text, None, words)?;
    (end == text.len()).then_some(pair)
}

/// A pair of pressures at the beginning of a text, and where it ends. `of_column` is the unit that the column has;
/// another one beside the numbers makes neither credible.
fn pressures(text: &str, of_column: Option<&str>, words: &ClinicalWords) -> Option<([Vital; 2], usize)> {
    let found = PAIR.captures(text)?;
    let systolic: f64 = found.get(1)?.as_str().parse().ok()?;
    let diastolic: f64 = found.get(2)?.as_str().parse().ok()?;
    let numbers_end = found.get(0)?.end();
    let after = text.get(numbers_end..)?;
    let is_cut = after.starts_with(|c: char| c.is_ascii_digit())
        || after.strip_prefix(['.', ',']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_cut || goes_on(after) {
        return None;
    }
    let (unit, end) = match leading(after, words) {
        Some((unit, length)) => (Some(unit), numbers_end + length),
        None => (None, numbers_end),
    };
    if unit.is_some() && goes_on(text.get(end..)?) {
        return None;
    }
    let raw = text.get(..end)?;
    let of_column = of_column.map(|unit| ucum(unit, words));
    let one = |kind: VitalKind, value: f64| match (&unit, &of_column) {
        (Some(unit), Some(other)) if Some(unit) != other.as_ref() => without_value(kind, ValueState::Text, raw, words),
        (None, Some(None)) => without_value(kind, ValueState::Text, raw, words),
        (Some(unit), _) | (None, Some(Some(unit))) => measured(kind, value, unit, raw, words),
        (None, None) => inferred(kind, value, raw, words),
    };
    let mut pair = [one(VitalKind::SystolicBloodPressure, systolic), one(VitalKind::DiastolicBloodPressure, diastolic)];
    if diastolic >= systolic {
        for vital in &mut pair {
            *vital = without_value(vital.kind, ValueState::OutOfBounds, raw, words);
        }
    }
    Some((pair, end))
}

/// Vital signs named in running text, in its order: "blood pressure of 128/76 mmHg", "SpO2 94% on room air". The range
/// is that of the value with its unit, and the text in it is `raw`; both pressures of a pair have the same. `spans` are
/// empty.
///
/// Not taken: ranges, changes ("from 120 to 90"), limits ("<90%"), numbers whose unit neither stands there nor follows
/// from the bounds, values shared out by "respectively", names behind words that make them another thing ("uterine
/// weight"). Negations and other persons are not looked at.
pub fn vitals_in(text: &str, words: &ClinicalWords) -> Vec<(Vital, Range<usize>)> {
    let mut found = Vec::new();
    for name in named(text, words) {
        if name.is_shared || !words.may_open(text, name.mention.range.start) {
            continue;
        }
        let subject = name.mention.subject;
        let mut after = name.after;
        let mut start = name.mention.range.end;
        // "blood pressure (BP) of 128/76 mmHg"
        if let Some((_, inside, length)) = brackets(after)
            && words.names.find(inside).first().is_some_and(|inner| inner.subject == subject)
        {
            start += length;
            after = after.get(length..).unwrap_or_default();
        }
        let past = words.prose.past_connectives(after);
        start += past;
        let value = after.get(past..).unwrap_or_default();
        match subject {
            Subject::BloodPressure => {
                if let Some((pair, length)) = pressures(value, None, words) {
                    let has_unit = pair.iter().all(|vital| vital.state != ValueState::UnitInferred);
                    if has_unit || words.prose.may_end(value.get(length..).unwrap_or_default()) {
                        found.extend(pair.map(|vital| (vital, start..start + length)));
                    }
                }
            }
            Subject::Vital(kind) => {
                if let Some((vital, length)) = value_in_text(kind, value, words) {
                    found.push((vital, start..start + length));
                }
            }
            Subject::Analyte(_) | Subject::Decoy => {}
        }
    }
    found
}

/// The value at the beginning of a text, with the length of number and unit.
fn value_in_text(kind: VitalKind, text: &str, words: &ClinicalWords) -> Option<(Vital, usize)> {
    if let Some((value, unit, end)) = two_units(kind, text) {
        return Some((converted(kind, value, unit, text.get(..end)?, words), end));
    }
    let (value, number_end) = number(text)?;
    let after = text.get(number_end..)?;
    if let Some((unit, length)) = leading(after, words) {
        let end = number_end + length;
        let is_change = goes_on(text.get(end..)?);
        let vital = measured(kind, value, &unit, text.get(..end)?, words);
        return (!is_change && vital.state != ValueState::Text).then_some((vital, end));
    }
    // A degree sign alone says that it is a temperature, not on which scale.
    let degree = match kind {
        VitalKind::Temperature => ["°", " °", "º", " degrees"].iter().find(|sign| after.starts_with(**sign)),
        _ => None,
    };
    let end = number_end + degree.map_or(0, |sign| sign.len());
    let after = text.get(end..)?;
    // Lengths and masses in prose are of many things: without a unit nothing says that this is the body's.
    let is_measure = matches!(kind, VitalKind::Height | VitalKind::Weight);
    if is_measure || goes_on(after) || !words.prose.may_end(after) {
        return None;
    }
    let vital = inferred(kind, value, text.get(..end)?, words);
    vital.value.is_some().then_some((vital, end))
}

/// Vital signs of a table row such as `Heart rate | 92 | beats/min` (a pair of pressures gives two), with the index of
/// the cell that holds the value. Columns as in [`super::results::columns`]; `day` is what the value column's header
/// says.
pub fn row<S: AsRef<str>>(headers: &[S], cells: &[S], words: &ClinicalWords) -> Vec<(Vital, usize)> {
    let Some(columns) = results::columns(headers, words) else { return Vec::new() };
    let cell = |index: usize| cells.get(index).map_or("", |cell| cell.as_ref().trim());
    let Some(NamedCell { subject, unit, .. }) = results::named_cell(cell(columns.test), words) else {
        return Vec::new();
    };
    let value = results::without_flags(cell(columns.value));
    let of_column = columns.unit.map(cell).filter(|unit| !unit.is_empty()).or(unit);
    let day = headers.get(columns.value).and_then(|header| dates::day(header.as_ref()));
    let mut found = match subject {
        Subject::BloodPressure => pressures(value, of_column, words)
            .filter(|(_, end)| *end == value.len())
            .map_or_else(Vec::new, |(pair, _)| Vec::from(pair)),
        Subject::Vital(kind) if !value.is_empty() => vec![vital_of_text(kind, value, of_column, words)],
        _ => Vec::new(),
    };
    for vital in &mut found {
        vital.day = day;
    }
    found.into_iter().map(|vital| (vital, columns.value)).collect()
}
