//! One reader per raw format. Readers get opened files and give typed rows or a fault with its reason;
//! they know nothing of stages.

pub mod ajcr;
pub mod csv;
pub mod ddxplus;
pub mod edited;
pub mod jats;
pub mod lines;
pub mod medmcqa;
pub mod medqa;
pub mod nejm;
pub mod pmc;
pub mod strict_json;
pub mod tables;

use crate::record::ledger::Exit;
use crate::record::question::AnswerOption;
use crate::text::strict_json::kind;
use lines::RawLine;
use serde_json::{Map, Value};

/// Why a raw row does not become a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    pub exit: Exit,
    pub reason: &'static str,
    /// The number or text that decided.
    pub detail: String,
}

impl RowFault {
    pub fn quarantine(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { exit: Exit::Quarantined, reason, detail: detail.into() }
    }

    pub fn drop(reason: &'static str, detail: impl Into<String>) -> Self {
        Self { exit: Exit::Dropped, reason, detail: detail.into() }
    }
}

/// An exam question as every format gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRow {
    /// Vignette and question in one text, raw.
    pub question: String,
    /// In key order, `A` first; none for open questions.
    pub options: Vec<AnswerOption>,
    pub answer_key: Option<String>,
    /// Text of the keyed option, or the free answer.
    pub answer: String,
    pub exam: Option<String>,
    pub subject: Option<String>,
    pub flags: Vec<String>,
}

/// A line as an object; a converted row that could not be read says why.
fn object(line: &RawLine<'_>, cap: usize) -> Result<Map<String, Value>, RowFault> {
    let bytes = match line {
        RawLine::Text(bytes) => bytes,
        RawLine::TooLong { bytes, .. } => {
            let detail = format!("{bytes} bytes, more than the {cap} allowed by max_line_bytes");
            return Err(RowFault::quarantine("line_too_long", detail));
        }
    };
    let row = strict_json::parse_object(bytes)?;
    if let Some(fault) = row.get(tables::FAULT) {
        let text = |position: usize| fault.get(position).and_then(Value::as_str).unwrap_or_default();
        let reason = if text(0) == "invalid_utf8" { "invalid_utf8" } else { "field_count" };
        return Err(RowFault::quarantine(reason, text(1)));
    }
    Ok(row)
}

fn text(row: &Map<String, Value>, field: &str) -> Result<String, RowFault> {
    match row.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong_type(field, "a string", other)),
        None => Err(RowFault::quarantine("missing_field", format!("`{field}` is missing"))),
    }
}

fn optional_text(row: &Map<String, Value>, field: &str) -> Result<Option<String>, RowFault> {
    match row.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong_type(field, "a string", other)),
    }
}

fn wrong_type(field: &str, expected: &str, found: &Value) -> RowFault {
    RowFault::quarantine("wrong_type", format!("`{field}` must be {expected}, not {}", kind(found)))
}

fn empty_stem(stem: &str) -> RowFault {
    RowFault::drop("empty_stem", format!("the question holds {} blank characters", stem.chars().count()))
}

/// `options{A..}` with exactly one of the given lists of keys.
fn lettered_options(row: &Map<String, Value>, expected: &[&[&str]]) -> Result<Vec<AnswerOption>, RowFault> {
    let map = match row.get("options") {
        Some(Value::Object(map)) => map,
        Some(other) => return Err(wrong_type("options", "an object", other)),
        None => return Err(RowFault::quarantine("missing_field", "`options` is missing")),
    };
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    if !expected.contains(&keys.as_slice()) {
        let last: Vec<&str> = expected.iter().filter_map(|keys| keys.last().copied()).collect();
        let detail = format!("the option keys are {}; A to {} are expected", keys.join(", "), last.join(" or A to "));
        return Err(RowFault::quarantine("option_keys", detail));
    }
    let mut options = Vec::with_capacity(keys.len());
    for key in keys {
        match map.get(key) {
            Some(Value::String(text)) => options.push(AnswerOption { key: key.to_owned(), text: text.clone() }),
            Some(other) => return Err(wrong_type(&format!("options.{key}"), "a string", other)),
            None => return Err(RowFault::quarantine("option_keys", format!("option {key} is missing"))),
        }
    }
    Ok(options)
}

/// Key and text of the keyed option, when the row's two fields agree.
fn keyed(options: &[AnswerOption], key: &str, answer: &str) -> Result<(String, String), RowFault> {
    let Some(option) = options.iter().find(|option| option.key == key) else {
        let detail = format!("answer_idx is `{key}`, which is none of the option keys");
        return Err(RowFault::quarantine("answer_mismatch", detail));
    };
    if option.text != answer {
        let detail = format!("answer is `{answer}` but option {key} is `{}`", option.text);
        return Err(RowFault::quarantine("answer_mismatch", detail));
    }
    Ok((option.key.clone(), option.text.clone()))
}
