//! MedMCQA in the forms people hold: the release (JSON Lines named `.json`), the hub's Parquet and CSV, rows derived from
//! the hub (`choices`, `answer`), and lettered rows (`options{A..D}`, `answer_idx`).
//!
//! The number of the keyed option starts at 1 in the release and at 0 on the hub, and is −1 where labels are hidden. The
//! base is declared in `sources/medmcqa.toml` and proven on every file before a row of it is used.

use super::strict_json;
use super::{QuestionRow, RowFault, lines::RawLine};
use crate::error::input;
use crate::record::RecordId;
use crate::record::question::AnswerOption;
use anyhow::bail;
use regex::Regex;
use serde_json::{Map, Value, json};

/// Everything that can be wrong with a row, beyond [`strict_json::REASONS`].
pub const REASONS: &[&str] = &[
    "line_too_long",
    "missing_field",
    "wrong_type",
    "option_keys",
    "answer_mismatch",
    "empty_answer",
    "empty_stem",
    "hidden_label",
    "label_mismatch",
];

/// Where the numbers of keyed options start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelBases {
    /// `cop` in JSON and CSV.
    pub cop_text: i64,
    /// `cop` in Parquet.
    pub cop_parquet: i64,
    /// `answer` beside `choices`.
    pub answer: i64,
}

/// Reads rows of one kind of file.
pub struct MedmcqaFormat {
    bases: LabelBases,
    stated: Regex,
}

/// The number of the keyed option as the row has it, and the field it stands in.
struct Label {
    field: &'static str,
    value: i64,
    base: i64,
}

/// What a file's labels showed: it stops the node when they contradict the declared base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelProof {
    n_labels: u64,
    n_stated: u64,
    n_agree: u64,
    n_agree_with_other_base: u64,
    first_outside: Option<String>,
}

impl MedmcqaFormat {
    pub fn new(bases: LabelBases) -> anyhow::Result<Self> {
        Ok(Self { bases, stated: Regex::new(STATED)? })
    }

    /// `medmcqa:<uuid>`; rows without one: from `question` and `choices`; what is not a row: from its bytes.
    pub fn identify(&self, source: &str, line: &RawLine<'_>) -> anyhow::Result<RecordId> {
        if let RawLine::Text(bytes) = line
            && let Ok(row) = strict_json::parse_object(bytes)
        {
            if let Some(id) = ["id", "realidx"].iter().find_map(|field| row.get(*field)?.as_str())
                && !id.is_empty()
            {
                return Ok(RecordId::native(source, id));
            }
            if let (Some(question), Some(choices)) = (row.get("question"), row.get("choices")) {
                return RecordId::from_identity(source, &json!({"question": question, "choices": choices}));
            }
        }
        Ok(RecordId::from_raw_hash(source, &line.sha256()))
    }

    /// Takes one row into the proof of its file's labels.
    pub fn observe(&self, proof: &mut LabelProof, file: &str, line_number: u64, line: &RawLine<'_>) {
        let RawLine::Text(bytes) = line else { return };
        let Ok(row) = strict_json::parse_object(bytes) else { return };
        let Ok(Some(label)) = self.label(&row, file) else { return };
        if label.value == HIDDEN {
            return;
        }
        proof.n_labels += 1;
        let position = label.value - label.base;
        if !(0..=3).contains(&position) {
            proof.first_outside.get_or_insert_with(|| {
                format!(
                    "{file}:{line_number}: `{}` is {}, outside {}..{} of the declared base {}",
                    label.field,
                    label.value,
                    label.base,
                    label.base + 3,
                    label.base
                )
            });
        }
        if let Some(stated) = self.stated_position(&row) {
            proof.n_stated += 1;
            proof.n_agree += u64::from(stated == position);
            // With the other base the same number means the neighbouring option.
            let other = if label.base == 0 { position - 1 } else { position + 1 };
            proof.n_agree_with_other_base += u64::from(stated == other);
        }
    }

    /// Parses one row of a file.
    pub fn parse(&self, line: &RawLine<'_>, file: &str, cap: usize) -> Result<QuestionRow, RowFault> {
        let row = super::object(line, cap)?;
        let question = super::text(&row, "question")?;
        let (options, flags) = options(&row)?;
        if question.trim().is_empty() {
            return Err(super::empty_stem(&question));
        }
        let (key, answer) = self.key(&row, file, &options)?;
        if answer.trim().is_empty() {
            return Err(RowFault::quarantine("empty_answer", format!("option {key} is blank")));
        }
        Ok(QuestionRow {
            question,
            options,
            answer_key: Some(key),
            answer,
            exam: None,
            subject: super::optional_text(&row, "subject_name")?.filter(|subject| !subject.trim().is_empty()),
            flags,
        })
    }

    fn label(&self, row: &Map<String, Value>, file: &str) -> Result<Option<Label>, RowFault> {
        let cop_base = if file.ends_with(".parquet") { self.bases.cop_parquet } else { self.bases.cop_text };
        for (field, base) in [("cop", cop_base), ("answer", self.bases.answer)] {
            let value = match row.get(field) {
                // Lettered rows have the text of the option there.
                None => continue,
                Some(Value::String(_)) if field == "answer" => continue,
                Some(Value::Number(number)) => number.as_i64(),
                // CSV has text only: a number is one when the whole text is.
                Some(Value::String(text)) => text.trim().parse().ok(),
                Some(_) => None,
            };
            return match value {
                Some(value) => Ok(Some(Label { field, value, base })),
                None => Err(super::wrong_type(field, "a whole number", row.get(field).unwrap_or(&Value::Null))),
            };
        }
        Ok(None)
    }

    fn key(
        &self,
        row: &Map<String, Value>,
        file: &str,
        options: &[AnswerOption],
    ) -> Result<(String, String), RowFault> {
        let Some(label) = self.label(row, file)? else {
            let key = super::text(row, "answer_idx")?;
            let answer = super::text(row, "answer")?;
            return super::keyed(options, &key, &answer);
        };
        if label.value == HIDDEN {
            return Err(RowFault::drop("hidden_label", format!("`{}` is {HIDDEN}", label.field)));
        }
        let position = usize::try_from(label.value - label.base).ok();
        let Some(option) = position.and_then(|position| options.get(position)) else {
            return Err(RowFault::quarantine("answer_mismatch", format!("`{}` is {}", label.field, label.value)));
        };
        if let Some(stated) = self.stated_position(row)
            && stated != label.value - label.base
        {
            let letter = usize::try_from(stated).ok().and_then(|stated| options.get(stated));
            return Err(RowFault::quarantine(
                "label_mismatch",
                format!(
                    "the explanation names option {}, the key is {}",
                    letter.map_or("?", |option| option.key.as_str()),
                    option.key
                ),
            ));
        }
        Ok((option.key.clone(), option.text.clone()))
    }

    /// The option that the explanation begins with, from 0. The explanation is read for this and nothing else.
    fn stated_position(&self, row: &Map<String, Value>) -> Option<i64> {
        let explanation = row.get("exp")?.as_str()?;
        let letter = self.stated.captures(explanation)?.get(1)?.as_str().bytes().next()?;
        Some(i64::from(letter.to_ascii_lowercase() - b'a'))
    }
}

impl LabelProof {
    /// Whether a file's labels can mean what was declared.
    ///
    /// # Errors
    /// A number outside the declared range, or explanations that agree with the other base.
    pub fn check(&self, file: &str) -> anyhow::Result<()> {
        const ADVICE: &str = "correct the base under [options] in sources/medmcqa.toml, or remove the file";
        if let Some(outside) = &self.first_outside {
            return Err(input(format!("{outside}; {ADVICE}")));
        }
        if self.n_agree_with_other_base > self.n_agree {
            return Err(input(format!(
                "{file}: of {} explanations that begin with the answer's letter, {} agree with the declared base and {} with the other one; {ADVICE}",
                self.n_stated, self.n_agree, self.n_agree_with_other_base
            )));
        }
        Ok(())
    }
}

const HIDDEN: i64 = -1;

/// `Ans. is 'b' i.e., …`, `Ans. (c) …`, `Ans-a. …`, `Answer: D. …`
const STATED: &str = r#"^\W*(?i:ans(?:wer)?)\b[\s.:,=-]*(?i:is\b)?[\s.:,=-]*['"‘’“”(\[]{0,2}([A-Da-d])['"‘’“”)\].:,]"#;

fn options(row: &Map<String, Value>) -> Result<(Vec<AnswerOption>, Vec<String>), RowFault> {
    const KEYS: [&str; 4] = ["A", "B", "C", "D"];
    let mut flags = Vec::new();
    if let Some(choices) = row.get("choices") {
        let Value::Array(choices) = choices else { return Err(super::wrong_type("choices", "an array", choices)) };
        if choices.len() != KEYS.len() {
            return Err(RowFault::quarantine(
                "option_keys",
                format!("there are {} choices, 4 are expected", choices.len()),
            ));
        }
        let mut options = Vec::with_capacity(KEYS.len());
        for (key, choice) in KEYS.into_iter().zip(choices) {
            let Value::String(text) = choice else { return Err(super::wrong_type("choices", "text", choice)) };
            // The hub's derived rows carry the letter in the text: `A. Iron`.
            let Some(text) = text.strip_prefix(key).and_then(|text| text.strip_prefix(". ")) else {
                return Err(RowFault::quarantine("option_keys", format!("a choice does not begin with `{key}. `")));
            };
            options.push(AnswerOption { key: key.to_owned(), text: text.to_owned() });
        }
        return Ok((options, flags));
    }
    if row.contains_key("options") {
        let options = super::lettered_options(row, &[&KEYS])?;
        return Ok((options, flags));
    }
    let mut options = Vec::with_capacity(KEYS.len());
    for (key, field) in KEYS.into_iter().zip(["opa", "opb", "opc", "opd"]) {
        options.push(AnswerOption { key: key.to_owned(), text: super::text(row, field)? });
    }
    if row.get("choice_type").and_then(Value::as_str) == Some("multi") {
        // Rows of this type still have one key.
        flags.push("multi".to_owned());
    }
    Ok((options, flags))
}

/// Bases are 0 or 1.
pub fn check_base(name: &str, base: i64) -> anyhow::Result<i64> {
    if (0..=1).contains(&base) {
        return Ok(base);
    }
    bail!("{name} must be 0 or 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn format() -> MedmcqaFormat {
        MedmcqaFormat::new(LabelBases { cop_text: 1, cop_parquet: 0, answer: 0 }).unwrap()
    }

    fn prove(base: i64, rows: &[Value]) -> Result<(), String> {
        let format = MedmcqaFormat::new(LabelBases { cop_text: base, cop_parquet: 0, answer: 0 }).unwrap();
        let mut proof = LabelProof::default();
        for (number, row) in (1..).zip(rows) {
            format.observe(&mut proof, "m/f.json", number, &RawLine::Text(row.to_string().as_bytes()));
        }
        proof.check("m/f.json").map_err(|error| error.to_string())
    }

    fn cop(value: i64) -> Value {
        json!({"question": "q", "cop": value})
    }

    /// Case mcq-01: the base differs between releases; −1 is no label.
    #[test]
    fn mcq_01_the_base_is_declared_and_proven() {
        let file = |values: &[i64]| values.iter().map(|value| cop(*value)).collect::<Vec<_>>();
        assert_eq!(prove(0, &file(&[0, 1, 2, 3])), Ok(()));
        assert_eq!(prove(1, &file(&[1, 2, 3, 4])), Ok(()));
        assert_eq!(prove(1, &file(&[-1, -1])), Ok(()));
        let error = prove(1, &file(&[0, 1, 2, 3])).unwrap_err();
        assert!(error.starts_with("m/f.json:1: `cop` is 0, outside 1..4"), "{error}");
        assert!(prove(0, &file(&[1, 2, 3, 4])).is_err());
        assert!(prove(0, &file(&[0, 1, 2, 3, 4])).is_err() && prove(1, &file(&[0, 1, 2, 3, 4])).is_err());
        // Numbers that fit both bases: the explanations decide.
        let row = json!({"question": "q", "cop": 2, "exp": "Ans. (b) Second"});
        assert_eq!(prove(1, std::slice::from_ref(&row)), Ok(()));
        assert!(prove(0, &[row]).unwrap_err().contains("1 with the other one"));
    }

    #[test]
    fn rows_of_every_form() {
        let release = json!({"question": "Q", "exp": null, "cop": 2, "opa": "w", "opb": "x", "opc": "y", "opd": "z",
            "subject_name": "Surgery", "topic_name": null, "id": "u-1", "choice_type": "multi"});
        let mut text = String::new();
        let mut check = |label: &str, row: &Value| {
            let line = row.to_string();
            let line = RawLine::Text(line.as_bytes());
            let id = format().identify("medmcqa", &line).unwrap();
            text += &match format().parse(&line, "medmcqa/dev.json", 1000) {
                Ok(row) => {
                    format!("{label}: {} {:?} {} {:?} {:?}\n", id, row.answer_key, row.answer, row.subject, row.flags)
                }
                Err(fault) => format!("{label}: {} {}: {}\n", fault.exit.as_str(), fault.reason, fault.detail),
            };
        };
        let change = |field: &str, value: Value| {
            let mut row = release.clone();
            row[field] = value;
            row
        };
        check("release", &release);
        check(
            "lettered",
            &json!({"question": "Q", "realidx": "u-2", "options": {"A": "w", "B": "x", "C": "y", "D": "z"}, "answer_idx": "C", "answer": "y"}),
        );
        check("hub", &json!({"question": "Q", "choices": ["A. w", "B. x", "C. y", "D. z"], "answer": 3}));
        check("hidden", &change("cop", json!(-1)));
        check("csv number", &change("cop", json!("2")));
        check("not a number", &change("cop", json!("b")));
        check("agrees", &change("exp", json!("Ans. is 'b' i.e., x")));
        check("disagrees", &change("exp", json!("Ans-a. w")));
        check("no letter", &change("exp", json!("Answer depends on the age")));
        check("no option", &change("opd", Value::Null));
        check("blank stem", &change("question", json!(" ")));
        check("blank answer", &change("opb", json!("")));
        expect![[r#"
            release: medmcqa:u-1 Some("B") x Some("Surgery") ["multi"]
            lettered: medmcqa:u-2 Some("C") y None []
            hub: medmcqa:1160ae34bb62dea1 Some("D") z None []
            hidden: dropped hidden_label: `cop` is -1
            csv number: medmcqa:u-1 Some("B") x Some("Surgery") ["multi"]
            not a number: quarantined wrong_type: `cop` must be a whole number, not a string
            agrees: medmcqa:u-1 Some("B") x Some("Surgery") ["multi"]
            disagrees: quarantined label_mismatch: the explanation names option A, the key is B
            no letter: medmcqa:u-1 Some("B") x Some("Surgery") ["multi"]
            no option: quarantined wrong_type: `opd` must be a string, not null
            blank stem: dropped empty_stem: the question holds 1 blank characters
            blank answer: quarantined empty_answer: option B is blank
        "#]]
        .assert_eq(&text);
    }

    /// Case mcq-07: the explanation's letter against the key, and rows of type multi.
    #[test]
    fn mcq_07_a_stated_letter_that_disagrees_is_quarantined() {
        let format = MedmcqaFormat::new(LabelBases { cop_text: 0, cop_parquet: 0, answer: 0 }).unwrap();
        let row = json!({"question": "Q", "cop": 2, "exp": "Ans. is 'b' i.e., Second", "choice_type": "multi",
            "opa": "First", "opb": "Second", "opc": "Third", "opd": "Fourth", "id": "u"});
        let line = row.to_string();
        let fault = format.parse(&RawLine::Text(line.as_bytes()), "m/x.json", 1000).unwrap_err();
        assert_eq!(
            (fault.reason, fault.detail.as_str()),
            ("label_mismatch", "the explanation names option B, the key is C")
        );
    }
}
