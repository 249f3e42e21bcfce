//! What models had to do with a record: who made which field, from which replies, and what judges said.

use super::{Hash, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reply of a model that went into a record: its bytes are in the store of replies and in exported files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyTrace {
    /// Stage that asked.
    pub stage: String,
    /// `provider/model`
    pub model: String,
    /// Key of the call: SHA-256 of provider, model, parameters, messages, schema and sample number (SPEC section 7).
    pub call: Hash,
    /// SHA-256 of the bytes that the server sent.
    pub sha256: Hash,
    /// What had to be set aside or mended to read it: `fence`, `reasoning_tags`, `prose`, `copies`, `trailing_comma`,
    /// `raw_newline`, `raw_tab`.
    pub repairs: Vec<String>,
}

/// Who made a field of a record. A field that several made together has an entry for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MadeBy {
    /// `vignette` (that it is fit), `consensus` (that several say so), `slots`, `conversion` (of an article), `judgement`,
    /// `specialty`, `difficulty`.
    pub field: String,
    /// `rules`, `reviewers`, a model as `provider/model`, or `not_run`.
    pub by: String,
}

/// The maker of a field that needs a model, in a build without one.
pub const NOT_RUN: &str = "not_run";
/// People who corrected a field.
pub const REVIEWERS: &str = "reviewers";

/// Fields of [`MadeBy`].
pub mod field {
    pub const VIGNETTE: &str = "vignette";
    pub const CONSENSUS: &str = "consensus";
    pub const SLOTS: &str = "slots";
    pub const CONVERSION: &str = "conversion";
    pub const JUDGEMENT: &str = "judgement";
    pub const SPECIALTY: &str = "specialty";
    pub const DIFFICULTY: &str = "difficulty";
}

impl MadeBy {
    pub fn new(field: &str, by: impl Into<String>) -> Self {
        Self { field: field.to_owned(), by: by.into() }
    }
}

/// Adds a maker of a field, once.
pub fn add_maker(made_by: &mut Vec<MadeBy>, field: &str, by: &str) {
    let entry = MadeBy::new(field, by);
    if !made_by.contains(&entry) {
        made_by.push(entry);
    }
}

/// Who made a field, in the order in which they came to it.
pub fn makers<'a>(made_by: &'a [MadeBy], field: &'a str) -> impl Iterator<Item = &'a str> {
    made_by.iter().filter(move |entry| entry.field == field).map(|entry| entry.by.as_str())
}

/// What one model said about one record when it was asked to judge, or why it said nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgementRow {
    pub record_id: RecordId,
    /// What was asked: `suitable`, `fidelity`, `specialty`, `disagreement`.
    pub question: String,
    /// `provider/model`
    pub model: String,
    /// The name of the model whose answers are judged; null where a record is.
    pub about: Option<String>,
    /// Whether there is an answer that could be read.
    pub answered: bool,
    /// `YES`, `NO`, a number, a specialty; without an answer the reason why there is none, such as `reply_refused`.
    pub verdict: String,
    /// In the model's words; without an answer what is known of the failure.
    pub reason: String,
    pub call: Hash,
    /// SHA-256 of the reply's bytes; null without an answer.
    pub sha256: Option<Hash>,
}

impl Row for JudgementRow {
    const NAME: &'static str = "judgement";
    const TITLE: &'static str = "What one model said about one record when it was asked to judge.";
}
