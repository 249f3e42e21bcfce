//! A progress bar for the running node on a terminal; finished nodes stay as lines.

use crate::engine::{Event, EventSink};
use indicatif::{ProgressBar, ProgressStyle};

#[derive(Default)]
pub struct TerminalProgress {
    bar: Option<ProgressBar>,
}

impl TerminalProgress {
    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl EventSink for TerminalProgress {
    fn take(&mut self, event: &Event) {
        match event {
            Event::ShardsPlanned { node, n_shards, n_done } => {
                self.close();
                let bar = ProgressBar::new(u64::from(*n_shards));
                if let Ok(style) =
                    ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} shards, {elapsed}, {eta} left")
                {
                    bar.set_style(style);
                }
                bar.set_message(node.clone());
                bar.set_position(u64::from(*n_done));
                bar.reset_eta();
                self.bar = Some(bar);
            }
            Event::ShardFinished { .. } => {
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
            }
            Event::NodePhase { node, phase } => {
                self.close();
                let bar = ProgressBar::new_spinner().with_message(format!("{node}: {phase}"));
                bar.enable_steady_tick(std::time::Duration::from_millis(200));
                self.bar = Some(bar);
            }
            Event::Calls { node, counts, last: false } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{node}: {}", super::calls(counts)));
                }
            }
            Event::NodeFinished { .. }
            | Event::NodeFailed { .. }
            | Event::BuildFinished { .. }
            | Event::Interrupted => {
                self.close();
                if let Some(line) = super::line(event) {
                    self.print(&line);
                }
            }
            _ => {
                if let Some(line) = super::line(event) {
                    self.print(&line);
                }
            }
        }
    }
}
