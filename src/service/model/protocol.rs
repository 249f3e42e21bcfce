//! The two protocols: what a call looks like on the wire, and what an answer says. Pure.
//!
//! OpenAI chat completions (`POST <base>/chat/completions`) as every compatible server understands them, and Anthropic
//! messages (`POST <base>/v1/messages`, version 2023-06-01).

use crate::config::{ModelConfig, Provider, Structured};
use crate::record::Hash;
use crate::stage::{Call, Part, ReplyFormat, Role};
use crate::store::replies::ReplyState;
use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What differs between the attempts of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub structured: Structured,
    pub max_tokens: u32,
}

/// The path below the base URL.
pub fn path(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "/v1/messages",
        Provider::Openai | Provider::Rules => "/chat/completions",
    }
}

/// The body of a request. `images` holds the bytes of the images in the messages.
pub fn request(
    model: &ModelConfig,
    call: &Call,
    images: &BTreeMap<Hash, Vec<u8>>,
    attempt: Attempt,
) -> anyhow::Result<Value> {
    let instruction = call
        .format
        .as_deref()
        .filter(|_| attempt.structured != Structured::JsonSchema)
        .map(schema_instruction)
        .transpose()?;
    let mut body = Map::new();
    body.insert("model".to_owned(), model.model.clone().into());
    let mut messages = Vec::new();
    let mut system = Vec::new();
    for message in &call.messages {
        if message.role == Role::System {
            system.extend(message.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Image { .. } => None,
            }));
            continue;
        }
        let content = content(&message.parts, images, model.provider)?;
        messages.push(json!({"role": message.role.as_str(), "content": content}));
    }
    system.extend(instruction.as_deref());
    let system = system.join("\n\n");
    if model.provider == Provider::Anthropic {
        if !system.is_empty() {
            body.insert("system".to_owned(), system.into());
        }
        body.insert("max_tokens".to_owned(), attempt.max_tokens.into());
    } else {
        if !system.is_empty() {
            messages.insert(0, json!({"role": "system", "content": system}));
        }
        body.insert(model.max_tokens_parameter.clone(), attempt.max_tokens.into());
        if let Some(seed) = model.seed {
            // Samples of one prompt must be able to differ, and each must be repeatable.
            body.insert("seed".to_owned(), seed.wrapping_add(u64::from(call.sample)).into());
        }
    }
    body.insert("messages".to_owned(), messages.into());
    for (key, value) in [("temperature", model.temperature), ("top_p", model.top_p)] {
        if let Some(value) = value {
            body.insert(key.to_owned(), value.into());
        }
    }
    if let Some(format) = &call.format {
        match (model.provider, attempt.structured) {
            (Provider::Anthropic, Structured::JsonSchema) => {
                body.insert(
                    "output_config".to_owned(),
                    json!({"format": {"type": "json_schema", "schema": format.schema}}),
                );
            }
            (_, Structured::JsonSchema) => {
                let schema = json!({"name": format.name, "strict": true, "schema": format.schema});
                body.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
            }
            (Provider::Openai, Structured::JsonObject) => {
                // Some servers enforce a schema given here; the others ignore it.
                body.insert("response_format".to_owned(), json!({"type": "json_object", "schema": format.schema}));
            }
            _ => {}
        }
    }
    Ok(Value::Object(body))
}

/// What tells a model the schema where the server does not.
fn schema_instruction(format: &ReplyFormat) -> anyhow::Result<String> {
    let schema = serde_json::to_string(&format.schema)?;
    Ok(format!("Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{schema}"))
}

/// A text alone is sent as text: not every server takes lists.
fn content(parts: &[Part], images: &BTreeMap<Hash, Vec<u8>>, provider: Provider) -> anyhow::Result<Value> {
    if let [Part::Text(text)] = parts {
        return Ok(text.clone().into());
    }
    let mut list = Vec::with_capacity(parts.len());
    for part in parts {
        list.push(match part {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Image { media, media_type } => {
                let bytes = images.get(&media.0).with_context(|| format!("the image {} was not read", media.0))?;
                let data = BASE64.encode(bytes);
                if provider == Provider::Anthropic {
                    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
                } else {
                    json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}})
                }
            }
        });
    }
    Ok(list.into())
}

/// What an answer with a status of success, or a refusal with status 400, says.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub state: ReplyState,
    /// Of a complete reply, or what there is of a truncated one.
    pub text: String,
    /// Why it is not complete.
    pub detail: String,
    pub usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl Parsed {
    fn failed(state: ReplyState, detail: impl Into<String>, usage: Option<Usage>) -> Self {
        Self { state, text: String::new(), detail: detail.into(), usage }
    }
}

/// Reads the body of an answer. The details name what the protocol says, never what a model or server wrote: they go to
/// ledgers and logs.
pub fn parse(provider: Provider, status: u16, body: &[u8]) -> Parsed {
    let document: Value = match serde_json::from_slice(body) {
        Ok(document) => document,
        Err(error) => {
            let detail = format!("the answer is no JSON: {:?} at byte {}", error.classify(), error.column());
            return Parsed::failed(ReplyState::Invalid, detail, None);
        }
    };
    if !(200..300).contains(&status) || document.get("error").is_some_and(|error| !error.is_null()) {
        return match error_kind(status, &document) {
            ErrorKind::Filtered => Parsed::failed(ReplyState::Refused, "a content filter blocked the request", None),
            ErrorKind::TooLong => {
                Parsed::failed(ReplyState::Truncated, "the prompt does not fit the context of the model", None)
            }
            _ => Parsed::failed(ReplyState::Invalid, format!("an error with status {status}"), None),
        };
    }
    match provider {
        Provider::Anthropic => parse_anthropic(&document),
        Provider::Openai | Provider::Rules => parse_openai(&document),
    }
}

fn parse_openai(document: &Value) -> Parsed {
    let usage = document.get("usage").and_then(|usage| {
        Some(Usage {
            input_tokens: usage.get("prompt_tokens")?.as_u64()?,
            output_tokens: usage.get("completion_tokens")?.as_u64()?,
        })
    });
    let choices = document.get("choices").and_then(Value::as_array);
    let Some([choice]) = choices.map(Vec::as_slice) else {
        let n = choices.map_or(0, Vec::len);
        return Parsed::failed(ReplyState::Invalid, format!("{n} choices where 1 was asked for"), usage);
    };
    let Some(message) = choice.get("message").filter(|message| message.is_object()) else {
        return Parsed::failed(ReplyState::Invalid, "a choice without a message", usage);
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    match finish {
        "length" => {
            let content = message.get("content").unwrap_or(&Value::Null);
            return truncated("cut at the token limit (finish_reason length)", content, usage);
        }
        "content_filter" => return Parsed::failed(ReplyState::Refused, "finish_reason content_filter", usage),
        "refusal" => return Parsed::failed(ReplyState::Refused, "finish_reason refusal", usage),
        _ => {}
    }
    if message.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.trim().is_empty()) {
        return Parsed::failed(ReplyState::Refused, "the message is a refusal", usage);
    }
    let calls_tool = message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty())
        || message.get("function_call").is_some_and(Value::is_object);
    if calls_tool || finish == "tool_calls" || finish == "function_call" {
        return Parsed::failed(ReplyState::Invalid, "the model called a tool; it has none", usage);
    }
    if !matches!(finish, "stop" | "eos" | "end_turn") {
        // Without one it is unknown whether the text is whole.
        let shown = if finish.is_empty() { "none" } else { "unknown" };
        return Parsed::failed(ReplyState::Invalid, format!("finish_reason is {shown}: the reply may be cut"), usage);
    }
    complete(message.get("content").unwrap_or(&Value::Null), usage)
}

fn parse_anthropic(document: &Value) -> Parsed {
    let usage = document.get("usage").and_then(|usage| {
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        Some(Usage {
            input_tokens: count("input_tokens")?
                + count("cache_creation_input_tokens").unwrap_or(0)
                + count("cache_read_input_tokens").unwrap_or(0),
            output_tokens: count("output_tokens")?,
        })
    });
    let stop = document.get("stop_reason").and_then(Value::as_str).unwrap_or_default();
    match stop {
        "end_turn" | "stop_sequence" => complete(document.get("content").unwrap_or(&Value::Null), usage),
        "max_tokens" | "model_context_window_exceeded" => {
            let content = document.get("content").unwrap_or(&Value::Null);
            truncated(&format!("cut at the token limit (stop_reason {stop})"), content, usage)
        }
        "refusal" => Parsed::failed(ReplyState::Refused, "stop_reason refusal", usage),
        "tool_use" => Parsed::failed(ReplyState::Invalid, "the model called a tool; it has none", usage),
        _ => {
            let shown = if stop.is_empty() { "none" } else { "unknown" };
            Parsed::failed(ReplyState::Invalid, format!("stop_reason is {shown}: the reply may be cut"), usage)
        }
    }
}

/// What there is of a reply that was cut, to see whether it ran in a circle.
fn truncated(detail: &str, content: &Value, usage: Option<Usage>) -> Parsed {
    let Parsed { text, .. } = complete(content, None);
    Parsed { text, ..Parsed::failed(ReplyState::Truncated, detail, usage) }
}

/// The text of a message: text, or a list whose parts are text. Parts that hold a model's reasoning are left out.
fn complete(content: &Value, usage: Option<Usage>) -> Parsed {
    let mut text = String::new();
    match content {
        Value::Null => return Parsed::failed(ReplyState::Empty, "the message has no content", usage),
        Value::String(whole) => text.push_str(whole),
        Value::Array(parts) => {
            for part in parts {
                match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
                    (Some("text" | "output_text"), Some(more)) => text.push_str(more),
                    (Some("thinking" | "redacted_thinking" | "reasoning"), _) => {}
                    (Some("refusal"), _) => {
                        return Parsed::failed(ReplyState::Refused, "the message is a refusal", usage);
                    }
                    _ => return Parsed::failed(ReplyState::Invalid, "a part of the message is no text", usage),
                }
            }
        }
        _ => return Parsed::failed(ReplyState::Invalid, "the content is no text", usage),
    }
    if text.trim().is_empty() {
        return Parsed::failed(ReplyState::Empty, "the text is empty", usage);
    }
    Parsed { state: ReplyState::Complete, text, detail: String::new(), usage }
}

/// What an answer that is an error means for the call and for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 429, 5xx: later it may go well.
    Retry,
    /// The account has no money or quota: no call will go well.
    Quota,
    /// A filter: a refusal of this call.
    Filtered,
    /// The prompt is too long: this call will never go well.
    TooLong,
    /// The way the reply was to be structured may be what the server does not know.
    PerhapsStructured,
    /// Key, address, model name, a parameter: no call will go well.
    Fatal,
}

/// What an error means. Servers agree on little: the words `code` and `type` are looked at before the status.
pub fn error_kind(status: u16, document: &Value) -> ErrorKind {
    let error = document.get("error").unwrap_or(document);
    let mut words = String::new();
    for key in ["code", "type", "message", "param"] {
        if let Some(text) = error.get(key).and_then(Value::as_str) {
            words.push_str(&text.to_ascii_lowercase());
            words.push('\n');
        }
    }
    if let Some(inner) = error.pointer("/innererror/code").and_then(Value::as_str) {
        words.push_str(&inner.to_ascii_lowercase());
    }
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if says(&["insufficient_quota", "billing_error", "credit balance", "billing_hard_limit"]) || status == 402 {
        return ErrorKind::Quota;
    }
    if says(&["content_filter", "content_policy", "responsibleaipolicyviolation"]) {
        return ErrorKind::Filtered;
    }
    if says(&["context_length_exceeded", "exceed_context_size", "maximum context length", "prompt is too long"])
        || status == 413
    {
        return ErrorKind::TooLong;
    }
    match status {
        400 | 404 | 422 | 500 | 501
            if says(&["response_format", "json_schema", "json schema", "grammar", "output_config"]) =>
        {
            ErrorKind::PerhapsStructured
        }
        400 | 422 => ErrorKind::Fatal,
        _ => match crate::service::http::retry::class_of_status(status) {
            crate::service::http::retry::StatusClass::Retry => ErrorKind::Retry,
            _ => ErrorKind::Fatal,
        },
    }
}

/// What an error says of itself, for a person: codes, and the message where it may be shown. A message can quote the
/// prompt, so it is only given for records that anybody may read.
pub fn error_text(status: u16, body: &[u8], may_quote: bool) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = document.get("error").unwrap_or(&document);
    let mut text = format!("status {status}");
    let is_word = |word: &str| {
        word.len() <= 60 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    for key in ["type", "code"] {
        if let Some(word) = error.get(key).and_then(Value::as_str).filter(|word| is_word(word)) {
            text += &format!(", {key} {word}");
        }
    }
    let message = error.get("message").or(Some(error)).and_then(Value::as_str);
    if let Some(message) = message.filter(|_| may_quote) {
        let shown: String = message.chars().filter(|one| !one.is_control()).take(300).collect();
        text += &format!(": {shown}");
    }
    text
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
