//! NEJM-style case questions: rows with `question`, `answer` in free text, and optionally `case` and `id`.

use super::{QuestionRow, RowFault, lines::RawLine, strict_json};
use crate::record::RecordId;
use serde_json::json;

/// Everything that can be wrong with a row, beyond [`strict_json::REASONS`].
pub const REASONS: &[&str] = &["line_too_long", "missing_field", "wrong_type", "missing_answer", "empty_stem"];

/// `nejm:<id>`; rows without one: from `question` and `case`; what is not a row: from its bytes.
pub fn identify(source: &str, line: &RawLine<'_>) -> anyhow::Result<RecordId> {
    if let RawLine::Text(bytes) = line
        && let Ok(row) = strict_json::parse_object(bytes)
    {
        if let Some(id) = row.get("id").and_then(|id| id.as_str()).filter(|id| !id.is_empty()) {
            return Ok(RecordId::native(source, id));
        }
        if let Some(question) = row.get("question") {
            return RecordId::from_identity(source, &json!({"question": question, "case": row.get("case")}));
        }
    }
    Ok(RecordId::from_raw_hash(source, &line.sha256()))
}

/// Parses one row. The case, where there is one, comes before the question, with a blank line between.
pub fn parse(line: &RawLine<'_>, cap: usize) -> Result<QuestionRow, RowFault> {
    let row = super::object(line, cap)?;
    let question = super::text(&row, "question")?;
    let case = super::optional_text(&row, "case")?.filter(|case| !case.trim().is_empty());
    let stem = match case {
        Some(case) => format!("{case}\n\n{question}"),
        None => question,
    };
    if stem.trim().is_empty() {
        return Err(super::empty_stem(&stem));
    }
    let answer = super::optional_text(&row, "answer")?.filter(|answer| !answer.trim().is_empty());
    let answer = answer.ok_or_else(|| RowFault::drop("missing_answer", "`answer` is missing, null or blank"))?;
    Ok(QuestionRow {
        question: stem,
        options: Vec::new(),
        answer_key: None,
        answer,
        exam: None,
        subject: None,
        flags: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_case() {
        let parse = |text: &str| parse(&RawLine::Text(text.as_bytes()), 1000);
        let row = parse(r#"{"question":"What is it?","answer":"Gout","case":"A man limps.","id":"n1"}"#).unwrap();
        assert_eq!((row.question.as_str(), row.answer_key), ("A man limps.\n\nWhat is it?", None));
        assert_eq!(parse(r#"{"question":"What?","answer":"Gout"}"#).unwrap().question, "What?");
        assert_eq!(parse(r#"{"question":"What?","answer":null}"#).unwrap_err().reason, "missing_answer");
        assert_eq!(parse(r#"{"question":" ","answer":"x"}"#).unwrap_err().reason, "empty_stem");
        assert_eq!(parse(r#"{"answer":"x"}"#).unwrap_err().reason, "missing_field");
        let id = |text: &str| identify("nejm", &RawLine::Text(text.as_bytes())).unwrap().to_string();
        assert_eq!(id(r#"{"question":"q","id":"n1"}"#), "nejm:n1");
        assert_ne!(id(r#"{"question":"q","case":"a"}"#), id(r#"{"question":"q","case":"b"}"#));
    }
}
