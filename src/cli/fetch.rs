//! `casemill sources fetch`.

use super::{Global, interruption, print};
use anyhow::Context;
use casemill::error::{Code, usage};
use casemill::report::grouped;
use casemill::service::fetch::kinds::FileKind;
use casemill::service::fetch::{FetchFile, FetchOptions, FetchPlan, Progress, fetch};
use clap::Args;
use serde_json::json;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct FetchArguments {
    name: String,
    /// Take what differs from fetch.lock.json, or from a file that is there without an entry in it, instead of refusing it
    #[arg(long)]
    update: bool,
}

/// How often a file that is being received says how far it is.
const SHOWN: Duration = Duration::from_secs(5);

pub fn run(global: &Global, arguments: &FetchArguments) -> anyhow::Result<Code> {
    let config = global.project()?.source(&arguments.name)?;
    let folder = global.workspace().raw.join(&config.name);
    if config.fetch.is_empty() {
        return Err(usage(format!(
            "{} names no file that can be fetched ([fetch.…] with url, path and kind); by hand: {}",
            config.file,
            config.how_to_get.trim()
        )));
    }
    let file = |(name, declared): (&String, &casemill::config::source::FetchConfig)| -> anyhow::Result<FetchFile> {
        let place = || format!("{}: fetch.{name}", config.file);
        Ok(FetchFile {
            url: declared.url.parse().with_context(place)?,
            path: declared.path.clone(),
            sha256: declared.sha256.clone(),
            kind: FileKind::from_name(&declared.kind)
                .ok_or_else(|| usage(format!("{}.kind: `{}` is no kind of file", place(), declared.kind)))?,
            max_bytes: declared.max_bytes,
        })
    };
    let files = config.fetch.iter().map(file).collect::<anyhow::Result<Vec<_>>>()?;
    let stop = interruption()?;
    let options = FetchOptions {
        update: arguments.update,
        requests_per_minute: config.fetch_requests_per_minute,
        stop: Some(&stop),
        ..FetchOptions::default()
    };
    let shown = std::cell::Cell::new(Instant::now());
    let report = fetch(&FetchPlan { folder: folder.clone(), files }, &options, &|progress| {
        if !global.quiet {
            show(&progress, &shown);
        }
    })?;
    let rows: Vec<_> = report
        .files
        .iter()
        .map(|file| json!({"path": file.path, "url": file.url, "state": file.state.to_string(), "received": file.received}))
        .collect();
    let has_rights = folder.join(casemill::config::source::RIGHTS_FILE).is_file();
    print(global, &json!({"source": config.name, "files": rows, "has_source_toml": has_rights}), || {
        let mut text: String = report.files.iter().map(|file| format!("{}: {}\n", file.path, file.state)).collect();
        if !has_rights {
            text += &format!(
                "{}/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it\n",
                folder.display()
            );
        }
        text
    })?;
    report.check()?;
    Ok(Code::Done)
}

fn show(progress: &Progress<'_>, shown: &std::cell::Cell<Instant>) {
    match progress {
        Progress::Started { path, at, bytes } => {
            let of = bytes.map_or_else(|| "an unknown number of".to_owned(), grouped);
            eprintln!("{path}: from byte {} of {of} bytes", grouped(*at));
        }
        Progress::Received { path, bytes } if shown.get().elapsed() >= SHOWN => {
            shown.set(Instant::now());
            eprintln!("{path}: {} bytes", grouped(*bytes));
        }
        Progress::Received { .. } => {}
        Progress::Waiting { path, why, wait } => eprintln!("{path}: {why}; again in {:.1} s", wait.as_secs_f64()),
        Progress::Finished { path, state } => eprintln!("{path}: {state}"),
    }
}
