//! From lists to pages: which articles are wanted, which pages are there, and what became of each.

use super::ask::{Asker, Refusal};
use super::page::Page;
use crate::config::source::AjcrConfig;
use crate::error::{Fault, input, usage};
use crate::record::Hash;
use crate::service::fetch::FetchOptions;
use crate::service::fetch::lock::{Held, LockFile, Locked};
use crate::service::http::shown_url;
use crate::source::ajcr::list::{DOI_PREFIX, ListedArticle, MAX_LIST_BYTES, read_list};
use crate::store::fs;
use regex::Regex;
use reqwest::Url;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is to be fetched.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub config: &'a AjcrConfig,
    /// `<raw>/<source>`.
    pub folder: PathBuf,
    /// This list, which is copied into the folder, in place of those that are there.
    pub list: Option<PathBuf>,
    /// At most so many articles, the first of the lists.
    pub limit: Option<usize>,
    /// The address that the publisher can write to.
    pub email: Option<String>,
    /// What only pages that stand in the way of others say; see [`crate::source::ajcr::selectors::Patterns`].
    pub bot_pages: Vec<Regex>,
}

/// Why there is no page of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The list has a DOI that is not one of the journal.
    InvalidDoi,
    /// The server says that there is no such page.
    NotFound,
    /// The server does not give it to us.
    Refused,
    /// It is at a host that the settings do not name.
    HostNotAllowed,
    /// What came is a check for robots.
    BotPage,
    IsPdf,
    /// What came is no page.
    NotHtml,
    Empty,
    /// What came is a page, but not one of this article.
    OtherPage,
    TooLarge,
    /// The page differs from what `fetch.lock.json` says; `--update` takes it.
    Changed,
    /// A file of its name is there, which is not its page; `--update` replaces it.
    InTheWay,
    /// The server does not work.
    Failed,
    /// It was not asked for, since the server failed or refused before.
    NotAsked,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidDoi => "invalid_doi",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::HostNotAllowed => "host_not_allowed",
            Self::BotPage => "bot_page",
            Self::IsPdf => "is_pdf",
            Self::NotHtml => "not_html",
            Self::Empty => "empty",
            Self::OtherPage => "other_page",
            Self::TooLarge => "too_large",
            Self::Changed => "changed",
            Self::InTheWay => "in_the_way",
            Self::Failed => "failed",
            Self::NotAsked => "not_asked",
        })
    }
}

/// An article without a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingArticle {
    /// Empty where the DOI is not one of the journal.
    pub ajcr_id: String,
    pub doi: String,
    /// The list that names it, and where.
    pub list: String,
    pub line: u64,
    pub reason: Missing,
    pub detail: String,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Names of lists, and how many articles each has.
    pub lists: Vec<(String, usize)>,
    /// Articles that the lists name, repeated ones once.
    pub listed: usize,
    /// Rows that name an article which an earlier row has.
    pub listed_twice: usize,
    /// Articles after `--limit`.
    pub wanted: usize,
    pub fetched: usize,
    /// Pages that were there.
    pub kept: usize,
    /// Pages that were replaced.
    pub updated: usize,
    pub missing_by_reason: BTreeMap<Missing, usize>,
    /// In the order of the lists.
    pub missing: Vec<MissingArticle>,
}

/// What is told meanwhile.
pub enum Told<'a> {
    /// A failed try; the next one follows after `wait`.
    Waiting { url: &'a str, why: &'a str, wait: Duration },
    /// What became of the `nth` article of so many.
    Article { ajcr_id: &'a str, nth: usize, of: usize, state: &'a str },
}

/// So many refusals in a row say that no page will come.
const REFUSALS: usize = 5;

/// Fetches the pages that are not there. It blocks; not for use inside an asynchronous runtime.
///
/// A page is in the folder only if it was whole and is that of its article, so a call after an interruption goes on where
/// the one before ended.
///
/// # Errors
/// Settings and lists that cannot be right, a folder that another fetch holds, a damaged lock file, a disk that fails, and
/// an interruption. What is wrong with single articles is in the summary.
pub fn run(request: &Request<'_>, options: &FetchOptions<'_>, tell: &dyn Fn(Told<'_>)) -> anyhow::Result<Summary> {
    let resolver = resolver(request.config)?;
    let asker = Asker::new(request.config, options, request.email.as_deref())?;
    let list = request.list.as_deref().map(|path| Ok::<_, anyhow::Error>((path, read_file(path)?))).transpose()?;
    if request.list.is_none() && !request.folder.is_dir() {
        return Err(no_list(&request.folder));
    }
    fs::create_dir(&request.folder)?;
    let _held = Held::take(&request.folder)?;
    let lists = match list {
        Some((path, bytes)) => vec![place_list(&request.folder, path, &bytes, options.update)?],
        None => lists_in(&request.folder)?,
    };
    let mut summary = Summary::default();
    let wanted = select(&lists, request.limit, &mut summary);
    let mut run = Run { request, options, asker, resolver, lock: LockFile::load(&request.folder)?, refusals: 0, tell };
    for (nth, (list, article)) in (1..).zip(&wanted) {
        if options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Fault::Interrupted.into());
        }
        let state = run.article(article)?;
        let shown = match &state {
            State::Kept => "kept".to_owned(),
            State::Fetched => "fetched".to_owned(),
            State::Updated => "updated".to_owned(),
            State::Missing(refusal) => format!("{}: {}", refusal.reason, refusal.detail),
        };
        let name = if article.ajcr_id.is_empty() { &article.doi } else { &article.ajcr_id };
        tell(Told::Article { ajcr_id: name, nth, of: wanted.len(), state: &shown });
        match state {
            State::Kept => summary.kept += 1,
            State::Fetched => summary.fetched += 1,
            State::Updated => summary.updated += 1,
            State::Missing(Refusal { reason, detail }) => {
                *summary.missing_by_reason.entry(reason).or_default() += 1;
                summary.missing.push(MissingArticle {
                    ajcr_id: article.ajcr_id.clone(),
                    doi: article.doi.clone(),
                    list: (*list).to_owned(),
                    line: article.line,
                    reason,
                    detail,
                });
            }
        }
    }
    run.lock.save()?;
    Ok(summary)
}

/// The address before the DOI.
fn resolver(config: &AjcrConfig) -> anyhow::Result<Url> {
    let text = &config.resolver;
    let url: Url = format!("{}/", text.trim_end_matches('/'))
        .parse()
        .map_err(|error| usage(format!("ajcr.resolver: `{text}` is no address: {error}")))?;
    let host = url.host_str().unwrap_or_default();
    if !config.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
        return Err(usage(format!("ajcr.resolver: `{host}` is not among ajcr.hosts")));
    }
    Ok(url)
}

fn no_list(folder: &Path) -> anyhow::Error {
    usage(format!("{} holds no list of articles (*.csv or *.xlsx); give one with --list FILE", folder.display()))
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let is_file = std::fs::metadata(path).map_err(|error| usage(format!("--list {}: {error}", path.display())))?;
    if !is_file.is_file() {
        return Err(usage(format!("--list {}: not a regular file", path.display())));
    }
    fs::read_limited(path, MAX_LIST_BYTES)
}

/// A list with its name.
type List = (String, Vec<ListedArticle>);

/// Puts a list beside the pages, under a name that the source is read by.
fn place_list(folder: &Path, path: &Path, bytes: &[u8], update: bool) -> anyhow::Result<List> {
    let shown = path.display().to_string();
    let articles = read_list(&shown, bytes)?;
    let extension = if bytes.starts_with(b"PK") { "xlsx" } else { "csv" };
    let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| !stem.starts_with('.'));
    let stem = stem.ok_or_else(|| usage(format!("--list {shown}: its name cannot be that of a list")))?;
    let name = format!("{stem}.{extension}");
    let target = folder.join(&name);
    if target.exists() {
        let present = fs::read_limited(&target, MAX_LIST_BYTES)?;
        if present == bytes {
            return Ok((name, articles));
        }
        if !update {
            let place = target.display();
            return Err(input(format!("{place} is another list than {shown}; --update replaces it")));
        }
    }
    fs::write_atomic(&target, bytes)?;
    Ok((name, articles))
}

/// The lists of a folder, by name.
fn lists_in(folder: &Path) -> anyhow::Result<Vec<List>> {
    let mut lists = Vec::new();
    for name in fs::list(folder)? {
        if name.starts_with('.') || !(name.ends_with(".csv") || name.ends_with(".xlsx")) {
            continue;
        }
        let path = folder.join(&name);
        lists.push((name, read_list(&path.display().to_string(), &fs::read_limited(&path, MAX_LIST_BYTES)?)?));
    }
    if lists.is_empty() {
        return Err(no_list(folder));
    }
    Ok(lists)
}

/// Each article once, in the order of the lists.
fn select<'a>(lists: &'a [List], limit: Option<usize>, summary: &mut Summary) -> Vec<(&'a str, &'a ListedArticle)> {
    let mut seen = BTreeSet::new();
    let mut wanted = Vec::new();
    for (name, articles) in lists {
        summary.lists.push((name.clone(), articles.len()));
        for article in articles {
            // What is no DOI of the journal is not the same as another that is none.
            if article.ajcr_id.is_empty() || seen.insert(article.ajcr_id.as_str()) {
                wanted.push((name.as_str(), article));
            } else {
                summary.listed_twice += 1;
            }
        }
    }
    summary.listed = wanted.len();
    wanted.truncate(limit.unwrap_or(usize::MAX));
    summary.wanted = wanted.len();
    wanted
}

/// What became of an article.
enum State {
    Kept,
    Fetched,
    Updated,
    Missing(Refusal),
}

struct Run<'a> {
    request: &'a Request<'a>,
    options: &'a FetchOptions<'a>,
    asker: Asker<'a>,
    resolver: Url,
    lock: LockFile,
    /// How often in a row the server refused a page or sent a check for robots.
    refusals: usize,
    tell: &'a dyn Fn(Told<'_>),
}

impl Run<'_> {
    fn article(&mut self, article: &ListedArticle) -> anyhow::Result<State> {
        let id = article.ajcr_id.as_str();
        let Some(digits) = id.strip_prefix("AJCR") else {
            let why = if article.doi.is_empty() { "no DOI".to_owned() } else { format!("`{}`", article.doi) };
            return Ok(State::Missing(Refusal::new(Missing::InvalidDoi, why)));
        };
        let name = format!("{id}.html");
        let path = self.request.folder.join(&name);
        let present = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > self.request.config.max_bytes_per_page => Some(Vec::new()),
            Ok(_) => Some(fs::read_limited(&path, self.request.config.max_bytes_per_page)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(fs::explain("reading", &path, &error).into()),
        };
        let locked = self.lock.get(&name).map(|locked| locked.sha256.clone());
        if !self.options.update {
            // By hand, pages also come packed and under the shorter name.
            let names = ["htm", "html.gz", "htm.gz"].map(|extension| format!("{id}.{extension}"));
            if present.is_none() && names.iter().any(|name| self.request.folder.join(name).is_file()) {
                return Ok(State::Kept);
            }
            match (&present, &locked) {
                (Some(bytes), Some(locked)) if Hash::of(bytes) == *locked => return Ok(State::Kept),
                (Some(bytes), None) => {
                    return Ok(match Page::read(id, bytes, &self.request.bot_pages) {
                        Ok(_) => State::Kept,
                        Err(refusal) => {
                            let what = format!("{name} is there, but it is not its page: {}", refusal.detail);
                            State::Missing(Refusal::new(Missing::InTheWay, what))
                        }
                    });
                }
                _ => {}
            }
        }
        if self.refusals >= REFUSALS {
            let why = format!("the server refused {REFUSALS} times in a row");
            return Ok(State::Missing(Refusal::new(Missing::NotAsked, why)));
        }
        let (url, bytes) = match self.ask(id, digits)? {
            Ok(found) => found,
            Err(refusal) => {
                let is_refused = matches!(refusal.reason, Missing::Refused | Missing::BotPage);
                self.refusals = if is_refused { self.refusals + 1 } else { 0 };
                return Ok(State::Missing(refusal));
            }
        };
        self.refusals = 0;
        let sha256 = Hash::of(&bytes);
        if let Some(locked) = locked.filter(|locked| *locked != sha256 && !self.options.update) {
            let why = format!("the lock file has sha256 {locked}, the server sent {sha256}");
            return Ok(State::Missing(Refusal::new(Missing::Changed, why)));
        }
        let is_same = present.as_ref() == Some(&bytes);
        if !is_same {
            fs::write_atomic(&path, &bytes)?;
        }
        let entry = Locked {
            url: shown_url(&url),
            sha256,
            bytes: u64::try_from(bytes.len())?,
            etag: None,
            last_modified: None,
            md5: None,
            licence: None,
            fetched: self.options.date.clone(),
        };
        // A page that a crash leaves without its entry is looked at as one that came by hand.
        self.lock.insert(&name, entry);
        self.lock.save()?;
        Ok(match present {
            Some(_) if is_same => State::Kept,
            Some(_) => State::Updated,
            None => State::Fetched,
        })
    }

    /// The page of an article, that of its full text if there is a link to it.
    fn ask(&self, id: &str, digits: &str) -> anyhow::Result<Result<(Url, Vec<u8>), Refusal>> {
        let address = self.resolver.join(&format!("{DOI_PREFIX}{digits}"))?;
        let answer = match self.asker.page(&address, self.tell)? {
            Ok(answer) => answer,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let page = match Page::read(id, &answer.body, &self.request.bot_pages) {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let pattern = self.request.config.full_text.as_deref().unwrap_or_default();
        let Some(url) = page.full_text(id, pattern, &answer.url) else {
            return Ok(Ok((answer.url, answer.body)));
        };
        let full = self.asker.page(&url, self.tell)?;
        Ok(full.and_then(|full| {
            Page::read(id, &full.body, &self.request.bot_pages)?;
            Ok((full.url, full.body))
        }))
    }
}
