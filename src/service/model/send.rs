//! Sending one call: places, rates, tries, and the way a server wants its replies structured.

use super::Models;
use super::budget::{cost, input_tokens_at_most};
use super::endpoint::Endpoint;
use super::governance::Cleared;
use super::protocol::{self, Attempt, ErrorKind};
use crate::config::{ModelConfig, Structured};
use crate::error::{input, usage};
use crate::record::Hash;
use crate::service::http::limits::{CircuitBreaker, LimitSettings, Limiter};
use crate::service::http::retry::{StatusClass, class_of_status, retry_after};
use crate::service::http::{BodyError, read_capped, shown_error};
use crate::store::fs;
use crate::store::replies::{Finished, ReplyState, Sent, Shelf, StoredReply};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Largest answer.
const LARGEST_REPLY: u64 = 16 << 20;
/// Largest image of a prompt.
pub(super) const LARGEST_IMAGE: u64 = 20 << 20;
/// Failures in a row, over all calls, after which a provider counts as down.
const DOWN_AFTER: u32 = 24;
/// How often those who wait look whether they still should.
const LOOK: Duration = Duration::from_millis(200);

/// Sends the calls of one model, from all nodes.
pub(super) struct Sender {
    config: ModelConfig,
    endpoint: Endpoint,
    limiter: Limiter,
    breaker: CircuitBreaker,
    /// What the last failure was.
    last_trouble: Mutex<String>,
    /// How the server structures replies, once it has done so.
    structured: OnceLock<Structured>,
    /// Held by the call that finds it out; the others wait for it.
    probe: tokio::sync::Mutex<()>,
}

pub(super) enum Outcome {
    Reply(StoredReply),
    /// After all tries; what the last one met.
    NoReply(String),
}

/// What one request met.
enum Met {
    Reply(StoredReply),
    /// Another try may go well, after this long if the server said so.
    Trouble {
        what: String,
        wait: Option<Duration>,
        server_error: bool,
    },
    /// The server does not structure replies this way, or says it does not.
    NotStructured(String),
}

/// An answer on the wire.
struct Answered {
    status: u16,
    wait: Option<Duration>,
    body: Vec<u8>,
}

impl Sender {
    pub fn open(config: &ModelConfig, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        Ok(Self {
            endpoint: Endpoint::open(config, variable)?,
            limiter: Limiter::new(LimitSettings {
                concurrency: config.concurrency,
                requests_per_minute: config.requests_per_minute,
                tokens_per_minute: config.tokens_per_minute,
            }),
            breaker: CircuitBreaker::new(DOWN_AFTER),
            last_trouble: Mutex::default(),
            structured: OnceLock::new(),
            probe: tokio::sync::Mutex::new(()),
            config: config.clone(),
        })
    }

    /// Sends a call until there is a reply, in the store, of whatever state; or its tries are used up.
    pub async fn send(
        &self,
        models: &Models,
        key: &Hash,
        call: &Cleared<'_>,
        max_tokens: u32,
        stopping: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let images = self.images(call)?;
        let mut what = String::new();
        // Without a schema there is nothing to find out. The first call holds the probe until it knows; the others wait.
        let mut probe = None;
        if call.call().format.is_some() && self.structured.get().is_none() {
            probe = Some(self.probe.lock().await).filter(|_| self.structured.get().is_none());
        }
        let probing = probe.is_some();
        let mut structured = self.structured.get().copied().unwrap_or(self.config.structured);
        let mut n_server_errors = 0;
        let mut tried = 0;
        while tried < self.config.tries {
            let attempt = Attempt { structured, max_tokens };
            match self.send_once(models, key, call, &images, attempt, probing, stopping).await? {
                Met::Reply(stored) => {
                    if call.call().format.is_some() && (200..300).contains(&stored.status) {
                        let _ = self.structured.set(structured);
                    }
                    return Ok(Outcome::Reply(stored));
                }
                Met::NotStructured(why) => match weaker(structured) {
                    Some(next) if probing => structured = next,
                    _ => return Err(self.give_up(&why)),
                },
                Met::Trouble { what: met, wait, server_error } => {
                    tried += 1;
                    what = met;
                    n_server_errors += u32::from(server_error);
                    if probing && server_error && n_server_errors == 2 {
                        // Some servers answer 500 to a structure that they do not know.
                        n_server_errors = 0;
                        structured = weaker(structured).unwrap_or(self.config.structured);
                        continue;
                    }
                    if tried < self.config.tries {
                        self.wait(models, models.options.backoff.wait(tried - 1, wait, fastrand::f64()), stopping)
                            .await?;
                    }
                }
            }
        }
        Ok(Outcome::NoReply(format!("no reply after {tried} tries; the last: {what}")))
    }

    /// One request: money and a place for it, the row in the store, the answer, the row completed.
    #[expect(clippy::too_many_arguments, reason = "one request is all of these")]
    async fn send_once(
        &self,
        models: &Models,
        key: &Hash,
        call: &Cleared<'_>,
        images: &BTreeMap<Hash, Vec<u8>>,
        attempt: Attempt,
        probing: bool,
        stopping: &AtomicBool,
    ) -> anyhow::Result<Met> {
        models.check_stopped(stopping)?;
        if self.breaker.is_open() {
            return Err(input(format!(
                "model {} does not answer: {DOWN_AFTER} requests in a row failed, the last with: {}; every reply so far is kept, run again when it is back",
                self.config.name,
                self.last_trouble.lock().unwrap_or_else(PoisonError::into_inner)
            )));
        }
        let body = serde_json::to_vec(&protocol::request(&self.config, call.call(), images, attempt)?)?;
        let input_at_most = input_tokens_at_most(call.call());
        let cost_at_most = cost(&self.config, input_at_most, u64::from(attempt.max_tokens));
        let reservation = match &models.budget {
            Some(budget) => Some(budget.reserve(cost_at_most).await?),
            None => None,
        };
        let acquire = self.limiter.acquire(input_at_most / 4 + u64::from(attempt.max_tokens));
        let mut permit = self.or_stopped(models, acquire, stopping).await?;
        let origin = &call.ask().origin;
        let shelf = Shelf::of(call.ask().rights.access);
        let id = models
            .store
            .sent(Sent {
                shelf,
                key: key.clone(),
                pipeline: origin.pipeline.clone(),
                node: origin.node.clone(),
                record_id: origin.record_id.to_string(),
                model: format!("{}/{}", self.config.provider.as_str(), self.config.model),
                structured: if call.call().format.is_some() { attempt.structured.as_str() } else { "text" },
                max_tokens: attempt.max_tokens,
                cost_at_most,
            })
            .await?;
        let started = Instant::now();
        let answered = self.exchange(body).await;
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (finished, met) = self.judge(call, answered, probing, latency_ms, input_at_most, cost_at_most);
        permit.settle(finished.input_tokens + finished.output_tokens);
        if let Ok(Met::Trouble { what, wait, .. }) = &met {
            self.last_trouble.lock().unwrap_or_else(PoisonError::into_inner).clone_from(what);
            if let Some(wait) = wait {
                self.limiter.pause((*wait).min(models.options.backoff.longest_asked));
            }
        }
        // The place is free for the next request while this one is written.
        drop(permit);
        if let Some(reservation) = reservation {
            reservation.settle(finished.cost);
        }
        models.count(|counts| {
            counts.requests += 1;
            counts.input_tokens += finished.input_tokens;
            counts.output_tokens += finished.output_tokens;
            counts.spent += finished.cost;
        });
        models.store.finished(shelf, id, finished).await?;
        let mut met = met?;
        if let Met::Reply(stored) = &mut met {
            stored.id = id;
        }
        Ok(met)
    }

    /// Sends the bytes and reads the answer, all within the model's time.
    async fn exchange(&self, body: Vec<u8>) -> Result<Answered, String> {
        let seconds = self.config.timeout_seconds;
        let exchange = async {
            let request = self.endpoint.client.post(self.endpoint.url.clone()).headers(self.endpoint.headers.clone());
            let response = request.body(body).send().await.map_err(shown_error)?;
            let status = response.status().as_u16();
            let wait = retry_after(response.headers(), SystemTime::now());
            let body = read_capped(response, LARGEST_REPLY).await.map_err(|error| match error {
                BodyError::TooLarge { .. } => format!("an answer of more than {LARGEST_REPLY} bytes"),
                other => other.to_string(),
            })?;
            Ok(Answered { status, wait, body })
        };
        tokio::time::timeout(Duration::from_secs(seconds), exchange)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {seconds} s")))
    }

    /// What an answer is, for the store and for the call.
    fn judge(
        &self,
        call: &Cleared<'_>,
        answered: Result<Answered, String>,
        probing: bool,
        latency_ms: u64,
        input_at_most: u64,
        cost_at_most: f64,
    ) -> (Finished, anyhow::Result<Met>) {
        let failed = |status: Option<u16>, detail: String, cost: f64| Finished {
            state: ReplyState::Failed,
            detail,
            status,
            latency_ms,
            input_tokens: 0,
            output_tokens: 0,
            cost,
            body: None,
        };
        let answered = match answered {
            Ok(answered) => answered,
            Err(what) => {
                self.breaker.record(false);
                let what = self.endpoint.redact(&what);
                let met = Met::Trouble { what: what.clone(), wait: None, server_error: false };
                // Whether the server went on to the end, and wants money for it, is not known.
                return (failed(None, what, cost_at_most), Ok(met));
            }
        };
        let Answered { status, wait, body } = answered;
        if !(200..300).contains(&status) {
            let document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let shown = self.endpoint.redact(&protocol::error_text(status, &body, call.may_quote()));
            let is_structured = call.call().format.is_some();
            match protocol::error_kind(status, &document) {
                ErrorKind::Filtered | ErrorKind::TooLong => {}
                ErrorKind::PerhapsStructured if is_structured && probing => {
                    self.breaker.record(true);
                    return (failed(Some(status), shown.clone(), 0.0), Ok(Met::NotStructured(shown)));
                }
                kind @ (ErrorKind::Quota | ErrorKind::Fatal | ErrorKind::PerhapsStructured)
                    if kind == ErrorKind::Quota || class_of_status(status) == StatusClass::Fatal =>
                {
                    let error = self.give_up(&shown);
                    return (failed(Some(status), shown, 0.0), Err(error));
                }
                _ => {
                    // 429 says that the provider is there.
                    self.breaker.record(status == 429);
                    let met = Met::Trouble { what: shown.clone(), wait, server_error: status >= 500 };
                    return (failed(Some(status), shown, 0.0), Ok(met));
                }
            }
        }
        if self.endpoint.key.as_ref().is_some_and(|key| contains(&body, key.reveal().as_bytes())) {
            self.breaker.record(false);
            let what = format!("status {status}, and the answer held the key: it is not kept");
            let met = Met::Trouble { what: what.clone(), wait: None, server_error: false };
            return (failed(Some(status), what, cost_at_most), Ok(met));
        }
        self.breaker.record(true);
        let parsed = protocol::parse(self.config.provider, status, &body);
        let usage = parsed.usage.unwrap_or(protocol::Usage {
            // Nobody counted: at most what was sent, and what came back.
            input_tokens: input_at_most,
            output_tokens: body.len() as u64 / 2,
        });
        let billed = (200..300).contains(&status);
        let cost = if billed { cost(&self.config, usage.input_tokens, usage.output_tokens) } else { 0.0 };
        let stored = StoredReply {
            id: 0,
            accepted: false,
            status,
            sha256: Hash::of(&body),
            body: body.clone(),
            model: self.config.model.clone(),
            latency_ms,
            cost,
        };
        let finished = Finished {
            state: parsed.state,
            detail: parsed.detail,
            status: Some(status),
            latency_ms,
            input_tokens: if billed { usage.input_tokens } else { 0 },
            output_tokens: if billed { usage.output_tokens } else { 0 },
            cost,
            body: Some(body),
        };
        (finished, Ok(Met::Reply(stored)))
    }

    /// An error that every call would meet.
    fn give_up(&self, what: &str) -> anyhow::Error {
        usage(format!(
            "model {} ({}) cannot be used: {what}; every reply so far is kept",
            self.config.name,
            crate::service::http::shown_url(&self.endpoint.url)
        ))
    }

    fn images(&self, call: &Cleared<'_>) -> anyhow::Result<BTreeMap<Hash, Vec<u8>>> {
        let mut images = BTreeMap::new();
        for (hash, path) in &call.ask().images {
            let bytes = fs::read_limited(path, LARGEST_IMAGE)?;
            anyhow::ensure!(Hash::of(&bytes) == *hash, "{} is not the image {hash} any more", path.display());
            images.insert(hash.clone(), bytes);
        }
        Ok(images)
    }

    /// Waits before the next try, as long as there may be one.
    async fn wait(&self, models: &Models, time: Duration, stopping: &AtomicBool) -> anyhow::Result<()> {
        self.or_stopped(models, tokio::time::sleep(time), stopping).await
    }

    /// The outcome of something that is worth waiting for only while requests may leave.
    async fn or_stopped<T>(
        &self,
        models: &Models,
        work: impl Future<Output = T>,
        stopping: &AtomicBool,
    ) -> anyhow::Result<T> {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(LOOK, work.as_mut()).await {
                Ok(result) => return Ok(result),
                Err(_) => models.check_stopped(stopping)?,
            }
        }
    }
}

/// The next way to have a reply structured, for a server that does not know this one.
fn weaker(structured: Structured) -> Option<Structured> {
    match structured {
        Structured::JsonSchema => Some(Structured::JsonObject),
        Structured::JsonObject => Some(Structured::None),
        Structured::None => None,
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window == part)
}
