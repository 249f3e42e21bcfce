//! Units: how they are written → UCUM (The Unified Code for Units of Measure, case-sensitive codes), and conversions of
//! those that vital signs come in. Factors are those of UCUM: the international pound and inch are exact by definition,
//! a millimetre of mercury is 133.322 Pa.

use super::ClinicalWords;
use super::fixed;
use super::words::UnitEntry;
use anyhow::ensure;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Longest text that is read as a unit, in bytes.
const MAX_UNIT: usize = 40;
/// Most parts that slashes divide a unit into: `mL/min/1.73 m²`.
const MAX_PARTS: usize = 3;

/// The words of units.
#[derive(Clone, Debug)]
pub(super) struct UnitWords {
    /// As written.
    as_written: BTreeMap<String, String>,
    /// In lower case; those that are not exact.
    folded: BTreeMap<String, String>,
    /// Only in front of a denominator.
    compound: BTreeMap<String, String>,
    counted: BTreeSet<String>,
}

impl UnitWords {
    pub(super) fn new(entries: Vec<UnitEntry>, counted: &[String]) -> anyhow::Result<Self> {
        let mut units = Self {
            as_written: BTreeMap::new(),
            folded: BTreeMap::new(),
            compound: BTreeMap::new(),
            counted: counted.iter().cloned().collect(),
        };
        for entry in entries {
            let ucum = entry.ucum;
            ensure!(!entry.words.is_empty(), "unit {ucum:?}: it has no words");
            for word in entry.words {
                let plain = plain(&word);
                ensure!(!plain.is_empty(), "unit {ucum:?}: a word is blank");
                let table = if entry.compound { &mut units.compound } else { &mut units.as_written };
                let before = table.insert(plain.clone(), ucum.clone());
                ensure!(before.is_none_or(|before| before == ucum), "unit {ucum:?}: {word:?} is another unit as well");
                if !entry.exact {
                    let before = units.folded.insert(plain.to_lowercase(), ucum.clone());
                    let is_clear = before.is_none_or(|before| before == ucum);
                    ensure!(is_clear, "unit {ucum:?}: {word:?} is another unit in another case");
                }
            }
        }
        Ok(units)
    }

    fn whole(&self, plain: &str) -> Option<&str> {
        self.as_written.get(plain).or_else(|| self.folded.get(&plain.to_lowercase())).map(String::as_str)
    }

    /// What is divided: a unit, a power of ten, words for what is counted, or nothing.
    fn numerator(&self, plain: &str) -> Option<String> {
        if let Some(unit) = self.compound.get(plain).map(String::as_str).or_else(|| self.whole(plain)) {
            return Some(unit.to_owned());
        }
        let mut rest = plain;
        let mut unit = String::new();
        if let Some(found) = POWER.captures(plain) {
            let exponent: u32 = found.get(1).or_else(|| found.get(2))?.as_str().parse().ok()?;
            unit = format!("10*{exponent}");
            rest = plain.get(found.get(0)?.end()..)?.trim_start();
        } else if let Some((word, counted)) = plain.split_once(' ')
            && let Some(thousands) = self.compound.get(word)
        {
            (unit, rest) = (thousands.clone(), counted);
        }
        let is_counted = rest.is_empty() || self.counted.contains(&rest.to_lowercase());
        is_counted.then_some(unit)
    }
}

/// `×10^9`, `10^9`, `10*9`, `10e9`; and `×109`, where a superscript was lost: behind a multiplication sign nothing else
/// is meant.
static POWER: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"^(?:[x×X*·]? ?10(?:\^|\*\*?|[eE])([0-9]{1,2})|[x×X] ?10([0-9]{1,2}))(?:[^0-9]|$)?"));
static INVERSE: LazyLock<Regex> = LazyLock::new(|| fixed(r"[ ·.]?\b([A-Za-z]+)\^?-1\b"));
static PER: LazyLock<Regex> = LazyLock::new(|| fixed(r"(?i) ?\bper\b ?(cent\b)?"));

/// One notation for letters and digits that look alike: `µ` as `u`, superscripts as digits with `^` behind a digit,
/// `℃` as `°C`, blanks around a slash removed.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut last_was_superscript = false;
    for character in text.trim().chars() {
        let superscript = match character {
            '⁰' => Some('0'),
            '¹' => Some('1'),
            '²' => Some('2'),
            '³' => Some('3'),
            '⁴'..='⁹' => char::from_digit(u32::from(character) - 0x2070, 10),
            '⁻' => Some('-'),
            _ => None,
        };
        if let Some(digit) = superscript {
            if !last_was_superscript && plain.ends_with(|c: char| c.is_ascii_digit()) {
                plain.push('^');
            }
            plain.push(digit);
        } else {
            match character {
                'µ' | 'μ' => plain.push('u'),
                'º' | '˚' | '◦' => plain.push('°'),
                '℃' => plain.push_str("°C"),
                '℉' => plain.push_str("°F"),
                '−' | '‐' | '‑' => plain.push('-'),
                '∕' | '⁄' | '／' => plain.push('/'),
                '％' => plain.push('%'),
                c if c.is_whitespace() => {
                    if !plain.ends_with([' ', '/']) {
                        plain.push(' ');
                    }
                }
                '/' => {
                    plain.truncate(plain.trim_end().len());
                    plain.push('/');
                }
                c => plain.push(c),
            }
        }
        last_was_superscript = superscript.is_some();
    }
    plain
}

/// The UCUM code of a unit as written: `mmHg` → `mm[Hg]`, `°F` → `[degF]`, `beats per minute` → `/min`, `mg/dl` →
/// `mg/dL`, `× 10⁹/L` → `10*9/L`. None for a unit that the lexicon does not know: never a guess.
pub fn ucum(text: &str, words: &ClinicalWords) -> Option<String> {
    if text.len() > MAX_UNIT {
        return None;
    }
    let units = &words.units;
    let plain = plain(text);
    if let Some(unit) = units.whole(&plain) {
        return Some(unit.to_owned());
    }
    let divided = INVERSE.replace_all(&plain, "/$1");
    let divided = PER.replace_all(&divided, |found: &regex::Captures<'_>| {
        let percent = found.get(1).map_or("/", |_| "percent");
        percent.to_owned()
    });
    let mut parts = divided.split('/').map(str::trim);
    let mut unit = units.numerator(parts.next()?)?;
    let mut count = 1;
    for part in parts {
        count += 1;
        if count > MAX_PARTS {
            return None;
        }
        unit.push('/');
        unit.push_str(units.whole(part)?);
    }
    // A power or a word for what is counted is no unit by itself.
    (count > 1).then_some(unit)
}

/// The longest unit at the beginning of a text, after blanks: its UCUM code and where it ends. None if a unit that is
/// not known follows ("mg/box").
pub(super) fn leading(text: &str, words: &ClinicalWords) -> Option<(String, usize)> {
    let start = text.len() - text.trim_start_matches([' ', '\u{a0}', '\u{2009}', '\u{202f}']).len();
    let rest = text.get(start..)?;
    let mut ends = Vec::new();
    let mut last = ' ';
    for (at, character) in rest.char_indices() {
        if is_end(last, rest.get(at..)?) {
            ends.push(at);
        }
        if at > MAX_UNIT || matches!(character, ',' | ';' | '(' | ')' | '[' | ']' | '\n') {
            break;
        }
        last = character;
    }
    if rest.len() <= MAX_UNIT && is_end(last, "") {
        ends.push(rest.len());
    }
    ends.into_iter().rev().find_map(|end| Some((ucum(rest.get(..end)?, words)?, start + end)))
}

/// May a unit end behind `last` where `rest` follows?
fn is_end(last: char, rest: &str) -> bool {
    // A full stop behind a unit belongs to the sentence.
    if last.is_whitespace() || matches!(last, '/' | '^' | '×' | '.') {
        return false;
    }
    let Some(next) = rest.chars().next() else { return true };
    if next.is_alphanumeric() || matches!(next, '/' | '^' | '⁻' | '·' | '∕' | '°' | '′') {
        // "cm" may not be cut out of "cmH2O"; a percent sign may stand directly before a word.
        return last == '%' && next.is_alphabetic();
    }
    let trimmed = rest.trim_start();
    let divides = trimmed.starts_with('/')
        || trimmed.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("per "))
        || rest.starts_with('-') && rest.get(1..).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    !divides
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Temperature,
    Mass,
    Length,
    Pressure,
    Rate,
    Fraction,
    MassPerArea,
    Score,
}

/// What a unit measures, with factor and offset: value × factor + offset is in the first unit of the dimension.
fn scale(unit: &str) -> Option<(Dimension, f64, f64)> {
    Some(match unit {
        "Cel" => (Dimension::Temperature, 1.0, 0.0),
        "[degF]" => (Dimension::Temperature, 5.0 / 9.0, -160.0 / 9.0),
        "K" => (Dimension::Temperature, 1.0, -273.15),
        "kg" => (Dimension::Mass, 1.0, 0.0),
        "g" => (Dimension::Mass, 0.001, 0.0),
        "[lb_av]" => (Dimension::Mass, 0.453_592_37, 0.0),
        "[oz_av]" => (Dimension::Mass, 0.028_349_523_125, 0.0),
        "[stone_av]" => (Dimension::Mass, 6.350_293_18, 0.0),
        "cm" => (Dimension::Length, 1.0, 0.0),
        "m" => (Dimension::Length, 100.0, 0.0),
        "mm" => (Dimension::Length, 0.1, 0.0),
        "[in_i]" => (Dimension::Length, 2.54, 0.0),
        "[ft_i]" => (Dimension::Length, 30.48, 0.0),
        "mm[Hg]" => (Dimension::Pressure, 1.0, 0.0),
        "kPa" => (Dimension::Pressure, 1000.0 / 133.322, 0.0),
        "/min" => (Dimension::Rate, 1.0, 0.0),
        "/s" => (Dimension::Rate, 60.0, 0.0),
        "%" => (Dimension::Fraction, 1.0, 0.0),
        "kg/m2" => (Dimension::MassPerArea, 1.0, 0.0),
        "{score}" => (Dimension::Score, 1.0, 0.0),
        _ => return None,
    })
}

/// A value in another unit, both given in UCUM: temperatures, masses, lengths, pressures, rates. None where the two do
/// not measure the same or one is not known here. The factors are exact; the result is rounded to nine decimals.
pub fn convert(value: f64, from: &str, to: &str) -> Option<f64> {
    let (dimension, factor, offset) = scale(from)?;
    let (other, divisor, other_offset) = scale(to)?;
    if dimension != other {
        return None;
    }
    if from == to {
        return Some(value);
    }
    Some(rounded((value * factor + offset - other_offset) / divisor, 9))
}

/// Rounded to so many decimals, half away from zero; numbers that are too large for decimals stay.
pub(super) fn rounded(value: f64, decimals: u8) -> f64 {
    let power = 10_f64.powi(i32::from(decimals));
    let scaled = (value * power).round();
    if scaled.abs() < 9e15 { scaled / power } else { value }
}
