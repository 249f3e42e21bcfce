//! What a comparison says: the form of `--json`. Fields stand in a fixed order, numbers have four decimals.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::judge::JudgeReport;
use super::score::ErrorKind;
use super::{CaseKey, Group};
use crate::record::slots::Slot;

/// The version of the form.
pub const VERSION: u32 = 1;

/// A number that is written with four decimals.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rounded(pub f64);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Adding 0 makes 0 of -0.
        serializer.serialize_f64((self.0 * 1e4).round() / 1e4 + 0.0)
    }
}

/// A number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Over the cases as they are.
    pub value: Rounded,
    /// The lower end of the interval.
    pub low: Rounded,
    /// The upper end of the interval.
    pub high: Rounded,
}

/// One metric's estimate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricEstimate {
    /// The name of the metric.
    pub metric: String,
    /// The micro-average over all pairs that the metric has a score for; none without such pairs.
    pub estimate: Option<Estimate>,
}

/// One metric's average.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricScore {
    /// The name of the metric.
    pub metric: String,
    /// The micro-average over the pairs that the metric has a score for; none without such pairs.
    pub score: Option<Rounded>,
}

/// A metric by its two names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MetricNames {
    /// In tables.
    pub name: String,
    /// In the plot.
    pub title: String,
}

/// Agreement of extractors with a reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The version of this form.
    pub version: u32,
    /// The name of the reference.
    pub reference: String,
    /// The number of reference cases.
    pub n_cases: usize,
    /// The number of their filled slots.
    pub n_filled: usize,
    /// The number of resamples behind every interval.
    pub n_resamples: u32,
    /// Their seed.
    pub seed: u64,
    /// The coverage of every interval.
    pub confidence: Rounded,
    /// The metrics, in the order of all lists of scores.
    pub metrics: Vec<MetricNames>,
    /// The extractors as they were given, then the empty one.
    pub extractors: Vec<ExtractorReport>,
    /// Every two extractors that were given.
    pub differences: Vec<Difference>,
    /// What the scores of the judge are over; absent where none was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeReport>,
}

/// One extractor's agreement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExtractorReport {
    /// Its name.
    pub name: String,
    /// Reference cases it has no record of; all their slots count as missing.
    pub n_missing_cases: usize,
    /// Its cases without reference, which are not compared.
    pub n_other_cases: usize,
    /// Pairs: a case and a slot that is filled on either side.
    pub n_pairs: usize,
    /// The micro-averages.
    pub scores: Vec<MetricEstimate>,
    /// The share of its filled slots that the reference fills too; none if it fills none.
    pub precision: Option<Estimate>,
    /// The share of the reference's filled slots that it fills too.
    pub recall: Option<Estimate>,
    /// Values in the wrong slot.
    pub n_misplaced: usize,
    /// The same, by the two slots; the most frequent first.
    pub misplacements: Vec<Misplacement>,
    /// Every compared slot, in the order of Table 6.
    pub slots: Vec<SlotReport>,
    /// Every group, in the order of Table 7.
    pub groups: Vec<GroupReport>,
    /// Pairs by what is wrong with them, over all slots.
    pub errors: BTreeMap<ErrorKind, usize>,
    /// The worst of them: lowest score of the first metric first, then the longest text.
    pub worst: Vec<WorstError>,
}

/// Values that stand in one slot and belong into another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Misplacement {
    /// Where the extractor has them.
    pub from: Slot,
    /// Where the reference has them.
    pub to: Slot,
    /// How many.
    pub n_values: usize,
}

/// Agreement in one slot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotReport {
    /// The slot.
    pub slot: Slot,
    /// Cases in which either side fills it.
    pub n_pairs: usize,
    /// The averages over these.
    pub scores: Vec<MetricScore>,
    /// Cases in which the reference fills it.
    pub n_reference: usize,
    /// Cases in which the extractor fills it.
    pub n_candidate: usize,
    /// Cases in which both do.
    pub n_both: usize,
    /// `n_both` of `n_candidate`.
    pub precision: Option<Rounded>,
    /// `n_both` of `n_reference`.
    pub recall: Option<Rounded>,
    /// The share of cases in which the reference fills it (MedRoundsQA, E.3).
    pub completeness_reference: Rounded,
    /// The share of cases in which the extractor fills it.
    pub completeness_candidate: Rounded,
    /// Values that the extractor has here and that belong into another slot.
    pub n_misplaced: usize,
    /// Pairs by what is wrong with them.
    pub errors: BTreeMap<ErrorKind, usize>,
}

/// Agreement in one group of slots.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// The group.
    pub group: Group,
    /// Pairs of its slots.
    pub n_pairs: usize,
    /// The averages over these.
    pub scores: Vec<MetricScore>,
    /// The mean of the completeness of its slots, in the reference (MedRoundsQA, E.3 and Figure 9).
    pub completeness_reference: Rounded,
    /// The same of the extractor.
    pub completeness_candidate: Rounded,
}

/// An error worth reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstError {
    /// The case, by the first key of its reference.
    pub case: CaseKey,
    /// The slot.
    pub slot: Slot,
    /// What is wrong.
    pub kind: ErrorKind,
    /// The score of the first metric.
    pub score: Rounded,
    /// The text of the reference; empty if there is none.
    pub reference: String,
    /// The text of the extractor; empty if there is none.
    pub candidate: String,
    /// The slots that misplaced values belong into.
    pub belongs_to: BTreeSet<Slot>,
}

/// The scores of one extractor less those of another, over the same resamples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The one.
    pub first: String,
    /// The other.
    pub second: String,
    /// First less second.
    pub scores: Vec<MetricEstimate>,
}
