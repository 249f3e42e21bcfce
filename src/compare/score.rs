//! One extractor against the reference: the pairs of texts, their scores, and what is wrong with them.
//!
//! A pair is a case and a slot that is filled on either side. A slot filled on one side only scores 0 in every metric.
//! Values in the wrong slot cost twice (MedRoundsQA, B.2, asks for a penalty and leaves it open): the slot they are
//! missing from loses by their absence, and the score of the slot they stand in is multiplied by the share of its
//! values that are not misplaced.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metrics::{PairMetric, is_similar, normalise};
use super::{CaseKey, CaseSlots, RecordSet};
use crate::record::slots::Slot;

/// The edit similarity from which a value counts as the same as another.
pub const SAME_VALUE: f64 = 0.9;

/// Why records cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say what each of them is")]
pub enum CompareError {
    #[error("the reference {0:?} has no cases; check the file and the split")]
    NoReference(String),
    #[error(
        "{extractor:?} has none of the {n_cases} reference cases; give both sides the same keys, such as question_sha256"
    )]
    NoCommonCase { extractor: String, n_cases: usize },
    #[error(
        "the keys of the reference case {case} name several cases of {extractor:?}, or one that another reference case names; correct the keys"
    )]
    Ambiguous { extractor: String, case: CaseKey },
    #[error("two extractors are called {0:?}; give each its own name")]
    NameTwice(String),
    #[error("the metric {metric} gives no number for {slot} of the case {case}; correct the metric")]
    NoNumber { metric: String, case: CaseKey, slot: &'static str },
}

/// What is wrong with a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The reference has a value, the extractor none.
    Missing,
    /// The extractor has a value, the reference none.
    Spurious,
    /// A value of the extractor belongs into another slot.
    Misplaced,
    /// One text contains the other.
    Boundary,
    /// None of these.
    Different,
}

impl ErrorKind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Missing, Self::Spurious, Self::Misplaced, Self::Boundary, Self::Different];

    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Spurious => "spurious",
            Self::Misplaced => "misplaced",
            Self::Boundary => "boundary",
            Self::Different => "different",
        }
    }
}

/// A case and a slot that is filled on either side.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredPair {
    /// The place of the case among the reference cases, in the order of their keys.
    pub case: usize,
    /// The slot.
    pub slot: Slot,
    /// The values of the reference, joined; empty if there are none.
    pub reference: String,
    /// The values of the extractor, joined; empty if there are none.
    pub candidate: String,
    /// One score for each metric, in their order, from 0 to 1; none where the metric has none for this pair.
    pub scores: Vec<Option<f64>>,
    /// The slots that misplaced values belong into, one entry for each such value.
    pub belongs_to: Vec<Slot>,
    /// What is wrong; none if the texts are equal but for their form.
    pub error: Option<ErrorKind>,
}

/// All pairs of one extractor.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// By case, then by slot.
    pub pairs: Vec<ScoredPair>,
    /// Reference cases that the extractor has no record of: every slot of them is missing.
    pub n_missing_cases: usize,
    /// Cases of the extractor that the reference lacks: they are not compared.
    pub n_other_cases: usize,
}

/// Scores one extractor.
///
/// # Errors
/// Keys that do not pair the cases one to one, no case in common, or a metric that gives no number. An extractor
/// without any case is no error: it scores 0.
pub fn score(
    reference: &RecordSet,
    candidate: &RecordSet,
    metrics: &[&dyn PairMetric],
) -> Result<Scored, CompareError> {
    let matches = pair_cases(reference, candidate)?;
    let n_matched = matches.iter().flatten().count();
    if n_matched == 0 && !candidate.cases.is_empty() {
        return Err(CompareError::NoCommonCase { extractor: candidate.name.clone(), n_cases: reference.cases.len() });
    }
    let mut pairs = Vec::new();
    for (case, ((key, reference_slots), candidate_case)) in reference.cases.iter().zip(&matches).enumerate() {
        let reference_texts = texts(reference_slots);
        let candidate_texts = candidate_case.map(|(_, slots)| texts(slots)).unwrap_or_default();
        for slot in super::compared_slots() {
            let (reference_text, candidate_text) = (reference_texts.get(&slot), candidate_texts.get(&slot));
            if reference_text.is_none() && candidate_text.is_none() {
                continue;
            }
            let belongs_to = candidate_text.map(|text| misplaced(slot, text, &reference_texts)).unwrap_or_default();
            let mut scores = vec![Some(0.0); metrics.len()];
            if let (Some(reference_text), Some(candidate_text)) = (reference_text, candidate_text) {
                let share_in_place = 1.0 - belongs_to.len() as f64 / candidate_text.values.len().max(1) as f64;
                for (metric, score) in metrics.iter().zip(&mut scores) {
                    let found = metric.score_in(slot, &reference_text.joined, &candidate_text.joined);
                    if found.is_some_and(f64::is_nan) {
                        let metric = metric.name().to_owned();
                        return Err(CompareError::NoNumber { metric, case: key.clone(), slot: slot.as_str() });
                    }
                    *score = found.map(|found| found.clamp(0.0, 1.0) * share_in_place);
                }
            }
            let error = error_kind(reference_text, candidate_text, !belongs_to.is_empty());
            let joined = |text: Option<&SlotText>| text.map(|text| text.joined.clone()).unwrap_or_default();
            let (reference, candidate) = (joined(reference_text), joined(candidate_text));
            pairs.push(ScoredPair { case, slot, reference, candidate, scores, belongs_to, error });
        }
    }
    let n_missing_cases = matches.len() - n_matched;
    Ok(Scored { pairs, n_missing_cases, n_other_cases: candidate.cases.len() - n_matched })
}

/// A slot of a case that both sides fill, with the texts that metrics see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledPair<'a> {
    /// The case, by its first key in the reference.
    pub reference_case: &'a CaseKey,
    /// The same case, by its first key among the extractor's.
    pub candidate_case: &'a CaseKey,
    /// The slot.
    pub slot: Slot,
    /// The values of the reference, joined.
    pub reference: String,
    /// The values of the extractor, joined.
    pub candidate: String,
    /// Whether the two are the same but for their form: see [`normalise`].
    pub is_equal: bool,
}

/// The pairs that metrics are asked about, by case, then by slot: for a metric that prepares its scores.
///
/// # Errors
/// Keys that do not pair the cases one to one.
pub fn filled_pairs<'a>(
    reference: &'a RecordSet,
    candidate: &'a RecordSet,
) -> Result<Vec<FilledPair<'a>>, CompareError> {
    let matches = pair_cases(reference, candidate)?;
    let mut pairs = Vec::new();
    for ((reference_case, reference_slots), found) in reference.cases.iter().zip(matches) {
        let Some((candidate_case, candidate_slots)) = found else { continue };
        let mut candidate_texts = texts(candidate_slots);
        for (slot, reference_text) in texts(reference_slots) {
            if let Some(candidate_text) = candidate_texts.remove(&slot) {
                pairs.push(FilledPair {
                    reference_case,
                    candidate_case,
                    slot,
                    is_equal: reference_text.normalised == candidate_text.normalised,
                    reference: reference_text.joined,
                    candidate: candidate_text.joined,
                });
            }
        }
    }
    Ok(pairs)
}

/// A case with its first key.
type KeyedCase<'a> = (&'a CaseKey, &'a CaseSlots);

/// For each reference case the case of the extractor that shares any key with it.
fn pair_cases<'a>(reference: &RecordSet, candidate: &'a RecordSet) -> Result<Vec<Option<KeyedCase<'a>>>, CompareError> {
    let mut keys: BTreeMap<&CaseKey, Vec<&CaseKey>> = reference.cases.keys().map(|key| (key, vec![key])).collect();
    for (alias, first) in &reference.aliases {
        keys.entry(first).or_default().push(alias);
    }
    let mut taken = std::collections::BTreeSet::new();
    let mut matches = Vec::with_capacity(reference.cases.len());
    for case in reference.cases.keys() {
        let own_keys = keys.get(case).map(Vec::as_slice).unwrap_or_default();
        let mut found: BTreeMap<&CaseKey, &CaseSlots> = own_keys.iter().filter_map(|key| candidate.find(key)).collect();
        let first = found.pop_first();
        if !found.is_empty() || first.is_some_and(|(key, _)| !taken.insert(key)) {
            return Err(CompareError::Ambiguous { extractor: candidate.name.clone(), case: case.clone() });
        }
        matches.push(first);
    }
    Ok(matches)
}

/// The values of one slot.
struct SlotText {
    /// As they stand, joined.
    joined: String,
    /// Joined and normalised.
    normalised: String,
    /// Normalised, one by one, and cut at commas and semicolons: some extractors give a list, others one string for the
    /// same values (MedRoundsQA, E.4), and what is misplaced shall not depend on that.
    values: Vec<String>,
}

fn texts(slots: &CaseSlots) -> BTreeMap<Slot, SlotText> {
    let mut texts = BTreeMap::new();
    for slot in super::compared_slots() {
        let values = slots.get(&slot).map(Vec::as_slice).unwrap_or_default();
        let joined: Vec<&str> = values.iter().map(|value| value.trim()).filter(|value| !value.is_empty()).collect();
        let joined = joined.join(", ");
        let normalised = normalise(&joined);
        if !normalised.is_empty() {
            let values = split_values(&normalised);
            texts.insert(slot, SlotText { joined, normalised, values });
        }
    }
    texts
}

/// The values of a normalised list: a comma without a blank after it belongs to a number.
fn split_values(normalised: &str) -> Vec<String> {
    let parts = normalised.split(", ").flat_map(|part| part.split("; "));
    let parts = parts.map(|part| part.strip_prefix("and ").unwrap_or(part).trim_matches([' ', ',', ';']));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// For each value that agrees with a reference value of another slot but with none of its own slot, the other slot.
fn misplaced(slot: Slot, text: &SlotText, reference: &BTreeMap<Slot, SlotText>) -> Vec<Slot> {
    // Most values stand there word for word, and seeing that is much cheaper.
    let holds = |text: &SlotText, value: &String| {
        text.values.contains(value) || text.values.iter().any(|other| is_similar(other, value, SAME_VALUE))
    };
    let mut belongs_to = Vec::new();
    for value in &text.values {
        if !reference.get(&slot).is_some_and(|own| holds(own, value)) {
            belongs_to.extend(reference.iter().find(|(_, other)| holds(other, value)).map(|(other, _)| *other));
        }
    }
    belongs_to
}

fn error_kind(reference: Option<&SlotText>, candidate: Option<&SlotText>, is_misplaced: bool) -> Option<ErrorKind> {
    match (reference, candidate) {
        (_, Some(_)) if is_misplaced => Some(ErrorKind::Misplaced),
        (Some(_), None) => Some(ErrorKind::Missing),
        (None, Some(_)) => Some(ErrorKind::Spurious),
        (Some(reference), Some(candidate)) => {
            let (reference, candidate) = (reference.normalised.as_str(), candidate.normalised.as_str());
            if reference == candidate {
                None
            } else if reference.contains(candidate) || candidate.contains(reference) {
                Some(ErrorKind::Boundary)
            } else {
                Some(ErrorKind::Different)
            }
        }
        (None, None) => None,
    }
}
