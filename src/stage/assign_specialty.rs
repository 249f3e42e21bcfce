//! `assign_specialty`: one of the paper's 17 specialties (MedRoundsQA, 3.1 and Figure 8): by rules whose evidence is stored, or
//! by a model, beside which what the rules say is kept.

use super::ask::{self, Asking, CONTROLS_RESOURCE, JUDGEMENTS};
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::ledger::ReviewRow;
use crate::record::model::{JudgementRow, add_maker, field};
use crate::record::slots::{Slot, SlotRecord, SpecialtyRow};
use crate::slots::specialty::{Fields, Specialty, SpecialtyRules};
use anyhow::{Context, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "assign_specialty",
    summary: "Assigns one of 17 specialties by weighted terms in the diagnosis, the question and the vignette, or by a model, and stores what decided",
    shape: Shape::Model,
    revision: 2,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[
        Port::records::<SlotRecord>("records"),
        Port::side::<ReviewRow>("review"),
        Port::side::<JudgementRow>(JUDGEMENTS),
    ],
    resources: &[
        ResourceDecl { name: "rules", summary: "terms of each specialty with their weights, as TOML" },
        ResourceDecl {
            name: PROMPT,
            summary: "what a model is asked, as Markdown with a `vignette`, its `diagnosis` and the `specialties`",
        },
        CONTROLS_RESOURCE,
    ],
    reasons: &[DISPUTED, COPIED_EXAMPLE],
    settings: SettingsType::of::<SpecialtySettings>(),
    build,
};

/// The model says another specialty than the rules, which were sure of theirs.
const DISPUTED: &str = "specialty_disputed";
const NOT_JUDGED: &str = "specialty_not_judged";
/// The field of a reply that holds the specialty.
const SPECIALTY: &str = "specialty";

/// What becomes of a record about which the model says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WithoutAnswer {
    /// The rules decide, and the record is flagged.
    Rules,
    Quarantine,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SpecialtySettings {
    /// The model that assigns, by its name under `[models]`; `rules` for none.
    model: String,
    /// What becomes of a record about which the model says nothing: `rules` decide and it is flagged, or `quarantine`.
    without_answer: WithoutAnswer,
}

impl Default for SpecialtySettings {
    fn default() -> Self {
        Self { model: RULES.to_owned(), without_answer: WithoutAnswer::Rules }
    }
}

impl Settings for SpecialtySettings {
    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlVignette {
    name: String,
    stem: String,
    diagnosis: String,
    expect: Vec<String>,
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let rules = SpecialtyRules::parse(resources.text("rules")?).with_context(|| resources.file("rules").to_owned())?;
    let schema = ask::reasoned(SPECIALTY, json!({"type": "string", "enum": names()}));
    let asking = Asking::new(resources, &["vignette", "diagnosis", "specialties"], SPECIALTY, schema)?;
    let controls: Vec<ControlVignette> = ask::controls(resources)?;
    for expected in controls.iter().flat_map(|control| &control.expect) {
        ensure!(names().contains(&expected.as_str()), "{}: no specialty `{expected}`", resources.file(ask::CONTROLS));
    }
    Ok(AnyStage::model(AssignSpecialty { settings: arguments.settings()?, rules, asking, controls }))
}

fn names() -> Vec<&'static str> {
    Specialty::ALL.into_iter().map(Specialty::as_str).collect()
}

struct AssignSpecialty {
    settings: SpecialtySettings,
    rules: SpecialtyRules,
    asking: Asking,
    controls: Vec<ControlVignette>,
}

impl ModelStage for AssignSpecialty {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn calls(&self, record: &SlotRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        Ok(vec![self.call(&record.stem, &record.ground_truth_diagnosis)?])
    }

    fn read(
        &self,
        mut record: SlotRecord,
        mut results: Vec<CallResult>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let mut result = results.pop().context("no result of the one call")?;
        if let Ok(reply) = &result
            && let Some(fault) = self.asking.fault(reply)
        {
            result = Err(Failure::of(reply, fault));
        }
        let said = ask::judgement(&record.record_id, SPECIALTY, None, SPECIALTY, &result)?;
        out.side(JUDGEMENTS, said.clone());
        let reply = match result {
            Ok(reply) => reply,
            Err(failure) if self.settings.without_answer == WithoutAnswer::Quarantine => {
                return Ok(failure.quarantine());
            }
            Err(_) => {
                record.flags.push(NOT_JUDGED.to_owned());
                return self.without_model(record, out);
            }
        };
        let by_rules = self.by_rules(&record);
        let agree = by_rules.name == said.verdict;
        if !agree && by_rules.confident {
            record.flags.push(DISPUTED.to_owned());
            let detail = format!("rules {}, {} {}: {}", by_rules.name, said.model, said.verdict, said.reason);
            let record_id = record.record_id.clone();
            out.side("review", ReviewRow { record_id, reason: DISPUTED.to_owned(), detail, related: Vec::new() });
        }
        record.specialty = Some(SpecialtyRow {
            confident: agree,
            by_rules: (!agree).then(|| by_rules.name.clone()),
            name: said.verdict,
            reason: Some(said.reason),
            ..by_rules
        });
        add_maker(&mut record.made_by, field::SPECIALTY, &reply.model);
        record.replies.push(reply.trace(STAGE.name));
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn without_model(&self, mut record: SlotRecord, out: &mut Emitter<'_, SlotRecord>) -> anyhow::Result<Verdict> {
        record.specialty = Some(self.by_rules(&record));
        add_maker(&mut record.made_by, field::SPECIALTY, RULES);
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let control = |known: &ControlVignette| {
            let call = self.call(&known.stem, &known.diagnosis)?;
            Ok(ask::control(&known.name, call, SPECIALTY, Expect::OneOf(known.expect.clone())))
        };
        self.controls.iter().map(control).collect()
    }
}

impl AssignSpecialty {
    fn call(&self, stem: &str, diagnosis: &str) -> anyhow::Result<Call> {
        let variables = BTreeMap::from([
            ("vignette", Variable::Source(stem.to_owned())),
            ("diagnosis", Variable::Source(diagnosis.to_owned())),
            ("specialties", Variable::Own(names().join("\n"))),
        ]);
        self.asking.call(&self.settings.model, &variables, 0)
    }

    fn by_rules(&self, record: &SlotRecord) -> SpecialtyRow {
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
        SpecialtyRow {
            name: assignment.specialty.as_str().to_owned(),
            score: assignment.score,
            runner_up: assignment.runner_up.map(|(specialty, _): (Specialty, i32)| specialty.as_str().to_owned()),
            runner_up_score: assignment.runner_up.map(|(_, score)| score),
            confident: assignment.confident,
            by_rules: None,
            reason: None,
            evidence,
        }
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
            &[
                ("rules", include_str!("../../pipelines/rules/specialty.toml")),
                (PROMPT, include_str!("../../pipelines/prompts/assign_specialty.md")),
                (ask::CONTROLS, include_str!("../../pipelines/controls/assign_specialty.toml")),
            ],
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
