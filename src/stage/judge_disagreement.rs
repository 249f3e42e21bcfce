//! `judge_disagreement`: how far the answers of one model to one question differ in meaning, by a judge (MedRoundsQA,
//! appendix F). The second of three nodes.

use super::ask::{self, Asking, CONTROLS_RESOURCE, JUDGEMENTS};
use super::prompt::{PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::model::{JudgementRow, add_maker, field};
use crate::record::slots::{ModelRuns, SlotRecord};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "judge_disagreement",
    summary: "Asks a judge how far the answers of each model to a question differ in meaning, from 0 to 1",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records"), Port::side::<JudgementRow>(JUDGEMENTS)],
    resources: &[
        ResourceDecl {
            name: PROMPT,
            summary: "what the judge is asked, as Markdown with a `question` and its `answers`",
        },
        CONTROLS_RESOURCE,
    ],
    reasons: &[],
    settings: SettingsType::of::<DisagreementSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DisagreementSettings {
    /// The judge, by its name under `[models]`: none of the models that answer; `rules` for none.
    judge: String,
}

impl Default for DisagreementSettings {
    fn default() -> Self {
        Self { judge: RULES.to_owned() }
    }
}

impl Settings for DisagreementSettings {
    fn models(&self) -> Vec<String> {
        vec![self.judge.clone()]
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: false, unlike: &["sample_answers"] };
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlAnswers {
    name: String,
    stem: String,
    answers: Vec<String>,
    least: f64,
    greatest: f64,
}

const DISAGREEMENT: &str = "disagreement";

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let settings: DisagreementSettings = arguments.settings()?;
    let schema = ask::reasoned(DISAGREEMENT, json!({"type": "number", "minimum": 0.0, "maximum": 1.0}));
    let asking = Asking::new(arguments.resources, &["question", "answers"], DISAGREEMENT, schema)?;
    let controls = ask::controls(arguments.resources)?;
    Ok(AnyStage::model(JudgeDisagreement { judge: settings.judge, asking, controls }))
}

struct JudgeDisagreement {
    judge: String,
    asking: Asking,
    controls: Vec<ControlAnswers>,
}

impl JudgeDisagreement {
    fn call<'a>(&self, stem: &str, answers: impl Iterator<Item = &'a str>) -> anyhow::Result<Call> {
        // An answer of several lines would read as several answers.
        let one_line = |answer: &str| answer.split_whitespace().collect::<Vec<_>>().join(" ");
        let list: Vec<String> =
            (1..).zip(answers).map(|(number, answer)| format!("{number}. {}", one_line(answer))).collect();
        let variables = BTreeMap::from([
            ("question", Variable::Source(stem.to_owned())),
            ("answers", Variable::Source(list.join("\n"))),
        ]);
        self.asking.call(&self.judge, &variables, 0)
    }
}

/// One answer differs from nothing: a judge is asked about two or more.
fn is_judged(of_model: &ModelRuns) -> bool {
    of_model.runs.len() > 1
}

impl ModelStage for JudgeDisagreement {
    type In = SlotRecord;
    type Out = SlotRecord;

    fn calls(&self, record: &SlotRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        let judged = record.runs.iter().filter(|of_model| is_judged(of_model));
        judged.map(|of_model| self.call(&record.stem, of_model.runs.iter().map(|run| run.answer.as_str()))).collect()
    }

    /// A judge that fails on the answers of one model leaves that model without disagreement; `estimate_difficulty` has the
    /// rule for it.
    fn read(
        &self,
        mut record: SlotRecord,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let mut results = results.into_iter();
        for of_model in record.runs.iter_mut().filter(|of_model| is_judged(of_model)) {
            let mut result = results.next().context("fewer results than calls")?;
            if let Ok(reply) = &result
                && let Some(fault) = self.asking.fault(reply)
            {
                result = Err(Failure::of(reply, fault));
            }
            let about = Some(of_model.model.as_str());
            out.side(JUDGEMENTS, ask::judgement(&record.record_id, DISAGREEMENT, about, DISAGREEMENT, &result)?);
            if let Ok(reply) = result {
                let score = reply.value.get(DISAGREEMENT).and_then(Value::as_f64);
                of_model.disagreement = Some(score.context("a reply without a number")?);
                add_maker(&mut record.made_by, field::DIFFICULTY, &reply.model);
                record.replies.push(reply.trace(STAGE.name));
            }
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn without_model(&self, record: SlotRecord, out: &mut Emitter<'_, SlotRecord>) -> anyhow::Result<Verdict> {
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let control = |known: &ControlAnswers| {
            let call = self.call(&known.stem, known.answers.iter().map(String::as_str))?;
            Ok(ask::control(&known.name, call, DISAGREEMENT, Expect::Between(known.least, known.greatest)))
        };
        self.controls.iter().map(control).collect()
    }
}
