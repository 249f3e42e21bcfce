//! MedQA (US): JSON Lines with `question, answer, options{A..}, meta_info, answer_idx` and, in the
//! 4-option form, `metamap_phrases` (jind11/MedQA, `data_clean/questions/US`).

use super::strict_json::{self, kind};
use super::{RowFault, lines::RawLine};
use crate::record::RecordId;
use crate::record::question::AnswerOption;
use serde_json::{Map, Value, json};

/// Everything [`parse`] can find wrong, beyond [`strict_json::REASONS`].
pub const REASONS: &[&str] =
    &["line_too_long", "missing_field", "wrong_type", "option_keys", "answer_mismatch", "empty_answer", "empty_stem"];

/// A row as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MedqaRow {
    pub question: String,
    /// In key order, `A` first.
    pub options: Vec<AnswerOption>,
    pub answer: String,
    pub answer_idx: String,
    pub meta_info: Option<String>,
    /// Top-level keys that the format does not have.
    pub extra_fields: Vec<String>,
}

const FIELDS: &[&str] = &["question", "answer", "options", "meta_info", "answer_idx", "metamap_phrases"];

/// The id of a line: from its raw `question` and `options`; of a line that has none, from its bytes.
pub fn identify(source: &str, line: &RawLine<'_>) -> anyhow::Result<RecordId> {
    if let RawLine::Text(bytes) = line
        && let Ok(object) = strict_json::parse_object(bytes)
        && let (Some(question), Some(options)) = (object.get("question"), object.get("options"))
    {
        return RecordId::from_identity(source, &json!({"question": question, "options": options}));
    }
    Ok(RecordId::from_raw_hash(source, &line.sha256()))
}

/// Parses one line.
pub fn parse(line: &RawLine<'_>, cap: usize) -> Result<MedqaRow, RowFault> {
    let bytes = match line {
        RawLine::Text(bytes) => bytes,
        RawLine::TooLong { bytes, .. } => {
            return Err(RowFault::quarantine(
                "line_too_long",
                format!("{bytes} bytes, more than the {cap} allowed by max_line_bytes"),
            ));
        }
    };
    let object = strict_json::parse_object(bytes)?;
    let question = text(&object, "question")?;
    let answer = text(&object, "answer")?;
    let answer_idx = text(&object, "answer_idx")?;
    let meta_info = match object.get("meta_info") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => return Err(wrong_type("meta_info", "a string", other)),
    };
    let options = options(&object)?;
    if question.trim().is_empty() {
        return Err(RowFault::drop(
            "empty_stem",
            format!("the question holds {} blank characters", question.chars().count()),
        ));
    }
    let Some(keyed) = options.iter().find(|option| option.key == answer_idx) else {
        return Err(RowFault::quarantine(
            "answer_mismatch",
            format!("answer_idx is `{answer_idx}`, which is none of the option keys"),
        ));
    };
    if keyed.text != answer {
        return Err(RowFault::quarantine(
            "answer_mismatch",
            format!("answer is `{answer}` but option {answer_idx} is `{}`", keyed.text),
        ));
    }
    if answer.trim().is_empty() {
        return Err(RowFault::quarantine("empty_answer", format!("option {answer_idx} is blank")));
    }
    let extra_fields = object.keys().filter(|key| !FIELDS.contains(&key.as_str())).cloned().collect();
    Ok(MedqaRow { question, options, answer, answer_idx, meta_info, extra_fields })
}

fn text(object: &Map<String, Value>, field: &'static str) -> Result<String, RowFault> {
    match object.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong_type(field, "a string", other)),
        None => Err(RowFault::quarantine("missing_field", format!("`{field}` is missing"))),
    }
}

fn wrong_type(field: &str, expected: &str, found: &Value) -> RowFault {
    RowFault::quarantine("wrong_type", format!("`{field}` must be {expected}, not {}", kind(found)))
}

/// The options must be `A`, `B`, … without a gap, four or five of them.
fn options(object: &Map<String, Value>) -> Result<Vec<AnswerOption>, RowFault> {
    let map = match object.get("options") {
        Some(Value::Object(map)) => map,
        Some(other) => return Err(wrong_type("options", "an object", other)),
        None => return Err(RowFault::quarantine("missing_field", "`options` is missing")),
    };
    let keys: Vec<&str> = map.keys().map(String::as_str).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    if sorted != ["A", "B", "C", "D"] && sorted != ["A", "B", "C", "D", "E"] {
        return Err(RowFault::quarantine(
            "option_keys",
            format!("the option keys are {}; A to D or A to E are expected", keys.join(", ")),
        ));
    }
    let mut options = Vec::with_capacity(sorted.len());
    for key in sorted {
        match map.get(key) {
            Some(Value::String(text)) => options.push(AnswerOption { key: key.to_owned(), text: text.clone() }),
            Some(other) => return Err(wrong_type(&format!("options.{key}"), "a string", other)),
            None => return Err(RowFault::quarantine("option_keys", format!("option {key} is missing"))),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn faults_are_named_and_good_rows_are_read() {
        let good = json!({"question": "Q?", "answer": "y", "options": {"A": "x", "B": "y", "C": "z", "D": "w"}, "meta_info": "step1", "answer_idx": "B"});
        let mut text = String::new();
        let mut check = |label: &str, change: fn(&mut Value)| {
            let mut row = good.clone();
            change(&mut row);
            let line = row.to_string();
            match parse(&RawLine::Text(line.as_bytes()), 100) {
                Ok(row) => text += &format!("{label}: ok {} {} {:?}\n", row.answer_idx, row.answer, row.extra_fields),
                Err(fault) => text += &format!("{label}: {} {}: {}\n", fault.exit.as_str(), fault.reason, fault.detail),
            }
        };
        check("good", |_| {});
        check("five", |row| row["options"]["E"] = "v".into());
        check("phrases", |row| row["metamap_phrases"] = json!(["q"]));
        check("extra field", |row| row["realidx"] = 0.into());
        check("no question", |row| drop(row.as_object_mut().unwrap().remove("question")));
        check("number", |row| row["question"] = 7.into());
        check("blank", |row| row["question"] = " \u{a0}".into());
        check("six", |row| row["options"] = json!({"A": "x", "B": "y", "C": "z", "D": "w", "E": "v", "F": "u"}));
        check("gap", |row| row["options"] = json!({"A": "x", "B": "y", "D": "w", "E": "v"}));
        check("option type", |row| row["options"]["C"] = Value::Null);
        check("no such key", |row| row["answer_idx"] = "E".into());
        check("other text", |row| row["answer"] = "x".into());
        check("blank answer", |row| {
            row["answer"] = " ".into();
            row["options"]["B"] = " ".into();
        });
        expect![[r#"
            good: ok B y []
            five: ok B y []
            phrases: ok B y []
            extra field: ok B y ["realidx"]
            no question: quarantined missing_field: `question` is missing
            number: quarantined wrong_type: `question` must be a string, not a number
            blank: dropped empty_stem: the question holds 2 blank characters
            six: quarantined option_keys: the option keys are A, B, C, D, E, F; A to D or A to E are expected
            gap: quarantined option_keys: the option keys are A, B, D, E; A to D or A to E are expected
            option type: quarantined wrong_type: `options.C` must be a string, not null
            no such key: quarantined answer_mismatch: answer_idx is `E`, which is none of the option keys
            other text: quarantined answer_mismatch: answer is `x` but option B is `y`
            blank answer: quarantined empty_answer: option B is blank
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn identity_is_question_and_options() {
        let id = |text: &str| identify("medqa", &RawLine::Text(text.as_bytes())).unwrap();
        let one = id(r#"{"question":"q","options":{"A":"x"},"answer":"x"}"#);
        assert_eq!(one, id(r#"{"options":{"A":"x"},"answer":"other","question":"q"}"#));
        assert_ne!(one, id(r#"{"question":"q","options":{"A":"y"}}"#));
        assert_eq!(id("not json").as_str(), format!("medqa:{}", crate::record::Hash::of(b"not json").short()));
    }
}
