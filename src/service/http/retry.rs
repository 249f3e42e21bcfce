//! What is worth another try, and how long to wait before it.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// How long to wait between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure, at most; it doubles with each further one.
    pub first: Duration,
    /// Where the doubling ends.
    pub longest: Duration,
    /// The most of what a server asks for that is believed.
    pub longest_asked: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            longest_asked: Duration::from_secs(10 * 60),
        }
    }
}

impl Backoff {
    /// The wait after failure number `attempt`, counted from 0. `random`, in 0..=1, places it.
    ///
    /// Without `retry_after` it is between half of the doubled wait and all of it. With `retry_after` it is never less
    /// than that (or than `longest_asked`, if smaller): the same doubled wait, or a tenth of what was asked if that is
    /// more, is spread on top, so that those who were sent away together do not come back together.
    pub fn wait(&self, attempt: u32, retry_after: Option<Duration>, random: f64) -> Duration {
        let random = if random.is_finite() { random.clamp(0.0, 1.0) } else { 1.0 };
        let doubled = self.first.saturating_mul(2u32.saturating_pow(attempt)).min(self.longest);
        let own = doubled.mul_f64(0.5 + 0.5 * random);
        match retry_after {
            None => own,
            Some(asked) => {
                let asked = asked.min(self.longest_asked);
                own.max(asked.saturating_add(doubled.max(asked / 10).mul_f64(random)))
            }
        }
    }
}

/// A server that asks for more than a month means something else, such as a date in seconds since 1970.
const ABSURD: Duration = Duration::from_secs(31 * 24 * 3600);

/// How long the server asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date (any of its three
/// forms). `None` when the header is missing, garbled, in the past or more than 31 days off.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let wait = text("retry-after-ms").and_then(|text| decimal(text, 0.001)).or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        decimal(text, 1.0).or_else(|| httpdate::parse_http_date(text).ok()?.duration_since(now).ok())
    });
    wait.filter(|wait| *wait <= ABSURD)
}

/// Digits with at most one point, in `unit` seconds. Neither signs nor exponents nor names of numbers.
fn decimal(text: &str, unit: f64) -> Option<Duration> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plain {
        return None;
    }
    Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok()
}

/// What a status code means for the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// 2xx.
    Success,
    /// The same request may succeed later: 408, 409 (a model service's lock), 425, 429 and 5xx, so 529 too.
    Retry,
    /// Everything else; the same request would fail again.
    Fatal,
}

pub fn class_of_status(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Success,
        408 | 409 | 425 | 429 | 500..=599 => StatusClass::Retry,
        _ => StatusClass::Fatal,
    }
}

/// Whether the same request may succeed later: no connection, a time-out, a connection that ended before the answer did.
/// Not a request that could not be built or was redirected too often.
pub fn is_retryable(error: &reqwest::Error) -> bool {
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        return false;
    }
    match error.status() {
        Some(status) => class_of_status(status.as_u16()) == StatusClass::Retry,
        // An error while decoding is one of the body below it: casemill asks for no encoding.
        None => error.is_timeout() || error.is_connect() || error.is_request() || error.is_body() || error.is_decode(),
    }
}
