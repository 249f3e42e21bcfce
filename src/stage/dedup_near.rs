//! `dedup_near`: one record for nearly equal questions. Pairs are all those whose word shingles have an exact Jaccard
//! similarity of at least the threshold; a pair that differs in a number, a side, a negation, the patient's sex or the
//! answer removes nothing and goes to review.

use super::dedup_exact::source_rank;
use super::*;
use crate::record::ledger::{DuplicateRow, ReviewRow};
use crate::record::question::AnsweredQuestion;
use crate::record::{Hash, RecordId, Row};
use crate::text::clusters::{Fate, Resolution, Rule, resolve};
use crate::text::differences::Difference;
use crate::text::near_join::{Limits, Pair, near_pairs_within};
use crate::text::normalize::for_matching;
use crate::text::shingles::{ShingleSet, Threshold};
use anyhow::Context;
use polars::prelude::{DataFrame, IdxSize, LazyFrame, SortMultipleOptions, StringChunked, col};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

pub const STAGE: StageDef = StageDef {
    name: "dedup_near",
    summary: "Keeps one of nearly equal questions (word shingles, exact Jaccard); pairs that differ in a number, side, negation, sex or answer all stay and go to review",
    shape: Shape::Table,
    revision: 2,
    inputs: &[Port::records::<AnsweredQuestion>("records")],
    outputs: &[
        Port::records::<AnsweredQuestion>("records"),
        Port::side::<DuplicateRow>("duplicates"),
        Port::side::<ReviewRow>("review"),
    ],
    resources: &[],
    reasons: &["near_duplicate", "near_conflict", "gold_conflict"],
    settings: SettingsType::of::<NearSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NearSettings {
    /// Least Jaccard similarity of two stems' shingles, at most three decimals; 1.0 means equal sets.
    threshold: f64,
    /// Words in a shingle.
    shingle_words: u32,
    /// Sources from the most to the least trusted: the first keeps its record. Others follow in the order of the stream.
    source_priority: Vec<String>,
    /// A cluster of more records than this stops the node: such texts come from one template, and are not copies.
    max_cluster: u32,
}

impl Default for NearSettings {
    fn default() -> Self {
        Self { threshold: 0.85, shingle_words: 5, source_priority: Vec::new(), max_cluster: 50 }
    }
}

impl Settings for NearSettings {
    fn check(&self) -> Result<(), String> {
        Threshold::from_decimal(self.threshold).map_err(|error| format!("threshold: {error}"))?;
        if !(1..=20).contains(&self.shingle_words) {
            return Err("shingle_words must be between 1 and 20".to_owned());
        }
        if self.max_cluster < 2 {
            return Err("max_cluster must be at least 2".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: NearSettings = arguments.settings()?;
    Ok(AnyStage::table(DedupNear {
        threshold: Threshold::from_decimal(settings.threshold)?,
        shingle_words: NonZeroUsize::new(settings.shingle_words as usize).context("shingle_words is 0")?,
        settings,
    }))
}

struct DedupNear {
    settings: NearSettings,
    threshold: Threshold,
    shingle_words: NonZeroUsize,
}

/// What the comparison needs of a question.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct NearColumns {
    /// The normalised stem.
    text: String,
    /// Hash of the normalised diagnosis.
    gold: String,
    source_rank: u32,
}

impl Row for NearColumns {
    const NAME: &'static str = "dedup_near_columns";
    const TITLE: &'static str = "What dedup_near compares.";
}

/// Records are taken in this many at a time, so that only their shingles stay in memory.
const CHUNK: u32 = 50_000;
/// Entries of the index that may be visited: some minutes. More means text made from a template.
const MAX_VISITS: u64 = 40_000_000_000;
const MAX_PAIRS: u64 = 50_000_000;

/// What stays of each record while pairs are found.
struct Candidate {
    id: String,
    gold: String,
    place: String,
    source_rank: u32,
}

impl TableStage for DedupNear {
    type In = AnsweredQuestion;
    type Columns = NearColumns;

    fn columns(&self, record: &AnsweredQuestion) -> anyhow::Result<NearColumns> {
        Ok(NearColumns {
            text: for_matching(&record.stem),
            gold: Hash::of(for_matching(&record.ground_truth_diagnosis).as_bytes()).short().to_owned(),
            source_rank: source_rank(&self.settings.source_priority, &record.provenance.source),
        })
    }

    fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        let (candidates, sets) = self.candidates(&table)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let limits = Limits { pairs: MAX_PAIRS, visits: MAX_VISITS };
        let pairs = near_pairs_within(&sets, self.threshold, threads, limits).map_err(|error| {
            crate::error::input(format!(
                "{error}: these texts are made from templates; compare such a source by its parts instead"
            ))
        })?;
        drop(sets);
        let texts = texts_of(&table, &pairs, &candidates)?;
        let keys: Vec<(u32, usize)> =
            candidates.iter().enumerate().map(|(position, candidate)| (candidate.source_rank, position)).collect();
        let mut reasons: BTreeMap<(u32, u32), (&'static str, String)> = BTreeMap::new();
        let resolution = resolve(&keys, &pairs, Rule::Mutual, |a, b| match conflict(a, b, &candidates, &texts) {
            None => true,
            Some(reason) => {
                reasons.insert((a, b), reason);
                false
            }
        })?;
        self.check_clusters(&resolution, &candidates)?;
        report(&resolution, &reasons, &pairs, &candidates, sides);
        let similarity = similarities(&pairs);
        let mut decisions = Vec::with_capacity(candidates.len());
        for ((position, candidate), fate) in (0u32..).zip(&candidates).zip(&resolution.fates) {
            let verdict = match fate {
                Fate::Kept => Verdict::Keep,
                Fate::Removed { survivor } => {
                    let other = candidates.get(*survivor as usize).context("a survivor that is not there")?;
                    let jaccard = similarity
                        .get(&(position.min(*survivor), position.max(*survivor)))
                        .copied()
                        .unwrap_or_default();
                    sides.side(
                        "duplicates",
                        DuplicateRow {
                            record_id: RecordId::parse(&other.id),
                            removed_id: RecordId::parse(&candidate.id),
                            kept_at: other.place.clone(),
                            removed_from: candidate.place.clone(),
                            similarity: jaccard,
                        },
                    );
                    Verdict::Drop(Cause::new(
                        "near_duplicate",
                        format!("Jaccard {jaccard:.3} with {} ({})", other.id, other.place),
                    ))
                }
            };
            decisions.push(Decision { record_id: RecordId::parse(&candidate.id), verdict });
        }
        Ok(decisions)
    }
}

impl DedupNear {
    /// All records in the order of the stream, and their shingles.
    fn candidates(&self, table: &LazyFrame) -> anyhow::Result<(Vec<Candidate>, Vec<ShingleSet>)> {
        let columns =
            ["text", "gold", "source_rank", EngineColumns::RECORD_ID, EngineColumns::FILE, EngineColumns::LINE];
        let (mut candidates, mut sets) = (Vec::new(), Vec::new());
        for chunk in 0i64.. {
            let offset = chunk * i64::from(CHUNK);
            let frame = table.clone().select(columns.map(col)).slice(offset, IdxSize::from(CHUNK)).collect()?;
            let (text, gold, id, file) = (
                strings(&frame, "text")?,
                strings(&frame, "gold")?,
                strings(&frame, EngineColumns::RECORD_ID)?,
                strings(&frame, EngineColumns::FILE)?,
            );
            let (rank, line) =
                (frame.column("source_rank")?.u32()?.clone(), frame.column(EngineColumns::LINE)?.u64()?.clone());
            for row in 0..frame.height() {
                sets.push(ShingleSet::from_text(text.get(row).context("a record without text")?, self.shingle_words));
                candidates.push(Candidate {
                    id: id.get(row).context("a record without id")?.to_owned(),
                    gold: gold.get(row).context("a record without answer")?.to_owned(),
                    place: format!(
                        "{}:{}",
                        file.get(row).context("a record without file")?,
                        line.get(row).context("a record without line")?
                    ),
                    source_rank: rank.get(row).context("a record without rank")?,
                });
            }
            if frame.height() < CHUNK as usize {
                break;
            }
        }
        Ok((candidates, sets))
    }

    /// Texts from a template would fall to a handful of records: that needs a person, not a rule.
    fn check_clusters(&self, resolution: &Resolution, candidates: &[Candidate]) -> anyhow::Result<()> {
        if resolution.largest_cluster <= self.settings.max_cluster as usize {
            return Ok(());
        }
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        resolution.clusters.iter().for_each(|head| *sizes.entry(*head).or_default() += 1);
        let head = sizes
            .iter()
            .max_by_key(|(head, size)| (**size, std::cmp::Reverse(**head)))
            .and_then(|(head, _)| candidates.get(*head as usize));
        Err(crate::error::input(format!(
            "{} nearly equal questions hang together around {} ({}), more than max_cluster = {}; look at them, then raise max_cluster or the threshold",
            resolution.largest_cluster,
            head.map_or("?", |head| &head.id),
            head.map_or("?", |head| &head.place),
            self.settings.max_cluster
        )))
    }
}

fn strings(frame: &DataFrame, name: &str) -> anyhow::Result<StringChunked> {
    Ok(frame.column(name)?.str()?.clone())
}

/// The texts of the records that are in a pair.
fn texts_of(table: &LazyFrame, pairs: &[Pair], candidates: &[Candidate]) -> anyhow::Result<BTreeMap<u32, String>> {
    let wanted: BTreeMap<&str, u32> = pairs
        .iter()
        .flat_map(|pair| [pair.a, pair.b])
        .filter_map(|position| Some((candidates.get(position as usize)?.id.as_str(), position)))
        .collect();
    let mut texts = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(texts);
    }
    let ids = polars::prelude::Column::new(EngineColumns::RECORD_ID.into(), wanted.keys().copied().collect::<Vec<_>>());
    let wanted_frame = polars::prelude::IntoLazy::lazy(DataFrame::new(wanted.len(), vec![ids])?);
    let key = col(EngineColumns::RECORD_ID);
    let frame = table
        .clone()
        .select([key.clone(), col("text")])
        .semi_join(wanted_frame, key.clone(), key)
        .sort([EngineColumns::RECORD_ID], SortMultipleOptions::default())
        .collect()?;
    let (ids, text) = (strings(&frame, EngineColumns::RECORD_ID)?, strings(&frame, "text")?);
    for row in 0..frame.height() {
        if let (Some(id), Some(text)) = (ids.get(row), text.get(row))
            && let Some(position) = wanted.get(id)
        {
            texts.insert(*position, text.to_owned());
        }
    }
    Ok(texts)
}

/// Why a confirmed pair may not remove a record.
fn conflict(a: u32, b: u32, candidates: &[Candidate], texts: &BTreeMap<u32, String>) -> Option<(&'static str, String)> {
    let (Some(one), Some(other)) = (candidates.get(a as usize), candidates.get(b as usize)) else { return None };
    if one.gold != other.gold {
        return Some(("gold_conflict", "nearly equal questions have different answers".to_owned()));
    }
    let (Some(text), Some(other_text)) = (texts.get(&a), texts.get(&b)) else {
        return Some(("near_conflict", "their texts could not be compared".to_owned()));
    };
    let difference = Difference::between(text, other_text);
    let kinds: Vec<&str> = [
        (difference.numbers, "numbers"),
        (difference.laterality, "laterality"),
        (difference.negation, "negation"),
        (difference.sex, "sex"),
        (difference.direction, "direction"),
    ]
    .into_iter()
    .filter_map(|(differs, kind)| differs.then_some(kind))
    .collect();
    (!kinds.is_empty()).then(|| ("near_conflict", format!("nearly equal questions differ in {}", kinds.join(", "))))
}

fn similarities(pairs: &[Pair]) -> BTreeMap<(u32, u32), f64> {
    pairs.iter().map(|pair| ((pair.a, pair.b), f64::from(pair.intersection) / f64::from(pair.union.max(1)))).collect()
}

/// One review row for each record and reason, naming the records it conflicts with.
fn report(
    resolution: &Resolution,
    reasons: &BTreeMap<(u32, u32), (&'static str, String)>,
    pairs: &[Pair],
    candidates: &[Candidate],
    sides: &mut SideEmitter,
) {
    let similarity = similarities(pairs);
    type Conflict<'a> = (BTreeSet<RecordId>, BTreeSet<&'a str>, f64);
    let mut conflicts: BTreeMap<(u32, &str), Conflict<'_>> = BTreeMap::new();
    for pair in &resolution.conflicts {
        let Some((reason, detail)) = reasons.get(pair) else { continue };
        for (record, other) in [(pair.0, pair.1), (pair.1, pair.0)] {
            let Some(other) = candidates.get(other as usize) else { continue };
            let conflict = conflicts.entry((record, *reason)).or_default();
            conflict.0.insert(RecordId::parse(&other.id));
            conflict.1.insert(detail);
            conflict.2 = conflict.2.max(similarity.get(pair).copied().unwrap_or_default());
        }
    }
    for ((record, reason), (related, details, jaccard)) in conflicts {
        let Some(candidate) = candidates.get(record as usize) else { continue };
        let details: Vec<&str> = details.into_iter().collect();
        sides.side(
            "review",
            ReviewRow {
                record_id: RecordId::parse(&candidate.id),
                reason: reason.to_owned(),
                detail: format!("{} (Jaccard {jaccard:.3})", details.join("; ")),
                related: related.into_iter().collect(),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{answered, check_table};
    use expect_test::expect;

    const STEM: &str = "A 34-year-old woman comes to the physician because of pain in the left knee for two weeks. She has no fever. \
        She works as a teacher and walks her dog every morning along the river near her house with her neighbour and his son. \
        Examination shows swelling of the joint and warmth of the overlying skin, and the range of motion is limited by pain. \
        Which of the following is the most likely diagnosis?";

    fn edited(id: &str, from: &str, to: &str) -> AnsweredQuestion {
        let mut record = answered(id, "Gout", &["Gout", "x", "y", "z"]);
        assert!(STEM.contains(from));
        record.stem = STEM.replace(from, to);
        record
    }

    #[test]
    fn copies_go_and_conflicts_stay() {
        let mut other_answer = edited("6", "teacher", "cook");
        other_answer.ground_truth_diagnosis = "Pseudogout".to_owned();
        check_table(
            &STAGE,
            "",
            &[
                edited("1", "river", "river"),
                edited("2", "teacher", "nurse"),
                edited("3", "34-year-old", "43-year-old"),
                edited("4", "left knee", "right knee"),
                edited("5", "She has no fever.", "She has a fever."),
                other_answer,
                edited("7", STEM, "Another text altogether, with no words in common. Diagnosis?"),
            ],
            expect![[r#"
                keep t:1
                dropped t:2 near_duplicate: Jaccard 0.867 with t:1 (t/f:1)
                keep t:3
                keep t:4
                keep t:5
                keep t:6
                keep t:7
                duplicates t:1 {"kept_at":"t/f:1","record_id":"t:1","removed_from":"t/f:2","removed_id":"t:2","similarity":0.8666666666666667}
                review t:1 {"detail":"nearly equal questions have different answers (Jaccard 0.867)","reason":"gold_conflict","record_id":"t:1","related":["t:6"]}
                review t:1 {"detail":"nearly equal questions differ in laterality; nearly equal questions differ in negation; nearly equal questions differ in numbers (Jaccard 0.944)","reason":"near_conflict","record_id":"t:1","related":["t:3","t:4","t:5"]}
                review t:2 {"detail":"nearly equal questions have different answers (Jaccard 0.867)","reason":"gold_conflict","record_id":"t:2","related":["t:6"]}
                review t:3 {"detail":"nearly equal questions differ in numbers (Jaccard 0.944)","reason":"near_conflict","record_id":"t:3","related":["t:1"]}
                review t:4 {"detail":"nearly equal questions differ in laterality (Jaccard 0.867)","reason":"near_conflict","record_id":"t:4","related":["t:1"]}
                review t:5 {"detail":"nearly equal questions differ in negation (Jaccard 0.867)","reason":"near_conflict","record_id":"t:5","related":["t:1"]}
                review t:6 {"detail":"nearly equal questions have different answers (Jaccard 0.867)","reason":"gold_conflict","record_id":"t:6","related":["t:1","t:2"]}
            "#]],
        );
    }

    /// Case dup-04: texts from one template whose content differs are not copies of each other.
    #[test]
    fn dup_04_templated_texts_stay() {
        let complaints =
            ["fever", "cough", "headache", "nausea", "fatigue", "vertigo", "itching", "cramps", "thirst", "chills"];
        let mut records = Vec::new();
        for n in 0..1000usize {
            let mut record = answered(&n.to_string(), "Gout", &["Gout", "x"]);
            record.stem = format!(
                "A {}-year-old person reports {} and {}.",
                20 + n % 60,
                complaints[n % 10],
                complaints[(n / 10 + 1) % 10]
            );
            record.ground_truth_diagnosis = format!("diagnosis {n}");
            records.push(record);
        }
        let table = crate::stage::testing::decide_table(&STAGE, "", &records);
        assert!(table.iter().all(|decision| decision.verdict == Verdict::Keep));
    }
}
