//! The model client against a server that plays every fault: states, tries, limits, money, rights, and what a kill leaves.

use crate::fake_model::{FakeModel, Play, Request};
use casemill::config::pipeline;
use casemill::error::{Code, code_of};
use casemill::record::{Access, Hash, LlmEgress, RecordId, Rights};
use casemill::service::http::retry::Backoff;
use casemill::service::model::batch::Exported;
use casemill::service::model::{Mode, Models, Options};
use casemill::stage::{Ask, Call, MediaRef, Message, ModelService, Origin, Part, ReplyFormat, Role};
use casemill::store::replies::{ReplyStore, Shelf};
use expect_test::expect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const KEY: &str = "sk-planted-key-0123456789";

/// A data folder and the models that are opened on it.
struct Client {
    folder: tempfile::TempDir,
    extra: String,
    budget: Option<f64>,
    interrupted: Arc<AtomicBool>,
}

impl Client {
    fn new(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, extra: extra.to_owned(), budget: None, interrupted: Arc::default() }
    }

    fn replies(&self) -> PathBuf {
        self.folder.path().join("replies")
    }

    fn open(&self, server: &FakeModel, mode: Mode) -> Models {
        self.try_open(&server.base_url(), mode).unwrap()
    }

    fn try_open(&self, url: &str, mode: Mode) -> anyhow::Result<Models> {
        let provider = if self.extra.contains("provider") { "" } else { "provider = 'openai'\n" };
        let egress = if self.extra.contains("egress") { "" } else { "egress = 'local'\n" };
        let text = format!(
            "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\n{provider}model = 'fake'\n\
             base_url_env = 'URL'\nkey_env = 'KEY'\n{egress}{}\n",
            self.extra
        );
        let models = pipeline::parse("p.toml", &text)?.models;
        let options = Options {
            mode,
            sends: true,
            budget: self.budget,
            interrupted: self.interrupted.clone(),
            backoff: Backoff {
                first: Duration::from_millis(5),
                longest: Duration::from_millis(50),
                longest_asked: Duration::from_secs(5),
            },
        };
        let store = Arc::new(ReplyStore::new(self.replies()));
        let variable = |name: &str| match name {
            "URL" => Some(url.to_owned()),
            "KEY" => Some(KEY.to_owned()),
            _ => None,
        };
        Models::open(&models, &["m".to_owned()], store, options, variable)
    }
}

fn open_rights() -> Rights {
    Rights { access: Access::Open, llm_egress: LlmEgress::Any, ..Rights::unknown() }
}

fn ask(prompt: &str) -> Ask {
    ask_with(prompt, open_rights())
}

fn ask_with(prompt: &str, rights: Rights) -> Ask {
    let schema = json!({
        "type": "object",
        "properties": {"dx": {"type": "string"}},
        "required": ["dx"],
        "additionalProperties": false,
    });
    let message = Message { role: Role::User, parts: vec![Part::Text(prompt.to_owned())] };
    let call = Call {
        model: "m".to_owned(),
        messages: vec![message],
        format: Some(ReplyFormat::new("answer", schema).unwrap()),
        sample: 0,
    };
    let origin = Origin { pipeline: "p".to_owned(), node: "n".to_owned(), record_id: RecordId::native("s", prompt) };
    Ask { call, rights, origin, images: BTreeMap::new() }
}

fn dx(text: &str) -> String {
    json!({ "dx": text }).to_string()
}

/// Answers of some calls, each as one line.
fn answers(models: &Models, asks: Vec<Ask>) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    models.ask(&mut asks.into_iter().map(Ok), &mut |answer| {
        lines.push(match answer {
            Ok(reply) if reply.repairs.is_empty() => format!("accepted {}", reply.value),
            Ok(reply) => format!("accepted {} after {}", reply.value, reply.repairs.join(", ")),
            Err(failure) => format!("{}: {}", failure.reason, failure.detail),
        });
        Ok(())
    })?;
    Ok(lines)
}

fn answer(models: &Models, prompt: &str) -> String {
    answers(models, vec![ask(prompt)]).unwrap().remove(0)
}

/// Plays by the number of the request to one server.
fn in_turn(plays: Vec<Play>) -> FakeModel {
    let next = AtomicU64::new(0);
    FakeModel::start(move |_| {
        let position = usize::try_from(next.fetch_add(1, Ordering::SeqCst)).unwrap();
        plays.get(position).or(plays.last()).cloned().unwrap_or(Play::Status(500))
    })
}

/// Everything below a folder that holds some bytes.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes) {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_answer_has_its_state_and_its_number_of_requests() {
    let plays: Vec<(&str, Play)> = vec![
        ("complete", Play::Reply(dx("flu"))),
        ("fenced", Play::Reply(format!("<think>hm {{}}</think>\n```json\n{}\n```", dx("a ```x``` b")))),
        ("trailing comma", Play::Reply("{\"dx\": \"flu\",}".to_owned())),
        ("other type", Play::Reply("{\"dx\": 3}".to_owned())),
        ("cut, said to be whole", Play::Reply("{\"dx\": \"fl".to_owned())),
        ("duplicate key", Play::Reply("{\"dx\": \"a\", \"dx\": \"b\"}".to_owned())),
        ("two answers", Play::Reply(format!("{} or {}", dx("a"), dx("b")))),
        ("length", Play::Length("{\"dx\": \"fl".to_owned())),
        ("loop", Play::Length(format!("{{\"dx\": \"{}", "the patient has a cough, ".repeat(30)))),
        ("refusal", Play::Refusal("No.".to_owned())),
        ("filter", Play::ContentFilter),
        ("null", Play::NullContent),
        ("tool", Play::ToolCall),
        ("no UTF-8", Play::InvalidUtf8),
        ("giant", Play::Giant(17 << 20)),
        ("page", Play::Raw { status: 200, headers: Vec::new(), body: b"<html>Just a moment".to_vec() }),
        ("context", Play::Json(400, json!({"error": {"code": "context_length_exceeded", "message": "too long"}}))),
        ("blocked", Play::Json(400, json!({"error": {"code": "content_filter"}}))),
        ("cut connection", Play::Cut(20, Box::new(Play::Reply(dx("x"))))),
        ("too long for its length", Play::WrongLength(40, Box::new(Play::Reply(dx("x"))))),
        ("closed", Play::Close),
        ("500", Play::Status(500)),
        ("503", Play::Status(503)),
        ("hangs", Play::Hang),
        ("drips", Play::Drip(Duration::from_millis(300), Box::new(Play::Reply(dx("x"))))),
    ];
    let mut text = String::new();
    for (name, play) in plays {
        let server = FakeModel::start(move |_| play.clone());
        let client = Client::new("timeout_seconds = 1\ntries = 2\nanswers = 2\nmax_tokens = 100\nstructured = 'none'");
        let line = answer(&client.open(&server, Mode::Live), "why?");
        let n = server.total().received;
        // What the system says of a closed connection differs.
        let line = line.split(": error sending").next().unwrap_or(&line).to_owned();
        text += &format!("{name}: {line} [{n} requests]\n");
        // The same again costs nothing where there was an answer.
        let again = answer(&client.open(&server, Mode::Live), "why?");
        let asked_again = server.total().received - n;
        let has_reply = !line.starts_with("no_reply");
        assert_eq!(asked_again == 0, has_reply, "{name}: {again}");
    }
    expect![[r#"
        complete: accepted {"dx":"flu"} [1 requests]
        fenced: accepted {"dx":"a ```x``` b"} after reasoning_tags, fence [1 requests]
        trailing comma: accepted {"dx":"flu"} after trailing_comma [1 requests]
        other type: reply_invalid: schema_mismatch: /dx: 3 is not of type "string" [2 requests]
        cut, said to be whole: reply_invalid: unclosed: EOF while parsing a string at line 1 column 10 [2 requests]
        duplicate key: reply_invalid: duplicate_key: duplicate key `dx` at line 1 column 16 [2 requests]
        two answers: reply_invalid: ambiguous: two different values among the 2 that fit the schema [2 requests]
        length: reply_truncated: cut at the token limit (finish_reason length) [2 requests]
        loop: reply_truncated: cut at the token limit (finish_reason length); it ends in a loop of 30 rounds [2 requests]
        refusal: reply_refused: the message is a refusal [1 requests]
        filter: reply_refused: finish_reason content_filter [1 requests]
        null: reply_empty: the message has no content [2 requests]
        tool: reply_invalid: the model called a tool; it has none [2 requests]
        no UTF-8: reply_invalid: the answer is no JSON: Syntax at byte 85 [2 requests]
        giant: no_reply: no reply after 2 tries; the last: an answer of more than 16777216 bytes [2 requests]
        page: reply_invalid: the answer is no JSON: Syntax at byte 1 [2 requests]
        context: reply_truncated: the prompt does not fit the context of the model [1 requests]
        blocked: reply_refused: a content filter blocked the request [1 requests]
        cut connection: no_reply: no reply after 2 tries; the last: the answer was cut short after 20 bytes: error decoding response body: request or response body error: error reading a body from connection: end of file before message length reached [2 requests]
        too long for its length: no_reply: no reply after 2 tries; the last: the answer was cut short after 304 bytes: error decoding response body: request or response body error: error reading a body from connection: end of file before message length reached [2 requests]
        closed: no_reply: no reply after 2 tries; the last [2 requests]
        500: no_reply: no reply after 2 tries; the last: status 500, type api_error: Internal Server Error [2 requests]
        503: no_reply: no reply after 2 tries; the last: status 503, type api_error: Service Unavailable [2 requests]
        hangs: no_reply: no reply after 2 tries; the last: no answer within 1 s [2 requests]
        drips: no_reply: no reply after 2 tries; the last: no answer within 1 s [2 requests]
    "#]].assert_eq(&text);
}

/// Case llm-10: a model that answers otherwise every time is asked once, and both builds have its first answer.
#[test]
fn llm_10_an_accepted_reply_is_never_asked_for_again() {
    let server = in_turn(vec![Play::Reply(dx("A")), Play::Reply(dx("B"))]);
    let client = Client::new("");
    for _ in 0..3 {
        assert_eq!(answer(&client.open(&server, Mode::Live), "why?"), "accepted {\"dx\":\"A\"}");
    }
    assert_eq!(server.total().received, 1);
    // Twice the same call at once is one call.
    let both = answers(&client.open(&server, Mode::Live), vec![ask("both"), ask("both")]).unwrap();
    assert_eq!((both[0] == both[1], server.total().received), (true, 2));
    // To record is to ask; its reply takes the place of the other.
    assert_eq!(answer(&client.open(&server, Mode::Record), "why?"), "accepted {\"dx\":\"B\"}");
    assert_eq!(answer(&client.open(&server, Mode::Replay), "why?"), "accepted {\"dx\":\"B\"}");
    assert_eq!(server.total().received, 3);
    // A replay needs no address, and fails on a miss with its name.
    drop(server);
    let replay = client.try_open("", Mode::Replay).unwrap();
    assert_eq!(answer(&replay, "why?"), "accepted {\"dx\":\"B\"}");
    let error = answers(&replay, vec![ask("other")]).unwrap_err();
    assert_eq!(code_of(&error), Code::Input);
    assert!(error.to_string().contains("of record s:other (node n, model m)"), "{error}");
}

/// Case llm-11: overload is waited out, a dropped connection too; what every call would meet stops at once.
#[test]
fn llm_11_tries_by_class() {
    let server = in_turn(vec![Play::Status(529), Play::Status(529), Play::Close, Play::Reply(dx("flu"))]);
    assert_eq!(answer(&Client::new("").open(&server, Mode::Live), "why?"), "accepted {\"dx\":\"flu\"}");
    assert_eq!(server.total().received, 4);

    for (status, error) in [
        (400, json!({"message": "Unsupported parameter: max_tokens", "param": "max_tokens"})),
        (401, json!({"message": format!("wrong key {KEY}")})),
        (429, json!({"code": "insufficient_quota"})),
    ] {
        let server = FakeModel::start(move |_| Play::Json(status, json!({ "error": error })));
        let client = Client::new("structured = 'none'");
        let error = answers(&client.open(&server, Mode::Live), (0..20).map(|n| ask(&n.to_string())).collect());
        let text = error.unwrap_err().to_string();
        assert!(text.contains(&format!("cannot be used: status {status}")) && !text.contains(KEY), "{text}");
        assert_eq!(server.total().received, 1, "the first call says it for all: {text}");
        assert_eq!(files_with(client.folder.path(), KEY.as_bytes()), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_server_says_how_long_to_wait_and_nobody_comes_earlier() {
    for (value, least) in [("0.6".to_owned(), 0.6), ("1".to_owned(), 1.0)] {
        let server = in_turn(vec![Play::RetryAfter(429, value), Play::Reply(dx("flu"))]);
        let client = Client::new("concurrency = 1\nstructured = 'none'");
        let started = Instant::now();
        let all = answers(&client.open(&server, Mode::Live), vec![ask("one"), ask("two"), ask("three")]).unwrap();
        assert!(all.iter().all(|line| line == "accepted {\"dx\":\"flu\"}"), "{all:?}");
        assert!(started.elapsed().as_secs_f64() >= least, "{:?}", started.elapsed());
        assert_eq!(server.total().received, 4);
    }
}

#[test]
fn how_replies_are_structured_is_found_out_once_for_a_server() {
    let refuses = |ways: &'static [&'static str], status: u16| {
        FakeModel::start(move |request: &Request| {
            let way = request.response_format().and_then(|format| format["type"].as_str()).unwrap_or("none");
            if ways.contains(&way) {
                let message = format!("response_format {way} is not known");
                return Play::Json(status, json!({"error": {"message": message, "type": "server_error"}}));
            }
            Play::Reply(dx(way))
        })
    };
    for (ways, status, expected) in [
        (&[][..], 400, "json_schema"),
        (&["json_schema"][..], 400, "json_object"),
        (&["json_schema"][..], 500, "json_object"),
        (&["json_schema", "json_object"][..], 400, "none"),
    ] {
        let server = refuses(ways, status);
        let client = Client::new("concurrency = 8");
        let models = client.open(&server, Mode::Live);
        let asks = (0..30).map(|n| ask(&n.to_string())).collect();
        let all = answers(&models, asks).unwrap();
        assert!(all.iter().all(|line| *line == format!("accepted {}", dx(expected))), "{all:?}");
        assert_eq!(server.total().received, 30 + ways.len() as u64, "{ways:?} {status}");
    }
    // A bare 500 says nothing: the same way is tried twice before a weaker one.
    let server = FakeModel::start(|request: &Request| {
        let way = request.response_format().and_then(|format| format["type"].as_str()).unwrap_or("none");
        if way == "json_schema" { Play::Status(500) } else { Play::Reply(dx(way)) }
    });
    assert_eq!(answer(&Client::new("").open(&server, Mode::Live), "why?"), "accepted {\"dx\":\"json_object\"}");
    assert_eq!(server.total().received, 3);
}

/// Case llm-03: a cut reply is asked for again with a larger limit, never closed.
#[test]
fn llm_03_a_truncated_reply_is_asked_for_with_a_larger_limit() {
    let server = FakeModel::start(|request: &Request| match request.max_tokens() {
        Some(tokens) if tokens >= 400 => Play::Reply(dx("whole")),
        _ => Play::Length("{\"dx\": \"wh".to_owned()),
    });
    let client = Client::new("max_tokens = 100\nanswers = 5\nstructured = 'none'");
    assert_eq!(answer(&client.open(&server, Mode::Live), "why?"), "accepted {\"dx\":\"whole\"}");
    let limits: Vec<_> = server.requests().iter().map(Request::max_tokens).collect();
    assert_eq!(limits, [Some(100), Some(200), Some(400)]);
    // At the ceiling it is given up.
    let client = Client::new("max_tokens = 100\nmax_tokens_ceiling = 200\nanswers = 5\nstructured = 'none'");
    let line = answer(&client.open(&server, Mode::Live), "why?");
    assert!(line.starts_with("reply_truncated: cut at the token limit"), "{line}");
    assert_eq!(server.total().received, 5);
}

#[test]
fn a_provider_that_is_down_stops_the_run_and_not_every_call() {
    let server = FakeModel::start(|_| Play::Status(503));
    let client = Client::new("concurrency = 4\nstructured = 'none'\ntries = 3");
    let error = answers(&client.open(&server, Mode::Live), (0..500).map(|n| ask(&n.to_string())).collect());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("does not answer: 24 requests in a row failed, the last with: status 503"), "{text}");
    assert!(server.total().received < 40, "{} requests", server.total().received);
}

#[test]
fn a_budget_is_never_passed_and_what_is_paid_is_kept() {
    let server = FakeModel::start(|_| Play::Slow(Duration::from_millis(5), Box::new(Play::Reply(dx("flu")))));
    let extra = "price = { input = 0.0, output = 1000.0 }\nmax_tokens = 100\nconcurrency = 8\nstructured = 'none'";
    let mut client = Client::new(extra);
    // A call costs at most 0.1, and less: the server counts its tokens.
    client.budget = Some(0.5);
    let models = client.open(&server, Mode::Live);
    let all = || (0..200).map(|n| ask(&n.to_string())).collect();
    let error = answers(&models, all()).unwrap_err();
    assert_eq!(code_of(&error), Code::Interrupted);
    assert!(error.to_string().contains("larger --budget"), "{error}");
    let counts = models.counts();
    assert!(counts.spent <= 0.5 && counts.spent > 0.35, "{counts:?}");
    drop(models);
    let paid = server.total().received;
    assert_eq!(paid, counts.requests);
    // The rest, without a limit: nothing is paid twice.
    client.budget = None;
    assert_eq!(answers(&client.open(&server, Mode::Live), all()).unwrap().len(), 200);
    assert_eq!(server.total().received, 200);
    let spending = ReplyStore::new(client.replies()).spending("p", None).unwrap();
    assert_eq!(spending[0].requests, 200);
    // A model without a price cannot be held to a budget.
    let mut client = Client::new("");
    client.budget = Some(1.0);
    assert!(client.try_open("http://127.0.0.1:1/v1", Mode::Live).err().unwrap().to_string().contains("has no price"));
}

#[test]
fn places_in_flight_hold_over_all_threads_and_interruption_waits_for_what_is_paid() {
    let server = FakeModel::start(|_| Play::Slow(Duration::from_millis(50), Box::new(Play::Reply(dx("flu")))));
    let client = Client::new("concurrency = 5\nstructured = 'none'");
    let models = client.open(&server, Mode::Live);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let models = &models;
            scope.spawn(move || answers(models, (0..20).map(|n| ask(&format!("{thread} {n}"))).collect()).unwrap());
        }
    });
    assert_eq!((server.total().received, server.peak_in_flight()), (60, 5));

    let interrupted = client.interrupted.clone();
    let asks = (0..1000).map(|n| ask(&format!("more {n}"))).collect();
    let result = std::thread::scope(|scope| {
        let running = scope.spawn(|| answers(&models, asks));
        std::thread::sleep(Duration::from_millis(200));
        interrupted.store(true, Ordering::SeqCst);
        running.join().unwrap()
    });
    assert_eq!(code_of(&result.unwrap_err()), Code::Interrupted);
    let spending = ReplyStore::new(client.replies()).spending("p", None).unwrap();
    assert_eq!(spending[0].by_state.keys().collect::<Vec<_>>(), ["complete"], "{spending:?}");
    assert_eq!(spending[0].requests, server.total().received);
}

/// Case prv-01: a credentialed record goes to no endpoint but those that its rights allow, and the refusal comes before any
/// byte.
#[test]
fn prv_01_rights_decide_before_any_byte_is_sent() {
    let server = FakeModel::start(|_| Play::Reply(dx("flu")));
    let rights = |access, llm_egress| Rights { access, llm_egress, ..Rights::unknown() };
    let credentialed = || ask_with("planted sentence", rights(Access::Credentialed, LlmEgress::Local));
    let attested = "egress = 'zdr'\nattestation = { date = '2026-01-31', by = 'A. Curator', document = 'contract 7' }";
    for extra in ["egress = 'public'", attested] {
        let client = Client::new(extra);
        let line = answers(&client.open(&server, Mode::Live), vec![credentialed()]).unwrap().remove(0);
        assert!(line.starts_with("egress_refused: its source may be sent to local models, and model m is"), "{line}");
        assert_eq!((server.total().received, server.connections()), (0, 0));
        assert_eq!(files_with(client.folder.path(), b"planted"), Vec::<PathBuf>::new());
    }
    let client = Client::new("");
    let models = client.open(&server, Mode::Live);
    assert_eq!(answers(&models, vec![credentialed()]).unwrap(), ["accepted {\"dx\":\"flu\"}"]);
    assert_eq!(server.total().received, 1);
    // Its reply stands apart from those that may leave.
    drop(models);
    assert!(client.replies().join("credentialed.sqlite").is_file() && !client.replies().join("open.sqlite").exists());
    // An address that is not this machine is no local model.
    let error = client.try_open("https://api.example.com/v1", Mode::Live).err().unwrap();
    assert!(error.to_string().contains("api.example.com is not this machine"), "{error}");
}

#[test]
fn a_server_that_echoes_the_key_leaves_no_trace_of_it() {
    let server = FakeModel::start(|request: &Request| {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        Play::Reply(dx(&key))
    });
    let client = Client::new("structured = 'none'\ntries = 2");
    let models = client.open(&server, Mode::Live);
    let line = answer(&models, "why?");
    assert!(line.starts_with("no_reply") && line.contains("held the key") && !line.contains(KEY), "{line}");
    drop(models);
    assert_eq!(files_with(client.folder.path(), KEY.as_bytes()), Vec::<PathBuf>::new());
}

#[test]
fn images_are_sent_in_both_protocols() {
    for provider in ["openai", "anthropic"] {
        let server = FakeModel::start(|_| Play::Reply(dx("seen")));
        let client = Client::new(&format!("provider = '{provider}'\nstructured = 'none'"));
        let path = client.folder.path().join("x.png");
        std::fs::write(&path, b"\x89PNG pixels").unwrap();
        let hash = Hash::of(b"\x89PNG pixels");
        let mut ask = ask("What is this?");
        let image = Part::Image { media: MediaRef(hash.clone()), media_type: "image/png".to_owned() };
        ask.call.messages[0].parts.push(image);
        ask.images.insert(hash, path.clone());
        let again = Ask {
            call: ask.call.clone(),
            rights: ask.rights.clone(),
            origin: ask.origin.clone(),
            images: ask.images.clone(),
        };
        assert_eq!(answers(&client.open(&server, Mode::Live), vec![ask]).unwrap(), ["accepted {\"dx\":\"seen\"}"]);
        assert_eq!(server.requests()[0].images(), ["data:image/png;base64,iVBORyBwaXhlbHM="]);
        // A file that is no longer the image is not sent.
        std::fs::write(&path, b"other").unwrap();
        let error = answers(&client.open(&server, Mode::Record), vec![again]).unwrap_err();
        assert!(error.to_string().contains("is not the image"), "{error}");
    }
}

#[test]
fn calls_go_out_and_come_back_as_batch_files() {
    for (provider, results) in [
        (
            "openai",
            (|key: &str, text: &str| {
                let choice = json!({"finish_reason": "stop", "message": {"role": "assistant", "content": text}});
                json!({"id": "r", "custom_id": key, "error": null, "response": {"status_code": 200, "body":
                    {"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}}})
            }) as fn(&str, &str) -> Value,
        ),
        ("anthropic", |key, text| {
            json!({"custom_id": key, "result": {"type": "succeeded", "message": {"stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 5, "output_tokens": 2}}}})
        }),
    ] {
        let server = FakeModel::start(|_| Play::Status(500));
        let client = Client::new(&format!("provider = '{provider}'"));
        let models = client.open(&server, Mode::Live);
        let closed = || ask_with("closed", Rights { llm_egress: LlmEgress::None, ..open_rights() });
        let asks = || vec![ask("one"), ask("two"), ask("three"), closed()];
        let mut exported = Exported::default();
        let lines: Vec<Value> = asks()
            .iter()
            .filter_map(|ask| models.batch_line(ask, &mut exported).unwrap())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        assert_eq!(exported, Exported { written: 3, stored: 0, refused: 1 });
        let ids: Vec<&str> = lines.iter().map(|line| line["custom_id"].as_str().unwrap()).collect();
        let body = if provider == "openai" { &lines[0]["body"] } else { &lines[0]["params"] };
        assert!(body["messages"].to_string().contains("one") && ids[0].len() == 64, "{body}");
        // One is answered, one went wrong, one is missing, and one is somebody else's.
        let wrong =
            json!({"custom_id": ids[1], "response": {"status_code": 500, "body": {}}, "result": {"type": "errored"}});
        let file =
            [results(ids[0], &dx("flu")), wrong, results(&"0".repeat(64), &dx("no"))].map(|line| line.to_string());
        let known: BTreeMap<_, _> = asks()
            .iter()
            .filter_map(|ask| models.known_call(ask).unwrap())
            .map(|call| (call.key.to_string(), call))
            .collect();
        let import = || models.import_batch("results.jsonl", file.join("\n").as_bytes(), &known).unwrap();
        let imported = import();
        assert_eq!((imported.added, imported.known, imported.without_reply, imported.unknown), (1, 0, 1, 1));
        assert_eq!((import().added, import().known), (0, 1));
        assert_eq!(answers(&models, vec![ask("one")]).unwrap(), ["accepted {\"dx\":\"flu\"}"]);
        assert_eq!(server.total().received, 0);
        let error = models.import_batch("r", &b"{\"custom_id\": \"x\"}\nnot json\n"[..], &known).unwrap_err();
        assert!(error.to_string().starts_with("r line 2: not a line of results"), "{error}");
    }
}

#[test]
fn a_batch_file_holds_nothing_that_a_provider_may_not_keep() {
    let server = FakeModel::start(|_| Play::Status(500));
    let zdr = Rights { llm_egress: LlmEgress::Zdr, ..open_rights() };
    let attested = "egress = 'zdr'\nattestation = { date = '2026-01-31', by = 'A. Curator', document = 'contract 7' }";
    for (extra, written) in [(attested, 0), ("egress = 'local'", 1)] {
        let client = Client::new(extra);
        let models = client.open(&server, Mode::Live);
        let mut exported = Exported::default();
        let line = models.batch_line(&ask_with("why?", zdr.clone()), &mut exported).unwrap();
        assert_eq!(
            (line.is_some(), exported.written, exported.refused),
            (written == 1, written, 1 - written),
            "{extra}"
        );
        assert_eq!(models.known_call(&ask_with("why?", zdr.clone())).unwrap().is_some(), written == 1);
    }
}

#[test]
fn a_paid_reply_is_found_when_the_rights_of_its_source_have_changed() {
    let server = in_turn(vec![Play::Reply(dx("A")), Play::Reply(dx("B"))]);
    let client = Client::new("");
    let with = |access| vec![ask_with("why?", Rights { access, ..open_rights() })];
    for access in [Access::Credentialed, Access::Open, Access::Registered] {
        let models = client.open(&server, Mode::Live);
        assert_eq!(answers(&models, with(access)).unwrap(), ["accepted {\"dx\":\"A\"}"]);
    }
    assert_eq!(server.total().received, 1);
}

#[test]
fn a_reply_that_was_stored_is_read_anew() {
    let server = FakeModel::start(|_| Play::Reply("{\"dx\": 1}".to_owned()));
    let client = Client::new("answers = 1\nstructured = 'none'");
    let line = answer(&client.open(&server, Mode::Live), "why?");
    assert!(line.starts_with("reply_invalid: schema_mismatch"), "{line}");
    // What is stored is the bytes of the reply, not the verdict: without the mark the same bytes are read again.
    let models = client.open(&server, Mode::Live);
    let file = client.folder.path().join("replies.jsonl");
    let key = casemill::service::model::call_key(
        &pipeline::parse("p.toml", "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\nprovider = 'openai'\nmodel = 'fake'\nbase_url_env = 'URL'\nkey_env = 'KEY'\negress = 'local'\nanswers = 1\nstructured = 'none'").unwrap().models["m"],
        &ask("why?").call,
    )
    .unwrap();
    assert_eq!(models.store().export([key.clone()], |_| true, &file).unwrap(), (1, 0));
    let body = json!({"choices": [{"finish_reason": "stop", "message": {"content": dx("flu")}}]}).to_string();
    let mut line: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    line["sha256"] = Hash::of(body.as_bytes()).to_string().into();
    line["body"] = body.into();
    std::fs::write(&file, format!("{line}\n")).unwrap();
    assert_eq!(models.store().import(&file, false).unwrap().added, 1);
    assert!(models.stored(&key).unwrap().is_none(), "nobody has read it yet");
    assert_eq!(answer(&models, "why?"), "accepted {\"dx\":\"flu\"}");
    assert!(models.stored(&key).unwrap().is_some());
    assert_eq!(models.store().replies(Shelf::Open, &key).unwrap().len(), 2);
    assert_eq!(server.total().received, 1);
}
