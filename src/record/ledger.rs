//! Rows for everything that leaves the stream or waits for a person.

use super::{Hash, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a record left the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// A rule decided with all facts known.
    Dropped,
    /// Undecidable or unprocessable.
    Quarantined,
}

impl Exit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Quarantined => "quarantined",
        }
    }
}

/// One record that a node took out of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRow {
    pub record_id: RecordId,
    pub source: String,
    pub node: String,
    pub exit: Exit,
    /// From the fixed list of the stage.
    pub reason: String,
    /// The number or text that decided.
    pub detail: String,
    /// Path below the raw folder.
    pub file: String,
    /// From 1.
    pub line: u64,
    pub raw_sha256: Hash,
}

impl Row for LedgerRow {
    const NAME: &'static str = "ledger";
    const TITLE: &'static str = "A record that left the stream, where and why.";
}

/// Something that needs a person's decision; the record itself stays in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRow {
    pub record_id: RecordId,
    /// From the fixed list of the stage.
    pub reason: String,
    /// What differs, in one line.
    pub detail: String,
    /// The other records that take part, sorted.
    pub related: Vec<RecordId>,
}

impl Row for ReviewRow {
    const NAME: &'static str = "review";
    const TITLE: &'static str = "A record that waits for a person's decision.";
}

/// A removed duplicate and the record that stands for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicateRow {
    /// The record that stays.
    pub record_id: RecordId,
    /// The record that was removed.
    pub removed_id: RecordId,
    /// `file:line` of the record that stays.
    pub kept_at: String,
    /// `file:line` of the removed record.
    pub removed_from: String,
    /// Jaccard similarity of the shingles; 1 for exact duplicates.
    pub similarity: f64,
}

impl Row for DuplicateRow {
    const NAME: &'static str = "duplicate";
    const TITLE: &'static str = "A removed duplicate and the record that stands for it.";
}

/// Counts of one node and source: `n_in + n_split = kept + dropped + quarantined`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub n_in: u64,
    /// Records that splitting added.
    pub n_split: u64,
    pub kept: u64,
    pub dropped: BTreeMap<String, u64>,
    pub quarantined: BTreeMap<String, u64>,
}

impl Counts {
    pub fn n_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    pub fn n_quarantined(&self) -> u64 {
        self.quarantined.values().sum()
    }

    pub fn is_conserved(&self) -> bool {
        self.n_in + self.n_split == self.kept + self.n_dropped() + self.n_quarantined()
    }

    pub fn exit(&mut self, exit: Exit, reason: &str) {
        let by_reason = match exit {
            Exit::Dropped => &mut self.dropped,
            Exit::Quarantined => &mut self.quarantined,
        };
        *by_reason.entry(reason.to_owned()).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        self.n_in += other.n_in;
        self.n_split += other.n_split;
        self.kept += other.kept;
        for (reason, n) in &other.dropped {
            *self.dropped.entry(reason.clone()).or_default() += n;
        }
        for (reason, n) in &other.quarantined {
            *self.quarantined.entry(reason.clone()).or_default() += n;
        }
    }
}

/// Counts by source.
pub type SourceCounts = BTreeMap<String, Counts>;

pub fn add_counts(total: &mut SourceCounts, part: &SourceCounts) {
    for (source, counts) in part {
        total.entry(source.clone()).or_default().add(counts);
    }
}

pub fn total_counts(by_source: &SourceCounts) -> Counts {
    let mut total = Counts::default();
    by_source.values().for_each(|counts| total.add(counts));
    total
}
