//! `dedup_exact`: one record for equal questions. Equal = normalised stem + option set.

use super::*;
use crate::record::ledger::{DuplicateRow, ReviewRow};
use crate::record::question::AnsweredQuestion;
use crate::record::{Hash, RecordId, Row};
use crate::text::normalize::for_matching;
use anyhow::Context;
use polars::prelude::{LazyFrame, SortMultipleOptions, col};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub const STAGE: StageDef = StageDef {
    name: "dedup_exact",
    summary: "Keeps the first of equal questions (normalised stem + option set); equal questions with another answer all stay and go to review",
    shape: Shape::Table,
    revision: 2,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[
        Port::records::<AnsweredQuestion>("records"),
        Port::side::<DuplicateRow>("duplicates"),
        Port::side::<ReviewRow>("review"),
    ],
    resources: &[],
    reasons: &["exact_duplicate", "gold_conflict"],
    settings: SettingsType::of::<DedupSettings>(),
    build,
};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DedupSettings {
    /// Sources from the most to the least trusted: the first keeps its record. Others follow in the order of the stream.
    source_priority: Vec<String>,
}

impl Settings for DedupSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::table(DedupExact { settings: arguments.settings()? }))
}

/// Place of a source in the order of trust, from 0; those that are not in it share the last.
pub(super) fn source_rank(priority: &[String], source: &str) -> u32 {
    (0u32..).zip(priority).find(|(_, name)| *name == source).map_or(u32::MAX, |(rank, _)| rank)
}

struct DedupExact {
    settings: DedupSettings,
}

/// What the comparison needs of a question.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Identity {
    /// Hash of the normalised stem and the sorted normalised options.
    identity: String,
    /// Hash of the normalised diagnosis.
    gold: String,
    source_rank: u32,
}

impl Row for Identity {
    const NAME: &'static str = "dedup_exact_columns";
    const TITLE: &'static str = "What dedup_exact compares.";
}

/// One row of the sorted table.
struct Candidate<'a> {
    id: &'a str,
    identity: &'a str,
    gold: &'a str,
    file: &'a str,
    line: u64,
}

impl TableStage for DedupExact {
    type In = AnsweredQuestion;
    type Columns = Identity;

    fn columns(&self, record: &AnsweredQuestion) -> anyhow::Result<Identity> {
        let options: BTreeSet<String> = record.options.iter().map(|option| for_matching(&option.text)).collect();
        Ok(Identity {
            identity: Hash::of_json(&(for_matching(&record.stem), options))?.to_string(),
            gold: Hash::of(for_matching(&record.ground_truth_diagnosis).as_bytes()).short().to_owned(),
            source_rank: source_rank(&self.settings.source_priority, &record.provenance.source),
        })
    }

    fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        let order = ["identity", "source_rank", EngineColumns::SHARD, EngineColumns::ROW];
        let columns = ["identity", "gold", EngineColumns::RECORD_ID, EngineColumns::FILE, EngineColumns::LINE];
        let frame = table.sort(order, SortMultipleOptions::default()).select(columns.map(col)).collect()?;
        let text = |name: &str| -> anyhow::Result<_> { Ok(frame.column(name)?.str()?.clone()) };
        let (identities, golds, ids, files) =
            (text("identity")?, text("gold")?, text(EngineColumns::RECORD_ID)?, text(EngineColumns::FILE)?);
        let lines = frame.column(EngineColumns::LINE)?.u64()?.clone();
        let mut candidates = Vec::with_capacity(frame.height());
        for row in 0..frame.height() {
            candidates.push(Candidate {
                id: ids.get(row).context("a record without id")?,
                identity: identities.get(row).context("a record without identity")?,
                gold: golds.get(row).context("a record without answer")?,
                file: files.get(row).context("a record without file")?,
                line: lines.get(row).context("a record without line")?,
            });
        }
        let mut decisions = Vec::with_capacity(candidates.len());
        for group in candidates.chunk_by(|one, other| one.identity == other.identity) {
            decide_group(group, sides, &mut decisions);
        }
        Ok(decisions)
    }
}

/// Of equal questions, the first with each answer stays.
fn decide_group(group: &[Candidate<'_>], sides: &mut SideEmitter, decisions: &mut Vec<Decision>) {
    let mut survivors: Vec<&Candidate<'_>> = Vec::new();
    for candidate in group {
        let record_id = RecordId::parse(candidate.id);
        let verdict = match survivors.iter().find(|survivor| survivor.gold == candidate.gold) {
            None => {
                survivors.push(candidate);
                Verdict::Keep
            }
            Some(survivor) => {
                sides.side(
                    "duplicates",
                    DuplicateRow {
                        record_id: RecordId::parse(survivor.id),
                        removed_id: record_id.clone(),
                        kept_at: format!("{}:{}", survivor.file, survivor.line),
                        removed_from: format!("{}:{}", candidate.file, candidate.line),
                        similarity: 1.0,
                    },
                );
                Verdict::Drop(Cause::new(
                    "exact_duplicate",
                    format!("equal to {} ({}:{})", survivor.id, survivor.file, survivor.line),
                ))
            }
        };
        decisions.push(Decision { record_id, verdict });
    }
    if survivors.len() > 1 {
        for survivor in &survivors {
            let mut related: Vec<RecordId> = survivors
                .iter()
                .filter(|other| other.id != survivor.id)
                .map(|other| RecordId::parse(other.id))
                .collect();
            related.sort();
            sides.side(
                "review",
                ReviewRow {
                    record_id: RecordId::parse(survivor.id),
                    reason: "gold_conflict".to_owned(),
                    detail: format!("{} equal questions have {} different answers", group.len(), survivors.len()),
                    related,
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{answered, check_table};
    use expect_test::expect;

    #[test]
    fn equal_questions_keep_the_first_and_conflicts_keep_all() {
        let mut shuffled = answered("3", "Gout", &["x", "Gout", "y", "z"]);
        shuffled.stem = "  A MAN with раin.  Diagnosis?".to_owned(); // Cyrillic р and а
        let mut other_stem = answered("5", "Gout", &["Gout", "x", "y", "z"]);
        other_stem.stem = "A man with pain in 2 toes. Diagnosis?".to_owned();
        check_table(
            &STAGE,
            "",
            &[
                answered("1", "Gout", &["Gout", "x", "y", "z"]),
                answered("2", "x", &["Gout", "x", "y", "z"]),
                shuffled,
                answered("4", "Gout", &["Gout", "x", "y"]),
                other_stem,
            ],
            expect![[r#"
                keep t:1
                keep t:2
                dropped t:3 exact_duplicate: equal to t:1 (t/f:1)
                keep t:4
                keep t:5
                duplicates t:1 {"kept_at":"t/f:1","record_id":"t:1","removed_from":"t/f:3","removed_id":"t:3","similarity":1.0}
                review t:1 {"detail":"3 equal questions have 2 different answers","reason":"gold_conflict","record_id":"t:1","related":["t:2"]}
                review t:2 {"detail":"3 equal questions have 2 different answers","reason":"gold_conflict","record_id":"t:2","related":["t:1"]}
            "#]],
        );
    }

    #[test]
    fn source_priority_decides_before_the_order_of_the_stream() {
        let mut second = answered("2", "Gout", &["Gout", "x"]);
        second.provenance.source = "better".to_owned();
        check_table(
            &STAGE,
            "source_priority = ['better']",
            &[answered("1", "Gout", &["Gout", "x"]), second],
            expect![[r#"
                dropped t:1 exact_duplicate: equal to t:2 (t/f:2)
                keep t:2
                duplicates t:2 {"kept_at":"t/f:2","record_id":"t:2","removed_from":"t/f:1","removed_id":"t:1","similarity":1.0}
            "#]],
        );
    }
}
