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

/// The blocks of a patient vector.
const BLOCKS: [&str; 4] = ["origin", "ground_truth", "facts", "presentation"];

/// Longest value that is shown as JSON; `--json` gives all of it.
const LONGEST: usize = 600;

/// A field of a record for a person: lists a line each, texts with the places they come from.
fn shown(field: &str, value: &Value) -> String {
    match value {
        Value::String(text) => cut(&indented(text)),
        Value::Array(items) if field == "slots" => items.iter().map(slot).collect(),
        Value::Array(items) if field == "options" => {
            items.iter().map(|item| format!("\n    {} {}", text(item, "key"), indented(text(item, "text")))).collect()
        }
        Value::Array(items) if field == "images" => items.iter().map(image).collect(),
        Value::Array(items) if field == "texts" || field == "files" => format!("{} of them", items.len()),
        Value::Object(_) if field == "article" => article(value),
        Value::Object(fields) if BLOCKS.contains(&field) => {
            fields.iter().map(|(name, part)| block(name, part)).collect()
        }
        Value::Object(fields) if fields.contains_key("quotes") => staged_text(value),
        Value::Object(fields) if fields.values().any(|field| field.get("quotes").is_some()) => fields
            .iter()
            .map(|(name, text)| match text {
                Value::Null => format!("\n    {name}: unknown"),
                text => format!("\n    {name}: {}", staged_text(text)),
            })
            .collect(),
        other => cut(&other.to_string()),
    }
}

fn text<'a>(item: &'a Value, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(item: &Value, pointer: &str) -> u64 {
    item.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn cut(text: &str) -> String {
    let n = text.chars().count();
    if n <= LONGEST {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LONGEST).collect();
    format!("{begin} … ({n} characters; --json gives all)")
}

fn slot(item: &Value) -> String {
    format!(
        "\n    {:20} {}  [{} {}..{}, {}]",
        text(item, "slot"),
        indented(text(item, "value")),
        item.pointer("/span/text_id").and_then(Value::as_str).unwrap_or_default(),
        number(item, "/span/start"),
        number(item, "/span/end"),
        text(item, "grounding")
    )
}

/// A text of a staged case, and for each quote its paragraph, its section, and its bytes in the XML file.
fn staged_text(value: &Value) -> String {
    let mut shown = indented(text(value, "text"));
    for quote in value.get("quotes").and_then(Value::as_array).into_iter().flatten() {
        let path = quote.get("section_path").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let path: Vec<&str> = path.collect();
        let section = if path.is_empty() { String::new() } else { format!(", section {}", path.join(" / ")) };
        shown += &format!(
            "\n        from {} {}..{}{section}, bytes {}..{} of the file",
            quote.pointer("/span/text_id").and_then(Value::as_str).unwrap_or_default(),
            number(quote, "/span/start"),
            number(quote, "/span/end"),
            number(quote, "/xml_start"),
            number(quote, "/xml_end")
        );
    }
    shown
}

/// An image of an article or of a case, with its hash and what it shows.
fn image(item: &Value) -> String {
    let mut shown = format!("\n    {}", text(item, "image_id"));
    if let Some(state) = item.get("state").and_then(Value::as_str) {
        shown += &format!(": {state}");
        if !text(item, "detail").is_empty() {
            shown += &format!(", {}", text(item, "detail"));
        }
    }
    for (key, name) in [("image_type", "type"), ("file", "file"), ("sha256", "SHA-256"), ("licence", "licence")] {
        if !text(item, key).is_empty() {
            shown += &format!("; {name} {}", text(item, key));
        }
    }
    if number(item, "/width") > 0 {
        shown += &format!("; {} × {} pixels", number(item, "/width"), number(item, "/height"));
    }
    if !text(item, "derived_sha256").is_empty() {
        shown += &format!("; shown as {}", text(item, "derived_sha256"));
    }
    for key in ["image_finding", "diagnostic_significance"] {
        if let Some(told) = item.get(key).filter(|told| told.is_object()) {
            shown += &format!("\n      {key}: {}", staged_text(told));
        }
    }
    shown
}

/// What an article holds, counted; its text is in the XML file.
fn article(value: &Value) -> String {
    let n = |key: &str| value.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let mut shown = indented(text(value, "title"));
    for key in ["paragraphs", "figures", "tables", "supplements", "references"] {
        shown += &format!("\n    {} {key}", n(key));
    }
    for warning in value.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        shown += &format!("\n    warning: line {}: {}", number(warning, "/line"), text(warning, "detail"));
    }
    shown
}

/// A part of a patient vector: what is known of it, a line for each entry, each with the places it was read from.
fn block(name: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(|item| format!("\n    {name}: {}", known(item))).collect(),
        // Hundreds of names that are the same for every record of the source.
        Value::Object(fields) if fields.contains_key("codes") => {
            let n = fields.get("codes").and_then(Value::as_array).map_or(0, Vec::len);
            format!("\n    {name}: {n} terms, {}", text(value, "basis"))
        }
        other => match known(other) {
            nothing if nothing.is_empty() => String::new(),
            known => format!("\n    {name}: {known}"),
        },
    }
}

/// What of a value is neither null nor empty, in one line.
fn known(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => indented(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(known).filter(|item| !item.is_empty()).collect();
            items.join(", ")
        }
        Value::Object(fields) if fields.contains_key("text_id") => {
            format!("{} {}..{}", text(value, "text_id"), number(value, "/start"), number(value, "/end"))
        }
        Value::Object(fields) => {
            // What it is called comes first, where it stands last.
            let (mut first, mut middle, mut last) = (String::new(), Vec::new(), String::new());
            for (name, part) in fields {
                match (name.as_str(), known(part)) {
                    (_, part) if part.is_empty() => {}
                    ("name" | "label" | "symptom", part) => first = part,
                    ("spans", part) => last = format!("from {part}"),
                    (_, part) if part.contains("; ") || part.contains(": ") => middle.push(format!("{name}: ({part})")),
                    (_, part) => middle.push(format!("{name}: {part}")),
                }
            }
            let parts = std::iter::once(first).chain(middle).chain(std::iter::once(last));
            cut(&parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn parts_of_a_patient_say_what_is_known_and_where() {
        let facts = json!({
            "demographics": {"age_years": 54.0, "sex": "female", "insurance": null, "spans": [{"text_id": "p1", "start": 2, "end": 13}]},
            "vitals": [],
            "antecedents": [{"name": "asthma", "code": null, "negation": "present", "values": [], "spans": []}],
            "absent_antecedents": {"basis": "closed_world", "codes": ["E_1", "E_2"], "names": ["a", "b"]},
        });
        let lines: Vec<String> = shown("facts", &facts).lines().map(|line| line.trim().to_owned()).collect();
        expect![[r#"
            [
                "",
                "absent_antecedents: 2 terms, closed_world",
                "antecedents: asthma; negation: present",
                "demographics: age_years: 54.0; sex: female; from p1 2..13",
            ]
        "#]]
        .assert_debug_eq(&lines);
    }
}
