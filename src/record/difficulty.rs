//! How difficult a question is, among the others of its build (MedRoundsQA, 3.2 and appendix F).

use super::{RecordId, Row};
use crate::difficulty::{Band, Signals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the table of difficulty says of one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifficultyRow {
    pub record_id: RecordId,
    /// Averages over the models that count; null if too few of them have answers.
    pub signals: Option<Signals>,
    /// The signals, each from 0 to 1 between the least and the greatest of all questions; null like `score`.
    pub scaled: Option<Signals>,
    /// `(L + H + 1 − C) / 3`; null if the declared rule leaves the question without one.
    pub score: Option<f64>,
    /// Null without a score, or with fewer than three different scores in the build.
    pub band: Option<Band>,
    /// Models of which too few answers, or no judgement of them, are there, as `model: reason n`.
    pub missing: Vec<String>,
}

impl Row for DifficultyRow {
    const NAME: &'static str = "difficulty";
    const TITLE: &'static str = "How difficult a question is, among the others of its build.";
}
