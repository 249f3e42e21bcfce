//! `casemill sources`: what there is, whether it is whole, and getting it.

use super::{Global, interruption, print};
use anyhow::Context;
use casemill::error::{Code, usage};
use casemill::record::Hash;
use casemill::report::grouped;
use casemill::service::fetch::kinds::FileKind;
use casemill::service::fetch::{FetchFile, FetchOptions, FetchPlan, Progress, fetch};
use casemill::store::raw::RawHashes;
use clap::Args;
use serde_json::{Value, json};
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

pub fn fetch_files(global: &Global, arguments: &FetchArguments) -> anyhow::Result<Code> {
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

pub fn list(global: &Global) -> anyhow::Result<Code> {
    let (project, workspace) = (global.project()?, global.workspace());
    let mut hashes = RawHashes::load(&workspace);
    let mut rows = Vec::new();
    for name in project.sources()? {
        let config = project.source(&name)?;
        let found = casemill::engine::session::find_source(&config, &workspace, &mut hashes)?;
        rows.push((config, found));
    }
    let document: Vec<Value> = rows
        .iter()
        .map(|(config, found)| {
            json!({
                "name": config.name, "title": config.title, "origin": config.origin, "format": config.format,
                "published_licence": config.published_licence, "how_to_get": config.how_to_get, "present": found.is_some(),
                "rights": found.as_ref().map(|found| &found.raw.rights),
                "n_files": found.as_ref().map_or(0, |found| found.raw.files.len()),
            })
        })
        .collect();
    print(global, &json!({"raw": workspace.raw, "sources": document}), || {
        let mut text = String::new();
        for (config, found) in &rows {
            text += &format!(
                "{}: {}\n  from {} (published under {})\n",
                config.name, config.title, config.origin, config.published_licence
            );
            match found {
                Some(found) => {
                    let rights = &found.raw.rights;
                    let bytes = found.raw.files.iter().map(|file| file.bytes).sum();
                    text += &format!(
                        "  {} files, {} bytes in {}/{}; snapshot {}, licence {}, access {}\n",
                        found.raw.files.len(),
                        grouped(bytes),
                        workspace.raw.display(),
                        config.name,
                        rights.snapshot,
                        rights.licence,
                        rights.access.as_str()
                    );
                }
                None => {
                    text += &format!(
                        "  absent: put {} into {}/{}/\n  {}\n",
                        config.files.join(" or "),
                        workspace.raw.display(),
                        config.name,
                        config.how_to_get.trim().replace('\n', "\n  ")
                    );
                }
            }
        }
        text
    })?;
    Ok(Code::Done)
}

pub fn check(global: &Global, name: &str) -> anyhow::Result<Code> {
    let (project, workspace) = (global.project()?, global.workspace());
    let config = project.source(name)?;
    let mut hashes = RawHashes::load(&workspace);
    let Some(found) = casemill::engine::session::find_source(&config, &workspace, &mut hashes)? else {
        return Err(casemill::error::input(format!(
            "source {name}: no file {} in {}/{name}/; {}",
            config.files.join(" or "),
            workspace.raw.display(),
            config.how_to_get.trim()
        )));
    };
    let known = |hash: &Hash| {
        config.checksums.iter().find(|(_, known)| *known == hash.as_str()).map(|(label, _)| label.clone())
    };
    let mut files = Vec::new();
    for file in &found.raw.files {
        let path = workspace.raw.join(&file.path);
        casemill::store::raw::readable(&workspace, &path, &file.path, &file.sha256, config.max_unpacked_bytes)?;
        files.push(
            json!({"path": file.path, "bytes": file.bytes, "sha256": file.sha256, "known_as": known(&file.sha256)}),
        );
    }
    let rights = &found.raw.rights;
    print(
        global,
        &json!({"source": name, "files": files, "rights": rights, "has_source_toml": found.rights_file.is_some(), "not_read": found.unmatched}),
        || {
            let mut text = String::new();
            for file in &found.raw.files {
                let label = known(&file.sha256)
                    .map_or_else(|| "not a file that sources/ knows".to_owned(), |label| format!("known as {label}"));
                text += &format!("{}  {} bytes  {}  {label}\n", file.path, grouped(file.bytes), file.sha256);
            }
            text +=
                &format!("snapshot {}, licence {}, access {}", rights.snapshot, rights.licence, rights.access.as_str());
            text += if found.rights_file.is_some() { "\n" } else { " (there is no source.toml beside the files)\n" };
            if !found.unmatched.is_empty() {
                text += &format!("not read, since no pattern matches: {}\n", found.unmatched.join(", "));
            }
            text
        },
    )?;
    Ok(Code::Done)
}
