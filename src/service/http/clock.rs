//! The clock of [`super::limits`]: that of tokio, and in tests one that jumps from timer to timer.

#[cfg(not(test))]
mod real {
    use tokio::time::Instant;

    pub fn now() -> Instant {
        Instant::now()
    }

    pub use tokio::time::sleep_until;

    /// The outcome, or `None` if it was not there in time.
    pub async fn timeout_at<T>(at: Instant, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(at, work).await.ok()
    }
}

#[cfg(not(test))]
pub use real::{now, sleep_until, timeout_at};

#[cfg(test)]
pub use jumping::{now, sleep_until, timeout_at};

/// Within [`jumping::run`] time stands still as long as anything can go on, and then jumps to the next timer. Elsewhere it
/// is tokio's.
#[cfg(test)]
pub mod jumping {
    use futures_util::future::{Either, select};
    use std::cell::RefCell;
    use std::pin::pin;
    use std::task::{Poll, Waker};
    use std::time::Duration;
    use tokio::time::Instant;

    struct Clock {
        now: Instant,
        timers: Vec<(Instant, Waker)>,
    }

    thread_local! {
        static CLOCK: RefCell<Option<Clock>> = const { RefCell::new(None) };
    }

    /// Turns that tasks get before the clock jumps: more than any chain of wake-ups in these tests is long.
    const TURNS: usize = 64;

    pub fn now() -> Instant {
        CLOCK.with_borrow(|clock| clock.as_ref().map_or_else(Instant::now, |clock| clock.now))
    }

    pub fn since(at: Instant) -> Duration {
        now() - at
    }

    pub async fn sleep(time: Duration) {
        sleep_until(now() + time).await;
    }

    pub async fn sleep_until(at: Instant) {
        if CLOCK.with_borrow(Option::is_none) {
            return tokio::time::sleep_until(at).await;
        }
        std::future::poll_fn(|context| {
            CLOCK.with_borrow_mut(|clock| match clock {
                Some(clock) if clock.now < at => {
                    clock.timers.push((at, context.waker().clone()));
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            })
        })
        .await;
    }

    pub async fn timeout_at<T>(at: Instant, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), pin!(sleep_until(at))).await {
            Either::Left((outcome, _)) => Some(outcome),
            Either::Right(_) => None,
        }
    }

    /// Runs with this clock, on one thread.
    pub fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        CLOCK.set(Some(Clock { now: Instant::now(), timers: Vec::new() }));
        let jumps = async {
            loop {
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
                CLOCK.with_borrow_mut(|clock| {
                    let Some(clock) = clock else { return };
                    let Some(next) = clock.timers.iter().map(|(at, _)| *at).min() else { return };
                    clock.now = clock.now.max(next);
                    let now = clock.now;
                    clock.timers.extract_if(.., |(at, _)| *at <= now).for_each(|(_, waker)| waker.wake());
                });
            }
        };
        let outcome = runtime.block_on(async {
            match select(pin!(work), pin!(jumps)).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((never, _)) => never,
            }
        });
        CLOCK.set(None);
        outcome
    }
}
