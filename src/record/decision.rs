//! What reviewers decided about records; a resource of the pipeline.

use super::{RecordId, Row};
use crate::agreement::{Confusion, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A reviewer's word on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Keep,
    Drop,
    Unsure,
}

impl Choice {
    pub const ALL: [Self; 3] = [Self::Keep, Self::Drop, Self::Unsure];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
            Self::Unsure => "unsure",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.as_str() == text.trim().to_lowercase())
    }
}

/// What a rule does with a record that people or models have not agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Keep,
    Drop,
}

/// One line of a decisions file. Every imported decision is kept; a reviewer's later one counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewDecision {
    pub record_id: RecordId,
    /// A name or a code; it is in no release.
    pub reviewer: String,
    pub decision: Choice,
    pub comment: Option<String>,
}

impl Row for ReviewDecision {
    const NAME: &'static str = "review_decision";
    const TITLE: &'static str = "What a reviewer decided about a record.";
}

/// What counts: record → reviewer → choice.
pub type Choices = BTreeMap<RecordId, BTreeMap<String, Choice>>;

/// Reads a decisions file (JSON Lines).
///
/// # Errors
/// The line that is not a decision.
pub fn parse_decisions(text: &str) -> Result<Vec<ReviewDecision>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))).collect()
}

pub fn effective(decisions: &[ReviewDecision]) -> Choices {
    let mut choices = Choices::new();
    for decision in decisions {
        choices.entry(decision.record_id.clone()).or_default().insert(decision.reviewer.clone(), decision.decision);
    }
    choices
}

/// How far two reviewers agree on the records that both decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    pub reviewers: (String, String),
    pub n_both: u64,
    pub n_agree: u64,
    /// Cohen's kappa over keep, drop and unsure; null when both always said the same one word, or nothing in common.
    pub kappa: Option<f64>,
}

/// Agreement of every pair of reviewers, by name.
pub fn agreement(choices: &Choices) -> Vec<Agreement> {
    let mut reviewers: Vec<&String> = choices.values().flat_map(BTreeMap::keys).collect();
    reviewers.sort_unstable();
    reviewers.dedup();
    let mut pairs = Vec::new();
    for (position, one) in reviewers.iter().enumerate() {
        for other in reviewers.iter().skip(position + 1) {
            let both: Vec<(Choice, Choice)> =
                choices.values().filter_map(|by| Some((*by.get(*one)?, *by.get(*other)?))).collect();
            pairs.push(pair_agreement(one, other, &both));
        }
    }
    pairs
}

fn pair_agreement(one: &str, other: &str, both: &[(Choice, Choice)]) -> Agreement {
    let table = Confusion::of(&Choice::ALL, both.iter().copied());
    Agreement {
        reviewers: (one.to_owned(), other.to_owned()),
        n_both: table.n(),
        n_agree: table.n_equal(),
        kappa: table.kappa(Weights::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(table: &[(&str, Choice, Choice, u32)]) -> Choices {
        let mut choices = Choices::new();
        for (label, first, second, n) in table {
            for number in 0..*n {
                let by = BTreeMap::from([("a".to_owned(), *first), ("b".to_owned(), *second)]);
                choices.insert(RecordId::native("s", &format!("{label}{number}")), by);
            }
        }
        choices
    }

    #[test]
    fn kappa_of_a_textbook_table() {
        // 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = 0.7, p_e = 0.5, kappa = 0.4.
        let table = choices(&[
            ("yy", Choice::Keep, Choice::Keep, 20),
            ("yn", Choice::Keep, Choice::Drop, 5),
            ("ny", Choice::Drop, Choice::Keep, 10),
            ("nn", Choice::Drop, Choice::Drop, 15),
        ]);
        let found = agreement(&table);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].n_both, found[0].n_agree), (50, 35));
        assert!((found[0].kappa.unwrap() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn kappa_is_unknown_when_there_is_nothing_to_disagree_on() {
        let table = choices(&[("yy", Choice::Keep, Choice::Keep, 3)]);
        assert_eq!(agreement(&table)[0].kappa, None);
        assert!(agreement(&Choices::new()).is_empty());
    }

    #[test]
    fn a_later_decision_of_a_reviewer_counts_and_bad_lines_are_named() {
        let text = "{\"record_id\":\"s:1\",\"reviewer\":\"a\",\"decision\":\"keep\",\"comment\":null}\n\n\
                    {\"record_id\":\"s:1\",\"reviewer\":\"a\",\"decision\":\"drop\",\"comment\":\"no\"}\n";
        let choices = effective(&parse_decisions(text).unwrap());
        assert_eq!(choices[&RecordId::parse("s:1")]["a"], Choice::Drop);
        assert!(parse_decisions(&format!("{text}{{}}")).unwrap_err().starts_with("line 4: "));
    }
}
