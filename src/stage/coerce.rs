//! Typed reading of single fields of a reply that fits its schema: words for "not stated", and numbers written as text.
//!
//! Every value that is not taken as it stands is counted by kind; what is of another type is refused, never converted.

use crate::text::excerpt;
use crate::text::strict_json::kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Coercions by kind: [`MISSING_WORD`], [`NUMERIC_TEXT`], [`UNIT_REMOVED`], [`DECIMAL_COMMA`].
pub type CoercionCounts = BTreeMap<&'static str, u64>;

/// A word for "not stated" became null.
pub const MISSING_WORD: &str = "missing_word";
/// A text that is a number became one.
pub const NUMERIC_TEXT: &str = "numeric_text";
/// A unit behind that number was taken off.
pub const UNIT_REMOVED: &str = "unit_removed";
/// The comma in that number was read as its decimal point.
pub const DECIMAL_COMMA: &str = "decimal_comma";

/// Characters of a value that an error quotes.
const MAX_QUOTE: usize = 60;

/// The closed list of texts that mean "not stated", compared without case and outer white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingWords(BTreeSet<String>);

impl MissingWords {
    /// The list of [`MissingWords::default`].
    pub const STANDARD: [&str; 9] =
        ["", "null", "none", "n/a", "na", "not available", "not mentioned", "not reported", "not stated"];

    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        MissingWords(words.into_iter().map(folded).collect())
    }

    /// The list without a word that is an answer in this field, such as `none` for allergies.
    pub fn keeping(mut self, word: &str) -> Self {
        self.0.remove(&folded(word));
        self
    }

    pub fn holds(&self, text: &str) -> bool {
        self.0.contains(&folded(text))
    }
}

impl Default for MissingWords {
    fn default() -> Self {
        MissingWords::of(MissingWords::STANDARD)
    }
}

fn folded(text: &str) -> String {
    text.trim().to_lowercase()
}

/// How one field is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRule {
    pub missing: MissingWords,
    /// Every notation of the field's unit that may follow a number, as `°C` and `C`; compared exactly.
    pub units: Vec<String>,
    /// Whether `38,5` is a number.
    pub decimal_comma: bool,
}

/// Why a value is not taken. Quotes at most 60 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoercionError {
    #[error("{found} where {expected} is expected")]
    Type { expected: &'static str, found: &'static str },
    #[error("`{text}` is not a number as a whole")]
    NotANumber { text: String },
    #[error("`{text}` has another unit than the field")]
    Unit { text: String },
}

/// The text as it stands; none if it is null or a word for "not stated".
pub fn text(value: &Value, field: &FieldRule, counts: &mut CoercionCounts) -> Result<Option<String>, CoercionError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if field.missing.holds(text) => {
            count(counts, MISSING_WORD);
            Ok(None)
        }
        Value::String(text) => Ok(Some(text.clone())),
        other => Err(CoercionError::Type { expected: "a text", found: kind(other) }),
    }
}

/// The number, in the field's unit; none if it is null or a word for "not stated". A text counts only if all of it is one
/// decimal number (no `+`, exponent, leading zeros or separators of thousands), bare or before a unit of the field.
pub fn number(value: &Value, field: &FieldRule, counts: &mut CoercionCounts) -> Result<Option<f64>, CoercionError> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => {
            return number.as_f64().map(Some).ok_or_else(|| CoercionError::NotANumber { text: number.to_string() });
        }
        Value::String(text) => text,
        other => return Err(CoercionError::Type { expected: "a number", found: kind(other) }),
    };
    if field.missing.holds(text) {
        count(counts, MISSING_WORD);
        return Ok(None);
    }
    let quoted = || excerpt(text, MAX_QUOTE);
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !matches!(c, '0'..='9' | '-' | '.' | ',')).unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(end);
    let comma = field.decimal_comma && digits.contains(',');
    let parsed = decimal(digits, if comma { ',' } else { '.' });
    let parsed = parsed.ok_or_else(|| CoercionError::NotANumber { text: quoted() })?;
    let unit = unit.trim_start();
    if !unit.is_empty() && !field.units.iter().any(|known| known == unit) {
        return Err(CoercionError::Unit { text: quoted() });
    }
    count(counts, NUMERIC_TEXT);
    if !unit.is_empty() {
        count(counts, UNIT_REMOVED);
    }
    if comma {
        count(counts, DECIMAL_COMMA);
    }
    Ok(Some(parsed))
}

/// `-`, digits without leading zeros, and a fraction behind `point`.
fn decimal(text: &str, point: char) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once(point) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || (whole.len() > 1 && whole.starts_with('0')) || !fraction.is_none_or(digits) {
        return None;
    }
    text.replacen(point, ".", 1).parse().ok().filter(|number: &f64| number.is_finite())
}

fn count(counts: &mut CoercionCounts, kind: &'static str) {
    *counts.entry(kind).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn celsius() -> FieldRule {
        FieldRule { units: vec!["°C".to_owned(), "C".to_owned()], ..FieldRule::default() }
    }

    #[test]
    fn llm_07_missing_words_and_numbers_as_text() {
        let reply = json!({"age": "45", "temp": "38,5", "allergies": "none", "history": "N/A", "sex": "null"});
        let plain = FieldRule::default();
        let mut counts = CoercionCounts::new();
        assert_eq!(number(&reply["age"], &plain, &mut counts), Ok(Some(45.0)));
        assert_eq!(
            number(&reply["temp"], &celsius(), &mut counts),
            Err(CoercionError::NotANumber { text: "38,5".to_owned() })
        );
        let allergies = FieldRule { missing: MissingWords::default().keeping("none"), ..FieldRule::default() };
        assert_eq!(text(&reply["allergies"], &allergies, &mut counts), Ok(Some("none".to_owned())));
        assert_eq!(text(&reply["history"], &plain, &mut counts), Ok(None));
        assert_eq!(text(&reply["sex"], &plain, &mut counts), Ok(None));
        assert_eq!(counts, CoercionCounts::from([(MISSING_WORD, 2), (NUMERIC_TEXT, 1)]));

        let comma = FieldRule { decimal_comma: true, ..celsius() };
        assert_eq!(number(&reply["temp"], &comma, &mut counts), Ok(Some(38.5)));
        assert_eq!(counts, CoercionCounts::from([(DECIMAL_COMMA, 1), (MISSING_WORD, 2), (NUMERIC_TEXT, 2)]));
    }

    #[test]
    fn texts() {
        let mut counts = CoercionCounts::new();
        let mut lines = String::new();
        for value in [
            json!(null),
            json!(""),
            json!(" \n"),
            json!(" NONE "),
            json!("Na"),
            json!("Not Reported"),
            json!("none known"),
            json!(" sodium "),
            json!(45),
            json!(false),
            json!(["none"]),
            json!({}),
        ] {
            lines += &match text(&value, &FieldRule::default(), &mut counts) {
                Ok(text) => format!("{value} -> {text:?}\n"),
                Err(error) => format!("{value}: {error}\n"),
            };
        }
        expect![[r#"
            null -> None
            "" -> None
            " \n" -> None
            " NONE " -> None
            "Na" -> None
            "Not Reported" -> None
            "none known" -> Some("none known")
            " sodium " -> Some(" sodium ")
            45: a number where a text is expected
            false: a boolean where a text is expected
            ["none"]: an array where a text is expected
            {}: an object where a text is expected
        "#]]
        .assert_eq(&lines);
        assert_eq!(counts, CoercionCounts::from([(MISSING_WORD, 5)]));
        let closed = FieldRule { missing: MissingWords::of(["Unknown"]), ..FieldRule::default() };
        assert_eq!(text(&json!("unknown"), &closed, &mut counts), Ok(None));
        assert_eq!(text(&json!("none"), &closed, &mut counts), Ok(Some("none".to_owned())));
    }

    #[test]
    fn numbers() {
        let mut counts = CoercionCounts::new();
        let mut lines = String::new();
        for decimal_comma in [false, true] {
            lines += &format!("decimal comma: {decimal_comma}\n");
            let rule = FieldRule { decimal_comma, ..celsius() };
            for value in [
                json!(45),
                json!(-0.5),
                json!("45"),
                json!(" -0.5 "),
                json!("38.5 °C"),
                json!("38.5C"),
                json!("38,5 °C"),
                json!("38.5 °F"),
                json!("38.5 °c"),
                json!("1,234.5"),
                json!("1.234,5"),
                json!("1,2,3"),
                json!("about 38"),
                json!("38-39"),
                json!("> 38"),
                json!("38.5 °C or so"),
                json!("+5"),
                json!("5."),
                json!(".5"),
                json!("045"),
                json!("1e3"),
                json!("--5"),
                json!("٤٥"),
                json!("NaN"),
                json!("inf"),
                json!("°C"),
                json!("N/A"),
                json!("9".repeat(400)),
                json!(null),
                json!(true),
                json!([38.5]),
            ] {
                lines += &match number(&value, &rule, &mut counts) {
                    Ok(number) => format!("{value} -> {number:?}\n"),
                    Err(error) => format!("{}: {error}\n", excerpt(&value.to_string(), 20)),
                };
            }
        }
        expect![[r#"
            decimal comma: false
            45 -> Some(45.0)
            -0.5 -> Some(-0.5)
            "45" -> Some(45.0)
            " -0.5 " -> Some(-0.5)
            "38.5 °C" -> Some(38.5)
            "38.5C" -> Some(38.5)
            "38,5 °C": `38,5 °C` is not a number as a whole
            "38.5 °F": `38.5 °F` has another unit than the field
            "38.5 °c": `38.5 °c` has another unit than the field
            "1,234.5": `1,234.5` is not a number as a whole
            "1.234,5": `1.234,5` is not a number as a whole
            "1,2,3": `1,2,3` is not a number as a whole
            "about 38": `about 38` is not a number as a whole
            "38-39": `38-39` is not a number as a whole
            "> 38": `> 38` is not a number as a whole
            "38.5 °C or so": `38.5 °C or so` has another unit than the field
            "+5": `+5` is not a number as a whole
            "5.": `5.` is not a number as a whole
            ".5": `.5` is not a number as a whole
            "045": `045` is not a number as a whole
            "1e3": `1e3` has another unit than the field
            "--5": `--5` is not a number as a whole
            "٤٥": `٤٥` is not a number as a whole
            "NaN": `NaN` is not a number as a whole
            "inf": `inf` is not a number as a whole
            "°C": `°C` is not a number as a whole
            "N/A" -> None
            "999999999999999999…: `99999999999999999999999999999999999999999999999999999999999…` is not a number as a whole
            null -> None
            true: a boolean where a number is expected
            [38.5]: an array where a number is expected
            decimal comma: true
            45 -> Some(45.0)
            -0.5 -> Some(-0.5)
            "45" -> Some(45.0)
            " -0.5 " -> Some(-0.5)
            "38.5 °C" -> Some(38.5)
            "38.5C" -> Some(38.5)
            "38,5 °C" -> Some(38.5)
            "38.5 °F": `38.5 °F` has another unit than the field
            "38.5 °c": `38.5 °c` has another unit than the field
            "1,234.5": `1,234.5` is not a number as a whole
            "1.234,5": `1.234,5` is not a number as a whole
            "1,2,3": `1,2,3` is not a number as a whole
            "about 38": `about 38` is not a number as a whole
            "38-39": `38-39` is not a number as a whole
            "> 38": `> 38` is not a number as a whole
            "38.5 °C or so": `38.5 °C or so` has another unit than the field
            "+5": `+5` is not a number as a whole
            "5.": `5.` is not a number as a whole
            ".5": `.5` is not a number as a whole
            "045": `045` is not a number as a whole
            "1e3": `1e3` has another unit than the field
            "--5": `--5` is not a number as a whole
            "٤٥": `٤٥` is not a number as a whole
            "NaN": `NaN` is not a number as a whole
            "inf": `inf` is not a number as a whole
            "°C": `°C` is not a number as a whole
            "N/A" -> None
            "999999999999999999…: `99999999999999999999999999999999999999999999999999999999999…` is not a number as a whole
            null -> None
            true: a boolean where a number is expected
            [38.5]: an array where a number is expected
        "#]].assert_eq(&lines);
        expect![[r#"
            {
                "decimal_comma": 1,
                "missing_word": 2,
                "numeric_text": 9,
                "unit_removed": 5,
            }
        "#]]
        .assert_debug_eq(&counts);
    }
}
