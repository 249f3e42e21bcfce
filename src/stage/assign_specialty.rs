//! `assign_specialty`: one of the paper's 17 specialties, by rules whose evidence is stored (MedRoundsQA, 3.1 and Figure 8).

use super::*;
use crate::record::slots::{Slot, SlotRecord, SpecialtyRow};
use crate::slots::specialty::{Fields, Specialty, SpecialtyRules};
use anyhow::Context;

pub const STAGE: StageDef = StageDef {
    name: "assign_specialty",
    summary: "Assigns one of 17 specialties by weighted terms in the diagnosis, the question and the vignette, and stores what decided",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records")],
    resources: &[ResourceDecl { name: "rules", summary: "terms of each specialty with their weights, as TOML" }],
    reasons: &[],
    settings: SettingsType::of::<NoSettings>(),
    build,
};

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let rules = SpecialtyRules::parse(resources.text("rules")?).with_context(|| resources.file("rules").to_owned())?;
    Ok(AnyStage::record(AssignSpecialty { rules }))
}

struct AssignSpecialty {
    rules: SpecialtyRules,
}

impl RecordStage for AssignSpecialty {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn apply(
        &self,
        mut record: SlotRecord,
        out: &mut Emitter<'_, SlotRecord>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let place = |at: u32| record.stem.char_indices().nth(at as usize).map_or(record.stem.len(), |(byte, _)| byte);
        let question = place(record.question.start)..place(record.question.end);
        let age = record
            .slots
            .iter()
            .find(|value| value.slot == Slot::PersonalAge)
            .and_then(|value| years(value.normalised.as_deref()?));
        let assignment = self.rules.assign(&Fields {
            vignette: record.stem.get(..question.start).unwrap_or_default(),
            question: record.stem.get(question.clone()).unwrap_or_default(),
            diagnosis: &record.ground_truth_diagnosis,
            subject: record.subject.as_deref(),
            age_years: age,
        });
        let evidence = assignment
            .evidence
            .iter()
            .map(|one| format!("{}: {} ({:?}, {})", one.specialty, one.term, one.field, one.weight))
            .collect();
        record.specialty = Some(SpecialtyRow {
            name: assignment.specialty.as_str().to_owned(),
            score: assignment.score,
            runner_up: assignment.runner_up.map(|(specialty, _): (Specialty, i32)| specialty.as_str().to_owned()),
            runner_up_score: assignment.runner_up.map(|(_, score)| score),
            confident: assignment.confident,
            evidence,
        });
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

/// An age in the normalised notation ("31 years", "2 weeks", "40-50 years") in years; of a range the first.
fn years(age: &str) -> Option<f64> {
    let (number, unit) = age.split_once(' ')?;
    let number: f64 = number.split('-').next()?.parse().ok()?;
    let per_year = match unit.trim_end_matches('s') {
        "year" => 1.0,
        "month" => 12.0,
        "week" => 52.0,
        "day" => 365.0,
        "hour" => 8_760.0,
        _ => return None,
    };
    Some(number / per_year)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check_with, slot_record};
    use expect_test::expect;

    #[test]
    fn the_specialty_comes_with_what_decided() {
        let mut child =
            slot_record("a", "A 4-year-old girl has fever and a rash.", &[(Slot::PersonalAge, "4-year-old")]);
        child.slots[0].normalised = Some("4 years".to_owned());
        let adult = slot_record("b", "A 40-year-old woman is seen.", &[]);
        check_with(
            &STAGE,
            "",
            &[("rules", include_str!("../../pipelines/rules/specialty.toml"))],
            &[child, adult],
            |record: &SlotRecord| {
                let specialty = record.specialty.as_ref().unwrap();
                format!("{} {} {}", specialty.name, specialty.confident, specialty.evidence.join(" | "))
            },
            expect![[r#"
                keep t:a Pediatrics true Pediatrics: age below 12 (Age, 60) | Pediatrics: measles (Diagnosis, 50) | Pediatrics: girl (Vignette, 4) | Dermatology: rash (Vignette, 5)
                keep t:b Internal Medicine false Internal Medicine: default: no specialty reached 20 (Default, 0)
            "#]],
        );
    }

    #[test]
    fn ages_in_years() {
        for (age, expected) in [
            ("31 years", Some(31.0)),
            ("6 months", Some(0.5)),
            ("40-50 years", Some(40.0)),
            ("newborn", None),
            ("elderly", None),
        ] {
            assert_eq!(years(age), expected, "{age}");
        }
    }
}
