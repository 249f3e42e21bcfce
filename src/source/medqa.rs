//! MedQA (US): JSON Lines with `question, answer, options{A..}, meta_info, answer_idx` and, in the
//! 4-option form, `metamap_phrases` (jind11/MedQA, `data_clean/questions/US`).

use super::strict_json;
use super::{QuestionRow, RowFault, lines::RawLine};
use crate::record::RecordId;
use serde_json::json;

/// Everything [`parse`] can find wrong, beyond [`strict_json::REASONS`].
pub const REASONS: &[&str] =
    &["line_too_long", "missing_field", "wrong_type", "option_keys", "answer_mismatch", "empty_answer", "empty_stem"];

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
pub fn parse(line: &RawLine<'_>, cap: usize) -> Result<QuestionRow, RowFault> {
    let row = super::object(line, cap)?;
    let question = super::text(&row, "question")?;
    let answer = super::text(&row, "answer")?;
    let answer_idx = super::text(&row, "answer_idx")?;
    let exam = super::optional_text(&row, "meta_info")?;
    let options = super::lettered_options(&row, &[&["A", "B", "C", "D"], &["A", "B", "C", "D", "E"]])?;
    if question.trim().is_empty() {
        return Err(super::empty_stem(&question));
    }
    let (key, answer) = super::keyed(&options, &answer_idx, &answer)?;
    if answer.trim().is_empty() {
        return Err(RowFault::quarantine("empty_answer", format!("option {key} is blank")));
    }
    let mut flags = Vec::new();
    if row.keys().any(|key| !FIELDS.contains(&key.as_str())) {
        flags.push("extra_fields".to_owned());
    }
    Ok(QuestionRow { question, options, answer_key: Some(key), answer, exam, subject: None, flags })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::Value;

    #[test]
    fn faults_are_named_and_good_rows_are_read() {
        let good = json!({"question": "Q?", "answer": "y", "options": {"A": "x", "B": "y", "C": "z", "D": "w"}, "meta_info": "step1", "answer_idx": "B"});
        let mut text = String::new();
        let mut check = |label: &str, change: fn(&mut Value)| {
            let mut row = good.clone();
            change(&mut row);
            let line = row.to_string();
            match parse(&RawLine::Text(line.as_bytes()), 100) {
                Ok(row) => text += &format!("{label}: ok {:?} {} {:?}\n", row.answer_key, row.answer, row.flags),
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
            good: ok Some("B") y []
            five: ok Some("B") y []
            phrases: ok Some("B") y []
            extra field: ok Some("B") y ["extra_fields"]
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
