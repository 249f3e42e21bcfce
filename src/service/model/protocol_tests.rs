use super::*;
use crate::config::pipeline;
use crate::record::Hash;
use crate::stage::{MediaRef, Message, ReplyFormat, Role};
use expect_test::expect;

fn model(extra: &str) -> ModelConfig {
    let text = format!(
        "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\nmodel = 'gpt-5'\nbase_url_env = 'U'\negress = 'local'\n{extra}\n"
    );
    pipeline::parse("p.toml", &text).unwrap().models.remove("m").unwrap()
}

fn call() -> Call {
    let text = |role, text: &str| Message { role, parts: vec![Part::Text(text.to_owned())] };
    let image = Part::Image { media: MediaRef(Hash::of(b"png")), media_type: "image/png".to_owned() };
    let picture = Message { role: Role::User, parts: vec![Part::Text("See:".to_owned()), image] };
    Call {
        model: "m".to_owned(),
        messages: vec![text(Role::System, "Copy."), text(Role::User, "One?"), text(Role::Assistant, "Two."), picture],
        format: Some(ReplyFormat::new("slots", json!({"type": "object"})).unwrap()),
        sample: 2,
    }
}

fn sent(model: &ModelConfig, structured: Structured) -> String {
    let images = BTreeMap::from([(Hash::of(b"png"), b"png".to_vec())]);
    let attempt = Attempt { structured, max_tokens: 100 };
    serde_json::to_string_pretty(&request(model, &call(), &images, attempt).unwrap()).unwrap()
}

#[test]
fn a_request_to_an_openai_server() {
    let model = model("provider = 'openai'\nseed = 5\ntemperature = 0.0");
    expect![[r#"
        {
          "max_completion_tokens": 100,
          "messages": [
            {
              "content": "Copy.",
              "role": "system"
            },
            {
              "content": "One?",
              "role": "user"
            },
            {
              "content": "Two.",
              "role": "assistant"
            },
            {
              "content": [
                {
                  "text": "See:",
                  "type": "text"
                },
                {
                  "image_url": {
                    "url": "data:image/png;base64,cG5n"
                  },
                  "type": "image_url"
                }
              ],
              "role": "user"
            }
          ],
          "model": "gpt-5",
          "response_format": {
            "json_schema": {
              "name": "slots",
              "schema": {
                "type": "object"
              },
              "strict": true
            },
            "type": "json_schema"
          },
          "seed": 7,
          "temperature": 0.0
        }"#]]
    .assert_eq(&sent(&model, Structured::JsonSchema));
    // Another way to structure changes the format, and puts the schema into the prompt.
    let object = sent(&model, Structured::JsonObject);
    assert!(object.contains("\"json_object\"") && object.contains("must fit this JSON Schema"), "{object}");
    let none = sent(&model, Structured::None);
    assert!(!none.contains("response_format") && none.contains("must fit this JSON Schema"), "{none}");
}

#[test]
fn a_request_to_anthropic() {
    let model = model("provider = 'anthropic'\nseed = 5\ntemperature = 0.5");
    expect![[r#"
        {
          "max_tokens": 100,
          "messages": [
            {
              "content": "One?",
              "role": "user"
            },
            {
              "content": "Two.",
              "role": "assistant"
            },
            {
              "content": [
                {
                  "text": "See:",
                  "type": "text"
                },
                {
                  "source": {
                    "data": "cG5n",
                    "media_type": "image/png",
                    "type": "base64"
                  },
                  "type": "image"
                }
              ],
              "role": "user"
            }
          ],
          "model": "gpt-5",
          "output_config": {
            "format": {
              "schema": {
                "type": "object"
              },
              "type": "json_schema"
            }
          },
          "system": "Copy.",
          "temperature": 0.5
        }"#]]
    .assert_eq(&sent(&model, Structured::JsonSchema));
    let none = sent(&model, Structured::None);
    assert!(!none.contains("output_config") && none.contains("must fit this JSON Schema"), "{none}");
}

fn shown(provider: Provider, status: u16, body: &Value) -> String {
    let parsed = parse(provider, status, body.to_string().as_bytes());
    let usage =
        parsed.usage.map_or_else(String::new, |usage| format!(" {}+{}", usage.input_tokens, usage.output_tokens));
    format!("{}{usage}: {}{}", parsed.state.as_str(), parsed.text, parsed.detail)
}

/// Cases llm-03 and llm-05: a cut, refused or filtered answer is its own state, never an empty record.
#[test]
fn llm_03_llm_05_every_way_an_answer_ends_is_a_state() {
    let openai = |finish: Value, message: Value| {
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
        shown(
            Provider::Openai,
            200,
            &json!({"choices": [{"finish_reason": finish, "message": message}], "usage": usage}),
        )
    };
    let anthropic = |stop: &str, content: Value| {
        let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3});
        shown(Provider::Anthropic, 200, &json!({"stop_reason": stop, "content": content, "usage": usage}))
    };
    let text = |text: &str| json!({"content": text});
    let results = [
        openai("stop".into(), text("{\"findings\":[]}")),
        openai("length".into(), text("{\"findings\":[\"fever\",\"cough\",\"rig")),
        openai("length".into(), text("{\"findings\":[\"fever\",\"cough\"")),
        openai("content_filter".into(), json!({"content": null})),
        openai("stop".into(), json!({"content": null, "refusal": "I cannot help with that."})),
        openai("stop".into(), json!({"content": null})),
        openai("stop".into(), text(" \n")),
        openai("tool_calls".into(), json!({"content": null, "tool_calls": [{"id": "x"}]})),
        openai("stop".into(), json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
        openai("stop".into(), json!({"content": 3})),
        openai(Value::Null, text("{}")),
        openai("mystery".into(), text("{}")),
        shown(Provider::Openai, 200, &json!({"choices": []})),
        shown(Provider::Openai, 200, &json!({"error": {"code": "content_filter"}})),
        shown(Provider::Openai, 400, &json!({"error": {"code": "content_filter", "message": "blocked"}})),
        shown(Provider::Openai, 400, &json!({"error": {"code": "context_length_exceeded"}})),
        anthropic("end_turn", json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "{}"}])),
        anthropic("refusal", json!([])),
        anthropic("end_turn", json!([])),
        anthropic("max_tokens", json!([{"type": "text", "text": "{\"a\":"}])),
        anthropic("tool_use", json!([{"type": "tool_use"}])),
        anthropic("pause_turn", json!([])),
        format!("{:?}", parse(Provider::Openai, 200, b"<html>").state),
        format!("{:?}", parse(Provider::Openai, 200, b"{\"choices\": \xff}").state),
    ];
    expect![[r#"
        complete 7+3: {"findings":[]}
        truncated 7+3: {"findings":["fever","cough","rigcut at the token limit (finish_reason length)
        truncated 7+3: {"findings":["fever","cough"cut at the token limit (finish_reason length)
        refused 7+3: finish_reason content_filter
        refused 7+3: the message is a refusal
        empty 7+3: the message has no content
        empty 7+3: the text is empty
        invalid 7+3: the model called a tool; it has none
        complete 7+3: ab
        invalid 7+3: the content is no text
        invalid 7+3: finish_reason is none: the reply may be cut
        invalid 7+3: finish_reason is unknown: the reply may be cut
        invalid: 0 choices where 1 was asked for
        refused: a content filter blocked the request
        refused: a content filter blocked the request
        truncated: the prompt does not fit the context of the model
        complete 7+3: {}
        refused 7+3: stop_reason refusal
        empty 7+3: the text is empty
        truncated 7+3: {"a":cut at the token limit (stop_reason max_tokens)
        invalid 7+3: the model called a tool; it has none
        invalid 7+3: stop_reason is unknown: the reply may be cut
        Invalid
        Invalid"#]]
    .assert_eq(&results.join("\n"));
}

/// Case llm-11: what is worth another try, and what every call would meet.
#[test]
fn llm_11_errors_are_told_apart() {
    let kind = |status: u16, error: Value| format!("{status} {:?}", error_kind(status, &json!({ "error": error })));
    let results = [
        kind(529, json!({"type": "overloaded_error"})),
        kind(500, Value::Null),
        kind(503, Value::Null),
        kind(429, json!({"message": "slow down"})),
        kind(429, json!({"code": "insufficient_quota"})),
        kind(402, Value::Null),
        kind(400, json!({"message": "Your credit balance is too low"})),
        kind(400, json!({"message": "Unsupported parameter: 'max_tokens'", "param": "max_tokens"})),
        kind(401, json!({"message": "bad key"})),
        kind(404, json!({"message": "no model x"})),
        kind(400, json!({"message": "response_format is not supported"})),
        kind(500, json!({"message": "'json_schema' is not one of ['text', 'json_object']"})),
        kind(400, json!({"message": "JSON schema error at #: unrecognized type nonsense"})),
        kind(400, json!({"type": "exceed_context_size_error", "code": 400})),
        kind(413, Value::Null),
    ];
    expect![[r#"
        529 Retry
        500 Retry
        503 Retry
        429 Retry
        429 Quota
        402 Quota
        400 Quota
        400 Fatal
        401 Fatal
        404 Fatal
        400 PerhapsStructured
        500 PerhapsStructured
        400 PerhapsStructured
        400 TooLong
        413 TooLong"#]]
    .assert_eq(&results.join("\n"));
    // Servers quote what they were sent; that is shown for open records alone.
    let body =
        br#"{"error":{"message":"bad request: Fever of unknown origin","type":"invalid_request_error","code":"x y"}}"#;
    assert_eq!(error_text(400, body, false), "status 400, type invalid_request_error");
    assert_eq!(
        error_text(400, body, true),
        "status 400, type invalid_request_error: bad request: Fever of unknown origin"
    );
}

/// Replies of two public servers, where the samples are there.
#[test]
fn recorded_replies_of_servers() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/samples/llm_http");
    if !folder.is_dir() {
        eprintln!("skipped: the recorded replies are not beside the project");
        return;
    }
    let mut results = String::new();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|extension| extension == "http")) {
        let bytes = std::fs::read(path).unwrap();
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = &bytes[end + 4..];
        let parsed = parse(Provider::Openai, status, body);
        let kind = if status == 200 {
            String::new()
        } else {
            format!(" ({:?})", error_kind(status, &serde_json::from_slice(body).unwrap()))
        };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        results += &format!("{name}: {}{kind} {}\n", parsed.state.as_str(), parsed.detail);
    }
    expect![[r#"
        error_context_overflow: truncated (TooLong) the prompt does not fit the context of the model
        finish_reason_length: truncated cut at the token limit (finish_reason length)
        llamacpppython_context_overflow: truncated (TooLong) the prompt does not fit the context of the model
        llamacpppython_json_object: complete 
        llamacpppython_length: truncated cut at the token limit (finish_reason length)
        success_json_schema: complete 
        xllamacpp_bad_request: invalid (Fatal) an error with status 400
        xllamacpp_bad_schema: invalid (PerhapsStructured) an error with status 400
    "#]]
    .assert_eq(&results);
}
