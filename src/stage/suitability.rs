//! Is a question a vignette that asks for a diagnosis? What `filter_vignette` and `validate_consensus` ask, and how answers
//! are read (MedRoundsQA, A.1; ClinMM-Bench, 4.1.3).

use super::ask::{self, Asking, JUDGEMENTS, NO, YES};
use super::prompt::Variable;
use super::{Call, CallResult, Control, Emitter, Expect, Failure, Reply, Resources, Verdict, complete};
use crate::record::model::add_maker;
use crate::record::question::{AnswerOption, AnsweredQuestion};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The field of a reply that holds the verdict.
pub const VERDICT: &str = "verdict";

/// The question, and controls for whoever is asked it.
pub struct Suitability {
    asking: Asking,
    controls: Vec<ControlQuestion>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlQuestion {
    name: String,
    stem: String,
    options: Vec<String>,
    expect: Vec<String>,
}

impl Suitability {
    pub fn new(resources: &Resources) -> anyhow::Result<Self> {
        let schema = ask::reasoned(VERDICT, json!({"type": "string", "enum": [YES, NO]}));
        let asking = Asking::new(resources, &["question"], "suitability", schema)?;
        Ok(Self { asking, controls: ask::controls(resources)? })
    }

    pub fn call(&self, model: &str, record: &AnsweredQuestion) -> anyhow::Result<Call> {
        let options: Vec<String> =
            record.options.iter().map(|AnswerOption { key, text }| format!("{key}. {text}")).collect();
        self.call_about(model, &record.stem, &options)
    }

    fn call_about(&self, model: &str, stem: &str, options: &[String]) -> anyhow::Result<Call> {
        let mut text = stem.trim_end().to_owned();
        if !options.is_empty() {
            text += &format!("\n\n{}", options.join("\n"));
        }
        self.asking.call(model, &BTreeMap::from([("question", Variable::Source(text))]), 0)
    }

    pub fn controls(&self, models: &[String]) -> anyhow::Result<Vec<Control>> {
        let mut controls = Vec::new();
        for model in models {
            for known in &self.controls {
                let options: Vec<String> =
                    ('A'..).zip(&known.options).map(|(key, text)| format!("{key}. {text}")).collect();
                let call = self.call_about(model, &known.stem, &options)?;
                controls.push(ask::control(&known.name, call, VERDICT, Expect::OneOf(known.expect.clone())));
            }
        }
        Ok(controls)
    }

    /// Whether a reply says that the record is fit, with its reason.
    pub fn verdict<'a>(&self, reply: &'a Reply) -> anyhow::Result<(bool, &'a str)> {
        Ok((ask::text_of(reply, VERDICT)? == YES, ask::text_of(reply, "reason")?))
    }

    /// Writes down what was said, and gives all replies. With one voice missing nobody knows what all say, whatever the others
    /// said: then it gives what becomes of the record.
    pub fn replies(
        &self,
        stage: &str,
        field: &str,
        record: &mut AnsweredQuestion,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<Result<Vec<Reply>, Verdict>> {
        for result in &results {
            self.note(stage, field, record, result, out)?;
        }
        Ok(complete(results).map_err(Failure::quarantine))
    }

    /// Writes down what was said, and who said it.
    fn note(
        &self,
        stage: &str,
        field: &str,
        record: &mut AnsweredQuestion,
        result: &CallResult,
        out: &mut Emitter<'_, AnsweredQuestion>,
    ) -> anyhow::Result<()> {
        out.side(JUDGEMENTS, ask::judgement(&record.record_id, "suitable", None, VERDICT, result)?);
        if let Ok(reply) = result {
            add_maker(&mut record.made_by, field, &reply.model);
            record.replies.push(reply.trace(stage));
        }
        Ok(())
    }
}
