//! Money: what a request costs at most, what it did cost, and a limit that is never passed.

use crate::config::ModelConfig;
use crate::error::Fault;
use crate::stage::{Call, Part};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Tokens that an image is taken for where nobody counts: the largest that either protocol makes of one.
const IMAGE_TOKENS: u64 = 1600;

/// Tokens of a call's messages at most, without a tokeniser: one for every byte, as a tokeniser of bytes can come to, and
/// some for the frame. English has a quarter of it.
pub fn input_tokens_at_most(call: &Call) -> u64 {
    let mut tokens = 64;
    if let Some(format) = &call.format {
        tokens += format.schema.to_string().len() as u64;
    }
    for part in call.messages.iter().flat_map(|message| &message.parts) {
        tokens += match part {
            Part::Text(text) => text.len() as u64 + 8,
            Part::Image { .. } => IMAGE_TOKENS,
        };
    }
    tokens
}

/// Money for tokens; 0 for a model without a price.
pub fn cost(model: &ModelConfig, input_tokens: u64, output_tokens: u64) -> f64 {
    model
        .price
        .map_or(0.0, |price| (input_tokens as f64 * price.input + output_tokens as f64 * price.output) / 1_000_000.0)
}

/// What may still be spent by this run.
pub struct Budget {
    limit: f64,
    state: Mutex<State>,
    settled: Notify,
}

#[derive(Default)]
struct State {
    spent: f64,
    reserved: f64,
    n_reserved: u64,
}

/// Money set aside for a request on its way. Dropped unsettled it counts as spent: the request may have been paid for.
pub struct Reservation<'a> {
    budget: &'a Budget,
    cost: f64,
}

impl Budget {
    pub fn new(limit: f64) -> Self {
        Self { limit, state: Mutex::default(), settled: Notify::new() }
    }

    /// Sets money aside. Waits as long as requests on their way may turn out cheaper; fails when nothing is left.
    pub async fn reserve(&self, cost: f64) -> Result<Reservation<'_>, Fault> {
        loop {
            let settled = self.settled.notified();
            {
                let mut state = self.state();
                if state.spent + state.reserved + cost <= self.limit {
                    state.reserved += cost;
                    state.n_reserved += 1;
                    return Ok(Reservation { budget: self, cost });
                }
                if state.n_reserved == 0 || state.spent + cost > self.limit {
                    return Err(Fault::Stopped(format!(
                        "the budget of {} does not allow another request: {:.4} is spent and the next may cost {cost:.4}; every reply is kept, run again with a larger --budget to go on",
                        self.limit, state.spent
                    )));
                }
            }
            settled.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// What it did cost.
    pub fn settle(mut self, cost: f64) {
        let reserved = std::mem::replace(&mut self.cost, 0.0);
        let mut state = self.budget.state();
        state.reserved -= reserved;
        state.spent += cost;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.budget.state();
            state.reserved -= self.cost;
            state.spent += self.cost;
            state.n_reserved = state.n_reserved.saturating_sub(1);
            if state.n_reserved == 0 {
                // No rest of rounding stays.
                state.reserved = 0.0;
            }
        }
        self.budget.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_waits_for_what_is_on_its_way_and_is_never_passed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let budget = Budget::new(1.0);
            let first = budget.reserve(0.6).await.unwrap();
            let second = budget.reserve(0.6);
            let settle = async {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                first.settle(0.1);
            };
            let (second, ()) = futures_util::future::join(second, settle).await;
            drop(second.unwrap());
            // 0.1 is spent, and 0.6 because nobody said what became of the second.
            let refused = budget.reserve(0.4).await.err().unwrap().to_string();
            assert!(refused.contains("0.7000 is spent"), "{refused}");
            assert!(budget.reserve(0.3).await.is_ok());
        });
    }
}
