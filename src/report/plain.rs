//! Plain lines on standard error, for logs.

use crate::engine::{Event, EventSink};

pub struct PlainLog;

impl EventSink for PlainLog {
    fn take(&mut self, event: &Event) {
        // Every shard in a log is noise; every tenth is a sign of life.
        if let Event::ShardFinished { index, .. } = event
            && index % 10 != 9
        {
            return;
        }
        if let Some(line) = super::line(event) {
            eprintln!("{line}");
        }
    }
}
