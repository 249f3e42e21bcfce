//! `data/work/<pipeline>/runs/<time>.jsonl`: every event of a run with its time, for later.

use crate::engine::{Event, EventSink};
use crate::store::fs;
use serde::Serialize;
use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::Path;

pub struct RunLog {
    file: LineWriter<File>,
}

#[derive(Serialize)]
struct Entry<'a> {
    time: String,
    #[serde(flatten)]
    event: &'a Event,
}

impl RunLog {
    /// Begins a log in a folder. The name is the time and the process, so runs never share one.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir(folder)?;
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
        let path = folder.join(format!("{now}-{}.jsonl", std::process::id()));
        let file = File::create(&path).map_err(|error| fs::explain("creating", &path, &error))?;
        Ok(Self { file: LineWriter::new(file) })
    }
}

impl EventSink for RunLog {
    fn take(&mut self, event: &Event) {
        if matches!(event, Event::Calls { last: false, .. }) {
            return;
        }
        let entry = Entry { time: jiff::Timestamp::now().to_string(), event };
        if let Ok(mut line) = serde_json::to_vec(&entry) {
            line.push(b'\n');
            // A log that cannot be written (a full disk) must not end the run; the store's own writes will say so.
            let _ = self.file.write_all(&line);
        }
    }
}
