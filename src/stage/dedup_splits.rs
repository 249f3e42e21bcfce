//! `dedup_splits`: patients that stand in several lines or several splits of one dataset (MTDiag, 4.1.1 takes DDXPlus as it is;
//! the release has repeated rows, also across its splits). A test set that holds rows of the training set measures memory.
//!
//! Equal = the same raw row, but for its place: the reader gives such rows one id, and later ones `~2`, `~3`.

use super::*;
use crate::record::RecordId;
use crate::record::Row;
use crate::record::ledger::DuplicateRow;
use crate::record::vector::PatientVector;
use anyhow::Context;
use polars::prelude::{LazyFrame, SortMultipleOptions, col};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "dedup_splits",
    summary: "Keeps the first of equal patients, in the order of the splits: what a later split repeats is removed from it",
    shape: Shape::Table,
    revision: 1,
    inputs: &[Port::records::<PatientVector>("records")],
    outputs: &[Port::records::<PatientVector>("records"), Port::side::<DuplicateRow>("duplicates")],
    resources: &[],
    reasons: &[REPEATED, OVERLAP],
    settings: SettingsType::of::<SplitSettings>(),
    build,
};

/// Equal to a patient of the same split.
const REPEATED: &str = "repeated_row";
/// Equal to a patient of an earlier split.
const OVERLAP: &str = "overlap_of_splits";

/// What becomes of equal patients of one split.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WithinSplit {
    Drop,
    Keep,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SplitSettings {
    /// Splits in their order: the first that has a patient keeps it. Others follow in the order of their names.
    splits: Vec<String>,
    /// Equal patients of one split: `drop` all but the first, or `keep` them.
    within_split: WithinSplit,
}

impl Default for SplitSettings {
    fn default() -> Self {
        let splits = ["train", "validate", "test"].map(str::to_owned).to_vec();
        Self { splits, within_split: WithinSplit::Drop }
    }
}

impl Settings for SplitSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::table(DedupSplits { settings: arguments.settings()? }))
}

struct DedupSplits {
    settings: SplitSettings,
}

/// What the comparison needs of a patient.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct PatientColumns {
    /// Id of the first of equal rows.
    identity: String,
    split_rank: u32,
    split: String,
}

impl Row for PatientColumns {
    const NAME: &'static str = "dedup_splits_columns";
    const TITLE: &'static str = "What dedup_splits compares.";
}

/// One row of the sorted table.
struct Candidate<'a> {
    id: &'a str,
    identity: &'a str,
    split: &'a str,
    file: &'a str,
    line: u64,
}

impl TableStage for DedupSplits {
    type In = PatientVector;
    type Columns = PatientColumns;

    fn columns(&self, record: &PatientVector) -> anyhow::Result<PatientColumns> {
        let split = record.origin.stratum.clone().unwrap_or_default();
        Ok(PatientColumns {
            identity: record.record_id.first_occurrence().to_string(),
            split_rank: dedup_exact::source_rank(&self.settings.splits, &split),
            split,
        })
    }

    fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        let order = ["identity", "split_rank", "split", EngineColumns::SHARD, EngineColumns::ROW];
        let columns = ["identity", "split", EngineColumns::RECORD_ID, EngineColumns::FILE, EngineColumns::LINE];
        let frame = table.sort(order, SortMultipleOptions::default()).select(columns.map(col)).collect()?;
        let text = |name: &str| -> anyhow::Result<_> { Ok(frame.column(name)?.str()?.clone()) };
        let (identities, splits, ids, files) =
            (text("identity")?, text("split")?, text(EngineColumns::RECORD_ID)?, text(EngineColumns::FILE)?);
        let lines = frame.column(EngineColumns::LINE)?.u64()?.clone();
        let mut decisions = Vec::with_capacity(frame.height());
        let mut first: Option<Candidate<'_>> = None;
        for row in 0..frame.height() {
            let candidate = Candidate {
                id: ids.get(row).context("a record without id")?,
                identity: identities.get(row).context("a record without identity")?,
                split: splits.get(row).context("a record without split")?,
                file: files.get(row).context("a record without file")?,
                line: lines.get(row).context("a record without line")?,
            };
            let verdict = match first.as_ref().filter(|first| first.identity == candidate.identity) {
                None => Verdict::Keep,
                Some(first) => self.repeats(first, &candidate, sides),
            };
            decisions.push(Decision { record_id: RecordId::parse(candidate.id), verdict });
            if first.as_ref().is_none_or(|first| first.identity != candidate.identity) {
                first = Some(candidate);
            }
        }
        Ok(decisions)
    }
}

impl DedupSplits {
    /// What becomes of a patient that equals one of the same or an earlier split.
    fn repeats(&self, first: &Candidate<'_>, repeated: &Candidate<'_>, sides: &mut SideEmitter) -> Verdict {
        let is_overlap = first.split != repeated.split;
        if !is_overlap && self.settings.within_split == WithinSplit::Keep {
            return Verdict::Keep;
        }
        let row = DuplicateRow {
            record_id: RecordId::parse(first.id),
            removed_id: RecordId::parse(repeated.id),
            kept_at: format!("{}:{}", first.file, first.line),
            removed_from: format!("{}:{}", repeated.file, repeated.line),
            similarity: 1.0,
        };
        sides.side("duplicates", row);
        let split = if is_overlap { format!(" of split `{}`", first.split) } else { String::new() };
        let detail = format!("equal to {}{split} ({}:{})", first.id, first.file, first.line);
        Verdict::Drop(Cause::new(if is_overlap { OVERLAP } else { REPEATED }, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check_table, patient};
    use expect_test::{Expect, expect};

    fn check(settings: &str, expected: Expect) {
        let of = |id: &str, split: &str| {
            let mut patient = patient(id);
            patient.origin.stratum = Some(split.to_owned());
            patient
        };
        let patients = [
            of("1", "test"),
            of("1~2", "train"),
            of("1~3", "train"),
            of("1~4", "extra"),
            of("2", "test"),
            of("2~2", "test"),
        ];
        check_table(&STAGE, settings, &patients, expected);
    }

    #[test]
    fn the_first_split_keeps_a_patient() {
        check(
            "",
            expect![[r#"
            dropped t:1 overlap_of_splits: equal to t:1~2 of split `train` (t/f:1)
            keep t:1~2
            dropped t:1~3 repeated_row: equal to t:1~2 (t/f:1)
            dropped t:1~4 overlap_of_splits: equal to t:1~2 of split `train` (t/f:1)
            keep t:2
            dropped t:2~2 repeated_row: equal to t:2 (t/f:2)
            duplicates t:1~2 {"kept_at":"t/f:1","record_id":"t:1~2","removed_from":"t/f:1","removed_id":"t:1~3","similarity":1.0}
            duplicates t:1~2 {"kept_at":"t/f:1","record_id":"t:1~2","removed_from":"t/f:1","removed_id":"t:1","similarity":1.0}
            duplicates t:1~2 {"kept_at":"t/f:1","record_id":"t:1~2","removed_from":"t/f:1","removed_id":"t:1~4","similarity":1.0}
            duplicates t:2 {"kept_at":"t/f:2","record_id":"t:2","removed_from":"t/f:1","removed_id":"t:2~2","similarity":1.0}
        "#]],
        );
    }

    #[test]
    fn repeats_of_one_split_can_stay() {
        check(
            "within_split = 'keep'",
            expect![[r#"
            dropped t:1 overlap_of_splits: equal to t:1~2 of split `train` (t/f:1)
            keep t:1~2
            keep t:1~3
            dropped t:1~4 overlap_of_splits: equal to t:1~2 of split `train` (t/f:1)
            keep t:2
            keep t:2~2
            duplicates t:1~2 {"kept_at":"t/f:1","record_id":"t:1~2","removed_from":"t/f:1","removed_id":"t:1","similarity":1.0}
            duplicates t:1~2 {"kept_at":"t/f:1","record_id":"t:1~2","removed_from":"t/f:1","removed_id":"t:1~4","similarity":1.0}
        "#]],
        );
    }
}
