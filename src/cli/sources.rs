//! `casemill sources`: what there is, whether it is whole, and getting it.

use super::{Global, interruption, print, release_date};
use anyhow::Context;
use casemill::config::source::{AjcrConfig, PmcConfig, SourceConfig};
use casemill::env;
use casemill::error::{Code, usage};
use casemill::record::Hash;
use casemill::report::grouped;
use casemill::service::ajcr::plan as ajcr;
use casemill::service::fetch::kinds::FileKind;
use casemill::service::fetch::{FetchFile, FetchOptions, FetchPlan, FileState, Progress, fetch};
use casemill::service::pmc::plan::{self, Request, Summary, Told};
use casemill::source::ajcr::{PageLimits, PageRules, SummaryRow, summary};
use casemill::store::raw::{self, RawHashes};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct FetchArguments {
    name: String,
    /// Take what differs from fetch.lock.json, or from a file that is there without an entry in it, instead of refusing it
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    articles: ArticleArguments,
}

#[derive(Args)]
pub struct CheckArguments {
    name: String,
    /// Write what became of each article of ajcr, of those without a page, too
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Only for a source with services in place of files ([pmc] or [ajcr] in sources/<name>.toml).
#[derive(Args)]
struct ArticleArguments {
    /// At most so many articles: for pmc of all specialties by turns, for ajcr the first of the list
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Ask these services instead of those in sources/<name>.toml: eutils or europepmc to search, opendata, europepmc and
    /// local to get articles from, in this order
    #[arg(long, value_name = "SERVICE,…", value_delimiter = ',')]
    from: Vec<String>,
    /// Articles to get, without a search: one a line, PMC123, if wanted with a specialty behind it
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    /// Packages that are on this machine, as folders PMC123.1/ or as PMC123.tar.gz; what is there is not asked for elsewhere
    #[arg(long, value_name = "DIR")]
    packages: Option<PathBuf>,
    /// Search and select, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Articles of ajcr to get: a table with columns DOI, PMID and final diagnoses as CSV or XLSX, which is copied beside the
    /// pages; without it, the lists that are there
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

impl ArticleArguments {
    fn is_any(&self) -> bool {
        self.limit.is_some() || self.list.is_some() || self.is_any_of_pmc()
    }

    /// Whether there is one that only services of PubMed Central have a use for.
    fn is_any_of_pmc(&self) -> bool {
        let Self { limit: _, from, ids, packages, dry_run, list: _ } = self;
        !from.is_empty() || ids.is_some() || packages.is_some() || *dry_run
    }
}

/// How often a file that is being received says how far it is.
const SHOWN: Duration = Duration::from_secs(5);

pub fn fetch_files(global: &Global, arguments: &FetchArguments) -> anyhow::Result<Code> {
    let config = global.project()?.source(&arguments.name)?;
    let folder = global.workspace().raw.join(&config.name);
    if let Some(services) = &config.pmc {
        return fetch_articles(global, arguments, &config.name, services, folder);
    }
    if let Some(pages) = &config.ajcr {
        return fetch_pages(global, arguments, &config, pages, folder);
    }
    if arguments.articles.is_any() {
        return Err(usage(format!("{} has no [pmc]: --update is all that fetching its files takes", config.file)));
    }
    if config.fetch.is_empty() {
        return Err(usage(format!(
            "{} names no file that can be fetched ([fetch.…] with url, path and kind); by hand: {}",
            config.file,
            config.how_to_get.trim()
        )));
    }
    let file = |(name, declared): (&String, &casemill::config::source::FetchConfig)| -> anyhow::Result<FetchFile> {
        let place = || format!("{}: fetch.{name}", config.file);
        let kind = FileKind::from_name(&declared.kind)
            .ok_or_else(|| usage(format!("{}.kind: `{}` is no kind of file", place(), declared.kind)))?;
        let url = declared.url.parse().with_context(place)?;
        Ok(FetchFile {
            sha256: declared.sha256.clone(),
            ..FetchFile::new(url, &declared.path, kind, declared.max_bytes)
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
            text += &without_rights(&folder);
        }
        text
    })?;
    report.check()?;
    Ok(Code::Done)
}

/// Articles of PubMed Central.
fn fetch_articles(
    global: &Global,
    arguments: &FetchArguments,
    name: &str,
    config: &PmcConfig,
    folder: PathBuf,
) -> anyhow::Result<Code> {
    let ArticleArguments { limit, from, ids, packages, dry_run, list } = &arguments.articles;
    if list.is_some() {
        return Err(usage(format!("--list is for pages of ajcr; the articles of {name} are named by --ids")));
    }
    let read_ids = |path: &PathBuf| {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| usage(format!("--ids {shown}: {error}")))?;
        plan::parse_ids(&shown, &text)
    };
    let date = today()?;
    let request = Request {
        config,
        folder: folder.clone(),
        ids: ids.as_ref().map(read_ids).transpose()?,
        limit: *limit,
        dry_run: *dry_run,
        from: from.clone(),
        packages: packages.clone(),
        date,
        email: env::read(&config.email_variable),
        key: env::read(&config.key_variable),
    };
    let stop = interruption()?;
    let options = FetchOptions {
        update: arguments.update,
        concurrency: usize::try_from(config.concurrency)?,
        host_requests_per_minute: plan::rates(config, request.key.is_some()),
        date: Some(date.to_string()),
        stop: Some(&stop),
        ..FetchOptions::default()
    };
    let shown = std::cell::Cell::new(Instant::now());
    let finished = std::cell::Cell::new(0u64);
    let summary = plan::run(&request, &options, &|told| match told {
        _ if global.quiet => {}
        Told::Step(text) => eprintln!("{text}"),
        // Of thousands of small files only what does not go as it should is told one by one.
        Told::File(progress @ Progress::Waiting { .. }) => show(&progress, &shown),
        Told::File(progress @ Progress::Finished { state, .. }) => {
            finished.set(finished.get() + 1);
            if !matches!(state, FileState::Fetched | FileState::Kept) {
                show(&progress, &shown);
            } else if shown.get().elapsed() >= SHOWN {
                shown.set(Instant::now());
                eprintln!("{} files", grouped(finished.get()));
            }
        }
        Told::File(_) => {}
    })?;
    let has_rights = folder.join(casemill::config::source::RIGHTS_FILE).is_file();
    let mut document = serde_json::to_value(&summary)?;
    if let Some(document) = document.as_object_mut() {
        document.insert("source".to_owned(), json!(name));
        document.insert("has_source_toml".to_owned(), json!(has_rights));
    }
    print(global, &document, || {
        let mut text = articles_text(&summary);
        if !has_rights && !summary.dry_run {
            text += &without_rights(&folder);
        }
        text
    })?;
    if summary.failed == 0 {
        return Ok(Code::Done);
    }
    let (failed, problems) = (summary.failed, &summary.problems);
    let mut message = format!("{failed} of {} articles are not as they should be:", summary.selected);
    for problem in problems.iter().take(SHOWN_PROBLEMS) {
        message += &format!("\n{problem}");
    }
    if let Some(more) = problems.len().checked_sub(SHOWN_PROBLEMS).filter(|more| *more > 0) {
        message += &format!("\nand {more} more; see {}", folder.join(plan::OUTCOMES_FILE).display());
    }
    Err(casemill::error::input(message))
}

/// The day is part of what is written, so a build that says its day gets that one.
fn today() -> anyhow::Result<jiff::civil::Date> {
    Ok(match release_date(None)? {
        Some(text) => text.parse()?,
        None => jiff::Timestamp::now().strftime("%Y-%m-%d").to_string().parse()?,
    })
}

/// Pages of the American Journal of Case Reports.
fn fetch_pages(
    global: &Global,
    arguments: &FetchArguments,
    config: &SourceConfig,
    pages: &AjcrConfig,
    folder: PathBuf,
) -> anyhow::Result<Code> {
    if arguments.articles.is_any_of_pmc() {
        return Err(usage(format!("{} has no [pmc]: pages take --list, --limit and --update alone", config.file)));
    }
    let ArticleArguments { limit, list, .. } = &arguments.articles;
    let request = ajcr::Request {
        config: pages,
        folder: folder.clone(),
        list: list.clone(),
        limit: *limit,
        email: env::read(&pages.email_variable),
        bot_pages: page_rules(config)?.patterns.bot_page,
    };
    let stop = interruption()?;
    let options = FetchOptions {
        update: arguments.update,
        date: Some(today()?.to_string()),
        stop: Some(&stop),
        ..FetchOptions::default()
    };
    let summary = ajcr::run(&request, &options, &|told| match told {
        _ if global.quiet => {}
        ajcr::Told::Waiting { url, why, wait } => eprintln!("{url}: {why}; again in {:.1} s", wait.as_secs_f64()),
        ajcr::Told::Article { ajcr_id, nth, of, state } => eprintln!("{nth} of {of}, {ajcr_id}: {state}"),
    })?;
    let has_rights = folder.join(casemill::config::source::RIGHTS_FILE).is_file();
    let mut document = serde_json::to_value(&summary)?;
    if let Some(document) = document.as_object_mut() {
        document.insert("source".to_owned(), json!(config.name));
        document.insert("has_source_toml".to_owned(), json!(has_rights));
    }
    print(global, &document, || {
        let mut text = pages_text(&summary);
        if !has_rights {
            text += &without_rights(&folder);
        }
        text
    })?;
    Ok(if summary.missing.is_empty() { Code::Done } else { Code::Quarantine })
}

/// What is where on a page of ajcr.
fn page_rules(config: &SourceConfig) -> anyhow::Result<PageRules> {
    PageRules::from_options(&config.options).map_err(|error| usage(format!("{}: {error:#}", config.file)))
}

fn pages_text(summary: &ajcr::Summary) -> String {
    let ajcr::Summary { lists, listed, listed_twice, wanted, fetched, kept, updated, missing_by_reason, missing } =
        summary;
    let mut text: String = lists.iter().map(|(name, articles)| format!("{name}: {articles} rows\n")).collect();
    text += &format!("listed {listed}, named again {listed_twice}, wanted {wanted}\n");
    text += &format!("pages: fetched {fetched}, kept {kept}, updated {updated}, missing {}\n", missing.len());
    let reasons: Vec<String> = missing_by_reason.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
    if !reasons.is_empty() {
        text += &format!("missing by reason: {}\n", reasons.join(", "));
    }
    for ajcr::MissingArticle { ajcr_id, doi, list, line, reason, detail } in missing {
        let name = if ajcr_id.is_empty() { doi } else { ajcr_id };
        text += &format!("  {name} ({list}:{line}): {reason}: {detail}\n");
    }
    text
}

/// Problems that an error names; `outcomes.jsonl` has all.
const SHOWN_PROBLEMS: usize = 20;

fn articles_text(summary: &Summary) -> String {
    let mut text = String::new();
    if let Some(search) = &summary.search {
        let when = if search.from_earlier_run { "searched earlier, on" } else { "searched on" };
        text += &format!("{} {when} {}, published before {}\n", search.service, search.date, search.published_before);
        for ((specialty, hits), query) in search.hits.iter().zip(&search.queries) {
            text += &format!("  {specialty}: {} hits\n", grouped(*hits));
            if summary.dry_run {
                text += &format!("    {query}\n");
            }
        }
        text += &format!("found {}, unique {}", search.found, search.unique);
        text += &format!(", {} of them not in PubMed Central\n", search.without_pmcid);
        for difference in &search.differences {
            text += &format!("  not as published: {difference}\n");
        }
    }
    let by_specialty: Vec<String> = summary.by_specialty.iter().map(|(name, n)| format!("{name} {n}")).collect();
    text += &format!("selected {} articles ({})\n", summary.selected, by_specialty.join(", "));
    if summary.dry_run {
        return text;
    }
    let Summary { resolved, not_open_access, absent, metadata_only, complete, failed, retracted, manuscripts, .. } =
        summary;
    text += &format!("resolved {resolved}, of these not open access {not_open_access}; absent {absent}\n");
    text += &format!("complete {complete}, without body {metadata_only}, failed {failed}\n");
    text += &format!("marked as retracted {retracted}, manuscripts {manuscripts}\n");
    let files = summary.files;
    text += &format!(
        "files: fetched {}, kept {}, updated {}, failed {}, left out {}\n",
        files.fetched, files.kept, files.updated, files.failed, files.left_out
    );
    text
}

fn without_rights(folder: &Path) -> String {
    format!(
        "{}/source.toml is not there: write snapshot, licence, access and llm_egress of these files into it\n",
        folder.display()
    )
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

pub fn check(global: &Global, arguments: &CheckArguments) -> anyhow::Result<Code> {
    let name = arguments.name.as_str();
    let (project, workspace) = (global.project()?, global.workspace());
    let config = project.source(name)?;
    if arguments.summary.is_some() && config.ajcr.is_none() {
        return Err(usage(format!("{} has no [ajcr]: only its pages have a summary", config.file)));
    }
    let mut hashes = RawHashes::load(&workspace);
    let Some(mut found) = casemill::engine::session::find_source(&config, &workspace, &mut hashes)? else {
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
    for file in &mut found.raw.files {
        let path = workspace.raw.join(&file.path);
        let limit = config.max_unpacked_bytes;
        file.readable = raw::readable(&workspace, &path, &file.path, &file.sha256, limit, false)?;
        files.push(
            json!({"path": file.path, "bytes": file.bytes, "sha256": file.sha256, "known_as": known(&file.sha256)}),
        );
    }
    let summarise = |path: &PathBuf| -> anyhow::Result<_> {
        write_summary(path, &summary(&found.raw, &page_rules(&config)?, PageLimits::default())?)
    };
    let by_status = arguments.summary.as_ref().map(summarise).transpose()?;
    let rights = &found.raw.rights;
    let mut document = json!({
        "source": name, "files": files, "rights": rights, "has_source_toml": found.rights_file.is_some(),
        "not_read": found.unmatched,
    });
    if let (Some(by_status), Some(document)) = (&by_status, document.as_object_mut()) {
        document.insert("summary".to_owned(), json!(by_status));
    }
    print(global, &document, || {
        let mut text = String::new();
        for file in &found.raw.files {
            let label = known(&file.sha256)
                .map_or_else(|| "not a file that sources/ knows".to_owned(), |label| format!("known as {label}"));
            text += &format!("{}  {} bytes  {}  {label}\n", file.path, grouped(file.bytes), file.sha256);
        }
        text += &format!("snapshot {}, licence {}, access {}", rights.snapshot, rights.licence, rights.access.as_str());
        text += if found.rights_file.is_some() { "\n" } else { " (there is no source.toml beside the files)\n" };
        if !found.unmatched.is_empty() {
            text += &format!("not read, since no pattern matches: {}\n", found.unmatched.join(", "));
        }
        for (status, count) in by_status.iter().flatten() {
            text += &format!("{status} {}\n", grouped(*count));
        }
        text
    })?;
    Ok(Code::Done)
}

/// Writes the rows as CSV and counts them by status.
fn write_summary(path: &Path, rows: &[SummaryRow]) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut by_status = BTreeMap::new();
    for row in rows {
        writer.serialize(row)?;
        *by_status.entry(row.status.clone()).or_default() += 1;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    casemill::store::fs::write_atomic(path, &bytes)?;
    Ok(by_status)
}
