//! Plain lines on standard error, for logs.

use crate::engine::{Event, EventSink};
use std::time::{Duration, Instant};

/// How often a running model node says how its calls stand.
const CALLS_SHOWN: Duration = Duration::from_secs(15);

#[derive(Default)]
pub struct PlainLog {
    calls_shown: Option<Instant>,
}

impl EventSink for PlainLog {
    fn take(&mut self, event: &Event) {
        // Every shard in a log is noise; every tenth is a sign of life.
        if let Event::ShardFinished { index, .. } = event
            && index % 10 != 9
        {
            return;
        }
        if let Event::Calls { last: false, .. } = event {
            if self.calls_shown.is_some_and(|at| at.elapsed() < CALLS_SHOWN) {
                return;
            }
            self.calls_shown = Some(Instant::now());
        }
        if let Some(line) = super::line(event) {
            eprintln!("{line}");
        }
    }
}
