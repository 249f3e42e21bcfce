//! `casemill explain`: the life of a record for a person.

use super::{ExplainArguments, Global, indented, print};
use casemill::error::Code;
use serde_json::{Value, json};

pub fn run(global: &Global, arguments: ExplainArguments) -> anyhow::Result<Code> {
    let session = global.session(&arguments.pipeline, arguments.session)?;
    let lives = session.explain(&arguments.id)?;
    let calls = lives.iter().map(|life| session.calls_in_life(&life.record_id)).collect::<anyhow::Result<Vec<_>>>()?;
    print(global, &json!({"lives": lives, "calls": calls}), || {
        let mut text = String::new();
        for (life, calls) in lives.iter().zip(&calls) {
            text += &format!("record {}\ncase   {}\n", life.record_id, life.case_id);
            if let (Some(place), Some(hash)) = (&life.place, &life.raw_sha256) {
                text += &format!("from   {place}, SHA-256 of the raw record {hash}\n");
            }
            for step in &life.steps {
                let other =
                    if step.record_id == life.record_id { String::new() } else { format!(" {}", step.record_id) };
                text += &format!("\n{} ({}):{other} {}", step.node, step.stage, step.outcome);
                if let Some(reason) = &step.reason {
                    text += &format!(", {reason}");
                }
                text.push('\n');
                if let Some(detail) = &step.detail {
                    text += &format!("  by: {}\n", indented(detail));
                }
                for (field, value) in
                    step.changes.iter().filter(|(field, _)| !matches!(field.as_str(), "record_id" | "provenance"))
                {
                    text += &format!("  {field}: {}\n", shown(field, value));
                }
                for (port, row) in &step.side_rows {
                    text += &format!("  {port}: {row}\n");
                }
            }
            for node in calls {
                let states: Vec<String> = node.by_state.iter().map(|(state, n)| format!("{n} {state}")).collect();
                text += &format!("\nrequests of {}: {}; {:.4} spent\n", node.node, states.join(", "), node.cost);
            }
            if !life.not_built.is_empty() {
                text += &format!("\nnot built yet: {}\n", life.not_built.join(", "));
            }
            text.push('\n');
        }
        text
    })?;
    Ok(Code::Done)
}

/// A field of a record for a person: lists a line each.
fn shown(field: &str, value: &Value) -> String {
    match value {
        Value::String(text) => indented(text),
        Value::Array(items) if field == "slots" => {
            let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let number = |item: &Value, key: &str| item.pointer(key).and_then(Value::as_u64).unwrap_or_default();
            let line = |item: &Value| {
                format!(
                    "\n    {:20} {}  [{} {}..{}, {}]",
                    text(item, "slot"),
                    indented(&text(item, "value")),
                    item.pointer("/span/text_id").and_then(Value::as_str).unwrap_or_default(),
                    number(item, "/span/start"),
                    number(item, "/span/end"),
                    text(item, "grounding")
                )
            };
            items.iter().map(line).collect()
        }
        Value::Array(items) if field == "options" => {
            let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            items.iter().map(|item| format!("\n    {} {}", text(item, "key"), indented(&text(item, "text")))).collect()
        }
        other => other.to_string(),
    }
}
