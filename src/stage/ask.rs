//! What model stages share: one question to a model from a prompt and a schema, what its answer leaves behind, and control
//! questions.

use super::prompt::{COPIED_EXAMPLE, PROMPT, Prompt, Variable};
use super::{
    Call, CallResult, Cause, Control, Emitter, Expect, Failure, Reply, ReplyFormat, ResourceDecl, Resources, Verdict,
    plain_text,
};
use crate::record::RecordId;
use crate::record::decision::Action;
use crate::record::ledger::ReviewRow;
use crate::record::model::JudgementRow;
use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The resource with control questions.
pub const CONTROLS: &str = "controls";
pub const CONTROLS_RESOURCE: ResourceDecl =
    ResourceDecl { name: CONTROLS, summary: "questions with known answers that every model must get right, as TOML" };
/// Side port of judges.
pub const JUDGEMENTS: &str = "judgements";

pub const YES: &str = "YES";
pub const NO: &str = "NO";

/// What is asked about every record.
pub struct Asking {
    prompt: Prompt,
    format: Arc<ReplyFormat>,
}

impl Asking {
    /// The prompt among the resources, and the schema of its replies.
    pub fn new(resources: &Resources, variables: &[&str], name: &str, schema: Value) -> anyhow::Result<Self> {
        let prompt =
            Prompt::parse(resources.text(PROMPT)?, variables).with_context(|| resources.file(PROMPT).to_owned())?;
        Ok(Self { prompt, format: ReplyFormat::new(name, schema)? })
    }

    pub fn call(&self, model: &str, variables: &BTreeMap<&str, Variable>, sample: u32) -> anyhow::Result<Call> {
        Ok(Call {
            model: model.to_owned(),
            messages: self.prompt.render(variables)?,
            format: Some(self.format.clone()),
            sample,
        })
    }

    /// Why an accepted reply counts for nothing all the same.
    pub fn fault(&self, reply: &Reply) -> Option<&'static str> {
        self.prompt.is_example(&reply.value).then_some(COPIED_EXAMPLE)
    }
}

/// The schema of an answer with a reason before it: what is said first decides what follows.
pub fn reasoned(field: &str, answer: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"reason": {"type": "string"}, field: answer},
        "required": ["reason", field],
        "additionalProperties": false,
    })
}

/// The text of a field of a reply that its schema requires.
pub fn text_of<'a>(reply: &'a Reply, field: &str) -> anyhow::Result<&'a str> {
    reply.value.get(field).and_then(Value::as_str).with_context(|| format!("a reply without the text `{field}`"))
}

/// What a judge said in `field`, or why it said nothing.
pub fn judgement(
    record_id: &RecordId,
    question: &str,
    about: Option<&str>,
    field: &str,
    result: &CallResult,
) -> anyhow::Result<JudgementRow> {
    let (record_id, question, about) = (record_id.clone(), question.to_owned(), about.map(str::to_owned));
    Ok(match result {
        Ok(reply) => JudgementRow {
            record_id,
            question,
            model: reply.model.clone(),
            about,
            answered: true,
            verdict: plain_text(reply.value.get(field).with_context(|| format!("a reply without `{field}`"))?),
            reason: text_of(reply, "reason")?.to_owned(),
            call: reply.key.clone(),
            sha256: Some(reply.sha256.clone()),
        },
        Err(failure) => JudgementRow {
            record_id,
            question,
            model: failure.model.clone(),
            about,
            answered: false,
            verdict: failure.reason.to_owned(),
            reason: failure.detail.clone(),
            call: failure.key.clone(),
            sha256: None,
        },
    })
}

/// Checks settings that are shares, and the least score of a judge.
pub fn check_limits(shares: &[(&str, f64)], min_judge_score: u32) -> Result<(), String> {
    for (name, share) in shares {
        if !(0.0..=1.0).contains(share) {
            return Err(format!("{name} is {share}, it must be from 0 to 1"));
        }
    }
    if !(1..=5).contains(&min_judge_score) {
        return Err(format!("min_judge_score is {min_judge_score}, it must be from 1 to 5"));
    }
    Ok(())
}

/// What a judge that was asked for a number said.
pub struct Rating {
    pub score: u32,
    pub reason: String,
    pub reply: Reply,
}

impl Asking {
    /// Reads the rating of one judge and writes down what it said: none if nobody was asked, what becomes of the record if
    /// there is no answer that counts.
    pub fn rating<T>(
        &self,
        record_id: &RecordId,
        question: &str,
        field: &str,
        mut results: Vec<CallResult>,
        out: &mut Emitter<'_, T>,
    ) -> anyhow::Result<Option<Result<Rating, Verdict>>> {
        let Some(mut result) = results.pop() else { return Ok(None) };
        if let Ok(reply) = &result
            && let Some(fault) = self.fault(reply)
        {
            result = Err(Failure::of(reply, fault));
        }
        let said = judgement(record_id, question, None, field, &result)?;
        out.side(JUDGEMENTS, said.clone());
        let reply = match result {
            Ok(reply) => reply,
            Err(failure) => return Ok(Some(Err(failure.quarantine()))),
        };
        let score = reply.value.get(field).and_then(Value::as_u64).context("a reply without a score")?;
        Ok(Some(Ok(Rating { score: u32::try_from(score)?, reason: said.reason, reply })))
    }
}

/// Why a record leaves about which no model said yes, or about which they differ.
pub const UNSUITABLE: &str = "judged_unsuitable";
pub const DISPUTED: &str = "disputed_by_models";

/// What several models, each asked alone, say together in `field`: none if all say yes, otherwise what becomes of the record,
/// which is on the list for review if they differ.
pub fn consensus<T>(
    record_id: &RecordId,
    replies: &[Reply],
    field: &str,
    disputed: Action,
    out: &mut Emitter<'_, T>,
) -> anyhow::Result<Option<Verdict>> {
    let mut n_fit = 0;
    let mut said = Vec::new();
    for reply in replies {
        let verdict = text_of(reply, field)?;
        n_fit += usize::from(verdict == YES);
        said.push(format!("{} {verdict}: {}", reply.model, text_of(reply, "reason")?));
    }
    let detail = said.join("; ");
    if n_fit == 0 {
        return Ok(Some(Verdict::Drop(Cause::new(UNSUITABLE, detail))));
    }
    if n_fit == replies.len() {
        return Ok(None);
    }
    let (record_id, reason) = (record_id.clone(), DISPUTED.to_owned());
    out.side("review", ReviewRow { record_id, reason, detail: detail.clone(), related: Vec::new() });
    Ok((disputed == Action::Drop).then(|| Verdict::Drop(Cause::new(DISPUTED, detail))))
}

/// One entry of a file of controls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlsFile<T> {
    control: Vec<T>,
}

/// The entries of the resource `controls`, each of which has what its stage asks about.
pub fn controls<T: DeserializeOwned>(resources: &Resources) -> anyhow::Result<Vec<T>> {
    let file = resources.file(CONTROLS).to_owned();
    let parsed: ControlsFile<T> = toml::from_str(resources.text(CONTROLS)?).map_err(|error| {
        let line = error.span().map_or(0, |span| {
            resources.text(CONTROLS).unwrap_or_default().bytes().take(span.start).filter(|byte| *byte == b'\n').count()
        });
        anyhow::anyhow!("{file}:{}: {}", line + 1, error.message())
    })?;
    ensure!(!parsed.control.is_empty(), "{file}: there is no [[control]]");
    Ok(parsed.control)
}

/// A control for one model.
pub fn control(name: &str, call: Call, field: &'static str, expect: Expect) -> Control {
    Control { name: name.to_owned(), call, field, expect }
}
