//! Consumers of events: bars on a terminal, plain lines elsewhere, and the run log.

pub mod figures;
pub mod plain;
pub mod run_log;
pub mod terminal;

use crate::engine::judgements::VerdictCounts;
use crate::engine::{Event, EventSink};
use crate::stage::CallCounts;
use std::collections::BTreeMap;

/// Several sinks as one.
pub struct Sinks(pub Vec<Box<dyn EventSink>>);

impl EventSink for Sinks {
    fn take(&mut self, event: &Event) {
        self.0.iter_mut().for_each(|sink| sink.take(event));
    }
}

/// An event as one line of text, as far as a person wants to read it.
pub fn line(event: &Event) -> Option<String> {
    use crate::record::ledger::total_counts;
    Some(match event {
        Event::BuildStarted { pipeline, jobs } => format!("building {pipeline} with {jobs} jobs"),
        Event::SourceFound { source, n_files, bytes, access, licence } => {
            format!("source {source}: {n_files} files, {} bytes, access {access}, licence {licence}", grouped(*bytes))
        }
        Event::SourceAbsent { source } => format!("source {source}: absent"),
        Event::Warning { message } => format!("warning: {message}"),
        Event::NodeFresh { node } => format!("{node}: fresh"),
        Event::NodeAbsent { node, why } => format!("{node}: left out, {why}"),
        Event::NodeStarted { node, stage, why } => format!("{node} ({stage}): {}", why.join("; ")),
        Event::NodePhase { node, phase } => format!("{node}: {phase}"),
        Event::ShardsPlanned { node, n_shards, n_done } if *n_done > 0 => {
            format!("{node}: {n_done} of {n_shards} shards were done before")
        }
        Event::ShardsPlanned { .. } => return None,
        Event::ShardFinished { node, index, rows, n_shards } => {
            format!("{node}: shard {index} of {n_shards}, {rows} rows")
        }
        Event::Calls { node, counts, .. } => format!("{node}: {}", calls(counts)),
        Event::Controls { node, model, n_right, n } => {
            format!("{node}: model {model} answered {n_right} of {n} control questions right")
        }
        Event::Judgements(counts) => format!("{}: {}", counts.node, verdicts(counts)),
        Event::NodeFinished { node, counts, n_shards, bytes } => {
            let total = total_counts(counts);
            let mut text = format!("{node}: {} in, {} kept", grouped(total.n_in), grouped(total.kept));
            if total.n_split > 0 {
                text += &format!(", {} by splitting", grouped(total.n_split));
            }
            for (word, reasons) in [("dropped", &total.dropped), ("quarantined", &total.quarantined)] {
                let n: u64 = reasons.values().sum();
                if n > 0 {
                    let list: Vec<String> =
                        reasons.iter().map(|(reason, n)| format!("{reason} {}", grouped(*n))).collect();
                    text += &format!(", {} {word} ({})", grouped(n), list.join(", "));
                }
            }
            text + &format!("; {n_shards} shards, {} bytes", grouped(*bytes))
        }
        Event::Overlap(overlap) if overlap.kept_file == overlap.removed_file => {
            format!("{}: {} copies within {}", overlap.node, grouped(overlap.n_removed), overlap.kept_file)
        }
        Event::Overlap(overlap) => format!(
            "{}: {} records of {} are in {} too",
            overlap.node,
            grouped(overlap.n_removed),
            overlap.removed_file,
            overlap.kept_file
        ),
        Event::NodeFailed { node, error } => format!("{node}: failed: {error}"),
        Event::BuildFinished { n_run, n_fresh, n_quarantined } => {
            let quarantine = if *n_quarantined > 0 {
                format!("; {} records in quarantine", grouped(*n_quarantined))
            } else {
                String::new()
            };
            format!("done: {n_run} nodes ran, {n_fresh} were fresh{quarantine}")
        }
        Event::Interrupted => "interrupted: finished shards are kept".to_owned(),
    })
}

/// `12 replies from the store, 30 from models, failed 1; 34 requests, 51 200 + 9 600 tokens, 0.2240 spent`
pub fn calls(counts: &CallCounts) -> String {
    let mut text =
        format!("{} replies from the store, {} from models", grouped(counts.replayed), grouped(counts.answered));
    if counts.failed > 0 {
        text += &format!(", failed {}", grouped(counts.failed));
    }
    if counts.requests > 0 {
        text += &format!(
            "; {} requests, {} + {} tokens, {:.4} spent",
            grouped(counts.requests),
            grouped(counts.input_tokens),
            grouped(counts.output_tokens),
            counts.spent
        );
    }
    text
}

/// `suitable, by openai/judge: NO 12, YES 40; no answer: reply_refused 1`
pub fn verdicts(counts: &VerdictCounts) -> String {
    let list = |counts: &BTreeMap<String, u64>| {
        let shown: Vec<String> = counts.iter().map(|(verdict, n)| format!("{verdict} {}", grouped(*n))).collect();
        shown.join(", ")
    };
    let about = counts.about.as_ref().map(|about| format!(" of {about}")).unwrap_or_default();
    let mut parts = Vec::new();
    if !counts.said.is_empty() {
        parts.push(list(&counts.said));
    }
    if !counts.unanswered.is_empty() {
        parts.push(format!("no answer: {}", list(&counts.unanswered)));
    }
    format!("{}{about}, by {}: {}", counts.question, counts.model, parts.join("; "))
}

/// `1 234 567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 12, 1234, 1_234_567].map(super::grouped), ["0", "12", "1 234", "1 234 567"]);
    }
}
