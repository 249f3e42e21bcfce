//! Rows of the tables that every release has, whatever its pipeline.

use super::ledger::Exit;
use super::slots::{Change, Conflict, Grounding, Slot};
use super::{Access, Hash, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One value of one slot. Key: `case_id`, `slot`, `ordinal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotRow {
    pub case_id: String,
    pub slot: Slot,
    /// From 0, in text order.
    pub ordinal: u32,
    /// As it was extracted.
    pub value: String,
    /// In the notation that all cases share; null if no stage has normalised it.
    pub normalised: Option<String>,
    /// Null if the value stands nowhere in a text.
    pub text_id: Option<String>,
    /// In Unicode scalar values of the text.
    pub start: Option<u32>,
    /// Exclusive.
    pub end: Option<u32>,
    pub grounding: Grounding,
    /// Edits between the value and its text; null unless `fuzzy`.
    pub distance: Option<u32>,
    /// Null unless `contradicted`.
    pub conflict: Option<Conflict>,
    /// The slot it was extracted into, if a rule of slot boundaries moved it.
    pub moved_from: Option<Slot>,
    /// It names the diagnosis or a synonym: no part of what a doctor is shown.
    pub names_diagnosis: bool,
}

impl SlotRow {
    /// The value in the notation that all cases share, if it has been normalised.
    pub fn shown(&self) -> &str {
        self.normalised.as_deref().unwrap_or(&self.value)
    }
}

impl Row for SlotRow {
    const NAME: &'static str = "slot";
    const TITLE: &'static str = "One value of one slot of a case.";
}

/// A text that spans point into. Key: `case_id`, `text_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextRow {
    pub case_id: String,
    pub text_id: String,
    /// The original characters, unchanged.
    pub text: String,
}

impl Row for TextRow {
    const NAME: &'static str = "text";
    const TITLE: &'static str = "A text that spans point into.";
}

/// Where a case came from. Key: `case_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenanceRow {
    pub case_id: String,
    pub source: String,
    pub file: String,
    pub line: u64,
    pub raw_sha256: Hash,
    pub snapshot: String,
    pub licence: String,
    pub access: Access,
    /// Places (`file:line`) of removed duplicates that this case stands for, sorted.
    pub also_from: Vec<String>,
}

impl Row for ProvenanceRow {
    const NAME: &'static str = "provenance";
    const TITLE: &'static str = "Where a case came from.";
}

/// A record that did not become a case. Key: `case_id`, `node`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseLedgerRow {
    /// The id the record would have had as a case.
    pub case_id: String,
    pub source: String,
    pub node: String,
    pub exit: Exit,
    pub reason: String,
    /// The number or text that decided; null for sources that may not be quoted.
    pub detail: Option<String>,
    pub file: String,
    pub line: u64,
    pub raw_sha256: Hash,
}

impl Row for ReleaseLedgerRow {
    const NAME: &'static str = "release_ledger";
    const TITLE: &'static str = "A record that did not become a case, where and why.";
}

/// Something that waits for a person. Key: `case_id`, `node`, `reason`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseReviewRow {
    pub case_id: String,
    pub node: String,
    pub reason: String,
    pub detail: String,
    /// Case ids of the other records that take part, sorted.
    pub related: Vec<String>,
}

impl Row for ReleaseReviewRow {
    const NAME: &'static str = "release_review";
    const TITLE: &'static str = "Something about a case that waits for a person's decision.";
}

/// What one model said about one case when it was asked to judge. Key: `case_id`, `node`, `model`, `about`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseJudgementRow {
    pub case_id: String,
    pub node: String,
    /// What was asked: `suitable`, `fidelity`, `specialty`, `disagreement`.
    pub question: String,
    /// `provider/model`
    pub model: String,
    /// The name of the model whose answers are judged; null where the case is.
    pub about: Option<String>,
    /// Whether there is an answer that could be read.
    pub answered: bool,
    /// `YES`, `NO`, a number, a specialty; without an answer the reason why there is none.
    pub verdict: String,
    /// In the model's words; null for sources that may not be quoted.
    pub reason: Option<String>,
    pub call: Hash,
    /// SHA-256 of the reply's bytes; null without an answer.
    pub sha256: Option<Hash>,
}

impl Row for ReleaseJudgementRow {
    const NAME: &'static str = "release_judgement";
    const TITLE: &'static str = "What one model said about one case when it was asked to judge.";
}

/// One answer of one model to the question of a case, by which its difficulty was estimated. Key: `case_id`, `model`,
/// `sample`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRow {
    pub case_id: String,
    /// Name under `[models]` of the pipeline.
    pub model: String,
    /// Who that is: `provider/model`.
    pub by: String,
    /// From 0.
    pub sample: u32,
    /// `complete`, or why there is no answer: `reply_refused`, `reply_truncated`, `copied_example`, …
    pub state: String,
    /// Steps of its reasoning; null without an answer.
    pub n_steps: Option<u32>,
    pub answer: Option<String>,
    /// 0 to 1.
    pub confidence: Option<f64>,
    pub call: Hash,
}

impl Row for RunRow {
    const NAME: &'static str = "run";
    const TITLE: &'static str = "One answer of one model to the question of a case.";
}

/// What reviewers changed of the record of a case. Key: `case_id`, `slot`, `change`, `ordinal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectionRow {
    pub case_id: String,
    pub slot: Slot,
    pub change: Change,
    /// From 0, in the order of the record.
    pub ordinal: u32,
    pub value: String,
}

impl Row for CorrectionRow {
    const NAME: &'static str = "correction";
    const TITLE: &'static str = "What reviewers changed of the record of a case.";
}

/// An image of a case, and whether its file is in the release. Key: `case_id`, `ordinal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MediaRow {
    pub case_id: String,
    /// From 0, in the order of the dialogue.
    pub ordinal: u32,
    /// Label in the article.
    pub image_id: String,
    /// SHA-256 of the file as it was published.
    pub sha256: Hash,
    /// SHA-256 of the picture that is shown: the same, or that of a PNG made of it.
    pub shown_sha256: Hash,
    /// The picture below the release folder; null if the profile may not hold it: see `recipes/media.jsonl`.
    pub path: Option<String>,
    /// Why it is not in the release: `profile_licence` or `profile_access`.
    pub withheld: Option<String>,
    /// Pixels, upright.
    pub width: u32,
    pub height: u32,
    /// SPDX expression.
    pub licence: String,
    pub access: Access,
    pub attribution: Option<String>,
}

impl Row for MediaRow {
    const NAME: &'static str = "media";
    const TITLE: &'static str = "An image of a case, and whether its file is in the release.";
}

/// What to name when a case is passed on: a line of `ATTRIBUTION.csv`. It can name the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitationRow {
    pub case_id: String,
    pub title: Option<String>,
    /// Parted by `; `.
    pub authors: String,
    pub journal: Option<String>,
    pub year: Option<u32>,
    pub doi: Option<String>,
    pub pmid: Option<String>,
    pub pmcid: Option<String>,
    pub version: Option<u32>,
    pub copyright: Option<String>,
    /// SPDX expression.
    pub licence: String,
    /// Where its text is found; empty for what has none.
    pub licence_url: String,
    /// What was done to the work, as the licences ask to be told.
    pub changes: String,
}
