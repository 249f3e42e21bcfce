//! What a run tells about itself. Consumers (terminal, log lines, run log) render it; the engine never prints.

use crate::record::ledger::SourceCounts;
use crate::stage::CallCounts;
use serde::Serialize;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    BuildStarted {
        pipeline: String,
        jobs: usize,
    },
    SourceFound {
        source: String,
        n_files: usize,
        bytes: u64,
        access: &'static str,
        licence: String,
    },
    SourceAbsent {
        source: String,
    },
    /// Something a curator should know that does not stop the run.
    Warning {
        message: String,
    },
    NodeFresh {
        node: String,
    },
    NodeAbsent {
        node: String,
        why: String,
    },
    NodeStarted {
        node: String,
        stage: &'static str,
        why: Vec<String>,
    },
    /// A reader divides its files, or a table stage decides.
    NodePhase {
        node: String,
        phase: &'static str,
    },
    ShardsPlanned {
        node: String,
        n_shards: u32,
        n_done: u32,
    },
    ShardFinished {
        node: String,
        index: u32,
        rows: u64,
        n_shards: u32,
    },
    /// How the calls of a model node stand, while it runs and when it ends.
    Calls {
        node: String,
        counts: CallCounts,
        /// The node has ended.
        last: bool,
    },
    /// What a model said to questions with known answers.
    Controls {
        node: String,
        model: String,
        n_right: u64,
        n: u64,
    },
    /// What a model said to the records of a node, by verdict.
    Judgements(super::judgements::VerdictCounts),
    NodeFinished {
        node: String,
        counts: SourceCounts,
        n_shards: u32,
        bytes: u64,
    },
    /// Records of one file were removed as copies of records of another.
    Overlap(super::overlap::Overlap),
    NodeFailed {
        node: String,
        error: String,
    },
    BuildFinished {
        n_run: usize,
        n_fresh: usize,
        n_quarantined: u64,
    },
    Interrupted,
}

/// Takes events; called from one thread at a time.
pub trait EventSink: Send {
    fn take(&mut self, event: &Event);
}

impl EventSink for () {
    fn take(&mut self, _: &Event) {}
}

impl EventSink for Vec<Event> {
    fn take(&mut self, event: &Event) {
        self.push(event.clone());
    }
}
