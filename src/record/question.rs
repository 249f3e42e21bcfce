//! Exam questions: as read, and with their canonical answer.

use super::model::{MadeBy, ReplyTrace};
use super::{Provenance, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One answer option, in the order of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerOption {
    /// `A`, `B`, …
    pub key: String,
    /// Raw text.
    pub text: String,
}

/// A question as its source has it; texts are raw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    pub record_id: RecordId,
    pub provenance: Provenance,
    /// Vignette and question in one text.
    pub stem: String,
    /// None for open questions.
    pub options: Vec<AnswerOption>,
    /// Null for open questions.
    pub answer_key: Option<String>,
    /// Text of the keyed option, or the free answer.
    pub answer_text: String,
    /// `step1` or `step2&3` in MedQA.
    pub exam: Option<String>,
    /// Subject as the source names it.
    pub subject: Option<String>,
    /// Things a reader should know; fixed words.
    pub flags: Vec<String>,
}

impl Row for Question {
    const NAME: &'static str = "question";
    const TITLE: &'static str = "An exam question as its source has it.";
}

record_by_fields!(Question);

/// A question with the canonical form of its keyed answer (MedRoundsQA, B.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredQuestion {
    pub record_id: RecordId,
    pub provenance: Provenance,
    pub stem: String,
    /// None for open questions.
    pub options: Vec<AnswerOption>,
    /// Null for open questions.
    pub answer_key: Option<String>,
    /// Raw text of the keyed option, or the free answer.
    pub answer_text: String,
    /// Canonical form of `answer_text`.
    pub ground_truth_diagnosis: String,
    pub exam: Option<String>,
    /// Subject as the source names it.
    pub subject: Option<String>,
    pub flags: Vec<String>,
    /// Who made which field.
    pub made_by: Vec<MadeBy>,
    /// The replies of models that went into the record.
    pub replies: Vec<ReplyTrace>,
}

impl Row for AnsweredQuestion {
    const NAME: &'static str = "answered_question";
    const TITLE: &'static str = "An exam question with the canonical form of its keyed answer.";
}

record_by_fields!(AnsweredQuestion);
