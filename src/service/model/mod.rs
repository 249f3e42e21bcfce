//! Models: the client behind [`ModelService`], with its store of replies.
//!
//! ```text
//! Ask ─ governance ─ store of replies ─┬─ accepted ─────────────────────────────────────────────► Reply
//!                                      └─ miss ─ budget ─ limits ─ send ─ store ─ protocol ─ reading ─┘
//! ```
//!
//! Every answer goes through the store: what a reply means is decided by reading the stored bytes, so a changed reader
//! costs no call.

pub mod batch;
pub mod budget;
pub mod endpoint;
pub mod estimate;
pub mod governance;
pub mod protocol;
pub mod reading;
mod send;

use crate::config::{ModelConfig, Provider};
use crate::error::{Fault, input, usage};
use crate::record::Hash;
use crate::service::http::retry::Backoff;
use crate::stage::{
    Ask, Call, CallCounts, CallResult, EGRESS_REFUSED, Failure, ModelService, NO_REPLY, Reply, ReplyFormat,
};
use crate::store::replies::{ReplyState, ReplyStore, Shelf, StoredReply};
use anyhow::{Context, bail};
use budget::Budget;
use futures_util::StreamExt;
use governance::Cleared;
use protocol::Parsed;
use reading::ReplySchema;
use send::{Outcome, Sender};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How models are used (`--llm`), but for `off`, which has no service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Takes stored replies and asks for the others.
    Live,
    /// Asks for every one.
    Record,
    /// Never asks; a reply that is not stored is an error.
    Replay,
}

impl Mode {
    pub const NAMES: [&str; 4] = ["off", "live", "record", "replay"];
}

pub struct Options {
    pub mode: Mode,
    /// Whether requests may leave at all: commands that only look need no address and no key.
    pub sends: bool,
    /// Money that this run may spend.
    pub budget: Option<f64>,
    /// No request leaves once it is set; those on their way are waited for.
    pub interrupted: Arc<AtomicBool>,
    /// Between the tries of one request.
    pub backoff: Backoff,
}

/// The models of a pipeline.
pub struct Models {
    models: BTreeMap<String, Model>,
    store: Arc<ReplyStore>,
    options: Options,
    budget: Option<Budget>,
    counts: Mutex<CallCounts>,
    schemas: Mutex<HashMap<Hash, Arc<ReplySchema>>>,
    /// Calls on their way, by key: the same call is not sent twice at once.
    turns: Mutex<HashMap<Hash, Weak<tokio::sync::Mutex<()>>>>,
    runtime: tokio::runtime::Runtime,
}

struct Model {
    config: ModelConfig,
    /// `None` in a replay, and for models that nobody asks.
    sender: Option<Sender>,
}

/// What a stored reply says to a call.
enum Read {
    Accepted(Reply),
    Failed { reason: &'static str, detail: String, is_final: bool, truncated: bool },
}

impl Models {
    /// `used` are the models that nodes name: their addresses and keys must be in the environment, unless nothing will
    /// be asked.
    pub fn open(
        configs: &BTreeMap<String, ModelConfig>,
        used: &[String],
        store: Arc<ReplyStore>,
        options: Options,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut models = BTreeMap::new();
        for (name, config) in configs {
            let asks = options.sends
                && options.mode != Mode::Replay
                && config.provider != Provider::Rules
                && used.contains(name);
            if asks && options.budget.is_some() && config.price.is_none() {
                return Err(usage(format!(
                    "--budget: model {name} has no price; give it price = {{ input = …, output = … }}, money per million tokens (0 for a model of one's own)"
                )));
            }
            let sender = if asks { Some(Sender::open(config, &variable)?) } else { None };
            models.insert(name.clone(), Model { config: config.clone(), sender });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("models")
            .enable_all()
            .build()
            .context("starting the threads of the model client")?;
        Ok(Self {
            models,
            store,
            budget: options.budget.map(Budget::new),
            options,
            counts: Mutex::default(),
            schemas: Mutex::default(),
            turns: Mutex::default(),
            runtime,
        })
    }

    pub fn store(&self) -> &ReplyStore {
        &self.store
    }

    /// Whether stored replies are left aside.
    pub fn asks_anew(&self) -> bool {
        self.options.mode == Mode::Record
    }

    fn model(&self, name: &str) -> anyhow::Result<&Model> {
        self.models.get(name).with_context(|| format!("there is no model `{name}`"))
    }

    fn count(&self, change: impl FnOnce(&mut CallCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn schema(&self, format: &ReplyFormat) -> anyhow::Result<Arc<ReplySchema>> {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = schemas.get(&format.sha256) {
            return Ok(schema.clone());
        }
        let schema = Arc::new(ReplySchema::compile(&format.schema)?);
        schemas.insert(format.sha256.clone(), schema.clone());
        Ok(schema)
    }

    /// The turn of a key: who holds it may send the call.
    fn turn(&self, key: &Hash) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() > 4096 {
            turns.retain(|_, turn| turn.strong_count() > 0);
        }
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        turns.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }

    /// Answers one call. An error concerns every call.
    async fn answer(&self, ask: Ask, stopping: &AtomicBool) -> anyhow::Result<CallResult> {
        let model = self.model(&ask.call.model)?;
        let key = call_key(&model.config, &ask.call)?;
        let name = full_name(&model.config);
        let fail = |reason, detail| Err(Failure { key: key.clone(), model: name.clone(), reason, detail });
        let cleared = match Cleared::check(&model.config, &ask) {
            Ok(cleared) => cleared,
            Err(why) => return Ok(fail(EGRESS_REFUSED, why)),
        };
        let turn = self.turn(&key);
        let _turn = turn.lock().await;
        let shelf = Shelf::of(ask.rights.access);
        let mut n_answers = 0;
        let mut n_truncated = 0;
        if self.options.mode != Mode::Record {
            let mut newest_failure = None;
            // A reply to the same call is looked for everywhere: the rights of a source may have changed since.
            for place in std::iter::once(shelf).chain(Shelf::ALL.into_iter().filter(|other| *other != shelf)) {
                for stored in self.store.replies(place, &key)? {
                    match self.read(&model.config, &key, &ask.call, &stored)? {
                        Read::Accepted(reply) => {
                            if !stored.accepted {
                                self.store.accept(place, &key, stored.id).await?;
                            }
                            self.count(|counts| counts.replayed += 1);
                            return Ok(Ok(reply));
                        }
                        Read::Failed { reason, detail, is_final, truncated } => {
                            n_answers += 1;
                            n_truncated += u32::from(truncated);
                            newest_failure.get_or_insert((reason, detail, is_final));
                        }
                    }
                }
            }
            if let Some((reason, detail, is_final)) = newest_failure
                && (is_final || n_answers >= model.config.answers || self.options.mode == Mode::Replay)
            {
                self.count(|counts| counts.failed += 1);
                return Ok(fail(reason, detail));
            }
        }
        let Some(sender) = &model.sender else {
            return Err(input(format!(
                "no reply is stored for call {} of record {} (node {}, model {}): import the replies that belong to this build (casemill replies import FILE), or use --llm live",
                key.short(),
                ask.origin.record_id,
                ask.origin.node,
                model.config.name
            )));
        };
        loop {
            let max_tokens = raised_limit(&model.config, n_truncated);
            let stored = match sender.send(self, &key, &cleared, max_tokens, stopping).await? {
                Outcome::Reply(stored) => stored,
                Outcome::NoReply(detail) => {
                    self.count(|counts| counts.failed += 1);
                    return Ok(fail(NO_REPLY, detail));
                }
            };
            n_answers += 1;
            match self.read(&model.config, &key, &ask.call, &stored)? {
                Read::Accepted(reply) => {
                    self.store.accept(shelf, &key, stored.id).await?;
                    self.count(|counts| counts.answered += 1);
                    return Ok(Ok(reply));
                }
                Read::Failed { reason, detail, is_final, truncated } => {
                    let at_ceiling = truncated && max_tokens >= model.config.max_tokens_ceiling;
                    n_truncated += u32::from(truncated);
                    if is_final || at_ceiling || n_answers >= model.config.answers {
                        self.count(|counts| counts.failed += 1);
                        return Ok(fail(reason, detail));
                    }
                }
            }
        }
    }

    /// What the bytes of a reply say to a call: protocol, then text, then schema.
    fn read(&self, model: &ModelConfig, key: &Hash, call: &Call, stored: &StoredReply) -> anyhow::Result<Read> {
        let parsed = protocol::parse(model.provider, stored.status, &stored.body);
        let reason = match parsed.state {
            ReplyState::Complete => return self.read_text(model, key, call, stored, &parsed),
            ReplyState::Truncated => "reply_truncated",
            ReplyState::Refused => "reply_refused",
            ReplyState::Empty => "reply_empty",
            ReplyState::Invalid | ReplyState::Failed | ReplyState::Sent | ReplyState::Lost => "reply_invalid",
        };
        let is_error = !(200..300).contains(&stored.status);
        let mut detail = parsed.detail;
        if let Some(repetition) = reading::repetition(&parsed.text) {
            detail += &format!("; it ends in a loop of {} rounds", repetition.times);
        }
        Ok(Read::Failed {
            reason,
            detail,
            is_final: is_error || parsed.state == ReplyState::Refused,
            truncated: parsed.state == ReplyState::Truncated,
        })
    }

    fn read_text(
        &self,
        model: &ModelConfig,
        key: &Hash,
        call: &Call,
        stored: &StoredReply,
        parsed: &Parsed,
    ) -> anyhow::Result<Read> {
        let (value, repairs) = match &call.format {
            None => (serde_json::Value::String(parsed.text.clone()), Vec::new()),
            Some(format) => match reading::read(&parsed.text, &*self.schema(format)?) {
                Ok(reading) => {
                    (reading.value, reading.repairs.into_iter().map(|repair| repair.as_str().to_owned()).collect())
                }
                Err(error) => {
                    return Ok(Read::Failed {
                        reason: "reply_invalid",
                        detail: error.to_string(),
                        is_final: false,
                        truncated: false,
                    });
                }
            },
        };
        let model = full_name(model);
        Ok(Read::Accepted(Reply { value, key: key.clone(), sha256: stored.sha256.clone(), model, repairs }))
    }
}

/// `provider/model`, as records name it.
pub fn full_name(config: &ModelConfig) -> String {
    format!("{}/{}", config.provider.as_str(), config.model)
}

/// Every truncated answer doubles the limit of the next one.
fn raised_limit(config: &ModelConfig, n_truncated: u32) -> u32 {
    config.max_tokens.saturating_mul(1u32.checked_shl(n_truncated).unwrap_or(u32::MAX)).min(config.max_tokens_ceiling)
}

/// The key of a call in the store of replies (SPEC section 7): the hash of the canonical JSON of provider, model, parameters,
/// messages, schema (by its hash) and sample number. No code version, no address, no name of the pipeline is in it.
pub fn call_key(model: &ModelConfig, call: &Call) -> anyhow::Result<Hash> {
    #[derive(serde::Serialize)]
    struct Key<'a> {
        provider: &'a str,
        model: &'a str,
        parameters: serde_json::Value,
        messages: &'a [crate::stage::Message],
        schema: Option<&'a Hash>,
        sample: u32,
    }
    Hash::of_json(&Key {
        provider: model.provider.as_str(),
        model: &model.model,
        parameters: model.parameters(),
        messages: &call.messages,
        schema: call.format.as_ref().map(|format| &format.sha256),
        sample: call.sample,
    })
}

impl ModelService for Models {
    fn ask(
        &self,
        asks: &mut dyn Iterator<Item = anyhow::Result<Ask>>,
        take: &mut dyn FnMut(CallResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // Answers come in order, so a slow one holds the others up: several times what may be in flight is under way.
        let window = self.models.values().map(|model| model.config.concurrency).max().unwrap_or(1).saturating_mul(4);
        let stopping = AtomicBool::new(false);
        let work = async {
            let wanted = asks.take_while(|_| !stopping.load(Ordering::Relaxed));
            let mut answers = futures_util::stream::iter(wanted)
                .map(|ask| async { self.answer(ask?, &stopping).await })
                .buffered(window.clamp(1, 4096));
            let mut first_error = None;
            while let Some(answer) = answers.next().await {
                if let Err(error) = answer.and_then(&mut *take) {
                    // What is on its way is paid for: it is waited for and stored.
                    stopping.store(true, Ordering::Relaxed);
                    first_error.get_or_insert(error);
                }
            }
            first_error.map_or(Ok(()), Err)
        };
        self.runtime.handle().block_on(work)
    }

    fn stored(&self, key: &Hash) -> anyhow::Result<Option<Hash>> {
        self.store.accepted(key)
    }

    fn identity(&self, model: &str) -> anyhow::Result<serde_json::Value> {
        let config = &self.model(model)?.config;
        Ok(serde_json::json!({
            "provider": config.provider.as_str(),
            "model": config.model,
            "parameters": config.parameters(),
            // It decides which records are refused.
            "egress": config.egress,
        }))
    }

    fn may_ask(&self) -> bool {
        self.options.mode != Mode::Replay
    }

    fn counts(&self) -> CallCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Models {
    /// Whether requests may still leave.
    fn check_stopped(&self, stopping: &AtomicBool) -> anyhow::Result<()> {
        if self.options.interrupted.load(Ordering::Relaxed) {
            return Err(Fault::Interrupted.into());
        }
        if stopping.load(Ordering::Relaxed) {
            bail!("another call failed");
        }
        Ok(())
    }
}
