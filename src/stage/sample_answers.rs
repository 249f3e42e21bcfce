//! `sample_answers`: several models answer every question several times; how long, how unlike and how sure their answers are
//! tells how difficult it is (MedRoundsQA, 3.2 and appendix F). The first of three nodes.

use super::ask::{self, Asking};
use super::prompt::{PROMPT, Variable};
use super::*;
use crate::record::model::{NOT_RUN, add_maker, field};
use crate::record::slots::{FailedRun, ModelRuns, Run, SlotRecord};
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "sample_answers",
    summary: "Asks several models every question several times, and keeps their steps, final answers and confidence",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<SlotRecord>("records")],
    outputs: &[Port::records::<SlotRecord>("records")],
    resources: &[ResourceDecl { name: PROMPT, summary: "what the models are asked, as Markdown with a `question`" }],
    reasons: &[],
    settings: SettingsType::of::<SampleSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct SampleSettings {
    /// The models, by their names under `[models]`, no two of them the same (K = 4 in the paper); none leaves the stage out.
    models: Vec<String>,
    /// Answers of each model to each question (N = 6 in the paper).
    samples: u32,
}

impl Default for SampleSettings {
    fn default() -> Self {
        Self { models: Vec::new(), samples: 6 }
    }
}

impl Settings for SampleSettings {
    fn check(&self) -> Result<(), String> {
        if (1..=100).contains(&self.samples) {
            Ok(())
        } else {
            Err(format!("samples is {}, it must be from 1 to 100", self.samples))
        }
    }

    fn models(&self) -> Vec<String> {
        self.models.clone()
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: true, unlike: &[] };
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let schema = json!({
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "final_answer": {"type": "string", "minLength": 1},
            "confidence": {"type": "number", "minimum": 0.0, "maximum": 1.0},
        },
        "required": ["steps", "final_answer", "confidence"],
        "additionalProperties": false,
    });
    let asking = Asking::new(arguments.resources, &["question"], "solution", schema)?;
    Ok(AnyStage::model(SampleAnswers { settings: arguments.settings()?, asking }))
}

struct SampleAnswers {
    settings: SampleSettings,
    asking: Asking,
}

impl ModelStage for SampleAnswers {
    type In = SlotRecord;
    type Out = SlotRecord;

    /// By model, then by sample number.
    fn calls(&self, record: &SlotRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        let variables = BTreeMap::from([("question", Variable::Source(record.stem.clone()))]);
        let mut calls = Vec::new();
        for model in &self.settings.models {
            for sample in 0..self.settings.samples {
                calls.push(self.asking.call(model, &variables, sample)?);
            }
        }
        Ok(calls)
    }

    /// No record leaves for want of answers: what is missing is written down, and `estimate_difficulty` has the rule for it.
    fn read(
        &self,
        mut record: SlotRecord,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, SlotRecord>,
    ) -> anyhow::Result<Verdict> {
        let mut results = results.into_iter();
        for model in &self.settings.models {
            let mut of_model = ModelRuns {
                model: model.clone(),
                by: String::new(),
                runs: Vec::new(),
                failed: Vec::new(),
                disagreement: None,
            };
            for sample in 0..self.settings.samples {
                let result = results.next().context("fewer results than calls")?;
                of_model.by.clone_from(result.as_ref().map_or_else(|failure| &failure.model, |reply| &reply.model));
                match result {
                    Ok(reply) => match self.asking.fault(&reply) {
                        None => {
                            of_model.runs.push(run(sample, &reply)?);
                            add_maker(&mut record.made_by, field::DIFFICULTY, &reply.model);
                            record.replies.push(reply.trace(STAGE.name));
                        }
                        Some(reason) => of_model.failed.push(FailedRun {
                            sample,
                            reason: reason.to_owned(),
                            detail: "it repeats the example of the prompt".to_owned(),
                            call: reply.key,
                        }),
                    },
                    Err(failure) => of_model.failed.push(FailedRun {
                        sample,
                        reason: failure.reason.to_owned(),
                        detail: Cause::new(failure.reason, failure.detail).detail,
                        call: failure.key,
                    }),
                }
            }
            record.runs.push(of_model);
        }
        out.emit(record);
        Ok(Verdict::Keep)
    }

    fn without_model(&self, mut record: SlotRecord, out: &mut Emitter<'_, SlotRecord>) -> anyhow::Result<Verdict> {
        add_maker(&mut record.made_by, field::DIFFICULTY, NOT_RUN);
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

/// A step that is blank is no step.
fn run(sample: u32, reply: &Reply) -> anyhow::Result<Run> {
    let steps = reply.value.get("steps").and_then(Value::as_array).context("a reply without steps")?;
    let n_steps = steps.iter().filter(|step| step.as_str().is_some_and(|step| !step.trim().is_empty())).count();
    Ok(Run {
        sample,
        n_steps: u32::try_from(n_steps)?,
        answer: ask::text_of(reply, "final_answer")?.to_owned(),
        confidence: reply.value.get("confidence").and_then(Value::as_f64).context("a reply without confidence")?,
        call: reply.key.clone(),
    })
}
