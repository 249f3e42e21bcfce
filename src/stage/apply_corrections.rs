//! `apply_corrections`: records as physicians corrected them (MedRoundsQA, 3.1 and appendix G).
//!
//! What several annotators made of one record is merged by a rule that is a setting. The merged values take the place of the
//! extractor's, which stay beside them in `extracted`. Each is looked for in the vignette like an extractor's, and judged by
//! `score_fidelity` like every other: what a person typed and the text does not say is no value either.

use super::extract_slots::{Placing, REPEATED_VALUE};
use super::*;
use crate::record::correction::{
    CorrectedRecord, CorrectedValue, Corrections, base_hash, effective, parse_corrections, plain_values, same_values,
};
use crate::record::ledger::ReviewRow;
use crate::record::model::{REVIEWERS, add_maker, field};
use crate::record::slots::{Change, Correction, Slot, SlotRecord, SlotValue};
use crate::text::context::ContextRules;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

pub const STAGE: StageDef = StageDef {
    name: "apply_corrections",
    summary: "Puts the values that annotators left in a record in place of the extractor's, merged by a rule; their corrections are a resource",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records"), Port::side::<ReviewRow>("review")],
    resources: &[
        ResourceDecl {
            name: CORRECTIONS,
            summary: "annotators' records, as `casemill review import --records` writes them",
        },
        ResourceDecl { name: CONTEXT, summary: "words of negation, uncertainty, history and experiencer, as TOML" },
    ],
    reasons: &[DIFFER, UNSURE, UNSUPPORTED],
    settings: SettingsType::of::<CorrectionSettings>(),
    build,
};

/// The resource that holds what annotators did.
pub const CORRECTIONS: &str = "corrections";
/// The resource by which values are looked for in vignettes.
pub const CONTEXT: &str = "context";

const DIFFER: &str = "annotators_differ";
const UNSURE: &str = "unsure_annotator";
/// A reason for review, and a flag.
const UNSUPPORTED: &str = "corrected_unsupported";
/// Flag of a record whose values are not the extractor's.
pub const CORRECTED: &str = "corrected";
/// Flag of a record that annotators left as it was.
const CONFIRMED: &str = "confirmed_by_review";
/// Flag of a record of which an annotator was shown another extraction, or another vignette.
const OTHER_BASE: &str = "reviewed_on_other_base";
/// Flag that an extractor gives.
const NO_SYMPTOM_NAME: &str = "no_symptom_name";

/// How the records of several annotators become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Merge {
    /// A value stays if more than half of the annotators have it; if half of them do, if the extractor has it.
    Majority,
    /// The record of the annotator who was imported last.
    Latest,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CorrectionSettings {
    /// How the records of several annotators become one: `majority`: a value stays if more than half of them have it, and a tie
    /// is decided by the extractor's record; `latest`: the record that was imported last.
    merge: Merge,
    /// Annotators that a record needs; with fewer it stays as it was extracted.
    min_annotators: u32,
    /// Annotators whose word is the last, by the names or codes in the file of corrections: a record that one of them corrected
    /// is as they left it.
    adjudicators: Vec<String>,
}

impl Default for CorrectionSettings {
    fn default() -> Self {
        Self { merge: Merge::Majority, min_annotators: 1, adjudicators: Vec::new() }
    }
}

impl Settings for CorrectionSettings {
    fn check(&self) -> Result<(), String> {
        if self.min_annotators == 0 { Err("min_annotators must be at least 1".to_owned()) } else { Ok(()) }
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let lines = parse_corrections(resources.text(CORRECTIONS)?)
        .map_err(|error| anyhow::anyhow!("{}: {error}", resources.file(CORRECTIONS)))?;
    let rules = ContextRules::parse(resources.text(CONTEXT)?).with_context(|| resources.file(CONTEXT).to_owned())?;
    Ok(AnyStage::record(ApplyCorrections { settings: arguments.settings()?, corrections: effective(lines), rules }))
}

struct ApplyCorrections {
    settings: CorrectionSettings,
    corrections: Corrections,
    rules: ContextRules,
}

impl RecordStage for ApplyCorrections {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn apply(
        &self,
        mut record: SlotRecord,
        out: &mut Emitter<'_, SlotRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        if let Some(all) = self.corrections.get(&record.record_id) {
            let adjudicated = all.iter().rfind(|one| self.settings.adjudicators.contains(&one.annotator));
            let counted: Vec<&CorrectedRecord> = adjudicated.map_or_else(|| all.iter().collect(), |one| vec![one]);
            let n_unsure = counted.iter().filter(|one| one.unsure).count();
            if n_unsure > 0 {
                // Names stay out of what reviewers are told: it is part of releases.
                out.side("review", review(&record, UNSURE, format!("{n_unsure} of {} annotators", counted.len())));
            }
            if adjudicated.is_some() || counted.len() >= self.settings.min_annotators as usize {
                self.correct(&mut record, &counted, out)?;
            }
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

impl ApplyCorrections {
    /// Puts the merged values of at least one annotator into the record.
    fn correct(
        &self,
        record: &mut SlotRecord,
        counted: &[&CorrectedRecord],
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<()> {
        let extracted = plain_values(&record.slots);
        let base = base_hash(&record.stem, &extracted)?;
        let merged = match self.settings.merge {
            Merge::Majority => majority(counted, &extracted),
            Merge::Latest => Merged {
                values: counted.last().map(|last| last.values.clone()).unwrap_or_default(),
                differing: Vec::new(),
            },
        };
        add_maker(&mut record.made_by, field::SLOTS, REVIEWERS);
        if counted.iter().any(|one| one.base_sha256 != base) {
            record.flags.push(OTHER_BASE.to_owned());
        }
        if !merged.differing.is_empty() {
            out.side("review", review(record, DIFFER, merged.differing.join("; ")));
        }
        let (slots, n_repeated) = self.place(record, &merged.values)?;
        if n_repeated > 0 {
            record.flags.push(format!("{REPEATED_VALUE}:{n_repeated}"));
        }
        if same_values(&plain_values(&slots), &extracted) {
            record.flags.push(CONFIRMED.to_owned());
            return Ok(());
        }
        record.corrections = changes(&extracted, &plain_values(&slots));
        record.extracted = std::mem::replace(&mut record.slots, slots);
        record.flags.push(CORRECTED.to_owned());
        record.flags.retain(|flag| flag != NO_SYMPTOM_NAME);
        if !record.slots.iter().any(|value| value.slot == Slot::SymptomName) {
            record.flags.push(NO_SYMPTOM_NAME.to_owned());
        }
        let unsupported: Vec<String> = record.slots.iter().filter_map(SlotValue::why_unsupported).collect();
        if !unsupported.is_empty() {
            record.flags.push(UNSUPPORTED.to_owned());
            out.side("review", review(record, UNSUPPORTED, unsupported.join("; ")));
        }
        Ok(())
    }

    /// The values with their places, in the order of slots, then of the text, and how many came more often than the text has
    /// them. A value that the extractor has too keeps its place.
    fn place(&self, record: &SlotRecord, values: &[CorrectedValue]) -> anyhow::Result<(Vec<SlotValue>, u64)> {
        let mut known: BTreeMap<(Slot, &str), VecDeque<Range<u32>>> = BTreeMap::new();
        let mut elsewhere: BTreeMap<&str, Range<u32>> = BTreeMap::new();
        for value in &record.slots {
            if let Some(span) = &value.span {
                known.entry((value.slot, &value.value)).or_default().push_back(span.start..span.end);
                elsewhere.entry(&value.value).or_insert(span.start..span.end);
            }
        }
        let mut placing = Placing::new(&record.stem, &self.rules);
        for slot in Slot::ALL {
            let mut seen: Vec<&str> = Vec::new();
            for value in values.iter().filter(|value| value.slot == slot) {
                let text = value.value.as_str();
                let hint = known.get_mut(&(slot, text)).and_then(VecDeque::pop_front);
                // What was moved here from another slot stands where it stood.
                let hint = hint.or_else(|| elsewhere.get(text).filter(|_| !seen.contains(&text)).cloned());
                placing.add(slot, text, hint)?;
                seen.push(text);
            }
        }
        let (mut slots, n_repeated) = placing.finish();
        let place = |value: &SlotValue| value.span.as_ref().map_or((u32::MAX, u32::MAX), |span| (span.start, span.end));
        slots.sort_by_key(|value| (value.slot, place(value)));
        Ok((slots, n_repeated))
    }
}

/// What one record has and another lacks, each value as often as that.
fn changes(extracted: &[CorrectedValue], corrected: &[CorrectedValue]) -> Vec<Correction> {
    let mut changes = Vec::new();
    for (change, these, others) in [(Change::Added, corrected, extracted), (Change::Removed, extracted, corrected)] {
        let mut left: BTreeMap<&CorrectedValue, usize> = BTreeMap::new();
        for value in others {
            *left.entry(value).or_default() += 1;
        }
        for value in these {
            match left.get_mut(value).filter(|n| **n > 0) {
                Some(n) => *n -= 1,
                None => changes.push(Correction { change, slot: value.slot, value: value.value.clone() }),
            }
        }
    }
    changes
}

fn review(record: &SlotRecord, reason: &str, detail: String) -> ReviewRow {
    ReviewRow { record_id: record.record_id.clone(), reason: reason.to_owned(), detail, related: Vec::new() }
}

/// What became of the records of several annotators.
struct Merged {
    /// In the order of slots, then of the form in which values are compared.
    values: Vec<CorrectedValue>,
    /// A phrase for each value that some annotators have and some have not.
    differing: Vec<String>,
}

/// Each value of each annotator is decided alone, one that a record has several times each time: it stays if more than half of
/// them have it, or if half of them do and the extractor has it. It is written as most of them write it; if there is no most,
/// as the extractor does, or else as comes first in order.
fn majority(counted: &[&CorrectedRecord], extracted: &[CorrectedValue]) -> Merged {
    /// How annotators and the extractor write what is the same value: in each list the nth is that of the nth occurrence.
    #[derive(Default)]
    struct Spellings<'a> {
        annotators: Vec<Vec<&'a str>>,
        extractor: Vec<&'a str>,
    }
    let mut found: BTreeMap<(Slot, String), Spellings<'_>> = BTreeMap::new();
    for (position, one) in counted.iter().enumerate() {
        for value in &one.values {
            let spellings = &mut found.entry(value.form()).or_default().annotators;
            if spellings.len() <= position {
                spellings.resize_with(position + 1, Vec::new);
            }
            if let Some(list) = spellings.get_mut(position) {
                list.push(&value.value);
            }
        }
    }
    for value in extracted {
        found.entry(value.form()).or_default().extractor.push(&value.value);
    }
    let mut merged = Merged { values: Vec::new(), differing: Vec::new() };
    for ((slot, _), Spellings { annotators, extractor }) in found {
        for occurrence in 0..annotators.iter().map(Vec::len).max().unwrap_or(0) {
            let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
            for spelling in annotators.iter().filter_map(|list| list.get(occurrence)) {
                *votes.entry(spelling).or_default() += 1;
            }
            let n_votes: usize = votes.values().sum();
            let by_extractor = extractor.get(occurrence).copied();
            // Texts are in order, and the first of equal keys is taken.
            let written = votes.iter().min_by_key(|(text, n)| (Reverse(**n), by_extractor != Some(**text)));
            let Some((written, _)) = written else { continue };
            let (stays, how) = match (2 * n_votes).cmp(&counted.len()) {
                Ordering::Greater => (true, ""),
                Ordering::Less => (false, ""),
                Ordering::Equal => (by_extractor.is_some(), " (a tie, decided by the extractor)"),
            };
            if n_votes < counted.len() {
                let outcome = if stays { "kept" } else { "left out" };
                merged.differing.push(format!(
                    "{} `{written}` {n_votes} of {}, {outcome}{how}",
                    slot.as_str(),
                    counted.len()
                ));
            }
            if stays {
                merged.values.push(CorrectedValue { slot, value: (*written).to_owned() });
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Hash, RecordId};
    use crate::stage::testing::{check_with, slot_record};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    const STEM: &str = "A man has fever, then a rash on his left arm, then fever again. He denies cough.";
    const EXTRACTED: &[(Slot, &str)] =
        &[(Slot::SymptomName, "fever"), (Slot::SymptomName, "night sweats"), (Slot::SymptomShape, "rash")];

    fn values(list: &[(Slot, &str)]) -> Vec<CorrectedValue> {
        list.iter().map(|(slot, value)| CorrectedValue { slot: *slot, value: (*value).to_owned() }).collect()
    }

    fn correction(annotator: &str, list: &[(Slot, &str)]) -> CorrectedRecord {
        CorrectedRecord {
            record_id: RecordId::native("t", "q"),
            annotator: annotator.to_owned(),
            base_sha256: base_hash(STEM, &values(EXTRACTED)).unwrap(),
            values: values(list),
            unsure: false,
            comment: None,
        }
    }

    fn check_majority(lists: &[&[(Slot, &str)]], expected: Expect) {
        let counted: Vec<CorrectedRecord> =
            lists.iter().enumerate().map(|(n, list)| correction(&n.to_string(), list)).collect();
        let merged = majority(&counted.iter().collect::<Vec<_>>(), &values(EXTRACTED));
        let mut text = String::new();
        for value in merged.values {
            text += &format!("{} {}\n", value.slot.as_str(), value.value);
        }
        for phrase in merged.differing {
            text += &format!("differ: {phrase}\n");
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn one_annotator_is_taken_at_their_word() {
        use Slot::{SymptomName, SymptomShape};
        check_majority(
            &[&[(SymptomName, "rash on his left arm"), (SymptomName, "Fever")]],
            expect![[r#"
                Symptom-Name Fever
                Symptom-Name rash on his left arm
            "#]],
        );
        // A typing error is the same value only if the form for matching is; white space, dashes and case are.
        check_majority(
            &[&[(SymptomName, "fever"), (SymptomName, "FEVER"), (SymptomShape, "rash ")]],
            expect![[r#"
                Symptom-Name fever
                Symptom-Name FEVER
                Symptom-Shape rash 
            "#]],
        );
    }

    #[test]
    fn a_tie_is_decided_by_the_extractor() {
        use Slot::{SymptomName, SymptomShape};
        check_majority(
            &[
                &[(SymptomName, "fever"), (SymptomName, "rash on his left arm"), (SymptomShape, "Rash")],
                &[(SymptomName, "Fever"), (SymptomName, "night  sweats"), (SymptomShape, "rash")],
            ],
            expect![[r#"
                Symptom-Name fever
                Symptom-Name night  sweats
                Symptom-Shape rash
                differ: Symptom-Name `night  sweats` 1 of 2, kept (a tie, decided by the extractor)
                differ: Symptom-Name `rash on his left arm` 1 of 2, left out (a tie, decided by the extractor)
            "#]],
        );
    }

    #[test]
    fn most_of_three_decide() {
        use Slot::{PersonalSex, SymptomName, SymptomShape};
        check_majority(
            &[
                &[(SymptomName, "fever"), (SymptomName, "fever"), (PersonalSex, "man")],
                &[(SymptomName, "Fever"), (SymptomName, "Fever"), (PersonalSex, "A man")],
                &[(SymptomName, "Fever"), (SymptomName, "night sweats"), (PersonalSex, "Man"), (SymptomShape, "rash")],
            ],
            expect![[r#"
                Symptom-Name Fever
                Symptom-Name Fever
                Personal-Sex Man
                differ: Symptom-Name `Fever` 2 of 3, kept
                differ: Symptom-Name `night sweats` 1 of 3, left out
                differ: Symptom-Shape `rash` 1 of 3, left out
                differ: Personal-Sex `A man` 1 of 3, left out
                differ: Personal-Sex `Man` 2 of 3, kept
            "#]],
        );
    }

    proptest! {
        /// Whoever comes first: the rule asks how many they are. Equal records are that record.
        #[test]
        fn the_majority_does_not_depend_on_the_order_of_annotators(
            lists in prop::collection::vec(prop::collection::vec((0usize..4, "[a-bA-B]{1,2}"), 0..5), 1..5),
            extracted in prop::collection::vec((0usize..4, "[a-b]{1,2}"), 0..5),
        ) {
            let list = |pairs: &[(usize, String)]| -> Vec<CorrectedValue> {
                pairs.iter().map(|(slot, value)| CorrectedValue { slot: Slot::ALL[*slot], value: value.clone() }).collect()
            };
            let extracted = list(&extracted);
            let all: Vec<CorrectedRecord> =
                lists.iter().map(|pairs| CorrectedRecord { values: list(pairs), ..correction("x", &[]) }).collect();
            let forms = |counted: &[&CorrectedRecord]| -> Vec<(Slot, String)> {
                majority(counted, &extracted).values.iter().map(CorrectedValue::form).collect()
            };
            let forwards: Vec<&CorrectedRecord> = all.iter().collect();
            let backwards: Vec<&CorrectedRecord> = all.iter().rev().collect();
            prop_assert_eq!(forms(&forwards), forms(&backwards));
            let same = majority(&[&all[0], &all[0], &all[0]], &extracted);
            prop_assert!(same_values(&same.values, &all[0].values) && same.differing.is_empty());
        }
    }

    fn check(settings: &str, corrections: &[CorrectedRecord], expected: Expect) {
        let lines: String = corrections.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        let show = |record: &SlotRecord| {
            let makers: Vec<&str> = record.made_by.iter().map(|entry| entry.by.as_str()).collect();
            let mut text = format!("by {} [{}]", makers.join(", "), record.flags.join(" "));
            for (mark, list) in [(' ', &record.slots), ('-', &record.extracted)] {
                for value in list {
                    let place = value.span.as_ref().map(|span| (span.start, span.end));
                    text +=
                        &format!("\n {mark} {} {} {:?} {place:?}", value.slot.as_str(), value.value, value.grounding);
                }
            }
            text
        };
        let mut record = slot_record("q", STEM, EXTRACTED);
        record.made_by = vec![crate::record::model::MadeBy::new(field::SLOTS, "rules")];
        let context = include_str!("../../pipelines/lexicon/context.toml");
        check_with(&STAGE, settings, &[(CORRECTIONS, &lines), (CONTEXT, context)], &[record], show, expected);
    }

    #[test]
    fn merged_values_take_the_place_of_the_extractors() {
        use Slot::{SymptomName, SymptomShape};
        let list = &[
            (SymptomName, "rash"),
            (SymptomName, "cough"),
            (SymptomName, "chills"),
            (SymptomName, "fever"),
            (SymptomName, "fever"),
            (SymptomName, "fever"),
        ];
        check(
            "",
            &[correction("ann", list)],
            expect![[r#"
            keep t:q by rules, reviewers [repeated_value:1 corrected corrected_unsupported]
               Symptom-Name fever Exact Some((10, 15))
               Symptom-Name rash Exact Some((24, 28))
               Symptom-Name fever Exact Some((51, 56))
               Symptom-Name cough Contradicted Some((74, 79))
               Symptom-Name chills NotFound None
             - Symptom-Name fever Exact Some((10, 15))
             - Symptom-Name night sweats Exact None
             - Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
        check(
            "",
            &[CorrectedRecord { base_sha256: Hash::of(b""), ..correction("ann", &[(SymptomShape, "rash")]) }],
            expect![[r#"
                keep t:q by rules, reviewers [reviewed_on_other_base corrected no_symptom_name]
                   Symptom-Shape rash Exact Some((24, 28))
                 - Symptom-Name fever Exact Some((10, 15))
                 - Symptom-Name night sweats Exact None
                 - Symptom-Shape rash Exact Some((24, 28))
            "#]],
        );
    }

    #[test]
    fn a_record_that_nobody_or_too_few_corrected_passes_as_it_is() {
        let other = CorrectedRecord { record_id: RecordId::native("t", "other"), ..correction("ann", &[]) };
        check(
            "",
            &[other],
            expect![[r#"
            keep t:q by rules []
               Symptom-Name fever Exact Some((10, 15))
               Symptom-Name night sweats Exact None
               Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
        check(
            "min_annotators = 2",
            &[correction("ann", &[])],
            expect![[r#"
            keep t:q by rules []
               Symptom-Name fever Exact Some((10, 15))
               Symptom-Name night sweats Exact None
               Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
    }

    #[test]
    fn a_record_that_annotators_leave_is_confirmed() {
        let mut turned = EXTRACTED.to_vec();
        turned.reverse();
        check(
            "min_annotators = 2",
            &[correction("ann", EXTRACTED), correction("ben", &turned)],
            expect![[r#"
            keep t:q by rules, reviewers [confirmed_by_review]
               Symptom-Name fever Exact Some((10, 15))
               Symptom-Name night sweats Exact None
               Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
    }

    #[test]
    fn the_last_or_an_adjudicator_can_have_the_last_word() {
        let lists =
            [correction("ann", &[(Slot::SymptomName, "fever")]), correction("ben", &[(Slot::SymptomName, "rash")])];
        check(
            "merge = 'latest'",
            &lists,
            expect![[r#"
            keep t:q by rules, reviewers [corrected]
               Symptom-Name rash Exact Some((24, 28))
             - Symptom-Name fever Exact Some((10, 15))
             - Symptom-Name night sweats Exact None
             - Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
        check(
            "adjudicators = ['ann', 'eve']\nmin_annotators = 2",
            &lists,
            expect![[r#"
            keep t:q by rules, reviewers [corrected]
               Symptom-Name fever Exact Some((10, 15))
             - Symptom-Name fever Exact Some((10, 15))
             - Symptom-Name night sweats Exact None
             - Symptom-Shape rash Exact Some((24, 28))
        "#]],
        );
    }

    #[test]
    fn settings_make_sense() {
        let settings = CorrectionSettings { min_annotators: 0, ..CorrectionSettings::default() };
        assert_eq!(settings.check(), Err("min_annotators must be at least 1".to_owned()));
    }
}
