//! Asking for one page at a time: only from hosts that are allowed, with waits, further tries, and an end when a host keeps
//! failing.

use super::plan::{Missing, Told};
use crate::config::source::AjcrConfig;
use crate::error::{Fault, usage};
use crate::service::fetch::FetchOptions;
use crate::service::http::limits::{CircuitBreaker, LimitSettings, Limiter};
use crate::service::http::retry::{self, StatusClass};
use crate::service::http::{self, BodyError, ClientOptions, USER_AGENT, shown_error, shown_url};
use anyhow::Context;
use futures_util::future::{Either, select};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, Url};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

/// An answer with status 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Where the last redirect led.
    pub(super) url: Url,
    pub(super) body: Vec<u8>,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Missing,
    pub(super) detail: String,
}

impl Refusal {
    pub(super) fn new(reason: Missing, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// How one try ended without an answer.
enum Trouble {
    Again { why: String, asked: Option<Duration> },
    Never(Refusal),
}

impl Trouble {
    fn never(reason: Missing, detail: impl Into<String>) -> Self {
        Self::Never(Refusal::new(reason, detail))
    }

    fn again(why: impl Into<String>) -> Self {
        Self::Again { why: why.into(), asked: None }
    }
}

struct Host {
    limiter: Limiter,
    breaker: CircuitBreaker,
}

/// The client and what is known of each host. It blocks; not for use inside an asynchronous runtime.
pub(super) struct Asker<'a> {
    config: &'a AjcrConfig,
    options: &'a FetchOptions<'a>,
    client: Client,
    headers: HeaderMap,
    hosts: RefCell<BTreeMap<String, Rc<Host>>>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

const REDIRECTS: usize = 8;

impl<'a> Asker<'a> {
    /// # Errors
    /// A contact that cannot stand in a header, and a system that refuses threads or certificates.
    pub(super) fn new(
        config: &'a AjcrConfig,
        options: &'a FetchOptions<'a>,
        contact: Option<&str>,
    ) -> anyhow::Result<Self> {
        // Redirects are followed here, where each one is checked.
        let client = http::client(&ClientOptions { redirects: 0, ..options.client.clone() })?;
        let agent = contact.map_or_else(|| USER_AGENT.to_owned(), |contact| format!("{USER_AGENT} (mailto:{contact})"));
        let agent = HeaderValue::from_str(&agent)
            .map_err(|_| usage(format!("{} holds no address that can be sent", config.email_variable)))?;
        let headers = [
            (header::USER_AGENT, agent),
            (header::ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml")),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        ];
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting to fetch")?;
        let (hosts, headers) = (RefCell::default(), headers.into_iter().collect());
        Ok(Self { config, options, client, headers, hosts, runtime: Some(runtime) })
    }

    /// The page at an address. `tell` is told of waits.
    ///
    /// # Errors
    /// The outer one for an interruption alone; what servers do wrong is in the inner one.
    pub(super) fn page(&self, url: &Url, tell: &dyn Fn(Told<'_>)) -> anyhow::Result<Result<Answer, Refusal>> {
        let Some(runtime) = &self.runtime else { anyhow::bail!("fetching has ended") };
        let stopped = async {
            while !self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        runtime.block_on(async {
            match select(pin!(self.persist(url, tell)), pin!(stopped)).await {
                Either::Left((result, _)) => Ok(result),
                Either::Right(_) => Err(Fault::Interrupted.into()),
            }
        })
    }

    /// Tries until it succeeds, is in vain, or failed as often as the options allow.
    async fn persist(&self, url: &Url, tell: &dyn Fn(Told<'_>)) -> Result<Answer, Refusal> {
        let mut failures = 0;
        loop {
            let (why, asked) = match self.attempt(url).await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Never(refusal)) => return Err(refusal),
                Err(Trouble::Again { why, asked }) => (why, asked),
            };
            failures += 1;
            if failures >= self.options.attempts.max(1) {
                return Err(Refusal::new(Missing::Failed, format!("{why} (tried {failures} times)")));
            }
            let wait = self.options.backoff.wait(failures - 1, asked, fastrand::f64());
            tell(Told::Waiting { url: &shown_url(url), why: &why, wait });
            tokio::time::sleep(wait).await;
        }
    }

    fn host(&self, name: &str) -> Rc<Host> {
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.entry(name.to_owned()).or_insert_with(|| {
            Rc::new(Host {
                limiter: Limiter::new(LimitSettings {
                    concurrency: 1,
                    requests_per_minute: Some(self.config.requests_per_minute),
                    tokens_per_minute: None,
                }),
                breaker: CircuitBreaker::new(self.options.give_up_after),
            })
        });
        Rc::clone(host)
    }

    /// One request with its redirects.
    async fn attempt(&self, origin: &Url) -> Result<Answer, Trouble> {
        let mut url = origin.clone();
        for _ in 0..=REDIRECTS {
            let name = self.allowed(&url).map_err(|why| Trouble::never(Missing::HostNotAllowed, why))?.to_owned();
            let host = self.host(&name);
            if host.breaker.is_open() {
                let most = self.options.give_up_after;
                return Err(Trouble::never(Missing::NotAsked, format!("{name} failed {most} times in a row")));
            }
            let _permit = host.limiter.acquire(0).await;
            let response = match self.client.get(url.clone()).headers(self.headers.clone()).send().await {
                Ok(response) => response,
                Err(error) => {
                    host.breaker.record(false);
                    let again = retry::is_retryable(&error);
                    let why = shown_error(error);
                    return Err(if again { Trouble::again(why) } else { Trouble::never(Missing::Failed, why) });
                }
            };
            let status = response.status();
            if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
                && let Some(location) = response.headers().get(header::LOCATION)
            {
                host.breaker.record(true);
                let next = location.to_str().ok().and_then(|location| url.join(location).ok());
                let next =
                    next.ok_or_else(|| Trouble::never(Missing::Failed, "redirected to what is not an address"))?;
                if url.scheme() == "https" && next.scheme() != "https" {
                    let why = format!("redirected from https to {}", shown_url(&next));
                    return Err(Trouble::never(Missing::HostNotAllowed, why));
                }
                url = next;
                continue;
            }
            let why = format!("{name} answered {status}");
            match (retry::class_of_status(status.as_u16()), status.as_u16()) {
                (StatusClass::Retry, _) => {
                    host.breaker.record(false);
                    let asked = retry::retry_after(response.headers(), SystemTime::now());
                    if let Some(asked) = asked {
                        host.limiter.pause(asked.min(self.options.backoff.longest_asked));
                    }
                    return Err(Trouble::Again { why, asked });
                }
                (StatusClass::Success, 200) => {}
                (_, code) => {
                    host.breaker.record(true);
                    return Err(Trouble::never(
                        match code {
                            404 | 410 => Missing::NotFound,
                            401 | 403 | 451 => Missing::Refused,
                            _ => Missing::Failed,
                        },
                        why,
                    ));
                }
            }
            let body = http::read_capped(response, self.config.max_bytes_per_page).await;
            host.breaker.record(!matches!(body, Err(BodyError::Cut { .. })));
            return match body {
                Ok(body) => Ok(Answer { url, body }),
                Err(error @ BodyError::TooLarge { .. }) => Err(Trouble::never(Missing::TooLarge, error.to_string())),
                Err(error @ BodyError::Cut { .. }) => Err(Trouble::again(error.to_string())),
            };
        }
        Err(Trouble::never(Missing::Failed, format!("redirected more than {REDIRECTS} times")))
    }

    /// The host of an address, if it may be asked.
    ///
    /// # Errors
    /// Why not.
    fn allowed<'b>(&self, url: &'b Url) -> Result<&'b str, String> {
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
            return Err(format!("{} is not an address of a page", shown_url(url)));
        }
        if !self.config.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
            return Err(format!("{} is at none of the hosts that ajcr.hosts names", shown_url(url)));
        }
        Ok(host)
    }
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        // A name that is being looked up is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
