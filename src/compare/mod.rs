//! Agreement of extractors' records with reference records, slot by slot, to choose an extractor (MedRoundsQA,
//! appendix B.1-B.3 and Figure 7).
//!
//! Pure: equal records, settings and metrics give equal bytes on every machine. The caller opens the files, finds the
//! stems, gives the way to a judge, and writes what [`table::text`], [`plot::svg`] or the serialised [`Comparison`] give.
//!
//! | file | what it holds |
//! |---|---|
//! | `references.rs` | reading JSONL and CSV into [`RecordSet`]s, on `json.rs` and `csv_records.rs` |
//! | `metrics.rs` | scores of two texts: edit similarity, word overlap, token F1, and the seam for more |
//! | `judge.rs` | a model that judges adequacy: which pairs it is asked about, and its scores as a metric |
//! | `labels.rs` | labels of people against a column of a release |
//! | `score.rs` | one extractor's pairs of texts, with misplaced values and kinds of error |
//! | `bootstrap.rs` | intervals and paired differences by resampling cases |
//! | `summary.rs` | from pairs to a [`Comparison`] |
//! | `report.rs` | the [`Comparison`], which is the form of `--json` |
//! | `table.rs`, `plot.rs` | a [`Comparison`] as text and as SVG |

pub mod bootstrap;
mod csv_records;
mod json;
pub mod judge;
pub mod labels;
pub mod metrics;
pub mod plot;
pub mod references;
pub mod report;
pub mod score;
mod summary;
pub mod table;

#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

pub use self::report::Comparison;
pub use self::summary::{Settings, compare};
use crate::record::Rights;
use crate::record::slots::Slot;
pub use crate::record::slots::SlotGroup as Group;

/// The name of the extractor that finds nothing. It is part of every comparison, as the floor.
pub const EMPTY_NAME: &str = "(empty)";

/// What a case is known by: the SHA-256 of its stem in lower-case hex, a case id or a record id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CaseKey(String);

impl CaseKey {
    /// A key of any kind; it is compared as it stands.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CaseKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The values of one case, those of a slot in the order of the text. A slot without values is absent.
pub type CaseSlots = BTreeMap<Slot, Vec<String>>;

/// The records of one reader or one extractor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSet {
    /// What the set is called in tables and plots.
    pub name: String,
    /// Every case under its first key.
    pub cases: BTreeMap<CaseKey, CaseSlots>,
    /// The other keys of a case, each with its first key.
    pub aliases: BTreeMap<CaseKey, CaseKey>,
    /// What may be done with a case, by its first key; a case is absent where nobody said.
    pub rights: BTreeMap<CaseKey, Rights>,
    /// Who filled the slots, as far as it is known: `rules`, `reviewers`, or a model as `provider/model`.
    pub made_by: BTreeSet<String>,
}

impl RecordSet {
    /// A set without cases.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a case under all its keys, the first of which is the one it is listed by.
    ///
    /// # Errors
    /// The key that another case has already; the set is then unchanged.
    pub fn insert(&mut self, keys: &[CaseKey], slots: CaseSlots) -> Result<(), CaseKey> {
        if let Some(key) = keys.iter().find(|key| self.find(key).is_some()) {
            return Err(key.clone());
        }
        if let Some((first, others)) = keys.split_first() {
            for key in others.iter().filter(|key| *key != first) {
                self.aliases.insert(key.clone(), first.clone());
            }
            self.cases.insert(first.clone(), slots);
        }
        Ok(())
    }

    /// The case that any of its keys names, with its first key.
    pub fn find(&self, key: &CaseKey) -> Option<(&CaseKey, &CaseSlots)> {
        self.cases.get_key_value(key).or_else(|| self.cases.get_key_value(self.aliases.get(key)?))
    }
}

/// The part of the reference records that a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// For work on an extractor.
    Tuning,
    /// For the final judgement only.
    HeldOut,
}

/// Which records are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitFilter {
    /// Every record, with or without a split.
    #[default]
    All,
    /// Records of one split. A record without a split is left out, since nobody said that it may be seen.
    Only(Split),
}

impl SplitFilter {
    /// Whether a record of this split is read.
    pub fn admits(self, split: Option<Split>) -> bool {
        match self {
            Self::All => true,
            Self::Only(wanted) => split == Some(wanted),
        }
    }
}

/// The slots that are compared: all but ground_truth_diagnosis, which is the key of the question and not in its text.
pub fn compared_slots() -> impl Iterator<Item = Slot> {
    Slot::ALL.into_iter().filter(|slot| *slot != Slot::GroundTruthDiagnosis)
}
