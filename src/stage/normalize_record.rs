//! `normalize_record`: consistency between cases (MedRoundsQA, 3.1): units, spelling and slot boundaries; the raw value stays
//! beside the normalised one. A record without Symptom-Name is no case.

use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::slots::{Slot, SlotRecord};
use crate::slots::boundaries::BoundaryRules;
use crate::slots::normalise::Normaliser;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

pub const STAGE: StageDef = StageDef {
    name: "normalize_record",
    summary: "Writes units, spelling, ages and sexes of all records alike, moves values that are certainly in a wrong slot, and drops records without a symptom",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records"), Port::side::<ReviewRow>("review")],
    resources: &[
        ResourceDecl { name: "spelling", summary: "words of one spelling, as TOML" },
        ResourceDecl { name: "drugs", summary: "names of drugs, as TOML" },
    ],
    reasons: &["no_symptom_name", "doubtful_slot"],
    settings: SettingsType::of::<NormalizeSettings>(),
    build,
};

/// What happens to a record without Symptom-Name.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EmptySymptom {
    Drop,
    /// The record stays, flagged, and is listed for a person.
    Review,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NormalizeSettings {
    /// What happens to a record without Symptom-Name.
    empty_symptom_name: EmptySymptom,
    /// Records with a value that may be in a wrong slot are listed for a person.
    review_doubtful: bool,
}

impl Default for NormalizeSettings {
    fn default() -> Self {
        Self { empty_symptom_name: EmptySymptom::Drop, review_doubtful: false }
    }
}

impl Settings for NormalizeSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let normaliser =
        Normaliser::parse(resources.text("spelling")?).with_context(|| resources.file("spelling").to_owned())?;
    let boundaries =
        BoundaryRules::parse(resources.text("drugs")?).with_context(|| resources.file("drugs").to_owned())?;
    Ok(AnyStage::record(NormalizeRecord { settings: arguments.settings()?, normaliser, boundaries }))
}

struct NormalizeRecord {
    settings: NormalizeSettings,
    normaliser: Normaliser,
    boundaries: BoundaryRules,
}

impl RecordStage for NormalizeRecord {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn apply(
        &self,
        mut record: SlotRecord,
        out: &mut Emitter<'_, SlotRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let mut doubtful = Vec::new();
        for value in &mut record.slots {
            if let Some(misplaced) = self.boundaries.check(value.slot, &value.value) {
                match misplaced.better {
                    Some(better) if misplaced.certain => {
                        value.moved_from = Some(value.slot);
                        value.slot = better;
                    }
                    _ => doubtful.push(format!("{} `{}`: {}", value.slot.as_str(), value.value, misplaced.rule)),
                }
            }
            value.normalised = Some(self.normaliser.normalise(value.slot, &value.value).text);
        }
        record.slots.sort_by_key(|value| (value.slot, value.span.as_ref().map(|span| (span.start, span.end))));
        // A moved value may stand in its slot already.
        let mut seen = HashSet::new();
        record.slots.retain(|value| {
            let place = value.span.as_ref().map(|span| (span.start, span.end));
            seen.insert((value.slot, place, value.value.clone()))
        });
        let review = |reason: &str, detail: String| ReviewRow {
            record_id: record.record_id.clone(),
            reason: reason.to_owned(),
            detail,
            related: Vec::new(),
        };
        if !record.slots.iter().any(|value| value.slot == Slot::SymptomName) {
            let detail = format!("none of {} values is a symptom", record.slots.len());
            match self.settings.empty_symptom_name {
                EmptySymptom::Drop => return Ok(Verdict::Drop(Cause::new("no_symptom_name", detail))),
                EmptySymptom::Review => out.side("review", review("no_symptom_name", detail)),
            }
        }
        if !doubtful.is_empty() {
            if self.settings.review_doubtful {
                out.side("review", review("doubtful_slot", doubtful.join("; ")));
            }
            record.flags.push("doubtful_slot".to_owned());
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check_with, slot_record};
    use expect_test::{Expect, expect};

    fn check(settings: &str, values: &[(Slot, &str)], expected: Expect) {
        let files = [
            ("spelling", include_str!("../../pipelines/lexicon/spelling.toml")),
            ("drugs", include_str!("../../pipelines/lexicon/drugs.toml")),
        ];
        let stem = values.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(". ");
        let show = |record: &SlotRecord| {
            let mut text = record.flags.join(" ");
            for value in &record.slots {
                let moved = value.moved_from.map_or_else(String::new, |slot| format!(" from {}", slot.as_str()));
                text += &format!("\n  {}{moved}: {} = {}", value.slot.as_str(), value.value, value.shown());
            }
            text
        };
        check_with(&STAGE, settings, &files, &[slot_record("q", &stem, values)], show, expected);
    }

    #[test]
    fn notation_is_one_and_the_raw_value_stays() {
        check(
            "",
            &[
                (Slot::SymptomName, "diarrhoea"),
                (Slot::PersonalAge, "two-week-old"),
                (Slot::PersonalSex, "girl"),
                (Slot::MedicalExamination, "Haemoglobin is 9.1 g/dl and blood pressure is 120/80 mm Hg"),
            ],
            expect![[r#"
                keep t:q 
                  Symptom-Name: diarrhoea = diarrhea
                  Medical-Examination: Haemoglobin is 9.1 g/dl and blood pressure is 120/80 mm Hg = Hemoglobin is 9.1 g/dL and blood pressure is 120/80 mmHg
                  Personal-Age: two-week-old = 2 weeks
                  Personal-Sex: girl = female
            "#]],
        );
    }

    #[test]
    fn values_in_a_wrong_slot_are_moved_or_flagged() {
        check(
            "",
            &[
                (Slot::SymptomName, "cough"),
                (Slot::PersonalWeight, "31-year-old"),
                (Slot::HabitLiving, "smoked one pack of cigarettes daily"),
                (Slot::AllergicHistory, "penicillin"),
            ],
            expect![[r#"
                keep t:q doubtful_slot
                  Symptom-Name: cough = cough
                  Personal-Age from Personal-Weight: 31-year-old = 31 years
                  Allergic-History: penicillin = penicillin
                  Habit-Tobacco from Habit-Living: smoked one pack of cigarettes daily = smoked one pack of cigarettes daily
            "#]],
        );
    }

    #[test]
    fn a_record_without_symptom_is_no_case() {
        check(
            "",
            &[(Slot::PersonalAge, "31-year-old")],
            expect![[r#"
            dropped t:q no_symptom_name: none of 1 values is a symptom
        "#]],
        );
        check(
            "empty_symptom_name = \"review\"",
            &[(Slot::PersonalAge, "31-year-old")],
            expect![[r#"
            keep t:q 
              Personal-Age: 31-year-old = 31 years
        "#]],
        );
    }
}
