//! Batch files of providers: requests out as one file, results in. The file goes to the provider by the curator's hand, so
//! writing one is sending: the same rule clears every call.

use super::governance::Cleared;
use super::protocol::{self, Attempt};
use super::{Models, call_key};
use crate::config::{ModelConfig, Provider};
use crate::error::{input, usage};
use crate::record::{Access, Hash};
use crate::stage::{Ask, ModelService, Origin};
use crate::store::fs;
use crate::store::replies::{Finished, Sent, Shelf};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};

/// Longest line of a file of results.
const LONGEST_LINE: u64 = 64 << 20;

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    pub written: u64,
    /// Their reply is stored already.
    pub stored: u64,
    /// Their record may not be sent to the model.
    pub refused: u64,
}

/// What an import read.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BatchImported {
    pub added: u64,
    /// The same bytes were stored already.
    pub known: u64,
    /// Without a reply: errors, expired and cancelled requests. They are asked again.
    pub without_reply: u64,
    /// No call of the node has their id.
    pub unknown: u64,
}

/// What an import must know of a call: not its messages.
pub struct KnownCall {
    pub key: Hash,
    pub model: String,
    pub access: Access,
    pub origin: Origin,
}

impl Models {
    /// What an import must know of a call; `None` for one that may not be sent.
    pub fn known_call(&self, ask: &Ask) -> anyhow::Result<Option<KnownCall>> {
        let config = &self.model(&ask.call.model)?.config;
        if Cleared::check_for_batch(config, ask).is_err() {
            return Ok(None);
        }
        Ok(Some(KnownCall {
            key: call_key(config, &ask.call)?,
            model: ask.call.model.clone(),
            access: ask.rights.access,
            origin: ask.origin.clone(),
        }))
    }

    /// The line of one call, in the format of the model's provider; `None` if it needs none.
    pub fn batch_line(&self, ask: &Ask, exported: &mut Exported) -> anyhow::Result<Option<String>> {
        let config = &self.model(&ask.call.model)?.config;
        let Ok(cleared) = Cleared::check_for_batch(config, ask) else {
            exported.refused += 1;
            return Ok(None);
        };
        let key = call_key(config, &ask.call)?;
        if self.stored(&key)?.is_some() {
            exported.stored += 1;
            return Ok(None);
        }
        let mut images = BTreeMap::new();
        for (hash, path) in &ask.images {
            images.insert(hash.clone(), fs::read_limited(path, super::send::LARGEST_IMAGE)?);
        }
        let attempt = Attempt { structured: config.structured, max_tokens: config.max_tokens };
        let body = protocol::request(config, cleared.call(), &images, attempt)?;
        exported.written += 1;
        let line = match config.provider {
            Provider::Anthropic => json!({"custom_id": key, "params": body}),
            Provider::Openai => {
                json!({"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body})
            }
            Provider::Rules => return Err(usage(format!("model {} is rules: it has no calls", config.name))),
        };
        Ok(Some(line.to_string()))
    }

    /// Reads a provider's results. `known` are the calls of the node by key: only their results are taken, and each goes to
    /// the shelf of its record.
    pub fn import_batch(
        &self,
        name: &str,
        mut results: impl BufRead,
        known: &BTreeMap<String, KnownCall>,
    ) -> anyhow::Result<BatchImported> {
        let mut imported = BatchImported::default();
        let mut number = 0u64;
        loop {
            number += 1;
            let mut line = Vec::new();
            let n = Read::by_ref(&mut results).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
            if n == 0 {
                return Ok(imported);
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let place = || format!("{name} line {number}");
            let row: Value = serde_json::from_slice(&line)
                .map_err(|error| input(format!("{}: not a line of results: {error}", place())))?;
            let id = row.get("custom_id").and_then(Value::as_str);
            let id = id.ok_or_else(|| input(format!("{}: it has no custom_id", place())))?;
            let Some(call) = known.get(id) else {
                imported.unknown += 1;
                continue;
            };
            let config = &self.model(&call.model)?.config;
            let Some((status, body)) = result_body(config, &row) else {
                imported.without_reply += 1;
                continue;
            };
            let shelf = Shelf::of(call.access);
            let sha256 = Hash::of(&body);
            if self.store.replies(shelf, &call.key)?.iter().any(|stored| stored.sha256 == sha256) {
                imported.known += 1;
                continue;
            }
            self.runtime.handle().block_on(self.store_result(config, call, status, body)).with_context(place)?;
            imported.added += 1;
        }
    }

    async fn store_result(
        &self,
        config: &ModelConfig,
        call: &KnownCall,
        status: u16,
        body: Vec<u8>,
    ) -> anyhow::Result<()> {
        let parsed = protocol::parse(config.provider, status, &body);
        let usage = parsed.usage.unwrap_or_default();
        let shelf = Shelf::of(call.access);
        let cost = super::budget::cost(config, usage.input_tokens, usage.output_tokens);
        let sent = Sent {
            shelf,
            key: call.key.clone(),
            pipeline: call.origin.pipeline.clone(),
            node: call.origin.node.clone(),
            record_id: call.origin.record_id.to_string(),
            model: format!("{}/{}", config.provider.as_str(), config.model),
            structured: config.structured.as_str(),
            max_tokens: config.max_tokens,
            cost_at_most: cost,
        };
        let id = self.store.sent(sent).await?;
        let finished = Finished {
            state: parsed.state,
            detail: parsed.detail,
            status: Some(status),
            latency_ms: 0,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost,
            body: Some(body),
        };
        self.store.finished(shelf, id, finished).await
    }
}

/// Status and body of a result, as the server would have answered; `None` if the provider gave no reply.
fn result_body(config: &ModelConfig, row: &Value) -> Option<(u16, Vec<u8>)> {
    let (status, body) = match config.provider {
        Provider::Anthropic => {
            let result = row.get("result")?;
            if result.get("type").and_then(Value::as_str) != Some("succeeded") {
                return None;
            }
            (200, result.get("message")?)
        }
        Provider::Openai | Provider::Rules => {
            let response = row.get("response").filter(|response| response.is_object())?;
            let status = u16::try_from(response.get("status_code")?.as_u64()?).ok()?;
            let body = response.get("body")?;
            let is_reply = (200..300).contains(&status)
                || matches!(
                    protocol::error_kind(status, body),
                    protocol::ErrorKind::Filtered | protocol::ErrorKind::TooLong
                );
            if !is_reply {
                return None;
            }
            (status, body)
        }
    };
    Some((status, serde_json::to_vec(body).ok()?))
}
