//! The model client: calls a second against a server with 20 ms of latency and 64 in flight, replays a second from the
//! store, and memory over 100 000 replies. Run alone with `cargo bench --bench models`.

#[path = "../tests/it/fake_model.rs"]
mod fake_model;

use casemill::config::pipeline;
use casemill::record::{Access, LlmEgress, RecordId, Rights};
use casemill::service::http::retry::Backoff;
use casemill::service::model::{Mode, Models, Options};
use casemill::stage::{Ask, Call, Message, ModelService, Origin, Part, ReplyFormat, Role};
use casemill::store::replies::ReplyStore;
use fake_model::{FakeModel, Play};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LATENCY: Duration = Duration::from_millis(20);
const IN_FLIGHT: usize = 64;
const N_CALLS: usize = 20_000;
const N_REPLAYS: usize = 100_000;
/// About as long as the prompt of `extract_slots`, in characters.
const PROMPT: usize = 4_000;

fn open(server: &FakeModel, folder: &Path, mode: Mode) -> Models {
    let text = format!(
        "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\nprovider = 'openai'\nmodel = 'fake'\n\
         base_url_env = 'URL'\negress = 'local'\nconcurrency = {IN_FLIGHT}\n"
    );
    let models = pipeline::parse("p.toml", &text).expect("a pipeline").models;
    let options = Options { mode, sends: true, budget: None, interrupted: Arc::default(), backoff: Backoff::default() };
    let store = Arc::new(ReplyStore::new(folder.to_owned()));
    Models::open(&models, &["m".to_owned()], store, options, |_| Some(server.base_url())).expect("models")
}

fn asks(format: &Arc<ReplyFormat>, n: usize) -> impl Iterator<Item = anyhow::Result<Ask>> + '_ {
    let filler = "The patient has had a fever for three days. ".repeat(PROMPT / 44);
    (0..n).map(move |number| {
        let text = format!("{filler}Record {number}.");
        let message = Message { role: Role::User, parts: vec![Part::Text(text)] };
        Ok(Ask {
            call: Call { model: "m".to_owned(), messages: vec![message], format: Some(format.clone()), sample: 0 },
            rights: Rights { access: Access::Open, llm_egress: LlmEgress::Any, ..Rights::unknown() },
            origin: Origin {
                pipeline: "p".to_owned(),
                node: "n".to_owned(),
                record_id: RecordId::native("s", &number.to_string()),
            },
            images: BTreeMap::new(),
        })
    })
}

/// Calls a second; every one must be accepted.
fn run(models: &Models, format: &Arc<ReplyFormat>, n: usize, mut each: impl FnMut(usize)) -> f64 {
    let started = Instant::now();
    let mut n_accepted = 0;
    models
        .ask(&mut asks(format, n), &mut |answer| {
            assert!(answer.is_ok(), "every call is answered");
            n_accepted += 1;
            each(n_accepted);
            Ok(())
        })
        .expect("answers");
    assert_eq!(n_accepted, n);
    n as f64 / started.elapsed().as_secs_f64()
}

/// Resident memory of this process in MB; 0 where the system does not say.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

fn main() {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let reply = json!({"findings": ["fever for three days", "cough", "no rash"], "diagnosis": "influenza"}).to_string();
    let schema = json!({
        "type": "object",
        "properties": {"findings": {"type": "array", "items": {"type": "string"}}, "diagnosis": {"type": "string"}},
        "required": ["findings", "diagnosis"],
        "additionalProperties": false,
    });
    let format = ReplyFormat::new("answer", schema).expect("a schema");
    let folder = tempfile::tempdir().expect("a folder");
    let content = reply.clone();
    let server = FakeModel::start(move |_| Play::Slow(LATENCY, Box::new(Play::Reply(content.clone())))).without_log();
    let calls = run(&open(&server, folder.path(), Mode::Live), &format, N_CALLS, |_| ());
    let most = IN_FLIGHT as f64 / LATENCY.as_secs_f64();
    println!(
        "{cores} cores; {N_CALLS} calls, {IN_FLIGHT} in flight, 20 ms latency: {calls:.0} calls a second ({most:.0} is the most there can be; the server runs beside it)"
    );

    // The rest without latency, to fill the store.
    let fast = FakeModel::start(move |_| Play::Reply(reply.clone())).without_log();
    let filling = run(&open(&fast, folder.path(), Mode::Live), &format, N_REPLAYS, |_| ());
    println!("{N_REPLAYS} calls without latency: {filling:.0} calls a second");
    let replay = open(&fast, folder.path(), Mode::Replay);
    let mut memory = BTreeMap::new();
    let replays = run(&replay, &format, N_REPLAYS, |n| {
        if n % (N_REPLAYS / 4) == 0 {
            memory.insert(n, resident());
        }
    });
    let memory: Vec<String> = memory.iter().map(|(n, megabytes)| format!("{n}: {megabytes:.0} MB")).collect();
    println!("{N_REPLAYS} replays: {replays:.0} a second on one thread; memory after {}", memory.join(", "));
}
