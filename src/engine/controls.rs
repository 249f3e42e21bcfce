//! Questions with known answers: what every model of a node is asked before its records are, so that a model that says YES to
//! everything, or repeats the prompt's example, is found by its own answers and not by the benchmark made with them.

use super::events::{Event, EventSink};
use super::work::NodeWork;
use crate::error::input;
use crate::record::{Access, Hash, LlmEgress, RecordId, Rights};
use crate::stage::{AnyStage, Ask, Call, Control, Origin, plain_text};
use crate::store::manifest::ControlAnswer;
use std::collections::BTreeMap;

/// The source name of the ids of controls: they are in no stream.
pub const CONTROL: &str = "control";

/// What models said to the controls of a node.
#[derive(Default)]
pub struct Controls {
    pub answers: Vec<ControlAnswer>,
    /// Accepted replies: key → hash.
    pub replies: BTreeMap<Hash, Hash>,
    /// Calls without an accepted reply: key → why.
    pub failed_calls: BTreeMap<Hash, String>,
}

/// A control's call, to be sent like those of records: controls are written for this project and hold nobody's data.
pub fn ask(pipeline: &str, node: &str, name: &str, call: Call) -> Ask {
    let rights = Rights {
        snapshot: CONTROL.to_owned(),
        licence: "CC0-1.0".to_owned(),
        access: Access::Open,
        llm_egress: LlmEgress::Any,
    };
    let record_id = RecordId::native(CONTROL, name);
    let origin = Origin { pipeline: pipeline.to_owned(), node: node.to_owned(), record_id };
    Ask { call, rights, origin, images: BTreeMap::new() }
}

impl NodeWork<'_> {
    /// Asks the controls of a model node; none if it asks no model.
    ///
    /// # Errors
    /// A model got more of them wrong than the node's `min_controls` allows.
    pub fn ask_controls(&self, events: &mut dyn EventSink) -> anyhow::Result<Controls> {
        let mut asked = Controls::default();
        let (AnyStage::Model(stage), Some(service)) = (self.stage, self.session.service_of(self.node)) else {
            return Ok(asked);
        };
        let controls = stage.controls()?;
        if controls.is_empty() {
            return Ok(asked);
        }
        events.take(&Event::NodePhase { node: self.node.name.clone(), phase: "asking control questions" });
        let pipeline = &self.session.graph.pipeline;
        let asks = controls.iter().map(|control| {
            Ok(ask(
                pipeline,
                &self.node.name,
                &format!("{}-{}", control.call.model, control.name),
                control.call.clone(),
            ))
        });
        let mut waiting = controls.iter();
        service.ask(&mut { asks }, &mut |result| {
            let Some(control) = waiting.next() else { anyhow::bail!("an answer that nobody asked for") };
            let (said, right) = match result {
                Ok(reply) => {
                    let answer = reply.value.get(control.field).cloned().unwrap_or_default();
                    asked.replies.insert(reply.key, reply.sha256);
                    (plain_text(&answer), control.expect.is_met(&answer))
                }
                Err(failure) => {
                    asked.failed_calls.insert(failure.key, failure.reason.to_owned());
                    (failure.reason.to_owned(), false)
                }
            };
            asked.answers.push(answer_of(control, said, right));
            Ok(())
        })?;
        let complaints = self.complaints(&asked.answers);
        for (model, (n_right, n)) in tally(&asked.answers) {
            events.take(&Event::Controls { node: self.node.name.clone(), model, n_right, n });
        }
        if complaints.is_empty() {
            return Ok(asked);
        }
        Err(input(format!(
            "it is not run: {}; name another model under [models], or set min_controls under [nodes.{}] in {}",
            complaints.join("; "),
            self.node.name,
            self.session.graph.file
        )))
    }

    fn complaints(&self, answers: &[ControlAnswer]) -> Vec<String> {
        let limit = self.node.limits.min_controls;
        let mut complaints = Vec::new();
        for (model, (n_right, n)) in tally(answers) {
            if (n_right as f64) < limit * n as f64 {
                let wrong = answers
                    .iter()
                    .filter(|answer| answer.model == model && !answer.right)
                    .map(|answer| format!("{}: {} where {} is right", answer.name, answer.said, answer.expected));
                complaints.push(format!(
                    "model {model} answered {n_right} of {n} control questions right ({:.1} %, min_controls is {:.1} %): {}",
                    100.0 * n_right as f64 / n as f64,
                    100.0 * limit,
                    wrong.collect::<Vec<_>>().join(", ")
                ));
            }
        }
        complaints
    }
}

fn answer_of(control: &Control, said: String, right: bool) -> ControlAnswer {
    let (model, name) = (control.call.model.clone(), control.name.clone());
    ControlAnswer { model, name, expected: control.expect.to_string(), said, right }
}

/// Model → right answers, and all.
pub fn tally(answers: &[ControlAnswer]) -> BTreeMap<String, (u64, u64)> {
    let mut tally: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for answer in answers {
        let counts = tally.entry(answer.model.clone()).or_default();
        counts.0 += u64::from(answer.right);
        counts.1 += 1;
    }
    tally
}
