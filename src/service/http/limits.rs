//! Holding calls back: places in flight, requests and tokens a minute, pauses, and giving up.

use super::clock::{now, sleep_until, timeout_at};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as Turnstile, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// How far requests may run ahead of their even spread, where the spread is finer than this: timers are no finer than a
/// millisecond, so without it a fast rate would never be reached.
const AHEAD: Duration = Duration::from_millis(100);

/// What a service allows. A limit of 0 counts as 1: nothing would ever be let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Requests that are under way at the same time.
    pub concurrency: usize,
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u64>,
}

/// Lets requests through, in the order in which they came, as fast as [`LimitSettings`] allow.
///
/// In *every* 60 seconds, not only from one full minute to the next, no more requests and no more tokens are let through
/// than allowed. Requests are also spread evenly over the minute (but for the tenth of a second that they may run
/// ahead), since services count in shorter windows too. Tokens are not: a minute's worth may go as fast as the requests
/// that carry them.
///
/// A clone is the same limiter.
#[derive(Clone)]
pub struct Limiter(Arc<Shared>);

struct Shared {
    places: Arc<Semaphore>,
    requests_per_minute: Option<u32>,
    tokens_per_minute: Option<u64>,
    /// Held by the one caller that waits for the rates; the others stand behind it.
    turnstile: Turnstile<()>,
    rates: Mutex<Rates>,
    /// Tells that caller that the tokens in use have changed.
    settled: Notify,
}

/// What was let through in the last minute; of each rate only if it is limited.
struct Rates {
    requests: VecDeque<Instant>,
    /// When the next request is due in the even spread, or may run ahead to.
    due: Instant,
    uses: VecDeque<Use>,
    /// The number of the first of `uses`, counted from the first one ever.
    first_use: u64,
    /// The sum of `uses`.
    tokens: u64,
    paused_until: Instant,
}

struct Use {
    at: Instant,
    tokens: u64,
}

impl Use {
    /// When these tokens are no longer in use, if `most` are allowed a minute.
    fn ends(&self, most: u64) -> Instant {
        let minutes = u32::try_from(self.tokens.div_ceil(most).max(1)).unwrap_or(u32::MAX);
        self.at + MINUTE.saturating_mul(minutes)
    }
}

/// A place in flight; dropping it frees the place.
#[must_use = "dropping it frees the place"]
pub struct Permit {
    shared: Arc<Shared>,
    /// The number of its use, and the tokens counted for it so far.
    number: u64,
    tokens: u64,
    // `None` only if the semaphore was closed, and nothing closes it.
    _place: Option<OwnedSemaphorePermit>,
}

impl Limiter {
    pub fn new(settings: LimitSettings) -> Self {
        let now = now();
        Self(Arc::new(Shared {
            places: Arc::new(Semaphore::new(settings.concurrency.clamp(1, Semaphore::MAX_PERMITS))),
            requests_per_minute: settings.requests_per_minute.map(|most| most.max(1)),
            tokens_per_minute: settings.tokens_per_minute.map(|most| most.max(1)),
            turnstile: Turnstile::new(()),
            rates: Mutex::new(Rates {
                requests: VecDeque::new(),
                due: now,
                uses: VecDeque::new(),
                first_use: 0,
                tokens: 0,
                paused_until: now,
            }),
            settled: Notify::new(),
        }))
    }

    /// Waits for a place in flight, then for the end of a pause, the request rate and the rate of `tokens` (what the
    /// request is expected to use; of no effect without a token rate). A request of more tokens than a minute allows
    /// waits until none are in use, and then takes up as many minutes as it needs.
    ///
    /// Dropping the future gives up the place in the queue.
    pub async fn acquire(&self, tokens: u64) -> Permit {
        let shared = &self.0;
        let place = Arc::clone(&shared.places).acquire_owned().await.ok();
        let _first_in_line = shared.turnstile.lock().await;
        loop {
            let admission = shared.admit(tokens);
            match admission {
                Ok(number) => return Permit { shared: Arc::clone(shared), number, tokens, _place: place },
                Err(ready) if shared.tokens_per_minute.is_none() => sleep_until(ready).await,
                // Whichever comes first; then all is weighed anew.
                Err(ready) => drop(timeout_at(ready, shared.settled.notified()).await),
            }
        }
    }

    /// Lets nobody through before this much time is over. Of several pauses the one that ends last counts.
    pub fn pause(&self, time: Duration) {
        if let Some(until) = now().checked_add(time) {
            let mut rates = self.0.rates();
            rates.paused_until = rates.paused_until.max(until);
        }
    }
}

impl Permit {
    /// Counts the tokens that were used instead of those expected, from when the request was let through. If that was
    /// too long ago to count there is nothing to give back, but what was used beyond the expected counts from now.
    pub fn settle(&mut self, used: u64) {
        if let Some(most) = self.shared.tokens_per_minute {
            self.shared.rates().settle(self.number, self.tokens, used, most);
            self.shared.settled.notify_one();
        }
        self.tokens = used;
    }
}

impl Shared {
    fn rates(&self) -> MutexGuard<'_, Rates> {
        // Each change is whole before anything can panic.
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request through now and numbers its use, or says when to ask again.
    fn admit(&self, tokens: u64) -> Result<u64, Instant> {
        let mut rates = self.rates();
        let now = now();
        let mut ready = rates.paused_until;
        if let Some(most) = self.requests_per_minute {
            ready = ready.max(rates.request_ready(most, now));
        }
        if let Some(most) = self.tokens_per_minute {
            ready = ready.max(rates.tokens_ready(tokens, most, now));
        }
        if ready > now {
            return Err(ready);
        }
        if let Some(most) = self.requests_per_minute {
            rates.count_request(most, now);
        }
        Ok(if self.tokens_per_minute.is_some() { rates.count_tokens(tokens, now) } else { 0 })
    }
}

/// Time between requests in the even spread, and how far they may run ahead of it.
fn spread(most: u32) -> (Duration, Duration) {
    let between = MINUTE / most;
    (between, if between < AHEAD { AHEAD } else { Duration::ZERO })
}

impl Rates {
    fn request_ready(&mut self, most: u32, now: Instant) -> Instant {
        while self.requests.front().is_some_and(|at| *at + MINUTE <= now) {
            self.requests.pop_front();
        }
        let counted = self.requests.len().checked_sub(most as usize).and_then(|nth| self.requests.get(nth));
        counted.map_or(self.due, |at| self.due.max(*at + MINUTE))
    }

    fn count_request(&mut self, most: u32, now: Instant) {
        let (between, ahead) = spread(most);
        let next = (self.due + ahead).max(now) + between;
        self.due = next.checked_sub(ahead).unwrap_or(next);
        self.requests.push_back(now);
    }

    /// Forgets the uses that are over.
    fn end_uses(&mut self, most: u64, now: Instant) {
        while let Some(used) = self.uses.front()
            && used.ends(most) <= now
        {
            self.tokens = self.tokens.saturating_sub(used.tokens);
            self.uses.pop_front();
            self.first_use += 1;
        }
    }

    fn tokens_ready(&mut self, tokens: u64, most: u64, now: Instant) -> Instant {
        self.end_uses(most, now);
        let (mut left, mut ready) = (self.tokens, now);
        for used in &self.uses {
            if left == 0 || left.saturating_add(tokens) <= most {
                break;
            }
            left = left.saturating_sub(used.tokens);
            ready = ready.max(used.ends(most));
        }
        ready
    }

    fn count_tokens(&mut self, tokens: u64, now: Instant) -> u64 {
        self.tokens = self.tokens.saturating_add(tokens);
        self.uses.push_back(Use { at: now, tokens });
        self.first_use + (self.uses.len() as u64 - 1)
    }

    fn settle(&mut self, number: u64, counted: u64, used: u64, most: u64) {
        let now = now();
        self.end_uses(most, now);
        let place = number.checked_sub(self.first_use).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.uses.get_mut(place)) {
            Some(entry) => {
                self.tokens = self.tokens.saturating_sub(entry.tokens).saturating_add(used);
                entry.tokens = used;
            }
            None if used > counted => _ = self.count_tokens(used - counted, now),
            None => {}
        }
    }
}

/// Opens after so many failures in a row, over all callers: then it is the service that fails, not single requests.
pub struct CircuitBreaker {
    threshold: u32,
    failures: AtomicU32,
}

impl CircuitBreaker {
    /// A threshold of 0 counts as 1.
    pub fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), failures: AtomicU32::new(0) }
    }

    /// A success closes it.
    pub fn record(&self, success: bool) {
        if success {
            self.failures.store(0, Ordering::Relaxed);
        } else {
            // The largest number of failures stays.
            let _ = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1));
        }
    }

    pub fn is_open(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= self.threshold
    }
}
